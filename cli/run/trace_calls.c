/* SPDX-License-Identifier: MIT */
/* The engine's calls during a run, passed to the outputs and the signals. */
#include "cli/run/aggregations.h"
#include "cli/run/console.h"
#include "cli/run/signals.h"
#include "cli/run/trace.h"

#include <sys/signalfd.h>
#include <unistd.h>

static void on_event(const struct dp_event *event, void *data)
{
	struct dp_trace *t = data;
	dp_outputs_event(&t->out, event);
}

static void on_batch(const struct dp_event_batch *batch, void *data)
{
	struct dp_trace *t = data;
	if (t->tree)
		dp_calls_batch(t->tree, batch);
	else
		dp_outputs_batch(&t->out, batch);
}

void dp_trace_calls_batches(struct dp_trace *t)
{
	t->calls.batch = t->tree || dp_outputs_takes_batches(&t->out) ? on_batch : NULL;
}

static void on_gap(void *data)
{
	struct dp_trace *t = data;
	dp_outputs_gap(&t->out);
}

static void on_forget(const struct dp_image *image, void *data)
{
	struct dp_trace *t = data;
	if (t->out.live)
		dp_writer_forget(t->out.live, image);
}

static bool on_full(void *data)
{
	const struct dp_trace *t = data;
	return dp_outputs_full(&t->out);
}

static void on_fields_known(unsigned probe, void *data)
{
	struct dp_trace *t = data;
	dp_outputs_class(&t->out, probe);
}

static void on_note(const char *text, void *data)
{
	struct dp_trace *t = data;
	dp_outputs_note(&t->out, text);
}

static struct dp_error *on_flush(uint64_t lost, void *data)
{
	struct dp_trace *t = data;
	dp_calls_lost(t->tree, lost);
	return dp_outputs_flush(&t->out, lost);
}

static void on_round(uint64_t ns, void *data)
{
	struct dp_trace *t = data;
	dp_outputs_round(&t->out, ns);
	dp_aggs_round(t);
	dp_calls_round(t->tree, dp_trace_seconds(t));
}

static bool on_interrupted(bool leaving, void *data)
{
	struct dp_trace *t = data;
	struct signalfd_siginfo info;
	int sig = leaving ? 0 : dp_signals_kept();
	if (!sig && read(t->signal_fd, &info, sizeof(info)) == (ssize_t)sizeof(info))
		sig = (int)info.ssi_signo;
	if (!leaving && sig)
		t->signal = sig;
	return sig;
}

/* Looking for losses takes a while when there are many probes: only lines of system calls need it. */
static bool makes_calls(const struct dp_trace_spec *trace)
{
	for (size_t i = 0; i < trace->nprobes; i++)
		if (trace->probe[i].spec.call)
			return true;
	return false;
}

void dp_trace_calls_init(struct dp_trace *t)
{
	dp_console_calls(t->options, &t->calls);
	t->calls.event = on_event;
	t->calls.gap = makes_calls(&t->options->trace) ? on_gap : NULL;
	t->calls.forget = on_forget;
	t->calls.full = on_full;
	t->calls.fields_known = on_fields_known;
	t->calls.note = on_note;
	t->calls.flush = on_flush;
	t->calls.round = on_round;
	t->calls.interrupted = on_interrupted;
	t->calls.run_data = t;
	t->spec = t->options->trace;
	t->spec.calls = &t->calls;
}
