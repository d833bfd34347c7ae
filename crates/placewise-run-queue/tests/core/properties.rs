//! Whatever is done to tasks in whatever order: what must hold of a scheduler holds after each
//! operation, and all run time is some task's.

use placewise_machine::load;
use placewise_policy::weight::weight_of;
use placewise_policy::{CpuId, FIRST_TASK, Policy, ROOT_TASK_GROUP, TaskId, topology};
use placewise_run_queue::invariants::{Invariants, waiting_on};
use placewise_run_queue::{Dequeue, Enqueue, EnqueuedBy, Picked, Preemption, Scheduler};
use proptest::prelude::*;
use proptest::sample::Index;
use proptest::test_runner::RngSeed;

const MACHINES: [&str; 3] =
    ["pack:1 l3:1 core:1 pu:1", "pack:1 l3:2 core:2 pu:1", "pack:2 l3:1 core:2 pu:2"];

/// Before and after EEVDF, delayed dequeue, and the protection of current by its slice.
const KERNELS: [&str; 7] = ["v3.10", "v5.3", "v6.0", "v6.12", "v6.18", "v6.18.32", "v7.3"];

/// Two groups, and one in the second: the group that each is in and its shares.
const GROUPS: [(u32, u32); 3] = [(ROOT_TASK_GROUP, 1024), (ROOT_TASK_GROUP, 300), (2, 2048)];

#[derive(Clone, Copy, Debug)]
struct Attributes {
    nice: i8,
    idle_policy: bool,
    rt_priority: u8,
    group: u32,
}

/// Tasks and CPUs are chosen from those that there are.
#[derive(Clone, Debug)]
enum Operation {
    Fork {
        at: Index,
        to: Index,
        child: Attributes,
    },
    Wake {
        task: Index,
        to: Index,
    },
    Sleep {
        at: Index,
    },
    Exit {
        at: Index,
    },
    Preempt {
        at: Index,
    },
    Move {
        task: Index,
        to: Index,
    },
    Tick {
        at: Index,
    },
    /// A task that sleeps belongs to another CPU, with another priority.
    Reweight {
        task: Index,
        nice: i8,
        to: Index,
    },
    Throttle {
        at: Index,
        group: u32,
    },
    Unthrottle {
        at: Index,
        group: u32,
    },
}

fn attributes() -> impl Strategy<Value = Attributes> {
    let class = prop_oneof![
        6 => (-20..=19i8).prop_map(|nice| (nice, false, 0)),
        2 => Just((0, true, 0)),
        1 => (1..4u8).prop_map(|rt_priority| (0, false, rt_priority)),
    ];
    (class, 0..=GROUPS.len() as u32).prop_map(|((nice, idle_policy, rt_priority), group)| {
        Attributes { nice, idle_policy, rt_priority, group }
    })
}

fn operation() -> impl Strategy<Value = Operation> {
    let any = any::<Index>;
    let group = || 1..=GROUPS.len() as u32;
    prop_oneof![
        3 => (any(), any(), attributes())
            .prop_map(|(at, to, child)| Operation::Fork { at, to, child }),
        6 => (any(), any()).prop_map(|(task, to)| Operation::Wake { task, to }),
        5 => any().prop_map(|at| Operation::Sleep { at }),
        1 => any().prop_map(|at| Operation::Exit { at }),
        4 => any().prop_map(|at| Operation::Preempt { at }),
        4 => (any(), any()).prop_map(|(task, to)| Operation::Move { task, to }),
        4 => any().prop_map(|at| Operation::Tick { at }),
        1 => (any(), -20..=19i8, any())
            .prop_map(|(task, nice, to)| Operation::Reweight { task, nice, to }),
        1 => (any(), group()).prop_map(|(at, group)| Operation::Throttle { at, group }),
        1 => (any(), group()).prop_map(|(at, group)| Operation::Unthrottle { at, group }),
    ]
}

/// A scheduler whose CPUs switch when they are told to, and nothing takes time but running.
struct World {
    scheduler: Scheduler,
    now: u64,
    nr_cpus: usize,
    /// Of all tasks.
    ran: u64,
    invariants: Invariants,
}

