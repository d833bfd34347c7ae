//! What the kernel's placements cost.
//!
//! [`Cost`] follows a trace beside a reconstruction and answers with a
//! [`CostReport`]: how long tasks ran and waited ([`turns`]), behind whom and what was
//! idle meanwhile ([`behind`], summed up in [`idle_beside`]) or while nothing ran
//! ([`throttled`]); how long they waited by how far they were sent ([`latency`]),
//! whether an idle CPU was missed when the kernel placed them ([`missed_idle`]), which
//! placements cost most ([`worst`]), and what went back and forth between LLCs
//! ([`bouncing`]). What follows from all that is in [`causes`]. How often tasks were
//! sent how far, [`Moves`](crate::Moves) counts.
//!
//! It judges what the kernel did, so one reconstruction is enough, that under the
//! kernel's own policy: from others it would learn nothing else. What it keeps is
//! bounded by the numbers of tasks, names and CPUs, however long the trace.
//!
//! Limits: what is idle, queued and allowed is what the reconstruction says. In
//! gaps of a trace a wait goes on until the task is seen again.

pub mod behind;
pub mod bouncing;
pub mod causes;
pub mod idle_beside;
pub mod latency;
pub mod missed_idle;
mod on_the_way;
pub mod places;
mod throttled;
pub mod turns;
mod waiting;
pub mod worst;

use placewise_machine::Machine;
use placewise_policy::{FIRST_TASK, State};
use serde::Serialize;

use self::behind::{BehindOther, Role};
use self::bouncing::{BouncingCounter, BouncingReport};
use self::causes::{Cause, Evidence, IdleExit};
use self::idle_beside::IdleBeside;
use self::latency::{LatencyMeter, LatencyReport};
use self::missed_idle::{MissedIdleCounter, MissedIdleReport};
use self::on_the_way::OnTheWay;
use self::places::{ByNearest, Nearest, Places};
use self::turns::{TurnMeter, TurnsOfName};
use self::waiting::Waiting;
use self::worst::{WorstDecision, WorstDecisions};
use crate::steps::by_name::ByName;
use crate::steps::by_number::ByTask;
use crate::steps::step::{Action, PrevState, Step};
use crate::steps::task::{TaskNumber, Tasks};
use crate::verdict::{Kind, NoPlacement, Placed, Verdict};
use placewise_policy::Distance;

/// What the placements of a trace cost.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct CostReport {
    /// From the first step to the last, less the silences. No cost.
    #[serde(skip)]
    pub duration_ns: u64,
    /// Those that are online. No cost either.
    #[serde(skip)]
    pub nr_cpus: u64,
    /// What kept tasks waiting, most expensive first.
    pub causes: Vec<Cause>,
    pub latency: LatencyReport,
    pub missed_idle: MissedIdleReport,
    /// Those that missed an idle CPU, most expensive first.
    pub worst_decisions: Vec<WorstDecision>,
    pub idle_beside: IdleBeside,
    /// What placements onto CPUs that ran nothing took until their tasks ran.
    pub idle_exit_ns: u64,
    /// How often a CPU began to idle.
    pub idle_entries: u64,
    /// Who waited behind whom.
    pub behind: Vec<BehindOther>,
    /// Time waited while the only idle CPUs were in other LLCs, by the LLC that was waited on.
    pub crowded_llcs_ns: Vec<u64>,
    pub bouncing: BouncingReport,
    /// Those that waited longest first.
    pub turns: Vec<TurnsOfName>,
}

