/* SPDX-License-Identifier: MIT */
/* match objects: criteria for threads, frames and variables. */
#include "pmodules/lua/lua_internal.h"

#define MATCH(L) ((pmodule_match_t *)dp_lua_check(L, 1, DP_LUA_MATCH))

int dp_lua_match(lua_State *L)
{
	static const char none; /* an object whose pointer is set next: it is collected even if that fails */
	dp_lua_push(L, DP_LUA_MATCH, &none);
	struct dp_lua_object *o = lua_touserdata(L, -1);
	o->p = pmodule_match_create();
	return o->p ? 1 : luaL_error(L, "not enough memory");
}

/* Only our hidden metatables have this function, but a module may be allowed to use debug. */
static int match_gc(lua_State *L)
{
	if (!dp_lua_test(L, 1, DP_LUA_MATCH))
		return 0;
	struct dp_lua_object *o = lua_touserdata(L, 1);
	pmodule_match_destroy(o->p);
	o->p = NULL;
	o->magic = 0;
	return 0;
}

const pmodule_match_t *dp_lua_optmatch(lua_State *L, int arg)
{
	return dp_lua_opt(L, arg, DP_LUA_MATCH);
}

const pmodule_match_t *dp_lua_objects_match(lua_State *L, int arg)
{
	const pmodule_match_t *m = dp_lua_optmatch(L, arg);
	if (m && dp_match_of_variables(m))
		luaL_argerror(L, arg, "this match has criteria of variables, which do not apply to threads and frames");
	return m;
}

static int match_reset(lua_State *L)
{
	pmodule_match_reset(MATCH(L));
	return 0;
}

typedef bool add_fn(pmodule_match_t *, const char *, enum pmodule_match_type);

static int add(lua_State *L, add_fn *f)
{
	pmodule_match_t *m = MATCH(L);
	const char *text = dp_lua_name(L, 2);
	bool exact = lua_isnoneornil(L, 3);
	unsigned type = exact ? PMODULE_MATCH_EXACT : dp_lua_constant(L, 3, PMODULE_MATCH_SUBSTR + 1, "match_type");
	if (!f(m, text, type))
		return luaL_error(L, "cannot add a criterion to the match (out of memory)");
	return 0;
}

#define ADDER(what)                                                                                                              \
	static int match_add_##what(lua_State *L)                                                                                \
	{                                                                                                                        \
		return add(L, pmodule_match_add_##what);                                                                         \
	}
ADDER(object)
ADDER(file)
ADDER(frame_symbol)
ADDER(variable_base_type)
ADDER(variable_name)

static int match_add_variable_ptrace_type(lua_State *L)
{
	enum pmodule_variable_type type = dp_lua_constant(L, 2, PMODULE_REFERENCE + 1, "variable_type");
	if (!pmodule_match_add_variable_ptrace_type(MATCH(L), type))
		return luaL_error(L, "cannot add a criterion to the match (out of memory)");
	return 0;
}

static int match_set_fault(lua_State *L)
{
	pmodule_match_set_fault(MATCH(L), dp_lua_flag(L, 2, false));
	return 0;
}

static const luaL_Reg match_methods[] = {
        {"reset", match_reset},
        {"add_object", match_add_object},
        {"add_file", match_add_file},
        {"add_frame_symbol", match_add_frame_symbol},
        {"add_variable_base_type", match_add_variable_base_type},
        {"add_base_type", match_add_variable_base_type},
        {"add_variable_ptrace_type", match_add_variable_ptrace_type},
        {"add_variable_name", match_add_variable_name},
        {"set_fault", match_set_fault},
        {NULL, NULL},
};
static const luaL_Reg match_meta[] = {{"__gc", match_gc}, {NULL, NULL}};
const struct dp_lua_class dp_lua_match_class = {match_methods, match_meta, NULL};
