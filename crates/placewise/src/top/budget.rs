//! How much of the time `top` watches: so much that it takes no more of a CPU than it may.
//!
//! What it may take comes in all the time, and what it takes goes out, whatever for. Once there is
//! nothing left it stops watching, and once there is as much as it may put by it goes on. So what it
//! takes is more than its share by what a look takes at most, for which it stays away the longer.

use std::time::{Duration, Instant};

use rustix::time::{ClockId, clock_gettime};

/// What comes in within this time may be put by: for so long, at least, it does not watch. Shorter
/// times would show less of what CPUs do that have few events.
const SAVINGS: Duration = Duration::from_millis(500);

/// What this process has taken of a CPU by a time.
#[derive(Clone, Copy, Debug)]
pub struct OwnCost {
    at: Instant,
    cpu: Duration,
}

impl OwnCost {
    pub fn now() -> Self {
        let time = clock_gettime(ClockId::ProcessCPUTime);
        let cpu = Duration::new(time.tv_sec as u64, time.tv_nsec as u32);
        OwnCost { at: Instant::now(), cpu }
    }

    /// Of one CPU, since that time.
    pub fn share_since(self, before: Self) -> f64 {
        let elapsed = self.at.duration_since(before.at).as_secs_f64();
        (self.cpu - before.cpu).as_secs_f64() / elapsed.max(1e-3)
    }
}

pub struct Budget {
    /// Of a CPU.
    share: f64,
    /// Seconds of a CPU; less than nothing is owed.
    left: f64,
    as_of: OwnCost,
    allows: bool,
}

impl Budget {
    pub fn new(share: f64, now: OwnCost) -> Self {
        Budget { share, left: share * SAVINGS.as_secs_f64(), as_of: now, allows: true }
    }

    /// Is it to watch from now on?
    pub fn allows(&mut self, now: OwnCost) -> bool {
        let before = std::mem::replace(&mut self.as_of, now);
        let came_in = self.share * now.at.duration_since(before.at).as_secs_f64();
        let most = self.share * SAVINGS.as_secs_f64();
        self.left = (self.left + came_in - (now.cpu - before.cpu).as_secs_f64()).min(most);
        self.allows = if self.allows { self.left > 0.0 } else { self.left >= most };
        self.allows
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LOOK: Duration = Duration::from_millis(200);
    const LOOKS: u32 = 5_000;

    /// The share of a CPU that is taken, and the share of the time that is watched, where looking on
    /// takes `idle` of a CPU, and watching `watching` more: at most so much over the budget is owed.
    fn shares(budget: f64, idle: f64, watching: f64) -> (f64, f64) {
        let mut now = OwnCost { at: Instant::now(), cpu: Duration::from_secs(7) };
        let (begun, mut budget_of_time) = (now, Budget::new(budget, now));
        let (mut watches, mut watched) = (true, 0);
        for _ in 0..LOOKS {
            watched += u32::from(watches);
            now.at += LOOK;
            now.cpu += LOOK.mul_f64(if watches { idle + watching } else { idle });
            watches = budget_of_time.allows(now);
            let elapsed = now.at.duration_since(begun.at) + SAVINGS;
            let most = elapsed.mul_f64(budget) + LOOK.mul_f64(idle + watching);
            assert!(now.cpu - begun.cpu <= most);
        }
        (now.share_since(begun), f64::from(watched) / f64::from(LOOKS))
    }

    /// Not more, and no less than what comes in between two looks makes of it.
    fn nearly(share: f64, most: f64) -> bool {
        (0.85..1.001).contains(&(share / most))
    }

    #[test]
    fn what_may_be_taken_is_not_saved_by_looking_away() {
        let (taken, watched) = shares(0.015, 0.001, 0.013);
        assert!(nearly(taken, 0.014), "{taken}");
        assert_eq!(watched, 1.0);
    }

    #[test]
    fn as_much_is_watched_as_may_be_paid_for() {
        for watching in [0.02, 0.1, 0.9] {
            let (taken, watched) = shares(0.015, 0.001, watching);
            assert!(nearly(taken, 0.015), "{taken}");
            assert!(nearly(watched, 0.014 / watching), "{watched}");
        }
    }

    #[test]
    fn what_was_not_taken_for_long_is_not_taken_at_once() {
        let mut now = OwnCost { at: Instant::now(), cpu: Duration::ZERO };
        let mut budget = Budget::new(0.01, now);
        now.at += Duration::from_secs(3600);
        assert!(budget.allows(now));
        now.cpu += SAVINGS.mul_f64(0.01) + Duration::from_nanos(1);
        assert!(!budget.allows(now));
        now.at += SAVINGS - LOOK;
        assert!(!budget.allows(now), "it is away for a while");
        now.at += LOOK * 2;
        assert!(budget.allows(now));
    }
}
