/* SPDX-License-Identifier: MIT */
/*
 * Resolves a name: a variable visible at the site, a member of C++'s `this`, a register or a fact of the hit, and last a variable
 * of another file. A $ before the name excludes variables.
 */
#include "probes/expr/scope/scope_internal.h"
#include "probes/image/module.h"
#include "probes/record/expr_internal.h"
#include "probes/record/lex.h"
#include "probes/record/registers.h"

#include <dwarf.h>
#include <string.h>

static void machine_word(struct dp_operand *ret, struct dp_expr *value)
{
	*ret = (struct dp_operand){.type = &dp_ctype_word, .value = value};
}

/* Parses "arg0" .. "arg5" (System V calling convention) and higher numbers. */
static bool argument_number(const char *name, unsigned *ret)
{
	if (strncmp(name, "arg", 3) != 0 || name[3] < '0' || name[3] > '9' || (name[4] && name[5]))
		return false;
	*ret = (unsigned)(name[3] - '0');
	if (name[4] >= '0' && name[4] <= '9')
		*ret = *ret * 10 + (unsigned)(name[4] - '0');
	else if (name[4])
		return false;
	return true;
}

static struct dp_operand usdt_value(struct dp_scope *s, const struct dp_usdt_arg *u)
{
	struct dp_arena *a = &s->arena;
	struct dp_operand o = {.type = u->is_float    ? (u->size == 4 ? &dp_ctype_float : &dp_ctype_double)
	                               : u->size == 8 ? (u->is_signed ? &dp_ctype_long : &dp_ctype_ulong)
	                                              : (u->is_signed ? &dp_ctype_int : &dp_ctype_uint)};
	struct dp_expr *e = dp_build_const(a, (uint64_t)u->disp);
	if (u->kind == DP_USDT_REG && u->xmm)
		e = dp_build(a, (struct dp_expr){.kind = DP_EXPR_XMM, .reg = u->base, .size = u->size});
	else if (u->kind == DP_USDT_REG)
		e = dp_build(a, (struct dp_expr){.kind = DP_EXPR_REG, .reg = u->base, .shift = u->shift, .size = u->size});
	if (u->kind == DP_USDT_MEMORY) {
		if (u->base != DP_USDT_NO_REG)
			e = dp_build_add(a, dp_build_reg(a, u->base), (uint64_t)u->disp);
		if (u->index != DP_USDT_NO_REG)
			e = dp_build_binary(a, DP_OP_ADD, e,
			                    dp_build_binary(a, DP_OP_MUL, dp_build_reg(a, u->index),
			                                    dp_build_const(a, u->scale ? u->scale : 1)));
		e = dp_build_load(a, e, u->size, u->is_signed && !u->is_float);
	}
	if (u->is_float)
		e = u->size == 4 ? dp_build_unary(a, DP_OP_F2D, e) : e;
	else
		e = dp_build_cast(a, e, u->size, u->is_signed);
	o.value = e;
	return o;
}

static struct dp_error *argument(struct dp_scope *s, unsigned n, const struct dp_ast *ast, struct dp_operand *ret)
{
	static const uint8_t order[] = {7, 6, 2, 1, 8, 9};
	if (s->at.call && n < DP_CALL_ARGS) {
		*ret = dp_call_argument(s, n);
		return NULL;
	}
	if (s->at.usdt && n >= s->at.nusdt)
		return dp_error(DP_TAG_NO_VARIABLE, "the marker has %zu arguments, arg0 to arg%zu", s->at.nusdt,
		                s->at.nusdt ? s->at.nusdt - 1 : 0);
	if (s->at.usdt && !s->at.usdt[n].size)
		return dp_error(DP_TAG_NO_VALUE,
		                "arg%u of the marker cannot be located: it is thread-local, or its symbol was stripped", n);
	if (s->at.usdt) {
		*ret = usdt_value(s, &s->at.usdt[n]);
		return NULL;
	}
	if (n >= sizeof(order))
		return dp_lex_error(s->text, ast->at,
		                    "arg0 to arg5 are in registers; with debug information, name the parameter");
	machine_word(ret, dp_build_reg(&s->arena, order[n]));
	return NULL;
}

