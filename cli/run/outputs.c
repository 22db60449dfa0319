/* SPDX-License-Identifier: MIT */
#include "cli/run/outputs.h"
#include "output/ctf/ctf_dir.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Standard output, unless a command that dynprobe started has its own there, as strace does it. */
static struct dp_error *open_file(const struct dp_options *o, struct dp_outputs *ret)
{
	if (o->format == DP_FORMAT_OPENMETRICS) { /* written beside its place (aggregations.c) */
		ret->to_stderr = ret->notes_apart = true;
		ret->file = stderr;
		return NULL;
	}
	if (!o->output || !strcmp(o->output, "-")) {
		ret->to_stderr = !o->output && o->trace.command;
		ret->file = ret->to_stderr ? stderr : stdout;
		ret->notes_apart = !ret->to_stderr && o->format != DP_FORMAT_JSON;
		return NULL;
	}
	ret->notes_apart = o->format != DP_FORMAT_JSON;
	ret->file = fopen(o->output, "we");
	ret->close_file = ret->file;
	return ret->file ? NULL : dp_error_sys(DP_TAG_OUTPUT, "opening %s for the events", o->output);
}

static struct dp_error *open_outlet(const struct dp_outputs_reader *reader, struct dp_outputs *ret)
{
	DP_TRY(dp_outlet_create(ret->file, reader->leave, reader->data, &ret->outlet));
	if (ret->outlet)
		ret->file = dp_outlet_file(ret->outlet);
	return dp_outlet_create(stderr, reader->leave, reader->data, &ret->notes);
}

static struct dp_error *make_classes(const struct dp_trace_spec *trace, struct dp_outputs *ret)
{
	ret->classes = calloc(trace->nprobes + 1, sizeof(*ret->classes));
	if (!ret->classes)
		return dp_error_nomem();
	ret->nclasses = trace->nprobes;
	for (size_t i = 0; i < trace->nprobes; i++)
		ret->classes[i] = (struct dp_event_class){
		        .name = trace->probe[i].name,
		        .spec = trace->probe[i].spec.text,
		        .fields = &trace->probe[i].fields,
		        .form = trace->typed[i].form,
		        .title = trace->probe[i].title ? trace->probe[i].title : trace->probe[i].shown,
		        .call = trace->typed[i].call.is ? &trace->typed[i].call : NULL,
		        .entry = trace->typed[i].entry ? trace->probe[trace->typed[i].entry - 1].name : NULL,
		};
	return NULL;
}

static struct dp_error *open_events(const struct dp_options *o, const struct dp_outputs *out,
                                    const struct dp_event_class *classes, struct dp_writer **ret)
{
	if (o->format == DP_FORMAT_JSON)
		DP_TRY(dp_json_writer_create(out->file, classes, out->nclasses, ret));
	else if (o->format == DP_FORMAT_PERFETTO)
		DP_TRY(dp_perfetto_writer_create(out->file, classes, out->nclasses, ret));
	else
		DP_TRY(dp_text_writer_create(out->file, out->color, classes, out->nclasses, ret));
	dp_writer_show_sources(*ret, out->sources, false);
	return NULL;
}

static struct dp_error *open_live(const struct dp_options *o, struct dp_outputs *ret)
{
	if (o->quiet || o->format == DP_FORMAT_CTF || o->trace.asked.tree)
		return NULL;
	struct dp_joiner *calls;
	DP_TRY(dp_joiner_create(ret->classes, ret->nclasses, &calls));
	if (!calls)
		return open_events(o, ret, ret->classes, &ret->live);
	struct dp_writer *events;
	struct dp_error *err = open_events(o, ret, dp_joiner_classes(calls), &events);
	if (!err)
		return dp_join_writer_create(calls, ret->classes, ret->nclasses, events, &ret->live);
	dp_joiner_destroy(calls);
	return err;
}

