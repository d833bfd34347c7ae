//! What a loaded scheduler has done so far: how far from where they ran it placed tasks, and what
//! its balancers moved.
//!
//! All are sums since the scheduler was loaded. They are read when somebody asks, while CPUs go on
//! counting, so sums of one moment may differ by what happened during the reading.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use libbpf_rs::{MapCore, MapFlags, Object};
use placewise_machine::Level;
use placewise_policy::{CPU_IDLE, CPU_NEWLY_IDLE, CPU_NOT_IDLE, DomainStats, State};
use scx_stats_derive::Stats;
use serde::{Deserialize, Serialize};
use zerocopy::FromBytes;

use crate::arena;

const KINDS: [&str; 2] = ["wakeup", "fork"];

/// Mirrors `struct counts` of `bpf/count.h`.
#[derive(FromBytes)]
#[repr(C)]
struct Counts {
    placed: [[u64; 5]; KINDS.len()],
    on_idle: [u64; KINDS.len()],
    hinted: [u64; KINDS.len()],
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, Stats)]
#[stat(top, desc = "placements and balancing")]
pub struct Figures {
    #[stat(desc = "placements of wakeups and forks")]
    pub placed: BTreeMap<String, Placed>,
    #[stat(desc = "tasks moved by balancing, by the machine's sched-domain levels, lowest first")]
    pub balanced: BTreeMap<usize, Balanced>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, Stats)]
#[stat(
    desc = "placements by distance from the previous CPU",
    _om_prefix = "p_",
    _om_label = "kind"
)]
pub struct Placed {
    #[stat(desc = "on the previous CPU")]
    pub same_cpu: u64,
    #[stat(desc = "on an SMT sibling")]
    pub smt: u64,
    #[stat(desc = "on another core of the LLC")]
    pub llc: u64,
    #[stat(desc = "in another LLC of the NUMA node")]
    pub other_llc: u64,
    #[stat(desc = "on another NUMA node")]
    pub other_node: u64,
    #[stat(desc = "on a CPU that was idle")]
    pub on_idle: u64,
    #[stat(desc = "of tasks with a hint for it")]
    pub hinted: u64,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, Stats)]
#[stat(desc = "tasks moved by balancing", _om_prefix = "b_", _om_label = "level")]
pub struct Balanced {
    #[stat(desc = "name of the sched domains at this level")]
    pub domain: String,
    #[stat(desc = "pulled by CPUs about to idle")]
    pub newly_idle: u64,
    #[stat(desc = "pulled by idle CPUs")]
    pub idle: u64,
    #[stat(desc = "pulled by busy CPUs")]
    pub busy: u64,
    #[stat(desc = "pushed while running (active balance)")]
    pub pushed: u64,
}

type Read = Box<dyn Fn() -> Figures + Send>;

/// Where whoever asks gets the figures from: the scheduler that was loaded last.
#[derive(Clone, Default)]
pub struct Source(Arc<Mutex<Option<Read>>>);

impl Source {
    pub fn follow(&self, read: impl Fn() -> Figures + Send + 'static) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(Box::new(read));
    }

    /// None at all before there is a scheduler.
    pub fn read(&self) -> Figures {
        let read = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        read.as_ref().map(|read| read()).unwrap_or_default()
    }
}

impl Figures {
    /// Of the scheduler with this object, since it was loaded. `levels` are those of the state's
    /// spans.
    pub(crate) fn read(object: &Object, levels: &[Level]) -> Self {
        let mut figures = Self::default();
        let counts = object.maps().find(|map| map.name() == "counts").expect("the map of counts");
        let values = counts.lookup_percpu(&0u32.to_ne_bytes(), MapFlags::ANY);
        for value in values.ok().flatten().unwrap_or_default() {
            if let Ok((counts, _)) = Counts::read_from_prefix(&value) {
                figures.add_placed(&counts);
            }
        }
        // SAFETY: it begins with the state, and is mapped while the object lives.
        figures.balanced = unsafe { balanced(arena::mapping(object).0.as_ptr().cast(), levels) };
        figures
    }

    fn add_placed(&mut self, counts: &Counts) {
        for (kind, name) in KINDS.into_iter().enumerate() {
            let sum = self.placed.entry(name.to_string()).or_default();
            let [same_cpu, smt, llc, other_llc, other_node] = counts.placed[kind];
            sum.same_cpu += same_cpu;
            sum.smt += smt;
            sum.llc += llc;
            sum.other_llc += other_llc;
            sum.other_node += other_node;
            sum.on_idle += counts.on_idle[kind];
            sum.hinted += counts.hinted[kind];
        }
    }

    /// What has been added since `earlier`. A scheduler that was loaded anew begins at nothing.
    pub fn since(&self, earlier: &Self) -> Self {
        let mut difference = self.clone();
        for (kind, placed) in &mut difference.placed {
            placed.subtract(earlier.placed.get(kind).unwrap_or(&Placed::default()));
        }
        for (level, balanced) in &mut difference.balanced {
            balanced.subtract(earlier.balanced.get(level).unwrap_or(&Balanced::default()));
        }
        difference
    }
}

