/* SPDX-License-Identifier: MIT */
/* Which system calls are hooked: if one were missed, a program could block SIGTRAP, and a trap would kill it. */
#include "tests/unit/trampoline/helper_calls.h"

#include <criterion/criterion.h>
#include <string.h>

#define PLACE(call, ...) PLACE_OF(dp_hook_place, call, __VA_ARGS__)

Test(hook_place, number_in_front_takes_the_jump)
{
	const struct dp_hook_place p = PLACE(6, 0x90, MOV_EAX(14), SYSCALL, RET);
	cr_assert_eq(p.site, AT + 1);
	cr_assert_eq(p.syscall, AT + 6);
	cr_assert_not(p.any);
}

Test(hook_place, every_number_that_matters_and_no_other)
{
	static const unsigned wanted[] = {13, 14, 130, 270, 271, 281, 333, 426, 435, 441};
	for (unsigned nr = 0, i = 0; nr < 500; nr++) {
		const bool is = i < sizeof(wanted) / sizeof(*wanted) && wanted[i] == nr;
		const struct dp_hook_place p = PLACE(5, 0xb8, (uint8_t)nr, (uint8_t)(nr >> 8), 0, 0, SYSCALL, RET);
		cr_assert_eq(p.site != 0, is, "%u", nr);
		i += is;
	}
}

Test(hook_place, arguments_between_number_and_call_are_moved_along)
{
	/* mov $14,%eax; lea 8(%rsp),%rsi; syscall */
	const struct dp_hook_place p = PLACE(10, MOV_EAX(14), 0x48, 0x8d, 0x74, 0x24, 0x08, SYSCALL, RET);
	cr_assert_eq(p.site, AT + 5);
	cr_assert_not(p.any);
}

Test(hook_place, number_that_another_way_may_bring)
{
	/* test %edi,%edi; je to the call; mov $39,%eax; syscall */
	const struct dp_hook_place p = PLACE(9, 0x85, 0xff, 0x74, 0x05, MOV_EAX(39), SYSCALL, RET);
	cr_assert_eq(p.site, AT + 9, "the mov is not on every path");
	cr_assert(p.any);
}

Test(hook_place, number_from_an_argument)
{
	/* mov %edi,%eax; syscall */
	const struct dp_hook_place p = PLACE(2, 0x89, 0xf8, SYSCALL, RET);
	cr_assert_eq(p.site, AT + 2);
	cr_assert_eq(p.other, AT);
	cr_assert(p.any);
}

Test(hook_place, number_that_every_way_brings_from_a_register)
{
	/* mov $60,%edx; mov %edx,%eax; syscall; jmp back */
	const struct dp_hook_place harmless = PLACE(7, 0xba, 60, 0, 0, 0, 0x89, 0xd0, SYSCALL, 0xeb, 0xfa);
	const struct dp_hook_place one = PLACE(7, 0xba, 14, 0, 0, 0, 0x89, 0xd0, SYSCALL, 0xeb, 0xfa);
	cr_assert_eq(harmless.site, 0);
	cr_assert_neq(one.site, 0);
	/* The same with a call in between, which destroys edx. */
	const struct dp_hook_place lost = PLACE(12, 0xba, 60, 0, 0, 0, 0xe8, 0, 0, 0, 0, 0x89, 0xd0, SYSCALL, RET);
	cr_assert_neq(lost.site, 0);
}

Test(hook_place, bytes_inside_another_instruction)
{
	const struct dp_hook_place p = PLACE(1, 0xb8, SYSCALL, 0, 0, RET); /* mov $0x50f,%eax */
	cr_assert_eq(p.site, 0);
}

Test(hook_place, jump_that_would_cross_a_page_is_not_the_site)
{
	static uint8_t code[4200];
	memset(code, 0x90, sizeof(code));
	memcpy(code + 4093, (const uint8_t[]){MOV_EAX(14), SYSCALL, RET}, 8);
	const struct dp_hook_place p = PLACE_IN(dp_hook_place, code, sizeof(code), 4098);
	cr_assert_eq(p.site, AT + 4098);
}

Test(hook_place, trap_unsafe_where_a_call_is_in_no_function)
{
	static const uint8_t code[32] = {[17] = 0xb8, 14, 0, 0, 0, 0x0f, 0x05, 0xc3};
	static const uint8_t data[32] = {[22] = 0x0f, 0x05};
	struct helper_module m;
	struct dp_hook_place p;
	helper_code(&m, AT, code, sizeof(code));
	m.text.function = m.text.size = 0;
	struct dp_error *err = dp_hook_place(&m.text, AT + 22, &p);
	cr_assert(err && err->tag == DP_TAG_TRAP_UNSAFE);
	dp_error_destroy(err);
	helper_code(&m, AT, data, sizeof(data));
	m.text.function = m.text.size = 0;
	err = dp_hook_place(&m.text, AT + 22, &p);
	cr_assert_null(err);
	cr_assert_eq(p.site, 0, "constants of hand-written code");
}

Test(hook_place, own_libc_is_known)
{
	struct helper_module m;
	unsigned hooked = 0, asked = 0, calls = 0;
	helper_libc(&m);
	for (uint64_t at = m.code; at + 2 <= m.code_end; at++) {
		struct dp_hook_place p;
		if (memcmp((const void *)(uintptr_t)at, (const uint8_t[]){SYSCALL}, 2) != 0 || !helper_function(&m, at))
			continue;
		struct dp_error *err = dp_hook_place(&m.text, at, &p);
		cr_assert_null(err, "%s", err ? err->message : "");
		calls++;
		hooked += p.site && !p.any;
		asked += p.site && p.any;
	}
	cr_assert_geq(calls, 200);
	cr_assert_geq(hooked, 10);
	cr_assert_leq(asked, calls / 8, "%u of %u", asked, calls);
}
