//! Each tool's lines become the records that they describe.

use placewise_trace::{Context, Event, Losses, Record, TraceReader};

fn reader(text: &str) -> TraceReader {
    let text = std::io::Cursor::new(text.as_bytes().to_vec());
    TraceReader::from_reader("trace", text).unwrap()
}

#[track_caller]
fn assert_reads(line: &str, expected: &Record<'_>) {
    let mut reader = reader(&format!("{line}\n"));
    assert_eq!(reader.next_record().unwrap().as_ref(), Some(expected), "{line}");
    assert_eq!(reader.next_record().unwrap(), None);
    assert_eq!(reader.losses(), &Losses::default());
}

#[track_caller]
fn assert_reads_event(fields: &str, expected: Event<'_>) {
    let record = Record {
        time_ns: 12_000_034_000,
        cpu: 3,
        comm: "sender",
        pid: 42,
        tgid: None,
        context: Context::Task,
        event: expected,
    };
    assert_reads(&format!("          sender-42      [003] d..2.    12.000034: {fields}"), &record);
}

fn waking() -> Event<'static> {
    Event::Waking { comm: "receiver", pid: 43, prio: 120, target_cpu: 9 }
}

fn wakeup() -> Event<'static> {
    Event::Wakeup { comm: "receiver", pid: 43, prio: 120, target_cpu: 9 }
}

fn sleeps() -> Event<'static> {
    Event::Switch {
        prev_comm: "sender",
        prev_pid: 42,
        prev_prio: 120,
        prev_state: "S",
        next_comm: "swapper/3",
        next_pid: 0,
        next_prio: 120,
    }
}

#[test]
fn ftrace_events() {
    let fields = "comm=receiver pid=43 prio=120 target_cpu=009";
    assert_reads_event(&format!("sched_waking: {fields}"), waking());
    assert_reads_event(&format!("sched_wakeup: {fields}"), wakeup());
    assert_reads_event(
        &format!("sched_wakeup_new: {fields}"),
        Event::WakeupNew { comm: "receiver", pid: 43, prio: 120, target_cpu: 9 },
    );
    assert_reads_event(
        "sched_migrate_task: comm=receiver pid=43 prio=120 orig_cpu=9 dest_cpu=136",
        Event::Migrate { comm: "receiver", pid: 43, prio: 120, from: 9, to: 136 },
    );
    assert_reads_event(
        "sched_switch: prev_comm=sender prev_pid=42 prev_prio=120 prev_state=S ==> \
         next_comm=swapper/3 next_pid=0 next_prio=120",
        sleeps(),
    );
    assert_reads_event(
        "sched_process_fork: comm=sh pid=42 child_comm=sh child_pid=44",
        Event::Fork { comm: "sh", pid: 42, child_comm: "sh", child_pid: 44 },
    );
    assert_reads_event(
        "sched_process_exec: filename=/bin/a pid=1 b pid=42 old_pid=41",
        Event::Exec { pid: 42, old_pid: 41 },
    );
    assert_reads_event(
        "sched_process_exit: comm=sh pid=42 prio=120",
        Event::Exit { comm: "sh", pid: 42, prio: 120 },
    );
}

#[test]
fn fields_that_kernels_added_or_dropped() {
    assert_reads_event(
        "sched_wakeup: comm=receiver pid=43 prio=120 success=1 target_cpu=009",
        wakeup(),
    );
    assert_reads_event(
        "sched_process_exit: comm=sh pid=42 prio=120 group_dead=true",
        Event::Exit { comm: "sh", pid: 42, prio: 120 },
    );
    assert_reads_event(
        "sched_process_fork: comm=sh pid=42 child_comm=sh child_pid=44 flags=0",
        Event::Fork { comm: "sh", pid: 42, child_comm: "sh", child_pid: 44 },
    );
    assert_reads_event(
        "sched_waking: comm=deadline pid=43 prio=-1 target_cpu=009",
        Event::Waking { comm: "deadline", pid: 43, prio: -1, target_cpu: 9 },
    );
}

#[test]
fn states_of_the_previous_task() {
    for state in ["S", "D", "R", "R+", "S|K", "I", "X", "Z", "D|W"] {
        let Event::Switch {
            prev_comm, prev_pid, prev_prio, next_comm, next_pid, next_prio, ..
        } = sleeps()
        else {
            unreachable!()
        };
        assert_reads_event(
            &format!(
                "sched_switch: prev_comm=sender prev_pid=42 prev_prio=120 prev_state={state} ==> \
                 next_comm=swapper/3 next_pid=0 next_prio=120"
            ),
            Event::Switch {
                prev_comm,
                prev_pid,
                prev_prio,
                prev_state: state,
                next_comm,
                next_pid,
                next_prio,
            },
        );
    }
}

