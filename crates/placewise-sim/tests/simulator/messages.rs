//! Calls that find a pipe full or empty: what they cost, and what they do once they are woken; what is left of a
//! call that wakes; and who waits for the lock of a channel or a gate.

use std::collections::BTreeMap;

use placewise_machine::{Costs, CpuSet, Machine};
use placewise_policy::instructions::Instructions;
use placewise_policy::{MEASURED_5_10, MEASURED_6_18};
use placewise_workload::program::{
    ChannelKind, FOREVER, Metric, Object, Op, Program, SchedPolicy, Workload,
};

use crate::common::{MS, Setup, figure, main_of, programs};
use crate::trace::{Line, parse};

/// Far more than all else that a call or a wakeup costs.
const MESSAGE_US: u64 = 200;

const CHANNEL: Object = Object::shared(0);

fn for_ever(name: &str, mut ops: Vec<Op>) -> Program {
    ops.extend([Op::Repeat { counter: 0, times: FOREVER, to: 0 }, Op::Exit]);
    Program::new(name, ops)
}

/// How long, in us, each of two writers runs from its switch in until it falls asleep, in the order in
/// which they do, on a pipe whose reader is ten times as slow. Before v6.18 each read of the full pipe
/// wakes one of them.
fn stints_of_writers() -> Vec<u64> {
    stints_where(|_| ())
}

/// The same on another machine.
fn stints_where(change: impl FnOnce(&mut Machine)) -> Vec<u64> {
    let receive = Op::Receive { channel: CHANNEL, bytes: 100 };
    let reader = for_ever("reader", vec![Op::Run { ns: 10 * MESSAGE_US * 1_000 }, receive]);
    let writer = || for_ever("writer", vec![Op::Send { channel: CHANNEL, bytes: 100 }]);
    let all = programs(vec![main_of(3), reader, writer(), writer()], 1_000);
    let workload = Workload { channels: vec![ChannelKind::Pipe], ..all };
    let mut setup = Setup::new("uma-8", "v6.0", "baseline", workload).without_spread();
    setup.machine.costs.pipe_message_ns = MESSAGE_US * 1_000;
    change(&mut setup.machine);
    let stints = stints_of("writer", &parse(&setup.traced().1));
    stints.into_iter().filter(|(state, _)| state == "S").map(|(_, runs)| runs).collect()
}

/// The state in which each task of that name leaves its CPU each time, and for how long it has run there, in us.
fn stints_of(comm: &str, lines: &[Line]) -> Vec<(String, u64)> {
    let (mut since, mut stints) = (BTreeMap::new(), Vec::new());
    for line in lines.iter().filter(|line| line.event == "sched_switch") {
        if line.text("prev_comm") == comm
            && let Some(began) = since.remove(&line.number("prev_pid"))
        {
            stints.push((line.text("prev_state").to_owned(), line.micros - began));
        }
        if line.text("next_comm") == comm {
            since.insert(line.number("next_pid"), line.micros);
        }
    }
    stints
}

fn copies(stint: &u64) -> bool {
    *stint > MESSAGE_US / 2
}

/// Fails if a writer that is woken in vain made its whole call again: it would copy each time.
#[test]
fn a_writer_woken_in_vain_only_looks() {
    let stints = stints_of_writers();
    let looks = stints.iter().filter(|stint| !copies(stint)).count();
    assert!(stints.len() > 200, "{} stints", stints.len());
    assert!(looks * 10 > stints.len() * 9, "{looks} of {} stints only look", stints.len());
}

/// Fails if it looked without the line of the pipe, or that took longer to get to a slower core.
#[test]
fn who_only_looks_waits_for_the_line_of_the_pipe() {
    let looks = |line_us: u64, speed| {
        let mut stints = stints_where(|machine| {
            machine.costs.cache_line_ns.llc = line_us * 1_000;
            machine.cpus.iter_mut().for_each(|cpu| cpu.speed = speed);
        });
        stints.sort_unstable();
        stints[stints.len() / 2]
    };
    for speed in [1024, 512] {
        let longer = looks(20, speed) - looks(0, speed);
        assert_eq!(longer, 20, "us for a line of 20, at {speed}");
    }
}

