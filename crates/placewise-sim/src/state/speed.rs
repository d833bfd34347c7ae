//! How fast a CPU computes, and how long work takes there.

use crate::state::event_queue::Time;

/// Percent of what the core of a CPU gives to one thread alone, times the speed of that core, of 1,024.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Speed {
    parts: u32,
    shift: u32,
    /// 2^(64 + `shift`) / `parts`, rounded up: nearly every event asks how long something takes, and a
    /// multiplication is over sooner than a division.
    inverse: u64,
}

/// Of the fastest core, with a thread alone on it.
const FULL: u64 = 100 * 1024;

impl Speed {
    pub const FULL: Speed = Speed::new(100, 1024);

    /// None is so slow that its inverse would not fit.
    pub const fn new(thread_pct: u32, core: u32) -> Self {
        let product = thread_pct * core;
        let parts = if product < 2 { 2 } else { product };
        let shift = (parts - 1).ilog2();
        let inverse = (1u128 << (64 + shift)).div_ceil(parts as u128) as u64;
        Speed { parts, inverse, shift }
    }

    /// How long `work` takes, which takes so long at full speed; exact for less than 2^63 / [`FULL`].
    #[inline]
    pub fn time_for(self, work: Time) -> Time {
        let product = u128::from(work * FULL) * u128::from(self.inverse);
        (product >> 64) as u64 >> self.shift
    }

    /// What is left at this speed of `amount`, which is done, or carried in some time, at full speed.
    #[inline]
    pub fn share(self, amount: u64) -> u64 {
        amount * u64::from(self.parts) / FULL
    }
}

impl Default for Speed {
    fn default() -> Self {
        Speed::FULL
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_takes_a_time_is_done_in_it() {
        assert_eq!((Speed::FULL.time_for(1234), Speed::FULL.share(1234)), (1234, 1234));
        let half = Speed::new(50, 1024);
        assert_eq!((half.time_for(1000), half.share(2000)), (2000, 1000));
    }

    /// Fails if the inverse were rounded down, or had fewer bits.
    #[test]
    fn times_are_those_of_a_division() {
        let works = (0..44).flat_map(|bits| [1 << bits, (1 << bits) - 1, (1 << bits) + 1]);
        for thread_pct in (1..=100).step_by(3) {
            for core in [1, 2, 3, 255, 256, 446, 1023, 1024] {
                let speed = Speed::new(thread_pct, core);
                let divided = |work: Time| work * FULL / u64::from(speed.parts);
                let exact = |work: Time| speed.time_for(work) == divided(work);
                assert!(works.clone().all(exact), "{thread_pct} % of a core of {core}");
            }
        }
    }
}
