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

/* A tag may have several cases; what helps in one of them is printed instead, also if the tag prints none. */
Test(error, a_case_has_a_remedy_of_its_own)
{
	struct dp_error *err = dp_error_advise(dp_error(DP_TAG_REMOTE, "mmap in the target"), "free memory");
	cr_expect_str_eq(dp_error_remedy(err), "free memory");
	err = dp_error_wrap(err, "probing 'foo'");
	cr_expect_str_eq(dp_error_remedy(err), "free memory", "it is kept below a wrapper");
	char *text = printed(err);
	cr_expect(strstr(text, "  what to do: free memory\n"), "%s", text);
	cr_expect_null(strstr(text, dp_tag_remedy(DP_TAG_REMOTE)), "%s", text);
	free(text);
	err = dp_error_advise(err, "detach");
	cr_expect_str_eq(dp_error_remedy(err), "detach", "the last one to speak knows most");
	struct dp_error *limit = dp_error(DP_TAG_LIMIT, "too many mappings");
	limit->cause = err;
	cr_expect_str_eq(dp_error_remedy(limit), dp_tag_remedy(DP_TAG_LIMIT), "a cause of another tag is another case");
	dp_error_destroy(limit);
	cr_expect_eq(dp_error_advise(dp_error_nomem(), "free memory"), dp_error_nomem());
	cr_expect_str_eq(dp_error_remedy(dp_error_nomem()), dp_tag_remedy(DP_TAG_NOMEM));
	err = dp_error_advise(dp_error(DP_TAG_SYS, "open"), "ask again");
	text = printed(err);
	cr_expect(strstr(text, "  what to do: ask again\n"), "%s", text);
	free(text);
	dp_error_destroy(err);
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