/// Fails if a writer that slept merged its message into the last page, as one that comes anew does: it
/// would go on at the next read, while the other one fills the page, and not once 40 reads free one.
#[test]
fn a_writer_that_slept_waits_until_a_page_is_free() {
    let stints = stints_of_writers();
    let looks: Vec<usize> = stints.split(copies).map(<[u64]>::len).collect();
    // Until the pipe is full both fill it, and the first page to be freed is begun before.
    let between = &looks[3..looks.len() - 1];
    assert!(!between.is_empty() && between.iter().all(|&n| n == 39), "{looks:?}");
}

/// A task that writes to another one, which preempts it on the CPU of both: from its wakeup until it runs, if so much
/// of a write comes after the wakeup.
fn preempts_after(kernel: &str, write: u32) -> u64 {
    let on_one = |name, ops| Program { cpus: Some(CpuSet::single(2)), ..Program::new(name, ops) };
    let compute = Op::Run { ns: 20_000_000 };
    let send = Op::Send { channel: CHANNEL, bytes: 100 };
    let fork = Op::Fork { program: 1, count: 1, base: 0, step: 0 };
    let writer =
        on_one("writer", vec![fork, Op::Yield, compute, send, compute, Op::Join, Op::Exit]);
    let reader = on_one("reader", vec![Op::Receive { channel: CHANNEL, bytes: 100 }, Op::Exit]);
    let reader = reader.with_policy(SchedPolicy::Fifo(50));
    let all = programs(vec![writer, reader], 100);
    let workload = Workload { channels: vec![ChannelKind::Pipe], ..all };
    let mut setup = Setup::new("uma-8", kernel, "baseline", workload).without_spread();
    setup.machine.costs.pipe_message_ns = MESSAGE_US * 1_000;
    setup.machine.costs.after_wakeup_pct.pipe.write = write;
    let lines = parse(&setup.traced().1);
    let woken =
        lines.iter().position(|line| line.event == "sched_wakeup" && line.text("comm") == "reader");
    let woken = woken.expect("it is woken");
    let switch = lines[woken..].iter().find(|line| line.event == "sched_switch");
    let switch = switch.filter(|line| line.text("next_comm") == "reader").expect("it preempts");
    switch.micros - lines[woken].micros
}

#[test]
fn what_is_left_of_a_call_comes_before_the_wakee_but_where_the_kernel_preempts_itself() {
    let [all, later] = [0, 40].map(|write| preempts_after("v6.0", write));
    let [here, there] = [MEASURED_5_10, MEASURED_6_18].map(|calls| Instructions::of(calls).pipe);
    let left = MESSAGE_US * here.write * 40 / there.write / 100;
    assert!((later - all).abs_diff(left) <= 1, "{later} and {all} us");
    let [all, later] = [0, 40].map(|write| preempts_after("v6.18", write));
    assert_eq!(later, all);
}

/// Fails if it had all of a message's work left once it is woken, or had done more than its way there.
#[test]
fn a_reader_that_sleeps_has_come_to_the_pipe() {
    let compute = Op::Run { ns: 1_000_000 };
    let send = Op::Send { channel: CHANNEL, bytes: 100 };
    let writer = Program::new("writer", vec![compute, send, Op::Exit]);
    let reader =
        Program::new("reader", vec![Op::Receive { channel: CHANNEL, bytes: 100 }, Op::Exit]);
    let all = programs(vec![main_of(2), writer, reader], 10);
    let workload = Workload { channels: vec![ChannelKind::Pipe], ..all };
    let mut setup = Setup::new("uma-8", "v6.18", "baseline", workload).without_spread();
    let costs = &mut setup.machine.costs;
    costs.jitter_pct = 0;
    (costs.pipe_message_ns, costs.pipe_writer_pct) = (MESSAGE_US * 1_000, 50);
    (costs.pipe_locked_pct, costs.after_wakeup_pct.pipe.read, costs.exit_ns) = (60, 10, 0);
    let stints = stints_of("reader", &parse(&setup.traced().1));
    let [(_, before), (_, after)] = stints[..] else { panic!("it sleeps once: {stints:?}") };
    // Calls, switches and wakeups take some.
    assert!((60..70).contains(&before) && (140..150).contains(&after), "{before} and {after} us");
}

