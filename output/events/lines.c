/* SPDX-License-Identifier: MIT */
#include "output/events/lines.h"

#include "output/format/put.h"

#include <stdlib.h>
#include <string.h>

#define MOST       ((size_t)16 << 20)   /* bytes of lines that wait for source lines */
#define MANY       ((size_t)64 << 10)   /* bytes of lines that are passed on together: a pipe's size */

/* ---- lines ---- */

bool dp_lines_init(struct dp_lines *l, FILE *to, bool readable, dp_put_frame_fn put)
{
	*l = (struct dp_lines){.to = to, .put = put, .known = dp_known_frames_create(readable)};
	return l->known;
}

void dp_lines_fini(struct dp_lines *l)
{
	dp_buf_fini(&l->b);
	dp_buf_fini(&l->filled);
	dp_known_frames_destroy(l->known);
	free(l->hole);
}

void dp_lines_begin_backtrace(struct dp_lines *l)
{
	l->number = 0;
}

static bool add_hole(struct dp_lines *l, const struct dp_known_frame *frame)
{
	if (l->nholes == l->capacity) {
		const size_t capacity = l->capacity ? 2 * l->capacity : 64;
		struct dp_hole *grown = reallocarray(l->hole, capacity, sizeof(*grown));
		if (!grown)
			return false;
		l->hole = grown;
		l->capacity = capacity;
	}
	l->hole[l->nholes++] = (struct dp_hole){l->b.len, l->whole, l->number++, frame};
	return true;
}

/* The numbers of later frames depend on what is missing in front of them, so these wait, too. */
void dp_lines_put_frame(struct dp_lines *l, const struct dp_known_frame *frame)
{
	const bool waits = l->nholes && l->hole[l->nholes - 1].event == l->whole;
	if (!waits && dp_source_is_known(frame->asked))
		l->put(&l->b, frame, &l->number);
	else
		l->b.failed |= !add_hole(l, frame);
}

static void write_bytes(struct dp_lines *l, struct dp_writer *w, const struct dp_buf *b, size_t n)
{
	if (b->failed)
		dp_writer_fail(w, dp_error_nomem());
	else if (n && fwrite(b->data, 1, n, l->to) != n)
		dp_writer_fail(w, dp_error_sys(DP_TAG_OUTPUT, "cannot write the events"));
}

/* The bytes up to `end`, with the first `n` holes filled. */
static void write_filled(struct dp_lines *l, struct dp_writer *w, size_t n, size_t end)
{
	unsigned number = 0;
	size_t from = 0;
	l->filled.len = 0;
	for (size_t i = 0; i < n; i++) {
		const struct dp_hole *h = &l->hole[i];
		dp_buf_put(&l->filled, l->b.data + from, h->at - from);
		from = h->at;
		if (!i || h->number != h[-1].number + 1 || h->event != h[-1].event)
			number = h->number;
		l->put(&l->filled, h->frame, &number);
	}
	dp_buf_put(&l->filled, l->b.data + from, end - from);
	write_bytes(l, w, &l->filled, l->filled.len);
}

static void drop(struct dp_lines *l, size_t n, size_t end)
{
	memmove(l->b.data, l->b.data + end, l->whole - end);
	l->b.len = l->whole -= end;
	l->nholes -= n;
	memmove(l->hole, l->hole + n, l->nholes * sizeof(*l->hole));
	for (size_t i = 0; i < l->nholes; i++) {
		l->hole[i].at -= end;
		l->hole[i].event -= end;
	}
}

/* `all`: what is not known stays away. */
static void pass_on(struct dp_lines *l, struct dp_writer *w, bool all)
{
	size_t n = 0, end = l->whole;
	while (n < l->nholes && (all || dp_source_is_known(l->hole[n].frame->asked)))
		n++;
	if (n < l->nholes) {
		end = l->hole[n].event;
		while (n && l->hole[n - 1].event == end)
			n--;
	}
	if (n)
		write_filled(l, w, n, end);
	else
		write_bytes(l, w, &l->b, end);
	if (l->nholes)
		drop(l, n, end);
	else
		l->b.len = l->whole = 0;
	if (!l->nholes && dp_known_frames_many(l->known))
		dp_known_frames_forget(l->known);
}

void dp_lines_pass_on(struct dp_lines *l, struct dp_writer *w)
{
	const bool many = l->nholes && l->whole >= MOST;
	if (many && w->patient)
		dp_source_lines_finish(w->sources);
	pass_on(l, w, many);
}

void dp_lines_end(struct dp_lines *l, struct dp_writer *w)
{
	if (l->b.failed)
		dp_writer_fail(w, dp_error_nomem());
	else
		l->whole = l->b.len;
	if (l->b.failed)
		l->nholes = l->b.len = l->whole = 0;
	else if (l->whole >= MANY && (!l->nholes || l->whole >= MOST || dp_source_is_known(l->hole->frame->asked)))
		dp_lines_pass_on(l, w);
}

