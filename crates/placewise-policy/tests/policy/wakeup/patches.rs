//! Published patches of the search for an idle CPU: a state in which each decides otherwise than its
//! kernel, and one in which it must not.

use placewise_policy::*;

use super::super::common::{Machine, NOW, Shape};
use super::lab::Lab;

/// Nanoseconds.
const US: u64 = 1_000;

fn policy(kernel: &str, patch: &str) -> Profile {
    Policy::parse(kernel, patch).unwrap().profile
}

/// Searches may look at a whole LLC.
fn machine(profile: Profile, shape: Shape) -> Machine {
    let mut m = Machine::new(profile, shape);
    for cpu in m.cpus() {
        let llc = m.p.cpu[cpu as usize].llc as usize;
        m.p.llc[llc].nr_idle_scan = m.p.llc[llc].size;
    }
    m
}

/// A task that last ran on `prev` is woken there.
fn wake(m: &mut Machine, prev: u32) -> (u32, SearchReason) {
    wake_at(m, prev, NOW)
}

fn wake_at(m: &mut Machine, prev: u32, now: u64) -> (u32, SearchReason) {
    let task = m.new_task();
    m.task(task).cpu = prev as u16;
    m.task(task).recent_used_cpu = prev as u16;
    let cpu = m.p.select_task_rq(task, prev, prev, WF_TTWU, now);
    (cpu, m.p.decision.search.into())
}

/// Puts `task` on `cpu`, where it runs.
fn run(m: &mut Machine, task: u32, cpu: u32, now: u64) {
    m.p.set_task_cpu(task, cpu);
    m.p.enqueue_task(task, ENQUEUE_WAKEUP, now);
    m.p.set_next_task(cpu, task, now);
}

/// The task that runs on `cpu` goes to sleep, and the CPU idles.
fn sleep(m: &mut Machine, task: u32, cpu: u32, now: u64) {
    m.p.update_curr(cpu, now);
    m.p.dequeue_task(task, DEQUEUE_SLEEP, now);
    m.p.set_next_task(cpu, cpu, now);
}

#[test]
fn sis_util_limits_the_search_that_expected_idle_time_would_not_end() {
    let search = |patch, scans| {
        let mut m = machine(policy("v5.19", patch), Shape::TWO_NODES);
        m.queue_each([0, 1, 2], 1);
        m.p.llc[0].nr_idle_scan = scans;
        (m.rq(0).wake_avg_idle, m.rq(0).wake_stamp) = (1_000_000, u64::MAX);
        wake(&mut m, 0)
    };
    for scans in [0, 2] {
        assert_eq!(search("baseline", scans), (3, SEARCH_IDLE_CPU));
        assert_eq!(search("sis-util", scans), (0, SEARCH_FAILED), "{scans} scans");
    }
    assert_eq!(search("sis-util", 3), (3, SEARCH_IDLE_CPU));
}

/// One node with two LLCs of four CPUs, the first of them busy; `idle` CPUs of the second.
fn busy_llc(patch: &str, idle: &[u32]) -> Machine {
    let mut m = machine(policy("v6.4", patch), Shape::TWO_LLCS);
    m.queue_each((0..8).filter(|cpu| !idle.contains(cpu)), 1);
    m
}

#[test]
fn sis_node_goes_on_to_the_other_llcs_of_the_node() {
    for patch in ["sis-node", "sd-idle-sibling"] {
        assert_eq!(wake(&mut busy_llc("baseline", &[6]), 0), (0, SEARCH_FAILED));
        assert_eq!(wake(&mut busy_llc(patch, &[6]), 0), (6, SEARCH_IDLE_CPU));
        let second = wake(&mut busy_llc(patch, &[4, 6]), 0);
        assert_eq!(second, (6, SEARCH_IDLE_CPU), "its first CPU is looked at last");
        assert_eq!(wake(&mut busy_llc(patch, &[2, 6]), 0), (2, SEARCH_IDLE_CPU), "its own first");
    }
}

