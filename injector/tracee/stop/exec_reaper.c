/* SPDX-License-Identifier: MIT */
/*
 * Resolves a deadlock that only a signal can end. A thread that calls exec kills its siblings and waits, holding a kernel lock,
 * until they are reaped; only we can reap those that we have seized. If we are seizing another thread at that moment, we wait for
 * that lock: both sides wait, and the target hangs for as long as we live.
 *
 * The wait for the lock can be interrupted, though the kernel then resumes it. So a timer runs while threads are being seized,
 * and its handler reaps the dead ones. It consumes no stop (dp_stop_reap()), and does not reap the thread group's leader: the
 * exec handles that one itself, and if it is our own child, its exit status is kept for whoever waits for the command.
 */
#include "injector/tracee/stop/exec_reaper.h"

#include "injector/tracee/stop/freeze.h"

#include <errno.h>
#include <signal.h>
#include <stddef.h>
#include <sys/time.h>

#define EVERY_US 5000

static const struct dp_held *volatile held;
static volatile size_t nheld;
static volatile pid_t leader;
static struct sigaction before;

static void reap_dead(int sig)
{
	const int saved = errno;
	const struct dp_held *h = held;
	(void)sig;
	for (size_t i = 0; h && i < nheld; i++) {
		siginfo_t info;
		if (h[i].tid != leader)
			dp_stop_reap(h[i].tid, &info);
	}
	errno = saved;
}

void dp_exec_reaper_begin(pid_t pid)
{
	const struct sigaction action = {.sa_handler = reap_dead, .sa_flags = SA_RESTART};
	const struct itimerval often = {{0, EVERY_US}, {0, EVERY_US}};
	held = NULL;
	leader = pid;
	sigaction(SIGALRM, &action, &before);
	setitimer(ITIMER_REAL, &often, NULL);
}

void dp_exec_reaper_watch(const struct dp_held *thread, size_t n)
{
	nheld = n;
	held = thread;
}

void dp_exec_reaper_end(void)
{
	const struct itimerval never = {{0, 0}, {0, 0}};
	setitimer(ITIMER_REAL, &never, NULL);
	sigaction(SIGALRM, &before, NULL);
	held = NULL;
}
