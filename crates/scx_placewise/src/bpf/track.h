/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * track.h: what happens to a task of the kernel happens to its shadow.
 *
 * A task may have moved without being announced (the kernel moves it when its
 * affinity changes, or when this scheduler is bypassed), so whoever learns where
 * it is lets the shadow follow_task().
 *
 * Limits: a sleeper leaves its queue at once (no delayed dequeue). Of the tasks
 * of other classes only the one that runs is seen.
 */
#ifndef SCX_PLACEWISE_TRACK_H
#define SCX_PLACEWISE_TRACK_H

#include "task.h"

#define ANY_CPU NO_CPU

/*
 * With siblings that change at the same time, the last one to write might have
 * seen the other too early: look once more.
 */
static inline void settle_idle_core(struct state __arena *st, u32 cpu)
{
	struct cpu __arena *core = cpu_of(st, cpu);
	bool idle = available_idle_cpu(st, cpu) && is_core_idle(st, cpu);
	u32 i;

	if (core->nr_siblings < 2 ||
	    cpumask_test(&st->root.idle_core, cpu) == idle)
		return;
	for (i = opaque(0);
	     i < NR_SIBLINGS && i < core->nr_siblings && can_loop; i++)
		cpumask_assign(&st->root.idle_core, core->siblings[i], idle);
}

/* The place of @task in the order of @cpu, where it had one in another's. */
static inline void rebase_vtime(u32 task, u32 cpu)
{
	struct entity __arena *entity = entity_of(task);

	if (entity->queue == cpu)
		return;
	entity->vtime += queue_of(cpu)->vtime - queue_of(entity->queue)->vtime;
	entity->queue = cpu;
}

/*
 * The policy's functions of the same names, verified once each. What they write
 * is locked by the caller.
 */
verified_once int shadow_enqueue(u32 task, u32 flags, u64 now)
{
	enqueue_task(the_state(), task, flags, now);
	return 0;
}

verified_once int shadow_dequeue(u32 task, u32 flags, u64 now)
{
	dequeue_task(the_state(), task, flags, now);
	return 0;
}

verified_once int shadow_set_cpu(u32 task, u32 cpu)
{
	set_task_cpu(the_state(), task, cpu);
	return 0;
}

verified_once int shadow_set_next(u32 cpu, u32 task, u64 now)
{
	set_next_task(the_state(), cpu, task, now);
	return 0;
}

verified_once int shadow_put_prev(u32 cpu, u64 now)
{
	put_prev_task(the_state(), cpu, now);
	return 0;
}

verified_once int shadow_update_idle(u32 cpu)
{
	update_idle(the_state(), cpu);
	return 0;
}

/*
 * @task is on @cpu by now. Where it was thought to be is @from, or ANY_CPU;
 * had it gone elsewhere since, others have seen to that.
 */
verified_once int follow_task(u32 task, u32 from, u32 cpu, u64 now)
{
	struct state __arena *st = the_state();
	struct task __arena *p = task_of(st, task);

	while (p->cpu != cpu && can_wait) {
		u32 src = p->cpu;

		if (from != ANY_CPU && src != from)
			break;
		double_rq_lock(st, src, cpu);
		if (p->cpu == src) {
			bool queued = p->on_rq;

			if (queued)
				shadow_dequeue(task, DEQUEUE_MIGRATE, now);
			shadow_set_cpu(task, cpu);
			rebase_vtime(task, cpu);
			if (queued)
				shadow_enqueue(task, ENQUEUE_MIGRATED, now);
		}
		double_rq_unlock(st, src, cpu);
	}
	settle_idle_core(st, cpu);
	return 0;
}

/* @task has arrived, wherever that is. */
static inline void clear_pending(struct state __arena *st, u32 task)
{
	u32 pending = entity_of(task)->pending;

	if (!pending)
		return;
	entity_of(task)->pending = 0;
	rq_lock(st, pending - 1);
	set_ttwu_pending(st, pending - 1, false);
	rq_unlock(st, pending - 1);
	settle_idle_core(st, pending - 1);
}

