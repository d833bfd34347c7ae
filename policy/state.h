/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * state.h: everything a placement decision may read or write.
 *
 * One struct state, owned by the engine, fixed in size, full of indices instead
 * of pointers, and the same bytes in native C, in BPF and in Rust
 * (which is translated from this file; a test compares every offset).
 *
 *   cpu[c], rq[c]        what is fixed and what changes about CPU c
 *   domain[c][level]     its chain of sched domains, smallest first
 *   span[], group[]      what all CPUs of a domain share; groups of a span are
 *                        neighbours, in ring order
 *   llc[]                sd_llc_shared
 *   task[]               task c < NR_CPUS is the idle task of CPU c
 *   task_group[]         the hierarchy of cgroups with a cpu controller
 *   group_rq[g][c]       what CPU c has of task group g; group 0 is the root,
 *                        whose cfs_rq is in rq[c]
 *   process[p]           what has threads and memory; 0 means none that is tracked
 *   process_rq[c][p]     what process p has run on CPU c
 *
 * Limits: 1,024 CPUs, 8 domain levels, 8 SMT siblings, 255 task groups besides
 * the root in 8 levels, 4,095 processes.
 */
#ifndef PLACEWISE_STATE_H
#define PLACEWISE_STATE_H

#include "cpumask.h"
#include "profile.h"
#include "types.h"

#define NR_LEVELS 8
#define NR_SIBLINGS 8
#define NR_SPANS 4096
#define NR_GROUPS 8192
#define NR_TASKS 65536
#define NR_TASK_GROUPS 256
#define NR_TASK_GROUP_LEVELS 8
#define NR_PROCESSES 4096
#define WALK_WORDS 5 /* u64 that any walk over levels or CPUs fits in */

/* Tasks are in it unless they are put elsewhere. */
#define ROOT_TASK_GROUP 0

/* Tasks of the kernel, and of processes that are not tracked. */
#define NO_PROCESS 0

/* The first task that is not the idle task of some CPU. */
#define FIRST_TASK NR_CPUS
#define NO_TASK U32_MAX

#define SCHED_CAPACITY_SCALE 1024
#define NICE_0_LOAD 1024

/* rq.idle_exit_latency of a CPU that is in no idle state, or in an unknown one. */
#define LATENCY_UNKNOWN U32_MAX

/* sched_avg: PELT of a task or a cfs_rq. Sums are in units of 1,024 ns. */
struct sched_avg {
	u64 last_update_time; /* ns; 0 = attached to no cfs_rq */
	u64 load_sum;
	u64 runnable_sum;
	u32 util_sum;
	u32 period_contrib;
	u64 load_avg;
	u64 runnable_avg;
	u64 util_avg;
};

struct task {
	struct sched_avg avg;

	u64 exec_start; /* ns; when it last started running or was accounted */
	u64 sum_exec_runtime;	/* ns */
	u64 prev_sleep_runtime; /* sum_exec_runtime at the last voluntary sleep */
	u64 run_length_avg;	/* ns; "dur_avg" of the short-task patches */
	u64 nvcsw;		/* voluntary switches */
	u64 nivcsw;		/* involuntary switches */

	u64 wakee_flip_decay_ts; /* jiffies */
	u32 last_wakee;
	u32 wakee_flips;

	u32 weight; /* 1024 at nice 0 */
	u32 util_est_enqueued;
	u32 util_est_ewma;
	u32 util_changed; /* util_avg was recomputed since the last util_est update */

	u32 mru_prev, mru_next; /* rq.mru or rq.rt list, NO_TASK at the ends */

	u16 cpu; /* the CPU it runs, is queued or last was on */
	u16 recent_used_cpu;
	u16 nr_cpus_allowed;
	u8 on_rq;	/* queued, current included */
	u8 delayed;	/* asleep but still queued (delayed dequeue) */
	u8 idle_policy; /* SCHED_IDLE */
	u8 per_cpu_kthread;
	u8 exiting;
	u8 hint;     /* enum hint */
	u8 eligible; /* EEVDF: v <= V at the last time the engine looked; CFS: 1 */
	u8 rt_priority; /* of a SCHED_FIFO or SCHED_RR task, 1 to 99; 0 = CFS */
	u16 process;
	u32 sleep_avg;	   /* ns; sis_cache.h */
	u16 preferred_llc; /* and one: 0 = none; cache_aware.h */
	u16 reserved;
	u32 task_group;
	u32 shared_prev,
		shared_next; /* shared_runq.h; next is 0 for a task in no list */

