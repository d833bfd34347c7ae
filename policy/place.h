/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * place.h: where a task runs next: what an engine calls at a wakeup, a fork and
 * an exec.
 *
 * select_task_rq() answers with a CPU and leaves in its decision how it came to
 * it; ttwu_queue_wakelist() says how the wakee travels there. Covers v3.10 to
 * v7.3. Limits: no energy model, so that on machines with one (most Arm phones)
 * wakeups are placed as they are there while a CPU is overutilised; and no domain
 * sets SD_BALANCE_WAKE, which v5.3 did on machines of unequal CPUs, so wakeups
 * never take the slow path.
 */
#ifndef PLACEWISE_PLACE_H
#define PLACEWISE_PLACE_H

#include "affine.h"
#include "cache_aware.h"
#include "fork.h"
#include "hint.h"
#include "idle_sibling.h"
#include "relation.h"
#include "rt.h"

/*
 * The kernel's values; WF_INTERRUPT is ours, and means that in_task() is false.
 */
enum wake_flags {
	WF_EXEC = 0x02,
	WF_FORK = 0x04,
	WF_TTWU = 0x08,
	WF_SYNC = 0x10,
	WF_CURRENT_CPU = 0x40,
	WF_INTERRUPT = 0x10000,
};

static inline u32 first_allowed_cpu(struct state __arena *st,
				    const struct task __arena *p)
{
	u32 word;

	for (word = opaque(0); word < CPUMASK_WORDS && can_loop; word++) {
		u64 cpus = *indexed(p->cpus_allowed.bits, word) &
			   *indexed(st->root.online.bits, word);

		if (cpus)
			return word * 64 + first_bit(cpus);
	}
	return NO_CPU;
}

/*
 * For a task that may not be where it is, or where it was to go: its node, then
 * any CPU it may run on.
 */
verified_once u32 select_fallback_rq(struct state __arena *st in_arena,
				     const struct task __arena *p in_arena)
{
	u16 node = cpu_of(st, p->cpu)->node;
	u32 cpu;

	for (cpu = opaque(0);
	     cpu < st->root.nr_cpu_ids && cpu < NR_CPUS && can_loop; cpu++) {
		if (cpu_of(st, cpu)->node == node && task_allowed(p, cpu) &&
		    cpumask_test(&st->root.online, cpu))
			return cpu;
	}
	cpu = first_allowed_cpu(st, p);
	return cpu == NO_CPU ? p->cpu : cpu;
}

/* The lowest level of this_cpu that contains prev and allows affine wakeups. */
static inline u32 affine_level(const struct wakeup *wakeup)
{
	struct state __arena *st = wakeup->st;
	u32 nr_domains = cpu_of(st, wakeup->this_cpu)->nr_domains;
	u32 level;

	for (level = opaque(0);
	     level < nr_domains && level < NR_LEVELS && can_loop; level++) {
		struct sched_span __arena *span = domain_span(
			st, cpu_domain(st, wakeup->this_cpu, level));

		if (span->flags & SD_WAKE_AFFINE &&
		    cpumask_test(&span->cpus, wakeup->prev))
			return level;
	}
	return NR_LEVELS;
}

/* A hint, wake_affine(), or without either the previous CPU. */
static inline u32 wakeup_target(const struct wakeup *wakeup, bool want_affine)
{
	struct state __arena *st = wakeup->st;
	u32 target = wake_hint_target(st, wakeup->wakee, wakeup->this_cpu,
				      wakeup->prev);
	u32 level;

	if (target != NO_CPU) {
		scratch_of(st)->decision.hint_used = 1;
		return target;
	}
	if (!want_affine || wakeup->this_cpu == wakeup->prev)
		return wakeup->prev;
	level = affine_level(wakeup);
	if (level == NR_LEVELS)
		return wakeup->prev;
	return wake_affine(wakeup, level);
}

/* A wakee whose process prefers another LLC has found nothing idle there. */
static inline bool preferred_llc_is_busy(const struct wakeup *wakeup)
{
	struct decision __arena *decision = &scratch_of(wakeup->st)->decision;

	return decision->search >= SEARCH_FALLBACK &&
	       !cpus_share_cache(wakeup->st, wakeup->prev, decision->prev_cpu);
}

