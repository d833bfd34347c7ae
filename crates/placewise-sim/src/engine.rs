//! The simulation: its parts, and what each event starts.
//!
//! ```text
//!   segment ends ── ops.rs ──> next segment, or a wakeup, or a block
//!   fork        ── fork.rs ──> the child is enqueued at once
//!   wakeup      ── wakeup.rs ─> select now, enqueue after the cost of selecting
//!   block       ── schedule.rs > pick, newly-idle balance, switch, idle
//!   interrupt   ── interrupt.rs > wake list, timers, ticks
//!   balance     ── balance.rs > carry out what the policy decided
//!   change      ── changes.rs > affinity.rs, hotplug.rs, cfs_bandwidth.rs
//! ```
//!
//! The engine owns time; what happens to a task on the run queues is the
//! scheduler core's business, and where it goes the policy's alone. The files
//! named here are those of step/; what they share is in state/.

use placewise_machine::Machine;
use placewise_policy::*;
use placewise_run_queue::{Enqueue, Scheduler};
use placewise_trace::Sink;
use placewise_workload::program::{Cgroup, Change, Workload};

use crate::error::SimError;
use crate::outcome::Outcome;
use crate::scenario::Scenario;
use crate::state::confinement::{Confinement, task_group};
use crate::state::costs::CostModel;
use crate::state::cpu::{Activity, Cpu};
use crate::state::event_queue::Time;
use crate::state::events::{Events, Slot};
use crate::state::hardware::Hardware;
use crate::state::measure::{Measurement, Milestone};
use crate::state::newidle_memory::NewidleMemory;
use crate::state::objects::Objects;
use crate::state::programs::Programs;
use crate::state::task::{Task, TaskState};
use crate::state::tracer::Tracer;

pub struct Engine<'a> {
    pub now: Time,
    pub events: Events,
    /// The run queues, and the policy's state.
    pub scheduler: Scheduler,
    pub cpus: PerCpu<Cpu>,
    /// The idle tasks come first.
    pub tasks: Table<TaskId, Task>,
    pub costs: CostModel<'a>,
    pub hardware: Hardware<'a>,
    pub objects: Objects,
    pub programs: Programs,
    pub confinement: Confinement,
    pub workload: &'a Workload,
    /// Those of the workload that are still to come.
    pub changes: &'a [Change],
    /// What the first task hands down, unless its program names another.
    pub hint: u8,
    pub measurement: Measurement,
    pub tracer: Tracer<'a>,
    /// When a task last got something done; a deadlock leaves only ticks.
    pub last_progress: Time,
    /// The first task has exited, and takes with it what it left running; or there are too many.
    pub finished: bool,
}

/// Runs a scenario to its end; tracepoints go to `trace`.
pub fn simulate<'r>(
    scenario: &Scenario<'r>,
    trace: Option<&'r mut dyn Sink>,
) -> Result<Outcome, SimError> {
    Engine::new(scenario, trace)?.run_observed(|_| {})
}

/// One of several runs, one after the other on a machine that is booted once: it starts with what CPUs remember of the
/// one before, and leaves that for the next.
pub fn simulate_after(
    scenario: &Scenario,
    memory: &mut NewidleMemory,
) -> Result<Outcome, SimError> {
    let mut engine = Engine::new(scenario, None)?;
    memory.restore(&mut engine.scheduler, &engine.hardware.domains);
    let outcome = engine.run_observed(|_| {})?;
    *memory = NewidleMemory::of(&engine.scheduler, &engine.hardware.domains, engine.now);
    Ok(outcome)
}

