/* SPDX-License-Identifier: MIT */
#include "cli/commands/residents_each.h"

#include "cli/run/progress.h"
#include "cli/run/signals.h"

/* Signals wait until the work in a process is done. */
static bool on_progress(bool removing, size_t done, size_t of, void *data)
{
	(void)data;
	if (removing && of)
		dp_progress("removing", done, of);
	return false;
}

/* Whether it failed, which was said. */
static bool act_in(const struct dp_options *options, pid_t pid, bool look, dp_residents_fn act, bool *partial)
{
	struct dp_residents left;
	struct dp_trace_spec trace = options->trace;
	struct dp_trace_calls calls = *trace.calls;
	calls.progress = on_progress;
	trace.calls = &calls;
	struct dp_error *err = dp_residents_open(&trace, pid, look, &left);
	if (!err)
		err = act(options, &left);
	const bool failed = err && (options->trace.npids < 2 || !dp_trace_found_ended(&options->trace, pid, err));
	dp_progress_clear();
	if (failed)
		dp_error_print(err, stderr);
	dp_error_destroy(err);
	*partial |= left.partial;
	dp_residents_close(&left);
	return failed;
}

void dp_residents_say_skipped(size_t skipped, size_t of)
{
	if (skipped)
		fprintf(stderr, "dynprobe: error: a signal came: %zu of %zu processes were skipped [%s]\n", skipped, of,
		        dp_tag_name(DP_TAG_INTERRUPTED));
}

static int interrupted(const struct dp_options *options, size_t next)
{
	const int sig = next < options->trace.npids ? dp_signals_take() : 0;
	if (sig)
		dp_residents_say_skipped(options->trace.npids - next, options->trace.npids);
	return sig;
}

int dp_residents_each(const struct dp_options *options, bool look, dp_residents_fn act)
{
	size_t failed = 0;
	bool partial = false;
	int fd = -1;
	struct dp_error *err = look ? NULL : dp_signals_open(&fd);
	dp_error_destroy(err); /* without it a signal ends dynprobe in the middle, and the next one removes the rest */
	dp_progress_on(!look && !options->quiet);
	for (size_t i = 0; i < options->trace.npids; i++) {
		failed += act_in(options, options->trace.pid[i], look, act, &partial);
		const int sig = interrupted(options, i + 1);
		if (sig)
			return 128 + sig;
	}
	dp_progress_on(false);
	return !failed && !partial ? 0 : failed == options->trace.npids ? DP_EXIT_FAILURE : DP_EXIT_PARTIAL;
}
