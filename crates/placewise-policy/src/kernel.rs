//! Kernels as data: each is the one before it with what changed.
//!
//! A kernel is named after its release, with a patch number where it stands for
//! a stable kernel that has got changes of later ones (v6.12.117). Where a
//! kernel changed nothing that a placement decision can see, no field changes.
//!
//! Limits: v3.10 and v4.15 are described from the published series and general
//! knowledge, not from their sources; their load balancer is that of v5.3.
//!
//! v7.3 places wakeups and forks as the kernel does; around that it leaves out:
//!
//! - misfit pulls refused by a CPU with a busy sibling (also in v6.12.117);
//! - has_idle_cores and nr_idle_scan of a whole domain of unequal CPUs that has
//!   more than one LLC: those of the target's LLC are read;
//! - proxy execution.

use crate::state::*;

/// The names that [`profile`] knows, oldest first.
pub fn kernel_names() -> Vec<&'static str> {
    KERNELS.iter().map(|&(name, _)| name).collect()
}

/// The profile of a kernel by name.
pub fn profile(kernel: &str) -> Option<Profile> {
    KERNELS.iter().find(|(name, _)| *name == kernel).map(|&(_, profile)| profile)
}

const KERNELS: &[(&str, Profile)] = &[
    ("v3.10", V3_10),
    ("v4.15", V4_15),
    ("v5.3", V5_3),
    ("v5.10", V5_10),
    ("v5.17", V5_17),
    ("v5.18", V5_18),
    ("v5.19", V5_19),
    ("v6.0", V6_0),
    ("v6.1.176", V6_1_176),
    ("v6.2", V6_2),
    ("v6.3", V6_3),
    ("v6.4", V6_4),
    ("v6.5", V6_5),
    ("v6.6", V6_6),
    ("v6.12", V6_12),
    ("v6.12.117", V6_12_117),
    ("v6.14", V6_14),
    ("v6.15", V6_15),
    ("v6.17", V6_17),
    ("v6.18", V6_18),
    ("v6.18.15", V6_18_15),
    ("v6.18.32", V6_18_32),
    ("v7.3", V7_3),
];

/// Major, minor and patch number.
type Release = (u32, u32, u32);

/// The newest kernel of [`kernel_names`] that is not newer than a running one, which says what
/// it is by a release such as `6.18.15+deb13-cloud-amd64`. None if the release makes no sense or
/// is older than all of them.
///
/// A stable kernel with a profile of its own stands for its own series only: v6.12.117 says
/// nothing of v6.13. What a distribution has back-ported shows in no release.
///
/// It may be followed by the version, as `uname -rv` and [`running_release`] have it.
pub fn kernel_for_release(release: &str) -> Option<&'static str> {
    let named = parse_release(release)?;
    let packaged = release.split_once(" Debian ").and_then(|(_, version)| parse_release(version));
    let is_same = |packaged: &Release| (packaged.0, packaged.1) == (named.0, named.1);
    let running = packaged.filter(is_same).unwrap_or(named);
    let known = |name: &str| parse_release(&name[1..]).expect("kernels are named after releases");
    let stands_for = |kernel: Release| {
        kernel <= running && (kernel.2 == 0 || (kernel.0, kernel.1) == (running.0, running.1))
    };
    kernel_names().into_iter().rfind(|name| stands_for(known(name)))
}

/// What the running kernel says it is: `uname -r`. Debian's 6.1.0-50 says only in its version that it is
/// 6.1.176; there that follows: `6.1.0-50-amd64 Debian 6.1.176-1`.
pub fn running_release() -> String {
    let uname = rustix::system::uname();
    release_with_package(&uname.release().to_string_lossy(), &uname.version().to_string_lossy())
}

fn release_with_package(release: &str, version: &str) -> String {
    let package = version.split_once("Debian ").and_then(|(_, rest)| rest.split(' ').next());
    let is_news = |package: &&str| parse_release(package) != parse_release(release);
    package
        .filter(is_news)
        .map_or_else(|| release.to_owned(), |package| format!("{release} Debian {package}"))
}

