//! What task groups weigh and what their tasks count for: `task_group.h`, `load.h`, `group.h`.

use super::common::{Machine, NOW, Shape, TICK};
use placewise_policy::kernel::{V5_3, V6_0, V6_12, V6_18};
use placewise_policy::*;

const MS: u64 = 1_000_000;

/// Four CPUs in one LLC.
const SMALL: Shape = Shape { packages: 1, nodes: 1, llcs: 1, cores: 4, threads: 1 };

/// A machine whose averages follow from what happens on it.
struct Lab {
    m: Machine,
    now: u64,
}

impl Lab {
    fn new(profile: Profile, shape: Shape) -> Self {
        Lab { m: Machine::new(profile, shape), now: NOW }
    }

    fn group(&mut self, parent: u32, shares: u32) -> u32 {
        let group = self.m.p.create_task_group(parent, shares);
        assert_ne!(group, ROOT_TASK_GROUP);
        group
    }

    /// A new task of a group, queued on `cpu` with full load.
    fn start(&mut self, group: u32, cpu: u32) -> u32 {
        let task = self.m.new_task();
        let t = self.m.task(task);
        t.avg = SchedAvg { load_avg: u64::from(t.weight), ..SchedAvg::default() };
        (t.cpu, t.on_rq) = (cpu as u16, 0);
        self.m.p.task_change_group(task, group, self.now);
        self.m.p.place_new_task(task, cpu);
        self.m.p.enqueue_task(task, 0, self.now);
        task
    }

    /// Ticks of all CPUs, on which the waiting tasks take turns.
    fn run(&mut self, ms: u64) {
        let end = self.now + ms * MS;
        while self.now < end {
            self.now += TICK;
            for cpu in self.m.cpus() {
                self.m.p.task_tick(cpu, self.now);
                let next = self.m.rq(cpu).mru_tail;
                if next != NO_TASK {
                    self.m.p.put_prev_task(cpu, self.now);
                    self.m.p.set_next_task(cpu, next, self.now);
                }
            }
        }
    }

    fn entity(&self, group: u32, cpu: u32) -> &GroupRq {
        &self.m.p.group_rq[group as usize][cpu as usize]
    }

    fn h_load(&mut self, task: u32) -> u64 {
        self.m.p.task_h_load(task)
    }

    fn move_task(&mut self, task: u32, to: u32) {
        self.m.p.dequeue_task(task, DEQUEUE_MIGRATE, self.now);
        self.m.p.set_task_cpu(task, to);
        self.m.p.enqueue_task(task, ENQUEUE_MIGRATED, self.now);
    }
}

fn assert_near(what: &str, found: u64, expected: u64, tolerance: u64) {
    assert!(found.abs_diff(expected) <= tolerance, "{what}: {found} instead of {expected}");
}

/// 76 threads of one cgroup and two burners of another, each alone on its CPU: a burner counts
/// for 512, a thread for 1024/76. Fails if tasks counted for their own load.
#[test]
fn a_crowded_group_counts_little_and_a_small_one_much() {
    for profile in [V5_3, V6_0, V6_12, V6_18] {
        let eighty = Shape { packages: 4, nodes: 1, llcs: 1, cores: 20, threads: 1 };
        let mut lab = Lab::new(profile, eighty);
        let (lu, burn) = (lab.group(0, 1024), lab.group(0, 1024));
        let threads: Vec<u32> = (0..76).map(|cpu| lab.start(lu, cpu)).collect();
        let burners: Vec<u32> = (76..78).map(|cpu| lab.start(burn, cpu)).collect();
        lab.run(1_000);
        for &thread in &threads {
            // Every level rounds down.
            assert_near("a thread", lab.h_load(thread), 13, 3);
        }
        for &burner in &burners {
            assert_near("a burner", lab.h_load(burner), 512, 8);
        }
        let [lu, burn] = [lu, burn].map(|group| lab.m.p.task_group[group as usize].load_avg);
        assert_near("the load of all threads", lu, 76 * 1024, 76 * 32);
        assert_near("the load of both burners", burn, 2 * 1024, 2 * 32);
    }
}

