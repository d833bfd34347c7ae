//! The native build and the BPF build give equal answers, and leave equal
//! states behind, for 100,000 and more states drawn at random.

use std::collections::BTreeSet;

use placewise_policy::*;
use rand::RngExt;

use crate::drawn::{Drawn, Generator, STATES_PER_MACHINE};

/// Walks before they start.
const NO_WALK: BalanceWalk = BalanceWalk {
    next_balance: 0,
    cost: 0,
    cpu: 0,
    level: 0,
    idle: 0,
    not_my_job: 0,
    need_decay: 0,
    pulled: 0,
};
const NO_NOHZ_WALK: NohzWalk =
    NohzWalk { next_balance: 0, this_cpu: 0, cpu: 0, flags: 0, aborted: 0 };

/// Calls `act` on each of `states` random states.
fn for_states(seed: u128, states: u32, mut act: impl FnMut(&mut Generator, &mut Drawn)) {
    let mut generator = Generator::new(seed);
    for _ in 0..states / STATES_PER_MACHINE {
        let mut drawn = generator.machine();
        for _ in 0..STATES_PER_MACHINE {
            generator.draw(&mut drawn);
            act(&mut generator, &mut drawn);
        }
    }
}

#[test]
fn wakeups_are_placed_alike() {
    let (mut affine, mut search) = (BTreeSet::new(), BTreeSet::new());
    for_states(1, 40_000, |generator, drawn| {
        let (task, cpu, now) = (generator.task(drawn), generator.cpu(drawn), generator.now());
        let flags = WF_TTWU
            | generator.pick(&[0, WF_SYNC])
            | generator.pick(&[0, 0, 0, WF_CURRENT_CPU])
            | generator.pick(&[0, 0, 0, WF_INTERRUPT]);
        let prev = drawn.m.task(task).cpu.into();
        let on_cpu = generator.chance(2);
        let chosen = drawn.m.p.select_task_rq(task, prev, cpu, flags, now);
        affine.insert(u32::from(drawn.m.p.decision.affine));
        search.insert(u32::from(drawn.m.p.decision.search));
        drawn.m.p.select_fallback_rq(task);
        drawn.m.p.ttwu_queue_wakelist(task, cpu, chosen, on_cpu);
        drawn.m.p.record_scan_cost(cpu, u64::from(generator.rng.random_range(0..100_000u32)));
    });
    assert_eq!(affine, (AFFINE_NOT_TRIED..=AFFINE_UNDECIDED).collect(), "every reason occurs");
    assert_eq!(search, (SEARCH_NONE..=SEARCH_FAILED).collect(), "every reason occurs");
}

#[test]
fn new_tasks_are_placed_alike() {
    for_states(2, 15_000, |generator, drawn| {
        let (child, cpu, now) = (generator.task(drawn), generator.cpu(drawn), generator.now());
        if drawn.m.task(child).on_rq != 0 {
            return;
        }
        let parent = drawn.m.rq(cpu).curr;
        drawn.m.task(child).avg.last_update_time = 0;
        drawn.m.p.copy_task(child, parent, cpu);
        let chosen = drawn.m.p.select_task_rq(child, cpu, cpu, WF_FORK, now);
        drawn.m.p.place_new_task(child, chosen);
        drawn.m.p.enqueue_task(child, 0, now);
    });
}

#[test]
fn execs_are_placed_alike() {
    for_states(3, 10_000, |generator, drawn| {
        let (task, now) = (generator.task(drawn), generator.now());
        let cpu = drawn.m.task(task).cpu.into();
        drawn.m.p.select_task_rq(task, cpu, cpu, WF_EXEC, now);
    });
}

/// Balances a random level of a random CPU in each of `states` states.
fn balance(seed: u128, states: u32, idle: u32) {
    let mut moved = 0;
    for_states(seed, states, |generator, drawn| {
        balance_once(generator, drawn, idle);
        moved += drawn.m.p.balance.nr;
    });
    assert!(moved > states / 40, "only {moved} tasks moved");
}

fn balance_once(generator: &mut Generator, drawn: &mut Drawn, idle: u32) {
    let (cpu, now) = (generator.cpu(drawn), generator.now());
    let nr_domains = u32::from(drawn.m.p.cpu[cpu as usize].nr_domains);
    if nr_domains == 0 {
        return;
    }
    let level = generator.rng.random_range(0..nr_domains);
    drawn.m.p.load_balance(cpu, level, idle, now);
    carry_out(drawn, now);
}

