//! A CPU on which one task runs while another waits.

use placewise_machine::load;
use placewise_policy::{CpuId, FIRST_TASK, Policy, ROOT_TASK_GROUP, TaskId, topology};
use placewise_run_queue::{Enqueue, EnqueuedBy, Picked, Preemption, Scheduler};

pub const ONE: TaskId = TaskId::FIRST;
pub const OTHER: TaskId = TaskId::new(FIRST_TASK + 1);
pub const THIRD: TaskId = TaskId::new(FIRST_TASK + 2);
pub const CPU: CpuId = CpuId::new(3);

/// `ONE` runs while `OTHER` waits.
pub struct World {
    pub scheduler: Scheduler,
    pub now: u64,
}

impl World {
    pub fn new(kernel: &str) -> Self {
        World::under(kernel, "baseline")
    }

    pub fn under(kernel: &str, policy: &str) -> Self {
        World::with_groups(kernel, policy, &[])
    }

    /// Each task in a group of its own.
    pub fn in_groups(kernel: &str) -> Self {
        World::with_groups(kernel, "baseline", &[(ROOT_TASK_GROUP, 1024); 3])
    }

    /// One has `ONE` and these shares, the last 1024, and `OTHER` and `THIRD`.
    pub fn in_two_groups(kernel: &str, shares: u32) -> Self {
        let groups = [shares, 1024].map(|shares| (ROOT_TASK_GROUP, shares));
        World::with_groups(kernel, "baseline", &groups)
    }

    fn with_groups(kernel: &str, policy: &str, groups: &[(u32, u32)]) -> Self {
        let machine = load("numa:2 l3:2 core:2 pu:2").unwrap();
        let policy = Policy::parse(kernel, policy).unwrap();
        let (scheduler, _) = Scheduler::boot(&machine, &policy, groups).unwrap();
        let mut world = World { scheduler, now: topology::BOOT };
        [ONE, OTHER].into_iter().for_each(|task| world.wakes(task));
        world.scheduler.take(CPU, ONE, world.now);
        world
    }

    /// A task that has not run yet joins those that wait.
    pub fn wakes(&mut self, task: TaskId) {
        let policy = &mut self.scheduler.policy;
        policy.task[task].weight = 1024;
        policy.copy_task(task.into(), CPU.into(), CPU.into());
        let groups = policy.root.nr_task_groups;
        if groups > 0 {
            let own = u32::from(task) - FIRST_TASK + 1;
            policy.task_change_group(task.into(), own.min(groups), self.now);
        }
        self.scheduler.add(task);
        self.scheduler.enqueue(task, Enqueue::Wakeup, self.now);
    }

    /// Does a task that an interrupt has woken preempt the one that runs?
    pub fn preempts(&mut self, task: TaskId) -> bool {
        self.preempts_woken_by(task, EnqueuedBy::default()) == Preemption::Preempts
    }

    pub fn preempts_woken_by(&mut self, task: TaskId, by: EnqueuedBy) -> Preemption {
        self.scheduler.preempts(CPU, (task, by), self.now)
    }

    /// What runs goes on for so long; true if it should be rescheduled then.
    pub fn run(&mut self, ns: u64) -> bool {
        self.now += ns;
        self.scheduler.account(CPU, self.now).reschedule
    }

    /// The current task gives way to one that waits.
    pub fn switch_to(&mut self, next: TaskId) {
        self.scheduler.put_back(CPU, self.now);
        self.scheduler.take(CPU, next, self.now);
    }

    /// What runs goes on for a millisecond, and then gives way if it is to.
    pub fn run_to_tick(&mut self) {
        if self.run(1_000_000) | self.scheduler.tick(CPU, self.now) {
            let next = self.next();
            self.scheduler.take(CPU, next, self.now);
        }
    }

    /// The current task waits, and whoever is picked now.
    pub fn next(&mut self) -> TaskId {
        self.scheduler.put_back(CPU, self.now);
        self.pick()
    }

    pub fn pick(&mut self) -> TaskId {
        match self.scheduler.pick(CPU, self.now) {
            Some(Picked::Next(next)) => next,
            picked => panic!("{picked:?}"),
        }
    }

    pub fn stays_asleep(&mut self) -> bool {
        self.scheduler.sleep(CPU, 0, self.now)
    }
}
