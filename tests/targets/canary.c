/* SPDX-License-Identifier: MIT */
/*
 * canary [THREADS]: around hot code, all registers, flags, x87, MXCSR, vector and mask registers, the red zone, errno and the
 * signal mask have patterns that change with every pass, in every thread and in a signal handler. It counts and names changes
 * that it did not make.
 */
#include "canary.h"
#include "target.h"

#include <pthread.h>
#include <sys/time.h>

#define FLAGS      0xcd5u /* DF OF SF ZF AF PF CF */
#define MXCSR_BITS 0xffffu
#define SHOWN      20

static const char *const names[16] = {"rax", "rcx", "rdx", "rbx", "rsp", "rbp", "rsi", "rdi",
                                      "r8",  "r9",  "r10", "r11", "r12", "r13", "r14", "r15"};
static _Atomic long bad, passes, in_handler;
static uint64_t level;

static void differs(const char *what, int index, const void *want, const void *got, size_t n)
{
	if (!memcmp(want, got, n))
		return;
	if (bad++ >= SHOWN)
		return;
	char line[400];
	int at = snprintf(line, sizeof(line), "BAD %s", what);
	if (index >= 0)
		at += snprintf(line + at, sizeof(line) - (size_t)at, "%d", index);
	for (int side = 0; side < 2; side++) {
		at += snprintf(line + at, sizeof(line) - (size_t)at, side ? " not " : " is ");
		for (size_t i = n > 64 ? 64 : n; i-- > 0;)
			at += snprintf(line + at, sizeof(line) - (size_t)at, "%02x", ((const uint8_t *)(side ? want : got))[i]);
	}
	line[at++] = '\n';
	if (write(1, line, (size_t)at) < 0)
		bad++;
}

/* xorshift64 */
static uint64_t next(uint64_t *state)
{
	*state ^= *state << 13;
	*state ^= *state >> 7;
	return *state ^= *state << 17;
}

/* Control word with all exceptions masked, any rounding and precision; no pending exception; every register of any value. */
static void fill_x87(uint8_t x87[112], uint64_t *random)
{
	const uint64_t r = next(random);
	uint32_t env[7] = {0};
	env[0] = 0xffff0000u | 0x7f | (r & 0xf00);
	env[1] = 0xffff0000u | (r >> 16 & 0x7f00) | (r >> 32 & 0x3f); /* condition codes, top of stack, flags without summary */
	env[2] = 0xffff0000u | (r >> 40 & 1 ? 0 : 0xffff);            /* all valid, or all empty */
	memcpy(x87, env, sizeof(env));
	for (size_t i = 28; i < 108; i++)
		x87[i] = (uint8_t)next(random);
	for (size_t i = 28; i < 108; i += 10)
		x87[i + 7] |= 0x80, x87[i + 9] = 0x3f; /* ordinary numbers */
}

static void fill(struct canary *c, uint64_t *random)
{
	uint64_t *words = c->in.gpr;
	for (size_t i = 0; i < 16; i++)
		words[i] = next(random);
	if (next(random) & 1)
		c->in.gpr[1] = 0; /* rcx, which jrcxz tests */
	for (size_t i = 0; i < 16; i++)
		c->in.red_zone[i] = next(random);
	for (size_t i = 0; i < 8; i++)
		c->in.k[i] = next(random);
	for (size_t i = 0; i < sizeof(c->in.vector); i += 8) {
		const uint64_t r = next(random);
		memcpy(&c->in.vector[0][0] + i, &r, 8);
	}
	c->in.rflags = 0x202 | (next(random) & FLAGS);
	c->in.mxcsr = (uint32_t)(0x1f80 | (next(random) & 0xe07f)) & MXCSR_BITS;
	fill_x87(c->in.x87, random);
}

static void check_x87(const struct canary *c)
{
	static const uint8_t at[] = {0, 1, 4, 5, 8, 9}; /* control, status, tags; the rest are addresses */
	const bool empty = c->in.x87[8] == 0xff;
	for (size_t i = 0; i < sizeof(at) - (empty ? 0 : 2); i++)
		differs("x87 control, status, tags, byte ", at[i], &c->in.x87[at[i]], &c->out.x87[at[i]], 1);
	for (int i = 0; i < 8; i++)
		differs("st", i, &c->in.x87[28 + 10 * i], &c->out.x87[28 + 10 * i], 10);
}

