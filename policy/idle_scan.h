/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * idle_scan.h: how an LLC is walked for an idle core or an idle CPU, and how
 * far.
 *
 * Covers the limiters of all kernels: none (v3.10), SIS_PROP in its two forms,
 * and SIS_UTIL. A walk works on words of CPUs and answers what the kernel's
 * visit of one CPU after the other would; decision.scanned is the number of
 * CPUs that such a visit looks at. In a walk for a core each core is visited
 * up to its first busy CPU; v5.3 looked at the rest of the core as well.
 */
#ifndef PLACEWISE_IDLE_SCAN_H
#define PLACEWISE_IDLE_SCAN_H

#include "average.h"
#include "relation.h"
#include "sis_cache.h"

#define UNLIMITED U32_MAX

/* The CPUs of a walk: cpus without except, which may be missing. */
struct scan_set {
	const struct cpumask __arena *cpus;
	const struct cpumask __arena *except;
	u32 first_word, words;
	u32 start; /* where wrap order begins; may be just behind the last word */
};

/* One run of select_idle_sibling(). */
struct idle_search {
	struct wakeup wakeup;
	struct llc __arena *llc; /* of the target */
	u32 target;
	u32 limit;    /* CPUs that scans for a CPU may still look at */
	u32 fallback; /* usable CPU of a core that is not idle, or NO_CPU */
	u32 reserved; /* the first that was passed by as reserved, or NO_CPU */
	u32 passes_left; /* reserved CPUs that may still be passed by */
	bool has_idle_core;
	bool exhausted; /* a scan stopped because of the limit */
};

/* Is a CPU that runs nothing but SCHED_IDLE tasks as good as idle? */
static inline bool sched_idle_counts(const struct wakeup *wakeup)
{
	const struct profile __arena *profile = &wakeup->st->profile;

	return profile->sched_idle_usable &&
	       (profile->sched_idle_wakee_usable ||
		!wakeup->wakee->idle_policy);
}

static inline bool cpu_usable(const struct wakeup *wakeup, u32 cpu)
{
	scratch_of(wakeup->st)->decision.scanned++;
	return available_idle_cpu(wakeup->st, cpu) ||
	       (sched_idle_counts(wakeup) && sched_idle_cpu(wakeup->st, cpu));
}

static inline u64 usable_word(const struct wakeup *wakeup, u32 word)
{
	const struct root_domain __arena *root = &wakeup->st->root;
	u64 usable = *indexed(root->idle.bits, word);

	if (sched_idle_counts(wakeup))
		usable |= *indexed(root->sched_idle.bits, word);
	return usable & *indexed(wakeup->wakee->cpus_allowed.bits, word);
}

/*
 * The words of a set in wrap order, by how many are still to come: from
 * set->words down to 0. The start's word comes first and last, as two parts.
 */
static inline u32 scan_word(const struct scan_set *set, u32 left)
{
	u32 word = set->start / 64 + set->words - left;

	if (word >= set->first_word + set->words)
		word -= set->words;
	return word & (CPUMASK_WORDS - 1);
}

static inline u64 scan_bits(const struct scan_set *set, u32 left)
{
	u32 word = scan_word(set, left);
	u64 bits = *indexed(set->cpus->bits, word);

	if (set->except)
		bits &= ~*indexed(set->except->bits, word);
	if (left == set->words)
		bits &= bits_from(set->start);
	else if (left == 0)
		bits &= bits_below(set->start);
	return bits;
}

#define for_each_scan_word(left, set)                                          \
	for ((left) = (set)->words + 1; (left)-- && can_loop;)

/* The CPUs of those words, from the target or the one after it on. */
static inline void scan_init(struct scan_set *set,
			     const struct idle_search *search,
			     const struct cpumask __arena *cpus, u32 first_word,
			     u32 end_word)
{
	const struct state __arena *st = search->wakeup.st;

	set->cpus = cpus;
	set->except = 0;
	set->first_word = first_word;
	set->words = end_word - first_word;
	set->start = search->target + !!st->profile.scan_starts_after_target;
}