impl World {
    fn new(machine: &str, kernel: &str) -> Self {
        let machine = load(machine).unwrap();
        let policy = Policy::parse(kernel, "baseline").unwrap();
        let (scheduler, _) = Scheduler::boot(&machine, &policy, &GROUPS).unwrap();
        World {
            scheduler,
            now: topology::BOOT + 1_000_000,
            nr_cpus: machine.cpus.len(),
            ran: 0,
            invariants: Invariants::default(),
        }
    }

    fn cpus(&self) -> impl Iterator<Item = CpuId> + use<> {
        (0..self.nr_cpus).map(CpuId::from)
    }

    fn cpu(&self, index: &Index) -> CpuId {
        index.index(self.nr_cpus).into()
    }

    fn task(&self, index: &Index) -> Option<TaskId> {
        let nr_tasks = self.scheduler.tasks().count();
        (nr_tasks > 0).then(|| self.scheduler.tasks().nth(index.index(nr_tasks)))?
    }

    fn carry_out(&mut self, operation: &Operation) {
        match operation {
            Operation::Fork { at, to, child } => self.fork(self.cpu(at), self.cpu(to), child),
            Operation::Wake { task, to } => {
                self.task(task).into_iter().for_each(|task| self.wake(task, self.cpu(to)));
            }
            Operation::Sleep { at } => self.stop(self.cpu(at), |it, cpu, now| {
                it.sleep(cpu, 0, now);
            }),
            Operation::Exit { at } => self.stop(self.cpu(at), Scheduler::deactivate),
            Operation::Preempt { at } => self.stop(self.cpu(at), Scheduler::put_back),
            Operation::Move { task, to } => {
                self.task(task).into_iter().for_each(|task| self.move_waiting(task, self.cpu(to)));
            }
            Operation::Tick { at } => {
                let cpu = self.cpu(at);
                self.account(cpu);
                self.scheduler.tick(cpu, self.now);
            }
            Operation::Reweight { task, nice, to } => {
                self.task(task)
                    .into_iter()
                    .for_each(|task| self.reweight(task, *nice, self.cpu(to)));
            }
            Operation::Throttle { at, group } => self.throttle(self.cpu(at), *group),
            Operation::Unthrottle { at, group } => {
                let cpu = self.cpu(at);
                self.account(cpu);
                if self.is_throttled(*group, cpu) {
                    self.scheduler.unthrottle(*group, cpu, self.now);
                }
            }
        }
        for cpu in self.cpus() {
            // An idle CPU runs what has come.
            if self.scheduler.running(cpu).is_none() {
                self.stop(cpu, |_, _, _| {});
            }
        }
        self.invariants.observe(&self.scheduler);
        self.cpus().for_each(|cpu| self.invariants.check(&self.scheduler, cpu));
    }

    fn account(&mut self, cpu: CpuId) {
        self.ran += self.scheduler.account(cpu, self.now).ns;
    }

    /// A child of what runs on `cpu` goes `to` another; of an idle task, if that is what runs.
    fn fork(&mut self, cpu: CpuId, to: CpuId, child: &Attributes) {
        self.account(cpu);
        let task = TaskId::new(FIRST_TASK + self.scheduler.tasks().count() as u32);
        let policy = &mut self.scheduler.policy;
        let record = &mut policy.task[task];
        record.weight = weight_of(child.nice, child.idle_policy);
        record.idle_policy = child.idle_policy.into();
        record.rt_priority = child.rt_priority;
        policy.copy_task(task.into(), policy.rq[cpu].curr, cpu.into());
        policy.task_change_group(task.into(), child.group, self.now);
        self.scheduler.add(task);
        self.scheduler.fork(cpu, task);
        self.scheduler.policy.place_new_task(task.into(), to.into());
        self.enqueue(task, Enqueue::Fork);
    }

    fn wake(&mut self, task: TaskId, to: CpuId) {
        if self.scheduler.is_delayed(task) {
            self.account(self.scheduler.cpu_of(task));
            self.scheduler.wake_delayed(task, self.now);
        } else if !self.scheduler.is_queued(task) {
            self.scheduler.set_task_cpu(task, to);
            self.enqueue(task, Enqueue::Wakeup);
        }
    }

    /// Who preempts is picked at once.
    fn enqueue(&mut self, task: TaskId, why: Enqueue) {
        let cpu = self.scheduler.cpu_of(task);
        self.scheduler.wake_delayed_group(task);
        self.account(cpu);
        self.scheduler.enqueue(task, why, self.now);
        if self.scheduler.running(cpu).is_some() && self.preempts(cpu, task) {
            self.stop(cpu, Scheduler::put_back);
        }
    }