/// clamp(shares * L / (TG - contribution + L), 2, shares), with L the greater of what is queued
/// and the average.
#[test]
fn shares_go_where_the_load_is() {
    let mut lab = Lab::new(V6_0, SMALL);
    let group = lab.group(0, 1024);
    let first = lab.start(group, 0);
    assert_eq!(lab.entity(group, 0).weight, 1024, "all its load is here");
    for _ in 0..3 {
        lab.start(group, 1);
    }
    assert_eq!(lab.entity(group, 1).weight, 768, "three of four tasks");
    // CPU 0 sees only at its next update what has come elsewhere.
    assert_eq!(lab.entity(group, 0).weight, 1024);
    lab.m.p.set_next_task(0, first, lab.now);
    lab.now += 4 * MS;
    lab.m.p.task_tick(0, lab.now);
    assert_near("one of four", lab.entity(group, 0).weight.into(), 256, 3);
    let weight = lab.entity(group, 0).weight;
    assert_eq!(lab.m.rq(0).cfs.load_weight, u64::from(weight));
}

#[test]
fn the_least_weight_is_two() {
    let mut lab = Lab::new(V6_0, SMALL);
    let group = lab.group(0, 8);
    for _ in 0..40 {
        lab.start(group, 0);
    }
    lab.start(group, 1);
    assert_eq!(lab.entity(group, 1).weight, 2);
}

/// A contribution is renewed once it is off by more than a 64th, and since v6.12 once in a ms.
#[test]
fn contributions_are_rough() {
    let mut lab = Lab::new(V6_0, SMALL);
    let group = lab.group(0, 1024);
    for _ in 0..99 {
        lab.start(group, 0);
    }
    // From the 64th on, two tasks are worth an update and one is not.
    assert_eq!(lab.m.p.task_group[group as usize].load_avg, 98 * 1024);

    let mut lab = Lab::new(V6_12, SMALL);
    let group = lab.group(0, 1024);
    lab.start(group, 0);
    lab.start(group, 0);
    assert_eq!(lab.m.p.task_group[group as usize].load_avg, 1024, "less than 1 ms ago");
    lab.now += MS;
    lab.start(group, 0);
    assert_near("all", lab.m.p.task_group[group as usize].load_avg, 3 * 1024, 8);
}

/// h_load is computed once per jiffy. Fails if it followed at once, or never.
#[test]
fn h_load_is_as_old_as_the_jiffy() {
    let mut lab = Lab::new(V6_0, SMALL);
    let group = lab.group(0, 1024);
    let task = lab.start(group, 0);
    lab.now += 40 * TICK;
    lab.m.p.task_tick(0, lab.now);
    let before = lab.h_load(task);
    for _ in 0..3 {
        lab.start(group, 1);
    }
    lab.m.p.set_next_task(0, task, lab.now);
    lab.m.p.task_tick(0, lab.now);
    assert!(lab.entity(group, 0).weight < 300, "three quarters of the shares are elsewhere");
    assert_near("in the same jiffy", lab.h_load(task), before, 4);
    lab.now += TICK;
    lab.m.p.task_tick(0, lab.now);
    assert_near("in the next", lab.h_load(task), 256, 10);
}

/// What tasks bring and take shows in all levels above at once: utilisation and runnable averages
/// of the root are those of its tasks, in cgroups or not.
#[test]
fn averages_go_up_with_their_tasks() {
    for profile in [V5_3, V6_0, V6_12, V6_18] {
        let mut lab = Lab::new(profile, SMALL);
        let outer = lab.group(0, 1024);
        let inner = lab.group(outer, 2048);
        let tasks =
            [lab.start(inner, 0), lab.start(inner, 0), lab.start(outer, 0), lab.start(0, 0)];
        lab.run(400);
        for (step, &task) in tasks.iter().enumerate() {
            lab.move_task(task, 1);
            for cpu in [0, 1] {
                let here =
                    tasks.iter().filter(|&&task| u32::from(lab.m.p.task[task as usize].cpu) == cpu);
                let sum = |of: fn(&SchedAvg) -> u64| -> u64 {
                    here.clone().map(|&task| of(&lab.m.p.task[task as usize].avg)).sum()
                };
                let (util, runnable) = (sum(|avg| avg.util_avg), sum(|avg| avg.runnable_avg));
                let root = lab.m.p.rq[cpu as usize].cfs.avg;
                let name = |what: &str| format!("{what} of CPU {cpu} after move {step}");
                assert_near(&name("utilisation"), root.util_avg, util, 40);
                assert_near(&name("runnable"), root.runnable_avg, runnable, 160);
            }
        }
        assert_eq!((lab.entity(inner, 0).on_rq, lab.entity(outer, 0).on_rq), (0, 0));
        assert_eq!(lab.m.rq(0).cfs.load_weight, 0);
        assert_near("load left behind", lab.m.rq(0).cfs.avg.load_avg, 0, 8);
    }
}

