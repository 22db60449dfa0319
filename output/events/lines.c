/* SPDX-License-Identifier: MIT */
#include "output/events/lines.h"

#include "output/format/put.h"

#include <stdlib.h>
#include <string.h>

#define MANY ((size_t)64 << 10) /* bytes of lines that are passed on together: a pipe's size */

/* ---- lines ---- */

void dp_lines_init(struct dp_lines *l, FILE *to)
{
	*l = (struct dp_lines){.to = to};
}

void dp_lines_fini(struct dp_lines *l)
{
	dp_buf_fini(&l->b);
}

void dp_lines_pass_on(struct dp_lines *l, struct dp_writer *w)
{
	if (l->whole && fwrite(l->b.data, 1, l->whole, l->to) != l->whole)
		dp_writer_fail(w, dp_error_sys(DP_TAG_OUTPUT, "cannot write the events"));
	l->b.len = l->whole = 0;
}

void dp_lines_end(struct dp_lines *l, struct dp_writer *w)
{
	if (l->b.failed)
		dp_writer_fail(w, dp_error_nomem());
	else
		l->whole = l->b.len;
	if (l->b.failed || l->whole >= MANY)
		dp_lines_pass_on(l, w);
}

void dp_lines_flush(struct dp_lines *l, struct dp_writer *w)
{
	dp_lines_pass_on(l, w);
	if (fflush(l->to))
		dp_writer_fail(w, dp_error_sys(DP_TAG_OUTPUT, "cannot write the events"));
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
