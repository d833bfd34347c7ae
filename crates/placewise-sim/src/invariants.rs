//! What must hold between any two events, for tests.
//!
//! [`simulate_checked`] runs a scenario as [`simulate`](crate::simulate) does
//! and panics with the reason as soon as the state contradicts itself: a task
//! in two places or in none, counts of the policy that are not those of the
//! engine's queues, an idle mask that is not what it stands for, averages that
//! were added twice, CPU time that was lost or made. An ordinary run does not
//! pay for it: the observer it runs with is empty.
//!
//! Limits: util_est and the scan limits are not recomputed; averages are
//! compared within a tolerance, for the kernel's own arithmetic rounds them.

use std::collections::BTreeMap;

use placewise_machine::Machine;
use placewise_policy::*;
use placewise_trace::Sink;
use placewise_workload::program::Op;

use crate::cpu::{Activity, Interrupt};
use crate::engine::{Engine, Slot};
use crate::event_queue::Time;
use crate::task::TaskState;
use crate::{Outcome, Scenario, SimError};
use placewise_policy::topology::BOOT;

/// What was seen on the way.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Audit {
    /// How often the whole state was checked.
    pub checks: u64,
    /// How often a task was put to sleep that stayed queued.
    pub delayed: u64,
}

/// Runs a scenario and checks its state after every `every`th event and at the end.
pub fn simulate_checked<'r>(
    scenario: &Scenario<'r>,
    trace: Option<&'r mut dyn Sink>,
    every: u64,
) -> Result<(Outcome, Audit), SimError> {
    crate::check(scenario)?;
    let Scenario { machine, policy, workload, seed } = *scenario;
    let mut engine = Engine::new(machine, policy, workload, seed, trace)?;
    let mut auditor = Auditor::new(machine);
    let outcome = engine.run_observed(|engine| {
        auditor.observe(engine);
        if engine.measurement.events % every == 0 {
            auditor.check(engine);
            check_pending(engine);
        }
    })?;
    // The event that ended the run is in the queue no more.
    auditor.check(&engine);
    Ok((outcome, auditor.audit))
}

/// Follows a run from event to event.
struct Auditor {
    audit: Audit,
    /// The last event, and since then the state of every CPU.
    last: Time,
    spent: Vec<Spent>,
    states: Vec<Spending>,
    was_delayed: Vec<bool>,
    departures: Departures,
}

/// What a CPU's time goes to.
#[derive(Clone, Copy)]
enum Spending {
    Task,
    NewIdle,
    Idle,
    IdleExit,
    /// The idle task does something.
    Overhead,
}

#[derive(Clone, Copy, Default)]
struct Spent {
    task: Time,
    newidle: Time,
    idle: Time,
    idle_exit: Time,
    overhead: Time,
}

impl Auditor {
    fn new(machine: &Machine) -> Self {
        let nr_cpus = machine.cpus.len();
        let mut states = vec![Spending::Idle; nr_cpus];
        // The first task is on its way before the first event.
        if let Some(first) = machine.online().first() {
            states[first] = Spending::IdleExit;
        }
        Auditor {
            audit: Audit::default(),
            last: BOOT,
            spent: vec![Spent::default(); nr_cpus],
            states,
            was_delayed: Vec::new(),
            departures: Departures::default(),
        }
    }

    fn observe(&mut self, engine: &Engine) {
        assert!(engine.now >= self.last, "time runs backwards");
        self.spend(engine);
        self.departures.observe(engine);
        let tasks = engine.next_task as usize;
        self.was_delayed.resize(tasks, false);
        for task in FIRST_TASK..engine.next_task {
            let delayed = engine.policy.task[task as usize].delayed != 0;
            let begins = delayed && !self.was_delayed[task as usize];
            self.audit.delayed += u64::from(begins);
            self.was_delayed[task as usize] = delayed;
        }
    }

    fn spend(&mut self, engine: &Engine) {
        let elapsed = engine.now - self.last;
        self.last = engine.now;
        for (cpu, (spent, state)) in self.spent.iter_mut().zip(&mut self.states).enumerate() {
            *match state {
                Spending::Task => &mut spent.task,
                Spending::NewIdle => &mut spent.newidle,
                Spending::Idle => &mut spent.idle,
                Spending::IdleExit => &mut spent.idle_exit,
                Spending::Overhead => &mut spent.overhead,
            } += elapsed;
            *state = spending(engine, cpu as u32);
        }
    }

