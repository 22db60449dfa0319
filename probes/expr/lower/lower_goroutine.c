/* SPDX-License-Identifier: MIT */
/*
 * The number of the current goroutine: a member of its descriptor (runtime.g), which a thread finds at %fs:-8
 * (trampoline/arch/x86_64/emit/pair_goroutine.c). Where the number is in it differs by version, so its debug information says.
 */
#include "probes/expr/scope/scope_internal.h"
#include "probes/hazard/hazard.h"

#include <string.h>

enum { WORD = 8 };

static bool find_member(struct dp_scope *s, struct dp_member *ret)
{
	const struct dp_ast_type name = {.name = "runtime.g", .tag = 's'};
	const struct dp_ctype *type = dp_type_find(s, &name);
	return type && type->kind == DP_CTYPE_RECORD && dp_ctype_member(type, "goid", ret) && !ret->is_virtual && !ret->bits &&
	       type->size >= WORD && ret->offset <= type->size - WORD;
}

struct dp_error *dp_lower_goroutine(struct dp_scope *s, bool *found, struct dp_operand *ret)
{
	struct dp_arena *a = &s->arena;
	struct dp_module *m = s->at.site.module;
	struct dp_member goid;
	*found = m && dp_module_small_stacks(m);
	if (!*found)
		return NULL;
	if (m != dp_image_module(s->image, 0) || !dp_module_finds_goroutines(m))
		return dp_error(DP_TAG_NO_VALUE,
		                "goid is known only in executables without C's thread-local variables, and %s is none",
		                dp_module_name(m));
	DP_TRY(dp_scope_debug(s));
	if (!find_member(s, &goid))
		return dp_error(DP_TAG_NO_VALUE, "the debug information of %s does not say where a goroutine's number is",
		                dp_module_name(m));
	struct dp_expr *thread = dp_build(a, (struct dp_expr){.kind = DP_EXPR_THREAD});
	struct dp_expr *g = dp_build_load(a, dp_build_add(a, thread, -(uint64_t)WORD), WORD, false);
	*ret = (struct dp_operand){.type = &dp_ctype_long,
	                           .value = dp_build_load(a, dp_build_add(a, g, goid.offset), WORD, true)};
	return NULL;
}
