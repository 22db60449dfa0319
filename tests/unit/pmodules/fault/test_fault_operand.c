/* SPDX-License-Identifier: MIT */
/* The memory operand of a faulting instruction, from bytes and registers: every form, also implicit ones. */
#include "pmodules/fault/fault.h"

#include <criterion/criterion.h>
#include <string.h>

static const struct {
	const char *text, *bytes;
	size_t n;
	uint64_t address; /* the address that the kernel reports */
	const char *access, *reg;
} forms[] = {
        {"mov 8(%rax),%ecx", "\x8b\x48\x08", 3, 0x104d, "read of 4 bytes at 0x104d", "rax"},
        {"mov %cl,(%rdx,%rcx,4)", "\x88\x0c\x8a", 3, 0x200c, "write of 1 byte at 0x200c", "rdx"},
        {"addl $1,(%rbx)", "\x83\x03\x01", 3, 0x3000, "write of 4 bytes at 0x3000", "rbx"},
        {"cmpxchg %ecx,(%rbx)", "\x0f\xb1\x0b", 3, 0x3000, "write of 4 bytes at 0x3000", "rbx"},
        {"test %eax,(%rbx)", "\x85\x03", 2, 0x3000, "read of 4 bytes at 0x3000", "rbx"},
        {"push 16(%rbx)", "\xff\x73\x10", 3, 0x3010, "read of 8 bytes at 0x3010", "rbx"},
        {"push 16(%rbx)", "\xff\x73\x10", 3, 0x6ff8, "write of 8 bytes at 0x6ff8", "rsp"},
        {"push %rax", "\x50", 1, 0x6ff8, "write of 8 bytes at 0x6ff8", "rsp"},
        {"pushf", "\x9c", 1, 0x6ff8, "write of 8 bytes at 0x6ff8", "rsp"},
        {"enter $16,$0", "\xc8\x10\x00\x00", 4, 0x6ff8, "write of 8 bytes at 0x6ff8", "rsp"},
        {"pop 8(%rsp)", "\x8f\x44\x24\x08", 4, 0x7000, "read of 8 bytes at 0x7000", "rsp"},
        {"pop 8(%rsp)", "\x8f\x44\x24\x08", 4, 0x7010, "write of 8 bytes at 0x7010", "rsp"},
        {"call *(%rbx)", "\xff\x13", 2, 0x3000, "read of 8 bytes at 0x3000", "rbx"},
        {"call *(%rbx)", "\xff\x13", 2, 0x6ff8, "write of 8 bytes at 0x6ff8", "rsp"},
        {"call *%rax", "\xff\xd0", 2, 0x6ff8, "write of 8 bytes at 0x6ff8", "rsp"},
        {"jmp *(%rbx)", "\xff\x23", 2, 0x3000, "read of 8 bytes at 0x3000", "rbx"},
        {"ret", "\xc3", 1, 0x7000, "read of 8 bytes at 0x7000", "rsp"},
        {"leave", "\xc9", 1, 0x8000, "read of 8 bytes at 0x8000", "rbp"},
        {"rep movsb", "\xf3\xa4", 2, 0x4000, "read of 1 byte at 0x4000", "rsi"},
        {"rep movsb", "\xf3\xa4", 2, 0x5000, "write of 1 byte at 0x5000", "rdi"},
        {"rep stosq", "\xf3\x48\xab", 3, 0x5000, "write of 8 bytes at 0x5000", "rdi"},
        {"repe cmpsl", "\xf3\xa7", 2, 0x4000, "read of 4 bytes at 0x4000", "rsi"},
        {"repe cmpsl", "\xf3\xa7", 2, 0x5002, "read of 4 bytes at 0x5000", "rdi"},
        {"movsq", "\x48\xa5", 2, 0x5007, "write of 8 bytes at 0x5000", "rdi"},
        {"scasb", "\xae", 1, 0x5000, "read of 1 byte at 0x5000", "rdi"},
        {"lodsw", "\x66\xad", 2, 0x4000, "read of 2 bytes at 0x4000", "rsi"},
        {"xlat", "\xd7", 1, 0x3045, "read of 1 byte at 0x3045", "rbx"},
        {"bt %rcx,(%rbx)", "\x48\x0f\xa3\x0b", 4, 0x3000, "read of 8 bytes at 0x3000", "rbx"},
        {"bts %rdx,(%rbx)", "\x48\x0f\xab\x13", 4, 0x3400, "write of 8 bytes at 0x3400", "rbx"},
        {"fldt (%rbx)", "\xdb\x2b", 2, 0x3000, "read of 10 bytes at 0x3000", "rbx"},
        {"fstpl (%rbx)", "\xdd\x1b", 2, 0x3000, "write of 8 bytes at 0x3000", "rbx"},
        {"fnstenv (%rbx)", "\xd9\x33", 2, 0x3000, "write of 28 bytes at 0x3000", "rbx"},
        {"fxsave64 (%rbx)", "\x48\x0f\xae\x03", 4, 0x3000, "write of 512 bytes at 0x3000", "rbx"},
        {"xsave (%rbx)", "\x0f\xae\x23", 3, 0x3000, "write of 576 bytes at 0x3000", "rbx"},
        {"movaps (%rbx),%xmm0", "\x0f\x28\x03", 3, 0x3000, "read of 16 bytes at 0x3000", "rbx"},
        {"vmovups (%rbx),%zmm0", "\x62\xf1\x7c\x48\x10\x03", 6, 0x303f, "read of 64 bytes at 0x3000", "rbx"},
        {"vmovups %zmm0,(%rbx){%k1}", "\x62\xf1\x7c\x49\x11\x03", 6, 0x3012, "write of 4 bytes at 0x3010", "rbx"},
        {"vaddps (%rbx){1to16},%zmm1,%zmm0", "\x62\xf1\x74\x58\x58\x03", 6, 0x3000, "read of 4 bytes at 0x3000", "rbx"},
        {"vpbroadcastd (%rbx),%ymm0", "\xc4\xe2\x7d\x58\x03", 5, 0x3000, "read of 4 bytes at 0x3000", "rbx"},
        {"vpgatherdd %ymm2,8(%rbx,%ymm1,4),%ymm0", "\xc4\xe2\x6d\x90\x44\x8b\x08", 7, 0x77777, "read of 4 bytes at 0x77777",
         "rbx"},
        {"vpgatherdd 8(%rbx,%zmm1,4),%zmm0{%k1}", "\x62\xf2\x7d\x49\x90\x44\x8b\x02", 8, 0x77777, "read of 4 bytes at 0x77777",
         "rbx"},
        {"vpscatterqq %zmm0,8(%rbx,%zmm1,8){%k1}", "\x62\xf2\xfd\x49\xa1\x44\xcb\x01", 8, 0x77777, "write of 8 bytes at 0x77777",
         "rbx"},
        {"vpcompressd %zmm0,(%rbx){%k1}", "\x62\xf2\x7d\x49\x8b\x03", 6, 0x3004, "write of 4 bytes at 0x3004", "rbx"},
        {"maskmovdqu %xmm1,%xmm0", "\x66\x0f\xf7\xc1", 4, 0x5003, "write of 1 byte at 0x5003", "rdi"},
        {"vmaskmovpd (%rbx),%ymm1,%ymm0", "\xc4\xe2\x75\x2d\x03", 5, 0x3008, "read of 8 bytes at 0x3008", "rbx"},
        {"cmpxchg16b (%rbx)", "\x48\x0f\xc7\x0b", 4, 0x3000, "write of 16 bytes at 0x3000", "rbx"},
        {"mov %fs:0x10,%rax", "\x64\x48\x8b\x04\x25\x10\x00\x00\x00", 9, 0x90010, "read of 8 bytes at 0x90010", ""},
        {"mov 4(%ebx),%eax", "\x67\x8b\x43\x04", 4, 0x3004, "read of 4 bytes at 0x3004", "ebx"},
        {"mov 0x10(%rip),%al", "\x8a\x05\x10\x00\x00\x00", 6, 0x400016, "read of 1 byte at 0x400016", "rip"},
        {"movabs 0x1122334455,%al", "\xa0\x55\x44\x33\x22\x11\x00\x00\x00", 9, 0x1122334455, "read of 1 byte at 0x1122334455",
         ""},
        {"lea (%rbx),%rax", "\x48\x8d\x03", 3, 0x3000, "access at 0x3000", ""},
        {"prefetcht0 (%rbx)", "\x0f\x18\x0b", 3, 0x3000, "access at 0x3000", ""},
        {"nopw 0(%rax,%rax,1)", "\x66\x0f\x1f\x04\x00", 5, 0x3000, "access at 0x3000", ""},
};

