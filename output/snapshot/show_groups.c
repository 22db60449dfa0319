/* SPDX-License-Identifier: MIT */
/* Threads with the same stack form a group: most threads of a big program belong to pools of workers. */
#include "output/snapshot/show_internal.h"

#include <stdlib.h>
#include <string.h>

static bool same_text(const char *a, const char *b)
{
	return a && b ? !strcmp(a, b) : a == b;
}

static bool same_frame(const struct dp_snap_frame *a, const struct dp_snap_frame *b)
{
	return same_text(a->symbol, b->symbol) && (a->symbol || a->pc == b->pc) && same_text(a->object, b->object) &&
	       same_text(a->path, b->path) && a->line == b->line && a->is_inline == b->is_inline && a->is_tail == b->is_tail;
}

/* A thread with notes, a fault or no frames stays alone. */
static bool is_alone(const struct dp_snap_thread *t)
{
	bool noted = t->is_fault || t->notes || !t->frames;
	for (const struct dp_snap_frame *f = t->frames; f && !noted; f = f->next)
		noted = f->notes || f->siginfo || f->is_fault;
	return noted;
}

static bool same_stack(const struct dp_snap_thread *a, const struct dp_snap_thread *b)
{
	const struct dp_snap_frame *f = a->frames, *g = b->frames;
	for (; f && g; f = f->next, g = g->next)
		if (!same_frame(f, g))
			return false;
	return !f && !g && a->more_frames == b->more_frames;
}

static size_t hash_text(size_t h, const char *text)
{
	for (; text && *text; text++)
		h = (h ^ (unsigned char)*text) * 0x100000001b3u;
	return h * 31;
}

static size_t hash_stack(const struct dp_snap_thread *t)
{
	size_t h = 0xcbf29ce484222325u;
	for (const struct dp_snap_frame *f = t->frames; f; f = f->next) {
		h = hash_text(hash_text(hash_text(h, f->symbol), f->object), f->path) ^ (size_t)f->line;
		h = f->symbol ? h : (h ^ f->pc) * 0x100000001b3u;
	}
	return h;
}

struct keyed {
	const struct dp_snap_thread *thread;
	size_t hash, order;
};

static int by_hash(const void *a, const void *b)
{
	const struct keyed *p = a, *q = b;
	if (p->hash != q->hash)
		return p->hash < q->hash ? -1 : 1;
	return (p->order > q->order) - (p->order < q->order);
}

/* Those that faulted or hit come first, then those with annotations, the main thread and those with names of their own. */
static size_t rank_of(const struct dp_snap_thread *t)
{
	bool noted = t->notes, loud = dp_show_is_loud(t->notes);
	if (t->is_fault)
		return 0;
	for (const struct dp_snap_frame *f = t->frames; f && !loud; f = f->next) {
		noted |= f->notes != NULL;
		loud = dp_show_is_loud(f->notes);
	}
	if (loud || noted)
		return loud ? 1 : 2;
	return t->tid == t->snapshot->pid || (*t->name && strcmp(t->name, t->snapshot->comm)) ? 3 : 4;
}

static int by_order(const void *a, const void *b)
{
	const struct dp_show_group *p = a, *q = b;
	if (p->rank != q->rank)
		return p->rank < q->rank ? -1 : 1;
	return (p->hash > q->hash) - (p->hash < q->hash);
}

/* Threads with the same hash have the same stack, except for collisions made on purpose, which may be left ungrouped. */
static void split(struct keyed *key, size_t count, struct dp_show_group *group, size_t *n, const struct dp_snap_thread **member)
{
	for (size_t i = 0; i < count; i++) {
		struct dp_show_group *g = *n ? &group[*n - 1] : NULL;
		const struct dp_snap_thread *t = key[i].thread;
		member[i] = t;
		if (g && i && key[i].hash == key[i - 1].hash && !is_alone(t) && !is_alone(g->thread) &&
		    same_stack(g->thread, t)) {
			g->n++;
			continue;
		}
		group[(*n)++] = (struct dp_show_group){
		        .thread = t, .n = 1, .hash = key[i].order, .rank = rank_of(t), .member = &member[i]};
	}
}

bool dp_show_group(const struct dp_snapshot *s, struct dp_show_group **ret, size_t *n, const struct dp_snap_thread ***members)
{
	const size_t room = s->nthreads + 1;
	struct keyed *key = calloc(room, sizeof(*key));
	size_t count = 0;
	*n = 0;
	*ret = calloc(room, sizeof(**ret));
	*members = calloc(room, sizeof(**members));
	if (!key || !*ret || !*members) {
		free(key);
		return false;
	}
	for (const struct dp_snap_thread *t = s->threads; t && count < s->nthreads; t = t->next, count++)
		key[count] = (struct keyed){
		        .thread = t, .hash = hash_stack(t) ^ (is_alone(t) ? ~count * 0x9e3779b97f4a7c15u : 0), .order = count};
	qsort(key, count, sizeof(*key), by_hash);
	split(key, count, *ret, n, *members);
	qsort(*ret, *n, sizeof(**ret), by_order);
	free(key);
	return true;
}
