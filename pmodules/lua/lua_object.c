/* SPDX-License-Identifier: MIT */
/* Objects of the snapshot as Lua userdata: creation, checks, comparison, staleness. Errors for unknown names. */
#include "pmodules/lua/lua_internal.h"

#include <string.h>

enum { MAGIC = 0x64704c75, LONGEST_NAME = 64 };

static const char *const kind_name[DP_LUA_KINDS] = {"backtrace", "thread",     "frame",       "variable",
                                                    "siginfo",   "pmap entry", "bt_variable", "match"};

int dp_lua_push(lua_State *L, enum dp_lua_kind kind, const void *p)
{
	if (!p) {
		lua_pushnil(L);
		return 1;
	}
	const struct dp_lua *l = dp_lua_of(L);
	struct dp_lua_object *o = lua_newuserdatauv(L, sizeof(*o), 0);
	*o = (struct dp_lua_object){MAGIC, kind, dp_host_generation(l->m->host), (void *)(uintptr_t)p};
	lua_rawgeti(L, LUA_REGISTRYINDEX, l->meta[kind]);
	lua_setmetatable(L, -2);
	return 1;
}

/* Any of our objects, including stale ones. Does not read beyond the size of other libraries' userdata (io). */
static struct dp_lua_object *ours(lua_State *L, int arg)
{
	if (lua_type(L, arg) != LUA_TUSERDATA || lua_rawlen(L, arg) != sizeof(struct dp_lua_object))
		return NULL;
	struct dp_lua_object *o = lua_touserdata(L, arg);
	return o->magic == MAGIC && o->kind < DP_LUA_KINDS ? o : NULL;
}

static bool is_fresh(lua_State *L, const struct dp_lua_object *o)
{
	uint64_t now = dp_host_generation(dp_lua_of(L)->m->host);
	return o->kind == DP_LUA_MATCH || (now && o->generation == now);
}

void *dp_lua_test(lua_State *L, int arg, enum dp_lua_kind kind)
{
	const struct dp_lua_object *o = ours(L, arg);
	return o && o->kind == kind && is_fresh(L, o) ? o->p : NULL;
}

void *dp_lua_check(lua_State *L, int arg, enum dp_lua_kind kind)
{
	const struct dp_lua_object *o = ours(L, arg);
	if (o && o->kind == kind && is_fresh(L, o))
		return o->p;
	if (o && o->kind == kind)
		luaL_error(L, "stale object: the snapshot of this %s has ended; keep strings and numbers, not objects",
		           kind_name[kind]);
	const char *found = o ? kind_name[o->kind] : luaL_typename(L, arg);
	const char *hint = arg == 1 && kind != DP_LUA_BT ? " (call methods with a colon)" : "";
	luaL_argerror(L, arg, lua_pushfstring(L, "%s expected, got %s%s", kind_name[kind], found, hint));
	return NULL;
}

void *dp_lua_opt(lua_State *L, int arg, enum dp_lua_kind kind)
{
	return lua_isnoneornil(L, arg) ? NULL : dp_lua_check(L, arg, kind);
}

static int object_eq(lua_State *L)
{
	const struct dp_lua_object *a = ours(L, 1), *b = ours(L, 2);
	return dp_lua_bool(L, a && b && a->kind == b->kind && a->generation == b->generation && a->p == b->p);
}

/* ---- unknown names --------------------------------------------------------------------------------------------------------- */

/* Edit distance of short names; `cap` for longer ones. */
static unsigned distance(const char *a, const char *b, unsigned cap)
{
	size_t n = strlen(a), m = strlen(b);
	unsigned row[LONGEST_NAME + 1];
	if (n > LONGEST_NAME || m > LONGEST_NAME)
		return cap;
	for (unsigned j = 0; j <= m; j++)
		row[j] = j;
	for (unsigned i = 1; i <= n; i++) {
		unsigned diagonal = row[0];
		row[0] = i;
		for (unsigned j = 1; j <= m; j++) {
			unsigned change = diagonal + (a[i - 1] != b[j - 1]);
			unsigned other = (row[j] < row[j - 1] ? row[j] : row[j - 1]) + 1;
			diagonal = row[j];
			row[j] = change < other ? change : other;
		}
	}
	return row[m];
}

