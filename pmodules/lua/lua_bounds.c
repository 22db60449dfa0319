/* SPDX-License-Identifier: MIT */
/* Bounded versions of library functions that could loop for hours without executing an instruction. */
#include "pmodules/lua/lua_internal.h"

enum { MOST = 1 << 22 }; /* limit on the elements that one call of table.* visits */

int dp_lua_call_original(lua_State *L)
{
	lua_pushvalue(L, lua_upvalueindex(1));
	lua_insert(L, 1);
	lua_call(L, lua_gettop(L) - 1, LUA_MULTRET);
	return lua_gettop(L);
}

/* table.insert, remove, and sort below. The length may come from __len. */
static int bounded_by_length(lua_State *L)
{
	if (lua_type(L, 1) == LUA_TTABLE && luaL_len(L, 1) > MOST)
		return luaL_error(L, "the table has more than %d elements", MOST);
	return dp_lua_call_original(L);
}

/* sort's comparison: upvalue 1; if nil, < (strings may be long). */
static int compare(lua_State *L)
{
	dp_lua_check_time(L);
	lua_settop(L, 2);
	if (lua_isnil(L, lua_upvalueindex(1))) {
		lua_pushboolean(L, lua_compare(L, 1, 2, LUA_OPLT));
		return 1;
	}
	lua_pushvalue(L, lua_upvalueindex(1));
	lua_insert(L, 1);
	lua_call(L, 2, 1);
	return 1;
}

static int bounded_sort(lua_State *L)
{
	lua_settop(L, 2);
	if (!lua_isnil(L, 2))
		luaL_checktype(L, 2, LUA_TFUNCTION);
	lua_pushcclosure(L, compare, 1);
	return bounded_by_length(L);
}

/* table.concat(t, sep, i, j) and table.move(t, i, j, ...): arguments `first` and first + 1 are the range. */
static int bounded_range(lua_State *L, int first)
{
	lua_Integer i = luaL_optinteger(L, first, 1);
	lua_Integer j = lua_isnoneornil(L, first + 1) ? luaL_len(L, 1) : luaL_checkinteger(L, first + 1);
	if (j >= i && (lua_Unsigned)j - (lua_Unsigned)i >= MOST)
		return luaL_error(L, "the range has more than %d elements", MOST);
	return dp_lua_call_original(L);
}

static int bounded_concat(lua_State *L)
{
	return bounded_range(L, 3);
}

static int bounded_move(lua_State *L)
{
	return bounded_range(L, 2);
}

/* string.rep of empty strings is empty, whatever the count. */
static int bounded_rep(lua_State *L)
{
	size_t n, separator = 0;
	luaL_checklstring(L, 1, &n);
	luaL_checkinteger(L, 2);
	luaL_optlstring(L, 3, "", &separator);
	if (n || separator)
		return dp_lua_call_original(L);
	lua_pushliteral(L, "");
	return 1;
}

void dp_lua_wrap(lua_State *L, const char *library, const char *name, lua_CFunction f)
{
	lua_getglobal(L, library);
	lua_getfield(L, -1, name);
	lua_pushcclosure(L, f, 1);
	lua_setfield(L, -2, name);
	lua_pop(L, 1);
}

void dp_lua_bound_libraries(lua_State *L)
{
	dp_lua_open_search(L);
	dp_lua_wrap(L, "table", "insert", bounded_by_length);
	dp_lua_wrap(L, "table", "remove", bounded_by_length);
	dp_lua_wrap(L, "table", "sort", bounded_sort);
	dp_lua_wrap(L, "table", "concat", bounded_concat);
	dp_lua_wrap(L, "table", "move", bounded_move);
	dp_lua_wrap(L, "string", "rep", bounded_rep);
}
