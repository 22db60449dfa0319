/* SPDX-License-Identifier: MIT */
/*
 * The stub's way into C. In: rax = descriptor. Out: rcx = record or 0, rsi = slot. The stub has stepped over the red zone and
 * saved rax, rcx, rdx, rsi and the arithmetic flags; everything else that C may change is saved here. The direction flag
 * stays as it is: the agent has no string instructions (check.sh).
 */
	.text
	.macro	thunk name, function
	.globl	\name
	.type	\name, @function
\name:
	pushq	%rbp
	movq	%rsp, %rbp
	pushq	%rdi
	pushq	%r8
	pushq	%r9
	pushq	%r10
	pushq	%r11
	andq	$-16, %rsp
	movq	%rax, %rdi
	movq	%rdx, %rsi
	call	\function
	leaq	-40(%rbp), %rsp
	popq	%r11
	popq	%r10
	popq	%r9
	popq	%r8
	popq	%rdi
	popq	%rbp
	.endm

	thunk	dp_thunk_acquire, dp_acquire
	movq	%rax, %rcx
	movq	%rdx, %rsi
	ret
	.size	dp_thunk_acquire, . - dp_thunk_acquire

	/* In: rax = descriptor. Out: rsi = block or 0, rcx = 1 if it is the shared one. */
	thunk	dp_thunk_cells, dp_answer_cells
	movq	%rax, %rsi
	movq	%rdx, %rcx
	ret
	.size	dp_thunk_cells, . - dp_thunk_cells

	/* The same with a key in rdx, for the cells of that key. */
	thunk	dp_thunk_keyed, dp_answer_keyed
	movq	%rax, %rsi
	movq	%rdx, %rcx
	ret
	.size	dp_thunk_keyed, . - dp_thunk_keyed
	.section .note.GNU-stack, "", @progbits
