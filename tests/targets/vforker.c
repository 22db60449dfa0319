/* SPDX-License-Identifier: MIT */
/*
 * vforker MS [CALLS]: its thread waits in vfork() for a child that takes MS milliseconds to exec; repeated until SIGTERM. With
 * CALLS another thread calls foo() meanwhile.
 */
#include "target.h"

#include <pthread.h>
#include <sys/prctl.h>
#include <sys/wait.h>

TARGET_PROBED unsigned foo(unsigned a)
{
	return a * 3 + 1;
}

/* In a function of its own, so that no variable of the caller is live across the vfork. */
static __attribute__((noinline)) pid_t slow_child(long ms)
{
	const struct timespec ts = {ms / 1000, ms % 1000 * 1000000};
	pid_t pid = vfork();
	if (pid == 0) {
		/* Still in the parent's memory: only system calls here. */
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		nanosleep(&ts, NULL);
		execl("/bin/true", "true", (char *)NULL);
		_exit(1);
	}
	return pid;
}

static void *call(void *bad)
{
	for (unsigned i = 0; !target_stop; i++) {
		*(long *)bad += foo(i) != i * 3 + 1;
		target_sleep_us(1000);
	}
	return NULL;
}

int main(int argc, char **argv)
{
	long ms = target_number(argc, argv, 1, 2000), bad = 0, worse = 0;
	pthread_t caller;

	target_stop_on_term();
	if (argc > 2)
		pthread_create(&caller, NULL, call, &worse);
	target_ready();
	for (unsigned i = 0; !target_stop; i++) {
		int status = 0;
		pid_t pid = slow_child(ms);
		while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
			;
		bad += status != 0 || foo(i) != i * 3 + 1;
		target_sleep_us(10000);
	}
	if (argc > 2)
		pthread_join(caller, NULL);
	bad += worse;
	printf("RESULT %s\n", bad ? "BAD" : "OK");
	return bad != 0;
}
