/* SPDX-License-Identifier: MIT */
/*
 * libcstorm [MALLOC DLOPEN STDIO CREATE]: so many threads are always in malloc, in dlopen and dlclose, in stdio, and in
 * pthread_create and join; each checks its own results. A function called on a thread that holds the lock it needs blocks the
 * thread forever.
 */
#include "target.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdatomic.h>

#define MOST 64

static atomic_int failures;
static atomic_ulong rounds[MOST];

static void check(bool ok)
{
	if (!ok)
		atomic_fetch_add(&failures, 1);
}

static void *in_malloc(void *arg)
{
	unsigned char *held[64] = {0};
	size_t size[64] = {0};
	unsigned long n = (unsigned long)(uintptr_t)arg, i = 0;
	for (; !target_stop; i++) {
		const size_t k = (i * 7 + n) % 64, want = 16 + (i * 2654435761u) % (i % 100 == 0 ? 300000 : 3000);
		for (size_t at = 0; held[k] && at < size[k]; at += 97)
			check(held[k][at] == (unsigned char)k);
		free(held[k]);
		held[k] = i % 3 ? malloc(want) : calloc(1, want);
		if (i % 5 == 0)
			held[k] = realloc(held[k], want + 100);
		check(held[k] != NULL);
		memset(held[k], (int)k, want);
		size[k] = want;
		atomic_fetch_add_explicit(&rounds[n], 1, memory_order_relaxed);
	}
	for (size_t k = 0; k < 64; k++)
		free(held[k]);
	return NULL;
}

static void *in_dlopen(void *arg)
{
	while (!target_stop) {
		void *lib = dlopen("libm.so.6", RTLD_NOW);
		check(lib != NULL);
		if (lib) {
			double (*root)(double) = (double (*)(double))(uintptr_t)dlsym(lib, "sqrt");
			check(root && root(81.0) == 9.0);
			check(dlclose(lib) == 0);
		}
		check(dlopen("no-such-library.so", RTLD_NOW) == NULL && dlerror() != NULL);
		atomic_fetch_add_explicit(&rounds[(uintptr_t)arg], 1, memory_order_relaxed);
	}
	return NULL;
}

static void *in_stdio(void *arg)
{
	char line[256];
	while (!target_stop) {
		FILE *f = fopen("/proc/self/stat", "r");
		FILE *mem = tmpfile();
		check(f && mem);
		if (f && mem) {
			check(fgets(line, sizeof(line), f) != NULL && atoi(line) == (int)getpid());
			fprintf(mem, "%d %s %f\n", 42, "storm", 1.5);
			rewind(mem);
			check(fgets(line, sizeof(line), mem) != NULL && !strcmp(line, "42 storm 1.500000\n"));
		}
		if (f)
			fclose(f);
		if (mem)
			fclose(mem);
		atomic_fetch_add_explicit(&rounds[(uintptr_t)arg], 1, memory_order_relaxed);
	}
	return NULL;
}

static void *short_life(void *arg)
{
	char *copy = strdup(arg);
	const bool ok = copy && !strcmp(copy, "life");
	free(copy);
	return ok ? arg : NULL;
}

static void *in_create(void *arg)
{
	static char life[] = "life";
	while (!target_stop) {
		pthread_t thread;
		void *ret = NULL;
		const bool made = pthread_create(&thread, NULL, short_life, life) == 0;
		check(made && pthread_join(thread, &ret) == 0 && ret == life);
		atomic_fetch_add_explicit(&rounds[(uintptr_t)arg], 1, memory_order_relaxed);
	}
	return NULL;
}

/* Finds a thread without progress here, so that the test does not wait forever. */
static void watch(long threads)
{
	unsigned long last[MOST] = {0};
	unsigned still[MOST] = {0};
	while (!target_stop) {
		target_sleep_us(100000);
		for (long i = 0; i < threads; i++) {
			const unsigned long now = atomic_load_explicit(&rounds[i], memory_order_relaxed);
			still[i] = now == last[i] ? still[i] + 1 : 0;
			last[i] = now;
			if (still[i] == 200) {
				printf("RESULT BAD thread %ld makes no progress\n", i);
				fflush(stdout);
				_exit(1);
			}
		}
	}
}

int main(int argc, char **argv)
{
	static void *(*const kind[])(void *) = {in_malloc, in_dlopen, in_stdio, in_create};
	pthread_t thread[MOST];
	long n = 0;
	target_stop_on_term();
	for (int k = 0; k < 4; k++)
		for (long i = 0; i < target_number(argc, argv, k + 1, 2) && n < MOST; i++, n++)
			if (pthread_create(&thread[n], NULL, kind[k], (void *)(uintptr_t)n) != 0)
				return 1;
	target_ready();
	watch(n);
	for (long i = 0; i < n; i++)
		pthread_join(thread[i], NULL);
	const int bad = atomic_load(&failures);
	printf(bad ? "RESULT BAD %d\n" : "RESULT OK\n", bad);
	return bad != 0;
}
