/* SPDX-License-Identifier: MIT */
/* For test_vectors.c. Components are numbered as in XCR0; a component that the machine does not have is never used. */
#define AVX    0x4
#define MASKS  0x20
#define ZMM_HI 0x40
#define ZMM16  0x80
#define K      2048	/* in struct state */
#define MXCSR  2112
#define INUSE  2116

	.macro	low op, width, load
	.irp	n, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15
	.if	\load
	\op	\n * 64(%rbx), %\width\n
	.else
	\op	%\width\n, \n * 64(%rbx)
	.endif
	.endr
	.endm

	.macro	high load
	.irp	n, 16, 17, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29, 30, 31
	.if	\load
	vmovdqu64 \n * 64(%rbx), %zmm\n
	.else
	vmovdqu64 %zmm\n, \n * 64(%rbx)
	.endif
	.endr
	.endm

	.macro	masks load
	.irp	n, 0, 1, 2, 3, 4, 5, 6, 7
	.if	\load
	kmovq	K + \n * 8(%rbx), %k\n
	.else
	kmovq	%k\n, K + \n * 8(%rbx)
	.endif
	.endr
	.endm

	.text
	.globl	vectors_around
	.type	vectors_around, @function
vectors_around:					/* rdi = from, rsi = to, edx = which, rcx = hit */
	pushq	%rbp
	movq	%rsp, %rbp
	pushq	%rbx
	pushq	%r12
	pushq	%r13
	pushq	%r14
	movq	%rdi, %rbx
	movq	%rsi, %r12
	movl	%edx, %r13d
	movq	%rcx, %r14
	cmpb	$0, vectors_xsave(%rip)
	je	2f
	movl	$0xe6, %eax			/* all initial */
	xorl	%edx, %edx
	xrstor	initial(%rip)
	testl	$ZMM_HI, %r13d
	jz	1f
	low	vmovdqu64, zmm, 1
	jmp	3f
1:	testl	$AVX, %r13d
	jz	2f
	low	vmovdqu, ymm, 1
	jmp	3f
2:	low	movups, xmm, 1
3:	testl	$ZMM16, %r13d
	jz	4f
	high	1
4:	testl	$MASKS, %r13d
	jz	5f
	masks	1
5:	ldmxcsr	MXCSR(%rbx)
	call	*%r14
	movq	%r12, %rbx
	stmxcsr	MXCSR(%rbx)
	pushq	$0x1f80
	ldmxcsr	(%rsp)
	popq	%rax
	cmpb	$1, vectors_xsave(%rip)
	jb	2f
	je	7f
	movl	$1, %ecx
	xgetbv
	movl	%eax, INUSE(%rbx)
7:	movl	$0, %ecx
	xgetbv
	movl	%eax, %r13d
	testl	$ZMM_HI, %r13d
	jz	1f
	low	vmovdqu64, zmm, 0
	jmp	3f
1:	testl	$AVX, %r13d
	jz	2f
	low	vmovdqu, ymm, 0
	jmp	3f
2:	low	movups, xmm, 0
3:	testl	$ZMM16, %r13d
	jz	4f
	high	0
4:	testl	$MASKS, %r13d
	jz	5f
	masks	0
5:	testl	$AVX, %r13d
	jz	6f
	vzeroupper
6:	popq	%r14
	popq	%r13
	popq	%r12
	popq	%rbx
	popq	%rbp
	ret
	.size	vectors_around, . - vectors_around

	.globl	vectors_clobber
	.type	vectors_clobber, @function
vectors_clobber:				/* edi = the available components; destroys them as compiled code may */
	pushq	%rbx
	leaq	garbage(%rip), %rbx
	testl	$ZMM16, %edi
	jz	1f
	high	1
1:	testl	$MASKS, %edi
	jz	2f
	masks	1
2:	testl	$AVX, %edi
	jz	3f
	low	vmovdqu, ymm, 1
	vzeroupper
3:	low	movups, xmm, 1
	popq	%rbx
	ret
	.size	vectors_clobber, . - vectors_clobber

	.data
	.balign	64
garbage:
	.fill	4096, 1, 0xa5
	.globl	vectors_xsave
vectors_xsave:
	.byte	0
	.bss
	.balign	64
initial:
	.zero	4096
	.section .note.GNU-stack, "", @progbits
