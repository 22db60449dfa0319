/* SPDX-License-Identifier: MIT */
/* Reports before, during and after a run: refusals with reasons, the summary (G7). */
#include "base/cleanup.h"
#include "cli/run/trace.h"
#include "probes/elf/demangle.h"
#include "session/process/session_trap.h"
#include "session/run/snapshots.h"
#include "session/run/starts.h"
#include "session/run/summary.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#define SAID 10u /* refusals of a pattern's probes that are listed */

static void put_readable(const char *text)
{
	dp_auto_free char *readable = dp_demangle_text(text);
	fputs(readable ? readable : text, stderr);
}

/* `*advised`: the last remedy that was printed. Those that only depend on the tag are in `dynprobe explain`. */
static void refusal_line(const struct dp_session *s, const char *spec, const struct dp_error *refused, const char **advised)
{
	const char *remedy = dp_error_remedy(refused);
	fprintf(stderr, "dynprobe: refused ");
	put_readable(spec);
	fprintf(stderr, " in %d: ", dp_target_pid(s->target));
	put_readable(refused->message);
	fprintf(stderr, " [%s]\n", dp_tag_name(refused->tag));
	for (const struct dp_error *e = refused->cause; e; e = e->cause) {
		fprintf(stderr, "  because: ");
		put_readable(e->message);
		fprintf(stderr, "\n");
	}
	if (remedy == dp_tag_remedy(refused->tag) || remedy == *advised)
		return;
	fprintf(stderr, "  what to do: %s\n", remedy);
	*advised = remedy;
}

/* "DP-NO-SIZE 138, DP-NO-RETURN 101" */
static void put_tags(const size_t tag[DP_TAG_COUNT])
{
	const char *before = "";
	for (int i = 0; i < DP_TAG_COUNT; i++)
		if (tag[i]) {
			fprintf(stderr, "%s%s %zu", before, dp_tag_name((enum dp_tag)i), tag[i]);
			before = ", ";
		}
}

static void note_session(const struct dp_trace *t, const struct dp_session *s)
{
	const struct dp_trace_spec *trace = t->run.trace;
	size_t tag[DP_TAG_COUNT] = {0}, places = 0, left_out = 0;
	for (size_t i = 0; i < trace->nprobes; i++) {
		places += trace->probe[i].pattern != 0;
		left_out += s->place[i].left_out;
		if (s->place[i].left_out)
			tag[s->place[i].refused->tag]++;
	}
	if (!left_out)
		return;
	fprintf(stderr, "dynprobe: %zu of %zu places of patterns cannot be probed in %d (", left_out, places,
	        dp_target_pid(s->target));
	put_tags(tag);
	fprintf(stderr, ")%s\n", t->options->verbose ? "" : "; -v lists them");
}

static void note_patterns(const struct dp_trace *t)
{
	for (size_t k = 0; !t->options->quiet && k < t->run.nsessions; k++)
		note_session(t, t->run.session[k]);
}

/* A line for each refusal. A pattern may have thousands: some, and the number of the others. */
void dp_report_refusals(const struct dp_trace *t)
{
	size_t unsaid = 0;
	const char *advised = NULL;
	for (size_t k = 0; k < t->run.nsessions; k++)
		for (size_t i = 0, said = 0; i < t->run.trace->nprobes; i++) {
			const struct dp_probe *p = &t->run.trace->probe[i];
			const struct dp_session *s = t->run.session[k];
			if (!s->place[i].refused || s->place[i].absent || (s->place[i].left_out && !t->options->verbose))
				continue;
			if (p->selected && !t->options->verbose && said++ >= SAID)
				unsaid++;
			else
				refusal_line(s, p->spec.text, s->place[i].refused, &advised);
		}
	if (unsaid)
		fprintf(stderr, "dynprobe: refused %zu more probes of patterns; -v lists them\n", unsaid);
	note_patterns(t);
	for (size_t k = 0; !t->options->quiet && k < t->run.nsessions; k++)
		dp_session_trap_note(t->run.session[k]);
}

/* Entries without their return, and returns without their entry. */
static void note_calls(const struct dp_trace *t)
{
	const struct dp_joiner_counts *c = &t->out.calls;
	bool filtered = t->spec.asked.slower_ns;
	for (size_t i = 0; i < t->run.trace->nprobes; i++)
		filtered |= t->run.trace->typed[i].filtered;
	if (c->open && !filtered && !t->options->quiet)
		fprintf(stderr,
		        "dynprobe: %" PRIu64
		        " call%s not shown: the return was not seen (still running, or left by longjmp or an "
		        "exception)\n",
		        c->open, c->open == 1 ? " is" : "s are");
	if (c->unseen)
		fprintf(stderr, "dynprobe: the arguments of %" PRIu64 " call%s are unknown: the entry was lost\n", c->unseen,
		        c->unseen == 1 ? "" : "s");
}

void dp_report_summary(struct dp_trace *t)
{
	struct dp_summary_snapshots shots;
	struct dp_summary_children children;
	struct dp_summary_programs programs;
	struct dp_summary_waits waits;
	struct dp_summary sum;
	note_calls(t);
	if (!dp_run_summary(&t->run, &sum))
		return;
	sum.snapshots = dp_snapshots_counts(&t->run, &shots) ? &shots : NULL;
	sum.waits = dp_run_waits(&t->run, &waits) ? &waits : NULL;
	sum.programs = dp_starts_counts(&t->run, &programs) ? &programs : NULL;
	sum.children = dp_run_children(&t->run, &children) ? &children : NULL;
	dp_outputs_summary(&t->out, t->options, &sum);
	if (sum.children)
		free((void *)(uintptr_t)children.left);
	dp_run_summary_fini(&sum);
}

void dp_report_snapshots(const struct dp_trace *t)
{
	struct dp_summary_snapshots s;
	if (!dp_snapshots_counts(&t->run, &s))
		return;
	fprintf(stderr, "dynprobe: %" PRIu64 " snapshot%s taken", s.taken, s.taken == 1 ? "" : "s");
	if (s.failed)
		fprintf(stderr, ", %" PRIu64 " failed", s.failed);
	fprintf(stderr,
	        "; hits without one: %" PRIu64 " beyond the limits, %" PRIu64 " during another snapshot, %" PRIu64 " timed out\n",
	        s.over, s.missed, s.late);
}