    fn check(&mut self, engine: &Engine) {
        self.audit.checks += 1;
        for task in FIRST_TASK..engine.next_task {
            check_task(engine, task);
        }
        for cpu in engine.machine.online().iter() {
            check_queue(engine, cpu as u32);
            check_recency(engine, cpu as u32);
            check_masks(engine, cpu as u32);
            for group in 0..=engine.policy.root.nr_task_groups {
                let left = self.departures.left_on(engine, group, cpu as u32);
                check_averages(engine, group, cpu as u32, left);
            }
            self.check_time(engine, cpu);
        }
        check_llcs(engine);
        check_total_time(engine);
    }

    /// Run time, idle time and the kernel's overhead are all the time there is.
    fn check_time(&self, engine: &Engine, cpu: usize) {
        // The last event's state still holds at the end of the window.
        let mut spent = self.spent[cpu];
        let since = engine.now - self.last;
        match self.states[cpu] {
            Spending::Task => spent.task += since,
            Spending::NewIdle => spent.newidle += since,
            Spending::Idle => spent.idle += since,
            Spending::IdleExit => spent.idle_exit += since,
            Spending::Overhead => spent.overhead += since,
        }
        let Spent { task, newidle, idle, idle_exit, overhead } = spent;
        let elapsed = engine.now - BOOT;
        assert_eq!(task + newidle + idle + idle_exit + overhead, elapsed, "CPU {cpu}");

        let here = &engine.cpus[cpu];
        let run = here.counters.run_ns + unaccounted(engine, cpu as u32);
        assert!(
            (task..=task + newidle).contains(&run),
            "CPU {cpu} accounts {run} ns to tasks, which had {task} ns, and {newidle} ns of \
             newly-idle balance, by {}",
            engine.now
        );
        let rests = engine.running(cpu as u32).is_none();
        let resting = if rests { engine.now - here.idle_task_since } else { 0 };
        let counted = here.counters.idle_ns + resting;
        let idle = idle + idle_exit + overhead;
        assert!(
            (idle..=idle + newidle + BOOT).contains(&counted),
            "CPU {cpu} counts {counted} ns to its idle task, which had {idle} ns, and {newidle} ns \
             of newly-idle balance, by {}",
            engine.now
        );
    }
}

fn spending(engine: &Engine, cpu: u32) -> Spending {
    match engine.cpus[cpu as usize].activity {
        Activity::Idle => Spending::Idle,
        Activity::IdleExit => Spending::IdleExit,
        Activity::NewIdle => Spending::NewIdle,
        _ if engine.running(cpu).is_some() => Spending::Task,
        _ => Spending::Overhead,
    }
}

/// Run time of the current task since it was accounted last.
fn unaccounted(engine: &Engine, cpu: u32) -> Time {
    match engine.running(cpu) {
        Some(task) if engine.is_queued(task) => {
            engine.now - engine.policy.task[task as usize].exec_start
        }
        _ => 0,
    }
}

fn has(mask: &Cpumask, cpu: u32) -> bool {
    mask.bits[cpu as usize / 64] >> (cpu % 64) & 1 != 0
}

