/* SPDX-License-Identifier: MIT */
/*
 * --thread, --frame, --var select one thing in the snapshot. A path is written as in C: p->x, a.b[3], *p, (*p).x. A dot may
 * replace an arrow, because there is only one possible meaning.
 */
#include "output/snapshot/show_internal.h"
#include "probes/point/suggest.h"

#include <stdlib.h>
#include <string.h>

struct path {
	const struct dp_snapshot *s;
	const struct dp_snap_thread *thread;
	const struct dp_snap_frame *frame; /* NULL: all of the thread's, innermost first */
	const char *text, *at;
	unsigned depth;
};

enum { DEEPEST = 64 };

static struct dp_error *no(const struct path *p, const char *what)
{
	return dp_error(DP_TAG_NO_VARIABLE, "'%s': %s\n  %s\n  %*s^", p->text, what, p->text, (int)(p->at - p->text), "");
}

/* ---- names */

static size_t name_length(const char *s)
{
	size_t n = 0;
	while (s[n] && (!strchr("*.-[]()& \t", s[n]) || (s[n] == '.' && strstr(s + n, "::"))))
		n++;
	return n;
}

static bool is_name(const char *name, const char *wanted, size_t n)
{
	return strlen(name) == n && !memcmp(name, wanted, n);
}

/* The last one with that name, because inner blocks come last. */
static const struct dp_snap_variable *named(const struct dp_snap_variable *list, const char *name, size_t n)
{
	const struct dp_snap_variable *found = NULL;
	for (; list; list = list->next)
		if (is_name(list->name, name, n))
			found = list;
	return found;
}

static bool is_unit(const struct dp_snap_variable *v, const char *unit, size_t n)
{
	const char *slash = strrchr(v->unit, '/');
	return is_name(v->unit, unit, n) || (slash && is_name(slash + 1, unit, n));
}

/* file.c::name */
static const struct dp_snap_variable *named_in_unit(const struct dp_snap_variable *list, const char *name, size_t n)
{
	const char *colons = memmem(name, n, "::", 2), *last = NULL;
	for (; colons; colons = memmem(last + 2, n - (size_t)(last + 2 - name), "::", 2))
		last = colons;
	for (; last && list; list = list->next)
		if (is_name(list->name, last + 2, n - (size_t)(last + 2 - name)) && is_unit(list, name, (size_t)(last - name)))
			return list;
	return NULL;
}

static const struct dp_snap_variable *look_up(const struct path *p, const char *name, size_t n)
{
	const struct dp_snap_variable *v = NULL;
	const struct dp_snap_frame *f = p->frame ? p->frame : p->thread ? p->thread->frames : NULL;
	for (; !v && f; f = p->frame ? NULL : f->next)
		v = named(f->variables, name, n);
	if (!v && p->thread)
		v = named(p->thread->variables, name, n);
	if (!v)
		v = named(p->s->globals, name, n);
	return v ? v : named_in_unit(p->s->globals, name, n);
}

static void offer(struct dp_suggest *s, const struct dp_snap_variable *list)
{
	for (; list; list = list->next)
		if (*list->name)
			dp_suggest_offer(s, list->name, strlen(list->name));
}

static struct dp_error *unknown(const struct path *p, const char *name, size_t n, const struct dp_snap_variable *members)
{
	struct dp_suggest s;
	struct dp_buf b = {0};
	const struct dp_snap_frame *f = p->frame ? p->frame : p->thread ? p->thread->frames : NULL;
	dp_suggest_init(&s, name, n);
	offer(&s, members);
	for (; !members && f; f = p->frame ? NULL : f->next)
		offer(&s, f->variables);
	if (!members)
		offer(&s, p->s->globals);
	dp_suggest_print(&s, &b);
	struct dp_error *err = dp_error(
	        DP_TAG_NO_VARIABLE, "no %s '%.*s' %s%s", members ? "member" : "variable", (int)n, name,
	        members ? "in this value" : "in the selected frames, globals and thread-locals of the snapshot", dp_buf_str(&b));
	dp_buf_fini(&b);
	return err;
}

/* ---- steps */

static struct dp_error *parse(struct path *p, const struct dp_snap_variable **ret) DP_MUST_CHECK;

static void skip_blanks(struct path *p)
{
	p->at += strspn(p->at, " \t");
}

static const struct dp_snap_variable *target_of(const struct dp_snap_variable *v)
{
	return v->kind == DP_VAR_REFERENCE && v->children && !strcmp(v->children->name, "*") ? v->children : NULL;
}

static struct dp_error *follow(const struct path *p, const struct dp_snap_variable **v)
{
	if ((*v)->kind != DP_VAR_REFERENCE)
		return no(p, "the value before this is not a pointer");
	const struct dp_snap_variable *target = target_of(*v);
	if (!target && !(*v)->number)
		return no(p, "the value before this is a null pointer");
	if (!target)
		return no(p, "its target is not in the snapshot (take the snapshot with a greater --max-depth)");
	*v = target;
	return NULL;
}

