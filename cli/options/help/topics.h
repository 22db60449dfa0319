/* SPDX-License-Identifier: MIT */
/* The options of a run in groups, each as long as a screen. */
#ifndef DP_CLI_OPTIONS_HELP_TOPICS_H
#define DP_CLI_OPTIONS_HELP_TOPICS_H

#include "cli/options/options_table.h"

struct dp_topic {
	const char *name;
	const char *line;    /* in the list of topics */
	const char *options; /* their names, with a blank between them */
	const char *more;    /* below them, or NULL */
};
extern const struct dp_topic dp_topics[];
extern const size_t dp_ntopics;

const struct dp_topic *dp_topic_find(const char *name);
bool dp_topic_has(const struct dp_topic *topic, const char *option);

#endif
