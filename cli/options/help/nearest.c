/* SPDX-License-Identifier: MIT */
/* Words of the command line that mean nothing here: what was probably meant, and what to type. */
#include "cli/options/options_table.h"
#include "probes/point/suggest.h"

#include <ctype.h>
#include <string.h>

#define LONGEST 64u /* of an option's name as typed */

static struct dp_error *finish(struct dp_buf *text)
{
	struct dp_error *err = text->failed ? dp_error_nomem() : dp_error(DP_TAG_USAGE, "%s", dp_buf_str(text));
	dp_buf_fini(text);
	return err;
}

/* ---- options ------------------------------------------------------------------------------------------------------------- */

/* getopt takes the beginning of a name for the option if only one begins so. */
static bool list_ambiguous(enum dp_verb verb, const char *typed, struct dp_buf *text)
{
	size_t n = 0;
	for (size_t i = 0; *typed && i < DP_OPTION_ROWS; i++)
		if (dp_option_of(&dp_option_rows[i], verb) && !strncmp(dp_option_rows[i].name, typed, strlen(typed)))
			dp_buf_printf(text, "%s--%s", n++ ? ", " : " may be ", dp_option_rows[i].name);
	return n;
}

static void suggest_option(enum dp_verb verb, const char *typed, struct dp_buf *text)
{
	char word[DP_OPTION_ROWS][LONGEST];
	struct dp_suggest s;
	dp_suggest_init(&s, typed, strlen(typed));
	for (size_t i = 0; i < DP_OPTION_ROWS; i++) {
		if (!dp_option_of(&dp_option_rows[i], verb))
			continue;
		snprintf(word[i], LONGEST, "--%s", dp_option_rows[i].name);
		dp_suggest_offer(&s, word[i], strlen(word[i]));
	}
	dp_suggest_print(&s, text);
}

struct dp_error *dp_option_unknown(enum dp_verb verb, const char *word)
{
	const char *of = dp_verb_word(verb);
	char typed[LONGEST];
	struct dp_buf text = {0};
	snprintf(typed, sizeof(typed), "%.*s", (int)strcspn(word, "="), word);
	const bool is_long = !strncmp(typed, "--", 2);
	dp_buf_printf(&text, "%s", typed);
	if (is_long && list_ambiguous(verb, typed + 2, &text))
		return finish(&text);
	dp_buf_fini(&text);
	if (of)
		dp_buf_printf(&text, "dynprobe %s has no option %s", of, typed);
	else
		dp_buf_printf(&text, "unknown option %s", typed);
	const size_t before = text.len;
	if (is_long)
		suggest_option(verb, typed, &text);
	if (text.len == before)
		dp_buf_printf(&text, "; see dynprobe %s%s--help", of ? of : "", of ? " " : "");
	return finish(&text);
}

/* ---- commands ------------------------------------------------------------------------------------------------------------ */

static void offer(struct dp_suggest *s, const char *word)
{
	dp_suggest_offer(s, word, strlen(word));
}

struct dp_error *dp_command_unknown(const char *word)
{
	static const char *const others[] = {"help", "explain", "completion", "enable-event", "disable-event", "trace"};
	struct dp_suggest s;
	struct dp_buf text = {0};
	dp_suggest_init(&s, word, strlen(word));
	for (int i = DP_VERB_RUN + 1; i < DP_VERB_COUNT; i++)
		offer(&s, dp_verb_word((enum dp_verb)i));
	for (size_t i = 0; i < sizeof(others) / sizeof(*others); i++)
		offer(&s, others[i]);
	dp_buf_printf(&text, "dynprobe has no command '%s'", word);
	dp_suggest_print(&s, &text);
	if (!s.n)
		dp_buf_printf(&text, "; to start that program, name the probes first: dynprobe --function SPEC -- %s", word);
	return finish(&text);
}

/* ---- other words --------------------------------------------------------------------------------------------------------- */

static bool is_number(const char *word)
{
	return *word && !word[strspn(word, "0123456789")];
}

/* Behind the options of a run in running processes: a command is not possible there. */
static struct dp_error *beside_processes(const char *word)
{
	enum dp_verb verb;
	if (is_number(word))
		return dp_error(DP_TAG_USAGE, "unexpected argument '%s'; for several processes: --pid 12,14, or repeat --pid",
		                word);
	if (dp_verb_find(word, &verb))
		return dp_error(DP_TAG_USAGE, "'%s' comes first: dynprobe %s --pid PID", word, word);
	return dp_error(DP_TAG_USAGE, "unexpected argument '%s'; to probe that function: --function '%s'", word, word);
}

struct dp_error *dp_word_unexpected(enum dp_verb verb, const char *word)
{
	if (verb == DP_VERB_RUN)
		return beside_processes(word);
	if (is_number(word))
		return dp_error(DP_TAG_USAGE, "unexpected argument '%s'; to name a process: dynprobe %s --pid %s", word,
		                dp_verb_word(verb), word);
	if (verb == DP_VERB_ATTACH)
		return dp_error(DP_TAG_USAGE, "unexpected argument '%s'; to probe that function: --function '%s'", word, word);
	return dp_error(DP_TAG_USAGE, "unexpected argument '%s'; see dynprobe %s --help", word, dp_verb_word(verb));
}
