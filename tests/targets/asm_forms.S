/* SPDX-License-Identifier: MIT */
/*
 * Functions of one long argument (rdi) and one long result (rax), each starting with an instruction form that a probe's jump must
 * relocate, pun over or refuse. asm_driver.c calls each one and prints the result.
 */
	.text

	.macro form name
	.p2align 4
	.globl form_\name
	.type form_\name, @function
form_\name:
	.endm

	.macro done name
	.size form_\name, . - form_\name
	.endm

	form lea_rip
	lea data(%rip), %rax
	mov (%rax), %rax
	add %rdi, %rax
	ret
	done lea_rip

	form mov_rip
	mov data(%rip), %rax
	add %rdi, %rax
	ret
	done mov_rip

	form cmp_rip_imm
	cmpl $0x11223344, data(%rip)
	sete %al
	movzbl %al, %eax
	add %rdi, %rax
	ret
	done cmp_rip_imm

	form short_jcc
	test %rdi, %rdi
	je 1f
	lea 1(%rdi), %rax
	ret
1:	mov $-1, %rax
	ret
	done short_jcc

	/*
	 * The conditional jump itself is the first instruction: the caller sets the flags (the driver sets ZF through
	 * form_flags).
	 */
	form jcc_first
	je 1f
	lea 2(%rdi), %rax
	ret
1:	lea 3(%rdi), %rax
	ret
	done jcc_first

	form jmp_short
	jmp 1f
	ud2
1:	lea 4(%rdi), %rax
	ret
	done jmp_short

	form jmp_near
	.byte 0xe9
	.long 1f - . - 4
	.fill 16, 1, 0x0b
1:	lea 5(%rdi), %rax
	ret
	done jmp_near

	form call_first
	call helper
	add $6, %rax
	ret
	done call_first

	form call_indirect
	call *helper_address(%rip)
	add $7, %rax
	ret
	done call_indirect

	form tail_jmp_indirect
	jmp *helper_address(%rip)
	done tail_jmp_indirect

	form jrcxz
	xor %ecx, %ecx
	jrcxz 1f
	ud2
1:	lea 8(%rdi), %rax
	ret
	done jrcxz

	form jrcxz_first
	jrcxz 1f
	lea 9(%rdi), %rax
	ret
1:	lea 10(%rdi), %rax
	ret
	done jrcxz_first

	form loop
	mov $5, %ecx
	mov %rdi, %rax
1:	inc %rax
	loop 1b
	ret
	done loop

	form loop_first
	loop 1f
	lea 11(%rdi), %rax
	ret
1:	lea 12(%rdi,%rcx), %rax
	ret
	done loop_first

	form ret_only
	ret
	done ret_only

	form endbr
	endbr64
	lea 13(%rdi), %rax
	ret
	done endbr

	form endbr_push
	endbr64
	push %rbp
	mov %rsp, %rbp
	lea 14(%rdi), %rax
	pop %rbp
	ret
	done endbr_push

	/* getpid: the driver knows its result */
	form syscall_mid
	mov $39, %eax
	syscall
	sub pid(%rip), %rax
	add %rdi, %rax
	ret
	done syscall_mid

	/* the caller sets rax = 39 */
	form syscall_first
	syscall
	sub pid(%rip), %rax
	add %rdi, %rax
	ret
	done syscall_first

	form rep_movsb
	push %rdi
	mov %rsp, %rsi
	sub $16, %rsp
	mov %rsp, %rdi
	mov $8, %ecx
	rep movsb
	mov (%rsp), %rax
	add $24, %rsp
	ret
	done rep_movsb

	form nop5
	.byte 0x0f, 0x1f, 0x44, 0x00, 0x00
	lea 15(%rdi), %rax
	ret
	done nop5

	form push
	push %rdi
	pop %rax
	ret
	done push

	form push_imm8
	push $16
	pop %rax
	add %rdi, %rax
	ret
	done push_imm8

	/* The red zone contains a value that every instruction must preserve. */
	form redzone
	mov %rdi, -8(%rsp)
	mov %rdi, -128(%rsp)
	xor %eax, %eax
	mov -8(%rsp), %rax
	add -128(%rsp), %rax
	ret
	done redzone

	form flags
	stc
	setc %al
	movzbl %al, %eax
	adc %rdi, %rax
	ret
	done flags

	form xchg_self
	xchg %rdi, %rax
	ret
	done xchg_self

	form lock_add
	lock incq cell(%rip)
	lock decq cell(%rip)
	lea 17(%rdi), %rax
	ret
	done lock_add

	form vex
	vmovq %rdi, %xmm0
	vpaddq %xmm0, %xmm0, %xmm0
	vmovq %xmm0, %rax
	ret
	done vex

	form vex_rip
	vmovdqu data(%rip), %xmm1
	vmovq %xmm1, %rax
	add %rdi, %rax
	ret
	done vex_rip

	form pushf
	pushfq
	pop %rax
	and $0, %eax
	lea 18(%rdi,%rax), %rax
	ret
	done pushf

	form stack_relative
	mov (%rsp), %rax
	sub (%rsp), %rax
	add %rdi, %rax
	ret
	done stack_relative

	/* A jump back to the second instruction: a window over both must be refused. */
	form inner_target
	xor %eax, %eax
1:	inc %eax
	cmp $7, %eax
	jne 1b
	add %rdi, %rax
	ret
	done inner_target

	/* One byte of code, one of padding, then directly the next function. */
	.globl form_tiny
	.type form_tiny, @function
form_tiny:
	ret
	.size form_tiny, 1
	nop
	.globl form_tiny2
	.type form_tiny2, @function
form_tiny2:
	mov %edi, %eax
	ret
	.size form_tiny2, . - form_tiny2

	.p2align 4
	.type helper, @function
helper:
	mov %rdi, %rax
	neg %rax
	ret
	.size helper, . - helper

	/* long with_registers(form, arg, rax, rcx): calls form(arg) with rax, rcx and ZF = (rcx == 0) set */
	.p2align 4
	.globl with_registers
	.type with_registers, @function
with_registers:
	push %rbx
	mov %rdi, %rbx
	mov %rsi, %rdi
	mov %rdx, %rax
	test %rcx, %rcx
	call *%rbx
	pop %rbx
	ret
	.size with_registers, . - with_registers

	.data
	.p2align 3
	.globl pid
pid:	.quad 0
data:	.quad 0x1122334411223344, 0x55667788
cell:	.quad 5
	.section .data.rel, "aw"
	.p2align 3
helper_address:
	.quad helper
	.section .note.GNU-stack,"",@progbits
