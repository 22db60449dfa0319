/* SPDX-License-Identifier: MIT */
/*
 * Call frames. A plan is what a pc means (unwind rule, functions, variables), computed once. A state is one frame: a plan and the
 * registers in that frame.
 */
#ifndef DP_PMODULES_FRAMES_FRAMES_H
#define DP_PMODULES_FRAMES_FRAMES_H

#include "pmodules/source/stopped.h"
#include "pmodules/value/eval.h"

/* ---- what a pc means ------------------------------------------------------------------------------------------------------ */

/* The locations of nearly all variables, which need no expression evaluation. */
enum dp_fplace { DP_FPLACE_EXPR, DP_FPLACE_FIXED, DP_FPLACE_AT_CFA, DP_FPLACE_AT_REG, DP_FPLACE_IN_REG };
struct dp_fvariable {
	struct dp_stext name;
	const struct dp_ctype *type;
	bool is_parameter;
	int64_t index;
	Dwarf_Die die;
	bool has_location;
	Dwarf_Attribute attr;
	Dwarf_Op *ops;
	size_t nops;
	enum dp_fplace place;
	uint8_t reg;     /* AT_REG, IN_REG */
	uint64_t offset; /* FIXED: the address */
	const uint8_t *constant; /* its bytes, if the debug information has the value */
	size_t nconstant;
	const char *why; /* why there is no location */
};
struct dp_fscope { /* a function or an inlined copy */
	struct dp_stext symbol, linkage, path;
	int line, decl_line;
	bool is_inline;
	struct dp_fvariable *variable;
	size_t n;
	Dwarf_Die die;
};
struct dp_fsite { /* a call, or a tail call (a jump to another function) */
	Dwarf_Die die;
	uint64_t pc;     /* after it */
	uint64_t target; /* 0: unknown */
};
struct dp_fchain { /* the tail calls between a caller and the callee that returns to it; outermost first */
	uint64_t callee;
	struct dp_fsite *const *site;
	size_t n;
};
struct dp_fplan {
	struct dp_fplan *chain;
	uint64_t pc; /* the pc to look up; in callers, inside the call instruction */
	bool exact;
	struct dp_debug_ctx_module *module; /* or NULL */
	struct dp_frule rule;
	bool is_guess; /* the rule: from the code, without a table */
	bool meaning_known;
	struct dp_stext object;
	uint64_t start; /* of the function; 0 if unknown */
	struct dp_debug *debug;
	uint64_t dpc;            /* pc in the debug information's address space */
	struct dp_fscope *scope; /* innermost first */
	size_t nscopes;
	struct dp_eval_base base;
	const char *called; /* the real function's linkage name */
	uint64_t entry;     /* in the target's address space */
	Dwarf_Die real;     /* addr NULL: unknown */
	bool site_asked;
	struct dp_fsite *site; /* the call that returns to this pc, or NULL */
	struct dp_fchain chain_to[2]; /* tail calls to the last two callees asked for */
};

#define DP_FPLANS     4096u
#define DP_FFUNCTIONS 512u
struct dp_ffunction;
struct dp_frames {
	struct dp_debug_ctx *w;
	struct dp_fplan *plan[DP_FPLANS];
	struct dp_ffunction *function[DP_FFUNCTIONS];
};
/* frames_plan.c */
struct dp_fplan *dp_frames_plan(struct dp_frames *f, uint64_t pc, bool exact);
void dp_frames_mean(struct dp_frames *f, struct dp_fplan *p);
/* frames_variables.c: the variables of a scope at the plan's pc. */
void dp_frames_variables(struct dp_frames *f, struct dp_fplan *p, struct dp_fscope *s, bool is_real);
/* frames_rule.c: from a table, else from the code. */
void dp_frames_rule(struct dp_debug_ctx *w, struct dp_fplan *p);
/* frames_walk.c: unwinds a thread, innermost frame first; keeps at most `max` frames. False: out of memory. */
struct dp_fwalk {
	struct dp_fstate *state; /* malloc'ed */
	size_t n, inner;         /* frames kept; how many of them are the innermost ones */
	uint64_t more;           /* frames left out in the middle */
	const char *why;         /* why it stopped, or NULL */
};
bool dp_frames_walk(struct dp_frames *f, const struct dp_stopped_thread *t, size_t max, struct dp_fwalk *ret);
void dp_fwalk_fini(struct dp_fwalk *walk);

/* ---- calls ---------------------------------------------------------------------------------------------------------------- */

/* frames_site.c: the entry address of a function; of the first part, if it has several. */
bool dp_die_entry(Dwarf_Die *die, Dwarf_Addr *ret);
/* The call that a caller's plan returns from; NULL if unknown. */
struct dp_fsite *dp_frames_site(struct dp_frames *f, struct dp_fplan *p);
/* The start of the plan's function, or 0. */
uint64_t dp_frames_entry(const struct dp_fplan *p);
/* The tail calls of the function that starts at `entry`; false: not all are known. */
bool dp_frames_jumps(struct dp_frames *f, uint64_t entry, struct dp_fsite **ret, size_t *n);
/* frames_tail.c: can tail calls alone lead back to the function at `entry`? True if unknown. */
bool dp_frames_may_return(struct dp_frames *f, uint64_t entry);
/* Inserts frames for functions that made tail calls. The frames' meaning must be known. */
void dp_frames_tails(struct dp_frames *f, struct dp_fwalk *walk);
/* frames_entry.c, for dp_eval's `entry`: looks at the caller's call site. */
const char *dp_frames_entry_value(const struct dp_eval *e, unsigned reg, uint64_t *ret);
/* The value of a frame's variable. It is valid as long as the world; if it refers to the frame's registers, as long as those. */
void dp_frame_find(struct dp_frames *f, const struct dp_fstate *s, const struct dp_fvariable *v, struct dp_value *ret);

#endif
