/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * idle_sibling.h: select_idle_sibling(), which CPU of the target's LLC a wakee
 * gets.
 *
 * Cheap candidates first (target, prev, a stacked per-CPU kthread,
 * recent_used_cpu), then the LLC: since v5.19 prev's siblings and one walk for
 * cores or CPUs, before that a walk for cores, one for CPUs and the target's
 * siblings, of which v3.10 had no walk for CPUs. The short task rules of 2022 to 2024 stop it where their series
 * did; "busy" in them is SIS_UTIL's idea of it.
 *
 * Limits: CPUs of different capacity are compared as in v6.0 for every kernel
 * before v7.3, and without uclamp. Where v7.3 limits their search and looks for
 * an idle core it reads nr_idle_scan and has_idle_cores of the target's LLC; the
 * kernel keeps them for the whole domain that shows every capacity, which is
 * the same thing while that domain has one LLC.
 */
#ifndef PLACEWISE_IDLE_SIBLING_H
#define PLACEWISE_IDLE_SIBLING_H

#include "group.h"
#include "idle_scan.h"
#include "pelt.h"
#include "short_task.h"

static inline u32 search_found(const struct idle_search *search, u32 cpu,
			       enum search_reason reason)
{
	scratch_of(search->wakeup.st)->decision.search = reason;
	return cpu;
}

/* What a wakee needs has become less while it slept. */
static subprogram void sync_entity_load_avg(struct state __arena *st,
					    struct task __arena *p)
{
	if (p->avg.last_update_time)
		sync_task_avg(p, task_cfs_rq(st, p));
}

/* Is the wakee's utilisation no more than 80 % of @cpu? */
static inline bool wakee_fits(const struct wakeup *wakeup, u32 cpu)
{
	return fits_capacity(task_util_est(wakeup->wakee),
			     capacity_of(wakeup->st, cpu));
}

/* asym_fits_cpu() on a machine with unequal CPUs: others need not call it. */
verified_once bool asym_wakee_fits(const struct wakeup *wakeup on_stack,
				   u32 cpu)
{
	struct state __arena *st = wakeup->st;

	if (st->profile.asym_wants_idle_core && st->root.smt_active &&
	    !is_core_idle(st, cpu))
		return false;
	return wakee_fits(wakeup, cpu);
}

/* On machines with unequal CPUs: may the wakee have @cpu without a search? */
static inline bool asym_fits_cpu(const struct wakeup *wakeup, u32 cpu)
{
	return !wakeup->st->root.asym_capacity || asym_wakee_fits(wakeup, cpu);
}

/* Without clusters all CPUs of an LLC share everything they can share. */
static inline bool cluster_rules(const struct state __arena *st)
{
	return st->profile.scan_cluster_first && st->root.cluster_active;
}

static inline bool cpus_share_resources(struct state __arena *st, u32 a, u32 b)
{
	return cpu_of(st, a)->cluster_first == cpu_of(st, b)->cluster_first;
}

/* A CPU near enough to the target, and free for the wakee. */
static inline bool cache_affine_and_usable(const struct idle_search *search,
					   u32 cpu)
{
	const struct wakeup *wakeup = &search->wakeup;

	return cpu != search->target &&
	       cpus_share_cache(wakeup->st, cpu, search->target) &&
	       cpu_usable(wakeup, cpu) && asym_fits_cpu(wakeup, cpu);
}

/* In another cluster a candidate only serves when the search finds nothing. */
static inline bool second_choice(const struct idle_search *search, u32 cpu)
{
	struct state __arena *st = search->wakeup.st;

	return cluster_rules(st) &&
	       !cpus_share_resources(st, cpu, search->target);
}

/*
 * A per-CPU kthread that wakes who waits for it, on the CPU where that one
 * waits, is about to sleep: I/O completion.
 */
static inline bool kthread_stacks(const struct wakeup *wakeup)
{
	struct state __arena *st = wakeup->st;

	if (st->profile.kthread_stacking == KTHREAD_STACKING_NONE ||
	    !wakeup->waker->per_cpu_kthread)
		return false;
	if (st->profile.kthread_stacking == KTHREAD_STACKING_TASK_CONTEXT &&
	    wakeup->in_interrupt)
		return false;
	return wakeup->prev == wakeup->this_cpu &&
	       cpu_rq(st, wakeup->this_cpu)->nr_running <= 1 &&
	       asym_fits_cpu(wakeup, wakeup->prev);
}

