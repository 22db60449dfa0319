/* SPDX-License-Identifier: MIT */
/* The meaning of a pc: its function and the functions inlined there, their lines and variables. */
#include "pmodules/frames/frames.h"
#include "probes/elf/demangle.h"
#include "probes/image/function/generated.h"
#include "probes/image/module.h"
#include "probes/point/places.h"

#include <dwarf.h>
#include <stdlib.h>
#include <string.h>

enum { SCOPES_MAX = 64, DEPTH_MAX = 64, STEPS_MAX = 1 << 21 };

static struct dp_fplan **slot_of(struct dp_frames *f, uint64_t pc)
{
	return &f->plan[(pc * UINT64_C(0x9e3779b97f4a7c15)) >> 52 & (DP_FPLANS - 1)];
}

struct dp_fplan *dp_frames_plan(struct dp_frames *f, uint64_t pc, bool exact)
{
	const uint64_t at = exact ? pc : pc - 1;
	struct dp_fplan **slot = slot_of(f, at), *p = *slot;
	while (p && (p->pc != at || p->exact != exact))
		p = p->chain;
	if (p)
		return p;
	p = dp_arena_alloc(&f->w->arena, sizeof(*p));
	if (!p)
		return NULL;
	p->pc = at;
	p->exact = exact;
	p->module = dp_debug_ctx_module_at(f->w, at);
	p->chain = *slot;
	*slot = p;
	dp_frames_rule(f->w, p);
	return p;
}

/* ---- functions ------------------------------------------------------------------------------------------------------------ */

static const char *linkage_of(Dwarf_Die *die)
{
	Dwarf_Attribute attr;
	if (dwarf_attr_integrate(die, DW_AT_linkage_name, &attr) || dwarf_attr_integrate(die, DW_AT_MIPS_linkage_name, &attr))
		return dwarf_formstring(&attr);
	return NULL;
}

static const char *keep(struct dp_debug_ctx *w, const char *text)
{
	return text ? dp_arena_copy(&w->arena, text, strlen(text)) : NULL;
}

static void name_scope(struct dp_debug_ctx *w, struct dp_fscope *s)
{
	const char *linkage = linkage_of(&s->die), *name = dwarf_diename(&s->die);
	char *readable = linkage ? dp_demangle(linkage, false) : NULL;
	s->symbol.text = readable ? keep(w, readable) : name;
	s->linkage.text = linkage ? linkage : name;
	free(readable);
	dwarf_decl_line(&s->die, &s->decl_line);
}

/* The symbol table is more precise about parts of functions than debug information. */
static void name_by_symbol(struct dp_debug_ctx *w, struct dp_fplan *p, struct dp_fscope *s)
{
	struct dp_function fn;
	if (!dp_image_function_at(w->image, dp_addr_of(p->pc), &fn))
		return;
	p->start = fn.start.v;
	if (!*fn.name)
		return;
	s->linkage.text = keep(w, fn.name);
	s->symbol.text = keep(w, dp_function_readable(&fn));
}

/* ---- lines -------------------------------------------------------------------------------------------------------------- */

/* The call site of an inlined function gives the line in the enclosing function. */
static void line_of_call(struct dp_fscope *copy, struct dp_fscope *around)
{
	Dwarf_Attribute attr;
	Dwarf_Word line = 0, file = 0;
	Dwarf_Die unit;
	Dwarf_Files *files;
	size_t n;
	if (dwarf_attr(&copy->die, DW_AT_call_line, &attr) && !dwarf_formudata(&attr, &line) && line <= INT32_MAX)
		around->line = (int)line;
	if (dwarf_attr(&copy->die, DW_AT_call_file, &attr) && !dwarf_formudata(&attr, &file) &&
	    !dwarf_cu_info(attr.cu, NULL, NULL, &unit, NULL, NULL, NULL, NULL) && !dwarf_getsrcfiles(&unit, &files, &n) &&
	    file < n)
		around->path.text = dwarf_filesrc(files, file, NULL, NULL);
}

static void lines(struct dp_fplan *p)
{
	const char *path;
	int line;
	if (p->debug && dp_debug_line_at(p->debug, p->dpc, &path, &line)) {
		p->scope[0].path.text = path;
		p->scope[0].line = line;
	}
	for (size_t i = 0; i + 1 < p->nscopes; i++)
		line_of_call(&p->scope[i], &p->scope[i + 1]);
}

/* ---- the plan ----------------------------------------------------------------------------------------------------------- */

