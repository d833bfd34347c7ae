/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * cache_aware.h: which LLC the threads of a process prefer, and who may leave it.
 *
 * A process is known by what its threads have run on each CPU, halved every
 * epoch of 10 ms (at HZ=250 of two ticks), beside all that ran there. That is
 * its occupancy of the CPU. Once an epoch, at a tick of one of its threads, the
 * LLCs are compared, and the one with most becomes the preferred one; a thread
 * learns of it as it runs.
 *
 *   RFC of March 2025   wakeups search there first (place.h), and a task is hot
 *                       where its process occupies more than at the destination
 *   third RFC, first    wakeups stay as they were; the balancer brings threads
 *   version, v7.2       together: llc_balance.h
 *
 * Limits: 4,095 processes; others prefer no LLC. Every task of the fair class
 * that is no per-CPU kthread counts as a thread of some process. A task's own
 * preference counts where the posted series ask its process. NUMA balancing
 * has no say: no preferred node, and a process's memory is what the engine says.
 * Core scheduling is not there.
 *
 * What a CPU has run is written with its lock held, and read without: a sum that
 * is being halved may count by half once.
 */
#ifndef PLACEWISE_CACHE_AWARE_H
#define PLACEWISE_CACHE_AWARE_H

#include "hint.h"
#include "state.h"

#define CACHE_EPOCH_NS 10000000
#define CACHE_EPOCHS_OLD                                                       \
	5 /* a preference is forgotten after so many without a look */
#define FULL_OCCUPANCY (1ULL << 20)

/* Do processes have preferred LLCs? Only where there is more than one. */
static inline bool sched_cache_enabled(const struct state __arena *st)
{
	return st->profile.cache_aware && st->profile.llc_enabled &&
	       st->root.nr_llcs > 1;
}

static inline u64 cache_epoch(const struct state __arena *st, u64 now)
{
	return jiffies(st, now) / max(CACHE_EPOCH_NS / st->root.tick_ns, 1u);
}

/* A sum, halved for each epoch since it was halved @last. */
static inline u64 decayed(u64 sum, u64 last, u64 epoch)
{
	return sum >> min(sub_positive(epoch, last), 63ULL);
}

/* Halve it now. CPUs may read their clocks in another order than they come here. */
static inline void decay_epochs(u64 __arena *sum, u64 __arena *last, u64 epoch)
{
	*sum = decayed(*sum, *last, epoch);
	*last = max(*last, epoch);
}

/* Tasks of one thread only, and of processes that are not tracked, have none. */
static inline bool prefers_llc_of(struct state __arena *st,
				  const struct task __arena *p, u32 cpu)
{
	return p->preferred_llc == cpu_of(st, cpu)->llc + 1;
}

/* By how much a limit is multiplied; 0 = it is never kept. */
static inline u64 aggregation_scale(const struct state __arena *st, u32 step)
{
	u64 tolerance = st->profile.llc_aggr_tolerance;

	return tolerance ? 1 + (tolerance - 1) * step : 0;
}

static inline bool aggregation_unlimited(const struct state __arena *st)
{
	return st->profile.llc_aggr_tolerance >= 100;
}

/* Do more threads run than an LLC has cores for? */
static inline bool invalid_llc_nr(struct state __arena *st,
				  const struct process __arena *process,
				  u32 cpu)
{
	u64 threads =
		(u64)process->nr_running_avg * cpu_of(st, cpu)->nr_siblings;
	u64 limit = cpu_llc(st, cpu)->size * aggregation_scale(st, 1);

	if (aggregation_unlimited(st))
		return false;
	if (st->profile.cache_aware == CACHE_AWARE_GATED)
		return threads > limit;
	return threads * 1280 >= limit * 1024;
}

/* Does it have more memory than an LLC? As merged, NUMA balancing counts that. */
static inline bool exceed_llc_capacity(struct state __arena *st,
				       const struct process __arena *process,
				       u32 cpu)
{
	u64 limit = cpu_llc(st, cpu)->bytes * aggregation_scale(st, 256);

	if (aggregation_unlimited(st))
		return false;
	if (st->profile.cache_aware == CACHE_AWARE_GATED)
		return process->footprint >= limit;
	return st->root.nr_nodes > 1 && process->footprint > limit;
}

static inline bool has_size_gates(const struct state __arena *st)
{
	return st->profile.cache_aware >= CACHE_AWARE_GATED;
}

/* Is a process not, or no longer, to have a preferred LLC? */
static inline bool preference_void(struct state __arena *st,
				   const struct process __arena *process,
				   u32 cpu, u64 epoch)
{
	if (sub_positive(epoch, process->epoch) > CACHE_EPOCHS_OLD)
		return true;
	if (st->profile.cache_aware == CACHE_AWARE_WAKEUP)
		return false;
	return process->nr_threads <= 1 ||
	       (has_size_gates(st) && (invalid_llc_nr(st, process, cpu) ||
				       exceed_llc_capacity(st, process, cpu)));
}

