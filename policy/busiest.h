/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * busiest.h: from which run queue the load balancer pulls, and how much.
 *
 *   find_busiest_group
 *     update_sd_lb_stats      sums, type of each group, busiest candidate
 *     group_outweighs_local   does the pair of types call for a move at all
 *     calculate_imbalance     how much, counted in load, utilisation or tasks
 *   find_busiest_queue        the CPU of that group to take it from
 *
 * Kernels: v5.5 on, with the profile's differences; and the rework as posted in August 2019, which differs
 * where rework_v2() is asked. The balancer before it (balance_legacy.h) has
 * another find_busiest_group(), and takes from here the sums and the search for
 * the queue.
 *
 * Limits: no EAS, no NUMA-balancing classes. Which of two capacities counts as
 * greater is decided as from v5.13 on.
 */
#ifndef PLACEWISE_BUSIEST_H
#define PLACEWISE_BUSIEST_H

#include "asym_packing.h"
#include "capacity.h"
#include "group.h"
#include "idle_scan.h"
#include "llc_balance.h"

/* The rework as posted, not as merged. */
static inline bool rework_v2(const struct state __arena *st)
{
	return st->profile.balance == BALANCE_REWORK_V2;
}

/* The tasks of a CPU; before the rework, those of CFS only. */
static inline u32 balance_nr_running(const struct state __arena *st,
				     const struct rq __arena *rq)
{
	if (st->profile.balance == BALANCE_LEGACY)
		return cpu_h_nr_running(st, rq);
	return rq->nr_running;
}

static inline void sd_lb_stats_init(struct sd_lb_stats __arena *sds)
{
	sg_lb_stats_init(&sds->local, NO_GROUP);
	sg_lb_stats_init(&sds->busiest, NO_GROUP);
	sds->total_load = 0;
	sds->total_util = 0;
	sds->avg_load = 0;
	sds->total_capacity = 0;
	sds->prefer_sibling = false;
	sds->overload = false;
}

static inline void add_lb_stats(struct state __arena *st,
				struct sg_lb_stats __arena *sgs, u32 cpu)
{
	const struct rq __arena *rq = cpu_rq(st, cpu);

	sgs->group_load += cpu_load(st, cpu);
	sgs->group_util += cpu_util(st, cpu);
	sgs->group_runnable += cpu_runnable(st, cpu);
	sgs->sum_nr_running += balance_nr_running(st, rq);
	sgs->sum_h_nr_running += cpu_h_nr_running(st, rq);
	if (rq->nr_running > 1)
		scratch_of(st)->lb_stats.overload = true;
}

/* The load of a task that is too big for its CPU, or for what RT tasks leave of it. */
static inline void add_misfit(struct state __arena *st,
			      const struct lb_env *env,
			      struct sg_lb_stats __arena *sgs, u32 cpu)
{
	const struct rq __arena *rq = cpu_rq(st, cpu);

	if (env->span->flags & SD_ASYM_CPUCAPACITY) {
		if (sgs->misfit_task_load < rq->misfit_task_load) {
			sgs->misfit_task_load = rq->misfit_task_load;
			scratch_of(st)->lb_stats.overload = true;
		}
	} else if (rq->cfs.h_nr_queued == 1 &&
		   check_cpu_capacity(st, cpu, env->span)) {
		sgs->misfit_task_load =
			max(sgs->misfit_task_load, cpu_load(st, cpu));
	}
}

/* Does a lone task beside RT tasks count as a misfit in this pass? */
static inline bool reduced_capacity_counts(const struct state __arena *st,
					   const struct lb_env *env)
{
	return st->root.rt_seen && st->profile.misfit_reduced_capacity &&
	       env->idle != CPU_NOT_IDLE;
}

static inline void sum_misfits(struct state __arena *st,
			       const struct lb_env *env,
			       struct sg_lb_stats __arena *sgs)
{
	struct sched_group __arena *group = group_of(st, sgs->group);
	u32 word, cpu;

