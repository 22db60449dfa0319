/* SPDX-License-Identifier: MIT */
/* A function's variables at a pc, with locations: parameters in order, locals of all enclosing blocks, inner blocks last. */
#include "pmodules/frames/frames.h"
#include "probes/dwarf/dwarf_machine.h"
#include "probes/expr/scope/scope_internal.h"

#include <dwarf.h>
#include <stdlib.h>
#include <string.h>

enum { VARIABLES_MAX = 4096, CONSTANT_MAX = 256, ELEMENTS_MAX = 1 << 24, DIMENSIONS_MAX = 16 };
#define WHY_NOT_SET "not set yet"

struct walk {
	struct dp_frames *f;
	struct dp_fplan *p;
	struct dp_fscope *s;
	size_t capacity;
	bool before_body;
};

/* ---- locations ------------------------------------------------------------------------------------------------------------ */

static void constant(struct walk *w, Dwarf_Attribute *attr, struct dp_fvariable *v)
{
	Dwarf_Block block;
	Dwarf_Word u = 0;
	Dwarf_Sword sword;
	uint8_t *bytes;
	if (!dwarf_formblock(attr, &block) && block.length <= CONSTANT_MAX) {
		/* clang writes only the ten significant bytes of a long double. */
		const bool is_long = v->type->kind == DP_CTYPE_LONG_DOUBLE && block.length == 10;
		v->nconstant = is_long ? v->type->size : block.length;
		bytes = dp_arena_alloc(&w->f->w->arena, v->nconstant < 16 ? 16 : v->nconstant);
		if (bytes)
			memcpy(bytes, block.data, block.length);
	} else {
		/* Compilers use a fixed-size form for non-negative values, whatever the type. */
		if (dwarf_whatform(attr) == DW_FORM_sdata && !dwarf_formsdata(attr, &sword))
			u = (Dwarf_Word)sword;
		else if (dwarf_formudata(attr, &u))
			return;
		bytes = dp_arena_alloc(&w->f->w->arena, 2 * sizeof(u));
		if (bytes) {
			memset(bytes, v->type->is_signed && (int64_t)u < 0 ? 0xff : 0, 2 * sizeof(u));
			memcpy(bytes, &u, sizeof(u));
		}
		v->nconstant = 2 * sizeof(u);
	}
	v->constant = bytes;
}

static bool is_list(Dwarf_Attribute *attr)
{
	const unsigned form = dwarf_whatform(attr);
	return form == DW_FORM_sec_offset || form == DW_FORM_loclistx || form == DW_FORM_data4 || form == DW_FORM_data8;
}

/* Is its one location in a frame that the prologue has not set up yet? */
static bool is_unset(const struct walk *w, const struct dp_fvariable *v)
{
	return w->before_body && !is_list((Dwarf_Attribute *)&v->attr) && dp_dwarf_is_in_frame(v->ops, v->nops);
}

/* Is the operation for a register that frames have? */
static bool is_register(const Dwarf_Op *op, unsigned from, uint8_t *ret)
{
	*ret = (uint8_t)(op->atom - from);
	return op->atom >= from && op->atom < from + DP_DWARF_REGS;
}

static enum dp_fplace based_place(const struct dp_fplan *p, struct dp_fvariable *v)
{
	const Dwarf_Op *base = p->base.ops;
	if (p->base.n != 1)
		return DP_FPLACE_EXPR;
	if (base->atom == DW_OP_call_frame_cfa)
		return DP_FPLACE_AT_CFA;
	if (is_register(base, DW_OP_reg0, &v->reg))
		return DP_FPLACE_AT_REG;
	if (!is_register(base, DW_OP_breg0, &v->reg))
		return DP_FPLACE_EXPR;
	v->offset += base->number;
	return DP_FPLACE_AT_REG;
}