/* A member without a name, or a base class, whose name is that of its type. */
static bool is_transparent(const struct dp_snap_variable *v)
{
	return v->kind == DP_VAR_TUPLE && (!*v->name || (v->type && !strcmp(v->name, v->type)));
}

/* Members of those count as members, unless a nearer one has the same name. */
static const struct dp_snap_variable *member_of(const struct dp_snap_variable *v, const char *name, size_t n, unsigned depth)
{
	const struct dp_snap_variable *found = NULL;
	for (const struct dp_snap_variable *c = v->children; c; c = c->next)
		if (is_name(c->name, name, n))
			return c;
	for (const struct dp_snap_variable *c = v->children; c && !found && depth < DEEPEST; c = c->next)
		if (is_transparent(c))
			found = member_of(c, name, n, depth + 1);
	return found;
}

static struct dp_error *step_member(struct path *p, const struct dp_snap_variable **v)
{
	skip_blanks(p);
	const size_t n = strcspn(p->at, ".-[]() \t");
	while ((*v)->kind == DP_VAR_REFERENCE)
		DP_TRY(follow(p, v));
	if (!n)
		return no(p, "a member name is missing");
	const struct dp_snap_variable *member = member_of(*v, p->at, n, 0);
	if (!member)
		return (*v)->children ? unknown(p, p->at, n, (*v)->children)
		                      : no(p, "the value before this has no members in the snapshot");
	*v = member;
	p->at += n;
	return NULL;
}

static struct dp_error *step_element(struct path *p, const struct dp_snap_variable **v)
{
	char *end;
	const long long wanted = strtoll(p->at, &end, 0);
	if (end == p->at || *end != ']')
		return no(p, "expected an element number and ]");
	if ((*v)->kind == DP_VAR_REFERENCE)
		DP_TRY(follow(p, v));
	const struct dp_snap_variable *c = (*v)->children;
	while (c && c->index != wanted)
		c = c->next;
	if (!c && (*v)->owner && (*v)->owner->kind == DP_VAR_REFERENCE && !wanted)
		c = *v; /* p[0] is *p */
	if (!c)
		return no(p, "no such element in the snapshot");
	*v = c;
	p->at = end + 1;
	return NULL;
}

static struct dp_error *steps(struct path *p, const struct dp_snap_variable **v)
{
	for (;;) {
		skip_blanks(p);
		if (*p->at == '.' || !strncmp(p->at, "->", 2)) {
			p->at += *p->at == '.' ? 1 : 2;
			DP_TRY(step_member(p, v));
		} else if (*p->at == '[') {
			p->at++;
			DP_TRY(step_element(p, v));
		} else
			return NULL;
	}
}

static struct dp_error *primary(struct path *p, const struct dp_snap_variable **ret)
{
	if (*p->at == '(') {
		p->at++;
		DP_TRY(parse(p, ret));
		if (*p->at != ')')
			return no(p, "missing )");
		p->at++;
		return steps(p, ret);
	}
	const size_t n = name_length(p->at);
	if (!n)
		return no(p, "expected a variable name");
	*ret = look_up(p, p->at, n);
	if (!*ret)
		return unknown(p, p->at, n, NULL);
	p->at += n;
	return steps(p, ret);
}

static struct dp_error *parse(struct path *p, const struct dp_snap_variable **ret)
{
	if (++p->depth > DEEPEST)
		return no(p, "too deeply nested");
	skip_blanks(p);
	if (*p->at != '*')
		return primary(p, ret);
	p->at++;
	DP_TRY(parse(p, ret));
	return follow(p, ret);
}

/* ---- selection */

struct dp_error *dp_show_place(const struct dp_snapshot *s, const struct dp_show_options *o, const struct dp_snap_thread **thread,
                               const struct dp_snap_frame **frame)
{
	const struct dp_snap_thread *t = s->threads;
	if (!o->thread && o->frame < 0)
		return NULL;
	while (o->thread && t && t->tid != o->thread)
		t = t->next;
	if (!t)
		return dp_error(DP_TAG_NO_VARIABLE, "no thread %d in the snapshot; dynprobe show FILE lists the threads",
		                o->thread);
	*thread = t;
	if (o->frame < 0)
		return NULL;
	for (const struct dp_snap_frame *f = t->frames; f; f = f->next)
		if (f->index == (unsigned)o->frame)
			*frame = f;
	if (!*frame)
		return dp_error(DP_TAG_NO_VARIABLE, "thread %d has no frame #%d in the snapshot: it has %u", t->tid, o->frame,
		                t->nframes);
	return NULL;
}

struct dp_error *dp_show_find(const struct dp_snapshot *s, const struct dp_show_options *o, const char *var,
                              const struct dp_snap_variable **ret)
{
	struct path p = {.s = s, .thread = s->threads, .text = var, .at = var};
	DP_TRY(dp_show_place(s, o, &p.thread, &p.frame));
	DP_TRY(parse(&p, ret));
	skip_blanks(&p);
	return *p.at ? no(&p, "expected the end of the path") : NULL;
}
