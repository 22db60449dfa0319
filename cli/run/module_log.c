/* SPDX-License-Identifier: MIT */
#include "cli/run/module_log.h"

#include <stdio.h>
#include <string.h>

#define PRINTED_MAX (1u << 20)

void dp_module_log_init(struct dp_module_log *log, const struct dp_options *options)
{
	*log = (struct dp_module_log){.options = options};
	dp_buf_init(&log->printed);
}

void dp_module_log_fini(struct dp_module_log *log)
{
	dp_buf_fini(&log->printed);
}

static void keep(struct dp_module_log *log, const char *text)
{
	static const char cut[] = "... (more than 1 MiB was printed)\n";
	if (log->printed.len >= PRINTED_MAX)
		return;
	dp_buf_printf(&log->printed, "%s\n", text);
	if (log->printed.len >= PRINTED_MAX)
		dp_buf_put(&log->printed, cut, sizeof(cut) - 1);
}

void dp_module_log_line(enum dp_log_level level, const char *module, const char *text, void *data)
{
	static const char *const names[] = {
	        [DP_LOG_DEBUG] = "debug", [DP_LOG_INFO] = "info", [DP_LOG_WARNING] = "warning", [DP_LOG_ERROR] = "error"};
	struct dp_module_log *log = data;
	const struct dp_options *o = log->options;
	const enum dp_log_level least = o->quiet         ? DP_LOG_ERROR
	                                : o->verbose > 1 ? DP_LOG_DEBUG
	                                : o->verbose     ? DP_LOG_INFO
	                                                 : DP_LOG_WARNING;
	if (level == DP_LOG_PRINT) {
		keep(log, text);
		return;
	}
	log->warnings += level == DP_LOG_WARNING;
	log->errors += level == DP_LOG_ERROR;
	if (level >= least)
		fprintf(stderr, "dynprobe: %s: %s: %s\n", names[level], module, text);
}

struct dp_error *dp_module_log_put(struct dp_module_log *log)
{
	const size_t n = log->printed.len;
	const bool good = !log->printed.failed && fwrite(log->printed.data, 1, n, stdout) == n && !fflush(stdout);
	dp_buf_fini(&log->printed);
	dp_buf_init(&log->printed);
	return good ? NULL : dp_error_sys(DP_TAG_OUTPUT, "writing the output of a module");
}
