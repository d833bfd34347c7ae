//! Task groups: who gets how much of a CPU, and that nobody is lost on the way.

use placewise_machine::{ByDistance, BySide, CpuSet};
use placewise_sim::{Outcome, Scenario, SimError, simulate};
use placewise_workload::program::{Cgroup, ChannelKind, FOREVER, Object, Op, Program, Workload};
use proptest::prelude::*;

use crate::common::{Setup, benchmark, counter, figure, main_of, programs};
use crate::properties::{MACHINES, config, kernel, part, workload};
use crate::trace::parse;

fn hog(name: &str, cpu: usize) -> Program {
    let ops =
        vec![Op::Run { ns: 100_000 }, Op::Repeat { counter: 0, times: FOREVER, to: 0 }, Op::Exit];
    Program { cpus: Some(CpuSet::single(cpu)), ..Program::new(name, ops) }
}

/// Computes and sleeps, much shorter than a slice.
fn sleeper(name: &str, cpu: usize) -> Program {
    let ops = vec![
        Op::Run { ns: 300_000 },
        Op::Sleep { ns: 50_000, random_pct: 0 },
        Op::Repeat { counter: 0, times: FOREVER, to: 0 },
        Op::Exit,
    ];
    Program { ops, ..hog(name, cpu) }
}

fn cgroup(name: &str, parent: Option<u32>, shares: u32) -> Cgroup {
    Cgroup::new(name, parent, shares)
}

/// CPU time of the first task of each program of that name.
pub fn ran(outcome: &Outcome, comm: &str) -> Vec<f64> {
    let texts = outcome.statistics.proc_sched.iter();
    let runtime = |text: &String| {
        let line = text.lines().find(|line| line.starts_with("se.sum_exec_runtime"));
        let value = line.and_then(|line| line.split_once(':')).expect("it has a run time").1;
        value.trim().parse::<f64>().expect("a number")
    };
    texts.filter(|text| text.starts_with(&format!("{comm} ("))).map(runtime).collect()
}

/// CPU time of the first tasks of all programs of that name.
fn ran_in_all(outcome: &Outcome, comm: &str) -> f64 {
    ran(outcome, comm).iter().sum()
}

/// Pairs that find other CPUs idle at each message, where no line but the load of their cgroup takes time: what they get
/// done in a session, to what they do in the root cgroup.
fn in_session_to_outside(kernel: &str, line_ns: u64) -> f64 {
    let rate = |workload| {
        let mut setup = Setup::new("zen3-2s-nps1", kernel, "baseline", workload);
        let costs = &mut setup.machine.costs;
        (costs.wakeup_lines, costs.rq_lock_lines, costs.balance_lines_per_cpu) = (0, 0, 0);
        costs.tcp_lines = BySide { write: 0, read: 0 };
        costs.cache_line_ns = ByDistance {
            smt: line_ns,
            cluster: None,
            llc: line_ns,
            package: line_ns,
            remote: line_ns,
        };
        figure(&setup.run(), "throughput")
    };
    let pairs = benchmark("netperf", "threads=160,warmup_ms=5,window_ms=10");
    rate(pairs.clone().in_session()) / rate(pairs)
}

/// Fails if all CPUs had that number for nothing, or if it took that where each writes it once in a millisecond.
#[test]
fn the_load_of_a_cgroup_comes_to_one_cpu_after_the_other() {
    let [free, dear] = [0, 400].map(|line_ns| in_session_to_outside("v6.6", line_ns));
    let limited = in_session_to_outside("v6.12", 400);
    assert!(free > 0.9 && dear < 0.6 && limited > 0.9, "{free}, {dear}, and {limited}");
}

/// Three tasks on CPU 1, each woken after 20 ms by one on another CPU, beside a hog there, in a session or in the root
/// cgroup; a line of its load takes 100 us, and no other takes time.
fn woken_beside_a_hog(in_session: bool, has_waits_for_load: bool) -> Outcome {
    let repeat = Op::Repeat { counter: 0, times: FOREVER, to: 0 };
    let on = |cpu, name, op| Program {
        cpus: Some(CpuSet::single(cpu)),
        ..Program::new(name, vec![op, repeat, Op::Exit])
    };
    let mut all = vec![main_of(7), hog("hog", 1)];
    for waker in 0..3 {
        let channel = Object::shared(waker);
        let pause = Op::Sleep { ns: 20_000_000, random_pct: 0 };
        let mut waker = on(2 + waker as usize, "waker", pause);
        waker.ops.insert(1, Op::Send { channel, bytes: 1 });
        all.extend([waker, on(1, "wakee", Op::Receive { channel, bytes: 1 })]);
    }
    let workload = programs(all, 500);
    let channels = vec![ChannelKind::KernelQueue; 3];
    let workload = Workload { channels, has_waits_for_load, ..workload };
    let workload = if in_session { workload.in_session() } else { workload };
    let mut setup = Setup::new("uma-8", "v6.0", "set:WAKEUP_PREEMPTION=0", workload);
    let costs = &mut setup.machine.costs;
    (costs.wakeup_lines, costs.rq_lock_lines, costs.channel_lines) = (0, 0, 0);
    costs.cache_line_ns.llc = 100_000;
    setup.run()
}

