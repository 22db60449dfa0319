/* SPDX-License-Identifier: MIT */
/* Steps from frame to frame by the tables of a made library, with made registers and memory. */
#include "helper_elf.h"
#include "probes/frame/frame.h"
#include "probes/image/module.h"

#include <criterion/criterion.h>
#include <string.h>

enum { RAX = 0, RDX = 1, RBX = 3 };
#define BASE  UINT64_C(0x7f0000000000)
#define STACK UINT64_C(0x7000)

static const char code[] = ".text\n"
                           ".globl plain, pushed, by_expression, first, signalled, bare\n"
                           "plain: .cfi_startproc\n nop\n ret\n .cfi_endproc\n"
                           /* rbx at CFA-16; CFA = rsp+16; rdx is the caller's rax */
                           "pushed: .cfi_startproc\n .cfi_def_cfa_offset 16\n .cfi_offset rbx, -16\n .cfi_register rdx, rax\n"
                           " nop\n ret\n .cfi_endproc\n"
                           /* CFA = *(rsp+8); rbx = *(CFA+8), which counts from the CFA; r12 = CFA+4 itself */
                           "by_expression: .cfi_startproc\n .cfi_escape 0x0f, 3, 0x77, 8, 0x06\n"
                           " .cfi_escape 0x10, 3, 2, 0x23, 8\n .cfi_escape 0x16, 12, 2, 0x34, 0x22\n nop\n ret\n .cfi_endproc\n"
                           "first: .cfi_startproc\n .cfi_undefined rip\n nop\n hlt\n .cfi_endproc\n"
                           "signalled: .cfi_startproc\n .cfi_signal_frame\n nop\n ret\n .cfi_endproc\n"
                           "bare: nop\n ret\n"
                           ".section .note.GNU-stack,\"\",@progbits\n";

static uint64_t stack[8] = {0x1111, STACK + 32, 0x3333, 0x4444, 0x5555, 0x6666};
static struct dp_image *image;

static bool get(void *data, uint64_t addr, void *buf, size_t n)
{
	(void)data;
	if (addr < STACK || addr - STACK > sizeof(stack) - n)
		return false;
	memcpy(buf, (const uint8_t *)stack + (addr - STACK), n);
	return true;
}

static const struct dp_frame_memory memory = {get, NULL};

static void set_up(void)
{
	write_file("t.S", code);
	shell("gcc -shared -nostdlib t.S -o t.so");
	image = image_of("t.so", BASE);
}

static void tear_down(void)
{
	dp_image_destroy(image);
}

static bool rule_of(const char *function, struct dp_frule *ret)
{
	const dp_addr pc = dp_addr_of(address_of(image, function));
	return dp_frule_of_module(dp_image_module_at(image, pc), pc, ret);
}

static struct dp_frame_regs here(void)
{
	struct dp_frame_regs r = {.known = (1u << DP_DWARF_REGS) - 1};
	for (unsigned i = 0; i < DP_DWARF_REGS; i++)
		r.value[i] = 100 + i;
	r.value[DP_FRAME_RSP] = STACK;
	return r;
}

static struct dp_frame_regs step(const char *function, uint64_t cfa)
{
	struct dp_frule rule;
	struct dp_frame_regs regs = here(), caller;
	cr_assert(rule_of(function, &rule) && !rule.is_end && !rule.is_signal);
	cr_assert_eq(dp_frule_cfa(&rule, &regs, &memory), cfa);
	cr_assert(dp_frule_step(&rule, &regs, cfa, &memory, &caller));
	cr_assert_eq(caller.value[DP_FRAME_RSP], cfa);
	return caller;
}

static bool lost(const struct dp_frame_regs *r, unsigned i)
{
	return !(r->known >> i & 1) && !r->value[i];
}

TestSuite(frame, .init = set_up, .fini = tear_down);

Test(frame, registers_that_calls_keep_and_those_they_do_not)
{
	const struct dp_frame_regs r = step("plain", STACK + 8);
	cr_assert_eq(r.value[DP_FRAME_PC], 0x1111);
	cr_assert_eq(r.value[RBX], 100 + RBX);
	cr_assert(lost(&r, RAX) && lost(&r, RDX));
}

Test(frame, registers_in_memory_and_in_registers)
{
	const struct dp_frame_regs r = step("pushed", STACK + 16);
	cr_assert_eq(r.value[DP_FRAME_PC], STACK + 32);
	cr_assert_eq(r.value[RBX], 0x1111);
	cr_assert_eq(r.value[RDX], 100 + RAX);
}

Test(frame, expressions)
{
	const struct dp_frame_regs r = step("by_expression", STACK + 32);
	cr_assert_eq(r.value[DP_FRAME_PC], 0x4444);
	cr_assert_eq(r.value[RBX], 0x6666);
	cr_assert_eq(r.value[12], STACK + 36);
}

Test(frame, the_end_and_signal_frames)
{
	struct dp_frule rule;
	cr_assert(rule_of("first", &rule) && rule.is_end);
	cr_assert(rule_of("signalled", &rule) && rule.is_signal);
}

Test(frame, nothing_is_guessed)
{
	struct dp_frule rule;
	struct dp_frame_regs regs = here(), caller;
	cr_assert_not(rule_of("bare", &rule) || rule.is_known);
	cr_assert_eq(dp_frule_cfa(&rule, &regs, &memory), 0);
	cr_assert(rule_of("plain", &rule));
	cr_assert_not(dp_frule_step(&rule, &regs, STACK + 8 + sizeof(stack), &memory, &caller), "no memory there");
	cr_assert(lost(&caller, DP_FRAME_PC));
	regs.known &= ~(1u << DP_FRAME_RSP);
	cr_assert_eq(dp_frule_cfa(&rule, &regs, &memory), 0);
}
