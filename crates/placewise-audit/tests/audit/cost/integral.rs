//! Time that tasks wait beside idle CPUs and behind whom, by hand and against a recomputation of
//! every interval.

use std::collections::BTreeMap;

use placewise_audit::cost::behind::Beside;
use placewise_audit::cost::idle_beside::IdleBeside;
use placewise_audit::{Action, Outcome, PrevState, TaskNumber};
use placewise_policy::{FIRST_TASK, State};
use proptest::prelude::*;

use super::world::World;

#[test]
fn each_waiting_task_counts_until_the_last_idle_cpu_is_gone() {
    let mut world = World::with_affinities(&[(8, vec![1, 2]), (9, vec![1, 2])]);
    world.running(1, "waker", 0);
    world.running(2, "other", 1);
    let (one, two) = (world.task(8, "one"), world.task(9, "two"));
    world.at(1_000).wake(0, one, 1, 1);
    world.at(2_000).wake(0, two, 1, 1);
    world.at(5_000);
    world.running(3, "third", 2);
    world.at(6_000).step(0, Action::Exit { task: one });
    let sum = world.report().idle_beside;
    assert_eq!(sum.waited_ns, 5_000 + 4_000);
    assert_eq!(sum.beside_idle_ns.same_llc, 4_000 + 3_000, "CPU 2 was idle until 5 us");
    assert_eq!(sum.beside_idle_ns.total(), 7_000);
    assert_eq!(sum.elapsed_ns, 4_000);
}

#[test]
fn the_nearest_idle_cpu_of_each_moment_counts() {
    let mut world = World::with_affinities(&[(9, vec![1, 2, 4, 8])]);
    world.running(1, "waker", 0);
    world.running(2, "other", 1);
    let wakee = world.task(9, "wakee");
    world.at(1_000).wake(0, wakee, 1, 1);
    world.at(2_000).running(3, "a", 2);
    world.at(4_000).running(4, "b", 4);
    world.at(8_000).running(5, "c", 8);
    world.at(16_000).idles(4);
    world.at(32_000).switch(1, PrevState::Asleep, wakee);
    world.at(64_000).step(0, Action::Exit { task: wakee });
    let sum = world.report().idle_beside;
    assert_eq!(sum.beside_idle_ns.same_llc, 1_000);
    assert_eq!(sum.beside_idle_ns.same_node, 2_000 + 16_000);
    assert_eq!(sum.beside_idle_ns.other_node, 4_000);
    assert_eq!(sum.waited_ns, 31_000);
}

#[test]
fn waiting_for_an_idle_cpu_to_switch_is_not_waiting_behind_another() {
    let mut world = World::new();
    world.running(1, "waker", 0);
    let wakee = world.task(2, "wakee");
    world.at(1_000).wake(0, wakee, 1, 1);
    world.at(5_000).switch(1, PrevState::Runnable, wakee);
    assert_eq!(world.report().idle_beside, IdleBeside::default());
}

/// One step, made from the state that it finds.
#[derive(Clone, Debug)]
enum Move {
    Wake {
        from: u32,
        task: usize,
        target: u32,
        arrives: bool,
    },
    Arrive {
        task: usize,
    },
    Switch {
        cpu: u32,
        pick: usize,
        prev_state: PrevState,
    },
    /// As after a gap: whatever the task did before, it runs here.
    Running {
        cpu: u32,
        task: usize,
    },
    SwitchTo {
        cpu: u32,
        task: usize,
    },
    Migrate {
        task: usize,
        to: u32,
    },
    Forget {
        task: usize,
    },
}

const NR_CPUS: u32 = 16;
const NR_TASKS: usize = 24;

fn prev_state() -> impl Strategy<Value = PrevState> {
    prop_oneof![
        Just(PrevState::Runnable),
        Just(PrevState::Asleep),
        Just(PrevState::Stopped),
        Just(PrevState::Dead)
    ]
}

