//! No CPU stays idle beside a task that waits and may run there, for longer than the balancer takes
//! (`MissedIdle::allowed`), and where Linux itself leaves CPUs idle for longer: the findings below.

use placewise_machine::{CpuSet, Machine};
use placewise_policy::{BALANCE_LEGACY, Policy, kernel_names};
use placewise_sim::{MissedIdle, Scenario, simulate_watched};
use placewise_workload::program::{
    Cgroup, Change, FOREVER, Object, Op, Program, Quota, Setting, Workload,
};
use proptest::prelude::*;

use crate::common::{MS, Setup, counter, programs};
use crate::properties::{Part, config, kernel_and_policy, part, workload};

const GATE: Object = Object::shared(0);

/// Up to 4 nodes, 8 LLCs, 8 cores in an LLC and 32 CPUs.
fn machine() -> impl Strategy<Value = String> {
    let shape = (1..=4_u32, 1..=4_u32, 1..=8_u32, 1..=2_u32);
    let fits = |&(packs, llcs, cores, threads): &(u32, u32, u32, u32)| {
        packs * llcs <= 8 && (2..=32).contains(&(packs * llcs * cores * threads))
    };
    shape.prop_filter("8 LLCs and 32 CPUs", fits).prop_map(|(packs, llcs, cores, threads)| {
        format!("pack:{packs} l3:{llcs} core:{cores} pu:{threads}")
    })
}

/// Tasks that do the same.
#[derive(Clone, Debug)]
struct Crowd {
    tasks: u32,
    /// They sleep for this long, or wait at a gate that opens for all.
    starts_ns: Option<u64>,
    run_ns: u64,
    sleep_ns: u64,
    /// How often, if not for ever.
    times: Option<u32>,
    nice: i8,
    /// Two nodes, perhaps the same, if not all.
    nodes: Option<[usize; 2]>,
    cgroup: Option<u32>,
}

/// From `least` on, up to a thousand times as long.
fn duration(least: u64) -> impl Strategy<Value = u64> {
    (0..10_u32, 1024..2048_u64)
        .prop_map(move |(doublings, part)| (least << doublings) * part / 1024)
}

fn crowd() -> impl Strategy<Value = Crowd> {
    (
        1..=12_u32,
        prop::option::of(duration(20_000)),
        duration(20_000),
        prop_oneof![Just(0), duration(50_000)],
        prop::option::of(1..50_u32),
        prop_oneof![3 => Just(0_i8), 1 => -20..=19_i8],
        prop::option::weighted(0.3, [0..4_usize, 0..4]),
        prop::option::weighted(0.6, 0..3_u32),
    )
        .prop_map(|(tasks, starts_ns, run_ns, sleep_ns, times, nice, nodes, cgroup)| Crowd {
            tasks,
            starts_ns,
            run_ns,
            sleep_ns,
            times,
            nice,
            nodes,
            cgroup,
        })
}

impl Crowd {
    fn program(&self, machine: &Machine) -> Program {
        let start = match self.starts_ns {
            Some(ns) => Op::Sleep { ns, random_pct: 0 },
            None => Op::GateWait { gate: GATE },
        };
        let mut ops = vec![start, Op::Run { ns: self.run_ns }];
        if self.sleep_ns > 0 {
            ops.push(Op::Sleep { ns: self.sleep_ns, random_pct: 50 });
        }
        let times = self.times.unwrap_or(FOREVER);
        ops.extend([Op::Repeat { counter: 0, times, to: 1 }, Op::Exit]);
        Program {
            nice: self.nice,
            cpus: self.nodes.map(|nodes| cpus_of(machine, nodes)),
            cgroup: self.cgroup,
            ..Program::new("crowd", ops)
        }
    }
}

fn cpus_of(machine: &Machine, nodes: [usize; 2]) -> CpuSet {
    let nodes = nodes.map(|node| node % machine.nr_nodes());
    let of_nodes = |&cpu: &usize| nodes.contains(&usize::from(machine.cpus[cpu].node));
    (0..machine.cpus.len()).filter(of_nodes).collect()
}

