//! Carries out what the load balancer decided.
//!
//! The policy says which level is due and which tasks move; here they move, and
//! the pass takes its time: looking at the run queues of a level's CPUs costs the
//! cache lines that come from them, and every task that moves takes more. So a
//! newly-idle pass that pulls costs several times one that finds nothing, and it
//! is the dearest of late that says whether the next one is worth its while.

use placewise_policy::*;
use placewise_run_queue::{Dequeue, Enqueue, EnqueuedBy};
use placewise_trace::Event;

use crate::engine::Engine;
use crate::state::cpu::{Activity, Interrupt};
use crate::state::event_queue::Time;
use crate::state::waker::WakerContext;

/// Why a task was moved by balancing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Cause {
    Periodic,
    NewlyIdle,
    Nohz,
}

impl Engine<'_> {
    /// Nothing is queued on `cpu`: look for work before it idles.
    pub(super) fn newidle_balance(&mut self, cpu: CpuId) {
        if self.take_off_list(cpu) {
            return;
        }
        let mut walk = self.cpus[cpu].newidle;
        let goes = self.scheduler.policy.newidle_balance_start(&mut walk, cpu.into(), self.now);
        self.cpus[cpu].newidle = walk;
        if !goes {
            return self.pick_after_newidle(cpu);
        }
        self.scheduler.policy.update_blocked_averages(cpu.into(), self.now);
        self.newidle_next_level(cpu);
    }

    fn newidle_next_level(&mut self, cpu: CpuId) {
        let mut walk = self.cpus[cpu].newidle;
        let level = self.scheduler.policy.newidle_balance_next(&mut walk);
        self.cpus[cpu].newidle = walk;
        if level == NR_LEVELS {
            self.scheduler.policy.newidle_balance_end(&mut walk);
            return self.pick_after_newidle(cpu);
        }
        let cost = self.costs.balance_pass(cpu, level, self.cpus[cpu].pace);
        let began = self.pay(cpu, 0);
        let end = began + self.stretched(cpu, cost);
        self.cpus[cpu].newidle_began = began;
        self.begin(cpu, Activity::NewIdle, end);
    }

    pub(crate) fn newidle_level_done(&mut self, cpu: CpuId) {
        let mut walk = self.cpus[cpu].newidle;
        // The domains may have been built anew, with fewer levels.
        if walk.level >= u32::from(self.scheduler.policy.cpu[cpu].nr_domains) {
            self.scheduler.policy.newidle_balance_end(&mut walk);
            return self.pick_after_newidle(cpu);
        }
        self.load_balance(cpu, walk.level, CPU_NEWLY_IDLE);
        let owed = self.cpus[cpu].debt;
        let pulled = self.carry_out(cpu, Cause::NewlyIdle);
        let moving = self.cpus[cpu].debt - owed;
        let cost = self.now + self.stretched(cpu, moving) - self.cpus[cpu].newidle_began;
        self.scheduler.policy.newidle_balance_level_done(&mut walk, cost, pulled, self.now);
        self.cpus[cpu].newidle = walk;
        self.newidle_next_level(cpu);
    }

    /// At a tick: the CPU's own periodic balance, and a push for the tickless idle ones.
    pub(super) fn tick_balance(&mut self, cpu: CpuId) {
        if self.scheduler.policy.trigger_load_balance(cpu.into(), self.now) {
            let idle = if self.scheduler.running(cpu).is_some() { CPU_NOT_IDLE } else { CPU_IDLE };
            let cost = self.rebalance_domains(cpu, cpu, idle, Cause::Periodic);
            self.cpus[cpu].debt += cost;
        }
        let helper = self.scheduler.policy.nohz_balancer_kick(cpu.into(), self.now);
        if helper != NO_CPU {
            let helper = CpuId::from(helper);
            self.cpus[helper].interrupts.push_back(Interrupt::NohzBalance);
            self.interrupt_remotely(cpu, helper);
        }
    }

    /// `by` balances all levels of `cpu` that are due; the time it takes.
    fn rebalance_domains(&mut self, by: CpuId, cpu: CpuId, idle: u32, cause: Cause) -> Time {
        let mut walk = BalanceWalk::default();
        let mut cost = 0;
        self.scheduler.policy.update_blocked_averages(cpu.into(), self.now);
        self.scheduler.policy.rebalance_domains_start(&mut walk, cpu.into(), idle, self.now);
        loop {
            let level = self.scheduler.policy.rebalance_domains_next(&mut walk, self.now);
            if level == NR_LEVELS {
                break;
            }
            self.load_balance(cpu, level, walk.idle);
            // A CPU that is not chosen to balance has looked at its own group only.
            let continues = self.scheduler.policy.balance.continue_balancing != 0;
            if continues {
                cost += self.costs.balance_pass(cpu, level, self.cpus[by].pace);
            }
            let moved = self.carry_out(by, cause);
            self.scheduler
                .policy
                .rebalance_domains_level_done(&mut walk, moved, continues, self.now);
        }
        self.scheduler.policy.rebalance_domains_end(&mut walk);
        cost
    }

    /// This idle CPU balances for all tickless idle ones.
    pub(super) fn nohz_idle_balance(&mut self, cpu: CpuId) {
        let mut walk =
            NohzWalk { next_balance: 0, this_cpu: cpu.into(), cpu: NO_CPU, flags: 0, aborted: 0 };
        let mut cost = self.costs.figures.balance_ns;
        if self.scheduler.policy.nohz_balance_start(&mut walk, cpu.into(), self.now) {
            self.refresh_tickless();
            loop {
                let other = self.scheduler.policy.nohz_balance_next(&mut walk, self.now);
                if other == NO_CPU {
                    break;
                }
                cost += self.rebalance_domains(cpu, other.into(), CPU_IDLE, Cause::Nohz);
            }
            self.scheduler.policy.nohz_balance_end(&mut walk, self.now);
        }
        if self.scheduler.running(cpu).is_some() {
            self.cpus[cpu].debt += cost;
            return self.begin_interrupt(cpu);
        }
        self.begin(cpu, Activity::NohzBalance, self.now + self.stretched(cpu, cost));
    }

    /// The blocked load of idle CPUs decays.
    fn refresh_tickless(&mut self) {
        for cpu in self.scheduler.policy.root.tickless.iter() {
            self.scheduler.policy.update_blocked_averages(cpu.into(), self.now);
        }
    }

    /// One attempt of the policy at a level. Some kernels leave tasks alone that have had more than
    /// their share, which only the run queues know.
    fn load_balance(&mut self, cpu: CpuId, level: u32, idle: u32) {
        if self.scheduler.policy.profile.detach_delayed_load_only {
            let span = self.hardware.domains.chains[usize::from(cpu)][level as usize];
            let sources = self.hardware.domains.spans[span].cpus;
            for source in sources.iter() {
                self.scheduler.mark_eligible(source.into());
            }
        }
        self.scheduler.policy.load_balance(cpu.into(), level, idle, self.now);
    }

    /// `by` moves the tasks that the last load_balance() named. True if there were any.
    fn carry_out(&mut self, by: CpuId, cause: Cause) -> bool {
        let result = self.scheduler.policy.balance;
        let moves = result.nr as usize;
        let src = CpuId::from(result.src);
        if moves > 0 {
            self.account_current(src);
            self.lock_run_queue(src, by);
        }
        for (&task, &dst) in result.task[..moves].iter().zip(&result.dst) {
            self.detach(by, task.into(), dst.into());
        }
        for (&task, &dst) in result.task[..moves].iter().zip(&result.dst).rev() {
            self.attach(by, task.into(), dst.into());
        }
        let counter = match cause {
            Cause::Periodic => &mut self.measurement.migrations.periodic,
            Cause::NewlyIdle => &mut self.measurement.migrations.newly_idle,
            Cause::Nohz => &mut self.measurement.migrations.nohz,
        };
        *counter += moves as u64;
        if result.active_balance != 0 {
            let src = CpuId::from(result.active_src);
            let to = CpuId::from(result.active_dst);
            self.cpus[src].interrupts.push_back(Interrupt::ActiveBalance { to });
            self.interrupt_remotely(by, src);
        }
        moves > 0
    }

    /// What that takes, with `attach` after it, `by` owes.
    fn detach(&mut self, by: CpuId, task: TaskId, to: CpuId) {
        let from = self.scheduler.cpu_of(task);
        let lines = self.lines(self.costs.figures.wakeup_lines, from, by);
        self.cpus[by].debt += self.costs.draw(self.costs.figures.move_task_ns) + lines;
        self.add_wait(from, task);
        self.scheduler.dequeue(task, Dequeue::Balance, self.now);
        self.return_runtime(from, task);
        self.scheduler.set_task_cpu(task, to);
        self.tasks[task].statistics.migrations += 1;
        self.trace_wakee(by, WakerContext::Interrupt, task, |comm, pid, prio| Event::Migrate {
            comm,
            pid,
            prio,
            from: from.into(),
            to: to.into(),
        });
    }

    fn attach(&mut self, by: CpuId, task: TaskId, to: CpuId) {
        self.lock_list(to, by);
        self.enqueue(task, Enqueue::Balance);
        self.check_preempt(to, task, (by, EnqueuedBy::default()));
    }

    /// A task that waits on a run queue goes to another CPU.
    pub(super) fn move_queued_task(&mut self, by: CpuId, task: TaskId, to: CpuId) {
        self.detach(by, task, to);
        self.attach(by, task, to);
    }
}