/// Three writers come to one channel while its reader sleeps, a few dozen us apart, and the first one wakes it for
/// far longer: how long after each other they are done, at most, in us.
fn writers_end_apart(kernel: &str, kind: ChannelKind) -> u64 {
    let (compute, send) = (Op::Run { ns: 2 * MS }, Op::Send { channel: CHANNEL, bytes: 100 });
    let writer = || Program::new("writer", vec![compute, send, Op::Exit]);
    let reader =
        Program::new("reader", vec![Op::Receive { channel: CHANNEL, bytes: 100 }, Op::Exit]);
    let all = programs(vec![main_of(4), reader, writer(), writer(), writer()], 10);
    let workload = Workload { channels: vec![kind], ..all };
    let mut setup = Setup::new("uma-8", kernel, "baseline", workload).without_spread();
    (setup.machine.costs.wakeup_ns, setup.machine.costs.exit_ns) = (MS, 0);
    let trace = parse(&setup.traced().1);
    let leaves = |line: &&Line| line.event == "sched_switch" && line.text("prev_comm") == "writer";
    let ends: Vec<u64> = trace.iter().filter(leaves).map(|line| line.micros).collect();
    let [first, .., last] = ends[..] else { panic!("three writers: {ends:?}") };
    last - first
}

/// Fails if only the one who wakes the reader took the time of that: the others find it on the wait queue still, and
/// wait for the queue's lock. Of a pipe whose calls wake nobody where it was not empty they do not.
#[test]
fn who_sends_while_the_reader_is_woken_waits_for_that() {
    assert!(writers_end_apart("v6.18", ChannelKind::UnixSocket) < 5);
    assert!(writers_end_apart("v4.15", ChannelKind::Pipe) < 5);
    assert!(writers_end_apart("v6.18", ChannelKind::Pipe) > 500);
}

/// How long, in ms, each of two writers runs that compute for so long from when their reader begins to sleep, where a
/// switch to the idle task takes ten ms under Linux 6.18.
fn writers_run(kernel: &str, kind: ChannelKind, computes_ms: u64) -> [u64; 2] {
    let (compute, send) =
        (Op::Run { ns: computes_ms * MS }, Op::Send { channel: CHANNEL, bytes: 100 });
    let writer = || Program::new("writer", vec![compute, send, Op::Exit]);
    let reader =
        Program::new("reader", vec![Op::Receive { channel: CHANNEL, bytes: 100 }, Op::Exit]);
    let all = programs(vec![main_of(3), reader, writer(), writer()], 100);
    let workload = Workload { channels: vec![kind], ..all };
    let mut setup = Setup::new("uma-8", kernel, "baseline", workload).without_spread();
    let costs = &mut setup.machine.costs;
    (costs.switch_to_idle_ns, costs.rq_lock_hold_ns, costs.exit_ns) = (10 * MS, 0, 0);
    (costs.thread_create_ns, costs.fork_ns) = (1_000, 1_000);
    let stints = stints_of("writer", &parse(&setup.traced().1));
    let [(_, first), (_, second)] = stints[..] else { panic!("they do not sleep: {stints:?}") };
    [first, second].map(|us| us / 1_000)
}

/// Fails if a sleeper were off its run queue from the begin of schedule(), or not before the end of its switch. Its
/// waker gets the lock with that end; later it leaves the wakee to its CPU. Until Linux 6.12 it is off the queue sooner.
#[test]
fn who_wakes_one_that_is_on_its_run_queue_still_waits_for_its_switch() {
    let run = |kernel, computes: [u64; 4]| {
        computes.map(|ms| writers_run(kernel, ChannelKind::Pipe, ms).into_iter().max().unwrap())
    };
    assert_eq!(run("v6.18", [0, 1, 4, 6]), [0, 10, 10, 6]);
    // Of a little less than eight ms.
    assert_eq!(run("v6.1.176", [0, 1, 2, 4]), [0, 7, 2, 4]);
}

/// Fails if the lock of the wait queue were held for the wakeup alone.
#[test]
fn who_waits_for_that_switch_has_the_lock_of_the_wait_queue() {
    assert_eq!(writers_run("v6.18", ChannelKind::UnixSocket, 2), [10, 10]);
    assert_eq!(writers_run("v6.18", ChannelKind::Pipe, 2), [2, 10]);
}

