/* SPDX-License-Identifier: MIT */
/* Where a variable is, at a site. */
#include "probes/dwarf/dwarf_machine.h"
#include "probes/expr/scope/scope_internal.h"
#include "probes/image/module.h"

#include <dwarf.h>
#include <string.h>

/* True if the variable is in the frame for the whole function. */
static bool lives_in_frame(struct dp_scope *s, Dwarf_Attribute *attr)
{
	Dwarf_Op *ops;
	size_t n;
	const unsigned form = dwarf_whatform(attr);
	return form != DW_FORM_sec_offset && form != DW_FORM_loclistx && form != DW_FORM_data4 && form != DW_FORM_data8 &&
	       dwarf_getlocation_addr(attr, s->pc, &ops, &n, 1) == 1 && dp_dwarf_is_in_frame(ops, n);
}

/* The executable may have the library's variable, too (a copy relocation): it is unclear which one is used. */
static bool is_shared_with_executable(struct dp_scope *s, struct dp_variable *v)
{
	struct dp_module *exe = dp_image_module(s->image, 0);
	const char *name = dp_die_name(&v->die);
	if (v->function.addr || !name || s->at.site.module == exe || !dp_die_flag(&v->die, DW_AT_external))
		return false;
	const struct dp_symbols *symbols = dp_module_own_symbols(exe);
	for (size_t i = 0; i < symbols->n; i++) {
		const struct dp_symbol *x = &symbols->symbol[i];
		if (x->type == STT_OBJECT && x->bind != STB_LOCAL && x->len == strlen(name) && !memcmp(x->name, name, x->len))
			return true;
	}
	return false;
}

/*
 * For an __int128 parameter in two registers gcc may claim, for the whole function, that it is in the first register and in the
 * next one by gcc's own numbering (rsi and rdi instead of rsi and rdx). At best that is true at the entry.
 */
static bool is_guessed(struct dp_scope *s, const struct dp_variable *v, Dwarf_Attribute *attr, const struct dp_storage *at)
{
	Dwarf_Die die = v->die;
	const struct dp_ctype *t =
	        v->is_parameter && at->n > 1 && dwarf_whatform(attr) == DW_FORM_exprloc ? dp_ctype_of(&s->types, &die) : NULL;
	return t && dp_ctype_is_wide(t) && at->piece[0].kind == DP_PIECE_VALUE;
}

struct dp_storage dp_variable_storage(struct dp_scope *s, struct dp_variable *v)
{
	Dwarf_Attribute attr;
	const bool real = v->function.addr && dwarf_tag(&v->function) == DW_TAG_subprogram;
	if (v->is_ambiguous)
		return dp_storage_none(&s->arena, DP_ABSENT_BEGINS);
	if (is_shared_with_executable(s, v))
		return dp_storage_none(&s->arena, "the executable has a variable of that name, too");
	if (dwarf_attr_integrate(&v->die, DW_AT_location, &attr)) {
		/* Before the prologue stores them, parameters are where the caller put them. */
		if (real && (s->at_entry || s->pc < s->body) && lives_in_frame(s, &attr)) {
			if (s->at_entry && v->is_parameter)
				return dp_abi_argument(s, &v->function, &v->die);
			return dp_storage_none(&s->arena, DP_ABSENT_NOT_SET);
		}
		if (v->function.addr && !v->is_parameter && dp_scope_is_beginning(s, &v->function) && lives_in_frame(s, &attr))
			return dp_storage_none(&s->arena, DP_ABSENT_NOT_SET);
		const struct dp_storage at = dp_location_of(s, &attr);
		if (!is_guessed(s, v, &attr, &at))
			return at;
		return real && s->at_entry ? dp_abi_argument(s, &v->function, &v->die)
		                           : dp_storage_none(&s->arena, "the debug information only tells where it was passed");
	}
	if (dwarf_attr_integrate(&v->die, DW_AT_const_value, &attr))
		return dp_storage_constant(&s->arena, &attr);
	return dp_storage_none(&s->arena, DP_ABSENT_OPTIMIZED);
}
