/* SPDX-License-Identifier: MIT */
/*
 * walk PID: runs the agent's walker, with tables as dynprobe compiles them, over the stack of a process that another process has
 * stopped.
 *
 * Reads lines:
 *   RIP RAX RCX RDX RBX RSP RBP RSI RDI R8 ... R15   (hexadecimal) -> the frames' pcs; "cached" and pcs if another walk differs
 *   sleep USEC SIGNAL                                 waits, then sends the signal: the next stop is at a random moment
 * Compiles the tables again whenever the mapped code has changed.
 */
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>
#include <sys/uio.h>

static pid_t target;

static bool copy(void *dst, uint64_t src, size_t n)
{
	struct iovec local = {dst, n}, remote = {(void *)src, n};

	return process_vm_readv(target, &local, 1, &remote, 1, 0) == (ssize_t)n;
}

static uint64_t load_word(uint64_t addr)
{
	uint64_t word = 0;

	copy(&word, addr, sizeof(word));
	return word;
}

#define DP_UNWIND_LOAD load_word
#define dp_self_read   walk_self_read
#include "agent/unwind/unwind.c"
#include "agent/unwind/unwind_lookup.c"
#include "agent/unwind/unwind_memo.c"
#include "agent/unwind/unwind_stack.c"
#include "agent/unwind/unwind_step.c"

#include "trampoline/trampoline.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define NREGS 17

static struct dp_agent agent;
static struct dp_probe_desc desc;
static struct dp_slot slot;
static uint64_t cache[DP_UNWIND_CACHE], memo[DP_UNWIND_MEMO / 8];
static uint64_t code; /* hash of the mappings that the tables are for */

int walk_self_read(const struct dp_agent *self, void *dst, uint64_t src, uint32_t n)
{
	(void)self;
	return copy(dst, src, n) ? 0 : -1;
}

static void fail(const char *what)
{
	fprintf(stderr, "walk: %s\n", what);
	exit(1);
}

static void check(struct dp_error *err)
{
	if (err)
		fail(err->message);
}

/* ---- tables ------------------------------------------------------------------------------------------------------- */

static char *maps_text(void)
{
	static char text[1 << 20];
	char path[64];
	size_t n = 0, got;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%d/maps", target);
	f = fopen(path, "re");
	if (!f)
		fail("no such process");
	while ((got = fread(text + n, 1, sizeof(text) - 1 - n, f)) > 0)
		n += got;
	text[n] = '\0';
	fclose(f);
	return text;
}

/* Hashes the lines of code mappings. */
static uint64_t hash_of_code(const char *maps)
{
	uint64_t h = 1;

	for (const char *end; (end = strchr(maps, '\n')) != NULL; maps = end + 1) {
		const char *space = memchr(maps, ' ', (size_t)(end - maps));

		if (space && space[3] == 'x')
			for (const char *p = maps; p < end; p++)
				h = (h ^ (uint8_t)*p) * UINT64_C(0x100000001b3);
	}
	return h;
}

static void set_vdso(struct dp_image *image, const char *maps)
{
	static uint8_t bytes[1 << 16];
	const char *line = strstr(maps, "[vdso]");
	unsigned long start, end;

	while (line && line > maps && line[-1] != '\n')
		line--;
	if (line && sscanf(line, "%lx-%lx", &start, &end) == 2 && end - start <= sizeof(bytes) && copy(bytes, start, end - start))
		check(dp_image_set_vdso(image, bytes, end - start));
}

static void compile_tables(void)
{
	struct dp_image *image = NULL;
	char *maps = maps_text();
	uint8_t *block;
	size_t size;

	if (hash_of_code(maps) == code)
		return;
	code = hash_of_code(maps);
	check(dp_image_create(maps, "", target, &image));
	set_vdso(image, maps);
	check(dp_unwind_compile(image, NULL, dp_stack_effect, &block, &size));
	dp_image_destroy(image);
	free((void *)agent.unwind);
	agent.unwind = (uint64_t)block;
}

/* ---- walks -------------------------------------------------------------------------------------------------------- */

static size_t walk_once(const struct dp_regs *regs, uint8_t payload[1 + 8 * DP_BACKTRACE_MAX])
{
	struct dp_capture capture = {.cursor = payload, .slot = &slot, .desc = &desc, .regs = regs};
	struct dp_op op = {.size = DP_BACKTRACE_MAX};

	dp_agent_backtrace(&capture, &op);
	return payload[0];
}

static void print(const uint8_t *payload)
{
	for (size_t i = 0; i < payload[0]; i++) {
		uint64_t pc;

		memcpy(&pc, payload + 1 + 8 * i, 8);
		printf("%s%lx", i ? " " : "", (unsigned long)pc);
	}
}

static void walk_again(const struct dp_regs *regs, const uint8_t *first, const char *how)
{
	uint8_t second[1 + 8 * DP_BACKTRACE_MAX];

	walk_once(regs, second);
	if (first[0] != second[0] || memcmp(first, second, 1 + 8 * (size_t)first[0])) {
		printf(" %s ", how);
		print(second);
	}
}

/*
 * The walker's ways: by the tables alone; with the memo of earlier stops; with the cache that an earlier walk filled; and as this
 * memo's next walk, which repeats the one before.
 */
static void answer(const struct dp_regs *regs)
{
	uint8_t first[1 + 8 * DP_BACKTRACE_MAX];

	compile_tables();
	slot.cache = slot.memo = 0;
	walk_once(regs, first);
	print(first);
	slot.memo = (uint64_t)memo;
	walk_again(regs, first, "cached");
	slot.memo = 0;
	slot.cache = (uint64_t)cache;
	walk_once(regs, (uint8_t[1 + 8 * DP_BACKTRACE_MAX]){0});
	walk_again(regs, first, "cached");
	slot.memo = (uint64_t)memo;
	walk_again(regs, first, "cached");
	walk_again(regs, first, "cached");
	printf("\n");
	fflush(stdout);
}

static bool parse(const char *line, struct dp_regs *regs)
{
	uint64_t value[NREGS];
	char *end;

	for (size_t i = 0; i < NREGS; i++, line = end) {
		value[i] = strtoull(line, &end, 16);
		if (end == line)
			return false;
	}
	*regs = (struct dp_regs){.rip = value[0]};
	memcpy(regs->gpr, value + 1, sizeof(regs->gpr));
	return true;
}

int main(int argc, char **argv)
{
	char line[512];
	struct dp_regs regs;
	unsigned usec;
	int signal;

	target = argc == 2 ? atoi(argv[1]) : 0;
	if (target <= 0)
		fail("usage: walk PID");
	desc.agent = (uint64_t)&agent;
	while (fgets(line, sizeof(line), stdin)) {
		if (sscanf(line, "sleep %u %d", &usec, &signal) == 2) {
			usleep(usec);
			kill(target, signal);
		} else if (parse(line, &regs)) {
			answer(&regs);
		} else {
			fail("not understood");
		}
	}
	return 0;
}