/// Moves the tasks that the last balance chose, as an engine does.
fn carry_out(drawn: &mut Drawn, now: u64) {
    let result = drawn.m.p.balance;
    for at in 0..result.nr as usize {
        drawn.m.p.dequeue_task(result.task[at], DEQUEUE_MIGRATE, now);
        drawn.m.p.set_task_cpu(result.task[at], result.dst[at].into());
        drawn.m.p.enqueue_task(result.task[at], ENQUEUE_MIGRATED, now);
    }
    if result.active_balance != 0 {
        let (src, dst) = (result.active_src.into(), result.active_dst.into());
        drawn.m.p.active_balance_task(src, dst, now);
    }
}

#[test]
fn idle_cpus_balance_alike() {
    balance(4, 10_000, CPU_IDLE);
}

#[test]
fn busy_cpus_balance_alike() {
    balance(5, 10_000, CPU_NOT_IDLE);
}

#[test]
fn newly_idle_cpus_balance_alike() {
    balance(6, 10_000, CPU_NEWLY_IDLE);
}

#[test]
fn newly_idle_walks_go_alike() {
    let mut shared = 0;
    for_states(7, 6_000, |generator, drawn| {
        let (cpu, now) = (generator.cpu(drawn), generator.now());
        drawn.m.p.profile.shared_runq =
            generator.pick(&[SHARED_RUNQ_NONE, SHARED_RUNQ_ALWAYS, SHARED_RUNQ_IDLE_CHECK]);
        for _ in 0..3 {
            let task = generator.task(drawn);
            if drawn.m.task(task).on_rq == 0 {
                drawn.m.p.enqueue_task(task, ENQUEUE_WAKEUP, now);
            }
        }
        if drawn.m.p.newidle_looks_at_lists(cpu) {
            shared += u32::from(drawn.m.p.newidle_shared_task(cpu) != NO_TASK);
        }
        let mut walk = NO_WALK;
        if !drawn.m.p.newidle_balance_start(&mut walk, cpu, now) {
            return;
        }
        loop {
            let level = drawn.m.p.newidle_balance_next(&mut walk);
            if level >= NR_LEVELS {
                break;
            }
            let pulled = drawn.m.p.load_balance(cpu, level, CPU_NEWLY_IDLE, now);
            carry_out(drawn, now);
            let cost = generator.rng.random_range(0..200_000);
            drawn.m.p.newidle_balance_level_done(&mut walk, cost, pulled, now);
        }
        drawn.m.p.newidle_balance_end(&mut walk);
    });
    assert!(shared > 100, "only {shared} CPUs find a task in a list of their LLC");
}

/// A periodic visit of the levels of `cpu`.
fn rebalance(drawn: &mut Drawn, cpu: u32, idle: u32, now: u64) {
    let mut walk = NO_WALK;
    drawn.m.p.rebalance_domains_start(&mut walk, cpu, idle, now);
    loop {
        let level = drawn.m.p.rebalance_domains_next(&mut walk, now);
        if level >= NR_LEVELS {
            break;
        }
        let moved = drawn.m.p.load_balance(cpu, level, walk.idle, now);
        let go_on = drawn.m.p.balance.continue_balancing != 0;
        carry_out(drawn, now);
        drawn.m.p.rebalance_domains_level_done(&mut walk, moved, go_on, now);
    }
    drawn.m.p.rebalance_domains_end(&mut walk);
}

#[test]
fn ticks_balance_alike() {
    for_states(8, 4_000, |generator, drawn| {
        let (cpu, now) = (generator.cpu(drawn), generator.now());
        drawn.m.p.task_tick(cpu, now);
        drawn.m.p.nohz_balancer_kick(cpu, now);
        if drawn.m.p.trigger_load_balance(cpu, now) {
            let idle = generator.pick(&[CPU_IDLE, CPU_NOT_IDLE]);
            rebalance(drawn, cpu, idle, now);
        }
    });
}

/// Fewer states: one walks over all CPUs that are tickless.
#[test]
fn tickless_cpus_balance_alike() {
    for_states(9, 1_000, |generator, drawn| {
        let (cpu, now) = (generator.cpu(drawn), generator.now());
        drawn.m.p.nohz_balance_enter_idle(generator.cpu(drawn));
        drawn.m.p.nohz_balance_exit_idle(generator.cpu(drawn));
        let mut walk = NO_NOHZ_WALK;
        if !drawn.m.p.nohz_balance_start(&mut walk, cpu, now) {
            return;
        }
        loop {
            let next = drawn.m.p.nohz_balance_next(&mut walk, now);
            if next >= NO_CPU {
                break;
            }
            drawn.m.p.update_blocked_averages(next, now);
            rebalance(drawn, next, CPU_IDLE, now);
        }
        drawn.m.p.nohz_balance_end(&mut walk, now);
    });
}

