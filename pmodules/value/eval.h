/* SPDX-License-Identifier: MIT */
/* Evaluates DWARF expressions to numbers and places: of globals, of virtual bases, and in a call frame. */
#ifndef DP_PMODULES_VALUE_EVAL_H
#define DP_PMODULES_VALUE_EVAL_H

#include "pmodules/value/debug_ctx_internal.h"

struct dp_frames;
struct dp_fplan;
struct dp_fstate { /* a call frame */
	struct dp_fplan *plan;
	struct dp_frame_regs regs;
	uint64_t cfa; /* 0 if unknown */
	const uint64_t (*xmm)[2];
	const struct dp_fstate *caller;
	bool exact, is_signal, is_guess;
	bool by_frame_pointer;
	bool is_tail; /* it made a tail call to the next inner frame's function: only its arguments and its caller are known */
};
struct dp_eval_base { /* the expression of a function's frame base; n is 0 if there is none */
	Dwarf_Attribute attr;
	Dwarf_Op *ops;
	size_t n;
};
struct dp_eval {
	struct dp_debug_ctx *w;
	const struct dp_fstate *frame;   /* NULL: no registers */
	const struct dp_eval_base *base; /* or NULL */
	/* The value of `reg` at the entry of the frame's function; returns why there is none. NULL: none is known. */
	const char *(*entry)(const struct dp_eval *e, unsigned reg, uint64_t *ret);
	struct dp_frames *frames; /* for `entry` */
	struct dp_module *module;
	struct dp_debug *debug;
	Dwarf_Attribute *attr;
	bool has_initial; /* pushed first */
	uint64_t initial;
	unsigned nesting; /* nesting depth of expressions */
	unsigned *steps;  /* remaining steps, shared by nested expressions; NULL: the outermost */
};
/* Evaluates to a number: an address, a register, a frame base. Returns NULL, or why there is none. */
const char *dp_eval_number(const struct dp_eval *e, const Dwarf_Op *ops, size_t n, uint64_t *ret);
/* Locates an object; fills in where, addr, bytes, why. */
void dp_eval_place(const struct dp_eval *e, const Dwarf_Op *ops, size_t n, struct dp_value *into);
/* eval_tls.c: the address of a thread-local. */
const char *dp_eval_tls(const struct dp_eval *e, uint64_t offset, uint64_t *ret);

#endif
