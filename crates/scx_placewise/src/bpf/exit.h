/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * exit.h: what is told of the scheduler when the kernel has unloaded it: the reason
 * to the loader, the state of each CPU to the kernel's dump.
 */
#ifndef SCX_PLACEWISE_EXIT_H
#define SCX_PLACEWISE_EXIT_H

#include "shadow.h"

struct exit_record {
	s64 code;
	s32 kind; /* enum scx_exit_kind; 0 = still loaded */
	char reason[128];
	char message[1024];
	char dump[32768];
};

struct exit_record exit_record SEC(".data.exit");

static inline void record_exit(struct scx_exit_info *info)
{
	bpf_probe_read_kernel_str(exit_record.reason,
				  sizeof(exit_record.reason), info->reason);
	bpf_probe_read_kernel_str(exit_record.message,
				  sizeof(exit_record.message), info->msg);
	bpf_probe_read_kernel_str(exit_record.dump, sizeof(exit_record.dump),
				  info->dump);
	exit_record.code = info->exit_code;
	exit_record.kind = info->kind;
}

static inline void dump_shadow(struct state __arena *st, u32 cpu)
{
	const struct rq __arena *rq = cpu_rq(st, cpu);
	static char format[] = "shadow: running=%llu nr_running=%llu "
			       "queued=%llu idle=%llu vtime=%llu\n";
	unsigned long long data[] = {
		rq->curr, rq->nr_running, scx_bpf_dsq_nr_queued(cpu),
		available_idle_cpu(st, cpu), queue_of(cpu)->vtime};

	scx_bpf_dump_bstr(format, data, sizeof(data));
}

#endif
