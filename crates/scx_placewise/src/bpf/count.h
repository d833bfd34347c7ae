/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * count.h: what was placed, and how far from where it ran before. Only counts:
 * no decision reads them.
 */
#ifndef SCX_PLACEWISE_COUNT_H
#define SCX_PLACEWISE_COUNT_H

#include "shadow.h"

#include "distance.h"
#include "hint.h"

enum placed_kind {
	PLACED_WAKEUP,
	PLACED_FORK,
	NR_PLACED_KINDS
};

/* Placements of a kind, by what figures.h lists. */
struct placed {
	u64 to[NR_DISTANCES];
#define PLACED(name, ...) u64 name;
#define BALANCED(...)
#include "figures.h"
};

/* Of one CPU, which was the waker's. The loader reads rows of figures. */
struct counts {
	struct placed of[NR_PLACED_KINDS];
};

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, struct counts);
} counts SEC(".maps");

static inline void count_placed(struct state __arena *st, u32 task, bool fork,
				u32 prev, u32 cpu)
{
	u32 hints = fork ? HINT_FORK : HINT_WAKE;
	struct counts *here;
	struct placed *placed;
	u32 first = 0;

	here = bpf_map_lookup_elem(&counts, &first);
	if (!here)
		return;
	placed = &here->of[fork ? PLACED_FORK : PLACED_WAKEUP];
	placed->to[distance(st, prev, cpu)]++;
	if (available_idle_cpu(st, cpu))
		placed->on_idle++;
	if (task_of(st, task)->hint & hints)
		placed->hinted++;
}

#endif