void dp_lines_flush(struct dp_lines *l, struct dp_writer *w)
{
	dp_lines_pass_on(l, w);
	if (fflush(l->to))
		dp_writer_fail(w, dp_error_sys(DP_TAG_OUTPUT, "cannot write the events"));
}

void dp_lines_finish(struct dp_lines *l, struct dp_writer *w)
{
	if (!l->nholes || w->error)
		return;
	dp_source_lines_finish(w->sources);
	pass_on(l, w, true);
	dp_lines_flush(l, w);
}

/* ---- pieces ---- */

bool dp_pieces_begin(struct dp_pieces *p, size_t n)
{
	dp_pieces_fini(p);
	p->end = calloc(n, sizeof(*p->end));
	return p->end;
}

void dp_pieces_end(struct dp_pieces *p)
{
	p->end[p->n++] = p->text.len;
	dp_buf_reserve(&p->text, DP_BUF_BLOCK);
}

void dp_pieces_fini(struct dp_pieces *p)
{
	dp_buf_fini(&p->text);
	free(p->end);
	*p = (struct dp_pieces){0};
}

/* ---- heads ---- */

static bool is_of(const struct dp_head *h, const struct dp_event *e, const char *comm)
{
	return h->tid == e->tid && h->probe == e->probe && h->pid == e->pid && h->inner_pid == e->inner_pid &&
	       h->inner_tid == e->inner_tid && h->text.len && !strcmp(h->comm, comm);
}

static struct dp_head *head_at(struct dp_heads *h, const struct dp_event *e)
{
	const uint32_t key = (uint32_t)e->tid ^ (uint32_t)e->pid << 7 ^ e->probe * UINT32_C(0x9e3779b1);
	return &h->item[(key ^ key >> 16) % DP_HEADS];
}

/* In the place of another one. */
static void make_head(struct dp_head *h, const struct dp_event *e, dp_put_head_fn put, const void *data)
{
	h->text.len = 0;
	put(&h->text, e, data);
	dp_buf_reserve(&h->text, DP_BUF_BLOCK);
	h->probe = e->probe;
	h->pid = e->pid;
	h->tid = e->tid;
	h->inner_pid = e->inner_pid;
	h->inner_tid = e->inner_tid;
}

void dp_heads_put(struct dp_heads *heads, const struct dp_event *e, dp_put_head_fn put, const void *data, struct dp_buf *to)
{
	const char *comm = e->comm ? e->comm : "";
	struct dp_head *h = head_at(heads, e);
	if (!is_of(h, e, comm)) {
		const size_t n = strlen(comm);
		make_head(h, e, put, data);
		h->comm[0] = '\0';
		if (n < sizeof(h->comm))
			memcpy(h->comm, comm, n + 1);
		else
			h->tid = -1; /* nobody's */
	}
	if (h->text.failed)
		to->failed = true;
	else
		dp_buf_put_blocks(to, h->text.data, h->text.len);
}

void dp_heads_clear(struct dp_heads *heads)
{
	for (size_t i = 0; i < DP_HEADS; i++)
		heads->item[i].text.len = 0;
}

void dp_heads_fini(struct dp_heads *heads)
{
	for (size_t i = 0; i < DP_HEADS; i++)
		dp_buf_fini(&heads->item[i].text);
}

/* ---- stamps ---- */

static bool is_same_second(const struct dp_stamp *s, const uint64_t *ns)
{
	for (unsigned i = 0; i < s->n; i++)
		if (ns[i] - s->second[i] >= DP_NS_PER_SECOND)
			return false;
	return s->n;
}

bool dp_stamp_put(struct dp_stamp *s, const uint64_t *ns, struct dp_buf *to)
{
	const size_t start = to->len;
	if (!is_same_second(s, ns))
		return false;
	dp_buf_put(to, s->text.data, s->text.len);
	to->failed |= s->text.failed;
	for (unsigned i = 0; i < s->n && !to->failed; i++)
		dp_format_nanoseconds(to->data + start + s->at[i], (uint32_t)(ns[i] - s->second[i]));
	return true;
}

void dp_stamp_clear(struct dp_stamp *s)
{
	s->text.len = s->n = 0;
}

void dp_stamp_add(struct dp_stamp *s, uint64_t ns)
{
	s->second[s->n] = ns / DP_NS_PER_SECOND * DP_NS_PER_SECOND;
	s->at[s->n++] = s->text.len;
	dp_put_str(&s->text, "000000000");
}

void dp_stamp_fini(struct dp_stamp *s)
{
	dp_buf_fini(&s->text);
}
