/* SPDX-License-Identifier: MIT */
/* Field tables as machine code: what fills a record once it is reserved. */
#ifndef DP_TRAMPOLINE_X86_64_CAPTURE_H
#define DP_TRAMPOLINE_X86_64_CAPTURE_H

#include "trampoline/arch/x86_64/stub_view.h"
#include "trampoline/trampoline.h"

/* Fields that the agent has to fetch: memory, strings, backtraces. */
bool dp_capture_is_called(const struct dp_field *field);
bool dp_capture_calls(const struct dp_fields *fields);
/* Bytes to reserve for one record: header and the largest payload, a multiple of 8. */
size_t dp_capture_reserve(const struct dp_fields *fields);
/* Appends a struct dp_op for each field that dp_capture_calls() is about. */
void dp_capture_put_ops(struct dp_asm *a, const struct dp_fields *fields);

/* The whole payload, without a call. The record's address is in rcx; changes rax, rdx and flags. Returns the payload's bytes. */
unsigned dp_capture_inline(struct dp_asm *a, const struct dp_view *view, const struct dp_fields *fields);

/*
 * The whole payload, with calls, and the end of the hit: the agent's commit, or the sink's emit_capture. Record in rcx, slot in
 * rsi; `view` is the full one. Changes rax, rcx, rdx, rsi and flags. `desc` labels the descriptor, behind which
 * dp_capture_put_ops() must have put the operations.
 */
void dp_capture_call(struct dp_asm *a, const struct dp_view *view, const struct dp_runtime *rt, const struct dp_fields *fields,
                     struct dp_label desc);

/* Internal: stores a field that needs no call at disp(base); changes rax, rdx and flags. Returns the bytes written. */
unsigned dp_capture_store(struct dp_asm *a, const struct dp_view *view, const struct dp_field *field, struct dp_rm to);

#endif
