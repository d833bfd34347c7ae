/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * lb_env.h: what the steps of one load-balance attempt tell each other.
 */
#ifndef PLACEWISE_LB_ENV_H
#define PLACEWISE_LB_ENV_H

#include "load.h"

struct lb_env {
	struct sched_domain __arena *sd; /* of the CPU that balances */
	struct sched_span __arena *span;
	u64 now;
	s64 imbalance; /* what is still to move, in units of migration_type */
	u32 migration_type; /* enum migration_type */
	u32 idle;	    /* enum cpu_idle_type */
	u32 level;
	u32 dst_cpu; /* changes when pinned tasks may go to a neighbour only */
	u32 new_dst_cpu; /* that neighbour, or NO_CPU */
	u32 src_cpu;
	u32 busiest_group;
	u32 loop, loop_max; /* tasks looked at */
	u32 reason;	    /* enum lb_reason, if nothing moves */
	bool active;	 /* the stopper pushes: running and hot do not count */
	bool all_pinned; /* no task seen could run on the destination */
	bool some_pinned;
	bool llc_pinned;  /* a task stays for the sake of its LLC */
	bool ignore_hint; /* wakeup hints do not hold tasks back */
	bool serialized;  /* the attempt holds the lock of the NUMA levels */
};

/* The attempt has come as far as @reason at least. */
static inline void came_to(struct lb_env *env, u32 reason)
{
	env->reason = max(env->reason, reason);
}

/* May @cpu still take part in this attempt? */
static inline u64 lb_cpus(const struct state __arena *st,
			  const struct lb_env *env, u32 word)
{
	return *indexed(env->span->cpus.bits, word) &
	       *indexed(st->root.online.bits, word) &
	       ~*indexed(scratch_of(st)->balance.excluded.bits, word);
}

/* Is @cpu's capacity reduced by more than the level's imbalance_pct? */
static inline bool check_cpu_capacity(struct state __arena *st, u32 cpu,
				      const struct sched_span __arena *span)
{
	return capacity_of(st, cpu) * span->imbalance_pct <
	       cpu_of(st, cpu)->capacity_orig * 100ULL;
}

/* Higher priority under SD_ASYM_PACKING. */
static inline bool sched_asym_prefer(struct state __arena *st, u32 a, u32 b)
{
	return cpu_of(st, a)->asym_priority > cpu_of(st, b)->asym_priority;
}

#endif