static const struct user_regs_struct registers = {.rax = 0x1045,
                                                  .rcx = 3,
                                                  .rdx = 0x2000,
                                                  .rbx = 0x3000,
                                                  .rsp = 0x7000,
                                                  .rbp = 0x8000,
                                                  .rsi = 0x4000,
                                                  .rdi = 0x5000,
                                                  .rip = 0x400000,
                                                  .fs_base = 0x90000};

Test(fault_operand, every_form_says_what_it_wanted_of_memory)
{
	for (size_t i = 0; i < sizeof(forms) / sizeof(*forms); i++) {
		struct dp_access a;
		char text[96];
		dp_access_decode(
		        &(struct dp_access_ask){(const uint8_t *)forms[i].bytes, forms[i].n, &registers, true, forms[i].address},
		        &a);
		dp_access_text(&a, a.is_known ? a.address : forms[i].address, text, sizeof(text));
		cr_expect_str_eq(text, forms[i].access, "%s: %s", forms[i].text, text);
		cr_expect_str_eq(a.reg, forms[i].reg, "%s: %s", forms[i].text, a.reg);
	}
}

static struct dp_access refused(const char *bytes, size_t n, struct user_regs_struct regs)
{
	struct dp_access a;
	dp_access_decode(&(struct dp_access_ask){(const uint8_t *)bytes, n, &regs, false, 0}, &a);
	return a;
}

