/* SPDX-License-Identifier: MIT */
#include "session/calls.h"

#include "session/trace_spec.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

bool dp_trace_logs(const struct dp_trace_spec *trace, enum dp_log_level level)
{
	return trace && trace->calls && trace->calls->log && level >= trace->calls->least;
}

void dp_trace_log(const struct dp_trace_spec *trace, enum dp_log_level level, const char *fmt, ...)
{
	char *text;
	va_list args;
	if (!dp_trace_logs(trace, level))
		return;
	va_start(args, fmt);
	const int n = vasprintf(&text, fmt, args);
	va_end(args);
	if (n < 0)
		return;
	trace->calls->log(level, text, trace->calls->data);
	free(text);
}

struct dp_error *dp_trace_step(const struct dp_trace_spec *trace, const char *what, size_t done, size_t of)
{
	const struct dp_trace_calls *c = trace ? trace->calls : NULL;
	return c && c->step ? c->step(what, done, of, c->data) : NULL;
}

bool dp_trace_progress(const struct dp_trace_spec *trace, bool removing, size_t done, size_t of)
{
	const struct dp_trace_calls *c = trace ? trace->calls : NULL;
	return c && c->progress && c->progress(removing, done, of, c->data);
}

void dp_trace_changing(const struct dp_trace_spec *trace)
{
	if (trace->calls && trace->calls->changing)
		trace->calls->changing(trace->calls->data);
}

void dp_trace_stopping(const struct dp_trace_spec *trace, bool stopped)
{
	if (trace->calls && trace->calls->stopping)
		trace->calls->stopping(stopped, trace->calls->data);
}
