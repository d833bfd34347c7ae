//! Which CPUs a task may run on.
//!
//! A trace shows no affinities, unless its header does; children have that of their parents, until they
//! are seen elsewhere. A thread with a CPU in
//! its name is bound to it. Of any other task, affinity is inferred from where
//! it was ever seen: when the policy would again and again have put it on CPUs
//! where it never was, and the kernel never did, it may run only where it was
//! seen. Tasks of one name are taken together until one of them has evidence of
//! its own; a CPU where it does run is always added.

use std::collections::BTreeMap;

use placewise_machine::{CpuSet, Machine};

use crate::steps::by_name::ByName;
use crate::steps::by_number::ByTask;
use crate::steps::task::{NameId, TaskNumber, Tasks};

/// So many answers outside of where a task was seen, in a row, and it is held to that.
const REFUSALS: u32 = 3;
const REFUSALS_OF_NAME: u32 = 4;
/// A task that was held wrongly so often may run anywhere.
const ESCAPES_MAX: u32 = 4;

/// The CPUs a task may run on.
#[derive(Clone, Copy, Debug)]
pub struct Allowed {
    pub cpus: CpuSet,
    pub per_cpu_kthread: bool,
    /// Only because it was never seen elsewhere.
    pub inferred: bool,
}

/// Where something was seen, and how often it was not where the policy expected it.
#[derive(Clone, Copy, Default)]
struct Sightings {
    seen: CpuSet,
    refusals: u32,
    escapes: u32,
    held: bool,
}

impl Sightings {
    /// True if this changes what follows from them.
    fn see(&mut self, cpu: u32) -> bool {
        self.seen.insert(cpu as usize);
        self.refusals = 0;
        if !self.held {
            return false;
        }
        self.escapes += 1;
        self.held = self.escapes < ESCAPES_MAX;
        true
    }

    /// The same.
    fn refuse(&mut self, predicted: u32, enough: u32) -> bool {
        if self.held || self.escapes >= ESCAPES_MAX || self.seen.contains(predicted as usize) {
            return false;
        }
        self.refusals += 1;
        self.held = self.refusals >= enough;
        self.held
    }
}

/// What is known of affinities.
pub struct Affinity {
    online: CpuSet,
    /// From the trace's header, by pid.
    stated: BTreeMap<u32, CpuSet>,
    /// From who forked them; empty for others.
    inherited: ByTask<CpuSet>,
    tasks: ByTask<Sightings>,
    names: ByName<Sightings>,
    generation: u64,
}

impl Affinity {
    pub fn new(machine: &Machine, stated: BTreeMap<u32, CpuSet>) -> Self {
        let online = machine.online();
        Affinity {
            online,
            stated,
            inherited: ByTask::default(),
            tasks: ByTask::default(),
            names: ByName::default(),
            generation: 1,
        }
    }

    /// Changes whenever an answer of [`of`](Self::of) may.
    pub fn generation(&self) -> u64 {
        self.generation
    }

    /// Where `task` may run, which is on `cpu` or was last.
    pub fn of(&mut self, task: TaskNumber, cpu: u32, tasks: &Tasks) -> Allowed {
        if let Some(cpu) = bound_to(tasks.name_of(task), cpu)
            && self.online.contains(cpu as usize)
        {
            let cpus = CpuSet::single(cpu as usize);
            return Allowed { cpus, per_cpu_kthread: true, inferred: false };
        }
        let stated = self.stated(task, tasks);
        if !stated.is_empty() {
            return Allowed { cpus: stated, per_cpu_kthread: false, inferred: false };
        }
        Allowed { cpus: self.inferred(task, tasks), per_cpu_kthread: false, inferred: true }
    }

    /// Empty where nothing is stated.
    fn stated(&self, task: TaskNumber, tasks: &Tasks) -> CpuSet {
        let own = self.stated.get(&tasks.get(task).pid).map(|&cpus| cpus & self.online);
        let own = own.filter(|cpus| !cpus.is_empty());
        own.or_else(|| self.inherited.get(task).copied()).unwrap_or_default()
    }

    fn inferred(&mut self, task: TaskNumber, tasks: &Tasks) -> CpuSet {
        let by_name = *self.names.of(tasks.get(task).name);
        let own = *self.tasks.of(task);
        if own.held {
            own.seen
        } else if by_name.held && own.escapes == 0 {
            by_name.seen
        } else {
            self.online
        }
    }

