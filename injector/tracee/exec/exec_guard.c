/* SPDX-License-Identifier: MIT */
#include "injector/tracee/exec/exec_guard.h"

#include "injector/tracee/stop/watchdog.h"

#include <signal.h>
#include <stdbool.h>
#include <stdlib.h>
#include <time.h>

#define GOAD_NS 500000000

struct dp_exec_guard {
	timer_t goad, end;
	struct sigaction before; /* of SIGCONT */
};

/* An ignored signal may not count as delivered, and the kernel restarts a timer only then. */
static void be_continued(int sig)
{
	(void)sig;
}

static bool make(int sig, timer_t *ret)
{
	struct sigevent event = {.sigev_notify = SIGEV_SIGNAL, .sigev_signo = sig};
	return timer_create(CLOCK_MONOTONIC, &event, ret) == 0;
}

void dp_exec_guard_alive(struct dp_exec_guard *g)
{
	const struct itimerspec when = {.it_value = {(time_t)(DP_EXEC_GUARD_NS / 1000000000u), 0}};
	if (g)
		timer_settime(g->end, 0, &when, NULL);
}

struct dp_exec_guard *dp_exec_guard_create(void)
{
	const struct sigaction action = {.sa_handler = be_continued, .sa_flags = SA_RESTART};
	const struct itimerspec often = {.it_value = {0, GOAD_NS}, .it_interval = {0, GOAD_NS}};
	struct dp_exec_guard *g = dp_watchdog_is_off ? NULL : calloc(1, sizeof(*g));
	if (!g)
		return NULL;
	const bool goads = make(SIGCONT, &g->goad);
	if (!goads || !make(SIGKILL, &g->end)) {
		if (goads)
			timer_delete(g->goad);
		free(g);
		return NULL;
	}
	sigaction(SIGCONT, &action, &g->before);
	timer_settime(g->goad, 0, &often, NULL);
	dp_exec_guard_alive(g);
	return g;
}

struct dp_exec_guard *dp_exec_guard_destroy(struct dp_exec_guard *g)
{
	if (!g)
		return NULL;
	timer_delete(g->end);
	timer_delete(g->goad);
	sigaction(SIGCONT, &g->before, NULL);
	free(g);
	return NULL;
}
