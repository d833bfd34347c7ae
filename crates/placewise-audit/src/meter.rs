//! What a trace shows at a moment, without asking any policy: how busy each CPU is, what waits where,
//! how far wakeups went and how long their tasks then waited.
//!
//! It measures by the same meters as the audit, so both say the same of a trace, but for one thing:
//! a policy tells which wakeups ran a placement, and here all of them count.
//!
//! Times in which nothing was traced ([`Meter::untraced`]) are no time of it: what spans one is not
//! measured, and what a CPU runs behind one is not known until its first event, which tells what it
//! has run since.
//!
//! Limit: of a trace that is still being made ([`Meter::live`]) a wakeup whose end is late is given up
//! sooner.

use std::mem::{replace, take};

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
    /// By CPU, since the moment before: from 0 to 1. Where nothing is known of that time, as it was
    /// before.
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
    /// By CPU, as the steps have it. None: it is not known.
    current: Vec<Option<TaskNumber>>,
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
            current: (0..nr_cpus as TaskNumber).map(Some).collect(),
            busy: Busy(vec![CpuBusy::default(); nr_cpus]),
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

    /// Of a live trace: nothing was traced between these times, which all records so far are before.
    pub fn untraced(&mut self, from_ns: u64, until_ns: u64) {
        self.timeline.untraced(from_ns, until_ns);
        self.drain();
        (0..self.current.len() as u32).for_each(|cpu| self.lose_sight_of(cpu));
        self.latency.forget_waits();
        self.turns.forget_waits();
        self.queues.forget_queued();
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
            // The next event tells nothing of the time before.
            Action::Lost { .. } if self.current[step.cpu as usize].is_none() => {
                self.lose_sight_of(step.cpu);
            }
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

    /// From now on it is not known what a CPU runs.
    fn lose_sight_of(&mut self, cpu: u32) {
        let before = self.current[cpu as usize].take();
        self.busy.0[cpu as usize].lose_sight(before, self.now);
        self.turns.lose_sight_of(cpu, self.now, self.timeline.tasks());
    }

    fn runs(&mut self, cpu: u32, task: TaskNumber) {
        let before = self.current[cpu as usize].replace(task);
        // The first that is seen where nothing was known has run since then.
        self.busy.0[cpu as usize].did(before.unwrap_or(task), self.now);
    }
}

/// How busy the CPUs have been since that was last asked.
struct Busy(Vec<CpuBusy>);

#[derive(Clone, Default)]
struct CpuBusy {
    busy_ns: u64,
    /// Of the time in which it is known what it did.
    known_ns: u64,
    since: u64,
    /// As it was last asked for.
    share: f64,
}

impl Busy {
    fn begin(&mut self, now: u64) {
        self.0.iter_mut().for_each(|cpu| cpu.since = now);
    }

    fn take(&mut self, now: u64, current: &[Option<TaskNumber>]) -> Vec<f64> {
        let share = |(cpu, task): (&mut CpuBusy, &Option<TaskNumber>)| {
            task.inspect(|&task| cpu.did(task, now));
            cpu.take()
        };
        self.0.iter_mut().zip(current).map(share).collect()
    }
}

impl CpuBusy {
    /// It ran that task until now.
    fn did(&mut self, task: TaskNumber, now: u64) {
        let ns = now.saturating_sub(replace(&mut self.since, now));
        self.known_ns += ns;
        self.busy_ns += if task >= FIRST_TASK { ns } else { 0 };
    }

    /// It ran that task until now, if any is known.
    fn lose_sight(&mut self, before: Option<TaskNumber>, now: u64) {
        before.inspect(|&task| self.did(task, now));
        self.since = now;
    }

    fn take(&mut self) -> f64 {
        let (busy_ns, known_ns) = (take(&mut self.busy_ns), take(&mut self.known_ns));
        if known_ns > 0 {
            self.share = busy_ns as f64 / known_ns as f64;
        }
        self.share
    }
}

#[cfg(test)]
mod tests {
    use std::io::Cursor;

    use placewise_trace::TraceReader;

    use super::*;

    const US: u64 = 1_000;
    const SECOND: u64 = 1_000_000 * US;

    /// A live meter that begins when a second is over.
    fn begun() -> Meter {
        let mut meter =
            Meter::live(&placewise_machine::load("pack:1 l3:2 core:2 pu:1").unwrap()).unwrap();
        meter.untraced(SECOND, SECOND);
        meter
    }

    /// Events, and that it is this late then.
    fn read(meter: &mut Meter, events: &[String], until_ns: u64) {
        let mut reader = TraceReader::from_reader("trace", Cursor::new(events.concat())).unwrap();
        while let Some(record) = reader.next_record().unwrap() {
            meter.read(&record);
        }
        meter.advance(until_ns);
    }

