// SPDX-License-Identifier: GPL-2.0-only
/*
 * main.bpf.c: the operations of the sched_ext scheduler.
 *
 *   shadow.h   the policy's state, and who may write what of it
 *   cgroup.h   which task group stands for a cgroup; what its tasks weigh
 *   process.h  which process of the policy a task belongs to
 *   task.h     which task of the kernel has which shadow; hints
 *   track.h    what happens to a task happens to its shadow
 *   select.h   which CPU a wakeup or a fork is for
 *   queue.h    in which order the tasks of a CPU run
 *   pull.h     balancing
 *   timer.h    the tick of a CPU that another class has taken
 *   exit.h     what the loader is told at the end
 *
 * Every CPU has a dispatch queue of its own, as each has a run queue in the
 * kernel: where a task waits is what the policy decides. Tasks of which there are
 * too many to know them wait in one more.
 *
 * For tests of what becomes of a fault: with TEST_STALL nothing is ever dispatched,
 * so that the kernel's watchdog has to step in; with TEST_HELD_LOCK a CPU once
 * does not let go of its lock; with TEST_FEW_TASKS few tasks have shadows (task.h).
 */
#include "exit.h"
#include "select.h"
#include "timer.h"

#ifdef TEST_STALL
static const bool stalls = true;
#else
static const bool stalls = false;
#endif

#ifdef TEST_HELD_LOCK
static bool holds_lock = true;
#else
static bool holds_lock = false;
#endif

