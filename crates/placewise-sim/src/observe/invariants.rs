//! What must hold between any two events, for tests.
//!
//! [`simulate_checked`] runs a scenario as [`simulate`](crate::simulate) does
//! and panics with the reason as soon as the state contradicts itself: a task
//! in two places or in none, an idle mask that is not what it stands for, CPU
//! time that was lost or made, and what must hold of the scheduler whoever
//! drives it.
//!
//! Limit: the scan limits are not recomputed.

use placewise_machine::Machine;
use placewise_policy::topology::BOOT;
use placewise_policy::*;
use placewise_run_queue::invariants::{Invariants, waiting_on};
use placewise_trace::Sink;
use placewise_workload::program::Op;

use crate::engine::Engine;
use crate::error::SimError;
use crate::outcome::Outcome;
use crate::scenario::Scenario;
use crate::state::cpu::{Activity, Cpu, Interrupt};
use crate::state::event_queue::Time;
use crate::state::events::Slot;
use crate::state::programs::Step;
use crate::state::task::TaskState;

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
    let mut engine = Engine::new(scenario, trace)?;
    let mut auditor = Auditor::new(scenario.machine);
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
    spent: Table<CpuId, Spent>,
    states: Table<CpuId, Spending>,
    was_delayed: Table<TaskId, bool>,
    scheduler: Invariants,
}

/// What a CPU's time goes to.
#[derive(Clone, Copy)]
enum Spending {
    Task,
    /// The current task's, or whose wakee it will be that preempts it; the idle task's, if that one has gone.
    Standing,
    NewIdle,
    Idle,
    IdleExit,
    /// The idle task does something.
    Overhead,
}

#[derive(Clone, Copy, Default)]
struct Spent {
    task: Time,
    standing: Time,
    newidle: Time,
    idle: Time,
    idle_exit: Time,
    overhead: Time,
}

impl Auditor {
    fn new(machine: &Machine) -> Self {
        let nr_cpus = machine.cpus.len();
        let mut states: Table<CpuId, Spending> = vec![Spending::Idle; nr_cpus].into();
        // The first task is on its way before the first event.
        if let Some(first) = machine.online().first() {
            states[CpuId::from(first)] = Spending::IdleExit;
        }
        Auditor {
            audit: Audit::default(),
            last: BOOT,
            spent: vec![Spent::default(); nr_cpus].into(),
            states,
            was_delayed: Table::default(),
            scheduler: Invariants::default(),
        }
    }

    fn observe(&mut self, engine: &Engine) {
        assert!(engine.now >= self.last, "time runs backwards");
        self.spend(engine);
        self.scheduler.observe(&engine.scheduler);
        for task in engine.user_tasks() {
            self.was_delayed.grow_to(task);
            let delayed = engine.scheduler.is_delayed(task);
            let begins = delayed && !self.was_delayed[task];
            self.audit.delayed += u64::from(begins);
            self.was_delayed[task] = delayed;
        }
    }

    fn spend(&mut self, engine: &Engine) {
        let elapsed = engine.now - self.last;
        self.last = engine.now;
        for (cpu, spent) in self.spent.ids().zip(self.spent.iter_mut()) {
            let state = &mut self.states[cpu];
            *match state {
                Spending::Task => &mut spent.task,
                Spending::Standing => &mut spent.standing,
                Spending::NewIdle => &mut spent.newidle,
                Spending::Idle => &mut spent.idle,
                Spending::IdleExit => &mut spent.idle_exit,
                Spending::Overhead => &mut spent.overhead,
            } += elapsed;
            *state = spending(engine, cpu);
        }
    }

    fn check(&mut self, engine: &Engine) {
        self.audit.checks += 1;
        for task in engine.user_tasks() {
            check_task(engine, task);
        }
        for cpu in engine.hardware.machine.online().iter().map(CpuId::from) {
            self.scheduler.check(&engine.scheduler, cpu);
            check_current(engine, cpu);
            assert_eq!(engine.cpus[cpu].pace, engine.pace(cpu), "CPU {cpu} runs at its pace");
            check_masks(engine, cpu);
            self.check_time(engine, cpu);
        }
        check_llcs(engine);
        check_total_time(engine);
    }

