/* SPDX-License-Identifier: MIT */
/* The encoder's bytes, checked with an independent disassembler. */
#include "trampoline/arch/x86_64/asm/asm.h"

#include <Zydis/Zydis.h>
#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>

#define AT UINT64_C(0x10000)

static struct dp_buf out;
static struct dp_asm a;

static void begin(void)
{
	dp_buf_init(&out);
	dp_buf_put(&out, "xyz", 3); /* labels are relative to the assembler's start */
	dp_asm_init(&a, &out, AT);
}

static void end(void)
{
	dp_buf_fini(&out);
}

/* The code emitted since `begin` must disassemble to `expected`, in AT&T syntax, instructions separated by "; ". */
static void check(const char *expected)
{
	char text[2048] = "", one[128];
	ZydisDecoder decoder;
	ZydisFormatter formatter;
	ZydisDecodedInstruction insn;
	ZydisDecodedOperand operand[ZYDIS_MAX_OPERAND_COUNT];
	cr_assert(dp_asm_finish(&a), "%s", expected);
	ZydisDecoderInit(&decoder, ZYDIS_MACHINE_MODE_LONG_64, ZYDIS_STACK_WIDTH_64);
	ZydisFormatterInit(&formatter, ZYDIS_FORMATTER_STYLE_ATT);
	ZydisFormatterSetProperty(&formatter, ZYDIS_FORMATTER_PROP_HEX_UPPERCASE, ZYAN_FALSE);
	ZydisFormatterSetProperty(&formatter, ZYDIS_FORMATTER_PROP_ADDR_PADDING_ABSOLUTE, ZYDIS_PADDING_DISABLED);
	ZydisFormatterSetProperty(&formatter, ZYDIS_FORMATTER_PROP_DISP_PADDING, ZYDIS_PADDING_DISABLED);
	ZydisFormatterSetProperty(&formatter, ZYDIS_FORMATTER_PROP_IMM_PADDING, ZYDIS_PADDING_DISABLED);
	for (size_t i = 3; i < out.len; i += insn.length) {
		ZyanStatus status = ZydisDecoderDecodeFull(&decoder, out.data + i, out.len - i, &insn, operand);
		cr_assert(ZYAN_SUCCESS(status), "%s: undecodable at %zu", expected, i);
		ZydisFormatterFormatInstruction(&formatter, &insn, operand, insn.operand_count_visible, one, sizeof(one),
		                                AT + i - 3, NULL);
		snprintf(text + strlen(text), sizeof(text) - strlen(text), "%s%s", i > 3 ? "; " : "", one);
	}
	cr_expect_str_eq(text, expected, "'%s' is not '%s'", text, expected);
	end();
	begin();
}

static void check_bytes(const char *bytes, size_t n)
{
	cr_assert(dp_asm_finish(&a));
	cr_expect(out.len == n + 3 && !memcmp(out.data + 3, bytes, n));
	end();
	begin();
}

#define BYTES(literal) check_bytes(literal, sizeof(literal) - 1)

Test(asm_encode, memory_operands, .init = begin, .fini = end)
{
	dp_asm_mov_load(&a, 8, dp_rm_mem(DP_RDI, 0), DP_RAX);
	check("mov (%rdi), %rax");
	dp_asm_mov_load(&a, 8, dp_rm_mem(DP_RSP, 0), DP_R9);
	check("mov (%rsp), %r9");
	dp_asm_mov_load(&a, 8, dp_rm_mem(DP_R12, 8), DP_RCX);
	check("mov 0x8(%r12), %rcx");
	dp_asm_mov_load(&a, 8, dp_rm_mem(DP_RBP, 0), DP_RCX);
	check("mov (%rbp), %rcx");
	dp_asm_mov_load(&a, 4, dp_rm_mem(DP_R13, 0), DP_R13);
	check("mov (%r13), %r13d");
	dp_asm_mov_load(&a, 8, dp_rm_mem(DP_RBX, -128), DP_RSP);
	check("mov -0x80(%rbx), %rsp");
	dp_asm_mov_load(&a, 8, dp_rm_mem(DP_RBX, 128), DP_RDX);
	check("mov 0x80(%rbx), %rdx");
	dp_asm_mov_load(&a, 8, dp_rm_index(DP_RDX, DP_RCX, 8), DP_RSI);
	check("mov 0x8(%rdx,%rcx,1), %rsi");
	dp_asm_mov_load(&a, 8, dp_rm_index(DP_R13, DP_R9, 0), DP_R8);
	check("mov (%r13,%r9,1), %r8");
	dp_asm_mov_load(&a, 8, dp_rm_fs(0), DP_RAX);
	check("mov %fs:0x0, %rax");
	dp_asm_mov_load(&a, 4, dp_rm_fs(0x2d0), DP_R10);
	check("mov %fs:0x2d0, %r10d");
}

