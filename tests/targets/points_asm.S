/* SPDX-License-Identifier: MIT */
/* Functions with every kind of exit, for probes on entries, returns and every instruction. */
	.text

	.macro function name
	.p2align 4
	.globl \name
	.type \name, @function
\name:
	.cfi_startproc
	.endm

	.macro end name
	.cfi_endproc
	.size \name, . - \name
	.endm

/* Seven instructions. */
	function do_nothing2
	push %rbp
	mov %rsp, %rbp
	mov %edi, -4(%rbp)
	mov -4(%rbp), %eax
	nop
	pop %rbp
	ret
	end do_nothing2

/* Odd and even arguments use different returns. */
	function two_returns
	mov %edi, %eax
	test $1, %dil
	jne 1f
	add $16, %rax
	ret
1:	sub $16, %rax
	ret
	end two_returns

	function tail_direct
	add $1, %rdi
	nopl 0(%rax,%rax,1)
	jmp do_nothing2
	end tail_direct

	function tail_memory
	add $2, %rdi
	nopl 0(%rax,%rax,1)
	jmp *pointer(%rip)
	end tail_memory

	function tail_register
	add $3, %rdi
	mov pointer(%rip), %rax
	nopl 0(%rax,%rax,1)
	jmp *%rax
	end tail_register

/* Even arguments leave by the conditional jump, odd ones by the ret. */
	function tail_conditional
	mov %edi, %eax
	test $1, %dil
	je do_nothing2
	add $32, %rax
	nopl 0(%rax,%rax,1)
	ret
	end tail_conditional

/* A jump table: its jump stays inside. */
	function by_table
	mov %edi, %eax
	and $3, %eax
	lea table(%rip), %rdx
	movslq (%rdx,%rax,4), %rax
	add %rdx, %rax
	jmp *%rax
.Lcase0:
	mov $40, %eax
	jmp .Lend
.Lcase1:
	mov $41, %eax
	jmp .Lend
.Lcase2:
	mov $42, %eax
	jmp .Lend
.Lcase3:
	mov $43, %eax
.Lend:
	nopl 0(%rax,%rax,1)
	ret
	end by_table

/* Cold code is elsewhere; it jumps back for one argument, and returns by itself for another. */
	function with_cold
	mov %edi, %eax
	test $7, %dil
	je with_cold.cold
.Lback:
	add $1, %eax
	nopl 0(%rax,%rax,1)
	ret
	end with_cold

	.section .text.unlikely, "ax", @progbits
	.p2align 4
	.type with_cold.cold, @function
with_cold.cold:
	.cfi_startproc
	test $8, %dil
	je .Lback
	mov $50, %eax
	nopl 0(%rax,%rax,1)
	ret
	.cfi_endproc
	.size with_cold.cold, . - with_cold.cold
	.text

	function never_returns
	mov $60, %eax
	syscall
	ud2
	end never_returns

/* The jump's target is unknown. */
	function anywhere
	lea .Lhere(%rip), %rax
	mov %rax, %rdx
	xchg %rdx, %rax
	jmp *%rax
.Lhere:
	mov $70, %eax
	nopl 0(%rax,%rax,1)
	ret
	end anywhere

/* glibc's way to skip a lock prefix. */
	function skips_lock
	mov $1, %eax
	test $1, %dil
	je 1f
	lock
1:	cmpxchg %eax, counter(%rip)
	nopl 0(%rax,%rax,1)
	ret
	end skips_lock

/* Its first instruction leaves it. */
	function leaves_at_once
	jmp .Lelsewhere
	end leaves_at_once
	.p2align 4
.Lelsewhere:
	lea 90(%rdi), %rax
	nopl 0(%rax,%rax,1)
	ret

/* No size, and no unwind table that gives one. */
	.p2align 4
	.globl endless
	.type endless, @function
endless:
	mov $80, %eax
	nopl 0(%rax,%rax,1)
	ret

	.section .rodata
	.p2align 2
table:	.long .Lcase0 - table, .Lcase1 - table, .Lcase2 - table, .Lcase3 - table

	.data
	.p2align 3
	.globl pointer
pointer: .quad do_nothing2
counter: .long 0
	.section .note.GNU-stack, "", @progbits
