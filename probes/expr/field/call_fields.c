/* SPDX-License-Identifier: MIT */
/* The fields of a system call: its named arguments, its result, and the memory that arguments point to. */
#include "probes/expr/field/scope_fields.h"
#include "probes/hazard/hazard.h"

enum { PATH_LENGTH = 255, TEXT_LENGTH = 33 };

/* Arguments without a known name are shown as raw words. */
static struct dp_error *add_word(struct dp_fields_maker *m, unsigned n)
{
	const char *name = dp_arena_printf(&m->s->arena, "arg%u", n);
	return name ? dp_fields_of(m, NULL, name, dp_call_argument(m->s, n), 0) : dp_error_nomem();
}

static struct dp_error *add_named(struct dp_fields_maker *m, const char *name)
{
	struct dp_operand o;
	if (!name || !dp_lower_call(m->s, name, &o))
		return dp_error_nomem();
	return dp_fields_of(m, NULL, name, o, 0);
}

struct dp_error *dp_call_fields(struct dp_fields_maker *m)
{
	struct dp_call_arg arg[DP_CALL_ARGS];
	const int n = dp_call_args(m->s->at.call->nr, arg);
	if (m->s->at.call->nr == DP_CALL_ANY && !m->s->at.call->exit)
		DP_TRY(add_named(m, "nr"));
	for (unsigned i = 0; n == DP_CALL_ANY && i < DP_CALL_ARGS; i++)
		DP_TRY(add_word(m, i));
	for (int i = 0; i < n; i++)
		DP_TRY(add_named(m, dp_arena_copy(&m->s->arena, arg[i].name, arg[i].len)));
	return NULL;
}

/* Go makes system calls with only a few hundred bytes of stack checked. */
static bool has_small_stack(const struct dp_scope *s)
{
	return s->at.site.module && dp_module_small_stacks(s->at.site.module);
}

static struct dp_error *add_first(struct dp_fields_maker *m, unsigned i, const struct dp_call_arg *arg)
{
	struct dp_arena *a = &m->s->arena;
	const char *name = dp_arena_printf(a, "%.*s" DP_CALL_FIRST, (int)arg->len, arg->name);
	if (!name)
		return dp_error_nomem();
	return dp_field_bytes(m, name, name, dp_build_load(a, dp_call_argument(m->s, i).value, 8, false), TEXT_LENGTH);
}

static struct dp_error *add_data(struct dp_fields_maker *m, unsigned i, const struct dp_call_arg *arg)
{
	const size_t bytes = dp_call_data_bytes(arg);
	const struct dp_scope *s = m->s;
	const char *name = dp_arena_printf(&m->s->arena, "%.*s" DP_CALL_DATA, (int)arg->len, arg->name);
	if (!bytes || !(s->at.call->exit || arg->in))
		return NULL;
	if (!name)
		return dp_error_nomem();
	if (s->at.no_memory || has_small_stack(s))
		return dp_field_absent(m, name, name, &dp_ctype_word, "only registers can be recorded there");
	DP_TRY(dp_field_bytes(m, name, name, dp_call_argument(m->s, i).value, bytes));
	return dp_call_has_buffers(arg) ? add_first(m, i, arg) : NULL;
}

/* Of a string: it says more than that the string cannot be read. */
static struct dp_error *add_address(struct dp_fields_maker *m, unsigned i, const struct dp_call_arg *arg)
{
	const char *name = dp_arena_printf(&m->s->arena, "%.*s" DP_CALL_ADDRESS, (int)arg->len, arg->name);
	return name ? dp_fields_of(m, NULL, name, dp_call_argument(m->s, i), 0) : dp_error_nomem();
}

/* As `args` has it, but strings are paths mostly: longer. */
static struct dp_error *add_argument(struct dp_fields_maker *m, unsigned i, const struct dp_call_arg *arg)
{
	const char *name = dp_arena_copy(&m->s->arena, arg->name, arg->len);
	if (name && arg->kind == DP_CALL_STRING && !has_small_stack(m->s))
		return dp_field_text(m, name, name,
		                     &(struct dp_operand){.value = dp_call_argument(m->s, i).value, .length = PATH_LENGTH});
	return add_named(m, name);
}

struct dp_error *dp_call_line_fields(struct dp_fields_maker *m)
{
	struct dp_call_arg arg[DP_CALL_ARGS];
	const int n = dp_call_args(m->s->at.call->nr, arg);
	if (n == DP_CALL_ANY)
		DP_TRY(dp_call_fields(m));
	for (int i = 0; i < n; i++)
		DP_TRY(add_argument(m, (unsigned)i, &arg[i]));
	if (m->s->at.call->exit)
		DP_TRY(add_named(m, "retval"));
	for (int i = 0; i < n; i++)
		DP_TRY(arg[i].kind == DP_CALL_STRING ? add_address(m, (unsigned)i, &arg[i]) : add_data(m, (unsigned)i, &arg[i]));
	return NULL;
}
