//! What runs when on one CPU, and what it costs.

use placewise_machine::{Costs, CpuSet};
use placewise_policy::{MEASURED_5_10, MEASURED_6_18, MEASURED_7_3, PREEMPT_FULL, PREEMPT_LAZY};
use placewise_workload::program::{
    Call, Cgroup, Change, ChannelKind, FOREVER, Metric, Object, Op, Program, Setting, Wake,
    Workload,
};

use crate::common::{MS, Setup, benchmark, counter, figure, main_of, proc_sched, programs};
use crate::trace::{Line, parse};

fn on(cpu: usize, program: Program) -> Program {
    Program { cpus: Some(CpuSet::single(cpu)), ..program }
}

fn for_ever(name: &str, mut ops: Vec<Op>) -> Program {
    ops.extend([Op::Repeat { counter: 0, times: FOREVER, to: 0 }, Op::Exit]);
    Program::new(name, ops)
}

fn hog(name: &str) -> Program {
    for_ever(name, vec![Op::Run { ns: 100_000 }])
}

/// Computes `ms` in all, in small steps.
fn compute(name: &str, ms: u32) -> Program {
    let ops =
        vec![Op::Run { ns: 100_000 }, Op::Repeat { counter: 0, times: 10 * ms, to: 0 }, Op::Exit];
    Program::new(name, ops)
}

fn shares(kernel: &str, nice: i8) -> (f64, f64) {
    let second = Program { nice, ..hog("second") };
    let all = vec![main_of(2), on(0, hog("first")), on(0, second)];
    let setup = Setup::new("pack:1 l3:1 core:2 pu:1", kernel, "baseline", programs(all, 400));
    let outcome = setup.run();
    for comm in ["first", "second"] {
        let switches = proc_sched(&outcome, comm, "nr_involuntary_switches");
        assert!(switches > 5.0, "{kernel}: {comm} was preempted {switches} times");
    }
    let ran = |comm| proc_sched(&outcome, comm, "se.sum_exec_runtime");
    (ran("first"), ran("second"))
}

/// Fails if ticks did not preempt: the first hog would keep its CPU.
#[test]
fn two_hogs_share_a_cpu() {
    for kernel in ["v3.10", "v6.0", "v6.12", "v6.18"] {
        let (first, second) = shares(kernel, 0);
        assert!((first / second - 1.0).abs() < 0.1, "{kernel}: {first} and {second} ms");
    }
}

/// Fails if virtual time did not follow weights.
#[test]
fn shares_follow_nice_levels() {
    for kernel in ["v6.0", "v6.12", "v6.18"] {
        for (nice, weight) in [(1, 820.0), (5, 335.0)] {
            let (first, second) = shares(kernel, nice);
            let ratio = (first / second) / (1024.0 / weight);
            assert!((ratio - 1.0).abs() < 0.1, "{kernel}, nice {nice}: {first} and {second} ms");
        }
    }
}

/// Fails if busy siblings ran at full speed, or two cores slowed each other down.
#[test]
fn siblings_share_their_core() {
    let finished = |second_cpu| {
        let all = vec![main_of(2), on(2, compute("a", 20)), on(second_cpu, compute("b", 20))];
        let machine = "pack:1 l3:1 core:3 pu:2";
        let mut setup = Setup::new(machine, "v6.0", "baseline", programs(all, 1_000));
        setup.machine.costs.jitter_pct = 0;
        let outcome = setup.run();
        let throughput = f64::from(setup.machine.costs.smt_throughput_pct) / 100.0;
        (outcome.statistics.simulated_ns as f64, throughput)
    };
    let (together, throughput) = finished(3);
    let (apart, _) = finished(4);
    let slowdown = together / apart;
    assert!(
        (slowdown * throughput - 1.0).abs() < 0.05,
        "{slowdown} times as long beside a busy sibling, expected {}",
        1.0 / throughput
    );
}

/// Fails if busy cores did not slow down their package, slowed down another one, or if what runs kept its speed.
#[test]
fn busy_cores_slow_down_their_package() {
    let finished = |cpus: &[usize]| {
        let hogs = cpus.iter().map(|&cpu| on(cpu, compute("hog", 100)));
        let all = std::iter::once(main_of(cpus.len() as u32)).chain(hogs).collect();
        let machine = "pack:2 l3:1 core:8 pu:1";
        let mut setup = Setup::new(machine, "v6.0", "baseline", programs(all, 1_000));
        (setup.machine.costs.jitter_pct, setup.machine.costs.all_busy_clock_pct) = (0, 50);
        setup.run().statistics.simulated_ns as f64
    };
    let alone = finished(&[1]);
    let [apart, half, all] =
        [vec![1, 9], vec![1, 2, 3, 4], (0..8).collect()].map(|it| finished(&it));
    assert!((apart / alone - 1.0).abs() < 0.01, "{apart} and {alone}");
    // Four of eight cores have twice the power of eight each, and the cube root of that is 1.26.
    for (busy, slowdown) in [(half, 2.0 / 1.26), (all, 2.0)] {
        assert!((busy / alone / slowdown - 1.0).abs() < 0.05, "{busy}, alone {alone}: {slowdown}");
    }
}