	if (!(env->span->flags & SD_ASYM_CPUCAPACITY) &&
	    !reduced_capacity_counts(st, env))
		return;
	for_each_word(word, group) {
		u64 bits = *indexed(group->cpus.bits, word) &
			   lb_cpus(st, env, word);

		for_each_bit(cpu, word, bits)
			add_misfit(st, env, sgs, cpu);
	}
}

/* What makes a non-local group worth relieving besides its load. */
static inline void mark_special_group(struct state __arena *st,
				      const struct lb_env *env,
				      struct sg_lb_stats __arena *sgs)
{
	const struct sched_group __arena *group = group_of(st, sgs->group);

	if (env->idle == CPU_NOT_IDLE)
		return;
	sgs->asym_packing =
		sgs->sum_h_nr_running &&
		sched_group_asym(st, env, &scratch_of(st)->lb_stats.local, sgs);
	sgs->smt_balance = st->profile.balance_smt &&
			   group->flags & SD_SHARE_CPUCAPACITY &&
			   sgs->sum_h_nr_running > 1;
}

/* What makes it worth relieving for the sake of the cache. */
static inline void mark_llc_balance(struct state __arena *st,
				    const struct lb_env *env,
				    struct sg_lb_stats __arena *sgs)
{
	struct sched_group __arena *group = group_of(st, sgs->group);
	u32 word, cpu;

	if (!cache_aware_balance(st) || env->span->flags & SD_SHARE_LLC)
		return;
	for_each_word(word, group) {
		u64 bits = *indexed(group->cpus.bits, word) &
			   lb_cpus(st, env, word);

		for_each_bit(cpu, word, bits)
			sgs->nr_pref_llc += nr_pref_llc(st, cpu, env->dst_cpu);
	}
	sgs->llc_balance = llc_balance(st, env, sgs);
}

/* Sums over the CPUs of the group, in whatever way they are then compared. */
static inline void sum_group(struct state __arena *st, const struct lb_env *env,
			     struct sg_lb_stats __arena *sgs)
{
	struct sched_group __arena *group = group_of(st, sgs->group);
	u32 word, cpu;

	for_each_word(word, group) {
		u64 bits = *indexed(group->cpus.bits, word) &
			   lb_cpus(st, env, word);

		sgs->idle_cpus +=
			count_bits(bits & *indexed(st->root.idle.bits, word));
		for_each_bit(cpu, word, bits)
			add_lb_stats(st, sgs, cpu);
	}
	sgs->group_capacity = group_capacity_of(st, sgs->group)->capacity;
	sgs->group_weight = group->weight;
}

static subprogram void update_sg_lb_stats(struct state __arena *st,
					  const struct lb_env *env,
					  struct sg_lb_stats __arena *sgs,
					  bool local)
{
	sum_group(st, env, sgs);
	record_sg_llc_stats(st, env, sgs);
	if (!local) {
		sum_misfits(st, env, sgs);
		mark_special_group(st, env, sgs);
		mark_llc_balance(st, env, sgs);
	}
	sgs->group_type = group_classify(st, env->span->imbalance_pct, sgs);
	if (sgs->group_type == GROUP_OVERLOADED)
		sgs->avg_load = group_avg_load(sgs);
}

/* Exactly one of the two is a core. */
static inline bool smt_vs_nonsmt_groups(const struct sched_group __arena *a,
					const struct sched_group __arena *b)
{
	return (a->flags ^ b->flags) & SD_SHARE_CPUCAPACITY;
}

static inline bool busier_with_spare(struct state __arena *st,
				     const struct sg_lb_stats __arena *busiest,
				     const struct sg_lb_stats __arena *sgs)
{
	const struct sched_group __arena *group = group_of(st, sgs->group);

	/* The last task of a core stays: taking it would only idle the core. */
	if (st->profile.balance_smt &&
	    smt_vs_nonsmt_groups(group_of(st, busiest->group), group))
		return !(group->flags & SD_SHARE_CPUCAPACITY) ||
		       sgs->sum_h_nr_running > 1;
	if (sgs->idle_cpus != busiest->idle_cpus || rework_v2(st))
		return sgs->idle_cpus < busiest->idle_cpus;
	return sgs->sum_nr_running > busiest->sum_nr_running;
}

