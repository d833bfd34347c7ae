/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * pelt.h: how load, runnable and utilisation averages follow what tasks do.
 *
 * Time is counted in units of 1,024 ns, 1,024 of which make a period; what
 * happened 32 periods ago counts half.
 *
 * On a CPU of less than full capacity the clock of these averages runs as much
 * slower while the CPU is busy, so that a task shows the same utilisation
 * wherever it runs, and catches up once the CPU idles (update_rq_clock_pelt).
 * Bit-exact with the kernel for CPUs at full frequency; the scaling of the clock
 * by frequency is not modelled.
 */
#ifndef PLACEWISE_PELT_H
#define PLACEWISE_PELT_H

#include "load.h"

#define PELT_PERIOD 1024
#define LOAD_AVG_MAX 47742
#define PELT_MIN_DIVIDER (LOAD_AVG_MAX - PELT_PERIOD)

/* 2^32 * y^n, y^32 = 1/2. */
static const u32 pelt_inverse[32] = {
	0xffffffff, 0xfa83b2da, 0xf5257d14, 0xefe4b99a, 0xeac0c6e6, 0xe5b906e6,
	0xe0ccdeeb, 0xdbfbb796, 0xd744fcc9, 0xd2a81d91, 0xce248c14, 0xc9b9bd85,
	0xc5672a10, 0xc12c4cc9, 0xbd08a39e, 0xb8fbaf46, 0xb504f333, 0xb123f581,
	0xad583ee9, 0xa9a15ab4, 0xa5fed6a9, 0xa2704302, 0x9ef5325f, 0x9b8d39b9,
	0x9837f050, 0x94f4efa8, 0x91c3d373, 0x8ea4398a, 0x8b95c1e3, 0x88980e80,
	0x85aac367, 0x82cd8698,
};

/* value * y^periods */
static inline u64 decay_load(u64 value, u64 periods)
{
	u64 inverse;

	if (periods > 32 * 63)
		return 0;
	value >>= periods / 32;
	inverse = pelt_inverse[periods % 32];
	return (value >> 32) * inverse + ((value & U32_MAX) * inverse >> 32);
}

/* What a time that ends @last units into a period adds, after @periods full ones. */
static inline u32 accumulate_segments(u64 periods, u32 first, u32 last)
{
	u64 begun = decay_load(first, periods);
	u64 full =
		LOAD_AVG_MAX - decay_load(LOAD_AVG_MAX, periods) - PELT_PERIOD;

	return begun + full + last;
}

/*
 * Account the time since the last update, in which the entity gave @load, had
 * @runnable tasks and was @running. True if a period ended, so that the
 * averages are to be recomputed.
 */
static inline bool update_load_sum(struct sched_avg __arena *avg, u64 now,
				   u64 load, u64 runnable, bool running)
{
	u64 delta = now - avg->last_update_time;
	u64 periods;
	u32 contribution;

	if ((s64)delta < 0) {
		avg->last_update_time = now;
		return false;
	}
	delta >>= 10;
	if (!delta)
		return false;
	avg->last_update_time += delta << 10;

	if (!load) {
		runnable = 0;
		running = false;
	}
	contribution = delta;
	delta += avg->period_contrib;
	periods = delta / PELT_PERIOD;
	if (periods) {
		u32 first = PELT_PERIOD - avg->period_contrib;

		avg->load_sum = decay_load(avg->load_sum, periods);
		avg->runnable_sum = decay_load(avg->runnable_sum, periods);
		avg->util_sum = decay_load(avg->util_sum, periods);
		delta %= PELT_PERIOD;
		contribution = accumulate_segments(periods, first, delta);
	}
	avg->period_contrib = delta;
	avg->load_sum += load * contribution;
	avg->runnable_sum += (runnable * contribution) << 10;
	if (running)
		avg->util_sum += contribution << 10;
	return periods > 0;
}

static inline u32 pelt_divider(const struct sched_avg __arena *avg)
{
	return PELT_MIN_DIVIDER + avg->period_contrib;
}

static inline void update_load_avg(struct sched_avg __arena *avg, u64 weight)
{
	u32 divider = pelt_divider(avg);

	avg->load_avg = weight * avg->load_sum / divider;
	avg->runnable_avg = avg->runnable_sum / divider;
	avg->util_avg = avg->util_sum / divider;
}