/// The numbers that a release begins with; without a third one it is 0.
fn parse_release(release: &str) -> Option<Release> {
    let mut parts = release.splitn(3, '.');
    let major = parts.next().filter(|major| major.bytes().all(|b| b.is_ascii_digit()))?;
    let major = major.parse().ok()?;
    let minor = leading_number(parts.next()?)?;
    let patch = parts.next().map_or(Some(0), leading_number)?;
    Some((major, minor, patch))
}

fn leading_number(text: &str) -> Option<u32> {
    let end = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    text[..end].parse().ok()
}

/// With which every kernel boots, in ns.
pub const MIGRATION_COST: u64 = 500_000;

const fn grows(ns: u64) -> Tunable {
    Tunable { ns, grows: true }
}

/// Before the smart wake-affine patch: every waker counts as affine.
pub const V3_10: Profile = Profile {
    wake_wide: WAKE_WIDE_NONE,
    affine: AFFINE_QUEUES,
    wa_idle: true,
    wa_weight: true,
    wa_bias: true,
    affine_prev_idle: false,
    affine_prev_idle_last: false,
    affine_short: AFFINE_SHORT_NONE,
    affine_counts_delayed: true,
    affine_skip_weight_if_short: false,
    affine_move_counts_prev: true,
    sis_util: false,
    sis_prop: false,
    sis_prop_wakes: false,
    scan_order: SCAN_CORE_SMT_OF_TARGET,
    scan_starts_after_target: false,
    scan_allowed_only: false,
    scan_cluster_first: false,
    scan_short: SCAN_SHORT_NONE,
    scan_filter: false,
    scan_node: false,
    sis_cache: SIS_CACHE_NONE,
    smt_scan_skips_prev: false,
    sched_idle_usable: false,
    sched_idle_wakee_usable: true,
    asym_scan_limited: false,
    asym_wants_idle_core: false,
    kthread_stacking: KTHREAD_STACKING_NONE,
    recent_used: RECENT_USED_NONE,
    recent_used_tests_prev: false,
    ttwu_queue: true,
    wake_list: WAKE_LIST_CROSS_LLC,
    wake_list_clear_early: true,
    run_length: RUN_LENGTH_NONE,
    short_threshold: SHORT_MIN_GRAN,
    short_needs_no_flips: false,

    fork: FORK_LEGACY,
    fork_numa: FORK_NUMA_ANY_IDLE,
    fork_stats_allowed_only: false,

    balance: BALANCE_LEGACY,
    balance_numa: BALANCE_NUMA_NONE,
    numa_balancing: true,
    busy_factor: 32,
    nr_migrate: SCHED_NR_MIGRATE,
    balance_smt: false,
    shared_runq: SHARED_RUNQ_NONE,
    cache_aware: CACHE_AWARE_NONE,
    llc_enabled: true,
    llc_aggr_tolerance: 1,
    llc_overaggr_pct: 50,
    llc_imb_pct: 20,
    newidle_gate: NEWIDLE_MIGRATION_COST,
    newidle_failure: NEWIDLE_FAILURE_ELAPSED,
    newidle_random: NEWIDLE_ALWAYS,
    newidle_skips_pending: false,
    preemption: false,
    avg_idle_at_switch: false,
    nohz_wants_idle_core: false,
    serialize_inside: false,
    active_balance_any_type: true,
    active_balance_backs_off: true,
    balance_runnable_terms: false,
    balance_fully_busy_later: false,
    balance_local_above_average: false,
    detach_load_halved: true,
    detach_delayed_load_only: false,
    detach_util_shifted: false,
    queue_util_uses_runnable: false,
    h_nr_without_delayed: false,
    busiest_equal_replaces: true,
    asym_packing: ASYM_PACKING_PRIORITY,
    misfit_wants_bigger_cpu: false,
    misfit_reduced_capacity: false,

    run_queue: RUN_QUEUE_CFS,
    group_load_rate_limited: false,
    empty_group_keeps_weight: false,
    preempt: PREEMPT_NONE,
    wakeup_preemption: true,
    wakeup_gran_scales: false,
    next_buddy: false,
    place_lag: true,
    delayed_dequeue: false,
    flat_queue: false,
    cgroup_mode: CGROUP_SMP,
    requeue_updates_curr: false,
    run_to_parity: true,
    min_protection: 0,
    protects_eligible: false,
    runnable_without_delayed: false,
    util_est: UTIL_EST_NONE,
    vprot: false,
    slice_floor: false,
    fork_preempts: true,
    lag_limit_adds_tick: false,
    delayed_keeps_lag: false,
    wakeup_picks: false,
    exec_start_reset_at_enqueue: false,

    wait_queue_batch: 0,
    pipe_wakes: PIPE_WAKES_ALL,
    measured: MEASURED_5_10,

    imbalance_pct: 125,
    cluster_level: false,
    imb_numa: IMB_NUMA_NONE,
    package_level_is_pkg: false,
    sibling_priority: SIBLING_PRIORITY_DIVIDED,
    asym_packing_smt: true,
    asym_capacity_spreads: false,
    schedstat_version: 15,

    migration_cost: MIGRATION_COST,
    min_gran: grows(750_000),
    latency: grows(6_000_000),
    wakeup_gran: grows(1_000_000),
    base_slice: grows(0),
};

