/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * capacity.h: what RT tasks leave of a CPU, and of a group, for CFS.
 *
 * A CPU that gives part of its time to RT tasks counts as a smaller one. The
 * balancer brings that up to date as it goes: a pass of a CPU over a level sums
 * up the CPU's own group there, from what the level below came to last.
 *
 * Kernels: all alike. Limits: interrupts, deadline tasks and thermal pressure
 * take nothing away. As long as there has been no RT task nothing is computed,
 * for nothing could change.
 */
#ifndef PLACEWISE_CAPACITY_H
#define PLACEWISE_CAPACITY_H

#include "lb_env.h"
#include "pelt.h"

static inline u32 scale_rt_capacity(struct state __arena *st, u32 cpu)
{
	u32 max = cpu_of(st, cpu)->capacity_orig;
	u64 used = cpu_rq(st, cpu)->avg_rt.util_avg;

	return used >= max ? 1 : max - used;
}

static inline void update_cpu_capacity(struct state __arena *st,
				       struct sched_group __arena *group,
				       u32 cpu)
{
	u32 capacity = scale_rt_capacity(st, cpu);

	cpu_rq(st, cpu)->capacity = capacity;
	group->capacity = capacity;
	group->min_capacity = capacity;
	group->max_capacity = capacity;
}

/* From the groups of the level below, which make up the local group of @env. */
static inline void sum_child_capacities(struct state __arena *st,
					const struct lb_env *env,
					struct sched_group __arena *group)
{
	const struct sched_span __arena *child = domain_span(st, env->sd - 1);
	u32 capacity = opaque(0), least = U32_MAX, most = opaque(0);
	u32 i;

	for (i = opaque(0); i < child->nr_groups && i < NR_CPUS && can_loop;
	     i++) {
		const struct sched_group __arena *part =
			group_capacity_of(st, child->first_group + i);

		capacity += part->capacity;
		least = min(least, part->min_capacity);
		most = max(most, part->max_capacity);
	}
	group->capacity = capacity;
	group->min_capacity = least;
	group->max_capacity = most;
}

/* Groups that overlap do not add up: from the CPUs of the local group. */
static inline void sum_cpu_capacities(struct state __arena *st,
				      const struct lb_env *env,
				      struct sched_group __arena *group)
{
	const struct sched_group __arena *local =
		group_of(st, env->sd->local_group);
	u32 capacity = opaque(0), least = U32_MAX, most = opaque(0);
	u32 word, cpu;

	for_each_word(word, local) {
		u64 bits = *indexed(local->cpus.bits, word);

		for_each_bit(cpu, word, bits) {
			capacity += capacity_of(st, cpu);
			least = min(least, capacity_of(st, cpu));
			most = max(most, capacity_of(st, cpu));
		}
	}
	group->capacity = capacity;
	group->min_capacity = least;
	group->max_capacity = most;
}

/* Before a pass: what the destination's own group can do now. */
static subprogram void update_group_capacity(struct state __arena *st,
					     const struct lb_env *env)
{
	struct sched_group __arena *group =
		group_capacity_of(st, env->sd->local_group);
	u64 now = jiffies(st, env->now);
	u64 interval = env->sd->balance_interval * 1000000ULL;

	if (!st->root.rt_seen ||
	    (env->idle == CPU_NEWLY_IDLE && now < group->next_update))
		return;
	interval = (interval + st->root.tick_ns - 1) / st->root.tick_ns;
	group->next_update = now + max(interval, 1ULL);
	if (!env->level)
		update_cpu_capacity(st, group, env->dst_cpu);
	else if (domain_span(st, env->sd - 1)->flags & SD_NUMA)
		sum_cpu_capacities(st, env, group);
	else
		sum_child_capacities(st, env, group);
}

#endif
