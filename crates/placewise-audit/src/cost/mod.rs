//! What the kernel's placements cost.
//!
//! [`Cost`] follows a trace beside a reconstruction and answers with a
//! [`CostReport`]: how long tasks waited, by how far they were sent ([`latency`]),
//! whether an idle CPU was missed when the kernel placed them ([`missed_idle`]) and
//! while they waited ([`idle_beside`]), and what went back and forth between LLCs
//! ([`bouncing`]). How often they were sent how far, [`Moves`](crate::Moves) counts.
//!
//! It judges what the kernel did, so one reconstruction is enough, that under the
//! kernel's own policy: from others it would learn nothing else. What it keeps is
//! bounded by the numbers of tasks, names and CPUs, however long the trace.
//!
//! Limits: what is idle, queued and allowed is what the reconstruction says. In
//! gaps of a trace a wait goes on until the task is seen again.

pub mod bouncing;
pub mod idle_beside;
pub mod latency;
pub mod missed_idle;
pub mod places;
mod waiting;

use placewise_machine::Machine;
use placewise_policy::{FIRST_TASK, State};
use serde::Serialize;

use self::bouncing::{BouncingCounter, BouncingReport};
use self::idle_beside::IdleBeside;
use self::latency::{LatencyMeter, LatencyReport};
use self::missed_idle::{MissedIdleCounter, MissedIdleReport};
use self::places::Places;
use self::waiting::Waiting;
use crate::steps::step::{Action, PrevState, Step};
use crate::steps::task::{TaskId, Tasks};
use crate::verdict::{Kind, Placed, Verdict};
use placewise_policy::Distance;

/// What the placements of a trace cost.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct CostReport {
    /// From the first step to the last, less the silences. No cost.
    #[serde(skip)]
    pub duration_ns: u64,
    pub latency: LatencyReport,
    pub missed_idle: MissedIdleReport,
    pub idle_beside: IdleBeside,
    pub bouncing: BouncingReport,
}

/// Observes a trace.
pub struct Cost {
    places: Places,
    waiting: Waiting,
    latency: LatencyMeter,
    missed_idle: MissedIdleCounter,
    bouncing: BouncingCounter,
    start: Option<u64>,
    now: u64,
}

impl Cost {
    /// `state`: that of the reconstruction before the first step.
    pub fn new(machine: &Machine, state: &State) -> Self {
        let places = Places::new(machine);
        Cost {
            waiting: Waiting::new(&places, state),
            places,
            latency: LatencyMeter::default(),
            missed_idle: MissedIdleCounter::default(),
            bouncing: BouncingCounter::default(),
            start: None,
            now: 0,
        }
    }

    /// Takes a step, and the verdict and the state that it led the reconstruction to.
    pub fn step(&mut self, step: &Step, verdict: &Verdict, state: &State, tasks: &Tasks) {
        self.now = self.now.max(step.time_ns);
        self.start.get_or_insert(self.now);
        self.begin_wakeup(step, state, tasks);
        // A wakeup sees the CPUs that were idle before it, for its wakee is already on its way
        // after it. One that had to wait for a switch sees those after the switch.
        let after_switch = matches!(step.action, Action::Switch { .. });
        if let (Verdict::Placed(placed), false) = (verdict, after_switch) {
            self.placed(placed, state, tasks);
        }
        self.waiting.step(self.now, step, state, &self.places);
        if let (Verdict::Placed(placed), true) = (verdict, after_switch) {
            self.placed(placed, state, tasks);
        }
        self.follow(step, tasks);
    }

    fn begin_wakeup(&mut self, step: &Step, state: &State, tasks: &Tasks) {
        match step.action {
            Action::Waking { task, .. } => {
                let current = state.rq[step.cpu as usize].curr;
                let by_task = current >= FIRST_TASK && !step.context.is_interrupt();
                let waker = by_task.then_some(current);
                self.latency.woken(task, self.now);
                self.bouncing.woken(task, waker, tasks);
            }
            Action::WakeupNew { task, .. } => self.latency.woken(task, self.now),
            _ => {}
        }
    }

    fn placed(&mut self, placed: &Placed, state: &State, tasks: &Tasks) {
        let task = placed.task;
        let name = tasks.get(task).name;
        let distance = Distance::of(state, placed.prev_cpu, placed.actual);
        let allowed = &state.task[task as usize].cpus_allowed.bits;
        let idle = self.waiting.idle_beside().idle();
        self.latency.placed(task, placed.kind, distance);
        self.missed_idle.placed(placed, name, &self.places, idle, allowed);
        if placed.kind == Kind::Wakeup {
            let llc = |cpu| self.places.of(cpu).llc;
            self.bouncing.placed(task, llc(placed.waking_cpu) != llc(placed.actual), tasks);
        }
    }

    fn follow(&mut self, step: &Step, tasks: &Tasks) {
        match step.action {
            Action::Running { task } if task >= FIRST_TASK => {
                // It came to run in a gap of the trace.
                self.forget_wait(task);
                self.runs(task, step.cpu, tasks);
            }
            Action::Switch { prev, prev_state, next } => {
                if next >= FIRST_TASK {
                    self.end_wait(next);
                    self.runs(next, step.cpu, tasks);
                }
                if prev_state == PrevState::Dead {
                    self.end(prev);
                }
            }
            Action::Forgotten { task } => self.end(task),
            _ => {}
        }
    }

    fn runs(&mut self, task: TaskId, cpu: u32, tasks: &Tasks) {
        self.bouncing.switched_in(task, self.places.of(cpu).llc, self.now, tasks);
    }

    fn end_wait(&mut self, task: TaskId) {
        let behind_ns = self.waiting.take_behind_ns(task);
        if let Some(latency) = self.latency.switched_in(task, self.now, behind_ns) {
            self.missed_idle.waited(task, latency);
        }
    }

    fn forget_wait(&mut self, task: TaskId) {
        self.waiting.take_behind_ns(task);
        self.latency.forget(task);
        self.missed_idle.forget(task);
    }

    fn end(&mut self, task: TaskId) {
        self.forget_wait(task);
        self.bouncing.end(task, self.now);
    }

    /// What the steps so far cost.
    pub fn report(&self, tasks: &Tasks) -> CostReport {
        let duration_ns = self.now - self.start.unwrap_or(self.now);
        CostReport {
            duration_ns,
            latency: self.latency.report(),
            missed_idle: self.missed_idle.report(tasks),
            idle_beside: self.waiting.idle_beside().report(),
            bouncing: self.bouncing.report(self.now, duration_ns, tasks),
        }
    }
}
