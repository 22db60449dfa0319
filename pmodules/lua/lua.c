/* SPDX-License-Identifier: MIT */
/* Lua as a language of pmodules: one state per module. Every entry into Lua is a protected call. */
#include "pmodules/lua/lua.h"

#include "base/cleanup.h"
#include "pmodules/lua/lua_internal.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

enum { BIGGEST_FILE = 4 << 20, SLOTS = 16 };

static int traceback(lua_State *L)
{
	const char *text = lua_type(L, 1) == LUA_TSTRING ? lua_tostring(L, 1) : luaL_tolstring(L, 1, NULL);
	luaL_traceback(L, L, text, 1);
	/*
	 * Drop the useless last line for our own C call, and the title if no other line remains (an error before the file ran).
	 */
	static const char ours[] = "\n\t[C]: in ?", title[] = "\nstack traceback:";
	size_t n;
	const char *whole = lua_tolstring(L, -1, &n);
	n -= n > strlen(ours) && !strcmp(whole + n - strlen(ours), ours) ? strlen(ours) : 0;
	n -= n > strlen(title) && !strncmp(whole + n - strlen(title), title, strlen(title)) ? strlen(title) : 0;
	lua_pushlstring(L, whole, n);
	return 1;
}

static struct dp_error *error_of(const struct dp_lua *l, lua_State *L, int status)
{
	const char *text = lua_type(L, -1) == LUA_TSTRING ? lua_tostring(L, -1) : "an error without a message";
	if (status == LUA_ERRMEM)
		return dp_error(DP_TAG_PMODULE, "%s: out of memory: a module's limit is %zu MiB", l->m->path, l->limit >> 20);
	return dp_error(DP_TAG_PMODULE, "%s", text);
}

/* Runs f(data); Lua errors become a dp_error. */
static struct dp_error *protect(struct dp_lua *l, lua_CFunction f, void *data)
{
	lua_State *L = l->running;
	int top = lua_gettop(L);
	if (!lua_checkstack(L, SLOTS))
		return dp_error(DP_TAG_PMODULE, "%s: Lua stack overflow: too many nested calls", l->m->path);
	lua_pushcfunction(L, traceback);
	lua_pushcfunction(L, f);
	lua_pushlightuserdata(L, data);
	int status = lua_pcall(L, 1, 0, top + 1);
	struct dp_error *err = status == LUA_OK ? NULL : error_of(l, L, status);
	lua_settop(L, top);
	return err;
}

/* ---- callbacks ---------------------------------------------------------------------------------------------------------- */

struct call {
	const struct dp_callback *cb;
	void *object, *value;
};

static enum dp_lua_kind kind_of(enum dp_module_event event)
{
	switch (event) {
	case DP_EVENT_VARIABLE:
		return DP_LUA_VARIABLE;
	case DP_EVENT_FRAME:
		return DP_LUA_FRAME;
	case DP_EVENT_THREAD:
		return DP_LUA_THREAD;
	default:
		return DP_LUA_BACKTRACE;
	}
}

static int run_callback(lua_State *L)
{
	const struct call *c = lua_touserdata(L, 1);
	lua_rawgeti(L, LUA_REGISTRYINDEX, c->cb->ref);
	int n = dp_lua_push(L, kind_of(c->cb->event), c->object);
	if (c->cb->event == DP_EVENT_VARIABLE)
		n += dp_lua_push(L, DP_LUA_BT, c->value);
	lua_call(L, n, 0);
	return 0;
}

static struct dp_error *call(struct pmodule *m, const struct dp_callback *cb, void *object, struct dp_value *value)
{
	struct call c = {cb, object, value};
	dp_lua_rearm(m->state);
	return protect(m->state, run_callback, &c);
}

/* ---- load, reset, unload ------------------------------------------------------------------------------------------------ */

static int run_function(lua_State *L)
{
	const int *reference = lua_touserdata(L, 1);
	lua_rawgeti(L, LUA_REGISTRYINDEX, *reference);
	lua_call(L, 0, 0);
	return 0;
}

static struct dp_error *run(struct dp_lua *l, int *reference)
{
	dp_lua_rearm(l);
	return *reference == LUA_NOREF ? NULL : protect(l, run_function, reference);
}

static struct dp_error *load(struct pmodule *m)
{
	struct dp_lua *l = m->state;
	return run(l, &l->load);
}

static void reset(struct pmodule *m)
{
	struct dp_lua *l = m->state;
	struct dp_error *err = run(l, &l->reset);
	if (err)
		dp_module_error(m, err);
}

static void unload(struct pmodule *m)
{
	struct dp_lua *l = m->state;
	struct dp_error *err = run(l, &l->unload);
	if (err)
		dp_module_error(m, err);
}

static void close_module(struct pmodule *m)
{
	struct dp_lua *l = m->state;
	if (l && l->L)
		lua_close(l->L);
	if (l)
		dp_lua_drop_second(l);
	free(l);
	m->state = NULL;
}

static const struct dp_language language = {load, reset, unload, call, close_module};

/* ---- open --------------------------------------------------------------------------------------------------------------- */

static int open_state(lua_State *L)
{
	dp_lua_open_objects(L);
	dp_lua_open_sandbox(L);
	dp_lua_open_module(L);
	return 0;
}

static int run_chunk(lua_State *L)
{
	const struct dp_lua *l = lua_touserdata(L, 1);
	if (luaL_loadfilex(L, l->m->path, "t") != LUA_OK)
		return lua_error(L);
	lua_call(L, 0, 0);
	if (!l->m->id)
		return luaL_error(L, "%s: not a module: it does not call pmodule.define{id = ..., load = ...}", l->m->path);
	return 0;
}

static struct dp_error *check_file(const char *path)
{
	struct stat st;
	if (stat(path, &st) < 0)
		return dp_error_sys(DP_TAG_PMODULE, "%s", path);
	if (!S_ISREG(st.st_mode))
		return dp_error(DP_TAG_PMODULE, "%s: not a regular file: a module is a *.lua or *.so file", path);
	if (st.st_size > BIGGEST_FILE)
		return dp_error(DP_TAG_PMODULE, "%s: %lld bytes: a module's limit is 4 MiB", path, (long long)st.st_size);
	return NULL;
}

static struct dp_error *open_module(struct pmodule *m)
{
	struct dp_lua *l = m->state = calloc(1, sizeof(*l));
	if (!l)
		return dp_error(DP_TAG_PMODULE, "%s: out of memory", m->path);
	l->m = m;
	l->limit = dp_module_memory(m);
	l->load = l->reset = l->unload = LUA_NOREF;
	l->L = l->running = dp_lua_new_state(l);
	if (!l->L)
		return dp_error(DP_TAG_PMODULE, "%s: Lua needs more memory than the limit of %zu bytes", m->path, l->limit);
	DP_TRY(protect(l, open_state, l));
	l->is_chunk = true;
	struct dp_error *err = protect(l, run_chunk, l);
	l->is_chunk = false;
	return err;
}

struct dp_error *dp_lua_open(struct pmodule *m)
{
	DP_TRY(check_file(m->path));
	struct dp_error *err = open_module(m);
	if (err) {
		close_module(m);
		return err;
	}
	m->language = &language;
	return NULL;
}