	struct cpumask cpus_allowed;
};

struct cfs_rq {
	struct sched_avg avg;
	u64 load_weight; /* sum of the weights queued, delayed tasks included */
	s64 propagate_sum; /* load_sum of what came and went, for the entity above */
	u64 h_load; /* what the cfs_rq counts for in the CPU's load: load.h */
	u64 last_h_load_update; /* jiffies */
	u64 removed_load;	/* of blocked tasks that were migrated away */
	u64 removed_runnable;
	u64 removed_util;
	u32 removed_nr;
	u32 util_est;	 /* sum of the estimates of queued tasks */
	u32 h_nr_queued; /* CFS tasks, delayed ones included */
	u32 h_nr_delayed;
	u32 h_nr_idle;	 /* queued SCHED_IDLE tasks */
	u16 propagate;	 /* averages came or went that the entity above lacks */
	u16 h_load_next; /* task group: the way down while h_load is computed */
};

/* A cgroup with a cpu controller. */
struct task_group {
	u64 load_avg;	  /* sum of what its CPUs have contributed */
	u64 runnable_avg; /* likewise */
	u32 shares;	  /* 1024 by default */
	u32 parent;	  /* always a smaller number */
	u32 depth;	  /* levels below the root */
	u32 exists;	  /* else its number is free */
};

/* A process, and where its threads are to gather: cache_aware.h. */
struct process {
	u64 footprint;	/* bytes of memory */
	u64 epoch;	/* in which LLCs were compared last */
	u32 nr_threads; /* 0 = its number is free */
	u32 nr_running_avg;
	u32 preferred_cpu; /* of its preferred LLC; NO_CPU = none */
	u32 reserved;
};

/* What a process has run on a CPU. */
struct process_rq {
	u64 runtime; /* ns; halved every epoch, up to this one: */
	u64 epoch;
	u64 occupancy; /* of the LLC, when LLCs were compared last */
};

/*
 * A CPU's part of a task group: its cfs_rq, and the entity that stands for it in
 * the cfs_rq of the parent.
 */
struct group_rq {
	struct cfs_rq cfs;
	struct sched_avg avg;	     /* of the entity */
	u64 tg_load_avg_contrib;     /* its part of the task group's load_avg */
	u64 tg_runnable_avg_contrib; /* and of its runnable_avg */
	u64 last_update_tg_load_avg; /* ns */
	u64 runnable_load; /* used while cpu_runnable_load() sums up */
	u32 weight;	   /* of the entity; 0 = it has no averages yet */
	u32 runnable; /* tasks in it that could run, when one last came or went */
	u16 on_rq;    /* the entity is queued */
	u16 delayed; /* without tasks, until its lag is spent: who keeps the queue says so */
	u16 throttled; /* out of runtime: its tasks wait, but the entity does not */
	u16 throttle_count; /* so many are throttled of it and the groups above */
	u64 throttled_clock; /* ns; since when its averages stand still, if they do */
	u64 throttled_time; /* ns; how long they had stood still before */
};

/* What never changes about a CPU between two rebuilds of the topology. */
struct cpu {
	u16 siblings
		[NR_SIBLINGS]; /* of its core, itself included, in increasing order */
	u16 nr_siblings;
	u16 llc;
	u16 cluster_first; /* the lowest CPU of its cluster: CPUs with the same one share it */
	u16 node;
	u16 nr_domains;
	u16 node_cpus; /* CPUs in its NUMA node */
	u32 capacity_orig;
	s32 asym_priority; /* greater wins */
	u16 shared_first; /* of the CPUs that share its list of waiting tasks: shared_runq.h */
	u16 shared_next; /* and of those that share the LLC's next one */
};

struct rq {
	struct cfs_rq cfs;

	/* What has run in the RT class, and the clock of all these averages: pelt.h */
	struct sched_avg avg_rt;
	u64 clock_pelt;
	u64 clock_pelt_at; /* ns; up to where the clock is known */
	u64 lost_idle_time;

	u32 curr;	/* task; the CPU's own number means its idle task */
	u32 nr_running; /* all classes, delayed tasks included */
	u32 rt_nr_running;
	u32 rt_head; /* RT tasks, current included, in the order in which they run */
	u32 last_rt_cpu; /* where a waker here sent an RT task last: rt.h */
	u32 capacity;	 /* capacity_of(): what is left for CFS */
	u32 idle_exit_latency;	/* ns, or LATENCY_UNKNOWN */
	u32 mru_head, mru_tail; /* CFS tasks; head = enqueued or picked last */
	u32 shared_head; /* of the list of waiting tasks that it is the first CPU of; 0 = empty */
	u64 misfit_task_load;

