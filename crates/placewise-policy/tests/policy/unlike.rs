//! CPUs of unlike capacity and priority, and CPUs that RT tasks use up.

use super::common::{Machine, NOW, Shape, TICK, moved};
use placewise_policy::kernel::*;
use placewise_policy::*;

const FOUR: Shape = Shape { packages: 1, nodes: 1, llcs: 1, cores: 4, threads: 1 };
const MS: u64 = 1_000_000;

/// Of enum group_type.
const GROUP_HAS_SPARE: u32 = 0;
const GROUP_ASYM_PACKING: u32 = 4;

fn rt_task(m: &mut Machine, priority: u8, cpu: u32) -> u32 {
    let task = m.new_task();
    m.task(task).rt_priority = priority;
    m.task(task).cpu = cpu as u16;
    task
}

/// An RT task that runs on `cpu` and has done so for so long that nothing is left.
fn rt_hog(m: &mut Machine, cpu: u32) -> u32 {
    let task = rt_task(m, 50, cpu);
    m.rq(cpu).avg_rt.last_update_time = NOW - 400 * MS;
    m.p.enqueue_task(task, 0, NOW - 400 * MS);
    m.p.set_next_task(cpu, task, NOW - 400 * MS);
    m.p.task_tick(cpu, NOW);
    task
}

/// The utilisation of a task that runs for `run` of each 8 ms on CPU 0, of a capacity.
fn util_of_periodic(capacity: u32, run: u64) -> u64 {
    let mut m = Machine::new(V6_0, FOUR);
    m.p.root.asym_capacity = 1;
    m.p.cpu[0].capacity_orig = capacity;
    m.rq(0).clock_rests = 1;
    let task = m.new_task();
    for period in 0..60 {
        let now = NOW + period * 8 * MS;
        m.p.enqueue_task(task, ENQUEUE_WAKEUP, now);
        m.p.set_next_task(0, task, now);
        m.p.dequeue_task(task, DEQUEUE_SLEEP, now + run);
        m.p.set_next_task(0, 0, now + run);
    }
    m.task(task).avg.util_avg
}

#[test]
fn the_same_work_shows_the_same_utilisation_on_all_cpus() {
    let (big, little) = (util_of_periodic(1024, 2 * MS), util_of_periodic(512, 4 * MS));
    assert!(big.abs_diff(little) <= 12, "{big} on the big CPU, {little} on the little one");
    let unscaled = util_of_periodic(1024, 4 * MS);
    assert!(unscaled > big + 200, "{unscaled} where the clock is not scaled");
}

#[test]
fn a_new_task_gets_half_of_what_its_cpu_has_left() {
    let mut m = Machine::new(V6_0, FOUR);
    m.p.cpu[0].capacity_orig = 400;
    let child = m.new_task();
    m.p.place_new_task(child, 0);
    assert_eq!(m.task(child).avg.util_avg, 200);
}

#[test]
fn fair_tasks_have_no_part_in_what_rt_tasks_use() {
    let mut m = Machine::new(V6_0, FOUR);
    let fair = m.queue(0, 1)[0];
    let avg = &mut m.rq(0).cfs.avg;
    (avg.last_update_time, avg.util_sum) = (NOW, 1024 * (47742 - 1024));
    m.rq(0).cfs.load_weight = 1024;
    let before = m.rq(0).cfs.avg.util_avg;
    let rt = rt_task(&mut m, 50, 0);
    m.p.enqueue_task(rt, 0, NOW);
    m.p.put_prev_task(0, NOW);
    m.p.set_next_task(0, rt, NOW);
    // The RT task has gone when the fair ones are looked at again.
    m.p.dequeue_task(rt, DEQUEUE_SLEEP, NOW + 32 * MS);
    m.p.set_next_task(0, fair, NOW + 32 * MS);
    let after = m.rq(0).cfs.avg.util_avg;
    assert!(after < before * 6 / 10, "{before} before 32 ms of another's, {after} after");
    assert!((480..560).contains(&m.rq(0).avg_rt.util_avg), "{}", m.rq(0).avg_rt.util_avg);
}

