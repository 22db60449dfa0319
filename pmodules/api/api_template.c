/* SPDX-License-Identifier: MIT */
/* pmodule.h: arguments of C++ templates, parsed from type names. */
#include "pmodules/pmodule.h"

#include <stdlib.h>
#include <string.h>

/* The end of the argument at p: the comma or bracket at its own level; NULL: there is none. */
static const char *end_of_argument(const char *p)
{
	int depth = 0;
	for (char quote = 0; *p; p++) {
		if (quote) {
			if (*p == '\\' && p[1])
				p++;
			else if (*p == quote)
				quote = 0;
		} else if (*p == '\'' || *p == '"') {
			quote = *p;
		} else if (strchr("<([{", *p)) {
			depth++;
		} else if (!depth && (*p == ',' || *p == '>')) {
			return p;
		} else if (strchr(">)]}", *p) && !(*p == '>' && p[-1] == '-')) {
			depth--;
		}
		if (depth < 0)
			return NULL;
	}
	return NULL;
}

static bool cut(char **out, const char *from, const char *to)
{
	while (from < to && *from == ' ')
		from++;
	while (to > from && to[-1] == ' ')
		to--;
	if (from == to) /* "f<>" has no arguments */
		return false;
	*out = strndup(from, (size_t)(to - from));
	return *out != NULL;
}

bool pmodule_cpp_template_nth_argument(char **out, const char *type_name, unsigned n)
{
	const char *at = type_name ? strchr(type_name, '<') : NULL;
	if (!at || !out)
		return false;
	for (;; n--) {
		const char *end = end_of_argument(++at);
		if (!end)
			return false;
		if (!n)
			return cut(out, at, end);
		if (*end == '>')
			return false;
		at = end;
	}
}
