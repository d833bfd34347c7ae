/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * rt.h: where tasks of SCHED_FIFO and SCHED_RR run, and in which order.
 *
 * They run before all others. To CFS they are a source of reduced capacity
 * (capacity.h); among themselves the highest priority runs, equal ones in the
 * order in which they came. A wakee stays on its CPU unless a task runs there
 * that it could not preempt; then it looks for the CPU that runs the least
 * important work, near its own. What is runnable stands in the rq.rt list, which
 * the engine runs from its head.
 *
 * Kernels: all alike. As in the kernel a CPU that idles counts the same here as
 * one that runs CFS tasks.
 *
 * Limits: tasks that wait are neither pushed to other CPUs nor pulled by them
 * (push_rt_task, pull_rt_task), so a task that was preempted waits until its CPU
 * is free again; no throttling (sched_rt_runtime_us), so they can take all of a
 * CPU, and no deadline server; no utilisation clamps, so that every CPU is big
 * enough; no deadline class. Among equal CPUs each waking CPU takes the next
 * after the one it took last, which v5.3 and older did not.
 */
#ifndef PLACEWISE_RT_H
#define PLACEWISE_RT_H

#include "pelt.h"

static inline bool is_rt_task(struct state __arena *st, u32 task)
{
	return task_of(st, task)->rt_priority;
}

/* The priority of the RT task that runs next on @cpu; 0 if there is none. */
static inline u32 highest_rt_priority(struct state __arena *st, u32 cpu)
{
	const struct rq __arena *rq = cpu_rq(st, cpu);

	return rq->rt_nr_running ? task_of(st, rq->rt_head)->rt_priority : 0;
}

/* Put @p before the first task of lower priority; of equal ones last. */
static inline void rt_list_add(struct state __arena *st, struct rq __arena *rq,
			       u32 task)
{
	struct task __arena *p = task_of(st, task);
	u32 before = NO_TASK, after = rq->rt_head;
	u32 i;

	for (i = opaque(0); after != NO_TASK && i < NR_TASKS && can_loop; i++) {
		const struct task __arena *other = task_of(st, after);

		if (other->rt_priority < p->rt_priority)
			break;
		before = after;
		after = other->mru_next;
	}
	p->mru_prev = before;
	p->mru_next = after;
	if (before == NO_TASK)
		rq->rt_head = task;
	else
		task_of(st, before)->mru_next = task;
	if (after != NO_TASK)
		task_of(st, after)->mru_prev = task;
}

static inline void rt_list_remove(struct state __arena *st,
				  struct rq __arena *rq,
				  const struct task __arena *p)
{
	if (p->mru_prev == NO_TASK)
		rq->rt_head = p->mru_next;
	else
		task_of(st, p->mru_prev)->mru_next = p->mru_next;
	if (p->mru_next != NO_TASK)
		task_of(st, p->mru_next)->mru_prev = p->mru_prev;
}

/* @p gives way to those of its own priority: it yields, or its time is up. */
static subprogram void requeue_task_rt(struct state __arena *st, u32 task)
{
	struct rq __arena *rq = cpu_rq(st, task_of(st, task)->cpu);

	rt_list_remove(st, rq, task_of(st, task));
	rt_list_add(st, rq, task);
}

/* The lowest priority on the CPUs that @p may use; its own if none is below that. */
static inline u32 lowest_rt_priority(struct state __arena *st,
				     const struct task __arena *p)
{
	u32 lowest = p->rt_priority;
	u32 word, cpu;

	for (word = opaque(0); word < CPUMASK_WORDS &&
			       word * 64 < st->root.nr_cpu_ids && can_loop;
	     word++) {
		u64 bits = *indexed(p->cpus_allowed.bits, word) &
			   *indexed(st->root.online.bits, word);

		for_each_bit(cpu, word, bits)
			lowest = min(lowest, highest_rt_priority(st, cpu));
	}
	return lowest;
}

/* Is @cpu one that @p may use and that does nothing above @priority? */
static inline bool rt_cpu_fits(struct state __arena *st,
			       const struct task __arena *p, u32 cpu,
			       u32 priority)
{
	return task_allowed(p, cpu) && cpumask_test(&st->root.online, cpu) &&
	       highest_rt_priority(st, cpu) == priority;
}

/* The next CPU of @span after @last that is as unimportant as @priority. */
verified_once u32
next_lowest_cpu(struct state __arena *st in_arena,
		const struct sched_span __arena *span in_arena,
		const struct task __arena *p in_arena, u32 last, u32 priority)
{
	u32 first = NO_CPU;
	u32 word, cpu;

	for_each_word(word, span) {
		u64 bits = *indexed(span->cpus.bits, word);

		for_each_bit(cpu, word, bits) {
			if (!rt_cpu_fits(st, p, cpu, priority))
				continue;
			if (cpu > last)
				return cpu;
			if (first == NO_CPU)
				first = cpu;
		}
	}
	return first;
}

/*
 * The CPU that runs the least important work: @p's own if it is one of them, the
 * waking one if that is as near as any other, else the next one there.
 */
verified_once u32 find_lowest_rq(struct state __arena *st in_arena, u32 task,
				 u32 prev, u32 this_cpu)
{
	const struct task __arena *p = task_of(st, task);
	struct rq __arena *this_rq = cpu_rq(st, this_cpu);
	u32 priority = lowest_rt_priority(st, p);
	u32 level, cpu;

	if (priority >= p->rt_priority)
		return NO_CPU;
	if (rt_cpu_fits(st, p, prev, priority))
		return prev;
	for (level = opaque(0); level < cpu_of(st, prev)->nr_domains &&
				level < NR_LEVELS && can_loop;
	     level++) {
		const struct sched_span __arena *span =
			domain_span(st, cpu_domain(st, prev, level));

		if (!(span->flags & SD_WAKE_AFFINE))
			continue;
		if (cpumask_test(&span->cpus, this_cpu) &&
		    rt_cpu_fits(st, p, this_cpu, priority))
			return this_cpu;
		cpu = next_lowest_cpu(st, span, p, this_rq->last_rt_cpu,
				      priority);
		if (cpu != NO_CPU) {
			this_rq->last_rt_cpu = cpu;
			return cpu;
		}
	}
	return NO_CPU;
}

/* Does a task run on @cpu that @p should not preempt, or could only for nothing? */
static inline bool rt_task_resists(struct state __arena *st, u32 cpu,
				   const struct task __arena *p)
{
	const struct task __arena *curr = task_of(st, cpu_rq(st, cpu)->curr);

	return curr->rt_priority && (curr->nr_cpus_allowed < 2 ||
				     curr->rt_priority >= p->rt_priority);
}

/* The CPU for an RT task that is woken, or created on @prev. */
static subprogram u32 select_task_rq_rt(struct state __arena *st, u32 task,
					u32 prev, u32 this_cpu)
{
	const struct task __arena *p = task_of(st, task);
	u32 target;

	if (!rt_task_resists(st, prev, p))
		return prev;
	target = find_lowest_rq(st, task, prev, this_cpu);
	return target == NO_CPU ? prev : target;
}

#endif
