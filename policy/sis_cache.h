/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * sis_cache.h: a CPU that a task leaves idle for a brief sleep is kept for it.
 *
 * After the SIS_CACHE series of September to November 2023, which was not merged.
 * What counts as brief is an average of the task's sleeps: of all (RFC), or of
 * those below the migration cost, which a longer one halves. Other wakees pass by
 * such a CPU while they search their LLC (idle_scan.h); the sleeper itself comes
 * back to it as to any idle prev CPU.
 *
 * Limits: an average of more than 4 seconds counts as 4 seconds.
 */
#ifndef PLACEWISE_SIS_CACHE_H
#define PLACEWISE_SIS_CACHE_H

#include "state.h"

/* @p is woken, having slept since it was last accounted. */
static inline void record_sleep(const struct state __arena *st,
				struct task __arena *p, u64 now)
{
	s64 slept = min(now - p->exec_start, (u64)U32_MAX);

	if (!st->profile.sis_cache || now <= p->exec_start || !p->exec_start)
		return;
	if (st->profile.sis_cache == SIS_CACHE_RFC ||
	    (u64)slept < st->profile.migration_cost)
		p->sleep_avg += (slept - (s64)p->sleep_avg) / 8;
	else
		p->sleep_avg /= 2;
}

/* @p has gone to sleep; if @rq is idle without it, for how long is it kept? */
static inline void reserve_cpu(const struct state __arena *st,
			       struct rq __arena *rq,
			       const struct task __arena *p, u64 now)
{
	u64 until = now + p->sleep_avg;

	if (!st->profile.sis_cache || rq->nr_running || !p->sleep_avg)
		return;
	if (st->profile.sis_cache != SIS_CACHE_RFC)
		rq->reserved_until = max(rq->reserved_until, until);
	else if (p->sleep_avg < st->profile.migration_cost)
		rq->reserved_until = until;
}

static inline bool cpu_reserved(struct state __arena *st, u32 cpu, u64 now)
{
	return now < cpu_rq(st, cpu)->reserved_until;
}

#endif
