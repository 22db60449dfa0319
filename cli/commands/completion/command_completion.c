/* SPDX-License-Identifier: MIT */
/* completion: the script for a shell; with --words, which the scripts use, the candidates for the last of these words. */
#include "cli/commands/command.h"
#include "cli/commands/completion/completion.h"
#include "cli/options/help/topics.h"
#include "probes/point/syscalls.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#define CANDIDATES_MOST 2000u

static const char *const shells[] = {"bash", "zsh", "fish"};

/* ---- the line -------------------------------------------------------------------------------------------------------------- */

void dp_line_offer(struct dp_line *line, const char *text, const char *about)
{
	if (!line->left || strncmp(text, line->word, strlen(line->word)) != 0)
		return;
	line->left--;
	printf("%.*s%s", line->nkept, line->kept, text);
	if (about)
		printf("\t%s", about);
	putchar('\n');
}

const struct dp_option_row *dp_line_row(const struct dp_line *line, const char *typed)
{
	const size_t n = strcspn(typed, "=");
	for (size_t i = 0; i < DP_OPTION_ROWS; i++) {
		const struct dp_option_row *row = &dp_option_rows[i];
		const bool is_long =
		        !strncmp(typed, "--", 2) && strlen(row->name) == n - 2 && !strncmp(typed + 2, row->name, n - 2);
		if (dp_option_of(row, line->verb) &&
		    (is_long || (row->letter && *typed == '-' && typed[1] == row->letter && !typed[2])))
			return row;
	}
	return NULL;
}

static bool takes_next(const struct dp_option_row *row, const char *typed, const char *next)
{
	if (!row || !row->metavar || strchr(typed, '='))
		return false;
	return *row->metavar != '[' || (row->metavar[1] != '=' && *next != '-'); /* as options.c takes them */
}

const char *dp_line_value(const struct dp_line *line, const char *option)
{
	const char *value = NULL;
	for (size_t i = 0; i + 1 < line->n; i++) {
		const struct dp_option_row *row = dp_line_row(line, line->words[i]);
		const char *equals = strchr(line->words[i], '=');
		if (!row || strcmp(row->name, option) != 0 || !row->metavar)
			continue;
		if (equals)
			value = equals + 1;
		else if (i + 2 < line->n)
			value = line->words[i + 1];
	}
	return value;
}

/* Only what follows a character of `marks` is to be completed: of 12,14 the 14. */
static void keep_up_to(struct dp_line *line, const char *marks)
{
	const char *from = line->word;
	for (const char *at = line->word; *at; at++)
		if (strchr(marks, *at))
			from = at + 1;
	line->nkept = (int)(from - line->kept);
	line->word = from;
}

/* ---- what may stand there -------------------------------------------------------------------------------------------------- */

static void offer_all(struct dp_line *line, const char *const *words, size_t n)
{
	for (size_t i = 0; i < n && words[i]; i++)
		dp_line_offer(line, words[i], NULL);
}
#define OFFER(line, ...) offer_all(line, (const char *const[]){__VA_ARGS__, NULL}, SIZE_MAX)

static void offer_verbs(struct dp_line *line)
{
	for (int i = DP_VERB_RUN + 1; i < DP_VERB_COUNT; i++)
		dp_line_offer(line, dp_verb_word((enum dp_verb)i), dp_verb_text((enum dp_verb)i)->line);
	dp_line_offer(line, "explain", "explain an error");
	dp_line_offer(line, "help", "help on a topic, a command or an error");
	dp_line_offer(line, "completion", "print completion for a shell");
}

/* Also as people type them: too-short for DP-TOO-SHORT. */
static void offer_tags(struct dp_line *line)
{
	char small[64];
	for (int i = 0; i < DP_TAG_COUNT; i++) {
		const char *name = dp_tag_name((enum dp_tag)i);
		size_t n = 0;
		for (const char *p = name + strlen("DP-"); *p && n + 1 < sizeof(small); p++)
			small[n++] = (char)tolower((unsigned char)*p);
		small[n] = 0;
		dp_line_offer(line, name, dp_tag_meaning((enum dp_tag)i));
		if (*line->word)
			dp_line_offer(line, small, dp_tag_meaning((enum dp_tag)i));
	}
}

static void offer_topics(struct dp_line *line)
{
	for (size_t i = 0; i < dp_ntopics; i++)
		dp_line_offer(line, dp_topics[i].name, dp_topics[i].line);
	dp_line_offer(line, "all", "all options of a run");
	offer_verbs(line);
}

static void offer_options(struct dp_line *line)
{
	char name[64];
	for (size_t i = 0; i < DP_OPTION_ROWS; i++) {
		if (!dp_option_of(&dp_option_rows[i], line->verb))
			continue;
		snprintf(name, sizeof(name), "--%s", dp_option_rows[i].name);
		dp_line_offer(line, name, dp_option_rows[i].help);
	}
}

static void offer_calls(struct dp_line *line)
{
	for (uint64_t i = 0; i < DP_CALL_END; i++)
		if (dp_call_name(i))
			dp_line_offer(line, dp_call_name(i), NULL);
}

static void offer_contexts(struct dp_line *line)
{
	OFFER(line, "args", "locals", "retval", "duration", "regs", "backtrace", "reg:", "str(");
	dp_complete_variables(line);
}

static void offer_facts(struct dp_line *line)
{
	OFFER(line, "duration", "retval", "pid", "tid", "comm", "str(");
	dp_complete_variables(line);
}

static void offer_keys(struct dp_line *line)
{
	keep_up_to(line, ",");
	OFFER(line, "backtrace", "caller", "pid", "comm", "exe");
	dp_complete_variables(line);
}

