/* SPDX-License-Identifier: MIT */
/*
 * The program that bench/run.py probes. It has the same small function several times: `bare`; `floored`, with a hand-written
 * detour that writes a timestamp and a 32-byte record to a per-thread ring and preserves the flags (the floor); `hollow`, with an
 * empty detour; `clocked`, whose detour reads the time stamp counter twice (the floor of a duration); `probed`, for dynprobe,
 * which begins with an instruction that has room for a jump; and `punned`, which begins with a short one. Every round runs a
 * batch of each, so that all run at the same clock speed and beside the same other load.
 *
 *	hits [-t THREADS] [-d DEPTH] [-r ROUNDS]      then one line on standard input per measurement
 *
 * Prints per measurement: the median and minimum over rounds of the ns of CPU time per call of each.
 */
#define _GNU_SOURCE
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

enum { BARE, HOLLOW, FLOORED, CLOCKED, PROBED, PUNNED, KINDS };
enum { RING = 1 << 20, MAX_THREADS = 64, MAX_ROUNDS = 2000 };

static __thread uint64_t ring_pos __attribute__((tls_model("local-exec"), used));
static __thread uint8_t *ring_base __attribute__((tls_model("local-exec"), used));

int bare(int a, const char *b);
int floored(int a, const char *b);
int hollow(int a, const char *b);
int clocked(int a, const char *b);
int probed(int a, const char *b);
int punned(int a, const char *b);

/* `first` is the instruction that a probe displaces; the rest is always the same. */
#define BODY(name, first)                                                                                                        \
	"	.p2align 6\n	.globl " #name "\n	.type " #name ",@function\n" #name ":\n"                                 \
	"	.cfi_startproc\n	" first "\n	movsbl (%rsi),%eax; add %edi,%eax; ret\n	.cfi_endproc\n"                     \
	"	.size " #name ",.-" #name "\n"
#define LONG_FIRST  "lea.d32 0(%rdi),%r9; nop"
#define SHORT_FIRST "mov %edi,%r9d"

__asm__(".pushsection .text\n" BODY(bare, LONG_FIRST) BODY(probed, LONG_FIRST) BODY(
        punned, SHORT_FIRST) "	.p2align 6\n	.globl floored\n	.type floored,@function\nfloored:\n"
                             "	jmp detour; nop; nop; nop\n"
                             "floored_back: movsbl (%rsi),%eax; add %edi,%eax; ret\n"
                             "	.size floored,.-floored\n"
                             "	.p2align 6\n	.globl hollow\n	.type hollow,@function\nhollow:\n"
                             "	jmp nothing; nop; nop; nop\n"
                             "hollow_back: movsbl (%rsi),%eax; add %edi,%eax; ret\n"
                             "	.size hollow,.-hollow\n"
                             "	.p2align 6\n"
                             "nothing: " LONG_FIRST "; jmp hollow_back\n"
                             "	.p2align 6\n	.globl clocked\n	.type clocked,@function\nclocked:\n"
                             "	jmp clocks; nop; nop; nop\n"
                             "clocked_back: movsbl (%rsi),%eax; add %edi,%eax; ret\n"
                             "	.size clocked,.-clocked\n"
                             "	.p2align 6\n"
                             "clocks: push %rax; push %rdx; rdtsc; rdtsc; pop %rdx; pop %rax; " LONG_FIRST "; jmp clocked_back\n"
                             "	.p2align 6\n"
                             "detour:\n"
                             "	lea -128(%rsp),%rsp; push %rax; lahf; seto %al; push %rax; push %rcx; push %rdx\n"
                             "	mov %fs:ring_pos@tpoff,%rcx\n"
                             "	rdtsc; shl $32,%rdx; or %rdx,%rax\n"
                             "	mov %fs:ring_base@tpoff,%rdx\n"
                             "	mov %rax,(%rdx,%rcx); movq $42,8(%rdx,%rcx); mov %rdi,16(%rdx,%rcx); mov %rsi,24(%rdx,%rcx)\n"
                             "	add $32,%ecx; and $0xfffff,%ecx\n"
                             "	mov %rcx,%fs:ring_pos@tpoff\n"
                             "	pop %rdx; pop %rcx; pop %rax; add $127,%al; sahf; pop %rax; lea 128(%rsp),%rsp\n"
                             "	" LONG_FIRST "; jmp floored_back\n"
                             "	.p2align 6\n.popsection\n");

