/* SPDX-License-Identifier: MIT */
/* The system call in which a thread waits, with names for its numbers, as a line of --syscall has them. */
#include "output/calls/line.h"
#include "output/snapshot/show_internal.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

/* Reads "futex(0x7f12, 128, ...)". False if it is anything else. */
static bool parse(const char *text, struct dp_call_seen *ret)
{
	char name[64];
	const char *p = strchr(text, '(');
	const size_t len = p ? (size_t)(p - text) : sizeof(name);
	if (len >= sizeof(name))
		return false;
	memcpy(name, text, len);
	name[len] = '\0';
	*ret = (struct dp_call_seen){.nr = dp_call_find(name)};
	for (unsigned i = 0; i < DP_CALL_ARGS && isdigit((unsigned char)p[1]); i++) {
		char *end;
		ret->word[i] = strtoull(p + 1, &end, 0);
		ret->has_word[i] = true;
		if (*end == ')')
			return ret->nr >= 0;
		p = strncmp(end, ", ", 2) ? end : end + 1;
	}
	return false;
}

void dp_show_call(struct dp_shower *x, const char *text)
{
	struct dp_call_seen seen;
	if (!parse(text, &seen)) {
		dp_show_put(x, text);
		return;
	}
	const struct dp_call_line line = {.entry = &seen, .nr = seen.nr};
	dp_put_call_name(&x->b, &line);
	dp_put_str(&x->b, "(");
	dp_put_call_args(&x->b, &line, 0, DP_CALL_ARGS);
	dp_put_str(&x->b, ")");
}
