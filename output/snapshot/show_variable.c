/* SPDX-License-Identifier: MIT */
/*
 * Variables as a tree. Values that fit on the line are written as in C, {x = 1, y = 2}; others below it, one line per member. A
 * pointer's target follows its arrow.
 */
#include "output/snapshot/show_internal.h"

#include <string.h>

static bool is_aggregate(const struct dp_snap_variable *v)
{
	return v->state == DP_VAR_OK && (v->kind == DP_VAR_TUPLE || v->kind == DP_VAR_ARRAY || v->kind == DP_VAR_STRING);
}

/* A struct that is a string with a length. */
static bool is_counted(const struct dp_snap_variable *v)
{
	return v->kind == DP_VAR_TUPLE && v->is_string;
}

/* Children that a pmodule hid, or replaced by a summary, are shown only with -v. */
static bool has_children(struct dp_shower *x, const struct dp_snap_variable *v)
{
	return (v->children || v->more) && (x->o->verbose || !(v->is_hidden || v->summary || is_counted(v))) &&
	       !dp_show_is_deep(x, v);
}

/* Variables that pmodules added below another one are always shown. */
static bool has_made(const struct dp_snap_variable *v)
{
	const struct dp_snap_variable *c = v->children;
	while (c && !c->is_synthesized)
		c = c->next;
	return c != NULL;
}

static bool is_target(const struct dp_snap_variable *v)
{
	return v->owner && v->owner->kind == DP_VAR_REFERENCE && !strcmp(v->name, "*");
}

static void put_name(struct dp_shower *x, const struct dp_snap_variable *v)
{
	if (v->index >= 0 && !*v->name)
		dp_buf_printf(&x->b, "[%lld]", (long long)v->index);
	else
		dp_show_put(x, *v->name ? v->name : "<unnamed>");
}

static void put_marks(struct dp_shower *x, const struct dp_snap_variable *v)
{
	if (v->is_late)
		dp_show_colored(x, DP_SHOW_YELLOW, " [read late]");
	if (v->is_shared)
		dp_show_colored(x, DP_SHOW_YELLOW, " [shared memory]");
	if (v->state == DP_VAR_OK && v->why && !v->is_cut) {
		dp_put_str(&x->b, " [");
		dp_show_put(x, v->why);
		dp_put_str(&x->b, "]");
	}
}

static void put_value(struct dp_shower *x, const struct dp_snap_variable *v)
{
	if (x->o->color && v->state != DP_VAR_OK && !v->summary)
		dp_put_str(&x->b, DP_SHOW_RED);
	dp_show_value(&x->b, v);
	if (x->o->color && v->state != DP_VAR_OK && !v->summary)
		dp_put_str(&x->b, DP_SHOW_RESET);
}

/* ---- in one line */

/* False if it is longer than `most`, or contains something that needs its own line. */
static bool put_inline(struct dp_shower *x, const struct dp_snap_variable *v, size_t most)
{
	const bool open = is_aggregate(v) && has_children(x, v);
	if (v->notes || (!open && (has_children(x, v) || has_made(v))) || v->is_late || v->is_shared ||
	    (x->o->verbose > 1 && v->owner))
		return false;
	if (!open) {
		dp_show_value(&x->b, v);
		return x->b.len <= most;
	}
	dp_put_str(&x->b, "{");
	for (const struct dp_snap_variable *c = v->children; c; c = c->next) {
		if (*c->name || c->index < 0) {
			put_name(x, c);
			dp_put_str(&x->b, " = ");
		}
		if (!put_inline(x, c, most))
			return false;
		dp_put_str(&x->b, c->next || v->more ? ", " : "");
	}
	dp_put_str(&x->b, v->more ? "...}" : "}");
	return x->b.len <= most;
}

static bool fits(struct dp_shower *x, const struct dp_snap_variable *v, size_t line)
{
	const size_t before = x->b.len, used = dp_show_column(x, line), width = dp_show_width(x);
	if (width > used && put_inline(x, v, before + width - used))
		return true;
	x->b.len = before;
	return false;
}

/* ---- on lines below */

static void put_more(struct dp_shower *x, const struct dp_snap_variable *v, size_t indent)
{
	if (!v->more)
		return;
	dp_show_indent(x, indent);
	dp_buf_printf(&x->b, "... %llu more\n", (unsigned long long)v->more);
}

static void put_below(struct dp_shower *x, const struct dp_snap_variable *v, size_t indent);

/* ---- elements that are plain values: several per line, and repeated ones counted, as in gdb */

enum { REPEATS = 8 };

static bool is_plain(const struct dp_snap_variable *v)
{
	return !*v->name && v->index >= 0 && !v->children && !v->more && !v->notes && !v->is_late && !v->is_shared &&
	       !v->is_synthesized;
}

static bool is_packed(const struct dp_shower *x, const struct dp_snap_variable *v)
{
	const struct dp_snap_variable *c = v->children;
	while (c && is_plain(c) && (!c->next || c->next->index == c->index + 1))
		c = c->next;
	return v->kind == DP_VAR_ARRAY && !c && x->o->verbose < 2;
}

