//! What the recorded machine charged a task beside its own computing, by the machine's figures: a
//! replay is charged anew for it, where it runs then.

use placewise_machine::{ByDistance, Costs, Machine, Place};
use placewise_policy::MeasuredKernel;
use placewise_policy::instructions::SchedulerCosts;
use placewise_workload::program::Nanos;

use crate::hints::Hint;

pub struct Charges<'a> {
    figures: &'a Costs,
    scheduler: SchedulerCosts,
    places: Vec<Place>,
}

impl<'a> Charges<'a> {
    pub fn new(machine: &'a Machine, kernel: MeasuredKernel) -> Self {
        let figures = &machine.costs;
        let scheduler = SchedulerCosts::under(kernel, figures);
        Charges { figures, scheduler, places: machine.places().collect() }
    }

    /// Switching to a task, from another, which may sleep now, or from the idle task, which has done its part by then.
    pub fn switch(&self, from_idle: bool, from_sleeper: bool) -> Nanos {
        let scheduler = &self.scheduler;
        let switch = if from_idle { 0 } else { scheduler.context_switch_ns };
        let sleep = if from_sleeper { scheduler.half_a_sleep() } else { 0 };
        switch + sleep + scheduler.rq_lock_hold_ns
    }

    /// The end of a call that has slept.
    pub fn waking_up(&self) -> Nanos {
        self.scheduler.half_a_sleep()
    }

    /// A wakeup until its task is put on a run queue, but for the lines that come meanwhile. One that was still queued
    /// takes less, which is not told apart.
    pub fn placing(&self, hint: Hint) -> Nanos {
        self.scheduler.wakeup_ns + if hint.moved { self.scheduler.wake_elsewhere_ns } else { 0 }
    }

    /// Those that its search reads of other CPUs.
    pub fn scan(&self, hint: Hint) -> Nanos {
        u64::from(hint.scanned) * self.figures.scan_cpu_ns
    }

    /// To put a task on a run queue.
    pub fn queueing(&self) -> Nanos {
        self.scheduler.rq_lock_hold_ns
    }

    /// Telling another CPU of a wakeup, one that idles or runs a task: by an interrupt, unless it idles in a state in
    /// which it watches its flag.
    pub fn telling(&self, idles: bool) -> Nanos {
        let watches = self.figures.idle_states.first().is_some_and(|state| state.polling);
        if idles && watches { 0 } else { self.figures.ipi_send_ns }
    }

    /// From when a CPU that idles is told of a wakee by another one until it runs that.
    pub fn leaving_idle(&self, from: u32, to: u32) -> Nanos {
        let figures = self.figures;
        let shallowest = figures.idle_states.first();
        self.by_distance(&figures.ipi_delivery_ns, from, to)
            + shallowest.map_or(0, |state| state.exit_ns)
            + self.leaving_the_idle_task()
    }

    /// From when a task is put on the run queue of a CPU that idles until it runs there.
    pub fn leaving_the_idle_task(&self) -> Nanos {
        self.scheduler.rq_lock_hold_ns + self.scheduler.idle_switch_ns
    }

    /// The interrupt that makes a wakeup, on the time of whoever runs there.
    pub fn interrupt(&self) -> Nanos {
        self.figures.timer_ns
    }

    /// Lines that come along with the lock of a run queue, which `from` had last, to `to`. Lines take their time whatever
    /// the speed of the CPU that waits for them.
    pub fn lock_lines(&self, from: u32, to: u32) -> Nanos {
        u64::from(self.figures.rq_lock_lines) * self.line(from, to)
    }

    /// Those of a task and of its run queue: to its waker, and to where it runs if another CPU has put it on the queue.
    pub fn task_lines(&self, from: u32, to: u32) -> Nanos {
        u64::from(self.figures.wakeup_lines) * self.line(from, to)
    }

    /// One cache line that was written on `from` and is read on `to`.
    pub fn line(&self, from: u32, to: u32) -> Nanos {
        self.by_distance(&self.figures.cache_line_ns, from, to)
    }

    /// The call that sleeps on a timer.
    pub fn timed_sleep(&self) -> Nanos {
        self.figures.syscall_ns + self.figures.timer_ns
    }

    pub fn fork(&self) -> Nanos {
        self.figures.thread_create_ns
    }

    pub fn exit(&self) -> Nanos {
        self.figures.exit_ns
    }

    /// 0 where the machine has no such CPU.
    fn by_distance(&self, figures: &ByDistance, a: u32, b: u32) -> Nanos {
        let place = |cpu: u32| self.places.get(cpu as usize);
        match (place(a), place(b)) {
            (Some(&here), Some(&there)) => figures.between(here, there),
            _ => 0,
        }
    }
}
