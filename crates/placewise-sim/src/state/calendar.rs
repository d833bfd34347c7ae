//! When each CPU is done with what it does: a calendar queue.
//!
//! Nearly all that happens is that a CPU is done with one thing and begins the next, which is over in a
//! microsecond or so. Its end has a day, and the days of a year have lists in the order of keys, which
//! seldom hold more than one CPU. The days that have any are bits, so that the first of them is soon found
//! however far it is. What ends beyond the year is known here, and waits elsewhere.

use placewise_policy::{CpuId, NR_CPUS};

use crate::state::event_queue::{DISARMED, NUMBER_BITS};

const DAY_BITS: u32 = 1;
/// Of a word of bits, and of a year.
const WEEK: usize = 64;
const WEEKS: usize = 64;
const DAYS: usize = WEEK * WEEKS;

/// What is due after fewer days than this has a day of its own, in none of the weeks before.
const YEAR: u64 = (DAYS - WEEK) as u64;

/// Comes after the last of a day, and is never due.
const NOBODY: u16 = NR_CPUS as u16;
/// Comes after one that is due beyond the year.
const LATER: u16 = NOBODY + 1;

pub struct Calendar {
    /// Who is first on each day.
    firsts: Box<[u16; DAYS]>,
    /// The days that have somebody, and the weeks that have such days.
    days: [u64; WEEKS],
    weeks: u64,
    /// Nothing is due before.
    today: u64,
    /// By CPU, and nobody's.
    entries: Box<[Entry; 2 * NR_CPUS as usize]>,
}

#[derive(Clone, Copy)]
struct Entry {
    key: u64,
    /// Who comes after it on its day.
    next: u16,
}

/// Who is due first.
#[derive(Clone, Copy)]
pub struct First {
    pub key: u64,
    cpu: u16,
    day: usize,
}

impl First {
    pub fn cpu(self) -> CpuId {
        self.cpu.into()
    }
}

/// The day of a key, of all.
#[inline]
fn day_of(key: u64) -> u64 {
    key >> (NUMBER_BITS + DAY_BITS)
}

/// Where a day stands in its year.
#[inline]
fn in_year(day: u64) -> usize {
    day as usize % DAYS
}

impl Calendar {
    pub fn new() -> Self {
        Calendar {
            firsts: Box::new([NOBODY; DAYS]),
            days: [0; WEEKS],
            weeks: 0,
            today: 0,
            entries: Box::new([Entry { key: DISARMED, next: NOBODY }; 2 * NR_CPUS as usize]),
        }
    }

    #[inline]
    fn entry(&mut self, cpu: u16) -> &mut Entry {
        let entries = self.entries.len();
        &mut self.entries[usize::from(cpu) % entries]
    }

    /// When a CPU is due, here or later.
    #[inline]
    pub fn key(&self, cpu: CpuId) -> u64 {
        self.entries[usize::from(cpu) % self.entries.len()].key
    }

    /// It is the time of `key`, and nothing is due before.
    #[inline]
    pub fn turn_to(&mut self, key: u64) {
        self.today = day_of(key);
    }

    #[inline]
    pub fn first(&mut self) -> First {
        let day = self.first_day();
        let cpu = self.firsts[day];
        First { key: self.entry(cpu).key, cpu, day }
    }

    /// The first day that has somebody, from this week on and round the year; any day if none has.
    #[inline]
    fn first_day(&self) -> usize {
        let mut week = in_year(self.today) / WEEK;
        if self.days[week] == 0 {
            let later = self.weeks.rotate_right(week as u32).trailing_zeros() as usize;
            week = (week + later) % WEEKS;
        }
        week * WEEK + self.days[week].trailing_zeros() as usize % WEEK
    }

    /// A CPU that is not due yet is so with this key; false if that is beyond the year.
    #[inline(always)]
    pub fn arm(&mut self, cpu: CpuId, key: u64) -> bool {
        debug_assert_eq!(self.key(cpu), DISARMED);
        let cpu = u16::from(cpu);
        let day = day_of(key);
        if day - self.today >= YEAR {
            *self.entry(cpu) = Entry { key, next: LATER };
            return false;
        }
        let day = in_year(day);
        let first = self.firsts[day];
        if first == NOBODY {
            self.days[day / WEEK] |= 1 << (day % WEEK);
            self.weeks |= 1 << (day / WEEK);
        } else if self.entry(first).key < key {
            self.insert_after(first, cpu, key);
            return true;
        }
        *self.entry(cpu) = Entry { key, next: first };
        self.firsts[day] = cpu;
        true
    }

