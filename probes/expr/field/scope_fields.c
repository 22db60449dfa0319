/* SPDX-License-Identifier: MIT */
/* Makes the fields of one -t argument. */
#include "probes/expr/field/scope_fields.h"
#include "probes/record/lex.h"

#include <ctype.h>
#include <string.h>

enum { FIELDS_MAX = 32, ARGS_MAX = 60 };

struct all {
	struct dp_fields_maker *m;
	struct dp_error *err;
};

static bool add_variable(struct dp_variable *v, void *data)
{
	struct all *all = data;
	struct dp_scope *s = all->m->s;
	struct dp_operand o = {.type = dp_ctype_of(&s->types, &v->die), .is_place = true, .storage = dp_variable_storage(s, v)};
	const char *absent = NULL;
	if (!o.type || !all->m->budget)
		return false;
	if (o.type->is_reference) {
		struct dp_expr *addr = dp_storage_read(&s->arena, &o.storage, 8, false, &absent);
		const struct dp_ctype *to = dp_ctype_to(o.type);
		o.type = to ? to : o.type;
		o.storage = absent ? dp_storage_none(&s->arena, absent) : dp_storage_memory(&s->arena, addr);
	}
	o.type = dp_type_complete(s, o.type);
	all->err = dp_fields_of(all->m, NULL, v->name, o, 1);
	return !all->err;
}

static struct dp_error *add_usdt(struct dp_fields_maker *m)
{
	for (size_t i = 0; i < m->s->at.nusdt; i++) {
		char name[32];
		struct dp_operand o;
		struct dp_ast ast = {.kind = DP_AST_NAME, .name = name};
		if (!m->s->at.usdt[i].size)
			continue;
		snprintf(name, sizeof(name), "arg%zu", i);
		m->s->text = "args";
		DP_TRY(dp_lower_register(m->s, name, &ast, &o));
		DP_TRY(dp_fields_of(m, NULL, name, o, 0));
	}
	return NULL;
}

static struct dp_error *add_all(struct dp_fields_maker *m, bool parameters)
{
	struct all all = {.m = m};
	m->budget = ARGS_MAX;
	if (m->s->at.call && parameters)
		return dp_call_fields(m);
	if (m->s->at.usdt && parameters)
		return add_usdt(m);
	DP_TRY(dp_scope_debug(m->s));
	dp_variable_each(m->s, parameters, add_variable, &all);
	return all.err;
}

static const char *trimmed(struct dp_arena *a, const char *text)
{
	text += strspn(text, " \t\n");
	size_t n = strlen(text);
	while (n && isspace((unsigned char)text[n - 1]))
		n--;
	return dp_arena_copy(a, text, n);
}

/* str(p->name, 9) has the label p->name, str(p->name, p->len) too. */
static const char *label_of(struct dp_arena *a, const struct dp_ast *ast, const char *text)
{
	const char *open = strchr(text, '(');
	if (ast->kind == DP_AST_NAME)
		return ast->name;
	if (ast->kind != DP_AST_STR || !open)
		return trimmed(a, text);
	const size_t n = strcspn(open + 1, ast->value || ast->b ? "," : ")");
	const bool plain = ast->a->kind == DP_AST_NAME || ast->a->kind == DP_AST_MEMBER;
	const char *inner = plain ? dp_arena_copy(a, open + 1, n) : text;
	return inner ? trimmed(a, inner) : NULL;
}

static struct dp_error *add_expression(struct dp_fields_maker *m, const char *context)
{
	struct dp_scope *s = m->s;
	struct dp_ast *ast = NULL;
	struct dp_operand o = {0};
	size_t n;
	const size_t from = dp_context_given_name(context, &n);
	const char *name = from ? dp_arena_copy(&s->arena, context, n) : NULL, *text = context + from;
	s->text = text;
	DP_TRY(dp_ast_parse(&s->arena, text, &ast));
	DP_TRY(dp_lower(s, ast, &o));
	if (o.string)
		return dp_lex_error(text, ast->at, "a string alone is not a value");
	const char *label = name ? name : label_of(&s->arena, ast, text);
	if (!label || (from && !name))
		return dp_error_nomem();
	return dp_fields_of(m, name, label, o, 0);
}

static struct dp_error *add_context(struct dp_fields_maker *m, const char *context)
{
	if (!strcmp(context, "args"))
		return add_all(m, true);
	if (!strcmp(context, "locals"))
		return add_all(m, false);
	if (!strcmp(context, DP_CONTEXT_CALL) && m->s->at.call)
		return dp_call_line_fields(m);
	return add_expression(m, context);
}

struct dp_error *dp_scope_fields(struct dp_scope *scope, const char *context, struct dp_fields *fields)
{
	if (dp_scope_is_fixed(context))
		return dp_fields_add(fields, context);
	if (!scope)
		return dp_error(DP_TAG_INTERNAL, "'%s' has no meaning without a place", context);
	const size_t before = fields->n;
	struct dp_fields_maker m = {.s = scope, .fields = fields, .budget = FIELDS_MAX};
	struct dp_error *err = add_context(&m, context);
	if (!err)
		err = dp_fields_check(fields, context);
	if (err)
		dp_fields_cut(fields, before);
	return err;
}