static inline bool busier_fully_busy(struct state __arena *st,
				     const struct sg_lb_stats __arena *busiest,
				     const struct sg_lb_stats __arena *sgs)
{
	if (sgs->avg_load != busiest->avg_load)
		return sgs->avg_load > busiest->avg_load;
	return st->profile.balance_fully_busy_later &&
	       !(group_of(st, busiest->group)->flags & SD_SHARE_CPUCAPACITY);
}

/* Is @a more than @b, or as much where the later of two equals wins? */
static inline bool exceeds(const struct state __arena *st, s64 a, s64 b)
{
	return a > b || (a == b && st->profile.busiest_equal_replaces);
}

static inline s64 group_priority(struct state __arena *st, u32 group)
{
	return cpu_of(st, group_of(st, group)->asym_prefer_cpu)->asym_priority;
}

/* Of two groups of the same type, is @sgs the one to relieve? */
static inline bool busier_of_type(struct state __arena *st,
				  const struct sg_lb_stats __arena *busiest,
				  const struct sg_lb_stats __arena *sgs)
{
	switch (sgs->group_type) {
	case GROUP_OVERLOADED:
		return sgs->avg_load > busiest->avg_load;
	case GROUP_LLC_BALANCE:
		return sgs->nr_pref_llc > busiest->nr_pref_llc;
	case GROUP_ASYM_PACKING:
		return exceeds(st, group_priority(st, busiest->group),
			       group_priority(st, sgs->group));
	case GROUP_MISFIT_TASK:
		return exceeds(st, sgs->misfit_task_load,
			       busiest->misfit_task_load);
	case GROUP_SMT_BALANCE:
		if (sgs->idle_cpus || busiest->idle_cpus)
			return busier_with_spare(st, busiest, sgs);
		return busier_fully_busy(st, busiest, sgs);
	case GROUP_FULLY_BUSY:
		return busier_fully_busy(st, busiest, sgs);
	case GROUP_HAS_SPARE:
		return busier_with_spare(st, busiest, sgs);
	default:
		return false;
	}
}

/* Is a misfit task of @sgs no better off here? */
static inline bool misfit_not_helped(struct state __arena *st,
				     const struct lb_env *env,
				     const struct sd_lb_stats __arena *sds,
				     const struct sg_lb_stats __arena *sgs)
{
	return env->span->flags & SD_ASYM_CPUCAPACITY &&
	       sgs->group_type == GROUP_MISFIT_TASK &&
	       (!capacity_greater(
			capacity_of(st, env->dst_cpu),
			group_capacity_of(st, sgs->group)->max_capacity) ||
		sds->local.group_type != GROUP_HAS_SPARE);
}

/* Would tasks of @sgs, which has CPUs enough, only come to a smaller one here? */
static inline bool bigger_cpus_suffice(struct state __arena *st,
				       const struct lb_env *env,
				       const struct sg_lb_stats __arena *sgs)
{
	return env->span->flags & SD_ASYM_CPUCAPACITY &&
	       sgs->group_type <= GROUP_FULLY_BUSY &&
	       capacity_greater(group_capacity_of(st, sgs->group)->min_capacity,
				capacity_of(st, env->dst_cpu));
}

/* In the posted series a group with tasks for this LLC wins whatever its type. */
static inline bool llc_balance_first(const struct state __arena *st)
{
	return st->profile.cache_aware == CACHE_AWARE_BALANCE ||
	       st->profile.cache_aware == CACHE_AWARE_GATED;
}

/* A group of a higher type wins whatever its CPUs are like. */
verified_once bool
update_sd_pick_busiest(struct state __arena *st in_arena,
		       const struct lb_env *env on_stack,
		       const struct sd_lb_stats __arena *sds in_arena,
		       const struct sg_lb_stats __arena *sgs in_arena)
{
	const struct sg_lb_stats __arena *busiest = &sds->busiest;
	bool first = busiest->group == NO_GROUP;
	u32 type = first ? GROUP_HAS_SPARE : busiest->group_type;

	if (!sgs->sum_h_nr_running || misfit_not_helped(st, env, sds, sgs))
		return false;
	if (llc_balance_first(st)) {
		if (sgs->llc_balance && sgs->nr_pref_llc > busiest->nr_pref_llc)
			return true;
		if (busiest->llc_balance)
			return false;
	}
	if (sgs->group_type != type)
		return sgs->group_type > type;
	if (!first && !busier_of_type(st, busiest, sgs))
		return false;
	return !bigger_cpus_suffice(st, env, sgs);
}

