/* SPDX-License-Identifier: MIT */
/*
 * The memory access of an instruction. Zydis also lists implicit operands (the stack of push and call, both sides of a string
 * instruction). Addresses are computed with the thread's registers.
 */
#include "pmodules/fault/fault.h"

#include <Zydis/Zydis.h>
#include <stdio.h>
#include <string.h>

#define MODE ZYDIS_MACHINE_MODE_LONG_64

struct operation {
	const struct dp_access_ask *ask;
	ZydisDecodedInstruction insn;
	ZydisDecodedOperand operand[ZYDIS_MAX_OPERAND_COUNT];
};

static bool is_canonical(uint64_t addr)
{
	return addr + (UINT64_C(1) << 47) < UINT64_C(1) << 48;
}

static uint64_t wide_value(const struct user_regs_struct *r, ZydisRegister reg)
{
	const uint64_t all[] = {r->rax, r->rcx, r->rdx, r->rbx, r->rsp, r->rbp, r->rsi, r->rdi,
	                        r->r8,  r->r9,  r->r10, r->r11, r->r12, r->r13, r->r14, r->r15};
	const int id = reg - ZYDIS_REGISTER_RAX;
	return id >= 0 && id < 16 ? all[id] : 0;
}

static uint64_t register_value(const struct operation *o, ZydisRegister reg)
{
	const unsigned width = ZydisRegisterGetWidth(MODE, reg);
	if (reg == ZYDIS_REGISTER_RIP || reg == ZYDIS_REGISTER_EIP)
		return o->ask->regs->rip + o->insn.length;
	const uint64_t wide = wide_value(o->ask->regs, ZydisRegisterGetLargestEnclosing(MODE, reg));
	return width < 64 ? wide & ((UINT64_C(1) << width) - 1) : wide;
}

static const char *name_of(ZydisRegister reg)
{
	const char *name = reg == ZYDIS_REGISTER_NONE ? NULL : ZydisRegisterGetString(reg);
	return name ? name : "";
}

/* A push writes below rsp; the address of pop's memory operand is computed after the pop. */
static uint64_t stack_offset(const struct operation *o, const ZydisDecodedOperand *op)
{
	const bool is_hidden = op->visibility == ZYDIS_OPERAND_VISIBILITY_HIDDEN;
	if (ZydisRegisterGetLargestEnclosing(MODE, op->mem.base) != ZYDIS_REGISTER_RSP)
		return 0;
	if (is_hidden)
		return op->actions & ZYDIS_OPERAND_ACTION_MASK_WRITE ? 0 - (uint64_t)op->size / 8 : 0;
	return o->insn.mnemonic == ZYDIS_MNEMONIC_POP ? op->size / 8 : 0;
}

/* bt and the like number bits from the operand on, in both directions: a bit in a register may be far away. */
static uint64_t bit_offset(const struct operation *o, const ZydisDecodedOperand *op)
{
	const ZydisMnemonic m = o->insn.mnemonic;
	const ZydisDecodedOperand *bit = &o->operand[1];
	if ((m != ZYDIS_MNEMONIC_BT && m != ZYDIS_MNEMONIC_BTS && m != ZYDIS_MNEMONIC_BTR && m != ZYDIS_MNEMONIC_BTC) ||
	    bit->type != ZYDIS_OPERAND_TYPE_REGISTER || !op->size)
		return 0;
	const unsigned unused = 64u - ZydisRegisterGetWidth(MODE, bit->reg.value);
	const int64_t n = (int64_t)(register_value(o, bit->reg.value) << unused) >> unused;
	return (uint64_t)((n & -(int64_t)op->size) / 8);
}

static uint64_t address_of(const struct operation *o, const ZydisDecodedOperand *op)
{
	const ZydisDecodedOperandMem *m = &op->mem;
	const bool is_xlat = o->insn.mnemonic == ZYDIS_MNEMONIC_XLAT; /* Zydis does not list its index */
	const uint64_t index = m->type == ZYDIS_MEMOP_TYPE_VSIB ? 0 : register_value(o, m->index) * m->scale;
	uint64_t at = register_value(o, m->base) + index + (is_xlat ? o->ask->regs->rax & 0xff : 0) + (uint64_t)m->disp.value +
	              stack_offset(o, op) + bit_offset(o, op);
	if (o->insn.address_width == 32)
		at = (uint32_t)at;
	if (m->segment == ZYDIS_REGISTER_FS)
		at += o->ask->regs->fs_base;
	return m->segment == ZYDIS_REGISTER_GS ? at + o->ask->regs->gs_base : at;
}

