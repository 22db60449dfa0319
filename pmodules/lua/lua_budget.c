/* SPDX-License-Identifier: MIT */
/*
 * A module's time and memory.
 *
 * Memory: the state's allocator has a limit, which includes the second state of lua_search.c; beyond it Lua raises its
 * out-of-memory error.
 *
 * Time: an instruction hook checks the deadline now and then, and raises an error. A module can catch it with pcall, so from then
 * on the hook runs at every instruction: code that catches the error gets the next at once. A coroutine inherits the hook of its
 * creator; its resumer has its own. Hooks do not run in xpcall's handlers for the hook's error, nor in finalizers: lua_sandbox.c
 * has an xpcall that skips handlers then, and forbids finalizers. C loops are bounded in lua_bounds.c and lua_search.c.
 */
#include "pmodules/lua/lua_internal.h"

#include <stdlib.h>

enum { EVERY = 1000 }; /* instructions: a few microseconds */

static void *allocate(void *data, void *p, size_t old, size_t n)
{
	struct dp_lua *l = data;
	size_t had = p ? old : 0; /* without p, `old` is an object kind */
	if (!n) {
		if ((const char *)p < l->second.subject && l->second.subject < (const char *)p + had)
			l->second.subject = NULL;
		free(p);
		l->memory -= had;
		return NULL;
	}
	const size_t used = l->memory + l->second.memory;
	if (n > had && n - had > l->limit - (used < l->limit ? used : l->limit))
		return NULL;
	void *q = realloc(p, n);
	if (q)
		l->memory += n - had;
	return q;
}

static void hook(lua_State *L, lua_Debug *at)
{
	struct dp_lua *l = dp_lua_of(L);
	(void)at;
	if (dp_module_expired(l->m))
		dp_lua_check_time(L);
	else if (lua_gethookcount(L) != EVERY) /* a coroutine of an aborted call */
		lua_sethook(L, hook, LUA_MASKCOUNT, EVERY);
}

void dp_lua_check_time(lua_State *L)
{
	struct dp_lua *l = dp_lua_of(L);
	if (!dp_module_expired(l->m))
		return;
	l->expired = true;
	lua_sethook(L, hook, LUA_MASKCOUNT, 1);
	luaL_error(L, "the module's time is up");
}

void dp_lua_rearm(struct dp_lua *l)
{
	if (!l->expired)
		return;
	l->expired = false;
	lua_sethook(l->L, hook, LUA_MASKCOUNT, EVERY);
}

lua_State *dp_lua_new_state(struct dp_lua *l)
{
	lua_State *L = lua_newstate(allocate, l);
	if (!L)
		return NULL;
	*(struct dp_lua **)lua_getextraspace(L) = l; /* inherited by coroutines */
	lua_sethook(L, hook, LUA_MASKCOUNT, EVERY);
	return L;
}
