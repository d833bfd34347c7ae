/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * process.h: which process of the policy a task belongs to, and how much memory
 * that has.
 *
 * A thread group is a process, from its first thread to its last, or one of a
 * group that a hint has made share a cache; threads of the kernel are in none.
 * Its memory is what is resident of it but for files, as a thread of it finds at
 * its tick; a group's is that of its process that ticked last.
 *
 * Limits: the kernel goes by memory. A process that executes another program
 * keeps its run times here, and what shares memory with its parent until then is
 * a process from the start. What the kernel takes for a process's memory is what
 * NUMA balancing sees in use, which is less.
 */
#ifndef SCX_PLACEWISE_PROCESS_H
#define SCX_PLACEWISE_PROCESS_H

#include "shadow.h"

/* @p has begun, as a copy of its creator if that was known, or was there before us. */
static inline void join_process(struct state __arena *st, u32 task,
				struct task_struct *p, u32 leader)
{
	struct task __arena *shadow = task_of(st, task);

	if (p->flags & PF_KTHREAD) {
		leave_process(st, shadow);
	} else if (p->pid == p->tgid) {
		start_process(st, task, 0);
	} else if (shadow->process == NO_PROCESS && leader != NO_TASK) {
		copy_process(st, shadow, task_of(st, leader));
	}
}

static inline u64 resident_pages(struct task_struct *p)
{
	struct mm_struct *mm = BPF_CORE_READ(p, mm);
	s64 anonymous = BPF_CORE_READ(mm, rss_stat[MM_ANONPAGES].count);
	s64 shared = BPF_CORE_READ(mm, rss_stat[MM_SHMEMPAGES].count);

	/* The parts of other CPUs are not in it yet. */
	return max(anonymous, 0LL) + max(shared, 0LL);
}

/* At the tick of @p. */
static inline void note_footprint(struct state __arena *st, u32 task,
				  struct task_struct *p)
{
	u32 process = task_of(st, task)->process;

	if (has_size_gates(st) && process != NO_PROCESS)
		process_of(st, process)->footprint =
			resident_pages(p) * PAGE_SIZE;
}

#endif
