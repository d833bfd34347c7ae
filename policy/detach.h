/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * detach.h: which tasks of the busiest queue the load balancer takes along.
 *
 * The queue's list is walked from the task that neither was enqueued nor ran
 * for the longest time. What must stay (affinity, running, hints, LLC, cache heat)
 * is moved to the head, so that a retry starts with other tasks; what goes is
 * written down in state.balance and stays at the tail until the engine moves
 * it.
 *
 * Kernels: all, whatever balancer found the queue; the wakeup hints hold tasks
 * in their LLC as the userspace hinting series of 2022 has it.
 *
 * Limits: no next/last buddies and no NUMA-balancing verdict in the heat test.
 * One attempt takes SCHED_NR_MIGRATE tasks at most, over all the CPUs it finds
 * for pinned ones.
 */
#ifndef PLACEWISE_DETACH_H
#define PLACEWISE_DETACH_H

#include "hint.h"
#include "lb_env.h"
#include "llc_balance.h"
#include "runqueue.h"

static inline bool task_hot(struct state __arena *st, const struct lb_env *env,
			    const struct task __arena *p)
{
	s64 cost = (s64)st->profile.migration_cost;

	if (p->idle_policy)
		return false;
	if (env->span->flags & SD_SHARE_CPUCAPACITY)
		return false;
	if (cost == -1)
		return true;
	if (cost && st->profile.cache_aware == CACHE_AWARE_WAKEUP &&
	    p->process != NO_PROCESS)
		return occupies_more(st, p->process, env->src_cpu,
				     env->dst_cpu);
	return cost && (s64)(env->now - p->exec_start) < cost;
}

/*
 * Would @p only wait on the destination too? While balancing has not failed
 * yet, tasks ahead of their share stay, if they would find company.
 */
static inline bool ineligible_stays(struct state __arena *st,
				    const struct lb_env *env,
				    const struct task __arena *p)
{
	return !env->sd->nr_balance_failed && !p->eligible &&
	       cpu_rq(st, env->dst_cpu)->cfs.h_nr_queued;
}

/* A CPU that balances for the destination's group, and that @p may run on. */
static inline u32 other_dst_cpu(struct state __arena *st,
				const struct lb_env *env,
				const struct task __arena *p)
{
	const struct sched_group __arena *group =
		group_of(st, env->sd->local_group);
	u32 word;

	for_each_word(word, group) {
		u64 bits = *indexed(group->balance_mask.bits, word) &
			   lb_cpus(st, env, word) &
			   *indexed(p->cpus_allowed.bits, word);

		if (bits)
			return word * 64 + first_bit(bits);
	}
	return NO_CPU;
}

/*
 * @p may not run on the destination: remember that, and look for a neighbour.
 */
static inline void note_pinned(struct state __arena *st, struct lb_env *env,
			       const struct task __arena *p)
{
	env->some_pinned = true;
	if (env->idle == CPU_NEWLY_IDLE || env->active ||
	    env->new_dst_cpu != NO_CPU)
		return;
	env->new_dst_cpu = other_dst_cpu(st, env, p);
}

/* A throttled task stays, and none goes where it would be throttled. */
static inline bool throttled_lb_pair(struct state __arena *st,
				     const struct lb_env *env,
				     const struct task __arena *p)
{
	return throttled_hierarchy(st, p->task_group, env->src_cpu) ||
	       throttled_hierarchy(st, p->task_group, env->dst_cpu);
}

verified_once bool can_migrate_task(struct state __arena *st in_arena,
				    struct lb_env *env on_stack, u32 task)
{
	const struct task __arena *p = task_of(st, task);

