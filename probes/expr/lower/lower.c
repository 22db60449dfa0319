/* SPDX-License-Identifier: MIT */
/* Lowers the syntax tree: computes types by C's rules and emits struct dp_expr at once. */
#include "probes/expr/scope/scope_internal.h"
#include "probes/point/suggest.h"
#include "probes/record/lex.h"

#include <string.h>

static struct dp_expr *widen(struct dp_scope *s, struct dp_expr *bits, uint64_t size)
{
	return size == sizeof(float) ? dp_build_unary(&s->arena, DP_OP_F2D, bits) : bits;
}

static void read_scalar(struct dp_scope *s, struct dp_operand *o)
{
	const struct dp_ctype *t = o->type;
	const char *absent = NULL;
	struct dp_expr *e;
	if (o->bits)
		e = dp_storage_bits(&s->arena, &o->storage, o->bit, o->bits, t->is_signed, &absent);
	else
		e = dp_storage_read(&s->arena, &o->storage, t->size, t->kind == DP_CTYPE_INT && t->is_signed, &absent);
	if (absent)
		o->absent = absent;
	else
		o->value = t->kind == DP_CTYPE_FLOAT ? widen(s, e, t->size) : e;
}

struct dp_error *dp_lower_value(struct dp_scope *s, const struct dp_ast *ast, struct dp_operand *o)
{
	if (!o->is_place)
		return NULL;
	switch (o->type->kind) {
	case DP_CTYPE_INT:
	case DP_CTYPE_FLOAT:
	case DP_CTYPE_POINTER:
		read_scalar(s, o);
		break;
	case DP_CTYPE_ARRAY: {
		const struct dp_ctype *to = dp_ctype_to(o->type);
		o->value = dp_storage_address(&s->arena, &o->storage, &o->absent);
		o->type = to ? dp_ctype_pointer(&s->types, to) : NULL;
		break;
	}
	case DP_CTYPE_RECORD:
		return dp_lex_error(s->text, ast->at, "a struct has no single value: name a member of it");
	default:
		if (dp_ctype_is_wide(o->type))
			return dp_lex_error(s->text, ast->at, "a %s can be shown (-t), not computed with%s",
			                    o->type->kind == DP_CTYPE_LONG_DOUBLE ? "long double" : "128-bit integer",
			                    o->type->kind == DP_CTYPE_LONG_DOUBLE ? "" : "; its low half is (long)x");
		o->absent = dp_ctype_unread(o->type);
	}
	if (!o->type || (!o->value && !o->absent))
		return dp_error_nomem();
	o->is_place = false;
	return NULL;
}

/* Converts to float directly: the way through a double would round twice. */
static enum dp_expr_op of_integer(const struct dp_ctype *from, const struct dp_ctype *to)
{
	const bool large = from->size == 8 && !from->is_signed;
	if (to->size == sizeof(float))
		return large ? DP_OP_U2F : DP_OP_I2F;
	return large ? DP_OP_U2D : DP_OP_I2D;
}

struct dp_operand dp_lower_convert(struct dp_scope *s, struct dp_operand o, const struct dp_ctype *to)
{
	struct dp_arena *a = &s->arena;
	const struct dp_ctype *from = o.type;
	o.type = to;
	o.is_constant = o.is_str = o.is_enumerator = o.is_counted = false;
	o.count = NULL;
	o.bits = 0;
	if (!o.value)
		return o;
	if (from->kind == DP_CTYPE_FLOAT && to->is_bool)
		o.value = dp_build_binary(a, DP_OP_FNE, o.value, dp_build_const(a, 0));
	else if (to->is_bool)
		o.value = dp_build_binary(a, DP_OP_NE, o.value, dp_build_const(a, 0));
	else if (from->kind == DP_CTYPE_FLOAT && to->kind != DP_CTYPE_FLOAT)
		o.value = dp_build_cast(a, dp_build_unary(a, to->size == 8 && !to->is_signed ? DP_OP_D2U : DP_OP_D2I, o.value),
		                        (uint8_t)to->size, to->is_signed);
	else if (from->kind != DP_CTYPE_FLOAT && to->kind == DP_CTYPE_FLOAT)
		o.value = widen(s, dp_build_unary(a, of_integer(from, to), o.value), to->size);
	else if (to->kind == DP_CTYPE_INT)
		o.value = dp_build_cast(a, o.value, (uint8_t)to->size, to->is_signed);
	else if (from->kind == DP_CTYPE_FLOAT && to->size == sizeof(float) && from->size != sizeof(float))
		o.value = widen(s, dp_build_unary(a, DP_OP_D2F, o.value), to->size);
	return o;
}

