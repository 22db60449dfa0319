/* SPDX-License-Identifier: MIT */
/* Makes messages readable: replaces the mangled names in them. */
#include "base/buf.h"
#include "probes/elf/demangle.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

static bool is_part(char c)
{
	return isalnum((unsigned char)c) || c == '_' || c == '$' || c == '.';
}

static size_t length_of(const char *text)
{
	size_t n = 0;
	while (is_part(text[n]))
		n++;
	while (n && text[n - 1] == '.') /* the end of a sentence */
		n--;
	return n;
}

static bool is_mangled(const char *text)
{
	return text[0] == '_' && (text[1] == 'Z' || text[1] == 'R');
}

char *dp_demangle_text(const char *text)
{
	struct dp_buf b = {0};
	for (const char *p = text; *p;) {
		const bool begins = (p == text || !is_part(p[-1])) && is_mangled(p);
		const size_t n = begins ? length_of(p) : 1;
		char *word = begins ? strndup(p, n) : NULL, *readable = word ? dp_demangle(word, true) : NULL;
		dp_buf_put(&b, readable ? readable : p, readable ? strlen(readable) : n);
		free(word);
		free(readable);
		p += n;
	}
	char *ret = b.failed ? NULL : strdup(dp_buf_str(&b));
	dp_buf_fini(&b);
	return ret;
}