#[test]
fn sis_node_searches_as_far_as_each_llc_lets_it() {
    let mut m = busy_llc("sis-node", &[6]);
    m.p.llc[1].nr_idle_scan = 1;
    assert_eq!(wake(&mut m, 0), (0, SEARCH_FAILED));
    (m.p.llc[0].nr_idle_scan, m.p.llc[1].nr_idle_scan) = (0, 2);
    assert_eq!(wake(&mut m, 0), (6, SEARCH_IDLE_CPU), "the own limit is its own");
}

#[test]
fn sis_node_stays_in_the_node() {
    let mut m = machine(policy("v6.4", "sis-node"), Shape::TWO_NODES);
    m.queue_each(0..4, 1);
    assert_eq!(wake(&mut m, 0), (0, SEARCH_FAILED));
}

#[test]
fn sis_node_takes_an_idle_core_of_another_llc_while_one_is_believed_in() {
    let shape = Shape { packages: 1, nodes: 1, llcs: 2, cores: 2, threads: 2 };
    // Cores of the second LLC: {2,6} and {3,7}.
    let mut m = machine(policy("v6.4", "sis-node"), shape);
    m.queue_each([0, 1, 4, 5, 2], 1);
    assert_eq!(wake(&mut m, 0), (3, SEARCH_IDLE_CPU), "the first idle CPU after its first");
    m.p.llc[1].has_idle_cores = 1;
    assert_eq!(wake(&mut m, 0), (3, SEARCH_IDLE_CORE));
    m.queue_each([7], 1);
    assert_eq!(wake(&mut m, 0).1, SEARCH_IDLE_CPU);
    assert_eq!(m.p.llc[1].has_idle_cores, 0, "there was none");
}

/// Four cores {c, c + 4}, all of them busy; a search from core 0 has failed.
fn failed_search(patch: &str) -> (Machine, Vec<u32>) {
    let mut m = machine(policy("v6.0", patch), Shape::SMT);
    let tasks: Vec<u32> = m.cpus().map(|_| m.new_task()).collect();
    tasks.iter().zip(0..).for_each(|(&task, cpu)| run(&mut m, task, cpu, NOW));
    assert_eq!(wake(&mut m, 0), (0, SEARCH_FAILED));
    (m, tasks)
}

#[test]
fn sis_filter_leaves_out_what_has_not_idled_since_a_search_failed() {
    let (mut m, tasks) = failed_search("sis-filter");
    assert_eq!(m.p.root.filtered.bits[0], 0xff);
    wake(&mut m, 0);
    assert_eq!(m.p.decision.scanned, 3, "target, prev's core, and no more");
    sleep(&mut m, tasks[6], 6, NOW);
    assert_eq!(m.p.root.filtered.bits[0], 0xff & !(1 << 6));
    assert_eq!(wake(&mut m, 0), (6, SEARCH_IDLE_CPU));

    let (mut m, tasks) = failed_search("baseline");
    assert_eq!(m.p.root.filtered.bits[0], 0);
    wake(&mut m, 0);
    assert_eq!(m.p.decision.scanned, 11);
    sleep(&mut m, tasks[6], 6, NOW);
    assert_eq!(wake(&mut m, 0), (6, SEARCH_IDLE_CPU));
}

#[test]
fn sis_filter_has_one_cpu_stand_for_its_core() {
    let (mut m, tasks) = failed_search("sis-filter");
    sleep(&mut m, tasks[6], 6, NOW);
    sleep(&mut m, tasks[2], 2, NOW);
    assert_eq!(m.p.root.filtered.bits[0], 0xff & !(1 << 6), "6 stands for 2");
    assert_eq!(wake(&mut m, 0), (6, SEARCH_IDLE_CORE));
    // 6 is busy and stays in; 2 is not, but 6 does not stand for it.
    run(&mut m, tasks[6], 6, NOW);
    run(&mut m, tasks[2], 2, NOW);
    sleep(&mut m, tasks[2], 2, NOW);
    assert_eq!(m.p.root.filtered.bits[0], 0xff & !(1 << 6 | 1 << 2));
}

