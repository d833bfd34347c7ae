/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * count.h: what was placed, and how far from where it ran before. Only counts:
 * no decision reads them.
 */
#ifndef SCX_PLACEWISE_COUNT_H
#define SCX_PLACEWISE_COUNT_H

#include "shadow.h"

#include "hint.h"

enum placed {
	PLACED_WAKEUP,
	PLACED_FORK,
	NR_PLACED
};

enum distance {
	SAME_CPU,
	SMT,	   /* another CPU of the core */
	LLC,	   /* another core of the LLC */
	OTHER_LLC, /* another LLC of the NUMA node */
	OTHER_NODE,
	NR_DISTANCES,
};

/* Of one CPU, which was the waker's. Mirrored in figures.rs. */
struct counts {
	u64 placed[NR_PLACED][NR_DISTANCES];
	u64 on_idle[NR_PLACED]; /* the CPU chosen was idle */
	u64 hinted[NR_PLACED];	/* the task has a hint for such placements */
};

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, struct counts);
} counts SEC(".maps");

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

static inline void count_placed(struct state __arena *st, u32 task, bool fork,
				u32 prev, u32 cpu)
{
	enum placed kind = fork ? PLACED_FORK : PLACED_WAKEUP;
	u32 hints = fork ? HINT_FORK : HINT_WAKE;
	struct counts *here;
	u32 first = 0;

	here = bpf_map_lookup_elem(&counts, &first);
	if (!here)
		return;
	here->placed[kind][distance(st, prev, cpu)]++;
	if (available_idle_cpu(st, cpu))
		here->on_idle[kind]++;
	if (task_of(st, task)->hint & hints)
		here->hinted[kind]++;
}

#endif