    /// Run time, idle time and the kernel's overhead are all the time there is.
    fn check_time(&self, engine: &Engine, cpu: CpuId) {
        // The last event's state still holds at the end of the window.
        let mut spent = self.spent[cpu];
        let since = engine.now - self.last;
        match self.states[cpu] {
            Spending::Task => spent.task += since,
            Spending::Standing => spent.standing += since,
            Spending::NewIdle => spent.newidle += since,
            Spending::Idle => spent.idle += since,
            Spending::IdleExit => spent.idle_exit += since,
            Spending::Overhead => spent.overhead += since,
        }
        let Spent { task, standing, newidle, idle, idle_exit, overhead } = spent;
        let elapsed = engine.now - BOOT;
        let total = task + standing + newidle + idle + idle_exit + overhead;
        assert_eq!(total, elapsed, "CPU {cpu}");

        let here = &engine.cpus[cpu];
        let run = here.counters.run_ns + unaccounted(engine, cpu);
        assert!(
            (task..=task + standing + newidle).contains(&run),
            "CPU {cpu} accounts {run} ns to tasks, which had {task} ns, {standing} ns with its clock \
             standing, and {newidle} ns of newly-idle balance, by {}",
            engine.now
        );
        let rests = engine.scheduler.running(cpu).is_none();
        let resting = if rests { engine.now - here.idle_task_since } else { 0 };
        let counted = here.counters.idle_ns + resting;
        let idle = idle + idle_exit + overhead;
        assert!(
            (idle..=idle + standing + newidle + BOOT).contains(&counted),
            "CPU {cpu} counts {counted} ns to its idle task, which had {idle} ns, {standing} ns with its \
             clock standing, and {newidle} ns of newly-idle balance, by {}",
            engine.now
        );
    }
}

fn spending(engine: &Engine, cpu: CpuId) -> Spending {
    match engine.cpus[cpu].activity {
        Activity::Idle => Spending::Idle,
        Activity::NewIdle | Activity::TakeOver => Spending::NewIdle,
        _ if engine.cpus[cpu].clock_stands_at.is_some() => Spending::Standing,
        Activity::IdleExit => Spending::IdleExit,
        _ if engine.scheduler.running(cpu).is_some() => Spending::Task,
        _ => Spending::Overhead,
    }
}

/// Run time of the current task since it was accounted last.
fn unaccounted(engine: &Engine, cpu: CpuId) -> Time {
    match engine.scheduler.running(cpu) {
        Some(task) if engine.scheduler.is_queued(task) => {
            engine.now - engine.scheduler.policy.task[task].exec_start
        }
        _ => 0,
    }
}

/// Where a task is, by the engine and by the policy.
fn check_task(engine: &Engine, task: TaskId) {
    let state = &engine.tasks[task];
    let record = &engine.scheduler.policy.task[task];
    let cpu = CpuId::from(record.cpu);
    let now = engine.now;
    let waiting = engine
        .cpus
        .ids()
        .flat_map(|cpu| waiting_on(&engine.scheduler, cpu))
        .filter(|&other| other == task)
        .count();
    let current = engine.cpus.ids().filter(|&cpu| engine.scheduler.current(cpu) == task).count();
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
    let runs = queued && current == 1 && !engine.scheduler.current_waits(cpu);
    assert_eq!(
        waiting + usize::from(runs),
        usize::from(queued),
        "task {task} at {now}: on {waiting} queues, running: {runs}"
    );
    if queued {
        let interrupts = &engine.cpus[cpu].interrupts;
        assert!(
            engine.may_be_on(task, cpu)
                || interrupts.contains(&Interrupt::Migrate(task))
                || interrupts.contains(&Interrupt::Offline),
            "task {task} at {now} may not be on CPU {cpu}"
        );
    }
}

/// Wakeups of a task that have begun and not ended.
fn in_flight(engine: &Engine, task: TaskId) -> usize {
    let spins = usize::from(engine.tasks[task].spinner.is_some());
    let of_cpu = |cpu: &Cpu| {
        let listed =
            cpu.wake_list.iter().chain(&cpu.arriving).filter(|wakee| **wakee == task).count();
        let placed = [cpu.placed, cpu.interrupt_placed];
        listed + placed.iter().flatten().filter(|placed| placed.wakee == task).count()
    };
    spins + engine.cpus.iter().map(of_cpu).sum::<usize>()
}