static bool is_one_of(const char *name, const char *const *names)
{
	for (; *names; names++)
		if (!strcmp(*names, name))
			return true;
	return false;
}
#define IS(name, ...) is_one_of(name, (const char *const[]){__VA_ARGS__, NULL})

/* Nothing offered: the shell then completes the names of files. */
static void offer_values(struct dp_line *line, const struct dp_option_row *row)
{
	if (IS(row->name, "pid")) {
		keep_up_to(line, ",");
		dp_complete_pids(line);
	} else if (IS(row->name, "function", "probe", "return", "all", "calls")) {
		dp_complete_functions(line);
		if (IS(row->name, "probe"))
			dp_complete_sources(line);
	} else if (IS(row->name, "usdt"))
		dp_complete_markers(line);
	else if (IS(row->name, "syscall"))
		offer_calls(line);
	else if (IS(row->name, "type"))
		offer_contexts(line);
	else if (IS(row->name, "by"))
		offer_keys(line);
	else if (IS(row->name, "when", "hist", "sum", "avg", "min", "max"))
		offer_facts(line);
	else if (IS(row->name, "user"))
		dp_complete_users(line);
	else if (IS(row->name, "remove"))
		dp_complete_traces(line);
	else if (IS(row->name, "module-load"))
		dp_complete_modules(line);
	else if (IS(row->name, "tactic")) {
		keep_up_to(line, ",");
		OFFER(line, "jump", "pun", "evict", "window", "trap");
	} else if (row->word[0])
		offer_all(line, row->word, sizeof(row->word) / sizeof(*row->word));
}

static void offer_arguments(struct dp_line *line)
{
	const bool has_pid = dp_line_value(line, "pid");
	const bool first = line->n == 2;
	if (line->verb == DP_VERB_SNAPSHOT || line->verb == DP_VERB_DOCTOR || (line->verb == DP_VERB_LIST && first && !has_pid)) {
		keep_up_to(line, ",");
		dp_complete_pids(line);
	} else if (line->verb == DP_VERB_LIST)
		dp_complete_functions(line);
	else if (line->verb == DP_VERB_TRACES)
		dp_complete_traces(line);
	else if (line->verb == DP_VERB_SHOW)
		dp_complete_snapshots(line);
	else if (line->verb == DP_VERB_VIEW || line->verb == DP_VERB_REPORT)
		dp_complete_recordings(line, line->verb == DP_VERB_REPORT);
	else if (line->verb == DP_VERB_PMODULE && first)
		OFFER(line, "new", "list", "check", "run");
}

static void complete_option(struct dp_line *line)
{
	const char *last = line->words[line->n - 1], *before = line->n > 1 ? line->words[line->n - 2] : "";
	const struct dp_option_row *row = dp_line_row(line, before);
	if (takes_next(row, before, last)) {
		offer_values(line, row);
		return;
	}
	row = *last == '-' && strchr(last, '=') ? dp_line_row(line, last) : NULL;
	if (row) {
		keep_up_to(line, "=");
		offer_values(line, row);
	} else if (*last == '-')
		offer_options(line);
	else if (line->verb != DP_VERB_RUN)
		offer_arguments(line);
	else if (IS(before, "--help", "-h"))
		offer_topics(line);
}

/* Words behind -- are those of a command. */
static bool is_of_a_command(const struct dp_line *line)
{
	for (size_t i = 0; i + 1 < line->n; i++)
		if (!strcmp(line->words[i], "--"))
			return true;
	return false;
}

/* Bash passes words with their quotes, and the one that is typed with only the first of them. */
static void unquote(char *word)
{
	const size_t n = strlen(word);
	if (*word != '\'' && *word != '"')
		return;
	if (n > 1 && word[n - 1] == *word)
		word[n - 1] = 0;
	memmove(word, word + 1, n);
}

static void complete(char *const *words)
{
	struct dp_line line = {.words = words, .left = CANDIDATES_MOST};
	while (words[line.n])
		unquote(words[line.n++]);
	unsetenv("DEBUGINFOD_URLS"); /* a key press waits for no download */
	if (!line.n || is_of_a_command(&line))
		return;
	line.word = line.kept = words[line.n - 1];
	if (line.n == 1 && *line.word != '-')
		offer_verbs(&line);
	else if (!strcmp(words[0], "explain")) {
		dp_line_offer(&line, "--all", "a line for each");
		offer_tags(&line);
	} else if (!strcmp(words[0], "help")) {
		offer_topics(&line);
		offer_tags(&line);
	} else if (!strcmp(words[0], "completion"))
		offer_all(&line, shells, sizeof(shells) / sizeof(*shells));
	else {
		line.verb = DP_VERB_RUN;
		dp_verb_find(words[0], &line.verb);
		complete_option(&line);
	}
}

int dp_command_completion(char *const words[])
{
	const char *script = dp_completion_script(*words ? *words : "bash");
	if (*words && !strcmp(*words, "--words"))
		complete(words + 1);
	else if (script)
		fputs(script, stdout);
	else {
		const bool help = !strcmp(*words, "--help") || !strcmp(*words, "-h");
		fprintf(help ? stdout : stderr, "Usage: dynprobe completion bash|zsh|fish\n\nPrints a script that completes "
		                                "options, processes, functions, variables "
		                                "and tags.\n  source <(dynprobe completion bash)\n  dynprobe completion zsh "
		                                ">DIRECTORY-OF-FPATH/_dynprobe\n"
		                                "  dynprobe completion fish | source\n");
		return help ? 0 : DP_EXIT_FAILURE;
	}
	return 0;
}