/* Where CPUs are unequal: the time that @cpu's averages have come to. */
verified_once u64 update_rq_clock_pelt(struct state __arena *st in_arena,
				       u32 cpu, u64 now)
{
	struct rq __arena *rq = cpu_rq(st, cpu);
	u64 delta = now - rq->clock_pelt_at;

	if (rq->clock_rests)
		rq->clock_pelt = now;
	else if ((s64)delta > 0)
		rq->clock_pelt += delta * cpu_of(st, cpu)->capacity_orig /
				  SCHED_CAPACITY_SCALE;
	rq->clock_pelt_at = now;
	return rq->clock_pelt - rq->lost_idle_time;
}

static inline u64 rq_clock_pelt(struct state __arena *st, u32 cpu, u64 now)
{
	return st->root.asym_capacity ? update_rq_clock_pelt(st, cpu, now)
				      : now;
}

/* The utilisation of a CPU that never idles. */
#define UTIL_SUM_MAX ((PELT_MIN_DIVIDER << 10) - LOAD_AVG_MAX)

/*
 * The idle task takes over @cpu, or gives it away. A CPU that was always busy
 * would have been so at full capacity too: there is no idle time to catch up.
 */
static inline void switch_clock_pelt(struct state __arena *st, u32 cpu,
				     bool rests, u64 now)
{
	struct rq __arena *rq = cpu_rq(st, cpu);
	u64 util = (u64)rq->cfs.avg.util_sum + rq->avg_rt.util_sum;

	if (!st->root.asym_capacity || rq->clock_rests == rests)
		return;
	update_rq_clock_pelt(st, cpu, now);
	if (rests && util >= UTIL_SUM_MAX)
		rq->lost_idle_time += now - rq->clock_pelt;
	rq->clock_rests = rests;
	if (rests)
		rq->clock_pelt = now;
}

/*
 * The clock of the averages of a task group's queue and of what is in it: it
 * stands still while they are throttled.
 */
static inline u64 cfs_rq_clock(struct state __arena *st, u32 group, u32 cpu,
			       u64 now)
{
	const struct group_rq __arena *rq = group_rq_of(st, group, cpu);
	u64 clock = rq_clock_pelt(st, cpu, now);

	if (group == ROOT_TASK_GROUP)
		return clock;
	return (rq->throttle_count ? rq->throttled_clock : clock) -
	       rq->throttled_time;
}

/* A task: runnable while queued and not delayed, running while current. */
static inline void update_task_avg(struct state __arena *st, u32 task,
				   struct task __arena *p, u64 now)
{
	u64 clock = cfs_rq_clock(st, p->task_group, p->cpu, now);
	bool running = cpu_rq(st, p->cpu)->curr == task;
	bool runnable = p->on_rq && !p->delayed;

	if (!p->avg.last_update_time)
		return;
	if (update_load_sum(&p->avg, clock, p->on_rq, runnable, running)) {
		update_load_avg(&p->avg, p->weight);
		p->util_changed = true;
	}
}

/* The entity above @cfs, if there is one, is to follow: task_group.h. */
static inline void note_propagation(struct cfs_rq __arena *cfs, s64 load_sum)
{
	cfs->propagate = true;
	cfs->propagate_sum += load_sum;
}

/* Blocked tasks that were migrated away take their averages with them. */
static inline bool apply_removed(struct cfs_rq __arena *cfs)
{
	struct sched_avg __arena *avg = &cfs->avg;
	u64 divider = pelt_divider(avg);

	if (!cfs->removed_nr)
		return false;
	note_propagation(cfs, -(s64)(cfs->removed_runnable * divider >> 10));
	avg->load_avg = sub_positive(avg->load_avg, cfs->removed_load);
	avg->load_sum =
		sub_positive(avg->load_sum, cfs->removed_load * divider);
	avg->load_sum = max(avg->load_sum, avg->load_avg * PELT_MIN_DIVIDER);
	avg->runnable_avg =
		sub_positive(avg->runnable_avg, cfs->removed_runnable);
	avg->runnable_sum = sub_positive(avg->runnable_sum,
					 cfs->removed_runnable * divider);
	avg->runnable_sum =
		max(avg->runnable_sum, avg->runnable_avg * PELT_MIN_DIVIDER);
	avg->util_avg = sub_positive(avg->util_avg, cfs->removed_util);
	avg->util_sum =
		sub_positive((u64)avg->util_sum, cfs->removed_util * divider);
	avg->util_sum =
		max((u64)avg->util_sum, avg->util_avg * PELT_MIN_DIVIDER);
	cfs->removed_load = 0;
	cfs->removed_runnable = 0;
	cfs->removed_util = 0;
	cfs->removed_nr = 0;
	return true;
}

