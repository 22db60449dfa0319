/* SPDX-License-Identifier: MIT */
/* What may stand at the cursor of a command line. The shells ask dynprobe itself: their scripts know no options. */
#ifndef DP_CLI_COMMANDS_COMPLETION_COMPLETION_H
#define DP_CLI_COMMANDS_COMPLETION_COMPLETION_H

#include "cli/options/options_table.h"

struct dp_line {
	char *const *words; /* after "dynprobe", the last one is the one to complete; NULL-terminated */
	size_t n;
	enum dp_verb verb;
	const char *word; /* what of the last one is to be completed: "js" of "--format=js" */
	const char *kept; /* the beginning of the last one, which candidates repeat: "--format=", "12," */
	int nkept;
	size_t left; /* candidates that may still be offered */
};

/* Prints the candidate, if it begins with the word: "TEXT<tab>ABOUT". `about` may be NULL. */
void dp_line_offer(struct dp_line *line, const char *text, const char *about);
/* The row of an option as typed (--pid, --pid=12, -p), or NULL. */
const struct dp_option_row *dp_line_row(const struct dp_line *line, const char *typed);
/* The value that the line gives to an option, the last one if there are several; NULL: none. */
const char *dp_line_value(const struct dp_line *line, const char *option);

/* complete_process.c: from the machine, and from the process or program that the line names. */
void dp_complete_pids(struct dp_line *line);
void dp_complete_users(struct dp_line *line);
void dp_complete_functions(struct dp_line *line);
void dp_complete_markers(struct dp_line *line);
/* Owned by the caller. NULL: the line names none, or it cannot be read. */
struct dp_image *dp_complete_image(const struct dp_line *line);

/*
 * complete_variables.c: from debug information. Variables of the line's last function, or members if the word ends in the
 * beginning of one. These change `word` and `kept`: offer what is no variable first.
 */
void dp_complete_variables(struct dp_line *line);
void dp_complete_sources(struct dp_line *line);

/* complete_files.c: files and directories by what they hold. */
void dp_complete_traces(struct dp_line *line);
void dp_complete_snapshots(struct dp_line *line);
void dp_complete_recordings(struct dp_line *line, bool snapshots);
void dp_complete_modules(struct dp_line *line);

/* scripts.c: the script for a shell, or NULL. */
const char *dp_completion_script(const char *shell);

#endif