	if (st->profile.detach_delayed_load_only) {
		came_to(env, LB_INELIGIBLE);
		if (p->delayed && env->migration_type != MIGRATE_LOAD)
			return false;
		if (ineligible_stays(st, env, p))
			return false;
	}
	came_to(env, LB_ALL_PINNED);
	if (throttled_lb_pair(st, env, p) || p->per_cpu_kthread)
		return false;
	if (!task_allowed(p, env->dst_cpu)) {
		note_pinned(st, env, p);
		return false;
	}
	/*
	 * Before all_pinned is cleared: a queue of hinted tasks looks pinned.
	 */
	came_to(env, LB_HINTED);
	if (!env->ignore_hint && p->hint & HINT_WAKE)
		return false;
	env->all_pinned = false;
	if (env->active)
		return true;
	came_to(env, LB_RUNNING);
	if (cpu_rq(st, env->src_cpu)->curr == task)
		return false;
	came_to(env, LB_LLC);
	if (migrate_degrades_llc(st, env, p)) {
		env->llc_pinned |= env->migration_type != MIGRATE_LLC_TASK;
		return false;
	}
	came_to(env, LB_HOT);
	return !task_hot(st, env, p) ||
	       env->sd->nr_balance_failed > env->span->cache_nice_tries;
}

/* How far a failed level relaxes what counts as too much. */
static inline u64 shr_bound(u64 value, u32 shift)
{
	return value >> min(shift, 63u);
}

/* A task with up to twice the load, or with what failures allow, may go. */
static inline bool consume_load(struct state __arena *st, struct lb_env *env,
				const struct task __arena *p)
{
	bool halved = st->profile.detach_load_halved;
	u32 shift = halved ? 1 : env->sd->nr_balance_failed;
	u64 amount = task_h_load(st, p);

	if (!halved)
		amount = max(amount, 1ULL);
	if (shr_bound(amount, shift) > (u64)env->imbalance)
		return false;
	env->imbalance -= amount;
	return true;
}

static inline bool consume_misfit(struct state __arena *st, struct lb_env *env,
				  const struct task __arena *p)
{
	switch (st->profile.balance) {
	case BALANCE_LEGACY:
		return consume_load(st, env, p);
	case BALANCE_REWORK_V2:
		if (task_h_load(st, p) < (u64)env->imbalance)
			return false;
		break;
	default:
		if (fits_capacity(task_util_est(p),
				  capacity_of(st, env->src_cpu)))
			return false;
		break;
	}
	env->imbalance = 0;
	return true;
}

/*
 * Take @p's part off the imbalance, unless that is more than what is to move.
 */
static inline bool consume_imbalance(struct state __arena *st,
				     struct lb_env *env,
				     const struct task __arena *p)
{
	u32 failed = env->sd->nr_balance_failed;
	u64 amount;

	switch (env->migration_type) {
	case MIGRATE_LOAD:
		return consume_load(st, env, p);
	case MIGRATE_UTIL:
		amount = task_util_est(p);
		if (!st->profile.detach_util_shifted)
			failed = 0;
		if (shr_bound(amount, failed) > (u64)env->imbalance)
			return false;
		env->imbalance -= amount;
		return true;
	case MIGRATE_TASK:
	case MIGRATE_LLC_TASK:
		env->imbalance--;
		return true;
	default:
		return consume_misfit(st, env, p);
	}
}

static inline bool may_leave(struct state __arena *st, struct lb_env *env,
			     u32 task)
{
	if (!can_migrate_task(st, env, task))
		return false;
	came_to(env, LB_TOO_LARGE);
	return consume_imbalance(st, env, task_of(st, task));
}

static inline void detach_task(struct state __arena *st,
			       const struct lb_env *env, u32 task)
{
	struct balance_result __arena *result = &scratch_of(st)->balance;
	struct domain_stats __arena *stats = &env->sd->stats;
	u32 slot = result->nr & (SCHED_NR_MIGRATE - 1);

	*indexed(result->task, slot) = task;
	*indexed(result->dst, slot) = env->dst_cpu;
	result->nr++;
	stats->lb_gained[env->idle & 3]++;
	if (task_hot(st, env, task_of(st, task)))
		stats->lb_hot_gained[env->idle & 3]++;
}

/* Tasks still on the source once those written down have left. */
static inline u32 src_nr_running(struct state __arena *st,
				 const struct lb_env *env)
{
	return cpu_rq(st, env->src_cpu)->nr_running -
	       scratch_of(st)->balance.nr;
}

/* The last task of the source's list that is not about to leave. */
static inline u32 detach_first(struct state __arena *st,
			       const struct lb_env *env)
{
	u32 task = cpu_rq(st, env->src_cpu)->mru_tail;
	u32 i;

	for (i = opaque(0);
	     i < scratch_of(st)->balance.nr && i < SCHED_NR_MIGRATE && can_loop;
	     i++)
		task = task_of(st, task)->mru_prev;
	return task;
}

