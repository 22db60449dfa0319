/* SPDX-License-Identifier: MIT */
/*
 * Called without arguments by the stub at the loader's _dl_debug_state. The address of its struct dp_agent is in the text, in a
 * word that the tool fills in before any jump leads here.
 */
	.text
	.globl	dp_agent_loaded
	.type	dp_agent_loaded, @function
	.balign	16
dp_agent_loaded:
	movq	.Lagent(%rip), %rdi
	jmp	dp_loaded_tell
	.size	dp_agent_loaded, . - dp_agent_loaded
	.balign	8
	.globl	dp_agent_loaded_state
	.type	dp_agent_loaded_state, @function
dp_agent_loaded_state:
.Lagent:
	.quad	0
	.size	dp_agent_loaded_state, . - dp_agent_loaded_state
	.section .note.GNU-stack, "", @progbits
