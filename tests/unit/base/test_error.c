/* SPDX-License-Identifier: MIT */
/* Errors as values: causes, tags, and the printed text. */
#include "base/error.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

static char *printed(const struct dp_error *err)
{
	char *text = NULL;
	size_t n;
	FILE *f = open_memstream(&text, &n);
	dp_error_print(err, f);
	fclose(f);
	return text;
}

Test(error, a_chain_prints_top_down_with_the_causes_tag_and_remedy)
{
	errno = EPERM;
	struct dp_error *err = dp_error_wrap(dp_error_sys(DP_TAG_PERMISSION, "seizing %d", 7), "probing '%s'", "foo");
	cr_expect_eq(err->tag, DP_TAG_PERMISSION);
	cr_expect_eq(err->sys, EPERM);
	char *text = printed(err);
	cr_expect(strstr(text, "dynprobe: error: probing 'foo' [DP-PERMISSION]\n"), "%s", text);
	cr_expect(strstr(text, "caused by: seizing 7: Operation not permitted\n"), "%s", text);
	cr_expect(strstr(text, dp_tag_remedy(DP_TAG_PERMISSION)), "%s", text);
	free(text);
	cr_expect_null(dp_error_destroy(err));
	cr_expect_null(dp_error_destroy(NULL));
}

Test(error, every_tag_has_a_name_a_meaning_and_a_remedy_and_is_found)
{
	for (int i = 0; i < DP_TAG_COUNT; i++) {
		enum dp_tag tag = (enum dp_tag)i, found = DP_TAG_COUNT;
		cr_expect(!strncmp(dp_tag_name(tag), "DP-", 3));
		cr_expect(*dp_tag_meaning(tag) && *dp_tag_remedy(tag), "%s", dp_tag_name(tag));
		cr_expect(*dp_tag_theme(tag), "%s", dp_tag_name(tag));
		cr_expect(dp_tag_find(dp_tag_name(tag), &found) && found == tag, "%s", dp_tag_name(tag));
		cr_expect(dp_tag_find(dp_tag_name(tag) + 3, &found) && found == tag, "%s", dp_tag_name(tag));
	}
	enum dp_tag none;
	cr_expect_not(dp_tag_find("DP-NO-SUCH-TAG", &none));
}

Test(error, what_a_program_put_into_a_name_is_no_command_to_the_terminal)
{
	struct dp_error *err = dp_error(DP_TAG_SYS, "a\033]0;b\a\tc\nd\x7f\xc2\x9bz\xc3\xa9");
	cr_expect_str_eq(err->message, "a?]0;b?\tc\nd???z\xc3\xa9");
	dp_error_destroy(err);
}

Test(error, its_text_has_the_causes_on_one_line)
{
	struct dp_error *err = dp_error_wrap(dp_error(DP_TAG_GONE, "no thread"), "probing '%s'", "foo");
	char *text = dp_error_text(err);
	cr_expect_str_eq(text, "probing 'foo': no thread");
	free(text);
	dp_error_destroy(err);
}
