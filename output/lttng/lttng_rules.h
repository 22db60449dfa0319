/* SPDX-License-Identifier: MIT */
/* What the user's own files say: the current session, and which events a session wants. Pure functions of text. */
#ifndef DP_OUTPUT_LTTNG_RULES_H
#define DP_OUTPUT_LTTNG_RULES_H

#include <stdbool.h>
#include <stddef.h>

/* The session= of a .lttngrc (the last one counts); false if there is none that could be a session's name. */
bool dp_lttng_rc_session(const char *text, char *name, size_t size);

/* Can an event rule of this name ('*' stands for anything, '\' takes its meaning away) match some event dynprobe:NAME? */
bool dp_lttng_rule_meets(const char *rule);
/* Does it match dynprobe:`name`? Exclusions are of the same form. */
bool dp_lttng_rule_matches(const char *rule, const char *name);
/* Does this exclusion take away every event dynprobe:NAME? */
bool dp_lttng_exclusion_covers(const char *exclusion);

/*
 * Does a session configuration, as `lttng save` writes it, have an enabled user-space tracepoint rule for all log levels that
 * meets dynprobe:* events, in an enabled channel? Text that is no such configuration: false.
 */
bool dp_lttng_config_covers(const char *xml);
/* The same for the event dynprobe:`name` alone. */
bool dp_lttng_config_wants(const char *xml, const char *name);

#endif
