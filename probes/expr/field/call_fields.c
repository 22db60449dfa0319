/* SPDX-License-Identifier: MIT */
/* The fields of a system call: its named arguments. */
#include "probes/expr/field/scope_fields.h"

/* Arguments without a known name are shown as raw words. */
static struct dp_error *add_word(struct dp_fields_maker *m, unsigned n)
{
	const char *name = dp_arena_printf(&m->s->arena, "arg%u", n);
	return name ? dp_fields_of(m, NULL, name, dp_call_argument(m->s, n), 0) : dp_error_nomem();
}

struct dp_error *dp_call_fields(struct dp_fields_maker *m)
{
	struct dp_call_arg arg[DP_CALL_ARGS];
	struct dp_operand o;
	const int n = dp_call_args(m->s->at.call->nr, arg);
	if (m->s->at.call->nr == DP_CALL_ANY && !m->s->at.call->exit) {
		dp_lower_call(m->s, "nr", &o);
		DP_TRY(dp_fields_of(m, NULL, "nr", o, 0));
	}
	for (unsigned i = 0; n == DP_CALL_ANY && i < DP_CALL_ARGS; i++)
		DP_TRY(add_word(m, i));
	for (int i = 0; i < n; i++) {
		const char *name = dp_arena_copy(&m->s->arena, arg[i].name, arg[i].len);
		if (!name || !dp_lower_call(m->s, name, &o))
			return dp_error_nomem();
		DP_TRY(dp_fields_of(m, NULL, name, o, 0));
	}
	return NULL;
}
