/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * balance.h: when the load balancer runs, and what one attempt does.
 *
 * What it balances, here for CPU 0 of two sockets with two LLCs each: at each
 * level, the CPU's own (local) group against the others of its domain, which
 * are the domains one level below.
 *
 *   NUMA   [ LLC 0, LLC 1 ]            <---------->  [ LLC 2, LLC 3 ]
 *                 |
 *   PKG    [ LLC 0 ]       <------>  [ LLC 1 ]
 *                 |
 *   MC     [ core 0 ] <--> [ core 1 ] <--> ...   one LLC
 *                 |
 *   SMT    [ CPU 0 ] <--> [ CPU 1 ]
 *
 * A pass goes upwards from SMT (PKG is DIE before v6.7). At each level one CPU of
 * the local group pulls for all of it, or a CPU that goes idle for itself
 * (should_we_balance), and it pulls from one CPU of the busiest other group.
 *
 * Who calls whom:
 *
 *   tick        trigger_load_balance ---> rebalance_domains_start/_next/...
 *   CPU idles   newidle_balance_start/_next/...          |
 *               nohz.h                                   |
 *                  each level that is due ---> load_balance
 *                        should_we_balance
 *                        busiest.h: from where, how much (from v5.5 on)
 *                        balance_legacy.h: the same, before
 *                        detach.h: which tasks
 *                        need_active_balance
 *
 * The engine owns time and run queues. It walks the levels with the _next
 * functions, calls load_balance() for each, carries out what stands in
 * state.balance (tasks leave in that order and are enqueued in reverse), and
 * reports the end of the level; so every level sees the moves of the one below.
 *
 * Kernels: all. Limits: see busiest.h and balance_legacy.h; a newly-idle
 * pass that raises a level's recorded cost also restarts the second after
 * which that cost decays (before v5.17 it did not); failures to move a misfit
 * task never count (as from v6.12); a lock of the NUMA levels that is taken
 * inside an attempt (v6.19 on) is released before the engine moves the tasks; a
 * misfit task may go to a CPU whose sibling is busy (not so from v7.3 on).
 */
#ifndef PLACEWISE_BALANCE_H
#define PLACEWISE_BALANCE_H

#include "balance_legacy.h"
#include "busiest.h"
#include "detach.h"
#include "newidle_random.h"
#include "shared_runq.h"

#define MAX_PINNED_INTERVAL 512 /* ms */
#define NSEC_PER_SEC 1000000000
#define NSEC_PER_MSEC 1000000

enum lb_outcome {
	LB_AGAIN,    /* all tasks of the source are pinned, others may not be */
	LB_BALANCED, /* nothing to do, or affinity forbids it */
	LB_TRIED,    /* a source was found; perhaps something moves */
};

/*
 * The first idle CPU that balances for the local group, of a fully idle core if
 * @whole_core.
 */
static inline u32 first_idle_cpu(struct state __arena *st,
				 const struct lb_env *env, bool whole_core)
{
	const struct sched_group __arena *group =
		group_of(st, env->sd->local_group);
	u32 word;

	for_each_word(word, group) {
		u64 bits = *indexed(group->balance_mask.bits, word) &
			   lb_cpus(st, env, word) &
			   *indexed(st->root.idle.bits, word);

		if (whole_core)
			bits &= *indexed(st->root.idle_core.bits, word);
		if (bits)
			return word * 64 + first_bit(bits);
	}
	return NO_CPU;
}

static inline u32 group_balance_cpu(struct state __arena *st,
				    const struct lb_env *env)
{
	const struct sched_group __arena *group =
		group_of(st, env->sd->local_group);
	u32 word;

	for_each_word(word, group) {
		u64 bits = *indexed(group->balance_mask.bits, word) &
			   *indexed(st->root.online.bits, word);

		if (bits)
			return word * 64 + first_bit(bits);
	}
	return NO_CPU;
}

/*
 * One CPU of each group balances it: the first idle one, else the first one. A
 * newly idle one always does: from v6.0 on not once work has arrived, but that is
 * asked before the pass looks at any run queue, when no time has passed yet.
 */
