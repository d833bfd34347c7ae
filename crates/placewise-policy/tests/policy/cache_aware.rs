//! Threads of a process gather on an LLC: `cache_aware.h` and `llc_balance.h`.

use placewise_policy::*;

use super::common::{LLC_BYTES, Machine, NOW, Shape, TICK, moved};

/// The level above the LLCs of `Shape::TWO_LLCS` and `Shape::TWO_NODES`.
const TOP: u32 = 1;

/// An epoch of 10 ms is two ticks of 4 ms.
const EPOCH: u64 = 2 * TICK;

const RFC0: (&str, &str) = ("v6.14", "cache-aware-rfc0");
const RFC3: (&str, &str) = ("v6.15", "cache-aware-rfc3");
const V1: (&str, &str) = ("v6.17", "cache-aware-v1");
const MERGED: (&str, &str) = ("v7.3", "baseline");
const OFF: (&str, &str) = ("v7.3", "set:llc_enabled=0");

fn machine((kernel, policy): (&str, &str), shape: Shape) -> Machine {
    Machine::new(Policy::parse(kernel, policy).unwrap().profile, shape)
}

/// A process of `threads` tasks, not queued yet.
fn process(m: &mut Machine, threads: u32, footprint: u64) -> Vec<u32> {
    let leader = m.new_task();
    m.p.start_process(leader, footprint);
    let thread = |m: &mut Machine| {
        let thread = m.new_task();
        m.p.copy_task(thread, leader, 0);
        thread
    };
    std::iter::once(leader).chain((1..threads).map(|_| thread(m)).collect::<Vec<_>>()).collect()
}

/// Each task has its CPU for itself from `from` on for `epochs`, with a tick at the end of each.
fn run(m: &mut Machine, on: &[(u32, u32)], from: u64, epochs: u64) {
    for &(task, cpu) in on {
        m.rq(cpu).curr = task;
        m.task(task).exec_start = from;
    }
    for epoch in 1..=epochs {
        let now = from + epoch * EPOCH;
        on.iter().for_each(|&(_, cpu)| _ = m.p.update_curr(cpu, now));
        on.iter().for_each(|&(_, cpu)| m.p.task_tick(cpu, now));
    }
    // What was found at the last tick shows when they run on.
    on.iter().for_each(|&(_, cpu)| _ = m.p.update_curr(cpu, from + epochs * EPOCH + 1));
    on.iter().for_each(|&(_, cpu)| m.rq(cpu).curr = cpu);
}

/// The LLC that a task prefers.
fn preferred(m: &mut Machine, task: u32) -> Option<u16> {
    m.task(task).preferred_llc.checked_sub(1)
}

fn preferred_after(of: (&str, &str), shape: Shape, threads: u32, footprint: u64) -> Option<u16> {
    let mut m = machine(of, shape);
    let tasks = process(&mut m, threads, footprint);
    let on: Vec<(u32, u32)> = tasks.iter().map(|&task| (task, (4 + task - tasks[0]) % 8)).collect();
    run(&mut m, &on, NOW, 8);
    preferred(&mut m, tasks[0])
}

#[test]
fn a_process_prefers_the_llc_where_its_threads_run() {
    for of in [RFC0, RFC3, V1, MERGED] {
        assert_eq!(preferred_after(of, Shape::TWO_LLCS, 2, 1), Some(1), "{of:?}");
    }
    for of in [OFF, ("v6.17", "baseline"), ("v7.3", "set:llc_aggr_tolerance=0")] {
        assert_eq!(preferred_after(of, Shape::TWO_LLCS, 2, 1), None, "{of:?}");
    }
}

/// A parent with `hint` on CPU 4, and a process that it creates on CPU 5, whose preference this is.
fn preferred_by_child(hint: u32, footprint: u64) -> Option<u16> {
    let mut m = machine(MERGED, Shape::TWO_NODES);
    let parent = process(&mut m, 1, footprint)[0];
    m.task(parent).hint = hint as u8;
    let child = m.new_task();
    m.p.copy_task(child, parent, 4);
    m.p.start_process(child, footprint);
    run(&mut m, &[(parent, 4), (child, 5)], NOW, 8);
    preferred(&mut m, child)
}