    /// Puts the entry of `cpu` among those that come after the first of its day.
    #[inline(never)]
    fn insert_after(&mut self, first: u16, cpu: u16, key: u64) {
        let mut before = first;
        loop {
            let next = self.entry(before).next;
            if self.entry(next).key > key {
                *self.entry(cpu) = Entry { key, next };
                self.entry(before).next = cpu;
                return;
            }
            before = next;
        }
    }

    /// The time has come of who is due first, which is so no more.
    #[inline]
    pub fn take(&mut self, First { key, cpu, day }: First) {
        self.today = day_of(key);
        let entry = self.entry(cpu);
        entry.key = DISARMED;
        let next = entry.next;
        self.set_first(day, next);
    }

    #[inline]
    fn set_first(&mut self, day: usize, cpu: u16) {
        self.firsts[day] = cpu;
        if cpu == NOBODY {
            let days = &mut self.days[day / WEEK];
            *days &= !(1 << (day % WEEK));
            if *days == 0 {
                self.weeks &= !(1 << (day / WEEK));
            }
        }
    }

    /// A CPU is due no more; false if it was beyond the year.
    #[inline(never)]
    pub fn disarm(&mut self, cpu: CpuId) -> bool {
        let cpu = u16::from(cpu);
        let Entry { key, next } = *self.entry(cpu);
        self.entry(cpu).key = DISARMED;
        if next == LATER {
            return false;
        }
        if key == DISARMED {
            return true;
        }
        let day = in_year(day_of(key));
        let mut before = self.firsts[day];
        if before == cpu {
            self.set_first(day, next);
            return true;
        }
        while self.entry(before).next != cpu {
            before = self.entry(before).next;
        }
        self.entry(before).next = next;
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::state::event_queue::Time;

    const YEAR: Time = super::YEAR << DAY_BITS;

    fn key(time: Time, cpu: u32) -> u64 {
        time << NUMBER_BITS | u64::from(cpu)
    }

    fn arm(calendar: &mut Calendar, cpu: u32, time: Time) {
        assert!(calendar.arm(CpuId::new(cpu), key(time, cpu)));
    }

    /// Times and CPUs in the order in which they come.
    fn order(calendar: &mut Calendar) -> Vec<(Time, u32)> {
        let next = || {
            let first = calendar.first();
            if first.key != DISARMED {
                calendar.take(first);
            }
            (first.key != DISARMED).then_some((first.key >> NUMBER_BITS, first.cpu().into()))
        };
        std::iter::from_fn(next).collect()
    }

    #[test]
    fn those_of_one_day_come_by_time_then_cpu() {
        let mut calendar = Calendar::new();
        let entries = [(100, 3), (100, 4), (101, 0), (101, 1), (200, 2)];
        for (time, cpu) in [3, 0, 4, 1, 2].map(|at| entries[at]) {
            arm(&mut calendar, cpu, time);
        }
        assert_eq!(order(&mut calendar), entries);
    }

    /// From a day in the middle of a week to the week before it, a year later.
    #[test]
    fn order_does_not_depend_on_where_a_year_begins() {
        for begin in [0, 77, YEAR - 1, 123_456_789] {
            let mut calendar = Calendar::new();
            calendar.turn_to(key(begin, 0));
            let after = [0, 1, 64, 200, YEAR / 2, YEAR - (1 << DAY_BITS)];
            let entries: Vec<(Time, u32)> =
                after.map(|it| begin + it).into_iter().zip(0..).collect();
            entries.iter().rev().for_each(|&(time, cpu)| arm(&mut calendar, cpu, time));
            assert_eq!(order(&mut calendar), entries, "from {begin} on");
        }
    }

    #[test]
    fn a_cpu_can_be_disarmed_wherever_it_waits() {
        let times = [50; 3];
        for disarmed in 0..3 {
            let mut calendar = Calendar::new();
            (0..3).zip(times).for_each(|(cpu, time)| arm(&mut calendar, cpu, time));
            assert!(calendar.disarm(CpuId::new(disarmed)));
            assert_eq!(calendar.key(CpuId::new(disarmed)), DISARMED);
            let others = times.into_iter().zip(0..).filter(|&(_, cpu)| cpu != disarmed);
            assert_eq!(order(&mut calendar), Vec::from_iter(others));
        }
    }
}
