/* SPDX-License-Identifier: MIT */
/*
 * The commands of LTTng (lttng(1), and the RFC for dynamic instrumentation of 2013) as other names for dynprobe's: enable-event
 * is attach or enable, disable-event is disable, trace a run, list -u status. -u (user space) is dropped: dynprobe has nothing
 * else.
 */
#ifndef DP_CLI_OPTIONS_RFC_WORDS_H
#define DP_CLI_OPTIONS_RFC_WORDS_H

#include "base/error.h"

/*
 * If the first word is one of those, replaces *argc and *argv by dynprobe's form: a new array of the same words, which the caller
 * frees as `*owned`. DP_TAG_USAGE if an event's name is missing.
 */
struct dp_error *dp_rfc_words(int *argc, char ***argv, char ***owned) DP_MUST_CHECK;

#endif
