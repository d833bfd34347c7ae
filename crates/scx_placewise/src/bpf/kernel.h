/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * kernel.h: what the scheduler uses of the kernel: types, constants and kfuncs.
 *
 * Of a struct only the fields that are read stand here; their places are those
 * of the running kernel (CO-RE). Names and values are the kernel's.
 *
 * Kernels: 6.12 to 7.3. Kfuncs that only some of them have are weak, and called
 * by functions of their own here, which know what to do without.
 */
#ifndef SCX_PLACEWISE_KERNEL_H
#define SCX_PLACEWISE_KERNEL_H

#include "types.h"

/* What libbpf's headers expect. */
typedef u8 __u8;
typedef u16 __u16;
typedef u32 __u32;
typedef u64 __u64;
typedef s32 __s32;
typedef s64 __s64;
typedef u16 __be16;
typedef u32 __be32;
typedef u32 __wsum;

#include <bpf/bpf_core_read.h>
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_tracing.h>

#define BPF_MAP_TYPE_HASH 1
#define BPF_MAP_TYPE_ARRAY 2
#define BPF_MAP_TYPE_PERCPU_ARRAY 6
#define BPF_MAP_TYPE_TASK_STORAGE 29
#define BPF_MAP_TYPE_ARENA 33
#define BPF_F_NO_PREALLOC 1
#define BPF_F_MMAPABLE 1024
#define BPF_LOCAL_STORAGE_GET_F_CREATE 1
#define BPF_F_TIMER_CPU_PIN 2
#define CLOCK_MONOTONIC 1

#define PF_EXITING 0x00000004
#define PF_KTHREAD 0x00200000
#define SCHED_IDLE 5

#define SCX_DSQ_LOCAL 0x8000000000000002ULL
#define SCX_ENQ_WAKEUP 1ULL
#define SCX_ENQ_LAST (1ULL << 41)
#define SCX_DEQ_SLEEP 1ULL
#define SCX_OPS_ENQ_LAST 2ULL
#define SCX_KICK_IDLE 1ULL
#define SCX_KICK_PREEMPT 2ULL
#define SCX_TASK_QUEUED 1

#define kernel_struct __attribute__((preserve_access_index))

struct sched_ext_entity {
	u32 flags;
	u32 weight;
	u64 slice;
} kernel_struct;

struct kernfs_node {
	u64 id;
} kernel_struct;

struct cgroup;

struct cgroup_subsys_state {
	struct cgroup *cgroup;
	struct cgroup_subsys_state *parent;
} kernel_struct;

struct cgroup {
	struct cgroup_subsys_state self;
	s32 level; /* 0 = the root */
	struct kernfs_node *kn;
} kernel_struct;

struct percpu_counter {
	s64 count;
} kernel_struct;

enum {
	MM_FILEPAGES,
	MM_ANONPAGES,
	MM_SWAPENTS,
	MM_SHMEMPAGES,
	NR_MM_COUNTERS
};

struct mm_struct {
	struct percpu_counter rss_stat[NR_MM_COUNTERS];
} kernel_struct;

struct task_struct {
	s32 pid;
	s32 tgid;
	u32 flags;
	u32 policy;
	s32 nr_cpus_allowed;
	u16 migration_disabled;
	const void *cpus_ptr;
	struct task_struct *group_leader;
	struct mm_struct *mm;
	struct sched_ext_entity scx;
} kernel_struct;

struct scx_init_task_args {
	bool fork;
	struct cgroup *cgroup;
} kernel_struct;

struct scx_cgroup_init_args {
	u32 weight;
} kernel_struct;

struct scx_exit_task_args;
struct scx_cpu_acquire_args;
struct scx_cpu_release_args;
struct scx_dump_ctx;

enum scx_exit_kind {
	SCX_EXIT_NONE,
};

struct scx_exit_info {
	enum scx_exit_kind kind;
	s64 exit_code;
	const char *reason;
	char *msg;
	char *dump;
} kernel_struct;

struct bpf_timer {
	u64 opaque[2];
} __attribute__((aligned(8)));

struct bpf_iter_scx_dsq {
	u64 opaque[6];
} __attribute__((aligned(8)));

/* The fields are found by name: the first two are for the loader to set. */
struct sched_ext_ops {
	u64 flags;
	u64 hotplug_seq;
	u32 timeout_ms;
	s32 (*select_cpu)(struct task_struct *p, s32 prev_cpu, u64 wake_flags);
	void (*enqueue)(struct task_struct *p, u64 enq_flags);
	void (*dispatch)(s32 cpu, struct task_struct *prev);
	void (*tick)(struct task_struct *p);
	void (*runnable)(struct task_struct *p, u64 enq_flags);
	void (*running)(struct task_struct *p);
	void (*stopping)(struct task_struct *p, bool runnable);
	void (*quiescent)(struct task_struct *p, u64 deq_flags);
	void (*set_weight)(struct task_struct *p, u32 weight);
	void (*set_cpumask)(struct task_struct *p, const void *cpumask);
	void (*update_idle)(s32 cpu, bool idle);
	void (*cpu_acquire)(s32 cpu, struct scx_cpu_acquire_args *args);
	void (*cpu_release)(s32 cpu, struct scx_cpu_release_args *args);
	void (*dump_cpu)(struct scx_dump_ctx *dump, s32 cpu, bool idle);
	void (*disable)(struct task_struct *p);
	s32 (*init_task)(struct task_struct *p,
			 struct scx_init_task_args *args);
	void (*exit_task)(struct task_struct *p,
			  struct scx_exit_task_args *args);
	s32 (*cgroup_init)(struct cgroup *cgrp,
			   struct scx_cgroup_init_args *args);
	void (*cgroup_exit)(struct cgroup *cgrp);
	void (*cgroup_move)(struct task_struct *p, struct cgroup *from,
			    struct cgroup *to);
	void (*cgroup_set_weight)(struct cgroup *cgrp, u32 weight);
	s32 (*init)(void);
	void (*exit)(struct scx_exit_info *info);
	char name[128];
};

