/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * task_group.h: what cgroups weigh, and how their averages follow their tasks.
 *
 *     root          rq.cfs            task   task   entity of A
 *      |                                              |
 *      A            group_rq[A].cfs          task   entity of B
 *      |                                              |
 *      B            group_rq[B].cfs                 task
 *
 * The shares of a task group are split over its CPUs by the load it has there
 * (calc_group_shares), measured by the sum of all CPUs' loads that is kept up
 * to date only roughly (update_tg_load_avg). What tasks bring along and take
 * away is handed up one level at each update of an entity (propagate_entity).
 *
 * The functions here begin above the queue of a task: for a task in the root
 * group they do nothing.
 *
 * A group that is out of runtime is throttled where it would run: its entity
 * leaves, with all its tasks, and its averages and those below it stand still.
 * What comes to the group meanwhile waits in it.
 *
 * Limits: no SCHED_IDLE groups. Groups are throttled
 * as a whole in all kernels, where v6.18 takes their tasks off one by one, once
 * they return to user space.
 * New shares show at an entity's next tick, enqueue or dequeue, not at once.
 * A switch between two tasks of one group updates all levels, not only those
 * below the one they share.
 */
#ifndef PLACEWISE_TASK_GROUP_H
#define PLACEWISE_TASK_GROUP_H

#include "pelt.h"

/* Of an entity; a task group has no less, either. */
#define MIN_SHARES 2
#define MAX_SHARES 88761 /* the weight of nice -20 */

/* ns between two contributions of a CPU to the load of its task group. */
#define TG_LOAD_AVG_INTERVAL 1000000

/* Does @cpu run a task of @group, or of one below it? */
static inline bool task_group_runs(struct state __arena *st, u32 group, u32 cpu)
{
	u32 running = task_of(st, cpu_rq(st, cpu)->curr)->task_group;
	u32 level;

	if (rt_task_runs(st, cpu))
		return false;
	for (level = opaque(0);
	     running > group && level < NR_TASK_GROUP_LEVELS && can_loop;
	     level++)
		running = task_group_of(st, running)->parent;
	return running == group;
}

/* True if the averages of the task group's queue on @cpu have changed. */
verified_once bool update_group_cfs_rq_avg(struct state __arena *st in_arena,
					   u32 group, u32 cpu, u64 now)
{
	bool running = group == ROOT_TASK_GROUP
			       ? cfs_task_runs(st, cpu)
			       : task_group_runs(st, group, cpu);

	return update_cfs_rq_avg(st, cfs_rq_of(st, group, cpu), running,
				 cfs_rq_clock(st, group, cpu, now));
}

static inline bool has_moved(u64 before, u64 now)
{
	u64 distance = now > before ? now - before : before - now;

	return distance > before / 64;
}

/*
 * What @cpu has of the load of all CPUs, once it differs by more than a 64th
 * from what was contributed last; where the group is weighed by that, of what is
 * runnable, too. Where that is rate limited, a millisecond must have passed as
 * well. True if it was contributed.
 */
verified_once bool update_tg_load_avg(struct state __arena *st in_arena,
				      u32 group, u32 cpu, u64 now)
{
	struct group_rq __arena *rq = group_rq_of(st, group, cpu);
	u64 load = rq->cfs.avg.load_avg;
	u64 runnable = st->profile.cgroup_mode == CGROUP_SMP
			       ? 0
			       : rq->cfs.avg.runnable_avg;

	if (group == ROOT_TASK_GROUP)
		return false;
	if (st->profile.group_load_rate_limited &&
	    now - rq->last_update_tg_load_avg < TG_LOAD_AVG_INTERVAL)
		return false;
	if (!has_moved(rq->tg_load_avg_contrib, load) &&
	    !has_moved(rq->tg_runnable_avg_contrib, runnable))
		return false;
	atomic_add(&task_group_of(st, group)->load_avg,
		   load - rq->tg_load_avg_contrib);
	rq->tg_load_avg_contrib = load;
	atomic_add(&task_group_of(st, group)->runnable_avg,
		   runnable - rq->tg_runnable_avg_contrib);
	rq->tg_runnable_avg_contrib = runnable;
	rq->last_update_tg_load_avg = now;
	return true;
}

