/* SPDX-License-Identifier: MIT */
#include "probes/expr/scope/scope.h"
#include "base/cleanup.h"
#include "probes/expr/scope/scope_internal.h"
#include "probes/image/module.h"

#include <dwarf.h>
#include <stdlib.h>
#include <string.h>

struct dp_error *dp_scope_create(struct dp_image *image, const struct dp_scope_at *at, struct dp_scope **ret)
{
	struct dp_scope *s = calloc(1, sizeof(*s));
	if (!s)
		return dp_error_nomem();
	s->image = image;
	s->at = *at;
	s->types.arena = &s->arena;
	*ret = s;
	return NULL;
}

struct dp_scope *dp_scope_destroy(struct dp_scope *scope)
{
	if (!scope)
		return NULL;
	dp_error_destroy(scope->no_debug);
	dp_arena_fini(&scope->arena);
	free(scope);
	return NULL;
}

/* True if the site is the entry, or the instruction after an endbr64 there. */
static bool is_entry(const struct dp_scope *s, uint64_t entry)
{
	static const uint8_t endbr64[4] = {0xf3, 0x0f, 0x1e, 0xfa};
	uint8_t bytes[4];
	size_t n = sizeof(bytes);
	if (s->pc == entry)
		return true;
	if (s->pc != entry + sizeof(endbr64))
		return false;
	struct dp_error *err = dp_module_text(s->at.site.module, dp_debug_addr(s->debug, entry), bytes, &n);
	const bool read = !err && n == sizeof(bytes);
	dp_error_destroy(err);
	return read && !memcmp(bytes, endbr64, sizeof(endbr64));
}

/* Keeps functions up to the real one: entries around it only declare types. */
static void cut_functions(struct dp_scope *s)
{
	for (size_t i = 0; i < s->nfunctions; i++)
		if (dwarf_tag(&s->function[i]) == DW_TAG_subprogram)
			s->nfunctions = i + 1;
}

static struct dp_error *look_around(struct dp_scope *s)
{
	Dwarf_Addr entry = 0;
	s->nfunctions = dp_debug_scopes_at(s->debug, s->pc, s->function, DP_SCOPE_FUNCTIONS);
	cut_functions(s);
	Dwarf_Die *f = dp_scope_outer(s);
	if (!f || dwarf_entrypc(f, &entry))
		return dp_scope_inlined(s);
	s->at_entry = is_entry(s, entry);
	s->body = dp_function_body(f, entry);
	/* At a function's entry, copies inlined there have not started: use the function. */
	if (s->at_entry && s->at.point == DP_POINT_ENTRY) {
		s->function[0] = *f;
		s->nfunctions = 1;
		return NULL;
	}
	return dp_scope_inlined(s);
}

static struct dp_error *open_debug(struct dp_scope *s)
{
	if (!s->at.site.module)
		return dp_error(DP_TAG_NO_DEBUG_INFO, "the probe is not in the code of a file, so its variables are unknown");
	DP_TRY(dp_module_debug(s->at.site.module, &s->debug));
	s->pc = dp_debug_pc(s->debug, s->at.site.addr);
	if (!dp_debug_unit_at(s->debug, s->pc, &s->unit))
		return dp_error(DP_TAG_NO_DEBUG_INFO,
		                "the debug information of '%s' does not cover %s: that part was built without -g, or is assembly",
		                dp_module_path(s->at.site.module),
		                s->at.site.function.name && *s->at.site.function.name ? s->at.site.function.name
		                                                                      : "the probe's place");
	if (dp_debug_missing_dwo(s->debug) && dwarf_tag(&s->unit) == DW_TAG_skeleton_unit)
		return dp_error(DP_TAG_NO_DEBUG_INFO,
		                "the debug information of '%s' is in '%s', which is missing; keep the .dwo files: dynprobe "
		                "does not read dwp packages",
		                dp_module_path(s->at.site.module), dp_debug_missing_dwo(s->debug));
	return look_around(s);
}

struct dp_error *dp_scope_debug(struct dp_scope *s)
{
	if (!s->asked) {
		s->asked = true;
		s->no_debug = open_debug(s);
	}
	return s->no_debug ? dp_error(s->no_debug->tag, "%s", s->no_debug->message) : NULL;
}