static bool general_register(struct dp_scope *s, const char *name, struct dp_operand *ret)
{
	struct dp_expr e = {.kind = DP_EXPR_REG};
	if (!strcmp(name, "rip"))
		e = (struct dp_expr){.kind = DP_EXPR_CONST, .reg = DP_CONST_RIP, .value = s->at.site.addr.v};
	else if (dp_register_is_flags(name))
		e.kind = DP_EXPR_RFLAGS;
	else if (!dp_register_find(name, &e.reg, &e.shift, &e.size))
		return false;
	machine_word(ret, dp_build(&s->arena, e));
	return true;
}

static const struct {
	const char *name;
	enum dp_fact fact;
	const struct dp_ctype *type;
} facts[] = {
        {"pid", DP_FACT_PID, &dp_ctype_int},
        {"tid", DP_FACT_TID, &dp_ctype_int},
        {"cpu", DP_FACT_CPU, &dp_ctype_int},
        {"time", DP_FACT_TIME, &dp_ctype_ulong},
        {"hits", DP_FACT_HITS, &dp_ctype_ulong},
        {"duration", DP_FACT_DURATION, &dp_ctype_duration},
        {DP_NAME_CALL, DP_FACT_CALL, &dp_ctype_ulong},
        {"comm", DP_FACT_COMM, &dp_ctype_void_pointer},
};

static const char no_duration[] = "a duration is known only when the function returns";
static const char no_result[] = "a result is known only when the function returns";

bool dp_absent_before_return(const char *absent)
{
	return absent == no_duration || absent == no_result;
}

static bool fact(struct dp_scope *s, const char *name, struct dp_operand *ret)
{
	for (size_t i = 0; i < sizeof(facts) / sizeof(*facts); i++) {
		if (strcmp(facts[i].name, name))
			continue;
		*ret = (struct dp_operand){.type = facts[i].type, .is_comm = facts[i].fact == DP_FACT_COMM};
		ret->value = dp_build(&s->arena, (struct dp_expr){.kind = DP_EXPR_FACT, .value = facts[i].fact});
		if (facts[i].fact == DP_FACT_DURATION && s->at.point != DP_POINT_RETURN)
			ret->absent = no_duration;
		return true;
	}
	return false;
}

/* True if the site is a ret. After a tail jump another function computes the result. */
static bool is_ret(struct dp_scope *s)
{
	uint8_t b[2] = {0};
	size_t n = sizeof(b);
	struct dp_error *err = s->at.site.module ? dp_module_text(s->at.site.module, s->at.site.addr, b, &n) : NULL;
	const bool read = !err && n;
	dp_error_destroy(err);
	const uint8_t first = n > 1 && (b[0] == 0xf3 || b[0] == 0xf2) ? b[1] : b[0];
	return read && (first == 0xc3 || first == 0xc2);
}

static void result(struct dp_scope *s, struct dp_operand *ret)
{
	struct dp_error *err = dp_scope_debug(s);
	Dwarf_Die *function = err ? NULL : dp_scope_outer(s);
	dp_error_destroy(err);
	machine_word(ret, dp_build_reg(&s->arena, 0));
	if (s->at.point != DP_POINT_RETURN)
		ret->absent = no_result;
	else if (!is_ret(s))
		ret->absent = "the function ends in a jump to another function, which has yet to compute the result";
	if (!function || ret->absent)
		return;
	ret->type = dp_ctype_of(&s->types, function);
	ret->is_place = true;
	if (!ret->type || ret->type->kind == DP_CTYPE_VOID) {
		machine_word(ret, NULL);
		ret->absent = dp_die_unit_is_go(&s->unit)
		                      ? "Go's results are in $rax, $rbx, $rcx, $rdi, $rsi, ..., floating-point ones in $xmm0, ..."
		                      : "the function returns nothing";
		return;
	}
	ret->storage = dp_abi_result(s, ret->type);
}

