/* SPDX-License-Identifier: MIT */
/*
 * The stub's calls of C functions. In: rax = descriptor. Out: rcx = record or 0, rsi = slot. The stub has stepped over the red
 * zone and saved rax, rcx, rdx, rsi and the arithmetic flags; all else that C may change is saved here. The direction flag stays
 * as it is: the agent has no string instructions (check.sh).
 */
	.cfi_sections .debug_frame /* for debuggers; not mapped into the target */
	.text
	.macro	thunk name, function
	.globl	\name
	.type	\name, @function
\name:
	.cfi_startproc
	pushq	%rbp
	.cfi_def_cfa_offset 16
	.cfi_offset %rbp, -16
	movq	%rsp, %rbp
	.cfi_def_cfa_register %rbp
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
	.cfi_def_cfa %rsp, 8
	.endm

	thunk	dp_thunk_acquire, dp_acquire
	movq	%rax, %rcx
	movq	%rdx, %rsi
	ret
	.cfi_endproc
	.size	dp_thunk_acquire, . - dp_thunk_acquire

	/* In: rax = descriptor. Out: rsi = block or 0, rcx = 1 if it is the shared one. */
	thunk	dp_thunk_cells, dp_agg_cells
	movq	%rax, %rsi
	movq	%rdx, %rcx
	ret
	.cfi_endproc
	.size	dp_thunk_cells, . - dp_thunk_cells

	/* The same with a key in rdx, for the cells of that key. */
	thunk	dp_thunk_keyed, dp_agg_keyed
	movq	%rax, %rsi
	movq	%rdx, %rcx
	ret
	.cfi_endproc
	.size	dp_thunk_keyed, . - dp_thunk_keyed
	.section .note.GNU-stack, "", @progbits
