/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * shared_runq.h: tasks that wait, in lists that CPUs of their LLC take the first
 * from before they go idle.
 *
 * After SHARED_RUNQ as posted in August 2023 (v3), which was not merged. An LLC
 * has a list for about every six of its CPUs. A task that waits on a run queue
 * stands in the list of its CPU too, unless it may run nowhere else, and leaves
 * it when it is picked. A CPU that has run out looks at its own list and then at
 * the others; if nothing waits there it balances like any other, and only the
 * first test of whether that is worth it is made with the domain above the LLC.
 *
 * The list is circular; the first CPU of those that share it holds its head.
 *
 * What a task that was taken off costs, and that its own CPU may pick it first,
 * is the engine's.
 *
 * Limits: a live scheduler, where CPUs would change a list at once, cannot have
 * it. A task whose group is out of runtime is left where it is.
 */
#ifndef PLACEWISE_SHARED_RUNQ_H
#define PLACEWISE_SHARED_RUNQ_H

#include "state.h"

static inline bool has_shared_runq(const struct state __arena *st)
{
#ifdef CONCURRENT_ENGINE
	return (void)st, false;
#else
	return st->profile.shared_runq;
#endif
}

static inline u32 __arena *shared_head(struct state __arena *st, u32 cpu)
{
	return &cpu_rq(st, cpu_of(st, cpu)->shared_first)->shared_head;
}

/* @p waits: it joins at the end of the list of its CPU. */
static inline void shared_runq_enqueue(struct state __arena *st, u32 task,
				       struct task __arena *p)
{
	u32 __arena *head = shared_head(st, p->cpu);

	if (!has_shared_runq(st) || p->nr_cpus_allowed == 1 || p->shared_next)
		return;
	p->shared_next = *head ? *head : task;
	p->shared_prev = *head ? task_of(st, *head)->shared_prev : task;
	task_of(st, p->shared_next)->shared_prev = task;
	task_of(st, p->shared_prev)->shared_next = task;
	if (!*head)
		*head = task;
}

/* @p waits no longer. */
static inline void shared_runq_dequeue(struct state __arena *st, u32 task,
				       struct task __arena *p)
{
	u32 __arena *head = shared_head(st, p->cpu);

	if (!has_shared_runq(st) || !p->shared_next)
		return;
	if (*head == task)
		*head = p->shared_next == task ? 0 : p->shared_next;
	task_of(st, p->shared_next)->shared_prev = p->shared_prev;
	task_of(st, p->shared_prev)->shared_next = p->shared_next;
	p->shared_next = 0;
}

/* The first of a list, if @cpu may have it. */
static inline u32 shared_runq_first(struct state __arena *st, u32 head, u32 cpu)
{
	const struct task __arena *p = task_of(st, head);

	if (!head || p->cpu == cpu || !task_allowed(p, cpu) ||
	    throttled_hierarchy(st, p->task_group, p->cpu))
		return NO_TASK;
	return head;
}

/*
 * The task that @cpu takes over, which looks at the lists, or NO_TASK. It leaves
 * its list, whether or not @cpu is there before the CPU on which it waits.
 */
static inline u32 newidle_shared_task(struct state __arena *st, u32 cpu)
{
	u32 first = cpu_of(st, cpu)->shared_first;
	u32 i;

	for (i = opaque(0); i < NR_CPUS && can_loop; i++) {
		u32 head = cpu_rq(st, first)->shared_head;
		u32 task = shared_runq_first(st, head, cpu);

		if (task != NO_TASK) {
			shared_runq_dequeue(st, task, task_of(st, task));
			return task;
		}
		first = cpu_of(st, first)->shared_next;
		if (first == cpu_of(st, cpu)->shared_first)
			break;
	}
	return NO_TASK;
}

#endif
