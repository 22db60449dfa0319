/* SPDX-License-Identifier: MIT */
/*
 * A function that the user named and that cannot be probed means exit status 121. A pattern is different: the user does not know
 * what it matches, and of some hundred functions one or two usually cannot be probed (an IFUNC, a ud2, code without a known end).
 * Such sites are only counted, if at least one site of the pattern is probed and the others are few.
 */
#include "session/run/patterns.h"

#include "base/cleanup.h"

#include <stdlib.h>

struct tally { /* one pattern in one process */
	size_t places, refused;
};

static bool is_handful(const struct tally *t)
{
	if (t->refused == t->places)
		return false;
	return t->refused <= DP_PATTERN_HANDFUL || t->refused <= t->places / DP_PATTERN_HANDFUL;
}

static void judge_session(const struct dp_trace_spec *trace, struct dp_session *s, struct tally *tally)
{
	for (size_t i = 0; i < trace->nprobes; i++) {
		struct tally *t = &tally[trace->probe[i].pattern];
		t->places++;
		t->refused += s->place[i].refused != NULL;
	}
	for (size_t i = 0; i < trace->nprobes; i++)
		s->place[i].left_out = s->place[i].refused && trace->probe[i].pattern && is_handful(&tally[trace->probe[i].pattern]);
}

void dp_patterns_judge(struct dp_run *run)
{
	const struct dp_trace_spec *trace = run->trace;
	unsigned last = 0;
	for (size_t i = 0; i < trace->nprobes; i++)
		last = trace->probe[i].pattern > last ? trace->probe[i].pattern : last;
	for (size_t k = 0; last && k < run->nsessions; k++) {
		dp_auto_free struct tally *tally = calloc(last + 1u, sizeof(*tally));
		if (tally) /* without memory they stay refusals */
			judge_session(trace, run->session[k], tally);
	}
}
