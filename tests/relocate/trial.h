/* SPDX-License-Identifier: MIT */
/* One instruction at its own address, and moved: both run from the same states, and the results are compared. */
#ifndef DP_TESTS_RELOCATE_TRIAL_H
#define DP_TESTS_RELOCATE_TRIAL_H

#include "forms.h"
#include "machine.h"

#include "trampoline/arch/x86_64/relocate/relocate.h"

struct trial {
	ZydisDecodedInstruction form;
	ZydisDecodedOperand operand[ZYDIS_MAX_OPERAND_COUNT];
	struct dp_insn insn;
	uint64_t to;
	struct dp_buf moved;
	struct dp_plan plan; /* for its pairs of addresses */
};

enum outcome {
	OUTCOME_SAME,
	OUTCOME_DIFFERENT,
	OUTCOME_KNOWN,   /* differs in a documented way; see known_difference() */
	OUTCOME_ENDLESS, /* neither of the two ends */
	OUTCOME_UNFIT,   /* not run; `why` says why */
	OUTCOME_UNKNOWN, /* neither decoder knows it */
	OUTCOME_REFUSED  /* not moved; `why` says why */
};

/* Chooses the address, decodes, relocates. OUTCOME_SAME if the instruction can be run. `seed` determines all random choices. */
enum outcome trial_prepare(struct trial *t, const uint8_t *bytes, size_t n, uint64_t *seed, char why[static 160]);
void trial_fini(struct trial *t);
/* Fills the sandbox for the next states. */
void trial_memory(uint64_t *seed);
/* Runs both from one random state. `faulted`: whether they ended at the instruction itself. */
enum outcome trial_run(const struct trial *t, uint64_t *seed, bool *faulted, char what[static 160]);

/*
 * state.c: a random state in which the instruction's memory operand most likely points into the sandbox. Returns false if it must
 * not be run: a locked access that crosses a cache line.
 */
bool state_random(const struct trial *t, uint64_t *seed, struct machine_state *state);
/* The address of a memory operand (64-bit addressing). */
uint64_t state_address(const ZydisDecodedOperand *operand, const struct machine_state *state);

#endif
