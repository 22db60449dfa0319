/* SPDX-License-Identifier: MIT */
/* Typed values: steps from one value to another. */
#include "pmodules/value/value.h"
#include "pmodules/value/eval.h"
#include "probes/image/module.h"

#include <dwarf.h>
#include <string.h>

enum { FOLLOW_MAX = 16, NESTING_MAX = 16, PATH_MAX_STEPS = 64, PATH_MAX_BYTES = 512 };

struct dp_value *dp_value_create(struct dp_debug_ctx *w, const struct dp_ctype *type, const char *name)
{
	struct dp_value *v = type ? dp_arena_alloc(&w->arena, sizeof(*v)) : NULL;
	if (v)
		*v = (struct dp_value){.w = w, .type = type, .name = name, .where = DP_VALUE_MEMORY};
	return v;
}

static struct dp_value *keep(const struct dp_value *v)
{
	struct dp_value *x = dp_arena_alloc(&v->w->arena, sizeof(*x));
	if (x)
		*x = *v;
	return x;
}

static struct dp_error *give(const struct dp_value *v, struct dp_value **ret)
{
	*ret = keep(v);
	return *ret ? NULL : dp_error_nomem();
}

/* ---- names ---------------------------------------------------------------------------------------------------------------- */

/* A module may follow a list for a long time: only the end of a long path is kept. */
static const char *path_of(const struct dp_value *v, unsigned steps)
{
	struct dp_value *own = (struct dp_value *)v;
	struct dp_arena *a = &v->w->arena;
	if (v->path || v->step == DP_STEP_ROOT)
		return v->path ? v->path : v->name ? v->name : "";
	const struct dp_value *from = v->parent;
	const bool arrow = v->step == DP_STEP_MEMBER && v->name && from->step == DP_STEP_DEREF && from->parent;
	const bool through = arrow || from->type->kind == DP_CTYPE_POINTER;
	const char *base = steps ? path_of(arrow ? from->parent : from, steps - 1) : "";
	base = !steps || strlen(base) > PATH_MAX_BYTES ? "..." : base;
	if (v->step == DP_STEP_INDEX)
		own->path = dp_arena_printf(a, "%s[%lld]", base, (long long)v->index);
	else if (v->step == DP_STEP_DEREF)
		own->path = dp_arena_printf(a, "*%s", base);
	else if (!v->name)
		own->path = base;
	else
		own->path = dp_arena_printf(a, "%s%s%s", base, !*base && !arrow ? "" : through ? "->" : ".", v->name);
	return own->path ? own->path : "";
}

const char *dp_value_name(const struct dp_value *v)
{
	return path_of(v, PATH_MAX_STEPS);
}

const char *dp_value_object(const struct dp_value *v)
{
	const struct dp_module *m = v->module ? v->module : dp_ctype_module(v->type);
	return m ? dp_module_path(m) : "";
}

const char *dp_value_unit(const struct dp_value *v)
{
	while (!v->unit && v->parent)
		v = v->parent;
	return v->unit ? v->unit : "";
}

bool dp_value_address(const struct dp_value *v, uint64_t *ret)
{
	if (v->where != DP_VALUE_MEMORY)
		return false;
	*ret = v->addr;
	return true;
}

uint64_t dp_value_size(struct dp_value *v)
{
	return dp_ctype_complete(v->w, v->type)->size;
}

bool dp_value_length(struct dp_value *v, uint64_t *ret)
{
	if (v->type->kind != DP_CTYPE_ARRAY || !(v->type->is_sized || v->type->count))
		return false;
	*ret = v->type->count;
	return true;
}

const char *dp_value_type_name(struct dp_value *v)
{
	return v->type->text;
}

const char *dp_value_base_type(struct dp_value *v)
{
	return v->type->base;
}

static enum dp_var_kind real_kind(uint64_t size, bool is_complex)
{
	if (is_complex)
		return size == 8 ? DP_VAR_CFLT : size == 16 ? DP_VAR_CDBL : DP_VAR_CLDBL;
	return size == 4 ? DP_VAR_FLT : size == 8 ? DP_VAR_DBL : DP_VAR_LDBL;
}