/// A random workload with crowds, who may pass the gate after 20 ms.
fn with_crowds(workload: Workload, crowds: &[Crowd], machine: &Machine) -> Workload {
    let mut workload = workload;
    workload.gates = 1;
    let (a, b) = (Cgroup::new("a", None, 1024), Cgroup::new("b", Some(0), 512));
    workload.cgroups = vec![a, b, Cgroup::new("c", None, 2048)];
    let first = workload.programs.len() as u32;
    workload.programs.extend(crowds.iter().map(|crowd| crowd.program(machine)));
    let forks = crowds.iter().zip(first..);
    let forks = forks.map(|(crowd, program)| fork(program, crowd.tasks));
    let opens = [Op::Sleep { ns: 20 * MS, random_pct: 0 }, Op::GateOpen { gate: GATE }];
    let main = &mut workload.programs[0].ops;
    let join = main.len() - 2;
    main.splice(join..join, forks.chain(opens));
    workload
}

fn fork(program: u32, count: u32) -> Op {
    Op::Fork { program, count, base: 0, step: 0 }
}

fn watched(setup: &Setup) -> Vec<MissedIdle> {
    let Setup { machine, policy, workload, seed } = setup;
    let scenario = Scenario { machine, policy, workload, seed: *seed };
    simulate_watched(&scenario).expect("the run ends well")
}

proptest! {
    #![proptest_config(config(75, 11))]

    /// Fails if some idle CPU is left beside a waiting task for longer than the passes of the balancer
    /// take that are due by then. The balancer before the rework compares loads, so that it is only
    /// asked about tasks of the same weight.
    #[test]
    fn no_cpu_idles_beside_a_waiting_task(
        machine in machine(),
        (kernel, policy) in kernel_and_policy()
            .prop_filter("hints hold tasks back", |(_, policy)| !policy.starts_with("hint")),
        parts in prop::collection::vec(part(), 0..2),
        crowds in prop::collection::vec(crowd(), 1..6),
        seed in any::<u64>(),
    ) {
        let by_load = compares_loads(&kernel, &policy);
        let parts: Vec<Part> = parts.into_iter().map(Part::unpinned).collect();
        let parts = if by_load { &[] } else { &parts[..] };
        let mut crowds = crowds;
        for crowd in crowds.iter_mut().filter(|_| by_load) {
            (crowd.nice, crowd.cgroup) = (0, None);
        }
        let built = placewise_machine::load(&machine).expect("the machine is sound");
        let workload = with_crowds(workload(parts, 600), &crowds, &built);
        let setup = Setup { seed, ..Setup::new(&machine, &kernel, &policy, workload) };
        for missed in watched(&setup) {
            prop_assert!(missed.lasted <= missed.allowed, "{missed:?}");
        }
    }
}

fn compares_loads(kernel: &str, policy: &str) -> bool {
    let policy = Policy::parse(kernel, policy).expect("the policy is known");
    policy.profile.balance == BALANCE_LEGACY
}

fn for_ever(before: &[Op]) -> Vec<Op> {
    let to = before.len() as u32;
    let after = [Op::Run { ns: MS }, Op::Repeat { counter: 0, times: FOREVER, to }, Op::Exit];
    before.iter().copied().chain(after).collect()
}

fn confine(task: &str, at_ms: u64, cpus: CpuSet) -> Change {
    Change { at: at_ms * MS, to: Setting::Affinity { task: task.to_string(), cpus } }
}

/// Tasks that may run anywhere, but have slept in the LLC where all are woken at 40 ms: the idle
/// CPUs of the other one have been idle for long, and are not chosen for any of them.
fn woken_in_one_llc(machine: &Machine, tasks: u32) -> Workload {
    let all_cpus = CpuSet::first_n(machine.cpus.len());
    let llc = all_cpus.iter().filter(|&cpu| machine.cpus[cpu].llc == 0).collect();
    let pause = Op::Sleep { ns: 40 * MS, random_pct: 0 };
    let main = vec![fork(1, tasks), pause, Op::GateOpen { gate: GATE }, Op::Join, Op::Exit];
    let tasks = vec![
        Program::new("main", main),
        Program::new("hog", for_ever(&[Op::GateWait { gate: GATE }])),
    ];
    let changes =
        vec![confine("main", 0, llc), confine("hog", 0, llc), confine("hog", 30, all_cpus)];
    Workload { gates: 1, changes, ..programs(tasks, 600) }
}