/// So many tasks on CPU 0, each with one on a CPU of its own: they wake each other so many times.
fn pairs_with_one_cpu(pairs: u32, times: u32) -> (Vec<Program>, Vec<ChannelKind>) {
    let mut all = vec![main_of(2 * pairs)];
    for pair in 0..pairs {
        let channel = |n| Object::shared(2 * pair + n);
        let send = |n| Op::Send { channel: channel(n), bytes: 1 };
        let receive = |n| Op::Receive { channel: channel(n), bytes: 1 };
        let again = Op::Repeat { counter: 0, times, to: 0 };
        let passes = |first, second| vec![first, second, again, Op::Exit];
        all.push(on(1 + pair as usize, Program::new("waker", passes(send(0), receive(1)))));
        all.push(on(0, Program::new("wakee", passes(receive(0), send(1)))));
    }
    (all, vec![ChannelKind::Pipe; 2 * pairs as usize])
}

/// Fails if enqueueing took no lock, or if the lock could not be busy.
#[test]
fn enqueues_on_one_cpu_queue_for_its_lock() {
    let lock_wait = |pairs: u32| {
        let (all, channels) = pairs_with_one_cpu(pairs, FOREVER);
        let workload = Workload { channels, ..programs(all, 20) };
        let outcome = Setup::new("pack:1 l3:1 core:8 pu:1", "v5.3", "baseline", workload).run();
        (counter(&outcome, "rq_lock_wait"), counter(&outcome, "rq_lock_share"))
    };
    let (one_pair, _) = lock_wait(1);
    let (many_pairs, share) = lock_wait(7);
    assert!(many_pairs > 0.0 && share > 0.0, "{many_pairs} ns, {share} %");
    assert!(one_pair < many_pairs / 20.0, "{one_pair} ns with one pair, {many_pairs} with seven");
}

/// Fails if a slow CPU stretched what it waits for others: who comes next would wait for that, and stretch it again.
#[test]
fn who_waits_for_a_lock_waits_as_long_as_it_is_held() {
    let duration = |speed| {
        let (all, channels) = pairs_with_one_cpu(7, 50);
        let workload = Workload { channels, ..programs(all, 10_000) };
        let mut setup =
            Setup::new("pack:1 l3:1 core:8 pu:1", "v5.3", "baseline", workload).at_speed(speed);
        (setup.machine.costs.rq_lock_hold_ns, setup.machine.costs.jitter_pct) = (100_000, 0);
        setup.run().statistics.simulated_ns as f64
    };
    let ratio = duration(512) / duration(1024);
    assert!(ratio < 2.05, "{ratio} times as long at half the speed");
}

const SWITCH_US: u64 = 50;

/// Of a task that wakes one on a CPU that hardly does anything but switch, a cache line taking so long: how long
/// after its switch began the wakee is enqueued, how long after it was being woken, and the waiting counted.
fn wakes_into_switches(line_ns: u64) -> (Vec<u64>, Vec<u64>, f64) {
    let channel = Object::shared(0);
    let pause = Op::Sleep { ns: 170_000, random_pct: 50 };
    let all = vec![
        main_of(4),
        on(1, for_ever("one", vec![Op::Run { ns: 1_000 }, Op::Yield])),
        on(1, for_ever("other", vec![Op::Run { ns: 1_000 }, Op::Yield])),
        on(0, for_ever("waker", vec![pause, Op::Send { channel, bytes: 1 }])),
        on(1, for_ever("wakee", vec![Op::Receive { channel, bytes: 1 }])),
    ];
    let workload = Workload { channels: vec![ChannelKind::Pipe], ..programs(all, 20) };
    let mut setup = Setup::new("pack:1 l3:1 core:2 pu:1", "v6.0", "baseline", workload);
    let costs = &mut setup.machine.costs;
    (costs.context_switch_ns, costs.jitter_pct) = (1_000 * SWITCH_US, 0);
    costs.cache_line_ns.llc = line_ns;
    setup.policy.profile.measured = MEASURED_6_18;
    let (outcome, text) = setup.traced();
    let (mut switched, mut waking) = (0, 0);
    let (mut since_switches, mut since_wakings) = (Vec::new(), Vec::new());
    for line in parse(&text) {
        let is_wakee = || line.text("comm") == "wakee";
        match line.event.as_str() {
            "sched_switch" if line.cpu == 1 => switched = line.micros,
            "sched_waking" if is_wakee() => waking = line.micros,
            "sched_wakeup" if is_wakee() => {
                since_switches.push(line.micros - switched);
                since_wakings.push(line.micros - waking);
            }
            _ => {}
        }
    }
    (since_switches, since_wakings, counter(&outcome, "rq_lock_wait"))
}