/* Does the wakee's process send it to another CPU than it comes from? */
static inline bool redirected(const struct wakeup *wakeup)
{
	return wakeup->prev != scratch_of(wakeup->st)->decision.prev_cpu;
}

/* The wakee's recent_used_cpu if it is a candidate; updates it by the way. */
static inline u32 recent_used_candidate(const struct idle_search *search)
{
	const struct wakeup *wakeup = &search->wakeup;
	const struct profile __arena *profile = &wakeup->st->profile;
	struct task __arena *p = wakeup->wakee;
	u32 recent = p->recent_used_cpu;
	u32 tested = profile->recent_used_tests_prev ? wakeup->prev : recent;

	if (profile->recent_used == RECENT_USED_NONE)
		return NO_CPU;
	if (profile->recent_used == RECENT_USED_ALWAYS)
		p->recent_used_cpu = wakeup->prev;
	if (recent == wakeup->prev || redirected(wakeup) ||
	    !cache_affine_and_usable(search, recent) ||
	    !task_allowed(p, tested))
		return NO_CPU;
	p->recent_used_cpu = wakeup->prev;
	return recent;
}

/* The lowest domain that shows every capacity; NR_LEVELS if there is none. */
static inline u32 asym_capacity_level(struct state __arena *st, u32 cpu)
{
	u32 level;

	for (level = opaque(0); level < cpu_of(st, cpu)->nr_domains &&
				level < NR_LEVELS && can_loop;
	     level++) {
		struct sched_domain __arena *sd = cpu_domain(st, cpu, level);

		if (domain_span(st, sd)->flags & SD_ASYM_CPUCAPACITY_FULL)
			return level;
	}
	return NR_LEVELS;
}

/*
 * What a usable CPU is worth where CPUs are unequal: an idle core counts more
 * than enough capacity. Kernels that do not ask for one take all cores for it.
 */
enum asym_fit {
	ASYM_MISFIT,
	ASYM_FITS,
	ASYM_IDLE_CORE_MISFIT,
	ASYM_IDLE_CORE_FITS,
};

static inline enum asym_fit asym_fit(const struct idle_search *search, u32 cpu)
{
	const struct wakeup *wakeup = &search->wakeup;

	if (search->has_idle_core && !is_core_idle(wakeup->st, cpu))
		return wakee_fits(wakeup, cpu) ? ASYM_FITS : ASYM_MISFIT;
	return wakee_fits(wakeup, cpu) ? ASYM_IDLE_CORE_FITS
				       : ASYM_IDLE_CORE_MISFIT;
}

/* The best CPU so far of a search among unequal ones. */
struct asym_choice {
	u64 capacity;
	u32 fit; /* enum asym_fit */
	u32 cpu;
};

/* Look at a word's usable CPUs; true once nothing better can come. */
static inline bool asym_consider_word(const struct idle_search *search,
				      struct asym_choice *best, u32 word,
				      u64 usable)
{
	for (; usable && can_loop; usable &= usable - 1) {
		u32 cpu = word * 64 + first_bit(usable);
		u64 capacity = capacity_of(search->wakeup.st, cpu);
		u32 fit = asym_fit(search, cpu);

		if (fit < best->fit ||
		    (fit == best->fit && capacity <= best->capacity))
			continue;
		best->capacity = capacity;
		best->fit = fit;
		best->cpu = cpu;
		if (fit == ASYM_IDLE_CORE_FITS)
			return true;
	}
	return false;
}

/* The lowest @nr of @bits. */
static inline u64 lowest_bits(u64 bits, u32 nr)
{
	u64 rest = bits;

	for (; rest && nr && can_loop; nr--)
		rest &= rest - 1;
	return bits & ~rest;
}

/*
 * Walk a domain with unequal CPUs within the search's limit. A walk that meets
 * no idle core ends the belief in them.
 */
