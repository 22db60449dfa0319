/* SPDX-License-Identifier: MIT */
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>
#include <sys/uio.h>
#include <unistd.h>

static pid_t other;
static void (*on_load)(void);

static bool copy(void *dst, uint64_t src, size_t n)
{
	struct iovec local = {dst, n}, remote = {(void *)src, n};

	return process_vm_readv(other ? other : getpid(), &local, 1, &remote, 1, 0) == (ssize_t)n;
}

static uint64_t load_word(uint64_t addr)
{
	uint64_t word = 0;

	if (on_load)
		on_load();
	if (other)
		copy(&word, addr, sizeof(word));
	else
		__asm__ volatile("movq (%1), %0" : "=r"(word) : "r"(addr) : "memory");
	return word;
}

#define DP_UNWIND_LOAD     load_word
#define dp_self_read       test_self_read
#define dp_agent_backtrace test_agent_backtrace
#include "agent/unwind/unwind.c"
#include "agent/unwind/unwind_lookup.c"
#include "agent/unwind/unwind_memo.c"
#include "agent/unwind/unwind_stack.c"
#include "agent/unwind/unwind_step.c"

#include "helper_unwind.h"
#include "probes/probes.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>

int test_self_read(const struct dp_agent *agent, void *dst, uint64_t src, uint32_t n)
{
	(void)agent;
	return copy(dst, src, n) ? 0 : -1;
}

void test_unwind_memory_of(pid_t pid)
{
	other = pid;
}

void test_unwind_on_load(void (*call)(void))
{
	on_load = call;
}

static char *maps_text(void)
{
	size_t cap = 1 << 20, n = 0, got;
	char *text = malloc(cap);
	FILE *f = fopen("/proc/self/maps", "re");

	cr_assert(text && f);
	while ((got = fread(text + n, 1, cap - 1 - n, f)) > 0)
		n += got;
	text[n] = '\0';
	fclose(f);
	return text;
}

static size_t vdso_size(const char *maps)
{
	const char *line = strstr(maps, "[vdso]");
	unsigned long start, end;

	if (!line)
		return 0;
	while (line > maps && line[-1] != '\n')
		line--;
	return sscanf(line, "%lx-%lx", &start, &end) == 2 ? end - start : 0;
}

static void compile_tables(struct test_unwind *t)
{
	struct dp_image *image = NULL;
	char *maps = maps_text();
	size_t vdso = vdso_size(maps);

	cr_assert_null(dp_image_create(maps, "", 0, &image));
	if (vdso)
		cr_assert_null(dp_image_set_vdso(image, (const void *)getauxval(AT_SYSINFO_EHDR), vdso));
	cr_assert_null(dp_unwind_compile(image, NULL, NULL, &t->block, &t->size));
	dp_image_destroy(image);
	free(maps);
}

struct test_unwind *test_unwind_create(void)
{
	struct test_unwind *t = calloc(1, sizeof(*t));

	cr_assert(t);
	t->agent = calloc(1, sizeof(*t->agent));
	t->cache = aligned_alloc(64, DP_UNWIND_CACHE * sizeof(uint64_t));
	t->memo = aligned_alloc(64, DP_UNWIND_MEMO);
	cr_assert(t->agent && t->cache && t->memo);
	test_unwind_forget(t);
	compile_tables(t);
	t->agent->unwind = (uint64_t)t->block;
	t->desc.agent = (uint64_t)t->agent;
	t->slot.cache = (uint64_t)t->cache;
	t->slot.memo = (uint64_t)t->memo;
	return t;
}

void test_unwind_forget(struct test_unwind *t)
{
	memset(t->cache, 0, DP_UNWIND_CACHE * sizeof(uint64_t));
	memset(t->memo, 0, DP_UNWIND_MEMO);
}

struct test_unwind *test_unwind_destroy(struct test_unwind *t)
{
	free(t->block);
	free(t->agent);
	free(t->cache);
	free(t->memo);
	free(t);
	return NULL;
}

size_t test_unwind_walk(struct test_unwind *t, const struct dp_regs *regs, uint64_t *pcs, uint32_t limit)
{
	uint8_t payload[1 + 8 * DP_BACKTRACE_MAX];
	struct dp_capture capture = {.cursor = payload, .slot = &t->slot, .desc = &t->desc, .regs = regs};
	struct dp_op op = {.size = limit};

	test_agent_backtrace(&capture, &op);
	if (capture.cursor != payload + 1 + 8 * payload[0])
		return 0;
	memcpy(pcs, payload + 1, 8 * payload[0]);
	return payload[0];
}

bool test_unwind_behind_call(const struct dp_agent *agent, uint64_t pc)
{
	struct dp_walk w = {.agent = agent, .pc = pc};

	return dp_walk_behind_call(&w);
}

void test_unwind_regs(const ucontext_t *uc, struct dp_regs *ret)
{
	static const uint8_t order[16] = {REG_RAX, REG_RCX, REG_RDX, REG_RBX, REG_RSP, REG_RBP, REG_RSI, REG_RDI,
	                                  REG_R8,  REG_R9,  REG_R10, REG_R11, REG_R12, REG_R13, REG_R14, REG_R15};

	for (int i = 0; i < 16; i++)
		ret->gpr[i] = (uint64_t)uc->uc_mcontext.gregs[order[i]];
	ret->rip = (uint64_t)uc->uc_mcontext.gregs[REG_RIP];
	ret->rflags = (uint64_t)uc->uc_mcontext.gregs[REG_EFL];
}
