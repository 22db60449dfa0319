/* SPDX-License-Identifier: MIT */
/* A 32-bit program that needs no 32-bit library: prints READY and pauses. */
	.globl _start
_start:
	movl $4, %eax
	movl $1, %ebx
	movl $ready, %ecx
	movl $ready_end - ready, %edx
	int $0x80
1:	movl $29, %eax
	int $0x80
	jmp 1b
	.section .rodata
ready:	.ascii "READY 32\n"
ready_end:
	.section .note.GNU-stack,"",@progbits
