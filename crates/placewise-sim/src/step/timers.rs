//! Sleeps, timers and devices: what ends them is an interrupt.

use placewise_policy::TaskId;
use placewise_workload::program::Object;

use crate::engine::Engine;
use crate::state::effect::Then;
use crate::state::event_queue::Time;
use crate::state::events::Slot;
use crate::state::task::Resume;

impl Engine<'_> {
    pub(super) fn sleep(&mut self, task: TaskId, ns: Time, random_pct: u8) -> Then {
        let extra = self.costs.random_below(ns * u64::from(random_pct) / 100);
        self.sleep_until(task, self.now + ns + extra)
    }

    pub(super) fn wait_for_device(&mut self, task: TaskId, ns: Time, random_pct: u8) -> Then {
        let extra = self.costs.random_below(ns * u64::from(random_pct) / 100);
        self.tasks[task].interrupt_cpu = Some(self.next_interrupt_cpu());
        self.events.arm(Slot::Timer(task), self.now + ns + extra);
        Then::Block(Resume::Next)
    }

    pub(super) fn start_timer(&mut self, task: TaskId, timer: Object) -> Then {
        let timer = self.object(task, timer);
        self.objects.timers[timer].get_or_insert(self.now);
        Then::Next
    }

    fn sleep_until(&mut self, task: TaskId, time: Time) -> Then {
        self.events.arm(Slot::Timer(task), time);
        self.tasks[task].timer_expiry = Some(time);
        Then::Block(Resume::Next)
    }

    pub(super) fn wait_for_timer(
        &mut self,
        task: TaskId,
        timer: Object,
        period: Time,
        absolute: bool,
    ) -> Then {
        let timer = self.object(task, timer);
        let expiry = self.objects.timers[timer].unwrap_or(self.now) + period;
        let missed = expiry <= self.now;
        self.objects.timers[timer] = Some(if missed && !absolute { self.now } else { expiry });
        if missed { Then::Next } else { self.sleep_until(task, expiry) }
    }
}
