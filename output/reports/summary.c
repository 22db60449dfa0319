/* SPDX-License-Identifier: MIT */
#include "output/reports/summary.h"

#include <string.h>

const struct dp_loss_name dp_loss_names[DP_LOSS_COUNT] = {
        [DP_LOSS_FULL] = {"ring full", "full",
                          "larger rings (--buffer-size), hits that wait (--on-full block=100ms), or fewer and shorter events "
                          "(--when, -t)"},
        [DP_LOSS_NO_SLOT] = {"more threads than rings", "no_slot",
                             "more memory for rings (--max-memory), or smaller ones (--buffer-size 64K)"},
        [DP_LOSS_FORKED] = {"in fork children", "forked", "--follow records the children, too"},
        [DP_LOSS_ABANDONED] = {"thread ended while recording", "abandoned", NULL},
        [DP_LOSS_DAMAGED] = {"record damaged", "damaged", NULL},
        [DP_LOSS_NESTED] = {"inside another hit", "nested", "--sink ring records hits inside of other hits"},
        [DP_LOSS_UNPRIMED] = {"in threads that LTTng did not know yet", "unprimed",
                              "--sink ring needs nothing of LTTng in the thread"},
        [DP_LOSS_NO_STACK] = {"too little stack", "no_stack", NULL},
        [DP_LOSS_OVERWRITTEN] = {"overwritten by later ones", "overwritten",
                                 "larger rings (--buffer-size, --max-memory), or no --overwrite"},
        [DP_LOSS_UNREADABLE] = {"condition could not be evaluated", "unreadable",
                                "test the pointer first: --when 'p != 0 && p->n > 3'"},
        [DP_LOSS_UNWANTED] = {"not enabled in the LTTng session", "unwanted", NULL},
        [DP_LOSS_UNPAIRED] = {"returns of calls whose entry was not seen", "unpaired", NULL},
        [DP_LOSS_CROWDED] = {"no room for another key", "crowded", "a --by with fewer different keys"},
        [DP_LOSS_OTHER] = {"other", "other", NULL},
};

static void add(struct dp_counts *c, const struct dp_summary_probe *p)
{
	const uint64_t loss[DP_LOSS_COUNT] = {
	        [DP_LOSS_FULL] = p->lost.full,
	        [DP_LOSS_NO_SLOT] = p->lost.no_slot,
	        [DP_LOSS_FORKED] = p->lost.forked,
	        [DP_LOSS_ABANDONED] = p->lost.abandoned,
	        [DP_LOSS_DAMAGED] = p->lost.damaged,
	        [DP_LOSS_NESTED] = p->lost.nested,
	        [DP_LOSS_UNPRIMED] = p->lost.unprimed,
	        [DP_LOSS_NO_STACK] = p->lost.no_stack,
	        [DP_LOSS_OVERWRITTEN] = p->lost.overwritten,
	        [DP_LOSS_UNREADABLE] = p->lost.unreadable,
	        [DP_LOSS_UNWANTED] = p->lost.unwanted,
	        [DP_LOSS_UNPAIRED] = p->lost_unpaired,
	        [DP_LOSS_CROWDED] = p->lost_crowded,
	        [DP_LOSS_OTHER] = p->lost.other,
	};
	for (size_t i = 0; i < DP_LOSS_COUNT; i++) {
		c->loss[i] += loss[i];
		c->lost += loss[i];
	}
	c->recorded += p->recorded;
	c->placed += p->tactic != NULL;
	c->refused += p->tactic == NULL;
	c->left_out += !p->tactic && p->left_out;
	c->retired += p->retired;
}

struct dp_counts dp_summary_count(const struct dp_summary_probe *probe, size_t n)
{
	struct dp_counts c = {0};
	for (size_t i = 0; i < n; i++)
		add(&c, &probe[i]);
	return c;
}

bool dp_summary_process(const struct dp_summary *s, size_t *i, struct dp_process_counts *ret)
{
	const size_t first = *i;
	if (first >= s->n)
		return false;
	while (*i < s->n && s->probe[*i].pid == s->probe[first].pid)
		++*i;
	*ret = (struct dp_process_counts){.pid = s->probe[first].pid,
	                                  .comm = s->probe[first].comm,
	                                  .counts = dp_summary_count(&s->probe[first], *i - first)};
	return true;
}

const char *dp_summary_tactic(const struct dp_summary_probe *p)
{
	return p->tactic;
}

const char *dp_summary_refusal_tag(const struct dp_summary_probe *p)
{
	return p->tactic ? NULL : p->tag ? p->tag : "DP-INTERNAL";
}

const char *dp_summary_left_out_tag(const struct dp_summary_probe *p)
{
	return p->left_out ? dp_summary_refusal_tag(p) : NULL;
}

const char *dp_summary_trouble_tag(const struct dp_summary_probe *p)
{
	return p->left_out ? NULL : dp_summary_refusal_tag(p);
}

size_t dp_summary_group(const struct dp_summary *s, const char *(*word)(const struct dp_summary_probe *), struct dp_group *groups,
                        size_t max)
{
	size_t n = 0;
	for (size_t i = 0; i < s->n; i++) {
		const char *w = word(&s->probe[i]);
		size_t g = 0;
		if (!w)
			continue;
		while (g < n && strcmp(groups[g].word, w))
			g++;
		if (g == max)
			continue;
		if (g == n)
			groups[n++] = (struct dp_group){w, 0};
		groups[g].n++;
	}
	return n;
}
