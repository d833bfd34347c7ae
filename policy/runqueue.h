/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * runqueue.h: what enqueueing, picking, running and sleeping leave behind for
 * later decisions to read.
 *
 * The engine owns time and the order of its run queues; it calls one of these
 * functions whenever a task changes its place, and writes none of the fields
 * itself. They keep the counts of a run queue, its list of CFS tasks, PELT,
 * util_est, run lengths, idle masks, avg_idle and what processes run. RT tasks (rt.h) have a list of
 * their own and none of the averages.
 *
 * Limits: misfit marks are refreshed at pick and tick.
 */
#ifndef PLACEWISE_RUNQUEUE_H
#define PLACEWISE_RUNQUEUE_H

#include "cache_aware.h"
#include "idle_scan.h"
#include "pelt.h"
#include "rt.h"
#include "shared_runq.h"
#include "short_task.h"
#include "sis_cache.h"
#include "state.h"
#include "task_group.h"

enum enqueue_flag {
	ENQUEUE_WAKEUP = 1 << 0,
	ENQUEUE_MIGRATED = 1 << 1,
};

enum dequeue_flag {
	DEQUEUE_SLEEP = 1 << 0,
	DEQUEUE_MIGRATE = 1 << 1,
};

/* Refresh what the masks say of a CPU after its current or counts changed. */
static inline void update_idle(struct state __arena *st, u32 cpu)
{
	struct cpu __arena *c = cpu_of(st, cpu);
	struct rq __arena *rq = cpu_rq(st, cpu);
	bool idle = rq->curr == cpu && !rq->nr_running && !rq->ttwu_pending;
	bool sched_idle = rq->nr_running && rq->nr_running == rq->cfs.h_nr_idle;
	bool core_idle = true;
	u32 i;

	/* Mostly the CPU is busy, and was. */
	if (!idle && !sched_idle && !available_idle_cpu(st, cpu) &&
	    !sched_idle_cpu(st, cpu))
		return;
	cpumask_assign(&st->root.sched_idle, cpu, sched_idle);
	if (cpumask_test(&st->root.idle, cpu) == idle)
		return;
	cpumask_assign(&st->root.idle, cpu, idle);
	for (i = opaque(0); i < NR_SIBLINGS && i < c->nr_siblings && can_loop;
	     i++)
		core_idle &= available_idle_cpu(st, *indexed(c->siblings, i));
	for (i = opaque(0); i < NR_SIBLINGS && i < c->nr_siblings && can_loop;
	     i++)
		cpumask_assign(&st->root.idle_core, *indexed(c->siblings, i),
			       core_idle);
}

/* A wakeup is on its way to @cpu over its wake list, or all have arrived. */
static inline void set_ttwu_pending(struct state __arena *st, u32 cpu,
				    bool pending)
{
	cpu_rq(st, cpu)->ttwu_pending = pending;
	update_idle(st, cpu);
}

/* What the time is, for readings of task groups. */
static inline void set_clock(struct state __arena *st, u64 now)
{
	if (st->root.nr_task_groups)
		st->root.clock = now;
}

static inline void mru_remove(struct state __arena *st, struct rq __arena *rq,
			      struct task __arena *p)
{
	if (p->mru_prev == NO_TASK)
		rq->mru_head = p->mru_next;
	else
		task_of(st, p->mru_prev)->mru_next = p->mru_next;
	if (p->mru_next == NO_TASK)
		rq->mru_tail = p->mru_prev;
	else
		task_of(st, p->mru_next)->mru_prev = p->mru_prev;
}

static inline void mru_add_head(struct state __arena *st, struct rq __arena *rq,
				u32 task, struct task __arena *p)
{
	p->mru_prev = NO_TASK;
	p->mru_next = rq->mru_head;
	if (rq->mru_head == NO_TASK)
		rq->mru_tail = task;
	else
		task_of(st, rq->mru_head)->mru_prev = task;
	rq->mru_head = task;
}

/* Account the time the current task has run; returns it in ns. */
static inline u64 update_curr(struct state __arena *st, u32 cpu, u64 now)
{
	struct rq __arena *rq = cpu_rq(st, cpu);
	struct task __arena *curr = task_of(st, rq->curr);
	u64 delta = now - curr->exec_start;

	if (is_idle_task(rq->curr) || (s64)delta <= 0)
		return 0;
	curr->exec_start = now;
	curr->sum_exec_runtime += delta;
	account_mm_sched(st, curr, cpu, delta, now);
	return delta;
}