/* Formats the element and returns the last of the following elements with the same text. */
static const struct dp_snap_variable *put_run(const struct dp_snap_variable *first, struct dp_buf *to)
{
	const struct dp_snap_variable *last = first;
	struct dp_buf other = {0};
	size_t n = 1;
	to->len = 0;
	dp_show_value(to, first);
	for (const struct dp_snap_variable *c = first->next; c; c = c->next, n++) {
		other.len = 0;
		dp_show_value(&other, c);
		if (other.failed || other.len != to->len || memcmp(other.data, to->data, to->len))
			break;
		last = c;
	}
	dp_buf_fini(&other);
	if (n < REPEATS)
		return first;
	dp_buf_printf(to, " <repeats %zu times>", n);
	return last;
}

static void put_packed(struct dp_shower *x, const struct dp_snap_variable *v, size_t indent)
{
	struct dp_buf text = {0};
	size_t line = x->b.len;
	for (const struct dp_snap_variable *c = v->children, *last; c; c = last->next) {
		last = put_run(c, &text);
		const bool begins = c == v->children;
		if (!begins && dp_show_column(x, line) + 2 + text.len < dp_show_width(x))
			dp_put_str(&x->b, ", ");
		else {
			dp_put_str(&x->b, begins ? "" : ",\n");
			line = x->b.len;
			dp_show_indent(x, indent);
			dp_buf_printf(&x->b, "[%lld] = ", (long long)c->index);
		}
		dp_buf_put(&x->b, text.data, text.len);
		x->b.failed |= text.failed;
	}
	dp_put_str(&x->b, "\n");
	dp_buf_fini(&text);
}

static void put_each(struct dp_shower *x, const struct dp_snap_variable *v, size_t indent)
{
	size_t left = v->kind == DP_VAR_ARRAY && dp_show_folds(x) ? DP_SHOW_ELEMENTS : SIZE_MAX, n = 0;
	for (const struct dp_snap_variable *c = v->children; c; c = c->next)
		if (left) {
			dp_show_variable(x, c, NULL, indent);
			left--;
		} else {
			n++;
		}
	if (!n)
		return;
	x->folded = true;
	dp_show_indent(x, indent);
	dp_buf_printf(&x->b, "... %zu more here\n", n);
}

static void put_children(struct dp_shower *x, const struct dp_snap_variable *v, size_t indent)
{
	if (v->children && is_packed(x, v))
		put_packed(x, v, indent);
	else
		put_each(x, v, indent);
	put_more(x, v, indent);
}

/* Completes the line that has the name; `line` is where it begins. */
static void put_rest(struct dp_shower *x, const struct dp_snap_variable *v, size_t indent, size_t line)
{
	if (is_aggregate(v) && has_children(x, v) && !v->summary) {
		if (!v->is_late && !v->is_shared && fits(x, v, line)) {
			dp_put_str(&x->b, "\n");
			return;
		}
		x->b.len -= x->b.len && x->b.data[x->b.len - 1] == ' '; /* its members follow below */
	} else
		put_value(x, v);
	put_marks(x, v);
	put_below(x, v, indent);
}

static void put_target(struct dp_shower *x, const struct dp_snap_variable *v, size_t indent, size_t line)
{
	dp_put_str(&x->b, " -> ");
	put_rest(x, v, indent, line);
}

static void put_below(struct dp_shower *x, const struct dp_snap_variable *v, size_t indent)
{
	const struct dp_snap_variable *c = v->children;
	const bool show = has_children(x, v);
	size_t line = x->b.len;
	while (line && x->b.data[line - 1] != '\n')
		line--;
	if (show && c && !c->next && is_target(c) && !v->notes) {
		put_target(x, c, indent, line);
		put_more(x, v, indent + 2);
		return;
	}
	dp_put_str(&x->b, "\n");
	dp_show_notes(x, v->notes, indent + 2);
	if (show)
		put_children(x, v, indent + 2);
	for (; !show && c; c = c->next)
		if (c->is_synthesized)
			dp_show_variable(x, c, NULL, indent + 2);
}

static void put_where(struct dp_shower *x, const struct dp_snap_variable *v)
{
	char text[64];
	if (x->o->verbose && *v->type) {
		dp_show_put(x, v->type);
		dp_put_str(&x->b, " ");
	}
	if (x->o->verbose > 1 && v->address) {
		snprintf(text, sizeof(text), "@0x%llx ", (unsigned long long)v->address);
		dp_show_colored(x, DP_SHOW_DIM, text);
	}
}

void dp_show_variable(struct dp_shower *x, const struct dp_snap_variable *v, const char *label, size_t indent)
{
	const size_t line = x->b.len;
	dp_show_indent(x, indent);
	put_where(x, v);
	if (label)
		dp_show_put(x, label);
	else
		put_name(x, v);
	dp_put_str(&x->b, " = ");
	put_rest(x, v, indent, line);
}

void dp_show_variables(struct dp_shower *x, const struct dp_snap_variable *list, size_t indent)
{
	for (const struct dp_snap_variable *v = list; v; v = v->next) {
		dp_show_variable(x, v, NULL, indent);
		dp_show_flush(x, false);
	}
}
