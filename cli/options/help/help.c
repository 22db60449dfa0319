/* SPDX-License-Identifier: MIT */
/* Prints --help: of a verb all its options; of a run one screen, and a screen for each topic. */
#include "cli/options/help/topics.h"
#include "probes/point/suggest.h"

#include <string.h>
#include <sys/ioctl.h>

enum { COLUMN = 28, NARROWEST = 60, WIDEST = 110 };

/* ---- options --------------------------------------------------------------------------------------------------------------- */

/* A terminal's; of files WIDEST. */
static size_t width_of(FILE *to)
{
	struct winsize w = {0};
	if (ioctl(fileno(to), TIOCGWINSZ, &w) || !w.ws_col || w.ws_col > WIDEST)
		return WIDEST;
	return w.ws_col > NARROWEST ? w.ws_col - 2u
	                            : NARROWEST; /* the texts begin one column after COLUMN; the last stays free */
}

/* The text from COLUMN on, in lines of that width. */
static void put_wrapped(const char *text, FILE *to)
{
	const size_t width = width_of(to);
	while (strlen(text) > width - COLUMN) {
		size_t n = width - COLUMN;
		while (n && text[n] != ' ')
			n--;
		if (!n)
			break;
		fprintf(to, "%.*s\n%*s", (int)n, text, COLUMN + 1, "");
		text += n + 1;
	}
	fprintf(to, "%s\n", text);
}

static void put_option(const struct dp_option_row *row, FILE *to)
{
	char left[64];
	snprintf(left, sizeof(left), "%c%c%c --%s%s%s", row->letter ? '-' : ' ', row->letter ? row->letter : ' ',
	         row->letter ? ',' : ' ', row->name, row->metavar && strncmp(row->metavar, "[=", 2) != 0 ? " " : "",
	         row->metavar ? row->metavar : "");
	fprintf(to, "  %-26s ", left);
	if (strlen(left) > COLUMN - 2)
		fprintf(to, "\n%*s", COLUMN + 1, "");
	put_wrapped(row->help, to);
}

/* Some names mean one thing for a run and another for its snapshots. */
static bool is_of_snapshots(const struct dp_option_row *row)
{
	return dp_option_of(row, DP_VERB_SNAPSHOT) && !dp_option_of(row, DP_VERB_ATTACH) && !dp_option_of(row, DP_VERB_RECORD);
}

static void put_options(enum dp_verb verb, const struct dp_topic *topic, FILE *to)
{
	const bool snapshots = topic && !strcmp(topic->name, "snapshots");
	for (size_t i = 0; i < DP_OPTION_ROWS; i++) {
		const struct dp_option_row *row = &dp_option_rows[i];
		if (dp_option_of(row, verb) && (!topic || dp_topic_has(topic, row->name)) &&
		    (verb != DP_VERB_RUN || snapshots || !is_of_snapshots(row)))
			put_option(row, to);
	}
}

static bool is_in_a_topic(const char *option)
{
	for (size_t i = 0; i < dp_ntopics; i++)
		if (dp_topic_has(&dp_topics[i], option))
			return true;
	return false;
}

/* The options of a run that no topic has. */
static void put_other(FILE *to)
{
	for (size_t i = 0; i < DP_OPTION_ROWS; i++)
		if (dp_option_of(&dp_option_rows[i], DP_VERB_RUN) && !is_of_snapshots(&dp_option_rows[i]) &&
		    !is_in_a_topic(dp_option_rows[i].name))
			put_option(&dp_option_rows[i], to);
}

/* ---- a run's first screen -------------------------------------------------------------------------------------------------- */

static void put_verbs(const char *title, const enum dp_verb *verb, size_t n, FILE *to)
{
	fprintf(to, "\n%s\n", title);
	for (size_t i = 0; i < n; i++)
		fprintf(to, "  %-13s %s\n", dp_verb_text(verb[i])->word, dp_verb_text(verb[i])->line);
}

#define PUT_VERBS(title, ...)                                                                                                    \
	put_verbs(title, (const enum dp_verb[]){__VA_ARGS__},                                                                    \
	          sizeof((const enum dp_verb[]){__VA_ARGS__}) / sizeof(enum dp_verb), to)

static void put_commands(FILE *to)
{
	PUT_VERBS("Commands (dynprobe COMMAND --help):", DP_VERB_LIST, DP_VERB_DOCTOR, DP_VERB_VIEW, DP_VERB_FLAME, DP_VERB_TRACES);
	fprintf(to, "  %-13s %s\n", "explain", "explain an error (DP-...) and what to do about it");
	fprintf(to, "  %-13s %s\n", "completion", "print completion for bash, zsh or fish");
	PUT_VERBS("Snapshots:", DP_VERB_SNAPSHOT, DP_VERB_SHOW, DP_VERB_REPORT, DP_VERB_PMODULE);
	PUT_VERBS("Resident probes:", DP_VERB_ATTACH, DP_VERB_STATUS, DP_VERB_ENABLE, DP_VERB_DISABLE, DP_VERB_ADD_CONTEXT,
	          DP_VERB_RECORD, DP_VERB_REMOVE, DP_VERB_DETACH, DP_VERB_STUBS);
}

