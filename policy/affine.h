/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * affine.h: wake_affine(), whether a wakee is searched a CPU near its waker or
 * near the CPU it last ran on.
 *
 * First the idle test, whose clauses and their order are what most patches
 * changed, then the comparison of loads, read as last stored. v3.10 had one
 * comparison, of what is queued. Covers v3.10 to v7.3 and the short task
 * variants. Limits: in v3.10 a task of a task group counts for its own weight,
 * not for its share of the group's; v4.15 and v5.3 compared the load of what is
 * queued, which here contains what sleepers left behind, as in later kernels.
 */
#ifndef PLACEWISE_AFFINE_H
#define PLACEWISE_AFFINE_H

#include "load.h"
#include "relation.h"
#include "short_task.h"

/* Runnable tasks of the waking CPU, the waker included. */
static inline u32 affine_nr_running(const struct wakeup *wakeup)
{
	const struct rq __arena *rq = cpu_rq(wakeup->st, wakeup->this_cpu);

	if (wakeup->st->profile.affine_counts_delayed)
		return rq->nr_running;
	return rq->nr_running - rq->cfs.h_nr_delayed;
}

static inline bool waker_is_short(const struct wakeup *wakeup)
{
	return is_short_task(wakeup->st, wakeup->waker, wakeup->this_cpu);
}

/* The clause that stands after all others. */
static inline bool affine_short_last(const struct wakeup *wakeup,
				     u32 nr_running)
{
	u32 rule = wakeup->st->profile.affine_short;

	if (rule != AFFINE_SHORT_LAST &&
	    !(rule == AFFINE_SHORT_SYNC_LAST && wakeup->sync))
		return false;
	return nr_running == 1 && waker_is_short(wakeup);
}

/* The clause that joins the one for sync wakeups. */
static inline bool affine_short_early(const struct wakeup *wakeup,
				      u32 nr_running)
{
	switch (wakeup->st->profile.affine_short) {
	case AFFINE_SHORT_V1:
		return waker_is_short(wakeup);
	case AFFINE_SHORT_HONGLEI:
		return nr_running == 1 && waker_is_short(wakeup);
	default:
		return false;
	}
}

/* The first clause that holds, or AFFINE_UNDECIDED. */
static inline enum affine_reason wake_affine_idle(const struct wakeup *wakeup)
{
	struct state __arena *st = wakeup->st;
	const struct profile __arena *profile = &st->profile;
	u32 nr_running = affine_nr_running(wakeup);
	bool prev_idle = available_idle_cpu(st, wakeup->prev);

	/* The waking CPU is idle in interrupts only. */
	if (available_idle_cpu(st, wakeup->this_cpu) &&
	    cpus_share_cache(st, wakeup->this_cpu, wakeup->prev))
		return profile->affine_prev_idle && prev_idle
			       ? AFFINE_PREV_IDLE_SHARED
			       : AFFINE_WAKING_CPU_IDLE;
	if (wakeup->sync && nr_running == 1)
		return AFFINE_SYNC;
	if (affine_short_early(wakeup, nr_running))
		return AFFINE_SHORT_WAKER;
	if (profile->affine_prev_idle_last && prev_idle)
		return AFFINE_PREV_IDLE;
	if (affine_short_last(wakeup, nr_running))
		return AFFINE_SHORT_WAKER;
	return AFFINE_UNDECIDED;
}

/*
 * Would the waking CPU carry less than the previous one? Previous gets half of
 * the domain's imbalance_pct for a bonus. A sync waker is about to sleep, so it
 * does not count.
 */
static inline enum affine_reason
wake_affine_weight(const struct wakeup *wakeup,
		   const struct sched_span __arena *span)
{
	struct state __arena *st = wakeup->st;
	s64 this_load = (s64)cpu_load(st, wakeup->this_cpu);
	s64 prev_load = (s64)cpu_load(st, wakeup->prev);
	s64 task_load = (s64)task_h_load(st, wakeup->wakee);
	bool wa_bias = st->profile.wa_bias;

	if (wakeup->sync) {
		s64 current_load = (s64)task_h_load(st, wakeup->waker);

		if (current_load > this_load)
			return AFFINE_WEIGHT;
		this_load -= current_load;
	}

	this_load += task_load;
	this_load *= 100;
	this_load *= (s64)capacity_of(st, wakeup->prev);

	prev_load -= task_load;
	prev_load *= 100 + (wa_bias ? (span->imbalance_pct - 100) / 2 : 0);
	prev_load *= (s64)capacity_of(st, wakeup->this_cpu);
	if (wakeup->sync)
		prev_load++;

	scratch_of(st)->decision.waker_load = this_load;
	scratch_of(st)->decision.prev_load = prev_load;
	return this_load < prev_load ? AFFINE_WEIGHT : AFFINE_UNDECIDED;
}

