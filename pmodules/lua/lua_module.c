/* SPDX-License-Identifier: MIT */
/* The global table `pmodule`: definition, registration, log, constants. The rest is in lua_reads.c and lua_values.c. */
#include "pmodules/lua/lua_internal.h"

#include <string.h>

/* Raises a dp_error as a Lua error, and frees it. */
static int raise(lua_State *L, struct dp_error *err)
{
	char text[512];
	snprintf(text, sizeof(text), "%s", err->message);
	dp_error_destroy(err);
	return luaL_error(L, "%s", text);
}

/* ---- define ------------------------------------------------------------------------------------------------------------- */

/* Returns a reference to a function in the table's field. */
static int function_field(lua_State *L, const char *name, bool is_needed)
{
	int type = lua_getfield(L, 1, name);
	if (type == LUA_TNIL && !is_needed) {
		lua_pop(L, 1);
		return LUA_NOREF;
	}
	if (type != LUA_TFUNCTION)
		luaL_error(L, "pmodule.define: %s: a function expected, got %s", name, luaL_typename(L, -1));
	return luaL_ref(L, LUA_REGISTRYINDEX);
}

static void warn_unknown_fields(lua_State *L, const struct dp_lua *l)
{
	static const char *const known[] = {"id", "load", "reset", "unload", "phase", "description"};
	for (lua_pushnil(L); lua_next(L, 1); lua_pop(L, 1)) {
		const char *key = lua_type(L, -2) == LUA_TSTRING ? lua_tostring(L, -2) : "(no name)";
		bool is_known = false;
		for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++)
			is_known = is_known || strcmp(key, known[i]) == 0;
		if (!is_known)
			dp_host_log(l->m->host, DP_LOG_WARNING, l->m, "pmodule.define: unknown field '%s'", key);
	}
}

static void read_phase(lua_State *L, struct dp_lua *l)
{
	if (lua_getfield(L, 1, "phase") == LUA_TNIL)
		return;
	const char *phase = lua_type(L, -1) == LUA_TSTRING ? lua_tostring(L, -1) : "";
	if (strcmp(phase, "postattach") != 0 && strcmp(phase, "attach") != 0)
		luaL_error(L, "pmodule.define: phase: 'attach' or 'postattach' expected");
	l->m->is_deferred = strcmp(phase, "postattach") == 0;
}

static int define(lua_State *L)
{
	struct dp_lua *l = dp_lua_of(L);
	luaL_checktype(L, 1, LUA_TTABLE);
	lua_settop(L, 1);
	if (!l->is_chunk)
		return luaL_error(L, "pmodule.define: only allowed while the file is loaded, not in functions called later");
	if (l->m->id)
		return luaL_error(L, "pmodule.define: this file already defined '%s'", l->m->id);
	if (lua_getfield(L, 1, "id") != LUA_TSTRING)
		return luaL_error(L, "pmodule.define: id: a string expected, got %s", luaL_typename(L, -1));
	const char *id = dp_lua_name(L, 2);
	l->load = function_field(L, "load", true);
	l->reset = function_field(L, "reset", false);
	l->unload = function_field(L, "unload", false);
	read_phase(L, l);
	struct dp_error *err = dp_module_set_id(l->m, id);
	if (err)
		return raise(L, err);
	warn_unknown_fields(L, l);
	return 0;
}

/* ---- registration ------------------------------------------------------------------------------------------------------- */

static int event_register(lua_State *L)
{
	struct dp_lua *l = dp_lua_of(L);
	struct dp_callback cb = {.module = l->m, .event = dp_lua_constant(L, 1, DP_EVENTS, "event")};
	luaL_checktype(L, 2, LUA_TFUNCTION);
	const pmodule_match_t *match = dp_lua_optmatch(L, 3);
	if (!l->m->is_loading)
		return luaL_error(L, "pmodule.register: only allowed in the function that define{} sets as load");
	lua_pushvalue(L, 2);
	cb.ref = luaL_ref(L, LUA_REGISTRYINDEX);
	struct dp_error *err = dp_host_register(l->m, match, &cb);
	return err ? raise(L, err) : 0;
}

static int write_log(lua_State *L)
{
	const struct dp_lua *l = dp_lua_of(L);
	enum dp_log_level level = dp_lua_constant(L, 1, DP_LOG_ERROR + 1, "log_level");
	dp_host_log(l->m->host, level, l->m, "%s", dp_lua_formatted(L, 2));
	return 0;
}

static int config_option(lua_State *L)
{
	return dp_lua_text(L, dp_module_option(dp_lua_of(L)->m, dp_lua_name(L, 1)));
}

static int time_left(lua_State *L)
{
	return dp_lua_uint(L, pmodule_time_left());
}

static int pmap_enabled(lua_State *L)
{
	return dp_lua_bool(L, pmodule_pmap_enabled());
}

