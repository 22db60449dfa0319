/* SPDX-License-Identifier: MIT */
/* thread as a Lua object. */
#include "pmodules/lua/lua_internal.h"

#define THREAD(L)              ((ptrace_thread_t *)dp_lua_check(L, 1, DP_LUA_THREAD))
#define GETTER(method, push)   DP_LUA_GETTER(thread, THREAD, method, push)
#define OBJECT(method, RESULT) DP_LUA_OBJECT(thread, THREAD, method, RESULT)
#define SETTER(method, read)   DP_LUA_SETTER(thread, THREAD, method, read)

GETTER(tid, dp_lua_integer)
GETTER(fault, dp_lua_bool)
GETTER(n_frames, dp_lua_uint)
GETTER(n_kframes, dp_lua_uint)
GETTER(name, dp_lua_text)
GETTER(state, dp_lua_uint)
OBJECT(backtrace, BACKTRACE)
SETTER(set_name, dp_lua_prose)

/* Returns a list of the kernel's functions, innermost first. */
static int thread_kframes(lua_State *L)
{
	ptrace_thread_t *t = THREAD(L);
	unsigned n = pmodule_thread_n_kframes(t);
	lua_newtable(L);
	for (unsigned i = 0; i < n; i++) {
		dp_lua_text(L, pmodule_thread_kframe(t, i));
		lua_rawseti(L, -2, i + 1);
	}
	return 1;
}

static int thread_register(lua_State *L)
{
	uint64_t v;
	if (!pmodule_thread_register(THREAD(L), dp_lua_name(L, 2), &v))
		return dp_lua_text(L, NULL);
	return dp_lua_uint(L, v);
}

static bool read_thread_register(void *of, const char *name, uint64_t *ret)
{
	return pmodule_thread_register(of, name, ret);
}

static int thread_registers(lua_State *L)
{
	return dp_lua_registers(L, read_thread_register, THREAD(L));
}

static int thread_add_frame(lua_State *L)
{
	ptrace_frame_t *f = dp_lua_check(L, 2, DP_LUA_FRAME);
	if (!pmodule_thread_add_frame(THREAD(L), f, dp_lua_flag(L, 3, true)))
		return luaL_error(L, "add_frame: needs a frame from pmodule.create_frame() that was not added yet");
	return 0;
}

static int thread_annotate(lua_State *L)
{
	return dp_lua_annotate(L, DP_LUA_THREAD);
}

static ptrace_variable_t *next_tls(void *of, const char *const f[3], ptrace_variable_t *previous)
{
	return pmodule_thread_next_variable(of, f[0], f[1], f[2], previous);
}

static int thread_variables_step(lua_State *L)
{
	return dp_lua_next_variable(L, next_tls, DP_LUA_THREAD);
}

static int thread_variables(lua_State *L)
{
	return THREAD(L) ? dp_lua_variables(L, thread_variables_step) : 0;
}

/* Step of: for frame in thread [, match]. Arguments: (thread, match, previous). */
static int thread_call(lua_State *L)
{
	const pmodule_match_t *m = dp_lua_objects_match(L, 2);
	ptrace_frame_t *previous = dp_lua_opt(L, 3, DP_LUA_FRAME);
	return dp_lua_push(L, DP_LUA_FRAME, pmodule_thread_next_frame(THREAD(L), m, previous));
}

static int thread_tostring(lua_State *L)
{
	ptrace_thread_t *t = THREAD(L);
	const char *name = pmodule_thread_name(t);
	lua_pushfstring(L, "thread %d (%s)", (int)pmodule_thread_tid(t), name ? name : "");
	return 1;
}

static const luaL_Reg thread_methods[] = {
        {"tid", thread_tid},
        {"fault", thread_fault},
        {"backtrace", thread_backtrace},
        {"n_frames", thread_n_frames},
        {"n_kframes", thread_n_kframes},
        {"kframes", thread_kframes},
        {"name", thread_name},
        {"state", thread_state},
        {"register", thread_register},
        {"registers", thread_registers},
        {"set_name", thread_set_name},
        {"add_frame", thread_add_frame},
        {"annotate", thread_annotate},
        {"variables", thread_variables},
        {NULL, NULL},
};
static const luaL_Reg thread_meta[] = {{"__call", thread_call}, {NULL, NULL}};
const struct dp_lua_class dp_lua_thread_class = {thread_methods, thread_meta, thread_tostring};
