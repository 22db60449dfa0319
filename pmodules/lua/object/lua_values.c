/* SPDX-License-Identifier: MIT */
/* Functions of the table `pmodule` that make objects: variables, frames, typed values. */
#include "pmodules/lua/lua_internal.h"

#include <stdlib.h>

#define BV(L) ((bt_variable_t *)dp_lua_check(L, 1, DP_LUA_BT))

static int backtrace(lua_State *L)
{
	ptrace_backtrace_t *bt = pmodule_backtrace();
	if (!bt)
		return luaL_error(L, "pmodule.backtrace(): only available in event callbacks");
	return dp_lua_push(L, DP_LUA_BACKTRACE, bt);
}

static int create_variable(lua_State *L)
{
	const char *type = dp_lua_name(L, 1), *name = dp_lua_optname(L, 2);
	uint64_t addr = dp_lua_addr(L, 3);
	lua_Integer offset = luaL_optinteger(L, 4, -1);
	ptrace_variable_t *owner = dp_lua_opt(L, 5, DP_LUA_VARIABLE);
	ptrace_variable_t *v = pmodule_variable_create(type, name, addr, offset, owner);
	if (!v)
		return luaL_error(L, "create_variable: not in an event callback, or the limit is reached");
	return dp_lua_push(L, DP_LUA_VARIABLE, v);
}

static int create_frame(lua_State *L)
{
	ptrace_frame_t *f = pmodule_frame_create();
	if (!f)
		return luaL_error(L, "create_frame: not in an event callback, or the limit is reached");
	return dp_lua_push(L, DP_LUA_FRAME, f);
}

/* Pushes a search's result, or nil. A search stops when the module's time is up: then this raises the timeout. */
static int push_found(lua_State *L, bt_variable_t *b)
{
	if (!b)
		dp_lua_check_time(L);
	return dp_lua_push(L, DP_LUA_BT, b);
}

static int bt_query(lua_State *L)
{
	const char *symbol = dp_lua_name(L, 1), *object = dp_lua_optname(L, 2);
	return push_found(L, pmodule_bt_query(symbol, object, dp_lua_optname(L, 3)));
}

static int bt_frame_query(lua_State *L)
{
	ptrace_frame_t *f = dp_lua_check(L, 1, DP_LUA_FRAME);
	return dp_lua_push(L, DP_LUA_BT, pmodule_frame_query(f, dp_lua_name(L, 2)));
}

static int variable_from_bt(lua_State *L)
{
	ptrace_variable_t *v = pmodule_variable_from_bt(BV(L));
	if (!v)
		return dp_lua_push_bt(L, NULL);
	return dp_lua_push(L, DP_LUA_VARIABLE, v);
}

static int variable_at(lua_State *L)
{
	const char *type = dp_lua_name(L, 1);
	uint64_t addr = dp_lua_addr(L, 2);
	return push_found(L, pmodule_variable_at(type, addr, dp_lua_optname(L, 3)));
}

static int deref(lua_State *L)
{
	bt_variable_t *b = BV(L);
	if (lua_isnoneornil(L, 2))
		return dp_lua_push_bt(L, bt_variable_deref(b));
	return dp_lua_push_bt(L, bt_variable_deref_at(b, dp_lua_addr(L, 2)));
}

static int size_of(lua_State *L)
{
	return dp_lua_uint(L, bt_variable_sizeof(BV(L)));
}

static int cast(lua_State *L)
{
	bt_variable_t *b = BV(L);
	return dp_lua_push_bt(L, bt_variable_cast(b, dp_lua_name(L, 2)));
}

static int type_of(lua_State *L)
{
	return dp_lua_text(L, bt_variable_type_name(BV(L)));
}

static int addressof(lua_State *L)
{
	return dp_lua_push_bt(L, bt_variable_addressof(BV(L)));
}

static int container_of(lua_State *L)
{
	bt_variable_t *b = BV(L);
	const char *type = dp_lua_name(L, 2);
	return dp_lua_push_bt(L, bt_variable_container_of(b, type, dp_lua_name(L, 3)));
}

/* address(b): its address; nil if it is in registers. */
static int address(lua_State *L)
{
	uint64_t addr;
	return bt_variable_address(BV(L), &addr) ? dp_lua_uint(L, addr) : dp_lua_text(L, NULL);
}

static int path(lua_State *L)
{
	return dp_lua_text(L, bt_variable_path(BV(L)));
}

/* dispatch(v, b): runs the variable callbacks on v now, on this Lua thread. */
static int dispatch(lua_State *L)
{
	struct dp_lua *l = dp_lua_of(L);
	lua_State *before = l->running;
	ptrace_variable_t *v = dp_lua_check(L, 1, DP_LUA_VARIABLE);
	bt_variable_t *b = dp_lua_opt(L, 2, DP_LUA_BT);
	l->running = L;
	pmodule_variable_dispatch(v, b);
	l->running = before;
	dp_lua_check_time(L);
	return 0;
}

static int template_arg(lua_State *L)
{
	const char *type = dp_lua_name(L, 1);
	lua_Integer n = luaL_checkinteger(L, 2);
	char *text = NULL;
	if (n < 0 || n > 1000 || !pmodule_cpp_template_nth_argument(&text, type, (unsigned)n))
		return dp_lua_text(L, NULL);
	luaL_Buffer b; /* get the room first: nothing may raise while we own the text */
	luaL_buffinit(L, &b);
	size_t size = lua_rawlen(L, 1);
	char *to = luaL_prepbuffsize(&b, size + 1);
	int length = snprintf(to, size + 1, "%s", text);
	free(text);
	luaL_addsize(&b, length < 0 ? 0 : (size_t)length < size ? (size_t)length : size);
	luaL_pushresult(&b);
	return 1;
}

#define FUNCTION(name)                                                                                                           \
	{                                                                                                                        \
#name, name                                                                                                      \
	}
const luaL_Reg dp_lua_values[] = {
        FUNCTION(backtrace),
        FUNCTION(create_variable),
        FUNCTION(create_frame),
        FUNCTION(bt_query),
        FUNCTION(bt_frame_query),
        FUNCTION(variable_from_bt),
        FUNCTION(variable_at),
        FUNCTION(deref),
        {"sizeof", size_of},
        FUNCTION(cast),
        {"typeof", type_of},
        FUNCTION(addressof),
        FUNCTION(container_of),
        FUNCTION(address),
        FUNCTION(path),
        FUNCTION(dispatch),
        FUNCTION(template_arg),
        {"try", dp_lua_try},
        {"members", dp_lua_members},
        {NULL, NULL},
};
