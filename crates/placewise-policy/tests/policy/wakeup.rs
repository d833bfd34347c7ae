//! Wakeup placement: worked examples, every rule with a case in which it
//! decides and one in which it does not.

mod idle_search;
mod knobs;
mod lab;
mod patches;

use lab::{Lab, NOW, Seat, TICK, runner};
use placewise_policy::kernel::profile;
use placewise_policy::*;

fn kernel(name: &str) -> Profile {
    profile(name).unwrap()
}

fn patched(patch: &str) -> Profile {
    Policy::parse("v6.0", patch).unwrap().profile
}

/// The waker and wakee of most tests: CPUs of two LLCs of the Zen 3 machine.
const HERE: u32 = 2;
const THERE: u32 = 20;

/// A busy waking CPU and a busy previous CPU, both so loaded that the weight test stays undecided.
fn undecided(profile: Profile) -> Lab {
    let mut lab = Lab::zen3(profile);
    lab.busy(HERE);
    lab.busy(THERE);
    lab.rq(HERE).cfs.avg.load_avg = 100_000;
    lab
}

// ---- the published trace and the mechanisms behind the published results ----

const TRACE: [(u32, u32, u32); 4] = [(31, 206, 152), (15, 152, 136), (119, 136, 240), (29, 82, 30)];

fn traced_wakeup(profile: Profile, waking_cpu: u32, prev: u32) -> Lab {
    let mut lab = Lab::zen3(profile);
    lab.busy(waking_cpu);
    lab.short(runner(waking_cpu));
    lab.llc(waking_cpu).has_idle_cores = 1;
    lab.wake(prev, waking_cpu);
    lab
}

#[test]
fn short_task_v1_explains_the_published_trace() {
    for (waking_cpu, prev, destination) in TRACE {
        let lab = traced_wakeup(patched("short-task:v1"), waking_cpu, prev);
        assert_eq!(u32::from(lab.p.decision.result_cpu), destination);
        assert_eq!(lab.affine(), AFFINE_SHORT_WAKER);
        assert_eq!(lab.search(), SEARCH_IDLE_CORE);
    }
}

#[test]
fn baseline_does_not_migrate_in_the_published_trace() {
    for (waking_cpu, prev, _) in TRACE {
        let lab = traced_wakeup(kernel("v6.0"), waking_cpu, prev);
        assert_eq!(u32::from(lab.p.decision.result_cpu), prev);
        assert_eq!(lab.affine(), AFFINE_PREV_IDLE);
    }
}

#[test]
fn schbench_workers_follow_the_messenger_only_with_a_hint() {
    let mut lab = Lab::zen3(kernel("v6.0"));
    lab.busy(HERE);
    lab.llc(HERE).has_idle_cores = 1;
    assert_eq!(lab.wake(THERE, HERE), THERE);
    assert_eq!((lab.affine(), lab.search()), (AFFINE_PREV_IDLE, SEARCH_TARGET));

    lab.wakee().hint = HINT_WAKE_AFFINE as u8;
    assert_eq!(lab.wake(THERE, HERE), HERE + 1);
    assert_eq!(lab.p.decision.hint_used, 1);
    assert_eq!((lab.affine(), lab.search()), (AFFINE_NOT_TRIED, SEARCH_IDLE_CORE));

    lab.llc(HERE).has_idle_cores = 0;
    assert_eq!(lab.wake(THERE, HERE), THERE);
    assert_eq!(lab.p.decision.hint_used, 0);
}

#[test]
fn wake_hold_keeps_a_sync_wakee_in_its_llc() {
    let mut lab = undecided(kernel("v6.0"));
    lab.wakee().hint = HINT_WAKE_HOLD as u8;
    lab.llc(THERE).has_idle_cores = 1;
    assert_eq!(lab.wake_with(THERE, HERE, WF_SYNC), THERE + 1);
    lab.llc(THERE).has_idle_cores = 0;
    lab.wake_with(THERE, HERE, WF_SYNC);
    assert_eq!(u32::from(lab.p.decision.target_cpu), HERE);
}

#[test]
fn a_hint_says_nothing_within_an_llc() {
    let mut lab = Lab::zen3(kernel("v6.0"));
    lab.busy(HERE);
    lab.llc(HERE).has_idle_cores = 1;
    lab.wakee().hint = HINT_WAKE_AFFINE as u8;
    assert_eq!(lab.wake(HERE + 3, HERE), HERE + 3);
    assert_eq!(lab.p.decision.hint_used, 0);
}

#[test]
fn a_sync_ping_pong_moves_between_llcs_and_stays_within_one() {
    let mut lab = Lab::zen3(kernel("v6.0"));
    lab.busy(HERE);
    lab.llc(HERE).has_idle_cores = 1;
    assert_eq!(lab.wake_with(THERE, HERE, WF_SYNC), HERE + 1);
    assert_eq!((lab.affine(), lab.search()), (AFFINE_SYNC, SEARCH_IDLE_CORE));

    assert_eq!(lab.wake_with(HERE + 3, HERE, WF_SYNC), HERE + 3);
    assert_eq!((lab.affine(), lab.search()), (AFFINE_SYNC, SEARCH_PREV));
}

#[test]
fn an_exiting_waker_is_not_sync() {
    let mut lab = undecided(kernel("v6.0"));
    lab.task(runner(HERE)).exiting = 1;
    lab.wake_with(THERE, HERE, WF_SYNC);
    assert_eq!((lab.affine(), lab.p.decision.sync), (AFFINE_UNDECIDED, 0));
}

// ---- wake_affine ----

/// All at nice 0 and always running: the waker here, and on prev another task besides the wakee.
fn weighed(profile: Profile) -> Lab {
    let mut lab = Lab::zen3(profile);
    let prev = HERE + 1;
    lab.busy(HERE);
    lab.busy(prev);
    lab.rq(HERE).nr_running = 2;
    lab.rq(HERE).cfs.avg.load_avg = 1024;
    lab.rq(prev).cfs.avg.load_avg = 2048;
    lab.task(runner(HERE)).avg.load_avg = 1024;
    lab.wakee().avg.load_avg = 1024;
    lab
}

#[test]
fn the_weight_test_leaves_a_sync_waker_out() {
    let mut lab = weighed(kernel("v6.0"));
    lab.wake(HERE + 1, HERE);
    assert_eq!(lab.affine(), AFFINE_UNDECIDED);
    assert_eq!(lab.p.decision.waker_load, 2048 * 100 * 1024);
    assert_eq!(lab.p.decision.prev_load, 1024 * 108 * 1024);

    lab.wake_with(HERE + 1, HERE, WF_SYNC);
    assert_eq!(lab.affine(), AFFINE_WEIGHT);
    assert_eq!(lab.p.decision.waker_load, 1024 * 100 * 1024);
    assert_eq!(lab.p.decision.prev_load, 1024 * 108 * 1024 + 1);
}

#[test]
fn a_sync_waker_heavier_than_its_queue_decides_at_once() {
    let mut lab = weighed(kernel("v6.0"));
    lab.rq(HERE).cfs.avg.load_avg = 1023;
    lab.rq(HERE + 1).cfs.avg.load_avg = 0;
    lab.wake_with(HERE + 1, HERE, WF_SYNC);
    assert_eq!(lab.affine(), AFFINE_WEIGHT);
}