/// Fails if wakees were enqueued, and preempted, in the middle of a switch.
#[test]
fn a_waker_waits_for_a_switch_to_end() {
    let (since, _, waited_ns) = wakes_into_switches(0);
    assert!(since.len() > 20, "{since:?}");
    assert!(since.iter().all(|us| us + 1 >= SWITCH_US), "{since:?}");
    let each_ns = waited_ns / since.len() as f64;
    assert!(each_ns > 100.0 * SWITCH_US as f64, "{each_ns} ns each");
}

/// Fails if the next switch could have the lock before whoever waits: its lines take longer than that is off.
#[test]
fn a_waker_has_its_turn_before_the_next_switch() {
    let (_, since, _) = wakes_into_switches(2_000);
    assert!(since.len() > 20, "{since:?}");
    assert!(since.iter().all(|&us| us < 2 * SWITCH_US), "{since:?}");
}

/// One on CPU 0 that is woken again and again beside a hog, by a task on `from`; a cache line takes 1 us.
fn woken_beside_a_hog(from: usize) -> Setup {
    let channel = Object::shared(0);
    let pause = Op::Sleep { ns: 200_000, random_pct: 0 };
    let all = vec![
        main_of(3),
        on(0, for_ever("hog", vec![Op::Run { ns: 1_000 }])),
        on(from, for_ever("waker", vec![pause, Op::Send { channel, bytes: 1 }])),
        on(0, for_ever("wakee", vec![Op::Receive { channel, bytes: 1 }])),
    ];
    let workload = Workload { channels: vec![ChannelKind::Pipe], ..programs(all, 20) };
    let mut setup = Setup::new("pack:1 l3:1 core:2 pu:1", "v6.0", "baseline", workload);
    (setup.machine.costs.jitter_pct, setup.machine.costs.cache_line_ns.llc) = (0, 1_000);
    setup
}

/// Fails if the lines of a wakee that another CPU has put on the run queue were there at once, or took longer to get to a
/// slower core.
#[test]
fn what_another_cpu_has_enqueued_comes_back_when_it_runs() {
    let stint = |from, lines, speed| {
        let mut setup = woken_beside_a_hog(from).at_speed(speed);
        setup.machine.costs.wakeup_lines = lines;
        let text = setup.traced().1;
        let switches = parse(&text).into_iter().filter(|line| line.event == "sched_switch");
        let (mut begun, mut stints) = (None, Vec::new());
        for line in switches.filter(|line| line.cpu == 0) {
            let end = begun.take_if(|_| line.text("prev_comm") == "wakee");
            stints.extend(end.map(|begin| line.micros - begin));
            begun = (line.text("next_comm") == "wakee").then_some(line.micros).or(begun);
        }
        stints.sort_unstable();
        stints[stints.len() / 2]
    };
    let longer = |from, speed| stint(from, 20, speed).abs_diff(stint(from, 0, speed));
    for speed in [1024, 512] {
        let (elsewhere, here) = (longer(1, speed), longer(0, speed));
        assert!(elsewhere.abs_diff(20) <= 1, "{elsewhere} us for 20 lines, at {speed}");
        assert!(here <= 1, "{here} us on the same CPU, at {speed}");
    }
}

/// From `sched_waking` until `sched_wakeup`, in us, where all CPUs are busy and looking at one takes so long.
fn searching(scan_cpu_ns: u64, speed: u32) -> u64 {
    let hog = |cpu| on(cpu, for_ever("hog", vec![Op::Run { ns: 1_000 }]));
    let channel = Object::shared(0);
    let pause = Op::Sleep { ns: MS, random_pct: 0 };
    let others = [
        for_ever("waker", vec![pause, Op::Send { channel, bytes: 1 }]),
        for_ever("wakee", vec![Op::Receive { channel, bytes: 1 }]),
    ];
    let all = [vec![main_of(10)], (0..8).map(hog).collect(), others.to_vec()].concat();
    let workload = Workload { channels: vec![ChannelKind::Pipe], ..programs(all, 20) };
    let mut setup = Setup::new("uma-8", "v5.3", "baseline", workload).at_speed(speed);
    (setup.machine.costs.jitter_pct, setup.machine.costs.scan_cpu_ns) = (0, scan_cpu_ns);
    let (mut began, mut took) = (0, Vec::new());
    for line in parse(&setup.traced().1) {
        match line.event.as_str() {
            "sched_waking" if line.text("comm") == "wakee" => began = line.micros,
            "sched_wakeup" if line.text("comm") == "wakee" => took.push(line.micros - began),
            _ => {}
        }
    }
    took.sort_unstable();
    took[took.len() / 2]
}

/// Fails if looking at CPUs took slower ones longer.
#[test]
fn a_search_reads_other_cpus_in_the_same_time_at_any_speed() {
    let longer = |speed| searching(10_000, speed).abs_diff(searching(0, speed));
    let (full, half) = (longer(1024), longer(512));
    assert!(full >= 20 && full.abs_diff(half) <= 1, "{full} and {half} us");
}