static subprogram u32 scan_unequal(struct idle_search *search,
				   const struct sched_span __arena *span)
{
	const struct wakeup *wakeup = &search->wakeup;
	struct state __arena *st = wakeup->st;
	struct asym_choice best = {.cpu = search->target};
	u32 left;
	struct scan_set set = {
		.cpus = &span->cpus,
		.first_word = span->first_word,
		.words = span->end_word - span->first_word,
		.start = search->target,
	};

	for_each_scan_word(left, &set) {
		u32 word = scan_word(&set, left);
		u64 cpus = scan_bits(&set, left) &
			   *indexed(wakeup->wakee->cpus_allowed.bits, word);

		if (search->limit != UNLIMITED) {
			cpus = lowest_bits(cpus, search->limit);
			search->limit -= count_bits(cpus);
		}
		scratch_of(st)->decision.scanned += count_bits(cpus);
		if (asym_consider_word(search, &best, word,
				       cpus & usable_word(wakeup, word)))
			return best.cpu;
	}
	if (search->has_idle_core && best.fit < ASYM_IDLE_CORE_MISFIT)
		search->llc->has_idle_cores = 0;
	return best.cpu;
}

/*
 * The first usable CPU the wakee fits on, else the largest usable one. While
 * there may be an idle core the walk for it is not limited.
 */
static inline u32 select_idle_capacity(struct idle_search *search,
				       const struct sched_span __arena *span)
{
	struct state __arena *st = search->wakeup.st;

	search->has_idle_core = st->profile.asym_wants_idle_core &&
				st->root.smt_active &&
				search->llc->has_idle_cores;
	scratch_of(st)->decision.has_idle_cores = search->has_idle_core;
	if (st->profile.asym_scan_limited) {
		search->limit = scan_limit(search);
		scratch_of(st)->decision.scan_limit = search->limit;
		if (!search->limit)
			return search->target;
	}
	if (search->has_idle_core)
		search->limit = opaque(UNLIMITED);
	return scan_unequal(search, span);
}

/* The first usable sibling of @cpu, which shares the target's LLC. */
static subprogram u32 select_idle_smt(const struct idle_search *search, u32 cpu)
{
	const struct wakeup *wakeup = &search->wakeup;
	struct state __arena *st = wakeup->st;
	struct cpu __arena *core = cpu_of(st, cpu);
	u32 i;

	for (i = opaque(0); i < core->nr_siblings && can_loop; i++) {
		u32 sibling = *indexed(core->siblings, i & (NR_SIBLINGS - 1));

		if (sibling == cpu && st->profile.smt_scan_skips_prev)
			continue;
		if (task_allowed(wakeup->wakee, sibling) &&
		    cpu_usable(wakeup, sibling))
			return sibling;
	}
	return NO_CPU;
}

/* Utilisation has taken more than two fifths of the search's limit. */
static inline bool llc_is_busy(const struct idle_search *search)
{
	return 5 * ((u64)search->limit + 1) < 3 * (u64)search->llc->size;
}

static inline bool target_current_is_short(const struct idle_search *search)
{
	struct state __arena *st = search->wakeup.st;
	u32 current = cpu_rq(st, search->target)->curr;

	return is_short_task(st, task_of(st, current), search->target);
}

static inline bool wakee_is_short(const struct idle_search *search)
{
	const struct wakeup *wakeup = &search->wakeup;

	return is_short_task(wakeup->st, wakeup->wakee, search->target);
}

/*
 * The waking CPU is the target, so its current is the waker: may both share it?
 */
static inline bool waker_and_wakee_short(const struct idle_search *search)
{
	const struct wakeup *wakeup = &search->wakeup;

	return search->target == wakeup->this_cpu &&
	       cpu_rq(wakeup->st, search->target)->nr_running <= 1 &&
	       target_current_is_short(search) && wakee_is_short(search);
}

/* The rules that stand before the LLC is searched at all. */
static __always_inline bool
short_task_prevents_search(const struct idle_search *search)
{
	struct state __arena *st = search->wakeup.st;

	switch (st->profile.scan_short) {
	case SCAN_SHORT_V4:
		return !search->has_idle_core &&
		       cpu_rq(st, search->target)->nr_running == 1 &&
		       target_current_is_short(search) &&
		       wakee_is_short(search);
	case SCAN_SHORT_CURRENT:
		return waker_and_wakee_short(search) &&
		       wake_each_other(&search->wakeup);
	default:
		return false;
	}
}

