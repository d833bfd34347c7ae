//! Which latencies of an rt-app file are told apart: beside those of all its tasks, those of each task
//! by name, and those of each of its instances.
//!
//! Limit: no more parts than one can read. A file with more has figures by name, then of all alone.

use super::task::Task;
use crate::program::{Metric, Part, PartId, Program};

/// More parts than this nobody reads.
const MOST: usize = 64;

/// Timers and sleeps have p99 as rt-app's logs do; wakeups by others are apart.
pub(super) const METRICS: [Metric; 6] = [
    Metric::WakeupLatency { quantile: 0.5 },
    Metric::WakeupLatency { quantile: 0.99 },
    Metric::WakeupLatency { quantile: 0.999 },
    Metric::WokenLatency { quantile: 0.5 },
    Metric::WokenLatency { quantile: 0.99 },
    Metric::WokenLatency { quantile: 0.999 },
];

/// The parts that the instances of a task count for.
#[derive(Clone, Copy, Default)]
pub(super) struct OfTask {
    /// All instances; none where the names are too many.
    pub whole: Option<PartId>,
    /// The first instance, where they are told apart.
    first: Option<PartId>,
}

impl OfTask {
    /// The program of the instances that main starts, in one fork.
    pub fn for_instances(self, program: Program) -> Program {
        let part_step = u32::from(self.first.is_some());
        Program { part: self.first.or(self.whole), part_step, ..program }
    }
}

/// All parts, and those of each task.
pub(super) fn of(tasks: &[Task]) -> (Vec<Part>, Vec<OfTask>) {
    let are_apart = |task: &Task| task.instances > 1;
    let instances = tasks.iter().filter(|task| are_apart(task)).map(|task| task.instances as usize);
    let with_instances = tasks.len() + instances.sum::<usize>();
    let mut parts = Vec::new();
    if tasks.len() > MOST {
        return (parts, vec![OfTask::default(); tasks.len()]);
    }
    let mut add = |name: String, within| {
        parts.push(Part { name, metrics: METRICS.to_vec(), within });
        parts.len() as PartId - 1
    };
    let mut of_task = |task: &Task| {
        let whole = add(task.name.clone(), None);
        if !are_apart(task) || with_instances > MOST {
            return OfTask { whole: Some(whole), first: None };
        }
        for number in 1..=task.instances {
            add(format!("{}#{number}", task.name), Some(whole));
        }
        OfTask { whole: Some(whole), first: Some(whole + 1) }
    };
    let of_tasks = tasks.iter().map(&mut of_task).collect();
    (parts, of_tasks)
}