/// Smart wake-affine is in, and averages of load; the search goes on to CPUs of busy cores, as far
/// as SIS_PROP lets it. A long wait queue is woken with breaks, 2554db916586 ("sched/wait: Break up
/// long wake list walk").
pub const V4_15: Profile = Profile {
    wake_wide: WAKE_WIDE_LLC,
    affine: AFFINE_LOADS,
    sis_prop: true,
    scan_order: SCAN_CORE_CPU_SMT_OF_TARGET,
    wait_queue_batch: 65,
    ..V3_10
};

/// prev-idle and recent_used_cpu are in; the last with the load balancer that compares averages.
pub const V5_3: Profile = Profile {
    affine_prev_idle: true,
    recent_used: RECENT_USED_ON_HIT,
    util_est: UTIL_EST_EWMA,
    ..V4_15
};

/// The reworked balancer and fork placement.
pub const V5_10: Profile = Profile {
    scan_allowed_only: true,
    sched_idle_usable: true,
    kthread_stacking: KTHREAD_STACKING_ANY_CONTEXT,
    wake_list: WAKE_LIST_CROSS_LLC_OR_ON_CPU,
    fork: FORK_REWORK,
    balance: BALANCE_REWORK,
    balance_numa: BALANCE_NUMA_BUSIEST_TWO,
    busy_factor: 16,
    balance_runnable_terms: true,
    detach_load_halved: false,
    util_est: UTIL_EST_FAST_UP,
    pipe_wakes: PIPE_WAKES_ON_FULL_READ,
    imbalance_pct: 117,
    ..V5_3
};

/// A busy LLC is searched in one walk; a NUMA level tolerates what a quarter of its CPUs runs. Whatever
/// its default is, a kernel is built to be preemptible, c597bfddc9e9 ("sched: Provide Kconfig support
/// for default dynamic preempt mode"): so are x86's defaults and those of the distributions.
pub const V5_17: Profile = Profile {
    affine_prev_idle_last: true,
    sis_prop_wakes: true,
    scan_order: SCAN_SMT_OF_PREV_THEN_MERGED,
    scan_starts_after_target: true,
    kthread_stacking: KTHREAD_STACKING_TASK_CONTEXT,
    recent_used: RECENT_USED_ALWAYS,
    recent_used_tests_prev: true,
    fork_numa: FORK_NUMA_QUARTER,
    balance_numa: BALANCE_NUMA_QUARTER_HALVED,
    asym_packing: ASYM_PACKING_BUSY_SIBLINGS,
    sibling_priority: SIBLING_PRIORITY_DIVIDED_SQUARED,
    cluster_level: true,
    slice_floor: true,
    newidle_gate: NEWIDLE_DOMAIN_COST,
    newidle_skips_pending: true,
    preemption: true,
    active_balance_any_type: false,
    active_balance_backs_off: false,
    ..V5_10
};

/// What a NUMA level tolerates is a number of the topology: e496132ebedd ("sched/fair: Adjust the
/// allowed NUMA imbalance when SD_NUMA spans multiple LLCs").
pub const V5_18: Profile = numa_imbalance_of_topology(V5_17);

/// As the one before.
pub const V5_19: Profile = V5_18;