/* The most similar key of the table at index 1, or NULL. The string belongs to the table. */
static const char *nearest(lua_State *L, const char *wanted)
{
	const char *best = NULL;
	unsigned limit = (unsigned)strlen(wanted) / 3 + 2;
	for (lua_pushnil(L); lua_next(L, 1); lua_pop(L, 1)) {
		if (lua_type(L, -2) != LUA_TSTRING)
			continue;
		const char *key = lua_tostring(L, -2);
		unsigned d = strstr(key, wanted) && *wanted ? 1 : distance(wanted, key, limit);
		if (d < limit) {
			limit = d;
			best = key;
		}
	}
	return best;
}

/* __index of a strict table: (table, key). Upvalue 1: the table's description. */
static int unknown(lua_State *L)
{
	const char *what = lua_tostring(L, lua_upvalueindex(1));
	const char *key = lua_type(L, 2) == LUA_TSTRING ? lua_tostring(L, 2) : luaL_tolstring(L, 2, NULL);
	const char *best = nearest(L, key);
	if (best)
		return luaL_error(L, "%s has no '%s'; did you mean '%s'?", what, key, best);
	return luaL_error(L, "%s has no '%s'", what, key);
}

void dp_lua_strict(lua_State *L, const char *what)
{
	lua_createtable(L, 0, 2);
	lua_pushstring(L, what);
	lua_pushcclosure(L, unknown, 1);
	lua_setfield(L, -2, "__index");
	lua_pushboolean(L, false);
	lua_setfield(L, -2, "__metatable");
	lua_setmetatable(L, -2);
}

/* ---- classes ------------------------------------------------------------------------------------------------------------ */

static int plain_tostring(lua_State *L)
{
	const struct dp_lua_object *o = ours(L, 1);
	if (!o)
		return luaL_error(L, "a pmodule object expected, got %s", luaL_typename(L, 1));
	lua_pushfstring(L, "%s%s: %p", is_fresh(L, o) ? "" : "stale ", kind_name[o->kind], o->p);
	return 1;
}

/* For a stale object: says so instead of calling the class's function. */
static int safe_tostring(lua_State *L)
{
	const struct dp_lua_object *o = ours(L, 1);
	lua_CFunction own = lua_tocfunction(L, lua_upvalueindex(1));
	return own && o && is_fresh(L, o) ? own(L) : plain_tostring(L);
}

static void open_class(lua_State *L, enum dp_lua_kind kind, const struct dp_lua_class *class)
{
	static const luaL_Reg none[] = {{NULL, NULL}};
	lua_newtable(L);
	lua_pushcfunction(L, object_eq);
	lua_setfield(L, -2, "__eq");
	lua_pushcfunction(L, class->tostring ? class->tostring : plain_tostring);
	lua_pushcclosure(L, safe_tostring, 1);
	lua_setfield(L, -2, "__tostring");
	lua_pushstring(L, kind_name[kind]);
	lua_setfield(L, -2, "__name");
	lua_pushstring(L, kind_name[kind]); /* the result of getmetatable(), which protects the metatable */
	lua_setfield(L, -2, "__metatable");
	lua_newtable(L);
	luaL_setfuncs(L, class->methods ? class->methods : none, 0);
	dp_lua_strict(L, kind_name[kind]);
	lua_setfield(L, -2, "__index");
	luaL_setfuncs(L, class->meta ? class->meta : none, 0);
	dp_lua_of(L)->meta[kind] = luaL_ref(L, LUA_REGISTRYINDEX);
}

void dp_lua_open_objects(lua_State *L)
{
	static const struct dp_lua_class *const classes[DP_LUA_KINDS] = {
	        &dp_lua_backtrace_class, &dp_lua_thread_class, &dp_lua_frame_class, &dp_lua_variable_class,
	        &dp_lua_siginfo_class,   &dp_lua_pmap_class,   &dp_lua_bt_class,    &dp_lua_match_class,
	};
	for (unsigned i = 0; i < DP_LUA_KINDS; i++)
		open_class(L, (enum dp_lua_kind)i, classes[i]);
}