#[test]
fn a_redis_variant_skips_the_weight_test_for_short_wakees() {
    for (short, expected) in [(true, AFFINE_UNDECIDED), (false, AFFINE_WEIGHT)] {
        let mut lab = weighed(patched("short-task:skip-weight"));
        if short {
            lab.short(Lab::WAKEE);
        }
        lab.wake_with(HERE + 1, HERE, WF_SYNC);
        assert_eq!(lab.affine(), expected);
    }
}

/// An interrupt on an idle CPU wakes a task whose idle prev CPU shares the cache.
fn woken_from_idle(name: &str, prev: u32) -> (u32, AffineReason) {
    let mut lab = Lab::zen3(kernel(name));
    let cpu = lab.wake_with(prev, HERE, WF_INTERRUPT);
    (cpu, lab.affine())
}

#[test]
fn before_prev_idle_an_idle_waking_cpu_takes_the_wakee() {
    assert_eq!(woken_from_idle("v4.15", HERE + 1), (HERE, AFFINE_WAKING_CPU_IDLE));
    assert_eq!(woken_from_idle("v4.15", THERE), (THERE, AFFINE_UNDECIDED));
}

#[test]
fn since_prev_idle_an_idle_prev_keeps_the_wakee() {
    assert_eq!(woken_from_idle("v5.10", HERE + 1), (HERE + 1, AFFINE_PREV_IDLE_SHARED));
    let mut lab = Lab::zen3(kernel("v5.10"));
    lab.busy(HERE + 1);
    assert_eq!(lab.wake_with(HERE + 1, HERE, WF_INTERRUPT), HERE);
    assert_eq!(lab.affine(), AFFINE_WAKING_CPU_IDLE);
}

/// The reason of wake_affine for a waker with so many runnable tasks, and prev idle or not.
struct Wake {
    flags: u32,
    nr_running: u32,
    short: bool,
    prev_idle: bool,
}

fn reason(profile: Profile, wake: Wake) -> AffineReason {
    let mut lab = undecided(profile);
    lab.rq(HERE).nr_running = wake.nr_running;
    if wake.short {
        lab.short(runner(HERE));
    }
    if wake.prev_idle {
        lab.idle(THERE);
    }
    lab.wake_with(THERE, HERE, wake.flags);
    lab.affine()
}

const ALONE: Wake = Wake { flags: 0, nr_running: 1, short: false, prev_idle: false };

#[test]
fn sync_pulls_from_a_waker_that_is_alone() {
    for name in ["v4.15", "v5.10", "v6.0", "v6.18"] {
        let sync = Wake { flags: WF_SYNC, prev_idle: true, ..ALONE };
        assert_eq!(reason(kernel(name), sync), AFFINE_SYNC, "{name}");
        let two = Wake { flags: WF_SYNC, nr_running: 2, ..ALONE };
        assert_eq!(reason(kernel(name), two), AFFINE_UNDECIDED, "{name}");
        assert_eq!(reason(kernel(name), ALONE), AFFINE_UNDECIDED, "{name}");
    }
}

#[test]
fn mainline_since_5_19_keeps_the_wakee_on_an_idle_prev() {
    let wake = || Wake { prev_idle: true, ..ALONE };
    assert_eq!(reason(kernel("v5.10"), wake()), AFFINE_UNDECIDED);
    assert_eq!(reason(kernel("v5.19"), wake()), AFFINE_PREV_IDLE);
    assert_eq!(reason(kernel("v6.0"), ALONE), AFFINE_UNDECIDED);
}

#[test]
fn short_task_v1_pulls_from_any_queue_and_from_an_idle_prev() {
    let v1 = || patched("short-task:v1");
    let crowded = Wake { nr_running: 7, short: true, prev_idle: true, ..ALONE };
    assert_eq!(reason(v1(), crowded), AFFINE_SHORT_WAKER);
    let long = Wake { prev_idle: true, ..ALONE };
    assert_eq!(reason(v1(), long), AFFINE_PREV_IDLE);
}

#[test]
fn honglei_pulls_from_an_idle_prev_if_the_waker_is_alone() {
    let honglei = || patched("short-task:honglei");
    let alone = Wake { short: true, prev_idle: true, ..ALONE };
    assert_eq!(reason(honglei(), alone), AFFINE_SHORT_WAKER);
    let two = Wake { nr_running: 2, short: true, prev_idle: true, ..ALONE };
    assert_eq!(reason(honglei(), two), AFFINE_PREV_IDLE);
}

#[test]
fn the_reviewed_order_leaves_an_idle_prev_alone() {
    let reviewed = || patched("short-task:reviewed");
    let busy_prev = Wake { short: true, ..ALONE };
    assert_eq!(reason(reviewed(), busy_prev), AFFINE_SHORT_WAKER);
    let idle_prev = Wake { short: true, prev_idle: true, ..ALONE };
    assert_eq!(reason(reviewed(), idle_prev), AFFINE_PREV_IDLE);
    let two = Wake { nr_running: 2, short: true, ..ALONE };
    assert_eq!(reason(reviewed(), two), AFFINE_UNDECIDED);
}

/// Whatever its clause could decide, the one for sync wakeups has decided before.
#[test]
fn sync_gated_wakers_pull_by_sync_alone() {
    let gated = || patched("short-task:sync-gated");
    let sync = Wake { flags: WF_SYNC, short: true, ..ALONE };
    assert_eq!(reason(gated(), sync), AFFINE_SYNC);
    let not_sync = Wake { short: true, ..ALONE };
    assert_eq!(reason(gated(), not_sync), AFFINE_UNDECIDED);
}

#[test]
fn since_6_18_and_in_stable_6_12_delayed_tasks_do_not_keep_a_sync_waker_from_pulling() {
    for (name, expected) in [
        ("v6.12", AFFINE_UNDECIDED),
        ("v6.12.117", AFFINE_SYNC),
        ("v6.18", AFFINE_SYNC),
        ("v7.3", AFFINE_SYNC),
    ] {
        let mut lab = undecided(kernel(name));
        lab.rq(HERE).nr_running = 2;
        lab.rq(HERE).cfs.h_nr_delayed = 1;
        lab.wake_with(THERE, HERE, WF_SYNC);
        assert_eq!(lab.affine(), expected, "{name}");
    }
}

#[test]
fn affine_moves_are_counted_where_the_walk_stopped() {
    for (name, prev_counts) in [("v6.0", 1), ("v6.12", 0)] {
        let mut lab = Lab::zen3(kernel(name));
        lab.busy(HERE);
        lab.wake(THERE, HERE);
        let machine = usize::from(lab.p.cpu[HERE as usize].nr_domains) - 1;
        assert_eq!(usize::from(lab.p.decision.affine_level), machine);
        let moves = |lab: &Lab| lab.p.domain[HERE as usize][machine].stats.ttwu_move_affine;
        assert_eq!(moves(&lab), prev_counts, "{name}");
        lab.wake_with(THERE, HERE, WF_SYNC);
        assert_eq!(moves(&lab), prev_counts + 1, "{name}");
    }
}

#[test]
fn a_domain_without_wake_affine_is_passed_over() {
    let mut lab = undecided(kernel("v6.0"));
    for level in 0..4 {
        let span = lab.p.domain[HERE as usize][level].span;
        lab.p.span[span as usize].flags &= !SD_WAKE_AFFINE;
    }
    lab.wake_with(THERE, HERE, WF_SYNC);
    assert_eq!(lab.affine(), AFFINE_NOT_TRIED);
}