/* @p, a thread of a tracked process, has run on @cpu for @ns. */
static inline void account_process(struct state __arena *st,
				   struct task __arena *p, u32 cpu, u64 ns,
				   u64 epoch)
{
	struct process __arena *process = process_of(st, p->process);
	struct process_rq __arena *here = process_rq_of(st, p->process, cpu);

	decay_epochs(&here->runtime, &here->epoch, epoch);
	here->runtime += ns;
	if (preference_void(st, process, cpu, epoch)) {
		process->preferred_cpu = NO_CPU;
		here->occupancy = U32_MAX;
	}
	p->preferred_llc = 0;
	if (process->preferred_cpu != NO_CPU)
		p->preferred_llc = cpu_of(st, process->preferred_cpu)->llc + 1;
}

/* The current task of @cpu has run for @ns. */
static inline void account_mm_sched(struct state __arena *st,
				    struct task __arena *p, u32 cpu, u64 ns,
				    u64 now)
{
	struct rq __arena *rq = cpu_rq(st, cpu);
	u64 epoch;

	if (!sched_cache_enabled(st) || p->rt_priority || p->per_cpu_kthread)
		return;
	epoch = cache_epoch(st, now);
	decay_epochs(&rq->cache_runtime, &rq->cache_epoch, epoch);
	rq->cache_runtime += ns;
	if (p->process != NO_PROCESS)
		account_process(st, p, cpu, ns, epoch);
}

static inline u64 occupancy(struct state __arena *st, u32 process, u32 cpu,
			    u64 epoch)
{
	const struct process_rq __arena *here = process_rq_of(st, process, cpu);
	const struct rq __arena *rq = cpu_rq(st, cpu);
	u64 all = decayed(rq->cache_runtime, rq->cache_epoch, epoch);

	return FULL_OCCUPANCY * decayed(here->runtime, here->epoch, epoch) /
	       (all + 1);
}

/* What comparing the LLCs has found so far. */
struct llc_search {
	u64 epoch;
	u64 best;      /* occupancy of the LLC with most */
	u64 preferred; /* and of the one that is preferred until now */
	u32 best_cpu;
	u32 nr_running; /* CPUs that run a thread of the process */
};

/* Of the posted series the LLC's mean counts, as merged its sum. */
static inline u64 sum_occupancy(struct state __arena *st,
				struct llc_search *search, u32 process,
				const struct llc __arena *llc, u32 *busiest_cpu)
{
	u64 sum = 0, most = 0;
	u32 word, cpu;

	for_each_word(word, llc) {
		u64 bits = *indexed(llc->cpus.bits, word) &
			   *indexed(st->root.online.bits, word);

		for_each_bit(cpu, word, bits) {
			u64 here = occupancy(st, process, cpu, search->epoch);

			sum += here;
			if (here > most) {
				most = here;
				*busiest_cpu = cpu;
			}
			search->nr_running +=
				task_of(st, cpu_rq(st, cpu)->curr)->process ==
				process;
		}
	}
	if (st->profile.cache_aware == CACHE_AWARE_MERGED)
		return sum;
	return sum / max(llc->size, 1u);
}

/* The posted series remember it, as what makes a task hot. */
static inline void keep_occupancy(struct state __arena *st, u32 process,
				  const struct llc __arena *llc, u64 mean)
{
	u32 word, cpu;

	if (st->profile.cache_aware != CACHE_AWARE_WAKEUP)
		return;
	for_each_word(word, llc) {
		u64 bits = *indexed(llc->cpus.bits, word);

		for_each_bit(cpu, word, bits)
			process_rq_of(st, process, cpu)->occupancy = mean;
	}
}

verified_once int compare_llc(struct state __arena *st in_arena,
			      struct llc_search *search on_stack, u32 number,
			      u32 llc_number)
{
	const struct process __arena *process = process_of(st, number);
	const struct llc __arena *llc =
		indexed(st->llc, llc_number & (NR_CPUS - 1));
	u32 busiest_cpu = NO_CPU;
	u64 sum = sum_occupancy(st, search, number, llc, &busiest_cpu);

	if (process->preferred_cpu != NO_CPU &&
	    cpu_of(st, process->preferred_cpu)->llc == llc_number)
		search->preferred = sum;
	if (sum > search->best) {
		search->best = sum;
		search->best_cpu = busiest_cpu;
	}
	keep_occupancy(st, number, llc, sum);
	return 0;
}

/* A running average, over fewer samples where LLCs are small. */
static inline void average_running(struct state __arena *st,
				   struct process __arena *process, u32 cpu,
				   u32 nr_running)
{
	s32 difference = (s32)(nr_running - process->nr_running_avg);
	s32 weight = min(max(cpu_llc(st, cpu)->size / 4, 2u), 8u);

	/* BPF does not divide what has a sign. */
	if (difference < 0)
		process->nr_running_avg -= (u32)-difference / (u32)weight;
	else
		process->nr_running_avg += (u32)difference / (u32)weight;
}

