/* SPDX-License-Identifier: MIT */
/* Decodes with Zydis, which reports the position of each field. */
#include "trampoline/arch/x86_64/decode/decode.h"

#include <Zydis/Zydis.h>
#include <string.h>

static bool is_loop(ZydisMnemonic mnemonic)
{
	switch (mnemonic) {
	case ZYDIS_MNEMONIC_JCXZ:
	case ZYDIS_MNEMONIC_JECXZ:
	case ZYDIS_MNEMONIC_JRCXZ:
	case ZYDIS_MNEMONIC_LOOP:
	case ZYDIS_MNEMONIC_LOOPE:
	case ZYDIS_MNEMONIC_LOOPNE:
		return true;
	default:
		return false;
	}
}

static enum dp_flow flow_of_mnemonic(const ZydisDecodedInstruction *in)
{
	switch (in->mnemonic) {
	case ZYDIS_MNEMONIC_SYSCALL:
		return DP_FLOW_SYSCALL;
	case ZYDIS_MNEMONIC_INT:
		return in->raw.imm[0].value.u == 0x80 ? DP_FLOW_SYSCALL : DP_FLOW_TRAP;
	case ZYDIS_MNEMONIC_INT1:
	case ZYDIS_MNEMONIC_INT3:
	case ZYDIS_MNEMONIC_UD0:
	case ZYDIS_MNEMONIC_UD1:
	case ZYDIS_MNEMONIC_UD2:
	case ZYDIS_MNEMONIC_HLT:
		return DP_FLOW_TRAP;
	case ZYDIS_MNEMONIC_SYSENTER:
	case ZYDIS_MNEMONIC_SYSEXIT:
	case ZYDIS_MNEMONIC_SYSRET:
	case ZYDIS_MNEMONIC_UIRET:
		return DP_FLOW_ODD;
	case ZYDIS_MNEMONIC_XBEGIN:
		return DP_FLOW_XBEGIN;
	default:
		return DP_FLOW_NEXT;
	}
}

static enum dp_flow flow_of(const ZydisDecodedInstruction *in)
{
	bool direct = in->raw.imm[0].is_relative;
	if (in->meta.branch_type == ZYDIS_BRANCH_TYPE_FAR && in->meta.category != ZYDIS_CATEGORY_RET)
		return DP_FLOW_ODD;
	switch (in->meta.category) {
	case ZYDIS_CATEGORY_CALL:
		return direct ? DP_FLOW_CALL : DP_FLOW_CALL_IND;
	case ZYDIS_CATEGORY_RET:
		return DP_FLOW_RET;
	case ZYDIS_CATEGORY_UNCOND_BR:
		if (in->mnemonic == ZYDIS_MNEMONIC_JMP)
			return direct ? DP_FLOW_JMP : DP_FLOW_JMP_IND;
		return flow_of_mnemonic(in);
	case ZYDIS_CATEGORY_COND_BR:
		if (!direct) /* xend and similar ones count as branches */
			return flow_of_mnemonic(in);
		if (is_loop(in->mnemonic))
			return DP_FLOW_JCXZ;
		return in->mnemonic == ZYDIS_MNEMONIC_XBEGIN ? DP_FLOW_XBEGIN : DP_FLOW_JCC;
	default:
		return flow_of_mnemonic(in);
	}
}

/*
 * The operand-size prefix on a near branch is ignored by Intel and truncates rip to 16 bits on AMD. With REX.W it has no effect
 * (the padding of TLS calls). Copied instructions may keep it. Re-encoded ones would have to choose, so they are DP_FLOW_ODD.
 */
static bool is_ambiguous(const ZydisDecodedInstruction *in, enum dp_flow flow)
{
	bool reencoded = flow == DP_FLOW_JMP || flow == DP_FLOW_JCC || flow == DP_FLOW_JCXZ || flow == DP_FLOW_CALL ||
	                 flow == DP_FLOW_CALL_IND || flow == DP_FLOW_XBEGIN;
	return reencoded && (in->attributes & ZYDIS_ATTRIB_HAS_OPERANDSIZE) && !in->raw.rex.W;
}

static void fill_operands(const ZydisDecodedInstruction *in, struct dp_insn *ret)
{
	if (!(in->attributes & ZYDIS_ATTRIB_HAS_MODRM))
		return;
	bool rex_b = in->raw.rex.B;
	ret->modrm_at = in->raw.modrm.offset;
	if (in->raw.modrm.mod == 0 && in->raw.modrm.rm == 5 && in->raw.disp.size == 32)
		ret->disp_at = in->raw.disp.offset;
	ret->stack_reg = in->raw.modrm.mod == 3 && in->raw.modrm.rm == 4 && !rex_b;
	ret->stack_base = in->raw.modrm.mod != 3 && in->raw.modrm.rm == 4 && in->raw.sib.base == 4 && !rex_b;
}

/* Legacy prefixes and REX come first; VEX, EVEX or the opcode follows. */
static uint8_t opcode_offset(const ZydisDecodedInstruction *in)
{
	return in->raw.prefix_count;
}

/* VEX-coded branches exist in another processor family (jkzd, jknzd); here they raise SIGILL and must not count as branches. */
static bool is_foreign(const ZydisDecodedInstruction *in)
{
	return in->encoding != ZYDIS_INSTRUCTION_ENCODING_LEGACY && in->raw.imm[0].is_relative;
}

static const ZydisDecoder *zydis(void)
{
	static _Thread_local ZydisDecoder decoder;
	static _Thread_local bool made;
	if (!made)
		made = ZYAN_SUCCESS(ZydisDecoderInit(&decoder, ZYDIS_MACHINE_MODE_LONG_64, ZYDIS_STACK_WIDTH_64));
	return made ? &decoder : NULL;
}

bool dp_decode_zydis(const uint8_t *bytes, size_t n, uint64_t addr, struct dp_insn *ret)
{
	const ZydisDecoder *decoder = zydis();
	ZydisDecodedInstruction in;
	if (!decoder || ZYAN_FAILED(ZydisDecoderDecodeInstruction(decoder, NULL, bytes, n, &in)))
		return false;
	if (is_foreign(&in))
		return false;
	*ret = (struct dp_insn){.addr = addr, .len = in.length, .flow = flow_of(&in), .opcode_at = opcode_offset(&in)};
	memcpy(ret->bytes, bytes, in.length);
	ret->addr32 = (in.attributes & ZYDIS_ATTRIB_HAS_ADDRESSSIZE) != 0;
	ret->nop = in.mnemonic == ZYDIS_MNEMONIC_NOP;
	if (in.raw.imm[0].is_relative) {
		ret->rel_at = in.raw.imm[0].offset;
		ret->rel_size = in.raw.imm[0].size / 8;
		ret->target = addr + in.length + in.raw.imm[0].value.u;
	}
	if (is_ambiguous(&in, ret->flow))
		ret->flow = DP_FLOW_ODD;
	fill_operands(&in, ret);
	return true;
}