    /// `task` was put on `cpu`.
    pub fn see(&mut self, task: TaskNumber, name: NameId, cpu: u32) {
        if self.tasks.of(task).seen.contains(cpu as usize) {
            return;
        }
        let inherited = self.inherited.of(task);
        let left = !inherited.is_empty() && !inherited.contains(cpu as usize);
        if left {
            *inherited = CpuSet::default();
        }
        let changed = self.tasks.of(task).see(cpu) || left;
        let by_name = self.names.of(name);
        let changed_by_name = !by_name.seen.contains(cpu as usize) && by_name.see(cpu);
        self.generation += u64::from(changed || changed_by_name);
    }

    /// The policy has answered, and so has the kernel.
    pub fn learn(&mut self, task: TaskNumber, name: NameId, predicted: u32, actual: u32) {
        if predicted == actual {
            return;
        }
        let changed = self.tasks.of(task).refuse(predicted, REFUSALS);
        let changed_by_name = self.names.of(name).refuse(predicted, REFUSALS_OF_NAME);
        self.generation += u64::from(changed || changed_by_name);
    }

    /// A child starts with its creator's affinity.
    pub fn inherit(&mut self, child: TaskNumber, parent: TaskNumber, tasks: &Tasks) {
        *self.inherited.of(child) = self.stated(parent, tasks);
        let held = *self.tasks.of(parent);
        *self.tasks.of(child) = if held.held { held } else { Sightings::default() };
    }

    pub fn forget(&mut self, task: TaskNumber) {
        *self.tasks.of(task) = Sightings::default();
        *self.inherited.of(task) = CpuSet::default();
    }

    /// Tasks that are held to where they were seen.
    pub fn nr_held(&self) -> usize {
        self.tasks.iter().filter(|sightings| sightings.held).count()
    }
}

/// The CPU in the name of a per-CPU kernel thread: `kworker/3:1H`, and if it is there too,
/// `ksoftirqd/3`.
fn bound_to(name: &str, cpu: u32) -> Option<u32> {
    let (kind, rest) = name.rsplit_once('/')?;
    let named = rest.split([':', '-', '+']).next()?.parse().ok()?;
    (kind == "kworker" || named == cpu).then_some(named)
}

#[cfg(test)]
mod tests {
    use placewise_machine::load;
    use placewise_policy::FIRST_TASK;

    use super::*;

    const ONE: TaskNumber = FIRST_TASK;
    const OTHER: TaskNumber = FIRST_TASK + 1;
    const OTHER_NAME: TaskNumber = FIRST_TASK + 2;

    struct World {
        affinity: Affinity,
        tasks: Tasks,
    }

    impl World {
        /// 16 CPUs; two tasks of one name and one of another.
        fn new(stated: &[(u32, usize)]) -> Self {
            let stated = stated.iter().map(|&(pid, cpu)| (pid, CpuSet::single(cpu))).collect();
            let mut tasks = Tasks::new();
            for (pid, name) in [(100, "same"), (101, "same"), (102, "other")] {
                tasks.mention(pid, name, None, &mut Vec::new()).unwrap();
            }
            let machine = load("numa:2 l3:2 core:2 pu:2").unwrap();
            World { affinity: Affinity::new(&machine, stated), tasks }
        }

        fn see(&mut self, task: TaskNumber, cpu: u32) {
            self.affinity.see(task, self.tasks.get(task).name, cpu);
        }

        /// The policy would have put it on CPU 9, the kernel did on 4.
        fn refuse(&mut self, task: TaskNumber, times: u32) {
            for _ in 0..times {
                self.affinity.learn(task, self.tasks.get(task).name, 9, 4);
            }
        }

        fn cpus(&mut self, task: TaskNumber) -> Vec<usize> {
            self.affinity.of(task, 4, &self.tasks).cpus.iter().collect()
        }

        fn is_held(&mut self, task: TaskNumber) -> bool {
            self.cpus(task).len() < 16
        }
    }

    #[test]
    fn refusals_in_a_row_hold_a_task_to_where_it_was_seen() {
        let mut world = World::new(&[]);
        world.see(ONE, 4);
        world.see(ONE, 6);
        world.refuse(ONE, REFUSALS - 1);
        assert!(!world.is_held(ONE));
        world.refuse(ONE, 1);
        assert_eq!(world.cpus(ONE), [4, 6]);
        assert_eq!(world.affinity.nr_held(), 1);
    }

