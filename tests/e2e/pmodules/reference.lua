-- SPDX-License-Identifier: MIT
-- The whole interface: for each function and each method one check of what it does, on tests/targets/reference.c. It reports functions
-- without a check, and checks without a function, so this list is the interface. --lua-allow=debug lets it list them.
-- --module reference:where,core: on a core file of it, where signals can be read. reference:at_work,1: no thread has faulted.
local check, where, faulted, seen = {}, "live", true, { variable = 0, frame = 0, thread = 0, attach = 0, preattach = 0, deep = {} }
local bt, thr, fr, helper, thing, var, global -- what the checks use
local failed, done = {}, {}

local function equal(got, wanted, what)
	if got ~= wanted then
		error(string.format("%s: %s (%s), expected %s (%s)", what or "value", tostring(got), math.type(got) or type(got), tostring(wanted),
			math.type(wanted) or type(wanted)), 2)
	end
end

local function number(b) return (pmodule.variable_from_bt(b):value()) end

local function fails(words, f, ...)
	local ok, why = pcall(f, ...)
	if ok or not tostring(why):find(words, 1, true) then error(string.format("'%s' expected, got: %s", words, tostring(why)), 2) end
end

local function count(iterator, state)
	local n = 0
	for _ in iterator, state do n = n + 1 end
	return n
end