/* May @p run on a CPU that is bigger than @capacity? */
verified_once bool bigger_cpu_allowed(struct state __arena *st in_arena,
				      const struct task __arena *p in_arena,
				      u32 capacity)
{
	u32 word, cpu;

	for (word = opaque(0); word < CPUMASK_WORDS &&
			       word * 64 < st->root.nr_cpu_ids && can_loop;
	     word++) {
		u64 bits = *indexed(p->cpus_allowed.bits, word) &
			   *indexed(st->root.online.bits, word);

		for_each_bit(cpu, word, bits) {
			if (cpu_of(st, cpu)->capacity_orig > capacity)
				return true;
		}
	}
	return false;
}

/* Does the current task of @cpu need a bigger CPU? */
static inline bool curr_is_misfit(struct state __arena *st, u32 cpu)
{
	u32 curr = cpu_rq(st, cpu)->curr;
	const struct task __arena *p = task_of(st, curr);

	if (is_idle_task(curr) || p->nr_cpus_allowed == 1 ||
	    fits_capacity(task_util_est(p), capacity_of(st, cpu)))
		return false;
	return !st->profile.misfit_wants_bigger_cpu ||
	       bigger_cpu_allowed(st, p, cpu_of(st, cpu)->capacity_orig);
}

/* Keep misfit_task_load, for the balancer; an RT task has no say in it. */
static inline void update_misfit_status(struct state __arena *st, u32 cpu)
{
	struct rq __arena *rq = cpu_rq(st, cpu);

	if (!st->root.asym_capacity || rt_task_runs(st, cpu))
		return;
	if (curr_is_misfit(st, cpu))
		rq->misfit_task_load =
			max(task_h_load(st, task_of(st, rq->curr)), 1ULL);
	else
		rq->misfit_task_load = 0;
}

/* @p, which is on no run queue, now belongs to @cpu. */
static inline void set_task_cpu(struct state __arena *st, u32 task, u32 cpu)
{
	struct task __arena *p = task_of(st, task);

	if (p->cpu == cpu)
		return;
	remove_task_avg(p, task_cfs_rq(st, p));
	if (!st->profile.exec_start_reset_at_enqueue)
		p->exec_start = 0;
	p->cpu = cpu;
}

/* Bring the queue of @p and @p itself up to date. */
static inline void update_avgs(struct state __arena *st, u32 task,
			       struct task __arena *p, u64 now)
{
	update_group_cfs_rq_avg(st, p->task_group, p->cpu, now);
	update_task_avg(st, task, p, now);
}

/* The same with all that is above them. */
static inline void update_all_avgs(struct state __arena *st, u32 task,
				   struct task __arena *p, u64 now)
{
	update_avgs(st, task, p, now);
	if (p->task_group != ROOT_TASK_GROUP)
		update_entities(st, p, now);
}

static inline void add_nr_running(struct state __arena *st, u32 cpu, u32 count)
{
	struct rq __arena *rq = cpu_rq(st, cpu);
	u32 before = rq->nr_running;

	rq->nr_running += count;
	if (before < 2 && rq->nr_running >= 2)
		st->root.overload = 1;
}

static inline void enqueue_task_rt(struct state __arena *st, u32 task)
{
	struct task __arena *p = task_of(st, task);
	struct rq __arena *rq = cpu_rq(st, p->cpu);

	st->root.rt_seen = 1;
	p->on_rq = true;
	rt_list_add(st, rq, task);
	rq->rt_nr_running++;
	add_nr_running(st, p->cpu, 1);
	update_idle(st, p->cpu);
}

/* Where @p was put on a queue, or left it: the entities above, and the CPU's count. */
static inline void enqueue_above(struct state __arena *st,
				 const struct task __arena *p, u64 now)
{
	struct group_counts counts = task_counts(p, p->delayed);

	if (p->task_group == ROOT_TASK_GROUP ||
	    enqueue_entities(st, p->task_group, p->cpu, &counts, now))
		add_nr_running(st, p->cpu, 1);
}

static inline void dequeue_above(struct state __arena *st,
				 const struct task __arena *p, bool delayed,
				 u64 now)
{
	struct group_counts counts = task_counts(p, delayed);

	if (p->task_group == ROOT_TASK_GROUP ||
	    dequeue_entities(st, p->task_group, p->cpu, &counts, now))
		cpu_rq(st, p->cpu)->nr_running--;
}