verified_once bool should_we_balance(struct state __arena *st in_arena,
				     const struct lb_env *env on_stack)
{
	u32 cpu = NO_CPU;

	if (!(lb_cpus(st, env, cpumask_word(env->dst_cpu)) >>
		      (env->dst_cpu & 63) &
	      1))
		return false;
	if (env->idle == CPU_NEWLY_IDLE)
		return true;
	if (st->profile.balance_smt &&
	    !(env->span->flags & SD_SHARE_CPUCAPACITY))
		cpu = first_idle_cpu(st, env, true);
	if (cpu == NO_CPU)
		cpu = first_idle_cpu(st, env, false);
	if (cpu == NO_CPU)
		cpu = group_balance_cpu(st, env);
	return cpu == env->dst_cpu;
}

/* The mark that affinity stands in the way, for the level above @env's. */
static inline void set_parent_imbalance(struct state __arena *st,
					const struct lb_env *env, u32 this_cpu,
					bool imbalance)
{
	struct sched_group __arena *group;

	if (env->level + 1 >= cpu_of(st, this_cpu)->nr_domains)
		return;
	group = group_capacity_of(
		st, cpu_domain(st, this_cpu, env->level + 1)->local_group);
	if (group->imbalance != imbalance)
		group->imbalance = imbalance;
}

/* Is there a CPU left to pull from outside the local group? */
static inline bool other_sources_remain(struct state __arena *st,
					const struct lb_env *env)
{
	const struct sched_group __arena *group =
		group_of(st, env->sd->local_group);
	u32 word;

	for_each_word(word, env->span) {
		if (lb_cpus(st, env, word) &
		    ~*indexed(group->balance_mask.bits, word))
			return true;
	}
	return false;
}

/*
 * Take tasks off env's source, also for neighbours where pinned ones may run.
 */
verified_once enum lb_outcome pull_tasks(struct state __arena *st in_arena,
					 struct lb_env *env on_stack,
					 u32 this_cpu)
{
	struct cpumask __arena *excluded = &scratch_of(st)->balance.excluded;
	u32 nr_running = cpu_rq(st, env->src_cpu)->nr_running;
	u32 i;

	env->loop_max = min(nr_running, st->profile.nr_migrate);
	for (i = opaque(0); i < NR_CPUS && can_loop; i++) {
		env->loop = 0;
		env->new_dst_cpu = NO_CPU;
		rq_lock(st, env->src_cpu);
		detach_tasks(st, env);
		rq_unlock(st, env->src_cpu);
		if (env->new_dst_cpu == NO_CPU || env->imbalance <= 0)
			break;
		cpumask_set(excluded, env->dst_cpu);
		env->dst_cpu = env->new_dst_cpu;
	}
	if (env->some_pinned && env->imbalance > 0)
		set_parent_imbalance(st, env, this_cpu, true);
	if (!env->all_pinned)
		return LB_TRIED;
	cpumask_set(excluded, env->src_cpu);
	return other_sources_remain(st, env) ? LB_AGAIN : LB_BALANCED;
}

/* Take the lock of the NUMA levels; false if another CPU holds it. */
static inline bool serialize_trylock(struct state __arena *st)
{
	return !atomic_swap(&st->root.serialize_busy, 1);
}

/* Is a level's lock taken around an attempt? */
static inline bool serialized_around(struct state __arena *st,
				     const struct sched_domain __arena *sd)
{
	return !st->profile.serialize_inside &&
	       domain_span(st, sd)->flags & SD_SERIALIZE;
}

/* Inside an attempt it is taken once, for all the sources that are tried. */
static inline bool serialize_attempt(struct state __arena *st,
				     struct lb_env *env)
{
	if (!st->profile.serialize_inside ||
	    !(env->span->flags & SD_SERIALIZE) || env->serialized)
		return true;
	env->serialized = serialize_trylock(st);
	return env->serialized;
}

