/* SPDX-License-Identifier: MIT */
/* backtrace, siginfo and pmap entry as Lua objects. */
#include "pmodules/lua/lua_internal.h"

#define BT(L) ((ptrace_backtrace_t *)dp_lua_check(L, 1, DP_LUA_BACKTRACE))

DP_LUA_GETTER(backtrace, BACKTRACE, pid, dp_lua_integer)
DP_LUA_GETTER(backtrace, BACKTRACE, inner_pid, dp_lua_integer)
DP_LUA_GETTER(backtrace, BACKTRACE, comm, dp_lua_text)
DP_LUA_GETTER(backtrace, BACKTRACE, exe, dp_lua_text)
DP_LUA_GETTER(backtrace, BACKTRACE, application_name, dp_lua_text)
DP_LUA_GETTER(backtrace, BACKTRACE, process_state, dp_lua_uint)
DP_LUA_SETTER(backtrace, BACKTRACE, add_tag, dp_lua_name)
DP_LUA_SETTER(backtrace, BACKTRACE, add_classifier, dp_lua_name)

static int backtrace_pmap_entry(lua_State *L)
{
	return dp_lua_push(L, DP_LUA_PMAP, pmodule_backtrace_pmap_entry(BT(L), dp_lua_addr(L, 2)));
}

static int backtrace_add_kv_int(lua_State *L)
{
	ptrace_backtrace_t *bt = BT(L);
	const char *key = dp_lua_name(L, 2);
	if (lua_isnil(L, 3))
		pmodule_backtrace_add_kv_string(bt, key, dp_lua_missing(L));
	else
		pmodule_backtrace_add_kv_int(bt, key, luaL_checkinteger(L, 3));
	return 0;
}

static int backtrace_add_kv_string(lua_State *L)
{
	ptrace_backtrace_t *bt = BT(L);
	const char *key = dp_lua_name(L, 2);
	pmodule_backtrace_add_kv_string(bt, key, lua_isnil(L, 3) ? dp_lua_missing(L) : dp_lua_formatted(L, 3));
	return 0;
}

static int backtrace_annotate(lua_State *L)
{
	return dp_lua_annotate(L, DP_LUA_BACKTRACE);
}

static ptrace_variable_t *next_global(void *of, const char *const f[3], ptrace_variable_t *previous)
{
	return pmodule_backtrace_next_variable(of, f[0], f[1], f[2], previous);
}

static int backtrace_variables_step(lua_State *L)
{
	return dp_lua_next_variable(L, next_global, DP_LUA_BACKTRACE);
}

static int backtrace_variables(lua_State *L)
{
	return BT(L) ? dp_lua_variables(L, backtrace_variables_step) : 0;
}

/* Step of: for entry in bt:pmap(). Upvalue 1: the backtrace. */
static int backtrace_pmap_step(lua_State *L)
{
	ptrace_backtrace_t *bt = dp_lua_check(L, lua_upvalueindex(1), DP_LUA_BACKTRACE);
	return dp_lua_push(L, DP_LUA_PMAP, pmodule_backtrace_next_pmap(bt, dp_lua_opt(L, 2, DP_LUA_PMAP)));
}

static int backtrace_pmap(lua_State *L)
{
	BT(L);
	lua_settop(L, 1);
	lua_pushcclosure(L, backtrace_pmap_step, 1);
	return 1;
}

/* Returns a table of open files: [fd] = target. */
static int backtrace_files(lua_State *L)
{
	ptrace_backtrace_t *bt = BT(L);
	int fd;
	const char *target;
	lua_newtable(L);
	for (unsigned i = 0; (target = pmodule_backtrace_file(bt, i, &fd)) != NULL; i++) {
		lua_pushstring(L, target);
		lua_rawseti(L, -2, fd);
	}
	return 1;
}

static void set_number(lua_State *L, const char *name, uint64_t n)
{
	dp_lua_uint(L, n);
	lua_setfield(L, -2, name);
}

static void set_groups(lua_State *L, const char *name, const struct pmodule_heap_group *g, size_t n)
{
	lua_newtable(L);
	for (size_t i = 0; i < n; i++, g++) {
		lua_createtable(L, 0, 6);
		set_number(L, "size", g->size);
		set_number(L, "count", g->count);
		set_number(L, "bytes", g->bytes);
		set_number(L, "within", g->within);
		set_number(L, "address", g->address);
		set_number(L, "first", g->first);
		lua_rawseti(L, -2, (lua_Integer)i + 1);
	}
	lua_setfield(L, -2, name);
}

/* Returns a table with the names of struct pmodule_heap, or nil and why nothing is known. */
static int backtrace_heap(lua_State *L)
{
	const struct pmodule_heap *h = pmodule_backtrace_heap(BT(L));
	if (!h || h->why)
		return dp_lua_text(L, NULL) + dp_lua_text(L, h ? h->why : "out of memory");
	lua_createtable(L, 0, 12);
	set_number(L, "used", h->used);
	set_number(L, "used_bytes", h->used_bytes);
	set_number(L, "cached", h->cached);
	set_number(L, "cached_bytes", h->cached_bytes);
	set_number(L, "lost", h->lost);
	set_number(L, "lost_bytes", h->lost_bytes);
	set_number(L, "within", h->within);
	set_number(L, "unknown_bytes", h->unknown_bytes);
	dp_lua_bool(L, h->knows_caches);
	lua_setfield(L, -2, "knows_caches");
	dp_lua_bool(L, h->knows_fast);
	lua_setfield(L, -2, "knows_fast");
	set_groups(L, "groups", h->group, h->ngroups);
	set_groups(L, "used_groups", h->used_group, h->nused_groups);
	return 1;
}