/* Put @p on the run queue of the CPU it belongs to. */
static inline void enqueue_task(struct state __arena *st, u32 task, u32 flags,
				u64 now)
{
	struct task __arena *p = task_of(st, task);
	struct rq __arena *rq = cpu_rq(st, p->cpu);
	struct cfs_rq __arena *cfs = task_cfs_rq(st, p);

	if (p->rt_priority) {
		enqueue_task_rt(st, task);
		return;
	}
	shared_runq_enqueue(st, task, p);
	if (flags & ENQUEUE_WAKEUP)
		record_sleep(st, p, now);
	set_clock(st, now);
	/* A delayed task that is moved stays delayed. */
	if (p->delayed)
		cfs->h_nr_delayed++;
	else
		util_est_enqueue(&rq->cfs, p);
	update_group_cfs_rq_avg(st, p->task_group, p->cpu, now);
	if (p->avg.last_update_time)
		update_task_avg(st, task, p, now);
	else
		attach_avg(&p->avg, p->weight, cfs);

	p->on_rq = true;
	cfs->load_weight += p->weight;
	cfs->h_nr_queued++;
	cfs->h_nr_idle += p->idle_policy;
	enqueue_above(st, p, now);
	mru_add_head(st, rq, task, p);
	if (flags & ENQUEUE_MIGRATED && st->profile.exec_start_reset_at_enqueue)
		p->exec_start = 0;
	update_idle(st, p->cpu);
}

/* What a voluntary sleep teaches about a task, whether it is dequeued at once or delayed. */
static inline void account_sleep(struct state __arena *st,
				 struct task __arena *p)
{
	util_est_update(st, p);
	record_run_length(st, p);
}

static inline void dequeue_task_rt(struct state __arena *st, u32 task, u64 now)
{
	struct task __arena *p = task_of(st, task);
	struct rq __arena *rq = cpu_rq(st, p->cpu);

	if (rq->curr == task)
		update_rt_rq_avg(st, p->cpu, true, now);
	p->on_rq = false;
	rt_list_remove(st, rq, p);
	rq->rt_nr_running--;
	rq->nr_running--;
	update_idle(st, p->cpu);
}

/* Take @p off its run queue: it sleeps, ends, or moves to another CPU. */
static inline void dequeue_task(struct state __arena *st, u32 task, u32 flags,
				u64 now)
{
	struct task __arena *p = task_of(st, task);
	struct rq __arena *rq = cpu_rq(st, p->cpu);
	struct cfs_rq __arena *cfs = task_cfs_rq(st, p);
	bool delayed = p->delayed;

	if (p->rt_priority) {
		dequeue_task_rt(st, task, now);
		return;
	}
	shared_runq_dequeue(st, task, p);
	set_clock(st, now);
	update_avgs(st, task, p, now);
	if (delayed) {
		cfs->h_nr_delayed--;
		if (!(flags & DEQUEUE_MIGRATE))
			p->delayed = false;
	} else {
		util_est_dequeue(&rq->cfs, p);
		if (flags & DEQUEUE_SLEEP)
			account_sleep(st, p);
	}
	p->on_rq = false;
	cfs->load_weight -= p->weight;
	cfs->h_nr_queued--;
	cfs->h_nr_idle -= p->idle_policy;
	mru_remove(st, rq, p);
	if (flags & DEQUEUE_MIGRATE)
		detach_task_avg(p, cfs);
	dequeue_above(st, p, delayed, now);
	update_idle(st, p->cpu);
}

/*
 * @group is out of runtime on @cpu: its tasks stay in it, and it leaves the run
 * queue.
 */
static inline void throttle_cfs_rq(struct state __arena *st, u32 group, u32 cpu,
				   u64 now)
{
	struct group_rq __arena *rq = group_rq_of(st, group, cpu);
	struct group_counts counts = all_counts(&rq->cfs);

	if (group == ROOT_TASK_GROUP || rq->throttled)
		return;
	set_clock(st, now);
	rq->throttled = true;
	stop_group_clocks(st, group, cpu, true, now);
	if (dequeue_entities(st, group, cpu, &counts, now))
		cpu_rq(st, cpu)->nr_running -= counts.queued;
	update_idle(st, cpu);
}

