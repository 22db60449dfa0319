/* SPDX-License-Identifier: MIT */
/*
 * loads LIBRARY MODE: opens the library, calls its plugin_work(), checks the results, and closes it. MODE is one of
 *   cycle   again and again until SIGTERM, while two threads work
 *   once    opens it at SIGUSR1 (prints OPENED) and closes it at the next one (prints CLOSED)
 *   main    once, from main(), then ends
 * The library counts the calls of its constructor in plugin_constructed.
 */
#include "target.h"

#include <dlfcn.h>
#include <pthread.h>
#include <string.h>
#include <time.h>

static volatile sig_atomic_t asked;

TARGET_PROBED unsigned foo(unsigned a)
{
	return a * 3 + 1;
}

static void on_usr1(int sig)
{
	(void)sig;
	asked++;
}

static void *worker(void *bad)
{
	for (unsigned i = 0; !target_stop; i++)
		if (foo(i) != i * 3 + 1)
			__atomic_fetch_add((long *)bad, 1, __ATOMIC_RELAXED);
	return NULL;
}

static void *open_library(const char *path, long *bad)
{
	void *library = dlopen(path, RTLD_NOW);
	const unsigned *constructed = library ? dlsym(library, "plugin_constructed") : NULL;

	*bad += !constructed || *constructed != target_expected(7, "plugin");
	return library;
}

static void work(void *library, unsigned n, long *bad)
{
	unsigned (*plugin)(unsigned) = library ? (unsigned (*)(unsigned))dlsym(library, "plugin_work") : NULL;

	for (unsigned i = 0; plugin && i < n; i++)
		*bad += plugin(i) != target_expected(i, "plugin");
}

static void cycle(const char *path, long *bad)
{
	unsigned cycles = 0;

	for (; !target_stop; cycles++) {
		void *library = open_library(path, bad);

		work(library, 50, bad);
		*bad += !library || dlclose(library) != 0;
	}
	printf("CYCLES %u\n", cycles);
}

static void await(int n, void *library, long *bad)
{
	while (asked < n && !target_stop) {
		work(library, 5, bad);
		*bad += foo(1) != 4;
		target_sleep_us(1000);
	}
}

static double now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static void say(const char *word, double from)
{
	printf("%s %.3f\n", word, now() - from);
	fflush(stdout);
}

static void once(const char *path, long *bad)
{
	void *library = NULL;

	for (int n = 1; !target_stop; n++) {
		await(n, library, bad);
		if (target_stop)
			break;
		const double from = now();
		if (library) {
			*bad += dlclose(library) != 0;
			library = NULL;
			say("CLOSED", from);
		} else {
			library = open_library(path, bad);
			say("OPENED", from);
		}
	}
}

int main(int argc, char **argv)
{
	struct sigaction action = {.sa_handler = on_usr1, .sa_flags = SA_RESTART};
	pthread_t thread[2];
	long bad = 0;

	if (argc < 3)
		return 2;
	sigaction(SIGUSR1, &action, NULL);
	target_stop_on_term();
	if (strcmp(argv[2], "main") == 0) {
		work(open_library(argv[1], &bad), 20, &bad);
	} else if (strcmp(argv[2], "once") == 0) {
		target_ready();
		once(argv[1], &bad);
	} else {
		for (int i = 0; i < 2; i++)
			pthread_create(&thread[i], NULL, worker, &bad);
		target_ready();
		cycle(argv[1], &bad);
		for (int i = 0; i < 2; i++)
			pthread_join(thread[i], NULL);
	}
	printf("RESULT %s\n", bad ? "BAD" : "OK");
	return bad != 0;
}