Test(asm_encode, parts_of_registers, .init = begin, .fini = end)
{
	dp_asm_mov_store(&a, 1, DP_RSI, dp_rm_mem(DP_RCX, 16));
	check("mov %sil, 0x10(%rcx)");
	dp_asm_mov_store(&a, 1, DP_RBX, dp_rm_mem(DP_RCX, 16));
	check("mov %bl, 0x10(%rcx)");
	dp_asm_mov_store(&a, 1, DP_R12, dp_rm_mem(DP_R8, 16));
	check("mov %r12b, 0x10(%r8)");
	dp_asm_mov_store(&a, 2, DP_R15, dp_rm_mem(DP_RSP, 1000));
	check("mov %r15w, 0x3e8(%rsp)");
	dp_asm_mov_zx(&a, 1, dp_rm_high(DP_RBX), DP_RAX);
	check("movzx %bh, %eax");
	dp_asm_mov_zx(&a, 1, dp_rm_reg(DP_RDI), DP_RAX);
	check("movzx %dil, %eax");
	dp_asm_mov_zx(&a, 1, dp_rm_reg(DP_RSP), DP_R9);
	check("movzx %spl, %r9d");
	dp_asm_mov_zx(&a, 2, dp_rm_reg(DP_R9), DP_RCX);
	check("movzx %r9w, %ecx");
	dp_asm_mov_zx(&a, 4, dp_rm_reg(DP_R9), DP_RCX);
	check("mov %r9d, %ecx");
	dp_asm_mov_zx(&a, 1, dp_rm_mem(DP_RSP, 1), DP_RDX);
	check("movzxb 0x1(%rsp), %edx");
	dp_asm_alu_imm(&a, DP_ALU_CMP, 1, -1, dp_rm_high(DP_RCX));
	check("cmp $-0x1, %ch");
	dp_asm_alu_imm(&a, DP_ALU_CMP, 1, 7, dp_rm_reg(DP_RBP));
	check("cmp $0x7, %bpl");
}

Test(asm_encode, no_instruction_for_a_high_byte_with_rex, .init = begin, .fini = end)
{
	dp_asm_mov_store(&a, 1, DP_RSI, dp_rm_high(DP_RAX));
	cr_expect_not(dp_asm_finish(&a));
}

Test(asm_encode, constants_take_the_shortest_form, .init = begin, .fini = end)
{
	dp_asm_mov_const(&a, 0, DP_R8);
	check("xor %r8d, %r8d");
	dp_asm_mov_const(&a, 0xffffffff, DP_RDX);
	BYTES("\xba\xff\xff\xff\xff");
	dp_asm_mov_const(&a, 1, DP_R9);
	check("mov $0x1, %r9d");
	dp_asm_mov_const(&a, UINT64_C(0xffffffff80000000), DP_RAX);
	BYTES("\x48\xc7\xc0\x00\x00\x00\x80");
	dp_asm_mov_const(&a, UINT64_C(0x123456789abcdef0), DP_R11);
	BYTES("\x49\xbb\xf0\xde\xbc\x9a\x78\x56\x34\x12");
	dp_asm_mov_const(&a, UINT64_C(0xffffffff7fffffff), DP_RCX);
	BYTES("\x48\xb9\xff\xff\xff\x7f\xff\xff\xff\xff");
}

