/* SPDX-License-Identifier: MIT */
/* Modules in Lua that are wrong, endless, greedy or late: each gets an error, and the snapshot continues. */
#include "lua_run.h"

TestSuite(lua_hostile, .timeout = 120);

#define MODULE(body)                                                                                                             \
	"pmodule.define{id='m', load=function() pmodule.register(pmodule.event.postattach, function(bt) " body " end) end}"

/* ---- refusals ----------------------------------------------------------------------------------------------------------- */

Test(lua_hostile, a_file_that_is_no_module_is_refused)
{
	lua_expect_error("local x = = 3", ".lua:1: unexpected symbol near '='\n"); /* and no traceback of nothing */
	lua_expect_error("x = 3", "it does not call pmodule.define{id = ..., load = ...}");
	lua_expect_error("\n\nerror('in the chunk')", ".lua:3: in the chunk");
	lua_expect_error("\033Lua is not text", "attempt to load a binary chunk");
	lua_expect_error("pmodule.define{}", "id: a string expected, got nil");
	lua_expect_error("pmodule.define{id = {}, load = print}", "id: a string expected, got table");
	lua_expect_error("pmodule.define{id = 'a\\0b', load = print}", "a name may not contain NUL");
	lua_expect_error("pmodule.define{id = '../x', load = print}", "invalid module id");
	lua_expect_error("pmodule.define{id = 'm'}", "load: a function expected, got nil");
	lua_expect_error("pmodule.define{id = 'm', load = 3}", "load: a function expected, got number");
	lua_expect_error("pmodule.define{id = 'm', load = print, reset = 3}", "reset: a function expected");
	lua_expect_error("pmodule.define{id = 'm', load = print, phase = 'x'}", "'attach' or 'postattach' expected");
	lua_expect_error("for i = 1, 2 do pmodule.define{id = 'm', load = function() end} end", "already defined 'm'");
	lua_expect_error("pmodule.define{id = 'm', load = function() error('in load') end}", "in load");
	lua_expect_error("pmodule.define{id = 'm', load = function() end, lode = 1}",
	                 "warning: [m] pmodule.define: unknown field 'lode'");
}

Test(lua_hostile, registering_at_the_wrong_time_or_with_the_wrong_things_is_refused)
{
	lua_expect_error(MODULE("pmodule.define{id = 'n', load = print}"), "only allowed while the file is loaded");
	lua_expect_error(MODULE("pmodule.register(pmodule.event.frame, print)"),
	                 "only allowed in the function that define{} sets as load");
	lua_expect_error("pmodule.register(pmodule.event.frame, print)", "only allowed in the function that define{} sets as load");
	lua_expect_error("pmodule.define{id = 'm', load = function() pmodule.register(99, print) end}",
	                 "one of pmodule.event expected, got 99");
	lua_expect_error("pmodule.define{id = 'm', load = function() pmodule.register(pmodule.event.frame, 1) end}",
	                 "function expected");
	lua_expect_error(
	        "pmodule.define{id = 'm', load = function() pmodule.register(pmodule.event.attach, print, pmodule.match()) end}",
	        "take no match object");
	lua_expect_error("pmodule.define{id = 'm', load = function() pmodule.register(pmodule.event.attach, print, {}) end}",
	                 "match expected, got table");
	lua_expect_error("pmodule.define{id = 'm', load = function() pmodule.backtrace() end}", "only available in event callbacks");
}

Test(lua_hostile, unknown_names_are_errors_that_suggest)
{
	lua_expect_error(MODULE("bt:pdi()"), "backtrace has no 'pdi'; did you mean 'pid'?");
	lua_expect_error(MODULE("bt():n_fames()"), "thread has no 'n_fames'; did you mean 'n_frames'?");
	lua_expect_error(MODULE("bt():frobnicate()"), "thread has no 'frobnicate'");
	lua_expect_error(MODULE("return pmodule.event.vairable"), "pmodule.event has no 'vairable'; did you mean 'variable'?");
	lua_expect_error(MODULE("pmodule.regsiter()"), "pmodule has no 'regsiter'; did you mean 'register'?");
	lua_expect_error(MODULE("bt.pid()"), "backtrace expected, got no value (call methods with a colon)");
	lua_expect_error(MODULE("bt().tid(bt)"), "thread expected, got backtrace");
}

/* ---- errors are contained ----------------------------------------------------------------------------------------------- */