/* What an average task of @cpu's queue weighs. */
static inline s64 cpu_load_per_task(struct state __arena *st, u32 cpu)
{
	const struct rq __arena *rq = cpu_rq(st, cpu);

	return rq->nr_running ? rq->cfs.load_weight / rq->nr_running : 0;
}

/*
 * v3.10: would the waking CPU have less queued than the previous one? A sync
 * waker that is alone there leaves nothing, so its wakee comes, whatever the
 * previous CPU does.
 */
static inline enum affine_reason
wake_affine_queues(const struct wakeup *wakeup,
		   const struct sched_span __arena *span)
{
	struct state __arena *st = wakeup->st;
	s64 this_load = (s64)cpu_rq(st, wakeup->this_cpu)->cfs.load_weight;
	s64 prev_load = (s64)cpu_rq(st, wakeup->prev)->cfs.load_weight;
	s64 this_side, prev_side;

	if (wakeup->sync)
		this_load -= (s64)wakeup->waker->weight;

	this_side = 100 * (this_load + (s64)wakeup->wakee->weight);
	this_side *= (s64)capacity_of(st, wakeup->prev);
	prev_side = (100 + (span->imbalance_pct - 100) / 2) * prev_load;
	prev_side *= (s64)capacity_of(st, wakeup->this_cpu);

	scratch_of(st)->decision.waker_load = this_side;
	scratch_of(st)->decision.prev_load = prev_side;
	if (this_load <= 0 || this_side <= prev_side)
		return AFFINE_WEIGHT;
	if (this_load <= prev_load &&
	    this_load + prev_load <= cpu_load_per_task(st, wakeup->this_cpu))
		return AFFINE_WEIGHT;
	return AFFINE_UNDECIDED;
}

static inline bool weight_test_skipped(const struct wakeup *wakeup)
{
	return wakeup->st->profile.affine_skip_weight_if_short &&
	       is_short_task(wakeup->st, wakeup->wakee, wakeup->this_cpu);
}

static inline bool affine_chose_prev(enum affine_reason reason)
{
	return reason == AFFINE_PREV_IDLE_SHARED ||
	       reason == AFFINE_PREV_IDLE || reason == AFFINE_UNDECIDED;
}

static inline enum affine_reason
wake_affine_reason(const struct wakeup *wakeup,
		   const struct sched_span __arena *span)
{
	const struct profile __arena *profile = &wakeup->st->profile;
	enum affine_reason reason = AFFINE_UNDECIDED;

	if (profile->affine == AFFINE_QUEUES)
		return wake_affine_queues(wakeup, span);
	if (profile->wa_idle)
		reason = wake_affine_idle(wakeup);
	if (reason == AFFINE_UNDECIDED && profile->wa_weight &&
	    !weight_test_skipped(wakeup))
		return wake_affine_weight(wakeup, span);
	return reason;
}

/* @level: the lowest one of the waking CPU that contains the previous one. */
verified_once u32 wake_affine(const struct wakeup *wakeup on_stack, u32 level)
{
	struct state __arena *st = wakeup->st;
	struct sched_domain __arena *sd =
		cpu_domain(st, wakeup->this_cpu, level);
	enum affine_reason reason =
		wake_affine_reason(wakeup, domain_span(st, sd));

	scratch_of(st)->decision.affine = reason;
	scratch_of(st)->decision.affine_level = level;
	if (reason == AFFINE_UNDECIDED)
		return wakeup->prev;
	if (!affine_chose_prev(reason) || st->profile.affine_move_counts_prev)
		sd->stats.ttwu_move_affine++;
	return affine_chose_prev(reason) ? wakeup->prev : wakeup->this_cpu;
}

#endif
