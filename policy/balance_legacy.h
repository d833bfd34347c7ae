/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * balance_legacy.h: from which group the load balancer pulled before it was
 * reworked, and how much.
 *
 *   find_busiest_group_legacy
 *     update_legacy_lb_stats   sums, type of each group, busiest candidate
 *     check_asym_packing       a preferred CPU takes all there is
 *     legacy_outweighs_local   does the pair of groups call for a move at all
 *     legacy_imbalance         how much load
 *       fix_small_imbalance    whether to move one task, for want of more
 *
 * It compares averages: the load of the queued tasks over the capacity of the
 * group. The types are fewer, in the order has_spare (that is all others) <
 * misfit < imbalanced < overloaded, and decide only which group is busiest and
 * whether averages may be ignored; what is to move is always load. So a group
 * in which many tasks of little load wait is overloaded, and yet gives nothing
 * to an idle group whose few tasks weigh more.
 *
 * Kernels: up to v5.3, as v5.3 has it; for the older ones that includes the
 * misfit type, which they lack, and which no machine with equal CPUs shows.
 * Limits: those of busiest.h.
 */
#ifndef PLACEWISE_BALANCE_LEGACY_H
#define PLACEWISE_BALANCE_LEGACY_H

#include "busiest.h"

/* The load of the tasks that are queued, not what sleepers left behind. */
static subprogram u64
group_runnable_load(struct state __arena *st, const struct lb_env *env,
		    const struct sched_group __arena *group)
{
	u32 word, cpu;
	u64 load = 0;

	for_each_word(word, group) {
		u64 bits = *indexed(group->cpus.bits, word) &
			   lb_cpus(st, env, word);

		for_each_bit(cpu, word, bits)
			load += cpu_runnable_load(st, cpu);
	}
	return load;
}

static inline u32 legacy_classify(struct state __arena *st, u32 imbalance_pct,
				  const struct sg_lb_stats __arena *sgs)
{
	if (group_is_overloaded(st, imbalance_pct, sgs))
		return GROUP_OVERLOADED;
	if (group_capacity_of(st, sgs->group)->imbalance)
		return GROUP_IMBALANCED;
	if (sgs->misfit_task_load)
		return GROUP_MISFIT_TASK;
	return GROUP_HAS_SPARE;
}

static inline bool local_has_capacity(const struct state __arena *st,
				      const struct lb_env *env,
				      const struct sd_lb_stats __arena *sds)
{
	return group_has_capacity(st, env->span->imbalance_pct, &sds->local);
}

/*
 * Where tasks are to spread over siblings, two tasks more than in a local group
 * with room are too many, whatever the CPUs there.
 */
static inline bool crowds_siblings(const struct state __arena *st,
				   const struct lb_env *env,
				   const struct sd_lb_stats __arena *sds,
				   const struct sg_lb_stats __arena *sgs)
{
	return sds->prefer_sibling && local_has_capacity(st, env, sds) &&
	       sgs->sum_h_nr_running > sds->local.sum_h_nr_running + 1;
}

/* A misfit task is pulled by a group with a CPU that is big enough, and room. */
static inline bool helps_misfit(struct state __arena *st,
				const struct lb_env *env,
				const struct sd_lb_stats __arena *sds,
				const struct sg_lb_stats __arena *sgs)
{
	return fits_capacity(
		       group_capacity_of(st, sgs->group)->max_capacity,
		       group_capacity_of(st, sds->local.group)->max_capacity) &&
	       local_has_capacity(st, env, sds);
}

/*
 * Unequal CPUs: a group of bigger ones that has a CPU for each task keeps its
 * load, and the biggest misfit goes first.
 */
static inline bool
legacy_capacity_forbids(struct state __arena *st, const struct lb_env *env,
			const struct sd_lb_stats __arena *sds,
			const struct sg_lb_stats __arena *sgs)
{
	if (!(env->span->flags & SD_ASYM_CPUCAPACITY))
		return false;
	if (sgs->sum_nr_running <= sgs->group_weight &&
	    fits_capacity(group_capacity_of(st, sds->local.group)->min_capacity,
			  group_capacity_of(st, sgs->group)->min_capacity))
		return true;
	return sgs->group_type == GROUP_MISFIT_TASK &&
	       sgs->misfit_task_load < sds->busiest.misfit_task_load;
}

/*
 * An idle CPU under SD_ASYM_PACKING relieves groups of less preferred CPUs
 * only, the least preferred first.
 */
