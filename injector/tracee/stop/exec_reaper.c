/* SPDX-License-Identifier: MIT */
/*
 * A deadlock that only a signal resolves. A thread that calls exec kills its siblings and waits, holding a lock of the kernel,
 * until they are reaped; those that we have seized are reaped by us or by nobody. If we are seizing a further thread at that
 * moment, we wait for that lock: nobody moves any more, and the target hangs for as long as we live.
 *
 * The wait for the lock can be interrupted, though the kernel resumes it by itself. So a timer runs while threads are seized, and
 * its handler reaps what has died. It takes no stop away (dp_stop_reap()), and not the thread group's leader: the exec takes care
 * of that one itself, and as our own child it keeps its exit status for whoever waits for the command.
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
