/* SPDX-License-Identifier: MIT */
#include "cli/run/profile/profile.h"

#include "output/reports/answers.h"
#include "trampoline/trampoline.h"

#include <stdlib.h>
#include <string.h>

#define STACKS_MAX (1u << 18)

struct stack {
	uint64_t *pc; /* NULL: a free place */
	size_t n;
	uint64_t hash, hits;
	uint32_t image;
};

struct dp_stacks {
	struct stack *slot; /* a hash table; a power of two */
	size_t nslots, n;
	uint64_t unnamed;
};

struct dp_error *dp_stacks_create(struct dp_stacks **ret)
{
	struct dp_stacks *s = calloc(1, sizeof(*s));
	if (!s)
		return dp_error(DP_TAG_NOMEM, "out of memory for the stacks");
	*ret = s;
	return NULL;
}

struct dp_stacks *dp_stacks_destroy(struct dp_stacks *s)
{
	for (size_t i = 0; s && i < s->nslots; i++)
		free(s->slot[i].pc);
	if (s)
		free(s->slot);
	free(s);
	return NULL;
}

static uint64_t hash_of(const uint64_t *pc, size_t n)
{
	uint64_t h = n;
	for (size_t i = 0; i < n; i++) {
		h = (h ^ pc[i]) * UINT64_C(0x9e3779b97f4a7c15);
		h ^= h >> 29;
	}
	return h;
}

static bool is(const struct stack *s, uint64_t hash, const struct dp_stack_seen *seen)
{
	return s->hash == hash && s->n == seen->n && s->image == seen->image &&
	       memcmp(s->pc, seen->pc, seen->n * sizeof(*seen->pc)) == 0;
}

static struct stack *place_of(const struct dp_stacks *s, uint64_t hash, const struct dp_stack_seen *seen)
{
	size_t i = hash & (s->nslots - 1);
	while (s->slot[i].pc && !is(&s->slot[i], hash, seen))
		i = (i + 1) & (s->nslots - 1);
	return &s->slot[i];
}

static bool grow(struct dp_stacks *s)
{
	struct dp_stacks grown = *s;
	grown.nslots = s->nslots ? 2 * s->nslots : 1024;
	grown.slot = calloc(grown.nslots, sizeof(*grown.slot));
	if (!grown.slot)
		return false;
	for (size_t i = 0; i < s->nslots; i++) {
		const struct stack *from = &s->slot[i];
		const struct dp_stack_seen seen = {from->pc, from->n, from->image};
		if (!from->pc)
			continue;
		struct stack *to = place_of(&grown, from->hash, &seen);
		if (to->pc) { /* two that became one when their image went */
			to->hits += from->hits;
			free(from->pc);
			grown.n--;
		} else {
			*to = *from;
		}
	}
	free(s->slot);
	*s = grown;
	return true;
}

bool dp_stacks_count(struct dp_stacks *s, const struct dp_stack_seen *seen)
{
	const size_t size = seen->n * sizeof(*seen->pc);
	const uint64_t hash = hash_of(seen->pc, seen->n);
	if (2 * s->n >= s->nslots && s->n < STACKS_MAX && !grow(s))
		return false;
	struct stack *at = place_of(s, hash, seen);
	if (!at->pc) {
		uint64_t *copy = s->n < STACKS_MAX ? malloc(size + 1) : NULL;
		if (!copy)
			return false;
		memcpy(copy, seen->pc, size);
		*at = (struct stack){.pc = copy, .n = seen->n, .hash = hash, .image = seen->image};
		s->n++;
	}
	at->hits++;
	return true;
}

void dp_stacks_retire(struct dp_stacks *s, uint32_t old, const struct dp_image *was, uint32_t number, const struct dp_image *is)
{
	for (size_t i = 0; i < s->nslots; i++) {
		struct stack *stack = &s->slot[i];
		bool all = true;
		if (!stack->pc || stack->image != old)
			continue;
		for (size_t k = 0; all && k < stack->n; k++)
			all = dp_images_agree(was, is, stack->pc[k] - (k != 0));
		stack->image = all ? number : DP_IMAGES_NONE;
		s->unnamed += all ? 0 : stack->hits;
	}
}

