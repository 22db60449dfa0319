/* SPDX-License-Identifier: MIT */
/* explain: what a tag means and what to do about it. */
#include "base/buf.h"
#include "cli/commands/command.h"
#include "probes/point/suggest.h"

#include <ctype.h>
#include <string.h>

#define LONGEST 64u

static void explain_tag(enum dp_tag tag)
{
	printf("%s\n  %s.\n  What to do: %s.\n  Comes from: %s.\n", dp_tag_name(tag), dp_tag_meaning(tag), dp_tag_remedy(tag),
	       dp_tag_theme(tag));
}

static void list_all(void)
{
	for (int i = 0; i < DP_TAG_COUNT; i++)
		printf("%-18s %s\n", dp_tag_name((enum dp_tag)i), dp_tag_meaning((enum dp_tag)i));
}

/* In the form of the tags: capitals, without "DP-". */
static const char *as_written(const char *word, char buf[static LONGEST])
{
	size_t n = 0;
	for (; word[n] && n < LONGEST - 1; n++)
		buf[n] = (char)(word[n] == '_' ? '-' : toupper((unsigned char)word[n]));
	buf[n] = '\0';
	return strncmp(buf, "DP-", 3) ? buf : buf + 3;
}

/* Names that resemble the word, or else contain it: people remember "seccomp" or "short". */
static void suggest(const char *word, struct dp_buf *to)
{
	char buf[LONGEST];
	struct dp_suggest s;
	const char *wanted = as_written(word, buf);
	dp_suggest_init(&s, wanted, strlen(wanted));
	for (int i = 0; i < DP_TAG_COUNT; i++) {
		const char *name = dp_tag_name((enum dp_tag)i) + strlen("DP-");
		dp_suggest_offer(&s, name, strlen(name));
	}
	const bool none = !s.n && strlen(wanted) > 2;
	for (int i = 0; i < DP_TAG_COUNT && none && s.n < DP_SUGGESTIONS; i++) {
		const char *name = dp_tag_name((enum dp_tag)i) + strlen("DP-");
		if (strstr(name, wanted))
			s.best[s.n++] = (struct dp_suggestion){.name = name, .len = strlen(name)};
	}
	for (size_t i = 0; i < s.n; i++) {
		s.best[i].name -= strlen("DP-");
		s.best[i].len += strlen("DP-");
	}
	dp_suggest_print(&s, to);
}

static void unknown(const char *word)
{
	struct dp_buf b = {0};
	suggest(word, &b);
	fprintf(stderr, "dynprobe: error: unknown tag '%s'%s [%s]\n  What to do: dynprobe explain lists all tags.\n", word,
	        dp_buf_str(&b), dp_tag_name(DP_TAG_USAGE));
	dp_buf_fini(&b);
}

int dp_command_explain(char *const words[])
{
	enum dp_tag tag;
	int status = 0;
	if (*words && (!strcmp(*words, "--help") || !strcmp(*words, "-h"))) {
		puts("Usage: dynprobe explain [TAG...]\n\nExplains errors and what to do about them. Without TAG, or with --all: "
		     "one line for "
		     "each.\nTAG is DP-TOO-SHORT, too-short, ...; for an unknown one the exit status is 125, and similar ones "
		     "are named.");
		return 0;
	}
	if (!*words || !strcmp(*words, "--all")) {
		list_all();
		return 0;
	}
	for (size_t i = 0; words[i]; i++) {
		char buf[LONGEST];
		if (!dp_tag_find(as_written(words[i], buf), &tag)) {
			unknown(words[i]);
			status = DP_EXIT_FAILURE;
			continue;
		}
		if (i)
			putchar('\n');
		explain_tag(tag);
	}
	return status;
}