/* By what a group's shares are multiplied. Limit: its cpuset is taken for all CPUs. */
static inline u64 group_concurrency(struct state __arena *st,
				    const struct task_group __arena *tg)
{
	u64 tasks = max(tg->runnable_avg / SCHED_CAPACITY_SCALE, (u64)1);
	u64 cpus = st->root.nr_cpu_ids;

	switch (st->profile.cgroup_mode) {
	case CGROUP_CONCUR:
		return min(tasks, cpus);
	case CGROUP_TASKS:
		return tasks;
	case CGROUP_MAX:
		return cpus;
	default:
		return 1;
	}
}

/* The part of the group's shares that its load on @cpu, which is known better, deserves. */
static inline u32 calc_group_shares(struct state __arena *st, u32 group,
				    u32 cpu)
{
	const struct group_rq __arena *rq = group_rq_of(st, group, cpu);
	const struct task_group __arena *tg = task_group_of(st, group);
	u64 load = max(rq->cfs.load_weight, rq->cfs.avg.load_avg);
	u64 all = tg->load_avg - rq->tg_load_avg_contrib + load;
	u64 all_shares = tg->shares * group_concurrency(st, tg);
	u64 shares = all_shares * load;
	u64 most =
		st->profile.cgroup_mode == CGROUP_MAX ? MAX_SHARES : all_shares;

	if (st->profile.cgroup_mode == CGROUP_UP)
		return tg->shares;
	if (all)
		shares /= all;
	return min(max(shares, (u64)MIN_SHARES), most);
}

/* The entity's part in the load of @cfs, on which it may be queued, is that of @weight now. */
static inline void reweight_entity(struct group_rq __arena *rq,
				   struct cfs_rq __arena *cfs, u32 weight)
{
	struct sched_avg __arena *sum = &cfs->avg;

	if (rq->on_rq)
		cfs->load_weight += (u64)weight - rq->weight;
	sum->load_avg = sub_positive(sum->load_avg, rq->avg.load_avg);
	sum->load_sum =
		sub_positive(sum->load_sum, rq->weight * rq->avg.load_sum);
	rq->weight = weight;
	rq->avg.load_avg = weight * rq->avg.load_sum / pelt_divider(&rq->avg);
	sum->load_avg += rq->avg.load_avg;
	sum->load_sum += weight * rq->avg.load_sum;
}

/* Weigh a task group's entity on @cpu anew; answers with its weight. */
verified_once u32 update_cfs_group(struct state __arena *st in_arena, u32 group,
				   u32 cpu)
{
	struct group_rq __arena *rq = group_rq_of(st, group, cpu);
	u32 parent = task_group_of(st, group)->parent;
	u32 shares;

	if (st->profile.empty_group_keeps_weight && !rq->cfs.load_weight)
		return rq->weight;
	shares = calc_group_shares(st, group, cpu);
	if (shares != rq->weight)
		reweight_entity(rq, cfs_rq_of(st, parent, cpu), shares);
	return shares;
}

/* @sum changes as its part did, from @before to @after, and keeps what @avg needs at least. */
static inline u64 follow(u64 sum, u64 before, u64 after, u64 avg)
{
	u64 changed = after > before ? sum + (after - before)
				     : sub_positive(sum, before - after);

	return max(changed, avg * PELT_MIN_DIVIDER);
}

/* The entity has the utilisation and the runnable average of its queue. */
static inline void propagate_util(struct group_rq __arena *rq,
				  struct cfs_rq __arena *parent)
{
	u64 divider = pelt_divider(&parent->avg);
	struct sched_avg __arena *sum = &parent->avg;
	u64 util = rq->cfs.avg.util_avg;
	u64 runnable = rq->cfs.avg.runnable_avg;

	if (util != rq->avg.util_avg) {
		sum->util_avg =
			follow(sum->util_avg, rq->avg.util_avg, util, 0);
		sum->util_sum = follow(sum->util_sum, rq->avg.util_sum,
				       util * divider, sum->util_avg);
		rq->avg.util_avg = util;
		rq->avg.util_sum = util * divider;
	}
	if (runnable != rq->avg.runnable_avg) {
		sum->runnable_avg = follow(sum->runnable_avg,
					   rq->avg.runnable_avg, runnable, 0);
		sum->runnable_sum =
			follow(sum->runnable_sum, rq->avg.runnable_sum,
			       runnable * divider, sum->runnable_avg);
		rq->avg.runnable_avg = runnable;
		rq->avg.runnable_sum = runnable * divider;
	}
}

/*
 * How long the entity was runnable, after what came to its queue or left it. It
 * cannot be the sum of its tasks, which were runnable at the same time: what
 * comes is added up to all the time there is, and for what leaves the tasks
 * that stay are taken to be equally runnable.
 */
