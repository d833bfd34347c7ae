/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * nohz.h: who balances for CPUs that are idle without a tick.
 *
 * A busy CPU that finds at its tick that balancing would help interrupts one
 * tickless idle CPU; that one visits all of them as if each had had its tick.
 * The engine runs a periodic visit (balance.h) for every CPU that
 * nohz_balance_next() names, and refreshes the averages of the tickless CPUs if
 * the interrupt asked for that.
 *
 * Kernels: v5.11 on; before, the visits went in plain order. Limits: blocked
 * load is assumed to be left as long as some CPU is tickless.
 */
#ifndef PLACEWISE_NOHZ_H
#define PLACEWISE_NOHZ_H

#include "balance.h"

/* How often blocked load is refreshed, ms. */
#define LOAD_AVG_PERIOD 32

enum nohz_kick {
	NOHZ_STATS_KICK = 1 << 0,   /* refresh blocked load */
	NOHZ_BALANCE_KICK = 1 << 1, /* balance */
};

/* The tick of idle @cpu stops. */
static inline void nohz_balance_enter_idle(struct state __arena *st, u32 cpu)
{
	if (cpu_rq(st, cpu)->tick_stopped)
		return;
	cpu_rq(st, cpu)->tick_stopped = 1;
	cpumask_set(&st->root.tickless, cpu);
	atomic_add(&cpu_llc(st, cpu)->nr_busy_cpus, -1);
}

/* The first busy tick of @cpu after it was tickless. */
static inline void nohz_balance_exit_idle(struct state __arena *st, u32 cpu)
{
	if (!cpu_rq(st, cpu)->tick_stopped)
		return;
	cpu_rq(st, cpu)->tick_stopped = 0;
	cpumask_clear(&st->root.tickless, cpu);
	atomic_add(&cpu_llc(st, cpu)->nr_busy_cpus, 1);
}

/*
 * The first tickless idle CPU from @start on, before @end, of a fully idle core
 * if @whole_core.
 */
verified_once u32 next_tickless_cpu(const struct state __arena *st in_arena,
				    u32 start, u32 end, bool whole_core)
{
	u64 bits = 0;
	u32 word, cpu;

	for (word = opaque(start / 64); word < CPUMASK_WORDS && can_loop;
	     word++) {
		bits = *indexed(st->root.tickless.bits, word) &
		       *indexed(st->root.idle.bits, word);
		if (whole_core)
			bits &= *indexed(st->root.idle_core.bits, word);
		if (word == start / 64)
			bits &= bits_from(start);
		if (bits)
			break;
	}
	if (!bits)
		return NO_CPU;
	cpu = word * 64 + first_bit(bits);
	return cpu < end ? cpu : NO_CPU;
}

static inline u32 first_tickless_cpu(const struct state __arena *st,
				     u32 this_cpu, bool whole_core)
{
	u32 cpu = next_tickless_cpu(st, 0, NR_CPUS, whole_core);

	if (cpu == this_cpu)
		cpu = next_tickless_cpu(st, this_cpu + 1, NR_CPUS, whole_core);
	return cpu;
}

/* The tickless idle CPU that is to balance for all, or NO_CPU. */
static inline u32 find_new_ilb(const struct state __arena *st, u32 this_cpu)
{
	u32 cpu = NO_CPU;

	if (st->profile.nohz_wants_idle_core)
		cpu = first_tickless_cpu(st, this_cpu, true);
	if (cpu == NO_CPU)
		cpu = first_tickless_cpu(st, this_cpu, false);
	return cpu;
}

/* Does a tickless idle CPU exist that asym packing would rather use? */
static inline bool preferred_cpu_idles(struct state __arena *st, u32 cpu,
				       const struct sched_span __arena *span)
{
	u32 word, other;

	for_each_word(word, span) {
		u64 bits = *indexed(span->cpus.bits, word) &
			   *indexed(st->root.tickless.bits, word);

		for_each_bit(other, word, bits) {
			if (sched_asym(st, span, other, cpu))
				return true;
		}
	}
	return false;
}

/* Is the current task of @cpu too big for it while a bigger CPU exists? */
static inline bool check_misfit_status(struct state __arena *st, u32 cpu,
				       const struct sched_span __arena *span)
{
	return cpu_rq(st, cpu)->misfit_task_load &&
	       (cpu_of(st, cpu)->capacity_orig < span->asym_capacity_max ||
		check_cpu_capacity(st, cpu, span));
}

/* What some level of @cpu with asymmetric CPUs calls for. */
static inline bool asym_level_needs_kick(struct state __arena *st, u32 cpu)
{
	u32 level;

	for (level = opaque(0); level < cpu_of(st, cpu)->nr_domains &&
				level < NR_LEVELS && can_loop;
	     level++) {
		const struct sched_span __arena *span =
			domain_span(st, cpu_domain(st, cpu, level));

		if (span->flags & SD_ASYM_PACKING &&
		    preferred_cpu_idles(st, cpu, span))
			return true;
		if (span->flags & SD_ASYM_CPUCAPACITY_FULL &&
		    check_misfit_status(st, cpu, span))
			return true;
	}
	return false;
}

