/* SPDX-License-Identifier: MIT */
/*
 * leaky [WHAT]: has lost the only pointers to some blocks, and keeps others by a pointer each that is easy to overlook. Waits for
 * SIGTERM. Prints READY. Sizes tell the blocks apart: lost and kept ones never have the same.
 *
 *   lost           100 of 88 bytes, 7 of 4000 (text), 5 of 56 (first word: a table of functions), 6 of 184 (to texts),
 *                  a list of 20 of 136, one of a megabyte (a mapping of its own), 3 of 216 of a second thread (another arena)
 *   nothing        the same program without these
 *   crash          as `lost`, and then aborts
 *   many N         N lost ones of 40 bytes, N kept in a list of 72, and N KiB in blocks of 64 KiB that are kept
 *
 * Kept: by interior pointers (312), in a list (72), by a variable of the stack (504), a register (520), thread-local storage
 * (600), a thread's stack (648), an anonymous mapping (712), one that children do not get (776), a word of a large block (760).
 * Free, in all of malloc's lists: 120, 40, 2008.
 */
#include "target.h"

#include <pthread.h>
#include <sys/mman.h>

#define KEPT 50

struct node {
	struct node *next;
	long number[8];
};
struct table {
	void (*run)(void);
};
struct object {
	const struct table *table;
	long number[6];
};

static void nothing(void)
{
}
const struct table leaky_table = {nothing};

/* Not static: the compiler must not see that nobody reads them. */
char *inside[KEPT];
struct node *list;
void **mapping, **excluded, **large, **large_blocks;
char *behind;
__thread char *of_thread;
static pthread_barrier_t ready;
static bool loses = true;

static void *block(size_t size)
{
	char *p = malloc(size);
	memset(p, 0x11, size); /* no addresses of an earlier owner */
	return p;
}

/* The C library's functions leave in these registers what they stored. */
static void clear_vectors(void)
{
	__asm__ volatile("pxor %%xmm0, %%xmm0; pxor %%xmm1, %%xmm1; pxor %%xmm2, %%xmm2; pxor %%xmm3, %%xmm3;"
	                 "pxor %%xmm4, %%xmm4; pxor %%xmm5, %%xmm5; pxor %%xmm6, %%xmm6; pxor %%xmm7, %%xmm7;"
	                 "pxor %%xmm8, %%xmm8; pxor %%xmm9, %%xmm9; pxor %%xmm10, %%xmm10; pxor %%xmm11, %%xmm11;"
	                 "pxor %%xmm12, %%xmm12; pxor %%xmm13, %%xmm13; pxor %%xmm14, %%xmm14; pxor %%xmm15, %%xmm15" ::
	                         : "xmm0", "xmm1", "xmm2", "xmm3", "xmm4", "xmm5", "xmm6", "xmm7", "xmm8", "xmm9", "xmm10",
	                           "xmm11", "xmm12", "xmm13", "xmm14", "xmm15");
}

__attribute__((noinline)) static void lose_list(size_t size)
{
	void *first = NULL;
	for (int i = 0; i < 20; i++) {
		void *volatile *node = block(size);
		node[0] = first;
		first = (void *)node;
	}
}

__attribute__((noinline)) static void lose(void)
{
	for (int i = 0; i < 99; i++)
		block(88);
	for (int i = 0; i < 7; i++)
		strcpy(block(4000), "a page of the book");
	for (int i = 0; i < 5; i++)
		((struct object *)block(sizeof(struct object)))->table = &leaky_table;
	for (int i = 0; i < 6; i++)
		*(const char **)block(184) = i % 2 ? "a text of its own" : "another one";
	lose_list(136);
	block(1 << 20);
}

__attribute__((noinline)) static void keep(void)
{
	for (int i = 0; i < KEPT; i++)
		inside[i] = (char *)block(312) + 8 + 4 * (i % 70);
	for (int i = 0; i < 1000; i++) {
		struct node *n = block(sizeof(*n));
		n->next = list;
		list = n;
	}
	mapping = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	mapping[100] = block(712);
	excluded = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	madvise(excluded, 4096, MADV_DONTFORK);
	excluded[200] = block(776);
	large = block(300000);
	large[30000] = block(760);
}

/* Leaves addresses of a lost block in the part of the stack that is not in use any more. */
__attribute__((noinline)) static void leave_behind(void)
{
	void *volatile deep[4096];
	void *lost = loses ? block(88) : NULL;
	for (int i = 0; i < 4096; i++)
		deep[i] = lost;
	(void)deep[0];
}

/* Enough of each size for a thread's cache, a fast list, and the other lists. */
__attribute__((noinline)) static void free_some(void)
{
	static void *all[3][30];
	static const size_t size[3] = {2008, 120, 40}; /* freed first: many free bytes at once empty the fast lists */
	for (int k = 0; k < 3; k++)
		for (int i = 0; i < 30; i++)
			all[k][i] = block(size[k]);
	for (int k = 0; k < 3; k++)
		for (int i = 0; i < 30; i += 2)
			free(all[k][i]);
	for (int k = 0; k < 3; k++)
		for (int i = 1; i < 30; i += 2)
			free(all[k][i]);
	memset(all, 0, sizeof(all));
}

static void *second(void *unused)
{
	char *volatile of_stack = block(648);
	for (int i = 0; i < 3 && loses; i++)
		block(216);
	for (int i = 0; i < 20; i++) /* free ones of this arena */
		free(block(168));
	of_thread = block(600);
	clear_vectors();
	pthread_barrier_wait(&ready);
	while (!target_stop)
		target_sleep_us(10000);
	return of_stack ? unused : NULL;
}

__attribute__((noinline)) static void many(long n)
{
	for (long i = 0; i < n; i++) {
		struct node *kept = block(sizeof(*kept));
		kept->next = list;
		list = kept;
		block(40);
	}
	large_blocks = block((size_t)(n / 1000 * 16 + 1) * sizeof(*large_blocks));
	for (long i = 0; i < n / 1000 * 16; i++)
		large_blocks[i] = block(65536);
}

int main(int argc, char **argv)
{
	const char *what = argc > 1 ? argv[1] : "lost";
	pthread_t t;
	target_stop_on_term();
	setvbuf(stdout, NULL, _IONBF, 0); /* a large block, allocated later, would empty the fast lists */
	loses = !strcmp(what, "lost") || !strcmp(what, "crash");
	pthread_barrier_init(&ready, NULL, 2);
	keep();
	if (!strcmp(what, "many"))
		many(target_number(argc, argv, 2, 1000));
	if (loses)
		lose();
	leave_behind();
	free_some();
	pthread_create(&t, NULL, second, NULL);
	pthread_barrier_wait(&ready);
	char *volatile of_stack = block(504);
	register void *of_register __asm__("r14") = block(520);
	__asm__ volatile("" : "+r"(of_register));
	behind = block(24); /* a free block would lead to the last word of the one before it */
	clear_vectors();
	target_ready();
	while (!target_stop) {
		if (!strcmp(what, "crash"))
			abort();
		pause();
		__asm__ volatile("" : "+r"(of_register)); /* stays in the register */
	}
	pthread_join(t, NULL);
	printf("RESULT %s\n", of_stack && of_register ? "OK" : "BAD");
	return 0;
}
