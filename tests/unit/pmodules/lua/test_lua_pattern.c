/* SPDX-License-Identifier: MIT */
/* Patterns and searches give Lua's own results; one that would take hours ends with the module's time limit. */
#define lua_load load_module /* Lua has a function of that name */
#include "lua_run.h"
#undef lua_load
#include "pmodules/host/host_state.h"
#include "pmodules/lua/lua_internal.h"

TestSuite(lua_pattern, .timeout = 120);

/*
 * Random patterns and subjects, made of meaningful pieces, with Lua's functions and with ours. Repetitions at the end of every
 * second pattern make it too long for the module's own state.
 */
static const char compare_all[] =
        "local pieces = {'a', 'b', '.', '%a', '%A', '[ab]', '[^a]', '[a-c]', '[]]', '[%w-]', '*', '+', '-', '?', '(', ')', '()', "
        "'%1',\n"
        "'%2', '^', '$', '%f[%w]', '%bab', '%b', '%f', '%', '[', ']', '%%', '\\0', '%0', ' ', '%s', '%u', '%x*', '[^%s]', "
        "'\\xff', '[^]'}\n"
        "local letters = {'a', 'b', 'ab', 'c', ' ', 'A', '1', '\\0', ']', '%', '^', '\\xff', '(', '-'}\n"
        "local replacements = {'<%0>', '%1%2', '%%', '%', 'x', '', function(a, b) return b or a end, function() return {} end,\n"
        "{a = 'X', ab = false, b = 3}, 7, true, '%9'}\n"
        "local function some(list, most)\n"
        "  local t = {}\n"
        "  for i = 1, math.random(0, most) do t[i] = list[math.random(#list)] end\n"
        "  return table.concat(t)\n"
        "end\n"
        "local function all(f, ...)\n"
        "  local t = table.pack(pcall(f, ...))\n"
        "  for i = 1, t.n do t[i] = math.type(t[i]) == 'integer' and '#' .. t[i] or tostring(t[i]) end\n"
        "  return (theirs.gsub(table.concat(t, '|'), \"to '[%w.?]+'\", 'to it'))\n"
        "end\n"
        "local function walk(gmatch, ...)\n"
        "  local t = {}\n"
        "  for a, b in gmatch(...) do t[#t + 1] = tostring(a) .. ',' .. tostring(b) end\n"
        "  return table.concat(t, ';')\n"
        "end\n"
        "local good = 0\n"
        "for i = 1, 40000 do\n"
        "  local s, p, r = some(letters, 12), some(pieces, 6), replacements[math.random(#replacements)]\n"
        "  if i % 2 == 0 then p = p .. ('Q?'):rep(7) end\n"
        "  local init, plain = math.random(-14, 14), math.random(10) == 1\n"
        "  local function same(name, f, g, ...)\n"
        "    local x, y = all(f, ...), all(g, ...)\n"
        "    good = good + (x:sub(1, 4) == 'true' and 1 or 0)\n"
        "    local never_read = type(r) == 'table' and y == 'false|unfinished capture'\n"
        "    assert(x == y or never_read, ('%s(%q, %q, %q): %q, and here %q'):format(name, s, p, init, x, y))\n"
        "  end\n"
        "  same('find', theirs.find, ours.find, s, p, init, plain)\n"
        "  same('match', theirs.match, ours.match, s, p, init)\n"
        "  same('gsub', theirs.gsub, ours.gsub, s, p, r, math.random(5) == 1 and init or nil)\n"
        "  same('gmatch', function(...) return walk(theirs.gmatch, ...) end, function(...) return walk(ours.gmatch, ...) end, s, "
        "p, init)\n"
        "end\n"
        "assert(good > 20000, good)\n"
        "for _, f in ipairs{'find', 'match', 'gsub', 'gmatch'} do for _, a in ipairs{{}, {'a'}, {{}, 'a'}, {'a', 'a'}, {'a', "
        "'a', {}, {}}} do\n"
        "  local x, y = all(theirs[f], table.unpack(a)), all(ours[f], table.unpack(a))\n"
        "  assert(x == y or f == 'gmatch' and x:sub(1, 4) == 'true' and y:sub(1, 4) == 'true', x .. ' ' .. y)\n"
        "end end\n";

static void copy_functions(lua_State *L, const char *to)
{
	lua_newtable(L);
	lua_getglobal(L, "string");
	for (lua_pushnil(L); lua_next(L, -2);) {
		lua_pushvalue(L, -2);
		lua_insert(L, -2);
		lua_settable(L, -5);
	}
	lua_pop(L, 1);
	lua_setglobal(L, to);
}

Test(lua_pattern, searches_give_what_those_of_lua_give)
{
	struct dp_host h = {.generation = 0};
	struct pmodule m = {.host = &h};
	struct dp_lua l = {.m = &m, .limit = 1 << 24};
	lua_State *L = dp_lua_new_state(&l);
	luaL_openlibs(L);
	copy_functions(L, "theirs");
	dp_lua_open_search(L);
	copy_functions(L, "ours");
	cr_assert_not(luaL_dostring(L, "assert(ours.find ~= theirs.find and ours.gsub ~= theirs.gsub)"));
	cr_assert_not(luaL_dostring(L, compare_all), "%s", lua_tostring(L, -1));
	cr_assert_not_null(l.second.L);
	lua_close(L);
	dp_lua_drop_second(&l);
	dp_guard_off();
}

