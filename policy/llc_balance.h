/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * llc_balance.h: how the load balancer brings the threads of a process together
 * on the LLC that they prefer (cache_aware.h).
 *
 * It asks whether a task may go "from src to dst" (can_migrate_llc), relieves
 * groups first that have tasks for the destination's LLC (busiest.h), moves
 * those (migrate_llc_task), and leaves others where they prefer to be (detach.h),
 * also if it would push them out (alb_break_llc).
 *
 * Limits: tasks are counted by what they prefer when a pass looks, not as they
 * are queued. As merged, a push that ends a failed migrate_llc_task takes any
 * task that may go.
 */
#ifndef PLACEWISE_LLC_BALANCE_H
#define PLACEWISE_LLC_BALANCE_H

#include "cache_aware.h"
#include "group.h"
#include "lb_env.h"
#include "runqueue.h"

/* Does the balancer, and not the wakeup, bring threads together? */
static inline bool cache_aware_balance(const struct state __arena *st)
{
	return st->profile.cache_aware > CACHE_AWARE_WAKEUP &&
	       sched_cache_enabled(st) && st->root.nr_processes;
}

/* Whether a task may cross from one LLC to another. */
enum llc_migration {
	LLC_MIGRATION_UNRESTRICTED, /* cache awareness has no opinion */
	LLC_MIGRATION_FORBIDDEN,
	LLC_MIGRATION_WANTED,
};

/* Is there room for threads that come together? As merged, for more without SMT. */
static inline bool fits_llc_capacity(const struct state __arena *st, u64 util,
				     u64 capacity)
{
	u32 pct = st->profile.llc_overaggr_pct;

	if (st->profile.cache_aware == CACHE_AWARE_MERGED &&
	    !st->root.smt_active)
		pct = pct * 3 / 2;
	return util * 100 < capacity * pct;
}

static inline bool llc_util_greater(const struct state __arena *st, u64 a,
				    u64 b)
{
	return a * 100 > b * (100 + st->profile.llc_imb_pct);
}

/* May what uses @util go from the LLC of @src to that of @dst, its preferred one or not? */
static inline enum llc_migration can_migrate_llc(struct state __arena *st,
						 u32 src, u32 dst, u64 util,
						 bool to_preferred)
{
	const struct llc __arena *from = cpu_llc(st, src);
	const struct llc __arena *to = cpu_llc(st, dst);
	u64 left = sub_positive(from->util, util);
	u64 then = to->util + util;
	bool from_fits = fits_llc_capacity(st, left, from->capacity);
	bool to_fits = fits_llc_capacity(st, then, to->capacity);

	if (cpus_share_cache(st, src, dst) || !from->capacity ||
	    !to->capacity || (!from_fits && !to_fits))
		return LLC_MIGRATION_UNRESTRICTED;
	if (to_preferred)
		return !to_fits && llc_util_greater(st, then, left)
			       ? LLC_MIGRATION_FORBIDDEN
			       : LLC_MIGRATION_WANTED;
	return from_fits || !llc_util_greater(st, left, then)
		       ? LLC_MIGRATION_FORBIDDEN
		       : LLC_MIGRATION_WANTED;
}

/* Would @p leave the LLC that it prefers, or fill it too much? */
static inline bool migrate_degrades_llc(struct state __arena *st,
					const struct lb_env *env,
					const struct task __arena *p)
{
	bool to_preferred = prefers_llc_of(st, p, env->dst_cpu);
	bool merged = st->profile.cache_aware == CACHE_AWARE_MERGED;

	if (!cache_aware_balance(st) ||
	    cpus_share_cache(st, env->src_cpu, env->dst_cpu))
		return false;
	if (merged && env->migration_type == MIGRATE_LLC_TASK && !to_preferred)
		return true;
	if (merged && env->sd->nr_balance_failed > env->span->cache_nice_tries)
		return false;
	if (!to_preferred && !prefers_llc_of(st, p, env->src_cpu))
		return false;
	return can_migrate_llc(st, env->src_cpu, env->dst_cpu, p->avg.util_avg,
			       to_preferred) == LLC_MIGRATION_FORBIDDEN;
}

/* Of the tasks queued on @cpu, how many prefer the LLC of @preferred? */
verified_once u32 nr_pref_llc(struct state __arena *st in_arena, u32 cpu,
			      u32 preferred)
{
	u32 task = cpu_rq(st, cpu)->mru_head;
	u32 i, nr = 0;

	for (i = opaque(0); task != NO_TASK && i < NR_TASKS && can_loop; i++) {
		const struct task __arena *p = task_of(st, task);

		nr += prefers_llc_of(st, p, preferred);
		task = p->mru_next;
	}
	return nr;
}

