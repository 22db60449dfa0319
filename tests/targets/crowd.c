/* SPDX-License-Identifier: MIT */
/*
 * crowd THREADS DEPTH MIB: waiting threads, each DEPTH frames deep, with known values in registers, on their stacks and in the
 * heap, of which MIB are touched. Prints "THREAD number tid" for each, then READY. At SIGTERM the threads return, and each checks
 * its values: RESULT OK or BAD. Meanwhile the program calls waitpid(-1) and counts SIGCHLD: it must not see children of others.
 */
#include "target.h"

#include <pthread.h>
#include <stdatomic.h>
#include <sys/syscall.h>
#include <sys/wait.h>

struct crumb { /* one for each frame */
	struct crumb *up;
	int depth;
	double weight;
	char label[24];
};
struct crowd {
	unsigned threads, depth;
	uint64_t ticks;
	const char *motto;
};
struct crowd crowd = {0, 0, 0, "known by heart"};
__thread int own_number = -1;
static int wait_pipe[2];
static atomic_uint waiting;
static atomic_int bad, children;

static void on_child(int sig)
{
	(void)sig;
	atomic_fetch_add(&children, 1);
}

/* Waits in read() with values in the registers that a call preserves; false if one has changed. */
__attribute__((noinline)) static int wait_marked(uint64_t number)
{
	uint64_t out[5];
	double lane[2] = {(double)number + 0.25, (double)number + 0.5}, back[2] = {0, 0};
	char c;
	long rc;
	__asm__ volatile("movupd %[lane], %%xmm9\n\t"
	                 "lea 0x10000(%[n]), %%rbx\n\t"
	                 "lea 0x20000(%[n]), %%r12\n\t"
	                 "lea 0x30000(%[n]), %%r13\n\t"
	                 "lea 0x40000(%[n]), %%r14\n\t"
	                 "lea 0x50000(%[n]), %%r15\n\t"
	                 "1: mov $0, %%eax\n\t"
	                 "syscall\n\t"
	                 "movupd %%xmm9, %[back]\n\t"
	                 "mov %%rbx, 0(%[out])\n\t"
	                 "mov %%r12, 8(%[out])\n\t"
	                 "mov %%r13, 16(%[out])\n\t"
	                 "mov %%r14, 24(%[out])\n\t"
	                 "mov %%r15, 32(%[out])\n\t"
	                 : "=&a"(rc), [back] "=m"(back)
	                 : [n] "r"(number), [out] "r"(out), [lane] "m"(lane), "D"(wait_pipe[0]), "S"(&c), "d"(1)
	                 : "rbx", "rcx", "r11", "r12", "r13", "r14", "r15", "xmm9", "memory");
	int right = rc == 0 && back[0] == lane[0] && back[1] == lane[1];
	for (unsigned i = 0; i < 5; i++)
		right &= out[i] == number + (i + 1) * 0x10000;
	return right;
}

__attribute__((noinline)) static int descend(uint64_t number, struct crumb *up, unsigned left)
{
	struct crumb here = {up, (int)left, (double)left / 4, ""};
	snprintf(here.label, sizeof(here.label), "%u/%u", (unsigned)number, left);
	const struct crumb copy = here;
	if (!left)
		atomic_fetch_add(&waiting, 1);
	const int right = left ? descend(number, &here, left - 1) : wait_marked(number);
	return right && !memcmp(&copy, &here, sizeof(here)) + 0 * (int)here.depth;
}

static void *run(void *arg)
{
	own_number = (int)(uintptr_t)arg;
	char name[16];
	snprintf(name, sizeof(name), "crowd-%d", own_number);
	pthread_setname_np(pthread_self(), name);
	printf("THREAD %d %ld\n", own_number, syscall(SYS_gettid));
	if (!descend((uint64_t)own_number, NULL, crowd.depth))
		atomic_store(&bad, 1);
	return NULL;
}

int main(int argc, char **argv)
{
	static pthread_t thread[4096];
	crowd.threads = argc > 1 ? (unsigned)atoi(argv[1]) : 4;
	crowd.depth = argc > 2 ? (unsigned)atoi(argv[2]) : 8;
	const size_t bytes = argc > 3 ? (size_t)atoi(argv[3]) << 20 : 0;
	if (crowd.threads > 4096 || pipe(wait_pipe))
		return 2;
	uint64_t *heap = bytes ? malloc(bytes) : NULL;
	for (size_t i = 0; heap && i < bytes / 8; i += 512)
		heap[i] = i;
	target_stop_on_term();
	signal(SIGCHLD, on_child);
	for (unsigned i = 0; i < crowd.threads; i++)
		if (pthread_create(&thread[i], NULL, run, (void *)(uintptr_t)i))
			return 2;
	while (atomic_load(&waiting) < crowd.threads)
		usleep(1000);
	target_ready();
	int seen = 0;
	while (!target_stop) {
		seen += waitpid(-1, NULL, WNOHANG) != -1 || errno != ECHILD;
		crowd.ticks++;
		usleep(500);
	}
	close(wait_pipe[1]);
	for (unsigned i = 0; i < crowd.threads; i++)
		pthread_join(thread[i], NULL);
	for (size_t i = 0; heap && i < bytes / 8; i += 512)
		if (heap[i] != i)
			atomic_store(&bad, 1);
	printf("SEEN %d CHILDREN %d\n", seen, atomic_load(&children));
	printf("RESULT %s\n", bad || seen || children ? "BAD" : "OK");
	return bad || seen || children;
}
