/* SPDX-License-Identifier: MIT */
#include "output/calls/pairs.h"

#include "base/text_hash.h"

#include <stdlib.h>
#include <string.h>

enum { DEPTH_MOST = 16, THREADS_MOST = 65536 };

struct call_thread {
	struct {
		pid_t pid, tid;
	} key;
	struct dp_held_call *newest;
	UT_hash_handle hh;
};
struct dp_call_pairs {
	const struct dp_event_class *classes;
	size_t n;
	struct dp_call_roles *roles; /* of each class, once they are known */
	struct dp_decoder *decoder;
	struct call_thread *threads, *last;
};

struct dp_call_pairs *dp_call_pairs_create(const struct dp_event_class *classes, size_t n)
{
	struct dp_call_pairs *p = calloc(1, sizeof(*p));
	if (!p)
		return NULL;
	*p = (struct dp_call_pairs){.classes = classes, .n = n};
	p->roles = calloc(n + 1, sizeof(*p->roles));
	p->decoder = calloc(n + 1, sizeof(*p->decoder));
	return p->roles && p->decoder ? p : dp_call_pairs_destroy(p);
}

static void drop_thread(struct dp_call_pairs *p, struct call_thread *t)
{
	for (struct dp_held_call *h = t->newest, *outer; h; h = outer) {
		outer = h->outer;
		free(h);
	}
	if (p->last == t)
		p->last = NULL;
	HASH_DEL(p->threads, t);
	free(t);
}

struct dp_call_pairs *dp_call_pairs_destroy(struct dp_call_pairs *p)
{
	struct call_thread *t, *next;
	if (!p)
		return NULL;
	HASH_ITER(hh, p->threads, t, next)
	drop_thread(p, t);
	for (size_t i = 0; p->roles && i < p->n; i++)
		dp_call_roles_fini(&p->roles[i]);
	free(p->roles);
	free(p->decoder);
	free(p);
	return NULL;
}

/* ---- classes --------------------------------------------------------------------------------------------------------- */

void dp_call_pairs_renew(struct dp_call_pairs *p, unsigned i)
{
	dp_call_roles_fini(&p->roles[i]);
}

bool dp_call_pairs_takes(struct dp_call_pairs *p, unsigned class)
{
	const struct dp_event_class *c = &p->classes[class];
	if (!c->call || c->form)
		return false;
	if (!p->roles[class].of) {
		if (!dp_call_roles_make(c, &p->roles[class]))
			return false;
		dp_decoder_init(&p->decoder[class], c->fields);
	}
	return p->roles[class].whole;
}

bool dp_call_pairs_is_exit(const struct dp_call_pairs *p, unsigned class)
{
	return p->classes[class].call->exit;
}

bool dp_call_pairs_has_entry(const struct dp_call_pairs *p, unsigned class)
{
	const struct dp_call_at *exit = p->classes[class].call;
	for (size_t i = 0; i < p->n; i++)
		if (p->classes[i].call && !p->classes[i].call->exit && p->classes[i].call->nr == exit->nr)
			return true;
	return false;
}

bool dp_call_pairs_shows(const struct dp_call_pairs *p, unsigned class, const struct dp_field *field)
{
	return p->roles[class].of[field - p->classes[class].fields->field] != DP_CALL_ROLE_NONE;
}

void dp_call_pairs_see(struct dp_call_pairs *p, const struct dp_event *e, struct dp_call_seen *ret)
{
	dp_call_see(&p->classes[e->probe], &p->roles[e->probe], &p->decoder[e->probe], e, ret);
}

/* ---- threads --------------------------------------------------------------------------------------------------------- */

static struct call_thread *find(struct dp_call_pairs *p, const struct dp_event *e)
{
	struct call_thread *t = p->last, like = {.key = {e->pid, e->tid}};
	if (t && t->key.pid == e->pid && t->key.tid == e->tid)
		return t;
	HASH_FIND(hh, p->threads, &like.key, sizeof(like.key), t);
	if (t)
		p->last = t;
	return t;
}

static struct call_thread *find_or_add(struct dp_call_pairs *p, const struct dp_event *e)
{
	struct call_thread *t = find(p, e);
	if (t)
		return t;
	if (HASH_COUNT(p->threads) >= THREADS_MOST)
		drop_thread(p, p->threads);
	t = calloc(1, sizeof(*t));
	if (!t)
		return NULL;
	t->key.pid = e->pid;
	t->key.tid = e->tid;
	HASH_ADD(hh, p->threads, key, sizeof(t->key), t);
	if (!t->hh.tbl) {
		free(t);
		return NULL;
	}
	return p->last = t;
}

