//! A short lock whose waiters spin: until when it is taken, in turns that are known when they begin to
//! be near. The kernel's spinlocks are such, and its mutexes while their owner runs.
//!
//! Limits: a turn that was given does not move, so whoever arrives before it and fits in goes first, and
//! others after all turns; who waits is never preempted.

use crate::state::event_queue::Time;

#[derive(Clone, Copy, Debug, Default)]
pub struct Lock {
    from: Time,
    until: Time,
}

impl Lock {
    /// Has somebody got it at that time?
    #[inline]
    pub fn is_taken(&self, at: Time) -> bool {
        self.from <= at && at < self.until
    }

    /// Takes it for `hold`; says how long that waits which arrives at `at`.
    #[inline]
    pub fn take(&mut self, at: Time, hold: Time) -> Time {
        if at + hold <= self.from {
            return 0;
        }
        if at >= self.until {
            *self = Lock { from: at, until: at + hold };
            return 0;
        }
        let wait = self.until - at;
        self.until += hold;
        wait
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn turns_are_one_after_the_other() {
        let mut lock = Lock::default();
        assert_eq!(lock.take(100, 10), 0);
        assert_eq!(lock.take(104, 10), 6);
        assert_eq!(lock.take(105, 10), 15);
        assert_eq!(lock.take(130, 10), 0, "all have gone");
    }

    /// Fails if one who comes later is waited for.
    #[test]
    fn whoever_is_done_before_the_next_turn_does_not_wait() {
        let mut lock = Lock::default();
        assert_eq!(lock.take(100, 10), 0);
        assert_eq!(lock.take(80, 20), 0);
        assert_eq!(lock.take(95, 10), 15, "it would not be done");
    }
}
