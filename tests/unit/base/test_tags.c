/* SPDX-License-Identifier: MIT */
/*
 * The texts of tags.def are short and plain. `dynprobe explain` adds the full stop. `build/tests/base_test_tags` prints all of
 * them as a table, for review.
 */
#include "base/error.h"

#include <criterion/criterion.h>
#include <ctype.h>
#include <stdio.h>
#include <string.h>

#define MOST 210u /* maximum characters of a text */

static const char *const id[] = {
#define DP_TAG(id, text, meaning, remedy) #id,
#include "base/tags.def"
#undef DP_TAG
};

/* Words that hide who does what; plain English names it. */
static const char *const banned[] = {
        "somebody", "nobody",   "anybody", "everybody", "whoever", "whatever", "thereof", "therein",  "whereof",
        "what is",  "what was", "what it", "what a",    "what an", "rightly",  "of ours", "is to be", "what stands",
};

/* Does `text` hold `words` as whole words? */
static bool says(const char *text, const char *words)
{
	const size_t n = strlen(words);
	for (const char *at = text; (at = strcasestr(at, words)); at++)
		if ((at == text || !isalnum((unsigned char)at[-1])) && !isalnum((unsigned char)at[n]))
			return true;
	return false;
}

/* A phrase begins in lower case, unless with a name: "LTTng rejected the request". */
static bool begins_as_a_phrase(const char *text)
{
	unsigned capitals = 0;
	for (const char *c = text; isalnum((unsigned char)*c); c++)
		capitals += isupper((unsigned char)*c) != 0;
	return islower((unsigned char)*text) || capitals > 1;
}

static void check(const char *name, const char *which, const char *text)
{
	const size_t n = strlen(text);
	cr_assert_gt(n, 0u, "%s has no %s", name, which);
	cr_expect(begins_as_a_phrase(text), "%s: the %s does not begin as a phrase: %s", name, which, text);
	cr_expect_null(strchr(".,;:!? ", text[n - 1]), "%s: the %s ends in '%c': %s", name, which, text[n - 1], text);
	cr_expect_leq(n, MOST, "%s: the %s has %zu characters, %u are enough: %s", name, which, n, MOST, text);
	cr_expect_null(strstr(text, "  "), "%s: two spaces in the %s: %s", name, which, text);
	for (size_t i = 0; i < sizeof(banned) / sizeof(*banned); i++)
		cr_expect_not(says(text, banned[i]), "%s: the %s says '%s': %s", name, which, banned[i], text);
}

Test(tags, are_a_table_to_be_read_one_by_one)
{
	puts("| id | tag | meaning | remedy |\n| --- | --- | --- | --- |");
	for (int i = 0; i < DP_TAG_COUNT; i++) {
		const enum dp_tag tag = (enum dp_tag)i;
		printf("| %s | %s | %s | %s |\n", id[i], dp_tag_name(tag), dp_tag_meaning(tag), dp_tag_remedy(tag));
	}
	cr_expect_eq(fflush(stdout), 0);
}

Test(tags, names_are_capitals_and_each_is_there_once)
{
	for (int i = 0; i < DP_TAG_COUNT; i++) {
		const char *name = dp_tag_name((enum dp_tag)i);
		cr_expect_eq(strspn(name, "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-"), strlen(name), "%s", name);
		for (int k = 0; k < i; k++)
			cr_expect_str_neq(name, dp_tag_name((enum dp_tag)k));
	}
}

Test(tags, meanings_remedies_and_themes_are_short_plain_phrases)
{
	for (int i = 0; i < DP_TAG_COUNT; i++) {
		const enum dp_tag tag = (enum dp_tag)i;
		check(dp_tag_name(tag), "meaning", dp_tag_meaning(tag));
		check(dp_tag_name(tag), "remedy", dp_tag_remedy(tag));
		check(dp_tag_name(tag), "theme", dp_tag_theme(tag));
	}
}
