/* SPDX-License-Identifier: MIT */
#include "base/buf.h"
#include "base/cleanup.h"
#include "output/format/put.h"
#include "output/tree/call_tree.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

struct shown {
	const struct dp_call_node *node;
	size_t n, nfunctions;
	const struct dp_call_function *function;
	const struct dp_call_tree_how *how;
	struct dp_buf b;
};

static struct shown begin(const struct dp_call_tree *t)
{
	struct shown s = {0};
	s.n = dp_call_tree_nodes(t, &s.node, &s.function, &s.nfunctions);
	dp_buf_init(&s.b);
	return s;
}

static void end(struct shown *s, FILE *to)
{
	fwrite(s->b.data, 1, s->b.len, to);
	dp_buf_fini(&s->b);
}

static uint64_t self_of(uint64_t total, uint64_t below)
{
	return total > below ? total - below : 0;
}

static const char *name_of(const struct shown *s, size_t function)
{
	return s->function[function].name;
}

/* The children of a node, those with the most time first. */
static size_t children_of(const struct shown *s, uint32_t node, uint32_t **ret)
{
	size_t n = 0;
	for (uint32_t i = s->node[node].child; i; i = s->node[i].next)
		n++;
	uint32_t *child = *ret = calloc(n + 1, sizeof(*child));
	if (!child)
		return 0;
	n = 0;
	for (uint32_t i = s->node[node].child; i; i = s->node[i].next) {
		size_t k = n++;
		for (; k && s->node[child[k - 1]].total < s->node[i].total; k--)
			child[k] = child[k - 1];
		child[k] = i;
	}
	return n;
}

typedef void each_node(struct shown *s, uint32_t node, unsigned depth);

static void walk(struct shown *s, uint32_t node, unsigned depth, each_node *each)
{
	dp_auto_free uint32_t *child = NULL;
	const size_t n = children_of(s, node, &child);
	for (size_t i = 0; i < n; i++) {
		each(s, child[i], depth);
		walk(s, child[i], depth + 1, each);
	}
}

/* ---- text ------------------------------------------------------------------------------------------------------------------ */

static void put_cell(struct dp_buf *b, uint64_t ns)
{
	struct dp_buf cell;
	dp_buf_init(&cell);
	dp_put_duration(&cell, ns);
	dp_buf_printf(b, "%11s", dp_buf_str(&cell));
	dp_buf_fini(&cell);
}

static void put_row(struct shown *s, uint64_t total, uint64_t self, uint64_t calls)
{
	put_cell(&s->b, total);
	put_cell(&s->b, self);
	dp_buf_printf(&s->b, "%11" PRIu64 "  ", calls);
}

static void text_node(struct shown *s, uint32_t node, unsigned depth)
{
	const struct dp_call_node *x = &s->node[node];
	put_row(s, x->total, self_of(x->total, x->below), x->calls);
	dp_buf_printf(&s->b, "%*s", (int)(2 * depth), "");
	dp_put_visible(&s->b, name_of(s, x->function), strlen(name_of(s, x->function)), 0);
	dp_put_str(&s->b, "\n");
}

struct row {
	size_t function;
	uint64_t total, self, calls;
};

/* The time of a recursive call is in that of the outer one already. */
static bool is_recursive(const struct shown *s, uint32_t node)
{
	for (uint32_t i = s->node[node].parent; i; i = s->node[i].parent)
		if (s->node[i].function == s->node[node].function)
			return true;
	return false;
}

static int by_self(const void *a, const void *b)
{
	const struct row *x = a, *y = b;
	return (x->self < y->self) - (x->self > y->self);
}

