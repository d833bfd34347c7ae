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

/// NI_RATE lets CPUs look at each turn after 4.3 s; more makes no difference.
const SOME_SECONDS: Time = 10_000_000_000;

/// By CPU and level; empty of a machine that was just booted.
#[derive(Clone, Debug, Default)]
pub struct NewidleMemory(Vec<Vec<Level>>);

#[derive(Clone, Copy, Debug)]
struct Level {
    max_newidle_lb_cost: Time,
    /// 0 of a level that was just built.
    call: u32,
    success: u32,
    ratio: u32,
    /// For how long the ratio has stood.
    ratio_age: Time,
}

impl NewidleMemory {
    /// What any machine has that has run for a while: of each CPU and level the dearest pass of the last minute, and
    /// that nobody has looked for work for some seconds.
    pub fn usual(costs: &CostModel, domains: &Domains) -> Self {
        Self::by_level(domains, |cpu, level| Level {
            max_newidle_lb_cost: costs.dearest_pass(cpu, level, domains),
            call: 0,
            success: 0,
            ratio: 0,
            ratio_age: SOME_SECONDS,
        })
    }

    /// At the end of a run.
    pub fn of(scheduler: &Scheduler, domains: &Domains, now: Time) -> Self {
        Self::by_level(domains, |cpu, level| {
            let domain = &scheduler.policy.domain[cpu][level];
            Level {
                max_newidle_lb_cost: domain.max_newidle_lb_cost,
                call: domain.newidle_call,
                success: domain.newidle_success,
                ratio: domain.newidle_ratio,
                ratio_age: now.wrapping_sub(domain.newidle_stamp),
            }
        })
    }

    fn by_level(domains: &Domains, level: impl Fn(CpuId, usize) -> Level) -> Self {
        let levels = |(cpu, chain): (usize, &Vec<usize>)| {
            (0..chain.len()).map(|at| level(cpu.into(), at)).collect()
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
                // Times wrap, as the kernel's do.
                domain.newidle_stamp = topology::BOOT.wrapping_sub(it.ratio_age);
            }
        }
    }
}
