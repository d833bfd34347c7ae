//! What can happen, and when: the slots of the event queues by what they are about.

use placewise_policy::{CpuId, FIRST_TASK, NR_TASK_GROUPS, TaskId};

use crate::state::calendar::Calendar;
use crate::state::event_queue::{DISARMED, EventQueue, NUMBER_BITS, Time};

/// The events a CPU can have, then one per task for its timer. Idle tasks have none: their slots are
/// that of the next change, that of the clocks and those of the timers of cgroups.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Slot {
    Activity(CpuId),
    Tick(CpuId),
    /// An interrupt arrives.
    Interrupt(CpuId),
    /// A wakeup made by an interrupt goes on.
    InterruptWakeup(CpuId),
    Change,
    /// The clocks of packages may change.
    Clock,
    /// A period of a cgroup's quota ends.
    Period(u32),
    /// Runtime of a cgroup that was given back is handed out.
    Slack(u32),
    Timer(TaskId),
}

const SLOTS_OF_A_CPU: u32 = 4;
const SLACK_SLOTS: u32 = NR_TASK_GROUPS;

/// Keys are times and, below them, the numbers of slots: the order of what comes at equal times depends on
/// nothing else.
pub struct Events {
    /// Those of CPUs that are due soon.
    activities: Calendar,
    /// All others, by number.
    others: EventQueue,
    /// The number of the first slot after those of the CPUs.
    timers: u32,
    slots: u32,
}

impl Events {
    /// Times must stay below 2^44 ns, almost five hours.
    pub fn new(nr_cpus: u32) -> Self {
        let timers = SLOTS_OF_A_CPU * nr_cpus;
        let slots = timers + FIRST_TASK;
        let others = EventQueue::new(slots as usize);
        Events { activities: Calendar::new(), others, timers, slots }
    }

    /// Another task may have a timer.
    pub fn add_task(&mut self) {
        assert!(self.slots < 1 << NUMBER_BITS, "too many slots for the keys of the event queue");
        self.slots += 1;
        self.others.grow_to(self.slots as usize);
    }

    #[inline(always)]
    pub fn arm(&mut self, slot: Slot, time: Time) {
        let number = self.number(slot);
        let key = time << NUMBER_BITS | u64::from(number);
        if let Slot::Activity(cpu) = slot {
            if self.activities.key(cpu) != DISARMED {
                self.disarm(slot);
            }
            if self.activities.arm(cpu, key) {
                return;
            }
        }
        self.others.set(number as usize, key);
    }

    #[inline]
    pub fn disarm(&mut self, slot: Slot) {
        if let Slot::Activity(cpu) = slot
            && self.activities.disarm(cpu)
        {
            return;
        }
        self.others.set(self.number(slot) as usize, DISARMED);
    }

    /// When a slot is due, if it is armed.
    #[inline]
    pub fn due(&self, slot: Slot) -> Option<Time> {
        let key = match slot {
            Slot::Activity(cpu) => self.activities.key(cpu),
            _ => self.others.key(self.number(slot) as usize),
        };
        (key != DISARMED).then_some(key >> NUMBER_BITS)
    }

    /// Takes the earliest event; of those at one time that of the slot with the least number.
    #[inline]
    pub fn pop(&mut self) -> Option<(Time, Slot)> {
        let (first, other) = (self.activities.first(), self.others.least());
        if first.key < other {
            self.activities.take(first);
            return Some((first.key >> NUMBER_BITS, Slot::Activity(first.cpu())));
        }
        if other == DISARMED {
            return None;
        }
        self.activities.turn_to(other);
        let slot = self.slot(other as u32 & ((1 << NUMBER_BITS) - 1));
        self.disarm(slot);
        Some((other >> NUMBER_BITS, slot))
    }

    /// Four for each CPU, then one for each task.
    #[inline]
    fn number(&self, slot: Slot) -> u32 {
        match slot {
            Slot::Activity(cpu) => SLOTS_OF_A_CPU * u32::from(cpu),
            Slot::Tick(cpu) => SLOTS_OF_A_CPU * u32::from(cpu) + 1,
            Slot::Interrupt(cpu) => SLOTS_OF_A_CPU * u32::from(cpu) + 2,
            Slot::InterruptWakeup(cpu) => SLOTS_OF_A_CPU * u32::from(cpu) + 3,
            Slot::Change => self.timers,
            Slot::Period(group) => self.timers + group,
            Slot::Clock => self.timers + SLACK_SLOTS,
            Slot::Slack(group) => self.timers + SLACK_SLOTS + group,
            Slot::Timer(task) => self.timers + u32::from(task),
        }
    }