	u64 idle_stamp; /* ns; 0 = not idle since a wakeup */
	u64 avg_idle;
	u64 wake_avg_idle;
	u64 wake_stamp; /* jiffies */
	u64 max_idle_balance_cost;

	u64 cache_runtime; /* ns; of all processes, as process_rq.runtime */
	u64 cache_epoch;
	u64 reserved_until; /* ns; sis_cache.h */
	u64 next_balance;   /* jiffies */
	u8 ttwu_pending;    /* wakeups on its wake list */
	u8 active_balance;  /* its stopper has been asked to push */
	u8 tick_stopped;    /* tickless idle */
	u8 nohz_flags;	    /* enum nohz_kick: what its interrupt is to do */
	u8 clock_rests;	    /* the idle task runs: clock_pelt is the time */
	u8 rt_runs;	    /* the current task is of the RT class */
	u8 reserved[6];
};

enum domain_flag {
	SD_BALANCE_NEWIDLE = 1 << 0,
	SD_BALANCE_EXEC = 1 << 1,
	SD_BALANCE_FORK = 1 << 2,
	SD_WAKE_AFFINE = 1 << 3,
	SD_SHARE_CPUCAPACITY = 1 << 4,
	SD_SHARE_LLC = 1 << 5,
	SD_CLUSTER = 1 << 6,
	SD_PREFER_SIBLING = 1 << 7,
	SD_NUMA = 1 << 8,
	SD_SERIALIZE = 1 << 9,
	SD_ASYM_CPUCAPACITY = 1 << 10,
	SD_ASYM_CPUCAPACITY_FULL = 1 << 11,
	SD_ASYM_PACKING = 1 << 12,
};

/* The part of a sched domain that all its CPUs share. */
struct sched_span {
	struct cpumask cpus;
	u32 first_word, end_word; /* the words of cpus that are not empty */
	u32 weight;
	u32 flags; /* enum domain_flag */
	u32 imbalance_pct;
	u32 cache_nice_tries;
	u32 imb_numa_nr;
	u32 first_group, nr_groups;
	u32 asym_capacity_max; /* largest capacity in it */
};

/*
 * Domains that overlap have groups of the same CPUs: copies, of which the first
 * holds what all of them share.
 */
struct sched_group {
	struct cpumask cpus;
	struct cpumask balance_mask; /* the CPUs whose own group it is */
	u32 first_word, end_word;
	u32 weight;
	u32 flags; /* of the child domain; 0 for single CPUs */
	u32 cores;
	u32 first_copy; /* so many groups before this one; 0 = itself */
	u32 asym_prefer_cpu;
	/* Shared by all copies: group_capacity_of(). */
	u32 capacity, min_capacity, max_capacity;
	u32 imbalance; /* tasks could not be moved because of their affinity */
	u64 next_update; /* jiffies; when a newly-idle pass sums its capacity again */
};

enum cpu_idle_type {
	CPU_IDLE,
	CPU_NOT_IDLE,
	CPU_NEWLY_IDLE,
	NR_IDLE_TYPES,
};

enum migration_type {
	MIGRATE_LOAD,
	MIGRATE_UTIL,
	MIGRATE_TASK,
	MIGRATE_MISFIT,
	NR_MIGRATION_TYPES, /* of which /proc/schedstat has counts */
	MIGRATE_LLC_TASK = NR_MIGRATION_TYPES,
};

/*
 * Why a load-balance attempt moved no task: how near it came to moving one. A
 * later reason means that some source or task passed all that stand before.
 */
enum lb_reason {
	LB_NOT_CHOSEN,	     /* another CPU of the group balances the level */
	LB_SERIALIZED,	     /* another CPU holds the lock of the NUMA levels */
	LB_NO_BUSIEST_GROUP, /* the groups are balanced */
	LB_NO_BUSIEST_QUEUE, /* no queue of the busiest group qualifies */
	LB_INELIGIBLE, /* asleep with delayed dequeue, or ahead of its share */
	LB_ALL_PINNED, /* may not run here, or is throttled here or there */
	LB_HINTED,     /* its wakeup hint holds it in its LLC */
	LB_RUNNING,    /* the source's only task, or it is current there */
	LB_LLC, /* it prefers the LLC where it is, or would fill another too much */
	LB_HOT,	      /* ran there less than migration_cost ago */
	LB_TOO_LARGE, /* more than what is to move */
	NR_LB_REASONS,
};

