/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * load.h: how busy a CPU or a task counts as, in the units decisions compare.
 *
 * Averages are read as last stored; nothing here refreshes them. The _without
 * readings leave out a task that is about to be placed.
 *
 * A task in a task group counts for its share of what the group counts for
 * (h_load), which is computed anew at most once per jiffy. Jiffies are taken
 * from the last update of any average: where nothing was updated since, nothing
 * would come out different.
 */
#ifndef PLACEWISE_LOAD_H
#define PLACEWISE_LOAD_H

#include "state.h"

static inline u64 task_util_est(const struct task __arena *p)
{
	u64 estimate = max(p->util_est_enqueued, p->util_est_ewma);

	return max(p->avg.util_avg, estimate);
}

/*
 * What @cpu's part of a task group counts for in the CPU's load: computed from
 * the first queue above it that is up to date, or from the root, down again.
 */
verified_once u64 update_cfs_rq_h_load(struct state __arena *st in_arena,
				       u32 group, u32 cpu)
{
	u64 now = jiffies(st, st->root.clock);
	struct cfs_rq __arena *cfs = cfs_rq_of(st, group, cpu);
	u32 level;

	for (level = opaque(0);
	     cfs->last_h_load_update != now && group != ROOT_TASK_GROUP &&
	     level < NR_TASK_GROUP_LEVELS && can_loop;
	     level++) {
		u32 parent = task_group_of(st, group)->parent;

		cfs = cfs_rq_of(st, parent, cpu);
		cfs->h_load_next = group;
		group = parent;
	}
	if (cfs->last_h_load_update != now) {
		cfs->h_load = cfs->avg.load_avg;
		cfs->last_h_load_update = now;
	}
	for (; level > 0 && can_loop; level--) {
		u32 next = cfs->h_load_next;
		struct group_rq __arena *below = group_rq_of(st, next, cpu);

		below->cfs.h_load = cfs->h_load * below->avg.load_avg /
				    (cfs->avg.load_avg + 1);
		below->cfs.last_h_load_update = now;
		cfs = &below->cfs;
	}
	return cfs->h_load;
}

/* The load a task adds to its CPU: of its task group's, what is its own part. */
static inline u64 task_h_load(struct state __arena *st,
			      const struct task __arena *p)
{
	u64 h_load;

	if (p->task_group == ROOT_TASK_GROUP)
		return p->avg.load_avg;
	h_load = update_cfs_rq_h_load(st, p->task_group, p->cpu);
	return p->avg.load_avg * h_load /
	       (task_cfs_rq(st, p)->avg.load_avg + 1);
}

static inline u64 cpu_load(struct state __arena *st, u32 cpu)
{
	return cpu_rq(st, cpu)->cfs.avg.load_avg;
}

static inline u64 cpu_runnable(struct state __arena *st, u32 cpu)
{
	return cpu_rq(st, cpu)->cfs.avg.runnable_avg;
}

static inline u64 cpu_util(struct state __arena *st, u32 cpu)
{
	struct cfs_rq __arena *cfs = &cpu_rq(st, cpu)->cfs;
	u64 util = max(cfs->avg.util_avg, (u64)cfs->util_est);

	return min(util, (u64)cpu_of(st, cpu)->capacity_orig);
}

/* Does @cpu's average still contain @p? Not if it is new, or elsewhere. */
static inline bool cpu_counts_task(const struct task __arena *p, u32 cpu)
{
	return p->cpu == cpu && p->avg.last_update_time;
}

static inline u64 cpu_load_without(struct state __arena *st, u32 cpu,
				   const struct task __arena *p)
{
	u64 load = cpu_load(st, cpu);

	if (!cpu_counts_task(p, cpu))
		return load;
	return sub_positive(load, task_h_load(st, p));
}

static inline u64 cpu_runnable_without(struct state __arena *st, u32 cpu,
				       const struct task __arena *p)
{
	u64 runnable = cpu_runnable(st, cpu);

	if (!cpu_counts_task(p, cpu))
		return runnable;
	return sub_positive(runnable, p->avg.runnable_avg);
}

verified_once u64 cpu_util_without(struct state __arena *st in_arena, u32 cpu,
				   const struct task __arena *p in_arena)
{
	struct cfs_rq __arena *cfs = &cpu_rq(st, cpu)->cfs;
	u64 util = cfs->avg.util_avg;
	u64 estimate = cfs->util_est;

	if (!cpu_counts_task(p, cpu))
		return cpu_util(st, cpu);
	util = sub_positive(util, p->avg.util_avg);
	if (p->on_rq)
		estimate = sub_positive(estimate, task_util_est(p));
	util = max(util, estimate);
	return min(util, (u64)cpu_of(st, cpu)->capacity_orig);
}

static inline u64 capacity_of(struct state __arena *st, u32 cpu)
{
	return cpu_rq(st, cpu)->capacity;
}

/* Below 80 % of the capacity. */
static inline bool fits_capacity(u64 util, u64 capacity)
{
	return util * 1280 < capacity * 1024;
}

/* Greater by more than 5 %. */
static inline bool capacity_greater(u64 a, u64 b)
{
	return a * 1024 > b * 1078;
}

#endif
