/* SPDX-License-Identifier: MIT */
#include "cli/run/progress.h"

#include "cli/run/signals.h"
#include "injector/tracee/tracee.h"

#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define EVERY_NS UINT64_C(100000000)
#define SOON_NS  UINT64_C(500000000) /* with fewer than DP_MANY_PLACES: after this time */
#define CLEAR    "\r\033[K"

static bool on, shown;
static const char *current;
static uint64_t began_ns, shown_ns;
static size_t furthest, whole;

void dp_progress_on(bool show)
{
	dp_progress_clear();
	on = show && isatty(STDERR_FILENO);
	current = NULL;
}

/* Does not wait for a stopped terminal (Ctrl-S). */
static void put(const char *text)
{
	struct pollfd p = {.fd = STDERR_FILENO, .events = POLLOUT};
	if (poll(&p, 1, 0) != 1 || !(p.revents & POLLOUT) || write(STDERR_FILENO, text, strlen(text)) < 0)
		on = false;
}

void dp_progress_clear(void)
{
	if (shown)
		put(CLEAR);
	shown = false;
}

static bool is_due(const char *what, size_t of, uint64_t now)
{
	if (what != current) {
		current = what;
		began_ns = now;
		shown_ns = 0;
	}
	return now - shown_ns >= EVERY_NS && (of > DP_MANY_PLACES || now - began_ns >= SOON_NS);
}

void dp_progress(const char *what, size_t done, size_t of)
{
	char text[128], total[32] = "";
	const uint64_t now = on ? dp_now_ns() : 0;
	if (!on || !is_due(what, of, now))
		return;
	/* Placing has parts that count in units of their own, so their shares of the whole are estimates: do not go back. */
	if (of != whole || shown_ns == 0)
		furthest = 0;
	whole = of;
	furthest = done > furthest ? done : furthest;
	done = furthest;
	if (of)
		snprintf(total, sizeof(total), " of %zu", of);
	snprintf(text, sizeof(text), CLEAR "dynprobe: %s %zu%s", what, done, total);
	put(text);
	shown = true;
	shown_ns = now;
}

struct dp_error *dp_progress_step(const char *what, size_t done, size_t of)
{
	dp_progress(what, done, of);
	return dp_signals_check();
}
