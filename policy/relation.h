/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * relation.h: who wakes whom, and whether that is too many for an affine
 * wakeup.
 *
 * Covers the form of 2013, as it was posted and tested, and the one that every
 * kernel from v4.3 on has. A child inherits the flips of its creator: the engine
 * copies them at fork.
 */
#ifndef PLACEWISE_RELATION_H
#define PLACEWISE_RELATION_H

#include "state.h"

/* One wakeup, as every decision about it sees it. */
struct wakeup {
	struct state __arena *st;
	struct task __arena *waker; /* current on this_cpu, perhaps idle */
	struct task __arena *wakee;
	u32 this_cpu; /* the waking CPU */
	u32 prev;     /* where the wakee last ran or was queued */
	u32 sync;
	u32 in_interrupt;
	u64 now;
};

/* Count how often a task changes wakees; decayed at most once a second. */
static inline void record_wakee(const struct wakeup *wakeup)
{
	struct task __arena *waker = wakeup->waker;
	u32 wakee = scratch_of(wakeup->st)->decision.wakee;
	u64 now = jiffies(wakeup->st, wakeup->now);
	u32 hz = 1000000000U / wakeup->st->root.tick_ns;

	if (now > waker->wakee_flip_decay_ts + hz) {
		if (wakeup->st->profile.wake_wide == WAKE_WIDE_NODE)
			waker->wakee_flips = 0;
		else
			waker->wakee_flips >>= 1;
		waker->wakee_flip_decay_ts = now;
	}
	if (waker->last_wakee != wakee) {
		waker->last_wakee = wakee;
		waker->wakee_flips++;
	}
}

/* As posted: a wakee may still drag its master to its own CPU. */
static inline bool wake_wide_node(const struct wakeup *wakeup)
{
	u64 waker_flips = wakeup->waker->wakee_flips;
	u64 wakee_flips = wakeup->wakee->wakee_flips;
	u64 factor = cpu_of(wakeup->st, wakeup->this_cpu)->node_cpus;

	return wakee_flips > factor && waker_flips > factor * wakee_flips;
}

static inline bool wake_wide_llc(const struct wakeup *wakeup)
{
	u64 waker_flips = wakeup->waker->wakee_flips;
	u64 wakee_flips = wakeup->wakee->wakee_flips;
	u64 master = max(waker_flips, wakee_flips);
	u64 slave = min(waker_flips, wakee_flips);
	u64 factor = cpu_llc(wakeup->st, wakeup->this_cpu)->size;

	return slave >= factor && master >= slave * factor;
}

/*
 * A master that wakes many slaves, which themselves wake several others, would
 * drag them all to its own CPU: leave such wakeups wide.
 */
static inline bool wake_wide(const struct wakeup *wakeup)
{
	switch (wakeup->st->profile.wake_wide) {
	case WAKE_WIDE_NODE:
		return wake_wide_node(wakeup);
	case WAKE_WIDE_LLC:
		return wake_wide_llc(wakeup);
	default:
		return false;
	}
}

/* Did each of the two wake the other last? */
static inline bool wake_each_other(const struct wakeup *wakeup)
{
	struct decision __arena *decision = &scratch_of(wakeup->st)->decision;

	return wakeup->waker->last_wakee == decision->wakee &&
	       wakeup->wakee->last_wakee == decision->waker;
}

#endif