impl<'a> Engine<'a> {
    pub fn new(scenario: &Scenario<'a>, trace: Option<&'a mut dyn Sink>) -> Result<Self, SimError> {
        scenario.check()?;
        let Scenario { machine, policy, workload, seed } = *scenario;
        let group = |cgroup: &Cgroup| (task_group(cgroup.parent), cgroup.shares);
        let groups: Vec<(u32, u32)> = workload.cgroups.iter().map(group).collect();
        let (mut scheduler, domains) = Scheduler::boot(machine, policy, &groups)?;
        let nr_cpus = machine.cpus.len() as u32;
        let costs = CostModel::new(machine, &domains, policy.profile.measured, seed);
        NewidleMemory::usual(&costs, &domains).restore(&mut scheduler, &domains);
        let cpu = |cpu| Cpu::new(cpu, costs.thread_speed(cpu, 0));
        Ok(Engine {
            now: topology::BOOT,
            events: Events::new(nr_cpus),
            cpus: (0..nr_cpus).map(CpuId::new).map(cpu).collect(),
            tasks: (0..FIRST_TASK).map(|_| Task::default()).collect(),
            costs,
            hardware: Hardware::new(machine, domains),
            objects: Objects::new(workload, nr_cpus, policy.profile.pipe_wakes),
            programs: Programs::new(workload),
            confinement: Confinement::new(machine, workload),
            scheduler,
            workload,
            changes: &workload.changes,
            hint: policy.hint.mask() as u8,
            measurement: Measurement::new(machine, workload),
            tracer: Tracer::new(trace),
            last_progress: 0,
            finished: false,
        })
    }

    /// The tasks there have been, without the idle tasks.
    pub fn user_tasks(&self) -> impl Iterator<Item = TaskId> + Clone + use<> {
        self.tasks.ids_from(TaskId::FIRST)
    }

    /// What `cpu` does from now on, until `end`.
    #[inline]
    pub fn begin(&mut self, cpu: CpuId, activity: Activity, end: Time) {
        self.cpus[cpu].activity = activity;
        self.events.arm(Slot::Activity(cpu), end);
    }

