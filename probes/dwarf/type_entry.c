/* SPDX-License-Identifier: MIT */
/* Reads entries of types. The debug information may be damaged, so every walk is bounded. */
#include "probes/dwarf/type.h"

#include <dwarf.h>

enum { PEEL_MAX = 64, ENUMERATORS_MAX = 4096 };

bool dp_die_unsigned(Dwarf_Die *die, unsigned attribute, uint64_t *ret)
{
	Dwarf_Attribute attr;
	Dwarf_Word value;
	if (!dwarf_attr_integrate(die, attribute, &attr) || dwarf_formudata(&attr, &value))
		return false;
	*ret = value;
	return true;
}

bool dp_die_signed(Dwarf_Die *die, unsigned attribute, int64_t *ret)
{
	Dwarf_Attribute attr;
	Dwarf_Sword value;
	Dwarf_Word u;
	if (!dwarf_attr_integrate(die, attribute, &attr))
		return false;
	/* libdw sign-extends fixed-size forms, but compilers use these only for values that are not negative. */
	const unsigned form = dwarf_whatform(&attr);
	const bool is_signed = form == DW_FORM_sdata || form == DW_FORM_implicit_const;
	if (is_signed ? dwarf_formsdata(&attr, &value) : dwarf_formudata(&attr, &u))
		return false;
	*ret = is_signed ? value : (int64_t)u;
	return true;
}

bool dp_die_flag(Dwarf_Die *die, unsigned attribute)
{
	Dwarf_Attribute attr;
	bool set = false;
	return dwarf_attr_integrate(die, attribute, &attr) && !dwarf_formflag(&attr, &set) && set;
}

bool dp_die_origin(Dwarf_Die *die, Dwarf_Die *ret)
{
	Dwarf_Attribute attr;
	return dwarf_attr(die, DW_AT_abstract_origin, &attr) && dwarf_formref_die(&attr, ret);
}

const char *dp_die_name(Dwarf_Die *die)
{
	Dwarf_Attribute attr;
	return dwarf_attr_integrate(die, DW_AT_name, &attr) ? dwarf_formstring(&attr) : NULL;
}

bool dp_die_type(Dwarf_Die *die, Dwarf_Die *ret)
{
	Dwarf_Attribute attr;
	return dwarf_attr_integrate(die, DW_AT_type, &attr) && dwarf_formref_die(&attr, ret);
}

/* Replaces the stub of a type that has its own unit (-fdebug-types-section) by the type. */
static void follow_signature(Dwarf_Die *die)
{
	Dwarf_Attribute attr;
	Dwarf_Die whole;
	if (dwarf_attr(die, DW_AT_signature, &attr) && dwarf_formref_die(&attr, &whole))
		*die = whole;
}

bool dp_die_peel(Dwarf_Die *die)
{
	for (unsigned i = 0; i < PEEL_MAX; i++)
		switch (dwarf_tag(die)) {
		case DW_TAG_typedef:
		case DW_TAG_const_type:
		case DW_TAG_volatile_type:
		case DW_TAG_restrict_type:
		case DW_TAG_atomic_type:
		case DW_TAG_subrange_type:
		case DW_TAG_immutable_type:
		case DW_TAG_packed_type:
		case DW_TAG_shared_type:
			if (!dp_die_type(die, die))
				return false;
			break;
		default:
			follow_signature(die);
			return true;
		}
	return false;
}

struct dp_dimension dp_die_dimension(Dwarf_Die *subrange)
{
	struct dp_dimension d = {0};
	Dwarf_Attribute attr;
	uint64_t upper;
	if (dp_die_unsigned(subrange, DW_AT_count, &d.n)) {
		d.is_known = true;
	} else if (dp_die_unsigned(subrange, DW_AT_upper_bound, &upper)) {
		/* int x[0] has the bound -1, in a form of 4 or 8 bytes. */
		d.is_known = upper < INT32_MAX || upper >= UINT32_MAX;
		d.n = upper < INT32_MAX ? upper + 1 : 0;
	} else {
		d.is_dynamic = dwarf_attr_integrate(subrange, DW_AT_upper_bound, &attr) ||
		               dwarf_attr_integrate(subrange, DW_AT_count, &attr);
	}
	return d;
}

/* Signed if its type is, or if a value is negative: old compilers give enumerations no type. */
bool dp_die_enumeration_is_signed(Dwarf_Die *die, uint64_t *size)
{
	Dwarf_Die underlying, child;
	uint64_t encoding = 0;
	unsigned n = 0;
	bool is_signed = false;
	if (dp_die_type(die, &underlying) && dp_die_peel(&underlying)) {
		dp_die_unsigned(&underlying, DW_AT_encoding, &encoding);
		if (!*size)
			dp_die_unsigned(&underlying, DW_AT_byte_size, size);
		return encoding == DW_ATE_signed || encoding == DW_ATE_signed_char;
	}
	if (!dwarf_child(die, &child))
		do {
			int64_t v = 0;
			is_signed |= dp_die_signed(&child, DW_AT_const_value, &v) && v < 0;
		} while (n++ < ENUMERATORS_MAX && !dwarf_siblingof(&child, &child));
	return is_signed;
}

bool dp_die_enumerator(Dwarf_Die *die, bool is_signed, uint64_t *ret)
{
	int64_t v;
	if (!is_signed)
		return dp_die_unsigned(die, DW_AT_const_value, ret);
	if (!dp_die_signed(die, DW_AT_const_value, &v))
		return false;
	*ret = (uint64_t)v;
	return true;
}

bool dp_die_unit_is_go(Dwarf_Die *unit)
{
	return unit->addr && dwarf_srclang(unit) == DW_LANG_Go;
}

bool dp_die_unit_is_c(Dwarf_Die *unit)
{
	switch (dwarf_srclang(unit)) {
	case DW_LANG_C89:
	case DW_LANG_C:
	case DW_LANG_C99:
	case DW_LANG_C11:
		return true;
	default:
		return false;
	}
}
