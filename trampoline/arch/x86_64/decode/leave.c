/* SPDX-License-Identifier: MIT */
/*
 * Decides whether an indirect jump leaves its function. This cannot be known in general; compilers use few forms, and all others
 * are DP_LEAVE_UNSURE.
 *
 *   jmp *x(%rip)              through a pointer that the linker or the program set: leaves
 *   jmp *8(%rax)              through a member of a structure, for example of a vtable: leaves
 *   jmp *t(,%rax,8)           a table of addresses: decided by its first entry, if that can be read
 *   add %rdx,%rax; jmp *%rax  a table of offsets from itself or from a label (switch in position-independent code): stays
 *   mov (...),%rax; jmp *%rax a pointer was loaded: leaves, unless the function has labels whose addresses are stored
 *                             (computed goto); then one loaded from a table stays, and another one is unsure
 *   pop %rbx; jmp *...        leaves even if otherwise unsure, as the frame has just been removed
 */
#include "trampoline/arch/x86_64/decode/returns.h"

#include <Zydis/Zydis.h>
#include <string.h>

#define LOOK_BACK 24u /* instructions searched for the one that sets the register */
#define EPILOGUE  8u  /* instructions between the removal of the frame and the jump */
#define ENTRIES   4u  /* of a table that are checked */

typedef uint32_t unaligned32 __attribute__((aligned(1), may_alias));
typedef uint64_t unaligned64 __attribute__((aligned(1), may_alias));

struct full { /* an instruction with its operands */
	ZydisDecodedInstruction in;
	ZydisDecodedOperand op[ZYDIS_MAX_OPERAND_COUNT];
};

static bool decode(const struct dp_function_code *code, size_t i, struct full *ret)
{
	ZydisDecoder decoder;
	size_t n;
	const uint8_t *bytes = dp_text_at(code->parts->text, code->insn[i].addr, &n);
	return bytes && ZYAN_SUCCESS(ZydisDecoderInit(&decoder, ZYDIS_MACHINE_MODE_LONG_64, ZYDIS_STACK_WIDTH_64)) &&
	       ZYAN_SUCCESS(ZydisDecoderDecodeFull(&decoder, bytes, n, &ret->in, ret->op));
}

static ZydisRegister whole(ZydisRegister reg)
{
	return ZydisRegisterGetLargestEnclosing(ZYDIS_MACHINE_MODE_LONG_64, reg);
}

/* ---- addresses inside the function ------------------------------------------------------------------------------------ */

/* Inside the function, but not its start. */
static bool is_inside(const struct dp_function_code *code, uint64_t addr)
{
	return addr != code->parts->part[0].start && dp_parts_hold(code->parts, addr);
}

static const struct dp_segment *segment_at(const struct dp_text *text, uint64_t addr)
{
	for (size_t i = 0; i < text->nsegments; i++)
		if (addr - text->segment[i].addr < text->segment[i].n)
			return &text->segment[i];
	return NULL;
}

/* Whether the table has offsets from itself that lead into the function. */
static bool is_offset_table(const struct dp_function_code *code, uint64_t table)
{
	const struct dp_segment *s = segment_at(code->parts->text, table);
	for (unsigned i = 0; s && i < ENTRIES && table - s->addr + 4 * (i + 1) <= s->n; i++) {
		const uint32_t offset = *(const unaligned32 *)(s->bytes + (table - s->addr) + 4 * i);
		if (offset && is_inside(code, table + (uint64_t)(int64_t)(int32_t)offset))
			return true;
	}
	return false;
}

