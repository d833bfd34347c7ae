/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * profile.h: what differs between kernels and patches, one field a difference.
 *
 * No decision asks which version it is simulating; it reads the field. A kernel
 * is a profile, a patch is a named change to one. The values stand in
 * crates/placewise-policy/src/kernel.rs and patch.rs.
 */
#ifndef PLACEWISE_PROFILE_H
#define PLACEWISE_PROFILE_H

#include "types.h"

/* When a waker with many wakees makes the wakeup wide, so not affine. */
enum wake_wide_rule {
	WAKE_WIDE_NONE,
	WAKE_WIDE_NODE, /* as posted in 2013: only a waker counts as the one with many; flips against the CPUs of the node, forgotten each second */
	WAKE_WIDE_LLC, /* flips against the size of the LLC, halved each second */
};

/* How wake_affine() decides. */
enum affine_rule {
	AFFINE_QUEUES, /* the weight queued on either CPU at this moment (v3.10) */
	AFFINE_LOADS, /* clauses about idle CPUs, then averages of load */
};

/* In which passes the LLC is searched. */
enum scan_order {
	SCAN_CORE_SMT_OF_TARGET, /* cores, then target's siblings: no CPU of another busy core */
	SCAN_CORE_CPU_SMT_OF_TARGET, /* cores, then CPUs, then target's siblings */
	SCAN_SMT_OF_PREV_THEN_MERGED, /* prev's siblings, then cores and CPUs in one walk */
};

/* When recent_used_cpu is written. */
enum recent_used_rule {
	RECENT_USED_NONE, /* not kept at all */
	RECENT_USED_ON_HIT, /* set to prev on a hit; the waker's own after an affine search */
	RECENT_USED_ALWAYS, /* set to prev before it is tested */
};

/* Which rule wake_affine_idle has beside the mainline ones. */
enum affine_short_rule {
	AFFINE_SHORT_NONE,
	AFFINE_SHORT_V1,      /* joins clause 2, no bound on nr_running */
	AFFINE_SHORT_HONGLEI, /* joins clause 2, inside its nr_running bound */
	AFFINE_SHORT_LAST,    /* clause 4: waker alone and short */
	AFFINE_SHORT_SYNC_LAST, /* clause 4, for sync wakeups only */
};

/* Where in select_idle_sibling a short task stops the search. */
enum scan_short_rule {
	SCAN_SHORT_NONE,
	SCAN_SHORT_V1, /* busy LLC, wakee and target's current short */
	SCAN_SHORT_V2, /* busy LLC, target's current short and alone */
	SCAN_SHORT_V4, /* no idle core, both short; before the search, no utilisation test */
	SCAN_SHORT_V5,	    /* busy LLC, target is the waking CPU, both short */
	SCAN_SHORT_CURRENT, /* each the other's last wakee, both short: waking CPU */
	SCAN_SHORT_SYNC, /* the same, for sync wakeups without an idle core */
};

/* Whom the CPU of a task that sleeps briefly is kept for: sis_cache.h. */
enum sis_cache_rule {
	SIS_CACHE_NONE,
	SIS_CACHE_RFC, /* for its sleeper; no other wakee that searches gets it */
	SIS_CACHE_V1, /* the first such CPU is taken if a whole search finds no other */
	SIS_CACHE_V2, /* and those beyond half of the search's limit like any other */
};

/* Whether a wakee stays with a per-CPU kthread that wakes it (I/O completion). */
enum kthread_rule {
	KTHREAD_STACKING_NONE,
	KTHREAD_STACKING_ANY_CONTEXT,
	KTHREAD_STACKING_TASK_CONTEXT,
};

/* How the run length of a task is measured. */
enum run_length_metric {
	RUN_LENGTH_NONE,
	RUN_LENGTH_TOTAL, /* sum_exec_runtime against voluntary switches */
	RUN_LENGTH_AVERAGE_OUTLIERS, /* average that only takes large deviations */
	RUN_LENGTH_AVERAGE,	     /* average of every sample */
};