/* The instruction accesses only some elements of the vector; the selecting register is not known here. */
static bool is_by_element(const struct operation *o, const ZydisDecodedOperand *op)
{
	switch (o->insn.mnemonic) {
	case ZYDIS_MNEMONIC_MASKMOVQ:
	case ZYDIS_MNEMONIC_MASKMOVDQU:
	case ZYDIS_MNEMONIC_VMASKMOVDQU:
	case ZYDIS_MNEMONIC_VMASKMOVPS:
	case ZYDIS_MNEMONIC_VMASKMOVPD:
	case ZYDIS_MNEMONIC_VPMASKMOVD:
	case ZYDIS_MNEMONIC_VPMASKMOVQ:
		return true;
	default:
		return op->mem.type == ZYDIS_MEMOP_TYPE_VSIB ||
		       (o->insn.encoding == ZYDIS_INSTRUCTION_ENCODING_EVEX &&
		        o->insn.avx.mask.mode != ZYDIS_MASK_MODE_DISABLED && o->insn.avx.mask.reg != ZYDIS_REGISTER_K0);
	}
}

static unsigned element_of(const struct operation *o, const ZydisDecodedOperand *op)
{
	const bool bytes = o->insn.mnemonic == ZYDIS_MNEMONIC_MASKMOVQ || o->insn.mnemonic == ZYDIS_MNEMONIC_MASKMOVDQU ||
	                   o->insn.mnemonic == ZYDIS_MNEMONIC_VMASKMOVDQU;
	return bytes ? 1 : op->element_size / 8u;
}

static unsigned alignment_of(const struct operation *o, const ZydisDecodedOperand *op)
{
	switch (o->insn.meta.category) {
	case ZYDIS_CATEGORY_XSAVE:
	case ZYDIS_CATEGORY_XSAVEOPT:
		return 64;
	default:
		if (o->insn.encoding == ZYDIS_INSTRUCTION_ENCODING_LEGACY)
			return op->size >= 128 && o->insn.meta.category != ZYDIS_CATEGORY_X87_ALU ? 16 : 1;
		return op->size >= 128 ? op->size / 8u : 1;
	}
}

static void look(const struct operation *o, const ZydisDecodedOperand *op, struct dp_access *ret)
{
	const ZydisDecodedOperandMem *m = &op->mem;
	const bool by_element = is_by_element(o, op), is_gather = m->type == ZYDIS_MEMOP_TYPE_VSIB;
	*ret = (struct dp_access){.is_known = true,
	                          .is_write = op->actions & ZYDIS_OPERAND_ACTION_MASK_WRITE,
	                          .size = by_element ? element_of(o, op) : op->size / 8u,
	                          .align = alignment_of(o, op),
	                          .address = address_of(o, op),
	                          .is_spread = is_gather};
	if (by_element && ret->size && o->ask->has_address)
		ret->address = is_gather ? o->ask->address : o->ask->address - (o->ask->address - ret->address) % ret->size;
	const bool is_index = !is_gather && m->index != ZYDIS_REGISTER_NONE &&
	                      (m->base == ZYDIS_REGISTER_NONE || (is_canonical(register_value(o, m->base)) &&
	                                                          !is_canonical(register_value(o, m->index) * m->scale)));
	snprintf(ret->reg, sizeof(ret->reg), "%s", name_of(is_index ? m->index : m->base));
}

/* How well an access explains the fault; larger is better. */
static int fitness(const struct operation *o, const ZydisDecodedOperand *op, const struct dp_access *a)
{
	const uint64_t times = o->insn.attributes & (ZYDIS_ATTRIB_HAS_REP | ZYDIS_ATTRIB_HAS_REPE | ZYDIS_ATTRIB_HAS_REPNE)
	                               ? o->ask->regs->rcx
	                               : 1;
	const uint64_t at = address_of(o, op), from = o->ask->address - at, size = op->size / 8u;
	if (!o->ask->has_address)
		return !is_canonical(a->address) ? 3 : a->address % a->align ? 2 : 1;
	if (a->is_spread)
		return 2;
	return from < (size ? size : 1) ? 4 : size && from / size < times ? 3 : 1;
}

static bool is_access(const struct operation *o, const ZydisDecodedOperand *op)
{
	switch (o->insn.meta.category) {
	case ZYDIS_CATEGORY_PREFETCH:
	case ZYDIS_CATEGORY_PREFETCHWT1:
	case ZYDIS_CATEGORY_NOP:
	case ZYDIS_CATEGORY_WIDENOP:
		return false;
	default:
		return op->type == ZYDIS_OPERAND_TYPE_MEMORY &&
		       (op->mem.type == ZYDIS_MEMOP_TYPE_MEM || op->mem.type == ZYDIS_MEMOP_TYPE_VSIB);
	}
}