/* The rules that stand inside the search, where its limit is known. */
static __always_inline bool
short_task_stops_scan(const struct idle_search *search)
{
	struct state __arena *st = search->wakeup.st;

	if (search->has_idle_core)
		return false;
	switch (st->profile.scan_short) {
	case SCAN_SHORT_V1:
		return llc_is_busy(search) && wakee_is_short(search) &&
		       target_current_is_short(search);
	case SCAN_SHORT_V2:
		return llc_is_busy(search) &&
		       cpu_rq(st, search->target)->nr_running == 1 &&
		       target_current_is_short(search);
	case SCAN_SHORT_V5:
		return llc_is_busy(search) && waker_and_wakee_short(search);
	case SCAN_SHORT_SYNC:
		return search->wakeup.sync && waker_and_wakee_short(search) &&
		       wake_each_other(&search->wakeup);
	default:
		return false;
	}
}

/* Time a SIS_PROP scan for a CPU, unless it ran out of CPUs. */
static inline u32 timed_scan_for_cpu(struct idle_search *search,
				     const struct scan_set *set)
{
	struct decision __arena *decision =
		&scratch_of(search->wakeup.st)->decision;
	u32 before = decision->scanned;
	u32 cpu = scan_for_cpu(search, set);

	decision->scan_timed =
		scan_limit_is_prop(search->wakeup.st) && !search->exhausted;
	decision->timed_scan = decision->scanned - before;
	return cpu;
}

/*
 * One walk over a part of the LLC: for a core while there may be an idle one.
 */
static inline u32 scan_part(struct idle_search *search,
			    const struct scan_set *set)
{
	u32 cpu;

	if (search->has_idle_core) {
		cpu = scan_for_core(search, set);
		if (cpu != NO_CPU)
			return search_found(search, cpu, SEARCH_IDLE_CORE);
	} else {
		cpu = timed_scan_for_cpu(search, set);
		if (cpu != NO_CPU)
			return search_found(search, cpu, SEARCH_IDLE_CPU);
	}
	return NO_CPU;
}

/* The group of the LLC's domain that holds the target, if that is a cluster. */
static inline struct sched_group __arena *
target_cluster(const struct idle_search *search)
{
	struct state __arena *st = search->wakeup.st;
	struct sched_domain __arena *sd;
	struct sched_group __arena *group;

	if (!cluster_rules(st))
		return 0;
	sd = cpu_domain(st, search->target, search->llc->domain_level);
	group = group_of(st, sd->local_group);
	return group->flags & SD_CLUSTER ? group : 0;
}

static inline bool filtered(const struct idle_search *search)
{
	const struct state __arena *st = search->wakeup.st;

	return st->profile.scan_filter && st->root.smt_active;
}

/* Walk the target's cluster, then the LLC without it. */
static inline u32 scan_llc(struct idle_search *search)
{
	const struct llc __arena *llc = search->llc;
	const struct sched_group __arena *cluster = target_cluster(search);
	struct scan_set set;
	u32 cpu;

	if (cluster) {
		scan_init(&set, search, &cluster->cpus, cluster->first_word,
			  cluster->end_word);
		cpu = scan_part(search, &set);
		if (cpu != NO_CPU || search->exhausted)
			return cpu;
	}
	scan_init(&set, search, &llc->cpus, llc->first_word, llc->end_word);
	if (cluster)
		set.except = &cluster->cpus;
	else if (filtered(search))
		set.except = &search->wakeup.st->root.filtered;
	return scan_part(search, &set);
}

/*
 * One walk for a core or for a CPU. A walk for a core that finds none ends the
 * belief in idle cores, though affinity may have hidden one.
 */
verified_once u32 search_within_limit(struct idle_search *search on_stack)
{
	struct state __arena *st = search->wakeup.st;
	u32 cpu;

	if (st->profile.sis_cache == SIS_CACHE_V2)
		search->passes_left = (search->limit + 1) / 2;
	if (short_task_stops_scan(search))
		return search_found(search, search->target, SEARCH_SHORT);

	cpu = scan_llc(search);
	if (cpu != NO_CPU || search->exhausted)
		return cpu;
	if (filtered(search) && search->fallback == NO_CPU)
		filter_llc(st, search->llc);
	if (!search->has_idle_core)
		return NO_CPU;
	search->llc->has_idle_cores = 0;
	if (search->fallback == NO_CPU)
		return NO_CPU;
	return search_found(search, search->fallback, SEARCH_IDLE_CPU);
}