Test(lua_hostile, an_error_in_one_callback_stops_that_callback_alone)
{
	static struct lua_run r;
	char buf[64];
	lua_run_init(&r, NULL);
	cr_assert(lua_load(&r, "local function inner(fr) return fr.nothing.at_all end\n"
	                       "pmodule.define{id = 'm', load = function()\n"
	                       "pmodule.register(pmodule.event.frame, function(fr) inner(fr) end)\n"
	                       "pmodule.register(pmodule.event.postattach, function(bt) error({}) end)\n"
	                       "pmodule.register(pmodule.event.postattach, function(bt) bt:add_kv_int('reached', 1) end)\n"
	                       "end, unload = function() error('even here') end}"));
	lua_take(&r);
	cr_assert(lua_attribute(&r, "reached", buf));
	cr_assert_str_eq(lua_attribute(&r, "pmodule.m.errors", buf), "6");
	cr_assert(strstr(r.log, "frame has no 'nothing'"), "%s", r.log);
	cr_assert(strstr(r.log, "stack traceback:"), "%s", r.log);
	cr_assert(strstr(r.log, ":1: in upvalue 'inner'"), "%s", r.log);
	r.host = dp_host_destroy(r.host);
	cr_assert(strstr(r.log, "even here"), "%s", r.log);
	lua_run_fini(&r);
}

Test(lua_hostile, objects_of_a_snapshot_that_is_over_are_stale)
{
	static struct lua_run r;
	lua_run_init(&r, NULL);
	cr_assert(
	        lua_load(&r,
	                 "local old = {}\n"
	                 "local function use(f, o) local ok, why = pcall(f, o)\n"
	                 "assert(not ok and why:find('stale object'), why) end\n"
	                 "pmodule.define{id = 'm', load = function() pmodule.register(pmodule.event.postattach, function(bt)\n"
	                 "if old.bt then\n"
	                 "use(bt.pid, old.bt) use(bt().tid, old.thr) use(bt()().pc, old.fr) use(bt()():fprm_at(0).name, old.v)\n"
	                 "use(bt()():siginfo().num, old.si) use(bt:pmap_entry(0x401000).start, old.e)\n"
	                 "use(function(b) return b.next end, old.b) use(function(b) return old.bt() end, old.b)\n"
	                 "use(function() old.globals() end) use(function() old.fprm() end) use(function() old.members() end)\n"
	                 "assert(old.bt ~= bt and tostring(old.bt):find('stale backtrace'))\n"
	                 "bt:add_kv_int('passed', 1) end\n"
	                 "local fr = bt()()\n"
	                 "old = {bt = bt, thr = bt(), fr = fr, v = fr:fprm_at(0), si = fr:siginfo(), e = "
	                 "bt:pmap_entry(0x401000),\n"
	                 "b = pmodule.bt_query('head'), globals = bt:variables(), fprm = fr:fprm(),\n"
	                 "members = pmodule.members(pmodule.bt_query('first'))}\n"
	                 "end) end}"),
	        "%s", r.log);
	lua_take(&r);
	lua_take(&r);
	char buf[64];
	cr_assert(lua_attribute(&r, "passed", buf), "%s", r.log);
	lua_run_fini(&r);
}

/* ---- the sandbox -------------------------------------------------------------------------------------------------------- */

Test(lua_hostile, the_sandbox_has_no_way_out)
{
	lua_expect_error(MODULE("io.open('/etc/passwd')"), "--lua-allow=io");
	lua_expect_error(MODULE("os.execute('true')"), "--lua-allow=os");
	lua_expect_error(MODULE("debug.sethook()"), "--lua-allow=debug");
	lua_expect_error(MODULE("package.loadlib('x', 'y')"), "--lua-allow=package");
	lua_expect_error(MODULE("require('io')"), "--lua-allow=package");
	lua_expect_error(MODULE("load('return 1')"), "--lua-allow=load");
	lua_expect_error(MODULE("loadfile('/etc/passwd')"), "--lua-allow=load");
	lua_expect_error(MODULE("dofile('/etc/passwd')"), "dofile is not available");
	lua_expect_error(MODULE("string.dump(print)"), "string.dump is not available");
	lua_expect_error(MODULE("setmetatable({}, {__gc = print})"), "__gc is not available");
	lua_expect_error(MODULE("getmetatable(bt).__index = nil"), "attempt to index a string value");
	lua_expect_error(MODULE("print('a', 1, nil)"), "print: [m] a\t1\tnil\n");
}

Test(lua_hostile, what_is_allowed_still_runs_no_bytecode_and_ends_nothing)
{
	static const char *const allow[] = {"io", "os", "load", "debug", "package", NULL};
	static struct lua_run r;
	char buf[64];
	lua_run_init(&r, &(struct dp_host_options){.lua_allow = allow});
	cr_assert(
	        lua_load(
	                &r,
	                MODULE("assert(io.open('/dev/null') and os.time() > 0 and debug.traceback() and require('string') == "
	                       "string)\n"
	                       "assert(load('return ...', 'x', 'b')(7) == 7)\n"
	                       "assert(load('\\27Lua') == nil)\n"
	                       "assert(not pcall(os.exit) and not pcall(dofile, '/dev/null') and not pcall(string.dump, print))\n"
	                       "assert(not pcall(bt.pid, io.stdout)) bt:add_kv_int('passed', 1)")),
	        "%s", r.log);
	lua_take(&r);
	cr_assert(lua_attribute(&r, "passed", buf), "%s", r.log);
	lua_run_fini(&r);
}

