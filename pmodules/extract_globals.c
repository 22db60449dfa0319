/* SPDX-License-Identifier: MIT */
/* Globals and thread-locals that were asked for. */
#include "pmodules/extract_internal.h"
#include "pmodules/value_global.h"

#include "base/cleanup.h"

#include <fnmatch.h>
#include <stdlib.h>
#include <string.h>
#include <utlist.h>

enum { GLOBALS_MAX = 65536 };

struct collect {
	struct dp_extract *x;
	struct dp_snapshot *s;
	struct dp_snap_thread *thread; /* thread-locals of it; or NULL */
	struct dp_snap_variable **list;
	const char *const *names; /* NULL: all */
	bool *found;              /* for each name; or NULL */
	struct dp_show show;
	size_t n;
};

static bool is_name(const char *wanted, const struct dp_global *g)
{
	return !fnmatch(wanted, g->name, 0) || !fnmatch(wanted, g->qualified, 0);
}

/* "file.c::name": the file as it is or its last parts, as in "dir/file.c". */
static bool is_name_of_unit(const char *wanted, const struct dp_global *g)
{
	const size_t n = dp_global_unit_length(wanted);
	const char *unit = g->unit ? g->unit : "";
	char file[256];
	if (!n || n >= sizeof(file) || !is_name(wanted + n + 2, g))
		return false;
	snprintf(file, sizeof(file), "%.*s", (int)n, wanted);
	for (const char *part = unit; part; part = strchr(part, '/'), part = part ? part + 1 : NULL)
		if (!fnmatch(file, part, 0))
			return true;
	return false;
}

/* "module!name": the module's last part. All parts may be patterns. */
static bool fits(const char *wanted, const struct dp_global *g)
{
	const char *bang = strchr(wanted, '!'), *path = dp_module_name(g->module);
	char module[256];
	if (bang) {
		snprintf(module, sizeof(module), "%.*s", (int)(bang - wanted), wanted);
		if (fnmatch(module, path, 0))
			return false;
		wanted = bang + 1;
	}
	return is_name(wanted, g) || is_name_of_unit(wanted, g);
}

static bool add(struct dp_world *w, const struct dp_global *g, void *data)
{
	struct collect *c = data;
	bool wanted = !c->names;
	if (g->is_tls != (c->thread != NULL))
		return true;
	for (size_t i = 0; c->names && c->names[i]; i++)
		if (fits(c->names[i], g)) {
			wanted = true;
			if (c->found)
				c->found[i] = true;
		}
	if (!wanted)
		return true;
	struct dp_value *value = dp_global_value(w, g);
	struct dp_snap_variable *into = value && c->n++ < GLOBALS_MAX ? dp_snapshot_variable(c->s, c->list, NULL) : NULL;
	if (!into)
		return false;
	into->place = c->thread ? DP_VAR_TLS : DP_VAR_GLOBAL;
	into->thread = c->thread;
	into->name = dp_snapshot_text(c->s, value->name);
	into->object = dp_snapshot_text(c->s, dp_module_path(g->module));
	into->unit = dp_snapshot_text(c->s, value->unit);
	c->show.budget = c->show.limits.variables;
	dp_show(&c->show, value, c->show.limits.depth, into);
	dp_show_finish(&c->show);
	return c->s->arena.total <= c->show.limits.bytes;
}

static bool is_meant(const char *path, void *data)
{
	const char *const *load = data;
	if (!load)
		return true;
	for (size_t i = 0; load[i]; i++)
		if (strstr(path, load[i]))
			return true;
	return false;
}

static int in_order(const struct dp_snap_variable *a, const struct dp_snap_variable *b)
{
	int order = strcmp(a->object, b->object);
	order = order ? order : strcmp(a->unit, b->unit);
	return order ? order : strcmp(a->name, b->name);
}

/* Where each name is written out only units that have it are looked at. */
static bool has_patterns(const char *const *names)
{
	for (size_t i = 0; names && names[i]; i++)
		if (dp_spec_is_pattern(names[i]))
			return true;
	return !names;
}

static void collect(struct collect *c)
{
	struct dp_global_query q = {.wanted = is_meant, .data = (void *)c->x->options.load, .statics = true};
	const char *const *all = c->names;
	bool *const found = c->found;
	if (has_patterns(all)) {
		dp_globals_each(c->x->w, &q, add, c);
	} else {
		for (size_t i = 0; all[i]; i++) {
			const char *one[2] = {all[i], NULL}, *bang = strchr(all[i], '!');
			c->names = one;
			c->found = found ? found + i : NULL;
			q.name = bang ? bang + 1 : all[i];
			if (dp_global_unit_length(q.name))
				q.name += dp_global_unit_length(q.name) + 2;
			dp_globals_each(c->x->w, &q, add, c);
		}
	}
	DL_SORT(*c->list, in_order);
}

static void say_missing(struct dp_snapshot *s, const char *const *names, const bool *found)
{
	for (size_t i = 0; found && names[i]; i++)
		if (!found[i])
			dp_snapshot_note(s, &s->notes, DP_NOTE_WARNING,
			                 dp_arena_printf(&s->arena, "no global or static variable is known as '%s'", names[i]));
}

void dp_extract_globals(struct dp_extract *x, struct dp_snapshot *s)
{
	struct collect c = {.x = x, .s = s, .list = &s->globals, .names = x->options.globals};
	size_t n = 0;
	if (!x->options.globals || !x->options.globals[0])
		return;
	while (x->options.globals[n])
		n++;
	dp_auto_free bool *found = c.found = calloc(n, sizeof(*found));
	dp_show_init(&c.show, x->w, &x->limits, s);
	c.show.keeps_values = !x->options.no_values;
	collect(&c);
	say_missing(s, x->options.globals, found);
	if (c.show.is_cut)
		dp_snapshot_truncated(s, "globals: all but the first %u parts of one", x->limits.variables);
}

void dp_extract_tls(struct dp_extract *x, const struct dp_still_thread *t, struct dp_snap_thread *into)
{
	struct collect c = {.x = x, .s = into->snapshot, .thread = into, .list = &into->variables, .names = x->options.tls_names};
	if (!x->options.tls && !x->options.tls_names)
		return;
	x->w->fs_base = t->regs.fs_base;
	dp_show_init(&c.show, x->w, &x->limits, into->snapshot);
	c.show.keeps_values = !x->options.no_values;
	collect(&c);
}
