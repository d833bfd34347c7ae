/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * group.h: how a sched group counts when groups are compared.
 *
 * Fork placement and the load balancer both reduce the groups of a domain to a
 * type and a few sums and then compare those:
 *
 *   has_spare     some CPU of the group could take a task
 *   fully_busy    every CPU has work, none has too much
 *   misfit        a task needs a bigger CPU
 *   smt_balance   a core shares its siblings while another core could help
 *   asym_packing  a preferred CPU idles elsewhere
 *   imbalanced    affinity kept an earlier pass from moving tasks
 *   llc_balance   tasks prefer the LLC of the CPU that balances
 *   overloaded    more tasks than CPUs, and the time is used up
 *
 * Kernels: v5.5 on for the types. Older ones compare average loads; they share
 * only adjust_numa_imbalance()'s absence and cpu_runnable_load() here.
 *
 * Limits: no EAS, no NUMA-balancing classes. A queue does not keep the sum of
 * its queued entities' loads, so cpu_runnable_load() walks them.
 */
#ifndef PLACEWISE_GROUP_H
#define PLACEWISE_GROUP_H

#include "pelt.h"

#define NO_GROUP U32_MAX

/*
 * The running tasks' difference between NUMA nodes that is never worth a move.
 */
#define NUMA_IMBALANCE_MIN 2

enum group_type {
	GROUP_HAS_SPARE,
	GROUP_FULLY_BUSY,
	GROUP_MISFIT_TASK,
	GROUP_SMT_BALANCE,
	GROUP_ASYM_PACKING,
	GROUP_IMBALANCED,
	GROUP_LLC_BALANCE,
	GROUP_OVERLOADED,
};

/* Sums of nothing yet. */
static inline void sg_lb_stats_init(struct sg_lb_stats __arena *sgs, u32 group)
{
	sgs->group_load = 0;
	sgs->group_util = 0;
	sgs->group_runnable = 0;
	sgs->avg_load = 0;
	sgs->misfit_task_load = 0;
	sgs->group = group;
	sgs->group_capacity = 0;
	sgs->group_weight = 0;
	sgs->group_type = 0;
	sgs->sum_nr_running = 0;
	sgs->sum_h_nr_running = 0;
	sgs->idle_cpus = 0;
	sgs->nr_pref_llc = 0;
	sgs->asym_packing = 0;
	sgs->smt_balance = 0;
	sgs->llc_balance = 0;
}

/* Field by field: clang cannot assign whole structs of an arena. */
static inline void sg_lb_stats_copy(struct sg_lb_stats __arena *to,
				    const struct sg_lb_stats __arena *from)
{
	to->group_load = from->group_load;
	to->group_util = from->group_util;
	to->group_runnable = from->group_runnable;
	to->avg_load = from->avg_load;
	to->misfit_task_load = from->misfit_task_load;
	to->group = from->group;
	to->group_capacity = from->group_capacity;
	to->group_weight = from->group_weight;
	to->group_type = from->group_type;
	to->sum_nr_running = from->sum_nr_running;
	to->sum_h_nr_running = from->sum_h_nr_running;
	to->idle_cpus = from->idle_cpus;
	to->nr_pref_llc = from->nr_pref_llc;
	to->asym_packing = from->asym_packing;
	to->smt_balance = from->smt_balance;
	to->llc_balance = from->llc_balance;
}

/* Is @capacity used up by more than imbalance_pct allows? */
static inline bool group_runnable_exceeds(const struct state __arena *st,
					  u32 imbalance_pct,
					  const struct sg_lb_stats __arena *sgs)
{
	return st->profile.balance_runnable_terms &&
	       (u64)sgs->group_capacity * imbalance_pct <
		       sgs->group_runnable * 100;
}

static inline bool group_is_overloaded(const struct state __arena *st,
				       u32 imbalance_pct,
				       const struct sg_lb_stats __arena *sgs)
{
	if (sgs->sum_nr_running <= sgs->group_weight)
		return false;
	return (u64)sgs->group_capacity * 100 <
		       sgs->group_util * imbalance_pct ||
	       group_runnable_exceeds(st, imbalance_pct, sgs);
}

static inline bool group_has_capacity(const struct state __arena *st,
				      u32 imbalance_pct,
				      const struct sg_lb_stats __arena *sgs)
{
	if (sgs->sum_nr_running < sgs->group_weight)
		return true;
	return !group_runnable_exceeds(st, imbalance_pct, sgs) &&
	       (u64)sgs->group_capacity * 100 > sgs->group_util * imbalance_pct;
}

static inline u32 group_classify(struct state __arena *st, u32 imbalance_pct,
				 const struct sg_lb_stats __arena *sgs)
{
	if (group_is_overloaded(st, imbalance_pct, sgs))
		return GROUP_OVERLOADED;
	if (sgs->llc_balance && st->profile.cache_aware == CACHE_AWARE_MERGED)
		return GROUP_LLC_BALANCE;
	if (group_capacity_of(st, sgs->group)->imbalance)
		return GROUP_IMBALANCED;
	if (sgs->asym_packing)
		return GROUP_ASYM_PACKING;
	if (sgs->smt_balance)
		return GROUP_SMT_BALANCE;
	if (sgs->misfit_task_load)
		return GROUP_MISFIT_TASK;
	if (!group_has_capacity(st, imbalance_pct, sgs))
		return GROUP_FULLY_BUSY;
	return GROUP_HAS_SPARE;
}