/* It has got some: it is back, if it has tasks. */
static inline void unthrottle_cfs_rq(struct state __arena *st, u32 group,
				     u32 cpu, u64 now)
{
	struct group_rq __arena *rq = group_rq_of(st, group, cpu);
	struct group_counts counts = all_counts(&rq->cfs);

	if (group == ROOT_TASK_GROUP || !rq->throttled)
		return;
	set_clock(st, now);
	rq->throttled = false;
	stop_group_clocks(st, group, cpu, false, now);
	if (!rq->cfs.load_weight)
		return;
	if (enqueue_entities(st, group, cpu, &counts, now))
		add_nr_running(st, cpu, counts.queued);
	update_idle(st, cpu);
}

/* The entity of @group was delayed on @cpu, and has spent its lag: it leaves. */
static inline void dequeue_delayed_group(struct state __arena *st, u32 group,
					 u32 cpu, u64 now)
{
	struct group_counts none = {};

	if (group == ROOT_TASK_GROUP)
		return;
	set_clock(st, now);
	group_rq_of(st, group, cpu)->delayed = false;
	dequeue_entities(st, group, cpu, &none, now);
}

/* @p sleeps, but stays queued until it would be picked (delayed dequeue). */
static inline void delay_dequeue(struct state __arena *st, u32 task, u64 now)
{
	struct task __arena *p = task_of(st, task);

	set_clock(st, now);
	update_all_avgs(st, task, p, now);
	util_est_dequeue(&cpu_rq(st, p->cpu)->cfs, p);
	account_sleep(st, p);
	p->delayed = true;
	task_cfs_rq(st, p)->h_nr_delayed++;
	count_delayed(st, p, 1);
}

/* A delayed task is woken: it becomes ordinary where it is. */
static inline void requeue_delayed(struct state __arena *st, u32 task, u64 now)
{
	struct task __arena *p = task_of(st, task);

	set_clock(st, now);
	update_avgs(st, task, p, now);
	p->delayed = false;
	task_cfs_rq(st, p)->h_nr_delayed--;
	count_delayed(st, p, -1);
	util_est_enqueue(&cpu_rq(st, p->cpu)->cfs, p);
}

/* How long had @cpu been idle? A sample of what it may expect. */
static inline void update_rq_avg_idle(struct state __arena *st, u32 cpu,
				      u64 now)
{
	struct rq __arena *rq = cpu_rq(st, cpu);
	u64 limit = 2 * rq->max_idle_balance_cost;

	if (!rq->idle_stamp)
		return;
	update_avg(&rq->avg_idle, now - rq->idle_stamp);
	rq->avg_idle = min(rq->avg_idle, limit);
	rq->wake_stamp = jiffies(st, now);
	rq->wake_avg_idle = rq->avg_idle / 2;
	rq->idle_stamp = 0;
}

/* A wakeup was enqueued on @cpu. */
static inline void sample_avg_idle(struct state __arena *st, u32 cpu, u64 now)
{
	if (!st->profile.avg_idle_at_switch)
		update_rq_avg_idle(st, cpu, now);
}

static inline void set_next_task_fair(struct state __arena *st, u32 cpu,
				      u32 task, u64 now)
{
	struct task __arena *p = task_of(st, task);
	struct rq __arena *rq = cpu_rq(st, cpu);

	set_clock(st, now);
	update_all_avgs(st, task, p, now);
	shared_runq_dequeue(st, task, p);
	if (rq->mru_head != task) {
		mru_remove(st, rq, p);
		mru_add_head(st, rq, task, p);
	}
}

/* @task starts running on @cpu; the CPU's own number stands for its idle task. */
static inline void set_next_task(struct state __arena *st, u32 cpu, u32 task,
				 u64 now)
{
	struct task __arena *p = task_of(st, task);
	struct rq __arena *rq = cpu_rq(st, cpu);

	if (!is_idle_task(task)) {
		if (st->profile.avg_idle_at_switch && is_idle_task(rq->curr))
			update_rq_avg_idle(st, cpu, now);
		if (!p->rt_priority)
			set_next_task_fair(st, cpu, task, now);
		else if (!rt_task_runs(st, cpu))
			update_rt_rq_avg(st, cpu, false, now);
		p->exec_start = now;
	} else if (!is_idle_task(rq->curr)) {
		reserve_cpu(st, rq, task_of(st, rq->curr));
	}
	switch_clock_pelt(st, cpu, is_idle_task(task), now);
	rq->curr = task;
	rq->rt_runs = p->rt_priority != 0;
	update_misfit_status(st, cpu);
	update_idle(st, cpu);
	if (is_idle_task(task))
		update_idle_core(st, cpu);
}

