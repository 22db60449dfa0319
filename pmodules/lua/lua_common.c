/* SPDX-License-Identifier: MIT */
/* Shared by several classes of Lua objects: annotations, registers, iterators over globals and thread-locals. */
#include "pmodules/lua/lua_internal.h"

int dp_lua_annotate(lua_State *L, enum dp_lua_kind kind)
{
	void *of = dp_lua_check(L, 1, kind);
	enum pmodule_annotation what = dp_lua_constant(L, 2, PAT_JSON + 1, "annotation");
	const char *text = dp_lua_formatted(L, 3);
	switch (kind) {
	case DP_LUA_BACKTRACE:
		return dp_lua_bool(L, pmodule_backtrace_annotate(of, what, "%s", text));
	case DP_LUA_THREAD:
		return dp_lua_bool(L, pmodule_thread_annotate(of, what, "%s", text));
	case DP_LUA_FRAME:
		return dp_lua_bool(L, pmodule_frame_annotate(of, what, "%s", text));
	default:
		return dp_lua_bool(L, pmodule_variable_annotate(of, what, "%s", text));
	}
}

int dp_lua_registers(lua_State *L, dp_lua_register_fn *read, void *of)
{
	lua_createtable(L, 0, DP_DWARF_REGS);
	for (unsigned i = 0; i < DP_DWARF_REGS; i++) {
		uint64_t v;
		if (!read(of, dp_snap_register_name[i], &v))
			continue;
		dp_lua_uint(L, v);
		lua_setfield(L, -2, dp_snap_register_name[i]);
	}
	return 1;
}

int dp_lua_variables(lua_State *L, lua_CFunction step)
{
	if (!lua_isnoneornil(L, 2))
		luaL_checktype(L, 2, LUA_TTABLE);
	lua_settop(L, 2);
	lua_pushcclosure(L, step, 2);
	return 1;
}

/* Arguments: (filter or nil, previous or nil). Upvalues: the object, the filter passed to variables(). */
int dp_lua_next_variable(lua_State *L, dp_lua_next_fn *next, enum dp_lua_kind kind)
{
	static const char *const field[3] = {"object", "cu", "name"};
	const char *filter[3] = {NULL};
	lua_settop(L, 2);
	void *of = dp_lua_check(L, lua_upvalueindex(1), kind);
	int table = lua_isnil(L, 1) ? lua_upvalueindex(2) : 1;
	for (int i = 0; !lua_isnil(L, table) && i < 3; i++) {
		luaL_checktype(L, table, LUA_TTABLE);
		lua_getfield(L, table, field[i]);
		if (!lua_isnil(L, -1) && lua_type(L, -1) != LUA_TSTRING)
			return luaL_error(L, "filter.%s: a string expected, got %s", field[i], luaL_typename(L, -1));
		filter[i] = dp_lua_optname(L, lua_gettop(L));
	}
	ptrace_variable_t *v = next(of, filter, dp_lua_opt(L, 2, DP_LUA_VARIABLE));
	dp_lua_push(L, DP_LUA_VARIABLE, v);
	return 1 + dp_lua_text(L, pmodule_variable_object(v)) + dp_lua_text(L, pmodule_variable_cu(v));
}