static inline u64 group_avg_load(const struct sg_lb_stats __arena *sgs)
{
	return sgs->group_load * SCHED_CAPACITY_SCALE /
	       max(sgs->group_capacity, 1u);
}

/* What is left of a difference between nodes that small jobs may keep. */
static inline u32 adjust_numa_imbalance(u32 imbalance, u32 dst_running,
					u32 imb_numa_nr)
{
	if (dst_running > imb_numa_nr)
		return imbalance;
	return imbalance <= NUMA_IMBALANCE_MIN ? 0 : imbalance;
}

/* The @nth group in ring order: the ring of a CPU starts with its own group. */
static inline u32 nth_group(const struct sched_span __arena *span,
			    const struct sched_domain __arena *sd, u32 nth)
{
	u32 offset = sd->local_group - span->first_group + nth;

	if (offset >= span->nr_groups)
		offset -= span->nr_groups;
	return span->first_group + offset;
}

/* Is @group local to @cpu? Where groups overlap, more than its own one are. */
static inline bool group_has(struct state __arena *st, u32 group, u32 cpu)
{
	return cpumask_test(&group_of(st, group)->cpus, cpu);
}

static subprogram u32 first_cpu(struct state __arena *st, u32 group_nr)
{
	const struct sched_group __arena *group = group_of(st, group_nr);
	u32 word;

	for_each_word(word, group) {
		u64 bits = *indexed(group->cpus.bits, word);

		if (bits)
			return word * 64 + first_bit(bits);
	}
	return NO_CPU;
}

/* CFS tasks that a group sum counts. */
static inline u32 cpu_h_nr_running(const struct state __arena *st,
				   const struct rq __arena *rq)
{
	if (st->profile.h_nr_without_delayed)
		return rq->cfs.h_nr_queued - rq->cfs.h_nr_delayed;
	return rq->cfs.h_nr_queued;
}

/*
 * Load of the tasks queued on @cpu, without what sleepers left behind. What is in
 * a task group is added up in its runnable_load; only the root's is answered.
 */
static inline u64 sum_task_loads(struct state __arena *st, u32 cpu)
{
	u64 load = 0;
	u32 task = cpu_rq(st, cpu)->mru_head;
	u32 i;

	for (i = opaque(0); task != NO_TASK && i < NR_TASKS && can_loop; i++) {
		const struct task __arena *p = task_of(st, task);

		if (p->task_group == ROOT_TASK_GROUP)
			load += p->avg.load_avg;
		else
			group_rq_of(st, p->task_group, cpu)->runnable_load +=
				p->avg.load_avg;
		task = p->mru_next;
	}
	return load;
}

/*
 * What a queued entity of a task group counts for: its load, at a weight that
 * leaves out the group's sleepers on this CPU.
 */
static inline u64 entity_runnable_load(const struct group_rq __arena *rq)
{
	u64 queued = max(rq->runnable_load, rq->cfs.load_weight);
	u64 all = max(rq->cfs.avg.load_avg, rq->cfs.load_weight);
	u64 weight = rq->weight * queued / max(all, 1ULL);

	weight = min(max(weight, 2ULL), (u64)rq->weight);
	return weight * rq->avg.load_sum / pelt_divider(&rq->avg);
}

static inline void clear_runnable_loads(struct state __arena *st, u32 cpu)
{
	u32 group;

	for (group = opaque(1); group <= st->root.nr_task_groups &&
				group < NR_TASK_GROUPS && can_loop;
	     group++)
		group_rq_of(st, group, cpu)->runnable_load = 0;
}

/* Children have greater numbers than their parents, so that they come first. */
static inline u64 sum_group_loads(struct state __arena *st, u32 cpu)
{
	u64 load = 0;
	u32 group;

	for (group = st->root.nr_task_groups;
	     group > ROOT_TASK_GROUP && can_loop; group--) {
		struct group_rq __arena *rq = group_rq_of(st, group, cpu);
		u32 parent = task_group_of(st, group)->parent;

		if (!rq->on_rq)
			continue;
		if (parent == ROOT_TASK_GROUP)
			load += entity_runnable_load(rq);
		else
			group_rq_of(st, parent, cpu)->runnable_load +=
				entity_runnable_load(rq);
	}
	return load;
}

/* Load of the entities that are queued, without what sleepers left behind. */
verified_once u64 cpu_runnable_load(struct state __arena *st in_arena, u32 cpu)
{
	if (!st->root.nr_task_groups)
		return sum_task_loads(st, cpu);
	clear_runnable_loads(st, cpu);
	return sum_task_loads(st, cpu) + sum_group_loads(st, cpu);
}

static inline bool group_allows(const struct state __arena *st,
				const struct sched_group __arena *group,
				const struct task __arena *p)
{
	u32 word;

	for_each_word(word, group) {
		if (*indexed(group->cpus.bits, word) &
		    *indexed(st->root.online.bits, word) &
		    *indexed(p->cpus_allowed.bits, word))
			return true;
	}
	return false;
}

#endif