#[test]
fn flags_tell_the_context() {
    for (flags, context) in [
        (".....", Context::Preemptible),
        ("....", Context::Preemptible),
        ("...1.", Context::Task),
        ("d..2.", Context::Task),
        ("d...", Context::Task),
        ("dl.4.", Context::TaskLocked),
        ("d..3", Context::TaskLocked),
        ("dN.a.", Context::TaskLocked),
        ("dNs4.", Context::SoftInterrupt),
        ("d.s3", Context::SoftInterrupt),
        ("d.h2.", Context::HardInterrupt),
        ("dlh1.", Context::HardInterrupt),
        ("d.H2.", Context::HardInterrupt),
        ("dNh2.", Context::HardInterruptResched),
        ("dNH4.", Context::HardInterruptResched),
        ("dBh5.", Context::HardInterruptResched),
        ("dnh3", Context::HardInterruptResched),
    ] {
        assert_reads(
            &format!(
                "<idle>-0 [003] {flags} 12.000034: sched_waking: comm=receiver pid=43 prio=120 target_cpu=009"
            ),
            &Record {
                time_ns: 12_000_034_000,
                cpu: 3,
                comm: "<idle>",
                pid: 0,
                tgid: None,
                context,
                event: waking(),
            },
        );
    }
}

#[test]
fn tasks_in_front_of_a_line() {
    for (task, comm, pid, tgid) in [
        ("           <...>-123    ", "<...>", 123, None),
        ("   kworker/u8:1-7      (-------)", "kworker/u8:1", 7, None),
        ("     Web Content-4711   (   4242)", "Web Content", 4711, Some(4242)),
        ("    a-1 [0] b=c]-4194304", "a-1 [0] b=c]", 4_194_304, None),
        ("  [000] d..2. x:-9      ", "[000] d..2. x:", 9, None),
        ("  [000] 1.00000:-9      ", "[000] 1.00000:", 9, None),
        ("    x (1) (22) -9       (      9)", "x (1) (22) ", 9, Some(9)),
        ("                -9      ", "", 9, None),
        ("               λ-9      ", "λ", 9, None),
    ] {
        assert_reads(
            &format!(
                "{task} [003] d..2. 12.000034: sched_waking: comm=receiver pid=43 prio=120 target_cpu=009"
            ),
            &Record {
                time_ns: 12_000_034_000,
                cpu: 3,
                comm,
                pid,
                tgid,
                context: Context::Task,
                event: waking(),
            },
        );
    }
}

#[test]
fn comms_that_look_like_fields() {
    for comm in
        [" pid=7 ", "x target_cpu=1", "a=b", "", " ", "a prio=1 pid=2", "comm=comm=", "]", "CPU:1"]
    {
        assert_reads_event(
            &format!("sched_waking: comm={comm} pid=43 prio=120 target_cpu=009"),
            Event::Waking { comm, pid: 43, prio: 120, target_cpu: 9 },
        );
    }
    let nasty = [" ==> next_comm=", " prev_state=S ", "x prev_pid=1 p", "a ==> b", " next_pid=7"];
    for prev_comm in nasty {
        for next_comm in nasty {
            assert_reads_event(
                &format!(
                    "sched_switch: prev_comm={prev_comm} prev_pid=42 prev_prio=120 prev_state=R+ \
                     ==> next_comm={next_comm} next_pid=7 next_prio=98"
                ),
                Event::Switch {
                    prev_comm,
                    prev_pid: 42,
                    prev_prio: 120,
                    prev_state: "R+",
                    next_comm,
                    next_pid: 7,
                    next_prio: 98,
                },
            );
        }
    }
    for child_comm in [" child_comm=x", " pid=1 child_co", "a child_pid=7"] {
        assert_reads_event(
            &format!("sched_process_fork: comm=sh pid=42 child_comm={child_comm} child_pid=44"),
            Event::Fork { comm: "sh", pid: 42, child_comm, child_pid: 44 },
        );
    }
}

#[test]
fn perf_script() {
    for (line, time_ns, comm, pid, event) in [
        (
            "          sender    42 [003]    12.000034:       sched:sched_waking: comm=receiver pid=43 prio=120 target_cpu=009",
            12_000_034_000,
            "sender",
            42,
            waking(),
        ),
        (
            "          sender    42 [003]    12.000034567: sched:sched_wakeup: receiver:43 [120] success=1 CPU:009",
            12_000_034_567,
            "sender",
            42,
            wakeup(),
        ),
        (
            " Web Content-1 5 40/42 [003] 12.000034: sched:sched_wakeup: receiver:43 [120] CPU:009",
            12_000_034_000,
            "Web Content-1 5",
            42,
            wakeup(),
        ),
        (
            "  sender 42 [003] 12.000034:  57070 sched:sched_switch: sender:42 [120] S ==> swapper/3:0 [120]",
            12_000_034_000,
            "sender",
            42,
            sleeps(),
        ),
        (
            "  1[0] 1.000000: 42 [003] 12.000034: sched:sched_wakeup: receiver:43 [120] CPU:009",
            12_000_034_000,
            "1[0] 1.000000:",
            42,
            wakeup(),
        ),
        (
            "  swapper 0 [003] 12.000034: sched:sched_switch: prev_comm=sender prev_pid=42 prev_prio=120 prev_state=S ==> next_comm=swapper/3 next_pid=0 next_prio=120",
            12_000_034_000,
            "swapper",
            0,
            sleeps(),
        ),
        (
            "  sender 42 [003] 12.000034: PERF_RECORD_LOST lost 17",
            12_000_034_000,
            "sender",
            42,
            Event::LostEvents { count: 17 },
        ),
    ] {
        let mut reader = reader(&format!("{line}\n"));
        let tgid = line.contains("40/42").then_some(40);
        let record = Record { time_ns, cpu: 3, comm, pid, tgid, context: Context::Unknown, event };
        assert_eq!(reader.next_record().unwrap(), Some(record), "{line}");
    }
}

