/* SPDX-License-Identifier: MIT */
/* Instructions as text: branch targets are relative to the shown address, and no byte past the end is read. */
#include "trampoline/code/disassemble.h"

#include <criterion/criterion.h>
#include <string.h>

#define TEXT_OF(addr, ...)                                                                                                       \
	({                                                                                                                       \
		static char text_[128];                                                                                          \
		const uint8_t bytes_[] = {__VA_ARGS__};                                                                          \
		const size_t len_ = dp_disassemble(bytes_, sizeof(bytes_), addr, text_, sizeof(text_));                          \
		cr_expect_eq(len_, sizeof(bytes_), "%s", text_);                                                                 \
		text_;                                                                                                           \
	})

Test(disassemble, at_t_syntax_with_addresses_as_shown)
{
	cr_expect_str_eq(TEXT_OF(0x1000, 0x55), "push %rbp");
	cr_expect_str_eq(TEXT_OF(0x1000, 0x48, 0x89, 0xe5), "mov %rsp, %rbp");
	cr_expect_str_eq(TEXT_OF(0x1000, 0xe8, 0x10, 0x00, 0x00, 0x00), "call 0x1015");
	cr_expect_str_eq(TEXT_OF(0x7f0000001000, 0xe8, 0x10, 0x00, 0x00, 0x00), "call 0x7f0000001015");
	cr_expect_str_eq(TEXT_OF(0x1000, 0x75, 0xfe), "jnz 0x1000");
	/* AVX-512, which older tables do not have. */
	cr_expect(strstr(TEXT_OF(0x1000, 0x62, 0xf1, 0xfe, 0x48, 0x6f, 0x06), "vmovdqu64"));
}

Test(disassemble, what_is_none_or_cut_off)
{
	const uint8_t bytes[] = {0x06, 0xe8, 0x10, 0x00};
	char text[32];
	cr_expect_eq(dp_disassemble(bytes, sizeof(bytes), 0, text, sizeof(text)), 0);
	cr_expect_str_eq(text, "(bad)");
	cr_expect_eq(dp_disassemble(bytes + 1, sizeof(bytes) - 1, 0, text, sizeof(text)), 0);
	cr_expect_str_eq(text, "(bad)");
}

Test(disassemble, a_text_that_does_not_fit_is_cut)
{
	const uint8_t bytes[] = {0x62, 0xf1, 0xfe, 0x48, 0x6f, 0x06};
	char text[16];
	memset(text, 'x', sizeof(text));
	cr_expect_eq(dp_disassemble(bytes, sizeof(bytes), 0, text, 8), sizeof(bytes));
	cr_expect_lt(strnlen(text, 8), 8);
	cr_expect_eq(text[8], 'x');
}
