/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * pull.h: when this CPU balances, and how tasks travel between dispatch queues.
 *
 *   tick()      the policy says that balancing is due here, or that a tickless
 *               idle CPU is to balance for all (nohz.h): that CPU is kicked
 *   timer       the same where another class runs; balances at once (timer.h)
 *   dispatch()  balances, before it looks for the next task; so does a CPU
 *               with nothing to run (newly idle)
 *
 *   push_to     active balance: the source is preempted, and its dispatch() or
 *               enqueue() puts the task into the queue of the destination
 *
 * The policy names tasks; what is still in the source's dispatch queue moves to
 * the destination's. A task that has gone meanwhile is left alone.
 *
 * Limits: a pass runs with the CPU's run queue locked by the kernel.
 */
#ifndef SCX_PLACEWISE_PULL_H
#define SCX_PLACEWISE_PULL_H

#include "queue.h"

/* Which of the balancer's choices @task is, or SCHED_NR_MIGRATE. */
static inline u32 chosen(const struct balance_result __arena *result, u32 task)
{
	u32 i;

	for (i = opaque(0); i < result->nr && i < SCHED_NR_MIGRATE && can_loop;
	     i++) {
		if (*indexed(result->task, i) == task)
			return i;
	}
	return SCHED_NR_MIGRATE;
}

static inline bool move_queued(struct state __arena *st,
			       struct bpf_iter_scx_dsq *iter,
			       struct task_struct *p, u32 task, u32 dst)
{
	const struct entity __arena *entity = entity_of(task);

	if (!may_move(st, p, task, dst))
		return false;
	dsq_move_set_vtime(iter, entity->vtime + queue_of(dst)->vtime -
					 queue_of(entity->queue)->vtime);
	return dsq_move_vtime(iter, p, dst, 0);
}

/*
 * Move what the last load_balance() has chosen, where it is still queued: the
 * bits of those that moved.
 */
verified_once u32 move_chosen(void)
{
	struct state __arena *st = the_state();
	struct balance_result __arena *result = &scratch_of(st)->balance;
	struct bpf_iter_scx_dsq iter;
	struct task_struct *p;
	u32 moved = 0;

	if (!result->nr)
		return 0;
	/* To the verifier, what init() has called by timers may sleep. */
	bpf_rcu_read_lock();
	bpf_iter_scx_dsq_new(&iter, result->src, 0);
	while ((p = bpf_iter_scx_dsq_next(&iter)) && can_loop) {
		u32 task = shadow_of(p);
		u32 i = chosen(result, task);

		if (i < SCHED_NR_MIGRATE &&
		    move_queued(st, &iter, p, task, *indexed(result->dst, i)))
			moved |= 1U << i;
	}
	bpf_iter_scx_dsq_destroy(&iter);
	bpf_rcu_read_unlock();
	return moved;
}

/* Carry out what the last load_balance() has decided: did something move? */
static __always_inline bool carry_out(struct state __arena *st, u64 now)
{
	struct balance_result __arena *result = &scratch_of(st)->balance;
	u32 moved = move_chosen();
	u32 i;

	if (result->active_balance) {
		queue_of(result->active_src)->push_to = result->active_dst + 1;
		scx_bpf_kick_cpu(result->active_src, SCX_KICK_PREEMPT);
	}
	for (i = opaque(0); i < SCHED_NR_MIGRATE && moved >> i && can_loop;
	     i++) {
		u32 dst = *indexed(result->dst, i);

		if (!(moved >> i & 1))
			continue;
		follow_task(*indexed(result->task, i), result->src, dst, now);
		if (dst != bpf_get_smp_processor_id())
			scx_bpf_kick_cpu(dst, SCX_KICK_IDLE);
	}
	return moved;
}

/*
 * The policy is handed its walks on the stack; between two steps they stay in
 * scratch, for the stack is small.
 */
union walk {
	struct balance_walk levels;
	struct nohz_walk cpus;
	u64 word[WALK_WORDS];
};

static inline void load_walk(union walk *walk, const u64 __arena *from)
{
	u32 i;

	for (i = 0; i < WALK_WORDS; i++)
		walk->word[i] = from[i];
}

static inline void store_walk(const union walk *walk, u64 __arena *to)
{
	u32 i;

	for (i = 0; i < WALK_WORDS; i++)
		to[i] = walk->word[i];
}

/* Whether the CPU idles changes when a level below has pulled. */
static inline u32 visit_idle(void)
{
	union walk walk;

	load_walk(&walk, scratch_of(the_state())->levels);
	return walk.levels.idle;
}

/* The steps of a visit, newly idle (@idle) or periodic. */
verified_once bool visit_start(u32 cpu, u32 idle, u64 now)
{
	struct state __arena *st = the_state();
	union walk walk;
	bool goes = true;

	if (idle == CPU_NEWLY_IDLE)
		goes = newidle_balance_start(st, &walk.levels, cpu, now);
	else
		rebalance_domains_start(st, &walk.levels, cpu, idle, now);
	store_walk(&walk, scratch_of(the_state())->levels);
	return goes;
}