/* Step of: for thread in bt [, match]. Arguments: (bt, match, previous). */
static int backtrace_call(lua_State *L)
{
	const pmodule_match_t *m = dp_lua_objects_match(L, 2);
	ptrace_thread_t *previous = dp_lua_opt(L, 3, DP_LUA_THREAD);
	return dp_lua_push(L, DP_LUA_THREAD, pmodule_backtrace_next_thread(BT(L), m, previous));
}

static int backtrace_tostring(lua_State *L)
{
	ptrace_backtrace_t *bt = BT(L);
	const char *name = pmodule_backtrace_application_name(bt);
	lua_pushfstring(L, "backtrace of %s, pid %d", name ? name : "?", (int)pmodule_backtrace_pid(bt));
	return 1;
}

static const luaL_Reg backtrace_methods[] = {
        {"pid", backtrace_pid},
        {"inner_pid", backtrace_inner_pid},
        {"comm", backtrace_comm},
        {"exe", backtrace_exe},
        {"application_name", backtrace_application_name},
        {"process_state", backtrace_process_state},
        {"pmap_entry", backtrace_pmap_entry},
        {"add_tag", backtrace_add_tag},
        {"add_kv_int", backtrace_add_kv_int},
        {"add_kv_string", backtrace_add_kv_string},
        {"add_classifier", backtrace_add_classifier},
        {"annotate", backtrace_annotate},
        {"variables", backtrace_variables},
        {"pmap", backtrace_pmap},
        {"files", backtrace_files},
        {"heap", backtrace_heap},
        {NULL, NULL},
};
static const luaL_Reg backtrace_meta[] = {{"__call", backtrace_call}, {NULL, NULL}};
const struct dp_lua_class dp_lua_backtrace_class = {backtrace_methods, backtrace_meta, backtrace_tostring};

/* ---- siginfo ------------------------------------------------------------------------------------------------------------ */

#define SI(L) ((const ptrace_siginfo_t *)dp_lua_check(L, 1, DP_LUA_SIGINFO))

DP_LUA_GETTER(siginfo, SIGINFO, num, dp_lua_integer)
DP_LUA_GETTER(siginfo, SIGINFO, code, dp_lua_integer)
DP_LUA_GETTER(siginfo, SIGINFO, address, dp_lua_uint)
DP_LUA_GETTER(siginfo, SIGINFO, address_populated, dp_lua_bool)

static int siginfo_reason(lua_State *L)
{
	bool by_kill = false;
	dp_lua_text(L, pmodule_siginfo_reason(SI(L), &by_kill));
	return 1 + dp_lua_bool(L, by_kill);
}

static int siginfo_tostring(lua_State *L)
{
	const char *name = pmodule_siginfo_name(SI(L));
	return dp_lua_text(L, name ? name : "unknown signal");
}

static const luaL_Reg siginfo_methods[] = {
        {"num", siginfo_num},         {"code", siginfo_code},
        {"address", siginfo_address}, {"address_populated", siginfo_address_populated},
        {"reason", siginfo_reason},   {NULL, NULL},
};
const struct dp_lua_class dp_lua_siginfo_class = {siginfo_methods, NULL, siginfo_tostring};

/* ---- pmap entry ----------------------------------------------------------------------------------------------------------- */

#define PMAP(L) ((const ptrace_pmap_entry_t *)dp_lua_check(L, 1, DP_LUA_PMAP))

DP_LUA_GETTER(pmap, PMAP, start, dp_lua_uint)
DP_LUA_GETTER(pmap, PMAP, stop, dp_lua_uint)
DP_LUA_GETTER(pmap, PMAP, offset, dp_lua_uint)
DP_LUA_GETTER(pmap, PMAP, inode, dp_lua_uint)
DP_LUA_GETTER(pmap, PMAP, path, dp_lua_text)
DP_LUA_GETTER(pmap, PMAP, guard, dp_lua_bool)

static int pmap_permissions(lua_State *L)
{
	const ptrace_pmap_entry_t *e = PMAP(L);
	unsigned all = 0, known = PMODULE_PMAP_ALL | PMODULE_PMAP_PR | PMODULE_PMAP_SH;
	for (int i = 2; i <= lua_gettop(L); i++) {
		unsigned flag = (unsigned)dp_lua_int(L, i);
		luaL_argcheck(L, flag && !(flag & ~known), i, "one of pmodule.pmap_perms expected");
		all |= flag;
	}
	return dp_lua_bool(L, pmodule_pmap_permissions(e, all));
}

static const luaL_Reg pmap_methods[] = {
        {"start", pmap_start}, {"stop", pmap_stop},   {"offset", pmap_offset},           {"inode", pmap_inode},
        {"path", pmap_path},   {"guard", pmap_guard}, {"permissions", pmap_permissions}, {NULL, NULL},
};
const struct dp_lua_class dp_lua_pmap_class = {pmap_methods, NULL, NULL};
