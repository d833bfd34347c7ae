//! Which CPUs a task may run on.

use placewise_machine::Machine;
use placewise_policy::Cpumask;

use crate::task::TaskId;

#[derive(Clone, Copy)]
pub struct Allowed {
    pub cpus: Cpumask,
    pub nr: u16,
    pub per_cpu_kthread: bool,
}

pub struct Affinity {
    all: Allowed,
}

impl Affinity {
    pub fn new(machine: &Machine) -> Self {
        let online = machine.online();
        Affinity {
            all: Allowed {
                cpus: Cpumask { bits: *online.words() },
                nr: online.len() as u16,
                per_cpu_kthread: false,
            },
        }
    }

    pub fn of(&self, _task: TaskId, name: &str, cpu: u32) -> Allowed {
        if bound_to(name) == Some(cpu) {
            let mut cpus = Cpumask { bits: [0; 16] };
            cpus.bits[cpu as usize / 64] = 1 << (cpu % 64);
            return Allowed { cpus, nr: 1, per_cpu_kthread: true };
        }
        self.all
    }

    pub fn widen(&mut self, _task: TaskId, _cpu: u32) {}
    pub fn learn(&mut self, _task: TaskId, _predicted: u32, _actual: u32) {}
    pub fn inherit(&mut self, _child: TaskId, _parent: TaskId) {}
}

/// The CPU in the name of a per-CPU kernel thread: `ksoftirqd/3`, `kworker/3:1H`.
fn bound_to(name: &str) -> Option<u32> {
    let (_, rest) = name.rsplit_once('/')?;
    let digits = rest.split(':').next()?;
    digits.parse().ok()
}
