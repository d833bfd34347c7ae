//! Placements on a busy CPU while a CPU that the task may use was idle.
//!
//! Judged when the kernel decided: a placement misses an idle CPU if the CPU it
//! chose was not idle and another one in the task's affinity was. It counts once,
//! where the nearest such CPU was, seen from the chosen one. A CPU that switches,
//! has tasks queued or has a wakeup on its way is not idle. What the miss cost is
//! the latency of the placement: see [`super::latency`].
//!
//! A sync wakeup onto the CPU of its waker counts too: if the waker soon sleeps,
//! the wait shows that the miss was cheap.

use serde::Serialize;

use super::on_the_way::OnTheWay;
use super::places::{ByNearest, Mask, Nearest, Places, contains};
use crate::steps::by_name::ByName;
use crate::steps::task::{NameId, Tasks};
use crate::verdict::{Kind, Placed};

/// How often placements missed an idle CPU.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct MissedIdle {
    /// All placements.
    pub placements: u64,
    /// Those on a CPU that was not idle, whether or not another was.
    pub on_busy_cpu: u64,
    /// Those that missed an idle CPU.
    pub missed: ByNearest<u64>,
    /// How long the tasks of these waited to run; waits that outlast the trace are missing.
    pub waited_ns: ByNearest<u64>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct MissedIdleOfName {
    pub name: String,
    #[serde(flatten)]
    pub missed_idle: MissedIdle,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct MissedIdleReport {
    /// Wakeups and forks that missed an idle CPU, by where the nearest was.
    pub same_llc: u64,
    pub same_node: u64,
    /// Beyond the node.
    pub machine: u64,
    /// How long the tasks of all these waited.
    pub wait_ns: u64,
    pub wakeups: MissedIdle,
    pub forks: MissedIdle,
    /// Tasks of one name together, wakeups and forks; most time waited first.
    pub by_name: Vec<MissedIdleOfName>,
}

/// Counts the misses of a trace.
#[derive(Default)]
pub struct MissedIdleCounter {
    wakeups: MissedIdle,
    forks: MissedIdle,
    by_name: ByName<MissedIdle>,
}

impl MissedIdleCounter {
    /// `idle`: the CPUs that were idle when the kernel decided. Where the nearest is that was missed.
    pub fn placed(
        &mut self,
        placed: &Placed,
        name: NameId,
        places: &Places,
        idle: &Mask,
        allowed: &Mask,
    ) -> Option<Nearest> {
        let on_busy_cpu = !contains(idle, placed.actual);
        let nearest = if on_busy_cpu { places.nearest(placed.actual, idle, allowed) } else { None };
        for count in self.counts(placed.kind, name) {
            count.placements += 1;
            count.on_busy_cpu += u64::from(on_busy_cpu);
            if let Some(nearest) = nearest {
                count.missed[nearest] += 1;
            }
        }
        nearest
    }

    /// The task waited for so long since its placement.
    pub fn waited(&mut self, placement: &OnTheWay, ns: u64) {
        if let Some(nearest) = placement.nearest_idle {
            for count in self.counts(placement.kind, placement.waiter.name) {
                count.waited_ns[nearest] += ns;
            }
        }
    }

    fn counts(&mut self, kind: Kind, name: NameId) -> [&mut MissedIdle; 2] {
        let of_kind = match kind {
            Kind::Wakeup => &mut self.wakeups,
            Kind::Fork => &mut self.forks,
        };
        [of_kind, self.by_name.of(name)]
    }

    pub fn report(&self, tasks: &Tasks) -> MissedIdleReport {
        // A miss whose wait is not known, or too short to measure, still is one.
        let by_name = self.by_name.most_first(tasks, |count| {
            count.waited_ns.total().max(u64::from(count.missed.total() > 0))
        });
        let of_name = |(name, missed_idle): (&str, &MissedIdle)| MissedIdleOfName {
            name: name.into(),
            missed_idle: *missed_idle,
        };
        let sum = |count: fn(&MissedIdle) -> u64| count(&self.wakeups) + count(&self.forks);
        MissedIdleReport {
            same_llc: sum(|count| count.missed.same_llc),
            same_node: sum(|count| count.missed.same_node),
            machine: sum(|count| count.missed.other_node),
            wait_ns: sum(|count| count.waited_ns.total()),
            wakeups: self.wakeups,
            forks: self.forks,
            by_name: by_name.into_iter().map(of_name).collect(),
        }
    }
}
