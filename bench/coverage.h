/* SPDX-License-Identifier: MIT */
/*
 * Parts of bench/coverage, which asks the planner about every instruction of a module of a live process, at its real addresses,
 * and checks each plan by following the patched bytes. It only reads the process.
 */
#ifndef DP_BENCH_COVERAGE_H
#define DP_BENCH_COVERAGE_H

#include "trampoline/arch/x86_64/decode/decode.h"
#include "trampoline/trampoline.h"

/* ---- code: which bytes are instructions (coverage_code.c) --------------------------------------------------------------- */

enum mark {
	MARK_START = 1,    /* an instruction starts here */
	MARK_SITE = 2,     /* and it can be probed */
	MARK_PADDING = 4,  /* or no branch reaches it: nops and int3 after code that does not continue */
	MARK_TARGET = 8,   /* a direct branch of the module leads here */
	MARK_HEAD = 16,    /* while plans are applied: one of them starts here */
	MARK_INTERIOR = 32 /* while plans are applied: a window covers this instruction */
};

struct site {
	uint64_t addr;
	const struct dp_text *text; /* with the function around it */
};

struct code {
	struct dp_image *image;
	struct dp_module *module;
	struct dp_segment *segment;
	struct dp_text base;
	uint64_t lo, hi;        /* the range of the executable segments */
	uint8_t *mark;          /* enum mark, for each byte in the range */
	uint8_t *old, *now;     /* the file's bytes; the same with plans applied */
	struct dp_text *text;   /* per range */
	size_t nranges, nswept; /* functions; decoded gaps between them, in a module that names few functions */
	struct site *site;
	size_t nsites, cap;
	size_t nendbr, npadding, nundecodable; /* instructions, instructions, bytes */
	size_t nviolations;
};

struct dp_error *code_load(struct dp_image *image, struct dp_module *module, struct code *ret) DP_MUST_CHECK;
void code_fini(struct code *code);
static inline bool code_holds(const struct code *code, uint64_t addr)
{
	return addr >= code->lo && addr < code->hi;
}
static inline uint8_t *code_mark(const struct code *code, uint64_t addr)
{
	return &code->mark[addr - code->lo];
}

/* ---- check: do the plans keep their contract? (coverage_check.c) -------------------------------------------------------- */

struct layout { /* what the planner would map and write */
	const struct dp_plan *plan;
	size_t nplans;
	const struct dp_extent *extent;
	size_t nextents;
};
/* Returns the number of violations, and prints each on standard error. Restores the code. */
size_t check_layout(struct code *code, const struct dp_image *image, const struct layout *layout);

/* ---- tally: counters and reports (coverage_report.c) -------------------------------------------------------------------- */

#define EXAMPLES 6
struct example {
	uint64_t addr;
	char bytes[3 * DP_INSN_MAX + 1];
	char text[DP_INSN_TEXT];
	char *message;
};

struct tally {
	const char *mode;
	size_t asked, placed[DP_TACTIC_COUNT], refused[DP_TAG_COUNT];
	size_t nexamples[DP_TAG_COUNT];
	struct example example[DP_TAG_COUNT][EXAMPLES];
	double seconds;                                       /* processor time in dp_planner_add() */
	size_t rounds, plans, extents, own_bytes, text_pages; /* sums over the rounds */
	size_t most_extents, most_bytes, most_pages;          /* maximum of a round */
	size_t violations;
};

void tally_placed(struct tally *t, enum dp_tactic tactic);
/* Takes ownership of `err`. */
void tally_refused(struct tally *t, const struct code *code, const struct site *site, struct dp_error *err);
void tally_layout(struct tally *t, const struct layout *layout);
void tally_fini(struct tally *t);
void report_code(const struct code *code, bool json);
void report_tally(const struct tally *t, const struct code *code, bool json);

#endif