/// Where a task is, by the engine and by the policy.
fn check_task(engine: &Engine, task: u32) {
    let state = &engine.tasks[task as usize];
    let record = &engine.policy.task[task as usize];
    let cpu = u32::from(record.cpu);
    let now = engine.now;
    let waiting = (0..engine.cpus.len() as u32)
        .flat_map(|cpu| waiting_on(engine, cpu))
        .filter(|&other| other == task)
        .count();
    let current = (0..engine.cpus.len() as u32).filter(|&cpu| engine.current(cpu) == task).count();
    let leaving = engine.cpus.iter().filter(|cpu| cpu.prev == Some(task)).count();
    assert!(current <= 1 && leaving <= 1, "task {task} is on several CPUs at {now}");
    assert_eq!(
        state.on_cpu,
        current + leaving > 0,
        "task {task} at {now}: is it on a CPU? current of {current}, leaving {leaving}"
    );

    let in_flight = in_flight(engine, task);
    let queued = record.on_rq != 0;
    let (may_queue, may_fly) = match state.state {
        TaskState::Runnable => (queued, false),
        TaskState::Blocked => (queued == (record.delayed != 0), false),
        TaskState::Waking => (!queued, true),
        TaskState::Exited => (!queued, false),
        TaskState::Unused => (false, false),
    };
    assert!(
        may_queue,
        "task {task} at {now} is {:?}: queued {queued}, delayed {}",
        state.state, record.delayed
    );
    assert_eq!(in_flight, usize::from(may_fly), "task {task} at {now}: wakeups under way");
    let runs = queued && current == 1 && !engine.cpus[cpu as usize].current_waits;
    assert_eq!(
        waiting + usize::from(runs),
        usize::from(queued),
        "task {task} at {now}: on {waiting} queues, running: {runs}"
    );
    if queued {
        let interrupts = &engine.cpus[cpu as usize].interrupts;
        assert!(
            engine.may_be_on(task, cpu)
                || interrupts.contains(&Interrupt::Migrate(task))
                || interrupts.contains(&Interrupt::Offline),
            "task {task} at {now} may not be on CPU {cpu}"
        );
    }
}

/// The RT tasks of a CPU in their order, the current one included.
fn rt_tasks(engine: &Engine, cpu: u32) -> Vec<u32> {
    let follow = |task: u32| (task != NO_TASK).then_some(task);
    let first = follow(engine.policy.rq[cpu as usize].rt_head);
    let next = |&task: &u32| follow(engine.policy.task[task as usize].mru_next);
    std::iter::successors(first, next).take(engine.next_task as usize).collect()
}

/// The tasks that wait on a CPU, by the engine's queue and the RT list.
fn waiting_on(engine: &Engine, cpu: u32) -> Vec<u32> {
    let mut waiting = engine.run_queues[cpu as usize].tasks();
    let current = engine.current(cpu);
    waiting.extend(rt_tasks(engine, cpu).into_iter().filter(|&task| task != current));
    waiting
}

/// Wakeups of a task that have begun and not ended.
fn in_flight(engine: &Engine, task: u32) -> usize {
    let spins = usize::from(engine.tasks[task as usize].spinner.is_some());
    let of_cpu = |cpu: &crate::cpu::Cpu| {
        let listed =
            cpu.wake_list.iter().chain(&cpu.arriving).filter(|wakee| **wakee == task).count();
        let placed = [cpu.placed, cpu.interrupt_placed];
        listed + placed.iter().flatten().filter(|placed| placed.wakee == task).count()
    };
    spins + engine.cpus.iter().map(of_cpu).sum::<usize>()
}

/// Whoever sleeps will be woken, and whoever is busy will tick.
fn check_pending(engine: &Engine) {
    let now = engine.now;
    for task in FIRST_TASK..engine.next_task {
        let sleeps = engine.tasks[task as usize].state == TaskState::Blocked;
        assert!(!sleeps || is_awaited(engine, task), "task {task} at {now} sleeps for ever");
    }
    for group in 1..=engine.policy.root.nr_task_groups {
        let comes = engine.queue.due(engine.slot(Slot::Period(group))).is_some();
        let waits = engine.cfs_bandwidth.is_throttled(group);
        assert!(comes || !waits, "cgroup {group} at {now} is throttled for ever");
    }
    for (cpu, here) in engine.cpus.iter().enumerate() {
        let ticks = engine.queue.due(engine.slot(Slot::Tick(cpu as u32))).is_some();
        let rests = here.activity == Activity::Idle;
        assert!(ticks || rests, "CPU {cpu} at {now} is busy without a tick");
    }
}