static struct dp_error *machine_name(struct dp_scope *s, const char *name, const struct dp_ast *ast, bool *found,
                                     struct dp_operand *ret)
{
	unsigned n;
	*found = true;
	if (argument_number(name, &n))
		return argument(s, n, ast, ret);
	if (general_register(s, name, ret) || fact(s, name, ret))
		return NULL;
	if (!strcmp(name, "goid"))
		return dp_lower_goroutine(s, found, ret);
	*found = !strcmp(name, "retval");
	if (*found)
		result(s, ret);
	return NULL;
}

struct dp_error *dp_lower_register(struct dp_scope *s, const char *name, const struct dp_ast *ast, struct dp_operand *ret)
{
	bool found;
	uint8_t xmm;
	DP_TRY(machine_name(s, name, ast, &found, ret));
	if (found)
		return NULL;
	if (dp_register_xmm(name, &xmm)) {
		*ret = (struct dp_operand){.type = &dp_ctype_double};
		ret->value = dp_build(&s->arena, (struct dp_expr){.kind = DP_EXPR_XMM, .reg = xmm, .size = 8});
		return NULL;
	}
	struct dp_buf help;
	dp_buf_init(&help);
	dp_register_suggest(name, true, &help);
	struct dp_error *err = dp_lex_error(s->text, ast->at, "unknown register: %s", dp_buf_str(&help));
	dp_buf_fini(&help);
	return err;
}

static bool is_c(struct dp_scope *s)
{
	return s->unit.addr && dp_die_unit_is_c(&s->unit);
}

static void variable(struct dp_scope *s, struct dp_variable *v, struct dp_operand *ret)
{
	if (v->is_constant) {
		*ret = (struct dp_operand){
		        .type = v->type, .value = dp_build_const(&s->arena, v->value), .is_enumerator = is_c(s)};
		return;
	}
	*ret = (struct dp_operand){
	        .type = dp_ctype_of(&s->types, &v->die), .is_place = true, .storage = dp_variable_storage(s, v)};
	ret->type = dp_type_complete(s, ret->type);
}

/* A member of the object for which the C++ function was called. */
static bool this_member(struct dp_scope *s, const char *name, struct dp_operand *ret)
{
	struct dp_variable v;
	struct dp_operand object;
	struct dp_member m;
	const struct dp_ast here = {.kind = DP_AST_NAME};
	if (!dp_variable_find(s, "this", false, &v) || !v.function.addr)
		return false;
	variable(s, &v, &object);
	if (object.type->kind != DP_CTYPE_POINTER)
		return false;
	struct dp_error *err = dp_lower_deref(s, &here, object, &object);
	dp_error_destroy(err);
	if (err)
		return false;
	object.type = dp_type_complete(s, object.type);
	if (object.type->kind != DP_CTYPE_RECORD || !dp_ctype_member(object.type, name, &m))
		return false;
	*ret = dp_operand_member(s, &object, &m);
	return true;
}

struct dp_error *dp_lower_name(struct dp_scope *s, const struct dp_ast *ast, struct dp_operand *ret)
{
	struct dp_variable v;
	bool found;
	if (dp_lower_call(s, ast->name, ret))
		return NULL;
	const bool near = dp_variable_find(s, ast->name, false, &v);
	if (near && (v.function.addr || !this_member(s, ast->name, ret)))
		variable(s, &v, ret);
	if (near || this_member(s, ast->name, ret))
		return NULL;
	DP_TRY(machine_name(s, ast->name, ast, &found, ret));
	if (found)
		return NULL;
	if (dp_variable_find(s, ast->name, true, &v)) {
		variable(s, &v, ret);
		return NULL;
	}
	struct dp_error *err = dp_scope_debug(s);
	return err ? dp_variable_unreadable(s, ast->name, err) : dp_variable_unknown(s, ast->name, ast->at);
}