/// Fails if who takes a task off a run queue had the load for nothing, or if the lock of the queue were free while it
/// comes to who has put one there.
#[test]
fn the_load_of_a_cgroup_comes_to_whoever_changes_a_run_queue_under_its_lock() {
    let [inside, outside] = [true, false].map(|inside| woken_beside_a_hog(inside, false));
    let lost = (ran_in_all(&outside, "hog") - ran_in_all(&inside, "hog")) / 0.1;
    let waits = [&inside, &outside].map(|outcome| counter(outcome, "rq_lock_wait"));
    assert!(lost > 10.0 && waits[0] > waits[1] + 500_000.0, "{lost}, {waits:?}");
}

/// Fails if recorded tasks, whose computing has these waits in it, waited once more.
#[test]
fn the_load_of_a_cgroup_is_not_waited_for_again() {
    let [inside, outside] = [true, false].map(|inside| woken_beside_a_hog(inside, true));
    let lost = (ran_in_all(&outside, "hog") - ran_in_all(&inside, "hog")) / 0.1;
    assert!(lost.abs() < 0.5 && counter(&inside, "rq_lock_wait") == 0.0, "{lost}");
}

/// Two cgroups of `shares`, with one task and with three, on one CPU for a while.
fn two_cgroups(kernel: &str, shares: [u32; 2], kind: fn(&str, usize) -> Program) -> f64 {
    let mut all = vec![main_of(4), kind("one", 0).in_cgroup(0)];
    all.extend((0..3).map(|_| kind("three", 0).in_cgroup(1)));
    let mut workload = programs(all, 3_000);
    workload.cgroups = vec![cgroup("a", None, shares[0]), cgroup("b", None, shares[1])];
    let setup = Setup::new("pack:1 l3:1 core:2 pu:1", kernel, "baseline", workload);
    let (outcome, _) = setup.checked(100);
    ran_in_all(&outcome, "one") / ran_in_all(&outcome, "three")
}

/// Fails if tasks, and not their cgroups, had weights on the CPU: then it is 1 to 3.
#[test]
fn cgroups_share_a_cpu_by_their_shares() {
    for kernel in ["v3.10", "v5.3", "v6.0", "v6.12", "v6.12.117", "v6.18"] {
        for (shares, expected) in [([1024, 512], 2.0), ([1024, 1024], 1.0), ([512, 2048], 0.25)] {
            let ratio = two_cgroups(kernel, shares, hog) / expected;
            assert!((ratio - 1.0).abs() < 0.1, "{kernel}, {shares:?}: {ratio} of what is fair");
        }
    }
}

/// Fails if a cgroup whose tasks sleep now and then lost its place to one that is always there.
#[test]
fn sleeps_cost_a_cgroup_no_shares_while_it_has_other_tasks() {
    for kernel in ["v6.0", "v6.12", "v6.18"] {
        let ratio = two_cgroups(kernel, [1024, 1024], sleeper);
        // The one task sleeps a seventh of its time.
        assert!((0.7..1.05).contains(&ratio), "{kernel}: {ratio}");
    }
}

/// Fails if a level were skipped: 1/2 for a; of b's half, 1/4 for c and 3/4 for d.
#[test]
fn cgroups_in_cgroups_share_what_their_parent_gets() {
    for kernel in ["v3.10", "v6.0", "v6.12", "v6.18"] {
        let mut all = vec![main_of(4), hog("a", 0).in_cgroup(0)];
        all.extend([hog("c", 0).in_cgroup(2), hog("d", 0).in_cgroup(3), hog("d", 0).in_cgroup(3)]);
        let mut workload = programs(all, 4_000);
        workload.cgroups = vec![
            cgroup("a", None, 1024),
            cgroup("b", None, 1024),
            cgroup("c", Some(1), 256),
            cgroup("d", Some(1), 768),
        ];
        let setup = Setup::new("pack:1 l3:1 core:2 pu:1", kernel, "baseline", workload);
        let (outcome, _) = setup.checked(100);
        let total =
            ran_in_all(&outcome, "a") + ran_in_all(&outcome, "c") + ran_in_all(&outcome, "d");
        for (comm, share) in [("a", 0.5), ("c", 0.125), ("d", 0.375)] {
            let ratio = ran_in_all(&outcome, comm) / total / share;
            assert!((ratio - 1.0).abs() < 0.1, "{kernel}: {comm} had {ratio} of its share");
        }
    }
}