/// The two changes to what NUMA levels tolerate that came in v5.18: for balancing also 2cfb7a1b031b
/// ("sched/fair: Use weight of SD_NUMA domain in find_busiest_group"), which it replaces.
pub(crate) const fn numa_imbalance_of_topology(profile: Profile) -> Profile {
    Profile {
        fork_numa: FORK_NUMA_RUNNING,
        balance_numa: BALANCE_NUMA_LIMIT_HALVED,
        imb_numa: IMB_NUMA_QUARTER,
        ..profile
    }
}

/// SIS_UTIL limits the search, 70fb5ccf2ebb ("sched/fair: Introduce SIS_UTIL to search idle CPU
/// based on sum of util_avg"); the NUMA allowance is applied consistently, cb29a5c19d2d
/// ("sched/numa: Apply imbalance limitations consistently"), and counts allowed CPUs only,
/// f5b2eeb49991 ("sched/fair: Consider CPU affinity when allowing NUMA imbalance in
/// find_idlest_group()").
pub const V6_0: Profile = Profile {
    sis_util: true,
    sis_prop: false,
    wake_list: WAKE_LIST_CROSS_LLC_OR_IDLE,
    fork_numa: FORK_NUMA_ADJUST,
    balance_numa: BALANCE_NUMA_LIMIT,
    misfit_reduced_capacity: true,
    imb_numa: IMB_NUMA_EIGHTH,
    ..V5_19
};

/// The stable kernel of Debian 12: newly-idle CPUs look at levels by their success, the sibling scan skips prev,
/// recent_used_cpu is tested itself, affine moves are counted as such, migrated tasks are hot until they are
/// enqueued, nothing is pulled to above the average.
pub const V6_1_176: Profile = Profile {
    affine_move_counts_prev: false,
    smt_scan_skips_prev: true,
    recent_used_tests_prev: false,
    newidle_random: NEWIDLE_BY_SUCCESS,
    balance_local_above_average: true,
    detach_util_shifted: true,
    exec_start_reset_at_enqueue: true,
    ..V6_0
};

/// A CPU looks idle no more while its wake list is emptied: d6962c4fe8f9 ("sched: Clear
/// ttwu_pending after enqueue_task()").
pub const V6_2: Profile = Profile { wake_list_clear_early: false, ..V6_0 };

/// A migrated task stays hot until it is enqueued: a53ce18cacb4 ("sched/fair: Sanitize vruntime of
/// entity being migrated").
pub const V6_3: Profile = Profile { exec_start_reset_at_enqueue: true, ..V6_2 };

/// Affine moves are counted as such: 39afe5d6fc59 ("sched/fair: Fix inaccurate tally of
/// ttwu_move_affine"); nothing is pulled to above the average: 91dcf1e8068e ("sched/fair: Fix
/// imbalance overflow").
pub const V6_4: Profile =
    Profile { affine_move_counts_prev: false, balance_local_above_average: true, ..V6_3 };

/// Asym packing goes to idle cores only, between packages instead of siblings, as for hybrid CPUs;
/// SMT groups are relieved first of those that are fully busy; runnable tasks count where one looks
/// for the busiest queue: 7d0583cf9ec7 ("sched/fair, cpufreq: Introduce 'runnable boosting'").
pub const V6_5: Profile = Profile {
    balance_fully_busy_later: true,
    asym_packing: ASYM_PACKING_IDLE_CORE,
    sibling_priority: SIBLING_PRIORITY_EQUAL,
    asym_packing_smt: false,
    queue_util_uses_runnable: true,
    ..V6_4
};

/// EEVDF, 147f3efaa241 ("sched/fair: Implement an EEVDF-like scheduling policy"), without delayed
/// dequeue yet; balancing between cores of unlike numbers of threads; recent_used_cpu is tested
/// itself: ae2ad293d6be ("sched/fair: Use recent_used_cpu to test p->cpus_ptr").
pub const V6_6: Profile = Profile {
    recent_used_tests_prev: false,
    balance_smt: true,
    run_queue: RUN_QUEUE_EEVDF,
    base_slice: grows(750_000),
    ..V6_5
};