// ---- the waker's relation to its wakees ----

fn is_wide(rule: WakeWideRule, waker_flips: u32, wakee_flips: u32) -> bool {
    let mut lab = undecided(Profile { wake_wide: rule, ..kernel("v6.0") });
    // Counted in this very wakeup: its wakee is a new one.
    lab.task(runner(HERE)).wakee_flips = waker_flips - 1;
    lab.wakee().wakee_flips = wakee_flips;
    lab.wake_with(THERE, HERE, WF_SYNC);
    assert_eq!(lab.affine() == AFFINE_NOT_TRIED, lab.p.decision.wide != 0);
    lab.p.decision.wide != 0
}

#[test]
fn wide_wakeups_measure_flips_against_the_llc_or_the_node() {
    assert!(is_wide(WAKE_WIDE_LLC, 256, 16));
    assert!(is_wide(WAKE_WIDE_LLC, 16, 256));
    assert!(!is_wide(WAKE_WIDE_LLC, 255, 16));
    assert!(!is_wide(WAKE_WIDE_LLC, 1000, 15));
    assert!(is_wide(WAKE_WIDE_NODE, 33 * 32 + 1, 33));
    assert!(!is_wide(WAKE_WIDE_NODE, 33 * 32, 33));
    assert!(!is_wide(WAKE_WIDE_NODE, 10_000, 32));
    assert!(!is_wide(WAKE_WIDE_NONE, 1000, 1000));
}

#[test]
fn as_posted_a_wakee_could_still_drag_the_master_of_many() {
    assert!(!is_wide(WAKE_WIDE_NODE, 33, 33 * 32 + 1));
}

#[test]
fn flips_count_changes_of_the_wakee_and_are_halved_once() {
    let mut lab = undecided(kernel("v6.0"));
    lab.task(runner(HERE)).wakee_flips = 8;
    lab.wake(THERE, HERE);
    lab.wake(THERE, HERE);
    assert_eq!(lab.task(runner(HERE)).wakee_flips, 9);

    let long_ago = NOW / TICK - 1000;
    lab.task(runner(HERE)).wakee_flip_decay_ts = long_ago;
    lab.wake(THERE, HERE);
    let waker = *lab.task(runner(HERE));
    assert_eq!((waker.wakee_flips, waker.wakee_flip_decay_ts), (4, NOW / TICK));

    lab.task(runner(HERE)).wakee_flip_decay_ts = NOW / TICK - 1_000_000_000 / TICK;
    lab.wake(THERE, HERE);
    assert_eq!(lab.task(runner(HERE)).wakee_flips, 4);
}

#[test]
fn as_posted_flips_were_forgotten_each_second() {
    let mut lab = undecided(Policy::parse("v3.10", "wake-wide").unwrap().profile);
    lab.task(runner(HERE)).wakee_flips = 1000;
    lab.wake(THERE, HERE);
    assert_eq!(lab.task(runner(HERE)).wakee_flips, 1001);
    lab.task(runner(HERE)).wakee_flip_decay_ts = NOW / TICK - 1000;
    lab.wake(THERE, HERE);
    assert_eq!(lab.task(runner(HERE)).wakee_flips, 0);
}

// ---- v3.10: queues instead of averages ----

/// Tasks of nice 0 queued on the waking CPU and on the previous one, the first of each running.
fn queued(here: u32, there: u32, sync: u32) -> AffineReason {
    let mut lab = Lab::zen3(kernel("v3.10"));
    for (cpu, nr_running) in [(HERE, here), (THERE, there)] {
        if nr_running > 0 {
            lab.busy(cpu);
        }
        lab.rq(cpu).nr_running = nr_running;
        lab.rq(cpu).cfs.load_weight = 1024 * u64::from(nr_running);
        // What has been there on average does not matter.
        lab.rq(cpu).cfs.avg.load_avg = 1_000_000 * u64::from(HERE == cpu);
    }
    lab.wake_with(THERE, HERE, sync);
    lab.affine()
}

#[test]
fn v3_10_compares_what_is_queued_at_this_moment() {
    assert_eq!(queued(1, 0, WF_SYNC), AFFINE_WEIGHT, "a lone sync waker leaves nothing");
    assert_eq!(queued(1, 3, WF_SYNC), AFFINE_WEIGHT);
    assert_eq!(queued(2, 0, WF_SYNC), AFFINE_UNDECIDED);
    assert_eq!(queued(2, 1, WF_SYNC), AFFINE_UNDECIDED);
    assert_eq!(queued(2, 2, WF_SYNC), AFFINE_WEIGHT);
    assert_eq!(queued(1, 0, 0), AFFINE_UNDECIDED);
    assert_eq!(queued(1, 1, 0), AFFINE_UNDECIDED);
    assert_eq!(queued(1, 2, 0), AFFINE_WEIGHT);
    assert_eq!(queued(0, 0, 0), AFFINE_WEIGHT, "from an interrupt, without a look at caches");
}

/// One CPU of each core of the waker's LLC is idle, beside a busy one.
#[test]
fn v3_10_does_not_see_idle_cpus_beside_busy_ones() {
    for (name, found) in [("v3.10", SEARCH_SMT_SIBLING), ("v4.15", SEARCH_IDLE_CPU)] {
        let mut lab = Lab::zen3(kernel(name));
        lab.rq(HERE).avg_idle = 1_000_000;
        lab.busy_all(0..8);
        lab.busy(THERE);
        let cpu = lab.wake_with(THERE, HERE, WF_SYNC);
        assert_eq!(lab.search(), found, "{name}");
        assert_eq!(cpu == HERE + 128, found == SEARCH_SMT_SIBLING, "{name}");

        lab.busy(HERE + 128);
        let cpu = lab.wake_with(THERE, HERE, WF_SYNC);
        assert_eq!(cpu == HERE, name == "v3.10", "stacks on the waker although CPUs are idle");
    }
}

#[test]
fn an_interrupted_idle_task_is_the_waker() {
    let mut lab = Lab::zen3(kernel("v6.0"));
    lab.wake_with(THERE, HERE, WF_INTERRUPT);
    assert_eq!(lab.task(HERE).last_wakee, Lab::WAKEE);
}

// ---- the cheap candidates ----

const R: u32 = HERE + 5;

/// The target is this busy CPU, prev in another LLC is not a candidate, recent_used_cpu R is idle.
fn recent(name: &str) -> Lab {
    let mut lab = undecided(kernel(name));
    lab.wakee().recent_used_cpu = R as u16;
    lab
}

#[test]
fn without_recent_used_cpu_the_scan_goes_first() {
    let mut lab = recent("v4.15");
    lab.p.profile.sis_prop = false;
    assert_eq!(lab.wake_with(THERE, HERE, WF_SYNC), HERE + 1);
    assert_eq!(u32::from(lab.wakee().recent_used_cpu), R);
}

