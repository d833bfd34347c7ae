//! Task groups: what their tasks get, and when the last one has gone to sleep.

use placewise_machine::load;
use placewise_policy::{CpuId, FIRST_TASK, Policy, ROOT_TASK_GROUP, TaskId, topology};
use placewise_run_queue::{Enqueue, Picked, Scheduler};

use super::world::{CPU, ONE, OTHER, THIRD, World};

/// `ONE` has run 100 us ahead and sleeps; `OTHER` has run for 300 us since, which nobody has accounted yet.
fn ran_ahead(kernel: &str) -> World {
    let mut world = World::in_groups(kernel);
    world.run(100_000);
    assert!(!world.stays_asleep(), "a task that is alone in its group is not ahead there");
    world.scheduler.take(CPU, OTHER, world.now);
    world.now += 300_000;
    world
}

/// The entity is still queued, ahead of what was accounted, and so keeps its place and its deadline. Without delays it
/// comes back as far behind as it left.
#[test]
fn a_group_that_ran_ahead_is_woken_where_it_stayed() {
    let preempts = |kernel: &str| {
        let mut world = ran_ahead(kernel);
        world.scheduler.wake_delayed_group(ONE);
        world.run(0);
        world.scheduler.enqueue(ONE, Enqueue::Wakeup, world.now);
        world.preempts(ONE)
    };
    assert!(preempts("v6.18"));
    assert!(!preempts("v6.6"));
}

/// Accounted before, `OTHER` is the one ahead: the entity has won its lag back and begins anew beside it.
#[test]
fn a_group_that_has_won_its_lag_back_begins_anew() {
    let mut world = ran_ahead("v6.18");
    world.run(0);
    world.scheduler.enqueue(ONE, Enqueue::Wakeup, world.now);
    assert!(!world.preempts(ONE));
}

/// The weight of what is queued, which loads the CPU.
fn queued_weight(world: &World) -> u64 {
    world.scheduler.policy.rq[CPU].cfs.load_weight
}

/// The entity without tasks is to run before `THIRD`. Where wakeups pick, it leaves.
#[test]
fn a_wakeup_that_picks_lets_groups_without_tasks_go() {
    let woken = |kernel: &str| {
        let mut world = ran_ahead(kernel);
        world.run(0);
        world.wakes(THIRD);
        (world.preempts(THIRD), queued_weight(&world))
    };
    assert_eq!(woken("v6.18"), (false, 3 * 1024));
    assert_eq!(woken("v6.18.32"), (true, 2 * 1024));
}

/// Wakeups elsewhere compare loads. Fails if the policy took a group to be gone with its last task, or to stay for ever.
#[test]
fn a_group_without_tasks_loads_its_cpu_until_its_lag_is_spent() {
    for (kernel, stays) in [("v6.18", true), ("v6.6", false)] {
        let mut world = ran_ahead(kernel);
        assert_eq!(queued_weight(&world), if stays { 2 * 1024 } else { 1024 }, "{kernel}");
        assert_eq!(world.scheduler.has_delayed(CPU), stays, "{kernel}");
        world.run(0);
        assert_eq!(world.next(), OTHER, "{kernel}");
        assert_eq!(queued_weight(&world), 1024, "{kernel}");
        assert!(!world.scheduler.has_delayed(CPU), "{kernel}");
    }
}

/// Fails if it counted twice, or not any more.
#[test]
fn a_group_that_is_woken_where_it_stayed_loads_its_cpu_once() {
    let mut world = ran_ahead("v6.18");
    world.scheduler.wake_delayed_group(ONE);
    world.scheduler.enqueue(ONE, Enqueue::Wakeup, world.now);
    assert_eq!(queued_weight(&world), 2 * 1024);
    world.run(0);
    world.switch_to(ONE);
    world.scheduler.deactivate(CPU, world.now);
    assert_eq!(queued_weight(&world), 1024, "it is not ahead any more");
}

#[test]
fn a_group_gets_as_much_as_another_however_many_tasks_it_has() {
    for kernel in ["v6.0", "v6.18", "v7.3"] {
        let mut world = World::in_two_groups(kernel, 1024);
        world.wakes(THIRD);
        let runs = (0..1000).map(|_| {
            let current = world.scheduler.current(CPU);
            world.run_to_tick();
            current
        });
        let share = runs.filter(|task| *task == ONE).count();
        assert!((480..520).contains(&share), "{kernel}: {share} of 1,000");
    }
}