/* Sets env's group, migration type and imbalance; false = balanced. */
static inline bool find_group(struct state __arena *st, struct lb_env *env)
{
	if (st->profile.balance == BALANCE_LEGACY)
		return find_busiest_group_legacy(st, env);
	return find_busiest_group(st, env);
}

/* From the first to the last step of one attempt, for one source. */
verified_once enum lb_outcome balance_once(struct state __arena *st in_arena,
					   struct lb_env *env on_stack,
					   u32 this_cpu)
{
	struct domain_stats __arena *stats = &env->sd->stats;

	if (!should_we_balance(st, env)) {
		scratch_of(st)->balance.continue_balancing = 0;
		return LB_BALANCED;
	}
	came_to(env, LB_SERIALIZED);
	if (!serialize_attempt(st, env))
		return LB_BALANCED;
	came_to(env, LB_NO_BUSIEST_GROUP);
	if (!find_group(st, env)) {
		stats->lb_nobusyg[env->idle & 3]++;
		return LB_BALANCED;
	}
	came_to(env, LB_NO_BUSIEST_QUEUE);
	env->src_cpu = find_busiest_queue(st, env);
	if (env->src_cpu == NO_CPU) {
		stats->lb_nobusyq[env->idle & 3]++;
		return LB_BALANCED;
	}
	scratch_of(st)->balance.src = env->src_cpu;
	if (env->migration_type < NR_MIGRATION_TYPES)
		stats->lb_imbalance[env->idle & 3][env->migration_type & 3] +=
			env->imbalance;
	if (!(env->span->flags & SD_SHARE_LLC) &&
	    llc_has_room(st, env->src_cpu))
		env->ignore_hint = false;

	env->all_pinned = true;
	if (cpu_rq(st, env->src_cpu)->nr_running <= 1) {
		came_to(env, LB_RUNNING);
		return LB_TRIED;
	}
	return pull_tasks(st, env, this_cpu);
}

/* Is the source's only task better off on the full capacity here? */
static inline bool reduced_capacity_balance(struct state __arena *st,
					    const struct lb_env *env)
{
	return env->idle != CPU_NOT_IDLE &&
	       cpu_rq(st, env->src_cpu)->cfs.h_nr_queued == 1 &&
	       check_cpu_capacity(st, env->src_cpu, env->span) &&
	       capacity_of(st, env->src_cpu) * env->span->imbalance_pct <
		       capacity_of(st, env->dst_cpu) * 100;
}

/* The reasons for a push that do not come from having failed before. */
static inline bool voluntary_active_balance(struct state __arena *st,
					    const struct lb_env *env)
{
	return asym_active_balance(st, env) ||
	       reduced_capacity_balance(st, env) ||
	       env->migration_type == MIGRATE_MISFIT ||
	       env->migration_type == MIGRATE_LLC_TASK;
}

/* A push that would break up what gathers; as merged, asym packing and misfits go first. */
static inline bool stays_for_llc(struct state __arena *st,
				 const struct lb_env *env)
{
	if (st->profile.cache_aware == CACHE_AWARE_MERGED &&
	    (env->migration_type == MIGRATE_MISFIT ||
	     asym_active_balance(st, env)))
		return false;
	return alb_break_llc(st, env);
}

/* Does an attempt that has moved nothing count as failed? */
static inline bool counts_as_failed(const struct state __arena *st,
				    const struct lb_env *env)
{
	return env->idle != CPU_NEWLY_IDLE &&
	       env->migration_type != MIGRATE_MISFIT &&
	       !(env->llc_pinned &&
		 st->profile.cache_aware == CACHE_AWARE_MERGED);
}

static inline bool need_active_balance(struct state __arena *st,
				       const struct lb_env *env)
{
	if (stays_for_llc(st, env))
		return false;
	if (voluntary_active_balance(st, env))
		return true;
	if (!st->profile.active_balance_any_type &&
	    env->migration_type != MIGRATE_TASK)
		return false;
	return env->sd->nr_balance_failed > env->span->cache_nice_tries + 2;
}

