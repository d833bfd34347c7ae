//! Short locks whose waiters spin: until when one is taken, in turns that are known when they begin to
//! be near. The kernel's spinlocks are such, and its mutexes while their owner runs.
//!
//! Limits: a turn that was given does not move, so whoever arrives before one goes first, and waits itself for
//! as long as it would have kept the others; who waits is never preempted.

use placewise_policy::CpuId;

use crate::state::event_queue::Time;

/// How often the line of a lock moves more for one who waits for it: whoever holds it takes it back to let it go.
/// On hosts of two CPUs, where a line takes 56 and 70 ns, two writers get a message into one pipe each 240 and 280
/// ns, and so do two readers out of it; half of a message and the three lines of a writer that comes when nobody is
/// there are 201 and 250.
const HANDED_ON_LINES: u32 = 1;

fn lines_handed_on(is_taken: bool) -> u32 {
    if is_taken { HANDED_ON_LINES } else { 0 }
}

#[derive(Clone, Copy, Debug, Default)]
pub struct Lock {
    from: Time,
    until: Time,
}

impl Lock {
    /// How many lines who arrives at `at` has to see come beside what the lock is for.
    #[inline]
    pub fn lines_handed_on(&self, at: Time) -> u32 {
        lines_handed_on(self.from <= at && at < self.until)
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
        if at < self.from {
            let kept = at + hold - self.from;
            *self = Lock { from: at, until: self.until + kept };
            return kept;
        }
        let wait = self.until - at;
        self.until += hold;
        wait
    }
}

/// One that is always taken in turn, whenever its owners ask, and knows the last of them.
#[derive(Clone, Copy, Debug, Default)]
pub struct FifoLock {
    pub free_at: Time,
    pub last_owner: CpuId,
}

impl FifoLock {
    /// As [`Lock::lines_handed_on`] has it.
    #[inline]
    pub fn lines_handed_on(&self, at: Time) -> u32 {
        lines_handed_on(at < self.free_at)
    }

    /// `by`, which asks at a time, holds it for so long; says for how long that waits.
    #[inline]
    pub fn take(&mut self, by: CpuId, asked: Time, hold: Time) -> Time {
        let start = self.free_at.max(asked);
        *self = FifoLock { free_at: start + hold, last_owner: by };
        start - asked
    }

    /// Its last owner lets it go no sooner than then.
    #[inline]
    pub fn keep_until(&mut self, end: Time) {
        self.free_at = self.free_at.max(end);
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
    }

    /// Fails if it waits behind the turn that was given, or if the lock is then free sooner than all have had it.
    #[test]
    fn whoever_is_not_done_before_the_next_turn_waits_in_its_place() {
        let mut lock = Lock::default();
        lock.take(100, 10);
        assert_eq!(lock.take(95, 10), 5, "so long the other would have waited");
        assert_eq!(lock.take(96, 10), 19, "until both have had it");
    }

    #[test]
    fn who_comes_while_it_is_taken_sees_a_line_more() {
        let (mut lock, mut fifo) = (Lock::default(), FifoLock::default());
        lock.take(100, 10);
        fifo.take(CpuId::new(1), 100, 10);
        assert_eq!([99, 105, 110].map(|at| lock.lines_handed_on(at)), [0, 1, 0]);
        assert_eq!([105, 110].map(|at| fifo.lines_handed_on(at)), [1, 0]);
    }
}