verified_once int task_runnable(u32 task, u32 cpu, bool wakeup, u64 now)
{
	struct state __arena *st = the_state();
	struct task __arena *p = task_of(st, task);
	struct entity __arena *entity = entity_of(task);

	follow_task(task, ANY_CPU, cpu, now);
	rq_lock(st, cpu);
	if (!p->on_rq) {
		if (entity->new)
			place_new_task(st, task, cpu);
		entity->new = false;
		shadow_enqueue(task, 0, now);
		if (wakeup)
			sample_avg_idle(st, cpu, now);
	}
	rq_unlock(st, cpu);
	clear_pending(st, task);
	settle_idle_core(st, cpu);
	return 0;
}

/* The time @ran, on the scale of a queue: at nice 0, in no cgroup, as long as it was. */
static inline u64 weighted(struct state __arena *st, u32 task, u64 ran)
{
	u64 weight = hierarchical_weight(st, task_of(st, task));

	return ran * NICE_0_LOAD * WEIGHT_SCALE / weight;
}

/* No task of @cpu has run less than until @vtime. */
static inline void advance_queue(u32 cpu, u64 vtime)
{
	struct queue __arena *queue = queue_of(cpu);

	if ((s64)(vtime - queue->vtime) > 0)
		queue->vtime = vtime;
}

/*
 * Account the time that the current task of @cpu has run. Neither ours nor those
 * without a shadow save up more than a slice while none of the others is there.
 */
static inline void account_current(struct state __arena *st, u32 cpu, u64 now)
{
	u32 curr = cpu_rq(st, cpu)->curr;
	struct queue __arena *queue = queue_of(cpu);
	s64 ran = update_curr(st, cpu, now);
	s64 slice = slice_ns();

	if (!ran)
		return;
	if (curr == foreign_task(cpu)) {
		queue->ahead = max(queue->ahead - ran, -slice);
		return;
	}
	queue->ahead = min(queue->ahead + ran, slice);
	entity_of(curr)->vtime += weighted(st, curr, ran);
	if (cpu_rq(st, cpu)->nr_running == 1)
		advance_queue(cpu, entity_of(curr)->vtime);
}

verified_once int account(u32 cpu, u64 now)
{
	struct state __arena *st = the_state();

	rq_lock(st, cpu);
	account_current(st, cpu, now);
	rq_unlock(st, cpu);
	return 0;
}

verified_once int task_quiescent(u32 task, bool sleeps, u64 now)
{
	struct state __arena *st = the_state();
	struct task __arena *p = task_of(st, task);
	u32 cpu = task_rq_lock(st, task);

	if (p->on_rq) {
		p->nvcsw += sleeps;
		shadow_dequeue(task, sleeps ? DEQUEUE_SLEEP : 0, now);
	}
	rq_unlock(st, cpu);
	return 0;
}

/* Does a task of another class run on @cpu? */
static inline bool runs_foreign(struct state __arena *st, u32 cpu)
{
	return task_of(st, foreign_task(cpu))->on_rq;
}

/*
 * A task of another class, or one without a shadow, has taken the CPU, or leaves
 * it; @cpu is locked. It runs before ours, as RT tasks do.
 */
static inline void set_foreign(struct state __arena *st, u32 cpu, bool foreign,
			       u64 now)
{
	u32 task = foreign_task(cpu);

	if (runs_foreign(st, cpu) == foreign)
		return;
	if (foreign) {
		shadow_enqueue(task, 0, now);
		shadow_set_next(cpu, task, now);
	} else {
		shadow_dequeue(task, 0, now);
	}
}

verified_once int cpu_taken(u32 cpu, bool taken, u64 now)
{
	struct state __arena *st = the_state();

	rq_lock(st, cpu);
	set_foreign(st, cpu, taken, now);
	rq_unlock(st, cpu);
	return 0;
}

/* What runs on @cpu, and has no shadow, stops. */
verified_once int overflow_stopping(u32 cpu, u64 now)
{
	struct state __arena *st = the_state();

	rq_lock(st, cpu);
	account_current(st, cpu, now);
	set_foreign(st, cpu, false, now);
	rq_unlock(st, cpu);
	return 0;
}

