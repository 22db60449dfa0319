/* SPDX-License-Identifier: MIT */
/* The test process's own libc as a module, and small modules made of bytes. */
#ifndef DP_TESTS_TRAMPOLINE_HELPER_TEXT_H
#define DP_TESTS_TRAMPOLINE_HELPER_TEXT_H

#include "trampoline/trampoline.h"

#define HELPER_SEGMENTS 8

struct helper_module {
	struct dp_segment segment[HELPER_SEGMENTS];
	struct dp_text text;
	uint64_t code, code_end; /* the executable segment */
	const uint8_t *eh_frame_hdr;
};

/* libc as it is mapped in this process (readable segments only). */
void helper_libc(struct helper_module *ret);
/* The same for the test's executable, with copies of its bytes (which are never freed). */
void helper_self(struct helper_module *ret);
/* One executable segment at `addr`, which is also one function. */
void helper_code(struct helper_module *ret, uint64_t addr, const uint8_t *bytes, size_t n);
/* Adds a data segment. */
void helper_add(struct helper_module *m, uint64_t addr, const void *bytes, size_t n);
/* Sets the text's function to the one around `addr`, from the .eh_frame_hdr of the libc module. False if there is none. */
bool helper_function(struct helper_module *m, uint64_t addr);
/* Small deterministic random numbers: xorshift. */
uint64_t helper_random(uint64_t *state);
/*
 * Picks the start of a random instruction of the module's code, by decoding from a random place until both decoders have
 * settled, so that it is most likely a real one.
 */
uint64_t helper_random_insn(const struct helper_module *m, uint64_t *state);

#endif
