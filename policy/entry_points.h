/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * entry_points.h: what engines call of the policy. No C includes this list:
 * the build makes of it the functions with C linkage of the native build, the
 * programs of the BPF build, and their faces in Rust, which the comments here
 * document.
 *
 * Of a struct task the caller gives the number. A walk is the caller's, who
 * keeps it from one call to the next. A state that is const here stays as it is.
 */

/* What a task's change of place leaves behind: runqueue.h. */

/* Marks that a wakeup is on its way over the wake list of `cpu`, or that all have arrived. */
void set_ttwu_pending(struct state *st, u32 cpu, bool pending);
/* Accounts the time the current task has run; returns it in ns. */
u64 update_curr(struct state *st, u32 cpu, u64 now);
/* Makes a task that is on no run queue belong to `cpu`. */
void set_task_cpu(struct state *st, u32 task, u32 cpu);
/* Puts a task on the run queue of its CPU. */
void enqueue_task(struct state *st, u32 task, u32 flags, u64 now);
/* Takes a task off its run queue. */
void dequeue_task(struct state *st, u32 task, u32 flags, u64 now);
/* Puts a task to sleep that stays queued. */
void delay_dequeue(struct state *st, u32 task, u64 now);
/* Wakes a delayed task where it is. */
void requeue_delayed(struct state *st, u32 task, u64 now);
/* Starts running a task; the CPU's own number stands for its idle task. */
void set_next_task(struct state *st, u32 cpu, u32 task, u64 now);
/* Stops running the current task, which stays queued. */
void put_prev_task(struct state *st, u32 cpu, u64 now);
void task_tick(struct state *st, u32 cpu, u64 now);
/* Puts an RT task behind those of its priority. */
void requeue_task_rt(struct state *st, u32 task);
/* Accounts how long `cpu` had been idle when a wakeup was enqueued on it. */
void sample_avg_idle(struct state *st, u32 cpu, u64 now);
/* Makes a new task a copy of its creator, which runs on `cpu`. */
void copy_task(struct state *st, u32 child, u32 parent, u32 cpu);
/* Makes a task a process of its own, which has `footprint` bytes of memory. */
void start_process(struct state *st, u32 task, u64 footprint);
/* Takes the averages of a task that has ended off its CPU, and the task out of its process. */
void task_dead(struct state *st, u32 task);
/* Gives a new task its first utilisation on the CPU that was chosen. */
void place_new_task(struct state *st, u32 child, u32 cpu);

/* Where a task runs next: place.h. */

/*
 * Answers with the CPU for a task that last ran on `prev` and is woken, created
 * or exec'ing on `cpu`; how it came to it stands in `decision`.
 */
u32 select_task_rq(struct state *st, u32 task, u32 prev, u32 cpu,
		   u32 wake_flags, u64 now);
/* Answers with the CPU for a task that may not be where it is, or where it was to go. */
u32 select_fallback_rq(struct state *st, struct task *task);
/* Does a wakee go over the wake list of `cpu`? With `on_cpu`, while it is still leaving it? */
bool ttwu_queue_wakelist(struct state *st, u32 task, u32 waking_cpu, u32 cpu,
			 bool on_cpu);
/* Accounts the time that looking at `decision.timed_scan` CPUs took. */
void record_scan_cost(struct state *st, u32 waking_cpu, u64 scan_ns);
/* How many CPUs a search may look at in an LLC whose CPUs' utilisation adds up to `util`. */
u32 nr_idle_scan_of(u64 util, u32 llc_size, u32 imbalance_pct);
/* `HINT_VALID`, or what is wrong with a hint mask. */
u32 hint_check(u32 value);

/* What runs elsewhere instead: balance.h and nohz.h. */

/*
 * Tries to even out a level for `cpu`; what is to be done stands in `balance`.
 * True if tasks are to move.
 */
bool load_balance(struct state *st, u32 cpu, u32 level, u32 idle, u64 now);
/* The task that the stopper of `src` is to push to `dst`, or `NO_TASK`. */
u32 active_balance_task(struct state *st, u32 src, u32 dst, u64 now);
/* Is the periodic balance of `cpu` due at its tick? */
bool trigger_load_balance(struct state *st, u32 cpu, u64 now);
/* Begins a periodic visit of the levels of `cpu`. */
void rebalance_domains_start(struct state *st, struct balance_walk *walk,
			     u32 cpu, u32 idle, u64 now);
