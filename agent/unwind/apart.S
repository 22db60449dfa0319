/* SPDX-License-Identifier: MIT */
/*
 * The unwinder, for code on stacks that are too small for it (goroutines): runs on the slot's own stack, behind its cache. Used like
 * dp_agent_backtrace(). While a hit of this thread uses that stack, slot->apart is 1. A hit in a signal handler meanwhile, or of a
 * slot without such a stack, records the site alone. The caller has blocked all signals: a handler that forked would leave two processes
 * on one stack, which is shared memory.
 *
 * The frame is found by rbp, for debuggers.
 */
#include "agent/unwind/apart.h"

	.cfi_sections .debug_frame /* for debuggers; not mapped into the target */
	.text
	.globl	dp_backtrace_switch
	.hidden	dp_backtrace_switch
	.type	dp_backtrace_switch, @function
dp_backtrace_switch:
	.cfi_startproc
	movq	DP_CAPTURE_SLOT(%rdi), %rcx
	movq	DP_SLOT_CACHE(%rcx), %rdx
	testq	%rdx, %rdx
	jz	.Lsite
	xorl	%eax, %eax
	movl	$1, %r8d
	cmpxchgq %r8, DP_SLOT_APART(%rcx)	/* against signal handlers of the thread only */
	jne	.Lsite
	pushq	%rbp
	.cfi_def_cfa_offset 16
	.cfi_offset %rbp, -16
	movq	%rsp, %rbp
	.cfi_def_cfa_register %rbp
	pushq	%rcx
	leaq	DP_APART_TOP(%rdx), %rsp
	call	dp_agent_backtrace
	movq	-8(%rbp), %rcx
	movq	%rbp, %rsp
	popq	%rbp
	.cfi_def_cfa %rsp, 8
	movq	$0, DP_SLOT_APART(%rcx)
	ret
.Lsite:
	movq	DP_CAPTURE_CURSOR(%rdi), %rcx
	movq	DP_CAPTURE_REGS(%rdi), %rdx
	movq	DP_REGS_RIP(%rdx), %rdx
	movb	$1, (%rcx)
	movq	%rdx, 1(%rcx)
	addq	$9, %rcx
	movq	%rcx, DP_CAPTURE_CURSOR(%rdi)
	ret
	.cfi_endproc
	.size	dp_backtrace_switch, . - dp_backtrace_switch
	.section .note.GNU-stack, "", @progbits