static inline u64 propagated_load_sum(const struct group_rq __arena *rq,
				      u64 divider)
{
	u64 sum = rq->avg.load_sum;
	u64 running = rq->avg.util_sum >> 10;

	if (rq->cfs.propagate_sum >= 0) {
		sum = min(sum + (u64)rq->cfs.propagate_sum, divider);
	} else {
		u64 weight = rq->cfs.load_weight;
		u64 left = weight ? rq->cfs.avg.load_sum / weight : 0;

		sum = min(sum, left);
	}
	return max(sum, running);
}

static inline void propagate_load(struct group_rq __arena *rq,
				  struct cfs_rq __arena *parent)
{
	u64 divider = pelt_divider(&parent->avg);
	struct sched_avg __arena *sum = &parent->avg;
	u64 load_sum, load_avg;

	if (!rq->cfs.propagate_sum)
		return;
	load_sum = propagated_load_sum(rq, divider);
	rq->cfs.propagate_sum = 0;
	load_avg = rq->weight * load_sum / divider;
	if (load_avg == rq->avg.load_avg)
		return;
	sum->load_avg = follow(sum->load_avg, rq->avg.load_avg, load_avg, 0);
	sum->load_sum = follow(sum->load_sum, rq->weight * rq->avg.load_sum,
			       rq->weight * load_sum, sum->load_avg);
	rq->avg.load_sum = load_sum;
	rq->avg.load_avg = load_avg;
}

/* Hand up to the entity and its queue what came to the queue below it, or left it. */
verified_once bool propagate_entity(struct state __arena *st in_arena,
				    u32 group, u32 cpu)
{
	struct group_rq __arena *rq = group_rq_of(st, group, cpu);
	struct cfs_rq __arena *parent =
		cfs_rq_of(st, task_group_of(st, group)->parent, cpu);

	if (!rq->cfs.propagate)
		return false;
	rq->cfs.propagate = false;
	note_propagation(parent, rq->cfs.propagate_sum);
	propagate_util(rq, parent);
	propagate_load(rq, parent);
	return true;
}

/*
 * Bring a task group's entity on @cpu and the queue it competes on up to date.
 * True if the averages of the queue have changed.
 */
verified_once bool update_entity_avg(struct state __arena *st in_arena,
				     u32 group, u32 cpu, u64 now)
{
	struct group_rq __arena *rq = group_rq_of(st, group, cpu);
	u32 parent = task_group_of(st, group)->parent;
	struct cfs_rq __arena *cfs = cfs_rq_of(st, parent, cpu);
	bool changed;

	if (!rq->weight)
		rq->weight = NICE_0_LOAD;
	if (rq->avg.last_update_time &&
	    update_load_sum(&rq->avg, cfs_rq_clock(st, parent, cpu, now),
			    rq->on_rq, rq->runnable,
			    task_group_runs(st, group, cpu)))
		update_load_avg(&rq->avg, rq->weight);
	changed = update_group_cfs_rq_avg(st, parent, cpu, now);
	/* As if it had been attached, without any load, when the cgroup was made. */
	if (!rq->avg.last_update_time)
		attach_avg(&rq->avg, rq->weight, cfs);
	changed |= propagate_entity(st, group, cpu);
	if (changed)
		update_tg_load_avg(st, parent, cpu, now);
	return changed;
}

/* From @group up to the last one below the root. */
#define for_each_task_group(st, group, level)                                  \
	for ((level) = opaque(0); (group) != ROOT_TASK_GROUP &&                \
				  (level) < NR_TASK_GROUP_LEVELS && can_loop;  \
	     (level)++, (group) = task_group_of((st), (group))->parent)

/* The averages above the queue of @p, from below. */
static subprogram void update_entities(struct state __arena *st,
				       const struct task __arena *p, u64 now)
{
	u32 group = p->task_group;
	u32 level;

	update_tg_load_avg(st, group, p->cpu, now);
	for_each_task_group(st, group, level) {
		update_entity_avg(st, group, p->cpu, now);
	}
}

/* The same at a tick, when entities are weighed too. */
static subprogram void tick_entities(struct state __arena *st,
				     const struct task __arena *p, u64 now)
{
	u32 group = p->task_group;
	u32 level;

	update_tg_load_avg(st, group, p->cpu, now);
	for_each_task_group(st, group, level) {
		update_entity_avg(st, group, p->cpu, now);
		update_cfs_group(st, group, p->cpu);
	}
}