static inline bool packing_forbids(struct state __arena *st,
				   const struct lb_env *env,
				   const struct sd_lb_stats __arena *sds,
				   const struct sg_lb_stats __arena *sgs)
{
	u32 preferred = group_of(st, sgs->group)->asym_prefer_cpu;

	if (!(env->span->flags & SD_ASYM_PACKING) || env->idle == CPU_NOT_IDLE)
		return false;
	if (!sgs->sum_h_nr_running ||
	    !sched_asym_prefer(st, env->dst_cpu, preferred))
		return true;
	return sds->busiest.group != NO_GROUP &&
	       !sched_asym_prefer(
		       st, group_of(st, sds->busiest.group)->asym_prefer_cpu,
		       preferred);
}

verified_once bool
legacy_pick_busiest(struct state __arena *st in_arena,
		    const struct lb_env *env on_stack,
		    const struct sd_lb_stats __arena *sds in_arena,
		    const struct sg_lb_stats __arena *sgs in_arena)
{
	const struct sg_lb_stats __arena *busiest = &sds->busiest;

	if (sgs->group_type == GROUP_MISFIT_TASK &&
	    !helps_misfit(st, env, sds, sgs))
		return false;
	if (sgs->group_type != busiest->group_type)
		return sgs->group_type > busiest->group_type;
	return sgs->avg_load > busiest->avg_load &&
	       !legacy_capacity_forbids(st, env, sds, sgs) &&
	       !packing_forbids(st, env, sds, sgs);
}

static subprogram void
update_legacy_sg_lb_stats(struct state __arena *st, const struct lb_env *env,
			  struct sg_lb_stats __arena *sgs)
{
	sum_group(st, env, sgs);
	sum_misfits(st, env, sgs);
	sgs->group_load =
		group_runnable_load(st, env, group_of(st, sgs->group));
	sgs->avg_load = group_avg_load(sgs);
	sgs->group_type = legacy_classify(st, env->span->imbalance_pct, sgs);
}

/* The local group is the first of its ring, so that others find it summed. */
static __always_inline void
update_legacy_lb_stats(struct state __arena *st, const struct lb_env *env,
		       struct sd_lb_stats __arena *sds)
{
	u32 i;

	sds->prefer_sibling = prefers_sibling(st, env, sds);
	for (i = opaque(0); i < env->span->nr_groups && i < NR_CPUS && can_loop;
	     i++) {
		struct sg_lb_stats __arena *sgs = &sds->current;
		u32 group = nth_group(env->span, env->sd, i);
		bool local = group_has(st, group, env->dst_cpu);

		if (local)
			update_group_capacity(st, env);
		sg_lb_stats_init(sgs, group);
		update_legacy_sg_lb_stats(st, env, sgs);
		add_domain_sums(sds, sgs);
		if (local) {
			keep_group(&sds->local, sgs);
			continue;
		}
		if (crowds_siblings(st, env, sds, sgs))
			sgs->group_type = GROUP_OVERLOADED;
		if (legacy_pick_busiest(st, env, sds, sgs))
			keep_group(&sds->busiest, sgs);
	}
	finish_domain_sums(st, env, sds);
}

static inline bool check_asym_packing(struct state __arena *st,
				      const struct lb_env *env,
				      const struct sd_lb_stats __arena *sds)
{
	if (!(env->span->flags & SD_ASYM_PACKING) ||
	    env->idle == CPU_NOT_IDLE || sds->busiest.group == NO_GROUP)
		return false;
	return !sched_asym_prefer(
		st, group_of(st, sds->busiest.group)->asym_prefer_cpu,
		env->dst_cpu);
}

static inline bool legacy_outweighs_local(struct state __arena *st,
					  const struct lb_env *env,
					  const struct sd_lb_stats __arena *sds)
{
	const struct sg_lb_stats __arena *busiest = &sds->busiest;
	bool overloaded = busiest->group_type == GROUP_OVERLOADED;

	if (busiest->group == NO_GROUP || !busiest->sum_h_nr_running)
		return false;
	if (busiest->group_type == GROUP_IMBALANCED ||
	    busiest->group_type == GROUP_MISFIT_TASK)
		return true;
	/* Averages shall not keep an idle CPU idle. */
	if (env->idle != CPU_NOT_IDLE && overloaded &&
	    local_has_capacity(st, env, sds))
		return true;
	if (!load_below_others(sds))
		return false;
	if (env->idle == CPU_IDLE)
		return overloaded ||
		       sds->local.idle_cpus > busiest->idle_cpus + 1;
	return load_clearly_below(env, sds);
}

static inline u64 load_per_task(const struct sg_lb_stats __arena *sgs)
{
	return sgs->sum_h_nr_running ? sgs->group_load / sgs->sum_h_nr_running
				     : 0;
}

/* What a group gets done: all its capacity only if a task has enough load. */
static inline u64 throughput(const struct sg_lb_stats __arena *sgs, u64 task,
			     u64 load)
{
	return sgs->group_capacity * min(task, load);
}