Test(lua_hostile, what_it_says_is_no_command_to_the_terminal)
{
	lua_expect_error(MODULE("pmodule.log(pmodule.log_level.warning, 'a\\27]0;b\\7\\xc2\\x9bc')"), "a?]0;b???c");
	lua_expect_error(MODULE("error('a\\27[2Jb')"), "a?[2Jb");
}

/* ---- time and memory ---------------------------------------------------------------------------------------------------- */

/* Its callback is cut off, and another module's callback still runs. */
static void expect_cut_off(const char *body)
{
	static struct lua_run r;
	char buf[64], text[2048];
	snprintf(text, sizeof(text), MODULE("%s"), body);
	lua_run_init(&r, &(struct dp_host_options){.budget_ns = 100000000});
	cr_assert(lua_load(&r, text), "%s", r.log);
	cr_assert(lua_load(&r, "pmodule.define{id='other', load=function() pmodule.register(pmodule.event.postattach,\n"
	                       "function(bt) bt:add_kv_int('reached', 1) end) end}"));
	lua_take(&r);
	cr_assert(lua_attribute(&r, "pmodule.m.timeout", buf), "%s: not cut off\n%s", body, r.log);
	cr_assert(lua_attribute(&r, "reached", buf), "%s", r.log);
	cr_assert_not(lua_attribute(&r, "escaped", buf), "%s: continued after its time limit", body);
	lua_run_fini(&r);
}

Test(lua_hostile, endless_loops_are_cut_off)
{
	expect_cut_off("while true do end");
	expect_cut_off("local function f() return f() end f()");
	expect_cut_off("for i = 1, 1 << 40 do bt:pid() end");
}

Test(lua_hostile, the_end_of_time_cannot_be_caught)
{
	expect_cut_off("while true do pcall(function() while true do end end) end bt:add_kv_int('escaped', 1)");
	expect_cut_off("pcall(function() while true do end end) for i = 1, 100 do end bt:add_kv_int('escaped', 1)");
	expect_cut_off("while true do xpcall(function() while true do end end, function() while true do end end) end");
	expect_cut_off("coroutine.wrap(function() while true do end end)() bt:add_kv_int('escaped', 1)");
	expect_cut_off("while true do coroutine.resume(coroutine.create(function() while true do end end)) end");
	expect_cut_off("local t = setmetatable({}, {__close = function() while true do end end}) local x <close> = t error('x')");
	expect_cut_off("local t = setmetatable({}, {__index = function(t, k) return t[k + 1] end}) while true do "
	               "pcall(function() return t[1] end) end");
	expect_cut_off("table.sort({1, 2, 3}, function() while true do end end)");
	expect_cut_off("error(setmetatable({}, {__tostring = function() while true do end end}))");
}

Test(lua_hostile, loops_without_instructions_are_bounded)
{
	lua_expect_error(MODULE("table.move({}, 1, 1 << 60, 2, {})"), "the range has more than");
	lua_expect_error(MODULE("table.move({}, math.mininteger, math.maxinteger, 2, {})"), "the range has more than");
	lua_expect_error(MODULE("table.concat(setmetatable({}, {__index = tostring}), '', 1, 1 << 60)"), "the range has more than");
	lua_expect_error(MODULE("table.insert(setmetatable({}, {__len = function() return 1 << 60 end}), 1, 1)"),
	                 "the table has more than");
	lua_expect_error(MODULE("table.remove(setmetatable({}, {__len = function() return 1 << 60 end}), 1)"),
	                 "the table has more than");
	lua_expect_error(MODULE("table.sort(setmetatable({}, {__len = function() return 1 << 30 end, __index = rawlen}))"),
	                 "the table has more than");
	lua_expect_error(MODULE("error(#string.rep('', 1 << 60) .. ' bytes')"), "0 bytes");
}

Test(lua_hostile, memory_has_an_end)
{
	lua_expect_error(MODULE("local s = 'x' while true do s = s .. s end"), "a module's limit is 64 MiB");
	lua_expect_error(MODULE("string.rep('x', 1 << 30)"), "a module's limit is 64 MiB");
	lua_expect_error(MODULE("string.rep('x', 1 << 62)"), "resulting string too large");
	lua_expect_error(MODULE("local t = {} for i = 1, 1 << 30 do t[i] = {} end"), "a module's limit is 64 MiB");
	lua_expect_error("x = string.rep('x', 1 << 30)", "a module's limit is 64 MiB");
	lua_expect_error(MODULE("local function f() return 1 + f() end f()"), "error: [m]"); /* of stack or of memory */
	lua_expect_error(MODULE("local function f() return coroutine.wrap(f)() end f()"), "C stack overflow");
}