/// Something is left that will wake a sleeping task, as far as it can be told from outside.
fn is_awaited(engine: &Engine, task: u32) -> bool {
    let state = &engine.tasks[task as usize];
    let timer = engine.slot(Slot::Timer(task));
    let is_wakee = |cpu: &crate::cpu::Cpu| {
        cpu.wakees.contains(&task) || cpu.interrupts.contains(&Interrupt::Timer(task))
    };
    let op = engine.workload.programs[state.program as usize].ops[state.pc as usize];
    engine.queue.due(timer).is_some()
        || engine.cpus.iter().any(is_wakee)
        || match op {
            Op::Wait { .. } => !state.token,
            Op::Join => state.children > 0,
            _ => is_listed(engine, task),
        }
}

fn is_listed(engine: &Engine, task: u32) -> bool {
    engine.channels.iter().any(|it| it.readers.contains(&task) || it.writers.contains(&task))
        || engine.mutexes.iter().any(|it| it.waiters.contains(&task))
        || engine.conditions.iter().any(|it| it.waiters.contains(&task))
        || engine.barriers.iter().any(|it| it.waiters.contains(&task))
        || engine.gates.iter().any(|it| it.waiters.contains(&task))
}

fn queued_on<'e>(engine: &'e Engine<'_>, cpu: u32) -> impl Iterator<Item = u32> + 'e {
    (FIRST_TASK..engine.next_task).filter(move |&task| {
        let record = &engine.policy.task[task as usize];
        record.on_rq != 0 && u32::from(record.cpu) == cpu
    })
}

fn fair_on<'e>(engine: &'e Engine<'_>, cpu: u32) -> impl Iterator<Item = u32> + 'e {
    queued_on(engine, cpu).filter(|&task| is_fair(&engine.policy.task[task as usize]))
}

/// The policy's counts are those of the tasks, and the engine's queue holds the same tasks.
fn check_queue(engine: &Engine, cpu: u32) {
    let rq = &engine.policy.rq[cpu as usize];
    let records = || queued_on(engine, cpu).map(|task| &engine.policy.task[task as usize]);
    let waits = |record: &&Task| {
        is_fair(record) && throttled_between(engine, record.task_group, ROOT_TASK_GROUP, cpu)
    };
    let count = |of: fn(&Task) -> bool| {
        records().filter(|record| !waits(record) && of(record)).count() as u32
    };
    let found = (rq.nr_running, rq.cfs.h_nr_queued, rq.cfs.h_nr_delayed, rq.cfs.h_nr_idle);
    let expected = (
        count(|_| true),
        count(is_fair),
        count(|record| record.delayed != 0),
        count(|record| record.idle_policy != 0),
    );
    let now = engine.now;
    assert_eq!(found, expected, "CPU {cpu} at {now}: running, queued, delayed, idle-policy");
    check_rt(engine, cpu);
    for group in 0..=engine.policy.root.nr_task_groups {
        check_group(engine, group, cpu);
    }
    for (group, weight) in engine.run_queues[cpu as usize].group_weights() {
        let entity = &engine.policy.group_rq[group as usize][cpu as usize];
        assert_eq!(
            (entity.on_rq, u64::from(entity.weight)),
            (1, weight),
            "CPU {cpu} at {now}: is the entity of cgroup {group} queued, and its weight"
        );
    }

    let current = engine.current(cpu);
    let mut waiting = waiting_on(engine, cpu);
    waiting.sort_unstable();
    let runs = engine.running(cpu).filter(|_| !engine.cpus[cpu as usize].current_waits);
    let expected: Vec<u32> = queued_on(engine, cpu).filter(|&task| Some(task) != runs).collect();
    assert_eq!(waiting, expected, "CPU {cpu} at {now}: the engine's queue and the policy's");

    let activity = engine.cpus[cpu as usize].activity;
    if current < FIRST_TASK {
        assert_eq!(current, cpu, "another CPU's idle task");
    } else if !engine.is_queued(current) {
        assert_eq!(activity, Activity::NewIdle, "CPU {cpu} at {now} runs a task that sleeps");
    } else {
        assert_eq!(u32::from(engine.policy.task[current as usize].cpu), cpu);
        assert!(
            !matches!(activity, Activity::Idle | Activity::IdleExit),
            "CPU {cpu} at {now}: {activity:?} with a current task"
        );
    }
}

fn is_fair(record: &Task) -> bool {
    record.rt_priority == 0
}

