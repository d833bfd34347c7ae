//! What a loaded scheduler has done so far: how far from where they ran it placed tasks, and what
//! its balancers moved.
//!
//! All are sums since the scheduler was loaded. They are read when somebody asks, while CPUs go on
//! counting, so sums of one moment may differ by what happened during the reading.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use libbpf_rs::{MapCore, MapFlags, Object};
use placewise_machine::Level;
use placewise_policy::{Distance, DomainStats, State};
use scx_stats_derive::Stats;
use serde::{Deserialize, Serialize};
use zerocopy::FromBytes;

use crate::arena;
use crate::shared::{NR_PLACED_KINDS, PLACED_FORK, PLACED_WAKEUP, PlacedKind, Shadow};

include!(concat!(env!("OUT_DIR"), "/figures.rs"));

/// Makes the figures of the list: the first of those that are `PLACED` are the distances.
macro_rules! figures {
    (
        $(PLACED($placed:ident, $shown:ident, $placed_help:tt))*
        $(BALANCED($balanced:ident, $counter:ident $([$at:ident])?, $balanced_help:tt))*
    ) => {
        #[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, Stats)]
        #[stat(
            desc = "placements by distance from the previous CPU",
            _om_prefix = "p_",
            _om_label = "kind"
        )]
        pub struct Placed {
            $(#[stat(desc = $placed_help)] pub $placed: u64,)*
        }

        impl Placed {
            pub const FIGURES: &[Figure] = &[$(Figure {
                name: stringify!($placed),
                help: $placed_help,
                shown: Shown::$shown,
            }),*];

            /// As many as there are [`FIGURES`](Self::FIGURES).
            pub fn counts(&self) -> Counts {
                [$(self.$placed),*]
            }

            fn add(&mut self, counts: Counts) {
                let [$($placed),*] = counts;
                $(self.$placed += $placed;)*
            }

            fn subtract(&mut self, earlier: &Self) {
                $(self.$placed = self.$placed.saturating_sub(earlier.$placed);)*
            }
        }

        /// A row of `struct counts` of `bpf/count.h`.
        pub type Counts = [u64; Placed::FIGURES.len()];

        #[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, Stats)]
        #[stat(desc = "tasks moved by balancing", _om_prefix = "b_", _om_label = "level")]
        pub struct Balanced {
            #[stat(desc = "name of the sched domains at this level")]
            pub domain: String,
            $(#[stat(desc = $balanced_help)] pub $balanced: u64,)*
        }

        impl Balanced {
            /// By their causes.
            pub const FIGURES: &[Figure] = &[$(Figure {
                name: stringify!($balanced),
                help: $balanced_help,
                shown: Shown::count,
            }),*];

            /// As many as there are [`FIGURES`](Self::FIGURES).
            pub fn counts(&self) -> [u64; Balanced::FIGURES.len()] {
                [$(self.$balanced),*]
            }

            fn add(&mut self, stats: &DomainStats) {
                $(self.$balanced += u64::from(stats.$counter$([placewise_policy::$at as usize])?);)*
            }

            fn subtract(&mut self, earlier: &Self) {
                $(self.$balanced = self.$balanced.saturating_sub(earlier.$balanced);)*
            }
        }
    };
}

for_each_figure!(figures);

/// A figure of the list in `bpf/figures.h`.
pub struct Figure {
    pub name: &'static str,
    pub help: &'static str,
    pub shown: Shown,
}

/// How a table shows a figure, by the words of the list.
#[allow(non_camel_case_types)]
#[derive(Clone, Copy)]
pub enum Shown {
    count,
    /// Of all placements.
    share,
}

const KINDS: [(&str, PlacedKind); NR_PLACED_KINDS as usize] =
    [("wakeup", PLACED_WAKEUP), ("fork", PLACED_FORK)];

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, Stats)]
#[stat(top, desc = "placements and balancing")]
pub struct Figures {
    #[stat(desc = "placements of wakeups and forks")]
    pub placed: BTreeMap<String, Placed>,
    #[stat(desc = "tasks moved by balancing, by the machine's sched-domain levels, lowest first")]
    pub balanced: BTreeMap<usize, Balanced>,
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
            let of_cpu = <[Counts; KINDS.len()]>::read_from_bytes(&value).expect("rows of counts");
            for (kind, row) in KINDS {
                figures.placed.entry(kind.to_string()).or_default().add(of_cpu[row as usize]);
            }
        }
        // SAFETY: it begins with the state, and is mapped while the object lives.
        figures.balanced =
            unsafe { balanced(arena::mapping::<Shadow>(object).as_ptr().cast(), levels) };
        figures
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
    /// Each went somewhere: the sum by distance.
    pub fn total(&self) -> u64 {
        self.counts()[..Distance::ALL.len()].iter().sum()
    }
}

#[cfg(test)]
pub mod tests {
    use std::{env, fs};

    use placewise_policy::{CPU_IDLE, CPU_NOT_IDLE, Policy, topology};

    use super::*;

    /// Some of all kinds.
    pub fn figures() -> Figures {
        let wakeups = Placed {
            same_cpu: 6,
            llc: 3,
            other_node: 1,
            on_idle: 9,
            hinted: 2,
            ..Placed::default()
        };
        let moved = Balanced { domain: "MC".into(), newly_idle: 4, ..Balanced::default() };
        Figures { placed: [("wakeup".into(), wakeups)].into(), balanced: [(1, moved)].into() }
    }

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

    /// The page with the rows of all figures below what they are of.
    fn documented(page: &str) -> String {
        let row = |unit: &str, figure: &Figure| {
            format!("| ` .{}` | {unit} | {} |\n", figure.name, figure.help)
        };
        let tables = [
            ("| `placed.", "placements", Placed::FIGURES),
            ("| ` .domain`", "tasks", Balanced::FIGURES),
        ];
        let is_row = |line: &str| {
            let of_unit = |(_, unit, _): &_| line.contains(&format!("` | {unit} | "));
            line.starts_with("| ` .") && tables.iter().any(of_unit)
        };
        let mut text = String::new();
        for line in page.lines().filter(|line| !is_row(line)) {
            text += &format!("{line}\n");
            for (_, unit, figures) in tables.iter().filter(|(head, ..)| line.starts_with(head)) {
                text.extend(figures.iter().map(|figure| row(unit, figure)));
            }
        }
        text
    }

    /// `UPDATE_FIGURES=1` writes the rows anew.
    #[test]
    fn each_figure_is_documented() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/scx.md");
        let page = fs::read_to_string(path).unwrap();
        let documented = documented(&page);
        if env::var_os("UPDATE_FIGURES").is_some() {
            fs::write(path, &documented).unwrap();
        } else {
            assert_eq!(page, documented, "UPDATE_FIGURES=1 writes the rows of docs/scx.md anew");
        }
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