#[test]
fn sis_filter_learns_nothing_from_a_search_that_its_limit_ended() {
    let mut m = machine(policy("v6.0", "sis-filter"), Shape::SMT);
    m.queue_each(0..8, 1);
    m.p.llc[0].nr_idle_scan = 7;
    assert_eq!(wake(&mut m, 0), (0, SEARCH_FAILED));
    assert_eq!(m.p.root.filtered.bits[0], 0);
    m.p.llc[0].nr_idle_scan = 8;
    wake(&mut m, 0);
    assert_eq!(m.p.root.filtered.bits[0], 0xff);
}

#[test]
fn cluster_scan_looks_at_the_targets_cluster_first() {
    for patch in ["cluster-scan", "cluster-scan-v9", "cluster-scan-v8"] {
        let search = |patch, idle: &[u32], prev| {
            let mut lab = Lab::clustered(policy("v6.6", patch));
            lab.busy_all((0..32).filter(|cpu| !idle.contains(cpu)));
            lab.wake(prev, 2)
        };
        // CPUs 0 to 3 are a cluster; the search begins behind CPU 2.
        assert_eq!(search("baseline", &[0, 5], 2), 5);
        assert_eq!(search(patch, &[0, 5], 2), 0);
        assert_eq!(search(patch, &[5], 2), 5, "then at the rest of the LLC");
    }
}

/// Four CPUs, of which 0 and 1 are busy and 2 is kept for a task that sleeps for 80 us again and
/// again, the last time since `NOW`; `idle` says whether 3 idles.
fn reserved(patch: &str, idle: bool) -> (Machine, u32) {
    let mut m = machine(policy("v6.6", patch), Shape::TWO_NODES);
    m.queue_each([0, 1], 1);
    if !idle {
        m.queue(3, 1);
    }
    let sleeper = m.new_task();
    sleep_again_and_again(&mut m, sleeper, 2, 80 * US);
    (m, sleeper)
}

/// Ten sleeps of `brief` ns on `cpu`, and one that begins at `NOW`.
fn sleep_again_and_again(m: &mut Machine, task: u32, cpu: u32, brief: u64) {
    for nth in (0..=10).rev() {
        let now = NOW - nth * (brief + US);
        run(m, task, cpu, now - US);
        sleep(m, task, cpu, now);
    }
}

#[test]
fn sis_cache_passes_by_a_cpu_that_is_kept_for_its_sleeper() {
    for patch in ["sis-cache-rfc", "sis-cache-v1", "sis-cache-v2"] {
        assert_eq!(wake(&mut reserved("baseline", true).0, 0), (2, SEARCH_IDLE_CPU));
        let (mut m, sleeper) = reserved(patch, true);
        assert_eq!(wake(&mut m, 0), (3, SEARCH_IDLE_CPU), "{patch}");
        let until = m.rq(2).reserved_until;
        assert!((NOW + 50 * US..NOW + 80 * US).contains(&until), "{}", until - NOW);
        assert_eq!(wake_at(&mut m, 0, until), (2, SEARCH_IDLE_CPU), "no longer");

        let back = m.p.select_task_rq(sleeper, 2, 0, WF_TTWU, NOW);
        assert_eq!(back, 2, "the sleeper gets it");
    }
}

#[test]
fn sis_cache_takes_a_kept_cpu_at_the_end_of_a_whole_search_since_v1() {
    assert_eq!(wake(&mut reserved("sis-cache-rfc", false).0, 0), (0, SEARCH_FAILED));
    let (mut m, _) = reserved("sis-cache-v1", false);
    assert_eq!(wake(&mut m, 0), (2, SEARCH_IDLE_CPU));
    m.p.llc[0].nr_idle_scan = 2;
    assert_eq!(wake(&mut m, 0), (0, SEARCH_FAILED), "the limit ends it");
}

