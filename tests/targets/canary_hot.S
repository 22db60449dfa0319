/* SPDX-License-Identifier: MIT */
/*
 * canary_hot: every register has a known pattern while canary_body runs, whose instructions change none of them. Below the stack
 * pointer is a red zone with a pattern of its own; at the stack pointer, the address of struct canary.
 */
#define GPR     0x000
#define RFLAGS  0x080
#define MXCSR   0x088
#define X87     0x090
#define RED     0x100
#define K       0x180
#define VECTOR  0x1c0
#define SIZE    0x9c0
#define LEVEL   0x1380

	.macro	each_low op, width, base, load
	.irp	n, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15
	.if	\load
	\op	\base + VECTOR + \n * 64(%rax), %\width\n
	.else
	\op	%\width\n, \base + VECTOR + \n * 64(%rax)
	.endif
	.endr
	.endm

	.macro	each_high base, load
	.irp	n, 16, 17, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29, 30, 31
	.if	\load
	vmovdqu64 \base + VECTOR + \n * 64(%rax), %zmm\n
	.else
	vmovdqu64 %zmm\n, \base + VECTOR + \n * 64(%rax)
	.endif
	.endr
	.irp	n, 0, 1, 2, 3, 4, 5, 6, 7
	.if	\load
	kmovq	\base + K + \n * 8(%rax), %k\n
	.else
	kmovq	%k\n, \base + K + \n * 8(%rax)
	.endif
	.endr
	.endm

	/* By level: 2 has all, 1 has ymm, 0 has xmm. */
	.macro	vectors base, load
	cmpq	$1, LEVEL(%rax)
	ja	.L512\@
	je	.L256\@
	each_low movups, xmm, \base, \load
	jmp	.Ldone\@
.L256\@:
	each_low vmovups, ymm, \base, \load
	jmp	.Ldone\@
.L512\@:
	each_low vmovdqu64, zmm, \base, \load
	each_high \base, \load
.Ldone\@:
	.endm

	.text
	.globl	canary_hot
	.type	canary_hot, @function
	.p2align 4
canary_hot:
	.cfi_startproc
	pushq	%rbp
	.cfi_adjust_cfa_offset 8
	.cfi_rel_offset %rbp, 0
	pushq	%rbx
	.cfi_adjust_cfa_offset 8
	.cfi_rel_offset %rbx, 0
	pushq	%r12
	.cfi_adjust_cfa_offset 8
	.cfi_rel_offset %r12, 0
	pushq	%r13
	.cfi_adjust_cfa_offset 8
	.cfi_rel_offset %r13, 0
	pushq	%r14
	.cfi_adjust_cfa_offset 8
	.cfi_rel_offset %r14, 0
	pushq	%r15
	.cfi_adjust_cfa_offset 8
	.cfi_rel_offset %r15, 0
	pushq	%rdi				/* where body's rsp points: struct canary */
	.cfi_adjust_cfa_offset 8
	movq	%rdi, %rax
	vectors	0, 1
	frstor	X87(%rax)
	ldmxcsr	MXCSR(%rax)
	pushq	RFLAGS(%rax)
	.cfi_adjust_cfa_offset 8
	popfq
	.cfi_adjust_cfa_offset -8
	/* From here on only moves, because the flags are loaded. */
	.irp	n, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15
	movq	RED + 8 * \n(%rax), %rcx
	movq	%rcx, -128 + 8 * \n(%rsp)
	.endr
	movq	GPR + 8 * 1(%rax), %rcx
	movq	GPR + 8 * 2(%rax), %rdx
	movq	GPR + 8 * 3(%rax), %rbx
	movq	GPR + 8 * 5(%rax), %rbp
	movq	GPR + 8 * 6(%rax), %rsi
	movq	GPR + 8 * 7(%rax), %rdi
	movq	GPR + 8 * 8(%rax), %r8
	movq	GPR + 8 * 9(%rax), %r9
	movq	GPR + 8 * 10(%rax), %r10
	movq	GPR + 8 * 11(%rax), %r11
	movq	GPR + 8 * 12(%rax), %r12
	movq	GPR + 8 * 13(%rax), %r13
	movq	GPR + 8 * 14(%rax), %r14
	movq	GPR + 8 * 15(%rax), %r15
	movq	GPR(%rax), %rax
	jmp	canary_body
	.globl	canary_return