/* The member functions of a local class are inside the DIE of the enclosing function, but not inside its code. */
static bool find_hidden(Dwarf_Die *parent, uint64_t pc, unsigned *steps, unsigned depth, Dwarf_Die *ret)
{
	Dwarf_Die die;
	if (depth > DEPTH_MAX || dwarf_child(parent, &die))
		return false;
	do {
		const int tag = dwarf_tag(&die);
		if (++*steps > STEPS_MAX)
			return false;
		if (tag == DW_TAG_subprogram && dwarf_haspc(&die, pc) > 0) {
			*ret = die;
			return true;
		}
		if ((tag == DW_TAG_subprogram || tag == DW_TAG_lexical_block || tag == DW_TAG_namespace ||
		     tag == DW_TAG_structure_type || tag == DW_TAG_class_type) &&
		    find_hidden(&die, pc, steps, depth + 1, ret))
			return true;
	} while (!dwarf_siblingof(&die, &die));
	return false;
}

/* The function and what is inlined in it at pc, innermost first. */
static size_t copies_in(Dwarf_Die *function, uint64_t pc, Dwarf_Die *ret)
{
	Dwarf_Die path[SCOPES_MAX] = {*function}, die;
	size_t n = 1;
	unsigned steps = 0;
	Dwarf_Die at = *function;
	while (!dwarf_child(&at, &die)) {
		bool found = false;
		do {
			const int tag = dwarf_tag(&die);
			found = (tag == DW_TAG_inlined_subroutine || tag == DW_TAG_lexical_block) && dwarf_haspc(&die, pc) > 0;
		} while (!found && ++steps < STEPS_MAX && !dwarf_siblingof(&die, &die));
		if (!found)
			break;
		if (dwarf_tag(&die) == DW_TAG_inlined_subroutine && n < SCOPES_MAX)
			path[n++] = die;
		at = die;
	}
	for (size_t i = 0; i < n; i++)
		ret[i] = path[n - 1 - i];
	return n;
}

static size_t functions_at(struct dp_fplan *p, Dwarf_Die *die)
{
	size_t n = dp_debug_scopes_at(p->debug, p->dpc, die, SCOPES_MAX);
	for (size_t i = 0; i < n; i++)
		if (dwarf_tag(&die[i]) == DW_TAG_subprogram)
			return i + 1;
	Dwarf_Die unit, hidden;
	unsigned steps = 0;
	if (dp_debug_unit_at(p->debug, p->dpc, &unit) && find_hidden(&unit, p->dpc, &steps, 0, &hidden))
		return copies_in(&hidden, p->dpc, die);
	return 0;
}

static void frame_base(struct dp_fplan *p)
{
	Dwarf_Op *ops;
	size_t n;
	Dwarf_Addr entry;
	if (dwarf_attr_integrate(&p->real, DW_AT_frame_base, &p->base.attr) &&
	    dwarf_getlocation_addr(&p->base.attr, p->dpc, &ops, &n, 1) == 1 && n) {
		p->base.ops = ops;
		p->base.n = n;
	}
	if (dp_die_entry(&p->real, &entry))
		p->entry = dp_debug_addr(p->debug, entry).v;
	const char *linkage = linkage_of(&p->real);
	p->called = linkage ? linkage : dwarf_diename(&p->real);
}

/* Code that the program generated, by its own map of names. */
static void name_generated(struct dp_debug_ctx *w, struct dp_fplan *p, struct dp_fscope *s)
{
	struct dp_perf_name n;
	const char *file;
	if (p->module || !dp_image_generated_at(w->image, dp_addr_of(p->pc), &n, &file))
		return;
	p->start = n.start;
	p->object.text = keep(w, file);
	s->symbol.text = s->linkage.text = keep(w, n.name);
}

static void learn(struct dp_frames *f, struct dp_fplan *p)
{
	Dwarf_Die die[SCOPES_MAX];
	p->debug = p->module ? dp_debug_ctx_debug(f->w, p->module->module) : NULL;
	if (p->debug)
		p->dpc = dp_debug_pc(p->debug, dp_addr_of(p->pc));
	const size_t n = p->debug ? functions_at(p, die) : 0;
	p->scope = dp_arena_alloc(&f->w->arena, (n ? n : 1) * sizeof(*p->scope));
	if (!p->scope)
		return;
	p->nscopes = n ? n : 1;
	for (size_t i = 0; i < n; i++) {
		p->scope[i].die = die[i];
		p->scope[i].is_inline = i + 1 < n;
		name_scope(f->w, &p->scope[i]);
	}
	name_by_symbol(f->w, p, &p->scope[p->nscopes - 1]);
	name_generated(f->w, p, &p->scope[0]);
	lines(p);
	if (!n)
		return;
	p->real = die[n - 1];
	frame_base(p);
	for (size_t i = 0; i < n; i++)
		dp_frames_variables(f, p, &p->scope[i], i + 1 == n);
}

void dp_frames_mean(struct dp_frames *f, struct dp_fplan *p)
{
	if (p->meaning_known)
		return;
	p->meaning_known = true;
	if (p->module)
		p->object.text = p->module->path.text;
	learn(f, p);
}