/* Is @cpu, which is free, to be left to a task that sleeps briefly? */
static inline bool pass_by(struct idle_search *search, u32 cpu)
{
	const struct wakeup *wakeup = &search->wakeup;
	u32 rule = wakeup->st->profile.sis_cache;

	if (!rule || !cpu_reserved(wakeup->st, cpu, wakeup->now))
		return false;
	if (rule == SIS_CACHE_RFC)
		return true;
	if (!search->passes_left)
		return false;
	search->passes_left--;
	if (search->reserved == NO_CPU)
		search->reserved = cpu;
	return true;
}

/* The usable CPUs of a word from the first on that is not passed by. */
static inline u64 unreserved(struct idle_search *search, u32 word, u64 usable)
{
	for (; usable && can_loop; usable &= usable - 1) {
		if (!pass_by(search, word * 64 + first_bit(usable)))
			break;
	}
	return usable;
}

/* Walk for a usable CPU, within the search's limit. */
verified_once u32 scan_for_cpu(struct idle_search *search on_stack,
			       const struct scan_set *set on_stack)
{
	const struct wakeup *wakeup = &search->wakeup;
	struct state __arena *st = wakeup->st;
	u32 seen = opaque(0), found = NO_CPU, left;

	for_each_scan_word(left, set) {
		u32 word = scan_word(set, left);
		u64 cpus = scan_bits(set, left);
		u64 usable;

		/* An LLC has far fewer CPUs than lie between its first and last. */
		if (!cpus)
			continue;
		usable = cpus & usable_word(wakeup, word);
		if (st->profile.scan_allowed_only)
			cpus &= *indexed(wakeup->wakee->cpus_allowed.bits,
					 word);
		if (st->profile.sis_cache)
			usable = unreserved(search, word, usable);
		if (usable) {
			found = word * 64 + first_bit(usable);
			cpus &= bits_below(found);
		}
		seen += count_bits(cpus);
		if (found != NO_CPU || seen > search->limit)
			break;
	}

	/* seen: those before the CPU that was found, or all there are. */
	if (found != NO_CPU && seen < search->limit) {
		seen++;
	} else if (found != NO_CPU || seen > search->limit) {
		found = NO_CPU;
		seen = search->limit;
		search->exhausted = true;
	} else {
		found = search->reserved;
	}
	scratch_of(st)->decision.scanned += seen;
	if (search->limit != UNLIMITED)
		search->limit -= seen;
	return found;
}

/* Did the walk meet @cpu's core at an earlier CPU? */
static inline bool core_visited(const struct idle_search *search,
				const struct scan_set *set, u32 cpu)
{
	struct cpu __arena *core = cpu_of(search->wakeup.st, cpu);
	u32 distance = (cpu - set->start) & (NR_CPUS - 1);
	u32 i;

	for (i = opaque(0); i < core->nr_siblings && can_loop; i++) {
		u32 sibling = *indexed(core->siblings, i & (NR_SIBLINGS - 1));

		if (((sibling - set->start) & (NR_CPUS - 1)) < distance &&
		    !(set->except && cpumask_test(set->except, sibling)) &&
		    task_allowed(search->wakeup.wakee, sibling))
			return true;
	}
	return false;
}

/*
 * Look at the CPUs of a core that is not idle. Without a fallback yet, the look
 * goes on behind the first busy CPU, for one.
 */
static inline void scan_busy_core(struct idle_search *search, u32 cpu)
{
	const struct wakeup *wakeup = &search->wakeup;
	struct state __arena *st = wakeup->st;
	struct cpu __arena *core = cpu_of(st, cpu);
	u32 i;

	for (i = opaque(0); i < core->nr_siblings && can_loop; i++) {
		u32 sibling = *indexed(core->siblings, i & (NR_SIBLINGS - 1));
		bool kept = st->profile.sis_cache == SIS_CACHE_RFC &&
			    cpu_reserved(st, sibling, wakeup->now);
		bool idle = available_idle_cpu(st, sibling) && !kept;

		scratch_of(st)->decision.scanned++;
		if (search->fallback == NO_CPU) {
			if (!task_allowed(wakeup->wakee, sibling))
				continue;
			if (!idle && !(sched_idle_counts(wakeup) && !kept &&
				       sched_idle_cpu(st, sibling)))
				continue;
			search->fallback = sibling;
		}
		if (!idle)
			break;
	}
}

