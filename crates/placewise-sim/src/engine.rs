//! The simulation: one state, one event queue, and what each event starts.
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
//! scheduler core's business, and where it goes the policy's alone.

use placewise_machine::{Domains, Machine, MachineError};
use placewise_policy::topology;
use placewise_policy::weight::weight_of;
use placewise_policy::*;
use placewise_trace::Sink;
use placewise_workload::program::{Cgroup, CgroupId, SchedPolicy, Workload};

use crate::SimError;
use crate::affinity::Affinity;
use crate::balance::pass_costs;
use crate::bandwidth::Bandwidth;
use crate::cfs_bandwidth::CfsBandwidth;
use crate::channel::Channel;
use crate::costs::CostModel;
use crate::cpu::{Activity, Cpu};
use crate::event_queue::{EventQueue, Time};
use crate::hotplug::Hotplug;
use crate::measure::Measurement;
use crate::occupancy::Occupancy;
use crate::outcome::Outcome;
use crate::sync::{Barrier, Condition, Flag, Gate, Mutex};
use crate::task::{Task, TaskState};
use placewise_run_queue::{Enqueue, Scheduler};

/// The first user task of a real boot has a pid of about this size.
const FIRST_PID: u32 = 1000;

pub struct Engine<'a> {
    pub now: Time,
    pub queue: EventQueue,
    pub scheduler: Scheduler,
    pub costs: CostModel<'a>,
    pub bandwidth: Bandwidth,
    pub workload: &'a Workload,
    pub machine: &'a Machine,
    pub domains: Domains,

    pub cpus: Vec<Cpu>,
    /// By the policy's task numbers.
    pub tasks: Vec<Task>,
    pub next_task: u32,
    /// The first task has exited, and takes with it what it left running.
    pub finished: bool,

    pub channels: Vec<Channel>,
    pub mutexes: Vec<Mutex>,
    pub conditions: Vec<Condition>,
    pub barriers: Vec<Barrier>,
    pub gates: Vec<Gate>,
    pub flags: Vec<Flag>,
    pub lists: Vec<Vec<u32>>,
    pub timers: Vec<Option<Time>>,
    /// Where the next device interrupt arrives.
    pub interrupt_cpu: u32,

    pub affinity: Affinity,
    pub hotplug: Hotplug,
    pub cfs_bandwidth: CfsBandwidth,
    /// Index into the workload's changes.
    pub next_change: usize,

    /// CPUs of each LLC that are not idle, and since when that is none; at last those of CPUs that
    /// are offline.
    pub llc_busy: Vec<(u32, Time)>,
    pub measurement: Measurement,
    pub occupancy: Occupancy,
    pub trace: Option<&'a mut dyn Sink>,
    pub traces_decisions: bool,
    pub hint: u8,
    /// What a balance pass over each level of each CPU takes, before its spread.
    pub pass_costs: Vec<Vec<Time>>,
    /// When a task last got something done; a deadlock leaves only ticks.
    pub last_progress: Time,
}

/// The events a CPU can have, then one per task for its timer. Idle tasks have none: their slots are
/// that of the next change and those of the timers of cgroups.
pub enum Slot {
    Activity(u32),
    Tick(u32),
    /// An interrupt arrives.
    Interrupt(u32),
    /// A wakeup made by an interrupt goes on.
    InterruptWakeup(u32),
    Change,
    /// A period of a cgroup's quota ends.
    Period(u32),
    /// Runtime of a cgroup that was given back is handed out.
    Slack(u32),
    Timer(u32),
}

const SLACK_SLOTS: u32 = NR_TASK_GROUPS;