#[test]
fn what_rt_tasks_use_is_taken_off_the_capacity_by_the_next_pass() {
    let mut m = Machine::new(V6_0, FOUR);
    rt_hog(&mut m, 0);
    assert_eq!(m.rq(0).capacity, 1024);
    m.balance(0, 0, CPU_NOT_IDLE);
    assert_eq!(m.rq(0).capacity, 1);
    assert_eq!(m.group(0, 0).capacity, 1);

    let mut m = Machine::new(V6_0, Shape::TWO_LLCS);
    rt_hog(&mut m, 0);
    m.balance(0, 0, CPU_NOT_IDLE);
    m.balance(1, 1, CPU_IDLE);
    let group = *m.group(0, 1);
    assert_eq!((group.capacity, group.min_capacity, group.max_capacity), (3 * 1024 + 1, 1, 1024));
}

#[test]
fn newly_idle_passes_sum_up_capacity_once_in_an_interval() {
    let mut m = Machine::new(V5_19, FOUR);
    rt_hog(&mut m, 0);
    m.group(0, 0).next_update = NOW / TICK + 1;
    m.balance(0, 0, CPU_NEWLY_IDLE);
    assert_eq!(m.rq(0).capacity, 1024);
    m.group(0, 0).next_update = NOW / TICK;
    m.balance(0, 0, CPU_NEWLY_IDLE);
    assert_eq!(m.rq(0).capacity, 1);
    assert_eq!(m.group(0, 0).next_update, NOW / TICK + 1);
}

/// A pass of idle CPU 0 beside CPU 2 with a task that runs alone, of which RT tasks leave half.
fn reduced(profile: Profile) -> BalanceResult {
    let mut m = Machine::new(profile, FOUR);
    m.p.root.rt_seen = 1;
    m.queue(2, 1);
    m.rq(2).capacity = 512;
    m.group(2, 0).capacity = 512;
    m.balance(0, 0, CPU_IDLE)
}

#[test]
fn a_lone_task_on_a_cpu_of_reduced_capacity_is_pushed() {
    for profile in [V6_0, V6_12, V6_18, V7_3] {
        let result = reduced(profile);
        assert_eq!((result.active_balance, result.active_src, result.active_dst), (1, 2, 0));
        let unmarked = Profile { misfit_reduced_capacity: false, ..profile };
        assert_eq!(reduced(unmarked).active_balance, 0);
    }
    assert_eq!(reduced(V5_19).active_balance, 0, "not yet");
}

#[test]
fn a_task_is_no_misfit_on_the_biggest_cpu_it_may_use() {
    let misfit = |profile, cpus: &[u32]| {
        let mut m = Machine::new(profile, FOUR);
        m.p.root.asym_capacity = 1;
        (0..2).for_each(|cpu| {
            m.p.cpu[cpu].capacity_orig = 512;
            m.p.rq[cpu].capacity = 512;
        });
        let task = m.queue(0, 1)[0];
        m.allow(task, cpus);
        m.p.set_next_task(0, task, NOW);
        m.rq(0).misfit_task_load > 0
    };
    for profile in [V6_0, V6_12] {
        assert!(misfit(profile, &[0, 1, 3]));
        assert!(!misfit(profile, &[0]), "pinned");
    }
    assert!(misfit(V6_0, &[0, 1]));
    assert!(!misfit(V6_12, &[0, 1]));
}

#[test]
fn a_misfit_in_the_own_group_is_none_of_its_business() {
    let mut m = Machine::new(V6_0, Shape::TWO_LLCS);
    m.span(0, 1).flags |= SD_ASYM_CPUCAPACITY;
    m.queue(1, 1);
    m.rq(1).misfit_task_load = 700;
    m.balance(0, 1, CPU_IDLE);
    assert_eq!(m.p.lb_stats.local.misfit_task_load, 0);
    assert_eq!(m.p.lb_stats.local.group_type, GROUP_HAS_SPARE);
}

