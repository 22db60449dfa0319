/* SPDX-License-Identifier: MIT */
/*
 * Loads and stores that may fault. The handler of SIGSEGV and SIGBUS (trap.c) moves a thread that faults between dp_fault_copy
 * and dp_fault_short to the latter.
 */
	.text
/* uint64_t dp_fault_copy(void *dst, uint64_t src, uint64_t n) */
	.globl	dp_fault_copy, dp_fault_short
	.hidden	dp_fault_copy, dp_fault_short
	.type	dp_fault_copy, @function
	.balign	64
dp_fault_copy:
	movq	%rdx, %rax
	cmpq	$8, %rdx
	jb	.Lbytes
.Lwords:
	movq	(%rsi), %rcx
	movq	%rcx, (%rdi)
	addq	$8, %rsi
	addq	$8, %rdi
	subq	$8, %rdx
	cmpq	$8, %rdx
	jae	.Lwords
.Lbytes:
	testq	%rdx, %rdx
	jz	dp_fault_short
.Lbyte:
	movzbl	(%rsi), %ecx
	movb	%cl, (%rdi)
	incq	%rsi
	incq	%rdi
	decq	%rdx
	jnz	.Lbyte
dp_fault_short:
	subq	%rdx, %rax
	ret
	.size	dp_fault_copy, . - dp_fault_copy
	.section .note.GNU-stack, "", @progbits