/// RT tasks stand in the order of their priorities, are counted, and run before all others.
fn check_rt(engine: &Engine, cpu: u32) {
    let tasks = rt_tasks(engine, cpu);
    let now = engine.now;
    let priorities: Vec<u8> =
        tasks.iter().map(|&task| engine.policy.task[task as usize].rt_priority).collect();
    assert!(priorities.is_sorted_by(|a, b| a >= b), "CPU {cpu} at {now}: RT list {priorities:?}");
    let counted = engine.policy.rq[cpu as usize].rt_nr_running as usize;
    assert_eq!(counted, tasks.len(), "CPU {cpu} at {now}: RT tasks");
}

fn cfs_rq<'e>(engine: &'e Engine<'_>, group: u32, cpu: u32) -> &'e CfsRq {
    match group {
        ROOT_TASK_GROUP => &engine.policy.rq[cpu as usize].cfs,
        group => &engine.policy.group_rq[group as usize][cpu as usize].cfs,
    }
}

/// The cgroups right below one.
fn children<'e>(engine: &'e Engine<'_>, group: u32) -> impl Iterator<Item = u32> + 'e {
    let all = 1..=engine.policy.root.nr_task_groups;
    all.filter(move |&child| engine.policy.task_group[child as usize].parent == group)
}

fn is_within(engine: &Engine, group: u32, other: u32) -> bool {
    let above = |&group: &u32| {
        (group != ROOT_TASK_GROUP).then(|| engine.policy.task_group[group as usize].parent)
    };
    std::iter::successors(Some(group), above).any(|group| group == other)
}

/// Is a cgroup throttled, or one between it and `above`, which it is in?
fn throttled_between(engine: &Engine, group: u32, above: u32, cpu: u32) -> bool {
    let parent = |&group: &u32| Some(engine.policy.task_group[group as usize].parent);
    std::iter::successors(Some(group), parent)
        .take_while(|&group| group != above)
        .any(|group| engine.policy.group_rq[group as usize][cpu as usize].throttled != 0)
}

/// A cgroup's counts are those of the tasks in it and below it that are not throttled there; its
/// weight that of the tasks and
/// cgroups right in it that are queued, which is each cgroup with tasks.
fn check_group(engine: &Engine, group: u32, cpu: u32) {
    let now = engine.now;
    let cfs = cfs_rq(engine, group, cpu);
    let group_of = |&task: &u32| engine.policy.task[task as usize].task_group;
    let tasks = fair_on(engine, cpu).filter(|task| {
        is_within(engine, group_of(task), group)
            && !throttled_between(engine, group_of(task), group, cpu)
    });
    assert_eq!(cfs.h_nr_queued as usize, tasks.count(), "CPU {cpu} at {now}: in cgroup {group}");

    let own = fair_on(engine, cpu).filter(|task| group_of(task) == group);
    let own: u64 = own.map(|task| u64::from(engine.policy.task[task as usize].weight)).sum();
    let entities = children(engine, group).map(|child| {
        let entity = &engine.policy.group_rq[child as usize][cpu as usize];
        let has_tasks = entity.cfs.h_nr_queued > 0 && entity.throttled == 0;
        assert_eq!(entity.on_rq != 0, has_tasks, "CPU {cpu} at {now}: cgroup {child} is queued");
        u64::from(entity.weight) * u64::from(entity.on_rq)
    });
    let weight = own + entities.sum::<u64>();
    assert_eq!(cfs.load_weight, weight, "CPU {cpu} at {now}: weight in cgroup {group}");
}

/// The list of CFS tasks by recency: the same in both directions, and complete.
fn check_recency(engine: &Engine, cpu: u32) {
    let rq = &engine.policy.rq[cpu as usize];
    let walk = |first: u32, next: fn(&Task) -> u32| {
        let follow = move |task: u32| (task != NO_TASK).then_some(task);
        let step = move |&task: &u32| follow(next(&engine.policy.task[task as usize]));
        std::iter::successors(follow(first), step)
            .take(engine.next_task as usize)
            .collect::<Vec<u32>>()
    };
    let forward = walk(rq.mru_head, |task| task.mru_next);
    let mut backward = walk(rq.mru_tail, |task| task.mru_prev);
    backward.reverse();
    assert_eq!(forward, backward, "CPU {cpu}: the two directions of its list");
    let mut listed = forward;
    listed.sort_unstable();
    assert_eq!(listed, fair_on(engine, cpu).collect::<Vec<u32>>(), "CPU {cpu}: its list");
}

