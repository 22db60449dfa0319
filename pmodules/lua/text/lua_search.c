/* SPDX-License-Identifier: MIT */
/* string.find, match, gmatch, gsub with the patterns of lua_pattern.c; they behave like Lua 5.4's. */
#include "pmodules/lua/text/lua_pattern.h"

#include <ctype.h>
#include <string.h>

static void begin(lua_State *L, const char *s, size_t n, const char *pattern_end, struct dp_lua_pattern *m)
{
	m->L = L;
	m->subject = s;
	m->end = s + n;
	m->pattern_end = pattern_end;
	m->work = 0;
	m->level = 0;
}

/* ---- captures ----------------------------------------------------------------------------------------------------------- */

/* Gets capture i of the match s .. e, or the whole match. Returns its length; DP_LUA_POSITION: it was pushed as a number. */
static ptrdiff_t capture(struct dp_lua_pattern *m, int i, const char *s, const char *e, const char **ret)
{
	*ret = s;
	if (i >= m->level) {
		if (i)
			luaL_error(m->L, "invalid capture index %%%d", i + 1);
		return e - s;
	}
	*ret = m->capture[i].at;
	if (m->capture[i].n == DP_LUA_OPEN)
		luaL_error(m->L, "unfinished capture");
	if (m->capture[i].n == DP_LUA_POSITION)
		lua_pushinteger(m->L, m->capture[i].at - m->subject + 1);
	return m->capture[i].n;
}

static void push_capture(struct dp_lua_pattern *m, int i, const char *s, const char *e)
{
	const char *text;
	const ptrdiff_t n = capture(m, i, s, e, &text);
	if (n != DP_LUA_POSITION)
		lua_pushlstring(m->L, text, (size_t)n);
}

/* `whole`: without captures, pushes the whole match. */
static int push_captures(struct dp_lua_pattern *m, const char *s, const char *e, bool whole)
{
	const int n = m->level || !whole ? m->level : 1;
	luaL_checkstack(m->L, n, "too many captures");
	for (int i = 0; i < n; i++)
		push_capture(m, i, s, e);
	return n;
}

/* ---- find, match -------------------------------------------------------------------------------------------------------- */

/* The start position from argument `arg`, counted from 0. */
static size_t start_of(lua_State *L, int arg, size_t n)
{
	const lua_Integer at = luaL_optinteger(L, arg, 1);
	if (at > 0)
		return (size_t)at - 1;
	return !at || at < -(lua_Integer)n ? 0 : n + (size_t)at;
}

static bool is_plain(const char *p, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (p[i] && strchr("^$*+?.([%-", p[i]))
			return false;
	return true;
}

static int find_plain(lua_State *L, size_t from)
{
	size_t n, k;
	const char *s = lua_tolstring(L, 1, &n), *p = lua_tolstring(L, 2, &k);
	const char *at = memmem(s + from, n - from, p, k);
	if (!at)
		return dp_lua_text(L, NULL);
	lua_pushinteger(L, at - s + 1);
	lua_pushinteger(L, at - s + (ptrdiff_t)k);
	return 2;
}

static int search(lua_State *L, bool is_find)
{
	size_t n, k;
	const char *s = luaL_checklstring(L, 1, &n), *p = luaL_checklstring(L, 2, &k);
	const size_t from = start_of(L, 3, n);
	struct dp_lua_pattern m;
	if (from > n)
		return dp_lua_text(L, NULL);
	if (is_find && (lua_toboolean(L, 4) || is_plain(p, k)))
		return find_plain(L, from);
	begin(L, s, n, p + k, &m);
	const bool is_anchored = *p == '^';
	p += is_anchored;
	for (const char *at = s + from; at <= m.end; at++) {
		const char *e = dp_lua_pattern_match(&m, at, p);
		if (e && is_find) {
			lua_pushinteger(L, at - s + 1);
			lua_pushinteger(L, e - s);
		}
		if (e)
			return push_captures(&m, at, e, !is_find) + (is_find ? 2 : 0);
		if (is_anchored)
			break;
	}
	return dp_lua_text(L, NULL);
}

static int find(lua_State *L)
{
	return search(L, true);
}

static int match(lua_State *L)
{
	return search(L, false);
}

/* ---- gmatch ------------------------------------------------------------------------------------------------------------- */

struct walk {
	struct dp_lua_pattern m;
	const char *at, *p, *last; /* the end of the last match */
};

static int walk_on(lua_State *L)
{
	struct walk *w = lua_touserdata(L, lua_upvalueindex(3));
	w->m.L = L;
	for (; w->at <= w->m.end; w->at++) {
		const char *s = w->at, *e = dp_lua_pattern_match(&w->m, s, w->p);
		if (!e || e == w->last)
			continue;
		w->at = w->last = e;
		return push_captures(&w->m, s, e, true);
	}
	return 0;
}

