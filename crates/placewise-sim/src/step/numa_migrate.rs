//! Where a task goes that is away from the memory it uses: task_numa_migrate.
//!
//! At its hint faults a task that is not on the node it prefers tries to go there: to a CPU that is idle, if
//! the node then has no more tasks than the balancer lets be. If it cannot, any other node with room will do,
//! whether its memory is there or not, so that such a task may go round before its pages follow.
//!
//! Limits: nodes whose CPUs are all taken are left alone, where the kernel compares loads, and looks for
//! tasks to change places with; before v5.7, where it always does, no task moves.

use placewise_machine::{CpuSet, Level};
use placewise_policy::{
    BALANCE_NUMA_BUSIEST_TWO, BALANCE_NUMA_LIMIT, BALANCE_NUMA_LIMIT_HALVED,
    BALANCE_NUMA_QUARTER_HALVED, CpuId, TaskId,
};

use crate::engine::Engine;
use crate::state::cpu::Interrupt;
use crate::state::events::Slot;

/// So many more are no imbalance on a node that has few: NUMA_IMBALANCE_MIN.
const IMBALANCE_MIN: u32 = 2;

/// Tasks that run on the two nodes once it has moved, and what the other may take.
struct Running {
    here: u32,
    there: u32,
    cpus_there: u32,
    imb_numa_nr: u32,
}

impl Engine<'_> {
    /// The current task is away from the node that it prefers. Of the others the last one with room is taken.
    pub(super) fn numa_migrate(&mut self, cpu: CpuId, task: TaskId, preferred: u16) {
        let here = self.hardware.memory.places[cpu].node;
        let nodes = 0..self.hardware.machine.nr_nodes() as u16;
        let others = nodes.filter(|node| *node != here && *node != preferred);
        let room = |node| self.idle_cpu_of_node(cpu, task, node);
        if let Some(to) = room(preferred).or_else(|| others.rev().find_map(room)) {
            self.cpus[cpu].interrupts.push_back(Interrupt::NumaMigrate { task, to });
            self.events.arm(Slot::Interrupt(cpu), self.now);
        }
    }

    /// The stopper moves it, unless it has left meanwhile.
    pub(super) fn stop_to_numa_migrate(&mut self, cpu: CpuId, task: TaskId, to: CpuId) {
        let here = self.scheduler.cpu_of(task) == cpu && self.scheduler.is_queued(task);
        if !here || !self.may_be_on(task, to) {
            return self.begin_interrupt(cpu);
        }
        self.run_stopper(cpu, |engine| {
            engine.move_queued_task(cpu, task, to);
            engine.measurement.migrations.numa += 1;
            1
        });
    }

    /// task_numa_find_cpu: one of the node where the task may go, on a core that is idle if there is one.
    fn idle_cpu_of_node(&self, cpu: CpuId, task: TaskId, node: u16) -> Option<CpuId> {
        let here = self.cpus_of_node(self.hardware.memory.places[cpu].node);
        let there = self.cpus_of_node(node);
        let running = |cpus: &CpuSet| -> u32 {
            cpus.iter().map(|cpu| self.scheduler.policy.rq[CpuId::from(cpu)].nr_running).sum()
        };
        let running = Running {
            here: running(&here).saturating_sub(1),
            there: running(&there) + 1,
            cpus_there: there.len() as u32,
            imb_numa_nr: self.imb_numa_nr(cpu)?,
        };
        if !self.is_even_enough(&running) {
            return None;
        }
        let is_idle = |cpu: CpuId| self.scheduler.policy.rq[cpu].nr_running == 0;
        let idle = || {
            let cpus = there.iter().map(CpuId::from);
            cpus.filter(|&to| is_idle(to) && self.may_be_on(task, to))
        };
        let on_idle_core = |to: &CpuId| {
            let core = &self.scheduler.policy.cpu[*to];
            core.siblings[..core.nr_siblings as usize].iter().all(|&other| is_idle(other.into()))
        };
        idle().find(on_idle_core).or_else(|| idle().next())
    }

    fn cpus_of_node(&self, node: u16) -> CpuSet {
        let is_there = |cpu: &usize| self.hardware.machine.cpus[*cpu].node == node;
        self.online().iter().filter(is_there).collect()
    }

    /// That of the lowest domain of nodes.
    fn imb_numa_nr(&self, cpu: CpuId) -> Option<u32> {
        let domains = &self.hardware.domains;
        let mut chain = domains.chains[usize::from(cpu)].iter().map(|span| &domains.spans[*span]);
        Some(chain.find(|span| matches!(span.level, Level::Numa(_)))?.imb_numa_nr)
    }

    /// adjust_numa_imbalance: does the balancer let be what the move makes of the two nodes?
    fn is_even_enough(&self, running: &Running) -> bool {
        let imbalance = running.there.saturating_sub(running.here);
        let is_small = imbalance <= IMBALANCE_MIN;
        let may_be = match self.scheduler.policy.profile.balance_numa {
            BALANCE_NUMA_BUSIEST_TWO => running.here <= IMBALANCE_MIN,
            BALANCE_NUMA_QUARTER_HALVED => is_small && running.there < running.cpus_there / 4,
            BALANCE_NUMA_LIMIT_HALVED | BALANCE_NUMA_LIMIT => {
                is_small && running.there <= running.imb_numa_nr
            }
            _ => return false,
        };
        imbalance == 0 || may_be
    }
}
