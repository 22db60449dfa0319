/* SPDX-License-Identifier: MIT */
/* Where the calling convention passes values of types that no compiler made: damaged debug information must not hang the tool. */
#include "probes/expr/scope/scope_internal.h"

#include <criterion/criterion.h>

TestSuite(abi_args, .timeout = 30);

static bool is_in_registers(const struct dp_ctype *type)
{
	static struct dp_scope s;
	const struct dp_storage storage = dp_abi_result(&s, type);
	const bool any = storage.n && storage.piece[0].kind == DP_PIECE_VALUE;
	dp_arena_fini(&s.arena);
	return any;
}

Test(abi_args, an_array_of_integers_is_in_registers)
{
	const struct dp_ctype t = {.kind = DP_CTYPE_ARRAY, .size = 16, .count = 4, .to = &dp_ctype_int};
	cr_assert(is_in_registers(&t));
}

Test(abi_args, an_array_of_itself_ends)
{
	struct dp_ctype t = {.kind = DP_CTYPE_ARRAY, .size = 1, .count = 16};
	t.to = &t;
	cr_assert_not(is_in_registers(&t));
}

Test(abi_args, elements_without_a_size_are_not_counted)
{
	const struct dp_ctype empty = {.kind = DP_CTYPE_RECORD, .members_known = true};
	const struct dp_ctype t = {.kind = DP_CTYPE_ARRAY, .size = 8, .count = UINT64_MAX, .to = &empty};
	cr_assert_not(is_in_registers(&t));
}

/* Each level has a hundred members at offset 0: 100^7 leaves. */
Test(abi_args, records_that_branch_without_end_end)
{
	enum { LEVELS = 7, WIDTH = 100 };
	static struct dp_member member[LEVELS][WIDTH];
	static struct dp_ctype level[LEVELS + 1];
	level[LEVELS] = dp_ctype_int;
	for (int i = LEVELS; i--;) {
		for (int k = 0; k < WIDTH; k++)
			member[i][k] = (struct dp_member){.type = &level[i + 1]};
		level[i] = (struct dp_ctype){
		        .kind = DP_CTYPE_RECORD, .size = 8, .members_known = true, .member = member[i], .nmembers = WIDTH};
	}
	cr_assert_not(is_in_registers(&level[0]));
}
