//! Virtual time on the run queues of a trace: does a task that goes to sleep
//! stay queued?
//!
//! What runs next is known; what is rebuilt is how far ahead of its share a task
//! was when it slept (delayed dequeue, v6.12 on), and when it left the queue
//! after all. Lags are 0 when a trace begins, and slices are all the default.

use placewise_machine::Machine;
use placewise_policy::{FIRST_TASK, NR_CPUS, NR_TASKS, Profile, RUN_QUEUE_EEVDF, topology};
use placewise_run_queue::{Dequeue, Enqueue, Entity, RunQueue, Tunables};

use crate::task::TaskId;

/// A run time in the trace may be wrong by so much: its clock tells microseconds, and the kernel
/// accounts some way before it prints the switch.
const CLOCK_RESOLUTION_NS: i64 = 4_000;

/// The run queues, for kernels where a sleeper may stay queued.
pub struct Queues {
    queues: Vec<RunQueue>,
    entities: Vec<Entity>,
}

impl Queues {
    pub fn new(machine: &Machine, profile: &Profile) -> Self {
        let scale = topology::tunable_scale(machine);
        let tick = 1_000_000_000 / u64::from(machine.costs.hz);
        let tunables = Tunables::new(profile, scale, tick);
        let nr_queues = if profile.run_queue == RUN_QUEUE_EEVDF && profile.delayed_dequeue {
            NR_CPUS as usize
        } else {
            0
        };
        Queues {
            queues: (0..nr_queues).map(|_| RunQueue::new(profile, tunables)).collect(),
            entities: if nr_queues > 0 {
                vec![Entity::default(); NR_TASKS as usize]
            } else {
                Vec::new()
            },
        }
    }

    fn queue(&mut self, cpu: u32) -> Option<(&mut RunQueue, &mut [Entity])> {
        self.queues.get_mut(cpu as usize).map(|queue| (queue, &mut self.entities[..]))
    }

    /// A task appears, with no lag.
    pub fn meet(&mut self, task: TaskId, weight: u32) {
        if let Some(entity) = self.entities.get_mut(task as usize) {
            *entity = Entity { weight: u64::from(weight), ..Entity::default() };
        }
    }

    pub fn reweight(&mut self, task: TaskId, weight: u32) {
        if let Some(entity) = self.entities.get_mut(task as usize) {
            entity.weight = u64::from(weight);
        }
    }

    /// The task turns out to have stayed queued until its lag was spent.
    pub fn spend_lag(&mut self, task: TaskId) {
        if let Some(entity) = self.entities.get_mut(task as usize) {
            entity.lag = 0;
        }
    }

    /// The current task of `cpu` ran for `ns`.
    pub fn account(&mut self, cpu: u32, current: TaskId, ns: u64) {
        if let Some((queue, entities)) = self.queue(cpu)
            && ns > 0
        {
            queue.account(entities, current, ns);
        }
    }

    pub fn enqueue(&mut self, cpu: u32, current: TaskId, task: TaskId, why: Enqueue) {
        if let Some((queue, entities)) = self.queue(cpu) {
            queue.enqueue(entities, running(current), task, why);
        }
    }

    pub fn dequeue(&mut self, cpu: u32, current: TaskId, task: TaskId, why: Dequeue) {
        if let Some((queue, entities)) = self.queue(cpu) {
            queue.dequeue(entities, running(current), task, why);
        }
    }

    /// The current task waits again, or sleeps where it is.
    pub fn put_back(&mut self, cpu: u32, current: TaskId) {
        if let Some((queue, entities)) = self.queue(cpu) {
            queue.put_back(entities, current);
        }
    }

    /// A task that waits becomes current.
    pub fn take(&mut self, cpu: u32, task: TaskId) {
        if let Some((queue, entities)) = self.queue(cpu) {
            queue.take(entities, task);
        }
    }

    /// Would the current task, going to sleep, stay queued? Where the lag is too small for the
    /// trace's clock to tell, yes: a wakeup that moves it will show otherwise.
    pub fn delays(&mut self, cpu: u32, current: TaskId) -> bool {
        let Some((queue, entities)) = self.queue(cpu) else { return false };
        let vruntime = entities[current as usize].vruntime;
        entities[current as usize].vruntime += CLOCK_RESOLUTION_NS;
        let eligible = queue.is_eligible(entities, Some(current), current);
        entities[current as usize].vruntime = vruntime;
        !eligible && !queue.is_empty()
    }

