/* SPDX-License-Identifier: MIT */
/*
 * Explains a thread's fault: the signal, the instruction with its registers, and the memory map show which access to which
 * address failed, and why.
 */
#include "pmodules/fault/fault.h"
#include "trampoline/code/disassemble.h"

#include <string.h>
#include <utlist.h>

#define NULL_MAX  65536u /* largest offset from a null pointer: members, elements */
#define GUARD_MAX (UINT64_C(1) << 20)
#define TOP       (UINT64_C(1) << 47)
#define INSN_MAX  15u

struct fault {
	struct dp_debug_ctx *w;
	const struct dp_stopped_thread *t;
	struct dp_snap_thread *into;
	struct dp_snapshot *s;
	struct dp_snap_siginfo info;
	struct dp_access access;
	uint64_t address; /* that caused the fault */
	uint64_t at;      /* start of the access */
};

static const struct dp_map *map_at(const struct fault *f, uint64_t addr)
{
	return dp_image_map_at(f->w->image, dp_addr_of(addr));
}

static void say(struct fault *f, const char *classifier, const char *text)
{
	if (classifier)
		dp_snapshot_classify(f->s, classifier);
	f->into->fault_reason = text ? text : "";
}

/* ---- memory ------------------------------------------------------------------------------------------------------------- */

/* Is the address near rsp, not writable, and just below a stack? */
static bool is_stack_overflow(const struct fault *f)
{
	const uint64_t sp = f->t->regs.rsp, at = f->address;
	const uint64_t distance = at > sp ? at - sp : sp - at;
	const struct dp_map *here = map_at(f, at);
	if (distance > GUARD_MAX || (here && here->write))
		return false;
	for (uint64_t up = 4096; up <= GUARD_MAX; up += 4096) {
		const struct dp_map *above = map_at(f, (at & ~UINT64_C(4095)) + up);
		if (above && above->write)
			return true;
		if (above && (above->read || above->exec))
			return false;
	}
	return false;
}

static const char *why_refused(const struct fault *f, const char **classifier)
{
	const struct dp_map *map = map_at(f, f->address);
	struct dp_arena *a = &f->s->arena;
	const char *reg = f->access.reg;
	if (f->address < NULL_MAX) {
		*classifier = "null";
		return *reg ? dp_arena_printf(a, "a null pointer (%s) is dereferenced", reg) : "a null pointer is dereferenced";
	}
	if (is_stack_overflow(f)) {
		*classifier = "stack-overflow";
		return "the stack has overflowed";
	}
	if (!f->info.has_address && f->access.is_spread && f->address < TOP)
		return "an element's index gives an address that a program cannot have";
	if (f->address >= TOP)
		return *reg ? dp_arena_printf(a, "not an address of a program (%s)", reg) : "not an address of a program";
	if (f->access.align > 1 && f->address % f->access.align && f->info.code == SI_KERNEL) {
		*classifier = "align";
		return dp_arena_printf(a, "it is not aligned to %u bytes", f->access.align);
	}
	if (!map && f->access.is_known && f->at != f->address)
		return dp_arena_printf(a, "nothing is mapped at 0x%llx%s%s%s", (unsigned long long)f->address, *reg ? " (" : "",
		                       reg, *reg ? ")" : "");
	if (!map)
		return *reg ? dp_arena_printf(a, "nothing is mapped there (%s)", reg) : "nothing is mapped there";
	if (f->info.number == SIGBUS)
		return f->info.reason;
	return dp_arena_printf(a, "%s is mapped there without that permission", *map->path ? map->path : "memory");
}

/* Is there no executable memory at rip, or where the instruction's bytes continue? */
static bool is_fetch(const struct fault *f)
{
	const struct dp_map *map = map_at(f, f->address);
	const uint64_t from = f->address - f->t->regs.rip;
	return f->info.has_address && (!from || (from < INSN_MAX && f->access.is_cut)) && !(map && map->exec);
}

static void fetch(struct fault *f)
{
	const bool null = f->address < NULL_MAX;
	dp_snapshot_classify(f->s, "exec");
	say(f, null ? "null" : NULL,
	    dp_arena_printf(&f->s->arena, "execution at 0x%llx: %s", (unsigned long long)f->address,
	                    null                    ? "a null pointer to a function is called"
	                    : map_at(f, f->address) ? "the memory there is not executable"
	                                            : "nothing is mapped there"));
}

