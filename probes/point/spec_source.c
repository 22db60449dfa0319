/* SPDX-License-Identifier: MIT */
/* Parses source specs: FILE:LINE, FUNCTION:LINE, FUNCTION@FILE, usdt:PROVIDER:MARKER. */
#include "probes/point/spec_internal.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

/* A UTF-8 character takes one column. */
struct dp_error *dp_spec_wrong(const char *text, size_t at, const char *why)
{
	size_t column = 0;
	for (size_t i = 0; i < at; i++)
		column += ((unsigned char)text[i] & 0xc0) != 0x80;
	return dp_error(DP_TAG_SYNTAX, "%s\n  %s\n  %*s^", why, text, (int)(column < 4096 ? column : 4096), "");
}

static struct dp_error *take(struct dp_spec_part p, char **ret)
{
	*ret = strndup(p.text + p.at, p.end - p.at);
	return *ret ? NULL : dp_error_nomem();
}

/* Suffixes of source files. Symbol versions (GLIBC_2.2.5) end differently. */
static bool is_file(struct dp_spec_part p)
{
	static const char *const ends[] = {"c",   "cc",  "cpp", "cxx", "c++", "C",   "h",   "hh",   "hpp", "hxx", "inc",
	                                   "inl", "ipp", "tcc", "def", "rs",  "go",  "s",   "S",    "asm", "d",   "m",
	                                   "mm",  "f",   "f90", "f95", "F",   "F90", "zig", "nim",  "pas", "p",   "adb",
	                                   "ads", "ml",  "y",   "l",   "re",  "hs",  "cu",  "swift"};
	const char *start = p.text + p.at, *dot = memrchr(start, '.', p.end - p.at);
	if (memchr(start, '/', p.end - p.at))
		return true;
	const size_t len = dot ? p.end - (size_t)(dot + 1 - p.text) : 0;
	for (size_t i = 0; dot > start && i < sizeof(ends) / sizeof(*ends); i++)
		if (strlen(ends[i]) == len && !memcmp(dot + 1, ends[i], len))
			return true;
	return false;
}

/* Finds ":LINE" at the end. Returns the colon's offset, or 0. */
static size_t find_line(struct dp_spec_part p)
{
	size_t at = p.end;
	while (at > p.at && isdigit((unsigned char)p.text[at - 1]))
		at--;
	const bool line = at < p.end && at > p.at + 1 && p.text[at - 1] == ':' && p.text[at - 2] != ':';
	return line ? at - 1 : 0;
}

static struct dp_error *take_line(struct dp_spec_part p, size_t colon, struct dp_spec *spec)
{
	if (p.end - colon > 10)
		return dp_spec_wrong(p.text, colon + 1, "the line number is too large");
	spec->line = (uint32_t)strtoul(p.text + colon + 1, NULL, 10);
	spec->has_line = true;
	return NULL;
}

struct dp_error *dp_spec_marker(struct dp_spec_part p, struct dp_spec *spec)
{
	const char *colon = memchr(p.text + p.at, ':', p.end - p.at);
	const size_t at = colon ? (size_t)(colon - p.text) : p.end;
	if (!colon || at == p.at)
		return dp_spec_wrong(p.text, colon ? at : p.end, "a marker is PROVIDER:NAME; both may be patterns");
	if (at + 1 == p.end)
		return dp_spec_wrong(p.text, p.end, "the marker's name is missing after the ':' (* means all)");
	DP_TRY(take((struct dp_spec_part){p.text, p.at, at}, &spec->provider));
	DP_TRY(take((struct dp_spec_part){p.text, at + 1, p.end}, &spec->marker));
	return take(p, &spec->symbol);
}

/* Finds a file after the last @. Returns the @'s offset, or 0. */
static size_t find_file(struct dp_spec_part p)
{
	const char *at = memrchr(p.text + p.at, '@', p.end - p.at);
	const size_t found = at ? (size_t)(at - p.text) : 0;
	return at && found > p.at && is_file((struct dp_spec_part){p.text, found + 1, p.end}) ? found : 0;
}

struct dp_error *dp_spec_source(struct dp_spec_part p, struct dp_spec *spec, bool *taken)
{
	static const char usdt[] = "usdt:";
	const size_t colon = find_line(p);
	const struct dp_spec_part left = {p.text, p.at, colon ? colon : p.end};
	const size_t at = find_file(left);
	*taken = true;
	if (!strncmp(p.text + p.at, usdt, sizeof(usdt) - 1))
		return dp_spec_marker((struct dp_spec_part){p.text, p.at + sizeof(usdt) - 1, p.end}, spec);
	*taken = colon || at;
	if (!*taken)
		return NULL;
	if (spec->point == DP_POINT_ALL || (colon && spec->point != DP_POINT_PLACE))
		return dp_spec_wrong(p.text, p.end, ":entry, :return and :* go with the name of a function only");
	if (colon)
		DP_TRY(take_line(p, colon, spec));
	if (at) {
		DP_TRY(take((struct dp_spec_part){p.text, p.at, at}, &spec->function));
		DP_TRY(take((struct dp_spec_part){p.text, at + 1, left.end}, &spec->file));
	} else
		DP_TRY(take(left, is_file(left) ? &spec->file : &spec->function));
	if (spec->has_line && !spec->line && !spec->function)
		return dp_spec_wrong(p.text, colon + 1, "the lines of a file count from 1");
	return take(p, &spec->symbol);
}

static size_t cut_word(struct dp_spec_part p, const char *word)
{
	const size_t n = strlen(word);
	return p.end - p.at > n && !memcmp(p.text + p.end - n, word, n) ? n : 0;
}

struct dp_error *dp_spec_call(struct dp_spec_part p, bool bare, struct dp_spec *spec, bool *taken)
{
	static const char word[] = "syscall:";
	size_t entry, leave;
	const bool named = !strncmp(p.text + p.at, word, sizeof(word) - 1);
	*taken = bare || named;
	if (!*taken)
		return NULL;
	p.at += named ? sizeof(word) - 1 : 0;
	entry = cut_word(p, ":entry");
	leave = cut_word(p, ":exit") + cut_word(p, ":return");
	p.end -= entry + leave;
	spec->point = entry ? DP_POINT_ENTRY : leave ? DP_POINT_RETURN : DP_POINT_PLACE;
	for (size_t i = p.at; i < p.end; i++)
		if (!isalnum((unsigned char)p.text[i]) && !strchr("_*?[]!-^", p.text[i]))
			return dp_spec_wrong(p.text, i, "expected a system call's name or pattern, then perhaps :entry or :exit");
	if (p.at == p.end)
		return dp_spec_wrong(p.text, p.end, "the system call's name is missing (* means all)");
	DP_TRY(take(p, &spec->symbol));
	return take(p, &spec->call);
}
