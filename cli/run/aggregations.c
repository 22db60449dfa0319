/* SPDX-License-Identifier: MIT */
#include "cli/run/aggregations.h"

#include "session/run/rows.h"

void dp_aggs_print(const struct dp_options *options, const struct dp_aggs_shown *shown, FILE *to)
{
	if (options->format == DP_FORMAT_JSON)
		dp_aggs_json(shown, to);
	else if (options->trace.asked.folded)
		dp_aggs_folded(shown, to);
	else
		dp_aggs_text(shown, to);
}

static void show(struct dp_trace *t, bool delta)
{
	struct dp_aggs_shown shown;
	if (!dp_rows_shown(&t->run, delta, &shown))
		return;
	dp_aggs_print(t->options, &shown, t->out.file);
	fflush(t->out.file);
}

void dp_aggs_round(struct dp_trace *t)
{
	if (!dp_rows_round(&t->run))
		return;
	if (!t->options->quiet)
		show(t, true);
	dp_rows_next(&t->run);
}

void dp_aggs_final(struct dp_trace *t)
{
	bool failed;
	if (!dp_rows_final(&t->run, &failed))
		return;
	if (failed)
		fprintf(stderr, "dynprobe: out of memory for the aggregations: some are missing\n");
	show(t, false);
}
