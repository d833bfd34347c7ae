/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * distance.h: how far one CPU is from another, as caches and memory see it.
 * Placements are counted by it; no decision reads it.
 */
#ifndef PLACEWISE_DISTANCE_H
#define PLACEWISE_DISTANCE_H

#include "state.h"

/* Nearest first. Reports name them so, and say what stands behind them. */
enum distance {
	SAME_CPU,   /* on the previous CPU */
	SMT,	    /* on an SMT sibling */
	LLC,	    /* on another core of the LLC */
	OTHER_LLC,  /* in another LLC of the NUMA node */
	OTHER_NODE, /* on another NUMA node */
	NR_DISTANCES,
};

static inline enum distance distance(struct state __arena *st, u32 from, u32 to)
{
	const struct cpu __arena *one = cpu_of(st, from);
	const struct cpu __arena *other = cpu_of(st, to);

	if (from == to)
		return SAME_CPU;
	if (one->siblings[0] == other->siblings[0])
		return SMT;
	if (one->llc == other->llc)
		return LLC;
	return one->node == other->node ? OTHER_LLC : OTHER_NODE;
}

#endif
