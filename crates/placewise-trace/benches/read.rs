//! Events and bytes per second of reading traces that lie in memory:
//! `cargo bench --package placewise-trace`.

use std::io::Cursor;
use std::sync::Arc;

use divan::counter::{BytesCount, ItemsCount};
use placewise_trace::{Context, Event, FtraceWriter, Record, Sink, TraceReader};

/// Four events each.
const WAKEUPS: usize = 50_000;

fn main() {
    divan::main();
}

/// One task wakes another on an idle CPU and goes to sleep.
fn ftrace() -> Vec<u8> {
    let mut writer = FtraceWriter::new(Vec::new(), 16);
    for time_ns in (0..WAKEUPS as u64).map(|wakeup| 1_000_000_000 + wakeup * 10_000) {
        for (cpu, comm, pid, context, event) in wakeup() {
            writer.record(&Record { time_ns, cpu, comm, pid, tgid: None, context, event });
        }
    }
    writer.finish().expect("memory")
}

fn wakeup() -> [(u32, &'static str, u32, Context, Event<'static>); 4] {
    let (comm, pid, prio, target_cpu) = ("receiver", 4243, 120, 9);
    let switch = |(prev_comm, prev_pid, prev_state), (next_comm, next_pid)| Event::Switch {
        prev_comm,
        prev_pid,
        prev_prio: 120,
        prev_state,
        next_comm,
        next_pid,
        next_prio: 120,
    };
    let sender = ("sender", 4242);
    [
        (3, "sender", 4242, Context::Task, Event::Waking { comm, pid, prio, target_cpu }),
        (
            9,
            "swapper/9",
            0,
            Context::HardInterruptResched,
            Event::Wakeup { comm, pid, prio, target_cpu },
        ),
        (9, "swapper/9", 0, Context::Task, switch(("swapper/9", 0, "R"), (comm, pid))),
        (3, "sender", 4242, Context::Task, switch((sender.0, sender.1, "S"), ("swapper/3", 0))),
    ]
}

/// The same as `perf script` prints it.
fn perf() -> Vec<u8> {
    let mut text = String::new();
    for micros in (0..WAKEUPS).map(|wakeup| wakeup * 10) {
        let time = format!("{:6}.{:06}", 1 + micros / 1_000_000, micros % 1_000_000);
        for (task, fields) in [
            (
                "sender  4242 [003]",
                "sched:sched_waking: comm=receiver pid=4243 prio=120 target_cpu=009",
            ),
            ("swapper     0 [009]", "sched:sched_wakeup: receiver:4243 [120] success=1 CPU:009"),
            (
                "swapper     0 [009]",
                "sched:sched_switch: swapper/9:0 [120] R ==> receiver:4243 [120]",
            ),
            ("sender  4242 [003]", "sched:sched_switch: sender:4242 [120] S ==> swapper/3:0 [120]"),
        ] {
            text += &format!("{task:>27} {time}: {fields:>40}\n");
        }
    }
    text.into_bytes()
}

#[divan::bench(args = ["ftrace", "perf"])]
fn read(bencher: divan::Bencher<'_, '_>, format: &str) {
    let text: Arc<[u8]> = if format == "perf" { perf() } else { ftrace() }.into();
    bencher.counter(ItemsCount::new(4 * WAKEUPS)).counter(BytesCount::new(text.len())).bench(
        || {
            let text = Cursor::new(Arc::clone(&text));
            let mut reader = TraceReader::from_reader(format, text).expect("text");
            let mut records = 0;
            while let Some(record) = reader.next_record().expect("text") {
                divan::black_box(record);
                records += 1;
            }
            assert_eq!(records, 4 * WAKEUPS);
        },
    );
}