#[test]
fn before_5_19_recent_used_cpu_is_set_on_a_hit() {
    let mut lab = recent("v5.10");
    assert_eq!(lab.wake_with(THERE, HERE, WF_SYNC), R);
    assert_eq!(lab.search(), SEARCH_RECENT_USED);
    assert_eq!(u32::from(lab.wakee().recent_used_cpu), THERE);
    assert_eq!(u32::from(lab.task(runner(HERE)).recent_used_cpu), HERE);

    let mut lab = recent("v5.10");
    lab.busy(R);
    lab.wake_with(THERE, HERE, WF_SYNC);
    assert_eq!(u32::from(lab.wakee().recent_used_cpu), R);
}

#[test]
fn since_5_19_recent_used_cpu_is_always_set() {
    let mut lab = recent("v6.0");
    lab.busy(R);
    lab.wake_with(THERE, HERE, WF_SYNC);
    assert_eq!(u32::from(lab.wakee().recent_used_cpu), THERE);
    assert_eq!(u32::from(lab.task(runner(HERE)).recent_used_cpu), lab.len() - 1);
    // Not reached: the target itself was usable.
    let mut lab = recent("v6.0");
    lab.idle(THERE);
    assert_eq!(lab.wake(THERE, HERE), THERE);
    assert_eq!(u32::from(lab.wakee().recent_used_cpu), R);
}

#[test]
fn kernels_5_19_and_6_0_test_the_affinity_of_the_wrong_cpu() {
    let allowed = [HERE, HERE + 4, THERE];
    let mut quirky = recent("v6.0");
    quirky.allow(allowed);
    quirky.llc(HERE).nr_idle_scan = 0;
    // R is found, is forbidden, and is replaced by the first CPU allowed in prev's node.
    assert_eq!(quirky.wake_with(THERE, HERE, WF_SYNC), THERE);
    assert_eq!(quirky.search(), SEARCH_RECENT_USED);

    let mut correct = recent("v6.12");
    correct.allow(allowed);
    assert_eq!(correct.wake_with(THERE, HERE, WF_SYNC), HERE + 4);
    assert_eq!(correct.search(), SEARCH_IDLE_CPU);

    // And if prev is what is forbidden, an allowed R is passed over.
    quirky = recent("v6.0");
    quirky.allow([HERE, R]);
    quirky.llc(HERE).nr_idle_scan = 0;
    assert_eq!(quirky.wake_with(THERE, HERE, WF_SYNC), HERE);
}

fn kthread_wakes(name: &str, flags: u32, nr_running: u32) -> SearchReason {
    let mut lab = Lab::zen3(kernel(name));
    lab.busy(HERE);
    lab.rq(HERE).nr_running = nr_running;
    lab.task(runner(HERE)).per_cpu_kthread = 1;
    lab.wake_with(HERE, HERE, flags);
    lab.search()
}

#[test]
fn a_wakee_stacks_on_a_per_cpu_kthread_that_is_alone() {
    assert_ne!(kthread_wakes("v5.3", 0, 1), SEARCH_KTHREAD);
    assert_eq!(kthread_wakes("v5.10", 0, 1), SEARCH_KTHREAD);
    assert_eq!(kthread_wakes("v5.10", WF_INTERRUPT, 1), SEARCH_KTHREAD);
    assert_eq!(kthread_wakes("v6.0", 0, 1), SEARCH_KTHREAD);
    assert_ne!(kthread_wakes("v6.0", WF_INTERRUPT, 1), SEARCH_KTHREAD);
    assert_ne!(kthread_wakes("v6.0", 0, 2), SEARCH_KTHREAD);
}

#[test]
fn a_cpu_with_sched_idle_tasks_only_is_usable_since_5_10() {
    for (name, idle_policy, usable) in [
        ("v5.3", 0, false),
        ("v5.10", 0, true),
        ("v6.18", 0, true),
        ("v6.18", 1, true),
        ("v7.3", 0, true),
        ("v7.3", 1, false),
    ] {
        let mut lab = Lab::zen3(kernel(name));
        lab.sched_idle(HERE);
        lab.wakee().idle_policy = idle_policy;
        lab.wake(HERE, HERE);
        assert_eq!(lab.search() == SEARCH_TARGET, usable, "{name}");
    }
}

// ---- the search of the LLC ----

/// Wakes on the busy CPU 0 of the machine without SMT, where the wakee ran before.
fn searched(profile: Profile, busy: &[u32]) -> Lab {
    let mut lab = Lab::plain(profile);
    lab.busy(0);
    lab.busy_all(busy.iter().copied());
    lab.p.llc[0].nr_idle_scan = 16;
    lab
}

#[test]
fn the_scan_starts_at_the_target_or_after_it_and_wraps() {
    // The start shows in how many CPUs were looked at.
    for (name, looks) in [("v5.10", 16), ("v6.0", 15)] {
        let mut lab = searched(kernel(name), &[]);
        lab.busy_all(0..16);
        lab.idle(3);
        lab.rq(4).avg_idle = 1_000_000;
        assert_eq!(lab.wake(4, 4), 3, "{name}");
        // Besides, the target was looked at on its own.
        assert_eq!(lab.p.decision.scanned, 1 + looks, "{name}");
    }
    let mut last = Lab::plain(kernel("v6.0"));
    last.busy(31);
    assert_eq!(last.wake(31, 31), 16);
}

#[test]
fn sis_util_looks_at_nr_idle_scan_cpus() {
    let mut lab = searched(kernel("v6.0"), &[1, 2]);
    lab.p.llc[0].nr_idle_scan = 3;
    assert_eq!(lab.wake(0, 0), 3);
    assert_eq!((lab.p.decision.scan_limit, lab.p.decision.scanned), (3, 1 + 3));
    assert_eq!(lab.p.decision.llc_scanned, 3, "without the look at the target");
    lab.p.llc[0].nr_idle_scan = 2;
    assert_eq!(lab.wake(0, 0), 0);
    assert_eq!((lab.search(), lab.p.decision.scanned), (SEARCH_FAILED, 1 + 2));
    lab.p.llc[0].nr_idle_scan = 0;
    lab.wake(0, 0);
    assert_eq!((lab.search(), lab.p.decision.scanned), (SEARCH_FAILED, 1));
    assert_eq!(lab.p.decision.llc_scanned, 0);
}

#[test]
fn forbidden_cpus_use_up_the_limit_only_before_5_10() {
    for (name, found) in [("v5.3", false), ("v5.10", true)] {
        let mut lab = searched(kernel(name), &[]);
        lab.allow([0, 9, 17]);
        // Four CPUs at least, of which three are looked at: 0, 1, 2 or 0, 9.
        lab.llc_domain(0).avg_scan_cost = 1_000_000;
        lab.wake(0, 0);
        assert_eq!(lab.search() == SEARCH_IDLE_CPU, found, "{name}");
        assert_eq!(lab.p.decision.scan_limit, 3, "{name}");
    }
}

#[test]
fn sis_prop_by_avg_idle() {
    let mut lab = searched(kernel("v5.10"), &[]);
    lab.busy_all(0..16);
    lab.rq(0).avg_idle = 512 * 100;
    lab.llc_domain(0).avg_scan_cost = 159;
    lab.wake(0, 0);
    assert_eq!((lab.p.decision.scan_limit, lab.p.decision.scanned), (9, 1 + 9));

    // It ran out of CPUs, so its time is not recorded.
    lab.p.record_scan_cost(0, 959);
    assert_eq!(lab.llc_domain(0).avg_scan_cost, 159);
    lab.idle(5);
    assert_eq!(lab.wake(0, 0), 5);
    assert_eq!(lab.p.decision.timed_scan, 6);
    lab.p.record_scan_cost(0, 959);
    assert_eq!(lab.llc_domain(0).avg_scan_cost, 159 + 100);
}

