/* SPDX-License-Identifier: MIT */
/* The agent's bytes, mapped read-execute, and calls of its entry points: registers in, registers out. */
#ifndef DP_TEST_BLOB_H
#define DP_TEST_BLOB_H

#include "tests/unit/agent/world.h"

#include <criterion/criterion.h>
#include <elf.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

static uint8_t *file, *text;
static const Elf64_Phdr *load;

static inline void read_file(void)
{
	int fd = open(DP_AGENT_SO, O_RDONLY | O_CLOEXEC);
	struct stat st;

	cr_assert_geq(fd, 0, "%s", DP_AGENT_SO);
	fstat(fd, &st);
	file = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
	cr_assert_neq(file, MAP_FAILED);
	close(fd);
}

static inline void blob_setup(void)
{
	const Elf64_Ehdr *e;
	const Elf64_Phdr *p;

	read_file();
	e = (const Elf64_Ehdr *)file;
	p = (const Elf64_Phdr *)(file + e->e_phoff);
	for (int i = 0; i < e->e_phnum; i++)
		load = p[i].p_type == PT_LOAD ? &p[i] : load;
	text = mmap(NULL, load->p_memsz, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	memcpy(text, file + load->p_offset, load->p_filesz);
	mprotect(text, load->p_memsz, PROT_READ | PROT_EXEC);
}

static inline uint8_t *symbol(const char *name)
{
	const Elf64_Ehdr *e = (const Elf64_Ehdr *)file;
	const Elf64_Shdr *s = (const Elf64_Shdr *)(file + e->e_shoff);

	for (int i = 0; i < e->e_shnum; i++) {
		const Elf64_Sym *sym = (const Elf64_Sym *)(file + s[i].sh_offset);
		const char *names = (const char *)file + s[s[i].sh_link].sh_offset;

		for (size_t k = 0; s[i].sh_type == SHT_SYMTAB && k < s[i].sh_size / sizeof(*sym); k++)
			if (!strcmp(names + sym[k].st_name, name))
				return text + sym[k].st_value;
	}
	cr_assert_fail("no symbol %s", name);
	return NULL;
}

struct machine {
	uint64_t gpr[16]; /* rax rcx rdx rbx rsp rbp rsi rdi r8 .. r15 */
	uint64_t flags;
};

/*
 * Calls `target` with the registers of *in (except rsp) and stores the resulting ones in *out. Uses a painted stack, `shift`
 * bytes below its top, so that the test covers every alignment and sees how much stack is used.
 */
#define STACK_WORDS 1024
#define PAINT       UINT64_C(0x5a5a5a5a5a5a5a5a)
static uint64_t call_stack[STACK_WORDS] __attribute__((aligned(64)));
static struct machine *call_in, *call_out;
static uint64_t call_top, call_sp;
static uint8_t *call_target;

static __attribute__((noinline)) void call_with(const struct machine *in, struct machine *out, uint8_t *target, uint64_t shift)
{
	call_in = (struct machine *)in;
	call_out = out;
	call_target = target;
	call_top = (uintptr_t)(call_stack + STACK_WORDS) - shift;
	for (int i = 0; i < STACK_WORDS; i++)
		call_stack[i] = PAINT;
	__asm__ volatile("pushq %%rbx\n\tpushq %%rbp\n\tpushq %%r12\n\tpushq %%r13\n\tpushq %%r14\n\tpushq %%r15\n\t"
	                 "movq %%rsp, %[sp]\n\t"
	                 "movq %[top], %%rsp\n\t"
	                 "movq %[in], %%rax\n\t"
	                 "pushq 128(%%rax)\n\tpopfq\n\t"
	                 "movq 8(%%rax), %%rcx\n\tmovq 16(%%rax), %%rdx\n\tmovq 24(%%rax), %%rbx\n\tmovq 40(%%rax), %%rbp\n\t"
	                 "movq 48(%%rax), %%rsi\n\tmovq 56(%%rax), %%rdi\n\tmovq 64(%%rax), %%r8\n\tmovq 72(%%rax), %%r9\n\t"
	                 "movq 80(%%rax), %%r10\n\tmovq 88(%%rax), %%r11\n\tmovq 96(%%rax), %%r12\n\tmovq 104(%%rax), %%r13\n\t"
	                 "movq 112(%%rax), %%r14\n\tmovq 120(%%rax), %%r15\n\tmovq 0(%%rax), %%rax\n\t"
	                 "call *%[target]\n\t"
	                 "pushq %%rax\n\tmovq %[out], %%rax\n\tpopq 0(%%rax)\n\t"
	                 "movq %%rcx, 8(%%rax)\n\tmovq %%rdx, 16(%%rax)\n\tmovq %%rbx, 24(%%rax)\n\tmovq %%rsp, 32(%%rax)\n\t"
	                 "movq %%rbp, 40(%%rax)\n\tmovq %%rsi, 48(%%rax)\n\tmovq %%rdi, 56(%%rax)\n\tmovq %%r8, 64(%%rax)\n\t"
	                 "movq %%r9, 72(%%rax)\n\tmovq %%r10, 80(%%rax)\n\tmovq %%r11, 88(%%rax)\n\tmovq %%r12, 96(%%rax)\n\t"
	                 "movq %%r13, 104(%%rax)\n\tmovq %%r14, 112(%%rax)\n\tmovq %%r15, 120(%%rax)\n\tpushfq\n\tpopq "
	                 "128(%%rax)\n\tcld\n\t"
	                 "movq %[sp], %%rsp\n\t"
	                 "popq %%r15\n\tpopq %%r14\n\tpopq %%r13\n\tpopq %%r12\n\tpopq %%rbp\n\tpopq %%rbx\n\t"
	                 : [sp] "=m"(call_sp)
	                 : [in] "m"(call_in), [out] "m"(call_out), [target] "m"(call_target), [top] "m"(call_top)
	                 : "rax", "rcx", "rdx", "rsi", "rdi", "r8", "r9", "r10", "r11", "memory", "cc");
}

#define DF 0x400u

/* All but rax, rcx, rdx, rsi and the arithmetic flags are unchanged. */
static inline void expect_preserved(const struct machine *in, const struct machine *out)
{
	const int kept[] = {3, 5, 7, 8, 9, 10, 11, 12, 13, 14, 15};

	for (size_t i = 0; i < sizeof(kept) / sizeof(*kept); i++)
		cr_assert_eq(in->gpr[kept[i]], out->gpr[kept[i]], "register %d", kept[i]);
	cr_assert_eq(in->flags & DF, out->flags & DF);
}

static inline struct machine acquire(struct dp_debug_ctx *w, bool df, uint64_t shift)
{
	struct machine in = {.flags = 0x202u | (df ? DF : 0)}, out;

	for (int i = 0; i < 16; i++)
		in.gpr[i] = 0x0123456789abcdef * (uint64_t)(i + 1);
	in.gpr[0] = (uintptr_t)&w->desc[0];
	call_with(&in, &out, symbol(DP_SYM_ACQUIRE), shift);
	expect_preserved(&in, &out);
	return out;
}

/* Bytes of the painted stack that the last call used, its return address included. */
static inline size_t stack_used(void)
{
	size_t i = 0;

	while (i < STACK_WORDS && call_stack[i] == PAINT)
		i++;
	return (STACK_WORDS - i) * sizeof(uint64_t);
}

static struct dp_op helper_op = {.size = 32};

static inline struct dp_capture call_helper(const char *helper, struct dp_capture capture)
{
	static struct dp_regs regs;
	static struct dp_capture c;
	struct machine in = {.flags = 0x202}, out;

	regs.rip = (uintptr_t)call_helper;
	regs.gpr[4] = (uintptr_t)&in;
	c = capture;
	c.regs = &regs;
	in.gpr[7] = (uintptr_t)&c;
	in.gpr[6] = (uintptr_t)&helper_op;
	call_with(&in, &out, symbol(helper), 8);
	cr_assert_eq(out.gpr[3], in.gpr[3]);
	cr_assert_eq(out.gpr[5], in.gpr[5]);
	cr_assert_eq(out.gpr[12], in.gpr[12]);
	return c;
}

#endif