/* The counters of one /proc/schedstat domain line, and what no kernel counts. */
struct domain_stats {
	u32 lb_count[NR_IDLE_TYPES];
	u32 lb_balanced[NR_IDLE_TYPES];
	u32 lb_failed[NR_IDLE_TYPES];
	u32 lb_gained[NR_IDLE_TYPES];
	u32 lb_hot_gained[NR_IDLE_TYPES];
	u32 lb_nobusyq[NR_IDLE_TYPES];
	u32 lb_nobusyg[NR_IDLE_TYPES];
	u32 alb_count, alb_failed, alb_pushed;
	u64 lb_imbalance[NR_IDLE_TYPES][NR_MIGRATION_TYPES];
	u32 ttwu_wake_remote;
	u32 ttwu_move_affine;
	/* The attempts that moved nothing, each once; no kernel counts them so. */
	u32 lb_moved_nothing[NR_IDLE_TYPES][NR_LB_REASONS];
};

/* One CPU's view of one level. */
struct sched_domain {
	u32 span;
	u32 local_group;
	u32 balance_interval, min_interval, max_interval; /* ms */
	u32 nr_balance_failed;
	u64 last_balance;	    /* jiffies */
	u64 max_newidle_lb_cost;    /* ns */
	u64 last_decay_max_lb_cost; /* jiffies */
	u64 avg_scan_cost;	    /* ns; SIS_PROP */
	u64 newidle_stamp;	    /* ns; newidle_ratio was set */
	u32 newidle_call; /* NI_RANDOM; 0 = the domain was just built */
	u32 newidle_success;
	u32 newidle_ratio; /* of 1,024 newly-idle CPUs, so many look at the level */
	u32 reserved;
	struct domain_stats stats;
};

/* sd_llc and sd_llc_shared. */
struct llc {
	struct cpumask cpus;
	u32 first_word, end_word;
	u32 size;
	u32 has_idle_cores; /* optimistic: set when a core idles, cleared by a failed search */
	u32 nr_busy_cpus;
	u32 nr_idle_scan;
	u32 imbalance_pct; /* of the LLC-sized domain */
	u32 domain_level; /* of that domain in the chain of its CPUs; NR_LEVELS if there is none */
	u64 bytes;    /* how large the cache is */
	u64 util;     /* as the balancer has summed it up last: llc_balance.h */
	u64 capacity; /* the same; 0 = it has not yet */
};

/* What the last placement saw and answered, for costs, traces and explanations. */
struct decision {
	u32 waker, wakee;
	u16 waking_cpu, prev_cpu;
	u16 target_cpu; /* what the search started from */
	u16 result_cpu;
	u8 sync;
	u8 wide;
	u8 affine;	   /* enum affine_reason */
	u8 search;	   /* enum search_reason */
	u8 has_idle_cores; /* as the search found it */
	u8 hint_used;
	u8 affine_level; /* domain level at which wake_affine decided; NR_LEVELS if it did not */
	u8 slow_path;
	u32 scan_limit; /* CPUs the search could look at; U32_MAX = no limit */
	u32 scanned;	/* CPUs it looked at, slow path included */
	s64 waker_load, prev_load; /* the two sides of the weight test */
	u32 scan_timed; /* the search's time counts as scan cost: record_scan_cost() */
	u32 timed_scan;	 /* CPUs it looked at in that time */
	u32 llc_scanned; /* of those it looked at, in the search of the LLC */
	u32 reserved;
};

enum affine_reason {
	AFFINE_NOT_TRIED,
	AFFINE_WAKING_CPU_IDLE,	 /* clause 1 */
	AFFINE_PREV_IDLE_SHARED, /* clause 1, prev idle in the same LLC */
	AFFINE_SYNC,		 /* clause 2 */
	AFFINE_PREV_IDLE,	 /* clause 3 */
	AFFINE_SHORT_WAKER,	 /* the short-task clause, wherever it stands */
	AFFINE_WEIGHT,		 /* weight test */
	AFFINE_UNDECIDED,	 /* prev for want of a reason */
};

