/* SPDX-License-Identifier: MIT */
/*
 * Walks through functions need only lengths and direct branches, but many thousand times. The length of an instruction of the two
 * oldest opcode maps, and whether it exists, depend on its REX prefix, on one of 66, f2 and f3, on the opcode, on ModRM, and on
 * whether the SIB byte has a base. So the decoder runs once for each such combination, and the result is cached. Plain branches
 * are decoded here. For all else (other prefixes, newer maps), and close to the end of the bytes, the decoder runs each time.
 */
#include "trampoline/arch/x86_64/decode/decode.h"

#include <string.h>

#define MEMORY_BITS 14
#define LEN_BITS    5

struct shape {
	uint8_t prefix, rex, at; /* index of the opcode */
	bool wide;               /* 0f */
	uint8_t opcode;
};

enum form {
	FORM_UNKNOWN,
	FORM_PLAIN,
	FORM_MODRM,
};

/* Per thread, like the decoder. An entry is a combination and, in its low bits, the length; 0: free. */
static _Thread_local uint32_t memory[1u << MEMORY_BITS];
static _Thread_local uint8_t forms[2][256];

static bool is_old_map(const struct shape *s)
{
	if (s->wide)
		return s->opcode != 0x38 && s->opcode != 0x3a && s->opcode != 0x0f;
	switch (s->opcode) {
	case 0x26: /* prefixes */
	case 0x2e:
	case 0x36:
	case 0x3e:
	case 0x64:
	case 0x65:
	case 0x66:
	case 0x67:
	case 0xf0:
	case 0xf2:
	case 0xf3:
	case 0x62: /* EVEX, XOP, VEX */
	case 0x8f:
	case 0xc4:
	case 0xc5:
		return false;
	default:
		return (s->opcode & 0xf0) != 0x40;
	}
}

static struct shape shape_of(const uint8_t *bytes)
{
	struct shape s = {0};
	if (bytes[0] == 0x66 || bytes[0] == 0xf2 || bytes[0] == 0xf3)
		s.prefix = bytes[s.at++];
	if ((bytes[s.at] & 0xf0) == 0x40)
		s.rex = bytes[s.at++];
	s.wide = bytes[s.at] == 0x0f;
	s.at = (uint8_t)(s.at + s.wide);
	s.opcode = bytes[s.at];
	return s;
}

/* Branches without a prefix: 70 to 7f, e0 to e3, eb; e8, e9; 0f 80 to 0f 8f. False: not one of these. */
static bool plain_branch(const struct shape *s, const uint8_t *bytes, uint64_t addr, struct dp_insn_step *ret)
{
	int32_t near;
	if (s->prefix || s->rex)
		return false;
	const bool loop = !s->wide && s->opcode >= 0xe0 && s->opcode <= 0xe3;
	if (loop || (!s->wide && (s->opcode == 0xeb || (s->opcode & 0xf0) == 0x70))) {
		*ret = (struct dp_insn_step){addr + 2 + (uint64_t)(int64_t)(int8_t)bytes[1], 2, true, loop};
		return true;
	}
	if (s->wide ? (s->opcode & 0xf0) != 0x80 : s->opcode != 0xe8 && s->opcode != 0xe9)
		return false;
	memcpy(&near, bytes + s->at + 1, sizeof(near));
	*ret = (struct dp_insn_step){0, (uint8_t)(s->at + 5), true, false};
	ret->target = addr + ret->len + (uint64_t)(int64_t)near;
	return true;
}

static uint32_t combination(const struct shape *s, const uint8_t *bytes, bool has_modrm)
{
	const uint8_t modrm = has_modrm ? bytes[s->at + 1] : 0;
	const bool bare = modrm < 0xc0 && (modrm & 7) == 4 && (bytes[s->at + 2] & 7) == 5;
	uint32_t key = s->prefix == 0x66 ? 1 : s->prefix == 0xf2 ? 2 : s->prefix == 0xf3 ? 3 : 0;
	key = key << 5 | (s->rex ? 0x10u | (s->rex & 0xf) : 0);
	key = key << 1 | s->wide;
	key = key << 8 | s->opcode;
	key = key << 8 | modrm;
	key = key << 1 | (has_modrm && bare);
	return key << LEN_BITS;
}

static bool ask(const uint8_t *bytes, size_t n, uint64_t addr, struct dp_insn *insn, struct dp_insn_step *ret)
{
	if (!dp_decode_zydis(bytes, n, addr, insn))
		return false;
	*ret = (struct dp_insn_step){insn->target, insn->len, insn->rel_size != 0,
	                             insn->flow == DP_FLOW_JCXZ || insn->flow == DP_FLOW_XBEGIN || insn->flow == DP_FLOW_ODD};
	return true;
}

bool dp_decode_step(const uint8_t *bytes, size_t n, uint64_t addr, struct dp_insn_step *ret)
{
	struct dp_insn insn;
	if (n < DP_INSN_MAX + 1)
		return ask(bytes, n, addr, &insn, ret);
	const struct shape s = shape_of(bytes);
	if (plain_branch(&s, bytes, addr, ret))
		return true;
	if (!is_old_map(&s))
		return ask(bytes, n, addr, &insn, ret);
	uint8_t *form = &forms[s.wide][s.opcode];
	uint32_t key = combination(&s, bytes, *form == FORM_MODRM);
	uint32_t *known = &memory[key * UINT32_C(0x9e3779b1) >> (32 - MEMORY_BITS)];
	if (*form != FORM_UNKNOWN && *known && (*known & ~((1u << LEN_BITS) - 1)) == key) {
		*ret = (struct dp_insn_step){.len = (uint8_t)(*known & ((1u << LEN_BITS) - 1))};
		return true;
	}
	if (!ask(bytes, n, addr, &insn, ret))
		return false;
	if (!ret->relative) {
		*form = insn.modrm_at ? FORM_MODRM : FORM_PLAIN;
		key = combination(&s, bytes, *form == FORM_MODRM);
		memory[key * UINT32_C(0x9e3779b1) >> (32 - MEMORY_BITS)] = key | insn.len;
	}
	return true;
}
