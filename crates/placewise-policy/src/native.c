/* SPDX-License-Identifier: GPL-2.0-only */
/* The native build of the policy: its entry points with C linkage. */
#include "state.h"
#include "nohz.h"
#include "place.h"
#include "runqueue.h"
#include "layout.h"

const unsigned long *placewise_layout(unsigned long *entries)
{
	*entries = sizeof(layout) / sizeof(layout[0]);
	return layout;
}

/* What a task's change of place leaves behind: runqueue.h. */

void placewise_set_ttwu_pending(struct state *st, u32 cpu, bool pending)
{
	set_ttwu_pending(st, cpu, pending);
}

u64 placewise_update_curr(struct state *st, u32 cpu, u64 now)
{
	return update_curr(st, cpu, now);
}

void placewise_set_task_cpu(struct state *st, u32 task, u32 cpu)
{
	set_task_cpu(st, task, cpu);
}

void placewise_enqueue_task(struct state *st, u32 task, u32 flags, u64 now)
{
	enqueue_task(st, task, flags, now);
}

void placewise_dequeue_task(struct state *st, u32 task, u32 flags, u64 now)
{
	dequeue_task(st, task, flags, now);
}

void placewise_delay_dequeue(struct state *st, u32 task, u64 now)
{
	delay_dequeue(st, task, now);
}

void placewise_requeue_delayed(struct state *st, u32 task, u64 now)
{
	requeue_delayed(st, task, now);
}

void placewise_set_next_task(struct state *st, u32 cpu, u32 task, u64 now)
{
	set_next_task(st, cpu, task, now);
}

void placewise_put_prev_task(struct state *st, u32 cpu, u64 now)
{
	put_prev_task(st, cpu, now);
}

void placewise_task_tick(struct state *st, u32 cpu, u64 now)
{
	task_tick(st, cpu, now);
}

void placewise_requeue_task_rt(struct state *st, u32 task)
{
	requeue_task_rt(st, task);
}

void placewise_sample_avg_idle(struct state *st, u32 cpu, u64 now)
{
	sample_avg_idle(st, cpu, now);
}

void placewise_copy_task(struct state *st, u32 child, u32 parent, u32 cpu)
{
	copy_task(st, child, parent, cpu);
}

void placewise_task_dead(struct state *st, u32 task)
{
	task_dead(st, task);
}

void placewise_place_new_task(struct state *st, u32 child, u32 cpu)
{
	place_new_task(st, child, cpu);
}

/* Where a task runs next: place.h. */

u32 placewise_select_task_rq(struct state *st, u32 task, u32 prev, u32 cpu,
			     u32 wake_flags, u64 now)
{
	return select_task_rq(st, task, prev, cpu, wake_flags, now);
}

bool placewise_ttwu_queue_wakelist(struct state *st, u32 task, u32 waking_cpu,
				   u32 cpu, bool on_cpu)
{
	return ttwu_queue_wakelist(st, task, waking_cpu, cpu, on_cpu);
}

u32 placewise_select_fallback_rq(struct state *st, u32 task)
{
	return select_fallback_rq(st, task_of(st, task));
}

void placewise_record_scan_cost(struct state *st, u32 waking_cpu, u64 scan_ns)
{
	record_scan_cost(st, waking_cpu, scan_ns);
}

u32 placewise_nr_idle_scan_of(u64 util, u32 llc_size, u32 imbalance_pct)
{
	return nr_idle_scan_of(util, llc_size, imbalance_pct);
}

u32 placewise_hint_check(u32 value)
{
	return hint_check(value);
}

/* What runs elsewhere instead: balance.h and nohz.h. */

bool placewise_load_balance(struct state *st, u32 cpu, u32 level, u32 idle,
			    u64 now)
{
	return load_balance(st, cpu, level, idle, now);
}

u32 placewise_active_balance_task(struct state *st, u32 src, u32 dst, u64 now)
{
	return active_balance_task(st, src, dst, now);
}

bool placewise_trigger_load_balance(struct state *st, u32 cpu, u64 now)
{
	return trigger_load_balance(st, cpu, now);
}

