-- SPDX-License-Identifier: MIT
-- Iterators keep no state: nested loops over one object, filters of every kind, what is added while a loop runs.
local function names(iterator, state)
	local all = {}
	for v in iterator, state do all[#all + 1] = v:name() end
	return table.concat(all, ",")
end

local function nested(bt)
	local pairs_seen = 0
	for a in bt do
		for b in bt do
			for fr in a do pairs_seen = pairs_seen + 1 end
		end
	end
	assert(pairs_seen == 2 * 3 + 2 * 2, pairs_seen)
end

local function filters(bt)
	local m = pmodule.match()
	m:set_fault()
	local n = 0
	for thr in bt, m do
		n = n + 1
		assert(thr:tid() == 101)
		for fr in thr, m do assert(fr:symbol() == "boom") end
	end
	assert(n == 1)
	m:reset()
	m:add_frame_symbol("mid", pmodule.match_type.substr)
	for fr in bt(), m do assert(fr:symbol() == "middle") end
	m:reset()
	m:add_variable_name("code")
	assert(names(bt()(), m) == "code")
	m:add_variable_name("line", pmodule.match_type.exact) -- of one kind: either
	assert(names(bt()(), m) == "code,line")
	m:add_variable_ptrace_type(pmodule.variable_type.ull) -- of another: both
	assert(names(bt()(), m) == "")
	m:reset()
	m:add_base_type("crash")
	assert(names(bt()(), m) == "c")
	m:reset()
	assert(names(bt()(), m) == "depth,message,c,code,line,gone,z,big", names(bt()(), m))
end

local function of_wrong_kind(bt)
	local m = pmodule.match()
	m:add_variable_name("x")
	local ok, why = pcall(function() for thr in bt, m do end end)
	assert(not ok and why:find("criteria of variables"), why)
	ok, why = pcall(pmodule.register, pmodule.event.frame, print, m)
	assert(not ok)
end

local function globals(bt)
	assert(names(bt:variables()) == "counter")
	assert(names(bt:variables(), { name = "counter" }) == "counter")
	assert(names(bt:variables(), { name = "count" }) == "", "a name is exact")
	assert(names(bt:variables(), { object = "cra", cu = "crash.c" }) == "counter", "object and cu are parts")
	assert(names(bt:variables(), { object = "libc" }) == "")
	assert(names(bt:variables { name = "counter" }) == "counter")
	assert(names(bt():variables()) == "errno_copy")
end

local function growing(bt)
	local thr, n = bt(), 0
	for fr in thr do
		n = n + 1
		if fr:symbol() == "middle" then
			local made = pmodule.create_frame()
			made:set_symbol("made")
			fr:add_frame(made, true)
		end
	end
	assert(n == 4, "a frame inserted behind the present one is visited")
	assert(thr:n_frames() == 4)
end

pmodule.define {
	id = "iterate",
	load = function()
		pmodule.event_register(pmodule.event_type.postattach, function(bt)
			nested(bt)
			filters(bt)
			of_wrong_kind(bt)
			globals(bt)
			growing(bt)
			bt:add_kv_int("passed", 1)
		end)
	end,
}