enum dp_var_kind dp_value_kind(struct dp_value *v)
{
	const struct dp_ctype *t = v->type;
	switch (t->kind) {
	case DP_CTYPE_INT:
	case DP_CTYPE_INT128:
		return t->is_enum ? DP_VAR_ENUM : t->is_signed || t->is_bool || t->is_char ? DP_VAR_LL : DP_VAR_ULL;
	case DP_CTYPE_FLOAT:
	case DP_CTYPE_LONG_DOUBLE:
	case DP_CTYPE_COMPLEX:
		return real_kind(t->size, t->kind == DP_CTYPE_COMPLEX);
	case DP_CTYPE_POINTER:
		return DP_VAR_REFERENCE;
	case DP_CTYPE_ARRAY:
		return dp_ctype_is_char(dp_ctype_to(t)) ? DP_VAR_STRING : DP_VAR_ARRAY;
	case DP_CTYPE_RECORD:
		return dp_ctype_complete_near(v->w, t)->is_incomplete ? DP_VAR_BOTTOM : DP_VAR_TUPLE;
	case DP_CTYPE_FUNCTION:
	case DP_CTYPE_METHOD:
		return DP_VAR_FN;
	case DP_CTYPE_MEMBER:
		return DP_VAR_LL;
	default:
		return DP_VAR_BOTTOM;
	}
}

/* ---- errors ---------------------------------------------------------------------------------------------------------------- */

static struct dp_error *no_value(const struct dp_value *v, const char *why)
{
	if (v->where == DP_VALUE_MEMORY)
		return dp_error(DP_TAG_NO_VALUE, "'%s' (%s at 0x%llx) has no value: %s", dp_value_name(v), v->type->text,
		                (unsigned long long)v->addr, why);
	return dp_error(DP_TAG_NO_VALUE, "'%s' (%s) has no value: %s", dp_value_name(v), v->type->text, why);
}

static struct dp_error *cannot(const struct dp_value *v, const char *what)
{
	return dp_error(DP_TAG_NO_VALUE, "'%s' is of type '%s', which %s", dp_value_name(v), v->type->text, what);
}

/* ---- steps -------------------------------------------------------------------------------------------------------------- */

/* Locates a virtual base: the DIE's expression starts with the object's address and reads its vtable. */
static const char *virtual_base(const struct dp_value *v, const struct dp_member *m, uint64_t *ret)
{
	Dwarf_Die die = m->die;
	Dwarf_Attribute attr;
	Dwarf_Op *ops;
	size_t n;
	if (v->where != DP_VALUE_MEMORY || !dwarf_attr_integrate(&die, DW_AT_data_member_location, &attr) ||
	    dwarf_getlocation(&attr, &ops, &n) || !n)
		return "in a virtual base";
	const struct dp_eval e = {.w = v->w,
	                          .module = dp_ctype_module(v->type),
	                          .debug = dp_debug_ctx_debug(v->w, dp_ctype_module(v->type)),
	                          .attr = &attr,
	                          .has_initial = true,
	                          .initial = v->addr};
	return dp_eval_number(&e, ops, n, ret);
}

bool dp_value_sub(const struct dp_value *v, const struct dp_member *m, struct dp_value *ret)
{
	*ret = (struct dp_value){.w = v->w,
	                         .type = m->type,
	                         .parent = v,
	                         .name = m->name,
	                         .step = DP_STEP_MEMBER,
	                         .where = v->where,
	                         .late = v->late,
	                         .why = v->why,
	                         .bit = m->bit,
	                         .bits = m->bits};
	const uint64_t size = m->bits ? (m->bit + m->bits + 7u) / 8 : m->type->size;
	if (m->is_virtual) {
		const char *why = virtual_base(v, m, &ret->addr);
		ret->where = why ? DP_VALUE_NOWHERE : DP_VALUE_MEMORY;
		ret->why = why;
	} else if (v->where == DP_VALUE_MEMORY) {
		ret->addr = v->addr + m->offset;
	} else if (v->where == DP_VALUE_BYTES && m->offset <= v->nbytes && size <= v->nbytes - m->offset) {
		ret->bytes = v->bytes + m->offset;
		ret->valid = v->valid ? v->valid + m->offset : NULL;
		ret->nbytes = v->nbytes - m->offset;
	} else if (v->where == DP_VALUE_BYTES) {
		ret->where = DP_VALUE_NOWHERE;
		ret->why = DP_WHY_OPTIMIZED;
	}
	return ret->where != DP_VALUE_NOWHERE;
}