void placewise_rebalance_domains_start(struct state *st,
				       struct balance_walk *walk, u32 cpu,
				       u32 idle, u64 now)
{
	rebalance_domains_start(st, walk, cpu, idle, now);
}

u32 placewise_rebalance_domains_next(struct state *st,
				     struct balance_walk *walk, u64 now)
{
	return rebalance_domains_next(st, walk, now);
}

void placewise_rebalance_domains_level_done(struct state *st,
					    struct balance_walk *walk,
					    bool moved, bool continue_balancing,
					    u64 now)
{
	rebalance_domains_level_done(st, walk, moved, continue_balancing, now);
}

void placewise_rebalance_domains_end(struct state *st,
				     struct balance_walk *walk)
{
	rebalance_domains_end(st, walk);
}

bool placewise_newidle_balance_start(struct state *st,
				     struct balance_walk *walk, u32 cpu,
				     u64 now)
{
	return newidle_balance_start(st, walk, cpu, now);
}

u32 placewise_newidle_balance_next(struct state *st, struct balance_walk *walk)
{
	return newidle_balance_next(st, walk);
}

void placewise_newidle_balance_level_done(struct state *st,
					  struct balance_walk *walk, u64 cost,
					  bool pulled, u64 now)
{
	newidle_balance_level_done(st, walk, cost, pulled, now);
}

void placewise_newidle_balance_end(struct state *st, struct balance_walk *walk)
{
	newidle_balance_end(st, walk);
}

void placewise_nohz_balance_enter_idle(struct state *st, u32 cpu)
{
	nohz_balance_enter_idle(st, cpu);
}

void placewise_nohz_balance_exit_idle(struct state *st, u32 cpu)
{
	nohz_balance_exit_idle(st, cpu);
}

u32 placewise_nohz_balancer_kick(struct state *st, u32 cpu, u64 now)
{
	return nohz_balancer_kick(st, cpu, now);
}

bool placewise_nohz_balance_start(struct state *st, struct nohz_walk *walk,
				  u32 cpu, u64 now)
{
	return nohz_balance_start(st, walk, cpu, now);
}

u32 placewise_nohz_balance_next(struct state *st, struct nohz_walk *walk,
				u64 now)
{
	return nohz_balance_next(st, walk, now);
}

void placewise_nohz_balance_end(struct state *st, struct nohz_walk *walk,
				u64 now)
{
	nohz_balance_end(st, walk, now);
}

void placewise_update_blocked_averages(struct state *st, u32 cpu, u64 now)
{
	update_blocked_averages(st, cpu, now);
}

/* Cgroups: task_group.h, and what they make of loads: load.h and group.h. */

u32 placewise_create_task_group(struct state *st, u32 parent, u32 shares)
{
	return create_task_group(st, parent, shares);
}

void placewise_throttle_cfs_rq(struct state *st, u32 group, u32 cpu, u64 now)
{
	throttle_cfs_rq(st, group, cpu, now);
}

void placewise_unthrottle_cfs_rq(struct state *st, u32 group, u32 cpu, u64 now)
{
	unthrottle_cfs_rq(st, group, cpu, now);
}

void placewise_destroy_task_group(struct state *st, u32 group)
{
	destroy_task_group(st, group);
}

void placewise_set_task_group_shares(struct state *st, u32 group, u32 shares)
{
	set_task_group_shares(st, group, shares);
}

void placewise_task_change_group(struct state *st, u32 task, u32 group, u64 now)
{
	task_change_group(st, task, group, now);
}

u64 placewise_task_h_load(struct state *st, u32 task)
{
	return task_h_load(st, task_of(st, task));
}

u64 placewise_task_util_est(struct state *st, u32 task)
{
	return task_util_est(task_of(st, task));
}

u64 placewise_cpu_util(struct state *st, u32 cpu)
{
	return cpu_util(st, cpu);
}

u64 placewise_cpu_runnable_load(struct state *st, u32 cpu)
{
	return cpu_runnable_load(st, cpu);
}
