//! What the recorded machine charged a task beside its own computing, by the machine's figures: a
//! replay is charged anew for it, where it runs then.

use placewise_machine::{ByDistance, Costs, Machine};
use placewise_workload::program::Nanos;

pub struct Charges<'a> {
    machine: &'a Machine,
}

impl<'a> Charges<'a> {
    pub fn new(machine: &'a Machine) -> Self {
        Charges { machine }
    }

    fn figures(&self) -> &'a Costs {
        &self.machine.costs
    }

    /// Switching to a task, from the idle task or from another.
    pub fn switch(&self, from_idle: bool) -> Nanos {
        let figures = self.figures();
        let switch = if from_idle { figures.idle_switch_ns } else { figures.context_switch_ns };
        switch + figures.rq_lock_hold_ns
    }

    /// A wakeup on `cpu` of a task that slept on `prev_cpu`, after a look at `scanned` CPUs.
    pub fn wakeup(&self, prev_cpu: u32, cpu: u32, scanned: u32) -> Nanos {
        let figures = self.figures();
        let lines = u64::from(figures.wakeup_lines);
        figures.wakeup_ns
            + figures.rq_lock_hold_ns
            + lines * self.by_distance(&figures.cache_line_ns, prev_cpu, cpu)
            + u64::from(scanned) * figures.scan_cpu_ns
    }

    /// The interrupt that makes a wakeup, on the time of whoever runs there.
    pub fn interrupt(&self) -> Nanos {
        self.figures().timer_ns
    }

    /// One cache line that was written on `from` and is read on `to`.
    pub fn line(&self, from: u32, to: u32) -> Nanos {
        self.by_distance(&self.figures().cache_line_ns, from, to)
    }

    /// The call that sleeps on a timer.
    pub fn timed_sleep(&self) -> Nanos {
        self.figures().syscall_ns + self.figures().timer_ns
    }

    pub fn fork(&self) -> Nanos {
        self.figures().thread_create_ns
    }

    pub fn exit(&self) -> Nanos {
        self.figures().exit_ns
    }

    fn by_distance(&self, figures: &ByDistance, a: u32, b: u32) -> Nanos {
        let cpus = &self.machine.cpus;
        let (Some(here), Some(there)) = (cpus.get(a as usize), cpus.get(b as usize)) else {
            return 0;
        };
        if a == b {
            0
        } else if here.core == there.core {
            figures.smt
        } else if here.cache == there.cache {
            figures.llc
        } else if here.package == there.package {
            figures.package
        } else {
            figures.remote
        }
    }
}
