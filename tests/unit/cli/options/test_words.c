/* SPDX-License-Identifier: MIT */
/* -c "CMD": words as a shell splits them. */
#include "cli/options/options.h"

#include <criterion/criterion.h>
#include <string.h>

static void splits(const char *line, const char *const *want)
{
	char **words = NULL;
	struct dp_error *err = dp_words_split(line, &words);
	cr_assert_null(err, "%s", line);
	size_t n = 0;
	for (; want[n]; n++) {
		cr_assert_not_null(words[n], "%s: word %zu is missing", line, n);
		cr_expect_str_eq(words[n], want[n], "%s", line);
	}
	cr_expect_null(words[n], "%s: one word too many", line);
	dp_words_free(words);
}

static void refuses(const char *line, const char *what)
{
	char **words = NULL;
	struct dp_error *err = dp_words_split(line, &words);
	cr_assert_not_null(err, "%s", line);
	cr_expect_eq(err->tag, DP_TAG_USAGE);
	cr_expect(strstr(err->message, what), "%s", err->message);
	cr_expect_null(words);
	dp_error_destroy(err);
}

#define WORDS(...) ((const char *const[]){__VA_ARGS__, NULL})

Test(words, blanks_separate)
{
	splits("ls -l", WORDS("ls", "-l"));
	splits("  ls \t -l\n", WORDS("ls", "-l"));
}

Test(words, quotes_keep_blanks_and_vanish)
{
	splits("echo 'a  b' \"c d\"", WORDS("echo", "a  b", "c d"));
	splits("a'b'\"c\"d", WORDS("abcd"));
	splits("echo '' \"\"", WORDS("echo", "", ""));
}

Test(words, backslash_keeps_the_next_character)
{
	splits("a\\ b \\'", WORDS("a b", "'"));
	splits("\"a\\\"b\\n\"", WORDS("a\"b\\n"));
	splits("'a\\b'", WORDS("a\\b"));
}

Test(words, nothing_is_expanded)
{
	splits("echo $HOME *", WORDS("echo", "$HOME", "*"));
}

Test(words, what_only_a_shell_understands_is_refused)
{
	static const char *const lines[] = {"a | b", "a && b", "a; b", "a ; b", "a >out", "a > out", "a 2>&1", "a <in", "a &", "a ||b || c"};
	for (size_t i = 0; i < sizeof(lines) / sizeof(*lines); i++)
		refuses(lines[i], "sh -c");
	splits("a '|' \";\" \\> x=y&z a>b", WORDS("a", "|", ";", ">", "x=y&z", "a>b"));
}

Test(words, open_quotes_and_emptiness_are_refused)
{
	refuses("echo 'a", "single quote");
	refuses("echo \"a", "double quote");
	refuses("   ", "empty");
}
