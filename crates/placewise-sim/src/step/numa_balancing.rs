//! NUMA balancing: memory follows the tasks that stream it; numa_migrate.rs has where they go themselves.
//!
//! While a task runs its process's memory is scanned, a window at a time; the next use of what was
//! scanned is a hint fault, by which the kernel learns who uses memory from which node, and moves pages
//! to a task on another node: at the first fault early in a task's life, later at the second from there.
//! The copy of a page is a stream of its own, from the node that it leaves.
//!
//! Limits: only memory that tasks stream is scanned, and each part is used by its task alone: there are
//! no shared faults, and no numa groups. Faults take no time beyond the copies, which never fail.
//! The balancer moves tasks away from the node that they prefer as it does others. From v6.4 on kernels pass
//! over memory that the task that scans has not used lately, and before v4.20 wait for the second fault
//! from the start. Pages are huge ones.

use placewise_policy::{CpuId, TaskId};
use placewise_workload::program::Access;

use crate::engine::Engine;
use crate::state::effect::Then;
use crate::state::memory_bandwidth::Stream;
use crate::state::numa_balancing::{AddressSpace, TaskMemory};

impl Engine<'_> {
    /// A process begins with `task`, and with it memory of so much.
    pub(super) fn begin_address_space(&mut self, task: TaskId, kib: u64) {
        self.tasks[task].leader = task;
        if kib > 0 {
            self.hardware.address_spaces.insert(task, AddressSpace::new(kib, self.now));
        }
    }

    /// The task streams all of its memory, a piece at a time; what of that is next, in bytes.
    pub(super) fn next_piece(
        &mut self,
        cpu: CpuId,
        task: TaskId,
        access: Access,
        bytes: u64,
    ) -> u64 {
        let under_way = self.tasks[task].memory.as_ref().and_then(|memory| memory.piece());
        let (_, bytes) = under_way.unwrap_or_else(|| self.begin_sweep(cpu, task, access, bytes));
        bytes
    }

    pub(super) fn end_piece(&mut self, task: TaskId) -> Then {
        let Some(memory) = &mut self.tasks[task].memory else { return Then::Next };
        if memory.end_piece() { Then::Again } else { Then::Next }
    }

    /// The memory is where the task was when it first streamed it, until pages follow it.
    fn begin_sweep(
        &mut self,
        cpu: CpuId,
        task: TaskId,
        access: Access,
        bytes: u64,
    ) -> (Stream, u64) {
        let node = self.hardware.memory.places[cpu].node;
        let leader = self.tasks[task].leader;
        let spaces = &mut self.hardware.address_spaces;
        let space = spaces.entry(leader).or_insert_with(|| AddressSpace::new(0, self.now));
        let memory = self.tasks[task].memory.get_or_insert_with(|| {
            space.parts += 1;
            let tick = u64::from(self.scheduler.policy.root.tick_ns);
            let thread = (task != leader).then_some(tick);
            Box::new(TaskMemory::new(space, node, self.hardware.machine.nr_nodes(), thread))
        });
        memory.follow(node, space);
        let piece = memory.begin_sweep(access, bytes, self.now, space);
        if let Some(preferred) = memory.take_destination() {
            self.numa_migrate(cpu, task, preferred);
        }
        piece
    }

    /// task_tick_numa and, as the task returns to user space, task_numa_work.
    pub(super) fn tick_numa(&mut self, cpu: CpuId, current: TaskId) {
        let in_use =
            self.scheduler.policy.profile.numa_balancing && self.hardware.machine.nr_nodes() > 1;
        if !in_use || self.tasks[current].memory.is_none() {
            return;
        }
        let node = self.hardware.memory.places[cpu].node;
        let ran = self.scheduler.policy.task[current].sum_exec_runtime;
        let tick = u64::from(self.scheduler.policy.root.tick_ns);
        let leader = self.tasks[current].leader;
        let Some(space) = self.hardware.address_spaces.get_mut(&leader) else { return };
        let Some(memory) = &mut self.tasks[current].memory else { return };
        memory.follow(node, space);
        if !memory.is_to_scan(ran, space) {
            return;
        }
        if let Some(window) = memory.scan(space, self.now, tick) {
            self.hint(leader, window);
        }
    }

    /// All tasks of the process will have hint faults in this window.
    fn hint(&mut self, leader: TaskId, window: usize) {
        for task in self.user_tasks() {
            let state = &mut self.tasks[task];
            if state.leader == leader
                && let Some(memory) = &mut state.memory
            {
                memory.hint(window);
            }
        }
    }
}