fn a_move() -> impl Strategy<Value = Move> {
    let (cpu, task) = (|| 0..NR_CPUS, || 0..NR_TASKS);
    prop_oneof![
        8 => (cpu(), task(), cpu(), any::<bool>()).prop_map(|(from, task, target, arrives)| {
            Move::Wake { from, task, target, arrives }
        }),
        3 => task().prop_map(|task| Move::Arrive { task }),
        8 => (cpu(), task(), prev_state())
            .prop_map(|(cpu, pick, prev_state)| Move::Switch { cpu, pick, prev_state }),
        1 => (cpu(), task()).prop_map(|(cpu, task)| Move::Running { cpu, task }),
        1 => (cpu(), task()).prop_map(|(cpu, task)| Move::SwitchTo { cpu, task }),
        3 => (task(), cpu()).prop_map(|(task, to)| Move::Migrate { task, to }),
        1 => task().prop_map(|task| Move::Forget { task }),
    ]
}

/// The tasks that wait behind another, with the CPU and the affinity of each.
type Waiters = BTreeMap<TaskNumber, (u32, u64)>;

fn waiters(world: &World, tasks: &[TaskNumber], before: &Waiters) -> Waiters {
    let state = world.state();
    let waits = |&task: &TaskNumber| {
        let entry = &state.task[task as usize];
        let current = state.rq[usize::from(entry.cpu)].curr;
        entry.on_rq != 0 && entry.delayed == 0 && current != task && current >= FIRST_TASK
    };
    let wait = |task: TaskNumber| {
        let entry = &state.task[task as usize];
        let cpu = u32::from(entry.cpu);
        // The affinity of a wait is that at its beginning.
        let begun = before.get(&task).filter(|(before, _)| *before == cpu);
        (task, begun.copied().unwrap_or((cpu, entry.cpus_allowed.bits[0])))
    };
    tasks.iter().copied().filter(waits).map(wait).collect()
}

/// By the names of who waits and who runs there.
type Pairs = BTreeMap<(String, String), Beside>;

/// Sums the interval from one step to the next up, pair by pair.
fn add_pairs(pairs: &mut Pairs, world: &World, waiters: &Waiters, idle: u64, ns: u64) {
    for (&task, &(cpu, allowed)) in waiters.iter().filter(|_| ns > 0) {
        let cpus = &world.machine.cpus;
        let here = cpus[cpu as usize];
        let usable = || (0..16).filter(|cpu| idle & allowed & 1 << cpu != 0);
        let runner = world.state().rq[cpu as usize].curr;
        let name = |task| world.tasks.name_of(task).to_owned();
        let beside = pairs.entry((name(task), name(runner))).or_default();
        if usable().any(|cpu| cpus[cpu].llc == here.llc) {
            beside.idle_ns.same_llc += ns;
        } else if usable().any(|cpu| cpus[cpu].node == here.node) {
            beside.idle_ns.same_node += ns;
        } else if usable().next().is_some() {
            beside.idle_ns.other_node += ns;
        } else if idle & 0xffff != 0 {
            beside.forbidden_ns += ns;
        } else {
            beside.none_idle_ns += ns;
        }
    }
}

fn reported(world: &mut World) -> (IdleBeside, Pairs) {
    let report = world.report();
    let mut pairs = Pairs::new();
    for pair in report.behind {
        assert_eq!(pair.waited_ns, pair.beside.total());
        pairs.entry((pair.task, pair.behind)).or_default().add(&pair.beside);
    }
    (report.idle_beside, pairs)
}

/// Sums the interval from one step to the next up.
fn add(sum: &mut IdleBeside, world: &World, waiters: &Waiters, idle: u64, ns: u64) {
    let mut any = false;
    for &(cpu, allowed) in waiters.values() {
        let cpus = &world.machine.cpus;
        let here = cpus[cpu as usize];
        let usable = || (0..16).filter(|cpu| idle & allowed & 1 << cpu != 0);
        sum.waited_ns += ns;
        if usable().any(|cpu| cpus[cpu].llc == here.llc) {
            sum.beside_idle_ns.same_llc += ns;
        } else if usable().any(|cpu| cpus[cpu].node == here.node) {
            sum.beside_idle_ns.same_node += ns;
        } else if usable().next().is_some() {
            sum.beside_idle_ns.other_node += ns;
        }
        any |= usable().next().is_some();
    }
    sum.elapsed_ns += if any { ns } else { 0 };
}