static bool find_member(struct dp_value *v, const char *name, unsigned depth, struct dp_value *ret)
{
	const struct dp_member *m;
	const size_t n = dp_ctype_members(v->type, &m);
	struct dp_value inner;
	for (size_t i = 0; i < n; i++)
		if (*name && !strcmp(dp_member_label(&m[i]), name)) {
			dp_value_sub(v, &m[i], ret);
			return true;
		}
	for (size_t i = 0; i < n && depth < NESTING_MAX; i++) {
		if (m[i].name || m[i].type->kind != DP_CTYPE_RECORD)
			continue;
		dp_value_sub(v, &m[i], &inner);
		inner.type = dp_ctype_complete(v->w, inner.type);
		if (find_member(&inner, name, depth + 1, ret)) {
			ret->parent = v;
			return true;
		}
	}
	return false;
}

static bool is_pointer(const struct dp_value *v)
{
	return v->type->kind == DP_CTYPE_POINTER;
}

/* Follows pointers and references to the object. */
static struct dp_error *follow(struct dp_value *v, struct dp_value **ret)
{
	for (unsigned i = 0; is_pointer(v) && i < FOLLOW_MAX; i++)
		DP_TRY(dp_value_deref(v, &v));
	*ret = v;
	return NULL;
}

struct dp_error *dp_value_member(struct dp_value *v, const char *name, struct dp_value **ret)
{
	struct dp_value found;
	DP_TRY(follow(v, &v));
	if (v->type->kind != DP_CTYPE_RECORD)
		return cannot(v, "has no members");
	v = keep(v);
	if (!v)
		return dp_error_nomem();
	v->type = dp_ctype_complete(v->w, v->type);
	if (v->type->is_incomplete)
		return dp_error(DP_TAG_NO_VARIABLE, "'%s' is of type '%s', which no unit defines", dp_value_name(v),
		                v->type->text);
	if (!find_member(v, name, 0, &found))
		return dp_error(DP_TAG_NO_VARIABLE, "'%s' (%s) has no member '%s'", dp_value_name(v), v->type->text, name);
	return give(&found, ret);
}

struct dp_error *dp_value_deref(struct dp_value *v, struct dp_value **ret)
{
	uint64_t addr;
	const char *why = NULL;
	struct dp_value x = {.w = v->w, .parent = v, .step = DP_STEP_DEREF, .where = DP_VALUE_MEMORY};
	if (v->type->kind == DP_CTYPE_ARRAY)
		return dp_value_index(v, 0, ret);
	if (!is_pointer(v))
		return cannot(v, "is not a pointer");
	if (!dp_value_scalar(v, &addr, &why))
		return no_value(v, why);
	x.type = dp_ctype_complete(v->w, dp_ctype_to(v->type));
	x.addr = addr;
	if (x.type->kind == DP_CTYPE_VOID)
		return cannot(v, "points to void: cast it");
	return give(&x, ret);
}

struct dp_error *dp_value_index(struct dp_value *v, int64_t i, struct dp_value **ret)
{
	struct dp_value x = {
	        .w = v->w, .parent = v, .step = DP_STEP_INDEX, .index = i, .where = v->where, .late = v->late, .why = v->why};
	uint64_t addr = v->addr, offset;
	const char *why = NULL;
	if (v->type->kind != DP_CTYPE_ARRAY && (v->type->kind != DP_CTYPE_POINTER || v->type->is_reference))
		return cannot(v, "has no elements");
	x.type = dp_ctype_complete(v->w, dp_ctype_to(v->type));
	if (v->type->kind == DP_CTYPE_POINTER) {
		if (!dp_value_scalar(v, &addr, &why))
			return no_value(v, why);
		x.where = DP_VALUE_MEMORY;
	}
	if (!x.type->size)
		return cannot(v, "has elements of unknown size");
	offset = (uint64_t)i * x.type->size;
	x.addr = addr + offset;
	if (x.where == DP_VALUE_BYTES) {
		if (i < 0 || offset > v->nbytes || x.type->size > v->nbytes - offset || offset / x.type->size != (uint64_t)i)
			return no_value(v, "its registers do not contain that element");
		x.bytes = v->bytes + offset;
		x.valid = v->valid ? v->valid + offset : NULL;
		x.nbytes = v->nbytes - offset;
	}
	return give(&x, ret);
}