/// Delayed dequeue, 152e11f6df29 ("sched/fair: Implement delayed dequeue"); clusters are searched
/// first, 8881e1639f1f ("sched/fair: Scan cluster before scanning LLC in wake-up path") and
/// 22165f61d0c4 ("sched/fair: Use candidate prev/recent_used CPU if scanning failed for cluster
/// wakeup"); load of task groups is told less often, 1528c661c24b ("sched/fair: Ratelimit update to
/// tg->load_avg"); wait queues are woken without breaks ("sched: remove wait bookmarks"); and what came
/// in between or before, since v6.0, on a date not known here.
pub const V6_12: Profile = Profile {
    scan_cluster_first: true,
    smt_scan_skips_prev: true,
    detach_util_shifted: true,
    busiest_equal_replaces: false,
    misfit_wants_bigger_cpu: true,
    group_load_rate_limited: true,
    empty_group_keeps_weight: true,
    delayed_dequeue: true,
    util_est: UTIL_EST_SINGLE,
    wait_queue_batch: 0,
    measured: MEASURED_6_12,
    package_level_is_pkg: true,
    schedstat_version: 16,
    ..V6_6
};

/// The stable kernel: delayed tasks are told apart from runnable ones, newly-idle CPUs look at
/// levels by their success, fork statistics count allowed CPUs only.
pub const V6_12_117: Profile = Profile {
    affine_counts_delayed: false,
    fork_stats_allowed_only: true,
    newidle_random: NEWIDLE_BY_SUCCESS,
    h_nr_without_delayed: true,
    runnable_without_delayed: true,
    base_slice: grows(700_000),
    ..V6_12
};

/// Delayed tasks are told apart from runnable ones, and so are ineligible ones when balancing.
pub const V6_14: Profile = Profile {
    affine_counts_delayed: false,
    detach_delayed_load_only: true,
    h_nr_without_delayed: true,
    preempt: PREEMPT_FULL,
    runnable_without_delayed: true,
    schedstat_version: 17,
    ..V6_12
};

/// Slices are shorter, 2ae891b82695 ("sched: Reduce the default slice to avoid tasks getting an
/// extra tick"), and pipes wake writers less, aaec5a95d596 ("pipe_read: don't wake up the writer if
/// the pipe is still full").
pub const V6_15: Profile = Profile {
    base_slice: grows(700_000),
    pipe_wakes: PIPE_WAKES_ON_FREED_SLOT,
    measured: MEASURED_6_18,
    ..V6_14
};

/// Protection ends at a point of its own; newly-idle passes that fail cost more: 155213a2aed4
/// ("sched/fair: Bump sd->max_newidle_lb_cost when newidle balance fails").
pub const V6_17: Profile = Profile {
    newidle_failure: NEWIDLE_FAILURE_GROWS,
    vprot: true,
    min_protection: 700_000,
    ..V6_15
};

/// As the one before.
pub const V6_18: Profile = V6_17;

/// The stable kernel: newly-idle passes cost what they take, and levels are looked at by their success. It preempts
/// lazily, as Debian builds it: so its traces have it.
pub const V6_18_15: Profile = Profile {
    preempt: PREEMPT_LAZY,
    newidle_failure: NEWIDLE_FAILURE_ELAPSED,
    newidle_random: NEWIDLE_BY_SUCCESS,
    ..V6_18
};

/// The same later on: a wakeup that may preempt lets delayed tasks go that a pick comes upon, ac8e69e69363
/// ("sched/fair: Fix wakeup_preempt_fair() vs delayed dequeue"), and a new child preempts nobody, which came along
/// (v6.19).
pub const V6_18_32: Profile = Profile { wakeup_picks: true, fork_preempts: false, ..V6_18_15 };