/*
 * Do all tasks of the source prefer to stay? Its only one is not pushed out
 * then, and its current one only where it may go.
 */
static inline bool alb_break_llc(struct state __arena *st,
				 const struct lb_env *env)
{
	const struct rq __arena *rq = cpu_rq(st, env->src_cpu);
	u64 util = 0;

	if (!cache_aware_balance(st) ||
	    cpus_share_cache(st, env->src_cpu, env->dst_cpu) ||
	    nr_pref_llc(st, env->src_cpu, env->src_cpu) !=
		    rq->cfs.h_nr_queued - rq->cfs.h_nr_delayed)
		return false;
	if (rq->nr_running <= 1)
		return true;
	if (st->profile.cache_aware != CACHE_AWARE_BALANCE)
		util = task_of(st, rq->curr)->avg.util_avg;
	return can_migrate_llc(st, env->src_cpu, env->dst_cpu, util, false) ==
	       LLC_MIGRATION_FORBIDDEN;
}

/* Is the level of @env the first one above the LLC? */
static inline bool first_above_llc(struct state __arena *st,
				   const struct lb_env *env)
{
	if (env->span->flags & SD_SHARE_LLC)
		return false;
	return !env->level ||
	       domain_span(st, env->sd - 1)->flags & SD_SHARE_LLC;
}

/* A pass has summed up an LLC: that is what its utilisation counts as. */
static inline void record_sg_llc_stats(struct state __arena *st,
				       const struct lb_env *env,
				       const struct sg_lb_stats __arena *sgs)
{
	struct llc __arena *llc;

	if (!cache_aware_balance(st) || env->idle == CPU_NEWLY_IDLE ||
	    !first_above_llc(st, env))
		return;
	llc = cpu_llc(st, first_cpu(st, sgs->group));
	llc->util = sgs->group_util;
	llc->capacity = sgs->group_capacity;
}

/* Are tasks of @sgs to come to the destination's LLC, which they prefer? */
static inline bool llc_balance(struct state __arena *st,
			       const struct lb_env *env,
			       const struct sg_lb_stats __arena *sgs)
{
	u32 src = first_cpu(st, sgs->group);

	if (!sgs->nr_pref_llc)
		return false;
	if (st->profile.cache_aware != CACHE_AWARE_MERGED) {
		if (!first_above_llc(st, env))
			return false;
	} else if (sgs->asym_packing ||
		   env->sd->nr_balance_failed > env->span->cache_nice_tries) {
		return false;
	}
	return can_migrate_llc(st, src, env->dst_cpu, 0, true) ==
	       LLC_MIGRATION_WANTED;
}

/* What a task is for a balancer between two LLCs, by what is to stay longest. */
enum llc_preference {
	PREFERS_DST,
	PREFERS_NONE,
	PREFERS_OTHER,
	PREFERS_SRC,
};

static inline enum llc_preference llc_preference(struct state __arena *st,
						 const struct lb_env *env,
						 const struct task __arena *p)
{
	if (!p->preferred_llc)
		return PREFERS_NONE;
	if (prefers_llc_of(st, p, env->dst_cpu))
		return PREFERS_DST;
	if (prefers_llc_of(st, p, env->src_cpu))
		return PREFERS_SRC;
	return PREFERS_OTHER;
}

/* The posted series: is a source's list sorted by what its tasks prefer? */
static inline bool orders_tasks_by_llc(struct state __arena *st,
				       const struct lb_env *env)
{
	return cache_aware_balance(st) &&
	       st->profile.cache_aware != CACHE_AWARE_MERGED &&
	       !cpus_share_cache(st, env->src_cpu, env->dst_cpu);
}

/* Move the tasks of a kind to the head of the source's list, in their order. */
static subprogram void raise_tasks(struct state __arena *st,
				   const struct lb_env *env,
				   enum llc_preference kind)
{
	struct rq __arena *rq = cpu_rq(st, env->src_cpu);
	u32 task = rq->mru_tail;
	u32 nr = rq->cfs.h_nr_queued;
	u32 i;

	for (i = opaque(0); i < nr && task != NO_TASK && can_loop; i++) {
		struct task __arena *p = task_of(st, task);
		u32 next = p->mru_prev;

		if (llc_preference(st, env, p) == kind) {
			mru_remove(st, rq, p);
			mru_add_head(st, rq, task, p);
		}
		task = next;
	}
}

/* Tasks are taken from the tail: those that want to go stand there. */
static inline void order_tasks_by_llc(struct state __arena *st,
				      const struct lb_env *env)
{
	if (!orders_tasks_by_llc(st, env))
		return;
	raise_tasks(st, env, PREFERS_NONE);
	raise_tasks(st, env, PREFERS_OTHER);
	raise_tasks(st, env, PREFERS_SRC);
}

#endif