/// The idle masks say what they are defined as.
fn check_masks(engine: &Engine, cpu: u32) {
    let root = &engine.policy.root;
    let is_idle = |cpu: u32| {
        let rq = &engine.policy.rq[cpu as usize];
        rq.curr == cpu && rq.nr_running == 0 && rq.ttwu_pending == 0
    };
    let rq = &engine.policy.rq[cpu as usize];
    let core = &engine.policy.cpu[cpu as usize];
    let siblings = &core.siblings[..core.nr_siblings as usize];
    let core_is_idle = siblings.iter().all(|&sibling| is_idle(u32::from(sibling)));
    let now = engine.now;
    assert_eq!(has(&root.idle, cpu), is_idle(cpu), "CPU {cpu} at {now}: idle");
    assert_eq!(has(&root.idle_core, cpu), core_is_idle, "CPU {cpu} at {now}: idle core");
    assert_eq!(
        has(&root.sched_idle, cpu),
        rq.nr_running > 0 && rq.nr_running == rq.cfs.h_nr_idle,
        "CPU {cpu} at {now}: only SCHED_IDLE tasks"
    );
    assert_eq!(has(&root.tickless, cpu), rq.tick_stopped != 0, "CPU {cpu} at {now}: tickless");
    let here = &engine.cpus[cpu as usize];
    let pending = !here.wake_list.is_empty()
        || !engine.policy.profile.wake_list_clear_early && !here.arriving.is_empty();
    assert_eq!(rq.ttwu_pending != 0, pending, "CPU {cpu} at {now}: wake list");
}

fn check_llcs(engine: &Engine) {
    let llcs = engine.llc_busy.iter().take(engine.policy.root.nr_llcs as usize);
    for (llc, &(not_resting, _)) in llcs.enumerate() {
        let cpus =
            || (0..engine.cpus.len() as u32).filter(|&cpu| has(&engine.policy.llc[llc].cpus, cpu));
        let ticking = cpus().filter(|&cpu| !has(&engine.policy.root.tickless, cpu)).count();
        assert_eq!(engine.policy.llc[llc].nr_busy_cpus, ticking as u32, "LLC {llc}: busy CPUs");
        let busy =
            cpus().filter(|&cpu| engine.cpus[cpu as usize].activity != Activity::Idle).count();
        assert_eq!(not_resting, busy as u32, "LLC {llc}: CPUs in no idle state");
    }
}

/// What is accounted to tasks is what is accounted to CPUs.
fn check_total_time(engine: &Engine) {
    let tasks = FIRST_TASK..engine.next_task;
    let of_tasks: u64 = tasks.map(|task| engine.policy.task[task as usize].sum_exec_runtime).sum();
    let of_cpus: u64 = engine.cpus.iter().map(|cpu| cpu.counters.run_ns).sum();
    assert_eq!(of_tasks, of_cpus, "run time of all tasks, and of all CPUs");
}

/// Nanoseconds in which an average halves.
const HALF_LIFE: f64 = 32.0 * 1024.0 * 1024.0;

/// What an average has become after `ns` in which its input was `input`.
fn after(average: f64, input: f64, ns: u64) -> f64 {
    input + (average - input) * kept_after(ns)
}

/// The part of an average that is left after `ns` without input.
fn kept_after(ns: u64) -> f64 {
    (-(ns as f64) / HALF_LIFE).exp2()
}

/// Averages with what belongs to the period that has not ended yet: of tasks that sleep, each in
/// another one, that adds up.
struct Exact {
    util: f64,
    load: f64,
}

fn exact(avg: &SchedAvg, weight: u32) -> Exact {
    let divider = f64::from(LOAD_AVG_MAX - PELT_PERIOD + avg.period_contrib);
    Exact {
        util: avg.util_sum as f64 / divider,
        load: f64::from(weight) * avg.load_sum as f64 / divider,
    }
}

