/* SPDX-License-Identifier: MIT */
/* A condition on a whole call, as two: one for its entry, one for its return. */
#include "probes/expr/syntax/check.h"

#include "base/buf.h"
#include "probes/expr/syntax/ast_lex.h"
#include "probes/record/registers.h"

#include <string.h>

struct part { /* from one && to the next */
	size_t from, end;
	bool at_return;
};

struct split {
	const char *text;
	struct dp_buf entry, ret;
};

static bool is_register(const char *name)
{
	uint8_t reg, shift, size;
	return dp_register_find(name, &reg, &shift, &size) || dp_register_xmm(name, &reg) || dp_register_is_flags(name) ||
	       !strcmp(name, "rip");
}

/* A return's values, and registers, which the user names for a place. A member of that name is none. */
static bool is_of_return(const struct dp_token *t, int before)
{
	if ((t->kind != DP_TOKEN_NAME && t->kind != DP_TOKEN_REGISTER) || before == '.' || before == DP_AST_ARROW)
		return false;
	return !strcmp(t->text, "retval") || !strcmp(t->text, "duration") || is_register(t->text);
}

static void put(struct split *s, const struct part *p)
{
	struct dp_buf *b = p->at_return ? &s->ret : &s->entry;
	dp_buf_printf(b, "%s(%.*s)", b->len ? " && " : "", (int)(p->end - p->from), s->text + p->from);
}

/* Cuts at each && outside of parentheses; `whole`: nowhere. *one: an operator that binds less than && stands beside them. */
static struct dp_error *cut(struct split *s, struct dp_arena *arena, bool whole, bool *one)
{
	struct dp_token t = {.kind = DP_TOKEN_OP};
	struct part p = {0};
	int depth = 0, before = 0;
	while (t.kind != DP_TOKEN_END) {
		DP_TRY(dp_token_next(arena, s->text, t.end, &t));
		const int op = t.kind == DP_TOKEN_OP ? t.op : 0;
		depth += (op == '(' || op == '[') - (op == ')' || op == ']');
		*one |= !depth && (op == DP_AST_OR || op == '?');
		p.at_return |= is_of_return(&t, before);
		before = op;
		if (t.kind != DP_TOKEN_END && (whole || depth || op != DP_AST_AND))
			continue;
		p.end = t.at;
		put(s, &p);
		p = (struct part){.from = t.end};
	}
	return NULL;
}

static struct dp_error *split(struct split *s, struct dp_arena *arena)
{
	bool one = false;
	DP_TRY(cut(s, arena, false, &one));
	if (!one)
		return NULL;
	s->entry.len = s->ret.len = 0;
	return cut(s, arena, true, &one);
}

static struct dp_error *take(struct dp_buf *b, char **ret)
{
	if (!b->len)
		return NULL;
	*ret = strdup(dp_buf_str(b));
	return *ret && !b->failed ? NULL : dp_error_nomem();
}

struct dp_error *dp_scope_split(const char *text, char **entry, char **at_return)
{
	struct dp_arena arena = {0};
	struct split s = {.text = text};
	*entry = *at_return = NULL;
	dp_buf_init(&s.entry);
	dp_buf_init(&s.ret);
	struct dp_error *err = split(&s, &arena);
	if (!err)
		err = take(&s.entry, entry);
	if (!err)
		err = take(&s.ret, at_return);
	dp_buf_fini(&s.entry);
	dp_buf_fini(&s.ret);
	dp_arena_fini(&arena);
	return err;
}