/// Main opens the gate at which so many others wait, each on a CPU of its own, and wakeups take a millisecond.
fn at_a_gate(kernel: &str, waiters: u32, change: impl FnOnce(&mut Costs)) -> Vec<Line> {
    let gate = Object::shared(0);
    let main = [
        Op::Fork { program: 1, count: waiters, base: 0, step: 0 },
        Op::Sleep { ns: 50 * MS, random_pct: 0 },
        Op::GateOpen { gate },
        Op::Join,
        Op::Exit,
    ];
    let waiter = Program::new("waiter", vec![Op::GateWait { gate }, Op::Exit]);
    let all = programs(vec![Program::new("main", main.to_vec()), waiter], 1_000);
    let workload = Workload { gates: 1, ..all };
    let mut setup = Setup::new("zen3-2s-nps1", kernel, "baseline", workload).without_spread();
    setup.machine.costs.wakeup_ns = MS;
    change(&mut setup.machine.costs);
    parse(&setup.traced().1)
}

/// How many main has woken when others leave the gate, one after the other, and when that is, in us; a line moves in so
/// many. The run may end before the last of them.
fn leave_the_gate(kernel: &str, waiters: u32, line_us: u64) -> Vec<(usize, u64)> {
    let trace = at_a_gate(kernel, waiters, |costs| {
        let lines = &mut costs.cache_line_ns;
        [lines.llc, lines.package, lines.remote] = [line_us * 1_000; 3];
    });
    let (mut woken, mut left) = (0, Vec::new());
    for line in trace {
        let by_main = line.event == "sched_waking" && line.text("comm") == "waiter";
        woken += usize::from(by_main);
        let exits = line.event == "sched_switch" && line.text("prev_state") == "X";
        if exits && line.text("prev_comm") == "waiter" {
            left.push((woken, line.micros));
        }
    }
    left
}

/// Fails if who is woken did not want the lock of the wait queue, or main let it go: kernels from v4.14 to v6.6 do after
/// 65 wakeups each.
#[test]
fn who_is_woken_at_a_gate_waits_until_its_opener_has_woken_all() {
    let woken = |kernel| -> Vec<usize> {
        let left = leave_the_gate(kernel, 70, 0).into_iter().map(|(woken, _)| woken);
        left.take(69).collect()
    };
    assert_eq!(woken("v6.12"), [70; 69]);
    assert_eq!(woken("v3.10"), [70; 69]);
    let batch = woken("v6.6").partition_point(|&woken| woken == 66);
    assert!((55..=65).contains(&batch), "some share a CPU: {batch}");
    assert!(woken("v6.6")[batch..].iter().all(|&woken| woken == 70));
}

/// Fails if it called poll() once more.
#[test]
fn who_is_woken_at_a_gate_goes_on_in_its_call() {
    let trace = at_a_gate("v6.12", 1, |costs| costs.futex_ns = 20 * MS);
    let stints = stints_of("waiter", &trace);
    let [(_, before), (_, after)] = stints[..] else { panic!("it sleeps once: {stints:?}") };
    assert!(before >= 20_000 && after < 10_000, "{before} and {after} us");
}

/// Fails if all could leave the wait queue at once, or the lock went on without its line, or in one: whoever has it takes
/// it back.
#[test]
fn those_who_leave_a_gate_take_its_lock_in_turn() {
    let spread = |line_us| {
        let left = leave_the_gate("v6.12", 40, line_us);
        left[30].1 - left[0].1
    };
    assert!(spread(0) < 100);
    // Of thirty, two lines each.
    assert!((5_000..6_100).contains(&spread(100)), "{} us", spread(100));
}

/// Fails if it entered the kernel anew: it would run for half of a call more.
#[test]
fn a_reader_whose_message_comes_when_it_looks_last_goes_on_in_its_call() {
    const CALL_US: u64 = 1_000;
    let writer = Program::new("writer", vec![Op::Send { channel: CHANNEL, bytes: 100 }, Op::Exit]);
    let reader =
        Program::new("reader", vec![Op::Receive { channel: CHANNEL, bytes: 100 }, Op::Exit]);
    // It is forked while the writer enters the kernel.
    let all = programs(vec![main_of(2), writer, reader], 10);
    let workload = Workload { channels: vec![ChannelKind::Pipe], ..all };
    let mut setup = Setup::new("uma-8", "v6.0", "baseline", workload);
    setup.machine.costs.jitter_pct = 0;
    setup.machine.costs.syscall_ns = CALL_US * 1_000;
    let trace = setup.traced().1;
    let woken = parse(&trace)
        .into_iter()
        .any(|line| line.event == "sched_waking" && line.text("comm") == "reader");
    assert!(!woken, "it need not sleep");
    let runs = stint(&trace, "reader");
    assert!((CALL_US..CALL_US + 100).contains(&runs), "{runs} us");
}