uint64_t dp_stacks_unnamed(const struct dp_stacks *s)
{
	return s->unnamed;
}

static int by_hits(const void *x, const void *y)
{
	const struct dp_answer_row *a = x, *b = y;
	if (a->hits != b->hits)
		return a->hits < b->hits ? 1 : -1;
	return (a->frames[0] > b->frames[0]) - (a->frames[0] < b->frames[0]);
}

/* ---- stacks of the same functions are one to the reader ------------------------------------------------------------------- */

struct merged {
	uint64_t *functions;       /* owned */
	const struct stack *stack; /* the one with most hits */
	uint64_t hits;
};

static int by_functions(const void *x, const void *y)
{
	const struct merged *a = x, *b = y;
	if (a->stack->n != b->stack->n)
		return a->stack->n < b->stack->n ? -1 : 1;
	for (size_t i = 0; i < a->stack->n; i++)
		if (a->functions[i] != b->functions[i])
			return a->functions[i] < b->functions[i] ? -1 : 1;
	return 0;
}

/* All stacks, with the functions that their frames are in. False: out of memory. */
static bool collect(const struct dp_stacks *s, const struct dp_images *images, struct merged *ret, size_t *n)
{
	for (size_t i = 0; i < s->nslots; i++) {
		const struct stack *stack = &s->slot[i];
		if (!stack->pc)
			continue;
		uint64_t *functions = malloc(stack->n * sizeof(*functions) + 1);
		if (!functions)
			return false;
		for (size_t k = 0; k < stack->n; k++)
			functions[k] = dp_images_function(images, stack->image, stack->pc[k], !k);
		ret[(*n)++] = (struct merged){functions, stack, stack->hits};
	}
	return true;
}

static size_t merge(struct merged *m, size_t n)
{
	size_t kept = 0;
	if (n)
		qsort(m, n, sizeof(*m), by_functions);
	for (size_t i = 0; i < n; i++) {
		if (!kept || by_functions(&m[kept - 1], &m[i])) {
			m[kept++] = m[i];
			continue;
		}
		m[kept - 1].hits += m[i].hits;
		if (m[i].stack->hits > m[kept - 1].stack->hits)
			m[kept - 1].stack = m[i].stack;
		free(m[i].functions);
	}
	return kept;
}

static bool print(const struct merged *m, size_t n, const struct dp_stacks_view *v, FILE *to)
{
	dp_auto_free struct dp_answer_row *row = calloc(n + 1, sizeof(*row));
	if (!row)
		return false;
	for (size_t i = 0; i < n; i++)
		row[i] = (struct dp_answer_row){
		        .name = "profile",
		        .cut = m[i].stack->n && !m[i].stack->pc[m[i].stack->n - 1],
		        .pid = v->pid,
		        .keyed = true,
		        .frames = m[i].stack->pc,
		        .nframes = (unsigned)m[i].stack->n - (m[i].stack->n && !m[i].stack->pc[m[i].stack->n - 1]),
		        .image = dp_images_get(v->images, m[i].stack->image),
		        .cells = &m[i].hits,
		        .hits = m[i].hits,
		};
	qsort(row, n, sizeof(*row), by_hits);
	const struct dp_answers_shown shown = {.what = DP_ANSWER_COUNT,
	                                       .by = "backtrace",
	                                       .top = v->options->trace.asked.top,
	                                       .seconds = v->seconds,
	                                       .row = row,
	                                       .n = n};
	if (v->options->format == DP_FORMAT_JSON)
		dp_answers_json(&shown, to);
	else if (v->options->trace.asked.folded)
		dp_answers_folded(&shown, to);
	else
		dp_answers_text(&shown, to);
	return true;
}

struct dp_error *dp_stacks_show(const struct dp_stacks *s, const struct dp_stacks_view *v, FILE *to)
{
	dp_auto_free struct merged *m = calloc(s->n + 1, sizeof(*m));
	size_t n = 0;
	bool done = m && collect(s, v->images, m, &n);
	if (done) {
		n = merge(m, n);
		done = print(m, n, v, to);
	}
	for (size_t i = 0; i < n; i++)
		free(m[i].functions);
	return done ? NULL : dp_error(DP_TAG_NOMEM, "out of memory for the table of %zu stacks", s->n);
}