/* What comes to a queue or leaves it: a task, or all tasks of a group. */
struct group_counts {
	u32 queued;
	u32 delayed;
	u32 idle; /* SCHED_IDLE */
};

static inline struct group_counts task_counts(const struct task __arena *p,
					      bool delayed)
{
	return (struct group_counts){
		.queued = 1,
		.delayed = delayed,
		.idle = p->idle_policy,
	};
}

static inline struct group_counts all_counts(const struct cfs_rq __arena *cfs)
{
	return (struct group_counts){
		.queued = cfs->h_nr_queued,
		.delayed = cfs->h_nr_delayed,
		.idle = cfs->h_nr_idle,
	};
}

/*
 * Something was put on the queue of @group: the entities above it are queued,
 * where they were not. False if one is throttled: then the CPU has no more to
 * run than before.
 */
static subprogram bool enqueue_entities(struct state __arena *st, u32 group,
					u32 cpu,
					const struct group_counts *counts,
					u64 now)
{
	u32 level;

	update_tg_load_avg(st, group, cpu, now);
	for_each_task_group(st, group, level) {
		struct group_rq __arena *rq = group_rq_of(st, group, cpu);
		u32 parent = task_group_of(st, group)->parent;
		struct cfs_rq __arena *cfs = cfs_rq_of(st, parent, cpu);

		if (rq->throttled)
			return false;
		update_entity_avg(st, group, cpu, now);
		rq->runnable = cfs_rq_runnable(st, &rq->cfs);
		update_cfs_group(st, group, cpu);
		if (!rq->on_rq)
			cfs->load_weight += rq->weight;
		rq->on_rq = true;
		rq->delayed = false;
		cfs->h_nr_queued += counts->queued;
		cfs->h_nr_idle += counts->idle;
		cfs->h_nr_delayed += counts->delayed;
	}
	return true;
}

/* Is the entity queued for nothing? One that is delayed stays for its lag, and loads its queue. */
static inline bool entity_leaves(const struct group_rq __arena *rq)
{
	return rq->throttled || (!rq->cfs.load_weight && !rq->delayed);
}

/*
 * Something has left the queue of @group, or is throttled with it: entities
 * without tasks that could run leave theirs. False if one above was throttled
 * before: then the CPU loses nothing.
 */
static subprogram bool dequeue_entities(struct state __arena *st, u32 group,
					u32 cpu,
					const struct group_counts *counts,
					u64 now)
{
	u32 level;

	update_tg_load_avg(st, group, cpu, now);
	for_each_task_group(st, group, level) {
		struct group_rq __arena *rq = group_rq_of(st, group, cpu);
		u32 parent = task_group_of(st, group)->parent;
		struct cfs_rq __arena *cfs = cfs_rq_of(st, parent, cpu);

		if (!rq->on_rq)
			return false;
		update_entity_avg(st, group, cpu, now);
		rq->runnable = cfs_rq_runnable(st, &rq->cfs);
		if (entity_leaves(rq)) {
			cfs->load_weight -= rq->weight;
			rq->on_rq = false;
			rq->delayed = false;
		}
		update_cfs_group(st, group, cpu);
		cfs->h_nr_queued -= counts->queued;
		cfs->h_nr_idle -= counts->idle;
		cfs->h_nr_delayed -= counts->delayed;
	}
	return true;
}

/* @p, which stays where it is, begins or ceases to be delayed. */
static subprogram void count_delayed(struct state __arena *st,
				     const struct task __arena *p, s32 change)
{
	u32 group = p->task_group;
	u32 level;

	for_each_task_group(st, group, level) {
		u32 parent = task_group_of(st, group)->parent;

		if (group_rq_of(st, group, p->cpu)->throttled)
			return;
		cfs_rq_of(st, parent, p->cpu)->h_nr_delayed += change;
	}
}

/* Is @group the other one, or below it? */
static inline bool group_is_within(struct state __arena *st, u32 group,
				   u32 other)
{
	u32 level;

	for (level = opaque(0);
	     group > other && level < NR_TASK_GROUP_LEVELS && can_loop; level++)
		group = task_group_of(st, group)->parent;
	return group == other;
}