    fn preempts(&mut self, cpu: CpuId, task: TaskId) -> bool {
        loop {
            let waiting = waiting_on(&self.scheduler, cpu);
            match self.scheduler.preempts(cpu, (task, EnqueuedBy::default()), self.now) {
                Preemption::Left(sleeper) => self.has_left(sleeper, &waiting),
                preemption => return preemption == Preemption::Preempts,
            }
        }
    }

    fn has_left(&self, sleeper: TaskId, waiting: &[TaskId]) {
        assert!(waiting.contains(&sleeper) && !self.scheduler.is_queued(sleeper));
        assert!(!self.scheduler.is_delayed(sleeper));
    }

    /// What runs stops running, and what comes next runs.
    fn stop(&mut self, cpu: CpuId, how: impl FnOnce(&mut Scheduler, CpuId, u64)) {
        self.account(cpu);
        if self.scheduler.running(cpu).is_some() {
            how(&mut self.scheduler, cpu, self.now);
        }
        let next = self.pick(cpu);
        self.scheduler.take(cpu, next.unwrap_or(TaskId::idle(cpu)), self.now);
    }

    fn pick(&mut self, cpu: CpuId) -> Option<TaskId> {
        loop {
            let waiting = waiting_on(&self.scheduler, cpu);
            match self.scheduler.pick(cpu, self.now)? {
                Picked::Next(task) => {
                    // A current RT task stays in its list.
                    assert!(waiting.contains(&task) || self.scheduler.current(cpu) == task);
                    assert!(!self.scheduler.is_delayed(task), "a sleeper is to run");
                    return Some(task);
                }
                Picked::Left(task) => self.has_left(task, &waiting),
            }
        }
    }

    fn move_waiting(&mut self, task: TaskId, to: CpuId) {
        let from = self.scheduler.cpu_of(task);
        let waits = self.scheduler.is_queued(task) && self.scheduler.current(from) != task;
        if waits && from != to {
            self.account(from);
            self.scheduler.mark_eligible(from);
            self.scheduler.dequeue(task, Dequeue::Balance, self.now);
            self.scheduler.set_task_cpu(task, to);
            self.enqueue(task, Enqueue::Balance);
        }
    }

    /// Not of a task whose load an average still holds, for that would not follow.
    fn reweight(&mut self, task: TaskId, nice: i8, to: CpuId) {
        if self.scheduler.is_queued(task) {
            return;
        }
        self.scheduler.set_task_cpu(task, to);
        if self.scheduler.policy.task[task].avg.last_update_time == 0 {
            self.scheduler.reweight(task, weight_of(nice, false));
        }
    }

    fn is_throttled(&self, group: u32, cpu: CpuId) -> bool {
        self.scheduler.policy.group_rq[group as usize][cpu].throttled != 0
    }

    /// As soon as none of its tasks is current.
    fn throttle(&mut self, cpu: CpuId, group: u32) {
        if self.is_throttled(group, cpu) {
            return;
        }
        self.account(cpu);
        let current = self.scheduler.running(cpu);
        if current.is_some() {
            self.scheduler.put_back(cpu, self.now);
        }
        self.scheduler.throttle(group, cpu, self.now);
        let next = self.pick(cpu);
        self.scheduler.take(cpu, next.unwrap_or(TaskId::idle(cpu)), self.now);
    }
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 1000,
        rng_seed: RngSeed::Fixed(1),
        failure_persistence: None,
        max_shrink_iters: 2000,
        ..ProptestConfig::default()
    })]

    #[test]
    fn no_order_of_operations_makes_a_contradiction(
        machine in prop::sample::select(MACHINES.to_vec()),
        kernel in prop::sample::select(KERNELS.to_vec()),
        operations in prop::collection::vec((operation(), 0..6_000_000u64), 1..120),
    ) {
        let mut world = World::new(machine, kernel);
        for (operation, elapsed) in &operations {
            world.now += elapsed;
            world.carry_out(operation);
        }
        world.cpus().for_each(|cpu| world.account(cpu));
                let record = |task: TaskId| &world.scheduler.policy.task[task];
        let of_tasks = world.scheduler.tasks().map(|task| record(task).sum_exec_runtime).sum::<u64>();
        prop_assert_eq!(of_tasks, world.ran, "run time of all tasks, and what was accounted");
    }
}
