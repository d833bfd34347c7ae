//! What CPUs remember of newly-idle passes when the tasks that made them have gone: how dear the dearest was, and how
//! often one pulled a task. It decides how often they look for work at the start of what runs next.
//!
//! Limits: the dearest pass is not forgotten between two runs, which takes a minute; domains that are built anew, for
//! another machine, remember nothing.

use placewise_machine::Domains;
use placewise_policy::{CpuId, topology};
use placewise_run_queue::Scheduler;

use crate::state::costs::CostModel;
use crate::state::event_queue::Time;

const SOME_SECONDS: Time = 10_000_000_000;

/// Times are of so many bits that they wrap, as the kernel's do.
fn before_boot(age: Time) -> Time {
    topology::BOOT.wrapping_sub(age)
}

/// By CPU and level; empty of a machine that was just booted.
#[derive(Clone, Debug, Default)]
pub struct NewidleMemory(Vec<Vec<Level>>);

#[derive(Clone, Copy, Debug)]
struct Level {
    max_newidle_lb_cost: Time,
    call: u32,
    success: u32,
    ratio: u32,
    /// For how long the ratio has stood.
    ratio_age: Time,
}

impl NewidleMemory {
    /// What any machine has that has run for a while: of each CPU and level the dearest pass of the last minute, and
    /// that nobody has looked for work for some seconds.
    pub fn usual(scheduler: &mut Scheduler, costs: &CostModel, domains: &Domains) {
        for (cpu, chain) in domains.chains.iter().enumerate() {
            let cpu = CpuId::from(cpu);
            for level in 0..chain.len() {
                let domain = &mut scheduler.policy.domain[cpu][level];
                domain.max_newidle_lb_cost = costs.dearest_pass(cpu, level, domains);
                domain.newidle_stamp = before_boot(SOME_SECONDS);
            }
        }
    }

    /// At the end of a run.
    pub fn of(scheduler: &Scheduler, domains: &Domains, now: Time) -> Self {
        let levels = |(cpu, chain): (usize, &Vec<usize>)| {
            let domain = &scheduler.policy.domain[CpuId::from(cpu)];
            let level = |level: usize| Level {
                max_newidle_lb_cost: domain[level].max_newidle_lb_cost,
                call: domain[level].newidle_call,
                success: domain[level].newidle_success,
                ratio: domain[level].newidle_ratio,
                ratio_age: now.wrapping_sub(domain[level].newidle_stamp),
            };
            (0..chain.len()).map(level).collect()
        };
        NewidleMemory(domains.chains.iter().enumerate().map(levels).collect())
    }

    /// Nothing runs for so long.
    pub fn rest(&mut self, ns: Time) {
        for level in self.0.iter_mut().flatten() {
            level.ratio_age = level.ratio_age.saturating_add(ns);
        }
    }

    /// At the start of the next one.
    pub fn restore(&self, scheduler: &mut Scheduler, domains: &Domains) {
        if !self.0.iter().map(Vec::len).eq(domains.chains.iter().map(Vec::len)) {
            return;
        }
        for (cpu, levels) in self.0.iter().enumerate() {
            for (level, it) in levels.iter().enumerate() {
                let domain = &mut scheduler.policy.domain[CpuId::from(cpu)][level];
                domain.max_newidle_lb_cost = it.max_newidle_lb_cost;
                domain.newidle_call = it.call;
                domain.newidle_success = it.success;
                domain.newidle_ratio = it.ratio;
                domain.newidle_stamp = before_boot(it.ratio_age);
            }
        }
    }
}