/* Changes a pointer's target type, or the type of an object. */
struct dp_error *dp_value_cast(struct dp_value *v, const char *type, struct dp_value **ret)
{
	struct dp_value x = *v;
	const char *path = dp_arena_printf(&v->w->arena, "((%s)%s)", type, dp_value_name(v));
	x.type = dp_debug_ctx_type(v->w, type, dp_value_object(v));
	if (!x.type)
		return dp_error(DP_TAG_NO_VARIABLE, "no module of the program has a type '%s'", type);
	x.path = path;
	if (v->type->kind == DP_CTYPE_ARRAY && x.type->kind == DP_CTYPE_POINTER && v->where == DP_VALUE_MEMORY) {
		x.where = DP_VALUE_BYTES;
		x.bytes = (const uint8_t *)dp_arena_copy(&v->w->arena, (const char *)&v->addr, sizeof(v->addr));
		x.nbytes = sizeof(v->addr);
		if (!x.bytes)
			return dp_error_nomem();
	}
	return give(&x, ret);
}

struct dp_error *dp_value_address_of(struct dp_value *v, struct dp_value **ret)
{
	struct dp_value x = {.w = v->w, .where = DP_VALUE_BYTES, .nbytes = sizeof(v->addr), .module = v->module, .unit = v->unit};
	if (v->where != DP_VALUE_MEMORY || v->bits)
		return no_value(v, v->bits ? "a bit-field has no address" : "it is not in memory");
	x.type = dp_ctype_pointer(v->type->in ? v->type->in : &v->w->basic, v->type);
	x.bytes = (const uint8_t *)dp_arena_copy(&v->w->arena, (const char *)&v->addr, sizeof(v->addr));
	x.path = dp_arena_printf(&v->w->arena, "&%s", dp_value_name(v));
	return x.type && x.bytes ? give(&x, ret) : dp_error_nomem();
}

struct dp_error *dp_value_container(struct dp_value *v, const char *type, const char *member, struct dp_value **ret)
{
	struct dp_value x = {.w = v->w, .where = DP_VALUE_MEMORY, .module = v->module, .unit = v->unit}, found;
	if (is_pointer(v))
		DP_TRY(dp_value_deref(v, &v));
	if (v->where != DP_VALUE_MEMORY)
		return no_value(v, "it is not in memory");
	x.type = dp_debug_ctx_type(v->w, type, dp_value_object(v));
	if (!x.type || x.type->kind != DP_CTYPE_RECORD)
		return dp_error(DP_TAG_NO_VARIABLE, "no module of the program has a struct, union or class '%s'", type);
	if (!find_member(&x, member, 0, &found) || found.where != DP_VALUE_MEMORY)
		return dp_error(DP_TAG_NO_VARIABLE, "'%s' has no member '%s' at a fixed offset", type, member);
	x.addr = v->addr - found.addr;
	x.path = dp_arena_printf(&v->w->arena, "container_of(%s, %s, %s)", dp_value_name(v), type, member);
	return give(&x, ret);
}

struct dp_error *dp_value_deref_at(struct dp_value *v, uint64_t addr, struct dp_value **ret)
{
	struct dp_value x = {.w = v->w, .parent = v, .step = DP_STEP_DEREF, .where = DP_VALUE_MEMORY, .addr = addr};
	if (!is_pointer(v)) {
		*ret = dp_value_move(v, addr);
		return *ret ? NULL : dp_error_nomem();
	}
	x.type = dp_ctype_complete(v->w, dp_ctype_to(v->type));
	if (x.type->kind == DP_CTYPE_VOID)
		return cannot(v, "points to void: cast it");
	return give(&x, ret);
}

struct dp_value *dp_value_move(struct dp_value *v, uint64_t addr)
{
	struct dp_value *x = keep(v);
	if (x) {
		x->where = DP_VALUE_MEMORY;
		x->addr = addr;
	}
	return x;
}

struct dp_error *dp_value_members(struct dp_value *v, bool (*each)(const char *name, struct dp_value *member, void *data),
                                  void *data)
{
	const struct dp_member *m;
	struct dp_value *record, one;
	DP_TRY(follow(v, &v));
	record = keep(v);
	if (!record)
		return dp_error_nomem();
	record->type = dp_ctype_complete(v->w, v->type);
	if (record->type->kind != DP_CTYPE_RECORD)
		return cannot(v, "has no members");
	const size_t n = dp_ctype_members(record->type, &m);
	for (size_t i = 0; i < n; i++) {
		dp_value_sub(record, &m[i], &one);
		struct dp_value *member = keep(&one);
		if (!member)
			return dp_error_nomem();
		if (!each(dp_member_label(&m[i]), member, data))
			break;
	}
	return NULL;
}

struct dp_value *dp_value_of(const struct dp_snap_variable *v)
{
	return v->value;
}