static void put_first_screen(FILE *to)
{
	fputs("Usage: dynprobe --pid PID PROBES... [OPTIONS]      probes a running process until Ctrl-C\n"
	      "       dynprobe PROBES... [OPTIONS] -- CMD ARGS    starts a program with its probes armed (or -c \"CMD ARGS\")\n"
	      "\n"
	      "  dynprobe --pid 4242 --function foo -t args -t backtrace\n"
	      "  dynprobe --pid 4242 --probe server.c:120 -t locals --when 'req->len > 4096' -n 100\n"
	      "  dynprobe --pid 4242 --return foo --hist duration -d 10\n"
	      "\n"
	      "Options (dynprobe --help TOPIC; --help all):\n",
	      to);
	for (size_t i = 0; i < dp_ntopics; i++)
		fprintf(to, "  %-13s %s\n", dp_topics[i].name, dp_topics[i].line);
	put_commands(to);
	fputs("\nLTTng's words work, too: enable-event NAME -u --pid PID --probe SPEC, disable-event, add-context -u,\n"
	      "trace -c CMD, list -u. Exit status: that of CMD; 0 for --pid; 121 a part was refused; 125 dynprobe failed;\n"
	      "126/127 CMD cannot be run/found.\n",
	      to);
}

/* ---- topics ---------------------------------------------------------------------------------------------------------------- */

static void put_topic(const struct dp_topic *topic, FILE *to)
{
	fprintf(to, "%s: %s\n\n", topic->name, topic->line);
	put_options(DP_VERB_RUN, topic, to);
	if (!strcmp(topic->name, "output"))
		put_other(to);
	if (topic->more)
		fprintf(to, "\n%s", topic->more);
}

static void put_verb(enum dp_verb verb, FILE *to)
{
	fprintf(to, "Usage: dynprobe %s\n\n%s\nOptions:\n", dp_verb_text(verb)->usage, dp_verb_text(verb)->about);
	put_options(verb, NULL, to);
	fputs("\nExit status: 0; 121 a part failed; 125 dynprobe failed and did nothing.\n", to);
}

/* One option by its name, with or without dashes. */
static bool put_named(const char *name, FILE *to)
{
	bool found = false;
	name += strspn(name, "-");
	for (size_t i = 0; i < DP_OPTION_ROWS; i++)
		if (dp_option_of(&dp_option_rows[i], DP_VERB_RUN) && !strcmp(dp_option_rows[i].name, name)) {
			put_option(&dp_option_rows[i], to);
			found = true;
		}
	return found;
}

static struct dp_error *no_topic(const char *name)
{
	struct dp_suggest s;
	struct dp_buf text = {0};
	dp_suggest_init(&s, name, strlen(name));
	for (size_t i = 0; i < dp_ntopics; i++)
		dp_suggest_offer(&s, dp_topics[i].name, strlen(dp_topics[i].name));
	for (int i = DP_VERB_RUN + 1; i < DP_VERB_COUNT; i++)
		dp_suggest_offer(&s, dp_verb_word((enum dp_verb)i), strlen(dp_verb_word((enum dp_verb)i)));
	dp_suggest_print(&s, &text);
	struct dp_error *err = dp_error(
	        DP_TAG_USAGE, "there is no help on '%s'%s%s", name, dp_buf_str(&text),
	        s.n ? "" : "; topics: processes, probes, values, counts, end, output, lttng, snapshots, all, or a command");
	dp_buf_fini(&text);
	return err;
}

static struct dp_error *put_on(const char *name, FILE *to)
{
	const struct dp_topic *topic = dp_topic_find(name);
	enum dp_verb verb;
	if (topic)
		put_topic(topic, to);
	else if (!strcmp(name, "all"))
		put_options(DP_VERB_RUN, NULL, to);
	else if (dp_verb_find(name, &verb))
		put_verb(verb, to);
	else if (!put_named(name, to))
		return no_topic(name);
	return NULL;
}

struct dp_error *dp_options_help(enum dp_verb verb, const char *topic, FILE *to)
{
	if (verb != DP_VERB_RUN)
		put_verb(verb, to);
	else if (topic)
		return put_on(topic, to);
	else
		put_first_screen(to);
	return NULL;
}
