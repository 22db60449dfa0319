/* SPDX-License-Identifier: MIT */
/* Which system call a site makes: dynprobe must not name a call whose number is not certain. */
#include "tests/unit/trampoline/helper_calls.h"

#include <criterion/criterion.h>

#define PLACE(call, ...) PLACE_OF(dp_syscall_place, call, __VA_ARGS__)

Test(syscall_place, number_right_in_front_takes_the_entry)
{
	const struct dp_syscall_place p = PLACE(6, 0x90, MOV_EAX(257), SYSCALL, RET);
	cr_expect_eq(p.nr, 257);
	cr_expect_eq(p.entry, AT + 1);
	cr_expect_eq(p.exit, AT + 8);
}

Test(syscall_place, arguments_that_come_behind_the_number_are_waited_for)
{
	/* mov $14,%eax; lea 8(%rsp),%rsi; syscall */
	const struct dp_syscall_place p = PLACE(10, MOV_EAX(14), 0x48, 0x8d, 0x74, 0x24, 0x08, SYSCALL, RET);
	cr_expect_eq(p.nr, 14);
	cr_expect_eq(p.entry, AT + 10, "at the mov, rsi is not set yet");
}

Test(syscall_place, read_has_a_short_zero)
{
	const struct dp_syscall_place p = PLACE(2, 0x31, 0xc0, SYSCALL, RET); /* xor %eax,%eax */
	cr_expect_eq(p.nr, 0);
	cr_expect_eq(p.entry, AT + 2, "no jump fits on two bytes");
}

Test(syscall_place, one_of_two_ways_brings_another_number)
{
	/* test %edi,%edi; je to the call; mov $39,%eax; syscall */
	const struct dp_syscall_place p = PLACE(9, 0x85, 0xff, 0x74, 0x05, MOV_EAX(39), SYSCALL, RET);
	cr_expect_eq(p.nr, -1);
	cr_expect_eq(p.entry, AT + 9, "the mov is not on every path");
}

Test(syscall_place, both_ways_bring_the_same_number)
{
	/* mov $39,%eax; test %edi,%edi; je to the call; mov $39,%eax; syscall */
	const struct dp_syscall_place same = PLACE(14, MOV_EAX(39), 0x85, 0xff, 0x74, 0x05, MOV_EAX(39), SYSCALL, RET);
	const struct dp_syscall_place other = PLACE(14, MOV_EAX(40), 0x85, 0xff, 0x74, 0x05, MOV_EAX(39), SYSCALL, RET);
	cr_expect_eq(same.nr, 39);
	cr_expect_eq(other.nr, -1);
}

Test(syscall_place, a_branch_past_the_call_leads_to_its_exit)
{
	/* test %edi,%edi; je past the call; mov $39,%eax; syscall; ret */
	cr_expect(PLACE(9, 0x85, 0xff, 0x74, 0x07, MOV_EAX(39), SYSCALL, RET).joined);
	cr_expect_not(PLACE(9, 0x85, 0xff, 0x74, 0x08, MOV_EAX(39), SYSCALL, 0x90, RET).joined, "it leads behind the nop");
	cr_expect_not(PLACE(5, MOV_EAX(39), SYSCALL, RET).joined);
}

Test(syscall_place, number_from_an_argument_or_from_a_call)
{
	cr_expect_eq(PLACE(2, 0x89, 0xf8, SYSCALL, RET).nr, -1); /* mov %edi,%eax */
	/* mov $60,%edx; call; mov %edx,%eax: a call destroys edx */
	cr_expect_eq(PLACE(12, 0xba, 60, 0, 0, 0, 0xe8, 0, 0, 0, 0, 0x89, 0xd0, SYSCALL, RET).nr, -1);
	cr_expect_eq(PLACE(7, 0xba, 60, 0, 0, 0, 0x89, 0xd0, SYSCALL, 0xeb, 0xfa).nr, 60);
}

Test(syscall_place, number_lost_to_the_result_of_another_call)
{
	/* mov $39,%eax; syscall; syscall: the second one's number is the first one's result */
	const struct dp_syscall_place p = PLACE(7, MOV_EAX(39), SYSCALL, SYSCALL, RET);
	cr_expect_eq(p.nr, -1);
	cr_expect_eq(p.entry, AT + 7);
}

Test(syscall_place, bytes_inside_of_another_instruction)
{
	cr_expect_eq(PLACE(1, 0xb8, SYSCALL, 0, 0, RET).entry, 0); /* mov $0x50f,%eax */
}
