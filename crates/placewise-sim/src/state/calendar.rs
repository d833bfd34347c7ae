//! When each CPU is done with what it does: a calendar queue.
//!
//! Nearly all that happens is that a CPU is done with one thing and begins the next, which is over in a
//! microsecond or so. Its end has a day, and the days of a year have lists in the order of keys, which
//! seldom hold more than one CPU. The days that have any are bits, so that the first of them is soon found
//! however far it is. What ends in more than a year waits in a tournament.

use placewise_policy::{CpuId, Table};

use crate::state::event_queue::{DISARMED, EventQueue, NUMBER_BITS};

const DAY_BITS: u32 = 1;
/// Of a word of bits, and of a year.
const WEEK: usize = 64;
const WEEKS: usize = 64;
const DAYS: usize = WEEK * WEEKS;

/// What is due after less than this has a day of its own; as a difference of keys.
const YEAR: u64 = ((DAYS - 1) as u64) << (NUMBER_BITS + DAY_BITS);

/// Who comes after the last of a day, and after one that waits for more than a year.
const NOBODY: u16 = u16::MAX;
const LATER: u16 = u16::MAX - 1;

pub struct Calendar {
    /// Who is first on each day.
    firsts: Box<[u16; DAYS]>,
    /// The days that have somebody, and the weeks that have such days.
    days: [u64; WEEKS],
    weeks: u64,
    /// The key of what was due last: nothing is due before.
    now: u64,
    entries: Table<CpuId, Entry>,
    later: EventQueue,
}

#[derive(Clone, Copy)]
struct Entry {
    key: u64,
    /// Who comes after it on its day.
    next: u16,
}

/// The day of a key.
#[inline]
fn day_of(key: u64) -> usize {
    (key >> (NUMBER_BITS + DAY_BITS)) as usize % DAYS
}

/// Those of the bits from `first` on.
#[inline]
fn bits_from(bits: u64, first: usize) -> u64 {
    bits & (u64::MAX << first)
}

impl Calendar {
    pub fn new(nr_cpus: u32) -> Self {
        let nothing = Entry { key: DISARMED, next: NOBODY };
        Calendar {
            firsts: Box::new([NOBODY; DAYS]),
            days: [0; WEEKS],
            weeks: 0,
            now: 0,
            entries: vec![nothing; nr_cpus as usize].into(),
            later: EventQueue::new(nr_cpus as usize),
        }
    }

    #[inline]
    pub fn key(&self, cpu: CpuId) -> u64 {
        self.entries[cpu].key
    }

    /// It is the time of `key`, and nothing is due before.
    #[inline]
    pub fn turn_to(&mut self, key: u64) {
        self.now = key;
    }

    /// The key of what is due first.
    #[inline]
    pub fn least(&self) -> u64 {
        let first = CpuId::from(self.firsts[self.first_day()]);
        let first = self.entries.get(usize::from(first)).map_or(DISARMED, |entry| entry.key);
        first.min(self.later.least())
    }

    /// The first day that has somebody, from today on and round the year; any day if none has.
    #[inline]
    fn first_day(&self) -> usize {
        let today = day_of(self.now);
        let week = today / WEEK;
        let rest = bits_from(self.days[week], today % WEEK);
        if rest != 0 {
            return week * WEEK + rest.trailing_zeros() as usize;
        }
        let later = bits_from(self.weeks & !(1 << week), week);
        let weeks = if later != 0 { later } else { self.weeks };
        let week = weeks.trailing_zeros() as usize % WEEKS;
        week * WEEK + self.days[week].trailing_zeros() as usize % WEEK
    }

    #[inline(always)]
    pub fn arm(&mut self, cpu: CpuId, key: u64) {
        if self.entries[cpu].key != DISARMED {
            self.disarm(cpu);
        }
        if key.saturating_sub(self.now) >= YEAR {
            return self.arm_later(cpu, key);
        }
        let day = day_of(key);
        let first = self.firsts[day];
        if first == NOBODY {
            self.days[day / WEEK] |= 1 << (day % WEEK);
            self.weeks |= 1 << (day / WEEK);
        } else if self.entries[CpuId::from(first)].key < key {
            return self.insert_after(first, cpu, key);
        }
        self.entries[cpu] = Entry { key, next: first };
        self.firsts[day] = cpu.into();
    }

    #[cold]
    fn arm_later(&mut self, cpu: CpuId, key: u64) {
        self.entries[cpu] = Entry { key, next: LATER };
        self.later.set(cpu.into(), key);
    }

