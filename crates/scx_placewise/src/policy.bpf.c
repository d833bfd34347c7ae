// SPDX-License-Identifier: GPL-2.0-only
/*
 * policy.bpf.c: the BPF build of the policy: each of its entry points as a
 * program that user space runs through BPF_PROG_RUN.
 *
 * The state lives in an arena; the caller passes its address, which is the same
 * for the program and for the process that mapped the arena. A program has the
 * name of its entry point in native.c. Two more decide many wakeups in one call,
 * to be timed.
 */
#include "balance.h"
#include "nohz.h"
#include "place.h"
#include "runqueue.h"

#define SEC(name) __attribute__((section(name), used))

/* What libbpf reads of a map definition: numbers are sizes of arrays. */
#define map_number(name, value) int(*name)[value]

#define BPF_MAP_TYPE_ARENA 33
#define BPF_F_MMAPABLE 1024
#define PAGE_SIZE 4096

#define NR_WAKEUPS 8192

/* One to decide; prev is where the wakee was, cpu where it is woken. */
struct wakeup_to_decide {
	u32 task, prev, cpu, chosen;
};

/* Mirrored in lib.rs, as are the two above. */
struct memory {
	struct state state;
	struct wakeup_to_decide wakeup[NR_WAKEUPS];
};

struct {
	map_number(type, BPF_MAP_TYPE_ARENA);
	map_number(map_flags, BPF_F_MMAPABLE);
	map_number(max_entries,
		   (sizeof(struct memory) + PAGE_SIZE - 1) / PAGE_SIZE);
} arena SEC(".maps");

#define WALK_WORDS (sizeof(struct balance_walk) / sizeof(u64))

/* Mirrored in lib.rs. */
struct call {
	struct state __arena *st;
	u64 argument[5];
	u64 result;
	u64 walk[WALK_WORDS];
};

/* A program may use pointers into an arena only if it refers to the arena. */
#define refer_to_arena() asm volatile("" ::"r"(&arena))

/* In @expression, st is the state, and a to e are the arguments after it. */
#define ENTRY_POINT(name, expression)                                          \
	SEC("syscall") int name##_call(struct call *call)                      \
	{                                                                      \
		struct state __arena *st = call->st;                           \
		u64 a = call->argument[0];                                     \
		u64 b = call->argument[1];                                     \
		u64 c = call->argument[2];                                     \
		u64 d = call->argument[3];                                     \
		u64 e = call->argument[4];                                     \
                                                                               \
		(void)st, (void)a, (void)b, (void)c, (void)d, (void)e;         \
		refer_to_arena();                                              \
		call->result = (expression);                                   \
		return 0;                                                      \
	}
#define ENTRY_POINT_VOID(name, call) ENTRY_POINT(name, (call, 0))

/*
 * The same with a walk, which the caller keeps between two calls. Its words are
 * copied one by one: a context takes no accesses through moved pointers.
 */
#define WALK(name, kind, expression)                                           \
	SEC("syscall") int name##_call(struct call *call)                      \
	{                                                                      \
		struct state __arena *st = call->st;                           \
		u64 a = call->argument[0];                                     \
		u64 b = call->argument[1];                                     \
		u64 c = call->argument[2];                                     \
		union {                                                        \
			struct kind kind;                                      \
			u64 word[WALK_WORDS];                                  \
		} copy;                                                        \
		struct kind *walk = &copy.kind;                                \
                                                                               \
		(void)a, (void)b, (void)c;                                     \
		refer_to_arena();                                              \
		for (u32 i = 0; i < WALK_WORDS; i++)                           \
			copy.word[i] = call->walk[i];                          \
		call->result = (expression);                                   \
		for (u32 i = 0; i < WALK_WORDS; i++)                           \
			call->walk[i] = copy.word[i];                          \
		return 0;                                                      \
	}
#define WALK_VOID(name, kind, call) WALK(name, kind, (call, 0))