Test(asm_encode, arithmetic, .init = begin, .fini = end)
{
	dp_asm_alu_load(&a, DP_ALU_CMP, 8, dp_rm_index(DP_RDX, DP_RCX, 0), DP_RAX);
	check("cmp (%rdx,%rcx,1), %rax");
	dp_asm_alu_store(&a, DP_ALU_CMP, 8, DP_RCX, dp_rm_mem(DP_RSI, 8));
	check("cmp %rcx, 0x8(%rsi)");
	dp_asm_alu_imm(&a, DP_ALU_AND, 8, -16, dp_rm_reg(DP_RSP));
	check("and $-0x10, %rsp");
	dp_asm_alu_imm(&a, DP_ALU_CMP, 8, -129, dp_rm_reg(DP_R14));
	check("cmp $-0x81, %r14");
	dp_asm_alu_imm(&a, DP_ALU_CMP, 2, 0x1234, dp_rm_mem(DP_RSP, 8));
	check("cmpw $0x1234, 0x8(%rsp)");
	dp_asm_test_imm(&a, 8, 0x80, dp_rm_reg(DP_RDI));
	check("test $0x80, %rdi");
	dp_asm_test_imm(&a, 2, 0x8000, dp_rm_reg(DP_R9));
	BYTES("\x66\x41\xf7\xc1\x00\x80");
	dp_asm_test(&a, 8, DP_RCX, dp_rm_reg(DP_RCX));
	check("test %rcx, %rcx");
	dp_asm_imul(&a, dp_rm_reg(DP_RCX), DP_RAX);
	check("imul %rcx, %rax");
	dp_asm_imul_imm(&a, (int32_t)0x9e3779b1, dp_rm_reg(DP_RAX), DP_RCX);
	BYTES("\x48\x69\xc8\xb1\x79\x37\x9e");
	dp_asm_unary(&a, DP_UNARY_NEG, DP_RAX);
	dp_asm_unary(&a, DP_UNARY_NOT, DP_RAX);
	check("neg %rax; not %rax");
	dp_asm_shift(&a, DP_SHIFT_SHR, 52, DP_RCX);
	dp_asm_shift_cl(&a, DP_SHIFT_SAR, DP_RAX);
	dp_asm_shift_cl(&a, DP_SHIFT_SHL, DP_R8);
	check("shr $0x34, %rcx; sar %cl, %rax; shl %cl, %r8");
	dp_asm_cmpxchg(&a, DP_RCX, dp_rm_mem(DP_RSI, 0));
	check("cmpxchg %rcx, (%rsi)");
}

Test(asm_encode, stack_and_flags, .init = begin, .fini = end)
{
	dp_asm_lea(&a, dp_rm_mem(DP_RSP, -128), DP_RSP);
	dp_asm_push(&a, DP_R12);
	dp_asm_push(&a, DP_RAX);
	dp_asm_pop(&a, DP_R15);
	dp_asm_pop(&a, DP_RSI);
	check("lea -0x80(%rsp), %rsp; push %r12; push %rax; pop %r15; pop %rsi");
	dp_asm_lahf(&a);
	dp_asm_seto_al(&a);
	dp_asm_add_al(&a, 0x7f);
	dp_asm_sahf(&a);
	dp_asm_pushfq(&a);
	dp_asm_rdtsc(&a);
	check("lahf; seto %al; add $0x7f, %al; sahf; pushfq; rdtsc");
}

Test(asm_encode, vectors, .init = begin, .fini = end)
{
	dp_asm_movups_store(&a, 3, dp_rm_mem(DP_RCX, 16));
	dp_asm_movups_store(&a, 15, dp_rm_mem(DP_RCX, 0));
	dp_asm_movlps_store(&a, 8, dp_rm_mem(DP_RCX, 0));
	dp_asm_movss_store(&a, 9, dp_rm_mem(DP_R8, 4));
	check("movups %xmm3, 0x10(%rcx); movups %xmm15, (%rcx); movlps %xmm8, (%rcx); movss %xmm9, 0x4(%r8)");
}

