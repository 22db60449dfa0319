/* SPDX-License-Identifier: MIT */
/* What an instruction wanted of memory: decoded by Capstone, computed with the thread's registers. */
#include "pmodules/fault.h"

#include <capstone/capstone.h>
#include <stdio.h>
#include <string.h>

enum { INSN_MAX = 15 };

static bool register_value(const struct user_regs_struct *r, unsigned reg, uint64_t *ret)
{
	const struct {
		unsigned wide, narrow;
		uint64_t value;
	} all[] = {{X86_REG_RAX, X86_REG_EAX, r->rax},  {X86_REG_RDX, X86_REG_EDX, r->rdx},  {X86_REG_RCX, X86_REG_ECX, r->rcx},
	           {X86_REG_RBX, X86_REG_EBX, r->rbx},  {X86_REG_RSI, X86_REG_ESI, r->rsi},  {X86_REG_RDI, X86_REG_EDI, r->rdi},
	           {X86_REG_RBP, X86_REG_EBP, r->rbp},  {X86_REG_RSP, X86_REG_ESP, r->rsp},  {X86_REG_R8, X86_REG_R8D, r->r8},
	           {X86_REG_R9, X86_REG_R9D, r->r9},    {X86_REG_R10, X86_REG_R10D, r->r10}, {X86_REG_R11, X86_REG_R11D, r->r11},
	           {X86_REG_R12, X86_REG_R12D, r->r12}, {X86_REG_R13, X86_REG_R13D, r->r13}, {X86_REG_R14, X86_REG_R14D, r->r14},
	           {X86_REG_R15, X86_REG_R15D, r->r15}, {X86_REG_INVALID, X86_REG_RIZ, 0}};
	for (size_t i = 0; i < sizeof(all) / sizeof(*all); i++) {
		if (reg == all[i].wide || reg == all[i].narrow) {
			*ret = reg == all[i].narrow ? (uint32_t)all[i].value : all[i].value;
			return true;
		}
	}
	return false;
}

static bool address_of(const struct user_regs_struct *r, const cs_insn *insn, const x86_op_mem *m, uint64_t *ret)
{
	uint64_t base = 0, index = 0;
	if (m->base == X86_REG_RIP || m->base == X86_REG_EIP)
		base = insn->address + insn->size;
	else if (!register_value(r, m->base, &base))
		return false;
	if (!register_value(r, m->index, &index)) /* vectors of addresses */
		return false;
	*ret = base + index * (uint64_t)m->scale + (uint64_t)m->disp;
	if (m->segment == X86_REG_FS)
		*ret += r->fs_base;
	if (m->segment == X86_REG_GS)
		*ret += r->gs_base;
	return true;
}

/* push, call, pop, ret: what they do to the stack is not among their operands. */
static bool implied(const struct user_regs_struct *r, const cs_insn *insn, struct dp_access *ret)
{
	const bool down =
	        insn->id == X86_INS_PUSH || insn->id == X86_INS_CALL || insn->id == X86_INS_PUSHFQ || insn->id == X86_INS_ENTER;
	const bool up =
	        insn->id == X86_INS_POP || insn->id == X86_INS_RET || insn->id == X86_INS_POPFQ || insn->id == X86_INS_LEAVE;
	if (!down && !up)
		return false;
	*ret = (struct dp_access){.is_known = true,
	                          .is_write = down,
	                          .size = 8,
	                          .address = insn->id == X86_INS_LEAVE ? r->rbp : r->rsp - (down ? 8u : 0u)};
	snprintf(ret->reg, sizeof(ret->reg), "%s", insn->id == X86_INS_LEAVE ? "rbp" : "rsp");
	return true;
}

/* The operand that fits the address, or the first one. */
static void choose(csh handle, const struct user_regs_struct *r, const cs_insn *insn, uint64_t fault, struct dp_access *ret)
{
	const cs_x86 *x = &insn->detail->x86;
	bool fits = false;
	for (uint8_t i = 0; i < x->op_count && !fits; i++) {
		const cs_x86_op *op = &x->operands[i];
		uint64_t at;
		if (op->type != X86_OP_MEM || insn->id == X86_INS_LEA || insn->id == X86_INS_NOP ||
		    !address_of(r, insn, &op->mem, &at))
			continue;
		fits = fault >= at && fault - at < (op->size ? op->size : 1u);
		if (ret->is_known && !fits)
			continue;
		*ret = (struct dp_access){
		        .is_known = true, .size = op->size, .address = at, .is_write = op->access & CS_AC_WRITE};
		const char *name = op->mem.base    ? cs_reg_name(handle, op->mem.base)
		                   : op->mem.index ? cs_reg_name(handle, op->mem.index)
		                                   : NULL;
		snprintf(ret->reg, sizeof(ret->reg), "%s", name ? name : "");
	}
	struct dp_access stack;
	if (!fits && implied(r, insn, &stack) && (!ret->is_known || (fault >= stack.address && fault - stack.address < 8)))
		*ret = stack;
}

static void look(csh handle, const struct user_regs_struct *r, const cs_insn *insn, uint64_t fault, struct dp_access *ret)
{
	const cs_x86 *x = &insn->detail->x86;
	choose(handle, r, insn, fault, ret);
	ret->divides = insn->id == X86_INS_DIV || insn->id == X86_INS_IDIV;
	if (ret->divides) { /* the register that is the divisor, and none that only says where it is */
		const bool is_reg = x->op_count && x->operands[0].type == X86_OP_REG;
		const char *name = is_reg ? cs_reg_name(handle, x->operands[0].reg) : NULL;
		snprintf(ret->reg, sizeof(ret->reg), "%s", name ? name : "");
	}
}

/* As the program has it: a probe's jump may stand there in memory. */
size_t dp_fault_code(struct dp_world *w, uint64_t addr, uint8_t *bytes, size_t size)
{
	struct dp_module *m = dp_image_module_at(dp_world_image(w), dp_addr_of(addr));
	size_t n = size;
	struct dp_error *err = m ? dp_module_text(m, dp_addr_of(addr), bytes, &n) : NULL;
	const bool of_file = m && !err && n;
	dp_error_destroy(err);
	return of_file ? n : dp_world_read(w, addr, bytes, size, NULL);
}

void dp_access_of(struct dp_world *w, const struct user_regs_struct *r, uint64_t fault, struct dp_access *ret)
{
	uint8_t bytes[INSN_MAX];
	cs_insn *insn = NULL;
	csh handle;
	*ret = (struct dp_access){0};
	const size_t got = dp_fault_code(w, r->rip, bytes, sizeof(bytes));
	if (!got || cs_open(CS_ARCH_X86, CS_MODE_64, &handle) != CS_ERR_OK)
		return;
	cs_option(handle, CS_OPT_DETAIL, CS_OPT_ON);
	const size_t n = cs_disasm(handle, bytes, got, r->rip, 1, &insn);
	if (n) {
		look(handle, r, insn, fault, ret);
		cs_free(insn, n);
	}
	cs_close(&handle);
}