/// Whoever sleeps will be woken, who spins will be let go, and whoever is busy will tick.
fn check_pending(engine: &Engine) {
    let now = engine.now;
    for task in engine.user_tasks() {
        let sleeps = engine.tasks[task].state == TaskState::Blocked;
        assert!(!sleeps || is_awaited(engine, task), "task {task} at {now} sleeps for ever");
    }
    for group in 1..=engine.scheduler.policy.root.nr_task_groups {
        let comes = engine.events.due(Slot::Period(group)).is_some();
        let waits = engine.confinement.cfs_bandwidth.is_throttled(group);
        assert!(comes || !waits, "cgroup {group} at {now} is throttled for ever");
    }
    for (cpu, here) in engine.cpus.ids().zip(engine.cpus.iter()) {
        let ticks = engine.events.due(Slot::Tick(cpu)).is_some();
        let rests = here.activity == Activity::Idle;
        assert!(ticks || rests, "CPU {cpu} at {now} is busy without a tick");
        let spins = here.activity == Activity::Spinning;
        assert!(!spins || is_let_go(engine, cpu), "CPU {cpu} at {now} spins for ever");
    }
}

/// Something is left that will wake a sleeping task, as far as it can be told from outside.
fn is_awaited(engine: &Engine, task: TaskId) -> bool {
    let state = &engine.tasks[task];
    let timer = Slot::Timer(task);
    let is_wakee =
        |cpu: &Cpu| cpu.effect.will_wake(task) || cpu.interrupts.contains(&Interrupt::Timer(task));
    let step = engine.programs.step(state.pc);
    engine.events.due(timer).is_some()
        || engine.cpus.iter().any(is_wakee)
        || match step {
            Step::Op(Op::Wait { .. }) => !state.token,
            Step::Op(Op::Join) => state.children > 0,
            _ => is_listed(engine, task),
        }
}

/// By the switch of a wakee, the end of an interrupt, or the opener of a gate.
fn is_let_go(engine: &Engine, cpu: CpuId) -> bool {
    let wakes = |task: TaskId| engine.tasks[task].spinner.is_some_and(|(waker, _)| waker == cpu);
    engine.user_tasks().any(wakes)
        || engine.events.due(Slot::InterruptWakeup(cpu)).is_some()
        || engine.objects.gates.iter().any(|gate| gate.opening && gate.spinners.contains(&cpu))
}

fn is_listed(engine: &Engine, task: TaskId) -> bool {
    engine
        .objects
        .channels
        .iter()
        .any(|it| it.readers.contains(&task) || it.writers.contains(&task))
        || engine.objects.mutexes.iter().any(|it| it.waiters.contains(&task))
        || engine.objects.conditions.iter().any(|it| it.waiters.contains(&task))
        || engine.objects.barriers.iter().any(|it| it.waiters.contains(&task))
        || engine.objects.gates.iter().any(|it| it.waiters.contains(&task))
        || engine.objects.semaphores.iter().any(|it| it.waiters.contains(&task))
}

/// A CPU runs what the policy says, unless it is between two tasks.
fn check_current(engine: &Engine, cpu: CpuId) {
    let now = engine.now;
    let current = engine.scheduler.current(cpu);
    let activity = engine.cpus[cpu].activity;
    if current.is_idle() {
        assert_eq!(current, TaskId::idle(cpu), "another CPU's idle task");
    } else if !engine.scheduler.is_queued(current) {
        assert!(
            matches!(activity, Activity::NewIdle | Activity::TakeOver),
            "CPU {cpu} at {now} runs a task that sleeps"
        );
    } else {
        assert_eq!(engine.scheduler.cpu_of(current), cpu);
        assert!(
            !matches!(activity, Activity::Idle | Activity::IdleExit),
            "CPU {cpu} at {now}: {activity:?} with a current task"
        );
    }
}

/// The idle masks say what they are defined as.
fn check_masks(engine: &Engine, cpu: CpuId) {
    let root = &engine.scheduler.policy.root;
    let is_idle = |cpu: CpuId| {
        let rq = &engine.scheduler.policy.rq[cpu];
        rq.curr == u32::from(cpu) && rq.nr_running == 0 && rq.ttwu_pending == 0
    };
    let rq = &engine.scheduler.policy.rq[cpu];
    let core = &engine.scheduler.policy.cpu[cpu];
    let siblings = &core.siblings[..core.nr_siblings as usize];
    let core_is_idle = siblings.iter().all(|&sibling| is_idle(sibling.into()));
    let now = engine.now;
    assert_eq!(root.idle.contains(cpu), is_idle(cpu), "CPU {cpu} at {now}: idle");
    assert_eq!(root.idle_core.contains(cpu), core_is_idle, "CPU {cpu} at {now}: idle core");
    assert_eq!(
        root.sched_idle.contains(cpu),
        rq.nr_running > 0 && rq.nr_running == rq.cfs.h_nr_idle,
        "CPU {cpu} at {now}: only SCHED_IDLE tasks"
    );
    assert_eq!(root.tickless.contains(cpu), rq.tick_stopped != 0, "CPU {cpu} at {now}: tickless");
    let here = &engine.cpus[cpu];
    let pending = !here.wake_list.is_empty()
        || !engine.scheduler.policy.profile.wake_list_clear_early && !here.arriving.is_empty();
    assert_eq!(rq.ttwu_pending != 0, pending, "CPU {cpu} at {now}: wake list");
}