struct dp_operand dp_lower_truth(struct dp_scope *s, struct dp_operand o)
{
	if (o.value && o.type->kind == DP_CTYPE_FLOAT)
		o.value = dp_build_binary(&s->arena, DP_OP_FNE, o.value, dp_build_const(&s->arena, 0));
	return o;
}

/* Replaces a reference by the object it refers to. */
static void follow_reference(struct dp_scope *s, struct dp_operand *o)
{
	const char *absent = NULL;
	const struct dp_ctype *to;
	if (!o->type->is_reference || !(to = dp_ctype_to(o->type)))
		return;
	struct dp_expr *addr = dp_storage_read(&s->arena, &o->storage, 8, false, &absent);
	o->type = to;
	o->storage = absent ? dp_storage_none(&s->arena, absent) : dp_storage_memory(&s->arena, addr);
}

struct dp_operand dp_operand_member(struct dp_scope *s, const struct dp_operand *record, const struct dp_member *m)
{
	struct dp_operand o = {.type = m->type, .is_place = true, .storage = record->storage, .bit = m->bit, .bits = m->bits};
	if (m->is_virtual)
		o.storage = dp_location_base(s, &record->storage, m);
	o.storage.offset += m->offset;
	follow_reference(s, &o);
	return o;
}

static struct dp_error *no_member(struct dp_scope *s, const struct dp_ast *ast, const struct dp_ctype *type, const char *name)
{
	struct dp_suggest suggest;
	struct dp_buf help, message;
	const struct dp_member *m;
	const size_t n = dp_ctype_members(type, &m);
	dp_suggest_init(&suggest, name, strlen(name));
	for (size_t i = 0; i < n; i++)
		if (m[i].name)
			dp_suggest_offer(&suggest, m[i].name, strlen(m[i].name));
	dp_buf_init(&help);
	dp_suggest_print(&suggest, &help);
	dp_buf_init(&message);
	dp_buf_printf(&message, "%s has no member '%s'%s%s", type->name ? type->name : "the record", name,
	              type->size ? "" : ": the debug information only declares it", dp_buf_str(&help));
	struct dp_error *err = dp_lex_point(DP_TAG_NO_VARIABLE, s->text, ast->at, dp_buf_str(&message));
	dp_buf_fini(&message);
	dp_buf_fini(&help);
	return err;
}

struct dp_error *dp_lower_member(struct dp_scope *s, const struct dp_ast *ast, struct dp_operand record, const char *name,
                                 struct dp_operand *ret)
{
	struct dp_member m;
	record.type = dp_type_complete(s, record.type);
	if (record.type->kind != DP_CTYPE_RECORD)
		return dp_lex_error(s->text, ast->at, "'%s' needs a struct, union or class before it, not %s", name,
		                    record.type->name ? record.type->name : "something else");
	if (!dp_ctype_member(record.type, name, &m))
		return no_member(s, ast, record.type, name);
	*ret = dp_operand_member(s, &record, &m);
	return NULL;
}

