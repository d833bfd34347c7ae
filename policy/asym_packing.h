/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * asym_packing.h: whether a CPU's priority lets it take work from others.
 *
 * Under SD_ASYM_PACKING (Intel ITMT, POWER) idle CPUs pull from CPUs of lower
 * priority, so that work gathers on the CPUs that are best for it. A thread
 * beside a busy sibling is worth less than its priority says, and kernels differ
 * in how they take account of that:
 *
 *   ASYM_PACKING_PRIORITY        not at all (before v5.16)
 *   ASYM_PACKING_BUSY_SIBLINGS   by the busy siblings of both cores
 *   ASYM_PACKING_IDLE_CORE       priorities hold for idle cores only (v6.5 on)
 *
 * Limits: a priority never changes.
 */
#ifndef PLACEWISE_ASYM_PACKING_H
#define PLACEWISE_ASYM_PACKING_H

#include "idle_scan.h"
#include "lb_env.h"

/* Does the priority of @cpu mean anything at this level? */
static inline bool sched_use_asym_prio(struct state __arena *st,
				       const struct sched_span __arena *span,
				       u32 cpu)
{
	if (!(span->flags & SD_ASYM_PACKING))
		return false;
	if (st->profile.asym_packing != ASYM_PACKING_IDLE_CORE ||
	    !st->root.smt_active)
		return true;
	return span->flags & SD_SHARE_CPUCAPACITY || is_core_idle(st, cpu);
}

/* Is @a, as far as priorities count, a better place than @b? */
static inline bool sched_asym(struct state __arena *st,
			      const struct sched_span __arena *span, u32 a,
			      u32 b)
{
	return sched_use_asym_prio(st, span, a) && sched_asym_prefer(st, a, b);
}

static inline u32 busy_cpus(const struct sg_lb_stats __arena *sgs)
{
	return sgs->group_weight - sgs->idle_cpus;
}

/*
 * One of the two groups at least is a core. A lone thread helps any core with
 * two busy ones; between cores one busy thread more is worth its priority; a core
 * takes over from a lone thread only if it is all idle.
 */
static inline bool
asym_smt_can_pull_tasks(struct state __arena *st, u32 dst_cpu,
			const struct sg_lb_stats __arena *local,
			const struct sg_lb_stats __arena *sgs)
{
	const struct sched_group __arena *group = group_of(st, sgs->group);
	bool preferred = sched_asym_prefer(st, dst_cpu, group->asym_prefer_cpu);

	if (!(group_of(st, local->group)->flags & SD_SHARE_CPUCAPACITY))
		return busy_cpus(sgs) >= 2 || preferred;
	if (group->flags & SD_SHARE_CPUCAPACITY)
		return busy_cpus(sgs) == busy_cpus(local) + 1 && preferred;
	return !local->sum_nr_running && preferred;
}

/* Is the idle destination preferred to the group @sgs? */
static inline bool sched_group_asym(struct state __arena *st,
				    const struct lb_env *env,
				    const struct sg_lb_stats __arena *local,
				    const struct sg_lb_stats __arena *sgs)
{
	const struct sched_group __arena *group = group_of(st, sgs->group);
	u32 is_core = group->flags & SD_SHARE_CPUCAPACITY;

	if (!(env->span->flags & SD_ASYM_PACKING))
		return false;
	switch (st->profile.asym_packing) {
	case ASYM_PACKING_BUSY_SIBLINGS:
		if (local->group != U32_MAX &&
		    (is_core ||
		     group_of(st, local->group)->flags & SD_SHARE_CPUCAPACITY))
			return asym_smt_can_pull_tasks(st, env->dst_cpu, local,
						       sgs);
		break;
	case ASYM_PACKING_IDLE_CORE:
		if (is_core && busy_cpus(sgs) != 1)
			return false;
		break;
	default:
		break;
	}
	return sched_asym(st, env->span, env->dst_cpu, group->asym_prefer_cpu);
}

/* Does the only task of @cpu stay where it is better off than here? */
static inline bool asym_lone_task_stays(struct state __arena *st,
					const struct lb_env *env, u32 cpu)
{
	return st->profile.asym_packing != ASYM_PACKING_PRIORITY &&
	       sched_asym(st, env->span, cpu, env->dst_cpu);
}

/*
 * Is the source's running task worth a push? Where priorities hold for idle cores
 * only, also that of a core which shares its threads, to a CPU of any priority.
 */
static inline bool asym_active_balance(struct state __arena *st,
				       const struct lb_env *env)
{
	if (env->idle == CPU_NOT_IDLE ||
	    !sched_use_asym_prio(st, env->span, env->dst_cpu))
		return false;
	return sched_asym_prefer(st, env->dst_cpu, env->src_cpu) ||
	       !sched_use_asym_prio(st, env->span, env->src_cpu);
}

#endif
