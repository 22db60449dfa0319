/* SPDX-License-Identifier: MIT */
#include "cli/run/signals.h"
#include "cli/run/progress.h"

#include <signal.h>
#include <sys/signalfd.h>
#include <time.h>

static bool settled;
static int kept; /* the signal that ended the placing, or 0 */
static const int ends[] = {SIGINT, SIGTERM, SIGHUP};

bool dp_signals_wait(void)
{
	sigset_t waiting;
	if (kept)
		return true;
	if (sigpending(&waiting))
		return false;
	for (size_t i = 0; i < sizeof(ends) / sizeof(*ends); i++)
		if (sigismember(&waiting, ends[i]) == 1)
			return true;
	return false;
}

struct dp_error *dp_signals_check(void)
{
	dp_signals_beat();
	return settled || !dp_signals_wait() ? NULL : dp_error(DP_TAG_INTERRUPTED, DP_SIGNALS_PLANNING);
}

void dp_signals_settled(void)
{
	settled = true;
}

static void set_of_ends(sigset_t *set)
{
	sigemptyset(set);
	for (size_t i = 0; i < sizeof(ends) / sizeof(*ends); i++)
		sigaddset(set, ends[i]);
}

int dp_signals_take(void)
{
	sigset_t set;
	set_of_ends(&set);
	const int sig = sigtimedwait(&set, NULL, &(const struct timespec){0});
	return sig > 0 ? sig : 0;
}

bool dp_signals_placing(void)
{
	if (kept || settled)
		return kept;
	kept = dp_signals_take();
	if (!kept)
		return false;
	dp_progress_clear();
	fprintf(stderr, "dynprobe: interrupted: removing the probes placed so far\n");
	return true;
}

int dp_signals_kept(void)
{
	return kept;
}

struct dp_error *dp_signals_open(int *ret)
{
	sigset_t set;
	set_of_ends(&set);
	sigprocmask(SIG_BLOCK, &set, NULL);
	signal(SIGPIPE, SIG_IGN);
	signal(SIGXFSZ, SIG_IGN); /* a file-size limit is an ordinary error, not a death in the middle */
	*ret = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
	return *ret < 0 ? dp_error_sys(DP_TAG_SYS, "signalfd") : NULL;
}
