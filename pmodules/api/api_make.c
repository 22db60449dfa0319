/* SPDX-License-Identifier: MIT */
/*
 * pmodule.h: variables that modules make, and setters. On an extracted variable, a setter changes what is shown (`summary`),
 * never what was read.
 */
#include "pmodules/host/host_state.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#define DEPTH_MAX    64u   /* later walks of the tree are recursive */
#define CHILDREN_MAX 4096u /* of one owner: bounds loops over damaged lists */

/* The base type: "const struct crash *[4]" gives "crash". */
static const char *base_of(struct dp_snapshot *s, const char *type)
{
	static const char *const words[] = {"const ", "volatile ", "struct ", "union ", "enum ",
	                                    "class ", "struct(",   "union(",  "enum(",  "class("};
	for (size_t i = 0; i < sizeof(words) / sizeof(*words);) {
		const size_t n = strlen(words[i]);
		const bool is = !strncmp(type, words[i], n);
		type += is ? n : 0;
		i = is ? 0 : i + 1;
	}
	size_t n = strlen(type);
	while (n && strchr(" *&[]0123456789)", type[n - 1]) && (strchr(" *&)", type[n - 1]) || memchr(type, '[', n)))
		n--;
	return n ? dp_arena_copy(&s->arena, type, n) : "";
}

static bool is_frameless(const struct dp_snap_variable *owner)
{
	while (owner->owner)
		owner = owner->owner;
	return owner->place == DP_VAR_GLOBAL || owner->place == DP_VAR_TLS;
}

static bool is_full(const struct dp_snap_variable *owner)
{
	const struct dp_snap_variable *v;
	unsigned n = 0;
	for (v = owner->children; v && n < CHILDREN_MAX; v = v->next)
		n++;
	return n == CHILDREN_MAX;
}

static struct dp_snap_variable *make(struct dp_host *h, const char *type, const char *name, struct dp_snap_variable *owner)
{
	struct dp_snapshot *s = h->snapshot;
	if (!dp_host_may_add(h, sizeof(struct dp_snap_variable) + strlen(type) + strlen(name)))
		return NULL;
	struct dp_snap_variable *alone = NULL, *v = dp_snapshot_variable(s, &alone, owner);
	if (!v)
		return NULL;
	v->prev = v->next = NULL;
	v->is_synthesized = true;
	v->module = dp_api_module_id();
	v->type = dp_snapshot_text(s, type);
	v->base_type = base_of(s, type);
	v->name = dp_snapshot_text(s, name);
	if (!v->type || !v->base_type || !v->name)
		return NULL;
	return v;
}

/* A child of a global is added at once, since there is no frame to add it to later. */
ptrace_variable_t *pmodule_variable_create(const char *type, const char *name, uint64_t addr, int64_t offset,
                                           ptrace_variable_t *owner)
{
	struct dp_host *h = dp_host_current();
	struct dp_snap_variable *above = dp_api_variable(owner);
	if (!h || !h->snapshot || (owner && (!above || pmodule_variable_depth(owner) >= DEPTH_MAX)))
		return NULL;
	const bool at_once = above && is_frameless(above) && !dp_host_is_loose(h, above);
	if (at_once && is_full(above)) {
		dp_snapshot_truncated(h->snapshot, "children that pmodules add to '%s'", above->name);
		return NULL;
	}
	struct dp_snap_variable *v = make(h, type ? type : "", name ? name : "", above);
	if (!v)
		return NULL;
	v->address = addr;
	v->index = name && offset < 0 ? -1 : offset;
	if (at_once)
		DL_APPEND(above->children, v);
	else if (!dp_host_loosen(h, v))
		return NULL;
	return dp_out_variable(v);
}

ptrace_variable_t *pmodule_ptrace_variable_create(ptrace_variable_t *owner, unsigned depth, int64_t index)
{
	(void)depth; /* always its owner's depth plus one */
	return pmodule_variable_create("", index < 0 ? "" : NULL, 0, index, owner);
}

