/* A plugin of QEMU that writes down what emulated CPUs execute, block by block, for a few turns of a load: for what a
 * step of the kernel takes in instructions, without a tracer that takes some itself. docs/vm.md says how to use it.
 *
 *	-plugin steps.so,at=ADDRESS,from=N,turns=M,out=FILE
 *
 * From the Nth time that the block at ADDRESS is executed, M times long, each block is a line of FILE: its CPU, its
 * address and its instructions. Limit: a block that a fault ends early counts whole. */

#include <glib.h>
#include <inttypes.h>
#include <stdio.h>

#include "qemu-plugin.h"

#define MOST 4000000

struct block {
	uint64_t address, instructions;
	bool is_turn;
};

QEMU_PLUGIN_EXPORT int qemu_plugin_version = QEMU_PLUGIN_VERSION;

static uint64_t at, from = 1, turns = 1, turn, lines;
static FILE *out;

static void executed(unsigned int cpu, void *data)
{
	const struct block *block = data;

	turn += block->is_turn;
	if (turn < from || turn >= from + turns || lines == MOST)
		return;
	lines++;
	fprintf(out, "%u %" PRIx64 " %" PRIu64 "\n", cpu, block->address,
		block->instructions);
}

/* A block is translated again and again: what is known of it is never freed. */
static void translated(qemu_plugin_id_t id, struct qemu_plugin_tb *tb)
{
	struct block *block = g_new0(struct block, 1);

	block->address = qemu_plugin_tb_vaddr(tb);
	block->instructions = qemu_plugin_tb_n_insns(tb);
	block->is_turn = block->address == at;
	qemu_plugin_register_vcpu_tb_exec_cb(tb, executed,
					     QEMU_PLUGIN_CB_NO_REGS, block);
}

static void ended(qemu_plugin_id_t id, void *data)
{
	fclose(out);
}

QEMU_PLUGIN_EXPORT int qemu_plugin_install(qemu_plugin_id_t id,
					   const qemu_info_t *info, int argc,
					   char **argv)
{
	for (int i = 0; i < argc; i++) {
		g_auto(GStrv) word = g_strsplit(argv[i], "=", 2);

		if (g_strcmp0(word[0], "at") == 0)
			at = g_ascii_strtoull(word[1], NULL, 16);
		else if (g_strcmp0(word[0], "from") == 0)
			from = g_ascii_strtoull(word[1], NULL, 10);
		else if (g_strcmp0(word[0], "turns") == 0)
			turns = g_ascii_strtoull(word[1], NULL, 10);
		else if (g_strcmp0(word[0], "out") == 0)
			out = fopen(word[1], "w");
	}
	if (!at || !out) {
		fprintf(stderr, "steps: at=ADDRESS and out=FILE that can be "
				"written are missing\n");
		return 1;
	}
	qemu_plugin_register_vcpu_tb_trans_cb(id, translated);
	qemu_plugin_register_atexit_cb(id, ended, NULL);
	return 0;
}
