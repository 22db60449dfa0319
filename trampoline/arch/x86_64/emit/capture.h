/* SPDX-License-Identifier: MIT */
/* Field tables as machine code: what fills a record once it is reserved. */
#ifndef DP_TRAMPOLINE_X86_64_CAPTURE_H
#define DP_TRAMPOLINE_X86_64_CAPTURE_H

#include "trampoline/arch/x86_64/expr/stub_view.h"
#include "trampoline/arch/x86_64/expr/expr.h"
#include "trampoline/trampoline.h"

/* Copied without a call where loads may fault: `size` bytes at most. Strings of less than a word are not worth it. */
#define DP_CAPTURE_INLINE     64u
#define DP_CAPTURE_STRING_MIN 8u

struct dp_capture_field { /* labels of one that may fail */
	struct dp_exits exits;
	struct dp_label back; /* where it goes on, its value in rax */
	/* Of strings, copied inline: */
	struct dp_label found;            /* the end is in this word; consecutive labels */
	struct dp_label cut;              /* it is in none */
	struct dp_label slow, slow_fault; /* byte by byte, at the end of a page */
};

struct dp_capture_code {
	struct dp_asm *a;
	struct dp_runtime rt; /* `faults` only if there are guards enough for all fields */
	const struct dp_fields *fields;
	struct dp_view view;         /* the full one */
	struct dp_label desc;        /* of the descriptor, behind which dp_capture_put_data() puts operations and constants */
	struct dp_label ones, highs; /* words that strings are looked through with */
	bool calls;                  /* some field is the agent's to fetch */
	struct dp_capture_field field[64]; /* more cannot be where one may fail */
};

/* `guards` are left for fields. */
void dp_capture_init(struct dp_capture_code *c, const struct dp_runtime *rt, const struct dp_fields *fields, unsigned guards);
/* Bytes to reserve for one record: header and the largest payload, a multiple of 8. */
size_t dp_capture_reserve(const struct dp_fields *fields);
/* A struct dp_op for each field that the agent fetches, and constants. */
void dp_capture_put_data(struct dp_capture_code *c);
/* Code for what rarely happens, to be put where nothing runs into it. */
void dp_capture_put_aside(struct dp_capture_code *c);

/*
 * The whole payload, without a call. The record's address is in rcx, and is again afterwards; changes rax, rdx, rsi and flags.
 * With a sink rdx holds the payload's bytes afterwards.
 */
void dp_capture_inline(struct dp_capture_code *c);
/*
 * The whole payload, with calls, and the end of the hit: the agent's commit, or the sink's emit_capture. Record in rcx, slot in
 * rsi. Changes rax, rcx, rdx, rsi and flags.
 */
void dp_capture_call(struct dp_capture_code *c);

/* ---- internal ---- */

bool dp_capture_may_fail(const struct dp_field *f);
/* Is the agent to be called for it? */
bool dp_capture_is_called(const struct dp_capture_code *c, const struct dp_field *f);
bool dp_capture_is_computed(const struct dp_field *f);    /* by an expression, as its value or its address */
uint64_t dp_capture_none(const struct dp_fields *fields); /* mask bits that are always set */
/* Stores a field that is a register, a constant or nothing; changes rax, rdx and flags. Returns the bytes written. */
unsigned dp_capture_store(struct dp_asm *a, const struct dp_view *view, const struct dp_field *field, struct dp_rm to);
/* The value of the field's expression into rax. */
void dp_capture_compute(struct dp_capture_code *c, size_t i);
/* Stores what dp_capture_compute() has left in rax, and the upper half of sixteen bytes; changes rax, rcx, rdx and flags. */
void dp_capture_store_value(struct dp_capture_code *c, size_t i, struct dp_rm to);
/* Bytes to be moved at once, of so many that are left. */
unsigned dp_capture_piece(unsigned left);
void dp_capture_put_aside_called(struct dp_capture_code *c, size_t i);

#endif