/* The next level that is due, or `NR_LEVELS`. */
u32 rebalance_domains_next(struct state *st, struct balance_walk *walk,
			   u64 now);
/* Ends a level once what `load_balance` decided is carried out. */
void rebalance_domains_level_done(struct state *st, struct balance_walk *walk,
				  bool moved, bool continue_balancing, u64 now);
void rebalance_domains_end(struct state *st, struct balance_walk *walk);
/* `cpu` has nothing to run: does it look at the lists of waiting tasks of its LLC before it balances? */
bool newidle_looks_at_lists(struct state *st, u32 cpu);
/* It does. The task that it takes over, off its list from now on, or `NO_TASK`. */
u32 newidle_shared_task(struct state *st, u32 cpu);
/* `cpu` has nothing to run: is it to look for tasks? If not, nothing more is to be done. */
bool newidle_balance_start(struct state *st, struct balance_walk *walk, u32 cpu,
			   u64 now);
/* The next level to balance, or `NR_LEVELS`. */
u32 newidle_balance_next(struct state *st, struct balance_walk *walk);
/* Ends a level that took `cost` ns. */
void newidle_balance_level_done(struct state *st, struct balance_walk *walk,
				u64 cost, bool pulled, u64 now);
void newidle_balance_end(struct state *st, struct balance_walk *walk);
/* The tick of an idle CPU stops. */
void nohz_balance_enter_idle(struct state *st, u32 cpu);
/* A CPU is about to go offline, or the first busy tick after its tick was stopped. */
void nohz_balance_exit_idle(struct state *st, u32 cpu);
/* The CPU that a busy CPU interrupts at its tick, or `NO_CPU`. */
u32 nohz_balancer_kick(struct state *st, u32 cpu, u64 now);
/* `cpu` was interrupted: is there something to do for it? */
bool nohz_balance_start(struct state *st, struct nohz_walk *walk, u32 cpu,
			u64 now);
/* The next tickless CPU whose levels are due, or `NO_CPU`. */
u32 nohz_balance_next(struct state *st, struct nohz_walk *walk, u64 now);
void nohz_balance_end(struct state *st, struct nohz_walk *walk, u64 now);
/* Brings the averages of a CPU up to date. */
void update_blocked_averages(struct state *st, u32 cpu, u64 now);

/* Cgroups: task_group.h, and what they make of loads: load.h and group.h. */

/*
 * Makes a cgroup below `parent`; answers with its number, or with
 * `ROOT_TASK_GROUP` if there are too many already, or too many levels.
 */
u32 create_task_group(struct state *st, u32 parent, u32 shares);
/* All tasks have left the cgroup, and none is below it: its number is free again. */
void destroy_task_group(struct state *st, u32 group);
/* The cgroup weighs more or less from the next tick, enqueue or dequeue of a task of it. */
void set_task_group_shares(struct state *st, u32 group, u32 shares);
/* Puts a task that is on no run queue into a cgroup. */
void task_change_group(struct state *st, u32 task, u32 group, u64 now);
/* A cgroup is out of runtime on `cpu`, where none of its tasks is current: it leaves. */
void throttle_cfs_rq(struct state *st, u32 group, u32 cpu, u64 now);
/* It has got some, and is back. */
void unthrottle_cfs_rq(struct state *st, u32 group, u32 cpu, u64 now);
/* Of a cgroup without tasks on `cpu`, whose entity was `delayed`: it has spent its lag, and leaves. */
void dequeue_delayed_group(struct state *st, u32 group, u32 cpu, u64 now);
/* The load that a task adds to its CPU: its share of the hierarchy. */
u64 task_h_load(struct state *st, struct task *task);
/* How much of a CPU a task is taken to use. */
u64 task_util_est(struct task *task);
/* How much of `cpu` is used, of its capacity. */
u64 cpu_util(struct state *st, u32 cpu);
/* The load of what is queued on a CPU, without what sleepers left behind. */
u64 cpu_runnable_load(struct state *st, u32 cpu);

/* For reports: distance.h. */

/* How far `to` is from `from`: one of `enum distance`. */
u32 distance(const struct state *st, u32 from, u32 to);
