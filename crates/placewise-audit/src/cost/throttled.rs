//! Tasks that could run, while their CPU idles.
//!
//! A kernel does not switch to the idle task while a task of the run queue may run: one that is
//! switched out runnable before it, or stays queued, has been throttled, as by the quota of its
//! cgroup (`cpu.max`) or the limit of real-time tasks. It is so until it is taken off that queue or the CPU
//! runs something again. Tasks that are woken onto a CPU with throttled ones are taken for throttled,
//! too.
//!
//! Limit: nothing shows that a task is throttled while its CPU runs another, nor where the switch is missing.

use placewise_machine::CpuSet;

use crate::steps::by_name::ByName;
use crate::steps::task::NameId;

/// What the tasks of one name have lost.
#[derive(Clone, Copy, Debug, Default)]
pub struct Throttled {
    pub ns: u64,
    pub times: u64,
    pub cpus: CpuSet,
}

#[derive(Default)]
pub struct ThrottledMeter {
    names: ByName<Throttled>,
}

impl ThrottledMeter {
    pub fn ended(&mut self, name: NameId, cpu: u32, ns: u64) {
        let throttled = self.names.of(name);
        throttled.ns += ns;
        throttled.times += u64::from(ns > 0);
        throttled.cpus.insert(cpu as usize);
    }

    pub fn names(&self) -> impl Iterator<Item = (NameId, &Throttled)> {
        self.names.iter().filter(|(_, throttled)| throttled.ns > 0)
    }
}