#[test]
fn a_process_that_shares_the_cache_of_its_parent_gathers_with_it() {
    assert_eq!(preferred_by_child(0, 1), None, "a process of one thread");
    assert_eq!(preferred_by_child(HINT_SHARE_CACHE, 1), Some(1));
    let most = LLC_BYTES * 2 / 3;
    assert_eq!(preferred_by_child(HINT_SHARE_CACHE, most), None, "the memory of both is too much");
}

#[test]
fn where_there_is_one_llc_none_is_preferred() {
    assert_eq!(preferred_after(MERGED, Shape::SMT, 2, 1), None);
}

#[test]
fn a_single_thread_has_a_preference_in_the_first_rfc_only() {
    let single = |of| preferred_after(of, Shape::TWO_LLCS, 1, 1);
    assert_eq!([RFC0, RFC3, V1, MERGED].map(single), [Some(1), None, None, None]);
}

#[test]
fn a_process_with_more_running_threads_than_an_llc_has_cores_is_left_alone() {
    // Their average ends one below their number. v1: more than 4; as merged: more than 80 % of 4.
    let with =
        |threads| [RFC3, V1, MERGED].map(|of| preferred_after(of, Shape::TWO_LLCS, threads, 1));
    assert_eq!(with(4), [Some(1), Some(1), Some(1)]);
    assert_eq!(with(5), [Some(1), Some(1), None]);
    assert_eq!(with(6), [Some(1), None, None]);
    for tolerance in [2, 100] {
        let knob = format!("set:llc_aggr_tolerance={tolerance}");
        assert_eq!(preferred_after(("v7.3", &knob), Shape::TWO_LLCS, 6, 1), Some(1));
    }
}

#[test]
fn a_process_with_more_memory_than_an_llc_is_left_alone() {
    let with = |of, shape, bytes| preferred_after(of, shape, 2, bytes);
    let more = LLC_BYTES + 1;
    assert_eq!(with(RFC3, Shape::TWO_NODES, more), Some(1), "nobody asks");
    assert_eq!(with(V1, Shape::TWO_LLCS, more), None);
    assert_eq!(with(V1, Shape::TWO_LLCS, LLC_BYTES - 1), Some(1));
    assert_eq!(with(MERGED, Shape::TWO_LLCS, more), Some(1), "NUMA balancing does not count");
    assert_eq!(with(MERGED, Shape::TWO_NODES, more), None);
    assert_eq!(with(MERGED, Shape::TWO_NODES, LLC_BYTES), Some(1));
    let tolerant = ("v7.3", "set:llc_aggr_tolerance=2");
    assert_eq!(with(tolerant, Shape::TWO_NODES, 257 * LLC_BYTES), Some(1));
    assert_eq!(with(tolerant, Shape::TWO_NODES, 257 * LLC_BYTES + 1), None);
}

#[test]
fn a_preference_changes_for_twice_the_occupancy_only() {
    let later = |of, threads_there: usize| {
        let mut m = machine(of, Shape::TWO_LLCS);
        let tasks = process(&mut m, 4, 1);
        run(&mut m, &[(tasks[0], 0)], NOW, 8);
        assert_eq!(preferred(&mut m, tasks[0]), Some(0));
        let there = [(tasks[1], 4), (tasks[2], 5), (tasks[3], 6)];
        let on: Vec<_> =
            std::iter::once((tasks[0], 0)).chain(there[..threads_there].to_vec()).collect();
        run(&mut m, &on, NOW + 8 * EPOCH, 12);
        preferred(&mut m, tasks[0])
    };
    // Two CPUs are not more than twice one of equal occupancy; in the first RFC the most is enough.
    assert_eq!([RFC0, RFC3, V1, MERGED].map(|of| later(of, 1)), [Some(0); 4]);
    assert_eq!([RFC0, MERGED].map(|of| later(of, 2)), [Some(1), Some(0)]);
    assert_eq!([RFC0, RFC3, V1, MERGED].map(|of| later(of, 3)), [Some(1); 4]);
}

#[test]
fn a_preference_is_forgotten_50_ms_after_the_last_look() {
    let after = |epochs: u64| {
        let mut m = machine(MERGED, Shape::TWO_LLCS);
        let tasks = process(&mut m, 2, 1);
        run(&mut m, &[(tasks[0], 4)], NOW, 4);
        let later = NOW + (4 + epochs) * EPOCH;
        m.rq(4).curr = tasks[1];
        m.task(tasks[1]).exec_start = later - 1;
        m.p.update_curr(4, later);
        preferred(&mut m, tasks[1])
    };
    assert_eq!((after(5), after(6)), (Some(1), None));
}