/// Observes a trace.
pub struct Cost {
    places: Places,
    waiting: Waiting,
    latency: LatencyMeter,
    missed_idle: MissedIdleCounter,
    worst: WorstDecisions,
    bouncing: BouncingCounter,
    turns: TurnMeter,
    /// Placements whose tasks do not run yet.
    on_the_way: ByTask<Option<OnTheWay>>,
    idle_exit: ByName<IdleExit>,
    start: Option<u64>,
    now: u64,
    /// What the times of the trace are later by.
    silent_ns: u64,
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
            worst: WorstDecisions::default(),
            bouncing: BouncingCounter::default(),
            turns: TurnMeter::default(),
            on_the_way: ByTask::default(),
            idle_exit: ByName::default(),
            start: None,
            now: 0,
            silent_ns: 0,
        }
    }

    /// Takes a step, and the verdict and the state that it led the reconstruction to. Where the
    /// nearest idle CPU was that a placement missed.
    pub fn step(
        &mut self,
        step: &Step,
        verdict: &Verdict,
        state: &State,
        tasks: &Tasks,
    ) -> Option<Nearest> {
        self.now = self.now.max(step.time_ns);
        self.start.get_or_insert(self.now);
        if let Action::Silence { ns } = step.action {
            self.silent_ns += ns;
        }
        self.begin_wakeup(step, state, tasks);
        // A wakeup sees the CPUs that were idle before it, for its wakee is already on its way
        // after it. One that had to wait for a switch sees those after the switch.
        let after_switch = matches!(step.action, Action::Switch { .. });
        let mut missed = None;
        if let (Verdict::Placed(placed), false) = (verdict, after_switch) {
            missed = self.placed(step.time_ns, placed, state, tasks);
        }
        if let (Verdict::NoPlacement(NoPlacement::Bound), Action::Waking { task, prev_cpu, .. }) =
            (verdict, &step.action)
        {
            self.sent(*task, step.cpu, *prev_cpu, tasks);
        }
        self.waiting.step(self.now, step, state, &self.places, tasks);
        if let (Verdict::Placed(placed), true) = (verdict, after_switch) {
            missed = self.placed(step.time_ns, placed, state, tasks);
        }
        let current = Some(state.rq[step.cpu as usize].curr);
        self.turns.step(self.now, self.silent_ns, step, current, tasks);
        self.follow(step, tasks);
        missed
    }

    /// How many tasks wait beside an idle CPU that they may use.
    pub fn beside_idle(&self) -> ByNearest<u64> {
        self.waiting.idle_beside().beside_idle()
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

    fn placed(
        &mut self,
        time_ns: u64,
        placed: &Placed,
        state: &State,
        tasks: &Tasks,
    ) -> Option<Nearest> {
        let task = placed.task;
        let name = tasks.get(task).name;
        let distance = Distance::of(state, placed.prev_cpu, placed.actual);
        let allowed = &state.task[task as usize].cpus_allowed.bits;
        let idle = self.waiting.idle_beside().idle();
        self.latency.placed(task, placed.kind, distance);
        let missed = self.missed_idle.placed(placed, name, &self.places, idle, allowed);
        let runner = state.rq[placed.actual as usize].curr;
        let runner = (runner >= FIRST_TASK).then(|| Role::of(runner, tasks));
        let placement = OnTheWay::of(placed, time_ns + self.silent_ns, missed, runner, tasks);
        *self.on_the_way.of(task) = Some(placement);
        if placed.kind == Kind::Wakeup {
            self.sent(task, placed.waking_cpu, placed.actual, tasks);
        }
        missed
    }

    fn sent(&mut self, task: TaskNumber, waking_cpu: u32, cpu: u32, tasks: &Tasks) {
        let llc = |cpu| self.places.of(cpu).llc;
        self.bouncing.sent(task, llc(waking_cpu) != llc(cpu), tasks);
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
                    self.end_wait(next, tasks);
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

    fn runs(&mut self, task: TaskNumber, cpu: u32, tasks: &Tasks) {
        self.bouncing.switched_in(task, self.places.of(cpu).llc, self.now, tasks);
    }

    fn end_wait(&mut self, task: TaskNumber, tasks: &Tasks) {
        let behind_ns = self.waiting.take_behind_ns(task);
        let placement = self.on_the_way.of(task).take();
        let runner = placement.and_then(|placement| placement.runner);
        let onto_idle = behind_ns == 0 && runner.is_none();
        let since_woken = self.latency.since_woken(task, self.now);
        self.bouncing.reached(task, onto_idle.then_some(since_woken));
        let waited = self.latency.switched_in(task, self.now, behind_ns);
        if let Some((latency_ns, placement)) = waited.zip(placement) {
            self.missed_idle.waited(&placement, latency_ns);
            self.worst.waited(&placement, behind_ns);
            if let Some(runner) = runner {
                let on_the_way_ns = latency_ns.saturating_sub(behind_ns);
                self.waiting.arrived(&placement, runner, on_the_way_ns);
            } else if onto_idle {
                let idle_exit = self.idle_exit.of(tasks.get(task).name);
                idle_exit.wakeups += 1;
                idle_exit.ns += latency_ns;
            }
        }
    }

    fn forget_wait(&mut self, task: TaskNumber) {
        self.waiting.take_behind_ns(task);
        self.latency.forget(task);
        *self.on_the_way.of(task) = None;
    }

    fn end(&mut self, task: TaskNumber) {
        self.forget_wait(task);
        self.bouncing.end(task, self.now);
    }

    /// What the steps cost: there are no more.
    pub fn report(&mut self, tasks: &Tasks) -> CostReport {
        self.waiting.end(&self.places, tasks);
        self.turns.end(self.now, tasks);
        let duration_ns = self.now - self.start.unwrap_or(self.now);
        let bouncing = self.bouncing.report(self.now, duration_ns, tasks);
        let evidence = Evidence {
            waiting: &self.waiting,
            turns: &self.turns,
            worst: &self.worst,
            bouncing: &bouncing,
            idle_exit: &self.idle_exit,
            tasks,
            now: self.now,
        };
        CostReport {
            duration_ns,
            nr_cpus: self.places.nr_online.into(),
            causes: evidence.causes(),
            latency: self.latency.report(),
            missed_idle: self.missed_idle.report(tasks),
            worst_decisions: self.worst.report(tasks),
            idle_beside: self.waiting.idle_beside().report(),
            idle_exit_ns: self.idle_exit.iter().map(|(_, exit)| exit.ns).sum(),
            idle_entries: self.turns.idle_entries(),
            behind: self.waiting.behind().report(tasks),
            crowded_llcs_ns: self.waiting.behind().crowded_ns().to_vec(),
            bouncing,
            turns: self.turns.report(tasks),
        }
    }
}
