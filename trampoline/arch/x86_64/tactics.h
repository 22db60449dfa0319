/* SPDX-License-Identifier: MIT */
/* The ways a jump fits at a site. A tactic proposes; the planner finds room for stub and springboard and decides. */
#ifndef DP_TRAMPOLINE_ARCH_X86_64_TACTICS_H
#define DP_TRAMPOLINE_ARCH_X86_64_TACTICS_H

#include "trampoline/arch/x86_64/decode.h"
#include "trampoline/trampoline.h"

#define DP_FIT_INSNS 5 /* as many as a 5-byte jump can touch */
#define DP_FIT_JUMPS 4
#define DP_INT3      0xcc

/* One possible jump at the site: `prefixes` padding bytes, e9, rel32. Its target may be chosen in [lo, hi]. */
struct dp_jump {
	uint8_t prefixes;
	uint64_t lo, hi;
};

struct dp_fit {
	uint8_t ninsns; /* displaced into the stub */
	struct dp_insn insn[DP_FIT_INSNS];
	uint8_t changed; /* bytes of the site that the jump may change; the rest of the jump keeps what is there */
	uint8_t njumps;  /* in order of preference */
	struct dp_jump jump[DP_FIT_JUMPS];
	uint8_t ninterior;
	uint8_t interior[4];
};

struct dp_tactic_entry {
	enum dp_tactic tactic;
	/* Refuses with a reason (DP_TAG_TOO_SHORT and the like) where the tactic does not apply. `first` is the site's
	 * instruction. */
	struct dp_error *(*fit)(const struct dp_text *text, const struct dp_insn *first, struct dp_fit *ret);
};
/* In the order to be tried. */
extern const struct dp_tactic_entry dp_tactics[];
extern const size_t dp_ntactics;

/* Bytes of the site that `jump` changes or relies upon. */
uint8_t dp_jump_len(const struct dp_jump *jump);
/* Writes dp_jump_len() bytes for a jump at `site` to `target`, which lies in [lo, hi]. */
void dp_jump_encode(const struct dp_jump *jump, uint64_t site, uint64_t target, uint8_t *bytes);

#endif