static void look_at_lea(struct dp_function_code *code, size_t i)
{
	struct full f;
	uint64_t target;
	size_t n;
	const uint8_t *bytes = dp_text_at(code->parts->text, code->insn[i].addr, &n);
	/* Full decoding is slow: only for lea's opcode with a RIP-relative operand. */
	if (!bytes || n < 7 || !((bytes[0] == 0x8d && (bytes[1] & 0xc7) == 5) || (bytes[1] == 0x8d && (bytes[2] & 0xc7) == 5)) ||
	    !decode(code, i, &f) || f.in.mnemonic != ZYDIS_MNEMONIC_LEA ||
	    ZYAN_FAILED(ZydisCalcAbsoluteAddress(&f.in, &f.op[1], code->insn[i].addr, &target)))
		return;
	code->labels |= is_inside(code, target);
	code->tables |= is_offset_table(code, target);
}

/* Whether data contains pointers into the function: addresses as written by the linker or as added by relocations. */
static bool pointed_at(const struct dp_function_code *code, const struct dp_segment *s)
{
	const struct dp_text *text = code->parts->text;
	const size_t skip = -s->addr & 7;
	for (size_t i = skip; i + 8 <= s->n; i += 8) {
		const uint64_t value = *(const unaligned64 *)(s->bytes + i) + (uint64_t)text->bias;
		for (size_t k = 0; k < code->parts->n; k++)
			if (value - code->parts->part[k].start - (k == 0) < code->parts->part[k].size - (k == 0))
				return true;
	}
	return false;
}

static void look(struct dp_function_code *code)
{
	const struct dp_text *text = code->parts->text;
	code->looked = true;
	for (size_t i = 0; i < code->n; i++)
		look_at_lea(code, i);
	for (size_t i = 0; i < text->nsegments && !code->labels; i++)
		code->labels = !text->segment[i].exec && pointed_at(code, &text->segment[i]);
}

/* ---- the jump ------------------------------------------------------------------------------------------------------ */

static bool is_indexed(const ZydisDecodedOperand *m)
{
	return m->mem.index != ZYDIS_REGISTER_NONE && m->mem.scale == 8;
}

/* A table of addresses at a constant address: in a program that is not position-independent. */
static enum dp_leave by_table(const struct dp_function_code *code, const ZydisDecodedOperand *m)
{
	const uint64_t table = (uint64_t)m->mem.disp.value;
	const struct dp_segment *s = segment_at(code->parts->text, table);
	if (m->mem.base != ZYDIS_REGISTER_NONE || !s || table - s->addr + 8 > s->n)
		return DP_LEAVE_UNSURE;
	return is_inside(code, *(const unaligned64 *)(s->bytes + (table - s->addr))) ? DP_LEAVE_NO : DP_LEAVE_YES;
}

/* A pointer from memory. */
static enum dp_leave by_load(const struct dp_function_code *code, const ZydisDecodedOperand *m)
{
	if (m->mem.base == ZYDIS_REGISTER_RIP)
		return DP_LEAVE_YES;
	const enum dp_leave table = is_indexed(m) ? by_table(code, m) : DP_LEAVE_UNSURE;
	if (table != DP_LEAVE_UNSURE)
		return table;
	if (!code->labels || (!is_indexed(m) && m->mem.disp.value))
		return DP_LEAVE_YES;
	return is_indexed(m) ? DP_LEAVE_NO : DP_LEAVE_UNSURE;
}

static bool writes(const struct full *f, ZydisRegister reg)
{
	for (unsigned i = 0; i < f->in.operand_count; i++)
		if (f->op[i].type == ZYDIS_OPERAND_TYPE_REGISTER && (f->op[i].actions & ZYDIS_OPERAND_ACTION_MASK_WRITE) &&
		    whole(f->op[i].reg.value) == reg)
			return true;
	return false;
}

/* The register was set by `f`. */
static enum dp_leave by_setter(const struct dp_function_code *code, const struct full *f)
{
	if (f->in.mnemonic == ZYDIS_MNEMONIC_ADD ||
	    (f->in.mnemonic == ZYDIS_MNEMONIC_LEA && f->op[1].mem.index != ZYDIS_REGISTER_NONE))
		return code->tables || code->labels ? DP_LEAVE_NO : DP_LEAVE_UNSURE;
	if (f->in.mnemonic == ZYDIS_MNEMONIC_MOV && f->op[1].type == ZYDIS_OPERAND_TYPE_MEMORY)
		return by_load(code, &f->op[1]);
	return code->labels || code->tables ? DP_LEAVE_UNSURE : DP_LEAVE_YES;
}

