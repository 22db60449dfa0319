/* SPDX-License-Identifier: MIT */
/*
 * Whoever names a function wants to know if it is not probed: that is exit status 124. Whoever types a pattern does not know what
 * it names, and of some hundred functions there is always one that cannot be probed (an IFUNC, a ud2, code without a known end).
 * So those are counted, not refused: as long as some of the pattern's places are probed, and the others are a handful.
 */
#include "cli/session/expand/patterns.h"

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

static void judge_session(const struct dp_options *o, struct dp_session *s, struct tally *tally)
{
	for (size_t i = 0; i < o->nprobes; i++) {
		struct tally *t = &tally[o->probe[i].pattern];
		t->places++;
		t->refused += s->place[i].refused != NULL;
	}
	for (size_t i = 0; i < o->nprobes; i++)
		s->place[i].left_out = s->place[i].refused && o->probe[i].pattern && is_handful(&tally[o->probe[i].pattern]);
}

void dp_patterns_judge(struct dp_run *run)
{
	const struct dp_options *o = run->options;
	unsigned last = 0;
	for (size_t i = 0; i < o->nprobes; i++)
		last = o->probe[i].pattern > last ? o->probe[i].pattern : last;
	for (size_t k = 0; last && k < run->nsessions; k++) {
		dp_auto_free struct tally *tally = calloc(last + 1u, sizeof(*tally));
		if (tally) /* else they stay refusals */
			judge_session(o, run->session[k], tally);
	}
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

static void note_session(const struct dp_options *o, const struct dp_session *s)
{
	size_t tag[DP_TAG_COUNT] = {0}, places = 0, left_out = 0;
	for (size_t i = 0; i < o->nprobes; i++) {
		places += o->probe[i].pattern != 0;
		left_out += s->place[i].left_out;
		if (s->place[i].left_out)
			tag[s->place[i].refused->tag]++;
	}
	if (!left_out)
		return;
	fprintf(stderr, "dynprobe: %zu of %zu places that patterns name cannot be probed in %d (", left_out, places,
	        dp_target_pid(s->target));
	put_tags(tag);
	fprintf(stderr, ")%s\n", o->verbose ? "" : "; -v lists them");
}

void dp_patterns_note(const struct dp_run *run)
{
	for (size_t k = 0; !run->options->quiet && k < run->nsessions; k++)
		note_session(run->options, run->session[k]);
}