/// What the tasks that count do in all, in each of `ms`, with a channel of that kind whose message costs
/// `MESSAGE_US` on either side, and a cache line so much.
fn counts_per_ms(kind: ChannelKind, line_us: u64, ms: u64, tasks: Vec<Program>) -> f64 {
    let main = main_of(tasks.len() as u32);
    let metrics = vec![Metric::Throughput { unit: "counts/ms", scale: 0.001 }];
    let all = programs([vec![main], tasks].concat(), ms);
    let workload = Workload { channels: vec![kind], metrics, ..all };
    let mut setup = Setup::new("uma-8", "v6.18", "baseline", workload).without_spread();
    let costs = &mut setup.machine.costs;
    // They do not keep step.
    costs.jitter_pct = 5;
    (costs.pipe_message_ns, costs.socket_message_ns) = (MESSAGE_US * 1_000, MESSAGE_US * 1_000);
    costs.cache_line_ns.llc = line_us * 1_000;
    figure(&setup.run(), "throughput")
}

fn four_senders(kind: ChannelKind, line_us: u64, ms: u64) -> f64 {
    let send = Op::Send { channel: CHANNEL, bytes: 100 };
    let sender = || for_ever("sender", vec![send, Op::Count]);
    counts_per_ms(kind, line_us, ms, (0..4).map(|_| sender()).collect())
}

/// Fails if senders did not take turns for the half of a message that a pipe's mutex is held, or took them for
/// all of it; and if those of a socket did: its lock is held only to put a message on the list.
#[test]
fn a_pipe_is_locked_for_half_of_a_message_and_a_socket_is_not() {
    let one = 1_000.0 / MESSAGE_US as f64;
    let pipe = four_senders(ChannelKind::Pipe, 0, 10);
    let socket = four_senders(ChannelKind::UnixSocket, 0, 10);
    assert!((1.8..2.2).contains(&(pipe / one)), "{pipe} messages per ms");
    assert!(socket > 3.4 * one, "{socket} messages per ms");
}

/// Fails if a lock that others wait for went on to the next in as many lines as one that is free: two for all of
/// the pipe, and two more for its lock.
#[test]
fn a_lock_that_is_waited_for_goes_to_and_fro() {
    let between_us = |line_us| 1_000.0 / four_senders(ChannelKind::Pipe, line_us, 50);
    let lines = (between_us(20) - between_us(0)) / 20.0;
    assert!((3.6..4.6).contains(&lines), "{lines} lines between two messages");
}

/// Fails if a sender takes its turn at the lock when it begins to compute: the reader, which comes when
/// there are 40 messages already, would wait for each of the sender's.
#[test]
fn nobody_waits_for_a_sender_that_has_not_come_yet() {
    let send = Op::Send { channel: CHANNEL, bytes: 100 };
    let goes_on = |from| [Op::Repeat { counter: 0, times: FOREVER, to: from }, Op::Exit];
    let seldom = [vec![send; 40], vec![Op::Run { ns: 900_000 }, send], goes_on(40).to_vec()];
    let reader =
        [Op::Run { ns: 50_000_000 }, Op::Receive { channel: CHANNEL, bytes: 100 }, Op::Count];
    let tasks = vec![
        Program::new("seldom", seldom.concat()),
        Program::new("reader", [&reader[..], &goes_on(1)].concat()),
    ];
    let read = 60.0 * counts_per_ms(ChannelKind::Pipe, 0, 60, tasks);
    assert!(read > 30.0, "{read} messages in 10 ms");
}

/// For how long a task is on its CPU, from its first switch in to its last switch out, in us.
fn stint(trace: &str, comm: &str) -> u64 {
    let lines = parse(trace);
    let switches = || lines.iter().filter(|line| line.event == "sched_switch");
    let begins = switches().find(|line| line.text("next_comm") == comm);
    let ends = switches().rfind(|line| line.text("prev_comm") == comm);
    ends.expect("it leaves").micros - begins.expect("it runs").micros
}