/// The load of the root is that of its entities. Fails if a group's tasks counted one by one.
#[test]
fn a_group_counts_for_its_shares_in_the_load_of_a_cpu() {
    let mut lab = Lab::new(V6_0, SMALL);
    let group = lab.group(0, 1024);
    let alone = lab.start(0, 0);
    let crowd: Vec<u32> = (0..7).map(|_| lab.start(group, 0)).collect();
    lab.run(1_000);
    let load = lab.m.rq(0).cfs.avg.load_avg;
    assert_near("two entities", load, 2 * 1024, 40);
    let of_crowd: u64 = crowd.iter().map(|&task| lab.h_load(task)).sum();
    assert_near("the crowd", of_crowd, 1024, 40);
    assert_near("the other", lab.h_load(alone), 1024, 20);
}

/// The sleepers of a group take nothing from what its queued tasks count for.
#[test]
fn runnable_load_leaves_out_sleepers_of_groups() {
    let mut lab = Lab::new(V5_3, SMALL);
    let group = lab.group(0, 1024);
    let tasks: Vec<u32> = (0..4).map(|_| lab.start(group, 0)).collect();
    lab.run(400);
    assert_near("all queued", lab.m.p.cpu_runnable_load(0), 1024, 30);
    for &task in &tasks[1..] {
        lab.m.p.dequeue_task(task, DEQUEUE_SLEEP, lab.now);
    }
    let load = lab.m.rq(0).cfs.avg.load_avg;
    assert_near("sleepers still count in the load", load, 1024, 30);
    // The group's load is 4 * 1024, of which 1024 are queued.
    assert_near("one of four queued", lab.m.p.cpu_runnable_load(0), 256, 20);
    lab.m.p.dequeue_task(tasks[0], DEQUEUE_SLEEP, lab.now);
    assert_eq!(lab.m.p.cpu_runnable_load(0), 0);
}

/// Blocked load of a group decays on a CPU where nothing happens but balancing.
#[test]
fn blocked_groups_decay() {
    let mut lab = Lab::new(V6_18, SMALL);
    let group = lab.group(0, 1024);
    let task = lab.start(group, 0);
    lab.run(200);
    lab.m.p.dequeue_task(task, DEQUEUE_SLEEP, lab.now);
    lab.m.p.set_next_task(0, 0, lab.now);
    let before = lab.entity(group, 0).avg.load_avg;
    assert!(before > 900);
    lab.now += 1_000 * MS;
    lab.m.p.update_blocked_averages(0, lab.now);
    lab.now += 1_000 * MS;
    lab.m.p.update_blocked_averages(0, lab.now);
    assert_eq!(lab.entity(group, 0).avg.load_avg, 0);
    assert_eq!(lab.m.rq(0).cfs.avg.load_avg, 0);
    assert_eq!(lab.m.p.task_group[group as usize].load_avg, 0);
}

/// A blocked task that wakes elsewhere takes its averages out of every level.
#[test]
fn a_migrating_sleeper_leaves_all_levels() {
    let mut lab = Lab::new(V6_0, SMALL);
    let outer = lab.group(0, 1024);
    let inner = lab.group(outer, 1024);
    let task = lab.start(inner, 0);
    lab.run(400);
    lab.m.p.dequeue_task(task, DEQUEUE_SLEEP, lab.now);
    lab.m.p.set_next_task(0, 0, lab.now);
    lab.m.p.set_task_cpu(task, 1);
    lab.m.p.enqueue_task(task, ENQUEUE_WAKEUP | ENQUEUE_MIGRATED, lab.now);
    lab.m.p.update_blocked_averages(0, lab.now);
    for group in [inner, outer] {
        assert_near("utilisation left", lab.entity(group, 0).cfs.avg.util_avg, 0, 4);
        assert_near("load left", lab.entity(group, 0).cfs.avg.load_avg, 0, 4);
        assert_near("of the entity", lab.entity(group, 0).avg.load_avg, 0, 4);
    }
    assert_near("root", lab.m.rq(0).cfs.avg.load_avg, 0, 4);
    let there = lab.m.rq(1).cfs.avg;
    assert_near("utilisation there", there.util_avg, lab.m.p.task[task as usize].avg.util_avg, 2);
}