/* Linux 6.14. */
extern void bpf_local_irq_save(unsigned long *flags) __ksym __weak;
extern void bpf_local_irq_restore(unsigned long *flags) __ksym __weak;
extern void bpf_rcu_read_lock(void) __ksym;
extern void bpf_rcu_read_unlock(void) __ksym;
extern s32 scx_bpf_create_dsq(u64 dsq_id, s32 node) __ksym;
extern s32 scx_bpf_dsq_nr_queued(u64 dsq_id) __ksym;
extern void scx_bpf_dsq_insert(struct task_struct *p, u64 dsq_id, u64 slice,
			       u64 enq_flags) __ksym __weak;
extern void scx_bpf_dsq_insert_vtime(struct task_struct *p, u64 dsq_id,
				     u64 slice, u64 vtime,
				     u64 enq_flags) __ksym __weak;
extern bool scx_bpf_dsq_move_to_local(u64 dsq_id) __ksym __weak;
extern void scx_bpf_dsq_move_set_vtime(struct bpf_iter_scx_dsq *iter,
				       u64 vtime) __ksym __weak;
extern bool scx_bpf_dsq_move_vtime(struct bpf_iter_scx_dsq *iter,
				   struct task_struct *p, u64 dsq_id,
				   u64 enq_flags) __ksym __weak;
extern void scx_bpf_error_bstr(char *format, unsigned long long *data,
			       u32 data__sz) __ksym;
extern void scx_bpf_kick_cpu(s32 cpu, u64 flags) __ksym;
extern s32 scx_bpf_task_cpu(const struct task_struct *p) __ksym;
extern bool scx_bpf_task_set_slice(struct task_struct *p,
				   u64 slice) __ksym __weak;
extern u32 scx_bpf_reenqueue_local(void) __ksym;
extern void scx_bpf_dump_bstr(char *format, unsigned long long *data,
			      u32 data__sz) __ksym;
extern int bpf_iter_scx_dsq_new(struct bpf_iter_scx_dsq *iter, u64 dsq_id,
				u64 flags) __ksym;
extern struct task_struct *
bpf_iter_scx_dsq_next(struct bpf_iter_scx_dsq *iter) __ksym;
extern void bpf_iter_scx_dsq_destroy(struct bpf_iter_scx_dsq *iter) __ksym;

/* What these five were called until 6.12. */
extern void scx_bpf_dispatch(struct task_struct *p, u64 dsq_id, u64 slice,
			     u64 enq_flags) __ksym __weak;
extern void scx_bpf_dispatch_vtime(struct task_struct *p, u64 dsq_id, u64 slice,
				   u64 vtime, u64 enq_flags) __ksym __weak;
extern bool scx_bpf_consume(u64 dsq_id) __ksym __weak;
extern void scx_bpf_dispatch_from_dsq_set_vtime(struct bpf_iter_scx_dsq *iter,
						u64 vtime) __ksym __weak;
extern bool scx_bpf_dispatch_vtime_from_dsq(struct bpf_iter_scx_dsq *iter,
					    struct task_struct *p, u64 dsq_id,
					    u64 enq_flags) __ksym __weak;

static inline void dsq_insert(struct task_struct *p, u64 dsq_id, u64 slice,
			      u64 enq_flags)
{
	if (bpf_ksym_exists(scx_bpf_dsq_insert))
		scx_bpf_dsq_insert(p, dsq_id, slice, enq_flags);
	else
		scx_bpf_dispatch(p, dsq_id, slice, enq_flags);
}

static inline void dsq_insert_vtime(struct task_struct *p, u64 dsq_id,
				    u64 slice, u64 vtime, u64 enq_flags)
{
	if (bpf_ksym_exists(scx_bpf_dsq_insert_vtime))
		scx_bpf_dsq_insert_vtime(p, dsq_id, slice, vtime, enq_flags);
	else
		scx_bpf_dispatch_vtime(p, dsq_id, slice, vtime, enq_flags);
}

static inline bool dsq_move_to_local(u64 dsq_id)
{
	if (bpf_ksym_exists(scx_bpf_dsq_move_to_local))
		return scx_bpf_dsq_move_to_local(dsq_id);
	return scx_bpf_consume(dsq_id);
}

static inline void dsq_move_set_vtime(struct bpf_iter_scx_dsq *iter, u64 vtime)
{
	if (bpf_ksym_exists(scx_bpf_dsq_move_set_vtime))
		scx_bpf_dsq_move_set_vtime(iter, vtime);
	else
		scx_bpf_dispatch_from_dsq_set_vtime(iter, vtime);
}

static inline bool dsq_move_vtime(struct bpf_iter_scx_dsq *iter,
				  struct task_struct *p, u64 dsq_id,
				  u64 enq_flags)
{
	if (bpf_ksym_exists(scx_bpf_dsq_move_vtime))
		return scx_bpf_dsq_move_vtime(iter, p, dsq_id, enq_flags);
	return scx_bpf_dispatch_vtime_from_dsq(iter, p, dsq_id, enq_flags);
}

/* How long @p may run before dispatch() is asked again. */
static inline void set_slice(struct task_struct *p, u64 slice)
{
	if (bpf_ksym_exists(scx_bpf_task_set_slice))
		scx_bpf_task_set_slice(p, slice);
	else
		p->scx.slice = slice;
}

#endif