#[test]
fn in_the_posted_series_less_than_a_32nd_of_an_llc_is_no_preference() {
    // 3 % of one CPU of 4 is less than a 32nd of all, 50 % more.
    let with_share = |of, others: u64| {
        let mut m = machine(of, Shape::TWO_LLCS);
        let tasks = process(&mut m, 2, 1);
        let stranger = m.new_task();
        for epoch in 0..8 {
            let from = NOW + epoch * EPOCH;
            for (task, begin, end) in [(stranger, 0, others), (tasks[0], others, EPOCH)] {
                m.rq(4).curr = task;
                m.task(task).exec_start = from + begin;
                m.p.update_curr(4, from + end);
            }
            m.p.task_tick(4, from + EPOCH);
        }
        m.task(tasks[0]).exec_start = NOW + 8 * EPOCH;
        m.p.update_curr(4, NOW + 8 * EPOCH + 1);
        preferred(&mut m, tasks[0])
    };
    assert_eq!(with_share(V1, EPOCH / 2), Some(1));
    assert_eq!(with_share(V1, EPOCH - EPOCH / 32), None);
    assert_eq!(with_share(MERGED, EPOCH - EPOCH / 32), Some(1));
}

#[test]
fn a_process_ends_with_its_last_thread() {
    let mut m = machine(MERGED, Shape::TWO_LLCS);
    let tasks = process(&mut m, 2, 1);
    let number = m.task(tasks[0]).process;
    m.p.task_dead(tasks[0]);
    let others = process(&mut m, 1, 1);
    assert_ne!(m.task(others[0]).process, number, "a thread is left");
    m.p.task_dead(tasks[1]);
    let others = process(&mut m, 1, 1);
    assert_eq!(m.task(others[0]).process, number);
}

/// Two tasks on CPU 4, one on CPU 1: CPU 0 has no reason to pull. The task that waits on CPU 4 prefers
/// `llc`.
fn even(of: (&str, &str), llc: Option<u16>) -> (Machine, u32) {
    let mut m = machine(of, Shape::TWO_LLCS);
    m.p.root.nr_processes = 1;
    m.queue(1, 1);
    let waiting = m.queue(4, 2)[1];
    m.rq(4).mru_tail = waiting;
    m.task(waiting).preferred_llc = llc.map_or(0, |llc| llc + 1);
    m.task(waiting).avg.util_avg = 0;
    relist(&mut m, 4, waiting);
    (m, waiting)
}

/// Puts `task` at the tail of the list of `cpu`, which has two.
fn relist(m: &mut Machine, cpu: u32, task: u32) {
    let runs = m.rq(cpu).curr;
    (m.rq(cpu).mru_head, m.rq(cpu).mru_tail) = (runs, task);
    (m.task(runs).mru_prev, m.task(runs).mru_next) = (NO_TASK, task);
    (m.task(task).mru_prev, m.task(task).mru_next) = (runs, NO_TASK);
}

#[test]
fn a_task_is_pulled_to_the_llc_that_it_prefers() {
    for of in [RFC3, V1, MERGED] {
        let (mut m, waiting) = even(of, Some(0));
        assert_eq!(moved(&m.balance(0, TOP, CPU_IDLE)), [waiting], "{of:?}");
        for llc in [None, Some(1)] {
            let (mut m, _) = even(of, llc);
            assert!(moved(&m.balance(0, TOP, CPU_IDLE)).is_empty(), "{of:?} {llc:?}");
        }
    }
    for of in [OFF, ("v6.15", "baseline"), RFC0] {
        let (mut m, _) = even(of, Some(0));
        assert!(moved(&m.balance(0, TOP, CPU_IDLE)).is_empty(), "{of:?}");
    }
}