/// The group of CPU 4 or that of CPU 8, of three LLCs with a misfit task each in the last two.
#[test]
fn of_groups_alike_the_later_one_won_until_v6_12() {
    let shape = Shape { llcs: 3, ..Shape::TWO_LLCS };
    let busiest = |profile, second, third| {
        let mut m = Machine::new(profile, shape);
        m.span(0, 1).flags |= SD_ASYM_CPUCAPACITY;
        for (cpu, load) in [(4, second), (8, third)] {
            m.queue(cpu, 1);
            m.rq(cpu).misfit_task_load = load;
            m.rq(cpu).capacity = 500;
            m.group(cpu, 1).max_capacity = 500;
        }
        m.balance(0, 1, CPU_IDLE).active_src
    };
    assert_eq!((busiest(V6_0, 700, 700), busiest(V6_12, 700, 700)), (8, 4));
    for profile in [V6_0, V6_12] {
        assert_eq!((busiest(profile, 700, 699), busiest(profile, 699, 700)), (4, 8));
    }
}

/// Idle CPU 0 of a machine of cores of two threads, each with the priority given for it; thread t of
/// core c is CPU c + 4 t. True if asym packing marks the busiest group or asks for a push.
fn packs(profile: Profile, priorities: [i32; 8], busy: &[u32]) -> bool {
    let mut m = Machine::new(profile, Shape::SMT);
    for (cpu, priority) in priorities.into_iter().enumerate() {
        m.p.cpu[cpu].asym_priority = priority;
    }
    m.span(0, 1).flags |= SD_ASYM_PACKING;
    busy.iter().for_each(|&cpu| {
        m.queue(cpu, 1);
    });
    m.balance(0, 1, CPU_IDLE);
    m.p.lb_stats.busiest.group_type == GROUP_ASYM_PACKING
}

#[test]
fn siblings_decide_whether_priorities_count() {
    let best_first = [9, 1, 1, 1, 9, 1, 1, 1];
    let (v5_10, v6_0, v6_12) = (V5_10, V6_0, V6_12);
    for profile in [v5_10, v6_0, v6_12] {
        assert!(packs(profile, best_first, &[1]), "a lone thread of a lesser core");
        assert!(!packs(profile, [1; 8], &[1]), "equal ones");
    }
    // Beside a busy thread the idle one is no better place.
    assert!(packs(v5_10, best_first, &[1, 4]));
    assert!(!packs(v6_0, best_first, &[1, 4]), "one busy thread in both cores");
    assert!(!packs(v6_12, best_first, &[1, 4]));
    // A core with two busy threads is helped for that, not for its priority.
    assert!(packs(v5_10, best_first, &[1, 5]));
    assert!(!packs(v6_0, best_first, &[1, 5]));
    assert!(!packs(v6_12, best_first, &[1, 5]));
}

#[test]
fn a_busy_core_is_helped_by_a_lesser_cpu_since_v6_5() {
    let push = |profile| {
        let mut m = Machine::new(profile, Shape::SMT);
        (0..8).for_each(|cpu| m.p.cpu[cpu].asym_priority = if cpu % 4 == 1 { 9 } else { 1 });
        m.span(0, 1).flags |= SD_ASYM_PACKING;
        m.queue_each([1, 5], 1);
        m.balance(0, 1, CPU_IDLE).active_balance
    };
    assert_eq!((push(V6_0), push(V6_12)), (0, 1));
}

#[test]
fn a_preferred_idle_cpu_is_worth_a_kick_if_its_core_idles() {
    let kicked = |profile, sibling_busy| {
        let mut m = Machine::new(profile, Shape::SMT);
        m.p.cpu[0].asym_priority = 9;
        m.span(0, 1).flags |= SD_ASYM_PACKING;
        m.queue(1, 1);
        if sibling_busy {
            m.queue(4, 1);
        }
        m.p.nohz_balance_enter_idle(0);
        m.p.llc[0].nr_busy_cpus = 1;
        m.p.root.nohz_next_blocked = NOW;
        m.p.nohz_balancer_kick(1, NOW) == 0
    };
    for profile in [V6_0, V6_12] {
        assert!(kicked(profile, false));
    }
    assert!(kicked(V6_0, true));
    assert!(!kicked(V6_12, true));
}

#[test]
fn a_fully_busy_group_is_relieved_even_by_a_smaller_cpu() {
    let busiest = |queued: &[u32]| {
        let mut m = Machine::new(V6_0, Shape::TWO_LLCS);
        m.span(0, 1).flags |= SD_ASYM_CPUCAPACITY;
        m.rq(0).capacity = 500;
        queued.iter().for_each(|&cpu| {
            m.queue(cpu, 1);
        });
        m.balance(0, 1, CPU_IDLE);
        m.p.lb_stats.busiest.group
    };
    assert_eq!(busiest(&[4, 5]), u32::MAX, "two big CPUs are free there");
    assert_ne!(busiest(&[4, 5, 6, 7]), u32::MAX);
}