/// A task's life on a queue, in an order that an engine could take.
#[test]
fn queues_change_alike() {
    for_states(10, 10_000, |generator, drawn| {
        let (task, cpu, now) = (generator.task(drawn), generator.cpu(drawn), generator.now());
        let p = &mut drawn.m.p;
        p.set_ttwu_pending(cpu, generator.chance(2));
        match p.task[task as usize] {
            Task { on_rq: 0, .. } => {
                p.set_task_cpu(task, cpu);
                let flags = generator.pick(&[ENQUEUE_WAKEUP, ENQUEUE_WAKEUP | ENQUEUE_MIGRATED]);
                p.enqueue_task(task, flags, now);
                p.sample_avg_idle(cpu, now);
            }
            Task { delayed: 1, .. } => p.requeue_delayed(task, now),
            _ => {}
        }
        let cpu = p.task[task as usize].cpu.into();
        p.put_prev_task(cpu, now);
        p.set_next_task(cpu, task, now);
        let later = now + generator.rng.random_range(0..50_000_000);
        p.update_curr(cpu, later);
        p.task_tick(cpu, later);
        let rt = p.task[task as usize].rt_priority != 0;
        if rt {
            p.requeue_task_rt(task);
        }
        match generator.pick(&[0, 1, 2]) {
            0 if rt => p.dequeue_task(task, DEQUEUE_SLEEP, later),
            0 => p.delay_dequeue(task, later),
            1 => p.dequeue_task(task, DEQUEUE_SLEEP, later),
            _ => {
                p.dequeue_task(task, 0, later);
                p.task_dead(task);
            }
        }
        p.set_next_task(cpu, cpu, later);
    });
}

/// The group with the greatest number has none below it; its tasks go to its parent.
fn destroy_last_group(drawn: &mut Drawn, now: u64) {
    let group = drawn.m.p.root.nr_task_groups;
    let parent = drawn.m.p.task_group[group as usize].parent;
    for &task in &drawn.tasks {
        if drawn.m.p.task[task as usize].task_group != group {
            continue;
        }
        if drawn.m.p.task[task as usize].on_rq != 0 {
            drawn.m.p.dequeue_task(task, DEQUEUE_SLEEP, now);
        }
        drawn.m.p.task_change_group(task, parent, now);
    }
    drawn.m.p.destroy_task_group(group);
}

#[test]
fn task_groups_count_alike() {
    let mut shared = 0;
    for_states(11, 6_000, |generator, drawn| {
        let (task, cpu, now) = (generator.task(drawn), generator.cpu(drawn), generator.now());
        let p = &mut drawn.m.p;
        p.update_blocked_averages(cpu, now);
        p.cpu_util(cpu);
        p.task_util_est(task);
        p.cpu_runnable_load(cpu);
        p.distance(cpu, generator.rng.random_range(0..p.root.nr_cpu_ids));
        let throttled = generator.rng.random_range(0..=p.root.nr_task_groups);
        if generator.chance(2) {
            p.throttle_cfs_rq(throttled, cpu, now);
        }
        let alone = p.task[task as usize].avg.load_avg;
        shared += u32::from(p.task_h_load(task) < alone);
        if generator.chance(100) {
            // Mostly one that is not there; those beyond the first are not copied to the kernel.
            let parent =
                generator.rng.random_range(0..NR_TASK_GROUPS).min(p.root.nr_task_groups + 1);
            p.create_task_group(parent, 1024);
        }
        let group = generator.rng.random_range(0..=p.root.nr_task_groups);
        p.set_task_group_shares(group, generator.pick(&[2, 1024, 10_240]));
        if p.task[task as usize].on_rq == 0 {
            let group = generator.rng.random_range(0..=drawn.m.p.root.nr_task_groups);
            if generator.chance(2) {
                drawn.m.p.task[task as usize].avg.last_update_time = 0;
            }
            drawn.m.p.task_change_group(task, group, now);
            drawn.m.p.place_new_task(task, cpu);
            drawn.m.p.enqueue_task(task, 0, now);
        } else if generator.chance(2) {
            let Task { cpu, task_group, .. } = drawn.m.p.task[task as usize];
            if task_group != ROOT_TASK_GROUP {
                drawn.m.p.group_rq[task_group as usize][usize::from(cpu)].delayed = 1;
            }
            drawn.m.p.dequeue_task(task, DEQUEUE_MIGRATE, now + 2_000_000);
            drawn.m.p.dequeue_delayed_group(task_group, cpu.into(), now + 3_000_000);
        }
        drawn.m.p.unthrottle_cfs_rq(throttled, cpu, now + 5_000_000);
        if generator.chance(4) {
            destroy_last_group(drawn, now + 6_000_000);
        }
    });
    assert!(shared > 300, "only {shared} tasks share a task group's load");
}