#define BAD UINT64_C(0xdead000000001000)

Test(fault_operand, without_an_address_the_operand_that_is_none_is_named)
{
	struct dp_access a = refused("\xff\x73\x10", 3, (struct user_regs_struct){.rbx = BAD, .rsp = 0x7000}); /* push 16(%rbx) */
	cr_expect(a.address == BAD + 16 && !a.is_write && !strcmp(a.reg, "rbx"));
	a = refused("\xff\x73\x10", 3, (struct user_regs_struct){.rbx = 0x3000, .rsp = BAD});
	cr_expect(a.address == BAD - 8 && a.is_write && !strcmp(a.reg, "rsp"));
	a = refused("\xf3\xa4", 2, (struct user_regs_struct){.rsi = BAD, .rdi = 0x5000, .rcx = 9}); /* rep movsb */
	cr_expect(a.address == BAD && !a.is_write && !strcmp(a.reg, "rsi"));
	a = refused("\x88\x0c\x8a", 3, (struct user_regs_struct){.rdx = 0x2000, .rcx = BAD}); /* mov %cl,(%rdx,%rcx,4) */
	cr_expect(a.is_write && !strcmp(a.reg, "rcx"), "%s", a.reg);
}

Test(fault_operand, alignment_is_that_of_the_instruction)
{
	const struct user_regs_struct regs = {.rbx = 0x3008};
	cr_expect_eq(refused("\x0f\x28\x03", 3, regs).align, 16);     /* movaps (%rbx),%xmm0 */
	cr_expect_eq(refused("\xc5\xfc\x28\x03", 4, regs).align, 32); /* vmovaps (%rbx),%ymm0 */
	cr_expect_eq(refused("\x48\x0f\xae\x03", 4, regs).align, 16); /* fxsave64 (%rbx) */
	cr_expect_eq(refused("\x0f\xae\x23", 3, regs).align, 64);     /* xsave (%rbx) */
	cr_expect_eq(refused("\x48\x0f\xc7\x0b", 4, regs).align, 16); /* cmpxchg16b (%rbx) */
	cr_expect_eq(refused("\x8b\x03", 2, regs).align, 1);          /* mov (%rbx),%eax */
}

Test(fault_operand, where_a_jump_leads_and_what_divides)
{
	struct dp_access a = refused("\xff\xe0", 2, (struct user_regs_struct){.rax = BAD}); /* jmp *%rax */
	cr_expect(a.branch == DP_BRANCH_VALUE && a.target == BAD && !strcmp(a.target_reg, "rax"));
	a = refused("\xff\x24\xd8", 3, (struct user_regs_struct){.rax = 0x1000, .rbx = 2}); /* jmp *(%rax,%rbx,8) */
	cr_expect(a.branch == DP_BRANCH_MEMORY && a.target == 0x1010);
	a = refused("\xc3", 1, (struct user_regs_struct){.rsp = 0x7000});
	cr_expect(a.branch == DP_BRANCH_MEMORY && a.target == 0x7000);
	a = refused("\xf6\xf4", 2, (struct user_regs_struct){.rax = 0xff00ff}); /* div %ah */
	cr_expect(a.divides && a.value_known && a.value == 0 && !strcmp(a.reg, "ah"));
	a = refused("\xf7\xf9", 2, (struct user_regs_struct){.rcx = 0x1ffffffff}); /* idiv %ecx */
	cr_expect(a.divides && a.value_known && a.value == 0xffffffff && !strcmp(a.reg, "ecx"));
}

Test(fault_operand, what_only_the_kernel_may_do)
{
	static const char *const all[] = {"\xf4", "\xfa", "\x0f\x30", "\x0f\x22\xd8", "\x0f\x01\x13", "\xec", "\x6c", "\xcd\x29"};
	for (size_t i = 0; i < sizeof(all) / sizeof(*all); i++)
		cr_expect(refused(all[i], strlen(all[i]), (struct user_regs_struct){.rbx = 0x3000}).is_privileged, "%zu", i);
	cr_expect(!refused("\x8b\x03", 2, (struct user_regs_struct){.rbx = BAD}).is_privileged);
}

Test(fault_operand, an_instruction_of_which_only_the_beginning_is_there_is_cut)
{
	const struct user_regs_struct regs = {0};
	cr_expect(refused("\x48\x8b", 2, regs).is_cut);
	cr_expect(!refused("\x8b\x03", 2, regs).is_cut);
}