    #[test]
    fn where_it_goes_of_itself_ends_the_row() {
        let mut world = World::new(&[]);
        world.see(ONE, 4);
        world.refuse(ONE, REFUSALS - 1);
        world.see(ONE, 5);
        world.refuse(ONE, REFUSALS - 1);
        assert!(!world.is_held(ONE));
    }

    #[test]
    fn an_answer_where_it_was_seen_is_no_refusal() {
        let mut world = World::new(&[]);
        world.see(ONE, 4);
        world.see(ONE, 9);
        world.refuse(ONE, 10);
        assert!(!world.is_held(ONE));
    }

    #[test]
    fn an_escape_widens_and_too_many_set_it_free() {
        let mut world = World::new(&[]);
        world.see(ONE, 4);
        world.refuse(ONE, REFUSALS);
        for escape in 1..ESCAPES_MAX {
            let before = world.affinity.generation();
            world.see(ONE, 10 + escape);
            assert_ne!(world.affinity.generation(), before, "answers change");
            assert_eq!(world.cpus(ONE).len() as u32, 1 + escape);
        }
        world.see(ONE, 15);
        assert!(!world.is_held(ONE));
        world.refuse(ONE, 10);
        assert!(!world.is_held(ONE), "for good");
    }

    #[test]
    fn what_holds_a_name_holds_its_tasks_until_one_escapes() {
        let mut world = World::new(&[]);
        world.see(ONE, 4);
        world.see(OTHER, 5);
        world.refuse(ONE, REFUSALS_OF_NAME - 1);
        assert!(!world.is_held(OTHER));
        world.refuse(OTHER, 1);
        assert_eq!(world.cpus(OTHER), [4, 5]);
        assert!(!world.is_held(OTHER_NAME));
    }

    #[test]
    fn a_child_is_held_as_its_parent_is() {
        let mut world = World::new(&[]);
        world.see(ONE, 4);
        world.affinity.inherit(OTHER_NAME, ONE, &world.tasks);
        assert!(!world.is_held(OTHER_NAME), "neither is its parent");
        world.refuse(ONE, REFUSALS);
        world.affinity.inherit(OTHER_NAME, ONE, &world.tasks);
        assert_eq!(world.cpus(OTHER_NAME), [4]);
        world.affinity.forget(OTHER_NAME);
        assert!(!world.is_held(OTHER_NAME));
    }

    #[test]
    fn the_header_knows_better() {
        let mut world = World::new(&[(100, 3)]);
        world.see(ONE, 4);
        world.refuse(ONE, REFUSALS);
        assert_eq!(world.cpus(ONE), [3]);
        assert!(!world.affinity.of(ONE, 4, &world.tasks).inferred);
    }

    /// Until it is seen elsewhere: then it has one of its own.
    #[test]
    fn a_child_has_the_affinity_that_the_header_states_of_its_parent() {
        let mut world = World::new(&[(100, 3), (101, 5)]);
        for (child, cpu) in [(OTHER, 5), (OTHER_NAME, 3)] {
            world.affinity.inherit(child, ONE, &world.tasks);
            world.see(child, 3);
            assert_eq!(world.cpus(child), [cpu], "the header names pid 101, and not 102");
        }
        let before = world.affinity.generation();
        world.see(OTHER_NAME, 4);
        assert_ne!(world.affinity.generation(), before, "answers change");
        assert!(!world.is_held(OTHER_NAME));
    }

    /// An affinity to CPUs that the machine does not have says nothing.
    #[test]
    fn a_stated_affinity_without_a_cpu_of_the_machine_is_none() {
        let mut world = World::new(&[(100, 500)]);
        assert_eq!(world.cpus(ONE).len(), 16);
    }

    #[test]
    fn threads_of_a_cpu_have_it_in_their_name() {
        assert_eq!(bound_to("kworker/3:1H", 7), Some(3), "wherever it is seen");
        assert_eq!(bound_to("ksoftirqd/3", 3), Some(3));
        assert_eq!(bound_to("ksoftirqd/3", 4), None, "some program may be called so");
        assert_eq!(bound_to("kworker/u64:2", 3), None);
        assert_eq!(bound_to("bash", 3), None);
    }
}
