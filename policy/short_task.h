/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * short_task.h: how long a task runs before it sleeps, and whether that is
 * short.
 *
 * After the "short task" series of September 2022 to June 2024, no version of
 * which was merged; their definitions differ in the metric and in the
 * threshold, and the profile names one of each. What a wakeup does with a short
 * task stands where it does it: affine.h and idle_sibling.h.
 *
 * Run times are those of the last accounting, not brought up to date: a task
 * that has only just started still shows 0. The idle task always shows 0.
 */
#ifndef PLACEWISE_SHORT_TASK_H
#define PLACEWISE_SHORT_TASK_H

#include "average.h"
#include "state.h"

/* For the engine, each time @p goes to sleep of its own will. */
static inline void record_run_length(struct state __arena *st,
				     struct task __arena *p)
{
	u64 run = p->sum_exec_runtime - p->prev_sleep_runtime;
	u64 average = p->run_length_avg;
	u64 deviation = max(run, average) - min(run, average);

	p->prev_sleep_runtime = p->sum_exec_runtime;
	switch (st->profile.run_length) {
	case RUN_LENGTH_AVERAGE_OUTLIERS:
		if (deviation >= st->profile.min_gran.ns)
			update_avg(&p->run_length_avg, run);
		break;
	case RUN_LENGTH_AVERAGE:
		update_avg(&p->run_length_avg, run);
		break;
	default:
		break;
	}
}

/* @cpu names the LLC, for the threshold that grows with its size. */
static inline bool run_length_is_short(struct state __arena *st, u64 average,
				       u32 cpu)
{
	const struct profile __arena *profile = &st->profile;
	u64 llc_size = cpu_llc(st, cpu)->size;

	switch (profile->short_threshold) {
	case SHORT_MIN_GRAN:
		return average <= profile->min_gran.ns;
	case SHORT_MIN_GRAN_EIGHTH:
		return average && average * 8 <= profile->min_gran.ns;
	case SHORT_BELOW_MIN_GRAN_EIGHTH:
		return average && average * 8 < profile->min_gran.ns;
	case SHORT_MIGRATION_COST:
		return average && average < profile->migration_cost;
	case SHORT_LLC_SIZE:
		return average << 16 <
		       profile->migration_cost * llc_size * llc_size;
	default:
		return false;
	}
}

verified_once bool is_short_task(struct state __arena *st in_arena,
				 const struct task __arena *p in_arena, u32 cpu)
{
	const struct profile __arena *profile = &st->profile;

	if (profile->short_needs_no_flips && p->wakee_flips)
		return false;
	switch (profile->run_length) {
	case RUN_LENGTH_TOTAL:
		return p->sum_exec_runtime <= p->nvcsw * profile->min_gran.ns;
	case RUN_LENGTH_AVERAGE_OUTLIERS:
	case RUN_LENGTH_AVERAGE:
		return run_length_is_short(st, p->run_length_avg, cpu);
	default:
		return false;
	}
}

#endif
