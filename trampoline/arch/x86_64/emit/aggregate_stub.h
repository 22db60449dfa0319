/* SPDX-License-Identifier: MIT */
/* Between the files that emit a stub that aggregates: its frame and blocks (aggregate.c), what it adds (aggregate_answer.c). */
#ifndef DP_TRAMPOLINE_ARCH_X86_64_EMIT_AGGREGATE_STUB_H
#define DP_TRAMPOLINE_ARCH_X86_64_EMIT_AGGREGATE_STUB_H

#include "trampoline/arch/x86_64/emit/aggregate.h"
#include "trampoline/arch/x86_64/emit/capture.h"
#include "trampoline/arch/x86_64/expr/expr.h"

struct dp_agg_stub {
	struct dp_asm a;
	const struct dp_runtime *rt;
	const struct dp_request *req;
	struct dp_view view;
	bool timed, keyed;     /* keyed: the agent finds the cells */
	bool stacked;          /* the agent needs all registers, or another stack, for that */
	bool spread;           /* threads cannot be distinguished: all cells are shared */
	bool flags;            /* the program's flags must be preserved */
	bool direct;           /* the value is the duration, which nothing else needs: it stays in rax */
	bool counted;          /* some expression needs the number of hits */
	unsigned room;         /* enum dp_frame_room; its words: the key's values and their number, then those of a chain */
	int64_t cells;         /* offset of the probe's cells in a block */
	struct dp_exits exits; /* of every expression, but for strings' */
	struct dp_exits text[DP_AGG_KEYS]; /* of a key that is a string */
	struct dp_label text_back[DP_AGG_KEYS];
	struct dp_runtime rt_stacked; /* by backtrace: with the agent's other entry points in place of the usual ones */
	struct dp_field field;
	struct dp_fields backtrace;
	struct dp_label desc, slow, have, unpaired, restore, leave;
};

/* How many of the frame's words it needs. */
unsigned dp_agg_room(const struct dp_agg *answer);
struct dp_rm dp_agg_word(const struct dp_agg_stub *s, unsigned i);
/* Whether the agent must look for callers. */
bool dp_agg_unwinds(const struct dp_agg *answer);
/* To `restore` if the condition is false. */
void dp_agg_condition(struct dp_agg_stub *s);
/* A hit that cannot be computed is not aggregated, but counted as unreadable. */
void dp_agg_undecided(struct dp_agg_stub *s);
/* Aggregates, with the block in rsi. */
void dp_agg_answer(struct dp_agg_stub *s, bool locked);

/* aggregate_text.c */
bool dp_agg_has_texts(const struct dp_agg *answer);
/* How many of the first `keys` keys have a length. */
unsigned dp_agg_counts(const struct dp_agg *answer, unsigned keys);
void dp_agg_text_init(struct dp_agg_stub *s);
void dp_agg_text_ops(struct dp_agg_stub *s);
/* Loads the address of key `i` into rax, and stores its length. */
void dp_agg_text_load(struct dp_agg_stub *s, unsigned i);
/* Code for addresses that cannot be computed. */
void dp_agg_text_aside(struct dp_agg_stub *s);

#endif