    /// Tasks are pids; 0 is the idle task.
    fn switch(time: &str, cpu: u32, prev: u32, state: &str, next: u32) -> String {
        format!(
            "<...>-{prev} [{cpu:03}] d..2. {time}: sched_switch: prev_comm=t{prev} prev_pid={prev} prev_prio=120 \
             prev_state={state} ==> next_comm=t{next} next_pid={next} next_prio=120\n"
        )
    }

    fn woken(event: &str, time: &str, waker: u32, pid: u32, target: u32) -> String {
        let target = format!("target_cpu={target:03}");
        format!(
            "<...>-{waker} [000] d..2. {time}: {event}: comm=t{pid} pid={pid} prio=120 {target}\n"
        )
    }

    /// How often it waited, and for how long it ran, in us.
    fn turns(moment: &Moment, name: &str) -> (u64, u64) {
        let of = moment.turns.iter().find(|of| of.name == name).unwrap();
        (of.waits, of.run_ns / US)
    }

    #[test]
    fn what_spans_untraced_time_is_not_measured() {
        let mut meter = begun();
        let before = [
            switch("1.000000", 0, 0, "R", 10),
            woken("sched_waking", "1.000500", 10, 11, 1),
            woken("sched_wakeup", "1.000510", 10, 11, 1),
            switch("1.000600", 0, 10, "R+", 12),
            // How this one ends is not traced.
            woken("sched_waking", "1.000700", 12, 14, 2),
        ];
        read(&mut meter, &before, SECOND + 1_000 * US);
        meter.untraced(SECOND + 1_000 * US, 5 * SECOND + 1_000 * US);
        let after = [
            switch("5.001200", 1, 0, "R", 11),
            switch("5.001400", 2, 0, "R", 14),
            // By then 13 had taken the place of 12.
            switch("5.001500", 0, 13, "S", 10),
        ];
        read(&mut meter, &after, 5 * SECOND + 2_000 * US);
        let moment = meter.moment();
        assert_eq!(moment.elapsed_ns, 2_000 * US);
        let all = ["t10", "t11", "t12", "t13", "t14"].map(|name| turns(&moment, name));
        assert_eq!(all, [(0, 600 + 500), (0, 800), (0, 400), (0, 500), (0, 600)]);
        assert!(moment.wakeups.iter().all(|of| of.wakeup_to_run.count == 0));
        assert_eq!(moment.busy, [1.0, 0.8, 0.6, 0.0], "of the time in which it is known");
    }

    #[test]
    fn what_begins_and_ends_beside_untraced_time_is_measured() {
        let mut meter = begun();
        read(&mut meter, &[switch("1.000000", 0, 0, "R", 10)], SECOND + 1_000 * US);
        meter.untraced(SECOND + 1_000 * US, 5 * SECOND);
        let after = [
            woken("sched_waking", "5.000100", 10, 11, 1),
            woken("sched_wakeup", "5.000110", 10, 11, 1),
            switch("5.000300", 1, 0, "R", 11),
        ];
        read(&mut meter, &after, 5 * SECOND + 1_000 * US);
        let moment = meter.moment();
        assert_eq!(turns(&moment, "t11"), (1, 700));
        let waits: Vec<u64> = moment.wakeups.iter().map(|of| of.wakeup_to_run.max_ns).collect();
        assert_eq!(waits.iter().max(), Some(&(200 * US)));
    }

    #[test]
    fn what_a_cpu_runs_is_not_known_until_its_first_event() {
        let mut meter = begun();
        read(&mut meter, &[switch("1.000200", 0, 0, "R", 10)], SECOND + 1_000 * US);
        assert_eq!(meter.moment().busy[0], 0.8);
        meter.untraced(SECOND + 1_000 * US, 5 * SECOND);
        meter.advance(5 * SECOND + 1_000 * US);
        let moment = meter.moment();
        assert_eq!((turns(&moment, "t10"), moment.busy[0]), ((0, 800), 0.8), "as it was before");
        // It tells of all the time since 5 s.
        read(&mut meter, &[switch("5.002000", 0, 10, "S", 0)], 5 * SECOND + 4_000 * US);
        let moment = meter.moment();
        assert_eq!((turns(&moment, "t10"), moment.busy[0]), ((0, 800 + 2_000), 0.5));
    }

    #[test]
    fn the_first_event_behind_lost_ones_tells_of_the_time_since_these() {
        let mut meter = begun();
        let events = [
            switch("1.001000", 1, 0, "R", 11),
            "CPU:0 [LOST 5 EVENTS]\n".to_owned(),
            switch("1.003000", 0, 10, "S", 0),
        ];
        read(&mut meter, &events, SECOND + 5_000 * US);
        let moment = meter.moment();
        assert_eq!((turns(&moment, "t10"), moment.busy[0]), ((0, 2_000), 0.5));
    }
}
