//! What must hold of a world after every step, whatever the trace.

use placewise_policy::{FIRST_TASK, NR_CPUS};
use placewise_run_queue::invariants::check_queue;

use super::World;
use super::trail::Whereabouts;
use crate::steps::task::TaskNumber;

/// A description of the first thing that is wrong; what is wrong with the queues is a panic.
pub fn inconsistency(of: &World) -> Option<String> {
    let queued = |task: TaskNumber| of.whereabouts(task) == Whereabouts::Queued;
    let mut pending = vec![0; NR_CPUS as usize];
    for id in FIRST_TASK..of.population.trails.iter().count() as TaskNumber {
        let task = &of.scheduler.policy.task[id as usize];
        if (task.on_rq != 0) != queued(id) {
            return Some(format!("task {id}: on_rq {} and {:?}", task.on_rq, of.whereabouts(id)));
        }
        if task.on_rq == 0 && task.delayed != 0 {
            return Some(format!("task {id}: delayed, but not queued"));
        }
        if let Some(&Some(on)) = of.wake_lists.on.get(id) {
            pending[on as usize] += 1;
        }
    }
    (0..of.scheduler.policy.root.nr_cpu_ids).find_map(|cpu| {
        check_queue(&of.scheduler, cpu.into());
        let rq = &of.scheduler.policy.rq[cpu as usize];
        let (found, counted) = (of.wake_lists.pending[cpu as usize], pending[cpu as usize]);
        if found != counted || (rq.ttwu_pending != 0) != (counted > 0) {
            return Some(format!(
                "CPU {cpu}: ttwu_pending {}, {found} pending, but {counted} tasks",
                rq.ttwu_pending
            ));
        }
        let current = rq.curr;
        let runs_here = current == cpu
            || current >= FIRST_TASK
                && queued(current)
                && of.scheduler.cpu_of(current.into()) == cpu.into();
        (!runs_here).then(|| format!("CPU {cpu}: runs task {current}, which is not on it"))
    })
}
