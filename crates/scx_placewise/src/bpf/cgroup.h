/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * cgroup.h: which task group of the policy stands for a cgroup, and what that makes
 * of the weights of its tasks.
 *
 * A cgroup with a cpu controller gets a task group when it is made, or when the
 * scheduler is loaded, parents first. Its number is free again when the cgroup is
 * gone and so are its tasks: zombies stay behind. The kernel tells of cgroups with
 * interrupts on, where nothing may be locked (shadow.h), so the number is taken
 * back at some tick.
 *
 * Limits: 255 cgroups, in eight levels. The tasks of others count as those of the
 * cgroup above. Neither quotas (cpu.max) nor cpu.idle are kept.
 */
#ifndef SCX_PLACEWISE_CGROUP_H
#define SCX_PLACEWISE_CGROUP_H

#include "shadow.h"

/* sched_ext counts 100 where the kernel's weights, and shares, count 1024. */
static inline u32 load_weight(u32 scx_weight)
{
	u32 weight = (scx_weight * NICE_0_LOAD + 50) / 100;

	return max(weight, 2u);
}

/* By the cgroup's id. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, NR_TASK_GROUPS);
	__type(key, u64);
	__type(value, u32);
} task_groups SEC(".maps");

/* The task group of @cgroup, or of the first one above it that has one. */
static inline u32 group_of_cgroup(const struct cgroup *cgroup)
{
	u32 level;

	for (level = cgroup->level; level > 0 && can_loop; level--) {
		u64 id = cgroup->kn->id;
		u32 *group = bpf_map_lookup_elem(&task_groups, &id);

		if (group)
			return *group;
		cgroup = cgroup->self.parent->cgroup;
	}
	return ROOT_TASK_GROUP;
}

static inline u32 __arena *users_of(u32 group)
{
	return indexed(shadow()->users, group & (NR_TASK_GROUPS - 1));
}

static inline void get_task_group(u32 group)
{
	atomic_add(users_of(group), 1);
}

/* Whoever is the last to need @group leaves it to a tick. */
static inline void put_task_group(u32 group)
{
	u64 __arena *unused = &shadow()->unused[group / 64 % GROUP_WORDS];

	if (group != ROOT_TASK_GROUP &&
	    __sync_fetch_and_sub(users_of(group), 1) == 1)
		atomic_or(unused, 1ULL << (group & 63));
}

verified_once int free_task_group_number(u32 group)
{
	destroy_task_group(the_state(), group);
	return 0;
}

/* At a tick: take back a number that nobody needs any more. */
static inline void reap_task_group(void)
{
	u32 word;

	for (word = 0; word < GROUP_WORDS; word++) {
		u64 __arena *unused = &shadow()->unused[word];
		u64 before = *unused;
		u64 bit = before & -before;

		if (bit && __sync_val_compare_and_swap(unused, before,
						       before & ~bit) == before)
			free_task_group_number(word * 64 + first_bit(bit));
	}
}

/* cgroups are made one at a time. */
static inline s32 make_task_group(struct state __arena *st,
				  const struct cgroup *cgroup, u32 weight)
{
	u32 parent = group_of_cgroup(cgroup);
	u64 id = cgroup->kn->id;
	u32 group;

	if (!cgroup->level)
		return 0;
	group = create_task_group(st, parent, load_weight(weight));
	if (group == ROOT_TASK_GROUP)
		return 0;
	get_task_group(group);
	return bpf_map_update_elem(&task_groups, &id, &group, 0);
}

static inline void drop_task_group(const struct cgroup *cgroup)
{
	u64 id = cgroup->kn->id;
	u32 *group = bpf_map_lookup_elem(&task_groups, &id);
	u32 number;

	if (!group)
		return;
	number = *group;
	bpf_map_delete_elem(&task_groups, &id);
	put_task_group(number);
}

static inline void set_group_weight(struct state __arena *st,
				    const struct cgroup *cgroup, u32 weight)
{
	u64 id = cgroup->kn->id;
	u32 *group = bpf_map_lookup_elem(&task_groups, &id);

	if (group)
		set_task_group_shares(st, *group, load_weight(weight));
}

/* A weight among all tasks of a CPU is counted in so many parts of a load weight. */
#define WEIGHT_SCALE 1024

/*
 * What @p weighs among all tasks of its CPU: of the weight of each cgroup it is in
 * the part that is its own. Never 0.
 */
static inline u64 hierarchical_weight(struct state __arena *st,
				      const struct task __arena *p)
{
	u64 weight = (u64)p->weight * WEIGHT_SCALE;
	u32 group = p->task_group;
	u32 level;

	for_each_task_group(st, group, level) {
		const struct group_rq __arena *rq =
			group_rq_of(st, group, p->cpu);

		weight = weight * rq->weight / max(rq->cfs.load_weight, 1ULL);
	}
	return max(weight, 1ULL);
}

#endif
