//! What can happen, and when: the slots of the event queue by what they are about.

use placewise_policy::{CpuId, FIRST_TASK, NR_TASK_GROUPS, TaskId};

use crate::state::event_queue::{EventQueue, STRIDE, Time};

/// The events a CPU can have, then one per task for its timer. Idle tasks have none: their slots are
/// that of the next change and those of the timers of cgroups.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Slot {
    Activity(CpuId),
    Tick(CpuId),
    /// An interrupt arrives.
    Interrupt(CpuId),
    /// A wakeup made by an interrupt goes on.
    InterruptWakeup(CpuId),
    Change,
    /// A period of a cgroup's quota ends.
    Period(u32),
    /// Runtime of a cgroup that was given back is handed out.
    Slack(u32),
    Timer(TaskId),
}

/// The first of them, its activity, is in the shallow half of the queue.
const SLOTS_OF_A_CPU: u32 = STRIDE as u32;
const SLACK_SLOTS: u32 = NR_TASK_GROUPS;

pub struct Events {
    queue: EventQueue,
    /// The first slot after those of the CPUs.
    timers: u32,
}

impl Events {
    pub fn new(nr_cpus: u32) -> Self {
        let timers = SLOTS_OF_A_CPU * nr_cpus;
        let queue = EventQueue::new((timers + FIRST_TASK) as usize, timers as usize);
        Events { queue, timers }
    }

    /// Another task may have a timer.
    pub fn add_task(&mut self) {
        self.queue.add_slot();
    }

    #[inline]
    pub fn arm(&mut self, slot: Slot, time: Time) {
        self.queue.arm(self.number(slot), time);
    }

    #[inline]
    pub fn disarm(&mut self, slot: Slot) {
        self.queue.disarm(self.number(slot));
    }

    /// When a slot is due, if it is armed.
    #[inline]
    pub fn due(&self, slot: Slot) -> Option<Time> {
        self.queue.due(self.number(slot))
    }

    /// Takes the earliest event.
    #[inline]
    pub fn pop(&mut self) -> Option<(Time, Slot)> {
        let (time, number) = self.queue.pop()?;
        Some((time, self.slot(number as u32)))
    }

    /// Four for each CPU, then one for each task.
    #[inline]
    fn number(&self, slot: Slot) -> usize {
        let number = match slot {
            Slot::Activity(cpu) => SLOTS_OF_A_CPU * u32::from(cpu),
            Slot::Tick(cpu) => SLOTS_OF_A_CPU * u32::from(cpu) + 1,
            Slot::Interrupt(cpu) => SLOTS_OF_A_CPU * u32::from(cpu) + 2,
            Slot::InterruptWakeup(cpu) => SLOTS_OF_A_CPU * u32::from(cpu) + 3,
            Slot::Change => self.timers,
            Slot::Period(group) => self.timers + group,
            Slot::Slack(group) => self.timers + SLACK_SLOTS + group,
            Slot::Timer(task) => self.timers + u32::from(task),
        };
        number as usize
    }

    #[inline]
    fn slot(&self, number: u32) -> Slot {
        if number >= self.timers {
            return match number - self.timers {
                task @ FIRST_TASK.. => Slot::Timer(task.into()),
                0 => Slot::Change,
                group @ 1..SLACK_SLOTS => Slot::Period(group),
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
            Slot::Slack(1),
            Slot::Slack(NR_TASK_GROUPS - 1),
            Slot::Timer(TaskId::FIRST),
        ];
        let mut events = Events::new(2);
        events.add_task();
        for (time, slot) in slots.into_iter().enumerate() {
            events.arm(slot, time as Time);
        }
        let popped: Vec<Slot> = std::iter::from_fn(|| events.pop()).map(|(_, slot)| slot).collect();
        assert_eq!(popped, slots);
    }
}
