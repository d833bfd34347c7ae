/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * fork.h: where a new (or exec'ing) task starts: the slow path.
 *
 * The walk goes down the domains: at each level the idlest group, in that group
 * the idlest CPU, and on from the domains of that CPU.
 *
 *   find_idlest_cpu
 *     find_idlest_group            group types and idle CPUs (v5.5 on)
 *     | find_idlest_group_legacy   runnable load and average load (before)
 *     find_idlest_group_cpu        shallowest idle state, latest idled,
 *                                  least load
 *
 * On a NUMA level with room on both sides the profile says how many tasks stay
 * (fork_numa); a fork hint of the child takes that rule's place.
 *
 * Limits: NUMA balancing is off, so there is no preferred node. The legacy
 * search sums the loads of queued tasks by walking them; with task groups that
 * needs the groups' own weights.
 */
#ifndef PLACEWISE_FORK_H
#define PLACEWISE_FORK_H

#include "group.h"
#include "hint.h"

static inline bool task_queued_on(const struct task __arena *p, u32 cpu)
{
	return p->on_rq && p->cpu == cpu;
}

/* Would @cpu be idle if @p, which is queued there, were not? */
static inline bool idle_cpu_without(struct state __arena *st, u32 cpu, u32 p)
{
	const struct rq __arena *rq = cpu_rq(st, cpu);

	return rq->nr_running == 1 && !rq->ttwu_pending &&
	       (rq->curr == p || is_idle_task(rq->curr));
}

/* Answers with 0: what is verified once answers with a number. */
verified_once int add_wakeup_stats(struct state __arena *st in_arena,
				   struct sg_lb_stats __arena *sgs in_arena,
				   u32 cpu, u32 p)
{
	const struct task __arena *task = task_of(st, p);
	const struct rq __arena *rq = cpu_rq(st, cpu);
	bool queued = task_queued_on(task, cpu);

	sgs->group_load += cpu_load_without(st, cpu, task);
	sgs->group_util += cpu_util_without(st, cpu, task);
	sgs->group_runnable += cpu_runnable_without(st, cpu, task);
	sgs->sum_nr_running += rq->nr_running - queued;
	sgs->sum_h_nr_running += cpu_h_nr_running(st, rq) - queued;
	if (queued ? idle_cpu_without(st, cpu, p) : available_idle_cpu(st, cpu))
		sgs->idle_cpus++;
	if (fits_capacity(task_util_est(task), capacity_of(st, cpu)))
		sgs->misfit_task_load = 0;
	return 0;
}

static subprogram void
update_sg_wakeup_stats(struct state __arena *st,
		       const struct sched_span __arena *span,
		       struct sg_lb_stats __arena *sgs, u32 p)
{
	struct sched_group __arena *group = group_of(st, sgs->group);
	bool allowed_only = st->profile.fork_stats_allowed_only;
	u32 word, cpu;

	if (span->flags & SD_ASYM_CPUCAPACITY)
		sgs->misfit_task_load = 1;
	for_each_word(word, group) {
		u64 bits = *indexed(group->cpus.bits, word) &
			   *indexed(st->root.online.bits, word);

		if (allowed_only)
			bits &= *indexed(task_of(st, p)->cpus_allowed.bits,
					 word);
		scratch_of(st)->decision.scanned += count_bits(bits);
		for_each_bit(cpu, word, bits)
			add_wakeup_stats(st, sgs, cpu, p);
	}
	sgs->group_capacity = group_capacity_of(st, sgs->group)->capacity;
	sgs->group_weight = group->weight;
	sgs->group_type = group_classify(st, span->imbalance_pct, sgs);
	if (sgs->group_type == GROUP_FULLY_BUSY ||
	    sgs->group_type == GROUP_OVERLOADED)
		sgs->avg_load = group_avg_load(sgs);
}

/* Is @sgs idler than the best non-local group so far? */
static inline bool update_pick_idlest(struct state __arena *st,
				      const struct sg_lb_stats __arena *idlest,
				      const struct sg_lb_stats __arena *sgs)
{
	if (idlest->group == NO_GROUP)
		return true;
	if (sgs->group_type != idlest->group_type)
		return sgs->group_type < idlest->group_type;

	switch (sgs->group_type) {
	case GROUP_OVERLOADED:
	case GROUP_FULLY_BUSY:
		return sgs->avg_load < idlest->avg_load;
	case GROUP_MISFIT_TASK:
		return group_capacity_of(st, sgs->group)->max_capacity >
		       group_capacity_of(st, idlest->group)->max_capacity;
	case GROUP_HAS_SPARE:
		if (sgs->idle_cpus != idlest->idle_cpus)
			return sgs->idle_cpus > idlest->idle_cpus;
		return sgs->group_util < idlest->group_util;
	default:
		return false;
	}
}

static inline u32 nr_allowed_in_group(struct state __arena *st, u32 group_nr,
				      const struct task __arena *p)
{
	const struct sched_group __arena *group = group_of(st, group_nr);
	u32 word, nr = 0;

	for_each_word(word, group) {
		nr += count_bits(*indexed(group->cpus.bits, word) &
				 *indexed(p->cpus_allowed.bits, word));
	}
	return nr;
}

/* May one task more start in this NUMA node although another has more idle
 * CPUs? */
static inline bool fork_stays_in_node(struct state __arena *st,
				      const struct sched_span __arena *span,
				      const struct sg_lb_stats __arena *local,
				      const struct sg_lb_stats __arena *idlest,
				      const struct task __arena *p)
{
	u32 running = local->sum_nr_running + 1;
	u32 limit, imbalance;

	switch (st->profile.fork_numa) {
	case FORK_NUMA_ANY_IDLE:
		return local->idle_cpus > 0;
	case FORK_NUMA_QUARTER:
		return local->sum_nr_running < span->weight / 4;
	case FORK_NUMA_RUNNING:
		return running <= span->imb_numa_nr;
	case FORK_NUMA_RUNNING_ALLOWED:
		limit = nr_allowed_in_group(st, local->group, p);
		return running <= min(limit, span->imb_numa_nr);
	default:
		limit = nr_allowed_in_group(st, local->group, p);
		limit = min(limit, span->imb_numa_nr);
		imbalance = max(local->idle_cpus, idlest->idle_cpus) -
			    min(local->idle_cpus, idlest->idle_cpus);
		return !adjust_numa_imbalance(imbalance, running, limit);
	}
}

/* Both groups have spare CPUs: true for the idlest one, false for the local
 * one. */
static inline bool spare_prefers_idlest(
	struct state __arena *st, const struct sched_span __arena *span,
	const struct sg_lb_stats __arena *local,
	const struct sg_lb_stats __arena *idlest, const struct task __arena *p)
{
	u32 hint = p->hint & HINT_FORK;

	if (!hint && span->flags & SD_NUMA &&
	    fork_stays_in_node(st, span, local, idlest, p))
		return false;
	/* More idle CPUs than half of them: with SMT-2, some core is idle. */
	if (hint & HINT_FORK_AFFINE &&
	    local->idle_cpus > local->group_weight / 2)
		return false;
	if (local->idle_cpus != idlest->idle_cpus)
		return local->idle_cpus < idlest->idle_cpus;
	return hint & HINT_FORK_SPREAD &&
	       local->group_util > idlest->group_util;
}

/* Both groups are busy: is the idlest one less loaded by enough to matter? */
static inline bool load_prefers_idlest(const struct sched_span __arena *span,
				       const struct sg_lb_stats __arena *local,
				       const struct sg_lb_stats __arena *idlest)
{
	u64 imbalance =
		SCHED_CAPACITY_SCALE * (span->imbalance_pct - 100) / 100;

	if (span->flags & SD_NUMA &&
	    idlest->avg_load + imbalance >= local->avg_load)
		return false;
	if (idlest->avg_load >= local->avg_load + imbalance)
		return false;
	return 100 * local->avg_load > span->imbalance_pct * idlest->avg_load;
}

verified_once bool
prefer_idlest(struct state __arena *st in_arena,
	      const struct sched_span __arena *span in_arena,
	      const struct sg_lb_stats __arena *local in_arena,
	      const struct sg_lb_stats __arena *idlest in_arena,
	      const struct task __arena *p in_arena)
{
	if (idlest->group == NO_GROUP)
		return false;
	if (local->group == NO_GROUP)
		return true;
	if (local->group_type != idlest->group_type)
		return local->group_type > idlest->group_type;

	switch (local->group_type) {
	case GROUP_OVERLOADED:
	case GROUP_FULLY_BUSY:
		return load_prefers_idlest(span, local, idlest);
	case GROUP_MISFIT_TASK:
		return group_capacity_of(st, local->group)->max_capacity <
		       group_capacity_of(st, idlest->group)->max_capacity;
	case GROUP_HAS_SPARE:
		return spare_prefers_idlest(st, span, local, idlest, p);
	default:
		return false;
	}
}

/* Sum up one group: it is the local one, or perhaps the idlest so far. */
verified_once int consider_group(struct state __arena *st in_arena,
				 const struct sched_domain __arena *sd in_arena,
				 u32 group, u32 p, u32 cpu)
{
	struct sd_lb_stats __arena *stats = &scratch_of(st)->lb_stats;
	struct sg_lb_stats __arena *sgs = &stats->current;

	sg_lb_stats_init(sgs, group);
	update_sg_wakeup_stats(st, domain_span(st, sd), sgs, p);
	if (group_has(st, group, cpu))
		sg_lb_stats_copy(&stats->local, sgs);
	else if (update_pick_idlest(st, &stats->idlest, sgs))
		sg_lb_stats_copy(&stats->idlest, sgs);
	return 0;
}

/* The group @p should go to, or NO_GROUP: stay in the local one. */
verified_once u32 find_idlest_group(
	struct state __arena *st in_arena,
	const struct sched_domain __arena *sd in_arena, u32 p, u32 cpu)
{
	struct sched_span __arena *span = domain_span(st, sd);
	struct sd_lb_stats __arena *stats = &scratch_of(st)->lb_stats;
	u32 i;

	sg_lb_stats_init(&stats->local, NO_GROUP);
	sg_lb_stats_init(&stats->idlest, NO_GROUP);
	for (i = opaque(0); i < span->nr_groups && i < NR_CPUS && can_loop;
	     i++) {
		u32 group = nth_group(span, sd, i);

		if (group_allows(st, group_of(st, group), task_of(st, p)))
			consider_group(st, sd, group, p, cpu);
	}
	if (prefer_idlest(st, span, &stats->local, &stats->idlest,
			  task_of(st, p)))
		return stats->idlest.group;
	return NO_GROUP;
}

/* What the search before v5.5 compares. */
struct legacy_stats {
	u64 runnable_load; /* per capacity, like avg_load */
	u64 avg_load;
	u64 max_spare; /* of one CPU */
};

static inline struct legacy_stats legacy_stats_init(void)
{
	u64 none = opaque(0);

	return (struct legacy_stats){none, none, none};
}

static subprogram void update_legacy_stats(struct state __arena *st,
					   u32 group_nr,
					   struct legacy_stats *stats, u32 p)
{
	const struct task __arena *task = task_of(st, p);
	struct sched_group __arena *group = group_of(st, group_nr);
	u64 capacity = max(group_capacity_of(st, group_nr)->capacity, 1u);
	u32 word, cpu;

	for_each_word(word, group) {
		u64 bits = *indexed(group->cpus.bits, word) &
			   *indexed(st->root.online.bits, word);

		scratch_of(st)->decision.scanned += count_bits(bits);
		for_each_bit(cpu, word, bits) {
			u64 spare =
				sub_positive(capacity_of(st, cpu),
					     cpu_util_without(st, cpu, task));

			stats->runnable_load += cpu_runnable_load(st, cpu);
			stats->avg_load += cpu_load(st, cpu);
			stats->max_spare = max(stats->max_spare, spare);
		}
	}
	stats->runnable_load =
		stats->runnable_load * SCHED_CAPACITY_SCALE / capacity;
	stats->avg_load = stats->avg_load * SCHED_CAPACITY_SCALE / capacity;
}

/* The idlest remote group so far, as the search before v5.5 remembers it. */
struct legacy_search {
	u64 min_runnable_load, min_avg_load;
	u64 most_spare;
	u32 idlest, most_spare_group;
};

static inline void legacy_consider(const struct sched_span __arena *span,
				   struct legacy_search *search, u32 group,
				   const struct legacy_stats *stats)
{
	u64 imbalance =
		SCHED_CAPACITY_SCALE * (span->imbalance_pct - 100) / 100;
	u64 scale = 100 + (span->imbalance_pct - 100) / 2;

	if (search->idlest == NO_GROUP ||
	    search->min_runnable_load > stats->runnable_load + imbalance) {
		search->min_runnable_load = stats->runnable_load;
		search->min_avg_load = stats->avg_load;
		search->idlest = group;
	} else if (stats->runnable_load <
			   search->min_runnable_load + imbalance &&
		   100 * search->min_avg_load > scale * stats->avg_load) {
		search->min_avg_load = stats->avg_load;
		search->idlest = group;
	}
	if (stats->max_spare > search->most_spare) {
		search->most_spare = stats->max_spare;
		search->most_spare_group = group;
	}
}

/* Is the idlest remote group worth leaving the local one for? */
static inline bool legacy_prefers_idlest(const struct sched_span __arena *span,
					 const struct legacy_search *search,
					 const struct legacy_stats *local)
{
	u64 imbalance =
		SCHED_CAPACITY_SCALE * (span->imbalance_pct - 100) / 100;
	u64 scale = 100 + (span->imbalance_pct - 100) / 2;

	if (span->flags & SD_NUMA &&
	    search->min_runnable_load + imbalance >= local->runnable_load)
		return false;
	if (search->min_runnable_load > local->runnable_load + imbalance)
		return false;
	return local->runnable_load >= search->min_runnable_load + imbalance ||
	       100 * local->avg_load >= scale * search->min_avg_load;
}

verified_once u32
find_idlest_group_legacy(struct state __arena *st in_arena,
			 const struct sched_domain __arena *sd in_arena, u32 p,
			 u32 cpu, u32 sd_flag)
{
	struct sched_span __arena *span = domain_span(st, sd);
	u64 scale = 100 + (span->imbalance_pct - 100) / 2;
	u64 half_util = task_of(st, p)->avg.util_avg / 2;
	struct legacy_search search = {.idlest = NO_GROUP,
				       .most_spare_group = NO_GROUP};
	struct legacy_stats local = legacy_stats_init();
	bool local_allowed = false;
	u32 i;

	for (i = opaque(0); i < span->nr_groups && i < NR_CPUS && can_loop;
	     i++) {
		u32 group = nth_group(span, sd, i);
		struct legacy_stats stats = legacy_stats_init();

		if (!group_allows(st, group_of(st, group), task_of(st, p)))
			continue;
		update_legacy_stats(st, group, &stats, p);
		if (group_has(st, group, cpu)) {
			local = stats;
			local_allowed = true;
		} else {
			legacy_consider(span, &search, group, &stats);
		}
	}
	/* A new task has no utilisation to find spare capacity for. */
	if (!(sd_flag & SD_BALANCE_FORK)) {
		if (local.max_spare > half_util &&
		    scale * local.max_spare > 100 * search.most_spare)
			return NO_GROUP;
		if (search.most_spare > half_util)
			return search.most_spare_group;
	}
	if (search.idlest == NO_GROUP || !local_allowed)
		return search.idlest;
	return legacy_prefers_idlest(span, &search, &local) ? search.idlest
							    : NO_GROUP;
}

/*
 * A CPU that runs nothing but SCHED_IDLE tasks is as good as the best idle one.
 */
static inline bool fork_takes_sched_idle_cpu(struct state __arena *st, u32 cpu,
					     const struct task __arena *p)
{
	return st->profile.sched_idle_usable && sched_idle_cpu(st, cpu) &&
	       (st->profile.sched_idle_wakee_usable || !p->idle_policy);
}

/* The choice so far: an idle CPU if there is one, else the least loaded. */
struct idlest_cpu {
	u64 idle_stamp;
	u64 load;
	u32 exit_latency;
	u32 idle;
	u32 least_loaded;
};

static inline void consider_idle_cpu(const struct rq __arena *rq, u32 cpu,
				     struct idlest_cpu *best)
{
	u32 latency = rq->idle_exit_latency;

	if (latency < best->exit_latency) {
		best->exit_latency = latency;
	} else if ((latency != LATENCY_UNKNOWN &&
		    latency != best->exit_latency) ||
		   rq->idle_stamp <= best->idle_stamp) {
		return;
	}
	best->idle_stamp = rq->idle_stamp;
	best->idle = cpu;
}

static inline void consider_loaded_cpu(struct state __arena *st, u32 cpu,
				       struct idlest_cpu *best)
{
	u64 load = st->profile.fork == FORK_LEGACY ? cpu_runnable_load(st, cpu)
						   : cpu_load(st, cpu);

	if (load < best->load) {
		best->load = load;
		best->least_loaded = cpu;
	}
}

verified_once u32 find_idlest_group_cpu(struct state __arena *st in_arena,
					u32 group_nr, u32 p, u32 this_cpu)
{
	struct sched_group __arena *group = group_of(st, group_nr);
	const struct task __arena *task = task_of(st, p);
	struct idlest_cpu best = {.load = U64_MAX,
				  .exit_latency = LATENCY_UNKNOWN,
				  .idle = NO_CPU,
				  .least_loaded = this_cpu};
	u32 word, cpu;

	for_each_word(word, group) {
		u64 bits = *indexed(group->cpus.bits, word) &
			   *indexed(st->root.online.bits, word) &
			   *indexed(task->cpus_allowed.bits, word);

		for_each_bit(cpu, word, bits) {
			if (group->weight == 1)
				return cpu;
			scratch_of(st)->decision.scanned++;
			if (fork_takes_sched_idle_cpu(st, cpu, task))
				return cpu;
			if (available_idle_cpu(st, cpu))
				consider_idle_cpu(cpu_rq(st, cpu), cpu, &best);
			else if (best.idle == NO_CPU)
				consider_loaded_cpu(st, cpu, &best);
		}
	}
	return best.idle != NO_CPU ? best.idle : best.least_loaded;
}

/*
 * The highest level of @cpu's chain below @weight CPUs with @sd_flag set, or
 * NR_LEVELS. The first level without the flag ends the search if @contiguous.
 */
static inline u32 highest_domain(struct state __arena *st, u32 cpu, u32 sd_flag,
				 u32 weight, bool contiguous)
{
	u32 level, found = NR_LEVELS;

	for (level = opaque(0); level < cpu_of(st, cpu)->nr_domains &&
				level < NR_LEVELS && can_loop;
	     level++) {
		const struct sched_span __arena *span =
			domain_span(st, cpu_domain(st, cpu, level));

		if (span->weight >= weight)
			break;
		if (span->flags & sd_flag)
			found = level;
		else if (contiguous)
			break;
	}
	return found;
}

static inline bool span_allows(const struct sched_span __arena *span,
			       const struct task __arena *p)
{
	u32 word;

	for_each_word(word, span) {
		if (*indexed(span->cpus.bits, word) &
		    *indexed(p->cpus_allowed.bits, word))
			return true;
	}
	return false;
}

/*
 * Where one step down from @level of @cpu leads: another CPU, or @cpu itself.
 */
static inline u32 find_idlest_step(struct state __arena *st, u32 p, u32 cpu,
				   u32 level, u32 sd_flag)
{
	const struct sched_domain __arena *sd = cpu_domain(st, cpu, level);
	u32 group;

	if (!(domain_span(st, sd)->flags & sd_flag))
		return cpu;
	if (st->profile.fork == FORK_LEGACY)
		group = find_idlest_group_legacy(st, sd, p, cpu, sd_flag);
	else
		group = find_idlest_group(st, sd, p, cpu);
	if (group == NO_GROUP)
		return cpu;
	return find_idlest_group_cpu(st, group, p, cpu);
}

/*
 * The CPU on which task @p, created (or exec'ing) on @cpu, is to start. @prev
 * is its answer where nothing can be balanced.
 */
verified_once u32 find_idlest_cpu(struct state __arena *st in_arena, u32 p,
				  u32 cpu, u32 prev, u32 sd_flag)
{
	u32 level = highest_domain(st, cpu, sd_flag, U32_MAX, true);
	u32 i;

	scratch_of(st)->decision.slow_path = 1;
	if (level == NR_LEVELS)
		return prev;
	if (!span_allows(domain_span(st, cpu_domain(st, cpu, level)),
			 task_of(st, p)))
		return prev;

	/* Every step goes to a smaller span. */
	for (i = opaque(0); i < 2 * NR_LEVELS && level < NR_LEVELS && can_loop;
	     i++) {
		u32 next = find_idlest_step(st, p, cpu, level, sd_flag);

		if (next == cpu) {
			if (!level)
				break;
			level--;
			continue;
		}
		u32 weight =
			domain_span(st, cpu_domain(st, cpu, level))->weight;

		cpu = next;
		level = highest_domain(st, cpu, sd_flag, weight, false);
	}
	return cpu;
}

#endif