    /// Puts the entry of `cpu` among those that come after the first of its day.
    #[inline(never)]
    fn insert_after(&mut self, first: u16, cpu: CpuId, key: u64) {
        let mut before = first;
        loop {
            let next = self.entries[CpuId::from(before)].next;
            if next == NOBODY || self.entries[CpuId::from(next)].key > key {
                self.entries[cpu] = Entry { key, next };
                self.entries[CpuId::from(before)].next = cpu.into();
                return;
            }
            before = next;
        }
    }

    /// `cpu`, which is due first, is so no more.
    #[inline]
    pub fn take(&mut self, cpu: CpuId) {
        let entry = &mut self.entries[cpu];
        let day = day_of(std::mem::replace(&mut entry.key, DISARMED));
        if entry.next == LATER {
            return self.later.set(cpu.into(), DISARMED);
        }
        self.firsts[day] = entry.next;
        if entry.next == NOBODY {
            let days = &mut self.days[day / WEEK];
            *days &= !(1 << (day % WEEK));
            if *days == 0 {
                self.weeks &= !(1 << (day / WEEK));
            }
        }
    }

    #[inline(never)]
    pub fn disarm(&mut self, cpu: CpuId) {
        let Entry { key, next } = self.entries[cpu];
        if key == DISARMED {
            return;
        }
        let mut before = self.firsts[day_of(key)];
        if next == LATER || before == u16::from(cpu) {
            return self.take(cpu);
        }
        while self.entries[CpuId::from(before)].next != u16::from(cpu) {
            before = self.entries[CpuId::from(before)].next;
        }
        self.entries[CpuId::from(before)].next = next;
        self.entries[cpu].key = DISARMED;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::state::event_queue::Time;

    const YEAR: Time = super::YEAR >> NUMBER_BITS;

    fn key(time: Time, cpu: u32) -> u64 {
        time << NUMBER_BITS | u64::from(cpu)
    }

    fn arm(calendar: &mut Calendar, cpu: u32, time: Time) {
        calendar.arm(CpuId::new(cpu), key(time, cpu));
    }

    /// Times and CPUs in the order in which they come.
    fn order(calendar: &mut Calendar) -> Vec<(Time, u32)> {
        let next = || {
            let key = calendar.least();
            let (time, cpu) = (key >> NUMBER_BITS, key as u32 % 1024);
            if key != DISARMED {
                calendar.turn_to(key);
                calendar.take(CpuId::new(cpu));
            }
            (key != DISARMED).then_some((time, cpu))
        };
        std::iter::from_fn(next).collect()
    }

    #[test]
    fn those_of_one_day_come_by_time_then_cpu() {
        let mut calendar = Calendar::new(5);
        let entries = [(100, 3), (100, 4), (101, 0), (101, 1), (200, 2)];
        for (time, cpu) in [3, 0, 4, 1, 2].map(|at| entries[at]) {
            arm(&mut calendar, cpu, time);
        }
        assert_eq!(order(&mut calendar), entries);
    }

    /// From a day in the middle of a week to the one before it, a year later, and beyond.
    #[test]
    fn order_does_not_depend_on_where_a_year_begins() {
        for begin in [0, 77, YEAR - 1, 123_456_789] {
            let mut calendar = Calendar::new(8);
            calendar.turn_to(key(begin, 0));
            let after = [0, 1, 64, 200, YEAR / 2, YEAR - 1, YEAR, 5 * YEAR];
            let entries: Vec<(Time, u32)> =
                after.map(|it| begin + it).into_iter().zip(0..).collect();
            entries.iter().rev().for_each(|&(time, cpu)| arm(&mut calendar, cpu, time));
            assert_eq!(order(&mut calendar), entries, "from {begin} on");
        }
    }

    #[test]
    fn a_cpu_can_be_disarmed_wherever_it_waits() {
        let times = [50, 50, 50, YEAR + 50];
        for disarmed in 0..4 {
            let mut calendar = Calendar::new(4);
            (0..4).zip(times).for_each(|(cpu, time)| arm(&mut calendar, cpu, time));
            calendar.disarm(CpuId::new(disarmed));
            assert_eq!(calendar.key(CpuId::new(disarmed)), DISARMED);
            let others = times.into_iter().zip(0..).filter(|&(_, cpu)| cpu != disarmed);
            assert_eq!(order(&mut calendar), Vec::from_iter(others));
        }
    }
}
