//! CPUs that go offline, and come online again.
//!
//! A CPU that is to go offline is in no sched domain from that moment on, so that no task is
//! placed on it or pulled to it. As soon as it takes interrupts its stopper pushes all its tasks
//! away (balance_push), its timers go to another CPU, and it idles for good. Sched domains, and
//! with them LLCs and masks, are built anew for the CPUs that are left.
//!
//! Limits: the change of the domains takes no time, and the machine does not stop for it; the
//! tasks that do it (cpuhp, stop_machine) have no work of their own; the stopper pushes all tasks
//! in one run.

use placewise_machine::MachineError;
use placewise_policy::{CpuId, topology};

use crate::engine::Engine;
use crate::state::cpu::Interrupt;
use crate::state::event_queue::Time;
use crate::state::events::Slot;

impl Engine<'_> {
    pub(super) fn set_online(&mut self, cpu: CpuId, online: bool) -> Result<(), MachineError> {
        let siblings = self.siblings(cpu);
        if !online {
            self.scheduler.policy.nohz_balance_exit_idle(cpu.into());
        }
        self.rebuild_domains(cpu, online)?;
        for sibling in siblings.into_iter().chain(self.siblings(cpu)) {
            self.change_pace(sibling);
        }
        self.update_cpusets();
        if !online {
            self.unthrottle_all(cpu);
        }
        if online {
            self.bring_up(cpu);
        } else {
            self.cpus[cpu].interrupts.push_back(Interrupt::Offline);
            self.interrupt(cpu);
        }
        Ok(())
    }

    fn siblings(&self, cpu: CpuId) -> Vec<CpuId> {
        let core = &self.scheduler.policy.cpu[cpu];
        core.siblings[..core.nr_siblings as usize].iter().map(|&it| it.into()).collect()
    }

    fn rebuild_domains(&mut self, cpu: CpuId, online: bool) -> Result<(), MachineError> {
        self.hardware.hotplug.retired_wakeups = self.wakeups_by_level();
        self.hardware.hotplug.retired_load_balance = self.load_balance_counters();
        let booted = self.hardware.machine;
        let machine = self.hardware.hotplug.machine.get_or_insert_with(|| booted.clone());
        machine.cpus[usize::from(cpu)].online = online;
        self.hardware.domains = topology::rebuild(&mut self.scheduler.policy, machine, self.now)?;
        self.costs.set_domains(&self.hardware.domains);
        Ok(())
    }

    /// The CPU's stopper sends all tasks away; what else is to be done there is left or goes
    /// elsewhere.
    pub(super) fn go_offline(&mut self, cpu: CpuId) {
        if self.is_online(cpu) {
            return self.begin_interrupt(cpu);
        }
        self.hand_over_interrupts(cpu);
        self.run_stopper(cpu, |engine| {
            let mut pushed = 0;
            while let Some(task) = engine.pick(cpu) {
                let to = engine.fallback_cpu(task);
                engine.move_queued_task(cpu, task, to);
                engine.measurement.migrations.displaced += 1;
                pushed += 1;
            }
            pushed
        });
    }

    fn hand_over_interrupts(&mut self, cpu: CpuId) {
        for interrupt in std::mem::take(&mut self.cpus[cpu].interrupts) {
            match interrupt {
                Interrupt::Timer(task) => self.timer_expired(task),
                Interrupt::ActiveBalance { .. } => self.scheduler.policy.rq[cpu].active_balance = 0,
                Interrupt::NohzBalance
                | Interrupt::Migrate(_)
                | Interrupt::NumaMigrate { .. }
                | Interrupt::Offline => {}
            }
        }
        self.scheduler.policy.rq[cpu].nohz_flags = 0;
    }

    /// Timers of a CPU that is offline expire on the first that is not.
    pub(super) fn timer_cpu(&self, cpu: CpuId) -> CpuId {
        if self.is_online(cpu) {
            return cpu;
        }
        self.scheduler.policy.root.online.iter().next().expect("a CPU is online")
    }

    /// A CPU that has gone offline rests from now on.
    pub(super) fn note_offline(&mut self, cpu: CpuId) {
        self.cpus[cpu].offline_since = Some(self.now);
    }

    /// A CPU that was offline idles; one that was still on its way goes on.
    fn bring_up(&mut self, cpu: CpuId) {
        let Some(since) = self.cpus[cpu].offline_since.take() else { return };
        self.hardware.hotplug.offline_ns += self.now - since;
        self.cpus[cpu].idle_since = self.now;
        let tick = Time::from(self.scheduler.policy.root.tick_ns);
        self.events.arm(Slot::Tick(cpu), (self.now / tick + 1) * tick);
    }

    /// Time that CPUs have been offline so far.
    pub(crate) fn offline_ns(&self) -> Time {
        let still = self.cpus.iter().filter_map(|cpu| cpu.offline_since);
        self.hardware.hotplug.offline_ns + still.map(|since| self.now - since).sum::<Time>()
    }
}
