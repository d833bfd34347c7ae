//! What a kernel's placement decisions saw, rebuilt from a trace under one policy: the [`World`]
//! follows the steps, the [`Judge`] is asked where a step may have decided, and then the task goes
//! where the kernel put it.

use placewise_machine::{Machine, MachineError};
use placewise_policy::{Policy, State};

use crate::judge::Judge;
use crate::judge::inference::InferenceCounts;
use crate::steps::step::Step;
use crate::steps::task::{TaskNumber, Tasks};
use crate::steps::wakeup::Wakeup;
use crate::verdict::{NoPlacement, Verdict};
use crate::world::stated::Stated;
use crate::world::{Occasion, World};

/// The state that a trace has led to, under one policy.
pub struct Reconstruction {
    world: World,
    judge: Judge,
}

impl Reconstruction {
    pub fn new(machine: &Machine, policy: &Policy, stated: &Stated) -> Result<Self, MachineError> {
        let world = World::new(machine, policy, stated)?;
        Ok(Reconstruction { world, judge: Judge::default() })
    }

    pub fn state(&self) -> &State {
        &self.world.scheduler.policy
    }

    /// What had to be inferred so far.
    pub fn inferred(&self) -> InferenceCounts {
        InferenceCounts {
            held_to_seen_cpus: self.world.population.nr_held(),
            tick_phase_ns: self.world.clock.tick_phase_ns,
            ..self.judge.inferred()
        }
    }

    /// Takes the next step of the trace.
    pub fn step(&mut self, step: &Step, tasks: &Tasks) -> Verdict {
        let verdict = match self.world.follow(step, tasks) {
            Occasion::Nothing => Verdict::Nothing,
            Occasion::NoPlacement(reason) => Verdict::NoPlacement(reason),
            Occasion::Wakeup { task, wakeup } => self.wakeup(task, &wakeup, tasks),
            Occasion::Fork { child, cpu, target_cpu } => self.fork(child, cpu, target_cpu, tasks),
        };
        if matches!(verdict, Verdict::Placed(_)) && !self.world.clock.is_complete() {
            return Verdict::NoPlacement(NoPlacement::BeforeComplete);
        }
        verdict
    }

    fn wakeup(&mut self, task: TaskNumber, wakeup: &Wakeup, tasks: &Tasks) -> Verdict {
        if self.judge.slept_delayed(&self.world, task, wakeup) {
            return Verdict::NoPlacement(NoPlacement::Delayed);
        }
        self.world.begin_wakeup(task, wakeup.prev_cpu);
        let verdict = self.judge.wakeup(&mut self.world, task, wakeup, tasks);
        self.world.population.learn_affinity(&verdict, tasks);
        self.world.set_off(task, wakeup, tasks);
        verdict
    }

    fn fork(&mut self, child: TaskNumber, cpu: u32, target_cpu: u32, tasks: &Tasks) -> Verdict {
        let verdict = self.judge.fork(&mut self.world, child, cpu, target_cpu, tasks);
        self.world.start(child, target_cpu, tasks);
        self.world.population.learn_affinity(&verdict, tasks);
        verdict
    }
}

#[cfg(test)]
mod tests;