#[test]
fn rt_tasks_stand_by_priority_and_then_as_they_came() {
    let mut m = Machine::new(V6_0, FOUR);
    let [a, b, c, d] = [50, 60, 50, 1].map(|priority| rt_task(&mut m, priority, 2));
    for task in [a, b, c, d] {
        m.p.enqueue_task(task, 0, NOW);
    }
    let order = |m: &Machine| {
        let rq = &m.p.rq[2];
        let follow = |task: u32| (task != NO_TASK).then_some(task);
        let next = |&task: &u32| follow(m.p.task[task as usize].mru_next);
        std::iter::successors(follow(rq.rt_head), next).collect::<Vec<u32>>()
    };
    assert_eq!(order(&m), [b, a, c, d]);
    m.p.requeue_task_rt(a);
    assert_eq!(order(&m), [b, c, a, d]);
    m.p.dequeue_task(b, DEQUEUE_SLEEP, NOW);
    m.p.dequeue_task(d, DEQUEUE_SLEEP, NOW);
    assert_eq!(order(&m), [c, a]);
    assert_eq!((m.rq(2).nr_running, m.rq(2).rt_nr_running), (2, 2));
    assert_eq!(m.rq(2).cfs.h_nr_queued, 0);
}

/// Where an RT task of priority 50 that slept on CPU 1 is woken by CPU `waking`, while RT tasks of
/// these priorities run (0: none).
fn woken(priorities: [u8; 4], waking: u32, allowed: &[u32]) -> u32 {
    let mut m = Machine::new(V6_0, FOUR);
    for (cpu, priority) in (0..).zip(priorities).filter(|(_, priority)| *priority > 0) {
        let task = rt_task(&mut m, priority, cpu);
        m.p.enqueue_task(task, 0, NOW);
        m.p.set_next_task(cpu, task, NOW);
    }
    let wakee = rt_task(&mut m, 50, 1);
    m.allow(wakee, allowed);
    m.p.select_task_rq(wakee, 1, waking, WF_TTWU, NOW)
}

#[test]
fn an_rt_wakee_leaves_its_cpu_only_to_a_task_it_cannot_preempt() {
    let all = [0, 1, 2, 3];
    assert_eq!(woken([0, 0, 0, 0], 3, &all), 1);
    assert_eq!(woken([0, 49, 0, 0], 3, &all), 1, "a lesser one runs there");
    assert_eq!(woken([0, 50, 0, 0], 3, &all), 3, "the waking CPU is as good as any");
    assert_eq!(woken([40, 60, 30, 40], 3, &all), 2, "the least important work");
    assert_eq!(woken([60, 60, 50, 70], 3, &all), 1, "nowhere better");
    assert_eq!(woken([0, 60, 30, 0], 3, &[1, 2]), 2);
}

#[test]
fn waking_cpus_spread_rt_wakees_over_equal_cpus() {
    let mut m = Machine::new(V6_0, FOUR);
    for cpu in [0, 1] {
        let task = rt_task(&mut m, 60, cpu);
        m.p.enqueue_task(task, 0, NOW);
        m.p.set_next_task(cpu, task, NOW);
    }
    let wakee = rt_task(&mut m, 50, 1);
    let chosen: Vec<u32> = (0..3).map(|_| m.p.select_task_rq(wakee, 1, 0, WF_TTWU, NOW)).collect();
    assert_eq!(chosen, [2, 3, 2]);
}

#[test]
fn a_task_that_waits_behind_an_rt_task_is_detached() {
    let mut m = Machine::new(V6_0, FOUR);
    let waiting = m.queue(2, 1)[0];
    m.task(waiting).exec_start = 0;
    rt_hog(&mut m, 2);
    m.balance(2, 0, CPU_NOT_IDLE);
    let result = m.balance(0, 0, CPU_IDLE);
    assert_eq!(moved(&result), [waiting]);
}
