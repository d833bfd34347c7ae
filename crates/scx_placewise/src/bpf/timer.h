/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * timer.h: the tick of a CPU that runs a task of another class.
 *
 * The kernel's tick looks after balance on every busy CPU; tick() of sched_ext
 * only comes while one of our tasks runs. A CPU that another class has taken
 * gets a timer of its own, which balances as the tick would: it interrupts a
 * tickless idle CPU if that could help, and balances the levels of the CPU that
 * are due. So what waits behind a hog is pulled even where all others sleep, and
 * a hog on the CPU that balances for its LLC or node does not keep it from it.
 *
 * The timer starts when the CPU is taken, and ends when it finds that the CPU is
 * ours or idle again: it wakes an idle CPU once at most. It is pinned to its CPU,
 * or to the one that has made a running task of ours one of another class.
 *
 * Limits: it takes Linux 6.14; before, what waits behind a hog is pulled when some
 * CPU of ours becomes idle. Interrupts are off during the pass, as the locks of the
 * shadow demand; in the kernel they are on. With PREEMPT_RT a timer's callback runs
 * in a thread, which a hog of higher priority holds up. Linux 6.18 makes no timers
 * where the CPU cannot compare and exchange two words at once (cmpxchg16b); there a
 * CPU that is taken has no tick.
 */
#ifndef SCX_PLACEWISE_TIMER_H
#define SCX_PLACEWISE_TIMER_H

#include "pull.h"

struct foreign_tick {
	struct bpf_timer timer;
	u32 pending;
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, NR_CPUS);
	__type(key, u32);
	__type(value, struct foreign_tick);
} foreign_ticks SEC(".maps");

static inline void schedule_tick(struct foreign_tick *tick)
{
	if (!bpf_ksym_exists(bpf_local_irq_save))
		return;
	if (__sync_lock_test_and_set(&tick->pending, 1))
		return;
	bpf_timer_start(&tick->timer, the_state()->root.tick_ns,
			BPF_F_TIMER_CPU_PIN);
}

/* What the tick of @key would do if the task that runs there were ours. */
static int foreign_tick(void *map, u32 *key, struct foreign_tick *tick)
{
	struct state __arena *st = the_state();
	u64 now = bpf_ktime_get_ns();
	u32 cpu = *key;
	unsigned long flags;

	if (!bpf_ksym_exists(bpf_local_irq_save))
		return 0;
	/* Who takes the CPU after we have looked finds that nothing is pending. */
	(void)__sync_lock_test_and_set(&tick->pending, 0);
	if (!runs_foreign(st, cpu))
		return 0;
	bpf_local_irq_save(&flags);
	if (balance_is_due(st, cpu, now))
		visit(cpu, CPU_NOT_IDLE, now);
	bpf_local_irq_restore(&flags);
	schedule_tick(tick);
	return 0;
}

/* @cpu ticks from now on if another class has taken it. */
static inline void start_foreign_tick(u32 cpu)
{
	struct foreign_tick *tick = bpf_map_lookup_elem(&foreign_ticks, &cpu);

	if (tick && runs_foreign(the_state(), cpu))
		schedule_tick(tick);
}

static inline void init_foreign_tick(u32 cpu)
{
	struct foreign_tick *tick = bpf_map_lookup_elem(&foreign_ticks, &cpu);

	if (tick &&
	    !bpf_timer_init(&tick->timer, &foreign_ticks, CLOCK_MONOTONIC))
		bpf_timer_set_callback(&tick->timer, foreign_tick);
}

#endif
