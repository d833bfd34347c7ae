//! No CPU stays idle beside a task that waits and may run there, for longer than the balancer takes
//! (`MissedIdle::allowed`), and where Linux itself leaves CPUs idle for longer: the findings below.

use placewise_machine::{CpuSet, Machine};
use placewise_policy::{BALANCE_LEGACY, Policy};
use placewise_sim::{MissedIdle, Scenario, simulate_watched};
use placewise_workload::program::{Cgroup, FOREVER, Object, Op, Program, Workload};
use proptest::prelude::*;

use crate::common::{MS, Setup, programs};
use crate::properties::{Part, config, kernel, part, policy, workload};

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
    #![proptest_config(config(150, 11))]

    /// Fails if some idle CPU is left beside a waiting task for longer than the passes of the balancer
    /// take that are due by then. The balancer before the rework compares loads, so that it is only
    /// asked about tasks of the same weight.
    #[test]
    fn no_cpu_idles_beside_a_waiting_task(
        machine in machine(),
        kernel in kernel(),
        policy in policy().prop_filter("hints hold tasks back", |name| !name.starts_with("hint")),
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

/// Threads of one cgroup that are woken together beside a burner in another.
fn threads_beside_a_burner() -> Workload {
    let pause = Op::Sleep { ns: 30 * MS, random_pct: 0 };
    let main =
        vec![fork(1, 1), fork(2, 16), pause, Op::GateOpen { gate: GATE }, Op::Join, Op::Exit];
    let all = vec![
        Program::new("main", main),
        Program::new("burner", for_ever(&[])).in_cgroup(0),
        Program::new("thread", for_ever(&[Op::GateWait { gate: GATE }])).in_cgroup(1),
    ];
    let cgroups = vec![Cgroup::new("burner", None, 1024), Cgroup::new("threads", None, 1024)];
    Workload { gates: 1, cgroups, ..programs(all, 1_000) }
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