/// Fails if idle CPUs without a tick are not balanced for, or if balancing finds no source or nothing
/// to move: newly-idle balance cannot help here. Before the rework the tasks, which have slept, take
/// longer in the LLC where they arrive: its CPUs have little utilisation yet (see the quota below).
#[test]
fn idle_cpus_take_what_is_woken_in_another_llc() {
    let llc_cpus = 4;
    for (machine, kernel, tasks) in all_of(
        &["pack:1 l3:2 core:4 pu:1", "pack:2 l3:1 core:4 pu:1", "pack:1 l3:2 core:2 pu:2"],
        &[llc_cpus + 1, llc_cpus + 2, 2 * llc_cpus],
    ) {
        let built = placewise_machine::load(machine).expect("the machine is sound");
        let workload = woken_in_one_llc(&built, tasks);
        let all = watched(&Setup::new(machine, kernel, "baseline", workload));
        let context = format!("{tasks} tasks on {machine}, {kernel}: {all:?}");
        let llc = |cpu: u32| built.cpus[cpu as usize].llc;
        let across = |missed: &MissedIdle| llc(missed.busy_cpu) != llc(missed.idle_cpu);
        assert!(all.iter().any(across), "none had to wait: {context}");
        let by_load = compares_loads(kernel, "baseline");
        let mut asked = all.iter().filter(|missed| across(missed) || !by_load);
        assert!(asked.all(|missed| missed.lasted <= missed.allowed), "{context}");
    }
}

/// Every machine with every kernel and number of tasks.
fn all_of<'a>(
    machines: &'a [&'a str],
    tasks: &'a [u32],
) -> impl Iterator<Item = (&'a str, &'static str, u32)> + 'a {
    machines.iter().flat_map(move |&machine| {
        let with = move |kernel| tasks.iter().map(move |&tasks| (machine, kernel, tasks));
        kernel_names().into_iter().flat_map(with)
    })
}

/// Fails without active balance: two tasks that run on the siblings of one core do not wait, and yet
/// each has half a core while another core idles.
#[test]
fn a_core_does_not_idle_beside_siblings_that_share() {
    for kernel in kernel_names() {
        let tasks = vec![
            Program::new("main", vec![fork(1, 2), Op::Join, Op::Exit]),
            Program::new("hog", for_ever(&[])),
        ];
        let changes =
            vec![confine("hog", 0, CpuSet::first_n(2)), confine("hog", 30, CpuSet::first_n(4))];
        let workload = Workload { changes, ..programs(tasks, 300) };
        let setup = Setup::new("pack:1 l3:1 core:2 pu:2", kernel, "baseline", workload);
        let outcome = setup.run();
        assert_eq!(counter(&outcome, "migrations_active"), 1.0, "{kernel}");
    }
}

/// Threads of one cgroup that are woken together beside a burner in another.
fn threads_beside_a_burner() -> Workload {
    let pause = Op::Sleep { ns: 30 * MS, random_pct: 0 };
    const THREADS: u32 = 16;
    let wait = Op::Barrier { barrier: Object::shared(0), spin_ns: 0 };
    let main = vec![fork(1, 1), fork(2, THREADS), pause, wait, Op::Join, Op::Exit];
    let all = vec![
        Program::new("main", main),
        Program::new("burner", for_ever(&[])).in_cgroup(0),
        Program::new("thread", for_ever(&[wait])).in_cgroup(1),
    ];
    let cgroups = vec![Cgroup::new("burner", None, 1024), Cgroup::new("threads", None, 1024)];
    Workload { barriers: vec![THREADS + 1], cgroups, ..programs(all, 1_000) }
}

