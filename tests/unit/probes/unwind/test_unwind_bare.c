/* SPDX-License-Identifier: MIT */
/*
 * Functions without an unwind table get rows from stack-effect analysis; those with one keep theirs; code between functions has
 * none.
 */
#include "agent/unwind/unwind.h"
#include "probes/probes.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The second has no size: it extends to the third, which has a table. */
__asm__(".pushsection .text.bare, \"ax\", @progbits\n"
        ".p2align 4\n"
        ".type bare_sized, @function\n"
        "bare_sized: movl $0x5a17ed, %eax; nop; nop; ret\n"
        ".size bare_sized, . - bare_sized\n"
        "between: int3; int3; int3; int3; int3; int3; int3; int3\n"
        ".type bare_sizeless, @function\n"
        "bare_sizeless: movl $0x5a17e55, %eax; ret\n"
        ".type described, @function\n"
        "described: .cfi_startproc\n"
        "push %rbp\n"
        ".cfi_adjust_cfa_offset 8\n"
        "pop %rbp\n"
        ".cfi_adjust_cfa_offset -8\n"
        "ret\n"
        ".cfi_endproc\n"
        ".size described, . - described\n"
        ".popsection\n");
extern const uint8_t bare_sized[], between[], bare_sizeless[], described[];

static size_t sizes[2];
static int followed_described;

/* Reports for the two that the CFA is rsp + 1000, and from the second byte on rsp + 2000. */
static void follow(const uint8_t *code, size_t n, dp_unwind_each each, void *data)
{
	struct dp_unwind_row row = {.kind = DP_UNWIND_REG, .reg = 4, .flags = DP_UNWIND_PLAIN, .off = 1000};
	const uint8_t *const mine[] = {bare_sized, bare_sizeless};

	followed_described += n > 3 && code[0] == 0x55 && code[1] == 0x5d && code[2] == 0xc3;
	for (int i = 0; i < 2; i++)
		if (n >= 5 && !memcmp(code, mine[i], 5)) {
			sizes[i] = n;
			each(0, &row, data);
			row.off = 2000;
			each(1, &row, data);
		}
}

static uint8_t *compile(dp_unwind_follow how)
{
	char *maps = calloc(1, 1 << 20);
	struct dp_image *image = NULL;
	FILE *f = fopen("/proc/self/maps", "re");
	uint8_t *block;
	size_t size;

	cr_assert(maps && f);
	cr_assert_gt(fread(maps, 1, (1 << 20) - 1, f), 0);
	fclose(f);
	cr_assert_null(dp_image_create(maps, "", 0, &image));
	cr_assert_null(dp_unwind_compile(image, NULL, how, &block, &size));
	dp_image_destroy(image);
	free(maps);
	return block;
}

static const struct dp_unwind_row *rule_at(const uint8_t *block, uint64_t p)
{
	const struct dp_unwind *head = (const void *)block;
	const struct dp_unwind_range *range = (const void *)(block + head->ranges_offset);
	const struct dp_unwind_row *rule = (const void *)(block + head->rows_offset);

	for (; p >= range->end; range++)
		cr_assert_lt((const uint8_t *)range, block + head->rows_offset);
	const uint32_t *pcs = (const void *)(block + range->pc_offset);
	const uint16_t *rows = (const void *)(block + range->row_offset);
	uint32_t i = range->n;
	while (i && pcs[i - 1] > p - range->start)
		i--;
	return &rule[i ? rows[i - 1] : 0];
}

/* The rule at `p`: its offset, or -1 if nothing is known. */
static int32_t off_at(const uint8_t *block, uint64_t p)
{
	const struct dp_unwind_row *rule = rule_at(block, p);

	return rule->kind ? rule->off : -1;
}

Test(unwind_bare, functions_without_tables_are_followed)
{
	uint8_t *block = compile(follow);

	cr_assert_eq(off_at(block, (uint64_t)bare_sized), 1000);
	cr_assert_eq(off_at(block, (uint64_t)bare_sized + 1), 2000);
	cr_assert_eq(off_at(block, (uint64_t)between - 1), 2000);
	cr_assert_eq(off_at(block, (uint64_t)bare_sizeless), 1000);
	cr_assert_eq(off_at(block, (uint64_t)described - 1), 2000);
	cr_assert_eq(sizes[0], (size_t)(between - bare_sized));
	cr_assert_eq(sizes[1], (size_t)(described - bare_sizeless));
	free(block);
}

Test(unwind_bare, what_lies_between_and_tables_stay_as_they_are)
{
	uint8_t *block = compile(follow);

	cr_assert_eq(off_at(block, (uint64_t)between), -1);
	cr_assert_eq(off_at(block, (uint64_t)bare_sizeless - 1), -1);
	cr_assert_eq(off_at(block, (uint64_t)described), 8);
	cr_assert_eq(off_at(block, (uint64_t)described + 1), 16);
	cr_assert_eq(off_at(block, (uint64_t)described + 2), 8);
	cr_assert_eq(followed_described, 0);
	free(block);
}

/* Whatever the analysis reports, its rows are marked as guesses: the walker must not read directly by them. */
Test(unwind_bare, what_is_followed_is_a_guess)
{
	uint8_t *block = compile(follow);

	cr_assert_eq(rule_at(block, (uint64_t)bare_sized)->flags, DP_UNWIND_GUESSED);
	cr_assert_eq(rule_at(block, (uint64_t)bare_sizeless)->flags, DP_UNWIND_GUESSED);
	cr_assert_eq(rule_at(block, (uint64_t)described)->flags, DP_UNWIND_PLAIN);
	free(block);
}

Test(unwind_bare, nobody_to_follow_them)
{
	uint8_t *block = compile(NULL);

	cr_assert_eq(off_at(block, (uint64_t)bare_sized), -1);
	cr_assert_eq(off_at(block, (uint64_t)described + 1), 16);
	free(block);
}
