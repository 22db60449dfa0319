/* SPDX-License-Identifier: MIT */
/*
 * Called by stubs (sink.h describes the convention).
 *
 * dp_lttng_enter decides the common case: a live agent, a primed thread that is not in a hit, on its regular stack with room.
 *
 * dp_lttng_emit calls LTTng, compiled code that uses vector registers. Those in use are saved, by plain moves (XSAVE would cost
 * as much as the event). The processor tells which are in use (XGETBV 1, Intel SDM 1, 13.6): in most programs zmm0-15 have
 * nothing above xmm. A component that was not in use is all zero; if the callee used it, it is reset to its initial state, so
 * that the program does not carry it from then on. x87 and AMX tiles are not saved: LTTng and the libc's string functions do not
 * use them, and by the psABI no call expects them.
 */
#include "agent/lttng/layout.h"

/* Offsets from rsp on emit's stack. */
#define AREA_LOW   0	/* xmm, ymm or zmm 0-15 */
#define AREA_HIGH  1024	/* zmm16-31 */
#define AREA_MASKS 2048	/* k0-7 */
#define AREA_MXCSR 2112
#define AREA_NOW   2116
#define AREA_INUSE 2120
#define AREA_FLAGS 2128
#define AREA_BLOCK 2136
#define AREA_SIZE  2176	/* a multiple of 64 */

	.macro	each_low op, width, size, load
	.irp	n, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15
	.if	\load
	\op	AREA_LOW + \n * \size(%rsp), %\width\n
	.else
	\op	%\width\n, AREA_LOW + \n * \size(%rsp)
	.endif
	.endr
	.endm

	.macro	each_high load
	.irp	n, 16, 17, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29, 30, 31
	.if	\load
	vmovdqa64 AREA_HIGH + (\n - 16) * 64(%rsp), %zmm\n
	.else
	vmovdqa64 %zmm\n, AREA_HIGH + (\n - 16) * 64(%rsp)
	.endif
	.endr
	.endm

	.macro	each_mask op, load
	.irp	n, 0, 1, 2, 3, 4, 5, 6, 7
	.if	\load
	\op	AREA_MASKS + \n * 8(%rsp), %k\n
	.else
	\op	%k\n, AREA_MASKS + \n * 8(%rsp)
	.endif
	.endr
	.endm

	.text

/* ---- enter -------------------------------------------------------------------------------------------------------- */

	.globl	dp_lttng_enter
	.hidden	dp_lttng_enter
	.type	dp_lttng_enter, @function
	.balign	64
dp_lttng_enter:
	.cfi_startproc
	movq	(%rax), %rcx			/* desc->agent */
	movabsq	$DP_LTTNG_LIVE, %rdx
	cmpq	%rdx, (%rcx)
	jne	.Lslow
	movq	dp_lttng_block@gottpoff(%rip), %rdx
	movq	%fs:(%rdx), %rdx
	testq	%rdx, %rdx
	jz	.Lslow
	cmpq	$0, DP_BLOCK_BUSY(%rdx)
	jne	.Lslow
	leaq	-DP_LTTNG_STACK(%rsp), %rcx
	cmpq	DP_BLOCK_STACK_LO(%rdx), %rcx
	jb	.Lslow
	cmpq	DP_BLOCK_STACK_HI(%rdx), %rsp
	jae	.Lslow
	movq	%rsp, DP_BLOCK_BUSY(%rdx)
	movq	$0, DP_BLOCK_MOVE(%rdx)
.Lentered:
	leaq	DP_BLOCK_RECORD(%rdx), %rcx
	leaq	DP_BLOCK_SLOT(%rdx), %rsi
	ret
