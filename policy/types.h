/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * types.h: what lets the same lines compile natively and as BPF.
 *
 * Native code sees plain pointers and plain loops. BPF code keeps the state in
 * an arena, so pointers into it carry an address space, and the verifier wants
 * to see every loop end: can_loop is its budget, and is always true natively.
 */
#ifndef PLACEWISE_TYPES_H
#define PLACEWISE_TYPES_H

typedef unsigned char u8;
typedef unsigned short u16;
typedef unsigned int u32;
typedef unsigned long long u64;
typedef signed int s32;
typedef signed long long s64;
typedef _Bool bool;

#define true 1
#define false 0

/*
 * subprogram marks a function that stays a function in BPF, where inlining it
 * would fill the stack of 512 bytes; natively it is inline like all others.
 * verified_once also keeps the verifier from following it again from every
 * state of its callers; it then wants to be told where pointers point to:
 * in_arena, or on_stack, where no struct may hold pointers to the stack. Calls
 * may be 8 deep and take 5 arguments: what must not add to that, or takes more,
 * is __always_inline.
 */
#ifdef __bpf__
#define __arena __attribute__((address_space(1)))
#define subprogram __attribute__((noinline, unused))
#define __always_inline inline __attribute__((always_inline))
#define verified_once __attribute__((noinline))
#define in_arena __attribute__((btf_decl_tag("arg:arena")))
#define on_stack __attribute__((btf_decl_tag("arg:nonnull")))
#define can_loop                                                               \
	({                                                                     \
		__label__ spent, go_on;                                        \
		bool more = true;                                              \
		asm volatile goto("may_goto %l[spent]" :: ::spent);            \
		goto go_on;                                                    \
	spent:                                                                 \
		more = false;                                                  \
	go_on:                                                                 \
		more;                                                          \
	})

/*
 * A number that the verifier does not see. It follows a loop variable that it
 * knows through every turn; from an opaque start it proves all turns at once.
 */
static volatile u32 opaque_zero;
#define opaque(number) ((number) + opaque_zero)

/*
 * &array[index] in the arena. Left to itself clang may add the array to the
 * index instead of the index to the array, and that the verifier refuses.
 */
#define indexed(array, index)                                                  \
	({                                                                     \
		__auto_type at = &(array)[0];                                  \
		u64 offset = (u64)(index) * sizeof(*at);                       \
		asm("%0 += %1" : "+r"(at) : "r"(offset));                      \
		at;                                                            \
	})
#else
#define __arena
#define subprogram inline
#define __always_inline inline
#define verified_once static inline
#define in_arena
#define on_stack
#define can_loop true
#define opaque(number) (number)
#define indexed(array, index) (&(array)[index])
#endif

#define U64_MAX (~0ULL)
#define U32_MAX (~0U)

#define min(a, b) ((a) < (b) ? (a) : (b))
#define max(a, b) ((a) > (b) ? (a) : (b))

/* a - b, or 0 where that would be negative. */
#define sub_positive(a, b) ((a) > (b) ? (a) - (b) : 0)

#endif
