/* SPDX-License-Identifier: MIT */
/* Output of pmodules: log lines on standard error at once, by their level; printed text on standard output at the end. */
#ifndef DP_CLI_RUN_MODULE_LOG_H
#define DP_CLI_RUN_MODULE_LOG_H

#include "base/buf.h"
#include "cli/options/options.h"
#include "pmodules/pmodules.h"

struct dp_module_log {
	const struct dp_options *options;
	unsigned warnings, errors; /* shown or not */
	struct dp_buf printed;     /* until the end: its reader may be slow while the process is stopped */
};

void dp_module_log_init(struct dp_module_log *log, const struct dp_options *options);
void dp_module_log_fini(struct dp_module_log *log); /* drops what was not put */
/* A log function of dp_host_options and dp_snap_capture_options; its data is a struct dp_module_log. */
void dp_module_log_line(enum dp_log_level level, const char *module, const char *text, void *data);
/* Writes the printed text. DP_TAG_OUTPUT. */
struct dp_error *dp_module_log_put(struct dp_module_log *log) DP_MUST_CHECK;

#endif
