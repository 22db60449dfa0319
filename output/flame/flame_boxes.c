/* SPDX-License-Identifier: MIT */
/* Which frames are shown: those that are at least a tenth of a pixel wide, in the order of the tree. */
#include "output/flame/flame_internal.h"

#include <stdlib.h>
#include <string.h>

#define TENTHS     10.0
#define BOXES_MOST 200000u

struct boxes {
	struct dp_flame *f;
	struct dp_flame_box *box;
	size_t n, capacity;
	uint32_t *child; /* of the node at hand */
	size_t nchildren;
};

static int by_name(const void *x, const void *y, void *data)
{
	const struct dp_flame *f = data;
	const uint32_t *a = x, *b = y;
	return strcmp(f->name[f->node[*b].name], f->name[f->node[*a].name]);
}

static bool push(struct boxes *b, struct dp_flame_box box)
{
	if (b->n == b->capacity) {
		const size_t capacity = b->capacity ? 2 * b->capacity : 1024;
		struct dp_flame_box *grown = reallocarray(b->box, capacity, sizeof(*grown));
		if (!grown)
			return false;
		b->box = grown;
		b->capacity = capacity;
	}
	b->box[b->n++] = box;
	return true;
}

/* Last name first: they are taken from a stack. */
static void sort_children(struct boxes *b, uint32_t node, double least)
{
	b->nchildren = 0;
	for (uint32_t c = b->f->node[node].first; c != DP_FLAME_NONE; c = b->f->node[c].next) {
		if (b->f->node[c].total >= least)
			b->child[b->nchildren++] = c;
		else
			b->f->stats.narrow++;
	}
	if (b->nchildren)
		qsort_r(b->child, b->nchildren, sizeof(*b->child), by_name, b->f);
}

/* A walk without recursion. `todo` has room for all nodes: each is on it once. */
static bool walk(struct boxes *b, struct dp_flame_box *todo, double least)
{
	size_t n = 0;
	b->n = 0;
	todo[n++] = (struct dp_flame_box){0, 0, 0};
	while (n && b->n <= BOXES_MOST) {
		const struct dp_flame_box at = todo[--n];
		if (!push(b, at))
			return false;
		sort_children(b, at.node, least);
		double end = at.start;
		for (size_t i = 0; i < b->nchildren; i++)
			end += b->f->node[b->child[i]].total;
		for (size_t i = 0; i < b->nchildren; i++) {
			end -= b->f->node[b->child[i]].total;
			todo[n++] = (struct dp_flame_box){b->child[i], at.depth + 1, end};
		}
	}
	return true;
}

/* Where so many frames are wide enough, the threshold is doubled: the file must be one that a browser opens. */
bool dp_flame_boxes(struct dp_flame *f, struct dp_flame_box **ret, size_t *n)
{
	struct boxes b = {.f = f};
	const uint64_t deep = f->stats.narrow;
	struct dp_flame_box *todo = malloc(f->n * sizeof(*todo));
	b.child = malloc(f->n * sizeof(*b.child));
	bool done = todo && b.child;
	const double total = f->node[0].total;
	double least = (total > 0 ? total : 1) / (DP_FLAME_WIDTH * TENTHS); /* of 0 the double is 0 */
	do {
		f->stats.narrow = deep;
		done = done && walk(&b, todo, least);
		least *= 2;
	} while (done && b.n > BOXES_MOST);
	free(todo);
	free(b.child);
	if (!done)
		free(b.box);
	*ret = done ? b.box : NULL;
	*n = b.n;
	return done;
}