const PELT_PERIOD: u32 = 1024;
const LOAD_AVG_MAX: u32 = 47742;

/// The averages of a queue are the sum of those of the tasks attached to it, and of the entities
/// of the cgroups below: an average that was added twice, or not taken along, shows.
fn check_averages(engine: &Engine, group: u32, cpu: u32, left: Left) {
    let cfs = cfs_rq(engine, group, cpu);
    let (mut util, mut load) = (cfs.removed_util as f64, cfs.removed_load as f64);
    let mut attached = 0.0;
    for task in FIRST_TASK..engine.next_task {
        let record = &engine.policy.task[task as usize];
        let elsewhere = u32::from(record.cpu) != cpu || record.task_group != group;
        if elsewhere || record.avg.last_update_time == 0 {
            continue;
        }
        let since = cfs.avg.last_update_time.saturating_sub(record.avg.last_update_time);
        let runs = engine.current(cpu) == task && record.on_rq != 0;
        let queued = record.on_rq != 0;
        let Exact { util: own, load: own_load } = exact(&record.avg, record.weight);
        util += after(own, if runs { 1024.0 } else { 0.0 }, since);
        let full = if queued { f64::from(record.weight) } else { 0.0 };
        load += after(own_load, full, since);
        attached += 1.0;
    }
    let current = engine.policy.task[engine.current(cpu) as usize].task_group;
    for child in children(engine, group) {
        let entity = &engine.policy.group_rq[child as usize][cpu as usize];
        if entity.avg.last_update_time == 0 {
            continue;
        }
        let since = cfs.avg.last_update_time.saturating_sub(entity.avg.last_update_time);
        let runs = entity.on_rq != 0 && is_within(engine, current, child);
        util += after(entity.avg.util_avg as f64, if runs { 1024.0 } else { 0.0 }, since);
        let full = if entity.on_rq != 0 { f64::from(entity.weight) } else { 0.0 };
        load += after(entity.avg.load_avg as f64, full, since);
        attached += 1.0;
    }
    let now = engine.now;
    let heaviest = engine.entities.iter().map(|entity| entity.weight).max().unwrap_or(0) as f64;
    let check = |what: &str, found: u64, sum: f64, full: f64, left: f64| {
        // Both sides are as of their last full period, which need not be the same; and each
        // average is rounded down.
        let rounding = 2.0 * PERIOD * (sum + full) + attached + 1.0;
        // What a migrated task takes along was rounded up to a whole period, so that a queue that
        // many leave loses more than they brought.
        let most_lost = left + rounding + 0.3 * full * f64::max(attached, 1.0);
        let excess = found as f64 - sum;
        assert!(
            -most_lost <= excess && excess <= left + rounding,
            "CPU {cpu} at {now}: {what} {found}, of its {attached} tasks {sum:.1}, left behind \
             {left:.1}, in cgroup {group}"
        );
    };
    check("utilisation", cfs.avg.util_avg, util, 1024.0, left.util);
    check("load", cfs.avg.load_avg, load, heaviest, left.load);
}

/// What a period adds to an average, or takes off it, at most: 1,024 of the 47,742 units that all
/// periods weigh together.
const PERIOD: f64 = 1024.0 / 47742.0;

/// What tasks that left a queue may have left behind in its averages.
///
/// A sleeping task that is migrated or ends takes its averages along, which are as of its last full
/// period. What it ran or waited since is still in the queue's sums and comes out in its averages
/// when the period ends, to decay from there. One task leaves little; but of tasks that all end
/// within a period, as those of a busy creator do, all that they ran stays.
#[derive(Default)]
struct Departures {
    /// Where each task is attached: CPU and cgroup.
    attached: Vec<Option<(u32, u32)>>,
    left: BTreeMap<(u32, u32), Left>,
}

#[derive(Clone, Copy, Default)]
struct Left {
    util: f64,
    load: f64,
    /// The queue's clock when this was so.
    clock: u64,
    /// The period in which a task left last. In one period a CPU runs for no more than that.
    period: u64,
}