static struct dp_lua small_state;

/* A state of 8 MiB with the searches in it. */
static lua_State *open_small(void)
{
	static struct dp_host h = {.options = {.budget_ns = UINT64_C(60000000000)}};
	static struct pmodule m = {.host = &h};
	small_state = (struct dp_lua){.m = &m, .limit = 8 << 20};
	lua_State *L = dp_lua_new_state(&small_state);
	luaL_openlibs(L);
	return L;
}

/* In the second state, a search has a copy of the text. */
Test(lua_pattern, both_states_share_one_limit)
{
	static const char text[] = "s = ('a'):rep(3500000) collectgarbage()", search[] = "assert(s:find('^a*$'))";
	lua_State *L = open_small();
	dp_lua_open_search(L);
	cr_assert_not(luaL_dostring(L, text));
	cr_assert_not(luaL_dostring(L, search), "%s", lua_tostring(L, -1));
	cr_assert_geq(small_state.second.memory, 3500000u);
	cr_assert(luaL_dostring(L, "t = ('b'):rep(1600000)"), "both have %zu bytes",
	          small_state.memory + small_state.second.memory);
	lua_close(L);
	dp_lua_drop_second(&small_state);

	L = open_small();
	dp_lua_open_search(L);
	cr_assert_not(luaL_dostring(L, text));
	cr_assert_not(luaL_dostring(L, "t = ('b'):rep(1500000) collectgarbage()"));
	cr_assert(luaL_dostring(L, search), "both have %zu bytes", small_state.memory + small_state.second.memory);
	cr_assert_not_null(strstr(lua_tostring(L, -1), "not enough memory"), "%s", lua_tostring(L, -1));
	lua_close(L);
	dp_lua_drop_second(&small_state);
	dp_guard_off();
}

/* As a crash may leave it: the list of the second state's memory leads nowhere. */
static int crash(lua_State *L)
{
	(void)L;
	memset(small_state.second.blocks, 0x55, 2 * sizeof(void *));
	raise(SIGSEGV);
	return 0;
}

Test(lua_pattern, the_memory_of_a_crashed_search_is_not_touched)
{
	lua_State *L = open_small();
	lua_getglobal(L, "string");
	lua_pushcfunction(L, crash);
	lua_setfield(L, -2, "match");
	dp_lua_open_search(L);
	cr_assert(luaL_dostring(L, "string.match(('a'):rep(50000), '.*.*.*b')"));
	cr_assert_not_null(strstr(lua_tostring(L, -1), "crashed"), "%s", lua_tostring(L, -1));
	cr_assert(small_state.m->is_broken);
	cr_assert_null(small_state.second.L);
	lua_close(L);
	dp_guard_off();
}

/* For a module with a limit of 2 ms. Without a limit, each of these takes minutes at least. */
static void expect_cut_off(const char *body)
{
	static struct lua_run r;
	char buf[64], text[2048];
	snprintf(text, sizeof(text),
	         "pmodule.define{id='m', load=function() pmodule.register(pmodule.event.postattach,\n"
	         "function(bt) %s bt:add_kv_int('escaped', 1) end) end}",
	         body);
	lua_run_init(&r, &(struct dp_host_options){.budget_ns = 2000000});
	cr_assert(load_module(&r, text), "%s", r.log);
	lua_take(&r);
	cr_assert(lua_attribute(&r, "pmodule.m.timeout", buf), "%s: not cut off\n%s", body, r.log);
	cr_assert_not(lua_attribute(&r, "escaped", buf), "%s: continued after its time limit", body);
	lua_run_fini(&r);
}

Test(lua_pattern, a_search_ends_with_the_modules_time)
{
	expect_cut_off("local r = ('a'):rep(50000):find('.-.-.-b')");
	expect_cut_off("local r = ('a'):rep(50000):match('^.*.*.*b')");
	expect_cut_off("for x in ('a'):rep(50000):gmatch('a*a*a*b') do end");
	expect_cut_off("local r = ('a'):rep(50000):gsub('(.-)(.-)%1b', 'x')");
	expect_cut_off("local r = ('a'):rep(1000000):find('(a*)%1b')"); /* most of the time in memcmp() */
	expect_cut_off("local r = ('('):rep(4000000):find('%b()')");
	expect_cut_off("local r = ('a'):rep(1000000):find('[' .. ('b'):rep(1000000) .. ']')");
	expect_cut_off("pcall(string.find, ('a'):rep(50000), '.-.-.-b')");
	expect_cut_off("local r = table.pack(pcall(pcall, string.gsub, ('a'):rep(50000), '.-.-.-b', print))");
}

Test(lua_pattern, sorting_long_texts_ends_with_the_modules_time)
{
	expect_cut_off("local a, t = ('a'):rep(4000000), {} local b = ('a'):rep(4000000) .. 'b' \n"
	               "for i = 1, 20000 do t[i] = i % 2 == 0 and a or b end table.sort(t)");
	expect_cut_off("local a, t = ('a'):rep(4000000), {} local b = ('a'):rep(4000000) \n"
	               "for i = 1, 20000 do t[i] = i % 2 == 0 and a or b end table.sort(t, rawequal)");
}
