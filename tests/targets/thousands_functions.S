/* SPDX-License-Identifier: MIT */
/* unsigned fN(unsigned a, unsigned b) { return (a ^ N) * 31 + (b >> 1); } for N from 10000 to 29999; and a table of them. */
	.altmacro
	.macro function n
	.globl	f\n
	.type	f\n, @function
	.p2align 4
f\n:
	.cfi_startproc
	xorl	$\n, %edi
	movl	%edi, %eax
	shrl	%esi
	sall	$5, %eax
	subl	%edi, %eax
	addl	%esi, %eax
	ret
	.cfi_endproc
	.size	f\n, . - f\n
	.endm
	.macro entry n
	.quad	f\n
	.endm

	.text
	.set	number, 10000
	.rept	20000
	function %number
	.set	number, number + 1
	.endr

	.section .data.rel.ro, "aw"
	.globl	functions
	.type	functions, @object
	.size	functions, 20000 * 8
	.p2align 3
functions:
	.set	number, 10000
	.rept	20000
	entry	%number
	.set	number, number + 1
	.endr

	.section .note.GNU-stack, "", @progbits
