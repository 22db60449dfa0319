/* SPDX-License-Identifier: MIT */
/*
 * Lua's patterns (reference manual, 6.4.1), matched as Lua 5.4 matches them, with one difference: a match that takes long asks
 * whether the module's time is up. The library's own would go on for hours in C, where no hook comes. Private to lua_pattern.c
 * and lua_search.c.
 */
#ifndef DP_PMODULES_LUA_PATTERN_H
#define DP_PMODULES_LUA_PATTERN_H

#include "pmodules/lua/lua_internal.h"

#include <stddef.h>

enum { DP_LUA_CAPTURES = 32, DP_LUA_OPEN = -1, DP_LUA_POSITION = -2 };
struct dp_lua_pattern {
	lua_State *L;
	const char *subject, *end, *pattern_end; /* of Lua's strings: behind them is a NUL */
	int level;                               /* captures, finished or not */
	unsigned depth;
	size_t work; /* since the clock was looked at */
	struct {
		const char *at;
		ptrdiff_t n; /* or DP_LUA_OPEN, DP_LUA_POSITION */
	} capture[DP_LUA_CAPTURES];
};

/* From s on: the end of the match, or NULL. Errors of the pattern, and the end of the time, are raised. */
const char *dp_lua_pattern_match(struct dp_lua_pattern *m, const char *s, const char *p);

#endif