/// SCHED_IDLE wakees look for idle CPUs, unequal CPUs are searched for an idle core within the
/// limit, idle time is sampled when it ends, newly-idle CPUs look at levels by their success; threads
/// of a process gather on an LLC (v7.2); tasks of all groups compete at one level, and a group weighs
/// more with more tasks; a lag is at most a slice and a tick (v6.19), and does not fall while its task is
/// delayed (v7.1). Debian's preempts lazily.
pub const V7_3: Profile = Profile {
    cache_aware: CACHE_AWARE_MERGED,
    measured: MEASURED_7_3,
    preempt: PREEMPT_LAZY,
    sched_idle_wakee_usable: false,
    asym_scan_limited: true,
    asym_wants_idle_core: true,
    fork_stats_allowed_only: true,
    newidle_failure: NEWIDLE_FAILURE_ELAPSED,
    newidle_random: NEWIDLE_BY_SUCCESS_AND_RATE,
    avg_idle_at_switch: true,
    nohz_wants_idle_core: true,
    serialize_inside: true,
    flat_queue: true,
    cgroup_mode: CGROUP_CONCUR,
    requeue_updates_curr: true,
    // Without RUN_TO_PARITY the base slice of one CPU is a shorter slice than the task's, and a shorter one protects
    // only for the share. Chosen with rows of studies/interventions without that knob in view.
    protects_eligible: true,
    lag_limit_adds_tick: true,
    delayed_keeps_lag: true,
    fork_preempts: false,
    wakeup_picks: true,
    asym_capacity_spreads: true,
    ..V6_18
};

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_release_gets_the_newest_kernel_that_is_not_newer() {
        for (release, kernel) in [
            ("7.3.4", "v7.3"),
            ("7.3-rc2", "v7.3"),
            ("8.0", "v7.3"),
            ("7.2.9", "v6.18"),
            ("6.18.15+deb13-cloud-amd64", "v6.18.15"),
            ("6.18.31", "v6.18.15"),
            ("6.18.44-custom", "v6.18.32"),
            ("6.18.14", "v6.18"),
            ("6.17.0", "v6.17"),
            ("6.13.0-2-generic", "v6.12"),
            ("6.12.200", "v6.12.117"),
            ("6.12.117+deb13-amd64", "v6.12.117"),
            ("6.12.116", "v6.12"),
            ("6.12-amd64", "v6.12"),
            ("6.8.0-31-generic", "v6.6"),
            ("6.1.0-28-amd64", "v6.0"),
            ("6.1.0-50-amd64 #1 SMP PREEMPT_DYNAMIC Debian 6.1.176-1 (2026-07-02)", "v6.1.176"),
            ("6.1.0-28-amd64 #1 SMP PREEMPT_DYNAMIC Debian 6.1.119-1 (2024-11-22)", "v6.0"),
            ("6.18.14 #1 SMP built beside Debian 6.1.176-1", "v6.18"),
            ("5.10.0-28-amd64", "v5.10"),
            ("5.4.0", "v5.3"),
            ("3.10.0-1160.el7.x86_64", "v3.10"),
        ] {
            assert_eq!(kernel_for_release(release), Some(kernel), "{release}");
        }
    }

    #[test]
    fn a_release_is_told_with_debians_package_where_that_alone_has_the_patch_number() {
        let version = |package| format!("#1 SMP PREEMPT_DYNAMIC Debian {package} (2026-07-02)");
        for (release, version, told) in [
            ("6.1.0-50-amd64", version("6.1.176-1"), "6.1.0-50-amd64 Debian 6.1.176-1"),
            ("6.12.117+deb13-amd64", version("6.12.117-1"), "6.12.117+deb13-amd64"),
            ("6.8.0-31-generic", "#31-Ubuntu SMP".to_owned(), "6.8.0-31-generic"),
        ] {
            assert_eq!(release_with_package(release, &version), told);
        }
        assert_eq!(kernel_for_release("6.1.0-50-amd64 Debian 6.1.176-1"), Some("v6.1.176"));
    }

    #[test]
    fn a_release_that_is_none_or_too_old_gets_no_kernel() {
        for release in [
            "",
            "6",
            "6.",
            ".6",
            "6..1",
            "6.x",
            "6.1.",
            "v6.1",
            "-6.1",
            "+6.1",
            "linux",
            "99999999999.1",
            "6.99999999999",
            "2.6.32",
            "3.9.11",
        ] {
            assert_eq!(kernel_for_release(release), None, "{release}");
        }
    }

    #[test]
    fn kernels_are_named_after_releases_and_stand_in_their_order() {
        let releases: Vec<_> =
            kernel_names().iter().map(|name| parse_release(&name[1..]).unwrap()).collect();
        assert!(releases.is_sorted());
        for name in kernel_names() {
            assert_eq!(kernel_for_release(&name[1..]), Some(name));
        }
    }
}