fn perform(world: &mut World, tasks: &[TaskNumber], step: &Move) {
    let state = world.state();
    let on_rq = |state: &State, task: usize| state.task[tasks[task] as usize].on_rq != 0;
    let cpu_of = |state: &State, task: usize| u32::from(state.task[tasks[task] as usize].cpu);
    match *step {
        Move::Wake { from, task, target, arrives } if !on_rq(state, task) => {
            let (prev_cpu, task) = (cpu_of(state, task), tasks[task]);
            world.waking(from, task, prev_cpu, target);
            if arrives {
                world.wakeup(from, task, target);
            }
        }
        Move::Wake { from, task, .. } => {
            let cpu = cpu_of(state, task);
            let outcome = Outcome { cpu, migrated: false, woken_by: Some(from) };
            let (task, outcome) = (tasks[task], Some(outcome));
            world.step(from, Action::Waking { task, prev_cpu: cpu, outcome });
        }
        Move::Arrive { task } => {
            let cpu = cpu_of(state, task);
            world.wakeup(cpu, tasks[task], cpu);
        }
        Move::Switch { cpu, pick, prev_state } => {
            let curr = state.rq[cpu as usize].curr;
            let here = |task: &usize| {
                on_rq(state, *task) && cpu_of(state, *task) == cpu && tasks[*task] != curr
            };
            let queued: Vec<usize> = (0..tasks.len()).filter(here).collect();
            let next = match queued.is_empty() {
                true => cpu,
                false => tasks[queued[pick % queued.len()]],
            };
            world.switch(cpu, prev_state, next);
        }
        Move::Running { cpu, task } => {
            world.step(cpu, Action::Running { task: tasks[task] });
        }
        Move::SwitchTo { cpu, task } => world.switch(cpu, PrevState::Runnable, tasks[task]),
        Move::Migrate { task, to } => {
            let from = cpu_of(state, task);
            world.step(to, Action::Migrate { task: tasks[task], from, to, placement: false });
        }
        Move::Forget { task } => {
            world.step(0, Action::Forgotten { task: tasks[task] });
        }
    }
}

proptest! {
    /// The sums that are kept up to date are those of looking at everything after every step.
    #[test]
    fn the_integral_is_exact(
        affinities in prop::collection::vec(1..u16::MAX, NR_TASKS / 2),
        shared in 1..u16::MAX,
        // One that takes sleepers off their queue, and one that may leave them there.
        kernel in prop::sample::select(vec!["v6.0", "v6.12"]),
        moves in prop::collection::vec((a_move(), 0..5_u64), 1..300),
    ) {
        // Half of the tasks may run everywhere, some have affinities of their own, some share one.
        let restricted: Vec<(u32, Vec<usize>)> = affinities
            .iter()
            .enumerate()
            .map(|(at, own)| {
                let mask = if at % 2 == 0 { shared } else { *own };
                (1_000 + at as u32, (0..16).filter(|cpu| mask >> cpu & 1 != 0).collect())
            })
            .collect();
        let mut world = World::of_kernel(kernel, &restricted);
        let tasks: Vec<TaskNumber> =
            (0..NR_TASKS).map(|at| world.task(1_000 + at as u32, ["a", "b", "c"][at % 3])).collect();
        let (mut expected, mut pairs) = (IdleBeside::default(), Pairs::new());
        let mut waiting = Waiters::new();
        for (step, ns) in &moves {
            let idle = world.state().root.idle.bits[0];
            add(&mut expected, &world, &waiting, idle, *ns);
            add_pairs(&mut pairs, &world, &waiting, idle, *ns);
            world.now += ns;
            perform(&mut world, &tasks, step);
            waiting = waiters(&world, &tasks, &waiting);
        }
        prop_assert_eq!(reported(&mut world), (expected, pairs));
    }
}
