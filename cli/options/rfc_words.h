/* SPDX-License-Identifier: MIT */
/*
 * The words of LTTng's command line (lttng(1), and the RFC for dynamic instrumentation of 2013), typed after dynprobe instead of
 * lttng. They are other names for dynprobe's own: enable-event is attach or enable, disable-event disable, trace a run, list -u
 * status; -u (user space), which is all there is here, is left out.
 */
#ifndef DP_CLI_RFC_WORDS_H
#define DP_CLI_RFC_WORDS_H

#include "base/error.h"

#include <stdbool.h>

/*
 * Replaces *argc and *argv, if their first word is one of those, by what it stands for: a new array of the same words, of which
 * `*owned` is to be freed. DP_TAG_USAGE if an event's name is missing.
 */
struct dp_error *dp_rfc_words(int *argc, char ***argv, char ***owned) DP_MUST_CHECK;
/* Is it the word `view`? That is babeltrace2's work. */
bool dp_rfc_is_view(const char *word);
/* view [DIR]: becomes babeltrace2 on DIR, or on the trace that was recorded last. Returns an error's exit status. */
int dp_command_view(char **words);

#endif