/* Does a full count matter more than idle CPUs between these groups? */
static inline bool prefers_sibling(struct state __arena *st,
				   const struct lb_env *env,
				   const struct sd_lb_stats __arena *sds)
{
	if (st->profile.balance_smt)
		return group_of(st, sds->busiest.group)->flags &
		       SD_PREFER_SIBLING;
	return env->level &&
	       domain_span(st, env->sd - 1)->flags & SD_PREFER_SIBLING;
}

/* Let SIS_UTIL know how busy the LLC is. */
static inline void update_idle_cpu_scan(struct state __arena *st,
					const struct lb_env *env,
					u64 total_util)
{
	struct llc __arena *llc = cpu_llc(st, env->dst_cpu);

	if (!st->profile.sis_util || env->idle == CPU_NEWLY_IDLE ||
	    env->level != llc->domain_level)
		return;
	llc->nr_idle_scan =
		nr_idle_scan_of(total_util, llc->size, llc->imbalance_pct);
}

/* A copy of its own function, for its temporaries fill the stack of BPF. */
static subprogram void keep_group(struct sg_lb_stats __arena *kept,
				  const struct sg_lb_stats __arena *sgs)
{
	sg_lb_stats_copy(kept, sgs);
}

static inline void add_domain_sums(struct sd_lb_stats __arena *sds,
				   const struct sg_lb_stats __arena *sgs)
{
	sds->total_load += sgs->group_load;
	sds->total_util += sgs->group_util;
	sds->total_capacity += sgs->group_capacity;
}

/* What is known once all groups have been looked at. */
static inline void finish_domain_sums(struct state __arena *st,
				      const struct lb_env *env,
				      struct sd_lb_stats __arena *sds)
{
	sds->avg_load = sds->total_load * SCHED_CAPACITY_SCALE /
			max(sds->total_capacity, 1u);
	/*
	 * Only a pass over the whole machine can say that nobody is overloaded.
	 */
	if (env->level + 1u == cpu_of(st, env->dst_cpu)->nr_domains)
		st->root.overload = sds->overload;
}

static subprogram void update_sd_lb_stats(struct state __arena *st,
					  const struct lb_env *env,
					  struct sd_lb_stats __arena *sds)
{
	u32 i;

	for (i = opaque(0); i < env->span->nr_groups && i < NR_CPUS && can_loop;
	     i++) {
		struct sg_lb_stats __arena *sgs = &sds->current;
		u32 group = nth_group(env->span, env->sd, i);
		bool local = group_has(st, group, env->dst_cpu);

		if (local)
			update_group_capacity(st, env);
		sg_lb_stats_init(sgs, group);
		update_sg_lb_stats(st, env, sgs, local);
		add_domain_sums(sds, sgs);
		if (local)
			keep_group(&sds->local, sgs);
		else if (update_sd_pick_busiest(st, env, sds, sgs))
			keep_group(&sds->busiest, sgs);
	}
	if (sds->busiest.group != NO_GROUP)
		sds->prefer_sibling = prefers_sibling(st, env, sds);
	finish_domain_sums(st, env, sds);
	update_idle_cpu_scan(st, env, sds->total_util);
}

/*
 * By how many tasks the busiest group leads, for an even number on each core.
 */