/// A blocked task takes its load along: what it leaves counts for nothing, where it comes for
/// all of it. Fails if only `task_group` were written.
#[test]
fn a_sleeper_takes_its_load_to_its_new_group() {
    for profile in [V5_3, V6_0, V6_18] {
        let mut lab = Lab::new(profile, SMALL);
        let (left, joined) = (lab.group(0, 1024), lab.group(0, 1024));
        let task = lab.start(left, 1);
        lab.run(200);
        lab.m.p.set_next_task(1, 1, lab.now);
        lab.m.p.dequeue_task(task, DEQUEUE_SLEEP, lab.now);
        let load = lab.m.p.task[task as usize].avg.load_avg;
        assert!(load > 900, "it has run all the time: {load}");

        lab.now += 2 * MS; // TG_LOAD_AVG_INTERVAL
        lab.m.p.task_change_group(task, joined, lab.now);
        assert_near("left behind", lab.entity(left, 1).cfs.avg.load_avg, 0, 1);
        assert_near("its entity", lab.entity(left, 1).avg.util_avg, 0, 1);
        let load = lab.m.p.task[task as usize].avg.load_avg;
        assert_eq!(lab.entity(joined, 1).cfs.avg.load_avg, load);
        let groups = [left, joined].map(|group| lab.m.p.task_group[group as usize].load_avg);
        assert_eq!(groups, [0, load]);
    }
}

#[test]
fn new_shares_weigh_from_the_next_tick_on() {
    let mut lab = Lab::new(V6_0, SMALL);
    let (changed, other) = (lab.group(0, 1024), lab.group(0, 1024));
    let task = lab.start(changed, 0);
    lab.start(other, 0);
    lab.run(100);
    assert_near("equal", lab.h_load(task), 1024, 40);
    lab.m.p.set_task_group_shares(changed, 256);
    lab.run(2 * TICK / MS);
    assert_eq!(lab.entity(changed, 0).weight, 256);
    assert_eq!(lab.m.rq(0).cfs.load_weight, 256 + 1024);
    lab.run(100);
    assert_near("a quarter", lab.h_load(task), 256, 16);
}

/// The blocked load of a cgroup that is gone does not linger in its parent.
#[test]
fn a_destroyed_group_leaves_neither_load_nor_weight() {
    let mut lab = Lab::new(V6_0, SMALL);
    let parent = lab.group(0, 1024);
    let group = lab.group(parent, 1024);
    let task = lab.start(group, 0);
    lab.run(200);
    lab.m.p.set_next_task(0, 0, lab.now);
    lab.m.p.dequeue_task(task, DEQUEUE_SLEEP, lab.now);
    lab.m.p.task_dead(task);
    let blocked = lab.entity(parent, 0).cfs.avg.load_avg;
    assert!(blocked > 900, "{blocked}");

    lab.m.p.destroy_task_group(group);
    lab.m.p.update_blocked_averages(0, lab.now);
    assert_near("the parent", lab.entity(parent, 0).cfs.avg.load_avg, 0, 1);
    let entity = lab.entity(group, 0);
    assert_eq!((entity.weight, entity.on_rq, entity.avg.last_update_time), (0, 0, 0));
}

#[test]
fn numbers_of_destroyed_groups_are_given_again_below_smaller_ones_only() {
    let mut lab = Lab::new(V6_0, SMALL);
    let [first, second, third] = [(); 3].map(|()| lab.group(0, 1024));
    lab.m.p.destroy_task_group(first);
    assert_eq!(lab.group(second, 1024), third + 1, "a child's number is greater");
    assert_eq!(lab.group(0, 512), first);
    assert_eq!(lab.m.p.task_group[first as usize].shares, 512);
    lab.m.p.destroy_task_group(third);
    assert_eq!(lab.m.p.create_task_group(third, 1024), ROOT_TASK_GROUP, "no such parent");
}

#[test]
fn groups_have_a_limited_number_and_depth() {
    let mut lab = Lab::new(V6_0, SMALL);
    let chain = (0..NR_TASK_GROUP_LEVELS).fold(0, |parent, _| lab.group(parent, 1024));
    assert_eq!(lab.m.p.create_task_group(chain, 1024), ROOT_TASK_GROUP, "too deep");
    for _ in NR_TASK_GROUP_LEVELS + 1..NR_TASK_GROUPS {
        lab.group(0, 1024);
    }
    assert_eq!(lab.m.p.create_task_group(0, 1024), ROOT_TASK_GROUP, "too many");
}