static int threads = 1, depth, rounds = 200, batch = 10000;
static double cost[MAX_THREADS][KINDS][MAX_ROUNDS];
static pthread_barrier_t begin, end;
static volatile int sink;

static double cpu_ns(void)
{
	struct timespec t;
	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
	return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

/* The first calls after a pause find cold caches and a slow clock: they are not measured. */
static __attribute__((noinline)) double run_batch(int kind)
{
	static int (*const functions[KINDS])(int, const char *) = {bare, hollow, floored, clocked, probed, punned};
	int (*f)(int, const char *) = functions[kind];
	int sum = 0;
	for (int i = 0; i < batch / 5; i++)
		sum += f(i, "a string of thirty-one letters!");
	double from = cpu_ns();
	for (int i = 0; i < batch; i++)
		sum += f(i, "a string of thirty-one letters!");
	double ns = cpu_ns() - from;
	sink = sum;
	return ns / batch;
}

static __attribute__((noinline)) double run_deep(int kind, int more)
{
	if (more <= 0)
		return run_batch(kind);
	double ns = run_deep(kind, more - 1);
	__asm__ volatile("" ::: "memory");
	return ns;
}

/* The pause lets dynprobe drain the rings: recorded hits are measured, not lost ones. */
static void measure(int thread)
{
	for (int r = 0; r < rounds; r++)
		for (int kind = 0; kind < KINDS; kind++) {
			cost[thread][kind][r] = run_deep(kind, depth);
			if (kind >= PROBED)
				usleep(12000);
		}
}

static void *worker(void *arg)
{
	int thread = (int)(intptr_t)arg;
	ring_base = malloc(RING + 64);
	memset(ring_base, 1, RING + 64);
	for (;;) {
		pthread_barrier_wait(&begin);
		measure(thread);
		pthread_barrier_wait(&end);
	}
	return NULL;
}

static int by_value(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;
	return (x > y) - (x < y);
}

static void report(void)
{
	static const char *const names[KINDS] = {"bare", "hollow", "floor", "clocks", "probed", "punned"};
	static double all[MAX_THREADS * MAX_ROUNDS];
	for (int kind = 0; kind < KINDS; kind++) {
		int n = 0;
		for (int t = 0; t < threads; t++)
			for (int r = 0; r < rounds; r++)
				all[n++] = cost[t][kind][r];
		qsort(all, (size_t)n, sizeof(*all), by_value);
		printf("%s %.3f %.3f ", names[kind], all[n / 2], all[0]);
	}
	printf("\n");
}

int main(int argc, char **argv)
{
	char line[64];
	int option;
	while ((option = getopt(argc, argv, "t:d:r:b:")) != -1)
		*(option == 't' ? &threads : option == 'd' ? &depth : option == 'b' ? &batch : &rounds) = atoi(optarg);
	setvbuf(stdout, NULL, _IOLBF, 0);
	pthread_barrier_init(&begin, NULL, (unsigned)threads + 1);
	pthread_barrier_init(&end, NULL, (unsigned)threads + 1);
	for (int t = 0; t < threads; t++) {
		pthread_t id;
		pthread_create(&id, NULL, worker, (void *)(intptr_t)t);
	}
	printf("READY %d\n", getpid());
	while (fgets(line, sizeof(line), stdin)) {
		pthread_barrier_wait(&begin);
		pthread_barrier_wait(&end);
		report();
	}
	return 0;
}