impl Departures {
    fn observe(&mut self, engine: &Engine) {
        self.attached.resize(engine.next_task as usize, None);
        for task in FIRST_TASK..engine.next_task {
            let record = &engine.policy.task[task as usize];
            let attached = record.avg.last_update_time != 0;
            let now = attached.then(|| (record.cpu.into(), record.task_group));
            let before = std::mem::replace(&mut self.attached[task as usize], now);
            if let Some((cpu, group)) = before.filter(|_| before != now) {
                self.leave(engine, group, cpu, record.weight);
            }
        }
    }

    fn leave(&mut self, engine: &Engine, group: u32, cpu: u32, weight: u32) {
        let mut left = self.left_on(engine, group, cpu);
        let clock = &cfs_rq(engine, group, cpu).avg;
        let period = (clock.last_update_time >> 10) - u64::from(clock.period_contrib);
        left.load += f64::from(weight) * PERIOD;
        if period != left.period {
            left.util += 1024.0 * PERIOD;
            left.period = period;
        }
        self.left.insert((group, cpu), left);
    }

    fn left_on(&self, engine: &Engine, group: u32, cpu: u32) -> Left {
        let left = self.left.get(&(group, cpu)).copied().unwrap_or_default();
        let clock = cfs_rq(engine, group, cpu).avg.last_update_time;
        let kept = kept_after(clock.saturating_sub(left.clock));
        Left { util: left.util * kept, load: left.load * kept, clock, ..left }
    }
}

#[cfg(test)]
mod tests {
    use placewise_policy::Policy;
    use placewise_workload::program::{FOREVER, Program, Window, Workload};

    use super::*;

    /// Three tasks that compute for ever on two CPUs; then something goes wrong.
    fn check_after(damage: impl FnOnce(&mut Engine)) {
        let fork = Op::Fork { program: 1, count: 3, base: 0, step: 0 };
        let hog = vec![
            Op::Run { ns: 50_000 },
            Op::Repeat { counter: 0, times: FOREVER, to: 0 },
            Op::Exit,
        ];
        let programs =
            vec![Program::new("main", vec![fork, Op::Join, Op::Exit]), Program::new("hog", hog)];
        let window = Window { warm_up: 0, measure: 20_000_000 };
        let workload = Workload::new("hogs", programs, window);
        let machine = placewise_machine::load("pack:1 l3:1 core:2 pu:1").expect("a machine");
        let policy = Policy::parse("v6.0", "baseline").expect("a policy");
        let mut engine = Engine::new(&machine, &policy, &workload, 1, None).expect("an engine");
        let mut auditor = Auditor::new(&machine);
        engine.run_observed(|engine| auditor.observe(engine)).expect("a run");
        auditor.check(&engine);
        damage(&mut engine);
        auditor.check(&engine);
    }

    /// The first hog, and the CPU it is on.
    fn first_hog(engine: &Engine) -> (usize, usize) {
        let hog = FIRST_TASK as usize + 1;
        (hog, engine.policy.task[hog].cpu.into())
    }

    #[test]
    fn a_sound_state_passes() {
        check_after(|_| {});
    }

    #[test]
    #[should_panic(expected = "running, queued, delayed, idle-policy")]
    fn a_wrong_count_is_found() {
        check_after(|engine| engine.policy.rq[0].nr_running += 1);
    }

    #[test]
    #[should_panic(expected = "is Runnable: queued false")]
    fn a_lost_task_is_found() {
        check_after(|engine| {
            let (hog, _) = first_hog(engine);
            engine.policy.task[hog].on_rq = 0;
        });
    }

    #[test]
    #[should_panic(expected = "idle")]
    fn a_wrong_idle_mask_is_found() {
        check_after(|engine| engine.policy.root.idle.bits[0] ^= 1);
    }

    #[test]
    #[should_panic(expected = "utilisation")]
    fn an_average_added_twice_is_found() {
        check_after(|engine| {
            let (hog, cpu) = first_hog(engine);
            let twice = engine.policy.task[hog].avg.util_avg;
            engine.policy.rq[cpu].cfs.avg.util_avg += twice;
        });
    }

    #[test]
    #[should_panic(expected = "ns to tasks")]
    fn run_time_from_nowhere_is_found() {
        check_after(|engine| engine.cpus[0].counters.run_ns += 5_000);
    }
}