/* The kernel gives no address: the processor rejected the instruction, not a page. */
static bool general_protection(struct fault *f)
{
	const struct dp_access *c = &f->access;
	struct dp_arena *a = &f->s->arena;
	if (f->info.has_address || f->info.code != SI_KERNEL)
		return false;
	if (c->branch == DP_BRANCH_VALUE && c->target >= TOP && !(c->is_known && c->address >= TOP)) {
		dp_snapshot_classify(f->s, "exec");
		say(f, NULL,
		    dp_arena_printf(a, "execution at 0x%llx: not an address of a program%s%s%s", (unsigned long long)c->target,
		                    *c->target_reg ? " (" : "", c->target_reg, *c->target_reg ? ")" : ""));
		return true;
	}
	if (c->is_privileged)
		say(f, NULL, dp_arena_printf(a, "%s: an instruction that a program may not execute", c->name));
	return c->is_privileged;
}

static void memory_fault(struct fault *f)
{
	const char *classifier = NULL;
	char what[96];
	dp_snapshot_classify(f->s, f->info.number == SIGBUS ? "bus" : "segv");
	if (is_fetch(f)) {
		fetch(f);
		return;
	}
	if (general_protection(f))
		return;
	f->at = f->access.is_known && f->address - f->access.address < f->access.size ? f->access.address : f->address;
	const char *why = why_refused(f, &classifier);
	if (f->access.is_known)
		dp_snapshot_classify(f->s, f->access.is_write ? "write" : "read");
	dp_access_text(&f->access, f->at, what, sizeof(what));
	say(f, classifier, dp_arena_printf(&f->s->arena, "%s: %s", what, why));
}

/* ---- other signals ------------------------------------------------------------------------------------------------------ */

static void arithmetic(struct fault *f)
{
	const struct dp_access *c = &f->access;
	const char *what = !c->value_known ? "integer division by zero, or a quotient that overflows"
	                   : c->value      ? "integer division whose quotient overflows; the divisor is not zero"
	                                   : "integer division by zero";
	if (c->divides)
		say(f, "fpe", dp_arena_printf(&f->s->arena, "%s%s%s%s", what, *c->reg ? " (" : "", c->reg, *c->reg ? ")" : ""));
	else
		say(f, "fpe", f->info.reason);
}

static void analyse(struct fault *f)
{
	switch (f->info.number) {
	case SIGSEGV:
	case SIGBUS:
		if (f->info.by_kill)
			say(f, f->info.number == SIGBUS ? "bus" : "segv", f->info.reason);
		else
			memory_fault(f);
		break;
	case SIGFPE:
		arithmetic(f);
		break;
	case SIGILL:
		say(f, "ill",
		    !strncmp(f->access.name, "ud", 2)
		            ? dp_arena_printf(&f->s->arena, "%s: the program ends itself here (code that should be unreachable)",
		                              f->access.name)
		            : "an instruction that the processor does not know, or may not execute here");
		break;
	case SIGABRT:
		dp_fault_abort(f->w, f->into);
		break;
	case SIGTRAP:
		say(f, "trap",
		    f->info.code == TRAP_TRACE  ? "a single step"
		    : f->info.code == SI_KERNEL ? "a breakpoint instruction"
		                                : "a breakpoint instruction, or a single step");
		break;
	default:
		say(f, "stop", dp_arena_printf(&f->s->arena, "%s: %s", f->info.name, f->info.reason));
	}
}

static void disassemble(struct fault *f, struct dp_snap_frame *innermost)
{
	uint8_t bytes[16];
	char text[160];
	const size_t n = dp_fault_code(f->w, f->t->regs.rip, bytes, sizeof(bytes));
	if (!innermost->instruction && n && dp_disassemble(bytes, n, f->t->regs.rip, text, sizeof(text)))
		innermost->instruction = dp_snapshot_text(f->s, text);
}

void dp_fault_explain(struct dp_debug_ctx *w, const struct dp_stopped_thread *t, struct dp_snap_thread *into)
{
	struct fault f = {.w = w, .t = t, .into = into, .s = into->snapshot};
	struct dp_snap_siginfo *info;
	if (into->frames)
		disassemble(&f, into->frames);
	if (!t->is_fault || !t->siginfo.si_signo)
		return;
	dp_fault_siginfo(&t->siginfo, &f.info);
	dp_access_of(w, &t->regs, &f.info, &f.access);
	f.address = f.info.has_address || !f.access.is_known ? f.info.address : f.access.address;
	info = into->frames && !into->frames->siginfo ? dp_arena_alloc(&f.s->arena, sizeof(*info)) : NULL;
	if (info) {
		*info = f.info;
		into->frames->siginfo = info;
		into->frames->is_fault = true;
	}
	analyse(&f);
}