#[test]
fn sis_prop_by_wake_avg_idle() {
    let mut lab = searched(kernel("v5.19"), &[]);
    lab.busy_all(0..16);
    lab.rq(0).wake_avg_idle = 1600;
    lab.rq(0).wake_stamp = NOW / TICK - 2;
    lab.llc_domain(0).avg_scan_cost = 639;
    lab.wake(0, 0);
    assert_eq!((lab.p.decision.scan_limit, lab.p.decision.scanned), (9, 1 + 9));
    assert_eq!(lab.rq(0).wake_avg_idle, 400);
    lab.p.record_scan_cost(0, 300);
    assert_eq!((lab.rq(0).wake_avg_idle, lab.llc_domain(0).avg_scan_cost), (400, 639));

    lab.idle(5);
    assert_eq!(lab.wake(0, 0), 5);
    lab.p.record_scan_cost(0, 300);
    assert_eq!((lab.rq(0).wake_avg_idle, lab.llc_domain(0).avg_scan_cost), (100, 597));
}

#[test]
fn utilisation_sets_nr_idle_scan() {
    let table = [
        (16, [16, 15, 15, 14, 12, 10, 9, 8, 5, 2, 0]),
        (64, [64, 63, 60, 56, 50, 42, 37, 32, 21, 8, 0]),
        (112, [112, 110, 105, 98, 87, 73, 65, 56, 37, 14, 0]),
    ];
    let percent = [0, 100, 200, 300, 400, 500, 550, 600, 700, 800, 855];
    for (llc, scans) in table {
        for (permille, scan) in percent.iter().zip(scans) {
            let average = 1024 * permille / 1000;
            assert_eq!(nr_idle_scan_of(average * llc, llc as u32, 117), scan, "{llc} {permille}");
        }
    }
    let first = |llc: u64, condition: &dyn Fn(u64) -> bool| {
        let scan = |x| u64::from(nr_idle_scan_of(x * llc, llc as u32, 117));
        (0..1024).find(|&x| condition(scan(x)))
    };
    for (llc, zero) in [(16, 848), (64, 869), (112, 872)] {
        assert_eq!(first(llc, &|scan| scan == 0), Some(zero));
    }
    for (llc, busy) in [(8, 620), (16, 580), (20, 588), (28, 574), (64, 559), (112, 556)] {
        assert_eq!(first(llc, &|scan| 5 * (scan + 1) < 3 * llc), Some(busy));
    }
}

#[test]
fn has_idle_cores_is_believed_until_a_search_fails() {
    let llc_of_0 = || (0..8).chain(128..136);
    let mut lab = Lab::zen3(kernel("v6.0"));
    lab.busy_all(llc_of_0());
    lab.idle(133);
    lab.llc(0).has_idle_cores = 1;
    // No idle core: the first usable sibling met, and the flag is gone.
    assert_eq!(lab.wake(0, 0), 133);
    assert_eq!((lab.p.decision.has_idle_cores, lab.llc(0).has_idle_cores), (1, 0));

    // A core that idles is not believed in before it sets the flag.
    lab.busy_all(llc_of_0());
    lab.llc(0).nr_idle_scan = 2;
    lab.idle(5);
    lab.idle(133);
    assert_eq!(lab.wake(0, 0), 0);
    lab.p.set_next_task(5, 5, NOW);
    assert_eq!(lab.llc(0).has_idle_cores, 1);
    assert_eq!(lab.wake(0, 0), 5);
    assert_eq!(lab.llc(0).has_idle_cores, 1);
}

#[test]
fn affinity_may_hide_the_idle_core_that_clears_the_flag() {
    let mut lab = Lab::zen3(kernel("v6.0"));
    lab.busy_all((0..4).chain(128..132));
    lab.allow([0, 1, 2, 130]);
    lab.llc(0).has_idle_cores = 1;
    assert_eq!(lab.wake(0, 0), 0);
    assert_eq!(lab.llc(0).has_idle_cores, 0);
}

#[test]
fn since_5_19_an_idle_sibling_of_prev_comes_before_the_scan() {
    let mut lab = Lab::zen3(kernel("v6.0"));
    lab.busy(HERE);
    assert_eq!(lab.wake(HERE, HERE), HERE + 128);
    assert_eq!(lab.search(), SEARCH_SMT_SIBLING);
    lab.llc(HERE).has_idle_cores = 1;
    assert_eq!(lab.wake(HERE, HERE), HERE + 1);
}

#[test]
fn before_5_19_an_idle_sibling_of_the_target_comes_last() {
    let mut lab = Lab::zen3(kernel("v5.10"));
    lab.rq(HERE).avg_idle = 1_000_000;
    lab.busy(HERE);
    assert_eq!(lab.wake(HERE, HERE), HERE + 1);
    lab.llc_domain(HERE).avg_scan_cost = 1_000_000;
    lab.busy_all(HERE..8);
    assert_eq!(lab.wake(HERE, HERE), HERE + 128);
    assert_eq!(lab.search(), SEARCH_SMT_SIBLING);
}

#[test]
fn a_cluster_is_searched_first_and_prev_outside_it_comes_last() {
    let profile = kernel("v6.12");
    let mut lab = Lab::clustered(profile);
    lab.busy(5);
    lab.busy(6);
    lab.busy(7);
    // Sync: target 5. Prev 12 shares the LLC but not the cluster of 5.
    assert_eq!(lab.wake_with(12, 5, WF_SYNC), 4);
    lab.busy(4);
    assert_eq!(lab.wake_with(12, 5, WF_SYNC), 8);
    lab.p.llc[0].nr_idle_scan = 3;
    assert_eq!(lab.wake_with(12, 5, WF_SYNC), 12);
    assert_eq!(lab.search(), SEARCH_FALLBACK);
    lab.busy(12);
    lab.wakee().recent_used_cpu = 13;
    assert_eq!(lab.wake_with(12, 5, WF_SYNC), 13);
    assert_eq!(lab.search(), SEARCH_FALLBACK);

    let mut flat = Lab::clustered(Profile { scan_cluster_first: false, ..profile });
    flat.busy(5);
    assert_eq!(flat.wake_with(12, 5, WF_SYNC), 12);
    assert_eq!(flat.search(), SEARCH_PREV);
}

#[test]
fn a_machine_with_unequal_cpus_wants_one_that_fits() {
    let mut lab = Lab::plain(kernel("v6.0"));
    lab.p.root.asym_capacity = 1;
    for cpu in 0..32 {
        let span = lab.p.domain[cpu][1].span as usize;
        lab.p.span[span].flags |= SD_ASYM_CPUCAPACITY_FULL;
        lab.rq(cpu as u32).capacity = if cpu < 16 { 400 } else { 1024 };
    }
    lab.wakee().avg.util_avg = 500;
    assert_eq!(lab.wake(3, 3), 16);
    assert_eq!(lab.search(), SEARCH_ASYM_CAPACITY);
    lab.wakee().avg.util_avg = 200;
    assert_eq!(lab.wake(3, 3), 3);
    // None fits: the largest idle one.
    lab.wakee().avg.util_avg = 1000;
    lab.busy_all(16..30);
    lab.rq(31).capacity = 1000;
    assert_eq!(lab.wake(3, 3), 30);
}

