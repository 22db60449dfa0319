/* SPDX-License-Identifier: MIT */
/* Matches a pattern at one position, item by item, with backtracking. */
#include "pmodules/lua/text/lua_pattern.h"

#include <ctype.h>
#include <string.h>

enum { DEPTH_MAX = 200, WORK = 1 << 14 /* characters: some ten microseconds */ };

static const char *match(struct dp_lua_pattern *m, const char *s, const char *p);

static void worked(struct dp_lua_pattern *m, size_t n)
{
	m->work += n;
	if (m->work < WORK)
		return;
	m->work = 0;
	dp_lua_check_time(m->L);
}

/* ---- single characters -------------------------------------------------------------------------------------------------- */

/* The end of the class that starts at p. */
static const char *class_end(const struct dp_lua_pattern *m, const char *p)
{
	const char first = *p++;
	if (first == '%') {
		if (p == m->pattern_end)
			luaL_error(m->L, "malformed pattern (ends with '%%')");
		return p + 1;
	}
	if (first != '[')
		return p;
	p += *p == '^';
	do { /* the first character does not end the set, even if it is ']' */
		if (p == m->pattern_end)
			luaL_error(m->L, "malformed pattern (missing ']')");
		if (*p++ == '%' && p < m->pattern_end)
			p++;
	} while (*p != ']');
	return p + 1;
}

static bool is_of_class(int c, int class)
{
	bool is;
	switch (tolower(class)) {
	case 'a':
		is = isalpha(c);
		break;
	case 'c':
		is = iscntrl(c);
		break;
	case 'd':
		is = isdigit(c);
		break;
	case 'g':
		is = isgraph(c);
		break;
	case 'l':
		is = islower(c);
		break;
	case 'p':
		is = ispunct(c);
		break;
	case 's':
		is = isspace(c);
		break;
	case 'u':
		is = isupper(c);
		break;
	case 'w':
		is = isalnum(c);
		break;
	case 'x':
		is = isxdigit(c);
		break;
	default:
		return class == c;
	}
	return is != !islower(class);
}

/* `last` points to the set's ']'. */
static bool is_of_set(int c, const char *p, const char *last)
{
	const bool is = p[1] != '^';
	p += !is;
	while (++p < last) {
		if (*p == '%') {
			if (is_of_class(c, (unsigned char)*++p))
				return is;
		} else if (p[1] == '-' && p + 2 < last) {
			p += 2;
			if ((unsigned char)p[-2] <= c && c <= (unsigned char)*p)
				return is;
		} else if ((unsigned char)*p == c) {
			return is;
		}
	}
	return !is;
}

static bool is_one(struct dp_lua_pattern *m, const char *s, const char *p, const char *end)
{
	worked(m, (size_t)(end - p));
	if (s >= m->end)
		return false;
	const int c = (unsigned char)*s;
	switch (*p) {
	case '.':
		return true;
	case '%':
		return is_of_class(c, (unsigned char)p[1]);
	case '[':
		return is_of_set(c, p, end - 1);
	default:
		return (unsigned char)*p == c;
	}
}

/* ---- repetitions -------------------------------------------------------------------------------------------------------- */

static const char *longest(struct dp_lua_pattern *m, const char *s, const char *p, const char *end)
{
	ptrdiff_t n = 0;
	while (is_one(m, s + n, p, end))
		n++;
	for (; n >= 0; n--) {
		const char *found = match(m, s + n, end + 1);
		if (found)
			return found;
	}
	return NULL;
}

static const char *shortest(struct dp_lua_pattern *m, const char *s, const char *p, const char *end)
{
	for (;;) {
		const char *found = match(m, s, end + 1);
		if (found)
			return found;
		if (!is_one(m, s, p, end))
			return NULL;
		s++;
	}
}

/* ---- captures ----------------------------------------------------------------------------------------------------------- */

static const char *open_capture(struct dp_lua_pattern *m, const char *s, const char *p)
{
	const bool is_position = p[1] == ')';
	if (m->level >= DP_LUA_CAPTURES)
		luaL_error(m->L, "too many captures");
	m->capture[m->level].at = s;
	m->capture[m->level].n = is_position ? DP_LUA_POSITION : DP_LUA_OPEN;
	m->level++;
	const char *found = match(m, s, p + 1 + is_position);
	if (!found)
		m->level--;
	return found;
}