canary_return:
	xchgq	%rax, (%rsp)			/* the struct, to store rax */
	movq	%rcx, SIZE + GPR + 8 * 1(%rax)
	movq	%rdx, SIZE + GPR + 8 * 2(%rax)
	movq	%rbx, SIZE + GPR + 8 * 3(%rax)
	movq	%rbp, SIZE + GPR + 8 * 5(%rax)
	movq	%rsi, SIZE + GPR + 8 * 6(%rax)
	movq	%rdi, SIZE + GPR + 8 * 7(%rax)
	movq	%r8, SIZE + GPR + 8 * 8(%rax)
	movq	%r9, SIZE + GPR + 8 * 9(%rax)
	movq	%r10, SIZE + GPR + 8 * 10(%rax)
	movq	%r11, SIZE + GPR + 8 * 11(%rax)
	movq	%r12, SIZE + GPR + 8 * 12(%rax)
	movq	%r13, SIZE + GPR + 8 * 13(%rax)
	movq	%r14, SIZE + GPR + 8 * 14(%rax)
	movq	%r15, SIZE + GPR + 8 * 15(%rax)
	movq	(%rsp), %rcx
	movq	%rcx, SIZE + GPR(%rax)
	.irp	n, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15
	movq	-128 + 8 * \n(%rsp), %rcx
	movq	%rcx, SIZE + RED + 8 * \n(%rax)
	.endr
	pushfq
	.cfi_adjust_cfa_offset 8
	popq	SIZE + RFLAGS(%rax)
	.cfi_adjust_cfa_offset -8
	cld
	stmxcsr	SIZE + MXCSR(%rax)
	ldmxcsr	mxcsr_default(%rip)
	fnsave	SIZE + X87(%rax)		/* also resets the unit, like fninit */
	vectors	SIZE, 0
	cmpq	$0, LEVEL(%rax)
	je	1f
	vzeroupper
1:	addq	$8, %rsp
	.cfi_adjust_cfa_offset -8
	popq	%r15
	.cfi_adjust_cfa_offset -8
	.cfi_restore %r15
	popq	%r14
	.cfi_adjust_cfa_offset -8
	.cfi_restore %r14
	popq	%r13
	.cfi_adjust_cfa_offset -8
	.cfi_restore %r13
	popq	%r12
	.cfi_adjust_cfa_offset -8
	.cfi_restore %r12
	popq	%rbx
	.cfi_adjust_cfa_offset -8
	.cfi_restore %rbx
	popq	%rbp
	.cfi_adjust_cfa_offset -8
	.cfi_restore %rbp
	ret
	.cfi_endproc
	.size	canary_hot, . - canary_hot

	.section .rodata
	.p2align 2
mxcsr_default:
	.long	0x1f80
	.globl	canary_insn, canary_insn_end
canary_insn:
	.text

	/* One instruction of the body, and its entry in the table. */
	.macro	i insn:vararg
	.pushsection .rodata
	.long	.Lat\@ - canary_body
	.popsection
.Lat\@:
	\insn
	.endm

	.globl	canary_body, canary_body_end
	.type	canary_body, @function
	.p2align 6
canary_body:
	.cfi_startproc
	.cfi_def_cfa_offset 64
	.cfi_offset %rbp, -16
	.cfi_offset %rbx, -24
	.cfi_offset %r12, -32
	.cfi_offset %r13, -40
	.cfi_offset %r14, -48
	.cfi_offset %r15, -56
	i nop
	i movq %rax, %rax
	i leaq 0x12345678(%rbx), %rbx
	i leaq -0x12345678(%rbx), %rbx
	i xchgq %rcx, %rcx
	i movaps %xmm3, %xmm3
	i nopl 0x12345678(%rax,%rax,1)
	i fnop
	i prefetchnta canary_leaf_address(%rip)
	i prefetcht0 0x60(%rsp)
	i xchgq %r8, %r9
	i xchgq %r9, %r8
	i bswapq %r10
	i bswapq %r10
	i notq %r11
	i notq %r11
	i jmp 2f
	ud2
2:
	i leaq -0x80(%rsp), %rsp
	.cfi_adjust_cfa_offset 0x80
	i pushq %r12
	.cfi_adjust_cfa_offset 8
	i pushq %r13
	.cfi_adjust_cfa_offset 8
	i popq %r13
	.cfi_adjust_cfa_offset -8
	i popq %r12
	.cfi_adjust_cfa_offset -8
	i pushfq
	.cfi_adjust_cfa_offset 8
	i popfq
	.cfi_adjust_cfa_offset -8
	i call canary_leaf
	i call *canary_leaf_address(%rip)
	i pushq %rbp
	.cfi_adjust_cfa_offset 8
	i leaq canary_leaf(%rip), %rbp
	i call *%rbp
	i popq %rbp
	.cfi_adjust_cfa_offset -8
	i leaq 0x80(%rsp), %rsp
	.cfi_adjust_cfa_offset -0x80
	i jc 3f
	i jnc 3f
	ud2
3:
	i jrcxz 4f
	i jz 4f
	i nopw 0x0(%rax,%rax,1)
4:
	i movq %r14, %r14
	i movups %xmm7, %xmm7
	i jmp canary_return
canary_body_end:
	.cfi_endproc
	.size	canary_body, . - canary_body

	.type	canary_leaf, @function
canary_leaf:
	.cfi_startproc
	i nopl (%rax)
	i ret
	.cfi_endproc
	.size	canary_leaf, . - canary_leaf

	.section .rodata
canary_insn_end:
	.section .data.rel.ro, "aw"
	.p2align 3
canary_leaf_address:
	.quad	canary_leaf
	.section .note.GNU-stack, "", @progbits
