/* SPDX-License-Identifier: MIT */
/* Instructions to test: samples of every form in files, and random encodings. */
#ifndef DP_TESTS_RELOCATE_FORMS_H
#define DP_TESTS_RELOCATE_FORMS_H

#include "trampoline/arch/x86_64/decode/decode.h"

#include <Zydis/Zydis.h>

#define FORM_SAMPLES 3

struct form { /* instructions that differ in register numbers, displacements and immediates only */
	uint64_t key;
	uint8_t nsamples;
	uint8_t bytes[FORM_SAMPLES][DP_INSN_MAX];
	uint64_t seen;
};

struct forms {
	struct form *slot; /* open addressing; key 0 is empty */
	size_t n, cap;
	size_t instructions;
};

/* Adds the forms in a file's executable sections. Returns false if it cannot be read. */
bool forms_add_file(struct forms *forms, const char *path);
void forms_fini(struct forms *forms);

static inline uint64_t random_next(uint64_t *state)
{
	*state ^= *state << 13;
	*state ^= *state >> 7;
	return *state ^= *state << 17;
}

/* A random encoding; most, but not all, are instructions. */
void random_encoding(uint64_t *seed, uint8_t bytes[static DP_INSN_MAX]);

bool zydis_decode(const uint8_t *bytes, size_t n, ZydisDecodedInstruction *insn, ZydisDecodedOperand *operand);
/* Returns why the instruction cannot be run here, or NULL. */
const char *unfit(const ZydisDecodedInstruction *insn, const ZydisDecodedOperand *operand);

#endif
