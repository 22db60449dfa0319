/* SPDX-License-Identifier: MIT */
/*
 * The handler leaves the kernel's frame unchanged: either the C part has moved the interrupted thread to its stub, and the
 * handler returns through the frame; or the signal is the program's, whose handler then gets the frame that the kernel would have
 * made for it.
 */
	.text
	.globl	dp_agent_trap, dp_trap_entry, dp_trap_return
	.hidden	dp_trap_entry, dp_trap_return
	.type	dp_agent_trap, @function
	.balign	64
dp_agent_trap:
dp_trap_entry:
	pushq	%rdi
	pushq	%rsi
	pushq	%rdx
	call	dp_trap_handle
	popq	%rdx
	popq	%rsi
	popq	%rdi
	testq	%rax, %rax
	jnz	.Lpass
	ret			/* to the restorer */
.Lpass:
	movq	%rax, %r11
	movl	$0, %eax
	jmp	*%r11
	.size	dp_agent_trap, . - dp_agent_trap

/* Unwinders recognise a signal frame by exactly these bytes. */
	.globl	dp_agent_trap_restorer
	.type	dp_agent_trap_restorer, @function
	nop
dp_agent_trap_restorer:
dp_trap_return:
	.byte	0x48, 0xc7, 0xc0, 0x0f, 0x00, 0x00, 0x00	/* mov $15,%rax: rt_sigreturn */
	syscall
	.size	dp_agent_trap_restorer, . - dp_agent_trap_restorer

/* int64_t dp_trap_call(const uint64_t arg[6], int64_t nr, const struct dp_regs *regs) */
	.globl	dp_trap_call
	.hidden	dp_trap_call
	.type	dp_trap_call, @function
dp_trap_call:
	pushq	%rbx
	movq	%rdx, %rbx
	movq	%rsi, %rax
	movq	%rdi, %r11
	movq	(%r11), %rdi
	movq	8(%r11), %rsi
	movq	16(%r11), %rdx
	movq	24(%r11), %r10
	movq	32(%r11), %r8
	movq	40(%r11), %r9
	syscall
	.globl	dp_agent_trap_called
	.type	dp_agent_trap_called, @function
dp_agent_trap_called:
	popq	%rbx
	ret
	.size	dp_trap_call, . - dp_trap_call
	.size	dp_agent_trap_called, . - dp_agent_trap_called

/* struct dp_trap *dp_trap_state(void) */
	.globl	dp_trap_state
	.hidden	dp_trap_state
	.type	dp_trap_state, @function
dp_trap_state:
	movq	.Lstate(%rip), %rax
	ret
	.size	dp_trap_state, . - dp_trap_state
	.balign	8
	.globl	dp_agent_trap_state
	.type	dp_agent_trap_state, @function
dp_agent_trap_state:
.Lstate:
	.quad	0
	.size	dp_agent_trap_state, . - dp_agent_trap_state
	.section .note.GNU-stack, "", @progbits