enum search_reason {
	SEARCH_NONE,	/* no search: slow path or single CPU */
	SEARCH_TARGET,	/* target usable */
	SEARCH_PREV,	/* prev usable and cache affine */
	SEARCH_KTHREAD, /* stacked on a per-CPU kthread */
	SEARCH_RECENT_USED,
	SEARCH_ASYM_CAPACITY,
	SEARCH_SMT_SIBLING,
	SEARCH_SHORT, /* stopped by a short-task rule */
	SEARCH_IDLE_CORE,
	SEARCH_IDLE_CPU,
	SEARCH_FALLBACK, /* prev or recent, remembered by the cluster rules */
	SEARCH_FAILED,	 /* target, for want of an idle CPU */
};

struct root_domain {
	u32 overload;	/* some CPU has two runnable tasks, or a misfit */
	u32 nr_cpu_ids; /* one more than the highest CPU number */
	u32 nr_spans, nr_groups, nr_llcs;
	u32 nr_nodes;	  /* NUMA nodes */
	u32 nr_processes; /* the greatest number that one has, or had */
	u32 smt_active;	  /* some core has two threads */
	u32 cluster_active; /* some cluster is smaller than its LLC and larger than a core */
	u32 asym_capacity; /* CPUs of different capacity */
	u32 rt_seen; /* there have been RT tasks, so CPUs may have lost capacity */
	u32 serialize_busy; /* a NUMA level is being balanced */
	u32 tick_ns;	    /* one jiffy */
	u32 reserved;
	u64 nohz_next_balance; /* jiffies */
	u64 nohz_next_blocked; /* jiffies */
	u64 random; /* NI_RANDOM's dice; an engine may begin with a seed of its own */
	struct cpumask online;
	struct cpumask idle;	   /* idle(c): see update_idle() */
	struct cpumask idle_core;  /* all siblings idle */
	struct cpumask sched_idle; /* only SCHED_IDLE tasks queued */
	struct cpumask tickless;   /* tickless idle CPUs */
	struct cpumask filtered;   /* left out of searches: scan_filter */
	u32 nr_task_groups; /* the greatest number that one has, or had */
	u64 clock; /* ns; of the last update of an average, kept if there are task groups */
};

/* Tasks that one pass of the load balancer looks at, and moves, at most. */
#define SCHED_NR_MIGRATE 32

/* What the last load_balance() decided; the engine carries it out. */
struct balance_result {
	u32 nr; /* tasks to move from src, in the order of leaving */
	u16 src;
	u16 active_src, active_dst; /* where the stopper is to push one task */
	u8 active_balance;	    /* start the stopper */
	u8 balanced;		    /* nothing was to do */
	u8 continue_balancing; /* 0 = this CPU is not the one to balance this level */
	u8 reserved[3];
	u32 task[SCHED_NR_MIGRATE];
	u16 dst[SCHED_NR_MIGRATE];
	struct cpumask
		excluded; /* given up within the pass for want of movable tasks */
};

/* Sums over the CPUs of a group: group.h. */
struct sg_lb_stats {
	u64 group_load;
	u64 group_util;
	u64 group_runnable;
	u64 avg_load; /* load over capacity; only where a type needs it */
	u64 misfit_task_load;
	u32 group; /* index, NO_GROUP = not filled */
	u32 group_capacity;
	u32 group_weight;
	u32 group_type;
	u32 sum_nr_running;   /* all classes */
	u32 sum_h_nr_running; /* CFS */
	u32 idle_cpus;
	u32 nr_pref_llc; /* tasks that prefer the LLC of the CPU that balances */
	u16 asym_packing;
	u16 smt_balance;
	u16 llc_balance; /* some of those are to move: llc_balance.h */
	u16 reserved;
};

/*
 * What a comparison of the groups of a domain works on: fork.h, busiest.h. Not
 * kept from one to the next; it stands here for the stack of BPF is small.
 */
struct sd_lb_stats {
	struct sg_lb_stats current; /* the group that is being summed up */
	struct sg_lb_stats local;
	struct sg_lb_stats idlest;
	struct sg_lb_stats busiest;
	u64 total_load;
	u64 total_util;
	u64 avg_load; /* of the domain */
	u32 total_capacity;
	bool prefer_sibling;
	bool overload; /* some CPU has two tasks */
};

struct state {
	struct profile profile;
	struct root_domain root;
	struct decision decision;
	struct balance_result balance;
	struct sd_lb_stats lb_stats;
	struct cpu cpu[NR_CPUS];
	struct rq rq[NR_CPUS];
	struct llc llc[NR_CPUS];
	struct sched_domain domain[NR_CPUS][NR_LEVELS];
	struct sched_span span[NR_SPANS];
	struct sched_group group[NR_GROUPS];
	struct task task[NR_TASKS];
	struct task_group task_group[NR_TASK_GROUPS];
	struct group_rq group_rq[NR_TASK_GROUPS][NR_CPUS];
	struct process process[NR_PROCESSES];
	struct process_rq process_rq[NR_CPUS][NR_PROCESSES];
};

