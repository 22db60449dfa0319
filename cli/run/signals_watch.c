/* SPDX-License-Identifier: MIT */
/*
 * Signals are checked between two steps (signals.h). This is for a step that does not end: libdw asks a debuginfod server, which
 * may take ninety seconds, or reads gigabytes, and cannot be interrupted. As long as the target is unchanged, dynprobe may simply
 * exit: the kernel releases its locks and descriptors.
 *
 * The thread blocks all signals: those that the injector uses belong to the main thread.
 */
#include "cli/run/signals.h"

#include "injector/tracee/stop/watchdog.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/signalfd.h>
#include <unistd.h>

#define STEP_MS 500

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* held: do not exit now */
static pthread_t watcher;
static bool watched;
static int signal_fd, over = -1; /* over: readable when watching ends */
static pid_t command;
static atomic_uint beats;

void dp_signals_beat(void)
{
	atomic_fetch_add_explicit(&beats, 1, memory_order_relaxed);
}

void dp_signals_hold(void)
{
	pthread_mutex_lock(&lock);
}

void dp_signals_unhold(void)
{
	pthread_mutex_unlock(&lock);
}

/* Without stdio, whose lock the stuck thread may hold, and without waiting for a slow reader. */
static void say(const char *text)
{
	struct pollfd p = {.fd = STDERR_FILENO, .events = POLLOUT};
	if (poll(&p, 1, 0) == 1 && write(STDERR_FILENO, text, strlen(text)) < 0)
		return;
}

static void tell_of_kill(const char *held)
{
	char text[200];
	char *end = stpcpy(text, isatty(STDERR_FILENO) ? "\r\033[K" : "");
	end = stpcpy(end, "dynprobe: error: stuck while it holds ");
	end = stpcpy(end, held);
	stpcpy(end, ": it is killed in a moment if that does not end, so that the program goes on; please report this\n");
	say(text);
}

static void tell_of_no_timer(void)
{
	say("dynprobe: the kernel gives dynprobe no timer (RLIMIT_SIGPENDING): if dynprobe is stopped while it holds threads, "
	    "nobody continues it; to mend that, raise the limit (ulimit -i)\n");
}

void dp_signals_tell_of_kill(void)
{
	dp_watchdog_last_word = tell_of_kill;
	dp_watchdog_absent = tell_of_no_timer;
}

static void end(void)
{
	struct signalfd_siginfo info;
	char text[160];
	if (read(signal_fd, &info, sizeof(info)) != (ssize_t)sizeof(info))
		return; /* answered meanwhile */
	if (command)
		kill(command, SIGKILL);
	snprintf(text, sizeof(text), "%sdynprobe: error: %s [%s]\n", isatty(STDERR_FILENO) ? "\r\033[K" : "", DP_SIGNALS_PLANNING,
	         dp_tag_name(DP_TAG_INTERRUPTED));
	say(text);
	_exit(128 + (int)info.ssi_signo);
}

/* Waits for a signal; false if watching ends first. */
static bool await_signal(void)
{
	struct pollfd p[2] = {{.fd = over, .events = POLLIN}, {.fd = signal_fd, .events = POLLIN}};
	while (poll(p, 2, -1) < 0 && errno == EINTR)
		;
	return !p[0].revents;
}

static bool is_over_in(int ms)
{
	return poll(&(struct pollfd){.fd = over, .events = POLLIN}, 1, ms) > 0;
}

static void *watch(void *arg)
{
	if (!await_signal())
		return arg;
	for (;;) {
		const unsigned before = atomic_load(&beats);
		if (is_over_in(STEP_MS))
			return arg;
		pthread_mutex_lock(&lock);
		if (!is_over_in(0) && atomic_load(&beats) == before)
			end();
		pthread_mutex_unlock(&lock);
	}
}

struct dp_error *dp_signals_watch(int fd, pid_t held)
{
	sigset_t all, old;
	signal_fd = fd;
	command = held;
	over = eventfd(0, EFD_CLOEXEC);
	if (over < 0)
		return dp_error_sys(DP_TAG_SYS, "eventfd");
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &old);
	watched = !pthread_create(&watcher, NULL, watch, NULL); /* without the thread, signals wait for the end of the step */
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	return NULL;
}

void dp_signals_unwatch(void)
{
	const uint64_t one = 1;
	if (watched && write(over, &one, sizeof(one)) == (ssize_t)sizeof(one))
		pthread_join(watcher, NULL);
	watched = false;
	if (over >= 0)
		close(over);
	over = -1;
}
