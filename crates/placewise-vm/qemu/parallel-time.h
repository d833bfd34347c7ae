/*
 * CPUs of an emulated machine that run side by side in virtual time, though one host thread executes
 * them in turn. QEMU by itself has one count of instructions for all, so that a machine with n busy
 * CPUs runs each at the n-th part of its speed, for as long as no timer is due.
 *
 * Here every CPU has a time of its own. Time passes in quanta, through each of which the busy CPUs go
 * one after the other; the virtual clock is the time of the one that runs. Whoever wakes an idle CPU
 * sets it to the waker's time. So no two busy CPUs are further apart than a quantum, and timers fire when
 * all have reached them. A CPU that the host interrupts goes on where it was. Devices answer when the host
 * gets to it: with some, runs differ.
 *
 * For -icount shift=0 without record and replay. The guest needs tsc=reliable: seen from another CPU,
 * time may go back by a quantum.
 */

#include "qemu/seqlock.h"
#include "softmmu/timers-state.h"

/* Instructions, which are ns. It is short beside what holds a lock: a message through a pipe holds a mutex for 700.
 * With quanta of 1000 whoever spun for that lost whole quanta, and two tasks at a pipe slept 50 times as often. */
#define QUANTUM 200
/* What a spinning CPU's pause takes beyond its instruction: as on hardware, and it saves the host work. */
#define PAUSE 100
#define PARALLEL_CPUS 1024

static struct {
	int64_t now;
	bool busy;
} parallel_cpus[PARALLEL_CPUS];

/* Whether the CPU that runs has paused. */
bool parallel_paused;

static void parallel_set_clock(int64_t icount)
{
	seqlock_write_lock(&timers_state.vm_clock_seqlock,
			   &timers_state.vm_clock_lock);
	qatomic_set_i64(&timers_state.qemu_icount, icount);
	seqlock_write_unlock(&timers_state.vm_clock_seqlock,
			     &timers_state.vm_clock_lock);
}

/* As cpu_has_work() says, without its look-up of the class for each idle CPU. */
static bool parallel_halted(CPUState *cpu)
{
	return cpu->halted &&
	       (!cpu->interrupt_request || !cpu->cc->has_work(cpu));
}

static int64_t parallel_quantum(CPUState *cpu)
{
	return parallel_cpus[cpu->cpu_index].now / QUANTUM;
}

/* The first CPU that has not reached the end of the quantum, with the clock set to its time; NULL if all
 * idle. */
static CPUState *parallel_next(void)
{
	int64_t clock = qatomic_read_i64(&timers_state.qemu_icount);
	CPUState *cpu, *next = NULL;

	CPU_FOREACH(cpu)
	{
		int i = cpu->cpu_index;

		if (!cpu_work_list_empty(cpu) || cpu->stop) {
			return cpu;
		}
		if (!cpu_can_run(cpu) || parallel_halted(cpu)) {
			parallel_cpus[i].busy = false;
			continue;
		}
		if (!parallel_cpus[i].busy) {
			parallel_cpus[i].busy = true;
			parallel_cpus[i].now = MAX(parallel_cpus[i].now, clock);
		}
		if (!next || parallel_quantum(cpu) < parallel_quantum(next)) {
			next = cpu;
		}
	}
	if (next) {
		parallel_set_clock(parallel_cpus[next->cpu_index].now);
	}
	return next;
}

/* How many instructions a CPU may execute before the next one is asked. The only busy one is stopped as
 * well: one that it wakes would else begin when it idles. */
static int64_t parallel_budget(CPUState *cpu)
{
	return QUANTUM - parallel_cpus[cpu->cpu_index].now % QUANTUM;
}

/* After a CPU has run, with its instructions accounted for. */
static void parallel_ran(CPUState *cpu)
{
	int64_t clock = qatomic_read_i64(&timers_state.qemu_icount);

	parallel_cpus[cpu->cpu_index].now =
		clock + (parallel_paused ? PAUSE : 0);
	parallel_paused = false;
}