#[test]
fn a_full_llc_takes_nobody_in_unless_theirs_is_as_full() {
    // The CPUs of either LLC are used so far; 75 % is where one without SMT is full.
    let pulls = |of, here: u64, there: u64| {
        let (mut m, _) = even(of, Some(0));
        for (first, util) in [(0, here), (4, there)] {
            (first..first + 4).for_each(|cpu| m.rq(cpu).cfs.avg.util_avg = util);
        }
        !moved(&m.balance(0, TOP, CPU_IDLE)).is_empty()
    };
    assert!(pulls(MERGED, 700, 100), "it fits");
    assert!(!pulls(MERGED, 800, 600), "more than 20 % above");
    assert!(pulls(MERGED, 800, 700), "less than 20 % above");
    assert!(!pulls(V1, 700, 500), "v1 has 50 % for all");
    assert!(pulls(V1, 500, 100));
}

#[test]
fn the_group_with_most_tasks_for_this_llc_is_relieved() {
    let shape = Shape { llcs: 3, ..Shape::TWO_LLCS };
    for of in [RFC3, V1, MERGED] {
        let mut m = machine(of, shape);
        m.p.root.nr_processes = 1;
        m.queue(1, 1);
        let one = m.queue(4, 2);
        let two = m.queue(8, 3);
        let prefer = [one[1], two[1], two[2]];
        prefer.iter().for_each(|&task| m.task(task).preferred_llc = 1);
        let result = m.balance(0, TOP, CPU_IDLE);
        assert_eq!((result.src, result.nr), (8, 1), "{of:?}");
    }
}

/// Four tasks in LLC 1, two of them on CPU 4: CPU 0 pulls one of these, unless it prefers to stay.
fn uneven(of: (&str, &str), llc: u16) -> (Machine, u32) {
    let mut m = machine(of, Shape::TWO_LLCS);
    m.p.root.nr_processes = 1;
    let waiting = m.queue(4, 2)[1];
    m.queue_each([5, 6], 1);
    relist(&mut m, 4, waiting);
    m.task(waiting).preferred_llc = llc + 1;
    // No pass has summed this up: nothing is full.
    (4..8).for_each(|cpu| m.rq(cpu).cfs.avg.util_avg = 100);
    m.task(waiting).avg.util_avg = 50;
    (m, waiting)
}

#[test]
fn a_task_stays_in_the_llc_that_it_prefers() {
    for of in [RFC3, V1, MERGED] {
        let (mut m, _) = uneven(of, 1);
        assert!(moved(&m.balance(0, TOP, CPU_IDLE)).is_empty(), "{of:?}");
        let reasons = m.sd(0, TOP).stats.lb_moved_nothing[CPU_IDLE as usize];
        assert_eq!(reasons[LB_LLC as usize], 1, "{of:?}");
        let (mut m, waiting) = uneven(of, 0);
        assert_eq!(moved(&m.balance(0, TOP, CPU_IDLE)), [waiting], "{of:?}");
    }
    let (mut m, waiting) = uneven(OFF, 1);
    assert_eq!(moved(&m.balance(0, TOP, CPU_IDLE)), [waiting]);
}

#[test]
fn as_merged_what_stays_is_no_failure_and_failures_end_it() {
    let failed = |of| {
        let (mut m, _) = uneven(of, 1);
        m.balance(0, TOP, CPU_IDLE);
        m.sd(0, TOP).nr_balance_failed
    };
    assert_eq!([RFC3, V1, MERGED].map(failed), [1, 1, 0]);
    let after = |of, failures: u32| {
        let (mut m, _) = uneven(of, 1);
        m.sd(0, TOP).nr_balance_failed = m.span(0, TOP).cache_nice_tries + failures;
        m.balance(0, TOP, CPU_IDLE).nr
    };
    assert_eq!((after(MERGED, 0), after(MERGED, 1), after(V1, 1)), (0, 1, 0));
}

#[test]
fn an_llc_that_is_full_lets_its_tasks_go_to_one_that_is_used_much_less() {
    let leaves = |there: u64, here: u64| {
        let (mut m, _) = uneven(MERGED, 1);
        (4..8).for_each(|cpu| m.rq(cpu).cfs.avg.util_avg = there);
        (0..4).for_each(|cpu| m.rq(cpu).cfs.avg.util_avg = here);
        m.balance(0, TOP, CPU_IDLE).nr == 1
    };
    assert!(leaves(900, 100));
    assert!(!leaves(700, 100), "there is room");
    assert!(!leaves(900, 740), "it would be wanted back");
}