static struct dp_error *open_record(const struct dp_options *o, const char *name, struct dp_outputs *ret)
{
	if (o->no_record)
		return NULL;
	const bool named = o->record && *o->record;
	if (named && !(ret->record_dir = strdup(o->record)))
		return dp_error_nomem();
	if (!named)
		DP_TRY(dp_ctf_default_dir(name, &ret->record_dir));
	ret->rotates = o->rotate;
	ret->old_dir = !access(ret->record_dir, F_OK);
	const struct dp_record_limits limits = {.piece = o->rotate, .most = o->record_size};
	return dp_recorder_create(ret->record_dir, &limits, ret->classes, ret->nclasses, &ret->record);
}

static struct dp_error *open_steps(const struct dp_options *o, const struct dp_trace_spec *trace, const char *name,
                                   const struct dp_outputs_reader *reader, struct dp_outputs *ret)
{
	DP_TRY(open_file(o, ret));
	ret->color = dp_options_color(o, ret->file);
	DP_TRY(open_outlet(reader, ret));
	DP_TRY(make_classes(trace, ret));
	ret->sources = o->no_lines ? NULL : dp_source_lines_create(reader->signal_fd);
	DP_TRY(open_record(o, name, ret));
	return open_live(o, ret);
}

struct dp_error *dp_outputs_open(const struct dp_options *options, const struct dp_trace_spec *trace, const char *name,
                                 const struct dp_outputs_reader *reader, struct dp_outputs *ret)
{
	*ret = (struct dp_outputs){0};
	struct dp_error *err = open_steps(options, trace, name, reader, ret);
	if (err) {
		dp_error_destroy(dp_outputs_end(ret));
		dp_outputs_fini(ret);
	}
	return err;
}

void dp_outputs_none(const struct dp_options *options, struct dp_outputs *ret)
{
	*ret = (struct dp_outputs){.file = stderr, .to_stderr = true, .color = dp_options_color(options, stderr)};
}

void dp_outputs_event(struct dp_outputs *o, const struct dp_event *event)
{
	if (o->live)
		dp_writer_event(o->live, event);
	if (o->record)
		dp_writer_event(o->record, event);
}

void dp_outputs_gap(struct dp_outputs *o)
{
	if (o->live)
		dp_writer_gap(o->live);
}

bool dp_outputs_takes_batches(const struct dp_outputs *o)
{
	return o->record && !o->live;
}

void dp_outputs_batch(struct dp_outputs *o, const struct dp_event_batch *batch)
{
	if (o->record)
		dp_writer_batch(o->record, batch);
}

bool dp_outputs_full(const struct dp_outputs *o)
{
	return o->record && (dp_writer_full(o->record) || dp_writer_failed(o->record));
}

void dp_outputs_class(struct dp_outputs *o, unsigned i)
{
	if (o->live)
		dp_writer_class(o->live, i);
	if (o->record)
		dp_writer_class(o->record, i);
}

void dp_outputs_note(struct dp_outputs *o, const char *text)
{
	if (o->live && !o->notes_apart) {
		dp_writer_note(o->live, text);
		return;
	}
	if (o->live)
		dp_error_destroy(dp_writer_flush(o->live)); /* a terminal may show both */
	o->drawn.lines = 0; /* on a terminal the note comes below it */
	fprintf(o->notes ? dp_outlet_file(o->notes) : stderr, "dynprobe: %s\n", text);
}

static struct dp_error *not_written(const struct dp_outputs *o)
{
	struct dp_error *err = dp_error(DP_TAG_OUTPUT, "writing the output failed: the reader is gone or the disk is full");
	err->sys = o->outlet && dp_outlet_is_unread(o->outlet) ? EPIPE : 0;
	return err;
}

struct dp_error *dp_outputs_flush(struct dp_outputs *o, uint64_t lost)
{
	if (o->record) {
		dp_writer_lost(o->record, lost);
		DP_TRY(dp_writer_flush(o->record));
	}
	if (o->live)
		DP_TRY(dp_writer_flush(o->live));
	/* Events may be rare, and their reader may be gone long before the next. */
	const bool unread = o->live && o->outlet && dp_outlet_is_unread(o->outlet);
	/* Aggregations are written without a writer: check their output here. */
	return unread || (o->file && ferror(o->file)) ? not_written(o) : NULL;
}

