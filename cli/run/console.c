/* SPDX-License-Identifier: MIT */
#include "cli/run/console.h"

#include "base/cleanup.h"
#include "cli/run/progress.h"
#include "cli/run/signals.h"
#include "probes/elf/demangle.h"

static void on_log(enum dp_log_level level, const char *text, void *data)
{
	(void)level;
	(void)data;
	dp_progress_clear();
	dp_auto_free char *readable = dp_demangle_text(text);
	fprintf(stderr, "dynprobe: %s\n", readable ? readable : text);
}

static struct dp_error *on_step(const char *what, size_t done, size_t of, void *data)
{
	(void)data;
	return dp_progress_step(what, done, of);
}

/* Another signal while probes are removed changes nothing; print how many are left. */
static void note_further(const struct dp_options *o, size_t left)
{
	if (!dp_signals_take() || o->quiet)
		return;
	dp_progress_clear();
	fprintf(stderr, "dynprobe: the probes are being removed: about %zu more\n", left);
}

static bool on_progress(bool removing, size_t done, size_t of, void *data)
{
	if (of)
		dp_progress(removing ? "removing" : "placing", done, of);
	if (removing)
		note_further(data, of - done);
	return !removing && dp_signals_placing();
}

static void on_changing(void *data)
{
	(void)data;
	dp_signals_unwatch();
}

static void on_stopping(bool stopped, void *data)
{
	(void)data;
	if (stopped)
		dp_signals_hold();
	else
		dp_signals_unhold();
}

void dp_console_calls(const struct dp_options *options, struct dp_trace_calls *calls)
{
	*calls = (struct dp_trace_calls){
	        .log = on_log,
	        .least = options->quiet     ? DP_LOG_WARNING
	                 : options->verbose ? DP_LOG_DEBUG
	                                    : DP_LOG_INFO,
	        .step = on_step,
	        .progress = on_progress,
	        .changing = on_changing,
	        .stopping = on_stopping,
	        .wake_fd = -1,
	        .data = (void *)(uintptr_t)options,
	};
}
