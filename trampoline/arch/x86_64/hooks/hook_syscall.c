/* SPDX-License-Identifier: MIT */
/*
 * A hook's stub: the instructions from the site up to the syscall, then, if the number may be one that the agent handles, the
 * call of our function. Either that has made the system call, and the thread continues after the syscall; or it has done nothing,
 * and the thread makes the call at the program's own instruction: a thread that waits in the kernel then has a pc of the program,
 * which unwinders know and which delays no removal.
 *
 * rcx is free after the last instruction before a syscall: the processor overwrites it.
 */
#include "trampoline/arch/x86_64/hooks/hook_syscall.h"

#include "trampoline/arch/x86_64/decode/decode.h"
#include "trampoline/arch/x86_64/asm/asm.h"
#include "trampoline/arch/x86_64/relocate/relocate.h"
#include "trampoline/code/text.h"

enum {
	SYSCALL_LEN = 2,
	RED_ZONE = 128,
	REGS = sizeof(struct dp_regs),
	RSP_AT = DP_RSP * 8,
};

const uint32_t dp_hooked_calls[] = {13, 14, 130, 270, 271, 281, 333, 426, 435, 441};
const size_t dp_nhooked_calls = sizeof(dp_hooked_calls) / sizeof(*dp_hooked_calls);

/* jmp to an address of the program, which every stub of its module reaches. */
static void emit_jmp(struct dp_asm *a, uint64_t target)
{
	const uint64_t behind = dp_asm_here(a) + 5;
	const int64_t distance = (int64_t)(target - behind);
	const int32_t rel = (int32_t)distance;
	a->failed |= rel != distance;
	dp_asm_data(a, (const uint8_t[]){0xe9}, 1);
	dp_asm_data(a, &rel, sizeof(rel));
}

/* lea -nr(%rax),%ecx; jecxz: changes no flag. Falls through if no number matches. */
static void emit_filter(struct dp_asm *a)
{
	enum { LEA = 6, JECXZ = 3, STEP = LEA + JECXZ, JMP_SHORT = 2 };
	for (size_t i = 0; i < dp_nhooked_calls; i++) {
		const int32_t less = -(int32_t)dp_hooked_calls[i];
		const uint8_t rel = (uint8_t)((dp_nhooked_calls - 1 - i) * STEP + 5);
		dp_asm_data(a, (const uint8_t[]){0x8d, 0x88}, 2);
		dp_asm_data(a, &less, sizeof(less));
		dp_asm_data(a, (const uint8_t[]){0x67, 0xe3, rel}, 3);
	}
}

/* struct dp_regs at rsp, as before the syscall; rbx points to it. */
static void emit_save(struct dp_asm *a, uint64_t rip)
{
	dp_asm_lea(a, dp_rm_mem(DP_RSP, -RED_ZONE), DP_RSP);
	dp_asm_pushfq(a);
	dp_asm_mov_const(a, rip, DP_RCX);
	dp_asm_push(a, DP_RCX);
	for (int reg = DP_R15; reg >= 0; reg--)
		dp_asm_push(a, (unsigned)reg);
	dp_asm_lea(a, dp_rm_mem(DP_RSP, REGS + RED_ZONE), DP_RCX);
	dp_asm_mov_store(a, 8, DP_RCX, dp_rm_mem(DP_RSP, RSP_AT));
	dp_asm_mov_store(a, 8, DP_RSP, dp_rm_reg(DP_RBX));
}

static void emit_restore(struct dp_asm *a)
{
	for (unsigned reg = DP_RAX; reg <= DP_R15; reg++)
		if (reg == DP_RSP)
			dp_asm_lea(a, dp_rm_mem(DP_RSP, 8), DP_RSP);
		else
			dp_asm_pop(a, reg);
	dp_asm_lea(a, dp_rm_mem(DP_RSP, 8), DP_RSP); /* rip */
	dp_asm_popfq(a);
	dp_asm_lea(a, dp_rm_mem(DP_RSP, RED_ZONE), DP_RSP);
}

static void emit_call(struct dp_asm *a, uint64_t target)
{
	dp_asm_mov_store(a, 8, DP_RSP, dp_rm_reg(DP_RDI));
	dp_asm_alu_imm(a, DP_ALU_AND, 8, -16, dp_rm_reg(DP_RSP));
	dp_asm_cld(a);
	dp_asm_call(a, target, DP_RAX);
	dp_asm_mov_store(a, 8, DP_RBX, dp_rm_reg(DP_RSP));
	dp_asm_test(a, 4, DP_RAX, dp_rm_reg(DP_RAX));
}

/* The instructions before the syscall, relocated. */
static struct dp_error *emit_run(struct dp_buf *out, uint64_t at, size_t start, const struct dp_request *req)
{
	struct dp_insn insn;
	for (uint64_t from = req->site; from < req->syscall; from += insn.len) {
		size_t n;
		const uint8_t *bytes = dp_text_at(req->text, from, &n);
		if (!bytes || !dp_decode_zydis(bytes, n, from, &insn) || insn.flow != DP_FLOW_NEXT)
			return dp_error(DP_TAG_UNRELOCATABLE, "the instructions before the syscall at 0x%llx cannot be moved",
			                (unsigned long long)req->syscall);
		DP_TRY(dp_relocate(&insn, at + (out->len - start), out));
	}
	return NULL;
}

/* Whether the jump is in an instruction before the syscall, which is then unchanged. */
static bool holds_jump(const struct dp_request *req)
{
	size_t n;
	struct dp_insn insn;
	const uint8_t *bytes = dp_text_at(req->text, req->site, &n);
	return req->site != req->syscall && bytes && dp_decode_zydis(bytes, n, req->site, &insn) && insn.len >= 5;
}

/*
 * done:  restore; jmp to after the syscall
 * entry: the relocated instructions; the filter, and to out if no number matches; save; call; jne done; restore
 * out:   jmp to the syscall; or, if the site is the syscall or a mov before it that may run twice, into the following code
 */
struct dp_error *dp_syscall_stub_emit(struct dp_buf *out, uint64_t at, const struct dp_request *req, uint64_t *entry)
{
	const size_t start = out->len;
	struct dp_asm a;
	dp_asm_init(&a, out, at);
	const struct dp_label done = dp_asm_label(&a), pass = dp_asm_label(&a);
	dp_asm_bind(&a, done);
	emit_restore(&a);
	emit_jmp(&a, req->syscall + SYSCALL_LEN);
	dp_asm_align(&a, 16);
	*entry = dp_asm_here(&a);
	DP_TRY(emit_run(out, at, start, req));
	if (req->any_call) {
		emit_filter(&a);
		dp_asm_jmp(&a, pass); /* 5 bytes, as it leads forward */
	}
	emit_save(&a, req->syscall);
	emit_call(&a, req->hook);
	dp_asm_jcc(&a, DP_CC_NE, done);
	emit_restore(&a);
	dp_asm_bind(&a, pass);
	if (holds_jump(req))
		emit_jmp(&a, req->syscall);
	const bool good = dp_asm_finish(&a);
	if (out->failed)
		return dp_error_nomem();
	return good ? NULL : dp_error(DP_TAG_INTERNAL, "the hook at 0x%llx cannot be assembled", (unsigned long long)req->site);
}