static inline u32 sibling_imbalance(struct state __arena *st,
				    const struct lb_env *env,
				    const struct sd_lb_stats __arena *sds)
{
	u32 busiest_nr = sds->busiest.sum_nr_running;
	u32 local_nr = sds->local.sum_nr_running;
	u32 busiest_cores, local_cores, imbalance;

	if (!st->profile.balance_smt)
		return sub_positive(busiest_nr, local_nr);
	if (env->idle == CPU_NOT_IDLE || !busiest_nr)
		return 0;
	busiest_cores = group_of(st, sds->busiest.group)->cores;
	local_cores = group_of(st, sds->local.group)->cores;
	if (busiest_cores == local_cores)
		return sub_positive(busiest_nr, local_nr);

	imbalance = sub_positive(local_cores * busiest_nr,
				 busiest_cores * local_nr);
	imbalance = (2 * imbalance + local_cores + busiest_cores) /
		    max(local_cores + busiest_cores, 1u);
	if (imbalance <= 1 && !local_nr && busiest_nr > 1)
		return 2;
	return imbalance;
}

/* Is there load that the local group should take over? */
static inline bool load_below_others(const struct sd_lb_stats __arena *sds)
{
	return sds->local.avg_load < sds->busiest.avg_load &&
	       sds->local.avg_load < sds->avg_load;
}

/* Is the difference of load more than the level tolerates? */
static inline bool load_clearly_below(const struct lb_env *env,
				      const struct sd_lb_stats __arena *sds)
{
	return 100 * sds->busiest.avg_load >
	       env->span->imbalance_pct * sds->local.avg_load;
}

/*
 * The busiest group is not overloaded: is there at least an idle CPU to fill?
 */
static inline bool
idle_cpus_outweigh_busiest(struct state __arena *st, const struct lb_env *env,
			   const struct sd_lb_stats __arena *sds)
{
	const struct sg_lb_stats __arena *local = &sds->local;
	const struct sg_lb_stats __arena *busiest = &sds->busiest;

	if (env->idle == CPU_NOT_IDLE)
		return false;
	if (busiest->group_type == GROUP_SMT_BALANCE &&
	    smt_vs_nonsmt_groups(group_of(st, local->group),
				 group_of(st, busiest->group)))
		return true;
	if (busiest->group_weight > 1 &&
	    local->idle_cpus <= busiest->idle_cpus + 1)
		return false;
	return busiest->sum_h_nr_running != 1;
}

static subprogram bool group_outweighs_local(struct state __arena *st,
					     const struct lb_env *env,
					     struct sd_lb_stats __arena *sds)
{
	const struct sg_lb_stats __arena *local = &sds->local;
	const struct sg_lb_stats __arena *busiest = &sds->busiest;

	if (busiest->group == NO_GROUP)
		return false;
	switch (busiest->group_type) {
	case GROUP_MISFIT_TASK:
	case GROUP_ASYM_PACKING:
	case GROUP_IMBALANCED:
		return true;
	default:
		break;
	}
	if (local->group_type > busiest->group_type)
		return false;
	if (local->group_type == GROUP_OVERLOADED &&
	    !(load_below_others(sds) && load_clearly_below(env, sds)))
		return false;
	if (sds->prefer_sibling && local->group_type == GROUP_HAS_SPARE &&
	    (busiest->llc_balance || sibling_imbalance(st, env, sds) > 1))
		return true;
	return busiest->group_type == GROUP_OVERLOADED ||
	       idle_cpus_outweigh_busiest(st, env, sds);
}

/* How much of a difference in tasks the profile's NUMA rule leaves. */
static inline u32 numa_adjusted(struct state __arena *st,
				const struct lb_env *env,
				const struct sd_lb_stats __arena *sds,
				u32 imbalance)
{
	u32 limit = env->span->imb_numa_nr;
	u32 running = sds->local.sum_nr_running + 1;

	if (!(env->span->flags & SD_NUMA))
		return imbalance / 2;
	switch (st->profile.balance_numa) {
	case BALANCE_NUMA_BUSIEST_TWO:
		if (sds->busiest.sum_nr_running <= NUMA_IMBALANCE_MIN)
			return 0;
		return imbalance / 2;
	case BALANCE_NUMA_QUARTER_HALVED:
		if (sds->busiest.sum_nr_running <
			    sds->busiest.group_weight / 4 &&
		    imbalance / 2 <= NUMA_IMBALANCE_MIN)
			return 0;
		return imbalance / 2;
	case BALANCE_NUMA_LIMIT_HALVED:
		return adjust_numa_imbalance(imbalance / 2, running, limit);
	case BALANCE_NUMA_LIMIT:
		return adjust_numa_imbalance(imbalance, running, limit) / 2;
	default:
		return imbalance / 2;
	}
}