static inline void start_active_balance(struct state __arena *st,
					const struct lb_env *env, u32 this_cpu)
{
	struct rq __arena *rq = cpu_rq(st, env->src_cpu);

	/* Even if that push is another CPU's. */
	if (st->profile.active_balance_backs_off)
		env->sd->nr_balance_failed = env->span->cache_nice_tries + 1;
	if (rq->active_balance)
		return;
	rq->active_balance = 1;
	scratch_of(st)->balance.active_balance = 1;
	scratch_of(st)->balance.active_src = env->src_cpu;
	scratch_of(st)->balance.active_dst = this_cpu;
}

static inline void double_interval(struct sched_domain __arena *sd, u32 limit)
{
	if (sd->balance_interval < limit)
		sd->balance_interval *= 2;
}

/* Nothing was to do, or affinity forbade it: look less often. */
static inline void lengthen_interval(const struct lb_env *env)
{
	struct sched_domain __arena *sd = env->sd;
	u32 limit = sd->max_interval;

	if (env->idle == CPU_NEWLY_IDLE)
		return;
	if (env->all_pinned)
		limit = max(limit, (u32)MAX_PINNED_INTERVAL);
	double_interval(sd, limit);
}

/*
 * A source was found. Nothing moves from it: count the failure and perhaps ask
 * for a push. Returns false if even the running task may not come here.
 */
static inline bool push_instead(struct state __arena *st, struct lb_env *env,
				u32 this_cpu)
{
	struct sched_domain __arena *sd = env->sd;
	u32 curr = cpu_rq(st, env->src_cpu)->curr;

	sd->stats.lb_failed[env->idle & 3]++;
	if (counts_as_failed(st, env))
		sd->nr_balance_failed++;
	if (!need_active_balance(st, env))
		return true;
	if (!task_allowed(task_of(st, curr), this_cpu))
		return false;
	start_active_balance(st, env, this_cpu);
	return true;
}

/* The level was not balanced: look again soon, unless a push is under way. */
static inline void reset_interval(struct state __arena *st,
				  const struct lb_env *env)
{
	struct sched_domain __arena *sd = env->sd;

	if (!scratch_of(st)->balance.active_balance) {
		sd->balance_interval = sd->min_interval;
	} else if (st->profile.active_balance_backs_off) {
		if (voluntary_active_balance(st, env))
			sd->balance_interval = sd->min_interval;
		else
			double_interval(sd, sd->max_interval);
	} else if (need_active_balance(st, env)) {
		sd->balance_interval = sd->min_interval;
	}
}

static inline void finish_tried(struct state __arena *st, struct lb_env *env,
				u32 this_cpu)
{
	if (scratch_of(st)->balance.nr) {
		env->sd->nr_balance_failed = 0;
	} else if (!push_instead(st, env, this_cpu)) {
		lengthen_interval(env);
		return;
	}
	reset_interval(st, env);
}

static subprogram void finish_load_balance(struct state __arena *st,
					   struct lb_env *env, u32 this_cpu,
					   enum lb_outcome outcome)
{
	if (outcome == LB_TRIED) {
		finish_tried(st, env, this_cpu);
		return;
	}
	/* Balanced although some task may move: affinity is no obstacle now. */
	if (!env->all_pinned)
		set_parent_imbalance(st, env, this_cpu, false);
	scratch_of(st)->balance.balanced = 1;
	env->sd->stats.lb_balanced[env->idle & 3]++;
	env->sd->nr_balance_failed = 0;
	lengthen_interval(env);
}

static inline void reset_balance_result(struct state __arena *st)
{
	struct balance_result __arena *result = &scratch_of(st)->balance;
	u32 word;

	result->nr = 0;
	result->active_balance = 0;
	result->balanced = 0;
	result->continue_balancing = 1;
	for (word = opaque(0); word < CPUMASK_WORDS && can_loop; word++)
		*indexed(result->excluded.bits, word) = 0;
}

/*
 * One attempt to even out @level for @this_cpu. What is to be done stands in
 * state.balance; true if tasks are to move.
 */