/* ---- adding ------------------------------------------------------------------------------------------------------------- */

static void belong(struct dp_snap_variable *v, struct dp_snap_frame *f)
{
	struct dp_snap_variable *child;
	v->frame = f;
	v->thread = f->thread;
	DL_FOREACH(v->children, child)
	belong(child, f);
}

static bool may_hang_below(const struct dp_host *h, const struct dp_snap_variable *owner, const struct dp_snap_frame *f)
{
	return (owner->frame == f || dp_host_is_loose(h, owner)) && !is_full(owner);
}

bool pmodule_frame_add_variable(ptrace_frame_t *frame, ptrace_variable_t *variable, bool insert_after)
{
	struct dp_host *h = dp_host_current();
	struct dp_snap_frame *f = dp_api_frame(frame);
	struct dp_snap_variable *v = dp_api_variable(variable);
	if (!f || !v || !dp_host_is_loose(h, v))
		return false;
	const bool below = insert_after && v->owner;
	if (below && !may_hang_below(h, v->owner, f))
		return false;
	dp_host_tighten(h, v);
	if (below)
		DL_APPEND(v->owner->children, v);
	else
		DL_APPEND(f->variables, v);
	if (!below)
		v->place = DP_VAR_LOCAL;
	belong(v, f);
	return true;
}

/* ---- typed values ------------------------------------------------------------------------------------------------------- */

bool pmodule_variable_value(ptrace_variable_t *p, bt_variable_t *bv, bool children)
{
	struct dp_host *h = dp_host_current();
	struct dp_snap_variable *v = dp_api_variable(p);
	if (!v || !bv || !h->world || !v->is_synthesized || v->children)
		return false;
	struct dp_limits limits = h->options.limits;
	const char *name = v->name;
	if (!children)
		limits.nesting = limits.elements = limits.variables = 1;
	if (!dp_host_may_add(h, dp_value_size(dp_in_value(bv)) < 65536 ? dp_value_size(dp_in_value(bv)) : 65536))
		return false;
	dp_value_show(dp_in_value(bv), &limits, children ? 1 : 0, h->snapshot, v);
	v->value = dp_in_value(bv);
	if (v->index >= 0) /* an element keeps its own name, not that of the member it was made from */
		v->name = name;
	if (!children) {
		v->children = NULL;
		v->more = 0;
	}
	if (v->frame)
		belong(v, v->frame);
	return v->state == DP_VAR_OK;
}

ptrace_variable_t *pmodule_variable_from_bt(bt_variable_t *bv)
{
	struct dp_host *h = dp_host_current();
	if (!bv || !h || !h->snapshot || !h->world)
		return NULL;
	struct dp_snap_variable *v = make(h, "", "", NULL);
	if (!v)
		return NULL;
	const char *path = dp_value_name(dp_in_value(bv));
	v->name = dp_snapshot_text(h->snapshot, path);
	pmodule_variable_value(dp_out_variable(v), bv, false);
	return dp_out_variable(v);
}

void pmodule_variable_dispatch(ptrace_variable_t *p, bt_variable_t *bv)
{
	struct dp_host *h = dp_host_current();
	struct dp_snap_variable *v = dp_api_variable(p);
	if (!v)
		return;
	if (h->dispatching >= DP_DISPATCH_DEPTH) {
		dp_host_log(h, DP_LOG_WARNING, dp_module_current(), "dispatch is nested too deep (limit: %u)", DP_DISPATCH_DEPTH);
		return;
	}
	h->dispatching++;
	dp_host_fire_variable(h, v, bv ? dp_in_value(bv) : dp_value_of(v), dp_module_current()->is_deferred);
	h->dispatching--;
}

/* ---- setters ------------------------------------------------------------------------------------------------------------ */

static void shown_as(struct dp_snap_variable *v, const char *text)
{
	if (!dp_host_may_add(dp_host_current(), strlen(text)))
		return;
	v->summary = dp_snapshot_text(dp_api_snapshot(), text);
	v->module = dp_api_module_id();
}