.Lslow:
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
	leaq	8(%rbp), %rsi
	call	dp_lttng_enter_slow
	leaq	-40(%rbp), %rsp
	popq	%r11
	popq	%r10
	popq	%r9
	popq	%r8
	popq	%rdi
	popq	%rbp
	.cfi_def_cfa %rsp, 8
	.cfi_restore %rbp
	movl	$0, %ecx
	testb	%al, %al
	jz	.Llost
	movq	dp_lttng_block@gottpoff(%rip), %rdx
	movq	%fs:(%rdx), %rdx
	jmp	.Lentered
.Llost:
	ret
	.cfi_endproc
	.size	dp_lttng_enter, . - dp_lttng_enter

/* ---- emit --------------------------------------------------------------------------------------------------------- */

	.globl	dp_lttng_emit
	.hidden	dp_lttng_emit
	.type	dp_lttng_emit, @function
	.balign	64
dp_lttng_emit:
	.cfi_startproc
	pushq	%rdi
	pushq	%r8
	pushq	%r9
	pushq	%r10
	pushq	%r11
	.cfi_adjust_cfa_offset 40
	leaq	DP_LTTNG_RECORD_HEADER(%rcx), %rsi
	movq	%rax, %rdi
	call	.Lemit
	popq	%r11
	popq	%r10
	popq	%r9
	popq	%r8
	popq	%rdi
	.cfi_adjust_cfa_offset -40
	ret
	.cfi_endproc
	.size	dp_lttng_emit, . - dp_lttng_emit

	.globl	dp_lttng_emit_capture
	.hidden	dp_lttng_emit_capture
	.type	dp_lttng_emit_capture, @function
	.balign	16
dp_lttng_emit_capture:				/* struct dp_capture: cursor, record, slot, desc */
	movq	8(%rdi), %rsi
	movq	(%rdi), %rdx
	movq	24(%rdi), %rdi
	addq	$DP_LTTNG_RECORD_HEADER, %rsi
	subq	%rsi, %rdx
	.size	dp_lttng_emit_capture, . - dp_lttng_emit_capture
	/* fall through */

	.type	.Lemit, @function
.Lemit:						/* rdi = desc, rsi = payload, rdx = its size; callee-saved registers as in C */
	.cfi_startproc
	pushq	%rbp
	.cfi_def_cfa_offset 16
	.cfi_offset %rbp, -16
	movq	%rsp, %rbp
	.cfi_def_cfa_register %rbp
	movq	dp_lttng_block@gottpoff(%rip), %rcx
	movq	%fs:(%rcx), %rcx
	cmpq	$0, DP_BLOCK_MOVE(%rcx)
	jne	.Lmove
.Lmoved:
	subq	$AREA_SIZE, %rsp
	andq	$-64, %rsp
	movq	%rcx, AREA_BLOCK(%rsp)
	pushfq
	popq	%rax
	movq	%rax, AREA_FLAGS(%rsp)
	testl	$0x400, %eax
	jz	1f
	cld
1:	stmxcsr	AREA_MXCSR(%rsp)
	movl	AREA_MXCSR(%rsp), %eax
	xorl	$0x1f80, %eax
	testl	$0xffc0, %eax			/* all but the status flags of past operations */
	jnz	.Lmxcsr
.Lmxcsr_set:
	movl	dp_lttng_vector(%rip), %eax
	testl	%eax, %eax
	jns	2f
	movq	%rdx, %r8
	movq	%rcx, %r9
	movl	$1, %ecx
	xgetbv
	movq	%r8, %rdx
	movq	%r9, %rcx
2:	andl	$DP_VECTOR_ALL, %eax
	movl	%eax, AREA_INUSE(%rsp)
	testl	$DP_VECTOR_ZMM_HIGH | DP_VECTOR_AVX, %eax
	jnz	.Lsave_wide
	each_low movaps, xmm, 16, 0
.Lsaved_low:
	testl	$DP_VECTOR_ZMM16, %eax
	jz	3f
	each_high 0
3:	testl	$DP_VECTOR_OPMASK, %eax
	jnz	.Lsave_masks