static int pmap_cached(lua_State *L)
{
	return dp_lua_bool(L, pmodule_pmap_cached());
}

static const luaL_Reg functions[] = {
        {"define", define},
        {"register", event_register},
        {"event_register", event_register},
        {"log", write_log},
        {"match", dp_lua_match},
        {"config_option", config_option},
        {"time_left", time_left},
        {"pmap_enabled", pmap_enabled},
        {"pmap_cached", pmap_cached},
        {NULL, NULL},
};

/* ---- constants ---------------------------------------------------------------------------------------------------------- */

struct constant {
	const char *name;
	lua_Integer value;
};
static const struct constant events[] = {
        {"preattach", DP_EVENT_PREATTACH},
        {"attach", DP_EVENT_ATTACH},
        {"variable", DP_EVENT_VARIABLE},
        {"frame", DP_EVENT_FRAME},
        {"thread", DP_EVENT_THREAD},
        {"postattach", DP_EVENT_POSTATTACH},
        {NULL, 0},
};
static const struct constant log_levels[] = {
        {"debug", DP_LOG_DEBUG}, {"info", DP_LOG_INFO}, {"warning", DP_LOG_WARNING}, {"error", DP_LOG_ERROR}, {NULL, 0}};
static const struct constant match_types[] = {{"exact", PMODULE_MATCH_EXACT}, {"substr", PMODULE_MATCH_SUBSTR}, {NULL, 0}};
static const struct constant annotations[] = {
        {"comment", PAT_COMMENT}, {"warning", PAT_WARNING}, {"critical", PAT_CRITICAL}, {"json", PAT_JSON}, {NULL, 0}};
static const struct constant perms[] = {
        {"rd", PMODULE_PMAP_RD},
        {"wr", PMODULE_PMAP_WR},
        {"ex", PMODULE_PMAP_EX},
        {"pr", PMODULE_PMAP_PR},
        {"sh", PMODULE_PMAP_SH},
        {"all", PMODULE_PMAP_ALL},
        {NULL, 0},
};
static const struct constant variable_types[] = {
        {"bottom", PMODULE_BOTTOM},
        {"ll", PMODULE_LL},
        {"ull", PMODULE_ULL},
        {"flt", PMODULE_FLT},
        {"dbl", PMODULE_DBL},
        {"ldbl", PMODULE_LDBL},
        {"cflt", PMODULE_CFLT},
        {"cdbl", PMODULE_CDBL},
        {"cldbl", PMODULE_CLDBL},
        {"string", PMODULE_STRING},
        {"enum", PMODULE_ENUM},
        {"tuple", PMODULE_TUPLE},
        {"array", PMODULE_ARRAY},
        {"fn", PMODULE_FN},
        {"reference", PMODULE_REFERENCE},
        {NULL, 0},
};
static const struct constant process_states[] = {
        {"unknown", PMODULE_PROCESS_UNKNOWN}, {"running", PMODULE_PROCESS_RUNNING}, {"sleeping", PMODULE_PROCESS_SLEEPING},
        {"disk", PMODULE_PROCESS_DISK},       {"stopped", PMODULE_PROCESS_STOPPED}, {"traced", PMODULE_PROCESS_TRACED},
        {"zombie", PMODULE_PROCESS_ZOMBIE},   {"dead", PMODULE_PROCESS_DEAD},       {"idle", PMODULE_PROCESS_IDLE},
        {"blocked", PMODULE_PROCESS_BLOCKED}, {"queued", PMODULE_PROCESS_QUEUED},   {NULL, 0},
};

static void add_constants(lua_State *L, const char *name, const struct constant *c)
{
	char what[64];
	snprintf(what, sizeof(what), "pmodule.%s", name);
	lua_newtable(L);
	for (; c->name; c++) {
		lua_pushinteger(L, c->value);
		lua_setfield(L, -2, c->name);
	}
	dp_lua_strict(L, what);
	lua_setfield(L, -2, name);
}

void dp_lua_open_module(lua_State *L)
{
	lua_newtable(L);
	luaL_setfuncs(L, functions, 0);
	luaL_setfuncs(L, dp_lua_reads, 0);
	luaL_setfuncs(L, dp_lua_values, 0);
	add_constants(L, "event", events);
	lua_getfield(L, -1, "event");
	lua_setfield(L, -2, "event_type"); /* an alias */
	add_constants(L, "log_level", log_levels);
	add_constants(L, "match_type", match_types);
	add_constants(L, "annotation", annotations);
	add_constants(L, "pmap_perms", perms);
	add_constants(L, "variable_type", variable_types);
	add_constants(L, "process_state", process_states);
	lua_pushinteger(L, PMODULE_ABI);
	lua_setfield(L, -2, "abi");
	dp_lua_strict(L, "pmodule");
	lua_setglobal(L, "pmodule");
}
