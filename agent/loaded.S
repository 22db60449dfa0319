/* SPDX-License-Identifier: MIT */
/*
 * The stub at the loader's _dl_debug_state calls this without an argument. Which struct dp_agent is its own stands in the text, as a
 * word that the tool fills in before anything leads here.
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