verified_once u32 visit_next(u32 idle, u64 now)
{
	struct state __arena *st = the_state();
	union walk walk;
	u32 level;

	load_walk(&walk, scratch_of(the_state())->levels);
	if (idle == CPU_NEWLY_IDLE)
		level = newidle_balance_next(st, &walk.levels);
	else
		level = rebalance_domains_next(st, &walk.levels, now);
	store_walk(&walk, scratch_of(the_state())->levels);
	return level;
}

verified_once int visit_level_done(u32 idle, bool moved, u64 cost, u64 now)
{
	struct state __arena *st = the_state();
	union walk walk;

	load_walk(&walk, scratch_of(the_state())->levels);
	if (idle == CPU_NEWLY_IDLE)
		newidle_balance_level_done(st, &walk.levels, cost, moved, now);
	else
		rebalance_domains_level_done(
			st, &walk.levels, moved,
			scratch_of(st)->balance.continue_balancing, now);
	store_walk(&walk, scratch_of(the_state())->levels);
	return 0;
}

verified_once int visit_end(u32 idle)
{
	struct state __arena *st = the_state();
	union walk walk;

	load_walk(&walk, scratch_of(the_state())->levels);
	if (idle == CPU_NEWLY_IDLE)
		newidle_balance_end(st, &walk.levels);
	else
		rebalance_domains_end(st, &walk.levels);
	return 0;
}

verified_once int refresh_averages(u32 cpu, u64 now)
{
	struct state __arena *st = the_state();

	rq_lock(st, cpu);
	update_blocked_averages(st, cpu, now);
	rq_unlock(st, cpu);
	return 0;
}

/* Balance the levels of @cpu that are due. */
verified_once int visit(u32 cpu, u32 idle, u64 now)
{
	struct state __arena *st = the_state();

	if (!visit_start(cpu, idle, now))
		return 0;
	refresh_averages(cpu, now);
	while (can_loop) {
		u32 level = visit_next(idle, now);
		u64 began = now;
		bool moved;

		if (level >= NR_LEVELS)
			break;
		load_balance(st, cpu, level, visit_idle(), now);
		moved = carry_out(st, now);
		now = bpf_ktime_get_ns();
		visit_level_done(idle, moved, now - began, now);
	}
	visit_end(idle);
	return 0;
}

verified_once bool nohz_start(u32 cpu, u64 now)
{
	struct state __arena *st = the_state();
	union walk walk;
	bool goes = nohz_balance_start(st, &walk.cpus, cpu, now);

	store_walk(&walk, scratch_of(st)->cpus);
	return goes;
}

verified_once u32 nohz_next(u64 now)
{
	struct state __arena *st = the_state();
	union walk walk;
	u32 cpu;

	load_walk(&walk, scratch_of(st)->cpus);
	cpu = nohz_balance_next(st, &walk.cpus, now);
	store_walk(&walk, scratch_of(st)->cpus);
	return cpu;
}

verified_once int nohz_end(u64 now)
{
	struct state __arena *st = the_state();
	union walk walk;

	load_walk(&walk, scratch_of(st)->cpus);
	nohz_balance_end(st, &walk.cpus, now);
	return 0;
}

/* This idle CPU balances for all that are tickless. */
static inline void nohz_idle_balance(u32 cpu, u64 now)
{
	if (!nohz_start(cpu, now))
		return;
	while (can_loop) {
		u32 other = nohz_next(now);

		if (other >= NR_CPUS)
			break;
		visit(other, CPU_IDLE, now);
	}
	nohz_end(now);
}

/*
 * The stopper's part of an active balance, when @curr has been preempted for it:
 * the task to push, if that is @curr itself; others go at once.
 */
verified_once u32 push_task(u32 cpu, u32 curr, u64 now)
{
	struct state __arena *st = the_state();
	struct balance_result __arena *result = &scratch_of(st)->balance;
	u32 dst = queue_of(cpu)->push_to - 1;
	u32 task;

	queue_of(cpu)->push_to = 0;
	rq_lock(st, cpu);
	task = active_balance_task(st, cpu, dst, now);
	rq_unlock(st, cpu);
	if (task == curr && task != NO_TASK)
		entity_of(task)->push = dst + 1;
	if (task == curr || task == NO_TASK)
		return task;
	result->active_balance = 0;
	result->nr = 1;
	result->src = cpu;
	*indexed(result->task, 0) = task;
	*indexed(result->dst, 0) = dst;
	return carry_out(st, now) ? task : NO_TASK;
}

/* Is @prev, which could run on, to be pushed to another CPU? */
static inline bool leaves(struct task_struct *prev, u32 cpu, u64 now)
{
	u32 task;

	if (!queue_of(cpu)->push_to)
		return false;
	task = shadow_of(prev);
	return push_task(cpu, task, now) == task && task != NO_TASK;
}

/* After the tick of @cpu; true if it is to balance itself. */
static inline bool balance_is_due(struct state __arena *st, u32 cpu, u64 now)
{
	u32 helper = nohz_balancer_kick(st, cpu, now);

	if (helper != NO_CPU)
		scx_bpf_kick_cpu(helper, SCX_KICK_IDLE);
	return trigger_load_balance(st, cpu, now);
}

#endif
