/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * task.h: which shadow a task of the kernel has, and what it starts with.
 *
 * A task gets its shadow when it is created, or when the scheduler is loaded,
 * whatever its class: it may wake ours. Hints stand in a map of their own that
 * outlives a shadow's owner; children inherit them.
 *
 * Limits: 63,488 tasks. Those beyond have no shadow, and are not placed: they wait
 * for whatever CPU is the first to take them (queue.h).
 */
#ifndef SCX_PLACEWISE_TASK_H
#define SCX_PLACEWISE_TASK_H

#include "cgroup.h"
#include "process.h"

/*
 * Both maps of storage outlive a scheduler that is loaded anew after hotplug.
 * Freeing one waits for all RCU readers on a CPU that must not go away
 * meanwhile, so that it and the next CPU going offline can wait for each other
 * for ever.
 */
struct {
	__uint(type, BPF_MAP_TYPE_TASK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, u32);
} tasks SEC(".maps");

/* What user space asked for. */
struct hint_entry {
	u32 mask;      /* enum hint; what it means is in policy/hint.h */
	u32 only_self; /* children do not inherit it */
	u32 class; /* that the hint took the task from; user space's alone */
};

/* In place of a mask: no hint of its own. */
#define NO_HINT (~0U)

struct {
	__uint(type, BPF_MAP_TYPE_TASK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, struct hint_entry);
} hints SEC(".maps");

#ifdef TEST_FEW_TASKS
#define SLOT_WORDS ((foreign_task(NR_CPUS) + 512) / 64)
#else
#define SLOT_WORDS (NR_TASKS / 64)
#endif

static u32 next_slots; /* the word of slots to look at first */

static inline u32 shadow_of(struct task_struct *p)
{
	u32 *task = bpf_task_storage_get(&tasks, p, 0, 0);

	return task ? *task : NO_TASK;
}

/* The first thread of the process of @p. */
static inline u32 leader_of(struct task_struct *p)
{
	u32 leader;

	bpf_rcu_read_lock();
	leader = shadow_of(p->group_leader);
	bpf_rcu_read_unlock();
	return leader;
}

static inline u32 hint_of(struct task_struct *p)
{
	struct hint_entry *hint = bpf_task_storage_get(&hints, p, 0, 0);

	return hint && hint_check(hint->mask & ~HINT_SHARE_CACHE) == HINT_VALID
		       ? hint->mask
		       : shadow()->hint;
}

/* A task that is not in use, or NO_TASK. */
static inline u32 allocate_task(void)
{
	u32 words = SLOT_WORDS;
	u32 i;

	for (i = opaque(0); i < words && can_loop; i++) {
		u32 word = (next_slots + i) % SLOT_WORDS;
		u64 __arena *used = &shadow()->slots[word];
		u64 before = *used;
		u64 bit = ~before & (before + 1);

		if (!bit || __sync_val_compare_and_swap(used, before,
							before | bit) != before)
			continue;
		next_slots = word;
		return word * 64 + first_bit(bit);
	}
	return NO_TASK;
}

/* Idle tasks, and those that stand for other classes, are always in use. */
static inline void reserve_tasks(struct state __arena *st)
{
	u32 i;

	for (i = opaque(0); i < foreign_task(NR_CPUS) / 64 && can_loop; i++)
		shadow()->slots[i & (NR_TASKS / 64 - 1)] = ~0ULL;
	for (i = opaque(0); i < NR_CPUS && can_loop; i++) {
		struct task __arena *p = task_of(st, foreign_task(i));

		p->cpu = i;
		p->last_wakee = NO_TASK;
		p->weight = NICE_0_LOAD;
		p->rt_priority = 1;
		p->mru_prev = NO_TASK;
		p->mru_next = NO_TASK;
	}
}

static inline void free_task(u32 task)
{
	u64 __arena *used = &shadow()->slots[task / 64 % (NR_TASKS / 64)];

	atomic_and(used, ~(1ULL << (task & 63)));
}

