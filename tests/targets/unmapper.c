/* SPDX-License-Identifier: MIT */
/*
 * unmapper LIBRARY: calls plugin_work() for a while, dlcloses the library, opens it again, and so on until SIGTERM. SIGUSR1
 * closes it for good (prints "CLOSED").
 */
#include "target.h"

#include <dlfcn.h>

static volatile sig_atomic_t close_now;

TARGET_PROBED unsigned foo(unsigned a)
{
	return a * 3 + 1;
}

static void on_usr1(int sig)
{
	(void)sig;
	close_now = 1;
}

static long work(void *library)
{
	unsigned (*plugin)(unsigned) = (unsigned (*)(unsigned))dlsym(library, "plugin_work");
	long bad = 0;

	for (unsigned i = 0; !target_stop && !close_now; i++) {
		bad += plugin(i) != target_expected(i, "plugin") || foo(i) != i * 3 + 1;
		target_sleep_us(500);
	}
	return bad;
}

int main(int argc, char **argv)
{
	struct sigaction action = {.sa_handler = on_usr1, .sa_flags = SA_RESTART};
	void *library = argc > 1 ? dlopen(argv[1], RTLD_NOW) : NULL;

	if (!library)
		return 2;
	sigaction(SIGUSR1, &action, NULL);
	target_stop_on_term();
	target_ready();
	long bad = work(library);
	if (close_now) {
		bad += dlclose(library) != 0;
		puts("CLOSED");
		fflush(stdout);
	}
	while (!target_stop) {
		bad += foo(1) != 4;
		target_sleep_us(1000);
	}
	printf("RESULT %s\n", bad ? "BAD" : "OK");
	return bad != 0;
}
