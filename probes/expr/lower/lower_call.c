/* SPDX-License-Identifier: MIT */
/*
 * The named arguments of a system call. They are in rdi, rsi, rdx, r10, r8 and r9. The kernel preserves these registers, so they
 * are valid after the call, too, and point to what the kernel has written.
 */
#include "probes/expr/scope/scope_internal.h"
#include "probes/hazard/hazard.h"

#include <string.h>

static const uint8_t order[DP_CALL_ARGS] = {7, 6, 2, 10, 8, 9};
enum { RAX = 0 };

struct dp_operand dp_call_argument(struct dp_scope *s, unsigned n)
{
	return (struct dp_operand){.type = &dp_ctype_word, .value = dp_build_reg(&s->arena, order[n])};
}

/* Go makes system calls with only a few hundred bytes of stack checked, so strings are captured there only on request. */
static bool has_room(struct dp_scope *s)
{
	return !s->at.site.module || !dp_module_small_stacks(s->at.site.module);
}

static struct dp_operand typed(struct dp_scope *s, unsigned n, enum dp_call_kind kind)
{
	struct dp_operand o = dp_call_argument(s, n);
	struct dp_arena *a = &s->arena;
	switch (kind) {
	case DP_CALL_INT:
		o.type = &dp_ctype_int;
		o.value = dp_build_cast(a, o.value, 4, true);
		break;
	case DP_CALL_LONG:
		o.type = &dp_ctype_long;
		break;
	case DP_CALL_UNSIGNED:
		o.type = &dp_ctype_ulong;
		break;
	case DP_CALL_HEX32:
		o.value = dp_build(a, (struct dp_expr){.kind = DP_EXPR_REG, .reg = order[n], .size = 4});
		break;
	case DP_CALL_HEX64:
		break;
	case DP_CALL_POINTER:
		o.type = &dp_ctype_void_pointer;
		break;
	case DP_CALL_STRING:
		o.type = has_room(s) ? dp_ctype_pointer(&s->types, &dp_ctype_char) : NULL;
		o.type = o.type ? o.type : &dp_ctype_void_pointer;
		break;
	}
	return o;
}

static void number(struct dp_scope *s, struct dp_operand *ret)
{
	const struct dp_call_at *call = s->at.call;
	*ret = (struct dp_operand){.type = &dp_ctype_call};
	ret->value = call->nr == DP_CALL_ANY ? dp_build_reg(&s->arena, RAX) : dp_build_const(&s->arena, (uint64_t)call->nr);
	if (call->nr == DP_CALL_ANY && call->exit)
		ret->absent = "only the entry, the event before this one in the same thread, has the call's number";
}

static void result(struct dp_scope *s, struct dp_operand *ret)
{
	*ret = (struct dp_operand){.type = &dp_ctype_result, .value = dp_build_reg(&s->arena, RAX)};
	if (!s->at.call->exit)
		ret->absent = "a system call's result is known only at its exit";
}

bool dp_lower_call(struct dp_scope *s, const char *name, struct dp_operand *ret)
{
	struct dp_call_arg arg[DP_CALL_ARGS];
	if (!s->at.call)
		return false;
	const int n = dp_call_args(s->at.call->nr, arg);
	for (int i = 0; i < n; i++)
		if (strlen(name) == arg[i].len && !strncmp(name, arg[i].name, arg[i].len)) {
			*ret = typed(s, (unsigned)i, arg[i].kind);
			return true;
		}
	if (!strcmp(name, "nr"))
		number(s, ret);
	else if (!strcmp(name, "retval"))
		result(s, ret);
	else
		return false;
	return true;
}