impl<'a> Engine<'a> {
    pub fn new(
        machine: &'a Machine,
        policy: &Policy,
        workload: &'a Workload,
        seed: u64,
        trace: Option<&'a mut dyn Sink>,
    ) -> Result<Self, MachineError> {
        let group = |cgroup: &Cgroup| (task_group(cgroup.parent), cgroup.shares);
        let groups: Vec<(u32, u32)> = workload.cgroups.iter().map(group).collect();
        let (scheduler, domains) = Scheduler::boot(machine, &policy.profile, &groups)?;
        let nr_cpus = machine.cpus.len();
        let nr_tasks = FIRST_TASK as usize;
        let mut tasks: Vec<Task> = (0..nr_tasks).map(|_| Task::unused()).collect();
        for (cpu, task) in tasks.iter_mut().enumerate().take(nr_cpus) {
            task.last_cpu = cpu as u32;
        }
        let costs = CostModel::new(machine, seed);
        Ok(Engine {
            pass_costs: pass_costs(&costs, &domains),
            now: topology::BOOT,
            queue: EventQueue::new(4 * nr_cpus + nr_tasks),
            costs,
            bandwidth: Bandwidth::new(machine),
            workload,
            machine,
            domains,
            cpus: (0..nr_cpus as u32).map(Cpu::new).collect(),
            tasks,
            next_task: FIRST_TASK,
            finished: false,
            channels: workload.channels.iter().map(|&kind| Channel::new(kind)).collect(),
            mutexes: (0..workload.mutexes).map(|_| Mutex::default()).collect(),
            conditions: (0..workload.conditions).map(|_| Condition::default()).collect(),
            barriers: workload.barriers.iter().map(|&parties| Barrier::new(parties)).collect(),
            gates: (0..workload.gates).map(|_| Gate::default()).collect(),
            flags: (0..workload.flags).map(|_| Flag::default()).collect(),
            lists: vec![Vec::new(); workload.lists as usize],
            timers: vec![None; workload.timers as usize],
            interrupt_cpu: 0,
            affinity: Affinity::new(workload, machine.online()),
            hotplug: Hotplug::default(),
            cfs_bandwidth: CfsBandwidth::new(workload, nr_cpus),
            next_change: 0,
            llc_busy: vec![(0, 0); scheduler.policy.root.nr_llcs as usize + 1],
            measurement: Measurement::new(workload),
            occupancy: Occupancy::new(machine, workload),
            scheduler,
            traces_decisions: trace.as_ref().is_some_and(|sink| sink.takes_decisions()),
            trace,
            hint: policy.hint.mask() as u8,
            last_progress: 0,
        })
    }

    fn nr_cpus(&self) -> usize {
        self.cpus.len()
    }

    /// The event slot of something a CPU or a task does: four for each CPU, then one for each task.
    #[inline]
    pub fn slot(&self, slot: Slot) -> usize {
        match slot {
            Slot::Activity(cpu) => 4 * cpu as usize,
            Slot::Tick(cpu) => 4 * cpu as usize + 1,
            Slot::Interrupt(cpu) => 4 * cpu as usize + 2,
            Slot::InterruptWakeup(cpu) => 4 * cpu as usize + 3,
            Slot::Change => 4 * self.nr_cpus(),
            Slot::Period(group) => 4 * self.nr_cpus() + group as usize,
            Slot::Slack(group) => 4 * self.nr_cpus() + (SLACK_SLOTS + group) as usize,
            Slot::Timer(task) => 4 * self.nr_cpus() + task as usize,
        }
    }

    #[inline]
    fn slot_of(&self, at: usize) -> Slot {
        let timers = 4 * self.nr_cpus();
        if at >= timers {
            return match (at - timers) as u32 {
                task @ FIRST_TASK.. => Slot::Timer(task),
                0 => Slot::Change,
                group @ 1..SLACK_SLOTS => Slot::Period(group),
                slack => Slot::Slack(slack - SLACK_SLOTS),
            };
        }
        let cpu = (at / 4) as u32;
        match at % 4 {
            0 => Slot::Activity(cpu),
            1 => Slot::Tick(cpu),
            2 => Slot::Interrupt(cpu),
            _ => Slot::InterruptWakeup(cpu),
        }
    }

    #[inline]
    pub fn arm(&mut self, slot: Slot, time: Time) {
        let slot = self.slot(slot);
        self.queue.arm(slot, time);
    }

    /// What `cpu` does from now on, until `end`.
    #[inline]
    pub fn begin(&mut self, cpu: u32, activity: Activity, end: Time) {
        self.cpus[cpu as usize].activity = activity;
        self.arm(Slot::Activity(cpu), end);
    }

    /// Runs until the workload's window is over or its first task has exited.
    pub fn run(&mut self) -> Result<Outcome, SimError> {
        self.run_observed(|_| {})
    }

