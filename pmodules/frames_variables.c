/* SPDX-License-Identifier: MIT */
/* A function's variables at a pc: parameters in order, locals of every block around it, inner blocks last; and where they are. */
#include "pmodules/frames.h"
#include "probes/scope_internal.h"

#include <dwarf.h>
#include <stdlib.h>
#include <string.h>

enum { DEPTH_MAX = 64, STEPS_MAX = 1 << 16, VARIABLES_MAX = 4096, CONSTANT_MAX = 256 };
#define WHY_NOT_SET "not set yet"

struct walk {
	struct dp_frames *f;
	struct dp_fplan *p;
	struct dp_fscope *s;
	size_t capacity;
	unsigned steps;
	bool before_body;
};

static const char *name_of(Dwarf_Die *die)
{
	Dwarf_Attribute attr;
	return dwarf_attr_integrate(die, DW_AT_name, &attr) ? dwarf_formstring(&attr) : NULL;
}

/* ---- where it is -------------------------------------------------------------------------------------------------------- */

static void constant(struct walk *w, Dwarf_Attribute *attr, struct dp_fvariable *v)
{
	Dwarf_Block block;
	Dwarf_Word u = 0;
	Dwarf_Sword sword;
	uint8_t *bytes;
	if (!dwarf_formblock(attr, &block) && block.length <= CONSTANT_MAX) {
		bytes = dp_arena_alloc(&w->f->w->arena, block.length ? block.length : 1);
		if (bytes)
			memcpy(bytes, block.data, block.length);
		v->nconstant = block.length;
	} else {
		if (v->type->is_signed && !dwarf_formsdata(attr, &sword))
			u = (Dwarf_Word)sword;
		else if (dwarf_formudata(attr, &u) && (dwarf_formsdata(attr, &sword) || !((u = (Dwarf_Word)sword) || true)))
			return;
		bytes = dp_arena_alloc(&w->f->w->arena, sizeof(u));
		if (bytes)
			memcpy(bytes, &u, sizeof(u));
		v->nconstant = sizeof(u);
	}
	v->constant = bytes;
}

static bool is_list(Dwarf_Attribute *attr)
{
	const unsigned form = dwarf_whatform(attr);
	return form == DW_FORM_sec_offset || form == DW_FORM_loclistx || form == DW_FORM_data4 || form == DW_FORM_data8;
}

/* One place for the whole function, in a frame that the prologue has not made yet. */
static bool is_unset(const struct walk *w, const struct dp_fvariable *v)
{
	return w->before_body && !is_list((Dwarf_Attribute *)&v->attr) && v->nops &&
	       (v->ops[0].atom == DW_OP_fbreg || (v->ops[0].atom >= DW_OP_breg0 && v->ops[0].atom <= DW_OP_breg31));
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
	} else if (dwarf_attr_integrate(&v->die, DW_AT_const_value, &attr)) {
		constant(w, &attr, v);
		v->why = v->constant ? NULL : DP_WHY_UNKNOWN;
	}
}

static void add(struct walk *w, Dwarf_Die *die, bool is_parameter, int64_t index)
{
	struct dp_world *world = w->f->w;
	const char *name = name_of(die);
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
	v->type = dp_stype_of(world, w->p->module->module, die);
	locate(w, v);
}

/* ---- which there are ----------------------------------------------------------------------------------------------------- */

static void walk_block(struct walk *w, Dwarf_Die *block, unsigned depth)
{
	Dwarf_Die child;
	if (depth > DEPTH_MAX || dwarf_child(block, &child))
		return;
	do {
		if (dwarf_tag(&child) == DW_TAG_variable && !dp_die_flag(&child, DW_AT_declaration) &&
		    !dp_die_flag(&child, DW_AT_artificial))
			add(w, &child, false, -1);
	} while (w->steps++ < STEPS_MAX && !dwarf_siblingof(&child, &child));
	if (dwarf_child(block, &child))
		return;
	do {
		const int tag = dwarf_tag(&child);
		if ((tag == DW_TAG_lexical_block || tag == DW_TAG_try_block || tag == DW_TAG_catch_block) &&
		    dwarf_haspc(&child, w->p->dpc) > 0)
			walk_block(w, &child, depth + 1);
	} while (w->steps++ < STEPS_MAX && !dwarf_siblingof(&child, &child));
}

/* Is the innermost pc in front of the function's body? */
static bool is_before_body(struct dp_fplan *p)
{
	Dwarf_Addr *at = NULL, entry, body;
	if (!p->exact || dwarf_entrypc(&p->real, &entry))
		return false;
	body = entry;
	for (int n = dwarf_entry_breakpoints(&p->real, &at), i = 0; i < n; i++)
		if (at[i] > body && dwarf_haspc(&p->real, at[i]) > 0)
			body = at[i];
	free(at);
	return p->dpc >= entry && p->dpc < body;
}

void dp_frames_variables(struct dp_frames *f, struct dp_fplan *p, struct dp_fscope *s, bool is_real)
{
	struct walk w = {.f = f, .p = p, .s = s, .before_body = is_real && is_before_body(p)};
	Dwarf_Die *parameter = calloc(DP_PARAMETERS_MAX, sizeof(*parameter));
	const size_t n = parameter ? dp_parameters_of(&s->die, parameter, DP_PARAMETERS_MAX) : 0;
	for (size_t i = 0; i < n; i++)
		add(&w, &parameter[i], true, (int64_t)i);
	free(parameter);
	walk_block(&w, &s->die, 0);
}

/* ---- values --------------------------------------------------------------------------------------------------------------- */

struct dp_value *dp_frame_value(struct dp_frames *f, const struct dp_fstate *s, const struct dp_fvariable *v)
{
	struct dp_value *x = dp_value_create(f->w, v->type, v->name.text);
	if (!x)
		return NULL;
	const struct dp_eval e = {.w = f->w,
	                          .frame = s,
	                          .module = s->plan->module->module,
	                          .debug = s->plan->debug,
	                          .attr = (Dwarf_Attribute *)&v->attr};
	x->where = DP_VALUE_NOWHERE;
	x->why = v->why;
	if (v->has_location) {
		dp_eval_place(&e, v->ops, v->nops, x);
	} else if (v->constant) {
		x->where = DP_VALUE_BYTES;
		x->bytes = v->constant;
		x->nbytes = v->nconstant;
	}
	return x;
}
