//! Which tasks belong together: communities in the graph of who wakes whom.
//!
//! Tasks that have exited by the end of the trace stand with whom forked them: they inherit what that
//! one is given. An edge weighs as much as the two woke each other. Labels propagate: each task
//! in turn takes the label that its edges weigh most for, until none changes; among equals its own,
//! then the lowest.
//!
//! Limits: threads that the kernel does not let anybody move are in no group, and join none. What talks
//! without waking, through shared memory, does not show.

use std::collections::BTreeMap;

use placewise_workload::program::Nanos;

use crate::recording::{RecordedTask, Recording, Step, TaskIndex};

/// Labels that still change after so many sweeps go back and forth.
const SWEEPS: usize = 50;

/// Tasks that mostly wake each other, two of them at least that are there at the end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Group {
    /// In the order of the recording, with those that they forked and that have exited.
    pub tasks: Vec<TaskIndex>,
    /// What all of them computed.
    pub computing: Nanos,
}

impl RecordedTask {
    /// One of the kernel's threads that nobody may move: a worker, an interrupt's, or one of a CPU.
    pub fn is_immovable(&self) -> bool {
        let only_cpu = self.cpus.filter(|cpus| cpus.len() == 1).and_then(|cpus| cpus.first());
        let is_of_cpu = |cpu: usize| self.name.ends_with(&format!("/{cpu}"));
        self.name.starts_with("kworker/")
            || self.name.starts_with("irq/")
            || only_cpu.is_some_and(is_of_cpu)
    }
}

impl Recording {
    /// Those that computed most first.
    pub fn groups(&self) -> Vec<Group> {
        let ancestors = self.ancestors();
        let labels = propagated(&self.edges(&ancestors));
        let mut members = BTreeMap::<TaskIndex, Vec<TaskIndex>>::new();
        for (task, ancestor) in (0..).zip(&ancestors) {
            if !self.tasks[*ancestor as usize].is_immovable() {
                members.entry(labels[*ancestor as usize]).or_default().push(task);
            }
        }
        let is_group = |tasks: &Vec<TaskIndex>| {
            tasks.iter().filter(|task| ancestors[**task as usize] == **task).count() > 1
        };
        let members = members.into_values().filter(is_group);
        let mut groups: Vec<Group> = members.map(|tasks| self.group(tasks)).collect();
        groups.sort_by_key(|group| (std::cmp::Reverse(group.computing), group.tasks[0]));
        groups
    }

    pub fn group(&self, tasks: Vec<TaskIndex>) -> Group {
        let computing = tasks.iter().map(|task| self.tasks[*task as usize].computing());
        Group { computing: computing.fold(0, Nanos::saturating_add), tasks }
    }

    /// Of each task itself, or, if it has exited, the one that forked it: who forks stands before whom it forks.
    fn ancestors(&self) -> Vec<TaskIndex> {
        let mut ancestors: Vec<TaskIndex> = (0..self.tasks.len() as u32).collect();
        for (task, index) in self.tasks.iter().zip(0..) {
            for step in &task.steps {
                let Step::Fork(child) = *step else { continue };
                if self.tasks[child as usize].exits {
                    ancestors[child as usize] = ancestors[index];
                }
            }
        }
        ancestors
    }

    /// Of each task whom it wakes and is woken by, with how often.
    fn edges(&self, ancestors: &[TaskIndex]) -> Vec<Vec<(TaskIndex, u64)>> {
        let mut weights = BTreeMap::<(TaskIndex, TaskIndex), u64>::new();
        let is_movable = |task: TaskIndex| !self.tasks[task as usize].is_immovable();
        for (task, index) in self.tasks.iter().zip(0..) {
            for step in &task.steps {
                let Some((to, _)) = step.posts() else { continue };
                let (one, other) = (ancestors[index], ancestors[to as usize]);
                if one != other && is_movable(one) && is_movable(other) {
                    *weights.entry((one.min(other), one.max(other))).or_default() += 1;
                }
            }
        }
        let mut edges = vec![Vec::new(); self.tasks.len()];
        for ((one, other), weight) in weights {
            edges[one as usize].push((other, weight));
            edges[other as usize].push((one, weight));
        }
        edges
    }
}

fn propagated(edges: &[Vec<(TaskIndex, u64)>]) -> Vec<TaskIndex> {
    let mut labels: Vec<TaskIndex> = (0..edges.len() as u32).collect();
    for _ in 0..SWEEPS {
        let mut changed = false;
        for (task, neighbours) in edges.iter().enumerate() {
            let mut weights = BTreeMap::<TaskIndex, u64>::new();
            for (neighbour, weight) in neighbours {
                *weights.entry(labels[*neighbour as usize]).or_default() += weight;
            }
            let most = weights.values().max().copied().unwrap_or(0);
            if weights.get(&labels[task]).copied().unwrap_or(0) < most {
                let heaviest = weights.into_iter().find(|(_, weight)| *weight == most);
                labels[task] = heaviest.map_or(labels[task], |(label, _)| label);
                changed = true;
            }
        }
        if !changed {
            break;
        }
    }
    labels
}

#[cfg(test)]
mod tests {
    use placewise_workload::program::Wake;

    use super::*;

    /// Tasks that computed one nanosecond, and then woke these.
    fn recording(wakes: &[&[TaskIndex]]) -> Recording {
        let task = |wakes: &&[TaskIndex]| {
            let posts = wakes.iter().map(|to| Step::Post(*to, Wake::Plain));
            let steps = std::iter::once(Step::Run(1)).chain(posts).collect();
            RecordedTask { name: "a".into(), steps, ..RecordedTask::default() }
        };
        Recording { length_ns: 100, cgroups: Vec::new(), tasks: wakes.iter().map(task).collect() }
    }

    fn groups(recording: &Recording) -> Vec<Vec<TaskIndex>> {
        recording.groups().into_iter().map(|group| group.tasks).collect()
    }

    #[test]
    fn tasks_belong_to_whom_they_wake_most() {
        let pairs = recording(&[&[2, 2, 1], &[3, 3], &[0, 0], &[1, 1], &[]]);
        assert_eq!(groups(&pairs), [[0, 2], [1, 3]]);
    }

    #[test]
    fn who_has_exited_belongs_to_whom_forked_it() {
        let mut three = recording(&[&[1], &[0], &[1, 1, 1]]);
        three.tasks[0].steps.push(Step::Fork(2));
        three.tasks[2].is_forked = true;
        three.tasks[2].exits = true;
        assert_eq!(groups(&three), [[0, 1, 2]]);
        assert_eq!(three.groups()[0].computing, 3);
        // One that is alone with its children is no group.
        three.tasks[1].name = "kworker/u8:1".into();
        assert_eq!(groups(&three), [[0; 0]; 0]);
    }

    #[test]
    fn threads_of_a_cpu_join_nobody() {
        let mut three = recording(&[&[2, 2], &[2], &[1]]);
        three.tasks[0].name = "ksoftirqd/3".into();
        assert_eq!(groups(&three), [[0, 1, 2]]);
        three.tasks[0].cpus = Some(placewise_machine::CpuSet::single(3));
        assert_eq!(groups(&three), [[1, 2]]);
    }
}
