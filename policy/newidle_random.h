/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * newidle_random.h: how often a newly-idle CPU looks at a level: NI_RANDOM and
 * NI_RATE.
 *
 * A level is looked at with the chance that doing so pulls a task. A look that
 * was not made counts as one that pulled nothing, so one that was made and pulls
 * stands for all those left out. Under NI_RATE a level that is seldom asked for
 * is looked at more often: looking costs little then.
 *
 * Kernels: v6.19 on, NI_RATE from v7.1 on. Limits: one sequence of random
 * numbers for all CPUs, of which the kernel has one each.
 */
#ifndef PLACEWISE_NEWIDLE_RANDOM_H
#define PLACEWISE_NEWIDLE_RANDOM_H

#include "state.h"

/* The dice's sides; after so many calls the ratio is renewed and they are halved. */
#define NEWIDLE_SIDES 1024

/* NI_RATE: ns to one more in NEWIDLE_SIDES, as a power of two; about 4 ms. */
#define NEWIDLE_RATE_SHIFT 22

static inline u32 sched_rng(struct state __arena *st)
{
	st->root.random = st->root.random * 6364136223846793005ULL +
			  1442695040888963407ULL;
	return st->root.random >> 32;
}

/* A level that was just built counts as one that pulls every other time. */
static inline void newidle_stats_init(struct sched_domain __arena *sd)
{
	if (sd->newidle_call)
		return;
	sd->newidle_call = NEWIDLE_SIDES / 2;
	sd->newidle_success = NEWIDLE_SIDES / 4;
	sd->newidle_ratio = NEWIDLE_SIDES / 2;
}

static inline void update_newidle_stats(const struct state __arena *st,
					struct sched_domain __arena *sd,
					u32 success, u64 now)
{
	u64 ratio;

	newidle_stats_init(sd);
	sd->newidle_call++;
	sd->newidle_success += success;
	if (sd->newidle_call < NEWIDLE_SIDES)
		return;

	ratio = sd->newidle_success;
	if (st->profile.newidle_random == NEWIDLE_BY_SUCCESS_AND_RATE) {
		ratio += (now - sd->newidle_stamp) >> NEWIDLE_RATE_SHIFT;
		ratio = min(ratio, (u64)NEWIDLE_SIDES);
	}
	sd->newidle_ratio = ratio;
	sd->newidle_stamp = now;
	sd->newidle_call /= 2;
	sd->newidle_success /= 2;
}

/* Is the level looked at this time? */
static inline bool newidle_dice_allow(struct state __arena *st,
				      struct sched_domain __arena *sd, u64 now)
{
	if (st->profile.newidle_random == NEWIDLE_ALWAYS)
		return true;
	newidle_stats_init(sd);
	if (sd->newidle_ratio >= NEWIDLE_SIDES ||
	    sched_rng(st) % NEWIDLE_SIDES <= 1 + sd->newidle_ratio)
		return true;
	update_newidle_stats(st, sd, 0, now);
	return false;
}

/* A level was looked at: a task pulled stands for the looks not made, too. */
static inline void newidle_dice_result(const struct state __arena *st,
				       struct sched_domain __arena *sd,
				       bool pulled, u64 now)
{
	u32 weight = 1 + sd->newidle_ratio;
	u32 success = (NEWIDLE_SIDES + weight / 2) / weight;

	if (st->profile.newidle_random != NEWIDLE_ALWAYS)
		update_newidle_stats(st, sd, pulled ? success : 0, now);
}

#endif