/* The local group has room: fill it by utilisation, or even out the tasks. */
static inline void imbalance_into_spare(struct state __arena *st,
					struct lb_env *env,
					const struct sd_lb_stats __arena *sds)
{
	const struct sg_lb_stats __arena *local = &sds->local;
	const struct sg_lb_stats __arena *busiest = &sds->busiest;
	u32 imbalance;

	if (busiest->group_type > GROUP_FULLY_BUSY &&
	    (rework_v2(st) || !(env->span->flags & SD_SHARE_LLC))) {
		env->migration_type = MIGRATE_UTIL;
		env->imbalance = sub_positive((u64)local->group_capacity,
					      local->group_util);
		/*
		 * Full of what has left already: an idle CPU still takes one.
		 */
		if (env->idle != CPU_NOT_IDLE && !env->imbalance &&
		    !rework_v2(st)) {
			env->migration_type = MIGRATE_TASK;
			env->imbalance = 1;
		}
		return;
	}
	if (busiest->group_weight == 1 || sds->prefer_sibling)
		imbalance = sibling_imbalance(st, env, sds);
	else
		imbalance = sub_positive(local->idle_cpus, busiest->idle_cpus);
	env->migration_type = MIGRATE_TASK;
	env->imbalance = numa_adjusted(st, env, sds, imbalance);
}

/* The local group is or becomes overloaded: meet at the domain's average. */
static inline void imbalance_of_load(struct state __arena *st,
				     struct lb_env *env,
				     struct sd_lb_stats __arena *sds)
{
	struct sg_lb_stats __arena *local = &sds->local;
	const struct sg_lb_stats __arena *busiest = &sds->busiest;
	u64 surplus, deficit;

	env->migration_type = MIGRATE_LOAD;
	env->imbalance = 0;
	if (local->group_type < GROUP_OVERLOADED) {
		local->avg_load = group_avg_load(local);
		if (local->avg_load >= busiest->avg_load && !rework_v2(st))
			return;
		if (st->profile.balance_local_above_average &&
		    local->avg_load >= sds->avg_load)
			return;
	}
	/*
	 * Unsigned as in the kernel: a difference below 0 is never the smaller.
	 */
	surplus = (busiest->avg_load - sds->avg_load) * busiest->group_capacity;
	deficit = (sds->avg_load - local->avg_load) * local->group_capacity;
	env->imbalance = min(surplus, deficit) / SCHED_CAPACITY_SCALE;
}

static subprogram void calculate_imbalance(struct state __arena *st,
					   struct lb_env *env,
					   struct sd_lb_stats __arena *sds)
{
	env->migration_type = MIGRATE_TASK;
	env->imbalance = 1;
	switch (sds->busiest.group_type) {
	case GROUP_MISFIT_TASK:
		env->migration_type = MIGRATE_MISFIT;
		if (!(env->span->flags & SD_ASYM_CPUCAPACITY))
			env->migration_type = MIGRATE_LOAD;
		if (rework_v2(st) || env->migration_type == MIGRATE_LOAD)
			env->imbalance = sds->busiest.misfit_task_load;
		return;
	case GROUP_ASYM_PACKING:
		env->imbalance = sds->busiest.sum_h_nr_running;
		if (rework_v2(st)) {
			env->migration_type = MIGRATE_LOAD;
			env->imbalance = sds->busiest.group_load;
		}
		return;
	case GROUP_SMT_BALANCE:
		return;
	default:
		break;
	}
	if (sds->busiest.llc_balance) {
		env->migration_type = MIGRATE_LLC_TASK;
		return;
	}
	if (sds->busiest.group_type == GROUP_IMBALANCED)
		return;
	if (sds->local.group_type == GROUP_HAS_SPARE)
		imbalance_into_spare(st, env, sds);
	else
		imbalance_of_load(st, env, sds);
}

