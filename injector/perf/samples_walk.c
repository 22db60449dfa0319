/* SPDX-License-Identifier: MIT */
/*
 * The agent's unwinder, compiled again for the tool: it reads the sample's copy of the stack instead of the program's memory. It
 * takes nothing else for stack, so a frame is either right or missing. Only code, where no table describes it, is read from the
 * process as it is now: to see whether a call precedes an address.
 */
#include "injector/perf/samples.h"

#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>

static const struct dp_sample *current; /* only one thread of the tool walks */
static bool left;                       /* a read went beyond the copy */
static pid_t process;                   /* whose code may be read; 0: none */

enum { PAGE = 4096 };

static bool copied(void *dst, uint64_t src, size_t n)
{
	const uint64_t sp = current->regs.gpr[4], at = src - sp;
	memset(dst, 0, n);
	/* Memory below rsp is only read to learn whether the page exists. */
	if (src < sp && src >= (sp & -(uint64_t)PAGE))
		return true;
	if (at >= current->n || current->n - at < n) {
		left |= src >= sp;
		return false;
	}
	memcpy(dst, current->stack + at, n);
	return true;
}

static uint64_t load(uint64_t addr)
{
	uint64_t word = 0;
	copied(&word, addr, sizeof(word));
	return word;
}

static int read_code(const struct dp_agent *self, void *dst, uint64_t src, uint32_t n)
{
	const struct iovec local = {dst, n}, remote = {(void *)(uintptr_t)src, n};
	(void)self;
	return process && process_vm_readv(process, &local, 1, &remote, 1, 0) == (ssize_t)n ? 0 : -1;
}

#define DP_UNWIND_LOAD       load
#define DP_UNWIND_READ_CODE  read_code
#define dp_self_read         dp_sample_self_read
#define dp_agent_backtrace   dp_sample_backtrace
#define dp_walk_enter_stack  dp_sample_enter_stack
#define dp_walk_change_stack dp_sample_change_stack
#define dp_walk_read_far     dp_sample_read_far
#define dp_walk_lookup       dp_sample_lookup
#define dp_walk_step         dp_sample_step
#define dp_memo_recall       dp_sample_recall
#define dp_memo_learn        dp_sample_learn
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wconversion"
#pragma GCC diagnostic ignored "-Wmissing-prototypes"
#include "agent/unwind/unwind.c"
#include "agent/unwind/unwind_lookup.c"
#include "agent/unwind/unwind_memo.c"
#include "agent/unwind/unwind_stack.c"
#include "agent/unwind/unwind_step.c"
#pragma GCC diagnostic pop

int dp_sample_self_read(const struct dp_agent *self, void *dst, uint64_t src, uint32_t n)
{
	(void)self;
	return copied(dst, src, n) ? 0 : -1;
}

struct dp_sample_walker {
	struct dp_agent agent;
	struct dp_probe_desc desc;
	struct dp_slot slot;
	pid_t pid;
	uint64_t cache[DP_UNWIND_CACHE];
};

struct dp_error *dp_sample_walker_create(pid_t pid, struct dp_sample_walker **ret)
{
	struct dp_sample_walker *w = calloc(1, sizeof(*w));
	if (!w)
		return dp_error_nomem();
	w->slot.cache = (uint64_t)(uintptr_t)w->cache;
	w->desc.agent = (uint64_t)(uintptr_t)&w->agent;
	w->pid = pid;
	*ret = w;
	return NULL;
}

void dp_sample_walker_tables(struct dp_sample_walker *w, const uint8_t *unwind)
{
	w->agent.unwind = (uint64_t)(uintptr_t)unwind;
	memset(w->cache, 0, sizeof(w->cache));
}

size_t dp_sample_walk(struct dp_sample_walker *w, const struct dp_sample *sample, uint64_t *pc, size_t most)
{
	uint8_t payload[1 + 8 * DP_BACKTRACE_MAX];
	struct dp_capture capture = {.cursor = payload, .slot = &w->slot, .desc = &w->desc, .regs = &sample->regs};
	const struct dp_op op = {.size = (uint32_t)(most < DP_BACKTRACE_MAX ? most : DP_BACKTRACE_MAX)};
	current = sample;
	process = w->pid;
	left = false;
	w->slot.stack_lo = 0; /* the copy is valid for this sample only */
	dp_agent_backtrace(&capture, &op);
	current = NULL;
	memcpy(pc, payload + 1, payload[0] * sizeof(*pc));
	return payload[0];
}

bool dp_sample_left(void)
{
	return left;
}

struct dp_sample_walker *dp_sample_walker_destroy(struct dp_sample_walker *w)
{
	free(w);
	return NULL;
}