/// Fails if wakeups were compared as tasks: a wakee that is alone in its cgroup preempts the hogs
/// of another, however many there are.
#[test]
fn a_wakee_preempts_across_cgroups() {
    for kernel in ["v6.0", "v6.18"] {
        let waits = |together: bool| {
            let mut all = vec![main_of(5), sleeper("wakee", 0).in_cgroup(0)];
            all.extend((0..4).map(|_| hog("hog", 0).in_cgroup(u32::from(!together))));
            let mut workload = programs(all, 1_000);
            workload.cgroups = vec![cgroup("a", None, 1024), cgroup("b", None, 1024)];
            let setup = Setup::new("pack:1 l3:1 core:2 pu:1", kernel, "baseline", workload);
            ran_in_all(&setup.run(), "wakee")
        };
        let (apart, together) = (waits(false), waits(true));
        assert!(apart > 1.8 * together, "{kernel}: {apart} ms of its own, {together} ms of five");
    }
}

/// Puts every program but main in one of three cgroups, one of them inside another.
pub fn spread_over_cgroups(workload: Workload) -> Workload {
    let mut workload = workload;
    workload.cgroups =
        vec![cgroup("a", None, 1024), cgroup("b", Some(0), 512), cgroup("c", None, 2048)];
    for (program, at) in workload.programs.iter_mut().skip(1).zip(0_u32..) {
        program.cgroup = [Some(0), Some(1), Some(2), None][at as usize % 4];
    }
    workload
}

/// Fails if anything went out of step between the policy's queues and the simulator's, with
/// wakeups, balancing and delayed sleepers.
#[test]
fn nothing_is_lost_in_cgroups() {
    for kernel in ["v3.10", "v5.3", "v6.0", "v6.12", "v6.18"] {
        for machine in ["pack:2 l3:2 core:3 pu:2", "pack:1 l3:1 core:2 pu:1"] {
            let case = "groups=2,fds=8,loops=400,window_ms=30,warmup_ms=0";
            let workload = spread_over_cgroups(benchmark("hackbench", case));
            let (_, audit) = Setup::new(machine, kernel, "baseline", workload).checked(20);
            assert!(
                audit.checks > 100 && (audit.delayed > 0) == kernel.starts_with("v6.1"),
                "{kernel}: {audit:?}"
            );
        }
    }
}

#[test]
fn more_cgroups_or_levels_than_fit_are_refused() {
    let chain = |length: u32| (0..length).map(|at| cgroup("c", at.checked_sub(1), 1024)).collect();
    let many = |count| vec![cgroup("c", None, 1024); count];
    let run = |cgroups| {
        let mut workload = programs(vec![main_of(0)], 1);
        workload.cgroups = cgroups;
        let setup = Setup::new("pack:1 l3:1 core:2 pu:1", "v6.0", "baseline", workload);
        let Setup { machine, policy, workload, seed } = &setup;
        simulate(&Scenario { machine, policy, workload, seed: *seed }, None).err()
    };
    assert!(run(chain(8)).is_none() && run(many(255)).is_none());
    let orphan = vec![cgroup("c", Some(0), 1024)];
    for refused in [chain(9), many(256), orphan] {
        assert!(matches!(run(refused), Some(SimError::Cgroup { .. })));
    }
}

/// A child is in its parent's cgroup unless its program names one.
#[test]
fn children_are_in_the_cgroup_of_their_parent() {
    let fork = Op::Fork { program: 2, count: 3, base: 0, step: 0 };
    let parent = Program::new("parent", vec![fork, Op::Join, Op::Exit]).in_cgroup(0);
    let all = vec![main_of(1), parent, hog("child", 0)];
    let mut workload = programs(all, 2_000);
    workload.programs[0].ops.insert(0, Op::Fork { program: 3, count: 1, base: 0, step: 0 });
    workload.programs.push(hog("other", 0).in_cgroup(1));
    workload.cgroups = vec![cgroup("a", None, 1024), cgroup("b", None, 1024)];
    let (outcome, _) =
        Setup::new("pack:1 l3:1 core:2 pu:1", "v6.0", "baseline", workload).checked(100);
    // What is counted of a program is its first task.
    let ratio = 3.0 * ran_in_all(&outcome, "child") / ran_in_all(&outcome, "other");
    assert!((ratio - 1.0).abs() < 0.1, "three children of one cgroup had {ratio} of another's");
}

proptest! {
    #![proptest_config(config(60, 7))]

    /// Whatever tasks do, in whatever cgroups.
    #[test]
    fn any_workload_runs_in_cgroups(
        parts in prop::collection::vec(part(), 1..5),
        machine in prop::sample::select(&MACHINES[..]),
        kernel in kernel(),
        seed in any::<u64>(),
    ) {
        let workload = spread_over_cgroups(workload(&parts, 30));
        let setup = Setup { seed, ..Setup::new(machine, &kernel, "baseline", workload) };
        setup.checked(17);
        let (_, text) = setup.traced();
        parse(&text);
    }
}