/// Finding: before the rework loads are compared, and that of a burner in a cgroup of its own is
/// that of all threads of another. CPUs of its node idle beside threads that wait.
#[test]
fn loads_of_cgroups_leave_cpus_idle_until_the_rework() {
    let setup =
        |policy| Setup::new("pack:4 l3:1 core:8 pu:1", "v5.3", policy, threads_beside_a_burner());
    let before = watched(&setup("baseline"));
    assert!(before.iter().any(|missed| missed.lasted > 2 * missed.allowed), "{before:?}");
    let after = watched(&setup("lb-rework"));
    assert!(after.iter().all(|missed| missed.lasted <= missed.allowed), "{after:?}");
}

/// Free tasks on two cores. One CPU has `pinned` tasks, and its sibling one that ends after 50 ms.
fn beside_pinned_tasks(pinned: u32) -> Workload {
    let on = |cpu: usize, program: Program| Program { cpus: Some(CpuSet::single(cpu)), ..program };
    let main = vec![fork(1, 1), fork(2, pinned), fork(3, 6), Op::Join, Op::Exit];
    let all = vec![
        on(0, Program::new("main", main)),
        on(2, Program::new("seat", vec![Op::Run { ns: 50 * MS }, Op::Exit])),
        on(3, Program::new("pinned", for_ever(&[]))),
        Program { cpus: Some(CpuSet::first_n(4)), ..Program::new("free", for_ever(&[])) },
    ];
    programs(all, 2_000)
}

/// Finding: tasks that are pinned to one CPU make its core look overloaded, so that the idle
/// sibling takes nothing from cores with less load, though tasks wait there.
#[test]
fn pinned_tasks_leave_their_sibling_idle() {
    for kernel in ["v5.3", "v5.10", "v6.0", "v6.12", "v6.18", "v7.3"] {
        let all = |pinned| {
            let workload = beside_pinned_tasks(pinned);
            watched(&Setup::new("pack:1 l3:1 core:2 pu:2", kernel, "baseline", workload))
        };
        let many = all(12);
        let to_the_end = |missed: &MissedIdle| missed.idle_cpu == 2 && missed.lasted > 1_900 * MS;
        assert!(many.iter().any(to_the_end), "{kernel}: {many:?}");
        let one = all(1);
        assert!(one.iter().all(|missed| missed.lasted <= 10 * MS), "{kernel}: {one:?}");
    }
}

/// Hogs that were confined to one of two CPUs, where they get no more than the quota, and then freed.
fn freed_under_a_quota(quota: Option<Quota>) -> Workload {
    let tasks = vec![
        Program::new("main", vec![fork(1, 3), Op::Join, Op::Exit]),
        Program::new("hog", for_ever(&[])).in_cgroup(0),
    ];
    let changes =
        vec![confine("hog", 0, CpuSet::single(0)), confine("hog", 320, CpuSet::first_n(2))];
    let cgroups = vec![Cgroup { quota, ..Cgroup::new("hogs", None, 1024) }];
    Workload { changes, cgroups, ..programs(tasks, 2_000) }
}

/// Finding: before the rework a CPU with tasks that wait gives none to an idle neighbour until its own
/// utilisation comes near its capacity. A quota can keep it from that for ever.
#[test]
fn a_quota_leaves_the_neighbour_idle_until_the_rework() {
    let quota = |ms| Some(Quota { quota: ms * MS, period: 10 * MS });
    for kernel in ["v4.15", "v5.3"] {
        let pulled = |policy, quota| {
            let workload = freed_under_a_quota(quota);
            let outcome = Setup::new("pack:1 l3:1 core:2 pu:1", kernel, policy, workload).run();
            let moved = |cause| counter(&outcome, &format!("migrations_{cause}"));
            ["periodic", "nohz", "newly_idle", "active"].into_iter().map(moved).sum::<f64>() > 0.0
        };
        assert!(!pulled("baseline", quota(5)), "{kernel}: half a CPU");
        assert!(pulled("lb-rework", quota(5)), "{kernel}: the rework counts tasks");
        assert!(pulled("baseline", quota(9)), "{kernel}: nearly a CPU");
        assert!(pulled("baseline", None), "{kernel}: no quota");
    }
}