struct dp_error *dp_lower_deref(struct dp_scope *s, const struct dp_ast *ast, struct dp_operand pointer, struct dp_operand *ret)
{
	const struct dp_operand place = pointer;
	DP_TRY(dp_lower_value(s, ast, &pointer));
	if (pointer.type->kind != DP_CTYPE_POINTER)
		return dp_lex_error(s->text, ast->at, "this is not a pointer; cast it to one: *(int *)%s",
		                    pointer.type->is_word ? "$rdi" : "p");
	const struct dp_ctype *to = dp_ctype_to(pointer.type);
	if (to->kind == DP_CTYPE_VOID)
		return dp_lex_error(s->text, ast->at, "a void pointer has no target type: cast it first");
	*ret = (struct dp_operand){.type = to, .is_place = true};
	if (!pointer.absent || !place.is_place || place.type->kind != DP_CTYPE_POINTER ||
	    !dp_location_behind(s, &place.storage, &ret->storage))
		ret->storage =
		        pointer.absent ? dp_storage_none(&s->arena, pointer.absent) : dp_storage_memory(&s->arena, pointer.value);
	follow_reference(s, ret);
	return NULL;
}

static struct dp_error *lower_member_of(struct dp_scope *s, const struct dp_ast *ast, struct dp_operand *ret)
{
	struct dp_operand record;
	DP_TRY(dp_lower(s, ast->a, &record));
	if (record.type->kind == DP_CTYPE_POINTER || record.type->kind == DP_CTYPE_ARRAY)
		DP_TRY(dp_lower_deref(s, ast, record, &record));
	return dp_lower_member(s, ast, record, ast->name, ret);
}

/* The type of the elements of an array or of what a pointer points into. */
static struct dp_error *element_type(struct dp_scope *s, const struct dp_ast *ast, const struct dp_ctype *base,
                                     const struct dp_ctype **ret)
{
	const bool any = base->kind == DP_CTYPE_ARRAY || base->kind == DP_CTYPE_POINTER;
	*ret = any ? dp_ctype_to(base) : NULL;
	if (any && (*ret)->kind == DP_CTYPE_FUNCTION)
		return dp_lex_error(s->text, ast->at, "a function has no elements");
	if (!any || !(*ret)->size)
		return dp_lex_error(s->text, ast->at, "only arrays and pointers to objects of known size have elements");
	return NULL;
}

/* Element `i` of an array, which need not be in memory. */
static struct dp_operand element(struct dp_operand array, const struct dp_ctype *to, uint64_t i)
{
	array.type = to;
	array.storage.offset += i * to->size;
	return array;
}

static struct dp_error *lower_index(struct dp_scope *s, const struct dp_ast *ast, struct dp_operand *ret)
{
	struct dp_operand base, index;
	uint64_t i;
	DP_TRY(dp_lower(s, ast->a, &base));
	DP_TRY(dp_lower(s, ast->b, &index));
	DP_TRY(dp_lower_value(s, ast->b, &index));
	if (index.type->kind != DP_CTYPE_INT)
		return dp_lex_error(s->text, ast->b->at, "an index must be an integer");
	const struct dp_ctype *to;
	DP_TRY(element_type(s, ast, base.type, &to));
	if (base.type->kind == DP_CTYPE_ARRAY && dp_build_is_const(index.value, &i) &&
	    i < (base.type->count ? base.type->count : UINT32_MAX)) {
		*ret = element(base, to, i);
		follow_reference(s, ret);
		return NULL;
	}
	DP_TRY(dp_lower_value(s, ast->a, &base));
	if (!base.absent)
		base.absent = index.absent;
	if (!base.absent)
		base.value =
		        dp_build_binary(&s->arena, DP_OP_ADD, base.value,
		                        dp_build_binary(&s->arena, DP_OP_MUL, index.value, dp_build_const(&s->arena, to->size)));
	return dp_lower_deref(s, ast, base, ret);
}

static struct dp_error *lower_slice(struct dp_scope *s, const struct dp_ast *ast, struct dp_operand *ret)
{
	struct dp_operand base;
	const uint64_t from = ast->b->value, to = ast->c->value;
	DP_TRY(dp_lower(s, ast->a, &base));
	const bool array = base.type->kind == DP_CTYPE_ARRAY;
	const struct dp_ctype *type;
	DP_TRY(element_type(s, ast, base.type, &type));
	if (from >= to || to - from > 1024)
		return dp_lex_error(s->text, ast->at, "a slice [FROM:TO] has from 1 to 1024 elements; TO is not part of it");
	if (!array)
		DP_TRY(dp_lower_deref(s, ast, base, &base));
	*ret = element(base, type, from);
	ret->type = dp_ctype_array(&s->types, type, to - from);
	ret->is_slice = true;
	return ret->type ? NULL : dp_error_nomem();
}