/* Which run length counts as short. */
enum short_threshold {
	SHORT_MIN_GRAN,		     /* <= minimum granularity */
	SHORT_MIN_GRAN_EIGHTH,	     /* nonzero, 8 * d <= minimum granularity */
	SHORT_BELOW_MIN_GRAN_EIGHTH, /* nonzero, 8 * d < minimum granularity */
	SHORT_MIGRATION_COST,	     /* nonzero, below the migration cost */
	SHORT_LLC_SIZE, /* d << 16 below migration cost * LLC size squared */
};

enum balance_algorithm {
	BALANCE_LEGACY,	   /* before the rework: averages of loads */
	BALANCE_REWORK_V2, /* the rework as posted in August 2019 */
	BALANCE_REWORK,	   /* the rework as merged */
};

enum fork_algorithm {
	FORK_LEGACY, /* runnable load and average load per group */
	FORK_REWORK, /* group types and idle CPUs */
};

/* When fork placement stays in the local NUMA node although it has fewer idle CPUs. */
enum fork_numa_rule {
	FORK_NUMA_ANY_IDLE, /* any idle CPU here */
	FORK_NUMA_QUARTER, /* running here below a quarter of all CPUs of the level */
	FORK_NUMA_RUNNING,	   /* running + 1 within imb_numa_nr */
	FORK_NUMA_RUNNING_ALLOWED, /* and within the allowed CPUs here */
	FORK_NUMA_ADJUST, /* adjust_numa_imbalance() says the difference is nothing */
};

/* Which imbalance a NUMA level of the load balancer tolerates. */
enum balance_numa_rule {
	BALANCE_NUMA_NONE,
	BALANCE_NUMA_BUSIEST_TWO, /* busiest has at most 2 running; after halving */
	BALANCE_NUMA_QUARTER_HALVED, /* busiest runs less than a quarter of its CPUs; after halving */
	BALANCE_NUMA_LIMIT_HALVED, /* imb_numa_nr, after halving */
	BALANCE_NUMA_LIMIT,	   /* imb_numa_nr, before halving */
};

/* When a wakeup goes over the target's wake list. */
enum wake_list_rule {
	WAKE_LIST_CROSS_LLC,
	WAKE_LIST_CROSS_LLC_OR_ON_CPU, /* and the on_cpu shortcut, one runnable at most */
	WAKE_LIST_CROSS_LLC_OR_IDLE, /* and targets with nothing queued */
};

enum newidle_gate {
	NEWIDLE_MIGRATION_COST, /* avg_idle against the migration cost */
	NEWIDLE_DOMAIN_COST,	/* avg_idle against the lowest domain's cost */
};

/* How much a task group weighs on all its CPUs together, which its load there divides. */
enum cgroup_mode {
	CGROUP_SMP, /* its shares, whatever it runs */
	CGROUP_CONCUR, /* its shares for each task that it has runnable, up to its CPUs */
	CGROUP_TASKS, /* the same without that limit */
	CGROUP_MAX, /* its shares for each CPU, but on none more than a task at nice -20 */
	CGROUP_UP, /* its shares on each CPU, undivided */
};

/* What a newly-idle pass that pulled nothing does to the recorded cost. */
enum newidle_failure {
	NEWIDLE_FAILURE_ELAPSED, /* the elapsed time, as for any pass */
	NEWIDLE_FAILURE_GROWS,	 /* the old cost, and half as much again */
};

/* When a fair task gives way to a fair one that is enqueued on its CPU: resched_curr_lazy(). */
enum preempt_mode {
	PREEMPT_NONE, /* an interrupt tells it, a call is over first; as voluntary */
	PREEMPT_FULL, /* at once: an interrupt tells it */
	PREEMPT_LAZY, /* on its return to user space, or at the next tick */
};