verified_once bool load_balance(struct state __arena *st in_arena, u32 this_cpu,
				u32 level, u32 idle, u64 now)
{
	struct sched_domain __arena *sd = cpu_domain(st, this_cpu, level);
	struct lb_env env = {.sd = sd,
			     .span = domain_span(st, sd),
			     .now = now,
			     .idle = idle,
			     .level = level,
			     .dst_cpu = this_cpu,
			     .ignore_hint = true};
	enum lb_outcome outcome = LB_AGAIN;
	u32 i;

	reset_balance_result(st);
	sd->stats.lb_count[idle & 3]++;
	for (i = opaque(0); i < NR_CPUS && outcome == LB_AGAIN && can_loop; i++)
		outcome = balance_once(st, &env, this_cpu);
	finish_load_balance(st, &env, this_cpu, outcome);
	if (!scratch_of(st)->balance.nr)
		sd->stats.lb_moved_nothing[idle & 3][env.reason]++;
	if (env.serialized)
		st->root.serialize_busy = 0;
	return scratch_of(st)->balance.nr != 0;
}

/* The levels of one periodic or newly-idle visit; the engine keeps it. */
struct balance_walk {
	u64 next_balance; /* jiffies; earliest time to visit again */
	u64 cost; /* ns; of newly-idle passes: recorded so far, or this time */
	u32 cpu;
	u32 level;	/* the one being balanced, or to look at next */
	u32 idle;	/* enum cpu_idle_type for load_balance() */
	u32 not_my_job; /* a neighbour balances from here on up */
	u32 need_decay;
	u32 pulled;
};

_Static_assert(sizeof(struct balance_walk) <= WALK_WORDS * sizeof(u64),
	       "an engine keeps a walk in WALK_WORDS");

static inline u64 jiffies_per_second(const struct state __arena *st)
{
	return NSEC_PER_SEC / st->root.tick_ns;
}

static inline u32 nr_online_cpus(const struct state __arena *st)
{
	u32 word, nr = 0;

	for (word = opaque(0); word < CPUMASK_WORDS &&
			       word * 64 < st->root.nr_cpu_ids && can_loop;
	     word++)
		nr += count_bits(*indexed(st->root.online.bits, word));
	return nr;
}

/* Jiffies from one visit of a level to the next. */
static inline u64 get_sd_balance_interval(const struct state __arena *st,
					  const struct sched_domain __arena *sd,
					  bool busy)
{
	u64 limit = jiffies_per_second(st) * nr_online_cpus(st) / 10;
	u64 interval = sd->balance_interval;

	if (busy)
		interval *= st->profile.busy_factor;
	interval = (interval * NSEC_PER_MSEC + st->root.tick_ns - 1) /
		   st->root.tick_ns;
	/* Keep levels of equal length from all being due at the same tick. */
	if (busy)
		interval--;
	interval = min(interval, limit);
	return max(interval, 1ULL);
}

/* Record what a newly-idle pass cost; true if the record was due to decay. */
static inline bool update_newidle_cost(const struct state __arena *st,
				       struct sched_domain __arena *sd,
				       u64 cost, u64 now)
{
	u64 second = jiffies_per_second(st);

	if (cost > sd->max_newidle_lb_cost) {
		if (st->profile.newidle_failure == NEWIDLE_FAILURE_GROWS)
			cost = min(cost, st->profile.migration_cost + 200);
		sd->max_newidle_lb_cost = cost;
		sd->last_decay_max_lb_cost = jiffies(st, now);
		return false;
	}
	if (jiffies(st, now) <= sd->last_decay_max_lb_cost + second)
		return false;
	sd->max_newidle_lb_cost = sd->max_newidle_lb_cost * 253 / 256;
	sd->last_decay_max_lb_cost = jiffies(st, now);
	return true;
}

static inline bool trigger_load_balance(struct state __arena *st, u32 cpu,
					u64 now)
{
	return cpu_of(st, cpu)->nr_domains &&
	       jiffies(st, now) >= cpu_rq(st, cpu)->next_balance;
}

