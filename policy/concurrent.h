/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * concurrent.h: what lets several CPUs decide at once.
 *
 * As in the kernel, a decision reads the state of other CPUs as it happens to
 * be. What must not get lost when two CPUs write is written in one of three ways:
 *
 *   atomic_*()   a word that several CPUs share: idle masks, counts of an LLC
 *   rq_lock()    the list of a run queue from which the balancer takes tasks.
 *                runqueue.h is called with the locks of the queues it changes
 *                held, by the engine
 *   scratch_of() what one decision works on and answers with: each CPU has its
 *                own
 *
 * An engine that decides one thing after the other, like the simulator, pays
 * nothing for any of it. One that does not defines CONCURRENT_ENGINE and the
 * last two before it includes the policy.
 */
#ifndef PLACEWISE_CONCURRENT_H
#define PLACEWISE_CONCURRENT_H

#include "types.h"

#ifdef __bpf__
#define atomic_or(word, bits) ((void)__sync_fetch_and_or(word, bits))
#define atomic_and(word, bits) ((void)__sync_fetch_and_and(word, bits))
#define atomic_add(count, number) ((void)__sync_fetch_and_add(count, number))
#define atomic_swap(word, value) __sync_lock_test_and_set(word, value)
#define atomic_compare_swap(word, before, value)                               \
	__sync_val_compare_and_swap(word, before, value)
#else
#define atomic_or(word, bits) (*(word) |= (bits))
#define atomic_and(word, bits) (*(word) &= (bits))
#define atomic_add(count, number) (*(count) += (number))
#define atomic_swap(word, value)                                               \
	({                                                                     \
		__auto_type found = *(word);                                   \
		*(word) = (value);                                             \
		found;                                                         \
	})
#define atomic_compare_swap(word, before, value)                               \
	({                                                                     \
		__auto_type found = *(word);                                   \
		if (found == (before))                                         \
			*(word) = (value);                                     \
		found;                                                         \
	})
#endif

#ifndef CONCURRENT_ENGINE
#define scratch_of(st) (st)
#define rq_lock(st, cpu) ((void)(st), (void)(cpu))
#define rq_unlock(st, cpu) ((void)(st), (void)(cpu))
#endif

#endif