/// Both groups have had the same; that of `ONE` has the earlier deadline, but the other is in the middle of its slice.
#[test]
fn a_group_keeps_the_cpu_for_its_slice_when_a_task_of_it_sleeps() {
    for kernel in ["v6.6", "v6.12", "v6.18"] {
        let mut world = World::in_two_groups(kernel, 2048);
        world.wakes(THIRD);
        world.run(200_000);
        world.switch_to(OTHER);
        world.run(100_000);
        world.stays_asleep();
        assert_eq!(world.pick(), THIRD, "{kernel}");
    }
}

/// Half of its group's, for `OTHER` was there, too: its slice takes twice as long, and ends after that of `ONE`.
#[test]
fn at_one_level_a_task_comes_with_the_weight_that_its_group_leaves_it() {
    let mut world = World::in_two_groups("v7.3", 1024);
    world.wakes(THIRD);
    world.switch_to(OTHER);
    world.stays_asleep();
    assert_eq!(world.pick(), ONE);
}

/// `OTHER` is ahead of its share, and before v7.3 so is its group: `THIRD`, which is in it, has to wait with it.
#[test]
fn at_one_level_a_task_does_not_wait_for_what_others_of_its_group_had() {
    let next = |kernel: &str| {
        let mut world = World::in_two_groups(kernel, 1024);
        world.switch_to(OTHER);
        world.run(3_000_000);
        world.switch_to(ONE);
        world.wakes(THIRD);
        world.run(2_900_000);
        world.next()
    };
    assert_eq!(next("v6.18"), ONE);
    assert_eq!(next("v7.3"), THIRD);
}

/// What two cgroups of 1024 and 512 shares weigh on 8 CPUs, after a second: four tasks of the first wait or run on CPU 0,
/// of the second one there and two on CPU 1.
fn weights(cgroup_mode: &str) -> [u32; 3] {
    let policy = Policy::parse("v7.3", &format!("set:cgroup_mode={cgroup_mode}")).unwrap();
    let groups = [(ROOT_TASK_GROUP, 1024), (ROOT_TASK_GROUP, 512)];
    let (mut scheduler, _) =
        Scheduler::boot(&load("core:8 pu:1").unwrap(), &policy, &groups).unwrap();
    let places = [(0, 1), (0, 1), (0, 1), (0, 1), (0, 2), (1, 2), (1, 2)];
    for ((cpu, group), number) in places.into_iter().zip(FIRST_TASK..) {
        let task = TaskId::new(number);
        scheduler.policy.task[task].weight = 1024;
        scheduler.policy.copy_task(number, cpu, cpu);
        scheduler.policy.task_change_group(number, group, topology::BOOT);
        scheduler.add(task);
        scheduler.enqueue(task, Enqueue::Wakeup, topology::BOOT);
    }
    for tick in 0..250 {
        for cpu in [0, 1].map(CpuId::new) {
            let now = topology::BOOT + tick * 4_000_000;
            if tick > 0 {
                scheduler.account(cpu, now);
                scheduler.tick(cpu, now);
                scheduler.put_back(cpu, now);
            }
            let Some(Picked::Next(next)) = scheduler.pick(cpu, now) else { panic!("all wait") };
            scheduler.take(cpu, next, now);
        }
    }
    let weight = |group: usize, cpu| scheduler.policy.group_rq[group][CpuId::new(cpu)].weight;
    [weight(1, 0), weight(2, 0), weight(2, 1)]
}

/// What Linux 7.3.4 says of such hogs in `/sys/kernel/debug/sched/debug`, but for the second of `max`, which is the part that
/// is left of the third: of four tasks, and of three, the averages come to a little less.
#[test]
fn a_cgroup_weighs_what_it_weighs_in_a_kernel_in_each_mode() {
    for (mode, measured) in [
        ("smp", [1024, 171, 341]),
        ("concur", [3072, 342, 683]),
        ("tasks", [3072, 342, 683]),
        ("max", [8192, 1366, 2732]),
        ("up", [1024, 512, 512]),
    ] {
        let found = weights(mode);
        let is_near = |(a, b): (u32, u32)| a.abs_diff(b) <= 2;
        assert!(found.into_iter().zip(measured).all(is_near), "{mode}: {found:?}, {measured:?}");
    }
}