static enum dp_leave by_register(const struct dp_function_code *code, size_t i, ZydisRegister reg)
{
	struct full f;
	for (size_t k = i; k-- > 0 && i - k <= LOOK_BACK;) {
		if (!decode(code, k, &f))
			break;
		if (writes(&f, reg))
			return by_setter(code, &f);
	}
	return code->labels || code->tables ? DP_LEAVE_UNSURE : DP_LEAVE_YES;
}

/* A callee-saved register. */
static bool is_preserved(ZydisRegister reg)
{
	return reg == ZYDIS_REGISTER_RBX || reg == ZYDIS_REGISTER_RBP || (reg >= ZYDIS_REGISTER_R12 && reg <= ZYDIS_REGISTER_R15);
}

/* A jump inside a function does not follow the removal of its frame. */
bool dp_after_epilogue(const struct dp_function_code *code, size_t i)
{
	struct full f;
	for (size_t k = i; k-- > 0 && i - k <= EPILOGUE && decode(code, k, &f);) {
		if (f.in.mnemonic == ZYDIS_MNEMONIC_LEAVE ||
		    (f.in.mnemonic == ZYDIS_MNEMONIC_POP && is_preserved(f.op[0].reg.value)))
			return true;
		if (f.in.meta.branch_type != ZYDIS_BRANCH_TYPE_NONE || f.in.mnemonic == ZYDIS_MNEMONIC_PUSH)
			return false;
	}
	return false;
}

static enum dp_leave judge(const struct dp_function_code *code, size_t i, const struct full *f)
{
	if (f->op[0].type == ZYDIS_OPERAND_TYPE_MEMORY)
		return by_load(code, &f->op[0]);
	return f->op[0].type == ZYDIS_OPERAND_TYPE_REGISTER ? by_register(code, i, whole(f->op[0].reg.value)) : DP_LEAVE_UNSURE;
}

enum dp_leave dp_indirect_leaves(struct dp_function_code *code, size_t i)
{
	struct full f;
	if (!decode(code, i, &f) || !f.in.operand_count)
		return DP_LEAVE_UNSURE;
	if (f.op[0].type == ZYDIS_OPERAND_TYPE_MEMORY && f.op[0].mem.base == ZYDIS_REGISTER_RIP)
		return DP_LEAVE_YES;
	if (!code->looked)
		look(code);
	const enum dp_leave leave = judge(code, i, &f);
	return leave == DP_LEAVE_UNSURE && dp_after_epilogue(code, i) ? DP_LEAVE_YES : leave;
}

const char *dp_jcc_condition(const struct dp_insn *insn)
{
	static const char *const when[16] = {
	        "(rflags & 0x800) != 0",
	        "(rflags & 0x800) == 0",
	        "(rflags & 1) != 0",
	        "(rflags & 1) == 0",
	        "(rflags & 0x40) != 0",
	        "(rflags & 0x40) == 0",
	        "(rflags & 0x41) != 0",
	        "(rflags & 0x41) == 0",
	        "(rflags & 0x80) != 0",
	        "(rflags & 0x80) == 0",
	        "(rflags & 4) != 0",
	        "(rflags & 4) == 0",
	        "((rflags >> 7 ^ rflags >> 11) & 1) != 0",
	        "((rflags >> 7 ^ rflags >> 11) & 1) == 0",
	        "((rflags >> 6 | rflags >> 7 ^ rflags >> 11) & 1) != 0",
	        "((rflags >> 6 | rflags >> 7 ^ rflags >> 11) & 1) == 0",
	};
	const uint8_t opcode = insn->bytes[insn->opcode_at];
	return when[(opcode == 0x0f ? insn->bytes[insn->opcode_at + 1] : opcode) & 15];
}
