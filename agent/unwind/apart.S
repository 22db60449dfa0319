/* SPDX-License-Identifier: MIT */
/*
 * The unwinder, for code on stacks that are too small for it (goroutines): calls a function on the slot's own stack, behind its cache.
 * In: rdi and rsi, the function's arguments, of which rdi is a struct dp_capture with a slot; rdx, the function. Out: eax 1; or 0 and
 * nothing done, for a slot without such a stack, or while a hit of this thread uses it: slot->apart is 1 then. The caller has blocked
 * all signals: a handler that forked would leave two processes on one stack, which is shared memory.
 *
 * The frame is found by rbp, for debuggers.
 */
#include "agent/unwind/apart.h"

	.cfi_sections .debug_frame /* for debuggers; not mapped into the target */
	.text
	.globl	dp_apart_call
	.hidden	dp_apart_call
	.type	dp_apart_call, @function
dp_apart_call:
	.cfi_startproc
	movq	%rdx, %r9
	movq	DP_CAPTURE_SLOT(%rdi), %rcx
	movq	DP_SLOT_CACHE(%rcx), %rdx
	xorl	%eax, %eax
	testq	%rdx, %rdx
	jz	.Lno
	movl	$1, %r8d
	cmpxchgq %r8, DP_SLOT_APART(%rcx)	/* against signal handlers of the thread only */
	jne	.Lno
	pushq	%rbp
	.cfi_def_cfa_offset 16
	.cfi_offset %rbp, -16
	movq	%rsp, %rbp
	.cfi_def_cfa_register %rbp
	pushq	%rcx
	leaq	DP_APART_TOP(%rdx), %rsp
	call	*%r9
	movq	-8(%rbp), %rcx
	movq	%rbp, %rsp
	popq	%rbp
	.cfi_def_cfa %rsp, 8
	movq	$0, DP_SLOT_APART(%rcx)
	movl	$1, %eax
	ret
.Lno:
	xorl	%eax, %eax
	ret
	.cfi_endproc
	.size	dp_apart_call, . - dp_apart_call
	.section .note.GNU-stack, "", @progbits