/// How many lines the writer of messages waits for, and their reader, which comes when all are there.
fn lines_of(kind: ChannelKind, count: usize, bytes: u32) -> [f64; 2] {
    lines_at(1024, kind, count, bytes)
}

/// The same on cores of that speed, of 1,024.
fn lines_at(speed: u32, kind: ChannelKind, count: usize, bytes: u32) -> [f64; 2] {
    const LINE_US: u64 = 10;
    let [send, receive] =
        [Op::Send { channel: CHANNEL, bytes }, Op::Receive { channel: CHANNEL, bytes }];
    let late = Op::Run { ns: 5_000_000 };
    let writer = Program::new("writer", [vec![send; count], vec![Op::Exit]].concat());
    let reader =
        Program::new("reader", [vec![late], vec![receive; count], vec![Op::Exit]].concat());
    let all = programs(vec![main_of(2), writer, reader], 50);
    let workload = Workload { channels: vec![kind], ..all };
    let stints = |line_us: u64| {
        let mut setup = Setup::new("uma-8", "v6.0", "baseline", workload.clone()).at_speed(speed);
        setup.machine.costs.jitter_pct = 0;
        setup.machine.costs.cache_line_ns.llc = 1_000 * line_us;
        let trace = setup.traced().1;
        ["writer", "reader"].map(|comm| stint(&trace, comm))
    };
    let [near, far] = [0, LINE_US].map(stints);
    [0, 1].map(|task| (far[task] - near[task]) as f64 / LINE_US as f64)
}

/// Fails if the lines of a message came from where the pipe was touched last: they would be here from the
/// second message on; and if the writer, whose page they are in, waited for them.
#[test]
fn the_lines_of_each_message_come_to_its_reader() {
    let [writer, reader] = lines_of(ChannelKind::Pipe, 40, 100);
    // Five of the pipe, and those of a task that ends, which wakes another.
    assert!((20.0..22.0).contains(&writer), "{writer} lines for the writer");
    let messages = reader - writer;
    let at_once = 40.0 * 2.0 / 3.0;
    assert!((at_once..at_once + 10.0).contains(&messages), "{messages} lines more");
}

/// Fails if cores of half the speed waited twice as long for the lines of messages, of wakeups and of run queues.
#[test]
fn lines_come_in_their_own_time_whatever_the_speed() {
    for kind in [ChannelKind::Pipe, ChannelKind::UnixSocket, ChannelKind::LoopbackTcp] {
        let [full, half] = [1024, 512].map(|speed| lines_at(speed, kind, 40, 100));
        for side in [0, 1] {
            let more = half[side] - full[side];
            assert!(more.abs() < 1.0, "{kind:?}: {} and {} lines", full[side], half[side]);
        }
    }
}

/// Fails if a page that was read before were as good as new, or came along with each message that is put into it.
#[test]
fn the_pages_of_a_pipe_go_to_and_fro() {
    let [many, whole] =
        [(40, 100), (10, 4096)].map(|(count, bytes)| lines_of(ChannelKind::Pipe, count, bytes)[0]);
    let pages = whole - many;
    assert!((17.5..18.5).contains(&pages), "{pages} lines of nine more pages");
}

/// Fails if the buffers of a socket's messages, which the reader frees, were as good as new for the writer.
#[test]
fn the_buffers_of_a_socket_go_to_and_fro() {
    let [pipe, socket] =
        [ChannelKind::Pipe, ChannelKind::UnixSocket].map(|kind| lines_of(kind, 40, 100));
    for (side, name) in ["writer", "reader"].iter().enumerate() {
        let more = socket[side] - pipe[side];
        assert!((150.0..165.0).contains(&more), "{more} lines more for the {name}");
    }
}

/// Fails if messages over loopback had the lines of another protocol, or of the other side.
#[test]
fn messages_over_loopback_move_lines_by_protocol_and_side() {
    let [tcp, udp] =
        [ChannelKind::LoopbackTcp, ChannelKind::LoopbackUdp].map(|kind| lines_of(kind, 1, 100));
    let more = [0, 1].map(|side| (tcp[side] - udp[side]).round());
    assert_eq!(more, [4.0, 3.0], "8 and 3 lines of TCP, 4 and none of UDP");
}