struct dp_error *dp_outputs_last(struct dp_outputs *o)
{
	return o->file && (fflush(o->file) || ferror(o->file)) ? not_written(o) : NULL;
}

void dp_outputs_round(struct dp_outputs *o, uint64_t ns)
{
	if (o->live)
		dp_writer_until(o->live, ns);
	/* Its error is reported by the next flush. */
	if (o->live && (o->outlet || o->to_stderr))
		dp_error_destroy(dp_writer_flush(o->live));
}

size_t dp_outputs_settle(struct dp_outputs *o)
{
	if (o->live)
		dp_error_destroy(dp_writer_flush(o->live));
	return (o->outlet ? dp_outlet_settle(o->outlet) : 0) + (o->notes ? dp_outlet_settle(o->notes) : 0);
}

void dp_outputs_rest(struct dp_outputs *o)
{
	const size_t dropped = dp_outputs_settle(o);
	if (dropped)
		fprintf(stderr, "dynprobe: a signal came before all events were shown: %zu bytes of text were dropped\n",
		        dropped);
}

void dp_outputs_say_missed(const struct dp_source_lines *sources)
{
	if (dp_source_lines_missed(sources))
		fprintf(stderr,
		        "dynprobe: debug information was not read in time: some frames have no source line, and no inlined "
		        "functions\n");
}

void dp_outputs_summary(const struct dp_outputs *o, const struct dp_options *options, const struct dp_summary *summary)
{
	struct dp_summary all = *summary;
	dp_outputs_say_missed(o->sources);
	all.verbose = options->verbose > 0;
	all.aggregated = options->trace.asked.what;
	all.launched = options->trace.command;
	all.record_dir = o->record_dir;
	all.pieces = o->rotates ? &o->pieces : NULL;
	if (options->format == DP_FORMAT_JSON)
		dp_summary_json(&all, o->file);
	else
		dp_summary_text(&all, stderr, dp_options_color(options, stderr));
}

struct dp_error *dp_outputs_end(struct dp_outputs *o)
{
	struct dp_writer *live = o->live, *record = o->record;
	o->live = o->record = NULL;
	if (record)
		o->rotates = dp_recorder_pieces(record, &o->pieces);
	if (dp_writer_joiner(live))
		dp_joiner_counts(dp_writer_joiner(live), &o->calls);
	struct dp_error *first = live ? dp_writer_close(live) : NULL;
	struct dp_error *second = record ? dp_writer_close(record) : NULL;
	if (!first)
		return second;
	dp_error_destroy(second);
	return first;
}

bool dp_outputs_unread(const struct dp_error *err)
{
	return err && err->tag == DP_TAG_OUTPUT && err->sys == EPIPE;
}

bool dp_outputs_disk_full(const struct dp_error *err)
{
	return err && err->tag == DP_TAG_OUTPUT && (err->sys == ENOSPC || err->sys == EDQUOT || err->sys == EFBIG);
}

void dp_outputs_discard(struct dp_outputs *o)
{
	const bool recorded = o->record;
	dp_error_destroy(dp_outputs_end(o));
	if (!recorded)
		return;
	dp_dir_remove_trace(o->record_dir);
	if (o->rotates)
		dp_dir_remove_pieces(o->record_dir);
	if (!o->old_dir)
		rmdir(o->record_dir);
}

void dp_outputs_fini(struct dp_outputs *o)
{
	dp_outputs_settle(o);
	dp_outlet_destroy(o->outlet);
	dp_outlet_destroy(o->notes);
	if (o->close_file)
		fclose(o->close_file);
	dp_source_lines_destroy(o->sources);
	free(o->record_dir);
	free(o->classes);
	*o = (struct dp_outputs){0};
}
