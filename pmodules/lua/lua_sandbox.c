/* SPDX-License-Identifier: MIT */
/*
 * What a module sees besides `pmodule`: Lua's base, string, table, math, utf8 and coroutine libraries; io, os, package, debug and
 * load only if the user allows them. Never: bytecode (Lua does not verify it), finalizers and message handlers that outlive the
 * budget (lua_budget.c), and os.exit, which would end dynprobe while it holds the process.
 */
#include "pmodules/lua/lua_internal.h"

#include <string.h>

static bool is_allowed(const struct dp_lua *l, const char *what)
{
	const char *const *allow = dp_host_lua_allow(l->m->host);
	for (; allow && *allow; allow++)
		if (strcmp(*allow, what) == 0)
			return true;
	return false;
}

/* The host's log callback decides when this is printed: the process may be held. */
static int print(lua_State *L)
{
	const struct dp_lua *l = dp_lua_of(L);
	int n = lua_gettop(L);
	luaL_Buffer b;
	luaL_buffinit(L, &b);
	for (int i = 1; i <= n; i++) {
		if (i > 1)
			luaL_addchar(&b, '\t');
		luaL_tolstring(L, i, NULL);
		luaL_addvalue(&b);
	}
	luaL_pushresult(&b);
	dp_host_log(l->m->host, DP_LOG_PRINT, l->m, "%s", dp_lua_prose(L, n + 1));
	return 0;
}

/* ---- xpcall ------------------------------------------------------------------------------------------------------------- */

/* Calls the handler (upvalue 1), but not for the timeout: handlers run without the hook. */
static int handle(lua_State *L)
{
	if (dp_lua_of(L)->expired)
		return 1;
	lua_pushvalue(L, lua_upvalueindex(1));
	lua_insert(L, 1);
	lua_call(L, lua_gettop(L) - 1, 1);
	return 1;
}

/* xpcall's results: everything above the two values (false, f) at the bottom. */
static int finish(lua_State *L, int status, lua_KContext extra)
{
	if (status != LUA_OK && status != LUA_YIELD) {
		lua_pushboolean(L, false);
		lua_pushvalue(L, -2);
		return 2;
	}
	return lua_gettop(L) - (int)extra;
}

static int safe_xpcall(lua_State *L)
{
	int n = lua_gettop(L);
	luaL_checktype(L, 2, LUA_TFUNCTION);
	lua_pushvalue(L, 2);
	lua_pushcclosure(L, handle, 1);
	lua_replace(L, 2);
	lua_pushboolean(L, true);
	lua_pushvalue(L, 1);
	lua_rotate(L, 3, 2);
	return finish(L, lua_pcallk(L, n - 2, LUA_MULTRET, 2, 2, finish), 2);
}

/* ---- restricted functions ----------------------------------------------------------------------------------------------- */

static int safe_setmetatable(lua_State *L)
{
	if (lua_type(L, 2) == LUA_TTABLE) {
		lua_pushliteral(L, "__gc");
		if (lua_rawget(L, 2) != LUA_TNIL)
			return luaL_error(L, "setmetatable: __gc is not available in modules");
		lua_pop(L, 1);
	}
	return dp_lua_call_original(L);
}

static int safe_collectgarbage(lua_State *L)
{
	static const char *const known[] = {"collect",   "count",       "step",         "stop", "restart",
	                                    "isrunning", "incremental", "generational", NULL};
	int what = luaL_checkoption(L, 1, "collect", known);
	if (what == 0)
		lua_gc(L, LUA_GCCOLLECT);
	if (what == 1)
		lua_pushnumber(L, (double)dp_lua_of(L)->memory / 1024);
	else
		lua_pushinteger(L, 0);
	return 1;
}

/* Calls upvalue 1, the original, with "t" as its argument `mode`: source text only, no bytecode. */
static int text_only(lua_State *L, int mode)
{
	lua_settop(L, lua_gettop(L) < mode ? mode : lua_gettop(L));
	lua_pushliteral(L, "t");
	lua_replace(L, mode);
	return dp_lua_call_original(L);
}