    /// The task that a pick on `cpu` would come upon first.
    pub fn pick(&mut self, cpu: u32) -> Option<TaskId> {
        let (queue, entities) = self.queue(cpu)?;
        queue.pick(entities)
    }

    /// Who waits on `cpu`, in no order; `None` where that is not kept.
    #[cfg(test)]
    pub fn waiting(&self, cpu: u32) -> Option<Vec<TaskId>> {
        self.queues.get(cpu as usize).map(RunQueue::tasks)
    }

    pub fn finish_delayed(&mut self, cpu: u32, task: TaskId) {
        if let Some((queue, entities)) = self.queue(cpu) {
            queue.finish_delayed(entities, task);
        }
    }

    pub fn requeue_delayed(&mut self, cpu: u32, current: TaskId, task: TaskId) {
        if let Some((queue, entities)) = self.queue(cpu) {
            queue.requeue_delayed(entities, running(current), task);
        }
    }
}

fn running(current: TaskId) -> Option<TaskId> {
    (current >= FIRST_TASK).then_some(current)
}

#[cfg(test)]
mod tests {
    use placewise_machine::load;
    use placewise_policy::Policy;

    use super::*;

    const ONE: TaskId = FIRST_TASK;
    const OTHER: TaskId = FIRST_TASK + 1;
    const CPU: u32 = 3;

    /// `ONE` runs, and has for `ran`, while `OTHER` waits.
    fn queues(kernel: &str, ran: u64) -> Queues {
        let machine = load("numa:2 l3:2 core:2 pu:2").unwrap();
        let profile = Policy::parse(kernel, "baseline").unwrap().profile;
        let mut queues = Queues::new(&machine, &profile);
        for task in [ONE, OTHER] {
            queues.meet(task, 1024);
            queues.enqueue(CPU, CPU, task, Enqueue::Wakeup);
        }
        queues.take(CPU, ONE);
        queues.account(CPU, ONE, ran);
        queues
    }

    #[test]
    fn who_has_had_more_than_its_share_stays_queued() {
        assert!(queues("v6.12", 3_000_000).delays(CPU, ONE));
        let mut behind = queues("v6.12", 3_000_000);
        behind.put_back(CPU, ONE);
        behind.take(CPU, OTHER);
        behind.account(CPU, OTHER, 1_000_000);
        assert!(!behind.delays(CPU, OTHER));
    }

    /// Its run time may have been longer than the trace's clock tells.
    #[test]
    fn in_doubt_it_stays() {
        assert!(queues("v6.12", 0).delays(CPU, ONE));
    }

    #[test]
    fn who_is_alone_leaves() {
        let mut queues = queues("v6.12", 3_000_000);
        queues.dequeue(CPU, ONE, OTHER, Dequeue::Sleep);
        assert!(!queues.delays(CPU, ONE));
    }

    #[test]
    fn before_delayed_dequeue_all_leave() {
        for kernel in ["v5.10", "v6.0"] {
            assert!(!queues(kernel, 3_000_000).delays(CPU, ONE), "{kernel}");
            assert_eq!(queues(kernel, 0).waiting(CPU), None);
        }
    }

    /// A lag that it has spent asleep does not keep it back when it comes again.
    #[test]
    fn a_spent_lag_is_none() {
        let eligible = |spent: bool| {
            let mut queues = queues("v6.12", 3_000_000);
            queues.dequeue(CPU, ONE, ONE, Dequeue::Sleep);
            queues.take(CPU, OTHER);
            if spent {
                queues.spend_lag(ONE);
            }
            queues.enqueue(CPU, OTHER, ONE, Enqueue::Wakeup);
            queues.put_back(CPU, OTHER);
            queues.pick(CPU)
        };
        assert_eq!(eligible(false), Some(OTHER));
        assert_eq!(eligible(true), Some(ONE), "neither is ahead, and it has the earlier deadline");
    }

    #[test]
    fn a_heavy_task_has_a_larger_share() {
        let mut queues = queues("v6.12", 0);
        queues.put_back(CPU, ONE);
        queues.dequeue(CPU, CPU, ONE, Dequeue::Sleep);
        queues.reweight(ONE, 88_761);
        queues.enqueue(CPU, CPU, ONE, Enqueue::Wakeup);
        queues.take(CPU, ONE);
        queues.account(CPU, ONE, 100_000);
        let ahead =
            queues.entities[ONE as usize].vruntime - queues.entities[OTHER as usize].vruntime;
        assert!(ahead.abs() < 2_000, "{ahead}");
    }
}
