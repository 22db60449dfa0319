/* SPDX-License-Identifier: MIT */
/*
 * Queries of an expression. In: rax = operand, rdx = struct dp_ask. Out: rax = the result, rcx = 0 if there is none. Preserves
 * all but rax, rcx, rdx and flags; the direction flag stays as it is: the agent has no string instructions (check.sh).
 */
	.text
	.globl	dp_thunk_ask
	.type	dp_thunk_ask, @function
dp_thunk_ask:
	pushq	%rbp
	movq	%rsp, %rbp
	pushq	%rdi
	pushq	%rsi
	pushq	%r8
	pushq	%r9
	pushq	%r10
	pushq	%r11
	andq	$-16, %rsp
	movq	%rax, %rdi
	movq	%rdx, %rsi
	call	dp_ask
	movq	%rdx, %rcx
	leaq	-48(%rbp), %rsp
	popq	%r11
	popq	%r10
	popq	%r9
	popq	%r8
	popq	%rsi
	popq	%rdi
	popq	%rbp
	ret
	.size	dp_thunk_ask, . - dp_thunk_ask
	.section .note.GNU-stack, "", @progbits
