/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * hint.h: what a program may say about its own placement, and what a wakeup
 * makes of it.
 *
 * After the userspace hinting series of September 2022, and for groups that
 * share a cache the posting of August 2026. Neither was merged: any kernel
 * obeys a hint here. A child inherits the hint of its creator. The fork hints
 * are obeyed in fork.h, the group in cache_aware.h.
 */
#ifndef PLACEWISE_HINT_H
#define PLACEWISE_HINT_H

#include "state.h"

enum hint {
	HINT_FORK_AFFINE = 1
			   << 0, /* children stay close while cores are idle */
	HINT_FORK_SPREAD = 1 << 1, /* children go where utilisation is lowest */
	HINT_WAKE_AFFINE = 1 << 2, /* wake in the waker's LLC */
	HINT_WAKE_HOLD = 1 << 3,   /* wake in the LLC of the previous CPU */
	HINT_SHARE_CACHE =
		1 << 4, /* children that are processes gather with us */
};

#define HINT_FORK (HINT_FORK_AFFINE | HINT_FORK_SPREAD)
#define HINT_WAKE (HINT_WAKE_AFFINE | HINT_WAKE_HOLD)

enum hint_error {
	HINT_VALID,
	HINT_UNKNOWN,	    /* a bit that is no hint */
	HINT_FORK_CONFLICT, /* both fork hints */
	HINT_WAKE_CONFLICT, /* both wakeup hints */
};

/* Is @value one of the series, which knows nothing of shared caches? */
static inline enum hint_error hint_check(u32 value)
{
	if (value & ~(u32)(HINT_FORK | HINT_WAKE))
		return HINT_UNKNOWN;
	if ((value & HINT_FORK) == HINT_FORK)
		return HINT_FORK_CONFLICT;
	if ((value & HINT_WAKE) == HINT_WAKE)
		return HINT_WAKE_CONFLICT;
	return HINT_VALID;
}

/*
 * The CPU from which a wakeup hint wants the search to start, or NO_CPU where
 * the hint has no say: both CPUs share a cache, or the LLC it names has no idle
 * core. The affinity of @p is not consulted, as in the series.
 */
static inline u32 wake_hint_target(struct state __arena *st,
				   const struct task __arena *p, u32 this_cpu,
				   u32 prev)
{
	u32 target;

	if (!(p->hint & HINT_WAKE) || cpus_share_cache(st, this_cpu, prev))
		return NO_CPU;
	target = p->hint & HINT_WAKE_AFFINE ? this_cpu : prev;
	return cpu_llc(st, target)->has_idle_cores ? target : NO_CPU;
}

#endif