/* load(text [, name [, mode [, env]]]) */
static int text_load(lua_State *L)
{
	return text_only(L, 3);
}

/* loadfile(name [, mode [, env]]) */
static int text_loadfile(lua_State *L)
{
	return text_only(L, 2);
}

static int forbidden(lua_State *L)
{
	return luaL_error(L, "%s is not available in modules%s", lua_tostring(L, lua_upvalueindex(1)),
	                  lua_tostring(L, lua_upvalueindex(2)));
}

/* Replaces a field of the table at the top by a function that raises an error. */
static void forbid(lua_State *L, const char *field, const char *name, const char *hint)
{
	lua_pushstring(L, name);
	lua_pushstring(L, hint);
	lua_pushcclosure(L, forbidden, 2);
	lua_setfield(L, -2, field);
}

static void restrict_base(lua_State *L, bool may_load)
{
	static const luaL_Reg ours[] = {
	        {"print", print}, {"xpcall", safe_xpcall}, {"collectgarbage", safe_collectgarbage}, {NULL, NULL}};
	lua_pushglobaltable(L);
	luaL_setfuncs(L, ours, 0);
	dp_lua_wrap(L, LUA_GNAME, "setmetatable", safe_setmetatable);
	forbid(L, "dofile", "dofile", "");
	if (!is_allowed(dp_lua_of(L), LUA_LOADLIBNAME))
		forbid(L, "require", "require", " (--lua-allow=package)");
	if (may_load) {
		dp_lua_wrap(L, LUA_GNAME, "load", text_load);
		dp_lua_wrap(L, LUA_GNAME, "loadfile", text_loadfile);
	} else {
		forbid(L, "load", "load", " (--lua-allow=load)");
		forbid(L, "loadfile", "loadfile", " (--lua-allow=load)");
	}
	lua_pop(L, 1);
}

/* ---- libraries ---------------------------------------------------------------------------------------------------------- */

static void open_library(lua_State *L, const char *name, lua_CFunction open)
{
	luaL_requiref(L, name, open, 1);
	lua_pop(L, 1);
}

/* An empty table whose errors say how to allow the library. */
static void open_missing(lua_State *L, const char *name)
{
	char what[64];
	snprintf(what, sizeof(what), "%s (not allowed: --lua-allow=%s)", name, name);
	lua_newtable(L);
	dp_lua_strict(L, what);
	lua_setglobal(L, name);
}

static void open_optional(lua_State *L, const char *name, lua_CFunction open)
{
	if (is_allowed(dp_lua_of(L), name))
		open_library(L, name, open);
	else
		open_missing(L, name);
}

static void restrict_os(lua_State *L)
{
	if (!is_allowed(dp_lua_of(L), "os"))
		return;
	lua_getglobal(L, "os");
	forbid(L, "exit", "os.exit", "");
	forbid(L, "setlocale", "os.setlocale", "");
	lua_pop(L, 1);
}

void dp_lua_open_sandbox(lua_State *L)
{
	open_library(L, LUA_GNAME, luaopen_base);
	open_library(L, LUA_STRLIBNAME, luaopen_string);
	open_library(L, LUA_TABLIBNAME, luaopen_table);
	open_library(L, LUA_MATHLIBNAME, luaopen_math);
	open_library(L, LUA_UTF8LIBNAME, luaopen_utf8);
	open_library(L, LUA_COLIBNAME, luaopen_coroutine);
	open_optional(L, LUA_IOLIBNAME, luaopen_io);
	open_optional(L, LUA_OSLIBNAME, luaopen_os);
	open_optional(L, LUA_DBLIBNAME, luaopen_debug);
	open_optional(L, LUA_LOADLIBNAME, luaopen_package);
	restrict_base(L, is_allowed(dp_lua_of(L), "load"));
	restrict_os(L);
	dp_lua_bound_libraries(L);
	lua_getglobal(L, "string");
	lua_getfield(L, -1, "format");
	dp_lua_of(L)->format = luaL_ref(L, LUA_REGISTRYINDEX);
	forbid(L, "dump", "string.dump", "");
	lua_pop(L, 1);
}