/* Compare the LLCs for a process that runs on @cpu. */
verified_once int scan_llcs(struct state __arena *st in_arena, u32 number,
			    u32 cpu, u64 epoch)
{
	struct process __arena *process = process_of(st, number);
	struct llc_search search = {.epoch = epoch, .best_cpu = NO_CPU};
	u32 rule = st->profile.cache_aware;
	u32 i;

	for (i = opaque(0); i < st->root.nr_llcs && i < NR_CPUS && can_loop;
	     i++)
		compare_llc(st, &search, number, i);
	average_running(st, process, cpu, search.nr_running);
	if (rule != CACHE_AWARE_MERGED &&
	    search.best < FULL_OCCUPANCY >> CACHE_EPOCHS_OLD)
		process->preferred_cpu = NO_CPU;
	else if (rule == CACHE_AWARE_WAKEUP ||
		 search.best > 2 * search.preferred)
		process->preferred_cpu = search.best_cpu;
	return 0;
}

/* At the tick of a thread: is the look of this epoch still to come? */
static inline void task_tick_cache(struct state __arena *st, u32 cpu, u64 now)
{
	const struct task __arena *p = task_of(st, cpu_rq(st, cpu)->curr);
	struct process __arena *process = process_of(st, p->process);
	u64 epoch = cache_epoch(st, now);

	if (!sched_cache_enabled(st) || p->process == NO_PROCESS ||
	    process->epoch >= epoch ||
	    atomic_swap(&process->epoch, epoch) == epoch)
		return;
	if (p->exiting)
		return;
	if (st->profile.cache_aware != CACHE_AWARE_WAKEUP &&
	    process->nr_threads <= 1)
		process->preferred_cpu = NO_CPU;
	else if (!has_size_gates(st) || !exceed_llc_capacity(st, process, cpu))
		scan_llcs(st, p->process, cpu, epoch);
}

/* @p leaves its process; with the last thread the number is free again. */
static inline void leave_process(struct state __arena *st,
				 struct task __arena *p)
{
	struct process __arena *process = process_of(st, p->process);

	if (p->process == NO_PROCESS)
		return;
	atomic_add(&process->nr_threads, -1);
	p->process = NO_PROCESS;
	p->preferred_llc = 0;
}

/* The first number that is free, which has one thread from now on. */
static inline u32 claim_process(struct state __arena *st)
{
	u32 number;

	for (number = opaque(1); number < NR_PROCESSES && can_loop; number++) {
		u32 __arena *threads = &process_of(st, number)->nr_threads;

		if (!*threads && !atomic_compare_swap(threads, 0U, 1U))
			return number;
	}
	return NO_PROCESS;
}

/*
 * @p is a process of its own from now on, or one more of the group with which
 * its creator shares a cache: as if somebody had told the kernel so of each.
 */
static inline void start_process(struct state __arena *st, u32 task,
				 u64 footprint)
{
	struct task __arena *p = task_of(st, task);
	struct process __arena *process;
	u32 number, cpu;

	if (p->hint & HINT_SHARE_CACHE && p->process != NO_PROCESS) {
		process_of(st, p->process)->footprint += footprint;
		return;
	}
	leave_process(st, p);
	if (!st->profile.cache_aware)
		return;
	number = claim_process(st);
	if (number == NO_PROCESS)
		return;
	for (cpu = opaque(0);
	     cpu < st->root.nr_cpu_ids && cpu < NR_CPUS && can_loop; cpu++) {
		process_rq_of(st, number, cpu)->runtime = 0;
		process_rq_of(st, number, cpu)->occupancy = 0;
	}
	process = process_of(st, number);
	process->footprint = footprint;
	process->epoch = 0;
	process->nr_running_avg = 0;
	process->preferred_cpu = NO_CPU;
	p->process = number;
	st->root.nr_processes = max(st->root.nr_processes, number);
}

/* A child begins as a thread of its creator's process. */
static inline void copy_process(struct state __arena *st,
				struct task __arena *child,
				const struct task __arena *creator)
{
	child->process = creator->process;
	child->preferred_llc = 0;
	if (child->process != NO_PROCESS)
		atomic_add(&process_of(st, child->process)->nr_threads, 1);
}

/* Where a wakee's search begins: on the CPU that its process occupies most, or on prev. */
static inline u32 select_cache_cpu(struct state __arena *st,
				   const struct task __arena *p, u32 prev)
{
	u32 cpu = process_of(st, p->process)->preferred_cpu;

	if (st->profile.cache_aware != CACHE_AWARE_WAKEUP ||
	    !sched_cache_enabled(st) || p->process == NO_PROCESS ||
	    cpu == NO_CPU)
		return prev;
	return cpu;
}

/* Does the process of @p occupy the source more than the destination? */
static inline bool occupies_more(struct state __arena *st, u32 process, u32 src,
				 u32 dst)
{
	return process_rq_of(st, process, src)->occupancy >
	       process_rq_of(st, process, dst)->occupancy;
}

#endif
