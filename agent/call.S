/* SPDX-License-Identifier: MIT */
/*
 * A borrowed thread runs one C function here. The tool has moved it here with all other registers unchanged and its signals
 * blocked, and recognises it by its pc: within DP_CALL_CODE bytes from here, or deeper on the call's own stack.
 *
 * The vector state and errno are saved and restored here and not by the tool, which may die meanwhile. The program's stack is
 * never written, not even to save the flags. When the function has returned, the thread waits briefly for the tool, which
 * restores registers, mask and an interrupted call exactly. If the tool is dead, the thread restores its own state, as in the
 * borrower's code: from DP_CALL_HOME on no flag, no stack and no vector register is touched, so that signals may arrive.
 */
#include "agent/call.h"

#define FRAME(at) (.Lentry + DP_CALL_DISTANCE + (at))(%rip)

	.text
	.globl	dp_call_entry
	.type	dp_call_entry, @function
	.balign	64
dp_call_entry:
.Lentry:
	jmp	.Lcall
	.org	.Lentry + DP_CALL_HOME, 0x90
.Lhome:
	movl	$14, %eax		/* rt_sigprocmask(SIG_SETMASK, mask, NULL, 8) */
	movl	$2, %edi
	leaq	FRAME(DP_CALL_MASK), %rsi
	movl	$0, %edx
	movl	$8, %r10d
	syscall
	movq	FRAME(DP_CALL_RAX), %rax
	movq	FRAME(DP_CALL_RDI), %rdi
	movq	FRAME(DP_CALL_RSI), %rsi
	movq	FRAME(DP_CALL_RDX), %rdx
	movq	FRAME(DP_CALL_R10), %r10
	movq	FRAME(DP_CALL_R8), %r8
	movq	FRAME(DP_CALL_R9), %r9
	movq	FRAME(DP_CALL_RCX), %rcx
	movq	FRAME(DP_CALL_R11), %r11
	jmp	*FRAME(DP_CALL_RIP)

.Lcall:
	movq	FRAME(DP_CALL_STACK), %rsp
	pushq	$2			/* flags that the C ABI requires */
	popfq
	pushq	%rbx
	pushq	%r12
	movq	%rsp, %r12
	subq	$DP_CALL_XAREA, %rsp
	andq	$-64, %rsp
	movq	%rsp, %rbx		/* the header after the legacy area must be zero where XSAVE does not write it */
	movl	$0, %eax
.Lzero:
	movq	$0, 512(%rbx,%rax)
	addl	$8, %eax
	cmpl	$64, %eax
	jb	.Lzero
	movl	$-1, %eax
	movl	$-1, %edx
	cmpl	$1, FRAME(DP_CALL_XSAVE)
	ja	.Lxsavec
	je	.Lxsave
	fxsave64 (%rbx)
	jmp	.Lsaved
.Lxsave:
	xsave64	(%rbx)
	jmp	.Lsaved
.Lxsavec:
	xsavec64 (%rbx)
.Lsaved:
	fninit
	pushq	$0x1f80
	ldmxcsr	(%rsp)
	addq	$8, %rsp

	call	*FRAME(DP_CALL_ERRNO)
	movl	(%rax), %eax
	movl	%eax, FRAME(DP_CALL_SAVED)
	movq	FRAME(DP_CALL_ARG), %rdi
	movq	FRAME(DP_CALL_ARG + 8), %rsi
	movq	FRAME(DP_CALL_ARG + 16), %rdx
	movq	FRAME(DP_CALL_ARG + 24), %rcx
	movl	$0, %eax
	call	*FRAME(DP_CALL_FN)
	movq	%rax, FRAME(DP_CALL_RESULT)
	call	*FRAME(DP_CALL_ERRNO)
	movl	FRAME(DP_CALL_SAVED), %ecx
	movl	%ecx, (%rax)

	movl	$-1, %eax
	movl	$-1, %edx
	cmpl	$0, FRAME(DP_CALL_XSAVE)
	je	.Lfxrstor
	xrstor64 (%rbx)
	jmp	.Lrestored
.Lfxrstor:
	fxrstor64 (%rbx)
.Lrestored:
	movq	%r12, %rsp
	popq	%r12
	movl	$DP_CALL_RETURNED, FRAME(DP_CALL_STATE)

	movl	FRAME(DP_CALL_WAITS), %ebx
.Lwait:
	movq	$0, FRAME(DP_CALL_WAIT)
	movq	$2000000, FRAME(DP_CALL_WAIT + 8)
	movl	$270, %eax		/* pselect6 has no restart block, so the interrupted call keeps its own */
	movl	$0, %edi
	movl	$0, %esi
	movl	$0, %edx
	movl	$0, %r10d
	leaq	FRAME(DP_CALL_WAIT), %r8
	movl	$0, %r9d
	syscall
	subl	$1, %ebx
	jg	.Lwait
	popq	%rbx
	pushq	FRAME(DP_CALL_FLAGS)
	popfq
	movq	FRAME(DP_CALL_RSP), %rsp
	jmp	.Lhome
	.org	.Lentry + DP_CALL_CODE, 0x90
	.size	dp_call_entry, . - dp_call_entry
	.section .note.GNU-stack, "", @progbits
