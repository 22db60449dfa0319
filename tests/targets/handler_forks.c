/* SPDX-License-Identifier: MIT */
/*
 * handler_forks [MS]: calls foo() without a pause for MS ms (2000), or until a SIGTERM. A signal handler forks 500 times a
 * second, in the middle of anything. Each child makes 1,000 calls and checks them.
 */
#include "target.h"

#include <sys/time.h>
#include <sys/wait.h>

static volatile int is_child, stop;
static long children;

TARGET_PROBED unsigned foo(unsigned a)
{
	return a * 31 + 7;
}

static void on_alarm(int sig)
{
	(void)sig;
	if (is_child)
		return;
	const pid_t pid = fork();
	if (!pid)
		is_child = 1;
	children += pid > 0;
}

static void on_term(int sig)
{
	(void)sig;
	stop = 1;
}

static long now_ms(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

int main(int argc, char **argv)
{
	const long end = now_ms() + (argc > 1 ? atol(argv[1]) : 2000);
	const struct itimerval every = {{0, 2000}, {0, 2000}}, none = {{0, 0}, {0, 0}};
	const struct sigaction action = {.sa_handler = on_alarm, .sa_flags = SA_RESTART};
	long bad = 0, own = 0;
	int status;
	sigaction(SIGALRM, &action, NULL);
	signal(SIGTERM, on_term);
	printf("READY %d\n", (int)getpid());
	fflush(stdout);
	setitimer(ITIMER_REAL, &every, NULL);
	for (unsigned i = 0; is_child ? own++ < 1000 : !stop && now_ms() < end; i++)
		for (unsigned k = 0; k < (is_child ? 1 : 1000); k++)
			bad += foo(i + k) != (i + k) * 31 + 7;
	if (is_child)
		_exit(bad ? 5 : 0);
	setitimer(ITIMER_REAL, &none, NULL);
	while (wait(&status) > 0)
		bad += status != 0;
	printf("children %ld bad %ld\nRESULT %s\n", children, bad, bad ? "BAD" : "OK");
	fflush(stdout);
	_exit(bad != 0);
}