    /// Runs until the workload's window is over or its first task has exited; `observe` sees the
    /// state after each event.
    pub fn run_observed(
        &mut self,
        mut observe: impl FnMut(&Engine<'a>),
    ) -> Result<Outcome, SimError> {
        self.start();
        let mut begin = self.snapshot();
        // What balancing alone brings about takes busy CPUs of wide domains seconds, of which a
        // published run has many: before the window they balance as often as idle ones.
        let busy_factor = self.scheduler.policy.profile.busy_factor;
        if self.workload.window.warm_up > 0 {
            self.scheduler.policy.profile.busy_factor = 1;
        }
        while let Some((time, slot)) = self.events.pop() {
            if self.measurement.occupancy.is_due(time) {
                self.look_at_occupancy(time);
            }
            let milestone = if self.measurement.is_due(time) { self.look(time) } else { None };
            if let Some(Milestone::End) = milestone {
                // A short window may have been over before its first event.
                self.now = self.now.max(self.measurement.end());
                break;
            }
            self.now = time;
            if let Some(Milestone::Begin) = milestone {
                begin = self.snapshot();
                self.scheduler.policy.profile.busy_factor = busy_factor;
                self.measurement.occupancy.start(time);
            }
            self.measurement.events += 1;
            match slot {
                Slot::Activity(cpu) => self.activity_done(cpu),
                _ => self.come_between(slot)?,
            }
            observe(self);
            if self.finished {
                break;
            }
        }
        self.check_tasks()?;
        if !self.finished && !self.measurement.is_over(self.now) {
            return Err(self.deadlock());
        }
        let end = self.snapshot();
        Ok(self.outcome(&begin, &end))
    }

    /// Task 0 starts on the CPU that its program names, or on the first online one that it may use, as a child
    /// of its idle task.
    fn start(&mut self) {
        let online = self.hardware.machine.online();
        let may_use = self.confinement.affinity.asked[0].map_or(online, |cpus| cpus & online);
        let named = self.workload.programs[0].begins_on.map(|cpu| cpu as usize);
        let named = named.filter(|cpu| may_use.contains(*cpu));
        let cpu: CpuId = named.or(may_use.first()).expect("the scenario is checked").into();
        if self.confinement.affinity.in_use {
            self.update_cpusets();
        }
        for (cgroup, group) in self.workload.cgroups.iter().zip(1..) {
            if cgroup.quota.is_some() {
                self.set_quota(group, cgroup.quota);
            }
        }
        let task = self.new_task(0, 0, 0, cpu);
        self.tasks[task].parent = task;
        self.scheduler.policy.copy_task(task.into(), cpu.into(), cpu.into());
        self.start_process(task);
        self.scheduler.policy.task[task].hint = self.hint;
        self.begin_as_named(task);
        self.join_cgroup(task);
        self.scheduler.policy.place_new_task(task.into(), cpu.into());
        self.enqueue(task, Enqueue::Fork);
        self.kick_idle(cpu, self.now);
        self.await_change();
        self.await_clocks();
    }

    /// Something comes that is no end of what a CPU does: a deadlock leaves nothing else.
    #[inline(never)]
    fn come_between(&mut self, slot: Slot) -> Result<(), SimError> {
        match slot {
            Slot::Activity(_) => unreachable!("it is the end of what a CPU does"),
            Slot::Tick(cpu) => self.tick(cpu),
            Slot::Interrupt(cpu) => self.interrupt(cpu),
            Slot::InterruptWakeup(cpu) => self.interrupt_wakeup_done(cpu),
            Slot::Timer(task) => self.timer_expired(task),
            Slot::Change => self.change()?,
            Slot::Clock => self.look_at_clocks(),
            Slot::Period(group) => self.period_begins(group),
            Slot::Slack(group) => self.slack_timer(group),
        }
        self.check_progress()
    }

    #[inline]
    fn activity_done(&mut self, cpu: CpuId) {
        match self.cpus[cpu].activity {
            Activity::Segment => self.segment_done(cpu),
            Activity::Wakeup => self.wakeup_step_done(cpu),
            Activity::Switch => self.switch_done(cpu),
            Activity::Schedule => self.go_on(cpu, self.scheduler.current(cpu)),
            Activity::NewIdle => self.newidle_level_done(cpu),
            Activity::TakeOver => self.take_over(cpu),
            Activity::Pick => self.pick_from_idle(cpu),
            Activity::WakeList => {
                self.enqueue_arriving(cpu);
                self.idle_loop(cpu);
            }
            Activity::IdleExit | Activity::NohzBalance | Activity::IdleInterrupt => {
                self.idle_loop(cpu);
            }
            Activity::Idle | Activity::Spinning => unreachable!("they have no end of their own"),
        }
    }

    #[cold]
    fn look(&mut self, time: Time) -> Option<Milestone> {
        let shares = || shares_of_nodes(&self.tasks, &self.scheduler, self.hardware.machine);
        self.measurement.milestone(time, shares)
    }

    /// Counts where tasks are for all looks that are due by `time`, which may be none: the window
    /// has an end.
    #[cold]
    fn look_at_occupancy(&mut self, time: Time) {
        let looks = self.measurement.occupancy.take_looks(time.min(self.measurement.end()));
        for task in self.user_tasks() {
            let Task { state, program, .. } = self.tasks[task];
            if state != TaskState::Exited {
                let cpu = self.scheduler.cpu_of(task);
                self.measurement.occupancy.found(program, cpu, looks);
            }
        }
    }

    fn deadlock(&self) -> SimError {
        SimError::Deadlock { workload: self.workload.name.clone(), seconds: self.now as f64 / 1e9 }
    }

    fn check_progress(&self) -> Result<(), SimError> {
        /// Ticks alone go on for ever; no model sleeps as long as this.
        const PATIENCE: Time = 300_000_000_000;
        if self.now - self.last_progress > PATIENCE {
            return Err(self.deadlock());
        }
        Ok(())
    }

    fn check_tasks(&self) -> Result<(), SimError> {
        if self.tasks.len() == NR_TASKS as usize {
            return Err(SimError::TooManyTasks {
                workload: self.workload.name.clone(),
                limit: NR_TASKS - FIRST_TASK,
            });
        }
        Ok(())
    }
}

/// What each node has of the tasks that there are.
fn shares_of_nodes(
    tasks: &Table<TaskId, Task>,
    scheduler: &Scheduler,
    machine: &Machine,
) -> Vec<f64> {
    let mut on = vec![0.0; machine.nr_nodes()];
    for task in tasks.ids_from(TaskId::FIRST) {
        if tasks[task].state != TaskState::Exited {
            on[usize::from(machine.cpus[usize::from(scheduler.cpu_of(task))].node)] += 1.0;
        }
    }
    let all: f64 = on.iter().sum();
    on.iter().map(|here| here / all).collect()
}