/* Is the idle core, met at @cpu, to be left to a task that sleeps briefly? */
static inline bool pass_by_core(struct idle_search *search, u32 cpu)
{
	struct state __arena *st = search->wakeup.st;
	struct cpu __arena *core = cpu_of(st, cpu);
	u32 i;

	if (st->profile.sis_cache != SIS_CACHE_RFC)
		return pass_by(search, cpu);
	for (i = opaque(0); i < core->nr_siblings && can_loop; i++) {
		if (pass_by(search,
			    *indexed(core->siblings, i & (NR_SIBLINGS - 1))))
			return true;
	}
	return false;
}

/* Walk for a core all of whose CPUs are idle: its first allowed CPU met. */
verified_once u32 scan_for_core(struct idle_search *search on_stack,
				const struct scan_set *set on_stack)
{
	const struct wakeup *wakeup = &search->wakeup;
	struct state __arena *st = wakeup->st;
	u32 left;

	for_each_scan_word(left, set) {
		u32 word = scan_word(set, left);
		u64 cpus = scan_bits(set, left) &
			   *indexed(wakeup->wakee->cpus_allowed.bits, word);

		for (; cpus && can_loop; cpus &= cpus - 1) {
			u32 cpu = word * 64 + first_bit(cpus);

			if (cpumask_test(&st->root.idle_core, cpu) &&
			    !pass_by_core(search, cpu)) {
				scratch_of(st)->decision.scanned +=
					cpu_of(st, cpu)->nr_siblings;
				return cpu;
			}
			if (!core_visited(search, set, cpu))
				scan_busy_core(search, cpu);
		}
	}
	return NO_CPU;
}

/*
 * SIS_UTIL: how many CPUs of an LLC a search may look at, from the sum of its
 * CPUs' utilisation. For the balancer, at the end of a statistics pass over the
 * LLC's domain that is not a newly-idle one.
 */
static inline u32 nr_idle_scan_of(u64 util, u32 llc_size, u32 imbalance_pct)
{
	u64 average, taken;

	if (!llc_size)
		return 0;
	average = util / llc_size;
	taken = average * average * imbalance_pct * imbalance_pct /
		(10000ULL * SCHED_CAPACITY_SCALE);
	taken = min(taken, (u64)SCHED_CAPACITY_SCALE);
	return (SCHED_CAPACITY_SCALE - taken) * llc_size / SCHED_CAPACITY_SCALE;
}

/* The domain that carries the waking CPU's scan cost. */
static inline struct sched_domain __arena *
scan_cost_domain(struct state __arena *st, u32 this_cpu)
{
	return cpu_domain(st, this_cpu, cpu_llc(st, this_cpu)->domain_level);
}

static inline bool has_llc_domain(struct state __arena *st, u32 cpu)
{
	return cpu_llc(st, cpu)->domain_level < NR_LEVELS;
}

/*
 * How long the waking CPU may expect to be idle. A busy CPU has made no sample
 * for some jiffies: its prediction is halved for each of them.
 */
static inline u64 predicted_idle(const struct wakeup *wakeup)
{
	struct state __arena *st = wakeup->st;
	struct rq __arena *rq = cpu_rq(st, wakeup->this_cpu);
	u64 now = jiffies(st, wakeup->now);

	if (!st->profile.sis_prop_wakes)
		return rq->avg_idle / 512;
	if (rq->wake_stamp < now) {
		u64 gap = now - rq->wake_stamp;

		rq->wake_avg_idle >>= min(gap, 63ULL);
		rq->wake_stamp = now;
	}
	return rq->wake_avg_idle;
}

/*
 * SIS_PROP: as many CPUs as the idle time pays for; the last is not looked at.
 */