/* Whether tasks that wait stand in lists of their LLC too: shared_runq.h. */
enum shared_runq_rule {
	SHARED_RUNQ_NONE,
	SHARED_RUNQ_ALWAYS, /* a CPU that runs out looks there first */
	SHARED_RUNQ_IDLE_CHECK, /* if it expects to idle for longer than balancing takes */
};

/* Whether threads of a process gather on an LLC: cache_aware.h. */
enum cache_aware_rule {
	CACHE_AWARE_NONE,
	CACHE_AWARE_WAKEUP,  /* RFC of March 2025: wakeups look there first */
	CACHE_AWARE_BALANCE, /* third RFC: the load balancer brings them there */
	CACHE_AWARE_GATED, /* first version: unless they are too many, or their memory too much */
	CACHE_AWARE_MERGED, /* v7.2: a group's type, and given up where balancing fails */
};

/* How often a newly-idle CPU looks at a level: newidle_random.h. */
enum newidle_random_rule {
	NEWIDLE_ALWAYS,
	NEWIDLE_BY_SUCCESS, /* NI_RANDOM: as often as it pulled something */
	NEWIDLE_BY_SUCCESS_AND_RATE, /* NI_RATE: and more often if that is seldom */
};

/* Between which CPUs SD_ASYM_PACKING moves tasks: asym_packing.h. */
enum asym_packing_rule {
	ASYM_PACKING_PRIORITY, /* to any idle CPU of higher priority */
	ASYM_PACKING_BUSY_SIBLINGS, /* cores by how many of their siblings are busy */
	ASYM_PACKING_IDLE_CORE, /* to CPUs of fully idle cores only */
};

/* What the threads of a core have of its priority. */
enum sibling_priority_rule {
	SIBLING_PRIORITY_DIVIDED,	  /* the nth one an nth */
	SIBLING_PRIORITY_DIVIDED_SQUARED, /* and an nth of that */
	SIBLING_PRIORITY_EQUAL,
};

/* Whom a pipe wakes. */
enum pipe_wake_rule {
	PIPE_WAKES_ALL, /* all sleepers, at every transfer */
	PIPE_WAKES_ON_FULL_READ, /* one reader on empty, one writer at every read of a full pipe */
	PIPE_WAKES_ON_FREED_SLOT, /* one writer only when a read of a full pipe frees a slot */
};

/* From which version on the kernel executes as much as there. */
enum measured_kernel {
	MEASURED_5_10, /* and before: not measured */
	MEASURED_6_12,
	MEASURED_6_18,
	MEASURED_7_3,
};

/* How the utilisation estimate of a task follows its utilisation. */
enum util_est_rule {
	UTIL_EST_NONE,
	UTIL_EST_EWMA,	  /* enqueued value and a moving average */
	UTIL_EST_FAST_UP, /* the average jumps up at once */
	UTIL_EST_SINGLE,  /* one value that jumps up and moves down */
};

/* How many tasks a NUMA node with one LLC may take before balance cares. */
enum imb_numa_rule {
	IMB_NUMA_NONE,
	IMB_NUMA_QUARTER, /* of the node's CPUs */
	IMB_NUMA_EIGHTH,
};

enum run_queue_class {
	RUN_QUEUE_CFS,
	RUN_QUEUE_EEVDF,
};

/* A time constant in ns. */
struct tunable {
	u64 ns;
	bool grows; /* with the logarithm of the number of CPUs, as long as nobody sets it */
};

