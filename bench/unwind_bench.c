/* SPDX-License-Identifier: MIT */
/*
 * The time of one backtrace: unwind_bench [FRAMES [ROUNDS]]. The walker is compiled with the agent's flags and linked here;
 * tables, slot and cache are as in a target. Also measures the compilation of the unwind tables for the files in
 * $UNWIND_BENCH_MAPS (the text of a /proc/PID/maps; default: our own), without and with the cache.
 */
#include "agent/abi.h"
#include "agent/unwind/unwind.h"
#include "trampoline/trampoline.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>
#include <time.h>
#include <ucontext.h>
#include <unistd.h>

void dp_agent_backtrace(struct dp_capture *capture, const struct dp_op *op);

static struct dp_agent agent;
static struct dp_slot slot;
static struct dp_probe_desc desc;
static uint32_t frames = 16;
static long rounds = 1000000;
static volatile int sink;

/* As in a target without the agent's handler. The walk with a warm cache never comes here. */
int dp_self_read(const struct dp_agent *self, void *dst, uint64_t src, uint32_t n);
int dp_self_read(const struct dp_agent *self, void *dst, uint64_t src, uint32_t n)
{
	struct iovec local = {dst, n}, remote = {(void *)src, n};

	return process_vm_readv((pid_t)self->pid, &local, 1, &remote, 1, 0) == (ssize_t)n ? 0 : -1;
}

static double now(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (double)ts.tv_sec * 1e9 + (double)ts.tv_nsec;
}

static char *read_text(const char *path)
{
	size_t cap = 1 << 20, n;
	char *text = malloc(cap);
	FILE *f = fopen(path, "re");

	if (!text || !f)
		exit(1);
	n = fread(text, 1, cap - 1, f);
	text[n] = '\0';
	fclose(f);
	return text;
}

static uint8_t *compile(const char *maps_path, const char *cache_dir, const char *what)
{
	char *maps = read_text(maps_path);
	struct dp_image *image;
	uint8_t *block;
	size_t size;
	double start = now(), opened;

	if (dp_image_create(maps, "", 0, &image))
		exit(1);
	for (size_t i = 0; i < dp_image_nmodules(image); i++)
		dp_module_build_id(dp_image_module(image, i));
	opened = now();
	if (dp_unwind_compile(image, cache_dir, dp_stack_effect, &block, &size))
		exit(1);
	printf("tables, %s: %.2f ms (image %.2f ms before), %zu modules, %zu bytes\n", what, (now() - opened) / 1e6,
	       (opened - start) / 1e6, dp_image_nmodules(image), size);
	dp_image_destroy(image);
	free(maps);
	return block;
}

static void time_compile(void)
{
	const char *maps = getenv("UNWIND_BENCH_MAPS");
	char dir[] = "/tmp/unwind_bench.XXXXXX", command[64];

	maps = maps ? maps : "/proc/self/maps";
	if (!mkdtemp(dir))
		exit(1);
	free(compile(maps, NULL, "no cache"));
	free(compile(maps, dir, "filling the cache"));
	free(compile(maps, dir, "cached"));
	snprintf(command, sizeof(command), "rm -rf %s", dir);
	if (system(command))
		exit(1);
}

static void get_regs(struct dp_regs *regs)
{
	static const uint8_t order[16] = {REG_RAX, REG_RCX, REG_RDX, REG_RBX, REG_RSP, REG_RBP, REG_RSI, REG_RDI,
	                                  REG_R8,  REG_R9,  REG_R10, REG_R11, REG_R12, REG_R13, REG_R14, REG_R15};
	ucontext_t uc;

	getcontext(&uc);
	for (int i = 0; i < 16; i++)
		regs->gpr[i] = (uint64_t)uc.uc_mcontext.gregs[order[i]];
	regs->rip = (uint64_t)uc.uc_mcontext.gregs[REG_RIP];
}

/* The same walk again and again: from its memo, or by the rules of its frames. */
static void time_walks(const char *what, const struct dp_regs *regs)
{
	uint8_t payload[1 + 8 * DP_BACKTRACE_MAX];
	struct dp_capture capture = {.slot = &slot, .desc = &desc, .regs = regs};
	struct dp_op op = {.size = frames};
	double best = 1e9, start;

	for (int batch = 0; batch < 500; batch++) {
		start = now();
		for (long i = 0; i < rounds / 500; i++) {
			capture.cursor = payload;
			dp_agent_backtrace(&capture, &op);
		}
		start = (now() - start) / (double)(rounds / 500);
		best = start < best ? start : best;
	}
	printf("walk, %s: %u frames in %.1f ns (%.1f each)\n", what, payload[0], best, best / payload[0]);
}

static void __attribute__((noinline)) measure(void)
{
	uint8_t payload[1 + 8 * DP_BACKTRACE_MAX];
	struct dp_regs regs;
	struct dp_capture capture = {.slot = &slot, .desc = &desc, .regs = &regs};
	struct dp_op op = {.size = frames};
	const uint64_t memo = slot.memo;
	double start;

	get_regs(&regs);
	time_walks("repeated", &regs);
	slot.memo = 0;
	time_walks("rules in the cache", &regs);
	start = now();
	for (long i = 0; i < 1000; i++) {
		memset((void *)slot.cache, 0, DP_UNWIND_CACHE * sizeof(uint64_t));
		capture.cursor = payload;
		dp_agent_backtrace(&capture, &op);
	}
	printf("walk, without cache entries: %.0f ns\n", (now() - start) / 1000);
	slot.memo = memo;
}

/* Different functions with different frames, as in a real program. */
static void descend(int depth);
#define LEVEL(n, bytes)                                                                                                          \
	static void __attribute__((noinline)) level_##n(int depth)                                                               \
	{                                                                                                                        \
		char block[bytes];                                                                                               \
                                                                                                                                 \
		memset(block, depth, sizeof(block));                                                                             \
		descend(depth - 1);                                                                                              \
		sink += block[depth];                                                                                            \
	}
LEVEL(0, 40)
LEVEL(1, 104)
LEVEL(2, 200)
LEVEL(3, 336)

static void __attribute__((noinline)) descend(int depth)
{
	static void (*const level[])(int) = {level_0, level_1, level_2, level_3};

	if (depth > 0)
		level[depth % 4](depth);
	else
		measure();
	sink++;
}

int main(int argc, char **argv)
{
	if (argc > 1)
		frames = (uint32_t)atoi(argv[1]);
	if (argc > 2)
		rounds = atol(argv[2]);
	time_compile();
	agent.pid = (uint32_t)getpid();
	agent.unwind = (uint64_t)compile("/proc/self/maps", NULL, "own");
	desc.agent = (uint64_t)&agent;
	slot.cache = (uint64_t)aligned_alloc(4096, DP_UNWIND_CACHE * sizeof(uint64_t));
	slot.memo = (uint64_t)aligned_alloc(4096, DP_UNWIND_MEMO);
	memset((void *)slot.cache, 0, DP_UNWIND_CACHE * sizeof(uint64_t));
	memset((void *)slot.memo, 0, DP_UNWIND_MEMO);
	descend((int)frames / 2 + 2);
	return 0;
}