static inline u64 jiffies(const struct state __arena *st, u64 now)
{
	return now / st->root.tick_ns;
}

static inline struct cpu __arena *cpu_of(struct state __arena *st, u32 cpu)
{
	return indexed(st->cpu, cpu & (NR_CPUS - 1));
}

static inline struct rq __arena *cpu_rq(struct state __arena *st, u32 cpu)
{
	return indexed(st->rq, cpu & (NR_CPUS - 1));
}

static inline struct task __arena *task_of(struct state __arena *st, u32 task)
{
	return indexed(st->task, task & (NR_TASKS - 1));
}

static inline struct llc __arena *cpu_llc(struct state __arena *st, u32 cpu)
{
	return indexed(st->llc, cpu_of(st, cpu)->llc & (NR_CPUS - 1));
}

static inline struct sched_domain __arena *cpu_domain(struct state __arena *st,
						      u32 cpu, u32 level)
{
	return indexed(*indexed(st->domain, cpu & (NR_CPUS - 1)),
		       level & (NR_LEVELS - 1));
}

static inline struct sched_span __arena *
domain_span(struct state __arena *st, const struct sched_domain __arena *sd)
{
	return indexed(st->span, sd->span & (NR_SPANS - 1));
}

static inline struct sched_group __arena *group_of(struct state __arena *st,
						   u32 group)
{
	return indexed(st->group, group & (NR_GROUPS - 1));
}

/* Where the capacity of @group and its mark of imbalance stand. */
static inline struct sched_group __arena *
group_capacity_of(struct state __arena *st, u32 group)
{
	return group_of(st, group - group_of(st, group)->first_copy);
}

static inline struct task_group __arena *task_group_of(struct state __arena *st,
						       u32 group)
{
	return indexed(st->task_group, group & (NR_TASK_GROUPS - 1));
}

static inline struct group_rq __arena *group_rq_of(struct state __arena *st,
						   u32 group, u32 cpu)
{
	return indexed(*indexed(st->group_rq, group & (NR_TASK_GROUPS - 1)),
		       cpu & (NR_CPUS - 1));
}

static inline struct process __arena *process_of(struct state __arena *st,
						 u32 process)
{
	return indexed(st->process, process & (NR_PROCESSES - 1));
}

static inline struct process_rq __arena *process_rq_of(struct state __arena *st,
						       u32 process, u32 cpu)
{
	return indexed(*indexed(st->process_rq, cpu & (NR_CPUS - 1)),
		       process & (NR_PROCESSES - 1));
}

/* The queue of @cpu on which the entities of a task group compete. */
static inline struct cfs_rq __arena *cfs_rq_of(struct state __arena *st,
					       u32 group, u32 cpu)
{
	if (group == ROOT_TASK_GROUP)
		return &cpu_rq(st, cpu)->cfs;
	return &group_rq_of(st, group, cpu)->cfs;
}

static inline struct cfs_rq __arena *task_cfs_rq(struct state __arena *st,
						 const struct task __arena *p)
{
	return cfs_rq_of(st, p->task_group, p->cpu);
}

/* Can no task of @group run on @cpu for want of runtime? */
static inline bool throttled_hierarchy(struct state __arena *st, u32 group,
				       u32 cpu)
{
	return group != ROOT_TASK_GROUP &&
	       group_rq_of(st, group, cpu)->throttle_count;
}

static inline bool cpus_share_cache(struct state __arena *st, u32 a, u32 b)
{
	return cpu_of(st, a)->llc == cpu_of(st, b)->llc;
}

static inline bool task_allowed(const struct task __arena *p, u32 cpu)
{
	return cpumask_test(&p->cpus_allowed, cpu);
}

static inline bool is_idle_task(u32 task)
{
	return task < FIRST_TASK;
}

/*
 * idle(c): the idle task runs, nothing is queued and no wakeup is on its way.
 * A CPU inside a newly-idle pass is not idle: its old task is still current.
 */
static inline bool available_idle_cpu(const struct state __arena *st, u32 cpu)
{
	return cpumask_test(&st->root.idle, cpu);
}

static inline bool sched_idle_cpu(const struct state __arena *st, u32 cpu)
{
	return cpumask_test(&st->root.sched_idle, cpu);
}

#endif