/* Does a visit by @walk's CPU take time from tasks? */
static inline bool walk_is_busy(struct state __arena *st,
				const struct balance_walk *walk)
{
	if (walk->idle == CPU_IDLE)
		return false;
	return !(st->profile.sched_idle_usable &&
		 sched_idle_cpu(st, walk->cpu));
}

static inline void fold_next_balance(struct state __arena *st,
				     struct balance_walk *walk, bool busy)
{
	const struct sched_domain __arena *sd =
		cpu_domain(st, walk->cpu, walk->level);
	u64 next = sd->last_balance + get_sd_balance_interval(st, sd, busy);

	walk->next_balance = min(walk->next_balance, next);
}

/* Begin a periodic visit of @cpu's levels, which is @idle (CPU_IDLE or not). */
static inline void rebalance_domains_start(struct state __arena *st,
					   struct balance_walk *walk, u32 cpu,
					   u32 idle, u64 now)
{
	*walk = (struct balance_walk){
		.next_balance = jiffies(st, now) + 60 * jiffies_per_second(st),
		.cpu = cpu,
		.idle = idle,
	};
}

/*
 * The next level that is due, or NR_LEVELS. After it is balanced the engine
 * calls rebalance_domains_level_done().
 */
static subprogram u32 rebalance_domains_next(struct state __arena *st,
					     struct balance_walk *walk, u64 now)
{
	u32 nr_domains = cpu_of(st, walk->cpu)->nr_domains;

	for (; walk->level < nr_domains && walk->level < NR_LEVELS && can_loop;
	     walk->level++) {
		struct sched_domain __arena *sd =
			cpu_domain(st, walk->cpu, walk->level);
		bool busy = walk_is_busy(st, walk);
		bool decayed = update_newidle_cost(st, sd, 0, now);

		walk->need_decay |= decayed;
		walk->cost += sd->max_newidle_lb_cost;
		if (walk->not_my_job) {
			if (!decayed)
				break;
			continue;
		}
		if (jiffies(st, now) >=
			    sd->last_balance +
				    get_sd_balance_interval(st, sd, busy) &&
		    (!serialized_around(st, sd) || serialize_trylock(st)))
			return walk->level;
		fold_next_balance(st, walk, busy);
	}
	return NR_LEVELS;
}

/* The level is balanced and its tasks, if any, have @moved. */
static inline void rebalance_domains_level_done(struct state __arena *st,
						struct balance_walk *walk,
						bool moved,
						bool continue_balancing,
						u64 now)
{
	struct sched_domain __arena *sd =
		cpu_domain(st, walk->cpu, walk->level);

	if (serialized_around(st, sd))
		st->root.serialize_busy = 0;
	/* Tasks may have gone to a neighbour, so ask. */
	if (moved)
		walk->idle = available_idle_cpu(st, walk->cpu) ? CPU_IDLE
							       : CPU_NOT_IDLE;
	walk->not_my_job = !continue_balancing;
	sd->last_balance = jiffies(st, now);
	fold_next_balance(st, walk, walk_is_busy(st, walk));
	walk->level++;
}

static inline void rebalance_domains_end(struct state __arena *st,
					 const struct balance_walk *walk)
{
	struct rq __arena *rq = cpu_rq(st, walk->cpu);

	if (walk->need_decay)
		rq->max_idle_balance_cost =
			max(walk->cost, st->profile.migration_cost);
	rq->next_balance = walk->next_balance;
}

static inline void newidle_balance_end(struct state __arena *st,
				       const struct balance_walk *walk)
{
	struct rq __arena *rq = cpu_rq(st, walk->cpu);

	rq->max_idle_balance_cost = max(rq->max_idle_balance_cost, walk->cost);
	rq->next_balance = min(rq->next_balance, walk->next_balance);
	if (walk->pulled || rq->nr_running)
		rq->idle_stamp = 0;
}

/* The level whose cost says whether it is worth looking; it need not exist. */
static inline u32 newidle_gate_level(struct state __arena *st, u32 cpu)
{
	return st->profile.shared_runq ? cpu_llc(st, cpu)->domain_level + 1 : 0;
}