/// Fails if the lock of a run queue were free while who has enqueued a task there still sends the interrupt.
#[test]
fn an_interrupt_is_sent_with_the_lock_of_the_run_queue() {
    const SENDING_NS: f64 = 50_000.0;
    let mut setup = woken_beside_a_hog(1);
    setup.machine.costs.ipi_send_ns = SENDING_NS as u64;
    let outcome = setup.run();
    let sent = proc_sched(&outcome, "hog", "nr_involuntary_switches");
    let each_ns = counter(&outcome, "rq_lock_wait") / sent;
    assert!((SENDING_NS..1.3 * SENDING_NS).contains(&each_ns), "{each_ns} ns for each of {sent}");
}

/// A writer on CPU 2 that sends after 5.5 ms, to a reader on CPU 1 that sleeps until then, where another task sleeps for 5 ms;
/// and when what was there last, in us.
fn wakes_on_an_idle_cpu(change: fn(&mut Costs)) -> impl Fn(&str, &str, &str) -> u64 {
    let channel = Object::shared(0);
    let pause = Op::Sleep { ns: 5 * MS, random_pct: 0 };
    let sleeper = on(1, Program::new("sleeper", vec![pause, Op::Exit]));
    let reader = on(1, Program::new("reader", vec![Op::Receive { channel, bytes: 1 }, Op::Exit]));
    let late = Op::Run { ns: 5_500_000 };
    let send = Op::Send { channel, bytes: 1 };
    let writer = on(2, Program::new("writer", vec![late, send, Op::Exit]));
    let all = programs(vec![main_of(3), sleeper, reader, writer], 50);
    let workload = Workload { channels: vec![ChannelKind::Pipe], ..all };
    let mut setup = Setup::new("uma-8", "v6.0", "baseline", workload);
    setup.machine.costs.jitter_pct = 0;
    change(&mut setup.machine.costs);
    setup.policy.profile.measured = MEASURED_6_18;
    let lines = parse(&setup.traced().1);
    move |event, key, comm| {
        let of_task = |line: &&Line| line.event == event && line.text(key) == comm;
        lines.iter().rfind(of_task).expect("it is there").micros
    }
}

/// Fails if the idle task went after it has switched, or with the lock: who wakes another one there meanwhile would wait.
#[test]
fn the_idle_task_goes_without_the_lock_before_it_switches() {
    let last = wakes_on_an_idle_cpu(|costs| costs.idle_switch_ns = MS);
    let enqueued = last("sched_wakeup", "comm", "sleeper");
    let runs = last("sched_switch", "next_comm", "sleeper");
    assert!((1_000..1_050).contains(&(runs - enqueued)), "from {enqueued} to {runs} us");
    let [waking, woken] = ["sched_waking", "sched_wakeup"].map(|it| last(it, "comm", "reader"));
    assert!((enqueued..runs).contains(&waking), "{waking} us: it goes from {enqueued} to {runs}");
    assert!(woken - waking < 10, "it waits from {waking} to {woken} us");
}

/// Fails if who is on a wake list were enqueued once that is over for which the lock is held.
#[test]
fn a_wake_list_is_enqueued_as_soon_as_its_lock_is_had() {
    let last = wakes_on_an_idle_cpu(|costs| {
        costs.idle_states.clear();
        (costs.llc_idle_exit_ns, costs.rq_lock_hold_ns) = (0, MS / 20);
    });
    let [waking, woken] = ["sched_waking", "sched_wakeup"].map(|it| last(it, "comm", "reader"));
    let runs = last("sched_switch", "next_comm", "reader");
    assert!(woken - waking < 10, "from {waking} to {woken} us");
    assert!(runs - woken >= 50, "the hold comes after: from {woken} to {runs} us");
}

/// Two pass a message to and fro, and each sleeps until it is back, or stays queued. Before 6.18 that takes 1.4 times what it
/// does since. Half of it comes before the switch: where each has a CPU the other one does not wait for that.
#[test]
fn who_sleeps_takes_time_for_that() {
    const TIMES: u32 = 100;
    let passes = |cpu_of_other, (kernel, measured), sleep_ns| {
        let (to, back) = (Object::shared(0), Object::shared(1));
        // Long enough for the other one to be off its CPU.
        let thinks = Op::Run { ns: 20_000 };
        let pass = |name, cpu, turn: [Op; 3]| {
            let again = Op::Repeat { counter: 0, times: TIMES, to: 0 };
            on(cpu, Program::new(name, [&turn[..], &[again, Op::Exit]].concat()))
        };
        let send = |channel| Op::Send { channel, bytes: 1 };
        let receive = |channel| Op::Receive { channel, bytes: 1 };
        let all = vec![
            main_of(2),
            pass("one", 0, [thinks, send(to), receive(back)]),
            pass("other", cpu_of_other, [receive(to), thinks, send(back)]),
        ];
        let workload = Workload { channels: vec![ChannelKind::Pipe; 2], ..programs(all, 1_000) };
        let mut setup = Setup::new("pack:1 l3:1 core:2 pu:1", kernel, "baseline", workload);
        setup.policy.profile.wakeup_preemption = false;
        setup.policy.profile.measured = measured;
        let costs = &mut setup.machine.costs;
        (costs.sleep_ns, costs.jitter_pct, costs.llc_idle_exit_ns) = (sleep_ns, 0, 0);
        costs.idle_states.truncate(1);
        setup.run().statistics.simulated_ns
    };
    const SLEEP: u64 = 2_000;
    let (between, new) = (("v6.0", MEASURED_6_18), ("v6.18", MEASURED_6_18));
    let of_all =
        [(0, new, 1.0), (0, between, 1.0), (0, ("v6.0", MEASURED_5_10), 1.395), (1, new, 0.5)];
    for (cpu, kernel, expected) in of_all {
        let more = passes(cpu, kernel, SLEEP) - passes(cpu, kernel, 0);
        let share = more as f64 / (u64::from(2 * TIMES) * SLEEP) as f64;
        assert!((share - expected).abs() < 0.05, "{share} of it each: {cpu}, {kernel:?}");
    }
}