static const char *close_capture(struct dp_lua_pattern *m, const char *s, const char *p)
{
	int i = m->level - 1;
	while (i >= 0 && m->capture[i].n != DP_LUA_OPEN)
		i--;
	if (i < 0)
		luaL_error(m->L, "invalid pattern capture");
	m->capture[i].n = s - m->capture[i].at;
	const char *found = match(m, s, p + 1);
	if (!found)
		m->capture[i].n = DP_LUA_OPEN;
	return found;
}

/* ---- %b %f %1 ----------------------------------------------------------------------------------------------------------- */

static const char *balanced(struct dp_lua_pattern *m, const char *s, const char *p)
{
	size_t depth = 1;
	if (m->pattern_end - p < 2)
		luaL_error(m->L, "malformed pattern (missing arguments to '%%b')");
	if (*s != *p)
		return NULL;
	while (++s < m->end) {
		worked(m, 1);
		if (*s == p[1]) {
			if (!--depth)
				return s + 1;
		} else if (*s == *p) {
			depth++;
		}
	}
	return NULL;
}

static bool is_frontier(struct dp_lua_pattern *m, const char *s, const char *p, const char *end)
{
	const int before = s == m->subject ? 0 : (unsigned char)s[-1];
	worked(m, (size_t)(end - p));
	return !is_of_set(before, p, end - 1) && is_of_set((unsigned char)*s, p, end - 1);
}

static const char *again(struct dp_lua_pattern *m, const char *s, int digit)
{
	const int i = digit - '1';
	if (i < 0 || i >= m->level || m->capture[i].n == DP_LUA_OPEN) {
		luaL_error(m->L, "invalid capture index %%%d", i + 1);
		return NULL;
	}
	const size_t n = (size_t)m->capture[i].n; /* as size_t, a position capture exceeds any length */
	if ((size_t)(m->end - s) < n)
		return NULL;
	worked(m, n);
	return memcmp(m->capture[i].at, s, n) ? NULL : s + n;
}

/* ---- items -------------------------------------------------------------------------------------------------------------- */

/* Matches one item: advances *s past it; NULL: no match. Returns the next item; NULL: *s is the result of the whole match. */
static const char *item(struct dp_lua_pattern *m, const char **s, const char *p)
{
	const char *end = class_end(m, p), *found;
	const bool is = is_one(m, *s, p, end);
	switch (*end) {
	case '?':
		found = is ? match(m, *s + 1, end + 1) : NULL;
		if (!found)
			return end + 1;
		*s = found;
		return NULL;
	case '+':
		*s = is ? longest(m, *s + 1, p, end) : NULL;
		return NULL;
	case '*':
	case '-':
		if (!is)
			return end + 1;
		*s = *end == '*' ? longest(m, *s, p, end) : shortest(m, *s, p, end);
		return NULL;
	default:
		*s = is ? *s + 1 : NULL;
		return end;
	}
}

static const char *escaped(struct dp_lua_pattern *m, const char **s, const char *p)
{
	const char *end;
	switch (p[1]) {
	case 'b':
		*s = balanced(m, *s, p + 2);
		return p + 4;
	case 'f':
		p += 2;
		if (*p != '[')
			luaL_error(m->L, "missing '[' after '%%f' in pattern");
		end = class_end(m, p);
		*s = is_frontier(m, *s, p, end) ? *s : NULL;
		return end;
	default:
		if (!isdigit((unsigned char)p[1]))
			return item(m, s, p);
		*s = again(m, *s, p[1]);
		return p + 2;
	}
}

static const char *step(struct dp_lua_pattern *m, const char **s, const char *p)
{
	switch (*p) {
	case '(':
		*s = open_capture(m, *s, p);
		return NULL;
	case ')':
		*s = close_capture(m, *s, p);
		return NULL;
	case '%':
		return escaped(m, s, p);
	case '$':
		if (p + 1 != m->pattern_end)
			return item(m, s, p);
		*s = *s == m->end ? *s : NULL;
		return NULL;
	default:
		return item(m, s, p);
	}
}

static const char *match(struct dp_lua_pattern *m, const char *s, const char *p)
{
	worked(m, 1);
	if (m->depth++ == DEPTH_MAX)
		luaL_error(m->L, "pattern too complex");
	while (s && p && p != m->pattern_end)
		p = step(m, &s, p);
	m->depth--;
	return s;
}

const char *dp_lua_pattern_match(struct dp_lua_pattern *m, const char *s, const char *p)
{
	m->level = 0;
	m->depth = 0;
	return match(m, s, p);
}
