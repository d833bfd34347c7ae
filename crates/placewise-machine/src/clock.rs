//! How fast the cores of a package are clocked: the fewer of them are busy, the faster.
//!
//! A package may take so much power and no more. What a busy core takes goes with the cube of its clock (assumed: its
//! voltage rises with it), so that up to some number of busy cores all of them run at full speed, and beyond it at the cube
//! root of the share of the power that each has left. The one figure that a machine file has of it is the clock with all
//! cores busy ([`Costs::all_busy_clock_pct`](crate::Costs)).
//!
//! Limits: all cores of a package have one clock, whatever they compute; what idle cores and the rest of the package take does
//! not change; heat is not known.

use crate::machine::Machine;

/// Of a core whose package leaves it all the power it can use.
pub const FULL_CLOCK: u32 = 1024;

/// Clocks change by some 25 MHz.
const STEP: u32 = 8;

/// A look counts for a quarter of what is known of a package: some milliseconds decide, as in hardware (assumed).
const MEMORY: i64 = 4;

/// Busy cores are counted in such parts.
const PARTS: i64 = 256;

/// The clocks of all packages of a machine, which change as they are looked at.
pub struct Clocks {
    packages: Vec<Package>,
    all_busy_pct: u32,
}

struct Package {
    /// The CPUs of each core.
    cores: Vec<Vec<usize>>,
    /// What is known of how many are busy, in [`PARTS`].
    busy: i64,
    clock: u32,
}

impl Clocks {
    /// How often hardware looks (assumed).
    pub const PERIOD_NS: u64 = 1_000_000;

    /// `None` where clocks stay as they are.
    pub fn new(machine: &Machine) -> Option<Self> {
        let all_busy_pct = machine.costs.all_busy_clock_pct;
        let package = |package| {
            let mut cores = vec![Vec::new(); machine.nr_cores()];
            for cpu in machine.cpus_where(|cpu| usize::from(cpu.package) == package).iter() {
                cores[usize::from(machine.cpus[cpu].core)].push(cpu);
            }
            cores.retain(|cpus| !cpus.is_empty());
            Package { cores, busy: 0, clock: FULL_CLOCK }
        };
        let packages = || (0..machine.nr_packages()).map(package).collect();
        (all_busy_pct < 100).then(|| Self { packages: packages(), all_busy_pct })
    }

    /// Looks how many cores are busy: the packages whose clock is another now.
    pub fn look(&mut self, is_busy: impl Fn(usize) -> bool) -> Vec<usize> {
        let pct = self.all_busy_pct;
        let mut changes = |(at, package): (usize, &mut Package)| {
            let is_busy = |cpus: &&Vec<usize>| cpus.iter().any(|&cpu| is_busy(cpu));
            let busy = package.cores.iter().filter(is_busy).count() as i64 * PARTS;
            package.busy += (busy - package.busy) / MEMORY;
            let clock = clock(package.busy as u64, package.cores.len() as u64 * PARTS as u64, pct);
            (std::mem::replace(&mut package.clock, clock) != clock).then_some(at)
        };
        self.packages.iter_mut().enumerate().filter_map(&mut changes).collect()
    }

    /// Of [`FULL_CLOCK`].
    pub fn of(&self, package: usize) -> u32 {
        self.packages[package].clock
    }

    pub fn cpus_of(&self, package: usize) -> impl Iterator<Item = usize> {
        self.packages[package].cores.iter().flatten().copied()
    }
}

/// The fastest at which so many busy of so many cores take no more power than all of them at `all_busy_pct`.
fn clock(busy: u64, all: u64, all_busy_pct: u32) -> u32 {
    let cube = |number: u32| u64::from(number).pow(3);
    let power = u128::from(cube(FULL_CLOCK) * all) * u128::from(cube(all_busy_pct)) / 1_000_000;
    let fits = |clock: &u32| u128::from(cube(*clock) * busy) <= power;
    (1..=FULL_CLOCK / STEP).rev().map(|steps| steps * STEP).find(fits).unwrap_or(STEP)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_package_is_at_full_speed_until_its_power_is_used_up() {
        let clocks = [0, 1, 31, 32, 48, 64].map(|busy| clock(busy, 64, 79));
        assert_eq!(clocks, [1024, 1024, 1024, 1016, 888, 808]);
        assert_eq!(clock(64, 64, 1), STEP);
    }

    /// Fails if threads were counted, other packages, or what was seen before were forgotten.
    #[test]
    fn busy_cores_of_a_package_slow_it_down_in_some_looks() {
        let machine = crate::load("zen3-2s-nps1").expect("a preset");
        let mut clocks = Clocks::new(&machine).expect("it has them");
        let first_threads = |cpu: usize| cpu < 64;
        assert_eq!(clocks.look(first_threads), [] as [usize; 0], "a quarter of them counts");
        let changes: Vec<_> = (0..20).map(|_| clocks.look(first_threads)).collect();
        assert!(changes.contains(&vec![0]) && changes.iter().all(|it| !it.contains(&1)));
        assert_eq!((clocks.of(0), clocks.of(1)), (808, FULL_CLOCK));
        assert_eq!(clocks.look(|cpu| cpu < 64 || (128..192).contains(&cpu)), [] as [usize; 0]);
        (0..40).for_each(|_| drop(clocks.look(|_| false)));
        assert_eq!(clocks.of(0), FULL_CLOCK);
    }
}