/// One LLC of 4 cores with two threads (c and c + 4), of which the first two are small.
fn unequal_cores(name: &str) -> Lab {
    let seat = |cpu: u32| Seat { core: cpu % 4, cluster: cpu % 4, llc: 0, node: 0 };
    let mut lab = Lab::new(kernel(name), (0..8).map(seat).collect());
    lab.p.root.asym_capacity = 1;
    for cpu in 0..8 {
        let span = lab.p.domain[cpu as usize][1].span as usize;
        lab.p.span[span].flags |= SD_ASYM_CPUCAPACITY_FULL;
        lab.rq(cpu).capacity = if cpu % 4 < 2 { 400 } else { 1024 };
    }
    lab.wakee().avg.util_avg = 500;
    lab.wakee().recent_used_cpu = 0;
    lab.p.llc[0].has_idle_cores = 1;
    lab.busy(0);
    lab
}

#[test]
fn since_7_3_unequal_cpus_are_searched_for_an_idle_core() {
    for (name, cpu) in [("v6.18", 2), ("v7.3", 3)] {
        let mut lab = unequal_cores(name);
        lab.busy(6);
        assert_eq!(lab.wake(0, 0), cpu, "{name}: the sibling of CPU 2 is busy");
        assert_eq!(lab.p.llc[0].has_idle_cores, 1);
    }
    // An idle core that is too small comes before half a core that is not.
    for (name, cpu) in [("v6.18", 2), ("v7.3", 1)] {
        let mut lab = unequal_cores(name);
        lab.busy_all([6, 7]);
        assert_eq!(lab.wake(0, 0), cpu, "{name}");
        assert_eq!(lab.p.llc[0].has_idle_cores, 1, "one was found");
    }
    // Without an idle core: one that fits, else the largest, and the belief ends.
    let mut lab = unequal_cores("v7.3");
    lab.busy_all([5, 6, 7]);
    assert_eq!(lab.wake(0, 0), 2);
    assert_eq!(lab.p.llc[0].has_idle_cores, 0);
    lab.p.llc[0].has_idle_cores = 1;
    lab.wakee().avg.util_avg = 1000;
    lab.rq(3).capacity = 1025;
    assert_eq!(lab.wake(0, 0), 3);
    assert_eq!(lab.p.llc[0].has_idle_cores, 0);
    // Not believed in, idle cores do not count.
    let mut lab = unequal_cores("v7.3");
    lab.p.llc[0].has_idle_cores = 0;
    lab.busy(6);
    assert_eq!(lab.wake(0, 0), 2);
}

#[test]
fn since_7_3_half_a_core_does_not_fit_without_a_search() {
    for (name, search) in [("v6.18", SEARCH_TARGET), ("v7.3", SEARCH_ASYM_CAPACITY)] {
        let mut lab = unequal_cores(name);
        lab.busy(7);
        assert_eq!(lab.wake(3, 3), if search == SEARCH_TARGET { 3 } else { 6 }, "{name}");
        assert_eq!(lab.search(), search, "{name}");
        lab.idle(7);
        lab.wake(3, 3);
        assert_eq!(lab.search(), SEARCH_TARGET, "{name}");
    }
    // Cores do not matter without SMT, and fits do not where all CPUs are equal.
    let mut lab = unequal_cores("v7.3");
    lab.busy(7);
    lab.p.root.smt_active = 0;
    lab.wake(3, 3);
    assert_eq!(lab.search(), SEARCH_TARGET);
    lab.p.root.smt_active = 1;
    lab.p.root.asym_capacity = 0;
    lab.wake(3, 3);
    assert_eq!(lab.search(), SEARCH_TARGET);
}

#[test]
fn since_7_3_the_search_of_unequal_cpus_is_limited() {
    let wake = |name, limit, allowed: &[u32]| {
        let mut lab = unequal_cores(name);
        lab.p.llc[0].has_idle_cores = 0;
        lab.p.llc[0].nr_idle_scan = limit;
        lab.allow(allowed.iter().copied());
        let cpu = lab.wake(0, 0);
        (cpu, lab.p.decision.scan_limit)
    };
    let all: Vec<u32> = (0..8).collect();
    assert_eq!(wake("v6.18", 0, &all), (2, u32::MAX));
    assert_eq!(wake("v7.3", 0, &all), (0, 0), "not searched at all");
    assert_eq!(wake("v7.3", 1, &all), (0, 1), "the busy target");
    assert_eq!(wake("v7.3", 2, &all), (1, 2), "the best so far, too small");
    assert_eq!(wake("v7.3", 3, &all), (2, 3));
    assert_eq!(wake("v7.3", 2, &[0, 2, 3]), (2, 2), "forbidden CPUs do not count");
    // While an idle core is believed in, the search goes on to the end.
    let mut lab = unequal_cores("v7.3");
    lab.p.llc[0].nr_idle_scan = 1;
    assert_eq!(lab.wake(0, 0), 2);
    lab.p.llc[0].nr_idle_scan = 0;
    assert_eq!(lab.wake(0, 0), 0);
}

#[test]
fn the_limit_counts_unequal_cpus_in_wrap_order_over_all_words() {
    let mut lab = Lab::zen3(kernel("v7.3"));
    lab.p.root.asym_capacity = 1;
    for cpu in lab.cpus() {
        let top = usize::from(lab.p.cpu[cpu as usize].nr_domains) - 1;
        let span = lab.p.domain[cpu as usize][top].span as usize;
        lab.p.span[span].flags |= SD_ASYM_CPUCAPACITY_FULL;
        lab.rq(cpu).capacity = 100;
        lab.busy(cpu);
    }
    lab.wakee().avg.util_avg = 500;
    lab.llc(100).nr_idle_scan = 200;
    let mut found = |cpu: u32| {
        lab.idle(cpu);
        let found = lab.wake(100, 100);
        lab.busy(cpu);
        found
    };
    assert_eq!(found(100 + 199 - 256), 100 + 199 - 256, "the 200th");
    assert_eq!(found(100 + 200 - 256), 100, "one too far");
}

#[test]
fn the_idle_time_is_sampled_by_a_wakeup_or_when_the_idle_task_is_switched_out() {
    let sampled = |name| {
        let mut lab = Lab::plain(kernel(name));
        lab.rq(1).idle_stamp = NOW - 800_000;
        lab.rq(1).max_idle_balance_cost = 500_000;
        let avg_idle = |lab: &mut Lab| (lab.rq(1).avg_idle, lab.rq(1).idle_stamp != 0);
        lab.p.sample_avg_idle(1, NOW);
        let at_wakeup = avg_idle(&mut lab);
        lab.p.set_next_task(1, 1, NOW);
        assert_eq!(avg_idle(&mut lab), at_wakeup, "{name}: the idle task goes on");
        lab.p.set_next_task(1, Lab::WAKEE, NOW);
        let at_switch = avg_idle(&mut lab);
        lab.rq(1).idle_stamp = NOW;
        lab.p.set_next_task(1, runner(1), NOW + 1_000_000);
        assert_eq!(lab.rq(1).avg_idle, at_switch.0, "{name}: it was not idle");
        (at_wakeup, at_switch)
    };
    let (before, after) = ((0, true), (100_000, false));
    assert_eq!(sampled("v6.18"), (after, after));
    assert_eq!(sampled("v7.3"), (before, after));
}