/* The tasks below a cfs_rq that PELT counts as runnable. */
static inline u64 cfs_rq_runnable(const struct state __arena *st,
				  const struct cfs_rq __arena *cfs)
{
	u64 runnable = cfs->h_nr_queued;

	if (st->profile.runnable_without_delayed)
		runnable -= cfs->h_nr_delayed;
	return runnable;
}

/* True if the averages have changed. */
static __always_inline bool update_cfs_rq_avg(struct state __arena *st,
					      struct cfs_rq __arena *cfs,
					      bool running, u64 now)
{
	u64 runnable = cfs_rq_runnable(st, cfs);
	bool removed = apply_removed(cfs);

	if (!update_load_sum(&cfs->avg, now, cfs->load_weight, runnable,
			     running))
		return removed;
	update_load_avg(&cfs->avg, 1);
	return true;
}

/* Does a task of the RT class run on @cpu, or has it run until now? */
static inline bool rt_task_runs(struct state __arena *st, u32 cpu)
{
	return cpu_rq(st, cpu)->rt_runs;
}

static inline bool cfs_task_runs(struct state __arena *st, u32 cpu)
{
	return !is_idle_task(cpu_rq(st, cpu)->curr) && !rt_task_runs(st, cpu);
}

static inline bool update_root_cfs_rq_avg(struct state __arena *st, u32 cpu,
					  u64 now)
{
	return update_cfs_rq_avg(st, &cpu_rq(st, cpu)->cfs,
				 cfs_task_runs(st, cpu),
				 rq_clock_pelt(st, cpu, now));
}

/* The time that @cpu gives to RT tasks: 1024 if it is all of it. */
static inline void update_rt_rq_avg(struct state __arena *st, u32 cpu,
				    bool running, u64 now)
{
	struct sched_avg __arena *avg = &cpu_rq(st, cpu)->avg_rt;

	if (update_load_sum(avg, rq_clock_pelt(st, cpu, now), running, running,
			    running))
		update_load_avg(avg, 1);
}

/* An entity joins a cfs_rq: it takes over its clock and adds its averages. */
static inline void attach_avg(struct sched_avg __arena *avg, u64 weight,
			      struct cfs_rq __arena *cfs)
{
	u64 divider = pelt_divider(&cfs->avg);

	avg->last_update_time = cfs->avg.last_update_time;
	avg->period_contrib = cfs->avg.period_contrib;
	avg->util_sum = avg->util_avg * divider;
	avg->runnable_sum = avg->runnable_avg * divider;
	avg->load_sum = max(1ULL, avg->load_avg * divider / weight);

	cfs->avg.load_avg += avg->load_avg;
	cfs->avg.load_sum += avg->load_sum * weight;
	cfs->avg.runnable_avg += avg->runnable_avg;
	cfs->avg.runnable_sum += avg->runnable_sum;
	cfs->avg.util_avg += avg->util_avg;
	cfs->avg.util_sum += avg->util_sum;
	note_propagation(cfs, avg->load_sum);
}

/* A queued task leaves a cfs_rq for another one. */
static inline void detach_task_avg(struct task __arena *p,
				   struct cfs_rq __arena *cfs)
{
	struct sched_avg __arena *avg = &p->avg;
	struct sched_avg __arena *sum = &cfs->avg;

	sum->load_avg = sub_positive(sum->load_avg, avg->load_avg);
	sum->load_sum = sub_positive(sum->load_sum, avg->load_sum * p->weight);
	sum->load_sum = max(sum->load_sum, sum->load_avg * PELT_MIN_DIVIDER);
	sum->runnable_avg = sub_positive(sum->runnable_avg, avg->runnable_avg);
	sum->runnable_sum = sub_positive(sum->runnable_sum, avg->runnable_sum);
	sum->runnable_sum =
		max(sum->runnable_sum, sum->runnable_avg * PELT_MIN_DIVIDER);
	sum->util_avg = sub_positive(sum->util_avg, avg->util_avg);
	sum->util_sum = sub_positive(sum->util_sum, avg->util_sum);
	sum->util_sum =
		max((u64)sum->util_sum, sum->util_avg * PELT_MIN_DIVIDER);
	note_propagation(cfs, -(s64)avg->load_sum);
	avg->last_update_time = 0;
}

