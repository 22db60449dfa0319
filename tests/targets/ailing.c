/* SPDX-License-Identifier: MIT */
/*
 * ailing WHAT: a program with a fault that the ready-made pmodules find; it waits for SIGTERM. Prints READY.
 *
 *   deadlock       two threads hold a mutex each and wait for the other's; a third waits for one of them
 *   heap           a frame with pointers to a block in use, a freed one, and one with a write past its end
 *   heap-lists     a frame with pointers to and into blocks in each of malloc's lists, and in none
 *   heap-twice     a block that is in a thread's cache twice, undetected by malloc
 *   double-free    malloc detects a double free and aborts; the SIGABRT handler keeps the process alive
 */
#include "target.h"

#include <dirent.h>
#include <pthread.h>
#include <sys/syscall.h>

pthread_mutex_t lock_a = PTHREAD_MUTEX_INITIALIZER, lock_b = PTHREAD_MUTEX_INITIALIZER;
static pthread_barrier_t both;

__attribute__((noinline)) static void stay(void)
{
	while (!target_stop)
		pause();
}

/* ---- deadlock --------------------------------------------------------------------------------------------------------- */

__attribute__((noinline)) static void *take_a_then_b(void *unused)
{
	pthread_mutex_lock(&lock_a);
	pthread_barrier_wait(&both);
	pthread_mutex_lock(&lock_b);
	return unused;
}

__attribute__((noinline)) static void *take_b_then_a(void *unused)
{
	pthread_mutex_lock(&lock_b);
	pthread_barrier_wait(&both);
	pthread_mutex_lock(&lock_a);
	return unused;
}

__attribute__((noinline)) static void *take_a(void *unused)
{
	pthread_mutex_lock(&lock_a);
	return unused;
}

static int waiting_in_futex(void)
{
	char path[300], line[64];
	int n = 0;
	DIR *d = opendir("/proc/self/task");
	for (struct dirent *e = d ? readdir(d) : NULL; e; e = readdir(d)) {
		snprintf(path, sizeof(path), "/proc/self/task/%s/syscall", e->d_name);
		FILE *f = fopen(path, "r");
		n += f && fgets(line, sizeof(line), f) && atoi(line) == SYS_futex;
		if (f)
			fclose(f);
	}
	if (d)
		closedir(d);
	return n;
}

static void deadlock(void)
{
	pthread_t t;
	pthread_barrier_init(&both, NULL, 3);
	pthread_create(&t, NULL, take_a_then_b, NULL);
	pthread_create(&t, NULL, take_b_then_a, NULL);
	pthread_barrier_wait(&both);
	pthread_create(&t, NULL, take_a, NULL);
	while (waiting_in_futex() < 3)
		target_sleep_us(1000);
	target_ready();
	stay();
}

/* ---- heap ------------------------------------------------------------------------------------------------------------- */

static char *of_other_arena, *used, *at_the_end;

struct order {
	long number, price;
	char customer[16];
};

__attribute__((noinline)) static long look_at(struct order *fine, struct order *stale, struct order *damaged)
{
	target_ready();
	stay();
	__asm__ volatile("" ::"r"(fine), "r"(stale), "r"(damaged) : "memory"); /* still used here */
	return fine->number;
}

static void heap(void)
{
	struct order *o[4];
	for (int i = 0; i < 4; i++)
		o[i] = calloc(1, sizeof(**o));
	volatile char *end = (volatile char *)o[2] + sizeof(**o);
	struct order *volatile stale = o[1];
	free(o[1]);
	for (int i = 0; i < 16; i++) /* the size of the next block */
		end[i] = 0x41;
	look_at(o[0], stale, o[2]);
}

__attribute__((noinline, optimize("O0"))) static int look_at_lists(char *fast, char *listed, char *into_listed, char *merged,
                                                                   char *large)
{
	char *volatile other_arena = NULL, *volatile into_used = NULL;
	int *volatile rest = NULL;
	(void)fast, (void)listed, (void)into_listed, (void)merged, (void)large;
	other_arena = of_other_arena;
	into_used = used + 8;
	rest = (int *)at_the_end;
	target_ready();
	stay();
	return *other_arena + *into_used + *rest;
}

static void *use_other_arena(void *done)
{
	static char *volatile behind;
	of_other_arena = malloc(1200);
	behind = malloc(32);
	free(of_other_arena);
	pthread_barrier_wait(done);
	stay();
	return behind;
}

/* Of eight freed blocks of a size, seven go to the cache and one to a fast list; blocks of 2000 bytes go to the unsorted list. */
static void heap_lists(void)
{
	static char buffer[BUFSIZ]; /* stdio must not use the heap */
	pthread_t t;
	setvbuf(stdout, buffer, _IOFBF, sizeof(buffer));
	char *volatile eight[9], *volatile big[4], *volatile large = malloc(1 << 20);
	pthread_barrier_init(&both, NULL, 2);
	pthread_create(&t, NULL, use_other_arena, &both);
	pthread_barrier_wait(&both);
	for (int i = 0; i < 9; i++)
		eight[i] = malloc(56);
	for (int i = 0; i < 4; i++)
		big[i] = malloc(2000);
	used = malloc(100);
	at_the_end = malloc(3000);
	free(at_the_end);
	free(big[0]);
	free(big[1]); /* merged with the previous block */
	free(big[3]);
	for (int i = 0; i < 8; i++)
		free(eight[i]);
	look_at_lists(eight[7], big[3], big[3] + 100, big[1], large);
}

/* A write after free overwrites the cache's key, so that the second free() is not detected. */
static void heap_twice(void)
{
	volatile uint64_t *volatile block = malloc(72);
	free((void *)block);
	block[1] = 0;
	free((void *)block);
	target_ready();
	stay();
}

/* ---- double free ------------------------------------------------------------------------------------------------------ */

static void on_abort(int sig)
{
	static const char text[] = "READY 0\n";
	(void)sig;
	if (write(STDOUT_FILENO, text, sizeof(text) - 1) > 0)
		stay();
	_exit(0);
}

__attribute__((noinline)) static void release(void *volatile block)
{
	free(block);
}

static void double_free(void)
{
	void *block = malloc(40);
	signal(SIGABRT, on_abort);
	release(block);
	release(block);
}

int main(int argc, char **argv)
{
	const char *what = argc > 1 ? argv[1] : "";
	target_stop_on_term();
	if (strcmp(what, "deadlock") == 0)
		deadlock();
	if (strcmp(what, "heap") == 0)
		heap();
	if (strcmp(what, "heap-lists") == 0)
		heap_lists();
	if (strcmp(what, "heap-twice") == 0)
		heap_twice();
	if (strcmp(what, "double-free") == 0)
		double_free();
	_exit(0); /* no cleanup: the heap is damaged */
}