static void check(const struct canary *c)
{
	const size_t width = level == CANARY_AVX512 ? 64 : level == CANARY_AVX ? 32 : 16;
	for (int i = 0; i < 16; i++)
		if (i != 4)
			differs(names[i], -1, &c->in.gpr[i], &c->out.gpr[i], 8);
	const uint64_t flags = c->out.rflags & (FLAGS | 0x40100);
	const uint64_t wanted = c->in.rflags & FLAGS;
	differs("rflags", -1, &wanted, &flags, 8);
	differs("mxcsr", -1, &c->in.mxcsr, &c->out.mxcsr, 4);
	for (int i = 0; i < 16; i++)
		differs("red zone word ", i, &c->in.red_zone[i], &c->out.red_zone[i], 8);
	for (int i = 0; level == CANARY_AVX512 && i < 8; i++)
		differs("k", i, &c->in.k[i], &c->out.k[i], 8);
	for (int i = 0; i < (level == CANARY_AVX512 ? 32 : 16); i++)
		differs("vector", i, c->in.vector[i], c->out.vector[i], width);
	check_x87(c);
}

static void once(struct canary *c, uint64_t *random)
{
	const int number = (int)(next(random) & 0x7fff);
	fill(c, random);
	errno = number;
	canary_hot(c);
	const int got = errno;
	differs("errno", -1, &number, &got, sizeof(got));
	check(c);
	passes++;
}

static void on_alarm(int sig)
{
	static __thread struct canary c __attribute__((aligned(64))); /* any thread may get the timer's signal, several at once */
	static __thread uint64_t random = 0x9e3779b97f4a7c15;
	const int before = errno;
	(void)sig;
	c.level = level;
	once(&c, &random);
	in_handler++;
	errno = before;
}

static void *work(void *arg)
{
	struct canary *c = aligned_alloc(64, (sizeof(*c) + 63) & ~63ul);
	uint64_t random = 0x123456789abcdef ^ ((uint64_t)(uintptr_t)arg << 32);
	sigset_t mask, now;
	sigemptyset(&mask);
	sigaddset(&mask, SIGRTMIN + (int)(uintptr_t)arg % 8);
	sigaddset(&mask, SIGUSR1);
	if ((uintptr_t)arg)
		sigaddset(&mask, SIGTERM);
	pthread_sigmask(SIG_SETMASK, &mask, NULL);
	c->level = level;
	for (unsigned i = 0; !target_stop; i++) {
		once(c, &random);
		if (i % 64)
			continue;
		pthread_sigmask(SIG_SETMASK, NULL, &now);
		differs("signal mask", -1, &mask, &now, 8);
	}
	free(c);
	return NULL;
}

static void print_instructions(void)
{
	printf("INSTRUCTIONS");
	for (const uint32_t *at = canary_insn; at < canary_insn_end; at++)
		printf(" %u", *at);
	printf("\n");
}

int main(int argc, char **argv)
{
	const long n = target_number(argc, argv, 1, 4);
	pthread_t thread[64];
	_Static_assert(sizeof(struct canary_state) == 0x9c0 && offsetof(struct canary, level) == 0x1380,
	               "canary_hot.S knows these");
	level = __builtin_cpu_supports("avx512bw") ? CANARY_AVX512 : __builtin_cpu_supports("avx") ? CANARY_AVX : CANARY_SSE;
	target_stop_on_term();
	signal(SIGALRM, on_alarm);
	print_instructions();
	for (long i = 1; i < n && i < 64; i++)
		pthread_create(&thread[i], NULL, work, (void *)i);
	setitimer(ITIMER_REAL, &(struct itimerval){{0, 3000}, {0, 3000}}, NULL);
	target_ready();
	work(NULL);
	for (long i = 1; i < n && i < 64; i++)
		pthread_join(thread[i], NULL);
	fprintf(stderr, "%ld passes, %ld of them in the handler, level %d\n", passes, in_handler, (int)level);
	if (bad)
		printf("RESULT BAD %ld\n", bad);
	else
		printf("RESULT OK\n");
	return bad != 0;
}