static int gmatch(lua_State *L)
{
	size_t n, k;
	const char *s = luaL_checklstring(L, 1, &n), *p = luaL_checklstring(L, 2, &k);
	const size_t from = start_of(L, 3, n);
	lua_settop(L, 2); /* the closure keeps the strings alive */
	struct walk *w = lua_newuserdatauv(L, sizeof(*w), 0);
	begin(L, s, n, p + k, &w->m);
	w->p = p;
	w->at = s + (from > n ? n + 1 : from);
	w->last = NULL;
	lua_pushcclosure(L, walk_on, 3);
	return 1;
}

/* ---- gsub --------------------------------------------------------------------------------------------------------------- */

static void add_text(struct dp_lua_pattern *m, luaL_Buffer *b, const char *s, const char *e)
{
	size_t n;
	const char *to = lua_tolstring(m->L, 3, &n), *end = to + n, *sign, *text;
	while ((sign = memchr(to, '%', (size_t)(end - to)))) {
		luaL_addlstring(b, to, (size_t)(sign - to));
		to = sign + 2;
		if (sign[1] == '%') {
			luaL_addchar(b, '%');
		} else if (sign[1] == '0') {
			luaL_addlstring(b, s, (size_t)(e - s));
		} else if (isdigit((unsigned char)sign[1])) {
			const ptrdiff_t had = capture(m, sign[1] - '1', s, e, &text);
			if (had == DP_LUA_POSITION)
				luaL_addvalue(b);
			else
				luaL_addlstring(b, text, (size_t)had);
		} else {
			luaL_error(m->L, "invalid use of '%c' in replacement string", '%');
		}
	}
	luaL_addlstring(b, to, (size_t)(end - to));
}

/* Adds the replacement; false: it is the original text. */
static bool add_value(struct dp_lua_pattern *m, luaL_Buffer *b, const char *s, const char *e)
{
	lua_State *L = m->L;
	switch (lua_type(L, 3)) {
	case LUA_TFUNCTION:
		lua_pushvalue(L, 3);
		lua_call(L, push_captures(m, s, e, true), 1);
		break;
	case LUA_TTABLE:
		push_capture(m, 0, s, e);
		lua_gettable(L, 3);
		break;
	default:
		add_text(m, b, s, e);
		return true;
	}
	if (!lua_toboolean(L, -1)) {
		lua_pop(L, 1);
		luaL_addlstring(b, s, (size_t)(e - s));
		return false;
	}
	if (!lua_isstring(L, -1))
		luaL_error(L, "invalid replacement value (a %s)", luaL_typename(L, -1));
	luaL_addvalue(b);
	return true;
}

/* Returns the number of replacements. b has the new text if *changed. */
static lua_Integer replace(struct dp_lua_pattern *m, const char *p, lua_Integer most, luaL_Buffer *b, bool *changed)
{
	const char *at = m->subject, *last = NULL;
	const bool is_anchored = *p == '^';
	lua_Integer n = 0;
	p += is_anchored;
	while (n < most) {
		const char *e = dp_lua_pattern_match(m, at, p);
		if (e && e != last) {
			n++;
			*changed |= add_value(m, b, at, e);
			at = last = e;
		} else if (at < m->end) {
			luaL_addchar(b, *at++);
		} else {
			break;
		}
		if (is_anchored)
			break;
	}
	luaL_addlstring(b, at, (size_t)(m->end - at));
	return n;
}

static int gsub(lua_State *L)
{
	size_t n, k;
	const char *s = luaL_checklstring(L, 1, &n), *p = luaL_checklstring(L, 2, &k);
	const int type = lua_type(L, 3);
	const lua_Integer most = luaL_optinteger(L, 4, (lua_Integer)n + 1);
	struct dp_lua_pattern m;
	luaL_Buffer b;
	bool changed = false;
	luaL_argexpected(L, type == LUA_TNUMBER || type == LUA_TSTRING || type == LUA_TFUNCTION || type == LUA_TTABLE, 3,
	                 "string/function/table");
	begin(L, s, n, p + k, &m);
	luaL_buffinit(L, &b);
	const lua_Integer replaced = replace(&m, p, most, &b, &changed);
	luaL_pushresult(&b);
	if (!changed)
		lua_pushvalue(L, 1);
	lua_pushinteger(L, replaced);
	return 2;
}

void dp_lua_open_search(lua_State *L)
{
	static const luaL_Reg functions[] = {{"find", find}, {"match", match}, {"gmatch", gmatch}, {"gsub", gsub}, {NULL, NULL}};
	lua_getglobal(L, LUA_STRLIBNAME);
	luaL_setfuncs(L, functions, 0);
	lua_pop(L, 1);
}
