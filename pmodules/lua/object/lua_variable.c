/* SPDX-License-Identifier: MIT */
/* variable as a Lua object. */
#include "pmodules/lua/lua_internal.h"

#include <string.h>

#define VARIABLE(L)            ((ptrace_variable_t *)dp_lua_check(L, 1, DP_LUA_VARIABLE))
#define GETTER(method, push)   DP_LUA_GETTER(variable, VARIABLE, method, push)
#define OBJECT(method, RESULT) DP_LUA_OBJECT(variable, VARIABLE, method, RESULT)
#define SETTER(method, read)   DP_LUA_SETTER(variable, VARIABLE, method, read)

static const char *optprose(lua_State *L, int arg)
{
	return lua_isnoneornil(L, arg) ? NULL : dp_lua_prose(L, arg);
}

GETTER(address, dp_lua_uint)
GETTER(name, dp_lua_text)
GETTER(type, dp_lua_uint)
GETTER(type_name, dp_lua_text)
GETTER(base_type, dp_lua_text)
GETTER(is_string, dp_lua_bool)
GETTER(resolved, dp_lua_bool)
GETTER(depth, dp_lua_uint)
GETTER(object, dp_lua_text)
GETTER(cu, dp_lua_text)
GETTER(why, dp_lua_text)
OBJECT(owner, VARIABLE)
OBJECT(frame, FRAME)
OBJECT(thread, THREAD)
OBJECT(backtrace, BACKTRACE)
OBJECT(bt, BT) /* the value it was made from; nil for synthesized ones, and if the process is gone */
SETTER(set_function, optprose)
SETTER(set_ll, luaL_checkinteger)
SETTER(set_ull, dp_lua_addr)
SETTER(set_dbl, luaL_checknumber)

static int push_real(lua_State *L, ptrace_variable_t *v, bool is_complex)
{
	double re, im = 0;
	if (!pmodule_variable_real(v, &re, &im))
		return dp_lua_text(L, NULL);
	lua_pushnumber(L, re);
	if (is_complex)
		lua_pushnumber(L, im);
	return is_complex ? 2 : 1;
}

/* Remembers why v has no value, for dp_lua_missing(). */
static void note_missing(lua_State *L, ptrace_variable_t *v)
{
	const char *why = pmodule_variable_why(v);
	if (why)
		dp_lua_of(L)->is_absent = !strcmp(why, "optimized out");
}

static int variable_symbol(lua_State *L)
{
	ptrace_variable_t *v = VARIABLE(L);
	note_missing(L, v);
	return dp_lua_text(L, pmodule_variable_symbol(v));
}

static int variable_value(lua_State *L)
{
	ptrace_variable_t *v = VARIABLE(L);
	note_missing(L, v);
	enum pmodule_variable_type type = pmodule_variable_type(v);
	int64_t i;
	if (type >= PMODULE_FLT && type <= PMODULE_CLDBL)
		return push_real(L, v, type >= PMODULE_CFLT);
	if (!pmodule_variable_int(v, &i))
		return dp_lua_text(L, NULL);
	return dp_lua_integer(L, i);
}

static int variable_fprm_offset(lua_State *L)
{
	int64_t i = pmodule_variable_fprm_offset(VARIABLE(L));
	return i < 0 ? dp_lua_text(L, NULL) : dp_lua_uint(L, (uint64_t)i);
}

/* ---- setters ------------------------------------------------------------------------------------------------------------ */

static int variable_set_struct(lua_State *L)
{
	pmodule_variable_set_struct(VARIABLE(L));
	return 0;
}

static int variable_set_array(lua_State *L)
{
	pmodule_variable_set_array(VARIABLE(L));
	return 0;
}

static int variable_set_enum(lua_State *L)
{
	lua_Integer value = luaL_checkinteger(L, 2);
	pmodule_variable_set_enum(VARIABLE(L), value, optprose(L, 3));
	return 0;
}

/* set_string([text]). Also set_string(integer [, text]), the enum setter, which a published reference has under this name. */
static int variable_set_string(lua_State *L)
{
	if (lua_isinteger(L, 2))
		return variable_set_enum(L);
	const char *text = optprose(L, 2);
	ptrace_variable_t *v = VARIABLE(L);
	char *copy = text ? strdup(text) : NULL; /* the API takes ownership */
	if (text && !copy)
		return luaL_error(L, "not enough memory");
	pmodule_variable_set_string(v, copy);
	return 0;
}

static int variable_set_ref(lua_State *L)
{
	uint64_t value = dp_lua_addr(L, 2);
	pmodule_variable_set_ref(VARIABLE(L), value, optprose(L, 3));
	return 0;
}

static int variable_set_cdbl(lua_State *L)
{
	double re = luaL_checknumber(L, 2), im = luaL_checknumber(L, 3);
	pmodule_variable_set_cdbl(VARIABLE(L), re, im);
	return 0;
}

/* set_value(b [, children]): shows a typed value in a variable that the module made. */
static int variable_set_value(lua_State *L)
{
	bt_variable_t *b = dp_lua_check(L, 2, DP_LUA_BT);
	return dp_lua_bool(L, pmodule_variable_value(VARIABLE(L), b, dp_lua_flag(L, 3, true)));
}

/* skip([yes]): hides its raw members. */
static int variable_skip(lua_State *L)
{
	ptrace_variable_t *v = VARIABLE(L);
	unsigned state = pmodule_variable_state(v), skip = PTRACE_VARIABLE_S_SKIP;
	pmodule_variable_state_set(v, dp_lua_flag(L, 2, true) ? state | skip : state & ~skip);
	return 0;
}

static int variable_annotate(lua_State *L)
{
	return dp_lua_annotate(L, DP_LUA_VARIABLE);
}

static int variable_tostring(lua_State *L)
{
	ptrace_variable_t *v = VARIABLE(L);
	const char *type = pmodule_variable_type_name(v), *name = pmodule_variable_name(v);
	lua_pushfstring(L, "variable %s (%s)", name ? name : "[]", type ? type : "?");
	return 1;
}

#define METHOD(name)                                                                                                             \
	{                                                                                                                        \
#name, variable_##name                                                                                           \
	}
static const luaL_Reg variable_methods[] = {
        METHOD(address),  METHOD(name),       METHOD(type),      METHOD(type_name),    METHOD(base_type),  METHOD(value),
        METHOD(symbol),   METHOD(is_string),  METHOD(resolved),  METHOD(why),          METHOD(owner),      METHOD(frame),
        METHOD(thread),   METHOD(backtrace),  METHOD(bt),        METHOD(fprm_offset),  METHOD(depth),      METHOD(object),
        METHOD(cu),       METHOD(set_struct), METHOD(set_array), METHOD(set_function), METHOD(set_string), METHOD(set_enum),
        METHOD(set_ref),  METHOD(set_ll),     METHOD(set_ull),   METHOD(set_dbl),      METHOD(set_cdbl),   METHOD(skip),
        METHOD(annotate), METHOD(set_value),  {NULL, NULL},
};
const struct dp_lua_class dp_lua_variable_class = {variable_methods, NULL, variable_tostring};