fn check_llcs(engine: &Engine) {
    for llc in 0..engine.scheduler.policy.root.nr_llcs as usize {
        let cpus =
            engine.cpus.ids().filter(|&cpu| engine.scheduler.policy.llc[llc].cpus.contains(cpu));
        let ticking =
            cpus.filter(|&cpu| !engine.scheduler.policy.root.tickless.contains(cpu)).count();
        assert_eq!(
            engine.scheduler.policy.llc[llc].nr_busy_cpus, ticking as u32,
            "LLC {llc}: busy CPUs"
        );
    }
    let places = &engine.hardware.memory.places;
    for (cache, activity) in engine.hardware.caches.iter().enumerate() {
        let cpus = engine.cpus.ids().filter(|&cpu| usize::from(places[cpu].cache) == cache);
        let busy = cpus.filter(|&cpu| engine.cpus[cpu].activity != Activity::Idle).count();
        assert_eq!(activity.busy, busy as u32, "cache {cache}: CPUs in no idle state");
    }
}

/// What is accounted to tasks is what is accounted to CPUs.
fn check_total_time(engine: &Engine) {
    let tasks = engine.user_tasks();
    let of_tasks: u64 = tasks.map(|task| engine.scheduler.policy.task[task].sum_exec_runtime).sum();
    let of_cpus: u64 = engine.cpus.iter().map(|cpu| cpu.counters.run_ns).sum();
    assert_eq!(of_tasks, of_cpus, "run time of all tasks, and of all CPUs");
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
        let window = Window { measure: 20_000_000, ..Window::default() };
        let workload = Workload::new("hogs", programs, window);
        let machine = placewise_machine::load("pack:1 l3:1 core:2 pu:1").expect("a machine");
        let policy = Policy::parse("v6.0", "baseline").expect("a policy");
        let scenario =
            Scenario { machine: &machine, policy: &policy, workload: &workload, seed: 1 };
        let mut engine = Engine::new(&scenario, None).expect("an engine");
        let mut auditor = Auditor::new(&machine);
        engine.run_observed(|engine| auditor.observe(engine)).expect("a run");
        auditor.check(&engine);
        damage(&mut engine);
        auditor.check(&engine);
    }

    /// The first hog, and the CPU it is on.
    fn first_hog(engine: &Engine) -> (TaskId, CpuId) {
        let hog = TaskId::new(FIRST_TASK + 1);
        (hog, engine.scheduler.cpu_of(hog))
    }

    #[test]
    fn a_sound_state_passes() {
        check_after(|_| {});
    }

    #[test]
    #[should_panic(expected = "running, queued, delayed, idle-policy")]
    fn a_wrong_count_is_found() {
        check_after(|engine| engine.scheduler.policy.rq[0].nr_running += 1);
    }

    #[test]
    #[should_panic(expected = "is Runnable: queued false")]
    fn a_lost_task_is_found() {
        check_after(|engine| {
            let (hog, _) = first_hog(engine);
            engine.scheduler.policy.task[hog].on_rq = 0;
        });
    }

    #[test]
    #[should_panic(expected = "idle")]
    fn a_wrong_idle_mask_is_found() {
        check_after(|engine| engine.scheduler.policy.root.idle.bits[0] ^= 1);
    }

    #[test]
    #[should_panic(expected = "utilisation")]
    fn an_average_added_twice_is_found() {
        check_after(|engine| {
            let (hog, cpu) = first_hog(engine);
            let twice = engine.scheduler.policy.task[hog].avg.util_avg;
            engine.scheduler.policy.rq[cpu].cfs.avg.util_avg += twice;
        });
    }

    #[test]
    #[should_panic(expected = "ns to tasks")]
    fn run_time_from_nowhere_is_found() {
        check_after(|engine| engine.cpus[CpuId::new(0)].counters.run_ns += 5_000);
    }
}