/* decision_init() has noted who wakes whom, and where. */
verified_once u32 select_wakeup_cpu(struct state __arena *st in_arena,
				    u32 wake_flags, u64 now)
{
	struct decision __arena *decision = &scratch_of(st)->decision;
	struct idle_search search = {
		.wakeup = {
			.st = st,
			.waker = task_of(st, decision->waker),
			.wakee = task_of(st, decision->wakee),
			.this_cpu = decision->waking_cpu,
			.prev = decision->prev_cpu,
			.sync = decision->sync,
			.in_interrupt = !!(wake_flags & WF_INTERRUPT),
			.now = now,
		}};
	const struct wakeup *wakeup = &search.wakeup;
	bool allowed_here = task_allowed(wakeup->wakee, wakeup->this_cpu);
	bool want_affine;
	u32 cpu;

	record_wakee(wakeup);
	if (wake_flags & WF_CURRENT_CPU && allowed_here) {
		decision->target_cpu = wakeup->this_cpu;
		return wakeup->this_cpu;
	}

	search.wakeup.prev = select_cache_cpu(st, wakeup->wakee, wakeup->prev);
	decision->wide = wake_wide(wakeup);
	want_affine = !decision->wide && allowed_here;
	decision->target_cpu = wakeup_target(wakeup, want_affine);
	cpu = select_idle_sibling(&search, decision->target_cpu);
	if (preferred_llc_is_busy(wakeup)) {
		search.wakeup.prev = decision->prev_cpu;
		cpu = select_idle_sibling(&search, decision->prev_cpu);
	}
	if (want_affine && st->profile.recent_used == RECENT_USED_ON_HIT)
		wakeup->waker->recent_used_cpu = wakeup->this_cpu;
	return cpu;
}

static inline u32 select_task_rq_fair(struct state __arena *st, u32 p, u32 prev,
				      u32 cpu, u32 wake_flags, u64 now)
{
	u32 flag;

	if (wake_flags & WF_TTWU)
		return select_wakeup_cpu(st, wake_flags, now);
	flag = wake_flags & WF_FORK ? SD_BALANCE_FORK : SD_BALANCE_EXEC;
	return find_idlest_cpu(st, p, cpu, prev, flag);
}

static inline u32 select_task_rq_of_class(struct state __arena *st, u32 p,
					  u32 prev, u32 cpu, u32 wake_flags,
					  u64 now)
{
	if (!is_rt_task(st, p))
		return select_task_rq_fair(st, p, prev, cpu, wake_flags, now);
	if (wake_flags & (WF_TTWU | WF_FORK))
		return select_task_rq_rt(st, p, prev, cpu);
	return prev;
}

static inline void decision_init(struct state __arena *st, u32 p, u32 prev,
				 u32 cpu, u32 wake_flags)
{
	struct decision __arena *decision = &scratch_of(st)->decision;
	u32 waker = cpu_rq(st, cpu)->curr;

	decision->waker = waker;
	decision->wakee = p;
	decision->waking_cpu = cpu;
	decision->prev_cpu = prev;
	decision->target_cpu = prev;
	decision->result_cpu = prev;
	decision->sync = wake_flags & WF_SYNC && !task_of(st, waker)->exiting;
	decision->wide = 0;
	decision->affine = AFFINE_NOT_TRIED;
	decision->search = SEARCH_NONE;
	decision->has_idle_cores = 0;
	decision->hint_used = 0;
	decision->affine_level = NR_LEVELS;
	decision->slow_path = 0;
	decision->scan_limit = UNLIMITED;
	decision->scanned = 0;
	decision->waker_load = 0;
	decision->prev_load = 0;
	decision->scan_timed = 0;
	decision->timed_scan = 0;
	decision->llc_scanned = 0;
}

/*
 * The CPU for @p, which last ran on @prev, in a wakeup, fork or exec made on
 * @cpu. Nothing marks the CPU until the engine enqueues the task there.
 */
static __always_inline u32 select_task_rq(struct state __arena *st, u32 p,
					  u32 prev, u32 cpu, u32 wake_flags,
					  u64 now)
{
	const struct task __arena *task = task_of(st, p);
	u32 result;

	decision_init(st, p, prev, cpu, wake_flags);
	if (task->nr_cpus_allowed > 1)
		result = select_task_rq_of_class(st, p, prev, cpu, wake_flags,
						 now);
	else
		result = first_allowed_cpu(st, task);
	if (!task_allowed(task, result) ||
	    !cpumask_test(&st->root.online, result))
		result = select_fallback_rq(st, task);
	scratch_of(st)->decision.result_cpu = result;
	return result;
}

/*
 * Does a wakee go over @cpu's wake list, to be enqueued there by that CPU?
 * @on_cpu asks before placement, about a wakee that is still switching out on
 * @cpu; if the answer is no the waker waits until it has.
 */
static inline bool ttwu_queue_wakelist(struct state __arena *st, u32 p,
				       u32 this_cpu, u32 cpu, bool on_cpu)
{
	const struct rq __arena *rq = cpu_rq(st, cpu);
	u32 rule = st->profile.wake_list;

	if (rule == WAKE_LIST_CROSS_LLC && on_cpu)
		return false;
	if (rule == WAKE_LIST_CROSS_LLC_OR_IDLE &&
	    (!cpumask_test(&st->root.online, cpu) ||
	     !task_allowed(task_of(st, p), cpu)))
		return false;
	if (!st->profile.ttwu_queue)
		return false;
	if (!cpus_share_cache(st, this_cpu, cpu))
		return true;
	if (this_cpu == cpu)
		return false;
	switch (rule) {
	case WAKE_LIST_CROSS_LLC_OR_ON_CPU:
		return on_cpu && rq->nr_running <= 1;
	case WAKE_LIST_CROSS_LLC_OR_IDLE:
		return !rq->nr_running;
	default:
		return false;
	}
}

#endif