/* What is named in capitals in a comment is a feature of that name: knob.rs. */
struct profile {
	/* wakeup */
	enum wake_wide_rule wake_wide;
	enum affine_rule affine;
	bool wa_idle;	/* WA_IDLE: the clauses about idle CPUs */
	bool wa_weight; /* WA_WEIGHT: the comparison of loads */
	bool wa_bias;	/* WA_BIAS: the previous CPU's bonus in it */
	bool affine_prev_idle; /* clause 1 answers prev if that is idle, instead of the waking CPU */
	bool affine_prev_idle_last; /* clause 3: prev idle => prev */
	enum affine_short_rule affine_short;
	bool affine_counts_delayed; /* clause 2 counts delayed tasks too */
	bool affine_skip_weight_if_short;
	bool affine_move_counts_prev; /* a decision for prev counts as an affine move */
	bool sis_util; /* SIS_UTIL: a search looks at nr_idle_scan CPUs, from LLC utilisation */
	bool sis_prop; /* SIS_PROP: else at as many as the idle time pays for; else at all */
	bool sis_prop_wakes; /* which is wake_avg_idle instead of avg_idle / 512 */
	enum scan_order scan_order;
	bool scan_starts_after_target; /* wrap start target + 1 instead of target */
	bool scan_allowed_only;	       /* the limit counts allowed CPUs only */
	bool scan_cluster_first;
	enum scan_short_rule scan_short;
	bool scan_filter; /* an SMT machine's searches leave out cores that had nothing idle when one failed */
	bool scan_node;	  /* after the LLC the others of the node */
	enum sis_cache_rule sis_cache;
	bool smt_scan_skips_prev;
	bool sched_idle_usable; /* a CPU with SCHED_IDLE tasks only counts as usable */
	bool sched_idle_wakee_usable; /* for a SCHED_IDLE wakee too */
	bool asym_scan_limited; /* scan_limit holds for the search of unequal CPUs too */
	bool asym_wants_idle_core; /* which takes a fully idle core first */
	enum kthread_rule kthread_stacking;
	enum recent_used_rule recent_used;
	bool recent_used_tests_prev; /* the affinity test looks at the new value (prev) */
	bool ttwu_queue;	     /* TTWU_QUEUE: there are wake lists */
	enum wake_list_rule wake_list;
	bool wake_list_clear_early; /* pending mark cleared before the tasks are enqueued */
	enum run_length_metric run_length;
	enum short_threshold short_threshold;
	bool short_needs_no_flips;

	/* fork */
	enum fork_algorithm fork;
	enum fork_numa_rule fork_numa;
	bool fork_stats_allowed_only;

	/* balance */
	enum balance_algorithm balance;
	enum balance_numa_rule balance_numa;
	bool numa_balancing; /* memory follows tasks, and they it: the engine's matter */
	u32 busy_factor;
	u32 nr_migrate; /* tasks that one attempt looks at, SCHED_NR_MIGRATE at most */
	bool balance_smt; /* group_smt_balance, core-weighted siblings, idle-core preference */
	enum shared_runq_rule shared_runq;
	enum cache_aware_rule cache_aware;
	bool llc_enabled; /* cache awareness is switched on, if the kernel has it */
	u32 llc_aggr_tolerance; /* so large may processes be that gather; from 100 on, any */
	u32 llc_overaggr_pct; /* up to this utilisation an LLC takes threads in */
	u32 llc_imb_pct; /* and beyond, unless it is used by so much more than theirs */
	enum newidle_gate newidle_gate;
	enum newidle_failure newidle_failure;
	enum newidle_random_rule newidle_random;
	bool newidle_skips_pending; /* no newly-idle balance with a wakeup pending */
	bool preemption; /* CONFIG_PREEMPTION: a newly-idle pass takes one task */
	bool avg_idle_at_switch; /* sampled when the idle task is switched out, not at wakeups */
	bool nohz_wants_idle_core; /* a CPU of a fully idle core balances for all, if there is one */
	bool serialize_inside; /* the lock of NUMA levels is taken inside an attempt, not around it */
	bool active_balance_any_type;
	bool active_balance_backs_off; /* 5.10 and older: failed count and interval after a kick */
	bool balance_runnable_terms; /* overload tests use runnable_avg */
	bool balance_fully_busy_later; /* on equal fully busy groups the later one wins */
	bool balance_local_above_average; /* nothing to pull when local is above the domain average */
	bool detach_load_halved; /* a task moves with up to twice the load that is to move; else the tolerance grows with failures */
	bool detach_delayed_load_only; /* delayed tasks move for migrate_load only; ineligible refused at first */
	bool detach_util_shifted; /* migrate_util tolerance grows with failures */
	bool queue_util_uses_runnable; /* busiest queue by max(util, runnable, util_est) */
	bool h_nr_without_delayed; /* group sums do not count delayed tasks as runnable */
	bool busiest_equal_replaces; /* of two groups alike in misfit load or priority the later one wins */
	enum asym_packing_rule asym_packing;
	bool misfit_wants_bigger_cpu; /* a task is no misfit on the biggest CPU it may use */
	bool misfit_reduced_capacity; /* a lone task is one, on a CPU that RT tasks use up */