/// The hog looks each microsecond whether it is to give way. Fails if it did before whoever has told it let go of the lock,
/// or if one that is woken on the hog's own CPU waited for that.
#[test]
fn who_preempts_on_another_cpu_does_no_sooner_than_its_program_says() {
    let waits = |preempt_ns, from| {
        let mut setup = woken_beside_a_hog(from);
        let wakee = setup.workload.programs.iter_mut().find(|program| program.name == "wakee");
        wakee.expect("it is there").preempt_ns = preempt_ns;
        let outcome = setup.run();
        let [sum_ms, count] =
            ["wait_sum", "wait_count"].map(|field| proc_sched(&outcome, "wakee", field));
        1e6 * sum_ms / count
    };
    let later = |from| waits(40_000, from) - waits(10_000, from);
    assert!((29_000.0..=31_000.0).contains(&later(1)), "{} ns", later(1));
    assert!(later(0).abs() < 500.0, "{} ns", later(0));
}

/// How often who asks from another CPU has an answer, beside a hog that stays in user space.
fn answers(preempt: u32) -> f64 {
    let (to, back) = (Object::shared(0), Object::shared(1));
    let send = |channel| Op::Send { channel, bytes: 1 };
    let receive = |channel| Op::Receive { channel, bytes: 1 };
    let all = vec![
        main_of(3),
        on(0, for_ever("hog", vec![Op::Run { ns: 100_000_000 }])),
        on(0, for_ever("answers", vec![receive(to), send(back)])),
        on(1, for_ever("asks", vec![send(to), receive(back)])),
    ];
    let workload = Workload { channels: vec![ChannelKind::Pipe; 2], ..programs(all, 400) };
    let mut setup = Setup::new("pack:1 l3:1 core:2 pu:1", "v7.3", "baseline", workload);
    setup.policy.profile.preempt = preempt;
    proc_sched(&setup.run(), "asks", "nr_voluntary_switches")
}

/// Fails if a hog is interrupted, or not even told by its tick.
#[test]
fn a_hog_that_is_preempted_lazily_goes_on_until_its_tick() {
    let (lazily, at_once) = (answers(PREEMPT_LAZY), answers(PREEMPT_FULL));
    assert!((50.0..=110.0).contains(&lazily), "{lazily} in some 100 ticks");
    assert!(at_once > 4.0 * lazily, "{at_once} and {lazily}");
}

/// How often who answers gives way to who asks, for each time that it sleeps. Each is in a cgroup of its own.
fn gives_way(kernel: &str) -> f64 {
    let (to, back) = (Object::shared(0), Object::shared(1));
    let send = |channel| Op::Send { channel, bytes: 1 };
    let receive = |channel| Op::Receive { channel, bytes: 1 };
    let asks = vec![Op::Run { ns: 10_000 }, send(to), receive(back)];
    let answers = vec![receive(to), Op::Run { ns: 30_000 }, send(back)];
    let all = vec![
        main_of(2),
        on(0, for_ever("asks", asks)).in_cgroup(0),
        on(0, for_ever("answers", answers)).in_cgroup(1),
    ];
    let cgroups = ["a", "b"].map(|name| Cgroup::new(name, None, 1024)).to_vec();
    let channels = vec![ChannelKind::Pipe; 2];
    let workload = Workload { channels, cgroups, ..programs(all, 400) };
    let outcome = Setup::new("pack:1 l3:1 core:1 pu:1", kernel, "baseline", workload).run();
    let switches = |field| proc_sched(&outcome, "answers", field);
    switches("nr_involuntary_switches") / switches("nr_voluntary_switches").max(1.0)
}

/// Its group is ahead of its share when it sleeps, and is delayed. Fails if what the waker has run since counted before
/// that group is woken: it would begin anew beside the other, and both would sleep each time.
#[test]
fn who_is_woken_in_a_delayed_group_preempts_its_waker() {
    for kernel in ["v6.12", "v6.18", "v6.18.32"] {
        let often = gives_way(kernel);
        assert!(often > 100.0, "{kernel}: {often} times");
    }
    let without_delays = gives_way("v6.6");
    assert!(without_delays < 1.0, "{without_delays} times");
}

