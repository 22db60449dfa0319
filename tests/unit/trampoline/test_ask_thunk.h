/* SPDX-License-Identifier: MIT */
/* Replaces the agent's thunk in stubs that tests run. */
#ifndef DP_TESTS_TRAMPOLINE_ASK_THUNK_H
#define DP_TESTS_TRAMPOLINE_ASK_THUNK_H

#include "trampoline/trampoline.h"

struct answer {
	uint64_t value, known;
};

/* Calls `struct answer function(operand, ask)`. It preserves all but rax, rcx, rdx, which it destroys; it has its own stack. */
#define ASK_THUNK(thunk, function)                                                                                               \
	struct answer function(uint64_t operand, const struct dp_ask *ask);                                                      \
	void thunk(void);                                                                                                        \
	__asm__(".bss\n"                                                                                                         \
	        ".balign 64\n" #thunk "_stack: .zero 16384\n"                                                                    \
	        ".text\n" #thunk ":\n"                                                                                           \
	        "	push %rbx; push %rdi; push %rsi; push %r8; push %r9; push %r10; push %r11; pushfq; cld\n"                      \
	        "	mov %rsp,%rbx; lea " #thunk "_stack+16384-1024(%rip),%rsp\n"                                             \
	        "	fxsave64 (%rsp); mov %rax,%rdi; mov %rdx,%rsi; call " #function "; fxrstor64 (%rsp)\n"                   \
	        "	mov %rdx,%rcx; mov $0xa5a5a5a5a5a5a5a5,%rdx; mov %rbx,%rsp\n"                                                  \
	        "	popfq; pop %r11; pop %r10; pop %r9; pop %r8; pop %rsi; pop %rdi; pop %rbx\n"                                   \
	        "	add %rdx,%rdx; ret\n")

#endif
