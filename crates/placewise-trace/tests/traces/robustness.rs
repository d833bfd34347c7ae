//! What is written is read back, and no bytes make the reader panic.
//!
//! The ignored tests keep at it for PLACEWISE_FUZZ_SECONDS each (default 60):
//! `cargo test -p placewise-trace --release -- --ignored fuzz`.

use std::fmt::Debug;
use std::io::Cursor;
use std::time::{Duration, Instant};

use placewise_trace::{
    Context, Event, FtraceWriter, Losses, Record, Sink, TraceError, TraceReader,
};
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::{Index, select};
use proptest::test_runner::{Config, TestRunner};

/// What a comm holds to pass for something else.
const LURES: [&str; 24] = [
    " pid=7 ",
    "pid=",
    " prio=1",
    " target_cpu=",
    " ==> ",
    " ==> next_comm=",
    "prev_state=S",
    " child_comm=",
    " child_pid=7",
    " next_pid=",
    "[000]",
    " [003] ",
    "1.000000:",
    ": ",
    ":1",
    "-7",
    "(12)",
    "<...>",
    "=",
    "#",
    "CPU:3 ",
    "é",
    "日本",
    "💡",
];

/// Any comm that the kernel can hold and that is written as it is: 15 bytes without control
/// characters.
fn comm() -> impl Strategy<Value = String> {
    let piece = prop_oneof![
        3 => select(&LURES[..]).prop_map(str::to_owned),
        2 => "[ -~]{0,15}",
        1 => "[^\\p{Cc}]{0,4}",
    ];
    vec(piece, 1..4).prop_map(|pieces| {
        let text = pieces.concat();
        text[..text.floor_char_boundary(15)].to_owned()
    })
}

#[derive(Clone, Debug)]
struct Drawn {
    time_ns: u64,
    cpu: u32,
    comms: [String; 3],
    pids: [u32; 3],
    prios: [i32; 2],
    cpus: [u32; 2],
    state: &'static str,
    context: Context,
    kind: usize,
}

fn drawn() -> impl Strategy<Value = Drawn> {
    let cpu = || 0..Losses::NR_CPUS;
    let pid = || prop_oneof![1 => Just(0), 9 => any::<u32>()];
    let numbers =
        (any::<u64>(), cpu(), [pid(), pid(), pid()], any::<[i32; 2]>(), [cpu(), cpu()], 0..9_usize);
    let state = select(&["R", "S", "D", "R+", "S|K", "I", "X", "Z"][..]);
    let context = select(
        &[
            Context::Preemptible,
            Context::Task,
            Context::TaskLocked,
            Context::HardInterrupt,
            Context::HardInterruptResched,
            Context::SoftInterrupt,
        ][..],
    );
    (numbers, [comm(), comm(), comm()], state, context).prop_map(
        |((time_ns, cpu, pids, prios, cpus, kind), comms, state, context)| {
            // As ftrace prints it.
            let time_ns = time_ns / 1000 * 1000;
            Drawn { time_ns, cpu, comms, pids, prios, cpus, state, context, kind }
        },
    )
}

impl Drawn {
    fn event(&self) -> Event<'_> {
        let [_, first, second] = &self.comms;
        let [_, pid, other_pid] = self.pids;
        let [prio, other_prio] = self.prios;
        let [target_cpu, to] = self.cpus;
        match self.kind {
            0 => Event::Waking { comm: first, pid, prio, target_cpu },
            1 => Event::Wakeup { comm: first, pid, prio, target_cpu },
            2 => Event::WakeupNew { comm: first, pid, prio, target_cpu },
            3 => Event::Migrate { comm: first, pid, prio, from: target_cpu, to },
            4 => Event::Switch {
                prev_comm: first,
                prev_pid: pid,
                prev_prio: prio,
                prev_state: self.state,
                next_comm: second,
                next_pid: other_pid,
                next_prio: other_prio,
            },
            5 => Event::Fork { comm: first, pid, child_comm: second, child_pid: other_pid },
            6 => Event::Exec { pid, old_pid: other_pid },
            7 => Event::Exit { comm: first, pid, prio },
            _ => Event::LostEvents { count: pid.into() },
        }
    }

    fn record(&self) -> Record<'_> {
        let (comm, pid) = (self.comms[0].as_str(), self.pids[0]);
        let (time_ns, cpu, context) = (self.time_ns, self.cpu, self.context);
        Record { time_ns, cpu, comm, pid, tgid: None, context, event: self.event() }
    }

    /// What the text of a record keeps: a mark of lost events says nothing but the CPU, the idle
    /// task has one name, and spaces at the beginning of a comm look like those in front of it.
    fn as_read<'a>(&'a self, time_ns: u64) -> Record<'a> {
        let record = self.record();
        match record.event {
            Event::LostEvents { .. } => {
                Record { time_ns, comm: "", pid: 0, context: Context::Unknown, ..record }
            }
            _ if record.pid == 0 => Record { comm: "<idle>", ..record },
            _ => Record { comm: record.comm.trim_start_matches(' '), ..record },
        }
    }
}