/* Since v5.19. In BPF a limit of 0 costs no call. */
static __always_inline u32 select_idle_cpu(struct idle_search *search)
{
	struct state __arena *st = search->wakeup.st;

	if (!search->has_idle_core || !scan_limit_is_prop(st))
		search->limit = scan_limit(search);
	scratch_of(st)->decision.scan_limit = search->limit;
	return search->limit ? search_within_limit(search) : NO_CPU;
}

static inline u32 search_smt_of_prev_then_merged(struct idle_search *search)
{
	const struct wakeup *wakeup = &search->wakeup;
	struct state __arena *st = wakeup->st;
	u32 cpu;

	if (st->root.smt_active && !search->has_idle_core &&
	    cpus_share_cache(st, wakeup->prev, search->target)) {
		cpu = select_idle_smt(search, wakeup->prev);
		if (cpu != NO_CPU)
			return search_found(search, cpu, SEARCH_SMT_SIBLING);
	}
	if (short_task_prevents_search(search))
		return search_found(search, search->target, SEARCH_SHORT);
	return select_idle_cpu(search);
}

/* Before v5.19: the walk for cores gives up on a core at its first busy CPU. */
static inline u32 select_idle_core(struct idle_search *search,
				   const struct scan_set *set)
{
	u32 cpu;

	if (!search->has_idle_core)
		return NO_CPU;
	search->fallback = search->target;
	cpu = scan_for_core(search, set);
	if (cpu == NO_CPU)
		search->llc->has_idle_cores = 0;
	return cpu;
}

static inline u32 search_core_cpu_smt_of_target(struct idle_search *search)
{
	struct state __arena *st = search->wakeup.st;
	const struct llc __arena *llc = search->llc;
	struct scan_set set;
	u32 cpu;

	scan_init(&set, search, &llc->cpus, llc->first_word, llc->end_word);
	cpu = select_idle_core(search, &set);
	if (cpu != NO_CPU)
		return search_found(search, cpu, SEARCH_IDLE_CORE);

	search->limit = scan_limit(search);
	scratch_of(st)->decision.scan_limit = search->limit;
	if (short_task_prevents_search(search) || short_task_stops_scan(search))
		return search_found(search, search->target, SEARCH_SHORT);
	if (search->limit) {
		cpu = timed_scan_for_cpu(search, &set);
		if (cpu != NO_CPU)
			return search_found(search, cpu, SEARCH_IDLE_CPU);
	}
	if (!st->root.smt_active)
		return NO_CPU;
	cpu = select_idle_smt(search, search->target);
	if (cpu == NO_CPU)
		return NO_CPU;
	return search_found(search, cpu, SEARCH_SMT_SIBLING);
}

static inline u32 first_allowed_sibling(const struct idle_search *search,
					u32 cpu)
{
	struct cpu __arena *core = cpu_of(search->wakeup.st, cpu);
	u32 i;

	for (i = opaque(0); i < core->nr_siblings && can_loop; i++) {
		u32 sibling = *indexed(core->siblings, i & (NR_SIBLINGS - 1));

		if (task_allowed(search->wakeup.wakee, sibling))
			return sibling;
	}
	return cpu;
}

/*
 * v3.10: the groups of each level below the LLC's, which are cores and then the
 * threads of the target's. A free CPU beside a busy one elsewhere stays unseen.
 * The walk for cores never rests: there is no has_idle_cores yet.
 */
static inline u32 search_core_smt_of_target(struct idle_search *search)
{
	const struct llc __arena *llc = search->llc;
	struct scan_set set;
	u32 cpu;

	scan_init(&set, search, &llc->cpus, llc->first_word, llc->end_word);
	search->fallback = search->target;
	cpu = scan_for_core(search, &set);
	if (cpu != NO_CPU)
		return search_found(search, first_allowed_sibling(search, cpu),
				    SEARCH_IDLE_CORE);
	if (!search->wakeup.st->root.smt_active)
		return NO_CPU;
	cpu = select_idle_smt(search, search->target);
	if (cpu == NO_CPU)
		return NO_CPU;
	return search_found(search, cpu, SEARCH_SMT_SIBLING);
}

/* A search that begins: of its LLC it has seen nothing yet. */
static inline void search_begin(struct idle_search *search)
{
	search->limit = opaque(UNLIMITED);
	search->fallback = NO_CPU;
	search->reserved = NO_CPU;
	search->passes_left = UNLIMITED;
	search->exhausted = false;
	search->has_idle_core = search->wakeup.st->root.smt_active &&
				search->llc->has_idle_cores;
}