#[test]
fn the_only_task_of_a_cpu_is_not_pushed_out_of_its_llc() {
    let pushes = |of, llc: u16| {
        let mut m = machine(of, Shape::TWO_LLCS);
        m.p.root.nr_processes = 1;
        m.queue_each([4, 5, 6, 7], 1);
        let lone = m.rq(4).curr;
        m.task(lone).preferred_llc = llc + 1;
        m.sd(0, TOP).nr_balance_failed = 9;
        m.balance(0, TOP, CPU_IDLE).active_balance
    };
    assert_eq!([RFC3, V1, MERGED, OFF].map(|of| pushes(of, 1)), [0, 0, 0, 1]);
    assert_eq!(pushes(("v6.17", "baseline"), 1), 1);
}

#[test]
fn a_lone_task_is_pushed_at_once_to_the_llc_that_it_prefers() {
    let pushed = |of, llc: u16| {
        let mut m = machine(of, Shape::TWO_LLCS);
        m.p.root.nr_processes = 1;
        m.queue_each([4, 5], 1);
        let lone = m.rq(5).curr;
        m.task(lone).preferred_llc = llc + 1;
        let result = m.balance(0, TOP, CPU_IDLE);
        (result.active_balance == 1).then_some(result.active_src)
    };
    assert_eq!([RFC3, V1, MERGED].map(|of| pushed(of, 0)), [Some(5); 3]);
    assert_eq!(pushed(OFF, 0), None);
}

#[test]
fn the_posted_series_take_first_what_wants_to_come() {
    let order = |of| {
        let mut m = machine(of, Shape::TWO_LLCS);
        m.p.root.nr_processes = 1;
        let tasks = m.queue(4, 5);
        // From the tail: the one that runs, stays, does not mind, minds another, comes.
        let prefer = [0, 2, 0, 3, 1];
        tasks.iter().zip(prefer).for_each(|(&task, llc)| m.task(task).preferred_llc = llc);
        let result = m.balance(0, TOP, CPU_IDLE);
        let at = |task: &u32| tasks.iter().position(|known| known == task).unwrap();
        moved(&result).iter().map(at).collect::<Vec<_>>()
    };
    assert_eq!(order(V1), [4]);
    assert_eq!(order(MERGED), [4]);
    assert_ne!(order(("v6.17", "baseline"))[0], 4);
}

/// A wakee last on CPU 0, whose process prefers CPU 5, is woken on CPU 1.
fn wake(of: (&str, &str), busy: &[u32]) -> u32 {
    let mut m = machine(of, Shape::TWO_LLCS);
    let tasks = process(&mut m, 2, 1);
    m.p.process[1].preferred_cpu = 5;
    m.queue_each(busy.iter().copied(), 1);
    m.p.llc.iter_mut().for_each(|llc| llc.nr_idle_scan = llc.size);
    m.p.select_task_rq(tasks[0], 0, 1, WF_TTWU, NOW)
}

#[test]
fn the_first_rfc_looks_for_a_cpu_where_the_process_has_run_most() {
    assert_eq!(wake(RFC0, &[1]), 5);
    assert_eq!(wake(("v6.14", "baseline"), &[1]), 0);
    assert_eq!(wake(RFC0, &[1, 5]) / 4, 1, "another of that LLC");
    assert_eq!(wake(RFC0, &[1, 4, 5, 6, 7]), 0, "then where it comes from");
    assert_eq!(wake(MERGED, &[1]), 0, "later ones leave wakeups alone");
}

#[test]
fn in_the_first_rfc_a_task_is_hot_where_its_process_occupies_more() {
    let pulls = |of, here: u64, there: u64| {
        let mut m = machine(of, Shape::TWO_LLCS);
        let waiting = m.queue(4, 2)[1];
        m.queue_each([5, 6], 1);
        relist(&mut m, 4, waiting);
        m.p.start_process(waiting, 1);
        m.task(waiting).exec_start = NOW; // it has just run
        for (cpu, occupancy) in [(0, here), (4, there)] {
            m.p.process_rq[cpu][1].occupancy = occupancy;
        }
        m.balance(0, TOP, CPU_IDLE).nr == 1
    };
    assert!(pulls(RFC0, 10, 10) && !pulls(RFC0, 9, 10));
    assert!(!pulls(("v6.14", "baseline"), 10, 10), "hot by the clock");
}
