/* SPDX-License-Identifier: MIT */
#include "cli/signals.h"

#include <signal.h>
#include <sys/signalfd.h>

struct dp_error *dp_signals_open(int *ret)
{
	sigset_t set;
	sigemptyset(&set);
	sigaddset(&set, SIGINT);
	sigaddset(&set, SIGTERM);
	sigaddset(&set, SIGHUP);
	sigprocmask(SIG_BLOCK, &set, NULL);
	signal(SIGPIPE, SIG_IGN);
	*ret = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
	return *ret < 0 ? dp_error_sys(DP_TAG_SYS, "signalfd") : NULL;
}