/* The other LLCs of the target's node, each in a search of its own. */
static __always_inline u32 select_idle_node(struct idle_search *search)
{
	struct state __arena *st = search->wakeup.st;
	u32 target = search->target;
	u32 level = search->llc->domain_level + 1;
	const struct sched_domain __arena *sd = cpu_domain(st, target, level);
	const struct sched_span __arena *span = domain_span(st, sd);
	u32 i, cpu;

	if (level >= cpu_of(st, target)->nr_domains || span->flags & SD_NUMA)
		return NO_CPU;
	for (i = opaque(0); i < span->nr_groups && i < NR_CPUS && can_loop;
	     i++) {
		search->target = first_cpu(st, nth_group(span, sd, i));
		if (search->target == NO_CPU ||
		    cpus_share_cache(st, search->target, target))
			continue;
		search->llc = cpu_llc(st, search->target);
		search_begin(search);
		cpu = select_idle_cpu(search);
		if (cpu != NO_CPU)
			return cpu;
	}
	return NO_CPU;
}

static inline u32 search_llc(struct idle_search *search)
{
	struct state __arena *st = search->wakeup.st;

	search_begin(search);
	scratch_of(st)->decision.has_idle_cores = search->has_idle_core;
	switch (st->profile.scan_order) {
	case SCAN_CORE_SMT_OF_TARGET:
		return search_core_smt_of_target(search);
	case SCAN_CORE_CPU_SMT_OF_TARGET:
		return search_core_cpu_smt_of_target(search);
	default:
		return search_smt_of_prev_then_merged(search);
	}
}

/* The search behind the candidates, which are looked at whatever it costs. */
static inline u32 search_counted(struct idle_search *search)
{
	struct state __arena *st = search->wakeup.st;
	struct decision __arena *decision = &scratch_of(st)->decision;
	u32 before = decision->scanned;
	u32 cpu = search_llc(search);

	if (cpu == NO_CPU && st->profile.scan_node)
		cpu = select_idle_node(search);
	decision->llc_scanned = decision->scanned - before;
	return cpu;
}

verified_once u32 select_idle_sibling(struct idle_search *search on_stack,
				      u32 target)
{
	const struct wakeup *wakeup = &search->wakeup;
	struct state __arena *st = wakeup->st;
	u32 second_prev = NO_CPU, second_recent = NO_CPU;
	u32 recent, level, cpu;

	search->llc = cpu_llc(st, target);
	search->target = target;
	search->limit = opaque(UNLIMITED);
	if (st->root.asym_capacity)
		sync_entity_load_avg(st, wakeup->wakee);
	if (cpu_usable(wakeup, target) && asym_fits_cpu(wakeup, target))
		return search_found(search, target, SEARCH_TARGET);

	if (cache_affine_and_usable(search, wakeup->prev)) {
		if (!second_choice(search, wakeup->prev))
			return search_found(search, wakeup->prev, SEARCH_PREV);
		second_prev = wakeup->prev;
	}

	if (kthread_stacks(wakeup))
		return search_found(search, wakeup->prev, SEARCH_KTHREAD);

	recent = recent_used_candidate(search);
	if (recent != NO_CPU) {
		if (!second_choice(search, recent))
			return search_found(search, recent, SEARCH_RECENT_USED);
		second_recent = recent;
	}

	if (st->root.asym_capacity) {
		level = asym_capacity_level(st, target);
		if (level < NR_LEVELS) {
			struct sched_domain __arena *sd =
				cpu_domain(st, target, level);

			cpu = select_idle_capacity(search, domain_span(st, sd));
			return search_found(search, cpu, SEARCH_ASYM_CAPACITY);
		}
	}

	if (!has_llc_domain(st, target))
		return search_found(search, target, SEARCH_FAILED);

	cpu = search_counted(search);
	if (cpu != NO_CPU)
		return cpu;
	if (second_prev != NO_CPU)
		return search_found(search, second_prev, SEARCH_FALLBACK);
	if (second_recent != NO_CPU)
		return search_found(search, second_recent, SEARCH_FALLBACK);
	return search_found(search, target, SEARCH_FAILED);
}

#endif