/* @task is of another class from now on, and goes on if it runs. */
verified_once int task_disabled(u32 task, u32 cpu, u64 now)
{
	struct state __arena *st = the_state();

	rq_lock(st, cpu);
	if (cpu_rq(st, cpu)->curr == task)
		set_foreign(st, cpu, true, now);
	rq_unlock(st, cpu);
	return 0;
}

verified_once int task_running(u32 task, u32 cpu, u64 now)
{
	struct state __arena *st = the_state();

	follow_task(task, ANY_CPU, cpu, now);
	rq_lock(st, cpu);
	set_foreign(st, cpu, false, now);
	rebase_vtime(task, cpu);
	nohz_balance_exit_idle(st, cpu);
	if (task_of(st, task)->on_rq)
		shadow_set_next(cpu, task, now);
	advance_queue(cpu, entity_of(task)->vtime);
	rq_unlock(st, cpu);
	return 0;
}

verified_once int task_stopping(u32 task, bool runnable, u64 now)
{
	struct state __arena *st = the_state();
	u32 cpu = task_rq_lock(st, task);

	if (cpu_rq(st, cpu)->curr == task) {
		account_current(st, cpu, now);
		if (runnable)
			shadow_put_prev(cpu, now);
		task_of(st, task)->nivcsw += runnable;
	}
	rq_unlock(st, cpu);
	return 0;
}

verified_once int tick(u32 cpu, u64 now)
{
	struct state __arena *st = the_state();
	rq_lock(st, cpu);
	account_current(st, cpu, now);
	task_tick(st, cpu, now);
	rq_unlock(st, cpu);
	return 0;
}

/* Queued or not: its queue counts it by its new weight from now on. */
verified_once int set_task_weight(u32 task, u32 weight)
{
	struct state __arena *st = the_state();
	struct task __arena *p = task_of(st, task);
	u32 cpu = task_rq_lock(st, task);

	if (p->on_rq)
		task_cfs_rq(st, p)->load_weight += weight - p->weight;
	p->weight = weight;
	rq_unlock(st, cpu);
	return 0;
}

verified_once int shadow_change_group(u32 task, u32 group, u64 now)
{
	task_change_group(the_state(), task, group, now);
	return 0;
}

/* The kernel has taken the task off its queue for the time that it changes cgroups. */
static inline void move_to_cgroup(u32 task, const struct cgroup *cgroup,
				  u64 now)
{
	struct state __arena *st = the_state();
	u32 group = group_of_cgroup(cgroup);
	u32 cpu = task_rq_lock(st, task);
	u32 left = task_of(st, task)->task_group;

	get_task_group(group);
	shadow_change_group(task, group, now);
	rq_unlock(st, cpu);
	put_task_group(left);
}

/* The task has ended, or the scheduler leaves: nothing of it stays behind. */
verified_once int drop_shadow(u32 task)
{
	struct state __arena *st = the_state();
	struct task __arena *p = task_of(st, task);
	u32 cpu = task_rq_lock(st, task);

	if (p->on_rq)
		shadow_dequeue(task, DEQUEUE_SLEEP, bpf_ktime_get_ns());
	task_dead(st, task);
	put_task_group(p->task_group);
	if (cpu_rq(st, cpu)->curr == task)
		cpu_rq(st, cpu)->curr = foreign_task(cpu);
	rq_unlock(st, cpu);
	free_task(task);
	return 0;
}

/*
 * @cpu begins or ceases to idle. What it does instead is only known here if no
 * task of ours is queued: then it runs one of another class.
 */
verified_once int cpu_idles(u32 cpu, bool idle, u64 now)
{
	struct state __arena *st = the_state();
	struct rq __arena *rq = cpu_rq(st, cpu);

	rq_lock(st, cpu);
	if (idle)
		set_foreign(st, cpu, false, now);
	if (idle && rq->curr != cpu) {
		shadow_set_next(cpu, cpu, now);
		nohz_balance_enter_idle(st, cpu);
	} else if (!idle && rq->curr == cpu && !rq->nr_running) {
		set_foreign(st, cpu, true, now);
	}
	rq_unlock(st, cpu);
	settle_idle_core(st, cpu);
	return 0;
}

#endif
