/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * cpumask.h: sets of CPUs, and the two orders in which a decision walks them.
 *
 * plain order is increasing; wrap order is increasing from a start CPU and
 * wraps once. A decision that looks for the first CPU of some kind intersects
 * words and counts trailing zeros instead of visiting every CPU.
 */
#ifndef PLACEWISE_CPUMASK_H
#define PLACEWISE_CPUMASK_H

#include "concurrent.h"
#include "types.h"

#define NR_CPUS 1024
#define CPUMASK_WORDS (NR_CPUS / 64)

/* "No such CPU"; every real CPU number is smaller. */
#define NO_CPU NR_CPUS

struct cpumask {
	u64 bits[CPUMASK_WORDS];
};

#ifdef __bpf__
/* BPF has no instruction for these; branches would multiply verifier states. */
static inline u32 count_bits(u64 word)
{
	word -= (word >> 1) & 0x5555555555555555ULL;
	word = (word & 0x3333333333333333ULL) +
	       ((word >> 2) & 0x3333333333333333ULL);
	word = (word + (word >> 4)) & 0x0f0f0f0f0f0f0f0fULL;
	return (word * 0x0101010101010101ULL) >> 56;
}

static inline u32 first_bit(u64 word)
{
	return count_bits(~word & (word - 1));
}
#else
static inline u32 first_bit(u64 word)
{
	return (u32)__builtin_ctzll(word);
}

static inline u32 count_bits(u64 word)
{
	return (u32)__builtin_popcountll(word);
}
#endif

/* Bits of a word from @cpu's position up, and below it. */
static inline u64 bits_from(u32 cpu)
{
	return ~0ULL << (cpu & 63);
}

static inline u64 bits_below(u32 cpu)
{
	return ~bits_from(cpu);
}

static inline u32 cpumask_word(u32 cpu)
{
	return (cpu / 64) & (CPUMASK_WORDS - 1);
}

static inline bool cpumask_test(const struct cpumask __arena *mask, u32 cpu)
{
	return cpu < NR_CPUS &&
	       *indexed(mask->bits, cpumask_word(cpu)) >> (cpu & 63) & 1;
}

static inline void cpumask_set(struct cpumask __arena *mask, u32 cpu)
{
	atomic_or(indexed(mask->bits, cpumask_word(cpu)), 1ULL << (cpu & 63));
}

static inline void cpumask_clear(struct cpumask __arena *mask, u32 cpu)
{
	atomic_and(indexed(mask->bits, cpumask_word(cpu)),
		   ~(1ULL << (cpu & 63)));
}

static inline void cpumask_assign(struct cpumask __arena *mask, u32 cpu,
				  bool value)
{
	if (value)
		cpumask_set(mask, cpu);
	else
		cpumask_clear(mask, cpu);
}

/*
 * Walk the words of a CPU set with bounds (a span, a group, an LLC), and the
 * bits of one word; @bits is used up.
 */
#define for_each_word(word, set)                                               \
	for ((word) = (set)->first_word;                                       \
	     (word) < (set)->end_word && (word) < CPUMASK_WORDS && can_loop;   \
	     (word)++)

#define for_each_bit(cpu, word, bits)                                          \
	for (; (bits) && ((cpu) = (word) * 64 + first_bit(bits), true) &&      \
	       can_loop;                                                       \
	     (bits) &= (bits) - 1)

#endif