#[test]
fn compact_comms_that_look_like_fields() {
    for comm in ["a:1 [1] R ==> b", "x:y", "a b]", "[120]", "a ==> ", "dev 0 ts", "prev_comm=comm"]
    {
        for (prev_comm, next_comm) in [(comm, "plain"), ("plain", comm)] {
            assert_reads_event(
                &format!("sched_switch: {prev_comm}:42 [120] D ==> {next_comm}:7 [98]"),
                Event::Switch {
                    prev_comm,
                    prev_pid: 42,
                    prev_prio: 120,
                    prev_state: "D",
                    next_comm,
                    next_pid: 7,
                    next_prio: 98,
                },
            );
        }
        assert_reads_event(
            &format!("sched_wakeup: {comm}:43 [120] success=1 CPU:009"),
            Event::Wakeup { comm, pid: 43, prio: 120, target_cpu: 9 },
        );
    }
}

#[test]
fn trace_cmd_report() {
    let text = "\
version = 7
CPU 2 is empty
cpus=16
          sender-42    [003]    12.000034: sched_waking:         comm=receiver pid=43 prio=120 target_cpu=009
          sender-42    [003] d..2.    12.000035: sched_wakeup:         receiver:43 [120] CPU:009
CPU:3 [42 EVENTS DROPPED]
          sender-42    [003]    12.000036: sched_switch:         sender:42 [120] S ==> swapper/3:0 [120]
mine:           sender-42    [003]    12.000037: sched_waking:         comm=receiver pid=43 prio=120 target_cpu=009
mine: CPU:4 [EVENTS DROPPED]
";
    let record = |time_ns, cpu, comm, pid, context, event| Record {
        time_ns,
        cpu,
        comm,
        pid,
        tgid: None,
        context,
        event,
    };
    let sender = |micros: u64, context, event| {
        record(12_000_000_000 + 1000 * micros, 3, "sender", 42, context, event)
    };
    let lost = |micros: u64, cpu, count| {
        let event = Event::LostEvents { count };
        record(12_000_000_000 + 1000 * micros, cpu, "", 0, Context::Unknown, event)
    };
    let mut reader = reader(text);
    for expected in [
        sender(34, Context::Unknown, waking()),
        sender(35, Context::Task, wakeup()),
        lost(35, 3, 42),
        sender(36, Context::Unknown, sleeps()),
        sender(37, Context::Unknown, waking()),
        lost(37, 4, 0),
    ] {
        assert_eq!(reader.next_record().unwrap(), Some(expected));
    }
    assert_eq!(reader.next_record().unwrap(), None);
    assert_eq!(reader.losses(), &Losses { lost_events: 42, gaps: 2, ..Losses::default() });
}

#[test]
fn call_stacks_and_other_events_are_passed_over() {
    let text = "\
swapper 0 [003] 12.000034: sched:sched_waking: comm=receiver pid=43 prio=120 target_cpu=009
\tffffffff810b1e2f try_to_wake_up+0x1f ([kernel.kallsyms])
\t    55d0c0ffee12 main+0x2 (/usr/bin/a b)

 => try_to_wake_up
 => default_wake_function
<idle>-0 [003] d..2. 12.000035: tick_stop: success=1 dependency=NONE
<idle>-0 [003] d..2. 12.000036: schedule <-worker_thread
<idle>-0 [003] d..2. 12.000037: <stack trace>
";
    let mut reader = reader(text);
    assert!(reader.next_record().unwrap().is_some());
    assert_eq!(reader.next_record().unwrap(), None);
    assert_eq!(reader.losses(), &Losses { unknown_events: 3, ..Losses::default() });
}

#[test]
fn the_header_is_there_before_the_first_record_and_its_end_after_the_last() {
    let text = "\
# kernel: 6.12.0
# tracer: nop
#
# entries-in-buffer/entries-written: 100/250   #P:16
<idle>-0 [003] d..2. 12.000034: sched_waking: comm=receiver pid=43 prio=120 target_cpu=009
# lost: cpu 3 events 12
";
    let mut reader = reader(text);
    assert_eq!(reader.header().kernel.as_deref(), Some("6.12.0"));
    assert!(reader.header().lost.is_empty());
    assert!(reader.next_record().unwrap().is_some());
    assert_eq!(reader.next_record().unwrap(), None);
    assert_eq!(reader.header().lost[&3], 12);
}