/* Would balancing for the idle CPUs help @cpu, which is busy? */
static subprogram bool nohz_balance_needed(struct state __arena *st, u32 cpu)
{
	const struct rq __arena *rq = cpu_rq(st, cpu);

	if (rq->nr_running >= 2)
		return true;
	if (!cpu_of(st, cpu)->nr_domains)
		return false;
	if (rq->cfs.h_nr_queued &&
	    check_cpu_capacity(st, cpu,
			       domain_span(st, cpu_domain(st, cpu, 0))))
		return true;
	if (asym_level_needs_kick(st, cpu))
		return true;
	/*
	 * Asymmetric machines care for capacity, not for an even use of caches.
	 */
	return !st->root.asym_capacity && cpu_llc(st, cpu)->nr_busy_cpus > 1;
}

/*
 * The tick of @cpu: the CPU to interrupt, or NO_CPU. That CPU finds in
 * rq.nohz_flags what it is to do.
 */
static subprogram u32 nohz_balancer_kick(struct state __arena *st, u32 cpu,
					 u64 now)
{
	u64 now_jiffies = jiffies(st, now);
	u32 flags = 0;
	u32 ilb;

	if (available_idle_cpu(st, cpu))
		return NO_CPU;
	nohz_balance_exit_idle(st, cpu);
	ilb = find_new_ilb(st, cpu);
	if (ilb == NO_CPU)
		return NO_CPU;
	if (now_jiffies > st->root.nohz_next_blocked)
		flags = NOHZ_STATS_KICK;
	if (now_jiffies >= st->root.nohz_next_balance &&
	    nohz_balance_needed(st, cpu)) {
		flags = NOHZ_STATS_KICK | NOHZ_BALANCE_KICK;
		st->root.nohz_next_balance = now_jiffies + 1;
	}
	if (!flags || cpu_rq(st, ilb)->nohz_flags) {
		cpu_rq(st, ilb)->nohz_flags |= flags;
		return NO_CPU;
	}
	cpu_rq(st, ilb)->nohz_flags = flags;
	return ilb;
}

/* One visit of all tickless CPUs; the engine keeps it. */
struct nohz_walk {
	u64 next_balance; /* jiffies */
	u32 this_cpu;	  /* the CPU that balances for all */
	u32 cpu;	  /* the one visited last, NO_CPU at the start */
	u32 flags;	  /* enum nohz_kick */
	u32 aborted;
};

_Static_assert(sizeof(struct nohz_walk) <= WALK_WORDS * sizeof(u64),
	       "an engine keeps a walk in WALK_WORDS");

/* @cpu was interrupted: false if there is nothing to do for it any more. */
static inline bool nohz_balance_start(struct state __arena *st,
				      struct nohz_walk *walk, u32 cpu, u64 now)
{
	*walk = (struct nohz_walk){
		.next_balance = jiffies(st, now) + 60 * jiffies_per_second(st),
		.this_cpu = cpu,
		.cpu = NO_CPU,
		.flags = cpu_rq(st, cpu)->nohz_flags,
	};
	cpu_rq(st, cpu)->nohz_flags = 0;
	return walk->flags && available_idle_cpu(st, cpu);
}

/* The tickless CPU after @walk's: from the one after this CPU on, it last. */
static inline u32 nohz_successor(const struct state __arena *st,
				 const struct nohz_walk *walk)
{
	u32 this_cpu = walk->this_cpu;
	u32 next;

	if (walk->cpu == this_cpu)
		return NO_CPU;
	if (walk->cpu == NO_CPU || walk->cpu > this_cpu) {
		u32 last = walk->cpu == NO_CPU ? this_cpu : walk->cpu;

		next = next_tickless_cpu(st, last + 1, NR_CPUS, false);
		if (next != NO_CPU)
			return next;
		return next_tickless_cpu(st, 0, this_cpu + 1, false);
	}
	return next_tickless_cpu(st, walk->cpu + 1, this_cpu + 1, false);
}

/*
 * The next tickless CPU whose levels are due, or NO_CPU. The engine visits it
 * as CPU_IDLE, from rebalance_domains_start() to rebalance_domains_end(),
 * before it asks again.
 */
static subprogram u32 nohz_balance_next(struct state __arena *st,
					struct nohz_walk *walk, u64 now)
{
	u32 i;

	if (walk->cpu != NO_CPU)
		walk->next_balance = min(walk->next_balance,
					 cpu_rq(st, walk->cpu)->next_balance);
	for (i = opaque(0); i < NR_CPUS && can_loop; i++) {
		const struct rq __arena *rq;

		/* Work for this CPU comes first. */
		if (!available_idle_cpu(st, walk->this_cpu)) {
			walk->aborted = 1;
			return NO_CPU;
		}
		walk->cpu = nohz_successor(st, walk);
		if (walk->cpu == NO_CPU)
			return NO_CPU;
		rq = cpu_rq(st, walk->cpu);
		if (walk->flags & NOHZ_BALANCE_KICK &&
		    jiffies(st, now) >= rq->next_balance)
			return walk->cpu;
		walk->next_balance = min(walk->next_balance, rq->next_balance);
	}
	return NO_CPU;
}

static inline void nohz_balance_end(struct state __arena *st,
				    const struct nohz_walk *walk, u64 now)
{
	if (walk->aborted)
		return;
	st->root.nohz_next_balance = walk->next_balance;
	if (walk->flags & NOHZ_STATS_KICK)
		st->root.nohz_next_blocked =
			jiffies(st, now) +
			(LOAD_AVG_PERIOD * (u64)NSEC_PER_MSEC +
			 st->root.tick_ns - 1) /
				st->root.tick_ns;
}

#endif