    #[inline]
    fn slot(&self, number: u32) -> Slot {
        if number >= self.timers {
            return match number - self.timers {
                task @ FIRST_TASK.. => Slot::Timer(task.into()),
                0 => Slot::Change,
                group @ 1..SLACK_SLOTS => Slot::Period(group),
                SLACK_SLOTS => Slot::Clock,
                slack => Slot::Slack(slack - SLACK_SLOTS),
            };
        }
        let cpu = CpuId::from(number / SLOTS_OF_A_CPU);
        match number % SLOTS_OF_A_CPU {
            0 => Slot::Activity(cpu),
            1 => Slot::Tick(cpu),
            2 => Slot::Interrupt(cpu),
            _ => Slot::InterruptWakeup(cpu),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const CPU: CpuId = CpuId::new(1);

    fn order(events: &mut Events) -> Vec<(Time, Slot)> {
        std::iter::from_fn(|| events.pop()).collect()
    }

    #[test]
    fn events_come_by_time_then_slot() {
        let mut events = Events::new(2);
        let (last, interrupt) = (Slot::Activity(CPU), Slot::Interrupt(CpuId::new(0)));
        let slots = [(10, interrupt), (10, last), (10, Slot::Tick(CPU)), (20, Slot::Change)];
        slots.iter().rev().for_each(|&(time, slot)| events.arm(slot, time));
        assert_eq!(order(&mut events), slots);
    }

    #[test]
    fn rearming_and_disarming_drop_the_old_time() {
        let mut events = Events::new(2);
        events.arm(Slot::Activity(CPU), 10);
        events.arm(Slot::Activity(CPU), 30);
        events.arm(Slot::Tick(CPU), 20);
        events.disarm(Slot::Tick(CPU));
        assert_eq!(events.due(Slot::Activity(CPU)), Some(30));
        assert_eq!(order(&mut events), [(30, Slot::Activity(CPU))]);
    }

    #[test]
    fn a_slot_armed_twice_for_one_time_fires_once() {
        let mut events = Events::new(2);
        events.arm(Slot::Activity(CPU), 10);
        events.arm(Slot::Activity(CPU), 10);
        assert_eq!(order(&mut events), [(10, Slot::Activity(CPU))]);
    }

    #[test]
    fn a_served_slot_waits_for_nothing_until_it_is_armed() {
        let mut events = Events::new(2);
        let (first, second, tick) = (Slot::Activity(CPU), Slot::Change, Slot::Tick(CPU));
        events.arm(first, 10);
        events.arm(second, 20);
        assert_eq!(events.pop(), Some((10, first)));
        assert_eq!(events.due(first), None);
        events.arm(tick, 12);
        events.arm(first, 15);
        assert_eq!(events.due(first), Some(15));
        assert_eq!(events.pop(), Some((12, tick)));
        events.disarm(tick);
        assert_eq!(order(&mut events), [(15, first), (20, second)]);
        assert_eq!(events.pop(), None);
    }

    /// Fails if what ends beyond the calendar's year were lost, or came twice.
    #[test]
    fn what_lasts_long_ends_in_its_turn() {
        let cpus = [0, 1, 2].map(CpuId::new).map(Slot::Activity);
        let mut events = Events::new(3);
        let long = [30_000, 10_000, 20_000];
        for (slot, time) in cpus.into_iter().zip(long) {
            events.arm(slot, time);
            assert_eq!(events.due(slot), Some(time));
        }
        events.disarm(cpus[2]);
        assert_eq!(events.pop(), Some((10_000, cpus[1])));
        events.arm(cpus[1], 10_010);
        assert_eq!(order(&mut events), [(10_010, cpus[1]), (30_000, cpus[0])]);
    }

    #[test]
    fn every_slot_comes_back_as_what_it_is_about() {
        let slots = [
            Slot::Activity(CPU),
            Slot::Tick(CPU),
            Slot::Interrupt(CPU),
            Slot::InterruptWakeup(CPU),
            Slot::Change,
            Slot::Period(1),
            Slot::Period(NR_TASK_GROUPS - 1),
            Slot::Clock,
            Slot::Slack(1),
            Slot::Slack(NR_TASK_GROUPS - 1),
            Slot::Timer(TaskId::FIRST),
        ];
        let mut events = Events::new(2);
        events.add_task();
        for (time, slot) in slots.into_iter().enumerate() {
            events.arm(slot, time as Time);
        }
        let popped: Vec<Slot> = order(&mut events).into_iter().map(|(_, slot)| slot).collect();
        assert_eq!(popped, slots);
    }
}
