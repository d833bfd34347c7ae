// SPDX-License-Identifier: GPL-2.0-only
/*
 * policy.bpf.c: the BPF build of the policy: each of its entry points as a
 * program that user space runs through BPF_PROG_RUN.
 *
 * The state lives in an arena; the caller passes its address, which is the same
 * for the program and for the process that mapped the arena. The build makes the
 * programs of policy/entry_points.h, whose names they have. Two more decide many
 * wakeups in one call, to be timed.
 */
#include "balance.h"
#include "distance.h"
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

struct call {
	struct state __arena *st;
	u64 argument[5];
	u64 result;
	u64 walk[WALK_WORDS];
};

/* A program may use pointers into an arena only if it refers to the arena. */
#define refer_to_arena() asm volatile("" ::"r"(&arena))

/* In @answer, st is the state. */
#define ENTRY_POINT(name, answer)                                              \
	SEC("syscall") int name##_call(struct call *call)                      \
	{                                                                      \
		struct state __arena *st = call->st;                           \
                                                                               \
		(void)st;                                                      \
		refer_to_arena();                                              \
		call->result = (answer);                                       \
		return 0;                                                      \
	}

/*
 * The same with a walk, which the caller keeps between two calls. Its words are
 * copied one by one: a context takes no accesses through moved pointers.
 */
#define WALK(name, kind, answer)                                               \
	SEC("syscall") int name##_call(struct call *call)                      \
	{                                                                      \
		struct state __arena *st = call->st;                           \
		union {                                                        \
			struct kind kind;                                      \
			u64 word[WALK_WORDS];                                  \
		} copy;                                                        \
		struct kind *walk = &copy.kind;                                \
                                                                               \
		refer_to_arena();                                              \
		for (u32 i = 0; i < WALK_WORDS; i++)                           \
			copy.word[i] = call->walk[i];                          \
		call->result = (answer);                                       \
		for (u32 i = 0; i < WALK_WORDS; i++)                           \
			call->walk[i] = copy.word[i];                          \
		return 0;                                                      \
	}

#include "bpf_entry_points.h"

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