/* A blocked task decays up to where the queue it slept on has come. */
static inline void sync_task_avg(struct task __arena *p,
				 const struct cfs_rq __arena *cfs)
{
	if (update_load_sum(&p->avg, cfs->avg.last_update_time, 0, 0, false))
		update_load_avg(&p->avg, p->weight);
}

/* Averages, decayed so far, of what leaves @cfs while it is blocked: they are removed later. */
static inline void note_removed(struct cfs_rq __arena *cfs,
				struct sched_avg __arena *avg)
{
	cfs->removed_load += avg->load_avg;
	cfs->removed_runnable += avg->runnable_avg;
	cfs->removed_util += avg->util_avg;
	cfs->removed_nr++;
	avg->last_update_time = 0;
}

/* A blocked task leaves. */
static inline void remove_task_avg(struct task __arena *p,
				   struct cfs_rq __arena *cfs)
{
	if (!p->avg.last_update_time)
		return;
	sync_task_avg(p, cfs);
	note_removed(cfs, &p->avg);
}

/*
 * A new task starts with full load, and a share of what its CPU, of @capacity,
 * has left.
 */
static inline void init_task_util(struct task __arena *p,
				  const struct cfs_rq __arena *cfs,
				  u64 capacity)
{
	u64 util = cfs->avg.util_avg;
	u64 cap = sub_positive(capacity, util) / 2;

	if (!cap)
		return;
	if (util) {
		u64 share = util * p->weight / (cfs->avg.load_avg + 1);

		p->avg.util_avg = min(share, cap);
	} else {
		p->avg.util_avg = cap;
	}
	p->avg.runnable_avg = p->avg.util_avg;
}

#define UTIL_EST_MARGIN 10 /* 1 % of the capacity of a CPU */

static inline void util_est_enqueue(struct cfs_rq __arena *cfs,
				    const struct task __arena *p)
{
	cfs->util_est += max(p->util_est_enqueued, p->util_est_ewma);
}

static inline void util_est_dequeue(struct cfs_rq __arena *cfs,
				    const struct task __arena *p)
{
	u32 estimate = max(p->util_est_enqueued, p->util_est_ewma);

	cfs->util_est = sub_positive(cfs->util_est, estimate);
}

/* One value that jumps up with the utilisation and follows it down slowly. */
static inline void util_est_update_single(struct task __arena *p, u32 capacity)
{
	u32 util = p->avg.util_avg;
	u32 estimate = p->util_est_enqueued;

	if (estimate <= util)
		estimate = util;
	else if (estimate - util < UTIL_EST_MARGIN)
		return;
	else if (util > capacity)
		return;
	else if (util + UTIL_EST_MARGIN < p->avg.runnable_avg)
		return; /* it was held back, so it did not show what it needs */
	else
		estimate -= (estimate - util) / 4;
	p->util_est_enqueued = estimate;
}

/* The last activation, and its moving average. */
static inline void util_est_update_ewma(struct task __arena *p, u32 capacity,
					bool fast_up)
{
	u32 util = p->avg.util_avg;
	u32 before = p->util_est_enqueued;
	u32 ewma = p->util_est_ewma;
	u32 distance = ewma > util ? ewma - util : util - ewma;
	u32 moved = before > util ? before - util : util - before;

	if (fast_up && ewma < util) {
		p->util_est_enqueued = util;
		p->util_est_ewma = util;
		return;
	}
	if (distance < UTIL_EST_MARGIN) {
		if (moved >= UTIL_EST_MARGIN)
			p->util_est_enqueued = util;
		return;
	}
	if (util > capacity)
		return;
	p->util_est_enqueued = util;
	if (ewma < util)
		p->util_est_ewma = ewma + (util - ewma) / 4;
	else
		p->util_est_ewma = ewma - (ewma - util) / 4;
}

/* At a voluntary sleep: the estimate learns from the activation that ended. */
static inline void util_est_update(struct state __arena *st,
				   struct task __arena *p)
{
	u32 capacity = cpu_of(st, p->cpu)->capacity_orig;

	if (!p->util_changed)
		return;
	p->util_changed = false;
	switch (st->profile.util_est) {
	case UTIL_EST_NONE:
		break;
	case UTIL_EST_EWMA:
		util_est_update_ewma(p, capacity, false);
		break;
	case UTIL_EST_FAST_UP:
		util_est_update_ewma(p, capacity, true);
		break;
	case UTIL_EST_SINGLE:
		util_est_update_single(p, capacity);
		break;
	}
}

#endif