/* Owned by the caller; NULL: no memory. */
static struct row *functions_of(const struct shown *s, size_t *n)
{
	struct row *row = calloc(s->nfunctions + 1, sizeof(*row));
	*n = 0;
	for (size_t i = 0; row && i < s->nfunctions; i++)
		row[i].function = i;
	for (size_t i = 1; row && i < s->n; i++) {
		struct row *r = &row[s->node[i].function];
		r->total += is_recursive(s, (uint32_t)i) ? 0 : s->node[i].total;
		r->self += self_of(s->node[i].total, s->node[i].below);
		r->calls += s->node[i].calls;
	}
	for (size_t i = 0; row && i < s->nfunctions; i++)
		if (row[i].calls)
			row[(*n)++] = row[i];
	if (*n)
		qsort(row, *n, sizeof(*row), by_self);
	return row;
}

void dp_call_tree_text(const struct dp_call_tree *t, const struct dp_call_tree_how *how, FILE *to)
{
	struct shown s = begin(t);
	size_t n = 0;
	dp_auto_free struct row *row = how->by_function ? functions_of(&s, &n) : NULL;
	dp_buf_printf(&s.b, "in %.3f s\n", how->seconds);
	dp_put_str(&s.b, "      total       self      calls  function\n");
	for (size_t i = 0; i < n && (!how->top || i < how->top); i++) {
		const char *name = name_of(&s, row[i].function);
		put_row(&s, row[i].total, row[i].self, row[i].calls);
		dp_put_visible(&s.b, name, strlen(name), 0);
		dp_put_str(&s.b, "\n");
	}
	if (!how->by_function)
		walk(&s, 0, 0, text_node);
	end(&s, to);
}

/* ---- JSON, folded ---------------------------------------------------------------------------------------------------------- */

static void put_path(struct shown *s, uint32_t node, const char *between, bool json)
{
	const struct dp_call_node *x = &s->node[node];
	if (x->parent) {
		put_path(s, x->parent, between, json);
		dp_put_str(&s->b, between);
	}
	if (json)
		dp_put_json_str(&s->b, name_of(s, x->function));
	else
		dp_put_visible(&s->b, name_of(s, x->function), strlen(name_of(s, x->function)), 0);
}

static void put_times(struct shown *s, uint64_t calls, uint64_t total, uint64_t self)
{
	dp_buf_printf(&s->b, ",\"calls\":%" PRIu64 ",\"total_ns\":%" PRIu64 ",\"self_ns\":%" PRIu64 "}\n", calls, total, self);
}

static void put_begin(struct shown *s)
{
	dp_buf_printf(&s->b, "{\"type\":\"calls\",\"final\":%s,\"seconds\":", s->how->final ? "true" : "false");
	dp_put_double(&s->b, s->how->seconds, 8);
	dp_put_str(&s->b, ",");
}

static void json_node(struct shown *s, uint32_t node, unsigned depth)
{
	const struct dp_call_node *x = &s->node[node];
	(void)depth;
	put_begin(s);
	dp_put_str(&s->b, "\"path\":[");
	put_path(s, node, ",", true);
	dp_put_str(&s->b, "]");
	put_times(s, x->calls, x->total, self_of(x->total, x->below));
}

void dp_call_tree_json(const struct dp_call_tree *t, const struct dp_call_tree_how *how, FILE *to)
{
	struct shown s = begin(t);
	size_t n = 0;
	dp_auto_free struct row *row = how->by_function ? functions_of(&s, &n) : NULL;
	s.how = how;
	for (size_t i = 0; i < n; i++) {
		put_begin(&s);
		dp_put_str(&s.b, "\"function\":");
		dp_put_json_str(&s.b, name_of(&s, row[i].function));
		put_times(&s, row[i].calls, row[i].total, row[i].self);
	}
	if (!how->by_function)
		walk(&s, 0, 0, json_node);
	end(&s, to);
}

static void folded_node(struct shown *s, uint32_t node, unsigned depth)
{
	const struct dp_call_node *x = &s->node[node];
	const uint64_t self = self_of(x->total, x->below);
	(void)depth;
	if (!self)
		return;
	put_path(s, node, ";", false);
	dp_buf_printf(&s->b, " %" PRIu64 "\n", self);
}

void dp_call_tree_folded(const struct dp_call_tree *t, FILE *to)
{
	struct shown s = begin(t);
	walk(&s, 0, 0, folded_node);
	end(&s, to);
}
