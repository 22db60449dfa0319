/* SPDX-License-Identifier: MIT */
/*
 * Two decoders must agree. Capstone 4.0.2 does not know 1350 AVX-512 instructions of glibc and misnames a few others, so Zydis,
 * which knows them, describes the instruction; Capstone's length checks it. If the lengths differ, one of them is wrong, and a
 * wrong length destroys the target, so the instruction is refused. An instruction that Zydis does not know is refused too, since
 * Capstone's tables are the older ones.
 */
#include "trampoline/arch/x86_64/decode/decode.h"

#include <capstone/capstone.h>
#include <stdio.h>
#include <string.h>

/* One per thread, never closed: opening one takes longer than decoding many instructions. */
static csh capstone(void)
{
	static _Thread_local csh handle;
	if (!handle && cs_open(CS_ARCH_X86, CS_MODE_64, &handle) == CS_ERR_OK)
		cs_option(handle, CS_OPT_SYNTAX, CS_OPT_SYNTAX_ATT);
	return handle;
}

size_t dp_decode_capstone(const uint8_t *bytes, size_t n, uint64_t addr, char *text, size_t size)
{
	cs_insn insn = {.detail = NULL};
	const csh handle = capstone();
	if (!handle || !cs_disasm_iter(handle, &bytes, &n, &addr, &insn))
		return 0;
	if (text)
		snprintf(text, size, "%s%s%s", insn.mnemonic, *insn.op_str ? " " : "", insn.op_str);
	return insn.size;
}

static void hex(const uint8_t *bytes, size_t n, char *buf, size_t size)
{
	*buf = '\0';
	for (size_t i = 0, at = 0; i < n && at + 4 <= size; i++)
		at += (size_t)snprintf(buf + at, size - at, "%s%02x", i ? " " : "", bytes[i]);
}

/*
 * Capstone always writes an instruction's text too, which takes longer than all other work for a probe. Its length is cached by
 * the bytes before displacement and immediate, which alone determine the length, for the instructions of the two oldest maps. In
 * the others an immediate can be part of the opcode.
 */
#define MEMORY 4096u

struct memory {
	uint64_t lead; /* the bytes, and their number in the top byte; 0: free */
	uint8_t len;   /* 0: Capstone does not know it */
};

/* The bytes that determine the length; 0 if that is not certain. */
static uint64_t lead_of(const struct dp_insn *insn)
{
	const uint8_t *opcode = insn->bytes + insn->opcode_at;
	const bool wide = opcode[0] == 0x0f;
	uint8_t n = (uint8_t)(insn->opcode_at + 1 + wide);
	uint64_t lead = 0;
	if (opcode[0] == 0x62 || opcode[0] == 0xc4 || opcode[0] == 0xc5 || opcode[0] == 0x8f)
		return 0;
	if (wide && (opcode[1] == 0x38 || opcode[1] == 0x3a || opcode[1] == 0x0f))
		return 0;
	if (insn->modrm_at) {
		const uint8_t modrm = insn->bytes[insn->modrm_at];
		n = (uint8_t)(insn->modrm_at + 1 + (modrm < 0xc0 && (modrm & 7) == 4));
	}
	if (n > insn->len || n >= sizeof(lead))
		return 0;
	memcpy(&lead, insn->bytes, n);
	return lead | (uint64_t)n << 56;
}

static size_t second_opinion(const struct dp_insn *insn, const uint8_t *bytes, size_t n)
{
	static _Thread_local struct memory memory[MEMORY];
	const uint64_t lead = lead_of(insn);
	struct memory *m = &memory[(lead * UINT64_C(0x9e3779b97f4a7c15)) >> 52];
	if (lead && m->lead == lead)
		return m->len;
	const size_t len = dp_decode_capstone(bytes, n, insn->addr, NULL, 0);
	if (lead)
		*m = (struct memory){lead, (uint8_t)len};
	return len;
}

struct dp_error *dp_decode(const uint8_t *bytes, size_t n, uint64_t addr, struct dp_insn *ret)
{
	char dump[3 * DP_INSN_MAX + 1];
	struct dp_insn insn;
	if (n > DP_INSN_MAX)
		n = DP_INSN_MAX;
	const bool known = dp_decode_zydis(bytes, n, addr, &insn);
	const size_t second = known ? second_opinion(&insn, bytes, n) : 0;
	/*
	 * Disassemblers differ on the operands of ud1 and ud0; the length of an instruction that never completes does not matter.
	 */
	if (known && (!second || second == insn.len || insn.flow == DP_FLOW_TRAP)) {
		*ret = insn;
		return NULL;
	}
	hex(bytes, n < 8 ? n : 8, dump, sizeof(dump));
	if (!known)
		return dp_error(DP_TAG_UNDECODABLE, "0x%llx: the bytes %s are not a known instruction", (unsigned long long)addr,
		                dump);
	return dp_error(DP_TAG_UNDECODABLE,
	                "0x%llx: the decoders disagree about the bytes %s: length %u by Zydis, %zu by Capstone",
	                (unsigned long long)addr, dump, insn.len, second);
}

const char *dp_insn_text(const struct dp_insn *insn, char buf[static DP_INSN_TEXT])
{
	int at = snprintf(buf, DP_INSN_TEXT, "0x%llx: ", (unsigned long long)insn->addr);
	size_t room = DP_INSN_TEXT - (size_t)at;
	if (!dp_decode_capstone(insn->bytes, insn->len, insn->addr, buf + at, room))
		hex(insn->bytes, insn->len, buf + at, room);
	return buf;
}

bool dp_insn_continues(const struct dp_insn *insn)
{
	switch (insn->flow) {
	case DP_FLOW_JMP:
	case DP_FLOW_JMP_IND:
	case DP_FLOW_RET:
	case DP_FLOW_TRAP:
	case DP_FLOW_ODD:
		return false;
	default:
		return true;
	}
}

bool dp_insn_is_padding(const struct dp_insn *insn)
{
	return insn->nop || insn->bytes[0] == 0xcc;
}