#[test]
fn sis_cache_v2_passes_by_half_of_its_limit() {
    let mut m = machine(policy("v6.6", "sis-cache-v2"), Shape::TWO_NODES);
    m.queue(0, 1);
    (1..4).for_each(|cpu| m.rq(cpu).reserved_until = NOW + US);
    m.p.llc[0].nr_idle_scan = 3;
    assert_eq!(wake(&mut m, 0), (3, SEARCH_IDLE_CPU), "two of three");
    m.p.profile.sis_cache = SIS_CACHE_V1;
    assert_eq!(wake(&mut m, 0), (0, SEARCH_FAILED), "three of three, and the limit ends it");
    m.p.llc[0].nr_idle_scan = 4;
    assert_eq!(wake(&mut m, 0), (1, SEARCH_IDLE_CPU), "the first of them");
}

#[test]
fn sis_cache_keeps_no_cpu_for_sleeps_that_are_not_brief() {
    for patch in ["sis-cache-rfc", "sis-cache-v1"] {
        let mut m = machine(policy("v6.6", patch), Shape::TWO_NODES);
        let sleeper = m.new_task();
        sleep_again_and_again(&mut m, sleeper, 2, 20_000 * US);
        assert!(m.rq(2).reserved_until <= NOW, "{patch}");
    }
    // One long sleep halves the average of the brief ones in v1.
    let (mut m, sleeper) = reserved("sis-cache-v1", true);
    let average = m.task(sleeper).sleep_avg;
    run(&mut m, sleeper, 2, NOW + 600 * US);
    assert_eq!(m.task(sleeper).sleep_avg, average / 2);
}

#[test]
fn sis_cache_keeps_no_cpu_that_has_other_work() {
    let mut m = machine(policy("v6.6", "sis-cache-v1"), Shape::TWO_NODES);
    let (sleeper, other) = (m.new_task(), m.new_task());
    sleep_again_and_again(&mut m, sleeper, 2, 80 * US);
    m.rq(2).reserved_until = 0;
    run(&mut m, sleeper, 2, NOW + 80 * US);
    m.p.set_task_cpu(other, 2);
    m.p.enqueue_task(other, ENQUEUE_WAKEUP, NOW + 80 * US);
    m.p.update_curr(2, NOW + 90 * US);
    m.p.dequeue_task(sleeper, DEQUEUE_SLEEP, NOW + 90 * US);
    assert_eq!(m.rq(2).reserved_until, 0);
}

/// Cores {0,4} and {1,5} are busy, {2,6} and {3,7} idle and believed in.
fn idle_cores(patch: &str, reserved: &[u32]) -> (u32, SearchReason) {
    let mut m = machine(policy("v6.6", patch), Shape::SMT);
    m.queue_each([0, 4, 1, 5], 1);
    m.p.llc[0].has_idle_cores = 1;
    reserved.iter().for_each(|&cpu| m.rq(cpu).reserved_until = NOW + US);
    wake(&mut m, 0)
}

#[test]
fn sis_cache_prefers_idle_cores_that_nobody_comes_back_to() {
    assert_eq!(idle_cores("baseline", &[2]), (2, SEARCH_IDLE_CORE));
    for patch in ["sis-cache-rfc", "sis-cache-v1", "sis-cache-v2"] {
        assert_eq!(idle_cores(patch, &[2]), (3, SEARCH_IDLE_CORE), "{patch}");
    }
    // Of a core the RFC looks at all CPUs, v1 at the one that it came to.
    assert_eq!(idle_cores("sis-cache-rfc", &[6]), (3, SEARCH_IDLE_CORE));
    assert_eq!(idle_cores("sis-cache-v1", &[6]), (2, SEARCH_IDLE_CORE));
    // Where all are kept, v1 takes the first idle CPU, and the RFC the first that is not kept itself.
    assert_eq!(idle_cores("sis-cache-v1", &[2, 3, 6, 7]), (2, SEARCH_IDLE_CPU));
    assert_eq!(idle_cores("sis-cache-rfc", &[2, 3]), (6, SEARCH_IDLE_CPU));
    assert_eq!(idle_cores("sis-cache-rfc", &[2, 3, 6, 7]), (0, SEARCH_FAILED));
}
