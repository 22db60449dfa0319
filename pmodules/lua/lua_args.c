/* SPDX-License-Identifier: MIT */
/* Arguments and results of the Lua functions: checks that arguments for C are in range. */
#include "pmodules/lua/lua_internal.h"

#include <limits.h>
#include <string.h>

int dp_lua_text(lua_State *L, const char *text)
{
	lua_pushstring(L, text); /* NULL gives nil */
	return 1;
}

int dp_lua_integer(lua_State *L, lua_Integer v)
{
	lua_pushinteger(L, v);
	return 1;
}

int dp_lua_uint(lua_State *L, uint64_t v)
{
	return dp_lua_integer(L, (lua_Integer)v);
}

int dp_lua_bool(lua_State *L, bool v)
{
	lua_pushboolean(L, v);
	return 1;
}

uint64_t dp_lua_addr(lua_State *L, int arg)
{
	return (uint64_t)luaL_checkinteger(L, arg);
}

const char *dp_lua_name(lua_State *L, int arg)
{
	size_t n;
	const char *s = luaL_checklstring(L, arg, &n);
	luaL_argcheck(L, strlen(s) == n, arg, "a name may not contain NUL");
	return s;
}

const char *dp_lua_optname(lua_State *L, int arg)
{
	return lua_isnoneornil(L, arg) ? NULL : dp_lua_name(L, arg);
}

const char *dp_lua_prose(lua_State *L, int arg)
{
	size_t n;
	const char *s = luaL_checklstring(L, arg, &n), *end = s + n;
	if (strlen(s) == n)
		return s;
	luaL_Buffer b;
	luaL_buffinit(L, &b);
	for (; s < end; s++) {
		if (*s)
			luaL_addchar(&b, *s);
		else
			luaL_addstring(&b, "\\0");
	}
	luaL_pushresult(&b);
	lua_replace(L, arg);
	return lua_tostring(L, arg);
}

int dp_lua_int(lua_State *L, int arg)
{
	lua_Integer v = luaL_checkinteger(L, arg);
	luaL_argcheck(L, v >= INT_MIN && v <= INT_MAX, arg, "out of range");
	return (int)v;
}

unsigned dp_lua_constant(lua_State *L, int arg, unsigned count, const char *table)
{
	lua_Integer v = lua_isinteger(L, arg) ? lua_tointeger(L, arg) : -1;
	if (v < 0 || v >= (lua_Integer)count)
		luaL_argerror(L, arg,
		              lua_pushfstring(L, "one of pmodule.%s expected, got %s", table, luaL_tolstring(L, arg, NULL)));
	return (unsigned)v;
}

bool dp_lua_flag(lua_State *L, int arg, bool otherwise)
{
	return lua_isnoneornil(L, arg) ? otherwise : lua_toboolean(L, arg);
}

const char *dp_lua_missing(lua_State *L)
{
	return dp_lua_of(L)->is_absent ? "<optimized out>" : "<unavailable>";
}

/* The end of a conversion; s is after its '%'. */
static const char *conversion_end(const char *s)
{
	s += strspn(s, "-+ #0123456789.");
	return *s ? s + 1 : s;
}

/* Replaces nil arguments after the format by a text, and their conversions by %s. */
static void spell_missing(lua_State *L, int first, int n)
{
	const char *missing = dp_lua_missing(L);
	luaL_Buffer b;
	lua_pushvalue(L, first); /* keeps the string alive when the buffer replaces it */
	luaL_buffinit(L, &b);
	int arg = 0;
	for (const char *s = lua_tostring(L, first), *percent; *s; s = percent) {
		percent = strchr(s, '%');
		percent = percent ? percent : s + strlen(s);
		luaL_addlstring(&b, s, (size_t)(percent - s));
		if (!*percent)
			break;
		const char *end = percent[1] == '%' ? percent + 2 : conversion_end(percent + 1);
		const bool is_missing = percent[1] != '%' && ++arg <= n && lua_isnil(L, first + arg);
		if (is_missing)
			luaL_addstring(&b, "%s");
		else
			luaL_addlstring(&b, percent, (size_t)(end - percent));
		percent = end;
	}
	luaL_pushresult(&b);
	lua_replace(L, first);
	lua_pop(L, 1);
	for (int i = first + 1; i <= first + n; i++)
		if (lua_isnil(L, i)) {
			lua_pushstring(L, missing);
			lua_replace(L, i);
		}
}

const char *dp_lua_formatted(lua_State *L, int first)
{
	int n = lua_gettop(L) - first;
	luaL_checkstring(L, first);
	if (n > 0) {
		spell_missing(L, first, n);
		lua_rawgeti(L, LUA_REGISTRYINDEX, dp_lua_of(L)->format);
		lua_insert(L, first);
		lua_call(L, n + 1, 1);
	}
	return dp_lua_prose(L, first);
}
