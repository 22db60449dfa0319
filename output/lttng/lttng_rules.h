/* SPDX-License-Identifier: MIT */
/* Reads the user's own files: the current session, and which events a session wants. Pure functions of text. */
#ifndef DP_OUTPUT_LTTNG_LTTNG_RULES_H
#define DP_OUTPUT_LTTNG_LTTNG_RULES_H

#include <stdbool.h>
#include <stddef.h>

/* The session= of a .lttngrc (the last one counts); false if there is none with a valid session name. */
bool dp_lttng_rc_session(const char *text, char *name, size_t size);

/* Can an event rule of this name match some event dynprobe:NAME? '*' matches anything, '\' escapes. */
bool dp_lttng_rule_meets(const char *rule);
/* Does it match dynprobe:`name`? Exclusions have the same syntax. */
bool dp_lttng_rule_matches(const char *rule, const char *name);
/* Does this exclusion exclude every event dynprobe:NAME? */
bool dp_lttng_exclusion_covers(const char *exclusion);

/*
 * Does a session configuration, as `lttng save` writes it, have in an enabled channel an enabled user-space tracepoint rule for
 * all log levels that can match dynprobe:* events? False for invalid text.
 */
bool dp_lttng_config_covers(const char *xml);
/* The same, for the event dynprobe:`name` only. */
bool dp_lttng_config_wants(const char *xml, const char *name);

#endif