static void lower_number(struct dp_scope *s, const struct dp_ast *ast, struct dp_operand *ret)
{
	*ret = (struct dp_operand){
	        .type = ast->is_unsigned ? &dp_ctype_ulong : &dp_ctype_long, .is_constant = !ast->is_typed, .is_literal = true};
	ret->value = dp_build_const(&s->arena, ast->value);
	if (ast->is_typed && !ast->is_long && ast->value <= UINT32_MAX)
		ret->type = &dp_ctype_uint;
	if (ast->kind == DP_AST_FLOAT) {
		uint64_t bits;
		memcpy(&bits, &ast->real, sizeof(bits));
		*ret = (struct dp_operand){.type = ast->is_single ? &dp_ctype_float : &dp_ctype_double};
		ret->value = dp_build_const(&s->arena, bits);
	}
}

static struct dp_error *no_type(struct dp_scope *s, const struct dp_ast_type *type)
{
	DP_TRY(dp_scope_debug(s));
	return dp_error(DP_TAG_NO_VARIABLE, "the debug information of '%s' has no type '%s'", dp_module_path(s->at.site.module),
	                type->name);
}

/* C converts a 128-bit integer to a narrower one by dropping the upper bits. */
static void take_low_half(struct dp_scope *s, struct dp_operand *o, const struct dp_ctype *to)
{
	if (!o->is_place || o->bits || !dp_ctype_is_wide(o->type) || o->type->kind == DP_CTYPE_LONG_DOUBLE ||
	    to->kind != DP_CTYPE_INT || to->is_bool)
		return;
	o->value = dp_storage_read(&s->arena, &o->storage, 8, false, &o->absent);
	o->type = &dp_ctype_ulong;
	o->is_place = false;
}

static struct dp_error *lower_cast(struct dp_scope *s, const struct dp_ast *ast, struct dp_operand *ret)
{
	const struct dp_ctype *to = dp_type_find(s, ast->type);
	if (!to)
		return no_type(s, ast->type);
	DP_TRY(dp_lower(s, ast->a, ret));
	take_low_half(s, ret, to);
	DP_TRY(dp_lower_value(s, ast->a, ret));
	if (!dp_ctype_is_scalar(to) || ret->string || ret->is_comm)
		return dp_lex_error(s->text, ast->at,
		                    "a cast must be to a number or a pointer; for an object in memory use *(%s *)p",
		                    ast->type->name);
	*ret = dp_lower_convert(s, *ret, to);
	return NULL;
}

static struct dp_error *lower_sizeof(struct dp_scope *s, const struct dp_ast *ast, struct dp_operand *ret)
{
	struct dp_operand o = {0};
	const struct dp_ctype *t = ast->type ? dp_type_find(s, ast->type) : NULL;
	if (!t && ast->a) {
		DP_TRY(dp_lower(s, ast->a, &o));
		t = o.is_constant ? dp_literal_type(s, ast->a, &o) : o.type;
	}
	if (!t)
		return no_type(s, ast->type);
	t = dp_type_complete(s, t);
	if (!t->size)
		return dp_lex_error(s->text, ast->at, "its size is unknown");
	*ret = (struct dp_operand){.type = &dp_ctype_ulong, .value = dp_build_const(&s->arena, t->size)};
	return NULL;
}

static struct dp_error *address_of(struct dp_scope *s, const struct dp_ast *ast, struct dp_operand *ret)
{
	struct dp_operand o;
	DP_TRY(dp_lower(s, ast->a, &o));
	if (!o.is_place || o.bits)
		return dp_lex_error(s->text, ast->at, o.bits ? "a bit-field has no address" : "this has no address");
	*ret = (struct dp_operand){.type = dp_ctype_pointer(&s->types, o.type)};
	ret->value = dp_storage_address(&s->arena, &o.storage, &ret->absent);
	return ret->type ? NULL : dp_error_nomem();
}

