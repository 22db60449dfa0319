/* SPDX-License-Identifier: MIT */
#include "session/profile/stacks.h"

#include "agent/abi.h"

#include <stdlib.h>
#include <string.h>

#define STACKS_MAX (1u << 18)

struct stack {
	uint64_t *pc; /* NULL: a free slot */
	size_t n;
	uint64_t hash, hits, ns;
	uint32_t image;
};

struct dp_stacks {
	struct stack *slot; /* a hash table; nslots is a power of two */
	size_t nslots, n;
	uint64_t unnamed;
};

struct dp_error *dp_stacks_create(struct dp_stacks **ret)
{
	struct dp_stacks *s = calloc(1, sizeof(*s));
	if (!s)
		return dp_error_nomem();
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
		const struct dp_stack_seen seen = {.pc = from->pc, .n = from->n, .image = from->image};
		if (!from->pc)
			continue;
		struct stack *to = place_of(&grown, from->hash, &seen);
		if (to->pc) { /* two stacks became equal when their image was retired */
			to->hits += from->hits;
			to->ns += from->ns;
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
	at->ns += seen->ns;
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
			all = dp_images_agree(was, is, dp_frame_pc(stack->pc[k]) - (k != 0));
		stack->image = all ? number : DP_IMAGES_NONE;
		s->unnamed += all ? 0 : stack->hits;
	}
}

uint64_t dp_stacks_unnamed(const struct dp_stacks *s)
{
	return s->unnamed;
}

static int by_weight(const void *x, const void *y)
{
	const struct dp_agg_row *a = x, *b = y;
	if (a->cells[DP_AGG_WORD_SUM] != b->cells[DP_AGG_WORD_SUM])
		return a->cells[DP_AGG_WORD_SUM] < b->cells[DP_AGG_WORD_SUM] ? 1 : -1;
	if (a->hits != b->hits)
		return a->hits < b->hits ? 1 : -1;
	return (a->frames[0] > b->frames[0]) - (a->frames[0] < b->frames[0]);
}

/* ---- stacks of the same functions share a row ----------------------------------------------------------------------------- */

struct dp_merged_stack {
	uint64_t *functions;            /* owned */
	const struct stack *stack;      /* the stack with most hits */
	const struct dp_images *images; /* of its process */
	uint64_t cells[DP_AGG_WORDS];   /* hits, and the sum of their times */
};

static int by_functions(const void *x, const void *y)
{
	const struct dp_merged_stack *a = x, *b = y;
	if (a->stack->n != b->stack->n)
		return a->stack->n < b->stack->n ? -1 : 1;
	for (size_t i = 0; i < a->stack->n; i++)
		if (a->functions[i] != b->functions[i])
			return a->functions[i] < b->functions[i] ? -1 : 1;
	return 0;
}

/* All stacks, with the functions that their frames are in. False: out of memory. */
static bool collect(const struct dp_stacks_of *of, bool several, struct dp_merged_stack *ret, size_t *n)
{
	for (size_t i = 0; i < of->stacks->nslots; i++) {
		const struct stack *stack = &of->stacks->slot[i];
		if (!stack->pc)
			continue;
		uint64_t *functions = malloc(stack->n * sizeof(*functions) + 1);
		if (!functions)
			return false;
		for (size_t k = 0; k < stack->n; k++)
			functions[k] = dp_images_function(of->images, stack->image, stack->pc[k], !k, several);
		ret[(*n)++] = (struct dp_merged_stack){functions, stack, of->images, {stack->hits, stack->ns}};
	}
	return true;
}

static size_t merge(struct dp_merged_stack *m, size_t n)
{
	size_t kept = 0;
	if (n)
		qsort(m, n, sizeof(*m), by_functions);
	for (size_t i = 0; i < n; i++) {
		if (!kept || by_functions(&m[kept - 1], &m[i])) {
			m[kept++] = m[i];
			continue;
		}
		for (unsigned k = DP_AGG_WORD_COUNT; k <= DP_AGG_WORD_SUM; k++)
			m[kept - 1].cells[k] += m[i].cells[k];
		if (m[i].stack->hits > m[kept - 1].stack->hits) {
			m[kept - 1].stack = m[i].stack;
			m[kept - 1].images = m[i].images;
		}
		free(m[i].functions);
	}
	return kept;
}

static struct dp_agg_row row_of(const struct dp_merged_stack *m, pid_t pid)
{
	const struct stack *stack = m->stack;
	const bool cut = stack->n && !stack->pc[stack->n - 1];
	return (struct dp_agg_row){
	        .name = "profile",
	        .cut = cut,
	        .pid = pid,
	        .keyed = true,
	        .frames = stack->pc,
	        .nframes = (unsigned)stack->n - cut,
	        .image = dp_images_get(m->images, stack->image),
	        .cells = m->cells,
	        .hits = m->cells[DP_AGG_WORD_COUNT],
	};
}

struct dp_error *dp_stacks_rows(const struct dp_stacks_of *of, size_t n, pid_t pid, struct dp_stack_rows *ret)
{
	size_t most = 1;
	for (size_t i = 0; i < n; i++)
		most += of[i].stacks->n;
	*ret = (struct dp_stack_rows){.row = calloc(most, sizeof(*ret->row)), .merged = calloc(most, sizeof(*ret->merged))};
	bool done = ret->row && ret->merged;
	for (size_t i = 0; i < n && done; i++)
		done = collect(&of[i], n > 1, ret->merged, &ret->n);
	if (!done) {
		dp_stack_rows_fini(ret);
		return dp_error_nomem();
	}
	ret->n = merge(ret->merged, ret->n);
	for (size_t i = 0; i < ret->n; i++)
		ret->row[i] = row_of(&ret->merged[i], pid);
	qsort(ret->row, ret->n, sizeof(*ret->row), by_weight);
	return NULL;
}

void dp_stack_rows_fini(struct dp_stack_rows *rows)
{
	for (size_t i = 0; i < rows->n; i++)
		free(rows->merged[i].functions);
	free(rows->merged);
	free(rows->row);
	*rows = (struct dp_stack_rows){0};
}
