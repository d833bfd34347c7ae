/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * select.h: which CPU a wakeup or a fork is for.
 *
 * Limits: sched_ext asks for no CPU at exec. Whether the waker is an interrupt
 * is not seen: it counts as a wakeup by the current task, as far as the rule for
 * per-CPU kthreads goes.
 */
#ifndef SCX_PLACEWISE_SELECT_H
#define SCX_PLACEWISE_SELECT_H

#include "count.h"
#include "track.h"

/* Who wakes is who runs here, of whatever class. */
verified_once int note_waker(u32 cpu)
{
	struct state __arena *st = the_state();
	struct task_struct *current = bpf_get_current_task_btf();
	struct rq __arena *rq = cpu_rq(st, cpu);
	u32 waker = cpu;

	if (current->pid) {
		waker = shadow_of(current);
		if (waker == NO_TASK)
			waker = foreign_task(cpu);
		task_of(st, waker)->exiting = !!(current->flags & PF_EXITING);
	}
	if (rq->curr == waker)
		return 0;
	rq_lock(st, cpu);
	rq->curr = waker;
	shadow_update_idle(cpu);
	rq_unlock(st, cpu);
	return 0;
}

/*
 * Does the wakee travel over the wake list of @cpu? Ours always goes directly,
 * but until it is there @cpu is not idle to others, as with the list.
 */
verified_once int mark_pending(u32 task, u32 this_cpu, u32 cpu)
{
	struct state __arena *st = the_state();

	if (!ttwu_queue_wakelist(st, task, this_cpu, cpu, false))
		return 0;
	rq_lock(st, cpu);
	entity_of(task)->pending = cpu + 1;
	set_ttwu_pending(st, cpu, true);
	rq_unlock(st, cpu);
	return 0;
}

/* The CPU for @task, which last ran on @prev and is woken or created here. */
static inline u32 place(u32 task, u32 prev, u32 wake_flags)
{
	struct state __arena *st = the_state();
	u32 this_cpu = bpf_get_smp_processor_id();
	u32 cpu;

	note_waker(this_cpu);
	cpu = select_task_rq(st, task, prev, this_cpu, wake_flags,
			     bpf_ktime_get_ns());
	count_placed(st, task, wake_flags & WF_FORK, prev, cpu);
	if (wake_flags & WF_TTWU)
		mark_pending(task, this_cpu, cpu);
	return cpu;
}

#endif