/* The current task stops running but stays queued. */
static inline void put_prev_task(struct state __arena *st, u32 cpu, u64 now)
{
	u32 curr = cpu_rq(st, cpu)->curr;

	if (is_idle_task(curr) || !task_of(st, curr)->on_rq)
		return;
	if (is_rt_task(st, curr)) {
		update_rt_rq_avg(st, cpu, true, now);
		return;
	}
	set_clock(st, now);
	update_all_avgs(st, curr, task_of(st, curr), now);
	shared_runq_enqueue(st, curr, task_of(st, curr));
}

static inline void task_tick(struct state __arena *st, u32 cpu, u64 now)
{
	u32 curr = cpu_rq(st, cpu)->curr;
	struct task __arena *p = task_of(st, curr);

	if (rt_task_runs(st, cpu)) {
		update_rt_rq_avg(st, cpu, true, now);
		return;
	}
	set_clock(st, now);
	update_group_cfs_rq_avg(st, p->task_group, cpu, now);
	if (!is_idle_task(curr))
		update_task_avg(st, curr, p, now);
	if (p->task_group != ROOT_TASK_GROUP)
		tick_entities(st, p, now);
	task_tick_cache(st, cpu, now);
	update_misfit_status(st, cpu);
}

/*
 * A new task before it is placed: its relations are a copy of its creator's,
 * nothing resets them at fork; what counts its own running starts at 0.
 */
static inline void copy_task(struct state __arena *st, u32 child, u32 parent,
			     u32 cpu)
{
	struct task __arena *p = task_of(st, child);
	struct task __arena *creator = task_of(st, parent);

	p->last_wakee = creator->last_wakee;
	p->wakee_flips = creator->wakee_flips;
	p->wakee_flip_decay_ts = creator->wakee_flip_decay_ts;
	p->hint = creator->hint;
	p->task_group = creator->task_group;
	copy_process(st, p, creator);
	p->recent_used_cpu = cpu;
	p->cpu = cpu;
	p->avg.load_avg = p->weight;
	p->mru_prev = NO_TASK;
	p->mru_next = NO_TASK;
	p->eligible = true;
}

/* @p has ended and was switched out: it leaves no blocked load behind. */
static inline void task_dead(struct state __arena *st, u32 task)
{
	struct task __arena *p = task_of(st, task);

	remove_task_avg(p, task_cfs_rq(st, p));
	leave_process(st, p);
}

/* @p, which is on no run queue, is a task of the cgroup from now on. */
static inline void task_change_group(struct state __arena *st, u32 task,
				     u32 group, u64 now)
{
	struct task __arena *p = task_of(st, task);
	bool attached = p->avg.last_update_time;

	if (attached) {
		set_clock(st, now);
		update_avgs(st, task, p, now);
		detach_task_avg(p, task_cfs_rq(st, p));
		update_entities(st, p, now);
	}
	p->task_group = group & (NR_TASK_GROUPS - 1);
	if (attached) {
		update_group_cfs_rq_avg(st, p->task_group, p->cpu, now);
		attach_avg(&p->avg, p->weight, task_cfs_rq(st, p));
		update_entities(st, p, now);
	}
}

/* The averages of a CPU whose tasks may all sleep are refreshed by balancing. */
static inline void update_blocked_averages(struct state __arena *st, u32 cpu,
					   u64 now)
{
	set_clock(st, now);
	if (st->root.nr_task_groups)
		update_blocked_entities(st, cpu, now);
	update_root_cfs_rq_avg(st, cpu, now);
	if (st->root.rt_seen)
		update_rt_rq_avg(st, cpu, rt_task_runs(st, cpu), now);
}

/* A new task whose CPU has been chosen, before its first enqueue. */
static inline void place_new_task(struct state __arena *st, u32 child, u32 cpu)
{
	struct task __arena *p = task_of(st, child);

	p->cpu = cpu;
	if (!p->rt_priority)
		init_task_util(p, task_cfs_rq(st, p),
			       cpu_of(st, cpu)->capacity_orig);
}

#endif