Test(asm_encode, jumps, .init = begin, .fini = end)
{
	struct dp_label back = dp_asm_label(&a), ahead = dp_asm_label(&a);
	dp_asm_bind(&a, back);
	dp_asm_jcc_short(&a, DP_CC_E, ahead);
	dp_asm_jcc(&a, DP_CC_NE, ahead);
	dp_asm_jmp(&a, ahead);
	dp_asm_lea_label(&a, back, DP_R9);
	dp_asm_bind(&a, ahead);
	dp_asm_jmp(&a, back);
	dp_asm_jcc(&a, DP_CC_B, back);
	check("jz 0x10014; jnz 0x10014; jmp 0x10014; lea 0x10000, %r9; jmp 0x10000; jb 0x10000");
}

Test(asm_encode, backward_jump_grows_when_out_of_reach, .init = begin, .fini = end)
{
	uint8_t filler[126] = {0};
	struct dp_label back = dp_asm_label(&a);
	dp_asm_bind(&a, back);
	dp_asm_data(&a, filler, sizeof(filler));
	dp_asm_jmp(&a, back); /* just in range: 126 + 2 */
	cr_expect_eq(out.data[3 + 126], 0xeb);
	cr_expect_eq(out.data[3 + 127], 0x80);
	dp_asm_jmp(&a, back);
	cr_expect_eq(out.data[3 + 128], 0xe9);
	cr_expect(dp_asm_finish(&a));
}

Test(asm_encode, short_jump_out_of_reach_fails, .init = begin, .fini = end)
{
	uint8_t filler[128] = {0};
	struct dp_label ahead = dp_asm_label(&a);
	dp_asm_jcc_short(&a, DP_CC_E, ahead);
	dp_asm_data(&a, filler, sizeof(filler));
	dp_asm_bind(&a, ahead);
	cr_expect_not(dp_asm_finish(&a));
}

Test(asm_encode, label_never_bound_fails, .init = begin, .fini = end)
{
	dp_asm_jmp(&a, dp_asm_label(&a));
	cr_expect_not(dp_asm_finish(&a));
}

Test(asm_encode, calls, .init = begin, .fini = end)
{
	dp_asm_call(&a, AT + 0x1000, DP_RAX);
	check("call 0x11000");
	dp_asm_call(&a, AT + 5 + INT32_MAX, DP_RAX);
	check("call 0x80010004");
	dp_asm_call(&a, AT + 6 + INT32_MAX, DP_RCX);
	check("mov $-0x7ffefffb, %ecx; call %rcx");
	dp_asm_call(&a, UINT64_C(0x7f0000000000), DP_R11);
	BYTES("\x49\xbb\x00\x00\x00\x00\x00\x7f\x00\x00\x41\xff\xd3");
}

Test(asm_encode, comparisons_with_zero, .init = begin, .fini = end)
{
	dp_asm_cmp_zero(&a, AT - 16, DP_RCX);
	BYTES("\x83\x3d\xe9\xff\xff\xff\x00");
	dp_asm_cmp_zero(&a, AT + 7 + INT32_MAX, DP_RCX);
	BYTES("\x83\x3d\xff\xff\xff\x7f\x00");
	dp_asm_cmp_zero(&a, AT + 8 + INT32_MAX, DP_RCX);
	check("push %rcx; mov $-0x7ffefff9, %ecx; cmpl $0x0, (%rcx); pop %rcx");
	dp_asm_cmp_zero(&a, UINT64_C(0x7f0000000000), DP_RDX);
	BYTES("\x52\x48\xba\x00\x00\x00\x00\x00\x7f\x00\x00\x83\x3a\x00\x5a");
}

Test(asm_encode, alignment_is_of_the_address, .init = begin, .fini = end)
{
	dp_asm_push(&a, DP_RAX);
	dp_asm_align(&a, 16);
	cr_expect_eq(dp_asm_here(&a), AT + 16);
	cr_expect_eq(out.len, 3u + 16u);
	cr_expect_eq(out.data[3 + 15], 0xcc);
	dp_asm_align(&a, 16);
	cr_expect_eq(dp_asm_here(&a), AT + 16);
}