/* The averages of @group and of those below stand still from now on, or go on. */
static subprogram void stop_group_clocks(struct state __arena *st, u32 group,
					 u32 cpu, bool stop, u64 now)
{
	u64 clock = rq_clock_pelt(st, cpu, now);
	u32 below;

	for (below = group; below < NR_TASK_GROUPS &&
			    below <= st->root.nr_task_groups && can_loop;
	     below++) {
		struct group_rq __arena *rq = group_rq_of(st, below, cpu);

		if (!group_is_within(st, below, group))
			continue;
		if (stop && !rq->throttle_count++)
			rq->throttled_clock = clock;
		if (!stop && !--rq->throttle_count)
			rq->throttled_time += clock - rq->throttled_clock;
	}
}

/* Averages of @cpu, whose tasks may all sleep; children come before their parents. */
static subprogram void update_blocked_entities(struct state __arena *st,
					       u32 cpu, u64 now)
{
	u32 group;

	for (group = st->root.nr_task_groups;
	     group > ROOT_TASK_GROUP && can_loop; group--) {
		struct group_rq __arena *rq = group_rq_of(st, group, cpu);

		if (!rq->avg.last_update_time)
			continue;
		if (update_group_cfs_rq_avg(st, group, cpu, now))
			update_tg_load_avg(st, group, cpu, now);
		if (rq->avg.load_avg || rq->avg.util_avg || rq->cfs.propagate)
			update_entity_avg(st, group, cpu, now);
	}
}

/* The least number above @parent that no task group has; NR_TASK_GROUPS if there is none. */
static inline u32 free_task_group(struct state __arena *st, u32 parent)
{
	u32 group;

	for (group = opaque(1) + parent; group < NR_TASK_GROUPS && can_loop;
	     group++) {
		if (!task_group_of(st, group)->exists)
			return group;
	}
	return NR_TASK_GROUPS;
}

/* A cgroup below @parent; ROOT_TASK_GROUP if there can be none, or no deeper one. */
static inline u32 create_task_group(struct state __arena *st, u32 parent,
				    u32 shares)
{
	u32 depth = task_group_of(st, parent)->depth + 1;
	u32 group = free_task_group(st, parent);
	struct task_group __arena *tg = task_group_of(st, group);

	if (group >= NR_TASK_GROUPS || depth > NR_TASK_GROUP_LEVELS ||
	    (parent != ROOT_TASK_GROUP && !task_group_of(st, parent)->exists))
		return ROOT_TASK_GROUP;
	tg->load_avg = 0;
	tg->runnable_avg = 0;
	tg->shares = max(shares, (u32)MIN_SHARES);
	tg->parent = parent;
	tg->depth = depth;
	tg->exists = true;
	st->root.nr_task_groups = max(st->root.nr_task_groups, group);
	return group;
}

/* What is left of its tasks' load on a CPU goes with the entity. */
static inline void remove_entity_avg(struct group_rq __arena *rq,
				     struct cfs_rq __arena *parent)
{
	if (!rq->avg.last_update_time)
		return;
	if (update_load_sum(&rq->avg, parent->avg.last_update_time, 0, 0,
			    false))
		update_load_avg(&rq->avg, rq->weight);
	note_removed(parent, &rq->avg);
}

static inline void clear_group_rq(struct group_rq __arena *rq)
{
	/* Whatever type its fields have. */
	typedef u64 __attribute__((may_alias)) any_word;
	any_word __arena *word = (any_word __arena *)rq;
	u32 i;

	for (i = opaque(0); i < sizeof(*rq) / sizeof(*word) && can_loop; i++)
		word[i] = 0;
}

/* All tasks have left the cgroup, which has none below it: its number is free again. */
static inline void destroy_task_group(struct state __arena *st, u32 group)
{
	u32 parent = task_group_of(st, group)->parent;
	u32 cpu;

	if (group == ROOT_TASK_GROUP)
		return;
	for (cpu = opaque(0);
	     cpu < st->root.nr_cpu_ids && cpu < NR_CPUS && can_loop; cpu++) {
		struct group_rq __arena *rq = group_rq_of(st, group, cpu);

		rq_lock(st, cpu);
		remove_entity_avg(rq, cfs_rq_of(st, parent, cpu));
		clear_group_rq(rq);
		rq_unlock(st, cpu);
	}
	task_group_of(st, group)->exists = false;
}

/* The cgroup's weight was changed; each entity follows when it is weighed next. */
static inline void set_task_group_shares(struct state __arena *st, u32 group,
					 u32 shares)
{
	task_group_of(st, group)->shares = max(shares, (u32)MIN_SHARES);
}

#endif
