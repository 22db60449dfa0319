/* SPDX-License-Identifier: MIT */
/*
 * eintr [SECONDS]: one thread for each system call that a ptrace stop can make fail with EINTR. No real signal interrupts them,
 * so any EINTR came from outside. Three more threads wait for a handled signal: each signal must interrupt exactly one wait and
 * run its handler exactly once. Ends after SECONDS (0: at SIGTERM).
 */
#include "target.h"

#include "waits.h"

#include <pthread.h>

static _Atomic long interrupted, wrong, prepared;

struct loop {
	const struct wait_kind *kind;
	_Atomic long rounds;
};

static void *run(void *arg)
{
	struct loop *loop = arg;
	struct wait_state state = {0};

	int rc = loop->kind->prepare ? loop->kind->prepare(&state) : 0;
	prepared++;
	if (rc != 0)
		return NULL; /* this kernel does not have it */
	while (!target_stop) {
		long r = loop->kind->once(&state);
		if (r < 0 && errno == EINTR) {
			fprintf(stderr, "EINTR from %s\n", loop->kind->name);
			interrupted++;
		}
		loop->rounds++;
	}
	return NULL;
}

/* ---- waits that a real signal must end ---------------------------------------------------------------------------------- */

static __thread volatile sig_atomic_t handled;

static void on_usr2(int sig)
{
	(void)sig;
	handled++;
}

struct signalled {
	const struct signal_wait *kind;
	_Atomic long returned; /* waits that ended */
};

static void *wait_for_signal(void *arg)
{
	struct signalled *s = arg;
	sigset_t mask;

	pthread_sigmask(SIG_SETMASK, NULL, &mask);
	sigdelset(&mask, SIGUSR2);
	for (long n = 1; !target_stop; n++) {
		int before = handled;
		long r = s->kind->once(&mask);
		if (r < 0 && errno == EINTR && handled == before) {
			fprintf(stderr, "EINTR from %s\n", s->kind->name);
			interrupted++;
			n--; /* the signal has not come yet */
			continue;
		}
		if (r >= 0 || errno != EINTR || handled != before + 1) {
			fprintf(stderr, "%s: returned %ld (%s), the handler ran %d times\n", s->kind->name, r, strerror(errno),
			        (int)handled - before);
			wrong++;
		}
		s->returned = n;
	}
	return NULL;
}

static void *send_signals(void *arg)
{
	struct signalled *s = arg;
	pthread_t t;

	pthread_create(&t, NULL, wait_for_signal, s);
	for (long n = 1; !target_stop; n++) {
		target_sleep_us(7000);
		pthread_kill(t, SIGUSR2);
		for (uint64_t until = target_now_ms() + 60000; s->returned < n && target_now_ms() < until;)
			target_sleep_us(500);
		if (s->returned < n && !target_stop) {
			fprintf(stderr, "%s: a wake-up was lost\n", s->kind->name);
			wrong++;
			return NULL;
		}
	}
	return NULL;
}

/* Starts one thread for each; returns their number. */
static size_t start(struct loop *loops, const struct wait_kind *kinds, size_t n)
{
	pthread_t t;
	for (size_t i = 0; i < n; i++) {
		loops[i].kind = &kinds[i];
		pthread_create(&t, NULL, run, &loops[i]);
	}
	return n;
}

TARGET_PROBED unsigned foo(unsigned a)
{
	return a * 3 + 1;
}

int main(int argc, char **argv)
{
	static struct loop loops[64];
	static struct signalled signalled[8];
	long seconds = target_number(argc, argv, 1, 0);
	sigset_t set;
	pthread_t t;
	size_t n = 0;

	sigemptyset(&set);
	sigaddset(&set, SIGTERM);
	sigaddset(&set, SIGUSR2);
	pthread_sigmask(SIG_BLOCK, &set, NULL);
	sigaction(SIGUSR2, &(struct sigaction){.sa_handler = on_usr2}, NULL);
	n += start(&loops[n], wait_kinds, wait_kinds_n);
	n += start(&loops[n], socket_waits, socket_waits_n);
	for (size_t i = 0; i < signal_waits_n; i++) {
		signalled[i].kind = &signal_waits[i];
		pthread_create(&t, NULL, send_signals, &signalled[i]);
	}
	while (prepared < (long)n)
		target_sleep_us(1000);
	for (size_t i = 0; i < signal_waits_n; i++)
		while (signalled[i].returned < 1)
			target_sleep_us(1000);
	target_sleep_us(100000); /* by then most wait */
	target_ready();
	sigdelset(&set, SIGUSR2);
	for (uint64_t until = target_now_ms() + (uint64_t)seconds * 1000; seconds == 0 || target_now_ms() < until;) {
		sigset_t pending;
		wrong += foo(5) != 16;
		sigpending(&pending);
		if (sigismember(&pending, SIGTERM))
			break;
		target_sleep_us(10000);
	}
	target_stop = 1;
	waits_cleanup();
	for (size_t i = 0; argc > 2 && i < n; i++)
		printf("%-24s %ld rounds\n", loops[i].kind->name, (long)loops[i].rounds);
	printf("RESULT %s interrupted %ld wrong %ld\n", interrupted || wrong ? "BAD" : "OK", (long)interrupted, (long)wrong);
	fflush(stdout);
	_exit(interrupted || wrong);
}