// ---- short tasks ----

/// On a busy LLC with idle CPUs: does the wakee stay with its waker?
struct Pair {
    waker_short: bool,
    wakee_short: bool,
    flags: u32,
    nr_running: u32,
    has_idle_cores: bool,
    nr_idle_scan: u32,
    prev: u32,
    mutual: bool,
}

/// The limit at which an LLC of 16 CPUs just counts as busy: 5 * 9 < 3 * 16.
const PAIR: Pair = Pair {
    waker_short: true,
    wakee_short: true,
    flags: 0,
    nr_running: 1,
    has_idle_cores: false,
    nr_idle_scan: 8,
    prev: HERE,
    mutual: true,
};

fn stays(patch: &str, pair: Pair) -> bool {
    let mut lab = Lab::zen3(patched(patch));
    lab.busy(HERE);
    lab.busy(HERE + 128);
    lab.busy(THERE);
    lab.rq(HERE).nr_running = pair.nr_running;
    lab.llc(HERE).nr_idle_scan = pair.nr_idle_scan;
    lab.llc(HERE).has_idle_cores = pair.has_idle_cores.into();
    if pair.waker_short {
        lab.short(runner(HERE));
    }
    if pair.wakee_short {
        lab.short(Lab::WAKEE);
    }
    if pair.mutual {
        lab.wakee().last_wakee = runner(HERE);
        lab.task(runner(HERE)).last_wakee = Lab::WAKEE;
    }
    let cpu = lab.wake_with(pair.prev, HERE, pair.flags);
    assert_eq!(lab.search() == SEARCH_SHORT, cpu == HERE);
    cpu == HERE
}

#[test]
fn without_a_patch_no_pair_stays() {
    assert!(!stays("baseline", PAIR));
}

#[test]
fn v1_stacks_short_pairs_on_a_busy_llc() {
    assert!(stays("short-task:v1", PAIR));
    assert!(stays("short-task:v1", Pair { nr_running: 5, ..PAIR }));
    assert!(!stays("short-task:v1", Pair { nr_idle_scan: 9, ..PAIR }));
    assert!(!stays("short-task:v1", Pair { has_idle_cores: true, ..PAIR }));
    assert!(!stays("short-task:v1", Pair { wakee_short: false, ..PAIR }));
    assert!(!stays("short-task:v1", Pair { waker_short: false, ..PAIR }));
}

#[test]
fn v2_asks_for_a_short_current_that_is_alone() {
    assert!(stays("short-task:reviewed", Pair { wakee_short: false, ..PAIR }));
    assert!(!stays("short-task:reviewed", Pair { waker_short: false, ..PAIR }));
    assert!(!stays("short-task:reviewed", Pair { nr_running: 2, ..PAIR }));
    assert!(!stays("short-task:reviewed", Pair { nr_idle_scan: 9, ..PAIR }));
    assert!(!stays("short-task:reviewed", Pair { has_idle_cores: true, ..PAIR }));
}

#[test]
fn v4_stacks_whatever_the_utilisation() {
    assert!(stays("short-task:v4", Pair { nr_idle_scan: 16, ..PAIR }));
    assert!(!stays("short-task:v4", Pair { nr_running: 2, ..PAIR }));
    assert!(!stays("short-task:v4", Pair { wakee_short: false, ..PAIR }));
    assert!(!stays("short-task:v4", Pair { waker_short: false, ..PAIR }));
    assert!(!stays("short-task:v4", Pair { has_idle_cores: true, ..PAIR }));
}

#[test]
fn v6_stacks_on_the_waking_cpu_tasks_without_flips() {
    assert!(stays("short-task:v6", PAIR));
    assert!(!stays("short-task:v6", Pair { mutual: false, ..PAIR }), "the waker just flipped");
    assert!(!stays("short-task:v6", Pair { nr_idle_scan: 9, ..PAIR }));
    assert!(!stays("short-task:v6", Pair { nr_running: 2, ..PAIR }));
    assert!(!stays("short-task:v6", Pair { has_idle_cores: true, ..PAIR }));
    assert!(!stays("short-task:v6", Pair { wakee_short: false, ..PAIR }));
}

#[test]
fn current_stacks_pairs_that_wake_each_other() {
    let current = Profile { short_needs_no_flips: false, ..patched("short-task:current") };
    assert!(stays("short-task:current", Pair { nr_idle_scan: 16, ..PAIR }));
    assert!(stays("short-task:current", Pair { has_idle_cores: true, ..PAIR }));
    assert!(!stays("short-task:current", Pair { nr_running: 2, ..PAIR }));
    assert!(!stays("short-task:current", Pair { waker_short: false, ..PAIR }));

    // The mutual test on its own, with flips allowed.
    for (last_wakee, expected) in [(runner(HERE), true), (runner(THERE), false)] {
        let mut lab = Lab::zen3(current);
        lab.busy(HERE);
        lab.busy(HERE + 128);
        lab.short(runner(HERE));
        lab.short(Lab::WAKEE);
        lab.wakee().last_wakee = last_wakee;
        lab.wake(HERE, HERE);
        assert_eq!(lab.search() == SEARCH_SHORT, expected);
    }
}

#[test]
fn sync_stacks_sync_pairs_without_an_idle_core() {
    let sync = || Pair { flags: WF_SYNC, nr_idle_scan: 16, ..PAIR };
    assert!(stays("short-task:sync", sync()));
    assert!(stays("short-task:sync", Pair { prev: THERE, ..sync() }));
    assert!(!stays("short-task:sync", Pair { flags: 0, ..sync() }));
    assert!(!stays("short-task:sync", Pair { has_idle_cores: true, ..sync() }));
    assert!(!stays("short-task:sync", Pair { mutual: false, ..sync() }));
    assert!(!stays("short-task:sync", Pair { nr_running: 2, ..sync() }));
}

#[test]
fn v5_and_later_want_the_target_to_be_the_waking_cpu() {
    for (patch, expected) in [("short-task:v1", true), ("short-task:v6", false)] {
        let mut lab = undecided(patched(patch));
        lab.busy(THERE + 128);
        lab.rq(HERE).nr_running = 2;
        lab.llc(THERE).nr_idle_scan = 8;
        lab.short(runner(THERE));
        lab.short(Lab::WAKEE);
        assert_eq!(lab.wake(THERE, HERE) == THERE, expected, "{patch}");
    }
}

/// Is a task short by its run length? Asked through a clause that decides by it alone.
fn is_short(lab: &mut Lab) -> bool {
    lab.p.profile.affine_short = AFFINE_SHORT_LAST;
    lab.p.profile.scan_short = SCAN_SHORT_NONE;
    lab.wake(THERE, HERE);
    lab.affine() == AFFINE_SHORT_WAKER
}

fn threshold(rule: ShortThreshold, average: u64) -> bool {
    let mut lab = undecided(Profile {
        run_length: RUN_LENGTH_AVERAGE,
        short_threshold: rule,
        migration_cost: 500_000,
        ..kernel("v6.0")
    });
    lab.task(runner(HERE)).run_length_avg = average;
    is_short(&mut lab)
}