/* Would more get done if a task of @task went from busiest to local? */
static inline bool
move_gains_throughput(const struct sg_lb_stats __arena *local,
		      const struct sg_lb_stats __arena *busiest, u64 local_task,
		      u64 task, u64 scaled_task)
{
	u64 moved_load = min(busiest->avg_load * busiest->group_capacity,
			     task * SCHED_CAPACITY_SCALE);
	u64 now, moved = 0;

	now = throughput(busiest, task, busiest->avg_load) +
	      throughput(local, local_task, local->avg_load);
	if (busiest->avg_load > scaled_task)
		moved = throughput(busiest, task,
				   busiest->avg_load - scaled_task);
	moved += throughput(
		local, local_task,
		local->avg_load + moved_load / max(local->group_capacity, 1u));
	return moved / SCHED_CAPACITY_SCALE > now / SCHED_CAPACITY_SCALE;
}

/*
 * The imbalance is less than one task's load. Take a whole one if that leaves
 * the groups no further apart than they are, or if more gets done then. An empty
 * local group always gets one, so there the loads of its CPUs need no look.
 */
static inline void fix_small_imbalance(struct lb_env *env,
				       const struct sd_lb_stats __arena *sds,
				       u64 task)
{
	const struct sg_lb_stats __arena *local = &sds->local;
	const struct sg_lb_stats __arena *busiest = &sds->busiest;
	u64 scaled_task =
		task * SCHED_CAPACITY_SCALE / max(busiest->group_capacity, 1u);
	u64 local_task = load_per_task(local);
	u32 tolerated = task > local_task ? 1 : 2;

	if (busiest->avg_load + scaled_task >=
		    local->avg_load + scaled_task * tolerated ||
	    move_gains_throughput(local, busiest, local_task, task,
				  scaled_task))
		env->imbalance = task;
}

/* How far the average of busiest may fall before CPUs there would idle. */
static inline u64 load_above_capacity(const struct sd_lb_stats __arena *sds)
{
	const struct sg_lb_stats __arena *busiest = &sds->busiest;
	u64 load = (u64)busiest->sum_h_nr_running * SCHED_CAPACITY_SCALE;

	if (busiest->group_type != GROUP_OVERLOADED ||
	    sds->local.group_type != GROUP_OVERLOADED ||
	    load <= busiest->group_capacity)
		return U64_MAX;
	return (load - busiest->group_capacity) * NICE_0_LOAD /
	       max(busiest->group_capacity, 1u);
}

/*
 * Meet at the domain's average. Unsigned as in the kernel: for a misfit task,
 * a difference below 0 is never the smaller.
 */
static inline u64 load_to_average(const struct sd_lb_stats __arena *sds)
{
	const struct sg_lb_stats __arena *local = &sds->local;
	const struct sg_lb_stats __arena *busiest = &sds->busiest;
	u64 pull = min(busiest->avg_load - sds->avg_load,
		       load_above_capacity(sds));

	return min(pull * busiest->group_capacity,
		   (sds->avg_load - local->avg_load) * local->group_capacity) /
	       SCHED_CAPACITY_SCALE;
}

/* Sets env's imbalance, and MIGRATE_MISFIT where queues are searched for it. */
static inline void legacy_imbalance(struct lb_env *env,
				    const struct sd_lb_stats __arena *sds)
{
	const struct sg_lb_stats __arena *local = &sds->local;
	const struct sg_lb_stats __arena *busiest = &sds->busiest;
	bool misfit = busiest->group_type == GROUP_MISFIT_TASK;
	u64 task = load_per_task(busiest);
	u64 amount = 0;

	if (busiest->group_type == GROUP_IMBALANCED)
		task = min(task, sds->avg_load);
	if (misfit || (busiest->avg_load > sds->avg_load &&
		       local->avg_load < sds->avg_load))
		amount = load_to_average(sds);
	if (misfit) {
		env->migration_type = MIGRATE_MISFIT;
		amount = max(amount, busiest->misfit_task_load);
	}
	env->imbalance = amount;
	if (amount < task)
		fix_small_imbalance(env, sds, task);
}

/* Sets env's group, migration type and imbalance; false = balanced. */
verified_once bool find_busiest_group_legacy(struct state __arena *st in_arena,
					     struct lb_env *env on_stack)
{
	struct sd_lb_stats __arena *sds = &scratch_of(st)->lb_stats;

	sd_lb_stats_init(sds);
	update_legacy_lb_stats(st, env, sds);
	env->migration_type = MIGRATE_LOAD;
	env->busiest_group = sds->busiest.group;
	if (check_asym_packing(st, env, sds)) {
		env->imbalance = sds->busiest.group_load;
		return true;
	}
	if (!legacy_outweighs_local(st, env, sds))
		return false;
	legacy_imbalance(env, sds);
	return env->imbalance != 0;
}

#endif