/* Sets env's group, migration type and imbalance; false = balanced. */
verified_once bool find_busiest_group(struct state __arena *st in_arena,
				      struct lb_env *env on_stack)
{
	struct sd_lb_stats __arena *sds = &scratch_of(st)->lb_stats;

	sd_lb_stats_init(sds);
	update_sd_lb_stats(st, env, sds);
	if (!group_outweighs_local(st, env, sds))
		return false;
	calculate_imbalance(st, env, sds);
	env->busiest_group = sds->busiest.group;
	return env->imbalance != 0;
}

/* A lone task that would leave or enter the wrong CPU is not looked at. */
static inline bool lone_task_stays(struct state __arena *st,
				   const struct lb_env *env, u32 cpu)
{
	u32 flags = env->span->flags;

	if (st->profile.balance == BALANCE_LEGACY)
		return env->migration_type == MIGRATE_LOAD &&
		       flags & SD_ASYM_CPUCAPACITY &&
		       capacity_of(st, env->dst_cpu) < capacity_of(st, cpu);
	if (flags & SD_ASYM_CPUCAPACITY &&
	    !capacity_greater(capacity_of(st, env->dst_cpu),
			      capacity_of(st, cpu)))
		return true;
	return asym_lone_task_stays(st, env, cpu);
}

/* Utilisation by which queues are compared. */
static inline u64 queue_util(struct state __arena *st, u32 cpu)
{
	const struct cfs_rq __arena *cfs = &cpu_rq(st, cpu)->cfs;
	u64 util;

	if (!st->profile.queue_util_uses_runnable)
		return cpu_util(st, cpu);
	util = max(cfs->avg.util_avg, cfs->avg.runnable_avg);
	util = max(util, (u64)cfs->util_est);
	return min(util, (u64)cpu_of(st, cpu)->capacity_orig);
}

/* Load by which queues are compared; it was that of the queued tasks only. */
static inline u64 queue_load(struct state __arena *st, u32 cpu)
{
	if (st->profile.balance == BALANCE_LEGACY)
		return cpu_runnable_load(st, cpu);
	return cpu_load(st, cpu);
}

/* The busiest queue so far: the first one with the greatest value. */
struct busiest_queue {
	u64 value;
	u64 capacity;
	u32 cpu;
};

static inline void consider_queue(struct state __arena *st,
				  const struct lb_env *env, u32 cpu,
				  struct busiest_queue *best)
{
	u32 nr_running = cpu_h_nr_running(st, cpu_rq(st, cpu));
	u64 capacity = 1;
	u64 value;

	if (!nr_running || (nr_running == 1 && lone_task_stays(st, env, cpu)))
		return;
	switch (env->migration_type) {
	case MIGRATE_LOAD:
		value = queue_load(st, cpu);
		if (nr_running == 1 && value > (u64)env->imbalance &&
		    !check_cpu_capacity(st, cpu, env->span))
			return;
		capacity = capacity_of(st, cpu);
		break;
	case MIGRATE_UTIL:
		if (nr_running <= 1)
			return;
		value = queue_util(st, cpu);
		break;
	case MIGRATE_TASK:
		value = nr_running;
		break;
	case MIGRATE_LLC_TASK:
		value = nr_pref_llc(st, cpu, env->dst_cpu);
		break;
	default:
		value = cpu_rq(st, cpu)->misfit_task_load;
		break;
	}
	if (value * best->capacity > best->value * capacity) {
		best->value = value;
		best->capacity = capacity;
		best->cpu = cpu;
	}
}

/* The CPU of the busiest group to pull from, or NO_CPU. */
verified_once u32 find_busiest_queue(struct state __arena *st in_arena,
				     const struct lb_env *env on_stack)
{
	const struct sched_group __arena *group =
		group_of(st, env->busiest_group);
	struct busiest_queue best = {.capacity = 1, .cpu = NO_CPU};
	u32 word, cpu;

	for_each_word(word, group) {
		u64 bits = *indexed(group->cpus.bits, word) &
			   lb_cpus(st, env, word);

		for_each_bit(cpu, word, bits)
			consider_queue(st, env, cpu, &best);
	}
	return best.cpu;
}

#endif
