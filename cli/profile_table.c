/* SPDX-License-Identifier: MIT */
#include "cli/profile.h"

#include "output/answers.h"
#include "trampoline/trampoline.h"

#include <stdlib.h>
#include <string.h>

#define STACKS_MAX (1u << 18)

struct stack {
	uint64_t *pc; /* NULL: a free place */
	size_t n;
	uint64_t hash, hits;
};

struct dp_stacks {
	struct stack *slot; /* a hash table; a power of two */
	size_t nslots, n;
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

static struct stack *place_of(struct stack *slot, size_t nslots, uint64_t hash, const uint64_t *pc, size_t n)
{
	size_t i = hash & (nslots - 1);
	while (slot[i].pc && (slot[i].hash != hash || slot[i].n != n || memcmp(slot[i].pc, pc, n * sizeof(*pc)) != 0))
		i = (i + 1) & (nslots - 1);
	return &slot[i];
}

static bool grow(struct dp_stacks *s)
{
	const size_t nslots = s->nslots ? 2 * s->nslots : 1024;
	struct stack *slot = calloc(nslots, sizeof(*slot));
	if (!slot)
		return false;
	for (size_t i = 0; i < s->nslots; i++)
		if (s->slot[i].pc)
			*place_of(slot, nslots, s->slot[i].hash, s->slot[i].pc, s->slot[i].n) = s->slot[i];
	free(s->slot);
	s->slot = slot;
	s->nslots = nslots;
	return true;
}

bool dp_stacks_count(struct dp_stacks *s, const uint64_t *pc, size_t n)
{
	const uint64_t hash = hash_of(pc, n);
	if (2 * s->n >= s->nslots && s->n < STACKS_MAX && !grow(s))
		return false;
	struct stack *at = place_of(s->slot, s->nslots, hash, pc, n);
	if (!at->pc) {
		uint64_t *copy = s->n < STACKS_MAX ? malloc(n * sizeof(*pc) + 1) : NULL;
		if (!copy)
			return false;
		memcpy(copy, pc, n * sizeof(*pc));
		*at = (struct stack){.pc = copy, .n = n, .hash = hash};
		s->n++;
	}
	at->hits++;
	return true;
}

static int by_hits(const void *x, const void *y)
{
	const struct dp_answer_row *a = x, *b = y;
	if (a->hits != b->hits)
		return a->hits < b->hits ? 1 : -1;
	return (a->frames[0] > b->frames[0]) - (a->frames[0] < b->frames[0]);
}

/* ---- stacks of the same functions are one to the reader ------------------------------------------------------------------- */

static uint64_t function_of(struct dp_image *image, uint64_t pc, bool exact)
{
	struct dp_function f;
	return image && dp_image_function_at(image, dp_addr_of(pc - !exact), &f) ? f.start.v : pc;
}

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

/* All stacks, with the functions that their frames are in; how many there are. */
static size_t collect(const struct dp_stacks *s, struct dp_image *image, struct merged *ret)
{
	size_t n = 0;
	for (size_t i = 0; i < s->nslots; i++) {
		const struct stack *stack = &s->slot[i];
		uint64_t *functions = stack->pc ? malloc(stack->n * sizeof(*functions) + 1) : NULL;
		if (!functions)
			continue;
		for (size_t k = 0; k < stack->n; k++)
			functions[k] = function_of(image, stack->pc[k], !k);
		ret[n++] = (struct merged){functions, stack, stack->hits};
	}
	return n;
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

static void print(const struct merged *m, size_t n, const struct dp_stacks_view *v, FILE *to)
{
	dp_auto_free struct dp_answer_row *row = calloc(n + 1, sizeof(*row));
	if (!row)
		return;
	for (size_t i = 0; i < n; i++)
		row[i] = (struct dp_answer_row){
		        .name = "profile",
		        .pid = v->pid,
		        .keyed = true,
		        .frames = m[i].stack->pc,
		        .nframes = (unsigned)m[i].stack->n,
		        .image = v->image,
		        .cells = &m[i].hits,
		        .hits = m[i].hits,
		};
	qsort(row, n, sizeof(*row), by_hits);
	const struct dp_answers_shown shown = {.what = DP_ANSWER_COUNT,
	                                       .by = "backtrace",
	                                       .top = v->options->asked.top,
	                                       .seconds = v->seconds,
	                                       .row = row,
	                                       .n = n};
	if (v->options->format == DP_FORMAT_JSON)
		dp_answers_json(&shown, to);
	else if (v->options->asked.folded)
		dp_answers_folded(&shown, to);
	else
		dp_answers_text(&shown, to);
	fflush(to);
}

void dp_stacks_show(const struct dp_stacks *s, const struct dp_stacks_view *v, FILE *to)
{
	dp_auto_free struct merged *m = calloc(s->n + 1, sizeof(*m));
	if (!m)
		return;
	const size_t n = merge(m, collect(s, v->image, m));
	print(m, n, v, to);
	for (size_t i = 0; i < n; i++)
		free(m[i].functions);
}
