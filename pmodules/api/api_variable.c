/* SPDX-License-Identifier: MIT */
/* pmodule.h: queries of a variable. */
#include "pmodules/host/host_state.h"

#include <stdlib.h>
#include <string.h>

#define GETTER(type, name, expression, otherwise)                                                                                \
	type pmodule_variable_##name(ptrace_variable_t *p)                                                                       \
	{                                                                                                                        \
		const struct dp_snap_variable *v = dp_api_variable(p);                                                           \
		return v ? (expression) : (otherwise);                                                                           \
	}
GETTER(uint64_t, address, v->address, 0)
GETTER(const char *, name, *v->name ? v->name : NULL, NULL)
GETTER(const char *, base_type, *v->base_type ? v->base_type : NULL, NULL)
GETTER(bool, is_string, v->is_string, false)
GETTER(bool, resolved, v->state == DP_VAR_OK, false)
GETTER(const char *, why, v->state == DP_VAR_OK ? NULL : v->why ? v->why : "unavailable", NULL)
GETTER(ptrace_variable_t *, owner, dp_out_variable(v->owner), NULL)
GETTER(ptrace_frame_t *, frame, dp_out_frame(v->frame), NULL)
GETTER(ptrace_thread_t *, thread, dp_out_thread(v->thread), NULL)
GETTER(ptrace_backtrace_t *, backtrace, dp_out_backtrace(dp_api_snapshot()), NULL)
GETTER(int64_t, fprm_offset, v->place == DP_VAR_PARAMETER ? v->index : -1, -1)
GETTER(const char *, object, v->object, NULL)
GETTER(const char *, cu, v->unit, NULL)
GETTER(unsigned, state, v->is_hidden ? PTRACE_VARIABLE_S_SKIP : 0u, 0)

/* Not GETTER(): the function and its enum have the same name. */
enum pmodule_variable_type pmodule_variable_type(ptrace_variable_t *p)
{
	const struct dp_snap_variable *v = dp_api_variable(p);
	return v ? (enum pmodule_variable_type)v->kind : PMODULE_BOTTOM;
}

unsigned pmodule_variable_depth(ptrace_variable_t *p)
{
	const struct dp_snap_variable *v = dp_api_variable(p);
	unsigned depth = 0;
	for (v = v ? v->owner : NULL; v; v = v->owner)
		depth++;
	return depth;
}

/* "struct crash *" becomes "struct(crash) *". C++ classes, which have no keyword here, get one. */
static const char *type_text(const struct dp_snap_variable *v)
{
	static const char *const keywords[] = {"struct ", "union ", "enum ", "class "};
	struct dp_arena *a = &dp_host_current()->scratch;
	for (size_t i = 0; i < sizeof(keywords) / sizeof(*keywords); i++) {
		const size_t n = strlen(keywords[i]);
		const char *at = strstr(v->type, keywords[i]);
		if (!at || (at > v->type && at[-1] != ' ') || memchr(v->type, '<', (size_t)(at - v->type)))
			continue;
		const size_t base = strlen(v->base_type),
		             name = base && !strncmp(at + n, v->base_type, base) ? base : strcspn(at + n, " *[");
		return dp_arena_printf(a, "%.*s%.*s(%.*s)%s", (int)(at - v->type), v->type, (int)n - 1, at, (int)name, at + n,
		                       at + n + name);
	}
	if (v->kind == DP_VAR_TUPLE && !strchr(v->type, '('))
		return dp_arena_printf(a, "%s(%s)", v->is_union ? "union" : "struct", v->type);
	return v->type;
}

const char *pmodule_variable_type_name(ptrace_variable_t *p)
{
	const struct dp_snap_variable *v = dp_api_variable(p);
	return v && *v->type ? type_text(v) : NULL;
}

bool pmodule_variable_int(ptrace_variable_t *p, int64_t *ret)
{
	const struct dp_snap_variable *v = dp_api_variable(p);
	if (!v || !ret || v->state != DP_VAR_OK)
		return false;
	if (v->kind != DP_VAR_LL && v->kind != DP_VAR_ULL && v->kind != DP_VAR_ENUM && v->kind != DP_VAR_REFERENCE)
		return false;
	*ret = (int64_t)v->number;
	return true;
}

bool pmodule_variable_real(ptrace_variable_t *p, double *re, double *im)
{
	const struct dp_snap_variable *v = dp_api_variable(p);
	if (!v || !re || v->state != DP_VAR_OK || v->kind < DP_VAR_FLT || v->kind > DP_VAR_CLDBL)
		return false;
	*re = v->real;
	if (im)
		*im = v->imaginary;
	return true;
}

const char *pmodule_variable_symbol(ptrace_variable_t *p)
{
	const struct dp_snap_variable *v = dp_api_variable(p);
	if (!v)
		return NULL;
	return v->text ? v->text : v->summary;
}

bt_variable_t *pmodule_variable_bt(ptrace_variable_t *p)
{
	const struct dp_snap_variable *v = dp_api_variable(p);
	return v && dp_host_current()->world ? dp_out_value(dp_value_of(v)) : NULL;
}

void pmodule_variable_state_set(ptrace_variable_t *p, unsigned flags)
{
	struct dp_snap_variable *v = dp_api_variable(p);
	if (!v)
		return;
	v->is_hidden = flags & PTRACE_VARIABLE_S_SKIP;
	v->module = dp_api_module_id();
}