static inline u32 scan_limit_prop(const struct idle_search *search)
{
	struct state __arena *st = search->wakeup.st;
	u32 this_cpu = search->wakeup.this_cpu;
	u64 cost, span_avg, nr = 4;

	if (!has_llc_domain(st, this_cpu))
		return 0;
	cost = scan_cost_domain(st, this_cpu)->avg_scan_cost + 1;
	span_avg = search->llc->size * predicted_idle(&search->wakeup);
	if (span_avg > 4 * cost)
		nr = span_avg / cost;
	return min(nr, (u64)UNLIMITED) - 1;
}

/* How many CPUs the search may look at; 0 = it need not begin. */
static inline u32 scan_limit(const struct idle_search *search)
{
	const struct profile __arena *profile = &search->wakeup.st->profile;

	if (profile->sis_util)
		return search->llc->nr_idle_scan;
	if (profile->sis_prop)
		return scan_limit_prop(search);
	return opaque(UNLIMITED);
}

static inline bool scan_limit_is_prop(const struct state __arena *st)
{
	return st->profile.sis_prop && !st->profile.sis_util;
}

/*
 * SIS_PROP: account for the last decision's scan. For the engine, which alone
 * knows the time it took: that of decision.timed_scan CPUs. A scan that ran out
 * of CPUs is not accounted for.
 */
static inline void record_scan_cost(struct state __arena *st, u32 this_cpu,
				    u64 scan_ns)
{
	struct rq __arena *rq = cpu_rq(st, this_cpu);

	if (!scratch_of(st)->decision.scan_timed)
		return;
	if (st->profile.sis_prop_wakes)
		rq->wake_avg_idle = sub_positive(rq->wake_avg_idle, scan_ns);
	update_avg(&scan_cost_domain(st, this_cpu)->avg_scan_cost, scan_ns);
}

/* Are all siblings of @cpu idle? It may itself be busy, or about to idle. */
verified_once bool is_core_idle(struct state __arena *st in_arena, u32 cpu)
{
	struct cpu __arena *core = cpu_of(st, cpu);
	u32 i;

	for (i = opaque(0); i < core->nr_siblings && can_loop; i++) {
		u32 sibling = *indexed(core->siblings, i & (NR_SIBLINGS - 1));

		if (sibling != cpu && !available_idle_cpu(st, sibling))
			return false;
	}
	return true;
}

/*
 * What searches leave out since one has failed, SIS_FILTER of 2022. A CPU is
 * back when it starts to idle, unless another one of its core that is free
 * stands for the core already.
 */
static inline void filter_take_back(struct state __arena *st, u32 cpu)
{
	struct cpu __arena *core = cpu_of(st, cpu);
	u32 i;

	for (i = opaque(0); i < core->nr_siblings && can_loop; i++) {
		u32 sibling = *indexed(core->siblings, i & (NR_SIBLINGS - 1));
		bool free = sibling == cpu || available_idle_cpu(st, sibling) ||
			    sched_idle_cpu(st, sibling);

		if (free && !cpumask_test(&st->root.filtered, sibling))
			return;
	}
	cpumask_clear(&st->root.filtered, cpu);
}

/* A search of all of @llc has found nothing: the next ones leave it out. */
static inline void filter_llc(struct state __arena *st,
			      const struct llc __arena *llc)
{
	u32 word;

	for_each_word(word, llc)
		atomic_or(indexed(st->root.filtered.bits, word),
			  *indexed(llc->cpus.bits, word));
}

/*
 * For the engine, when @cpu starts to idle. has_idle_cores is optimistic: only
 * a search that finds no idle core takes it back.
 */
static inline void update_idle_core(struct state __arena *st, u32 cpu)
{
	struct llc __arena *llc = cpu_llc(st, cpu);

	if (st->root.smt_active && !llc->has_idle_cores &&
	    is_core_idle(st, cpu))
		llc->has_idle_cores = 1;
	if (st->root.smt_active && st->profile.scan_filter)
		filter_take_back(st, cpu);
}

#endif