/// With an event at least, and in the order of time: others are refused.
fn trace() -> impl Strategy<Value = Vec<Drawn>> {
    vec(drawn(), 1..8).prop_map(|mut drawn| {
        drawn.sort_by_key(|one| one.time_ns);
        drawn[0].kind %= 8;
        drawn
    })
}

fn written(drawn: &[Drawn]) -> Vec<u8> {
    let mut writer = FtraceWriter::new(Vec::new(), 1024);
    for one in drawn {
        writer.record(&one.record());
    }
    writer.finish().unwrap()
}

fn reader(bytes: &[u8]) -> Result<TraceReader, TraceError> {
    TraceReader::from_reader("trace", Cursor::new(bytes.to_vec()))
}

fn is_read_back(drawn: &[Drawn]) -> Result<(), TestCaseError> {
    let mut reader = reader(&written(drawn)).unwrap();
    let mut time_ns = 0;
    for one in drawn {
        let expected = one.as_read(time_ns);
        let record = reader.next_record().unwrap();
        prop_assert_eq!(record, Some(expected.clone()));
        time_ns = expected.time_ns;
    }
    prop_assert_eq!(reader.next_record().unwrap(), None);
    prop_assert_eq!(reader.losses().malformed_lines, 0);
    prop_assert_eq!(reader.losses().non_utf8_lines, 0);
    Ok(())
}

/// Reads it all, or is refused in one line; the number of records.
fn is_sound(bytes: &[u8]) -> Result<usize, TestCaseError> {
    let mut records = 0;
    let refused = match reader(bytes) {
        Ok(mut reader) => loop {
            match reader.next_record() {
                Ok(Some(record)) => {
                    records += 1;
                    prop_assert!(record.cpu < Losses::NR_CPUS);
                }
                Ok(None) => break None,
                Err(error) => break Some(error),
            }
        },
        Err(error) => Some(error),
    };
    if let Some(error) = refused {
        let text = error.to_string();
        prop_assert!(text.starts_with("trace: ") && !text.contains('\n'), "{}", text);
    }
    Ok(records)
}

/// A trace with some of its bytes overwritten.
fn damaged() -> impl Strategy<Value = Vec<u8>> {
    let piece = prop_oneof![
        vec(any::<u8>(), 0..6),
        select(&LURES[..]).prop_map(|lure| lure.as_bytes().to_vec()),
        select(
            &[
                "\n",
                "\0",
                "99999999999999999999",
                "-",
                "CPU:1 [LOST EVENTS]\n",
                "\r\n",
                " ",
                "é",
                "\u{feff}",
                "\n# tracer: nop\n",
                "\n# lost: cpu 7 events 1\n"
            ][..]
        )
        .prop_map(|text| text.as_bytes().to_vec()),
    ];
    let damage = (any::<Index>(), 0..40_usize, piece);
    (trace(), vec(damage, 1..6)).prop_map(|(drawn, damages)| {
        let mut bytes = written(&drawn);
        for (at, length, piece) in damages {
            let at = at.index(bytes.len() + 1);
            let end = (at + length).min(bytes.len());
            bytes.splice(at..end, piece);
        }
        bytes
    })
}

