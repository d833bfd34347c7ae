/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * queue.h: in which order the tasks of a CPU run, and who preempts whom.
 *
 * Each CPU has a dispatch queue ordered by weighted run time. A task that is
 * alone goes to the CPU directly; all others wait in the queue, where the
 * balancer finds them. A sleeper comes back with a slice of credit at most, and
 * preempts a task that is ahead of it by more than the granularity: a third of
 * the credit, as in CFS.
 *
 * Tasks that have no shadow wait in a queue for all CPUs, OVERFLOW, and run for a
 * slice each. Where both kinds wait for a CPU, each gets half of it, however many
 * they are. Those of this queue are neither ordered by weight nor preempted.
 *
 * Limits: this order is neither that of CFS nor of EEVDF; what it shares with
 * them is that CPU time goes by weight.
 */
#ifndef SCX_PLACEWISE_QUEUE_H
#define SCX_PLACEWISE_QUEUE_H

#include "track.h"

static inline bool vtime_before(u64 a, u64 b)
{
	return (s64)(a - b) < 0;
}

/* The run time of @cpu's current task, up to now. */
static inline u64 current_vtime(struct state __arena *st, u32 cpu, u64 now)
{
	u32 curr = cpu_rq(st, cpu)->curr;
	const struct task __arena *p = task_of(st, curr);
	u64 ran = sub_positive(now, p->exec_start);

	return entity_of(curr)->vtime + weighted(st, curr, ran);
}

static inline bool runs_one_of_ours(struct state __arena *st, u32 cpu)
{
	return cpu_rq(st, cpu)->curr >= foreign_task(NR_CPUS);
}

static inline bool preempts_current(struct state __arena *st, u32 task, u32 cpu,
				    u64 now)
{
	u64 granularity = slice_ns() / 3;

	return runs_one_of_ours(st, cpu) && cpu_rq(st, cpu)->curr != task &&
	       vtime_before(entity_of(task)->vtime + granularity,
			    current_vtime(st, cpu, now));
}

/* How far the queue of @cpu comes while a task waits as long as one may. */
static inline u64 longest_lag(struct state __arena *st, u32 cpu)
{
	u64 all = max(cpu_rq(st, cpu)->cfs.load_weight, (u64)NICE_0_LOAD);

	return shadow()->longest_wait_ns * NICE_0_LOAD / all;
}

/*
 * Sleeping earns credit, but no more than a slice, and who owes more than two
 * slices when it falls asleep has slept it off (as in EEVDF). A light task in a
 * light cgroup that never sleeps would have to wait until the watchdog steps in:
 * there is a limit to that too.
 */
static inline void limit_lag(struct state __arena *st, u32 task, u32 cpu,
			     bool wakeup)
{
	u64 vtime = queue_of(cpu)->vtime;
	u64 owed = longest_lag(st, cpu);
	u64 earliest = vtime - slice_ns();
	u64 latest;

	if (wakeup)
		owed = min(owed, weighted(st, task, 2 * slice_ns()));
	latest = vtime + owed;
	if (vtime_before(entity_of(task)->vtime, earliest))
		entity_of(task)->vtime = earliest;
	else if (vtime_before(latest, entity_of(task)->vtime))
		entity_of(task)->vtime = latest;
}

/*
 * Of a task in its critical section the kernel would not let another CPU have it. A
 * BPF program that runs is one of the current task.
 */
static inline bool may_move(struct state __arena *st, struct task_struct *p,
			    u32 task, u32 dst)
{
	u32 ours = p == bpf_get_current_task_btf();

	return p->migration_disabled <= ours &&
	       task_allowed(task_of(st, task), dst);
}

/* Active balance wants @task elsewhere, now that it does not run. */
static inline u32 pushed_to(struct state __arena *st, struct task_struct *p,
			    u32 task)
{
	u32 push = entity_of(task)->push;

	entity_of(task)->push = 0;
	return push && may_move(st, p, task, push - 1) ? push - 1 : NO_CPU;
}

static inline void queue_task(struct state __arena *st, struct task_struct *p,
			      u32 task, u64 enq_flags, u64 now)
{
	u32 push = pushed_to(st, p, task);
	u32 cpu = push == NO_CPU ? scx_bpf_task_cpu(p) : push;

	follow_task(task, ANY_CPU, cpu, now);
	limit_lag(st, task, cpu, enq_flags & SCX_ENQ_WAKEUP);
	if (cpu_rq(st, cpu)->nr_running <= 1 && push == NO_CPU) {
		dsq_insert(p, SCX_DSQ_LOCAL, slice_ns(), enq_flags);
		return;
	}
	dsq_insert_vtime(p, cpu, slice_ns(), entity_of(task)->vtime, enq_flags);
	if (push != NO_CPU || cpu_rq(st, cpu)->curr == cpu)
		scx_bpf_kick_cpu(cpu, SCX_KICK_IDLE);
	else if (enq_flags & SCX_ENQ_WAKEUP &&
		 preempts_current(st, task, cpu, now))
		scx_bpf_kick_cpu(cpu, SCX_KICK_PREEMPT);
}

/* An idle CPU that @p may use, or NO_CPU. */
static subprogram u32 idle_cpu_for(struct state __arena *st,
				   struct task_struct *p)
{
	const u64 *allowed = p->cpus_ptr;
	u32 word;

	for (word = 0; word < CPUMASK_WORDS; word++) {
		u64 idle = st->root.idle.bits[word];
		u64 bits = 0;

		if (idle)
			bpf_probe_read_kernel(&bits, sizeof(bits),
					      allowed + word);
		if (bits & idle)
			return word * 64 + first_bit(bits & idle);
	}
	return NO_CPU;
}

/* @p has no shadow: any CPU may take it. */
static inline void queue_overflow(struct state __arena *st,
				  struct task_struct *p, u64 enq_flags)
{
	u32 idle = idle_cpu_for(st, p);

	dsq_insert(p, OVERFLOW, slice_ns(), enq_flags);
	if (idle != NO_CPU)
		scx_bpf_kick_cpu(idle, SCX_KICK_IDLE);
}

/* Where both kinds of tasks wait for @cpu, has it run ours for longer? */
static inline bool overflow_is_next(u32 cpu)
{
	return queue_of(cpu)->ahead > 0;
}

/* Is there a task that is or may be for @cpu, and has not got it? */
static inline bool anything_waits(u32 cpu)
{
	return scx_bpf_dsq_nr_queued(cpu) > 0 ||
	       scx_bpf_dsq_nr_queued(OVERFLOW) > 0;
}

/* The task that is first in the queue of @cpu, or NO_TASK. */
verified_once u32 first_queued(u32 cpu)
{
	struct bpf_iter_scx_dsq iter;
	struct task_struct *first;
	u32 task = NO_TASK;

	bpf_iter_scx_dsq_new(&iter, cpu, 0);
	first = bpf_iter_scx_dsq_next(&iter);
	if (first)
		task = shadow_of(first);
	bpf_iter_scx_dsq_destroy(&iter);
	return task;
}

/* May @prev, whose slice is used up, go on for another one? */
static inline bool goes_on(struct task_struct *prev, u32 cpu)
{
	u32 task = shadow_of(prev);
	u32 first;

	if (task == NO_TASK)
		return overflow_is_next(cpu) || !anything_waits(cpu);
	first = first_queued(cpu);
	if (first != NO_TASK &&
	    vtime_before(entity_of(first)->vtime, entity_of(task)->vtime))
		return false;
	advance_queue(cpu, entity_of(task)->vtime);
	return true;
}

#endif