static void choose(const struct operation *o, struct dp_access *ret)
{
	int best = 0;
	for (unsigned i = 0; i < o->insn.operand_count; i++) {
		const ZydisDecodedOperand *op = &o->operand[i];
		struct dp_access here;
		if (!is_access(o, op))
			continue;
		look(o, op, &here);
		const int fit = fitness(o, op, &here);
		if (fit <= best)
			continue;
		best = fit;
		*ret = here;
	}
}

/* Sets the divisor's register. Clears a register that only addresses the divisor. */
static void divisor(const struct operation *o, struct dp_access *ret)
{
	const ZydisDecodedOperand *op = &o->operand[0];
	ret->divides = o->insn.mnemonic == ZYDIS_MNEMONIC_DIV || o->insn.mnemonic == ZYDIS_MNEMONIC_IDIV;
	if (!ret->divides)
		return;
	ret->value_known = op->type == ZYDIS_OPERAND_TYPE_REGISTER;
	*ret->reg = 0;
	if (!ret->value_known)
		return;
	snprintf(ret->reg, sizeof(ret->reg), "%s", name_of(op->reg.value));
	ret->value = register_value(o, op->reg.value);
	if (op->reg.value >= ZYDIS_REGISTER_AH && op->reg.value <= ZYDIS_REGISTER_BH)
		ret->value = wide_value(o->ask->regs, ZydisRegisterGetLargestEnclosing(MODE, op->reg.value)) >> 8 & 0xff;
}

/* The target of a jump, call or return. */
static void target(const struct operation *o, struct dp_access *ret)
{
	const ZydisDecodedOperand *op = &o->operand[0];
	const bool returns = o->insn.meta.category == ZYDIS_CATEGORY_RET;
	if (!returns && o->insn.meta.category != ZYDIS_CATEGORY_CALL && o->insn.meta.category != ZYDIS_CATEGORY_UNCOND_BR)
		return;
	if (!returns && op->type == ZYDIS_OPERAND_TYPE_REGISTER) {
		ret->branch = DP_BRANCH_VALUE;
		ret->target = register_value(o, op->reg.value);
		snprintf(ret->target_reg, sizeof(ret->target_reg), "%s", name_of(op->reg.value));
	} else if (returns || op->type == ZYDIS_OPERAND_TYPE_MEMORY) {
		ret->branch = DP_BRANCH_MEMORY;
		ret->target = returns ? o->ask->regs->rsp : address_of(o, op);
	}
}

static bool is_privileged(const struct operation *o)
{
	const ZydisDecodedInstruction *in = &o->insn;
	switch (in->meta.category) {
	case ZYDIS_CATEGORY_SYSTEM:
	case ZYDIS_CATEGORY_IO:
	case ZYDIS_CATEGORY_IOSTRINGOP:
	case ZYDIS_CATEGORY_INTERRUPT:
		return true;
	default:
		break;
	}
	for (unsigned i = 0; i < in->operand_count; i++) {
		const ZydisRegisterClass class = ZydisRegisterGetClass(o->operand[i].reg.value);
		if (o->operand[i].type == ZYDIS_OPERAND_TYPE_REGISTER &&
		    o->operand[i].visibility == ZYDIS_OPERAND_VISIBILITY_EXPLICIT &&
		    (class == ZYDIS_REGCLASS_CONTROL || class == ZYDIS_REGCLASS_DEBUG))
			return true;
	}
	return in->mnemonic == ZYDIS_MNEMONIC_CLI || in->mnemonic == ZYDIS_MNEMONIC_STI;
}

void dp_access_decode(const struct dp_access_ask *ask, struct dp_access *ret)
{
	struct operation o = {.ask = ask};
	ZydisDecoder decoder;
	*ret = (struct dp_access){0};
	ZydisDecoderInit(&decoder, MODE, ZYDIS_STACK_WIDTH_64);
	const ZyanStatus status = ZydisDecoderDecodeFull(&decoder, ask->bytes, ask->n, &o.insn, o.operand);
	if (ZYAN_FAILED(status)) {
		ret->is_cut = status == ZYDIS_STATUS_NO_MORE_DATA;
		return;
	}
	choose(&o, ret);
	divisor(&o, ret);
	target(&o, ret);
	ret->is_privileged = is_privileged(&o);
	const char *name = ZydisMnemonicGetString(o.insn.mnemonic);
	snprintf(ret->name, sizeof(ret->name), "%s", name ? name : "");
}

void dp_access_text(const struct dp_access *a, uint64_t at, char *text, size_t size)
{
	char bytes[32] = "", where[32] = "";
	const char *verb = !a->is_known ? "access" : a->is_write ? "write" : "read";
	if (a->is_known && a->size)
		snprintf(bytes, sizeof(bytes), " of %u byte%s", a->size, a->size == 1 ? "" : "s");
	snprintf(where, sizeof(where), " at 0x%llx", (unsigned long long)at);
	snprintf(text, size, "%s%s%s", verb, bytes, where);
}