static struct dp_error *arithmetic_unary(struct dp_scope *s, const struct dp_ast *ast, struct dp_operand *ret)
{
	struct dp_arena *a = &s->arena;
	struct dp_operand o = *ret;
	const bool is_float = o.type->kind == DP_CTYPE_FLOAT;
	if (o.type->kind == DP_CTYPE_POINTER || o.string || (is_float && ast->op == '~'))
		return dp_lex_error(s->text, ast->at, "'%c' takes a number", ast->op);
	if (!is_float && !o.is_constant)
		o = dp_lower_convert(s, o, dp_promoted(&o));
	o.is_literal = false;
	if (ast->op != '+' && o.value) {
		const enum dp_expr_op op = is_float ? DP_OP_FNEG : ast->op == '-' ? DP_OP_NEG : DP_OP_COMPL;
		o.value = dp_build_unary(a, op, o.value);
		if (!is_float && !o.is_constant)
			o.value = dp_build_cast(a, o.value, (uint8_t)o.type->size, o.type->is_signed);
	}
	if (o.is_constant)
		o.type = &dp_ctype_long;
	*ret = o;
	return NULL;
}

static struct dp_error *lower_unary(struct dp_scope *s, const struct dp_ast *ast, struct dp_operand *ret)
{
	if (ast->op == '&')
		return address_of(s, ast, ret);
	DP_TRY(dp_lower(s, ast->a, ret));
	if (ast->op == '*')
		return dp_lower_deref(s, ast, *ret, ret);
	DP_TRY(dp_lower_value(s, ast->a, ret));
	if (ast->op != '!')
		return arithmetic_unary(s, ast, ret);
	if (ret->string || ret->is_comm)
		return dp_lex_error(s->text, ast->at, "'!' takes a number or a pointer");
	struct dp_operand o = dp_lower_truth(s, *ret);
	*ret = (struct dp_operand){.type = &dp_ctype_int, .absent = o.absent, .is_constant = o.is_constant};
	ret->value = o.value ? dp_build_unary(&s->arena, DP_OP_NOT, o.value) : NULL;
	return NULL;
}

struct dp_error *dp_lower(struct dp_scope *s, const struct dp_ast *ast, struct dp_operand *ret)
{
	bool found = false;
	if (s->recorded)
		DP_TRY(dp_lower_recorded(s, ast, &found, ret));
	if (found)
		return NULL;
	switch (ast->kind) {
	case DP_AST_NUMBER:
	case DP_AST_FLOAT:
		lower_number(s, ast, ret);
		return NULL;
	case DP_AST_STRING:
		*ret = (struct dp_operand){.type = &dp_ctype_void_pointer, .string = ast->name};
		ret->value = dp_build_const(&s->arena, 0);
		return NULL;
	case DP_AST_NAME: {
		DP_TRY(dp_lower_name(s, ast, ret));
		if (ret->is_place)
			follow_reference(s, ret);
		return NULL;
	}
	case DP_AST_REGISTER:
		return dp_lower_register(s, ast->name, ast, ret);
	case DP_AST_UNARY:
		return lower_unary(s, ast, ret);
	case DP_AST_BINARY:
	case DP_AST_COND:
		return dp_lower_binary(s, ast, ret);
	case DP_AST_MEMBER:
		return lower_member_of(s, ast, ret);
	case DP_AST_INDEX:
		return lower_index(s, ast, ret);
	case DP_AST_SLICE:
		return lower_slice(s, ast, ret);
	case DP_AST_CAST:
		return lower_cast(s, ast, ret);
	case DP_AST_SIZEOF:
		return lower_sizeof(s, ast, ret);
	case DP_AST_STR:
		return dp_lower_str(s, ast, ret);
	}
	return dp_error(DP_TAG_INTERNAL, "an expression of an unknown kind");
}