ENTRY_POINT_VOID(set_ttwu_pending, set_ttwu_pending(st, a, b))
ENTRY_POINT(update_curr, update_curr(st, a, b))
ENTRY_POINT_VOID(set_task_cpu, set_task_cpu(st, a, b))
ENTRY_POINT_VOID(enqueue_task, enqueue_task(st, a, b, c))
ENTRY_POINT_VOID(dequeue_task, dequeue_task(st, a, b, c))
ENTRY_POINT_VOID(delay_dequeue, delay_dequeue(st, a, b))
ENTRY_POINT_VOID(requeue_delayed, requeue_delayed(st, a, b))
ENTRY_POINT_VOID(set_next_task, set_next_task(st, a, b, c))
ENTRY_POINT_VOID(put_prev_task, put_prev_task(st, a, b))
ENTRY_POINT_VOID(task_tick, task_tick(st, a, b))
ENTRY_POINT_VOID(requeue_task_rt, requeue_task_rt(st, a))
ENTRY_POINT_VOID(sample_avg_idle, sample_avg_idle(st, a, b))
ENTRY_POINT_VOID(copy_task, copy_task(st, a, b, c))
ENTRY_POINT_VOID(task_dead, task_dead(st, a))
ENTRY_POINT_VOID(place_new_task, place_new_task(st, a, b))
ENTRY_POINT(select_task_rq, select_task_rq(st, a, b, c, d, e))
ENTRY_POINT(select_fallback_rq, select_fallback_rq(st, task_of(st, a)))
ENTRY_POINT(ttwu_queue_wakelist, ttwu_queue_wakelist(st, a, b, c, d))
ENTRY_POINT_VOID(record_scan_cost, record_scan_cost(st, a, b))
ENTRY_POINT(nr_idle_scan_of, nr_idle_scan_of(a, b, c))
ENTRY_POINT(hint_check, hint_check(a))
ENTRY_POINT(load_balance, load_balance(st, a, b, c, d))
ENTRY_POINT(active_balance_task, active_balance_task(st, a, b, c))
ENTRY_POINT(trigger_load_balance, trigger_load_balance(st, a, b))
WALK_VOID(rebalance_domains_start, balance_walk,
	  rebalance_domains_start(st, walk, a, b, c))
WALK(rebalance_domains_next, balance_walk, rebalance_domains_next(st, walk, a))
WALK_VOID(rebalance_domains_level_done, balance_walk,
	  rebalance_domains_level_done(st, walk, a, b, c))
WALK_VOID(rebalance_domains_end, balance_walk, rebalance_domains_end(st, walk))
WALK(newidle_balance_start, balance_walk, newidle_balance_start(st, walk, a, b))
WALK(newidle_balance_next, balance_walk, newidle_balance_next(st, walk))
WALK_VOID(newidle_balance_level_done, balance_walk,
	  newidle_balance_level_done(st, walk, a, b, c))
WALK_VOID(newidle_balance_end, balance_walk, newidle_balance_end(st, walk))
ENTRY_POINT_VOID(nohz_balance_enter_idle, nohz_balance_enter_idle(st, a))
ENTRY_POINT_VOID(nohz_balance_exit_idle, nohz_balance_exit_idle(st, a))
ENTRY_POINT(nohz_balancer_kick, nohz_balancer_kick(st, a, b))
WALK(nohz_balance_start, nohz_walk, nohz_balance_start(st, walk, a, b))
WALK(nohz_balance_next, nohz_walk, nohz_balance_next(st, walk, a))
WALK_VOID(nohz_balance_end, nohz_walk, nohz_balance_end(st, walk, a))
ENTRY_POINT_VOID(update_blocked_averages, update_blocked_averages(st, a, b))
ENTRY_POINT(create_task_group, create_task_group(st, a, b))
ENTRY_POINT_VOID(destroy_task_group, destroy_task_group(st, a))
ENTRY_POINT_VOID(set_task_group_shares, set_task_group_shares(st, a, b))
ENTRY_POINT_VOID(task_change_group, task_change_group(st, a, b, c))
ENTRY_POINT_VOID(throttle_cfs_rq, throttle_cfs_rq(st, a, b, c))
ENTRY_POINT_VOID(unthrottle_cfs_rq, unthrottle_cfs_rq(st, a, b, c))
ENTRY_POINT(task_h_load, task_h_load(st, task_of(st, a)))
ENTRY_POINT(task_util_est, task_util_est(task_of(st, a)))
ENTRY_POINT(cpu_util, cpu_util(st, a))
ENTRY_POINT(cpu_runnable_load, cpu_runnable_load(st, a))

/*
 * Decides the wakeups of the list, and answers with how many; st is the start of
 * the memory, and now is @a.
 */
#define DECIDE_ALL(name, decision)                                             \
	SEC("syscall") int name##_call(struct call *call)                      \
	{                                                                      \
		struct state __arena *st = call->st;                           \
		struct memory __arena *memory = (struct memory __arena *)st;   \
		u64 now = call->argument[0];                                   \
		u32 i;                                                         \
                                                                               \
		(void)now;                                                     \
		refer_to_arena();                                              \
		for (i = opaque(0); i < NR_WAKEUPS && can_loop; i++) {         \
			struct wakeup_to_decide __arena *wakeup =              \
				indexed(memory->wakeup, i);                    \
                                                                               \
			wakeup->chosen = (decision);                           \
		}                                                              \
		call->result = i;                                              \
		return 0;                                                      \
	}

DECIDE_ALL(decide_wakeups, select_task_rq(st, wakeup->task, wakeup->prev,
					  wakeup->cpu, WF_TTWU, now))
/* What is not the decisions: wakeups that all go to the waking CPU. */
DECIDE_ALL(decide_nothing, wakeup->cpu)

char LICENSE[] SEC("license") = "GPL";