local function names(iterator, state)
	local all = {}
	for v in iterator, state do all[#all + 1] = v:name() end
	return table.concat(all, " ")
end

local function annotates(object, get)
	local a = pmodule.annotation
	object:annotate(a.comment, "%s of %d", "one", 2)
	object:annotate(a.warning, "100%")
	object:annotate(a.critical, "worst")
	equal(object:annotate(a.json, '{"json": {"context": "Title", "key": {"a": "100%"}}}'), true)
	equal(object:annotate(a.json, "{no"), false)
	fails("pmodule.annotation expected", object.annotate, object, 9, "x")
end

-- ---- pmodule ----------------------------------------------------------------------------------------------------------------------

local p = "pmodule."
check[p .. "define"] = function() fails("only allowed while the file is loaded", pmodule.define, { id = "x", load = print }) end
check[p .. "register"] = function()
	fails("only allowed in the function", pmodule.register, pmodule.event.frame, print)
	for _, name in ipairs { "preattach", "attach", "thread", "frame", "variable" } do assert(seen[name] > 0, name) end
	equal(seen.filtered, 1, "callbacks of a match that was reset afterwards")
	equal(table.concat(seen.deep, " "), "variable frame thread", "bottom-up")
end
check[p .. "event_register"] = function() equal(pmodule.event_register, pmodule.register) end
check[p .. "log"] = function()
	pmodule.log(pmodule.log_level.warning, "logged %d", 7)
	pmodule.log(pmodule.log_level.warning, "logged 100%")
	fails("pmodule.log_level expected", pmodule.log, 17, "x")
end
check[p .. "match"] = function() equal(names(fr, pmodule.match()), names(fr)) end
check[p .. "backtrace"] = function() equal(pmodule.backtrace(), bt) end
check[p .. "config_option"] = function()
	equal(pmodule.config_option("where"), where)
	equal(pmodule.config_option("nothing"), nil)
end
check[p .. "pmap_enabled"] = function() equal(pmodule.pmap_enabled(), true) end
check[p .. "pmap_cached"] = function() equal(pmodule.pmap_cached(), false) end
check[p .. "create_variable"] = function()
	local v = pmodule.create_variable("struct made *", "made", 0x123, -1, var)
	equal(v:name(), "made")
	equal(v:base_type(), "made")
	equal(v:address(), 0x123)
	equal(v:owner(), var)
	equal(pmodule.create_variable("int", nil, 0, 3, v):name(), nil, "an element")
	local below = pmodule.create_variable("int", nil, 0, 0, global) -- nothing to add it to: at once
	equal(below:owner(), global)
	equal(below:frame(), nil)
end
check[p .. "create_frame"] = function()
	local f = pmodule.create_frame()
	equal(f:symbol(), nil)
	equal(f:thread(), nil)
end
check[p .. "bt_query"] = function()
	equal(number(pmodule.bt_query("thing_g", "reference", "reference.c").id), 42)
	equal(number(pmodule.bt_query("thing_g", nil, nil).id), 42)
	equal(pmodule.bt_query("thing_g", "libc.so.6", nil), nil)
	equal(pmodule.bt_query("no_such_thing", nil, nil), nil)
end
check[p .. "bt_frame_query"] = function()
	equal(number(pmodule.bt_frame_query(fr, "local").c), fr:fprm_at(1):value())
	equal(pmodule.bt_frame_query(fr, "nothing"), nil)
end
check[p .. "variable_from_bt"] = function()
	local v = pmodule.variable_from_bt(thing.list[2])
	equal(v:value(), 12)
	equal(v:type(), pmodule.variable_type.ll)
	fails("needs a variable from pmodule.create_variable", fr.add_variable, fr, v)
end
check[p .. "variable_at"] = function()
	equal(number(pmodule.variable_at("struct inner", pmodule.address(thing["in"])).c), 7)
	equal(number(pmodule.variable_at("int", pmodule.address(thing.list[1]), "reference")), 11)
	equal(pmodule.variable_at("struct of_nobody", 0x1000, "reference"), nil)
end
check[p .. "deref"] = function()
	equal(number(pmodule.deref(thing.ptr).c), 77)
	equal(number(pmodule.deref(thing.list[0], pmodule.address(thing.list[3]))), 13, "the same type elsewhere")
	equal(number(pmodule.deref(thing.ptr, pmodule.address(thing["in"])).c), 7, "an element of what the pointer points into")
	fails("thing_g.nothing", pmodule.deref, thing.nothing)
end
check[p .. "sizeof"] = function()
	equal(pmodule.sizeof(thing.list), 16)
	equal(pmodule.sizeof(thing.text), 16)
end
check[p .. "typeof"] = function()
	equal(pmodule.typeof(thing.list), "int [4]")
	equal(pmodule.typeof(pmodule.cast(thing.ptr, "uint64_t *")), "uint64_t *", "as it was typed")
	equal(pmodule.typeof(pmodule.addressof(pmodule.bt_query("message_g", "reference", nil))), "const char (*)[14]")
end
check[p .. "address"] = function() equal(pmodule.address(thing), pmodule.symbol_address("thing_g")) end
check[p .. "path"] = function() equal(pmodule.path(thing.ptr.c), "thing_g.ptr->c") end
check[p .. "cast"] = function()
	equal(number(pmodule.cast(thing.ptr, "unsigned long")), number(thing.ptr))
	fails("has a type 'struct of_nobody'", pmodule.cast, thing.ptr, "struct of_nobody")
end
check[p .. "addressof"] = function() equal(number(pmodule.addressof(thing.list)), pmodule.address(thing.list)) end
check[p .. "container_of"] = function() equal(number(pmodule.container_of(thing.list, "struct thing", "list").id), 42) end
check[p .. "try"] = function()
	equal(number(pmodule.try(thing, "ptr->c")), 77)
	equal(number(pmodule.try(thing, "list[1]")), 11)
	local v, why = pmodule.try(thing, "ptr.nothing")
	equal(v, nil)
	assert(why:find("no member 'nothing'", 1, true), why)
end
check[p .. "members"] = function()
	local all = {}
	for name, value in pmodule.members(thing["in"]) do all[#all + 1] = name .. ":" .. pmodule.typeof(value) end
	equal(table.concat(all, " "), "c:int tag:const char *")
end
check[p .. "dispatch"] = function()
	seen.dispatched = nil
	pmodule.dispatch(pmodule.create_variable("struct of_dispatch", "d", 0, -1), thing)
	equal(seen.dispatched, 42, "its callback got the typed value")
end
check[p .. "template_arg"] = function()
	equal(pmodule.template_arg("std::map<int, std::vector<char> >", 1), "std::vector<char>")
	equal(pmodule.template_arg("int", 0), nil)
end
check[p .. "address_symbol"] = function()
	equal(pmodule.address_symbol(pmodule.symbol_address("stay")), "stay")
	equal(pmodule.address_symbol(0x10), nil)
end
check[p .. "symbol_address"] = function()
	equal(pmodule.symbol_address("thing_g", "reference"), pmodule.address(thing))
	equal(pmodule.symbol_address("thing_g", "libc.so.6"), nil)
	equal(pmodule.symbol_address("no_such_symbol"), nil)
end
local message = function() return pmodule.symbol_address("message_g") end
check[p .. "address_read_raw"] = function()
	equal(pmodule.address_read_raw(message(), 13), "a text\0behind")
	equal(pmodule.address_read_raw(0, 8), nil)
end
check[p .. "address_read_string"] = function()
	equal(pmodule.address_read_string(message(), 100), "a text")
	equal(pmodule.address_read_string(message(), 3), "a t")
	equal(pmodule.address_read_string(0, 100), nil)
end
check[p .. "symbol_read_raw"] = function()
	equal(pmodule.symbol_read_raw("message_g", nil, 8), "a text\0b")
	equal(pmodule.symbol_read_raw("message_h", nil, 8), nil)
end
check[p .. "symbol_read_string"] = function()
	equal(pmodule.symbol_read_string("message_g", "reference", 100), "a text")
	equal(pmodule.symbol_read_string("message_h", nil, 8), nil)
end
local at = function(name) return pmodule.symbol_address(name) end
local function read(suffix, symbol, offset, wanted)
	check[p .. "address_read_" .. suffix] = function()
		equal(pmodule["address_read_" .. suffix](at(symbol) + offset), wanted)
		equal(pmodule["address_read_" .. suffix](0), nil)
	end
end
read("u8", "numbers_g", 0, 0xfe)
read("i8", "numbers_g", 0, -2)
read("u16", "numbers_g", 0, 0xfffe)
read("i16", "numbers_g", 4, -32768)
read("u32", "numbers_g", 0, 0x3fffe)
read("i32", "numbers_g", 4, 0x78000)
read("u64", "numbers_g", 0, 0x000780000003fffe)
read("i64", "numbers_g", 0, 0x000780000003fffe)
read("f32", "real_g", 0, 0.25)
check[p .. "address_read_f64"] = function() equal(pmodule.address_read_f64(pmodule.address(thing.ratio)), 1.5) end
check[p .. "address_read_ptr"] = function() equal(pmodule.address_read_ptr(pmodule.address(thing.ptr)), number(thing.ptr)) end
check[p .. "address_read_ptrs"] = function()
	local list = pmodule.address_read_ptrs(pmodule.address(thing.ptr), 3)
	equal(#list, 3)
	equal(list[1], number(thing.ptr))
	equal(pmodule.address_read_ptrs(0, 2), nil)
end
check[p .. "time_left"] = function()
	local before = pmodule.time_left()
	assert(before > 0 and math.type(before) == "integer", before)
	for _ = 1, 10000 do if pmodule.time_left() < before then return end end
	error("the time does not run")
end
check[p .. "read_source"] = function()
	pmodule.address_read_u8(message())
	local source = pmodule.read_source()
	assert(where == "core" and source == "core" or source == "kept" or source == "late", source)
	pmodule.variable_from_bt(thing.ratio):value()
	source = pmodule.read_source()
	assert(where == "core" and source == "core" or source == "kept" or source == "late", "of a value: " .. source)
	equal(seen.source, where == "core" and "core" or "held", "while the process stood still")
end

-- ---- match --------------------------------------------------------------------------------------------------------------------------

local function matched(...)
	local m = pmodule.match()
	for _, criterion in ipairs { ... } do m[criterion[1]](m, table.unpack(criterion, 2)) end
	return m
end
local exact, substr = pmodule.match_type.exact, pmodule.match_type.substr
check["match:reset"] = function()
	local m = matched { "add_variable_name", "nobody" }
	equal(names(fr, m), "")
	m:reset()
	equal(names(fr, m), names(fr))
end
check["match:add_object"] = function()
	equal(count(thr, matched { "add_object", "reference" }) >= 3, true, "the last part of the path")
	equal(count(thr, matched { "add_object", fr:object_file(), exact }) >= 3, true)
	equal(count(thr, matched { "add_object", "referen" }), 0, "exact is the default")
	equal(count(thr, matched { "add_object", "referen", substr }) >= 3, true)
end
check["match:add_file"] = function()
	equal(names(bt:variables()), "thing_g")
	equal(count(thr, matched { "add_file", "reference.c" }) >= 3, true)
	equal(count(thr, matched { "add_file", "ference", exact }), 0)
	equal(count(thr, matched { "add_file", "ference", substr }) >= 3, true)
end
check["match:add_frame_symbol"] = function()
	for f in thr, matched { "add_frame_symbol", "outer" } do equal(f:symbol(), "outer") end
	equal(count(thr, matched({ "add_frame_symbol", "outer" }, { "add_frame_symbol", "main" })), 2, "of one kind: either")
	equal(count(thr, matched({ "add_frame_symbol", "outer" }, { "add_object", "libc.so.6" })), 0, "of two kinds: both")
	equal(count(bt, matched { "add_frame_symbol", "outer" }), 1, "threads: any of their frames")
end
check["match:add_variable_base_type"] = function()
	equal(names(fr, matched { "add_variable_base_type", "inner" }):match("^%S+"), "ptr" and names(fr, matched { "add_base_type", "inner" }):match("^%S+"))
	assert(names(fr, matched { "add_variable_base_type", "inner" }):find("local", 1, true))
	equal(names(fr, matched { "add_variable_base_type", "inne" }), "")
end
check["match:add_base_type"] = function() equal(matched().add_base_type, matched().add_variable_base_type) end
check["match:add_variable_ptrace_type"] = function()
	equal(names(fr, matched({ "add_variable_ptrace_type", pmodule.variable_type.enum })), "color")
	fails("pmodule.variable_type expected", matched, { "add_variable_ptrace_type", 99 })
end
check["match:add_variable_name"] = function()
	equal(names(fr, matched { "add_variable_name", "depth" }), "depth")
	equal(names(fr, matched { "add_variable_name", "dept", substr }), "depth")
	fails("criteria of variables", count, bt, matched { "add_variable_name", "depth" })
end
check["match:set_fault"] = function()
	equal(count(bt, matched { "set_fault" }), 1)
	equal(count(thr, matched { "set_fault", true }), thr:n_frames(), "the whole thread")
	equal(count(helper, matched { "set_fault", true }), 0)
	for f in thr, matched { "set_fault" } do equal(f:fault(), faulted) end
	if not faulted then for f in thr, matched { "set_fault" } do assert(count(f, matched { "set_fault" }) > 0, "the innermost frame that has variables") end end
end

-- ---- backtrace ----------------------------------------------------------------------------------------------------------------------

check["backtrace:pid"] = function() equal(bt:pid(), thr:tid()) end
check["backtrace:inner_pid"] = function() equal(bt:inner_pid(), bt:pid()) end
check["backtrace:comm"] = function() equal(bt:comm(), "reference") end
check["backtrace:exe"] = function() assert(where == "core" or bt:exe():match("/reference$"), bt:exe()) end
check["backtrace:application_name"] = function() equal(bt:application_name(), "reference") end
check["backtrace:process_state"] = function()
	local states = pmodule.process_state
	local state = bt:process_state()
	assert(where == "core" or state == states.sleeping, state)
	equal(string.format("%d", state), tostring(state))
end
check["backtrace:pmap_entry"] = function()
	equal(bt:pmap_entry(fr:pc()):permissions(pmodule.pmap_perms.ex), true)
	equal(bt:pmap_entry(0x10), nil)
end
check["backtrace:pmap"] = function()
	local last, n = 0, 0
	for e in bt:pmap() do
		assert(not math.ult(e:start(), last) and math.ult(e:start(), e:stop()))
		last, n = e:stop(), n + 1
	end
	assert(n > 5)
end
check["backtrace:files"] = function()
	if where == "live" then assert(bt:files()[1]:find("pipe:", 1, true) or bt:files()[1]:find("/", 1, true)) end
	equal(type(bt:files()), "table")
end
check["backtrace:heap"] = function()
	local heap, why = bt:heap() -- of a stopped process nothing is known
	if where == "live" then
		equal(heap, nil)
		assert(why:find("one moment", 1, true), why)
		return
	end
	assert(heap.used > 0 and heap.used_bytes >= heap.lost_bytes and heap.lost >= heap.within, why)
	equal(type(heap.groups), "table")
	assert(heap.used_groups[1].bytes >= heap.used_groups[#heap.used_groups].bytes)
end
check["backtrace:add_tag"] = function() bt:add_tag("reference-tag") end
check["backtrace:add_kv_int"] = function() bt:add_kv_int("reference.int", 1 << 62) end
check["backtrace:add_kv_string"] = function()
	bt:add_kv_string("reference.text", "first")
	bt:add_kv_string("reference.text", "last")
	fails("string expected", bt.add_kv_string, bt, "key")
end
check["backtrace:add_classifier"] = function() bt:add_classifier("reference-class") end
check["backtrace:annotate"] = function() annotates(bt) end
check["backtrace:variables"] = function()
	equal(names(bt:variables()), "thing_g")
	for v, object, cu in bt:variables(), { name = "thing_g" } do
		assert(object:find("reference$") and cu:find("reference%.c$"))
		equal(v:name(), "thing_g")
	end
	equal(names(bt:variables(), { name = "thing" }), "", "a name is exact")
	equal(names(bt:variables(), { object = "referen", cu = "ference.c" }), "thing_g", "the others are parts")
	equal(names(bt:variables(), { object = "libc" }), "")
end
check["backtrace.__call"] = function()
	equal(bt(), thr, "those that faulted first")
	equal(count(bt), 2)
end
check["backtrace.__tostring"] = function() equal(tostring(bt), "backtrace of reference, pid " .. bt:pid()) end

-- ---- thread ---------------------------------------------------------------------------------------------------------------------------

check["thread:tid"] = function() equal(helper:tid() ~= thr:tid(), true) end
check["thread:fault"] = function()
	equal(thr:fault(), faulted)
	equal(helper:fault(), false)
end
check["thread:backtrace"] = function() equal(thr:backtrace(), bt) end
check["thread:n_frames"] = function() equal(thr:n_frames(), count(thr)) end
check["thread:n_kframes"] = function() equal(thr:n_kframes(), #thr:kframes()) end
check["thread:kframes"] = function() for _, name in ipairs(thr:kframes()) do equal(type(name), "string") end end
check["thread:name"] = function()
	if where == "live" then equal(helper:name(), "helper") end
	equal(thr:name(), "reference")
end
check["thread:state"] = function() assert(where == "core" or helper:state() == pmodule.process_state.sleeping) end
check["thread:register"] = function()
	equal(thr:register("rip"), thr():pc())
	equal(thr:register("nothing"), nil)
	equal(math.type(thr:register("fs_base")), "integer")
end
check["thread:registers"] = function() equal(thr:registers().rsp, thr:register("rsp")) end
check["thread:set_name"] = function()
	local before = helper:name()
	helper:set_name("a new name")
	equal(helper:name(), "a new name")
	helper:set_name(before)
end
check["thread:add_frame"] = function()
	local n, first, last = helper:n_frames(), pmodule.create_frame(), pmodule.create_frame()
	helper:add_frame(first)
	helper:add_frame(last, false)
	equal(helper(), first)
	equal(helper:n_frames(), n + 2)
	equal(last:index(), n + 1)
	equal(last:thread(), helper)
	fails("not added yet", helper.add_frame, helper, first)
end
check["thread:annotate"] = function() annotates(thr) end
check["thread:variables"] = function()
	for v, object in thr:variables(), { name = "mark_tls" } do
		equal(v:value(), 17)
		equal(v:thread(), thr)
		assert(object:find("reference$"))
	end
	for v in helper:variables { name = "mark_tls" } do equal(v:value(), 18) end
	equal(names(thr:variables(), { name = "mark_tls" }), "mark_tls")
end
check["thread.__call"] = function() equal(select(2, pcall(thr, nil, fr)):symbol(), "outer", "the frame behind") end
check["thread.__tostring"] = function() equal(tostring(thr), "thread " .. thr:tid() .. " (reference)") end

-- ---- frame ---------------------------------------------------------------------------------------------------------------------------

check["frame:symbol"] = function() equal(fr:symbol(), "stay") end
check["frame:path"] = function() assert(fr:path():find("reference%.c$")) end
check["frame:line"] = function() assert(fr:line() > fr:decl_line() and fr:line() < fr:decl_line() + 15) end
check["frame:decl_line"] = function() equal(math.type(fr:decl_line()), "integer") end
check["frame:line_resolved"] = function() equal(fr:line_resolved(), true) end
check["frame:object_file"] = function() assert(fr:object_file():find("/reference$")) end
check["frame:instruction"] = function()
	assert(thr():instruction():find("%a"))
	equal(helper(nil, nil):symbol() and pmodule.create_frame():instruction(), nil)
end
check["frame:thread"] = function() equal(fr:thread(), thr) end
check["frame:backtrace"] = function() equal(fr:backtrace(), bt) end
check["frame:siginfo"] = function()
	equal(fr:siginfo() ~= nil, where == "core")
	equal(thr(nil, thr()):siginfo(), nil)
end
check["frame:fprm"] = function()
	local all = {}
	for v, i in fr:fprm() do all[#all + 1] = i .. v:name() end
	equal(table.concat(all, " "), "0thing 1depth")
end
check["frame:fprm_at"] = function()
	equal(fr:fprm_at(0):name(), "thing")
	equal(fr:fprm_at(2), nil)
end
check["frame:pc"] = function() equal(pmodule.address_symbol(fr:pc()):match("^%a+"), "stay") end
check["frame:sp"] = function() assert(math.ult(fr:sp(), thr(nil, fr):sp())) end
check["frame:index"] = function() equal(thr(nil, fr):index(), fr:index() + 1) end
check["frame:is_inline"] = function() equal(fr:is_inline(), false) end
check["frame:is_tail"] = function() equal(fr:is_tail(), false) end
check["frame:is_guess"] = function() equal(fr:is_guess(), false) end
check["frame:fault"] = function() equal(thr():fault(), faulted) end
check["frame:register"] = function() equal(fr:register("rip"), fr:pc()) end
check["frame:registers"] = function() equal(fr:registers().rip, fr:pc()) end
check["frame:query"] = function() equal(pmodule.path(fr:query("depth")), "depth") end
local function sets(method, getter, value, wanted)
	check["frame:" .. method] = function()
		local f = pmodule.create_frame()
		f:set_path("/a/b/c.lua")
		f[method](f, value)
		equal(f[getter](f), wanted)
	end
end
sets("set_symbol", "symbol", "a name", "a name")
sets("set_path", "path", "/x/y.lua", "/x/y.lua")
sets("set_basename", "path", "d.lua", "/a/b/d.lua")
sets("set_directory", "path", "/e", "/e/c.lua")
sets("set_line", "line", 7, 7)
sets("set_decl_line", "decl_line", 5, 5)
check["frame:add_variable"] = function()
	local below = pmodule.create_variable("int", "below", 0, -1, var)
	fr:add_variable(below)
	local last = pmodule.create_variable("int", "at_the_end", 0, -1, var)
	fr:add_variable(last, false)
	equal(names(fr):match("%S+$"), "at_the_end")
	equal(below:frame(), fr)
	fails("not added yet", fr.add_variable, fr, below)
end
check["frame:add_frame"] = function()
	local before, behind, f = pmodule.create_frame(), pmodule.create_frame(), helper()
	f:add_frame(behind, true)
	f:add_frame(before)
	equal(helper(nil, f), behind)
	equal(helper(nil, before), f)
end
check["frame:annotate"] = function() annotates(fr) end
check["frame.__call"] = function()
	equal(fr():name(), "thing", "parameters first")
	equal(fr(matched { "add_variable_name", "local" }):name(), "local")
end
check["frame.__tostring"] = function() equal(tostring(fr), string.format("frame %d (stay)", fr:index())) end

-- ---- variable ------------------------------------------------------------------------------------------------------------------------

local function of(name)
	local v = pmodule.variable_from_bt(thing[name])
	return v
end
check["variable:address"] = function() equal(global:address(), pmodule.address(thing)) end
check["variable:name"] = function() equal(var:name(), "local") end
check["variable:type"] = function()
	local t = pmodule.variable_type
	for name, kind in pairs { id = "ll", ["in"] = "tuple", ptr = "reference", list = "array", color = "enum", low = "ull", small = "flt",
		ratio = "dbl", precise = "ldbl", z = "cdbl", text = "string", fn = "reference", big = "ull", nothing = "reference" } do
		equal(of(name):type(), t[kind], name)
	end
end
check["variable:type_name"] = function() equal(var:type_name(), "struct(inner)") end
check["variable:base_type"] = function() equal(var:base_type(), "inner") end
check["variable:value"] = function()
	equal(of("id"):value(), 42)
	equal(of("high"):value(), -7)
	equal(of("low"):value(), 5)
	equal(of("small"):value(), 0.5)
	equal(of("precise"):value(), 2.5)
	local re, im = of("z"):value()
	equal(re, 1.5)
	equal(im, -2.5)
	equal(of("color"):value(), 5)
	equal(string.format("%x", of("big"):value()), "fedcba9876543210")
	equal(of("text"):value(), nil)
	equal(of("in"):value(), nil)
	equal(of("list"):value(), nil)
	equal(of("nothing"):value(), 0)
end
check["variable:symbol"] = function()
	equal(of("color"):symbol(), "GREEN")
	equal(of("text"):symbol(), "sixteen")
	equal(of("fn"):symbol(), "twice")
	equal(of("ptr"):symbol(), "beside")
	equal(pmodule.variable_from_bt(thing.ptr.tag):symbol(), "beside")
	equal(of("id"):symbol(), nil)
end
check["variable:is_string"] = function()
	equal(pmodule.variable_from_bt(thing.ptr.tag):is_string(), true)
	equal(of("ptr"):is_string(), false)
end
check["variable:why"] = function()
	equal(var:why(), nil)
	equal(pmodule.variable_from_bt(pmodule.deref(thing.list[0], 0x10)):why() ~= nil, true)
end
check["variable:resolved"] = function()
	equal(var:resolved(), true)
	equal(pmodule.variable_from_bt(pmodule.deref(thing.list[0], 0x10)):resolved(), false)
	equal(pmodule.variable_from_bt(pmodule.deref(thing.list[0], 0x10)):value(), nil)
end
check["variable:owner"] = function()
	equal(var:owner(), nil)
	equal(fr(matched({ "add_variable_name", "tag" }), var):owner(), var)
end
check["variable:frame"] = function()
	equal(var:frame(), fr)
	equal(global:frame(), nil)
end
check["variable:thread"] = function()
	equal(var:thread(), thr)
	equal(global:thread(), nil)
end
check["variable:backtrace"] = function() equal(global:backtrace(), bt) end
check["variable:bt"] = function() equal(pmodule.path(var:bt()["c"]), "local.c") end
check["variable:fprm_offset"] = function()
	equal(fr:fprm_at(1):fprm_offset(), 1)
	equal(var:fprm_offset(), nil)
end
check["variable:depth"] = function() equal(fr(matched({ "add_variable_name", "tag" }), var):depth(), 1) end
check["variable:object"] = function() assert(global:object():find("reference$")) end
check["variable:cu"] = function() assert(global:cu():find("reference%.c$")) end
local function made(set, ...)
	local v = pmodule.create_variable("any", "v", 0, -1)
	v[set](v, ...)
	return v
end
local function becomes(set, kind, symbol, first, second, ...)
	local args = table.pack(...)
	check["variable:" .. set] = function()
		local v = made(set, table.unpack(args, 1, args.n))
		equal(v:type(), pmodule.variable_type[kind])
		equal(v:symbol(), symbol)
		local a, b = v:value()
		equal(a, first)
		equal(b, second)
		equal(v:resolved(), true)
	end
end
becomes("set_struct", "tuple")
becomes("set_array", "array")
becomes("set_function", "fn", "f()", nil, nil, "f()")
becomes("set_enum", "enum", "THREE", 3, nil, 3, "THREE")
becomes("set_ref", "reference", "main", 0x10, nil, 0x10, "main")
becomes("set_ll", "ll", nil, -5, nil, -5)
becomes("set_ull", "ull", nil, -1, nil, -1)
becomes("set_dbl", "dbl", nil, 2.5, nil, 2.5)
becomes("set_cdbl", "cdbl", nil, 1.0, -2.0, 1, -2)
check["variable:set_string"] = function()
	equal(made("set_string", "text"):symbol(), "text")
	equal(made("set_string", "text"):type(), pmodule.variable_type.string)
	equal(made("set_string", 3, "THREE"):type(), pmodule.variable_type.enum, "as one reference prints it")
	local v = fr(matched { "add_variable_name", "kept" }) or thr(nil, fr)(matched { "add_variable_name", "kept" })
	local value = v:value()
	v:set_string("shown instead")
	equal(v:value(), value, "what was read stays")
	equal(v:type(), pmodule.variable_type.ll)
end
check["variable:set_value"] = function()
	local v = pmodule.create_variable("struct inner", "copy", 0, -1)
	equal(v:set_value(thing["in"]), true)
	equal(v:type(), pmodule.variable_type.tuple)
	equal(var:set_value(thing["in"]), false, "one that was extracted")
end
check["variable:skip"] = function() var:skip() var:skip(false) end
check["variable:annotate"] = function() annotates(var) annotates(global) end
check["variable.__tostring"] = function() equal(tostring(var), "variable local (struct(inner))") end

-- ---- siginfo, pmap entry, bt_variable --------------------------------------------------------------------------------------------------

local si -- of the core file only
local function of_signal(name, f) check[name] = function() return where == "live" and "core" or f() end end
of_signal("siginfo:num", function() equal(si:num(), 11) end)
of_signal("siginfo:code", function() equal(si:code(), 1) end)
of_signal("siginfo:address", function() equal(si:address(), 0x10) end)
of_signal("siginfo:address_populated", function() equal(si:address_populated(), true) end)
of_signal("siginfo:reason", function()
	local reason, killed = si:reason()
	assert(reason:find("not mapped"), reason)
	equal(killed, false)
end)
of_signal("siginfo.__tostring", function() equal(tostring(si), "SIGSEGV") end)

local function entry() return bt:pmap_entry(fr:pc()) end
check["pmap entry:start"] = function() assert(not math.ult(fr:pc(), entry():start())) end
check["pmap entry:stop"] = function() assert(math.ult(fr:pc(), entry():stop())) end
check["pmap entry:offset"] = function() equal(entry():offset() % 4096, 0) end
check["pmap entry:inode"] = function() assert(where == "core" or entry():inode() ~= 0) end
check["pmap entry:path"] = function() equal(entry():path(), fr:object_file()) end
check["pmap entry:guard"] = function()
	equal(entry():guard(), false)
	local guards = 0
	for e in bt:pmap() do guards = guards + (e:guard() and 1 or 0) end
	assert(where == "core" or guards > 0, "below the helper's stack")
end
check["pmap entry:permissions"] = function()
	local f = pmodule.pmap_perms
	equal(entry():permissions(f.rd, f.ex), true)
	equal(entry():permissions(f.rd, f.wr), false)
	equal(entry():permissions(f.all), false)
	equal(entry():permissions(f.pr), true)
	equal(entry():permissions(f.sh), false)
	fails("pmodule.pmap_perms expected", entry().permissions, entry(), 1 << 20)
end
check["pmap entry.__tostring"] = function() assert(tostring(entry()):find("^pmap entry")) end
check["match.__tostring"] = function() assert(tostring(pmodule.match()):find("^match")) end

check["bt_variable.__index"] = function()
	equal(number(thing.ptr.c), 77, "through the pointer")
	equal(number(thing.list[3]), 13)
	fails("'*thing_g.ptr' (struct inner) has no member 'frist'", function() return thing.ptr.frist end)
	fails("thing_g.nothing", function() return thing.nothing.x end)
end
check["bt_variable.__len"] = function()
	equal(#thing.list, 4)
	fails("not an array of known length", function() return #thing.ptr end)
end
check["bt_variable.__newindex"] = function() fails("read-only", function() thing.id = 1 end) end
check["bt_variable.__tostring"] = function() equal(tostring(thing.list), "bt_variable thing_g.list (int [4])") end

-- Constants: all that the reference names.
local constants = {
	event = "preattach attach variable frame thread postattach",
	event_type = "preattach attach variable frame thread postattach",
	log_level = "debug info warning error",
	match_type = "exact substr",
	annotation = "comment warning critical json",
	pmap_perms = "rd wr ex pr sh all",
	variable_type = "bottom ll ull flt dbl ldbl cflt cdbl cldbl string enum tuple array fn reference",
	process_state = "unknown running sleeping disk stopped traced zombie dead idle blocked queued",
}

-- ---- all of it -------------------------------------------------------------------------------------------------------------------------

local function fail(what, why) failed[#failed + 1] = what .. ": " .. tostring(why) end

local function there(all, prefix, list)
	for name, f in pairs(list) do
		if type(f) == "function" then all[prefix .. name] = true end
	end
end

-- Everything to check: the functions of pmodule, and the methods and metamethods of each class.
local function everything()
	local all, plumbing = {}, { __eq = true, __gc = true }
	there(all, "pmodule.", pmodule)
	for _, o in ipairs { bt, thr, fr, var, entry(), thing, pmodule.match(), si } do
		local meta = debug.getmetatable(o)
		local own = {}
		for name, f in pairs(meta) do if not plumbing[name] then own[name] = f end end
		there(all, meta.__name .. ".", own)
		if type(meta.__index) == "table" then there(all, meta.__name .. ":", meta.__index) end
	end
	return all
end

local function check_constants()
	for name, words in pairs(constants) do
		local n, values = 0, {}
		for word in words:gmatch("%S+") do
			local ok, value = pcall(function() return pmodule[name][word] end)
			if not ok or math.type(value) ~= "integer" then fail(name .. "." .. word, "no integer") end
			if values[value] then fail(name .. "." .. word, "the same as " .. values[value]) end
			values[ok and value or 0], n = word, n + 1
		end
		for word in pairs(pmodule[name]) do n = n - 1 end
		if n ~= 0 then fail(name, "constants that are not in the list") end
	end
	for name, value in pairs(pmodule) do
		if type(value) == "table" and not constants[name] then fail(name, "not in the list of constants") end
	end
	if pmodule.event ~= pmodule.event_type then fail("event_type", "not the same as event") end
end

local function run_all()
	for name in pairs(everything()) do
		if not check[name] then fail(name, "there is no check of it") end
	end
	local all = everything()
	for name, f in pairs(check) do
		local elsewhere = name:find("^siginfo") and where == "live"
		if not all[name] and not elsewhere then fail(name, "it is not there") end
		local ok, why = pcall(f)
		if not ok then fail(name, why) end
		if why ~= "core" then done[#done + 1] = name end
	end
	check_constants()
end

local function look_around(backtrace)
	bt = backtrace
	thr = bt()
	for t in bt do helper = t:tid() ~= thr:tid() and t or helper end
	for f in thr do fr = f:symbol() == "stay" and f or fr end
	var = fr(matched { "add_variable_name", "local" })
	global = bt:variables()(nil, nil)
	thing = pmodule.bt_query("thing_g", "reference", nil)
	si = fr:siginfo()
end

pmodule.define {
	id = "reference",
	description = "a check of each function",
	load = function()
		where = pmodule.config_option("where") or "live"
		faulted = not pmodule.config_option("at_work")
		local m = pmodule.match()
		m:add_frame_symbol("stay")
		for _, name in ipairs { "variable", "frame", "thread" } do
			pmodule.register(pmodule.event[name], function(o, raw)
				seen[name] = seen[name] + 1
				if seen.deep[#seen.deep] ~= name then seen.deep[#seen.deep + 1] = name end
				if name == "variable" and o:base_type() == "of_dispatch" then seen.dispatched = number(raw.id) end
			end, m)
		end
		pmodule.register(pmodule.event.variable, function(v, raw)
			if v:base_type() == "of_dispatch" then seen.dispatched = number(raw.id) end
		end)
		m:add_variable_name("local")
		pmodule.register(pmodule.event.variable, function(v, raw)
			seen.filtered = (seen.filtered or 0) + 1
			equal(number(raw.c), v:frame():fprm_at(1):value())
		end, m)
		m:reset()
		pmodule.register(pmodule.event.preattach, function(b)
			seen.preattach = seen.preattach + 1
			equal(pmodule.address_read_u8(0x400000), nil, "no memory yet")
		end)
		pmodule.register(pmodule.event.attach, function(b)
			seen.attach = seen.attach + 1
			pmodule.address_read_u8(pmodule.symbol_address("message_g"))
			seen.source = pmodule.read_source()
		end)
		pmodule.register(pmodule.event.postattach, function(b)
			look_around(b)
			run_all()
			table.sort(failed)
			table.sort(done)
			b:add_kv_string("reference.failed", table.concat(failed, "\n"))
			b:add_kv_string("reference.done", table.concat(done, " "))
			b:add_kv_int("reference.checks", #done)
		end)
	end,
	reset = function() pmodule.log(pmodule.log_level.warning, "reset is called") end,
	unload = function() pmodule.log(pmodule.log_level.warning, "unload is called") end,
}
