/* SPDX-License-Identifier: MIT */
/*
 * thousands [THREADS [OVER_US]]: 20,000 small functions, f10000 to f29999. One thread reads the clock in a loop, and records each
 * gap of more than OVER_US (200; 0: it sleeps instead). The others call random functions, with short sleeps in between. At SIGTERM
 * prints "gap END LENGTH WAITED" for each gap, in nanoseconds (END: of CLOCK_MONOTONIC), and the result. WAITED: how long since the
 * previous gap the thread was runnable and had no processor.
 */
#include "target.h"

#include <dlfcn.h>
#include <pthread.h>

#define MOST 64
#define GAPS (1 << 16)

static _Atomic long bad;
static uint64_t gap[GAPS][3];

/* thousands_functions.S: a part of the program, or of a library that it loads and might unload */
#define FIRST     10000
#define FUNCTIONS 20000
#ifdef LOADED
static unsigned (*const *functions)(unsigned, unsigned);
#else
extern unsigned (*const functions[FUNCTIONS])(unsigned, unsigned);
#endif

static unsigned expected(unsigned i, unsigned a, unsigned b)
{
	return (a ^ (FIRST + i)) * 31 + (b >> 1);
}

static void *call(void *arg)
{
	unsigned at = *(const unsigned *)arg;
	while (!target_stop) {
		for (unsigned i = 0; i < 50; i++, at += 7919)
			bad += functions[at % FUNCTIONS](at, i) != expected(at % FUNCTIONS, at, i);
		target_sleep_us(500);
	}
	return NULL;
}

/* How long this thread has waited for a processor, by the kernel's count. */
static uint64_t waited_ns(void)
{
	static FILE *f;
	unsigned long long ran, waited = 0;
	if (!f)
		f = fopen("/proc/thread-self/schedstat", "r");
	rewind(f);
	fflush(f);
	return fscanf(f, "%llu %llu", &ran, &waited) == 2 ? waited : 0;
}

static size_t look_at_the_clock(uint64_t over_ns)
{
	uint64_t waited = waited_ns(), last = target_now_ns();
	size_t n = 0;
	while (over_ns == 0 && !target_stop)
		target_sleep_us(5000);
	while (!target_stop) {
		const uint64_t now = target_now_ns(), before = last;
		last = now;
		if (now - before <= over_ns || n == GAPS)
			continue;
		const uint64_t had_waited = waited;
		waited = waited_ns();
		gap[n][0] = now;
		gap[n][1] = now - before;
		gap[n++][2] = waited - had_waited;
		last = target_now_ns();
	}
	return n;
}

int main(int argc, char **argv)
{
	static unsigned from[MOST];
	pthread_t thread[MOST];
	const long threads = target_number(argc, argv, 1, 5);

#ifdef LOADED
	void *module = dlopen(LOADED, RTLD_NOW);
	functions = module ? dlsym(module, "functions") : NULL;
	if (!functions)
		return 2;
#endif
	target_stop_on_term();
	for (long i = 1; i < threads && i < MOST; i++) {
		from[i] = (unsigned)i * 1000003;
		if (pthread_create(&thread[i], NULL, call, &from[i]) != 0)
			return 2;
	}
	waited_ns(); /* opens its file before READY, so that the set of descriptors does not change */
	target_ready();
	const size_t n = look_at_the_clock((uint64_t)target_number(argc, argv, 2, 200) * 1000);
	for (long i = 1; i < threads && i < MOST; i++)
		pthread_join(thread[i], NULL);
	for (size_t i = 0; i < n; i++)
		printf("gap %llu %llu %llu\n", (unsigned long long)gap[i][0], (unsigned long long)gap[i][1],
		       (unsigned long long)gap[i][2]);
	printf("RESULT %s\n", bad ? "BAD" : "OK");
	return bad != 0;
}
