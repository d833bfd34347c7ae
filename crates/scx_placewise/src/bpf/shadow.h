/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * shadow.h: the state that decisions read, kept in step with the live kernel.
 *
 * The kernel's own run queues and tasks cannot be read as struct state, so each
 * CPU and each task has a shadow there: an index into state.rq and state.task.
 * The operations of sched_ext tell what happens to the kernel's; track.h makes
 * the same happen here.
 *
 * Who writes what:
 *
 *   rq[c], and the tasks that belong to c   who holds queue[c].locked
 *   what a task knows of its wakeups        the waker, who holds its pi_lock
 *   who runs on c (rq[c].curr)              CPU c, with the lock
 *   idle masks, counts of an LLC            anybody, atomically
 *   domain statistics, has_idle_cores       anybody, as in the kernel
 *   scratch[c]                              CPU c
 *
 * Everything is read without locks, as the kernel reads it. The locks are
 * leaves: nothing else is locked while one is held, except a second one of a
 * higher CPU number. All operations and timers (timer.h) run with interrupts
 * off, so a holder is never interrupted.
 */
#ifndef SCX_PLACEWISE_SHADOW_H
#define SCX_PLACEWISE_SHADOW_H

#define CONCURRENT_ENGINE
#include "kernel.h"

#include "state.h"

/* What one CPU decides right now. */
struct scratch {
	struct decision decision;
	struct balance_result balance;
	struct sd_lb_stats lb_stats;
	u64 levels[WALK_WORDS]; /* a balance_walk, between two steps */
	u64 cpus[WALK_WORDS];	/* a nohz_walk */
};

/* The dispatch queue of the tasks that have no shadow, for all CPUs. */
#define OVERFLOW NR_CPUS

/* A CPU's dispatch queue, whose id is the CPU's number. */
struct queue {
	u32 locked;
	u32 push_to; /* CPU + 1 that active balance wants a task for; 0 */
	u64 vtime;   /* the least that any of its tasks has run; never falls */
	s64 ahead; /* ns its tasks have run here more than those of OVERFLOW */
};

/* What orders a task in its queue. */
struct entity {
	u64 vtime;   /* weighted run time, on the scale of queue */
	u16 queue;   /* CPU */
	u16 push;    /* CPU + 1 it is to go to when it stops running; 0 */
	u16 new;     /* created, and never queued so far */
	u16 pending; /* CPU + 1 it is on its way to over the wake list; 0 */
};

#define GROUP_WORDS (NR_TASK_GROUPS / 64)

/* The first four are filled in by the loader. */
struct shadow {
	struct state state;
	u64 slice_ns; /* how long a task runs before another one's turn */
	u64 hint;     /* of tasks that have none of their own */
	u64 longest_wait_ns; /* before a task has its turn, whatever it weighs */
	struct scratch scratch[NR_CPUS];
	struct queue queue[NR_CPUS];
	struct entity entity[NR_TASKS];
	u64 slots[NR_TASKS / 64]; /* the tasks that are in use */
	u32 users
		[NR_TASK_GROUPS]; /* of a task group: its cgroup and its tasks */
	u64 unused[GROUP_WORDS];  /* task groups whose last user has gone */
};

#define PAGE_SIZE 4096
#define ARENA_START (1ULL << 44)

struct {
	__uint(type, BPF_MAP_TYPE_ARENA);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries,
	       (sizeof(struct shadow) + PAGE_SIZE - 1) / PAGE_SIZE);
	__ulong(map_extra, ARENA_START);
} arena SEC(".maps");

/*
 * Stands for what runs on @cpu if that is a task of another class, or one that has
 * no shadow. These tasks follow the idle tasks, and are never queued.
 */
#define foreign_task(cpu) (FIRST_TASK + (cpu))

static inline struct shadow __arena *shadow(void)
{
	struct shadow __arena *start = (struct shadow __arena *)ARENA_START;

	/* A program may use pointers into an arena only if it refers to it. */
	asm volatile("" : "+r"(start) : "r"(&arena));
	return start;
}

static inline struct state __arena *the_state(void)
{
	return &shadow()->state;
}

static inline u64 slice_ns(void)
{
	return shadow()->slice_ns;
}

static inline struct queue __arena *queue_of(u32 cpu)
{
	return indexed(shadow()->queue, cpu & (NR_CPUS - 1));
}

static inline struct entity __arena *entity_of(u32 task)
{
	return indexed(shadow()->entity, task & (NR_TASKS - 1));
}

static inline struct scratch __arena *scratch_of(const struct state __arena *st)
{
	u32 cpu = bpf_get_smp_processor_id();

	(void)st;
	return indexed(shadow()->scratch, cpu & (NR_CPUS - 1));
}

/*
 * This CPU has waited for others in vain. It cannot but go on, and what it writes may
 * not fit together any more: the kernel is to unload the scheduler.
 */
static __always_inline bool give_up(void)
{
	static char reason[] = "it waited too long for the lock of a CPU";

	/* Of data it takes none, but no NULL. */
	scx_bpf_error_bstr(reason, (unsigned long long *)reason, 0);
	return false;
}

/* can_loop, of a loop that waits for another CPU. */
#define can_wait (can_loop || give_up())

/* For as long as one loop may: a quarter of a second, or eight million turns before Linux 6.15. */
verified_once bool spin_for_lock(u32 cpu)
{
	while (__sync_lock_test_and_set(&queue_of(cpu)->locked, 1)) {
		if (!can_loop)
			return false;
	}
	return true;
}

/* The host of a virtual machine may stop a CPU that holds a lock: eight seconds. */
#define SPINS 32

verified_once int wait_for_lock(u32 cpu)
{
	u32 i;

	for (i = opaque(0); i < SPINS && can_loop; i++) {
		if (spin_for_lock(cpu))
			return 0;
	}
	give_up();
	return 0;
}

static inline void rq_lock(struct state __arena *st, u32 cpu)
{
	(void)st;
	if (__sync_lock_test_and_set(&queue_of(cpu)->locked, 1))
		wait_for_lock(cpu);
}

static inline void rq_unlock(struct state __arena *st, u32 cpu)
{
	(void)st;
	(void)__sync_lock_test_and_set(&queue_of(cpu)->locked, 0);
}

#include "nohz.h"
#include "place.h"
#include "runqueue.h"

static inline void double_rq_lock(struct state __arena *st, u32 a, u32 b)
{
	rq_lock(st, min(a, b));
	if (a != b)
		rq_lock(st, max(a, b));
}

static inline void double_rq_unlock(struct state __arena *st, u32 a, u32 b)
{
	rq_unlock(st, a);
	if (a != b)
		rq_unlock(st, b);
}

/* Lock the queue that @task belongs to; answers with its CPU. */
static inline u32 task_rq_lock(struct state __arena *st, u32 task)
{
	struct task __arena *p = task_of(st, task);
	u32 cpu = p->cpu;

	rq_lock(st, cpu);
	while (p->cpu != cpu && can_wait) {
		rq_unlock(st, cpu);
		cpu = p->cpu;
		rq_lock(st, cpu);
	}
	return cpu;
}

#endif
