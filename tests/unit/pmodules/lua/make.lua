-- SPDX-License-Identifier: MIT
-- What modules add: variables of all kinds below others, frames, names, annotations; and what is refused.
local function add(fr, owner)
	local list = pmodule.create_variable("struct list", "made", 0x100, -1, owner)
	list:set_array()
	fr:add_variable(list)
	local setters = {
		function(v) v:set_ll(-5) assert(v:value() == -5) end,
		function(v) v:set_ull(-1) assert(v:value() == -1) end,
		function(v) v:set_dbl(2.5) assert(v:value() == 2.5) end,
		function(v) v:set_cdbl(1, 2) assert(select(2, v:value()) == 2.0) end,
		function(v) v:set_enum(3, "THREE") assert(v:value() == 3 and v:symbol() == "THREE") end,
		function(v) v:set_ref(0x10, "main") assert(v:value() == 0x10 and v:symbol() == "main") end,
		function(v) v:set_function("main") assert(v:symbol() == "main") end,
		function(v) v:set_string("text\0more") assert(v:symbol() == "text\\0more") end,
		function(v) v:set_struct() assert(v:type() == pmodule.variable_type.tuple) end,
	}
	for i, set in ipairs(setters) do
		local v = pmodule.create_variable("int", nil, 0x100 + i, i - 1, list)
		fr:add_variable(v)
		set(v)
		assert(v:owner() == list and v:frame() == fr)
	end
	local refused, why = pcall(fr.add_variable, fr, list)
	assert(not refused and why:find("not added yet"), why)
	return list
end

local function frames(bt)
	local thr = bt()
	local fr = pmodule.create_frame()
	fr:set_symbol("lua function")
	fr:set_path("/x/y/script.lua")
	fr:set_line(7)
	fr:set_decl_line(5)
	thr:add_frame(fr)
	assert(thr():symbol() == "lua function" and thr():line() == 7 and thr():decl_line() == 5)
	assert(thr():path() == "/x/y/script.lua", thr():path())
	assert(not pcall(thr.add_frame, thr, fr), "twice")
	local real = thr(nil, fr)
	assert(not pcall(thr.add_frame, thr, real), "one that was extracted")
	real:set_symbol("renamed")
	assert(real:symbol() == "renamed")
	local last = pmodule.create_frame()
	last:set_symbol("the end")
	thr:add_frame(last, false)
	local count = 0
	for f in thr do count = count + 1 end
	assert(count == 5 and thr:n_frames() == 5)
	thr:set_name("renamed")
	assert(thr:name() == "renamed")
end

local function annotations(bt)
	local a, thr = pmodule.annotation, bt()
	for _, object in ipairs { bt, thr, thr(), (bt:variables()(nil, nil)) } do
		object:annotate(a.comment, "plain 100%")
		object:annotate(a.warning, "%d of %s", 3, "four")
		object:annotate(a.critical, "%5.1f|%q", 1.25, "x\ny")
		assert(object:annotate(a.json, '{"json": {"context": "T", "share": "50%", "more": {"k": "v"}}}'))
		assert(not object:annotate(a.json, "{not json"))
		assert(not pcall(object.annotate, object, 17, "x"))
		assert(not pcall(object.annotate, object, a.comment))
		assert(not pcall(object.annotate, object, a.comment, "%d", "x"))
	end
	pmodule.log(pmodule.log_level.info, "100%")
	pmodule.log(pmodule.log_level.warning, "%s-%d", "a", 1)
	print("printed", nil, 1.5)
end

pmodule.define {
	id = "make",
	load = function()
		pmodule.register(pmodule.event.postattach, function(bt)
			local fr = bt()()
			local before = 0
			for _ in fr do before = before + 1 end
			local c
			for v in fr do if v:name() == "c" then c = v end end
			add(fr, c)
			local after = 0
			for _ in fr do after = after + 1 end
			assert(after == before + 10, after)
			local loose = pmodule.create_variable("int", "at the end", 0, -1)
			fr:add_variable(loose, false)
			local global = bt:variables()(nil, nil)
			for i = 0, 3 do pmodule.create_variable("int", nil, 0, i, global):set_ll(i) end -- below a global: at once
			frames(bt)
			annotations(bt)
			bt:add_kv_int("passed", 1)
		end)
	end,
}
