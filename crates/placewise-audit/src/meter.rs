//! What a trace shows at a moment, without asking any policy: how busy each CPU is, what waits where,
//! how far wakeups went and how long their tasks then waited.
//!
//! It measures by the same meters as the audit, so both say the same of a trace, but for one thing:
//! a policy tells which wakeups ran a placement, and here all of them count.
//!
//! Limit: of a trace that is still being made ([`Meter::live`]) what ran before each CPU's first event
//! is not known, and a wakeup whose end is late is given up sooner.

use placewise_machine::{Machine, MachineError};
use placewise_policy::{Distance, FIRST_TASK, Placement, Policy, kernel_names, topology};
use placewise_trace::{Event, LlcLoad, Record, RunQueues};

use crate::cost::latency::{Latency, LatencyMeter};
use crate::cost::turns::{TurnMeter, TurnsOfName};
use crate::steps::step::{Action, PrevState, Step};
use crate::steps::task::TaskNumber;
use crate::steps::timeline::Timeline;
use crate::verdict::Kind;

const NSEC_PER_SEC: u64 = 1_000_000_000;

/// What is shown of a trace so far.
#[derive(Clone, Debug)]
pub struct Moment {
    /// From the first event to the last, or to where the clock was put.
    pub elapsed_ns: u64,
    pub events: u64,
    pub lost: u64,
    /// By CPU, since the moment before: from 0 to 1.
    pub busy: Vec<f64>,
    pub llcs: Vec<LlcLoad>,
    /// Waits of wakeups by distance.
    pub wakeups: Vec<Latency>,
    /// By name, those that waited longest first.
    pub turns: Vec<TurnsOfName>,
}

/// Follows a trace.
pub struct Meter {
    /// Of an idle machine: its topology counts.
    state: Box<Placement>,
    timeline: Timeline,
    queues: RunQueues,
    latency: LatencyMeter,
    turns: TurnMeter,
    /// By CPU, as the steps have it.
    current: Vec<TaskNumber>,
    busy: Busy,
    start: Option<u64>,
    now: u64,
    silent_ns: u64,
    events: u64,
    lost: u64,
}

impl Meter {
    /// For a trace that is there as a whole.
    pub fn new(machine: &Machine) -> Result<Self, MachineError> {
        let tick_ns = NSEC_PER_SEC / u64::from(machine.costs.hz);
        Self::over(machine, Timeline::new(machine.cpus.len() as u32, tick_ns, false))
    }

    /// For one that is still being made.
    pub fn live(machine: &Machine) -> Result<Self, MachineError> {
        let tick_ns = NSEC_PER_SEC / u64::from(machine.costs.hz);
        Self::over(machine, Timeline::new(machine.cpus.len() as u32, tick_ns, false).live())
    }

    fn over(machine: &Machine, timeline: Timeline) -> Result<Self, MachineError> {
        // Where a CPU is does not depend on the kernel.
        let kernel = kernel_names().last().copied().expect("there are kernels");
        let policy = Policy::parse(kernel, "baseline").expect("every kernel has a baseline");
        let nr_cpus = machine.cpus.len();
        Ok(Meter {
            state: Box::new(topology::boot(machine, &policy.profile)?.0),
            timeline,
            queues: RunQueues::new(machine),
            latency: LatencyMeter::default(),
            turns: TurnMeter::default(),
            current: (0..nr_cpus as TaskNumber).collect(),
            busy: Busy::new(nr_cpus),
            start: None,
            now: 0,
            silent_ns: 0,
            events: 0,
            lost: 0,
        })
    }

    pub fn read(&mut self, record: &Record<'_>) {
        self.events += 1;
        if let Event::LostEvents { count } = record.event {
            self.lost = self.lost.saturating_add(count.max(1));
        }
        self.queues.follow(record);
        self.timeline.push(record);
        self.drain();
    }

    /// There are no more records.
    pub fn end(&mut self) {
        self.timeline.end();
        self.drain();
    }

    /// It is this late, whether or not anything has happened.
    pub fn advance(&mut self, now_ns: u64) {
        self.now = self.now.max(now_ns.saturating_sub(self.silent_ns));
    }

    /// What is shown now; busy shares begin anew.
    pub fn moment(&mut self) -> Moment {
        let tasks = self.timeline.tasks();
        self.turns.end(self.now, tasks);
        Moment {
            elapsed_ns: self.now - self.start.unwrap_or(self.now),
            events: self.events,
            lost: self.lost,
            busy: self.busy.take(self.now, &self.current),
            llcs: self.queues.llcs().to_vec(),
            wakeups: self.latency.report().wakeups.to_vec(),
            turns: self.turns.report(tasks),
        }
    }

    fn drain(&mut self) {
        while let Some(step) = self.timeline.pop() {
            self.step(&step);
        }
    }

    fn step(&mut self, step: &Step) {
        self.now = self.now.max(step.time_ns);
        if self.start.is_none() {
            self.start = Some(self.now);
            self.busy.begin(self.now);
        }
        match step.action {
            Action::Silence { ns } => self.silent_ns += ns,
            Action::Waking { task, prev_cpu, outcome } => {
                self.latency.woken(task, self.now);
                if let Some(outcome) = outcome {
                    let distance = Distance::of(&self.state, prev_cpu, outcome.cpu);
                    self.latency.placed(task, Kind::Wakeup, distance);
                }
            }
            Action::Running { task } => {
                self.latency.forget(task);
                self.runs(step.cpu, task);
            }
            Action::Switch { prev, prev_state, next } => {
                if next >= FIRST_TASK {
                    self.latency.switched_in(next, self.now, 0);
                }
                if prev_state == PrevState::Dead {
                    self.latency.forget(prev);
                }
                self.runs(step.cpu, next);
            }
            Action::Forgotten { task } => self.latency.forget(task),
            _ => {}
        }
        let current = self.current[step.cpu as usize];
        let tasks = self.timeline.tasks();
        self.turns.step(self.now, self.silent_ns, step, current, tasks);
    }

    fn runs(&mut self, cpu: u32, task: TaskNumber) {
        let before = std::mem::replace(&mut self.current[cpu as usize], task);
        self.busy.changes(cpu as usize, before >= FIRST_TASK, self.now);
    }
}

/// How long each CPU has been busy since it was last asked.
struct Busy {
    ns: Vec<u64>,
    since: Vec<u64>,
    asked: u64,
}

impl Busy {
    fn new(nr_cpus: usize) -> Self {
        Busy { ns: vec![0; nr_cpus], since: vec![0; nr_cpus], asked: 0 }
    }

    fn begin(&mut self, now: u64) {
        self.since.fill(now);
        self.asked = now;
    }

    fn changes(&mut self, cpu: usize, was_busy: bool, now: u64) {
        if was_busy {
            self.ns[cpu] += now.saturating_sub(self.since[cpu]);
        }
        self.since[cpu] = now;
    }

    fn take(&mut self, now: u64, current: &[TaskNumber]) -> Vec<f64> {
        for (cpu, task) in current.iter().enumerate() {
            self.changes(cpu, *task >= FIRST_TASK, now);
        }
        let elapsed = (now - self.asked).max(1) as f64;
        self.asked = now;
        let share = |ns: u64| (ns as f64 / elapsed).min(1.0);
        self.ns.iter_mut().map(|ns| share(std::mem::take(ns))).collect()
    }
}