.Lsaved:
	call	dp_lttng_record

	movl	AREA_INUSE(%rsp), %r8d
	movl	dp_lttng_vector(%rip), %r9d
	movl	%r8d, %eax
	notl	%eax
	andl	%r9d, %eax
	testl	$DP_VECTOR_ZMM16 | DP_VECTOR_OPMASK, %eax
	jnz	.Lwere_unused
.Lcleaned:
	testl	$DP_VECTOR_ZMM_HIGH | DP_VECTOR_AVX, %r8d
	jnz	.Lload_wide
	testl	$DP_VECTOR_AVX, %r9d
	jz	4f
	vzeroupper				/* see above */
4:	each_low movaps, xmm, 16, 1
.Lloaded_low:
	testl	$DP_VECTOR_ZMM16, %r8d
	jz	5f
	each_high 1
5:	testl	$DP_VECTOR_OPMASK, %r8d
	jnz	.Lload_masks
.Lloaded:
	stmxcsr	AREA_NOW(%rsp)
	movl	AREA_NOW(%rsp), %eax
	cmpl	AREA_MXCSR(%rsp), %eax
	je	6f
	ldmxcsr	AREA_MXCSR(%rsp)
6:	testl	$0x400, AREA_FLAGS(%rsp)
	jz	7f
	std
7:	movq	AREA_BLOCK(%rsp), %rcx
	movq	%rbp, %rsp
	cmpq	$0, DP_BLOCK_MOVE(%rcx)
	jne	.Lback
.Lover:
	movq	$0, DP_BLOCK_BUSY(%rcx)
	popq	%rbp
	.cfi_remember_state
	.cfi_def_cfa %rsp, 8
	ret
	.cfi_restore_state

.Lmxcsr:					/* our arithmetic must not trap because of the program's settings */
	movl	$0x1f80, AREA_NOW(%rsp)
	ldmxcsr	AREA_NOW(%rsp)
	jmp	.Lmxcsr_set

.Lsave_wide:
	testl	$DP_VECTOR_ZMM_HIGH, %eax
	jnz	1f
	each_low vmovdqa, ymm, 32, 0
	jmp	.Lsaved_low
1:	each_low vmovdqa64, zmm, 64, 0
	jmp	.Lsaved_low

.Lload_wide:
	testl	$DP_VECTOR_ZMM_HIGH, %r8d
	jnz	1f
	each_low vmovdqa, ymm, 32, 1
	jmp	.Lloaded_low
1:	each_low vmovdqa64, zmm, 64, 1
	jmp	.Lloaded_low

.Lsave_masks:
	testl	$DP_VECTOR_BW, dp_lttng_vector(%rip)
	jz	1f
	each_mask kmovq, 0
	jmp	.Lsaved
1:	each_mask kmovw, 0
	jmp	.Lsaved

.Lload_masks:
	testl	$DP_VECTOR_BW, %r9d
	jz	1f
	each_mask kmovq, 1
	jmp	.Lloaded
1:	each_mask kmovw, 1
	jmp	.Lloaded

.Lwere_unused:					/* eax: components that were not in use before */
	movl	%eax, %r10d
	movl	$1, %ecx
	testl	%r9d, %r9d
	jns	.Lcleaned			/* in this case all counted as in use */
	xgetbv
	andl	%r10d, %eax
	andl	$DP_VECTOR_ZMM16 | DP_VECTOR_OPMASK, %eax
	jz	.Lcleaned
	xorl	%edx, %edx
	xrstor	dp_lttng_initial(%rip)
	jmp	.Lcleaned

/*
 * Moves to the block's own stack, with all signals blocked: a signal for an alternate stack would start at its top and overwrite
 * the handler that we came from.
 */
