/* SPDX-License-Identifier: MIT */
/* bt_variable: typed values of the process. String keys are members, integer keys are elements; a missing one is an error. */
#include "pmodules/lua/lua_internal.h"

#include <stdlib.h>
#include <string.h>

#define BV(L) ((bt_variable_t *)dp_lua_check(L, 1, DP_LUA_BT))

int dp_lua_push_bt(lua_State *L, bt_variable_t *b)
{
	if (b)
		return dp_lua_push(L, DP_LUA_BT, b);
	dp_lua_check_time(L); /* the timeout is the cause */
	const char *why = bt_error();
	return luaL_error(L, "%s", why && *why ? why : "no such value");
}

static int bv_index(lua_State *L)
{
	bt_variable_t *b = BV(L);
	if (lua_isinteger(L, 2))
		return dp_lua_push_bt(L, bt_variable_index(b, lua_tointeger(L, 2)));
	if (lua_type(L, 2) != LUA_TSTRING)
		return luaL_error(L, "member name or element number expected, got %s", luaL_typename(L, 2));
	return dp_lua_push_bt(L, bt_variable_member(b, dp_lua_name(L, 2)));
}

static int bv_len(lua_State *L)
{
	uint64_t n;
	bt_variable_t *b = BV(L);
	if (!bt_variable_length(b, &n))
		return luaL_error(L, "%s (%s) is not an array of known length", bt_variable_path(b), bt_variable_type_name(b));
	return dp_lua_uint(L, n);
}

static int bv_newindex(lua_State *L)
{
	return luaL_error(L, "a bt_variable is read-only: modules cannot write the program's memory");
}

static int bv_tostring(lua_State *L)
{
	bt_variable_t *b = BV(L);
	const char *path = bt_variable_path(b), *type = bt_variable_type_name(b);
	lua_pushfstring(L, "bt_variable %s (%s)", path ? path : "?", type ? type : "?");
	return 1;
}

static const luaL_Reg bv_meta[] = {{"__index", bv_index}, {"__len", bv_len}, {"__newindex", bv_newindex}, {NULL, NULL}};
const struct dp_lua_class dp_lua_bt_class = {NULL, bv_meta, bv_tostring};

/* try(b, path): the value, or nil and the reason. */
int dp_lua_try(lua_State *L)
{
	bt_variable_t *b = bt_variable_try(BV(L), dp_lua_name(L, 2));
	if (b)
		return dp_lua_push(L, DP_LUA_BT, b);
	dp_lua_check_time(L);
	return dp_lua_text(L, NULL) + dp_lua_text(L, bt_error());
}

/* ---- pmodule.members ---------------------------------------------------------------------------------------------------- */

struct members { /* collected first: Lua may not raise inside the C API */
	size_t n, capacity;
	struct member {
		const char *name;
		bt_variable_t *value;
	} * at;
};

static bool collect(const char *name, bt_variable_t *member, void *data)
{
	struct members *m = data;
	if (m->n < m->capacity)
		m->at[m->n] = (struct member){name, member};
	m->n++;
	return m->n < 65536;
}

/* The iterator. Upvalues: the list, the position, the value. */
static int members_step(lua_State *L)
{
	const struct members *m = lua_touserdata(L, lua_upvalueindex(1));
	lua_Integer i = lua_tointeger(L, lua_upvalueindex(2));
	dp_lua_check(L, lua_upvalueindex(3), DP_LUA_BT); /* raises if stale */
	if (i < 0 || (size_t)i >= m->n)
		return dp_lua_text(L, NULL);
	lua_pushinteger(L, i + 1);
	lua_replace(L, lua_upvalueindex(2));
	return dp_lua_text(L, m->at[i].name ? m->at[i].name : "") + dp_lua_push(L, DP_LUA_BT, m->at[i].value);
}

/* for name, value in pmodule.members(b) */
int dp_lua_members(lua_State *L)
{
	bt_variable_t *b = BV(L);
	struct members count = {0, 0, NULL};
	if (!bt_variable_members(b, collect, &count))
		return dp_lua_push_bt(L, NULL);
	struct members *m = lua_newuserdatauv(L, sizeof(*m) + count.n * sizeof(struct member), 0);
	*m = (struct members){0, count.n, (struct member *)(m + 1)};
	if (!bt_variable_members(b, collect, m))
		return dp_lua_push_bt(L, NULL);
	m->n = m->n < m->capacity ? m->n : m->capacity;
	lua_pushinteger(L, 0);
	lua_pushvalue(L, 1);
	lua_pushcclosure(L, members_step, 3);
	return 1;
}