	/* run queue */
	enum run_queue_class run_queue;
	bool flat_queue; /* tasks of all groups compete at one level */
	enum cgroup_mode cgroup_mode;
	bool group_load_rate_limited; /* a CPU tells its task group's load once a ms at most */
	bool empty_group_keeps_weight; /* a task group's entity without tasks is not weighed */
	enum preempt_mode preempt;
	bool wakeup_preemption; /* WAKEUP_PREEMPTION: what is queued may preempt what runs */
	bool wakeup_gran_scales; /* CFS: the wakeup granularity grows with the tasks that are queued */
	bool next_buddy; /* EEVDF: NEXT_BUDDY as reworked: an eligible wakee goes before others */
	bool place_lag; /* PLACE_LAG: a task comes back with the lag it left with */
	bool delayed_dequeue; /* DELAY_DEQUEUE */
	bool requeue_updates_curr; /* what current has run counts when a delayed task is woken */
	bool run_to_parity; /* RUN_TO_PARITY: what was picked is protected for its slice */
	u64 min_protection; /* without that, for so many ns */
	bool protects_eligible; /* without that, until it has had its share of what was queued */
	bool runnable_without_delayed; /* PELT runnable does not count delayed tasks */
	enum util_est_rule util_est;
	bool vprot; /* EEVDF: current's protection ends at a point of its own, not by a new deadline */
	bool slice_floor;   /* CFS: no slice below the minimum granularity */
	bool fork_preempts; /* a new child may preempt its parent's CPU */
	bool lag_limit_adds_tick; /* EEVDF: of a slice and a tick, instead of two slices or a tick */
	bool delayed_keeps_lag; /* EEVDF: a task's lag does not fall while it is delayed */
	bool wakeup_picks; /* EEVDF: what preempts is picked as at a switch: delayed tasks before it leave */
	bool exec_start_reset_at_enqueue; /* hotness is lost at enqueue, not when the CPU changes */

	/* what is around the scheduler */
	u32 wait_queue_batch; /* wakeups until a wait queue's lock is let go in between; 0: never */
	enum pipe_wake_rule pipe_wakes;
	enum measured_kernel measured;

	/* sched domains, for the engine that builds them */
	u32 imbalance_pct; /* of the levels above the LLC */
	bool cluster_level;
	enum imb_numa_rule imb_numa;
	bool package_level_is_pkg; /* named PKG instead of DIE */
	enum sibling_priority_rule sibling_priority;
	bool asym_packing_smt; /* SD_ASYM_PACKING is set at the SMT level, but not at PKG */
	bool asym_capacity_spreads; /* below SD_ASYM_CPUCAPACITY, SD_PREFER_SIBLING stays */
	u32 schedstat_version;

	u64 migration_cost; /* ns */
	struct tunable min_gran;
	struct tunable latency;	    /* CFS */
	struct tunable wakeup_gran; /* CFS */
	struct tunable base_slice;  /* EEVDF */
};

#endif
