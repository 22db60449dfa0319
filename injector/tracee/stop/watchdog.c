/* SPDX-License-Identifier: MIT */
/*
 * If the tool dies, the kernel releases every thread it holds. If the tool is stopped (kill -STOP, a debugger, a frozen cgroup),
 * the program stays stopped with it, for as long as that lasts.
 *
 * So two kernel timers run while threads are held. The first sends us SIGCONT, which ends a stop by job control, repeatedly. The
 * second sends SIGKILL, for stops that SIGCONT does not end (ptrace, the freezer): that is safe at any point of our work. This
 * needs no other process, which could be stopped together with us, and adds two system calls of a microsecond to the hold.
 *
 * A thread may stop late, after its freeze was given up. It then stays stopped until we look, and we may be busy for seconds: the
 * first timer's handler looks. (It needs a handler anyway: the kernel restarts a timer when its signal is delivered, and an
 * ignored signal, as SIGCONT is, may not count as delivered.)
 *
 * To debug dynprobe itself, set dp_watchdog_is_off first.
 */
#include "injector/tracee/stop/watchdog.h"

#include "injector/tracee/stop/freeze.h"
#include "injector/tracee/stop/holds.h"

#include <errno.h>
#include <signal.h>
#include <stdbool.h>
#include <time.h>
#include <unistd.h>

#define ALIVE_NS UINT64_C(100000000)
#define OFTEN_NS UINT64_C(20000000)

bool dp_watchdog_is_off;
void (*dp_watchdog_last_word)(const char *held);
void (*dp_watchdog_absent)(void);

static timer_t goad, end; /* SIGCONT, SIGKILL */
static pid_t owner;       /* of the timers: a forked child inherits none */
static unsigned depth;
static uint64_t limit, grace, lit_ns;
static struct sigaction before; /* of SIGCONT */
static bool goads;              /* the first timer runs */
static const char *held;
static bool warned; /* of the second timer, since it was set */

static bool make(int sig, timer_t *ret)
{
	struct sigevent event = {.sigev_notify = SIGEV_SIGNAL, .sigev_signo = sig};
	return timer_create(CLOCK_MONOTONIC, &event, ret) == 0;
}

static bool has_timers(void)
{
	if (owner == getpid())
		return true;
	if (!make(SIGCONT, &goad))
		return false;
	if (!make(SIGKILL, &end)) {
		timer_delete(goad);
		return false;
	}
	owner = getpid();
	depth = 0;
	goads = false;
	return true;
}

static struct timespec of(uint64_t ns)
{
	return (struct timespec){(time_t)(ns / 1000000000u), (long)(ns % 1000000000u)};
}

static void set(timer_t timer, uint64_t first_ns, uint64_t then_ns)
{
	const struct itimerspec when = {.it_value = of(first_ns), .it_interval = of(then_ns)};
	timer_settime(timer, 0, &when, NULL);
}

/* dynprobe needs time to make progress as well */
static uint64_t often(void)
{
	return limit < OFTEN_NS ? OFTEN_NS : limit;
}

static void light(void)
{
	lit_ns = dp_now_ns();
	warned = false;
	set(goad, often(), often());
	set(end, limit + grace, 0);
}

/* A SIGKILL cannot be explained when it comes. */
static void warn(void)
{
	const int err = errno;
	if (warned || !dp_watchdog_last_word || dp_now_ns() - lit_ns + often() < limit + grace)
		return;
	warned = true;
	dp_watchdog_last_word(held);
	errno = err;
}

static void be_continued(int sig)
{
	(void)sig;
	if (depth)
		warn();
	if (!dp_late_stop_inspect() &&
	    !depth) /* else it would run until we end: the handler does not remove threads that have exited */
		set(goad, 0, 0);
}

static void take_signal(void)
{
	const struct sigaction action = {.sa_handler = be_continued, .sa_flags = SA_RESTART};
	if (!goads)
		sigaction(SIGCONT, &action, &before);
	goads = true;
}

void dp_watchdog_late_stops(void)
{
	if (dp_watchdog_is_off || !has_timers() || depth)
		return;
	take_signal();
	set(goad, OFTEN_NS, OFTEN_NS);
}

static void stop_goading(void)
{
	set(goad, 0, 0);
	sigaction(SIGCONT, &before, NULL);
	goads = false;
}

void dp_watchdog_no_late_stops(void)
{
	if (owner == getpid() && goads && !depth)
		stop_goading();
}

static void note_absent(void)
{
	void (*const tell)(void) = dp_watchdog_absent;
	dp_watchdog_absent = NULL;
	if (tell)
		tell();
}

void dp_watchdog_start(const char *what)
{
	if (dp_watchdog_is_off)
		return;
	if (!has_timers()) {
		note_absent();
		return;
	}
	if (depth++)
		return;
	held = what;
	limit = DP_WATCHDOG_NS;
	grace = DP_WATCHDOG_GRACE_NS;
	take_signal();
	light();
}

void dp_watchdog_limit(uint64_t limit_ns, uint64_t grace_ns)
{
	if (!depth || owner != getpid())
		return;
	limit = limit_ns;
	grace = grace_ns;
	light();
}

void dp_watchdog_stop(void)
{
	if (owner != getpid() || !depth || --depth)
		return;
	dp_holds_over();
	set(end, 0, 0);
	if (dp_late_stop_is_left()) {
		set(goad, OFTEN_NS, OFTEN_NS);
		return;
	}
	stop_goading();
}

void dp_watchdog_alive(void)
{
	if (depth && owner == getpid() && dp_now_ns() - lit_ns >= ALIVE_NS)
		light();
}
