/* SPDX-License-Identifier: MIT */
/* The requested globals and thread-locals. */
#include "pmodules/capture/extract_internal.h"
#include "pmodules/value/value_global.h"

#include <fnmatch.h>
#include <stdlib.h>
#include <string.h>
#include <utlist.h>

enum { GLOBALS_MAX = 65536 };

struct lookup {
	struct dp_arena *arena;
	struct dp_extract_list *list;
	const char *const *names; /* NULL: all */
	bool *found;              /* a flag for each name; or NULL */
	bool is_tls;
};

struct collect {
	struct dp_extract *x;
	struct dp_snapshot *s;
	struct dp_snap_thread *thread; /* whose thread-locals; or NULL */
	struct dp_snap_variable **list;
	struct dp_show show;
};

static bool is_name(const char *wanted, const struct dp_global *g)
{
	return !fnmatch(wanted, g->name, 0) || !fnmatch(wanted, g->qualified, 0);
}

/* "file.c::name": the unit's path or its last components ("dir/file.c"). */
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

/* "module!name": the module's file name, or the link by which it was started. Each part may be a pattern. */
static bool fits(const char *wanted, const struct dp_global *g)
{
	const char *bang = strchr(wanted, '!');
	char module[256];
	if (bang) {
		snprintf(module, sizeof(module), "%.*s", (int)(bang - wanted), wanted);
		if (fnmatch(module, dp_module_name(g->module), 0) && fnmatch(module, dp_module_shown(g->module), 0))
			return false;
		wanted = bang + 1;
	}
	return is_name(wanted, g) || is_name_of_unit(wanted, g);
}

/* False: stop. */
static bool keep(struct lookup *l, const struct dp_global *g)
{
	struct dp_extract_list *list = l->list;
	if (list->n == list->room) {
		const size_t room = list->room ? 2 * list->room : 64;
		struct dp_global *more = list->n < GLOBALS_MAX ? reallocarray(list->global, room, sizeof(*more)) : NULL;
		if (!more)
			return false;
		list->global = more;
		list->room = room;
	}
	struct dp_global *mine = &list->global[list->n];
	*mine = *g;
	mine->qualified = dp_arena_copy(l->arena, g->qualified, strlen(g->qualified));
	if (mine->qualified)
		list->n++;
	return mine->qualified != NULL;
}

static bool select_one(struct dp_debug_ctx *w, const struct dp_global *g, void *data)
{
	struct lookup *l = data;
	bool wanted = !l->names;
	(void)w;
	if (g->is_tls != l->is_tls)
		return true;
	for (size_t i = 0; l->names && l->names[i]; i++)
		if (fits(l->names[i], g)) {
			wanted = true;
			if (l->found)
				l->found[i] = true;
		}
	return !wanted || keep(l, g);
}

static bool add(struct collect *c, const struct dp_global *g)
{
	struct dp_value *value = dp_global_value(c->x->w, g);
	struct dp_snap_variable *into = value ? dp_snapshot_variable(c->s, c->list, NULL) : NULL;
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

/* Without patterns only the units that have the name are searched. */
static bool has_patterns(const char *const *names)
{
	for (size_t i = 0; names && names[i]; i++)
		if (dp_spec_is_pattern(names[i]))
			return true;
	return !names;
}

static void look_up(struct dp_extract *x, struct lookup *l)
{
	struct dp_global_query q = {.wanted = is_meant, .data = (void *)x->options.load, .statics = true};
	const char *const *all = l->names;
	bool *const found = l->list->found;
	l->found = found;
	if (has_patterns(all)) {
		dp_globals_each(x->w, &q, select_one, l);
	} else {
		for (size_t i = 0; all[i]; i++) {
			const char *one[2] = {all[i], NULL}, *bang = strchr(all[i], '!');
			l->names = one;
			l->found = found ? found + i : NULL;
			q.name = bang ? bang + 1 : all[i];
			if (dp_global_unit_length(q.name))
				q.name += dp_global_unit_length(q.name) + 2;
			dp_globals_each(x->w, &q, select_one, l);
		}
	}
	l->list->is_known = !dp_debug_ctx_is_over(x->w);
}

void dp_extract_list_fini(struct dp_extract_list *list)
{
	free(list->global);
	free(list->found);
	*list = (struct dp_extract_list){0};
}

static const struct dp_extract_list *known(struct dp_extract *x, bool is_tls)
{
	struct dp_extract_list *list = is_tls ? &x->thread_locals : &x->globals;
	const char *const *names = is_tls ? x->options.tls_names : x->options.globals;
	size_t n = 0;
	if (list->is_known)
		return list;
	dp_extract_list_fini(list);
	while (names && names[n])
		n++;
	list->found = n ? calloc(n, sizeof(*list->found)) : NULL;
	look_up(x, &(struct lookup){.arena = &x->w->arena, .list = list, .names = names, .is_tls = is_tls});
	return list;
}

static void collect(struct collect *c, const struct dp_extract_list *list)
{
	for (size_t i = 0; i < list->n && add(c, &list->global[i]); i++)
		;
	DL_SORT(*c->list, in_order);
}

static void say_missing(struct dp_snapshot *s, const char *const *names, const bool *found)
{
	for (size_t i = 0; found && names[i]; i++)
		if (!found[i])
			dp_snapshot_note(s, &s->notes, DP_NOTE_WARNING,
			                 dp_arena_printf(&s->arena, "there is no global or static variable '%s'", names[i]));
}

void dp_extract_globals(struct dp_extract *x, struct dp_snapshot *s)
{
	struct collect c = {.x = x, .s = s, .list = &s->globals};
	if (!x->options.globals || !x->options.globals[0])
		return;
	dp_show_init(&c.show, x->w, &x->limits, s);
	c.show.keeps_values = !x->options.no_values;
	const struct dp_extract_list *list = known(x, false);
	collect(&c, list);
	say_missing(s, x->options.globals, list->found);
	if (c.show.is_cut)
		dp_snapshot_truncated(s, "globals: a variable has more than %u parts", x->limits.variables);
}

void dp_extract_tls(struct dp_extract *x, const struct dp_stopped_thread *t, struct dp_snap_thread *into)
{
	struct collect c = {.x = x, .s = into->snapshot, .thread = into, .list = &into->variables};
	if (!x->options.tls && !x->options.tls_names)
		return;
	x->w->fs_base = t->regs.fs_base;
	dp_show_init(&c.show, x->w, &x->limits, into->snapshot);
	c.show.keeps_values = !x->options.no_values;
	collect(&c, known(x, true));
}