/// One task runs ahead of its share, wakes its partner on the same CPU, and sleeps; the other CPU
/// is idle by then.
fn runs_ahead(delayed_dequeue: bool) -> Setup {
    let (to, back) = (Object::shared(0), Object::shared(1));
    let send = |channel| Op::Send { channel, bytes: 1 };
    let receive = |channel| Op::Receive { channel, bytes: 1 };
    let channels = vec![ChannelKind::Pipe; 2];
    let wakes = [send(to), receive(to), send(back), receive(back)];
    runs_ahead_with(wakes, delayed_dequeue, |all| Workload { channels, ..programs(all, 3) })
}

/// With these ways to wake the partner and to wait for that, and back.
fn runs_ahead_with(
    [wake, wait, wake_back, wait_back]: [Op; 4],
    delayed_dequeue: bool,
    workload: impl FnOnce(Vec<Program>) -> Workload,
) -> Setup {
    let ahead = vec![Op::Run { ns: 600_000 }, wake, wait_back];
    let behind = vec![wait, Op::Run { ns: 50_000 }, wake_back, Op::Run { ns: 20_000 }];
    let all = vec![
        main_of(3),
        on(1, Program::new("guard", vec![Op::Run { ns: 300_000 }, Op::Exit])),
        for_ever("ahead", ahead),
        on(0, for_ever("behind", behind)),
    ];
    let mut setup = Setup::new("pack:1 l3:1 core:2 pu:1", "v6.12", "baseline", workload(all));
    setup.policy.profile.delayed_dequeue = delayed_dequeue;
    setup.policy.profile.measured = MEASURED_6_18;
    setup
}

/// Fails if no CPU were chosen for a task that slept, or one for a task that is still queued; or if that took as little
/// under 7.3, where all wakeups are dearer by a fifteenth, and those of such tasks 1.44 times as dear as others.
#[test]
fn a_task_that_is_still_queued_is_woken_for_less() {
    const WAKEUP_US: u64 = 200;
    for (delayed, kernel, expected) in [
        (true, MEASURED_6_18, WAKEUP_US / 2),
        (false, MEASURED_6_18, WAKEUP_US),
        (true, MEASURED_7_3, 306),
    ] {
        let mut setup = runs_ahead(delayed);
        setup.policy.profile.measured = kernel;
        (setup.machine.costs.wakeup_ns, setup.machine.costs.jitter_pct) = (1_000 * WAKEUP_US, 0);
        let took = waker_is_held_up(&setup);
        assert!((expected..expected + 50).contains(&took), "{took} us, delayed dequeue: {delayed}");
    }
}

/// From the first waking of the task that runs ahead until its waker leaves the CPU, in us.
fn waker_is_held_up(setup: &Setup) -> u64 {
    let lines = parse(&setup.traced().1);
    let first = lines
        .iter()
        .position(|line| line.event == "sched_waking" && line.text("comm") == "ahead")
        .expect("it is woken");
    let switch = lines[first..]
        .iter()
        .find(|line| line.event == "sched_switch" && line.text("prev_comm") == "behind");
    switch.expect("its waker sleeps").micros - lines[first].micros
}

/// Fails if the call of a trace were that of other wakees only: what it takes is told of all of them.
#[test]
fn a_task_that_is_still_queued_is_woken_as_late_as_the_call_says() {
    let [to, back] = [0, 1].map(Object::shared);
    let wait = |semaphore| Op::Await { semaphore, lines: 0 };
    let held_up = |call| {
        let wake = |semaphore| Op::Post { semaphore, wake: Wake::Sync, call, answered_at: None };
        let wakes = [wake(to), wait(to), wake(back), wait(back)];
        let workload = |all| Workload { semaphores: vec![0; 2], ..programs(all, 3) };
        let mut setup = runs_ahead_with(wakes, true, workload);
        (setup.machine.costs.wakeup_ns, setup.machine.costs.jitter_pct) = (200_000, 0);
        waker_is_held_up(&setup)
    };
    let at_once = held_up(Call::default());
    assert!(at_once < 200, "{at_once} us");
    let told = held_up(Call { queue_ns: 100_000, rest_ns: 0 });
    assert!((200..220).contains(&(told - at_once)), "{told} and {at_once} us");
}

/// What follows the first waking of the task that runs ahead, up to its wakeup.
fn first_wakeup(setup: &Setup) -> Vec<String> {
    let (_, text) = setup.traced();
    let events = parse(&text).into_iter();
    let wakeup = events
        .filter(|line| {
            ["sched_waking", "sched_migrate_task", "sched_wakeup"].contains(&line.event.as_str())
        })
        .filter(|line| line.text("comm") == "ahead");
    let mut names: Vec<String> = wakeup.map(|line| line.event).collect();
    names.truncate(2);
    names
}

