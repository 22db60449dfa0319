/* SPDX-License-Identifier: MIT */
/* frame as a Lua object. */
#include "pmodules/lua/lua_internal.h"

#define FRAME(L)               ((ptrace_frame_t *)dp_lua_check(L, 1, DP_LUA_FRAME))
#define GETTER(method, push)   DP_LUA_GETTER(frame, FRAME, method, push)
#define OBJECT(method, RESULT) DP_LUA_OBJECT(frame, FRAME, method, RESULT)
#define SETTER(method, read)   DP_LUA_SETTER(frame, FRAME, method, read)

GETTER(symbol, dp_lua_text)
GETTER(path, dp_lua_text)
GETTER(line, dp_lua_integer)
GETTER(decl_line, dp_lua_integer)
GETTER(line_resolved, dp_lua_bool)
GETTER(object_file, dp_lua_text)
GETTER(instruction, dp_lua_text)
GETTER(pc, dp_lua_uint)
GETTER(sp, dp_lua_uint)
GETTER(index, dp_lua_uint)
GETTER(is_inline, dp_lua_bool)
GETTER(is_tail, dp_lua_bool)
GETTER(is_guess, dp_lua_bool)
GETTER(fault, dp_lua_bool)
SETTER(set_symbol, dp_lua_prose)
SETTER(set_basename, dp_lua_prose)
SETTER(set_directory, dp_lua_prose)
SETTER(set_path, dp_lua_prose)
SETTER(set_line, dp_lua_int)
SETTER(set_decl_line, dp_lua_int)
OBJECT(thread, THREAD)
OBJECT(backtrace, BACKTRACE)
OBJECT(siginfo, SIGINFO)

/* The i-th parameter, or NULL. i may be out of range. */
static ptrace_variable_t *parameter(lua_State *L, lua_Integer i)
{
	return i < 0 || i > UINT32_MAX ? NULL : pmodule_frame_fprm_at(FRAME(L), (unsigned)i);
}

static int frame_fprm_at(lua_State *L)
{
	FRAME(L);
	return dp_lua_push(L, DP_LUA_VARIABLE, parameter(L, luaL_checkinteger(L, 2)));
}

/* The iterator. Upvalue 1: the frame. Arguments: (nil, previous). */
static int frame_fprm_step(lua_State *L)
{
	ptrace_variable_t *previous = dp_lua_opt(L, 2, DP_LUA_VARIABLE);
	ptrace_frame_t *f = dp_lua_check(L, lua_upvalueindex(1), DP_LUA_FRAME);
	int64_t i = previous ? pmodule_variable_fprm_offset(previous) + 1 : 0;
	ptrace_variable_t *v = i < 0 || i > UINT32_MAX ? NULL : pmodule_frame_fprm_at(f, (unsigned)i);
	if (!v || (previous && !i)) /* i is 0 again: previous is not a parameter */
		return 0;
	return dp_lua_push(L, DP_LUA_VARIABLE, v) + dp_lua_uint(L, (uint64_t)i);
}

static int frame_fprm(lua_State *L)
{
	FRAME(L);
	lua_settop(L, 1);
	lua_pushcclosure(L, frame_fprm_step, 1);
	return 1;
}

static int frame_register(lua_State *L)
{
	uint64_t v;
	if (!pmodule_frame_register(FRAME(L), dp_lua_name(L, 2), &v))
		return dp_lua_text(L, NULL);
	return dp_lua_uint(L, v);
}

static bool read_frame_register(void *of, const char *name, uint64_t *ret)
{
	return pmodule_frame_register(of, name, ret);
}

static int frame_registers(lua_State *L)
{
	return dp_lua_registers(L, read_frame_register, FRAME(L));
}

static int frame_query(lua_State *L)
{
	return dp_lua_push(L, DP_LUA_BT, pmodule_frame_query(FRAME(L), dp_lua_name(L, 2)));
}

static int frame_add_variable(lua_State *L)
{
	ptrace_variable_t *v = dp_lua_check(L, 2, DP_LUA_VARIABLE);
	if (!pmodule_frame_add_variable(FRAME(L), v, dp_lua_flag(L, 3, true)))
		return luaL_error(L, "add_variable: needs a variable from pmodule.create_variable() that was not added yet");
	return 0;
}

static int frame_add_frame(lua_State *L)
{
	ptrace_frame_t *f = dp_lua_check(L, 2, DP_LUA_FRAME);
	if (!pmodule_frame_add_frame(FRAME(L), f, dp_lua_flag(L, 3, false)))
		return luaL_error(L, "add_frame: needs a thread's frame, and a frame from pmodule.create_frame() not yet added");
	return 0;
}

static int frame_annotate(lua_State *L)
{
	return dp_lua_annotate(L, DP_LUA_FRAME);
}

/* Step of: for variable in frame [, match]. Arguments: (frame, match, previous). */
static int frame_call(lua_State *L)
{
	const pmodule_match_t *m = dp_lua_optmatch(L, 2);
	ptrace_variable_t *previous = dp_lua_opt(L, 3, DP_LUA_VARIABLE);
	return dp_lua_push(L, DP_LUA_VARIABLE, pmodule_frame_next_variable(FRAME(L), m, previous));
}

static int frame_tostring(lua_State *L)
{
	ptrace_frame_t *f = FRAME(L);
	const char *symbol = pmodule_frame_symbol(f);
	lua_pushfstring(L, "frame %d (%s)", (int)pmodule_frame_index(f), symbol ? symbol : "?");
	return 1;
}

#define METHOD(name)                                                                                                             \
	{                                                                                                                        \
#name, frame_##name                                                                                              \
	}
static const luaL_Reg frame_methods[] = {
        METHOD(symbol),       METHOD(path),          METHOD(line),     METHOD(decl_line),    METHOD(line_resolved),
        METHOD(object_file),  METHOD(instruction),   METHOD(pc),       METHOD(sp),           METHOD(index),
        METHOD(is_inline),    METHOD(is_tail),       METHOD(is_guess), METHOD(fault),        METHOD(set_symbol),
        METHOD(set_basename), METHOD(set_directory), METHOD(set_path), METHOD(set_line),     METHOD(set_decl_line),
        METHOD(thread),       METHOD(backtrace),     METHOD(siginfo),  METHOD(fprm),         METHOD(fprm_at),
        METHOD(register),     METHOD(registers),     METHOD(query),    METHOD(add_variable), METHOD(add_frame),
        METHOD(annotate),     {NULL, NULL},
};
static const luaL_Reg frame_meta[] = {{"__call", frame_call}, {NULL, NULL}};
const struct dp_lua_class dp_lua_frame_class = {frame_methods, frame_meta, frame_tostring};