/* Is it worth looking for tasks before @cpu goes idle? */
static inline bool newidle_gate_open(struct state __arena *st, u32 cpu)
{
	u64 avg_idle = cpu_rq(st, cpu)->avg_idle;
	u32 level = newidle_gate_level(st, cpu);

	if (!st->root.overload || !cpu_of(st, cpu)->nr_domains)
		return false;
	if (st->profile.newidle_gate == NEWIDLE_MIGRATION_COST)
		return avg_idle >= st->profile.migration_cost;
	return level >= cpu_of(st, cpu)->nr_domains ||
	       avg_idle >= cpu_domain(st, cpu, level)->max_newidle_lb_cost;
}

/* @cpu has nothing to run: does it look at the lists of its LLC? */
static inline bool newidle_looks_at_lists(struct state __arena *st, u32 cpu)
{
	u32 rule = st->profile.shared_runq;

	return rule && !cpu_rq(st, cpu)->ttwu_pending &&
	       (rule != SHARED_RUNQ_IDLE_CHECK || newidle_gate_open(st, cpu));
}

/*
 * @cpu has nothing to run. If true, the engine walks the levels and ends the
 * walk; else there is nothing more to do.
 */
static inline bool newidle_balance_start(struct state __arena *st,
					 struct balance_walk *walk, u32 cpu,
					 u64 now)
{
	*walk = (struct balance_walk){
		.next_balance = jiffies(st, now) + jiffies_per_second(st),
		.cpu = cpu,
		.idle = CPU_NEWLY_IDLE,
	};
	if (st->profile.newidle_skips_pending && cpu_rq(st, cpu)->ttwu_pending)
		return false;
	cpu_rq(st, cpu)->idle_stamp = now;
	if (newidle_gate_open(st, cpu))
		return true;
	walk->level = newidle_gate_level(st, cpu);
	if (walk->level < cpu_of(st, cpu)->nr_domains)
		fold_next_balance(st, walk, false);
	newidle_balance_end(st, walk);
	return false;
}

/* The next level to balance, or NR_LEVELS. */
static subprogram u32 newidle_balance_next(struct state __arena *st,
					   struct balance_walk *walk)
{
	u32 nr_domains = cpu_of(st, walk->cpu)->nr_domains;
	const struct rq __arena *rq = cpu_rq(st, walk->cpu);

	for (; walk->level < nr_domains && walk->level < NR_LEVELS && can_loop;
	     walk->level++) {
		struct sched_domain __arena *sd =
			cpu_domain(st, walk->cpu, walk->level);

		if (rq->avg_idle < walk->cost + sd->max_newidle_lb_cost) {
			fold_next_balance(st, walk, false);
			break;
		}
		/* idle_stamp is the time: the visit has set it. */
		if (domain_span(st, sd)->flags & SD_BALANCE_NEWIDLE &&
		    newidle_dice_allow(st, sd, rq->idle_stamp))
			return walk->level;
		fold_next_balance(st, walk, false);
	}
	return NR_LEVELS;
}

/*
 * The level took @cost ns; did it pull? Then, or if work has come, that is all.
 */
static inline void newidle_balance_level_done(struct state __arena *st,
					      struct balance_walk *walk,
					      u64 cost, bool pulled, u64 now)
{
	struct sched_domain __arena *sd =
		cpu_domain(st, walk->cpu, walk->level);
	const struct rq __arena *rq = cpu_rq(st, walk->cpu);

	walk->cost += cost;
	walk->pulled |= pulled;
	if (cost)
		newidle_dice_result(st, sd, pulled, now);
	if (!pulled && st->profile.newidle_failure == NEWIDLE_FAILURE_GROWS)
		cost = 3 * sd->max_newidle_lb_cost / 2;
	update_newidle_cost(st, sd, cost, now);
	fold_next_balance(st, walk, false);
	walk->level++;
	if (pulled || rq->nr_running ||
	    (st->profile.newidle_skips_pending && rq->ttwu_pending))
		walk->level = NR_LEVELS;
}

#endif