/// Fails without delayed dequeue: as without it, the idle CPU takes the task.
#[test]
fn a_task_ahead_of_its_share_sleeps_delayed_and_wakes_in_place() {
    let (with, without) = (runs_ahead(true), runs_ahead(false));
    assert!(with.checked(1).1.delayed > 0, "nobody was delayed");
    assert_eq!(without.checked(1).1.delayed, 0);
    assert_eq!(first_wakeup(&with), ["sched_waking", "sched_wakeup"]);
    assert_eq!(first_wakeup(&without), ["sched_waking", "sched_migrate_task"]);
}

/// Fails if a kernel before EEVDF delayed anybody.
#[test]
fn only_eevdf_delays() {
    let delayed = |kernel| {
        let workload = benchmark("hackbench", "groups=2,fds=4,warmup_ms=0,window_ms=10");
        Setup::new("pack:1 l3:2 core:2 pu:1", kernel, "baseline", workload).checked(50).1.delayed
    };
    assert_eq!(delayed("v6.0"), 0);
    assert!(delayed("v6.12") > 0);
    assert!(delayed("v6.18") > 0);
}

/// Fails if a task brought nothing along when it moves between LLCs.
#[test]
fn a_migrated_task_refills_its_caches() {
    let ran = |footprint_kib| {
        let mut setup = crate::balancing::two_in_one_llc(footprint_kib, 40);
        setup.machine.costs.jitter_pct = 0;
        let outcome = setup.run();
        assert_eq!(counter(&outcome, "migrations_active"), 1.0);
        let figure = setup.machine.costs.refill_ns_per_kib.package;
        let of = |comm| proc_sched(&outcome, comm, "se.sum_exec_runtime") * 1e6;
        (of("first") + of("second"), figure as f64)
    };
    let (light, figure) = ran(0);
    let (heavy, _) = ran(400);
    let refill = heavy - light;
    // Both came to their first LLC at the price of a refill as well.
    assert!(refill >= 0.9 * 400.0 * figure, "{refill} ns for 400 KiB of {figure} ns");
}

/// Fails if a core of half the speed waited for its refills for twice as long.
#[test]
fn refills_come_in_their_own_time_whatever_the_speed() {
    let refill = |speed| {
        let [heavy, light] = [400, 0].map(|footprint_kib| {
            let ops = vec![Op::Run { ns: 2 * MS }, Op::Exit];
            let child = Program::new("child", ops).with_footprint(footprint_kib);
            let affinity = |at, cpu| Change {
                at,
                to: Setting::Affinity { task: "child".into(), cpus: CpuSet::single(cpu) },
            };
            let changes = vec![affinity(0, 0), affinity(MS, 1)];
            let workload = Workload { changes, ..programs(vec![main_of(1), child], 50) };
            let mut setup = Setup::new("uma-8", "v6.0", "baseline", workload).at_speed(speed);
            setup.machine.costs.jitter_pct = 0;
            let figure = 400 * setup.machine.costs.refill_ns_per_kib.llc;
            proc_sched(&setup.run(), "child", "se.sum_exec_runtime") * 1e6 / figure as f64
        });
        heavy - light
    };
    for speed in [1024, 512] {
        assert!((refill(speed) - 1.0).abs() < 0.01, "{} refills at {speed}", refill(speed));
    }
}

/// Fails if a thread cost what a process does.
#[test]
fn a_process_costs_its_page_tables() {
    let ran = |of_processes: fn(Program) -> Program| {
        let fork = Op::Fork { program: 1, count: 4, base: 0, step: 0 };
        let main = Program::new("main", vec![fork, Op::Join, Op::Exit]);
        let child = of_processes(Program::new("child", vec![Op::Exit]));
        let mut setup = Setup::new("uma-8", "v6.0", "baseline", programs(vec![main, child], 10));
        setup.machine.costs.jitter_pct = 0;
        let Costs { fork_ns, thread_create_ns, .. } = setup.machine.costs;
        let ran = proc_sched(&setup.run(), "main", "se.sum_exec_runtime") * 1e6;
        (ran, 4.0 * (fork_ns - thread_create_ns) as f64)
    };
    let (threads, more) = ran(|program| program);
    let (processes, _) = ran(Program::of_processes);
    assert!((processes - threads - more).abs() < more / 20.0, "{threads} and {processes} ns");
}

/// Who only arrives goes on, and whoever comes last lets all go that wait.
#[test]
fn an_arrival_counts_and_does_not_wait() {
    let meet = Object::shared(0);
    let waits = vec![Op::Barrier { barrier: meet, spin_ns: 0 }, Op::Count, Op::Exit];
    let arrivals = |arrivals: usize| {
        let mut main = vec![Op::Fork { program: 1, count: 2, base: 0, step: 0 }, Op::Start];
        main.push(Op::Sleep { ns: MS, random_pct: 0 });
        main.extend(vec![Op::Arrive { barrier: meet }; arrivals]);
        main.extend([Op::Sleep { ns: MS, random_pct: 0 }, Op::Exit]);
        let mut workload =
            programs(vec![Program::new("main", main), Program::new("waits", waits.clone())], 10);
        workload.barriers = vec![4];
        Setup::new("uma-8", "v6.0", "baseline", workload).run().statistics.account
    };
    assert_eq!((arrivals(1).units, arrivals(2).units), (0, 2));
    assert!(arrivals(1).ns < 3 * MS, "main sleeps twice for a ms, and for nobody");
}

