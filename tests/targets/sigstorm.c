/* SPDX-License-Identifier: MIT */
/* sigstorm: a timer signal and real-time signals interrupt foo() all the time, and their handlers call foo() too. */
#include "target_foo.h"

#include <pthread.h>
#include <sys/time.h>

static _Atomic long bad, handled, sent;

static void check(unsigned i)
{
	if (foo(i, "storm") != target_expected(i, "storm"))
		bad++;
}

static void on_alarm(int sig)
{
	int saved = errno;
	check((unsigned)sig);
	errno = saved;
}

static void on_realtime(int sig, siginfo_t *info, void *context)
{
	(void)context;
	check((unsigned)sig);
	if (info->si_code != SI_QUEUE)
		bad++;
	handled++;
}

static void *queueing(void *arg)
{
	while (!target_stop) {
		/* SIGRTMIN is queued: each signal is handled once. */
		if (sent - handled < 100 && sigqueue(getpid(), SIGRTMIN, (union sigval){.sival_int = 1}) == 0)
			sent++;
		else
			target_sleep_us(100);
	}
	return arg;
}

int main(void)
{
	struct sigaction alarm_action = {.sa_handler = on_alarm, .sa_flags = SA_RESTART};
	struct sigaction realtime = {.sa_sigaction = on_realtime, .sa_flags = SA_RESTART | SA_SIGINFO};
	struct itimerval every = {{0, 500}, {0, 500}};
	pthread_t t;

	target_stop_on_term();
	sigaction(SIGALRM, &alarm_action, NULL);
	sigaction(SIGRTMIN, &realtime, NULL);
	pthread_create(&t, NULL, queueing, NULL);
	setitimer(ITIMER_REAL, &every, NULL);
	target_ready();
	for (unsigned i = 0; !target_stop; i++) {
		errno = 4242;
		check(i);
		if (errno != 4242)
			bad++;
	}
	setitimer(ITIMER_REAL, &(struct itimerval){0}, NULL);
	pthread_join(t, NULL);
	for (int i = 0; i < 100 && handled != sent; i++)
		target_sleep_us(10000);
	printf("RESULT %s lost %ld\n", bad || handled != sent ? "BAD" : "OK", (long)(sent - handled));
	return bad || handled != sent;
}