/// What was moved at each level that any CPU has. CPUs of one machine can differ in their lowest.
///
/// # Safety
///
/// The state is mapped, and has the spans of `levels`. CPUs may go on counting: each word is read for
/// itself.
unsafe fn balanced(state: *const State, levels: &[Level]) -> BTreeMap<usize, Balanced> {
    let mut by_level: BTreeMap<Level, Balanced> = BTreeMap::new();
    // SAFETY: as the caller promises.
    unsafe {
        for cpu in 0..(&raw const (*state).root.nr_cpu_ids).read_volatile() as usize {
            let nr_domains = (&raw const (*state).cpu[cpu].nr_domains).read_volatile();
            for at in 0..usize::from(nr_domains) {
                let domain = &raw const (*state).domain[cpu][at];
                let level = levels[(&raw const (*domain).span).read_volatile() as usize];
                let stats = (&raw const (*domain).stats).read_volatile();
                by_level.entry(level).or_default().add(&stats);
            }
        }
    }
    let named = |(level, moved): (Level, Balanced)| Balanced { domain: level.to_string(), ..moved };
    by_level.into_iter().map(named).enumerate().collect()
}

impl Placed {
    pub fn total(&self) -> u64 {
        self.same_cpu + self.smt + self.llc + self.other_llc + self.other_node
    }

    /// Each figure with its name.
    pub fn by_distance(&self) -> [(&'static str, u64); 5] {
        [
            ("same_cpu", self.same_cpu),
            ("smt", self.smt),
            ("llc", self.llc),
            ("other_llc", self.other_llc),
            ("other_node", self.other_node),
        ]
    }

    fn subtract(&mut self, earlier: &Self) {
        let Self { same_cpu, smt, llc, other_llc, other_node, on_idle, hinted } = self;
        for (figure, before) in [
            (same_cpu, earlier.same_cpu),
            (smt, earlier.smt),
            (llc, earlier.llc),
            (other_llc, earlier.other_llc),
            (other_node, earlier.other_node),
            (on_idle, earlier.on_idle),
            (hinted, earlier.hinted),
        ] {
            *figure = figure.saturating_sub(before);
        }
    }
}

impl Balanced {
    /// Each figure with its name.
    pub fn by_cause(&self) -> [(&'static str, u64); 4] {
        [
            ("newly_idle", self.newly_idle),
            ("idle", self.idle),
            ("busy", self.busy),
            ("pushed", self.pushed),
        ]
    }

    fn add(&mut self, stats: &DomainStats) {
        self.newly_idle += u64::from(stats.lb_gained[CPU_NEWLY_IDLE as usize]);
        self.idle += u64::from(stats.lb_gained[CPU_IDLE as usize]);
        self.busy += u64::from(stats.lb_gained[CPU_NOT_IDLE as usize]);
        self.pushed += u64::from(stats.alb_pushed);
    }

    fn subtract(&mut self, earlier: &Self) {
        let Self { domain: _, newly_idle, idle, busy, pushed } = self;
        for (figure, before) in [
            (newly_idle, earlier.newly_idle),
            (idle, earlier.idle),
            (busy, earlier.busy),
            (pushed, earlier.pushed),
        ] {
            *figure = figure.saturating_sub(before);
        }
    }
}

#[cfg(test)]
mod tests {
    use placewise_policy::{Policy, topology};

    use super::*;

    #[test]
    fn a_difference_counts_what_was_added() {
        let wakeups =
            |llc| ("wakeup".to_string(), Placed { llc, same_cpu: 6, ..Placed::default() });
        let moved = |busy| (1, Balanced { domain: "MC".into(), busy, ..Balanced::default() });
        let figures =
            |llc, busy| Figures { placed: [wakeups(llc)].into(), balanced: [moved(busy)].into() };
        let since = figures(10, 4).since(&figures(3, 3));
        assert_eq!(since.placed["wakeup"], Placed { llc: 7, ..Placed::default() });
        assert_eq!(since.balanced, [moved(1)].into());
    }

    #[test]
    fn levels_of_different_cores_are_told_apart() {
        // Its P cores have SMT and no clusters, its E cores the other way round.
        let machine = placewise_machine::load("adl-24").unwrap();
        let policy = Policy::parse("v6.18", "baseline").unwrap();
        let (mut state, domains) = topology::boot(&machine, &policy.profile).unwrap();
        let levels: Vec<Level> = domains.spans.iter().map(|span| span.level).collect();
        let (p_core, e_core) = (0, 16);
        state.domain[p_core][0].stats.lb_gained[CPU_IDLE as usize] = 3;
        state.domain[e_core][0].stats.alb_pushed = 5;
        state.domain[e_core][1].stats.lb_gained[CPU_NOT_IDLE as usize] = 7;
        // SAFETY: it is that state.
        let balanced = unsafe { balanced(&raw const *state, &levels) };
        let of = |domain: &str| Balanced { domain: domain.into(), ..Balanced::default() };
        let expected = [
            (0, Balanced { idle: 3, ..of("SMT") }),
            (1, Balanced { pushed: 5, ..of("CLS") }),
            (2, Balanced { busy: 7, ..of("MC") }),
        ];
        assert_eq!(balanced, expected.into());
    }
}
