/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * exit.h: what the loader is told when the kernel has unloaded the scheduler.
 */
#ifndef SCX_PLACEWISE_EXIT_H
#define SCX_PLACEWISE_EXIT_H

#include "kernel.h"

/* Mirrored in scheduler.rs. */
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

#endif