.Lmove:
	pushq	%rdi
	pushq	%rsi
	pushq	%rdx
	pushq	%rcx
	movl	$2, %edi			/* SIG_SETMASK */
	leaq	dp_lttng_every_signal(%rip), %rsi
	leaq	DP_BLOCK_SIGMASK(%rcx), %rdx
	movl	$8, %r10d
	movl	$14, %eax			/* rt_sigprocmask */
	syscall
	popq	%rcx
	popq	%rdx
	popq	%rsi
	popq	%rdi
	movq	DP_BLOCK_MOVE(%rcx), %rsp
	jmp	.Lmoved

.Lback:
	movq	$0, DP_BLOCK_BUSY(%rcx)
	movl	$2, %edi
	leaq	DP_BLOCK_SIGMASK(%rcx), %rsi
	xorl	%edx, %edx
	movl	$8, %r10d
	movl	$14, %eax
	syscall
	popq	%rbp
	.cfi_def_cfa %rsp, 8
	ret
	.cfi_endproc
	.size	.Lemit, . - .Lemit

/* ---- prime -------------------------------------------------------------------------------------------------------- */

/* Runs once per thread: simply saves all vector state (except AMX tiles, which nothing here uses, and x87). */
	.globl	dp_lttng_prime_hook
	.hidden	dp_lttng_prime_hook
	.type	dp_lttng_prime_hook, @function
	.balign	16
dp_lttng_prime_hook:
	.cfi_startproc
	pushq	%rbp
	.cfi_def_cfa_offset 16
	.cfi_offset %rbp, -16
	movq	%rsp, %rbp
	.cfi_def_cfa_register %rbp
	pushq	%rax
	pushq	%rcx
	pushq	%rdx
	pushq	%rsi
	pushq	%rdi
	pushq	%r8
	pushq	%r9
	pushq	%r10
	pushq	%r11
	pushfq
	cld
	subq	$4096, %rsp
	andq	$-64, %rsp
	movl	dp_lttng_vector(%rip), %eax
	testl	$DP_VECTOR_ALL, %eax
	jz	1f
	xorl	%ecx, %ecx
	.irp	n, 0, 8, 16, 24, 32, 40, 48, 56	/* the header, zero where XSAVE does not write it */
	movq	%rcx, 512 + \n(%rsp)
	.endr
	movl	$0xe6, %eax
	xorl	%edx, %edx
	xsave64	(%rsp)
	call	dp_lttng_prime
	movl	$0xe6, %eax
	xorl	%edx, %edx
	xrstor64 (%rsp)
	jmp	2f
1:	fxsave64 (%rsp)
	call	dp_lttng_prime
	fxrstor64 (%rsp)
2:	leaq	-80(%rbp), %rsp
	popfq
	popq	%r11
	popq	%r10
	popq	%r9
	popq	%r8
	popq	%rdi
	popq	%rsi
	popq	%rdx
	popq	%rcx
	popq	%rax
	popq	%rbp
	.cfi_def_cfa %rsp, 8
	ret
	.cfi_endproc
	.size	dp_lttng_prime_hook, . - dp_lttng_prime_hook

/* ---- callbacks ---------------------------------------------------------------------------------------------------- */

/* One address per event, by which emit recognises its entries in a list that LTTng keeps by name. Never called. */
	.globl	dp_lttng_callbacks
	.hidden	dp_lttng_callbacks
	.type	dp_lttng_callbacks, @function
	.balign	64
dp_lttng_callbacks:
	.rept	DP_LTTNG_EVENTS
	ret
	.endr
	.size	dp_lttng_callbacks, . - dp_lttng_callbacks

	.section .rodata
	.balign	8
dp_lttng_every_signal:
	.quad	-1
	.bss
	.balign	64
dp_lttng_initial:				/* an XSAVE image in which no component has a value */
	.zero	4096
	.globl	dp_lttng_vector
	.hidden	dp_lttng_vector
	.type	dp_lttng_vector, @object
dp_lttng_vector:
	.zero	4
	.size	dp_lttng_vector, 4
	.section .note.GNU-stack, "", @progbits
