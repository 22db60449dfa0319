/* SPDX-License-Identifier: MIT */
/*
 * The stub's way into C. In: rax = descriptor. Out: rcx = record or 0, rsi = slot. The stub has stepped over the red zone and
 * saved rax, rcx, rdx, rsi and the arithmetic flags; everything else that C may change is saved here. The direction flag
 * stays as it is: the agent has no string instructions (check.sh).
 */
	.text
	.globl	dp_thunk_acquire
	.type	dp_thunk_acquire, @function
dp_thunk_acquire:
	pushq	%rbp
	movq	%rsp, %rbp
	pushq	%rdi
	pushq	%r8
	pushq	%r9
	pushq	%r10
	pushq	%r11
	andq	$-16, %rsp
	movq	%rax, %rdi
	call	dp_acquire
	movq	%rax, %rcx
	movq	%rdx, %rsi
	leaq	-40(%rbp), %rsp
	popq	%r11
	popq	%r10
	popq	%r9
	popq	%r8
	popq	%rdi
	popq	%rbp
	ret
	.size	dp_thunk_acquire, . - dp_thunk_acquire
	.section .note.GNU-stack, "", @progbits
