/* SPDX-License-Identifier: MIT */
/*
 * Runs code from a given machine state and saves the state after it: all general registers, flags, xmm0-15, on a separate stack.
 * The code must end with a jump to machine_leave (machine_put_leave() writes that jump).
 */
#ifndef DP_TESTS_STUB_MACHINE_H
#define DP_TESTS_STUB_MACHINE_H

#include "agent/abi.h"
#include "base/buf.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

struct machine {
	uint64_t gpr[16];
	uint64_t rflags;
	uint8_t xmm[16][16];
};

#define MACHINE_FLAGS UINT64_C(0xcd5) /* CF PF AF ZF SF DF OF */

const struct machine *machine_in;
struct machine *machine_out;
const void *machine_code;
uint64_t machine_host_rsp, machine_rax;
void machine_enter(void);
void machine_leave(void);

__asm__(".pushsection .text\n"
        ".globl machine_enter, machine_leave\n"
        "machine_enter:\n"
        "	push %rbx; push %rbp; push %r12; push %r13; push %r14; push %r15; pushfq\n"
        "	mov %rsp,machine_host_rsp(%rip)\n"
        "	mov machine_in(%rip),%rax\n"
        "	.irp n,0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15\n"
        "	movups 136+16*\\n(%rax),%xmm\\n\n"
        "	.endr\n"
        "	mov 8(%rax),%rcx; mov 16(%rax),%rdx; mov 24(%rax),%rbx; mov 40(%rax),%rbp; mov 48(%rax),%rsi\n"
        "	mov 56(%rax),%rdi; mov 64(%rax),%r8; mov 72(%rax),%r9; mov 80(%rax),%r10; mov 88(%rax),%r11\n"
        "	mov 96(%rax),%r12; mov 104(%rax),%r13; mov 112(%rax),%r14; mov 120(%rax),%r15\n"
        "	push 128(%rax)\n"
        "	popfq\n"
        "	mov 32(%rax),%rsp\n"
        "	mov (%rax),%rax\n"
        "	jmp *machine_code(%rip)\n"
        "machine_leave:\n"
        "	mov %rax,machine_rax(%rip)\n"
        "	mov machine_out(%rip),%rax\n"
        "	mov %rcx,8(%rax); mov %rdx,16(%rax); mov %rbx,24(%rax); mov %rsp,32(%rax); mov %rbp,40(%rax); mov %rsi,48(%rax)\n"
        "	mov %rdi,56(%rax); mov %r8,64(%rax); mov %r9,72(%rax); mov %r10,80(%rax); mov %r11,88(%rax)\n"
        "	mov %r12,96(%rax); mov %r13,104(%rax); mov %r14,112(%rax); mov %r15,120(%rax)\n"
        "	mov machine_host_rsp(%rip),%rsp\n"
        "	pushfq; pop %rcx; mov %rcx,128(%rax)\n"
        "	mov machine_rax(%rip),%rcx; mov %rcx,(%rax)\n"
        "	.irp n,0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15\n"
        "	movups %xmm\\n,136+16*\\n(%rax)\n"
        "	.endr\n"
        "	popfq; pop %r15; pop %r14; pop %r13; pop %r12; pop %rbp; pop %rbx\n"
        "	ret\n.popsection\n");

/* jmp *target(%rip) changes nothing but rip. */
static inline void machine_put_leave(struct dp_buf *out)
{
	uint64_t to = (uint64_t)&machine_leave;
	dp_buf_put(out, "\xff\x25\x00\x00\x00\x00", 6);
	dp_buf_put(out, &to, 8);
}

static inline void machine_run(const struct machine *in, struct machine *out, const void *code)
{
	machine_in = in;
	machine_out = out;
	machine_code = code;
	machine_enter();
	out->rflags &= ~UINT64_C(0x100);
}

/* xorshift64: reproducible, and good enough to reach every state. */
static inline uint64_t machine_random(void)
{
	static uint64_t x = UINT64_C(0x9e3779b97f4a7c15);
	x ^= x << 13;
	x ^= x >> 7;
	x ^= x << 17;
	return x;
}

#define MACHINE_STACK (32u << 10)

/* Random registers; rsp in the middle of `stack`, half of the time not even 8-byte aligned. */
static inline void machine_randomize(struct machine *m, const uint8_t *stack)
{
	uint64_t words[32];
	for (size_t i = 0; i < 16; i++)
		m->gpr[i] = machine_random();
	m->rflags = 0x202 | (machine_random() & MACHINE_FLAGS);
	for (size_t i = 0; i < 32; i++)
		words[i] = machine_random();
	memcpy(m->xmm, words, sizeof(m->xmm));
	m->gpr[4] = (uint64_t)stack + MACHINE_STACK / 2 + machine_random() % 256;
	if (machine_random() % 2)
		m->gpr[4] &= ~UINT64_C(7);
}

static inline void machine_fill(uint8_t *stack)
{
	for (size_t i = 0; i < MACHINE_STACK; i += 8)
		memcpy(stack + i, &(uint64_t){machine_random()}, 8);
}

/* Memory for code, near the test's own text or far from it. */
static inline uint8_t *machine_room(bool near)
{
	void *hint = near ? (void *)(((uint64_t)&machine_leave & ~UINT64_C(0xfffff)) - (UINT64_C(64) << 20)) : NULL;
	void *p = mmap(hint, 1 << 20, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	return p == MAP_FAILED ? NULL : p;
}

#endif
