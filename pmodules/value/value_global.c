/* SPDX-License-Identifier: MIT */
/* Variables with static storage: globals, statics, thread-locals; by name or pattern. */
#include "pmodules/value/value_global.h"
#include "base/path.h"
#include "pmodules/value/eval.h"
#include "probes/debug/debug_names.h"
#include "probes/dwarf/type.h"
#include "probes/elf/demangle.h"
#include "probes/image/module.h"

#include <dwarf.h>
#include <stdlib.h>
#include <string.h>

enum { DEPTH_MAX = 32, STEPS_MAX = 1 << 22, STEPS_LOOK = 1 << 10 };

struct walk {
	struct dp_debug_ctx *w;
	const struct dp_global_query *q;
	struct dp_global g;
	unsigned steps;
	bool stop;
	dp_global_each each;
	void *data;
};

static bool uses_tls(const Dwarf_Op *ops, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (ops[i].atom == DW_OP_form_tls_address || ops[i].atom == DW_OP_GNU_push_tls_address)
			return true;
	return false;
}

/* A variable without a location was optimized out or is only declared. */
static bool has_place(struct walk *w, Dwarf_Die *die)
{
	struct dp_global *g = &w->g;
	if (!dwarf_attr_integrate(die, DW_AT_location, &g->attr) || dwarf_getlocation(&g->attr, &g->ops, &g->n) || !g->n)
		return false;
	g->is_tls = uses_tls(g->ops, g->n);
	return true;
}

static void offer(struct walk *w, Dwarf_Die *die, const char *scope)
{
	struct dp_global *g = &w->g;
	Dwarf_Attribute attr;
	char text[512];
	const char *name = dp_die_name(die), *linkage = NULL;
	if (!name || dwarf_hasattr(die, DW_AT_declaration) || !has_place(w, die)) /* a definition may refer to a declaration */
		return;
	if (dwarf_attr_integrate(die, DW_AT_linkage_name, &attr))
		linkage = dwarf_formstring(&attr);
	char *readable = linkage ? dp_demangle_whole(linkage, false) : NULL;
	snprintf(text, sizeof(text), "%s%s%s", scope, *scope ? "::" : "", name);
	g->die = *die;
	g->name = name;
	g->qualified = readable ? readable : text;
	if (!w->each(w->w, g, w->data))
		w->stop = true;
	free(readable);
}

static bool is_block(int tag)
{
	return tag == DW_TAG_lexical_block || tag == DW_TAG_try_block || tag == DW_TAG_catch_block;
}

static void descend(struct walk *w, Dwarf_Die *parent, const char *scope, unsigned depth)
{
	Dwarf_Die die;
	char inner[256];
	if (depth > DEPTH_MAX || dwarf_child(parent, &die))
		return;
	do {
		const int tag = dwarf_tag(&die);
		const bool function = tag == DW_TAG_subprogram && w->q->statics;
		if (w->steps++ > STEPS_MAX || w->stop || (w->steps % STEPS_LOOK == 0 && dp_debug_ctx_is_over(w->w)))
			return;
		if (tag == DW_TAG_variable) {
			offer(w, &die, scope);
		} else if (tag == DW_TAG_namespace || function) {
			const char *own = dp_die_name(&die);
			snprintf(inner, sizeof(inner), "%.100s%s%.100s", scope, *scope && own ? "::" : "", own ? own : "");
			descend(w, &die, inner, depth + 1);
		} else if (is_block(tag)) {
			descend(w, &die, scope, depth + 1);
		}
	} while (!dwarf_siblingof(&die, &die));
}

static bool fits(const char *path, const char *wanted)
{
	return !wanted || !*wanted || (path && dp_path_ends(path, wanted));
}

static void in_module(struct walk *w, struct dp_module *m)
{
	struct dp_debug_units units;
	struct dp_debug_unit *one;
	w->g = (struct dp_global){.module = m, .debug = dp_debug_ctx_debug(w->w, m)};
	if (!w->g.debug || !dp_debug_units_load(w->g.debug, &units))
		return;
	/* A definition may refer to a declaration in another unit for its name. */
	dp_debug_units_mark_name(&units,
	                         units.refers || !w->q->name ? NULL : dp_debug_word_of(w->q->name, &(struct dp_debug_word){{0}}));
	while (!w->stop && !dp_debug_ctx_is_over(w->w) && (one = dp_debug_units_next(&units, false))) {
		w->steps = 0;
		w->g.unit = dwarf_diename(&one->die);
		if (fits(w->g.unit, w->q->unit))
			descend(w, &one->die, "", 0);
	}
	dp_debug_units_fini(&units);
}

void dp_globals_each(struct dp_debug_ctx *w, const struct dp_global_query *q, dp_global_each each, void *data)
{
	struct walk walk = {.w = w, .q = q, .each = each, .data = data};
	for (size_t i = 0; i < dp_image_nmodules(w->image) && !walk.stop && !dp_debug_ctx_is_over(w); i++) {
		struct dp_module *m = dp_image_module(w->image, i);
		if (m->elf && fits(dp_module_path(m), q->object) && (!q->wanted || q->wanted(dp_module_path(m), q->data)))
			in_module(&walk, m);
	}
}

struct dp_value *dp_global_value(struct dp_debug_ctx *w, const struct dp_global *g)
{
	Dwarf_Die die = g->die;
	struct dp_value *v = dp_value_create(w, dp_ctype_of(dp_debug_ctx_types(w, g->module), &die), NULL);
	if (!v)
		return NULL;
	const struct dp_eval e = {.w = w, .module = g->module, .debug = g->debug, .attr = (Dwarf_Attribute *)&g->attr};
	v->name = dp_arena_copy(&w->arena, g->qualified, strlen(g->qualified));
	v->module = g->module;
	v->unit = g->unit ? g->unit : "";
	dp_eval_place(&e, g->ops, g->n, v);
	return v;
}

/* ---- lookup by name ------------------------------------------------------------------------------------------------------- */

struct one {
	const char *name;
	struct dp_value *found;
};

static bool take(struct dp_debug_ctx *w, const struct dp_global *g, void *data)
{
	struct one *o = data;
	if (strcmp(g->name, o->name) != 0 && strcmp(g->qualified, o->name) != 0)
		return true;
	o->found = dp_global_value(w, g);
	return false;
}

size_t dp_global_unit_length(const char *name)
{
	const char *sep = strstr(name, "::");
	return sep && memchr(name, '.', (size_t)(sep - name)) ? (size_t)(sep - name) : 0;
}

struct dp_value *dp_value_global(struct dp_debug_ctx *w, const char *name, const char *object, const char *unit)
{
	const size_t n = dp_global_unit_length(name);
	const char *file = n ? dp_arena_copy(&w->arena, name, n) : NULL;
	struct one o = {.name = n ? name + n + 2 : name};
	struct dp_global_query q = {.name = o.name, .object = object, .unit = file ? file : unit};
	dp_globals_each(w, &q, take, &o);
	q.statics = true;
	if (!o.found)
		dp_globals_each(w, &q, take, &o);
	return o.found;
}