/// A trace, and where to cut it.
fn cut() -> impl Strategy<Value = (Vec<u8>, usize)> {
    (trace(), any::<Index>()).prop_map(|(drawn, at)| {
        let bytes = written(&drawn);
        let at = at.index(bytes.len() + 1);
        (bytes, at)
    })
}

/// Every whole line gives its record, and the cut line none.
fn cut_is_noticed((bytes, at): (Vec<u8>, usize)) -> Result<(), TestCaseError> {
    let kept = &bytes[..at];
    let records = is_sound(kept)?;
    let whole = kept.iter().rposition(|&byte| byte == b'\n').map_or(0, |end| end + 1);
    prop_assert_eq!(records, is_sound(&kept[..whole])?);
    let lines = kept[..whole].split(|&byte| byte == b'\n');
    prop_assert_eq!(records, lines.filter(|line| !line.is_empty() && line[0] != b'#').count());
    if records > 0 {
        let mut reader = reader(kept).unwrap();
        while reader.next_record().unwrap().is_some() {}
        prop_assert_eq!(reader.losses().truncated_last_line, whole < at);
    }
    Ok(())
}

#[test]
fn a_name_does_not_break_its_line() {
    let comms = ["a\nb", "\x1b[31m", "c\r\u{9b}d"].map(str::to_owned);
    let (time_ns, cpu, pids, prios, cpus) = (1_000, 0, [1, 2, 3], [120; 2], [0; 2]);
    let (state, context) = ("S", Context::Task);
    let drawn = [4, 5].map(|kind| {
        let comms = comms.clone();
        Drawn { time_ns, cpu, comms, pids, prios, cpus, state, context, kind }
    });
    let text = String::from_utf8(written(&drawn)).unwrap();
    assert!(!text.contains(|c: char| c.is_control() && c != '\n'), "{text:?}");
    let mut reader = reader(text.as_bytes()).unwrap();
    let record = reader.next_record().unwrap().unwrap();
    assert_eq!(record.comm, "a b");
    assert!(
        matches!(record.event, Event::Switch { prev_comm: " [31m", next_comm: "c  d", .. }),
        "{record:?}"
    );
    assert!(matches!(reader.next_record(), Ok(Some(Record { event: Event::Fork { .. }, .. }))));
}

proptest! {
    #[test]
    fn what_is_written_is_read_back(drawn in trace()) {
        is_read_back(&drawn)?;
    }

    #[test]
    fn any_bytes(bytes in vec(any::<u8>(), 0..4000)) {
        is_sound(&bytes)?;
    }

    #[test]
    fn any_damage(bytes in damaged()) {
        is_sound(&bytes)?;
    }

    #[test]
    fn any_cut(cut in cut()) {
        cut_is_noticed(cut)?;
    }
}

fn fuzz<T: Debug>(values: impl Strategy<Value = T>, test: impl Fn(T) -> Result<(), TestCaseError>) {
    let seconds = std::env::var("PLACEWISE_FUZZ_SECONDS").ok();
    let seconds = seconds.map_or(60, |text| text.parse().expect("PLACEWISE_FUZZ_SECONDS"));
    let end = Instant::now() + Duration::from_secs(seconds);
    let config = Config { failure_persistence: None, ..Config::default() };
    let mut runner = TestRunner::new(config);
    while Instant::now() < end {
        let outcome = runner.run(&values, &test);
        outcome.unwrap_or_else(|failure| panic!("{failure}"));
    }
}

#[test]
#[ignore = "runs for PLACEWISE_FUZZ_SECONDS"]
fn fuzz_written_traces() {
    fuzz(trace(), |drawn| is_read_back(&drawn));
}

#[test]
#[ignore = "runs for PLACEWISE_FUZZ_SECONDS"]
fn fuzz_damaged_traces() {
    fuzz(damaged(), |bytes| is_sound(&bytes).map(|_| ()));
}

#[test]
#[ignore = "runs for PLACEWISE_FUZZ_SECONDS"]
fn fuzz_cut_traces() {
    fuzz(cut(), cut_is_noticed);
}