    /// The same; `observe` sees the state after each event.
    pub fn run_observed(
        &mut self,
        mut observe: impl FnMut(&Engine<'a>),
    ) -> Result<Outcome, SimError> {
        self.start();
        let mut begin = self.snapshot();
        while let Some((time, slot)) = self.queue.pop() {
            if self.occupancy.is_due(time) {
                self.look_at_occupancy(time.min(self.measurement.end()));
            }
            if self.measurement.is_over(time) {
                self.now = self.measurement.end();
                break;
            }
            self.now = time;
            if self.measurement.window_begins(time) {
                begin = self.snapshot();
                self.occupancy.start(time);
            }
            self.measurement.events += 1;
            match self.slot_of(slot) {
                Slot::Activity(cpu) => self.activity_done(cpu),
                Slot::Tick(cpu) => self.tick(cpu),
                Slot::Interrupt(cpu) => self.interrupt(cpu),
                Slot::InterruptWakeup(cpu) => self.interrupt_wakeup_done(cpu),
                Slot::Timer(task) => self.timer_expired(task),
                Slot::Change => self.change()?,
                Slot::Period(group) => self.period_begins(group),
                Slot::Slack(group) => self.slack_timer(group),
            }
            observe(self);
            if self.finished {
                break;
            }
            self.check_progress()?;
        }
        if !self.finished && !self.measurement.is_over(self.now) {
            return Err(self.deadlock());
        }
        let end = self.snapshot();
        Ok(self.outcome(&begin, &end))
    }

    fn activity_done(&mut self, cpu: u32) {
        match self.cpus[cpu as usize].activity {
            Activity::Segment => self.segment_done(cpu),
            Activity::Wakeup => self.wakeup_step_done(cpu),
            Activity::Switch => self.switch_done(cpu),
            Activity::NewIdle => self.newidle_level_done(cpu),
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

    /// Task 0 starts on the first online CPU, as a child of its idle task.
    fn start(&mut self) {
        let cpu = self.machine.online().first().expect("a machine has an online CPU") as u32;
        if self.affinity.in_use {
            self.update_cpusets();
        }
        for (cgroup, group) in self.workload.cgroups.iter().zip(1..) {
            if cgroup.quota.is_some() {
                self.set_quota(group, cgroup.quota);
            }
        }
        let task = self.new_task(0, 0, cpu);
        self.tasks[task as usize].parent = task;
        self.scheduler.policy.copy_task(task, cpu, cpu);
        self.join_cgroup(task);
        self.scheduler.policy.task[task as usize].hint = self.hint;
        self.scheduler.policy.place_new_task(task, cpu);
        self.enqueue(task, Enqueue::Fork);
        self.kick_idle(cpu, self.now);
        self.await_change();
    }

    /// A task that runs `program` from its beginning, not yet placed.
    pub fn new_task(&mut self, program: u32, base: u32, cpu: u32) -> u32 {
        let number = self.next_task;
        self.next_task += 1;
        self.tasks.push(Task::unused());
        self.queue.add_slot();
        let attributes = &self.workload.programs[program as usize];
        let idle_policy = attributes.policy == SchedPolicy::Idle;
        let weight = weight_of(attributes.nice, idle_policy);
        let task = &mut self.tasks[number as usize];
        task.state = TaskState::Runnable;
        task.program = program;
        task.part = Measurement::part_of(attributes);
        self.measurement.task_created(task.part, number);
        task.base = base;
        task.pid = FIRST_PID + number - FIRST_TASK;
        task.footprint_kib = attributes.footprint_kib;
        task.last_cpu = cpu;

        let allowed = match &attributes.cpus {
            Some(cpus) => Cpumask { bits: *cpus.words() },
            None => self.scheduler.policy.root.online,
        };
        let record = &mut self.scheduler.policy.task[number as usize];
        record.weight = weight;
        record.idle_policy = idle_policy.into();
        record.rt_priority = attributes.policy.rt_priority();
        record.cpus_allowed = allowed;
        record.nr_cpus_allowed = allowed.bits.iter().map(|word| word.count_ones() as u16).sum();
        number
    }

    /// A task that has just been copied goes to the cgroup its program names, if it names one.
    pub fn join_cgroup(&mut self, task: u32) {
        let program = self.tasks[task as usize].program;
        let cgroup = self.workload.programs[program as usize].cgroup;
        if cgroup.is_some() {
            self.scheduler.policy.task_change_group(task, task_group(cgroup), self.now);
        }
        self.scheduler.add(task);
        if self.affinity.in_use {
            self.confine(task);
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
        if self.next_task == NR_TASKS {
            return Err(SimError::TooManyTasks {
                workload: self.workload.name.clone(),
                limit: NR_TASKS - FIRST_TASK,
            });
        }
        Ok(())
    }
}

/// The policy's number of a cgroup.
pub fn task_group(cgroup: Option<CgroupId>) -> u32 {
    cgroup.map_or(ROOT_TASK_GROUP, |cgroup| cgroup + 1)
}
