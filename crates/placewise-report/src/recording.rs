//! What a page shows of one trace, as the page reads it.

use std::collections::BTreeMap;

use placewise_machine::{Cpu, Machine};
use serde::Serialize;

use crate::cells::Level;
use crate::columns::Place;
use crate::explained::Explained;
use crate::latency::Distribution;
use crate::runs::RunColumns;
use crate::threads::{Listed, Residency};
use crate::wakeups::WakeupColumns;

/// Of one trace.
#[derive(Serialize)]
pub struct Recording {
    pub(crate) name: String,
    /// When the timeline begins, as the trace has it.
    pub(crate) start_ns: u64,
    pub(crate) duration_ns: u64,
    pub(crate) shape: Shape,
    /// Where on the timeline time was left out, and how much.
    pub(crate) silences: Vec<(u64, u64)>,
    pub(crate) threads: Vec<Listed>,
    pub(crate) levels: Vec<Level>,
    pub(crate) idle_strip: Place,
    /// None if there are too many.
    pub(crate) runs: Option<RunColumns>,
    pub(crate) wakeups: WakeupColumns,
    pub(crate) latencies: Vec<Distribution>,
    pub(crate) residency: Vec<Residency>,
    pub(crate) moves: Vec<Vec<u64>>,
    pub(crate) explained: Vec<Explained>,
    #[serde(skip)]
    pub(crate) columns: Vec<u8>,
}

impl Recording {
    /// Does it hold nothing of the trace?
    pub fn is_empty(&self) -> bool {
        self.duration_ns == 0
    }
}

/// Where each CPU of the machine is.
#[derive(Clone, Serialize)]
pub struct Shape {
    cpus: Vec<Where>,
}

/// Offline CPUs are in none of them.
#[derive(Clone, Serialize)]
pub struct Where {
    online: bool,
    pub core: u16,
    pub llc: u16,
    pub node: u16,
    package: u16,
}

impl Shape {
    pub fn of(machine: &Machine) -> Self {
        let place = |&Cpu { online, core, llc, node, package, .. }: &Cpu| match online {
            true => Where { online, core, llc, node, package },
            // Nothing should run there, but a trace may say so.
            false => Where { online, core: 0, llc: 0, node: 0, package: 0 },
        };
        Shape { cpus: machine.cpus.iter().map(place).collect() }
    }

    pub fn nr_cpus(&self) -> usize {
        self.cpus.len()
    }

    /// The CPUs that are online, in groups in the order of their number.
    pub fn by(&self, group: impl Fn(&Where) -> u16) -> BTreeMap<u16, Vec<usize>> {
        let mut groups: BTreeMap<u16, Vec<usize>> = BTreeMap::new();
        for (cpu, place) in self.cpus.iter().enumerate().filter(|(_, place)| place.online) {
            groups.entry(group(place)).or_default().push(cpu);
        }
        groups
    }

    pub fn place(&self, cpu: usize) -> &Where {
        &self.cpus[cpu]
    }

    pub fn llc(&self, cpu: u32) -> u16 {
        self.cpus[cpu as usize].llc
    }
}