/* CPUs beyond nr_cpu_ids have no bit in the kernel's mask. */
static inline void copy_cpumask(struct state __arena *st,
				struct cpumask __arena *to, const void *from)
{
	u64 bits[CPUMASK_WORDS] = {};
	u32 bytes = (st->root.nr_cpu_ids + 63) / 64 * sizeof(u64);
	u32 word;

	if (bytes > sizeof(bits))
		bytes = sizeof(bits);
	bpf_probe_read_kernel(bits, bytes, from);
	for (word = 0; word < CPUMASK_WORDS; word++)
		to->bits[word] = bits[word];
}

static inline void set_allowed(struct state __arena *st, u32 task,
			       struct task_struct *p, const void *cpumask)
{
	struct task __arena *shadow = task_of(st, task);

	copy_cpumask(st, &shadow->cpus_allowed, cpumask);
	shadow->nr_cpus_allowed = p->nr_cpus_allowed;
	shadow->per_cpu_kthread =
		p->flags & PF_KTHREAD && p->nr_cpus_allowed == 1;
}

static inline void clear_task(struct task __arena *p)
{
	u64 __arena *word = (u64 __arena *)p;
	u32 i;

	for (i = opaque(0); i < sizeof(*p) / sizeof(*word) && can_loop; i++)
		word[i] = 0;
}

/* What is known of @p before it is placed for the first time. */
static inline void start_task(struct state __arena *st, u32 task,
			      struct task_struct *p)
{
	struct task __arena *shadow = task_of(st, task);
	struct entity __arena *entity = entity_of(task);
	u32 cpu = scx_bpf_task_cpu(p);

	clear_task(shadow);
	shadow->weight = load_weight(p->scx.weight);
	shadow->idle_policy = p->policy == SCHED_IDLE;
	shadow->avg.load_avg = shadow->weight;
	shadow->last_wakee = NO_TASK;
	shadow->mru_prev = NO_TASK;
	shadow->mru_next = NO_TASK;
	shadow->cpu = cpu;
	shadow->recent_used_cpu = cpu;
	shadow->eligible = true;
	shadow->hint = hint_of(p);
	set_allowed(st, task, p, p->cpus_ptr);
	entity->queue = cpu;
	entity->vtime = queue_of(cpu)->vtime;
	entity->push = 0;
	entity->pending = 0;
	entity->new = true;
}

/* @p was created by the current task, and inherits what that one knows. */
static inline void inherit(struct state __arena *st, u32 task,
			   struct task_struct *p)
{
	struct task_struct *creator = bpf_get_current_task_btf();
	u32 parent = shadow_of(creator);
	struct hint_entry *hint = bpf_task_storage_get(&hints, creator, 0, 0);

	if (hint) {
		struct hint_entry inherited = *hint;

		/* Where the hint is not inherited, the class still is. */
		if (hint->only_self)
			inherited.mask = NO_HINT;
		bpf_task_storage_get(&hints, p, &inherited,
				     BPF_LOCAL_STORAGE_GET_F_CREATE);
	}
	if (parent != NO_TASK)
		copy_task(st, task, parent, scx_bpf_task_cpu(p));
	task_of(st, task)->hint = hint_of(p);
}

static inline s32 make_shadow(struct state __arena *st, struct task_struct *p,
			      const struct scx_init_task_args *args)
{
	u32 task = allocate_task();
	u32 *kept = bpf_task_storage_get(&tasks, p, &task,
					 BPF_LOCAL_STORAGE_GET_F_CREATE);

	if (!kept) {
		if (task != NO_TASK)
			free_task(task);
		return -12; /* ENOMEM */
	}
	*kept = task; /* in place of that of an earlier load */
	if (task == NO_TASK)
		return 0;
	start_task(st, task, p);
	if (args->fork)
		inherit(st, task, p);
	join_process(st, task, p, leader_of(p));
	task_of(st, task)->task_group = group_of_cgroup(args->cgroup);
	get_task_group(task_of(st, task)->task_group);
	return 0;
}

#endif