#[test]
fn every_threshold_has_its_edge() {
    let short = |rule, average, expected| {
        assert_eq!(threshold(rule, average), expected, "{rule} {average}");
    };
    short(SHORT_MIN_GRAN, 0, true);
    short(SHORT_MIN_GRAN, 3_000_000, true);
    short(SHORT_MIN_GRAN, 3_000_001, false);
    short(SHORT_MIN_GRAN_EIGHTH, 0, false);
    short(SHORT_MIN_GRAN_EIGHTH, 375_000, true);
    short(SHORT_MIN_GRAN_EIGHTH, 375_001, false);
    short(SHORT_BELOW_MIN_GRAN_EIGHTH, 0, false);
    short(SHORT_BELOW_MIN_GRAN_EIGHTH, 374_999, true);
    short(SHORT_BELOW_MIN_GRAN_EIGHTH, 375_000, false);
    short(SHORT_MIGRATION_COST, 0, false);
    short(SHORT_MIGRATION_COST, 499_999, true);
    short(SHORT_MIGRATION_COST, 500_000, false);
    // 0.5 ms * (16 / 256)^2
    short(SHORT_LLC_SIZE, 1953, true);
    short(SHORT_LLC_SIZE, 1954, false);
}

#[test]
fn v1_counts_run_time_against_voluntary_switches() {
    for (run, switches, expected) in
        [(0, 0, true), (1, 0, false), (6_000_000, 2, true), (6_000_001, 2, false)]
    {
        let mut lab = undecided(patched("short-task:v1"));
        let waker = lab.task(runner(HERE));
        (waker.sum_exec_runtime, waker.nvcsw) = (run, switches);
        assert_eq!(is_short(&mut lab), expected);
    }
}

#[test]
fn a_task_with_flips_is_not_short_for_v6() {
    for flips in [0, 1] {
        let mut lab = undecided(patched("short-task:v6"));
        lab.short(runner(HERE));
        lab.task(runner(HERE)).last_wakee = Lab::WAKEE;
        lab.task(runner(HERE)).wakee_flips = flips;
        assert_eq!(is_short(&mut lab), flips == 0);
    }
}

#[test]
fn a_run_length_spans_preemptions_and_ends_with_a_sleep() {
    let sampled = |metric, before: u64, run: u64| {
        let mut lab = Lab::zen3(Profile { run_length: metric, ..kernel("v6.0") });
        let task = runner(HERE);
        lab.task(task).cpu = HERE as u16;
        lab.task(task).sum_exec_runtime = 7_000_000;
        lab.task(task).prev_sleep_runtime = 7_000_000;
        lab.task(task).run_length_avg = before;
        lab.p.enqueue_task(task, 0, NOW);
        lab.p.set_next_task(HERE, task, NOW);
        lab.p.update_curr(HERE, NOW + run / 2);
        lab.p.put_prev_task(HERE, NOW + run / 2);
        lab.p.set_next_task(HERE, task, NOW + TICK);
        lab.p.update_curr(HERE, NOW + TICK + run / 2);
        lab.p.dequeue_task(task, DEQUEUE_SLEEP, NOW + TICK + run / 2);
        assert_eq!(lab.task(task).prev_sleep_runtime, 7_000_000 + run);
        lab.task(task).run_length_avg
    };
    assert_eq!(sampled(RUN_LENGTH_AVERAGE, 800_000, 1_600_000), 900_000);
    assert_eq!(sampled(RUN_LENGTH_AVERAGE, 1_600_000, 800_000), 1_500_000);
    // Deviations below the minimum granularity of 3 ms do not count.
    assert_eq!(sampled(RUN_LENGTH_AVERAGE_OUTLIERS, 800_000, 3_799_998), 800_000);
    assert_eq!(sampled(RUN_LENGTH_AVERAGE_OUTLIERS, 800_000, 3_800_000), 1_175_000);
    assert_eq!(sampled(RUN_LENGTH_TOTAL, 800_000, 1_600_000), 800_000);
}

// ---- hints, wake list, affinity ----

#[test]
fn nine_hint_masks_are_valid() {
    let valid: Vec<u32> = (0..64).filter(|&mask| hint_check(mask) == HINT_VALID).collect();
    assert_eq!(valid, [0, 1, 2, 4, 5, 6, 8, 9, 10]);
    assert_eq!(hint_check(3), HINT_FORK_CONFLICT);
    assert_eq!(hint_check(12), HINT_WAKE_CONFLICT);
    assert_eq!(hint_check(16), HINT_UNKNOWN);
}

#[test]
fn who_goes_over_the_wake_list() {
    let queued = |name, cpu, nr_running, on_cpu| {
        let mut lab = Lab::zen3(kernel(name));
        lab.busy(cpu);
        lab.rq(cpu).nr_running = nr_running;
        lab.p.ttwu_queue_wakelist(Lab::WAKEE, HERE, cpu, on_cpu)
    };
    let near = HERE + 1;
    assert!(queued("v5.3", THERE, 3, false));
    assert!(!queued("v5.3", THERE, 3, true));
    assert!(!queued("v5.3", near, 0, false));
    assert!(queued("v5.10", THERE, 3, true));
    assert!(queued("v5.10", near, 1, true));
    assert!(!queued("v5.10", near, 2, true));
    assert!(!queued("v5.10", near, 0, false));
    assert!(queued("v6.0", THERE, 3, false));
    assert!(queued("v6.0", near, 0, false));
    assert!(!queued("v6.0", near, 1, true));
    assert!(!queued("v6.0", HERE, 0, false));
}

#[test]
fn a_task_with_one_cpu_is_not_placed() {
    let mut lab = undecided(kernel("v6.0"));
    lab.allow([77]);
    assert_eq!(lab.wake_with(THERE, HERE, WF_SYNC), 77);
    assert_eq!((lab.affine(), lab.search()), (AFFINE_NOT_TRIED, SEARCH_NONE));
    assert_eq!(lab.task(runner(HERE)).last_wakee, NO_TASK);
}

#[test]
fn a_waking_cpu_that_is_forbidden_makes_no_affine_wakeup() {
    let mut lab = undecided(kernel("v6.0"));
    lab.allow([THERE, THERE + 1]);
    assert_eq!(lab.wake_with(THERE, HERE, WF_SYNC), THERE + 1);
    assert_eq!(lab.affine(), AFFINE_NOT_TRIED);
}

#[test]
fn wf_current_cpu_answers_with_the_waking_cpu_if_that_is_allowed() {
    let mut lab = undecided(kernel("v6.12"));
    assert_eq!(lab.wake_with(THERE, HERE, WF_CURRENT_CPU), HERE);
    lab.allow([THERE, THERE + 1]);
    assert_eq!(lab.wake_with(THERE, HERE, WF_CURRENT_CPU), THERE + 1);
}

#[test]
fn forks_and_execs_take_the_slow_path() {
    for flag in [WF_FORK, WF_EXEC] {
        let mut lab = undecided(kernel("v6.0"));
        lab.p.select_task_rq(Lab::WAKEE, THERE, HERE, flag, NOW);
        assert_eq!((lab.p.decision.slow_path, lab.search()), (1, SEARCH_NONE));
        assert_eq!(lab.task(runner(HERE)).last_wakee, NO_TASK);
        lab.wake(THERE, HERE);
        assert_eq!(lab.p.decision.slow_path, 0);
    }
}