static enum dp_fplace place_of(const struct dp_fplan *p, struct dp_fvariable *v)
{
	const Dwarf_Op *op = v->ops;
	if (v->nops != 1)
		return DP_FPLACE_EXPR;
	v->offset = op->number;
	if (op->atom == DW_OP_fbreg)
		return based_place(p, v);
	if (op->atom == DW_OP_addr) {
		v->offset = dp_debug_addr(p->debug, op->number).v;
		return DP_FPLACE_FIXED;
	}
	if (is_register(op, DW_OP_breg0, &v->reg))
		return DP_FPLACE_AT_REG;
	return is_register(op, DW_OP_reg0, &v->reg) && v->type->size && v->type->size <= 8 ? DP_FPLACE_IN_REG : DP_FPLACE_EXPR;
}

static void locate(struct walk *w, struct dp_fvariable *v)
{
	Dwarf_Attribute attr;
	v->why = DP_WHY_OPTIMIZED;
	if (dwarf_attr_integrate(&v->die, DW_AT_location, &v->attr)) {
		if (dwarf_getlocation_addr(&v->attr, w->p->dpc, &v->ops, &v->nops, 1) != 1 || !v->nops)
			return;
		v->has_location = !is_unset(w, v);
		v->why = v->has_location ? NULL : WHY_NOT_SET;
		v->place = place_of(w->p, v);
	} else if (dwarf_attr_integrate(&v->die, DW_AT_const_value, &attr)) {
		constant(w, &attr, v);
		v->why = v->constant ? NULL : DP_WHY_UNKNOWN;
	}
}

static void add(struct walk *w, Dwarf_Die *die, bool is_parameter, int64_t index)
{
	struct dp_debug_ctx *world = w->f->w;
	const char *name = dp_die_name(die);
	if ((!name && !is_parameter) || w->s->n >= VARIABLES_MAX)
		return;
	if (w->s->n == w->capacity) {
		const size_t capacity = w->capacity ? 2 * w->capacity : 8;
		struct dp_fvariable *grown = dp_arena_alloc(&world->arena, capacity * sizeof(*grown));
		if (!grown)
			return;
		if (w->s->n)
			memcpy(grown, w->s->variable, w->s->n * sizeof(*grown));
		w->s->variable = grown;
		w->capacity = capacity;
	}
	struct dp_fvariable *v = &w->s->variable[w->s->n++];
	*v = (struct dp_fvariable){.name.text = name ? name : "", .die = *die, .is_parameter = is_parameter, .index = index};
	v->type = dp_ctype_of(dp_debug_ctx_types(world, w->p->module->module), die);
	locate(w, v);
}

/* ---- finding variables ---------------------------------------------------------------------------------------------------- */

static void add_local(Dwarf_Die *die, void *w)
{
	add(w, die, false, -1);
}

/* Is the innermost pc in the prologue? */
static bool is_before_body(struct dp_fplan *p)
{
	Dwarf_Addr entry;
	return p->exact && !dwarf_entrypc(&p->real, &entry) && p->dpc >= entry && p->dpc < dp_function_body(&p->real, entry);
}

void dp_frames_variables(struct dp_frames *f, struct dp_fplan *p, struct dp_fscope *s, bool is_real)
{
	struct walk w = {.f = f, .p = p, .s = s, .before_body = is_real && is_before_body(p)};
	Dwarf_Die *parameter = calloc(DP_PARAMETERS_MAX, sizeof(*parameter));
	const size_t n = parameter ? dp_parameters_of(&s->die, parameter, DP_PARAMETERS_MAX) : 0;
	for (size_t i = 0; i < n; i++)
		add(&w, &parameter[i], true, (int64_t)i);
	free(parameter);
	dp_block_variables(&(struct dp_block_walk){.pc = p->dpc, .lost = true, .each = add_local, .data = &w}, &s->die);
}

/* ---- values --------------------------------------------------------------------------------------------------------------- */

/* The value of an attribute: a constant, an expression, or a reference to a variable. */
static bool bound_of(const struct dp_eval *e, uint64_t pc, Dwarf_Attribute *attr, uint64_t *ret)
{
	Dwarf_Attribute place;
	Dwarf_Die die;
	Dwarf_Op *ops;
	size_t n;
	const char *why;
	struct dp_eval there = *e;
	struct dp_value v = {.w = e->w};
	if (dwarf_formref_die(attr, &die)) {
		if (!dwarf_attr_integrate(&die, DW_AT_location, &place) || dwarf_getlocation_addr(&place, pc, &ops, &n, 1) != 1 ||
		    !n)
			return false;
		v.type = dp_ctype_of(dp_debug_ctx_types(e->w, e->module), &die);
		there.attr = &place;
		dp_eval_place(&there, ops, n, &v);
		return dp_value_scalar(&v, ret, &why);
	}
	there.attr = attr;
	return !dwarf_getlocation(attr, &ops, &n) && n && !dp_eval_number(&there, ops, n, ret);
}