/* Returns the variable, with its kind set, if a module made it. For an extracted one, sets what is shown and returns NULL. */
static struct dp_snap_variable *own(ptrace_variable_t *p, enum dp_var_kind kind, const char *text)
{
	struct dp_snap_variable *v = dp_api_variable(p);
	if (!v)
		return NULL;
	if (!v->is_synthesized) {
		if (text)
			shown_as(v, text);
		return NULL;
	}
	v->kind = kind;
	v->state = DP_VAR_OK;
	v->why = NULL;
	return v;
}

void pmodule_variable_set_struct(ptrace_variable_t *p)
{
	own(p, DP_VAR_TUPLE, NULL);
}

void pmodule_variable_set_array(ptrace_variable_t *p)
{
	own(p, DP_VAR_ARRAY, NULL);
}

static void set_text(struct dp_snap_variable *v, const char *text)
{
	v->text = NULL;
	if (text && dp_host_may_add(dp_host_current(), strlen(text)))
		v->text = dp_snapshot_text(dp_api_snapshot(), text);
}

void pmodule_variable_set_function(ptrace_variable_t *p, const char *symbol)
{
	struct dp_snap_variable *v = own(p, DP_VAR_FN, symbol);
	if (v)
		set_text(v, symbol);
}

void pmodule_variable_set_string(ptrace_variable_t *p, char *text)
{
	struct dp_snap_variable *v = dp_api_variable(p);
	if (v && text && (!v->is_synthesized || v->kind == DP_VAR_TUPLE || v->kind == DP_VAR_ARRAY)) {
		shown_as(v, text);
	} else if (v) {
		own(p, DP_VAR_STRING, NULL);
		set_text(v, text);
		v->is_string = v->text != NULL;
		v->text_size = v->text ? strlen(v->text) : 0;
	}
	free(text);
}

void pmodule_variable_set_enum(ptrace_variable_t *p, int64_t value, const char *symbol)
{
	char number[32];
	snprintf(number, sizeof(number), "%" PRId64, value);
	struct dp_snap_variable *v = own(p, DP_VAR_ENUM, symbol ? symbol : number);
	if (!v)
		return;
	v->number = (uint64_t)value;
	set_text(v, symbol);
}

void pmodule_variable_set_ref(ptrace_variable_t *p, uint64_t value, const char *symbol)
{
	char number[32];
	snprintf(number, sizeof(number), "0x%" PRIx64, value);
	struct dp_snap_variable *v = own(p, DP_VAR_REFERENCE, symbol ? symbol : number);
	if (!v)
		return;
	v->number = value;
	set_text(v, symbol);
}

void pmodule_variable_set_ll(ptrace_variable_t *p, int64_t value)
{
	char number[32];
	snprintf(number, sizeof(number), "%" PRId64, value);
	struct dp_snap_variable *v = own(p, DP_VAR_LL, number);
	if (v)
		v->number = (uint64_t)value;
}

void pmodule_variable_set_ull(ptrace_variable_t *p, uint64_t value)
{
	char number[32];
	snprintf(number, sizeof(number), "%" PRIu64, value);
	struct dp_snap_variable *v = own(p, DP_VAR_ULL, number);
	if (v)
		v->number = value;
}

void pmodule_variable_set_dbl(ptrace_variable_t *p, double value)
{
	char number[64];
	snprintf(number, sizeof(number), "%.17g", value);
	struct dp_snap_variable *v = own(p, DP_VAR_DBL, number);
	if (v)
		v->real = value;
}

void pmodule_variable_set_cdbl(ptrace_variable_t *p, double re, double im)
{
	char number[96];
	snprintf(number, sizeof(number), "%.17g%+.17gi", re, im);
	struct dp_snap_variable *v = own(p, DP_VAR_CDBL, number);
	if (!v)
		return;
	v->real = re;
	v->imaginary = im;
}
