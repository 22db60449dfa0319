/* SPDX-License-Identifier: MIT */
/* Walks all parameters or locals, and suggests names for an unknown one. */
#include "probes/expr/scope/scope_internal.h"
#include "probes/point/suggest.h"
#include "probes/record/lex.h"

#include <dwarf.h>
#include <string.h>

enum { DEPTH_MAX = 64, LOCALS_MAX = 512 };

struct walk {
	Dwarf_Die die[LOCALS_MAX];
	const char *name[LOCALS_MAX];
	size_t n;
};

/* A declaration in an inner block shadows one in an outer block. */
static void add(Dwarf_Die *die, void *data)
{
	struct walk *w = data;
	const char *name = dp_die_name(die);
	if (!name || w->n >= LOCALS_MAX)
		return;
	for (size_t i = 0; i < w->n; i++)
		if (!strcmp(w->name[i], name)) {
			w->die[i] = *die;
			return;
		}
	w->name[w->n] = name;
	w->die[w->n++] = *die;
}

static void list_parameters(struct walk *w, Dwarf_Die *function)
{
	Dwarf_Die parameter[DP_PARAMETERS_MAX];
	const size_t n = dp_parameters_of(function, parameter, DP_PARAMETERS_MAX);
	for (size_t i = 0; i < n; i++)
		add(&parameter[i], w);
}

static void add_local(Dwarf_Die *die, void *data)
{
	if (!dp_die_flag(die, DW_AT_external))
		add(die, data);
}

void dp_variable_each(struct dp_scope *s, bool parameters, bool (*each)(struct dp_variable *v, void *data), void *data)
{
	Dwarf_Die *function = dp_scope_inner(s);
	struct walk *w = function ? dp_arena_alloc(&s->arena, sizeof(*w)) : NULL;
	if (!w)
		return;
	if (parameters)
		list_parameters(w, function);
	else
		dp_block_variables(&(struct dp_block_walk){.pc = s->pc, .each = add_local, .data = w}, function);
	for (size_t i = 0; i < w->n; i++) {
		struct dp_variable v = {.die = w->die[i],
		                        .function = *function,
		                        .name = w->name[i],
		                        .is_parameter = parameters,
		                        .is_ambiguous = s->nbeginning > 0};
		if (!each(&v, data))
			return;
	}
}

static void offer_block(struct dp_scope *s, Dwarf_Die *block, struct dp_suggest *to, unsigned depth)
{
	Dwarf_Die child;
	if (depth > DEPTH_MAX || dwarf_child(block, &child))
		return;
	do {
		const int tag = dwarf_tag(&child);
		const char *name = tag == DW_TAG_variable || tag == DW_TAG_formal_parameter ? dp_die_name(&child) : NULL;
		if (name)
			dp_suggest_offer(to, name, strlen(name));
		if (tag == DW_TAG_lexical_block && dwarf_haspc(&child, s->pc) > 0)
			offer_block(s, &child, to, depth + 1);
	} while (!dwarf_siblingof(&child, &child));
}

/* Those of -t alone are offered where the name is all that was typed, and no variable has a similar one. */
static void offer_words(const struct dp_scope *s, const char *name, struct dp_suggest *to)
{
	const bool is_whole = !to->n && !strcmp(s->text, name);
	static const char *const contexts[] = {"backtrace", "args", "locals", "regs"};
	static const char *const words[] = {"retval", "duration", "pid", "tid", "cpu", "comm", "time", "arg0", "arg1",
	                                    "arg2",   "rax",      "rbx", "rcx", "rdx", "rsi",  "rdi",  "rbp",  "rsp"};
	for (size_t i = 0; i < sizeof(words) / sizeof(*words); i++)
		dp_suggest_offer(to, words[i], strlen(words[i]));
	for (size_t i = 0; i < sizeof(contexts) / sizeof(*contexts) && is_whole; i++)
		dp_suggest_offer(to, contexts[i], strlen(contexts[i]));
}

struct dp_error *dp_variable_unreadable(struct dp_scope *s, const char *name, struct dp_error *why)
{
	struct dp_suggest suggest;
	struct dp_buf help = {0};
	dp_suggest_init(&suggest, name, strlen(name));
	offer_words(s, name, &suggest);
	dp_suggest_print(&suggest, &help);
	if (suggest.n)
		why = dp_error_wrap(why, "no variable '%s' is known here%s", name, dp_buf_str(&help));
	dp_buf_fini(&help);
	return why;
}

enum { LISTED = 12 };

struct list {
	struct dp_buf *to;
	size_t n;
};

static bool put_one(struct dp_variable *v, void *data)
{
	struct list *l = data;
	if (!strncmp(v->name, "__", 2)) /* the compiler's */
		return true;
	if (l->n++ < LISTED)
		dp_buf_printf(l->to, "%s%s", l->n > 1 ? ", " : ", which has ", v->name);
	return l->n <= LISTED;
}

/* Where no name is similar: those that there are. */
static void list_variables(struct dp_scope *s, struct dp_buf *to)
{
	struct list l = {to, 0};
	dp_variable_each(s, true, put_one, &l);
	if (l.n <= LISTED)
		dp_variable_each(s, false, put_one, &l);
	if (l.n > LISTED)
		dp_buf_printf(to, " ...");
}

struct dp_error *dp_variable_unknown(struct dp_scope *s, const char *name, size_t at)
{
	struct dp_suggest suggest;
	struct dp_buf help, message;
	dp_suggest_init(&suggest, name, strlen(name));
	for (size_t i = 0; i < s->nfunctions; i++)
		offer_block(s, &s->function[i], &suggest, 0);
	if (s->unit.addr)
		offer_block(s, &s->unit, &suggest, 0);
	offer_words(s, name, &suggest);
	dp_buf_init(&help);
	dp_suggest_print(&suggest, &help);
	if (!suggest.n)
		list_variables(s, &help);
	const char *where = s->at.site.function.name && *s->at.site.function.name ? s->at.site.function.name : "this place";
	dp_buf_init(&message);
	dp_buf_printf(&message, "no variable '%s' is visible in %s%s", name, where, dp_buf_str(&help));
	struct dp_error *err = dp_lex_point(DP_TAG_NO_VARIABLE, s->text, at, dp_buf_str(&message));
	dp_buf_fini(&message);
	dp_buf_fini(&help);
	return err;
}
