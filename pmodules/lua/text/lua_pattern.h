/* SPDX-License-Identifier: MIT */
/*
 * Matches Lua patterns (reference manual, 6.4.1) like Lua 5.4, with one difference: a long match checks whether the module's time
 * is up. Lua's own matcher could run for hours in C, where hooks do not run. Private to lua_pattern.c and lua_search.c.
 */
#ifndef DP_PMODULES_LUA_TEXT_LUA_PATTERN_H
#define DP_PMODULES_LUA_TEXT_LUA_PATTERN_H

#include "pmodules/lua/lua_internal.h"

#include <stddef.h>

enum { DP_LUA_CAPTURES = 32, DP_LUA_OPEN = -1, DP_LUA_POSITION = -2 };
struct dp_lua_pattern {
	lua_State *L;
	const char *subject, *end, *pattern_end; /* ends of Lua strings: a NUL follows */
	int level;                               /* captures, finished or not */
	unsigned depth;
	size_t work; /* since the clock was last read */
	struct {
		const char *at;
		ptrdiff_t n; /* or DP_LUA_OPEN, DP_LUA_POSITION */
	} capture[DP_LUA_CAPTURES];
};

/* Matches at s: returns the end of the match, or NULL. Raises pattern errors and the timeout. */
const char *dp_lua_pattern_match(struct dp_lua_pattern *m, const char *s, const char *p);

#endif
