/* SPDX-License-Identifier: MIT */
/* The calls that a stub makes, with a check that they preserve the registers that a stub does not save. */
	.text
	.globl	host_enter
	.type	host_enter, @function
host_enter:					/* rdi = enter, rsi = desc */
	pushq	%rbx
	movq	%rsi, %rax
	movq	%rdi, %rbx
	movq	$0x1111, %rdi
	movq	$0x8888, %r8
	movq	$0x9999, %r9
	movq	$0xaaaa, %r10
	movq	$0xbbbb, %r11
	call	*%rbx
	cmpq	$0x1111, %rdi
	jne	.Lbad
	cmpq	$0x8888, %r8
	jne	.Lbad
	cmpq	$0x9999, %r9
	jne	.Lbad
	cmpq	$0xaaaa, %r10
	jne	.Lbad
	cmpq	$0xbbbb, %r11
	jne	.Lbad
	movq	%rcx, %rax
	popq	%rbx
	ret
.Lbad:
	ud2
	.size	host_enter, . - host_enter

	.globl	host_emit
	.type	host_emit, @function
host_emit:					/* rdi = emit, rsi = desc, rdx = record, rcx = size */
	pushq	%rbx
	movq	%rsi, %rax
	movq	%rdi, %rbx
	xchgq	%rdx, %rcx
	movq	$0x1111, %rdi
	movq	$0x8888, %r8
	movq	$0x9999, %r9
	movq	$0xaaaa, %r10
	movq	$0xbbbb, %r11
	call	*%rbx
	cmpq	$0x1111, %rdi
	jne	.Lbad
	cmpq	$0x8888, %r8
	jne	.Lbad
	cmpq	$0x9999, %r9
	jne	.Lbad
	cmpq	$0xaaaa, %r10
	jne	.Lbad
	cmpq	$0xbbbb, %r11
	jne	.Lbad
	popq	%rbx
	ret
	.size	host_emit, . - host_emit
	.section .note.GNU-stack, "", @progbits
