//! The kinds of CPUs that an hwloc dump tells apart, and how fast they are.
//!
//! Where the kernel gave its CPUs capacities, those are their speeds. Elsewhere the maximum frequencies
//! are, which say nothing of what a core does per cycle; but on an Intel hybrid part one frequency of
//! a P core is worth more than the same of an E core, as intel_pstate has it. There they are also what
//! the scheduler prefers cores by.

use super::processor::Vendor;
use super::shape::{CAPACITY_SCALE, Shape};
use crate::cpuset::CpuSet;

/// A `cpukind` element.
#[derive(Debug, Clone, Default)]
pub(crate) struct CpuKind {
    pub cpus: CpuSet,
    /// Empty: the dump does not say.
    pub core_type: String,
    pub capacity: Option<u32>,
    pub max_mhz: Option<u32>,
}

/// Gives the CPUs of `shape` what their kinds say. The answer is what a reader should know of it.
pub(crate) fn apply(kinds: &[CpuKind], vendor: Vendor, shape: &mut Shape) -> Option<String> {
    let kind_of = |cpu: usize| kinds.iter().find(|kind| kind.cpus.contains(cpu));
    for (cpu, place) in shape.cpus.iter_mut().enumerate() {
        let capacity = kind_of(cpu).and_then(|kind| kind.capacity);
        place.iter_mut().for_each(|place| place.capacity = capacity.unwrap_or(CAPACITY_SCALE));
    }
    if differ(shape.places().map(|place| place.capacity)) {
        return None;
    }
    let cpus = || shape.cpus.iter().enumerate().filter(|(_, place)| place.is_some());
    let is_hybrid = differ(cpus().filter_map(|(cpu, _)| Some(is_e_core(kind_of(cpu)?))));
    let level = |cpu: usize| kind_of(cpu).and_then(|kind| kind.performance_level(is_hybrid));
    let levels: Option<Vec<u32>> = cpus().map(|(cpu, _)| level(cpu)).collect();
    match levels {
        Some(levels) if differ(levels.iter().copied()) => {
            set_levels(shape, &levels, vendor);
            Some("speeds of cores by their maximum frequencies".to_string())
        }
        Some(_) => None,
        None => no_speeds(kinds),
    }
}

fn no_speeds(kinds: &[CpuKind]) -> Option<String> {
    let mut names: Vec<&str> = kinds.iter().map(|kind| kind.core_type.as_str()).collect();
    names.retain(|name| !name.is_empty());
    names.sort_unstable();
    names.dedup();
    let names = names.join(", ");
    let has_kinds = names.contains(',');
    has_kinds
        .then(|| format!("the dump names kinds of cores ({names}) but no speeds, all run alike"))
}

fn differ<T: PartialEq>(mut values: impl Iterator<Item = T>) -> bool {
    values.next().is_some_and(|first| values.any(|other| other != first))
}

fn is_e_core(kind: &CpuKind) -> bool {
    matches!(kind.core_type.as_str(), "IntelAtom" | "IntelLowPower")
}

impl CpuKind {
    /// The kernel's performance levels (HWP): of 100 MHz each, but of 78.741 MHz on the P cores of a
    /// hybrid part, intel_pstate's factor.
    fn performance_level(&self, is_hybrid: bool) -> Option<u32> {
        let khz_per_level = match is_hybrid && !is_e_core(self) {
            true => 78_741,
            false => 100_000,
        };
        Some((self.max_mhz? * 1000 + khz_per_level / 2) / khz_per_level)
    }
}

/// `levels` are those of the online CPUs.
fn set_levels(shape: &mut Shape, levels: &[u32], vendor: Vendor) {
    let fastest = levels.iter().max().copied().unwrap_or(1);
    for (place, level) in shape.cpus.iter_mut().flatten().zip(levels) {
        place.speed = Some((level * CAPACITY_SCALE / fastest).max(1));
        if vendor == Vendor::Intel {
            place.priority = Some(*level as i32);
        }
    }
}
