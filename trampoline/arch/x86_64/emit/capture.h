/* SPDX-License-Identifier: MIT */
/* Field tables as machine code, which fills a reserved record. */
#ifndef DP_TRAMPOLINE_ARCH_X86_64_EMIT_CAPTURE_H
#define DP_TRAMPOLINE_ARCH_X86_64_EMIT_CAPTURE_H

#include "trampoline/arch/x86_64/expr/stub_view.h"
#include "trampoline/arch/x86_64/expr/expr.h"
#include "trampoline/trampoline.h"

/* Copied without a call if loads may fault: at most `size` bytes. Shorter strings than a word are not worth it. */
#define DP_CAPTURE_INLINE     64u
#define DP_CAPTURE_STRING_MIN 8u

struct dp_capture_field { /* labels of a field that may fail */
	struct dp_exits exits;
	struct dp_label back; /* where the code continues, with the value in rax */
	/* Of strings, copied inline: */
	struct dp_label found;            /* the end is in this word; consecutive labels */
	struct dp_label cut;              /* there is no end */
	struct dp_label slow, slow_fault; /* byte by byte, at the end of a page */
	struct dp_label null;             /* its pointer is NULL */
};

struct dp_capture_code {
	struct dp_asm *a;
	struct dp_runtime rt; /* `faults` only if there are enough guards for all fields */
	const struct dp_fields *fields;
	struct dp_view view;         /* the full one */
	struct dp_label desc;        /* of the descriptor; dp_capture_put_data() puts operations and constants after it */
	struct dp_label ones, highs; /* words for the search of a string's end */
	bool calls;                  /* the agent fetches some field */
	struct dp_capture_field field[64]; /* the limit if any field may fail */
};

/* `guards` are available for the fields. */
void dp_capture_init(struct dp_capture_code *c, const struct dp_runtime *rt, const struct dp_fields *fields, unsigned guards);
/* Bytes to reserve for one record: header and the largest payload, a multiple of 8. */
size_t dp_capture_reserve(const struct dp_fields *fields);
/* A struct dp_op for each field that the agent fetches, and constants. */
void dp_capture_put_data(struct dp_capture_code *c);
/* Code for rare cases, to be put out of line. */
void dp_capture_put_aside(struct dp_capture_code *c);

/*
 * The whole payload, without a call. rcx is the record's address, before and after; changes rax, rdx, rsi and flags. With a sink
 * rdx is the payload's size in bytes afterwards.
 */
void dp_capture_inline(struct dp_capture_code *c);
/*
 * The whole payload, with calls, and the end of the hit: the agent's commit, or the sink's emit_capture. Record in rcx, slot in
 * rsi. Changes rax, rcx, rdx, rsi and flags.
 */
void dp_capture_call(struct dp_capture_code *c);

/* ---- internal ---- */

bool dp_capture_may_fail(const struct dp_field *f);
/* Whether the agent must be called for it. */
bool dp_capture_is_called(const struct dp_capture_code *c, const struct dp_field *f);
bool dp_capture_is_computed(const struct dp_field *f);    /* its value or its address is computed by an expression */
uint64_t dp_capture_none(const struct dp_fields *fields); /* mask bits that are always set */
/* Stores a field that is a register, a constant or nothing; changes rax, rdx and flags. Returns the bytes written. */
unsigned dp_capture_store(struct dp_asm *a, const struct dp_view *view, const struct dp_field *field, struct dp_rm to);
/* Loads the value of the field's expression into rax. */
void dp_capture_compute(struct dp_capture_code *c, size_t i);
/* The same for a string's length. */
void dp_capture_compute_count(struct dp_capture_code *c, size_t i);
/* Stores rax, as set by dp_capture_compute(), and the upper half of sixteen bytes; changes rax, rcx, rdx and flags. */
void dp_capture_store_value(struct dp_capture_code *c, size_t i, struct dp_rm to);
/* Size of the next move, with so many bytes left. */
unsigned dp_capture_piece(unsigned left);
void dp_capture_put_aside_called(struct dp_capture_code *c, size_t i);

#endif
