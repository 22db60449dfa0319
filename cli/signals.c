/* SPDX-License-Identifier: MIT */
#include "cli/signals.h"

#include <signal.h>
#include <sys/signalfd.h>

#define SOME 32u

static bool settled;
static const int ends[] = {SIGINT, SIGTERM, SIGHUP};

struct dp_error *dp_signals_check(size_t n)
{
	sigset_t waiting;
	if (settled || n % SOME != SOME - 1 || sigpending(&waiting))
		return NULL;
	for (size_t i = 0; i < sizeof(ends) / sizeof(*ends); i++)
		if (sigismember(&waiting, ends[i]) == 1)
			return dp_error(DP_TAG_INTERRUPTED, "a signal came while the probes were planned: none was left");
	return NULL;
}

void dp_signals_settled(void)
{
	settled = true;
}

struct dp_error *dp_signals_open(int *ret)
{
	sigset_t set;
	sigemptyset(&set);
	for (size_t i = 0; i < sizeof(ends) / sizeof(*ends); i++)
		sigaddset(&set, ends[i]);
	sigprocmask(SIG_BLOCK, &set, NULL);
	signal(SIGPIPE, SIG_IGN);
	signal(SIGXFSZ, SIG_IGN); /* a file that must not grow is an error like others: it does not end us in the middle */
	*ret = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
	return *ret < 0 ? dp_error_sys(DP_TAG_SYS, "signalfd") : NULL;
}
