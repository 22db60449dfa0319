/* SPDX-License-Identifier: MIT */
/* One instruction at its own address, and moved: both run from the same states, and what they leave is compared. */
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
	struct dp_plan plan; /* for its pairs */
};

enum outcome {
	OUTCOME_SAME,
	OUTCOME_DIFFERENT,
	OUTCOME_KNOWN,   /* differs in the one way that is documented; see known_difference() */
	OUTCOME_ENDLESS, /* neither of them ends */
	OUTCOME_UNFIT,   /* not run; `why` says why */
	OUTCOME_UNKNOWN, /* no instruction for the two decoders */
	OUTCOME_REFUSED  /* not moved; `why` says why */
};

/* Chooses the place, decodes, relocates. OUTCOME_SAME if it can be run. `seed` decides everything that is random. */
enum outcome trial_prepare(struct trial *t, const uint8_t *bytes, size_t n, uint64_t *seed, char why[static 160]);
void trial_fini(struct trial *t);
/* Fills the sandbox's image for the states that follow. */
void trial_memory(uint64_t *seed);
/* Runs both from one random state. `faulted` says whether they ended at the instruction itself. */
enum outcome trial_run(const struct trial *t, uint64_t *seed, bool *faulted, char what[static 160]);

/*
 * state.c: a random state in which the instruction's memory operand most likely leads into the sandbox. False if it must not be
 * tried: a locked access that crosses a cache line.
 */
bool state_random(const struct trial *t, uint64_t *seed, struct machine_state *state);
/* Where a memory operand leads (64-bit addressing). */
uint64_t state_address(const ZydisDecodedOperand *operand, const struct machine_state *state);

#endif
