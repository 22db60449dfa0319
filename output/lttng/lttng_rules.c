/* SPDX-License-Identifier: MIT */
#include "output/lttng/lttng_rules.h"

#include <lttng/lttng.h>
#include <string.h>

#define PROVIDER "dynprobe:"

/* ---- .lttngrc ---- */

bool dp_lttng_rc_session(const char *text, char *name, size_t size)
{
	bool found = false;
	while (*text) {
		size_t len = strcspn(text, "\r\n");
		if (!strncmp(text, "session=", 8)) {
			const char *value = text + 8;
			const size_t n = len - 8;
			found = n && n < size && n < LTTNG_NAME_MAX && !memchr(value, '/', n);
			if (found) {
				memcpy(name, value, n);
				name[n] = '\0';
			}
		}
		text += len;
		text += strspn(text, "\r\n");
	}
	return found;
}

/* ---- star globs ---- */

/*
 * An event name can continue after the provider as the rule needs. So matching the provider is enough: a star matches the rest of
 * it, and the event name matches the rest of the rule.
 */
bool dp_lttng_rule_meets(const char *rule)
{
	for (const char *p = PROVIDER; *p; p++, rule++) {
		if (*rule == '*')
			return true;
		if (*rule == '\\' && rule[1])
			rule++;
		if (*rule != *p)
			return false;
	}
	return *rule != '\0';
}

/* A character of "dynprobe:" followed by `name`. */
static char letter(const char *name, size_t at)
{
	const size_t n = strlen(PROVIDER);
	return at < n ? PROVIDER[at] : name[at - n];
}

bool dp_lttng_rule_matches(const char *rule, const char *name)
{
	const char *star = NULL; /* the last one; `from` is how far it has matched */
	size_t at = 0, from = 0;
	while (letter(name, at)) {
		const char *p = *rule == '\\' && rule[1] ? rule + 1 : rule;
		if (*rule == '*') {
			star = ++rule;
			from = at;
		} else if (*p && *p == letter(name, at)) {
			rule = p + 1;
			at++;
		} else if (star) {
			rule = star;
			at = ++from;
		} else {
			return false;
		}
	}
	return !rule[strspn(rule, "*")];
}

/*
 * True if it excludes everything that begins with the provider: it must end in a star within the provider or directly after it.
 */
bool dp_lttng_exclusion_covers(const char *exclusion)
{
	for (const char *p = PROVIDER; *p; p++, exclusion++) {
		if (*exclusion == '*')
			return !exclusion[strspn(exclusion, "*")];
		if (*exclusion == '\\' && exclusion[1])
			exclusion++;
		if (*exclusion != *p)
			return false;
	}
	return *exclusion == '*' && !exclusion[strspn(exclusion, "*")];
}