/* A handler that jumps out leaves its calls here: of many only the newest matter. */
static void cut(struct call_thread *t)
{
	struct dp_held_call *h = t->newest;
	for (unsigned i = 1; h && i < DEPTH_MOST; i++)
		h = h->outer;
	while (h && h->outer) {
		struct dp_held_call *oldest = h->outer;
		h->outer = oldest->outer;
		free(oldest);
	}
}

struct dp_held_call *dp_call_pairs_hold(struct dp_call_pairs *p, const struct dp_event *e, int32_t nr)
{
	struct call_thread *t = find_or_add(p, e);
	const size_t comm = e->comm ? strlen(e->comm) + 1 : 0;
	struct dp_held_call *h = t ? malloc(sizeof(*h) + e->len + comm) : NULL;
	if (!h)
		return NULL;
	uint8_t *payload = (uint8_t *)(h + 1);
	*h = (struct dp_held_call){.e = *e, .outer = t->newest, .nr = nr};
	if (e->len)
		memcpy(payload, e->payload, e->len);
	if (comm)
		memcpy(payload + e->len, e->comm, comm);
	h->e.payload = payload;
	h->e.process = NULL;
	h->e.comm = comm ? (const char *)payload + e->len : NULL;
	t->newest = h;
	cut(t);
	return h;
}

struct dp_held_call *dp_call_pairs_newest(struct dp_call_pairs *p, const struct dp_event *e)
{
	struct call_thread *t = find(p, e);
	return t ? t->newest : NULL;
}

static bool same_words(const struct dp_call_seen *a, const struct dp_call_seen *b)
{
	for (unsigned i = 0; i < DP_CALL_ARGS; i++)
		if (a->has_word[i] && b->has_word[i] && a->word[i] != b->word[i])
			return false;
	return true;
}

/* An exit at a place of many calls does not know which it was. */
static bool belongs(struct dp_call_pairs *p, const struct dp_held_call *h, const struct dp_call_seen *exit,
                    struct dp_call_seen *entry)
{
	if (p->classes[h->e.probe].call->nr != exit->nr)
		return false;
	dp_call_pairs_see(p, &h->e, entry);
	return same_words(entry, exit);
}

const struct dp_held_call *dp_call_pairs_match(struct dp_call_pairs *p, const struct dp_event *e, const struct dp_call_seen *exit,
                                               struct dp_call_seen *entry)
{
	const struct dp_held_call *h = dp_call_pairs_newest(p, e);
	while (h && !belongs(p, h, exit, entry))
		h = h->outer;
	return h;
}

struct dp_call_line dp_call_line_of(const struct dp_event *e, const struct dp_call_seen *exit, const struct dp_held_call *h,
                                    const struct dp_call_seen *entry)
{
	const bool sure = h && !h->unsure;
	const struct dp_call_line line = {
	        .entry = sure ? entry : NULL,
	        .exit = exit,
	        .nr = h ? h->nr : exit->nr,
	        .has_duration = exit->has_duration || (sure && e->ns >= h->e.ns),
	        .duration_ns = exit->has_duration ? exit->duration_ns
	                       : sure             ? e->ns - h->e.ns
	                                          : 0,
	};
	return line;
}

void dp_call_pairs_end(struct dp_call_pairs *p, const struct dp_held_call *h)
{
	struct call_thread *t = h ? find(p, &h->e) : NULL;
	for (bool last = !t; !last;) {
		struct dp_held_call *newest = t->newest;
		last = newest == h;
		t->newest = newest->outer;
		free(newest);
	}
}

void dp_call_pairs_gap(struct dp_call_pairs *p)
{
	struct call_thread *t, *next;
	HASH_ITER(hh, p->threads, t, next)
	for (struct dp_held_call *h = t->newest; h; h = h->outer)
		h->unsure = true;
}

void dp_call_pairs_each(struct dp_call_pairs *p, void (*each)(struct dp_held_call *h, void *data), void *data)
{
	struct call_thread *t, *next;
	HASH_ITER(hh, p->threads, t, next)
	if (t->newest)
		each(t->newest, data);
}
