/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * watch.h: which entry point of a tree of somebody's own each thread is in, for
 * those who watch whether it comes back: a word when it is entered, another when
 * it is left.
 */

/* A cache line, so that threads do not share one. */
struct watch_slot {
	u32 entered; /* the tree in the upper half, the entry point and 1 in the lower; or NOWHERE */
	u32 calls;
	u32 thread;
	u32 unused[13];
};

#define NOWHERE 0

static struct watch_slot *(*slot_of_new_thread)(void);
static u32 tree_bits;

static __thread struct watch_slot *slot_of_thread
	__attribute__((tls_model("initial-exec")));

void placewise_watch(struct watch_slot *(*slot)(void), u32 tree)
{
	slot_of_new_thread = slot;
	tree_bits = tree << 16;
}

static inline struct watch_slot *enter(u32 entry_point)
{
	if (!slot_of_thread)
		slot_of_thread = slot_of_new_thread();
	slot_of_thread->entered = tree_bits | (entry_point + 1);
	slot_of_thread->calls++;
	return slot_of_thread;
}

static inline void leave(struct watch_slot **slot)
{
	(*slot)->entered = NOWHERE;
}

#define ENTER(entry_point)                                                     \
	struct watch_slot *slot __attribute__((cleanup(leave))) =              \
		enter(entry_point)