/// Fails if a task went on although the lock of its CPU is held by one that was preempted there.
#[test]
fn a_preempted_holder_leaves_the_next_spinning() {
    let units = |locked: bool| {
        let mut work = vec![Op::Run { ns: 10 * MS }];
        if locked {
            work = [vec![Op::LockCpu], work, vec![Op::UnlockCpu]].concat();
        }
        work.push(Op::Count);
        let worker = |name| on(0, for_ever(name, work.clone()));
        let workload = programs(vec![main_of(2), worker("one"), worker("other")], 400);
        Setup::new("uma-8", "v6.0", "baseline", workload).run().statistics.account.units
    };
    let (free, locked) = (units(false), units(true));
    assert!(free >= 38 && locked >= free / 3 && locked <= 3 * free / 4, "{free}, then {locked}");
}

/// One worker alone: nobody has its lock, so a request takes its sleep and its work.
#[test]
fn a_request_takes_its_sleep_and_its_work() {
    let workload = benchmark("schbench2", "workers=1,warmup_ms=20,window_ms=600");
    let run = Setup::new("uma-8", "v6.0", "baseline", workload).run();
    let latency = figure(&run, "p50_request_latency");
    assert!((16_200.0..18_200.0).contains(&latency), "{latency} us");
    let rate = figure(&run, "throughput");
    assert!((52.0..62.0).contains(&rate), "{rate} requests/s");
    assert!(figure(&run, "p99_wakeup_latency") < 1_000.0);
}

/// A round is the worker's spin, the messenger's and its sleep; each has one wakeup of either.
#[test]
fn a_messenger_of_schbench_that_does_not_spin_comes_round_sooner() {
    let wakeups_with = |spin_us: u32| {
        let case = format!(
            "workers=1,cputime_us=1000,message_cputime_us={spin_us},sleeptime_us=1000,warmup_ms=0,window_ms=600"
        );
        let run = Setup::new("uma-8", "v6.0", "baseline", benchmark("schbench", &case)).run();
        counter(&run, "sis_search")
    };
    let (spinning, sleeping) = (wakeups_with(4_000), wakeups_with(0));
    assert!((2.6..3.1).contains(&(sleeping / spinning)), "{spinning}, then {sleeping}");
}

/// Both sleep while the waker computes. The one on its CPU is on the list last, so it is woken first, and
/// takes that CPU away before the waker has come to the other one. Fails if all were woken by one call: the
/// other's CPU idles.
#[test]
fn who_walks_over_a_list_is_preempted_in_the_middle_of_it() {
    let list = Object::shared(0);
    let round = |ops: Vec<Op>| for_ever("task", ops);
    let waker = round(vec![Op::Run { ns: 15 * MS }, Op::WakeListed { list }]);
    let early = vec![Op::Enlist { list }, Op::Wait { sample: true }];
    let late = vec![Op::Run { ns: 5 * MS }, Op::Enlist { list }, Op::Wait { sample: false }];
    let all = vec![main_of(3), on(0, waker), on(1, round(early)), on(0, round(late))];
    let workload = Workload {
        lists: 1,
        metrics: vec![Metric::WakeupLatency { quantile: 0.5 }],
        ..programs(all, 400)
    };
    let run = Setup::new("pack:1 l3:1 core:2 pu:1", "v6.0", "baseline", workload).run();
    let latency = figure(&run, "p50_wakeup_latency");
    assert!((4_000.0..16_000.0).contains(&latency), "{latency} us");
}

/// How long a child waits for the one CPU that it and its parent may use, in us, where the parent goes on computing.
fn child_waits(kernel: &str) -> u64 {
    let on_one = |name, ops| Program { cpus: Some(CpuSet::single(2)), ..Program::new(name, ops) };
    let fork = Op::Fork { program: 1, count: 1, base: 0, step: 0 };
    // No multiple of a slice.
    let compute = Op::Run { ns: 31_000_000 };
    let main = on_one("parent", vec![compute, fork, compute, Op::Join, Op::Count, Op::Exit]);
    let child = on_one("child", vec![Op::Run { ns: 1_000_000 }, Op::Exit]);
    let setup = Setup::new("uma-8", kernel, "baseline", programs(vec![main, child], 100));
    let lines = parse(&setup.traced().1);
    let forked = lines.iter().find(|line| line.event == "sched_wakeup_new").expect("it is forked");
    let runs = |line: &&Line| line.event == "sched_switch" && line.text("next_comm") == "child";
    lines.iter().find(runs).expect("it runs").micros - forked.micros
}

/// A child of the kernels up to 6.18.15 may preempt its parent; later it waits until that has had its slice, or a tick.
#[test]
fn a_child_preempts_its_parent_where_forks_do() {
    let [before, after] = ["v6.18.15", "v6.18.32"].map(child_waits);
    assert!(before < 20 && after > 100, "{before} and {after} us");
}