#define OPERATION(name, args...)                                               \
	SEC("struct_ops/" #name) BPF_PROG(placewise_##name, ##args)
#define SLEEPABLE_OPERATION(name, args...)                                     \
	SEC("struct_ops.s/" #name) BPF_PROG(placewise_##name, ##args)

s32 OPERATION(select_cpu, struct task_struct *p, s32 prev_cpu, u64 wake_flags)
{
	struct state __arena *st = the_state();
	u32 task = shadow_of(p);

	if (task == NO_TASK)
		return prev_cpu;
	task_of(st, task)->hint = hint_of(p);
	return place(task, prev_cpu, wake_flags);
}

void OPERATION(enqueue, struct task_struct *p, u64 enq_flags)
{
	struct state __arena *st = the_state();
	u32 task = shadow_of(p);

	if (stalls)
		dsq_insert(p, scx_bpf_task_cpu(p), slice_ns(), enq_flags);
	else if (task == NO_TASK)
		queue_overflow(st, p, enq_flags);
	else
		queue_task(st, p, task, enq_flags, bpf_ktime_get_ns());
	/* The CPU idles now, unless it is told to look again. */
	if (enq_flags & SCX_ENQ_LAST)
		scx_bpf_kick_cpu(scx_bpf_task_cpu(p), SCX_KICK_IDLE);
}

void OPERATION(dispatch, s32 cpu, struct task_struct *prev)
{
	struct state __arena *st = the_state();
	u64 now = bpf_ktime_get_ns();
	bool runnable = prev && prev->scx.flags & SCX_TASK_QUEUED;

	if (stalls)
		return;
	if (cpu_rq(st, cpu)->nohz_flags)
		nohz_idle_balance(cpu, now);
	if (runnable) {
		account(cpu, now);
		if (trigger_load_balance(st, cpu, now))
			visit(cpu, CPU_NOT_IDLE, now);
	}
	if (overflow_is_next(cpu) && dsq_move_to_local(OVERFLOW))
		return;
	if (runnable && !leaves(prev, cpu, now) && goes_on(prev, cpu)) {
		set_slice(prev, slice_ns());
		return;
	}
	if (dsq_move_to_local(cpu) || dsq_move_to_local(OVERFLOW) || runnable)
		return;
	if (available_idle_cpu(st, cpu))
		return;
	visit(cpu, CPU_NEWLY_IDLE, now);
	dsq_move_to_local(cpu);
}

void OPERATION(tick, struct task_struct *p)
{
	struct state __arena *st = the_state();
	u32 cpu = scx_bpf_task_cpu(p);
	u64 now = bpf_ktime_get_ns();
	u32 task = shadow_of(p);

	if (task != NO_TASK)
		note_footprint(st, task, p);
	tick(cpu, now);
	if (holds_lock) {
		holds_lock = false;
		rq_lock(st, cpu);
	}
	reap_task_group();
	if (balance_is_due(st, cpu, now))
		set_slice(p, 0);
}

void OPERATION(runnable, struct task_struct *p, u64 enq_flags)
{
	u32 task = shadow_of(p);

	if (task != NO_TASK)
		task_runnable(task, scx_bpf_task_cpu(p),
			      enq_flags & SCX_ENQ_WAKEUP, bpf_ktime_get_ns());
}

void OPERATION(running, struct task_struct *p)
{
	u32 task = shadow_of(p);
	u32 cpu = scx_bpf_task_cpu(p);

	if (task != NO_TASK)
		task_running(task, cpu, bpf_ktime_get_ns());
	else
		cpu_taken(cpu, true, bpf_ktime_get_ns());
}

void OPERATION(stopping, struct task_struct *p, bool runnable)
{
	u32 task = shadow_of(p);

	if (task != NO_TASK)
		task_stopping(task, runnable, bpf_ktime_get_ns());
	else
		overflow_stopping(scx_bpf_task_cpu(p), bpf_ktime_get_ns());
}

void OPERATION(quiescent, struct task_struct *p, u64 deq_flags)
{
	u32 task = shadow_of(p);

	if (task != NO_TASK)
		task_quiescent(task, deq_flags & SCX_DEQ_SLEEP,
			       bpf_ktime_get_ns());
}

void OPERATION(set_weight, struct task_struct *p, u32 weight)
{
	u32 task = shadow_of(p);

	if (task != NO_TASK)
		set_task_weight(task, load_weight(weight));
}

void OPERATION(set_cpumask, struct task_struct *p, const void *cpumask)
{
	struct state __arena *st = the_state();
	u32 task = shadow_of(p);

	if (task != NO_TASK)
		set_allowed(st, task, p, cpumask);
}

void OPERATION(update_idle, s32 cpu, bool idle)
{
	cpu_idles(cpu, idle, bpf_ktime_get_ns());
	start_foreign_tick(cpu);
	/* What arrived while this CPU made up its mind must not wait. */
	if (idle && anything_waits(cpu))
		scx_bpf_kick_cpu(cpu, SCX_KICK_IDLE);
}

void OPERATION(cpu_release, s32 cpu, struct scx_cpu_release_args *args)
{
	cpu_taken(cpu, true, bpf_ktime_get_ns());
	start_foreign_tick(cpu);
	/* What waits for this CPU alone is better off where others find it. */
	scx_bpf_reenqueue_local();
}

void OPERATION(cpu_acquire, s32 cpu, struct scx_cpu_acquire_args *args)
{
	cpu_taken(cpu, false, bpf_ktime_get_ns());
}

void OPERATION(disable, struct task_struct *p)
{
	u32 task = shadow_of(p);
	u32 cpu = scx_bpf_task_cpu(p);

	if (task == NO_TASK)
		return;
	task_disabled(task, cpu, bpf_ktime_get_ns());
	start_foreign_tick(cpu);
}

void OPERATION(dump_cpu, struct scx_dump_ctx *dump, s32 cpu, bool idle)
{
	dump_shadow(the_state(), cpu);
}

s32 SLEEPABLE_OPERATION(init_task, struct task_struct *p,
			struct scx_init_task_args *args)
{
	return make_shadow(the_state(), p, args);
}

void OPERATION(exit_task, struct task_struct *p,
	       struct scx_exit_task_args *args)
{
	u32 task = shadow_of(p);

	(void)args;
	if (task != NO_TASK)
		drop_shadow(task);
}

s32 SLEEPABLE_OPERATION(cgroup_init, struct cgroup *cgrp,
			struct scx_cgroup_init_args *args)
{
	return make_task_group(the_state(), cgrp, args->weight);
}

void OPERATION(cgroup_exit, struct cgroup *cgrp)
{
	drop_task_group(cgrp);
}

void OPERATION(cgroup_move, struct task_struct *p, struct cgroup *from,
	       struct cgroup *to)
{
	u32 task = shadow_of(p);

	(void)from;
	if (task != NO_TASK)
		move_to_cgroup(task, to, bpf_ktime_get_ns());
}

void OPERATION(cgroup_set_weight, struct cgroup *cgrp, u32 weight)
{
	set_group_weight(the_state(), cgrp, weight);
}

s32 SLEEPABLE_OPERATION(init)
{
	struct state __arena *st = the_state();
	s32 error = scx_bpf_create_dsq(OVERFLOW, -1);
	u32 cpu;

	if (error)
		return error;
	reserve_tasks(st);
	for (cpu = opaque(0); cpu < st->root.nr_cpu_ids && can_loop; cpu++) {
		error = scx_bpf_create_dsq(cpu, -1);

		if (error)
			return error;
		init_foreign_tick(cpu);
	}
	return 0;
}

void OPERATION(exit, struct scx_exit_info *info)
{
	record_exit(info);
}

SEC(".struct_ops.link")
struct sched_ext_ops placewise = {
	.flags = SCX_OPS_ENQ_LAST,
	.select_cpu = (void *)placewise_select_cpu,
	.enqueue = (void *)placewise_enqueue,
	.dispatch = (void *)placewise_dispatch,
	.tick = (void *)placewise_tick,
	.runnable = (void *)placewise_runnable,
	.running = (void *)placewise_running,
	.stopping = (void *)placewise_stopping,
	.quiescent = (void *)placewise_quiescent,
	.set_weight = (void *)placewise_set_weight,
	.set_cpumask = (void *)placewise_set_cpumask,
	.update_idle = (void *)placewise_update_idle,
	.cpu_acquire = (void *)placewise_cpu_acquire,
	.cpu_release = (void *)placewise_cpu_release,
	.disable = (void *)placewise_disable,
	.dump_cpu = (void *)placewise_dump_cpu,
	.init_task = (void *)placewise_init_task,
	.exit_task = (void *)placewise_exit_task,
	.cgroup_init = (void *)placewise_cgroup_init,
	.cgroup_exit = (void *)placewise_cgroup_exit,
	.cgroup_move = (void *)placewise_cgroup_move,
	.cgroup_set_weight = (void *)placewise_cgroup_set_weight,
	.init = (void *)placewise_init,
	.exit = (void *)placewise_exit,
	.name = "placewise",
};

char LICENSE[] SEC("license") = "GPL";
