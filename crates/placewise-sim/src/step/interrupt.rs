//! Interrupts: wake lists, timers, ticks, and requests from other CPUs.
//!
//! Interrupts are off inside wakeups, switches and newly-idle balance; what
//! arrives then is handled when that is over.
//!
//! Limits: a device's interrupts go to the CPUs in turn, whoever asked it: no
//! affinity of interrupts, and no device with a queue for each CPU.

use placewise_policy::{CpuId, TaskId};
use placewise_workload::program::{Call, SchedPolicy};

use crate::engine::Engine;
use crate::state::cpu::{Activity, Interrupt};
use crate::state::effect::Then;
use crate::state::event_queue::Time;
use crate::state::events::Slot;
use crate::state::waker::WakerContext;

/// sched_rr_timeslice_ms.
const RR_TIMESLICE: Time = 100_000_000;

impl Engine<'_> {
    /// An interrupt arrives: what it is about stands with the CPU.
    pub(crate) fn interrupt(&mut self, cpu: CpuId) {
        match self.cpus[cpu].activity {
            Activity::Idle => self.kick_idle(cpu, self.now),
            Activity::Segment => self.interrupt_segment(cpu),
            _ => {}
        }
    }

    /// `target` is to notice soon that something has changed for it; `cpu` itself notices when what
    /// it does now is over, and owes what the interrupt takes to send. A CPU that watches its flag while
    /// idle is sent none.
    pub(super) fn interrupt_remotely(&mut self, cpu: CpuId, target: CpuId) {
        self.tell(cpu, target, 0);
    }

    /// The same, of a wakee: an idle CPU leaves idle for it as its program says.
    pub(super) fn tell_of(&mut self, wakee: TaskId, cpu: CpuId, target: CpuId) {
        let program = &self.workload.programs[self.tasks[wakee].program as usize];
        self.tell(cpu, target, program.idle_exit_ns);
    }

    fn tell(&mut self, cpu: CpuId, target: CpuId, beyond: i32) {
        if cpu == target {
            return;
        }
        let delivery = if self.polls(target) {
            self.costs.cache_lines(1, cpu, target)
        } else {
            self.cpus[cpu].debt += self.costs.draw(self.costs.figures.ipi_send_ns);
            self.costs.interrupt_delivery(cpu, target)
        };
        let arrival = self.now + delivery;
        if self.cpus[target].activity == Activity::Idle {
            self.kick_idle_longer(target, arrival, beyond);
        } else if self.cpus[target].activity == Activity::Segment {
            let slot = Slot::Interrupt(target);
            if self.events.due(slot).is_none_or(|due| due > arrival) {
                self.events.arm(slot, arrival);
            }
        }
    }

    fn interrupt_segment(&mut self, cpu: CpuId) {
        self.drain_wake_list(cpu);
        if !self.cpus[cpu].interrupts.is_empty() {
            self.save_segment(cpu);
            self.begin_interrupt(cpu);
        } else if self.cpus[cpu].need_resched {
            self.steal_debt(cpu);
            self.preempt(cpu);
        } else {
            self.steal_debt(cpu);
        }
    }

    /// The interrupt's time delays the segment under way; a spin looks at the clock instead.
    fn steal_debt(&mut self, cpu: CpuId) {
        let debt = std::mem::take(&mut self.cpus[cpu].debt);
        let slot = Slot::Activity(cpu);
        let spins = self.tasks[self.scheduler.current(cpu)].spin_until.is_some();
        if let Some(end) = self.events.due(slot).filter(|_| debt > 0 && !spins) {
            self.events.arm(slot, end + self.stretched(cpu, debt));
        }
    }

    /// Where the next device interrupt arrives: they go to the CPUs in turn.
    pub(super) fn next_interrupt_cpu(&mut self) -> CpuId {
        let (cpu, nr_cpus) = (self.hardware.interrupt_cpu, self.cpus.len());
        let mut others = (1..nr_cpus).map(|step| CpuId::from((usize::from(cpu) + step) % nr_cpus));
        self.hardware.interrupt_cpu = others.find(|&other| self.is_online(other)).unwrap_or(cpu);
        cpu
    }

    /// The timer that a task sleeps on, or the device that it waits for.
    pub(crate) fn timer_expired(&mut self, task: TaskId) {
        let program = &self.workload.programs[self.tasks[task].program as usize];
        let named = self.named_cpu(program.interrupted_on);
        let state = &mut self.tasks[task];
        let cpu = named.or(state.interrupt_cpu.take()).unwrap_or(state.last_cpu);
        let cpu = self.timer_cpu(cpu);
        self.cpus[cpu].interrupts.push_back(Interrupt::Timer(task));
        self.interrupt(cpu);
    }

    /// Handles the first waiting interrupt; whatever was going on has been saved.
    pub(super) fn begin_interrupt(&mut self, cpu: CpuId) {
        let Some(interrupt) = self.cpus[cpu].interrupts.pop_front() else {
            return self.interrupts_done(cpu);
        };
        match interrupt {
            Interrupt::Timer(task) => {
                let timer = self.costs.draw(self.costs.figures.timer_ns);
                self.cpus[cpu].debt += timer;
                self.tasks[task].woken_sync = false;
                if !self.begin_wakeup(cpu, WakerContext::Interrupt, task) {
                    self.begin_interrupt(cpu);
                } else if self.scheduler.running(cpu).is_some() {
                    self.cpus[cpu].activity = Activity::Spinning;
                }
            }
            Interrupt::NohzBalance => self.nohz_idle_balance(cpu),
            Interrupt::ActiveBalance { to } => self.active_balance(cpu, to),
            Interrupt::Migrate(task) => self.migrate_displaced(cpu, task),
            Interrupt::NumaMigrate { task, to } => self.stop_to_numa_migrate(cpu, task, to),
            Interrupt::Offline => self.go_offline(cpu),
        }
    }

    /// What an interrupt takes that wakes the task.
    pub(super) fn arrival(&self, wakee: TaskId) -> Call {
        self.workload.programs[self.tasks[wakee].program as usize].arrival
    }

    /// A wakeup in interrupt context has come to its next step: nothing is left but the interrupt's own end once the
    /// wakee is where it was placed.
    pub(crate) fn interrupt_wakeup_done(&mut self, cpu: CpuId) {
        if let Some(placed) = self.cpus[cpu].interrupt_placed.take() {
            if !self.finish_wakeup(cpu, WakerContext::Interrupt, placed) {
                return;
            }
            let rest = self.arrival(placed.wakee).rest_ns;
            if rest > 0 {
                let end = self.now + self.stretched(cpu, rest.into());
                return self.events.arm(Slot::InterruptWakeup(cpu), end);
            }
        }
        self.begin_interrupt(cpu);
    }

    fn interrupts_done(&mut self, cpu: CpuId) {
        match self.scheduler.running(cpu) {
            Some(task) => self.go_on(cpu, task),
            None => self.idle_loop(cpu),
        }
    }

    pub(crate) fn tick(&mut self, cpu: CpuId) {
        if self.cpus[cpu].activity == Activity::Idle {
            return self.idle_tick(cpu);
        }
        let tick = u64::from(self.scheduler.policy.root.tick_ns);
        self.events.arm(Slot::Tick(cpu), self.now + tick);
        self.account_current(cpu);
        self.cpus[cpu].need_resched |= self.scheduler.tick(cpu, self.now);
        if let Some(current) = self.scheduler.running(cpu) {
            self.tick_rt(cpu, current);
            self.tick_numa(cpu, current);
        }
        let cost = self.costs.draw(self.costs.figures.tick_ns);
        self.cpus[cpu].debt += cost;
        self.tick_balance(cpu);
        if self.cpus[cpu].activity == Activity::Segment {
            self.interrupt_segment(cpu);
        }
    }

    /// task_tick_rt: a SCHED_RR task that has used up its time lets those of its priority run.
    fn tick_rt(&mut self, cpu: CpuId, current: TaskId) {
        let program = self.tasks[current].program as usize;
        let takes_turns =
            matches!(self.workload.programs[program].policy, SchedPolicy::RoundRobin(_));
        if !takes_turns || !self.scheduler.is_queued(current) {
            return;
        }
        let ticks = RR_TIMESLICE / u64::from(self.scheduler.policy.root.tick_ns);
        let used = &mut self.tasks[current].rr_ticks;
        *used += 1;
        if *used >= ticks {
            *used = 0;
            self.requeue_rt(cpu, current);
        }
    }

    /// A fair task gives way to whoever is next, an RT task goes behind those of its priority.
    pub(super) fn sched_yield(&mut self, cpu: CpuId, task: TaskId) -> Then {
        self.cpus[cpu].counters.yields += 1;
        if self.scheduler.is_rt(task) {
            self.requeue_rt(cpu, task);
        } else {
            self.cpus[cpu].need_resched = true;
        }
        Then::Next
    }

    fn requeue_rt(&mut self, cpu: CpuId, task: TaskId) {
        self.scheduler.policy.requeue_task_rt(task.into());
        self.cpus[cpu].need_resched |= self.scheduler.policy.rq[cpu].rt_head != u32::from(task);
    }
}
