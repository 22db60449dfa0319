/* SPDX-License-Identifier: MIT */
/* The handler of the blob that is mapped into targets, installed in the test's own process. */
#ifndef DP_TESTS_TRAP_BLOB_H
#define DP_TESTS_TRAP_BLOB_H

#include "agent/trap/trap.h"

#include <criterion/criterion.h>
#include <dlfcn.h>
#include <sys/mman.h>
#include <unistd.h>

static struct dp_trap *trap;
static struct dp_agent *agent;
static uint64_t (*hook)(struct dp_regs *);

static uint64_t at(const void *p)
{
	return (uint64_t)(uintptr_t)p;
}

static void *symbol(const char *name)
{
	static void *blob;
	if (!blob)
		blob = dlopen(DP_AGENT_SO, RTLD_NOW);
	cr_assert_not_null(blob, "%s", dlerror());
	return dlsym(blob, name);
}

/* A live agent, and a handler without tables, which handles nothing yet. */
static void trap_blob(void)
{
	uint64_t *word = symbol(DP_SYM_TRAP_STATE);
	trap = mmap(NULL, sizeof(*trap) + 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	agent = mmap(NULL, sizeof(*agent), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	cr_assert_eq(madvise(agent, sizeof(*agent), MADV_WIPEONFORK), 0);
	agent->live = DP_LIVE;
	trap->agent = at(agent);
	trap->pid = (uint32_t)getpid();
	cr_assert_eq(mprotect((void *)((uintptr_t)word & ~(uintptr_t)4095), 8192, PROT_READ | PROT_WRITE | PROT_EXEC), 0);
	*word = at(trap);
	hook = (uint64_t(*)(struct dp_regs *))(uintptr_t)symbol(DP_SYM_TRAP_SYSCALL);
}

/* Makes a system call through the hook, as a program does. */
static int64_t call(uint64_t nr, uint64_t a, uint64_t b, uint64_t c, uint64_t d)
{
	struct dp_regs r = {.gpr = {nr, 0, c, 0, 0, 0, b, a, 0, 0, d}};
	cr_assert_eq(hook(&r), 1);
	return (int64_t)r.gpr[0];
}

#endif
