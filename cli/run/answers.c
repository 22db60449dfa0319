/* SPDX-License-Identifier: MIT */
#include "cli/run/answers.h"

#include "session/run/rows.h"

void dp_answers_print(const struct dp_options *options, const struct dp_answers_shown *shown, FILE *to)
{
	if (options->format == DP_FORMAT_JSON)
		dp_answers_json(shown, to);
	else if (options->trace.asked.folded)
		dp_answers_folded(shown, to);
	else
		dp_answers_text(shown, to);
}

static void show(struct dp_trace *t, bool delta)
{
	struct dp_answers_shown shown;
	if (!dp_rows_shown(&t->run, delta, &shown))
		return;
	dp_answers_print(t->options, &shown, t->out.file);
	fflush(t->out.file);
}

void dp_answers_round(struct dp_trace *t)
{
	if (!dp_rows_round(&t->run))
		return;
	if (!t->options->quiet)
		show(t, true);
	dp_rows_next(&t->run);
}

void dp_answers_final(struct dp_trace *t)
{
	bool failed;
	if (!dp_rows_final(&t->run, &failed))
		return;
	if (failed)
		fprintf(stderr, "dynprobe: out of memory for the aggregations: some are missing\n");
	show(t, false);
}