/* Should another task be looked at? An idle CPU never takes the last one. */
static inline bool detach_goes_on(struct state __arena *st,
				  const struct lb_env *env)
{
	if (scratch_of(st)->balance.nr >= SCHED_NR_MIGRATE ||
	    env->imbalance <= 0 || env->loop >= env->loop_max)
		return false;
	return env->idle == CPU_NOT_IDLE || src_nr_running(st, env) > 1;
}

static subprogram void detach_tasks(struct state __arena *st,
				    struct lb_env *env)
{
	struct rq __arena *rq = cpu_rq(st, env->src_cpu);
	u32 i, task;

	/* A source with one task left says nothing about affinity. */
	if (src_nr_running(st, env) <= 1) {
		env->all_pinned = false;
		return;
	}
	if (!scratch_of(st)->balance.nr)
		order_tasks_by_llc(st, env);
	task = detach_first(st, env);
	for (i = opaque(0); i < SCHED_NR_MIGRATE && task != NO_TASK && can_loop;
	     i++) {
		u32 next = task_of(st, task)->mru_prev;

		if (!detach_goes_on(st, env))
			break;
		env->loop++;
		if (may_leave(st, env, task)) {
			detach_task(st, env, task);
			if (env->idle == CPU_NEWLY_IDLE &&
			    st->profile.preemption)
				break;
			/* All that is left prefers to stay. */
			if (orders_tasks_by_llc(st, env) &&
			    llc_preference(st, env, task_of(st, task)) ==
				    PREFERS_SRC)
				break;
		} else {
			mru_remove(st, rq, task_of(st, task));
			mru_add_head(st, rq, task, task_of(st, task));
		}
		task = next;
	}
}

/* Does the source's LLC have no more ordinary tasks than CPUs? */
verified_once bool llc_has_room(struct state __arena *st in_arena, u32 cpu)
{
	const struct llc __arena *llc = cpu_llc(st, cpu);
	u32 word, member, nr = 0;

	for_each_word(word, llc) {
		u64 bits = *indexed(llc->cpus.bits, word) &
			   *indexed(st->root.online.bits, word);

		for_each_bit(member, word, bits) {
			const struct rq __arena *rq = cpu_rq(st, member);

			nr += rq->nr_running - rq->cfs.h_nr_idle;
		}
	}
	return nr <= llc->size;
}

/*
 * The task that the stopper of @src pushes to @dst, or NO_TASK. The stopper has
 * preempted the source's current task, so none runs; it is itself not counted
 * in nr_running.
 */
verified_once u32 active_balance_task(struct state __arena *st in_arena,
				      u32 src, u32 dst, u64 now)
{
	struct lb_env env = {.now = now,
			     .idle = CPU_IDLE,
			     .migration_type = MIGRATE_LOAD,
			     .dst_cpu = dst,
			     .src_cpu = src,
			     .active = true};
	u32 task = cpu_rq(st, src)->mru_tail;
	u32 i;

	cpu_rq(st, src)->active_balance = 0;
	for (i = opaque(0); i < NR_LEVELS && can_loop; i++) {
		if (i >= cpu_of(st, dst)->nr_domains)
			return NO_TASK;
		env.sd = cpu_domain(st, dst, i);
		env.span = domain_span(st, env.sd);
		if (cpumask_test(&env.span->cpus, src))
			break;
	}
	if (i == NR_LEVELS || !cpu_rq(st, src)->nr_running)
		return NO_TASK;

	env.ignore_hint = env.span->flags & SD_SHARE_LLC;
	env.sd->stats.alb_count++;
	for (i = opaque(0); i < NR_TASKS && task != NO_TASK && can_loop; i++) {
		if (can_migrate_task(st, &env, task)) {
			env.sd->stats.alb_pushed++;
			env.sd->stats.lb_gained[CPU_IDLE]++;
			env.sd->nr_balance_failed = 0;
			return task;
		}
		task = task_of(st, task)->mru_prev;
	}
	env.sd->stats.alb_failed++;
	return NO_TASK;
}

#endif