static bool length_of(const struct dp_eval *e, uint64_t pc, Dwarf_Die *subrange, uint64_t *ret)
{
	Dwarf_Attribute attr;
	const bool is_count = dwarf_attr(subrange, DW_AT_count, &attr);
	if (!is_count && !dwarf_attr(subrange, DW_AT_upper_bound, &attr))
		return false;
	if (dwarf_formudata(&attr, ret) && !bound_of(e, pc, &attr, ret))
		return false;
	*ret += !is_count;
	return *ret && *ret < ELEMENTS_MAX;
}

/* Sizes an array whose length is computed at run time, in any of its dimensions. */
static void measure(const struct dp_eval *e, uint64_t pc, struct dp_value *x)
{
	Dwarf_Die die = x->type->die, child;
	uint64_t count[DIMENSIONS_MAX];
	size_t n = 0;
	if (!x->type->is_dynamic || !die.addr || dwarf_tag(&die) != DW_TAG_array_type || dwarf_child(&die, &child))
		return;
	do {
		if (n == DIMENSIONS_MAX || (dwarf_tag(&child) == DW_TAG_subrange_type && !length_of(e, pc, &child, &count[n++])))
			return;
	} while (!dwarf_siblingof(&child, &child));
	const struct dp_ctype *t = dp_ctype_of(dp_debug_ctx_types(e->w, dp_ctype_module(x->type)), &die);
	while (t && n)
		t = dp_ctype_array(t->in ? t->in : &e->w->basic, t, count[--n]);
	if (t && t->size)
		x->type = t;
}

/* Evaluates common locations directly; false: run the expression. */
static bool find_quickly(const struct dp_fstate *s, const struct dp_fvariable *v, struct dp_value *x)
{
	const bool known = s->regs.known >> v->reg & 1;
	const uint64_t *reg = &s->regs.value[v->reg];
	switch (v->place) {
	case DP_FPLACE_FIXED:
		x->addr = v->offset;
		break;
	case DP_FPLACE_AT_CFA:
		x->addr = s->cfa + v->offset;
		if (!s->cfa)
			return false;
		break;
	case DP_FPLACE_AT_REG:
		x->addr = *reg + v->offset;
		if (!known)
			return false;
		break;
	case DP_FPLACE_IN_REG:
		x->where = DP_VALUE_BYTES;
		x->bytes = (const uint8_t *)reg;
		x->nbytes = v->type->size;
		return known && x->type == v->type;
	default:
		return false;
	}
	x->where = DP_VALUE_MEMORY;
	return true;
}

void dp_frame_find(struct dp_frames *f, const struct dp_fstate *s, const struct dp_fvariable *v, struct dp_value *ret)
{
	*ret = (struct dp_value){.w = f->w, .type = v->type, .name = v->name.text, .where = DP_VALUE_NOWHERE, .why = v->why};
	const struct dp_eval e = {.w = f->w,
	                          .frame = s,
	                          .base = &s->plan->base,
	                          .entry = dp_frames_entry_value,
	                          .frames = f,
	                          .module = s->plan->module->module,
	                          .debug = s->plan->debug,
	                          .attr = (Dwarf_Attribute *)&v->attr};
	if (v->type->kind == DP_CTYPE_ARRAY)
		measure(&e, s->plan->dpc, ret);
	if (v->has_location) {
		const struct dp_value none = *ret;
		if (find_quickly(s, v, ret))
			return;
		*ret = none;
		dp_eval_place(&e, v->ops, v->nops, ret);
	} else if (v->constant) {
		ret->where = DP_VALUE_BYTES;
		ret->bytes = v->constant;
		ret->nbytes = v->nconstant;
	}
}
