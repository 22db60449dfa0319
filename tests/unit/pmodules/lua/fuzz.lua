-- SPDX-License-Identifier: MIT
-- Calls every function and every method with wrong arguments, chosen by the bytes at 0x10000 (two for the function, one for the number
-- of arguments, one for each argument). A call may work, or fail with an error that is a string. Methods are found by debug.
--
-- Results are kept in slots for later calls: so there are sequences of calls, on variables and frames that were created and added (or not), on
-- objects of another thread's frames, on iterators in the middle of a loop. The slots outlive the snapshot: in the next one they contain stale
-- objects of every kind, created and added ones, too.
local stale, functions, pool, slots, turn = {}, {}, {}, {}, 0
local SLOTS = 96 -- of the 255 that a byte can choose

local function collect(t, prefix)
	local names = {}
	for name, f in pairs(t) do
		if type(f) == "function" then names[#names + 1] = name end
	end
	table.sort(names) -- the order of pairs() is another every time
	for _, name in ipairs(names) do functions[#functions + 1] = { name = prefix .. name, f = t[name] } end
end

local function objects(bt)
	local thr = bt()
	local fr = thr()
	return {
		bt, thr, fr, fr:fprm_at(0), (bt:variables()(nil, nil)), fr:siginfo(), bt:pmap_entry(0x401000), pmodule.match(),
		pmodule.bt_query("head"), pmodule.bt_query("first"), pmodule.create_frame(),
		pmodule.create_variable("int", "made", 0, -1), pmodule.variable_from_bt(pmodule.bt_query("head")),
	}
end

local odd = setmetatable({}, {
	__index = function() return 1 << 62 end,
	__len = function() return -1 end,
	__tostring = function() return "odd\0" end,
	__call = function() error("called") end,
	__name = "odd",
})
local plain = {
	true, false, 0, 1, -1, 2, 7, 255, 1 << 31, -(1 << 31), 1 << 32, 1 << 53, math.maxinteger, math.mininteger, 0x8000, 0x9000, 0x10000,
	1.0, 1.5, -0.0, 0 / 0, 1 / 0, -1 / 0, 1e308, "", "x", "a\0b", ("long "):rep(3000), "%s%d%n%q", "%99999d", "%", "struct node",
	"struct node *", "head", "first", "next", "next->next.kids[1]", "[9223372036854775807]", '{"json": {"context": "c"}}', '{"json": 1',
	"crash", "crash.c", "rax", "8", "0x10", "1e5", "std::vector<int, std::allocator<int> >", "\xff\xfe", {}, { object = 1 },
	{ name = "counter" }, { object = {}, cu = print }, { 1, 2, 3 }, print, error, function() error({}) end,
	coroutine.create(function() end), coroutine.wrap(function() coroutine.yield(1) end), io.stdout, odd,
}

local function make_pool(bt)
	pool = {}
	for _, list in ipairs { plain, objects(bt), stale } do
		for _, v in ipairs(list) do pool[#pool + 1] = v end
	end
end

local function keep(result)
	for i = 2, math.min(result.n, 4) do
		local kind = type(result[i])
		if result[1] and (kind == "userdata" or kind == "function") then
			turn = turn % SLOTS + 1
			slots[turn] = result[i]
		end
	end
end

local function chosen_argument(which)
	if which < SLOTS and slots[which + 1] ~= nil then return slots[which + 1] end
	return which ~= 255 and pool[1 + which % #pool] or nil
end

local skipped = { ["pmodule.define"] = true } -- it is over by then

local function play(bytes)
	local at, calls = 1, 0
	local function take()
		at = at + 1
		return bytes:byte(at - 1) or 0
	end
	while at <= #bytes do
		local chosen = functions[1 + (take() * 256 + take()) % #functions]
		local args, n = {}, take() % 6
		for i = 1, n do args[i] = chosen_argument(take()) end
		local iterator = slots[1 + take() % SLOTS]
		if type(iterator) == "function" then chosen = { name = "an iterator", f = iterator } end
		local result = table.pack(pcall(chosen.f, table.unpack(args, 1, n)))
		if not result[1] and type(result[2]) ~= "string" and result[2] ~= nil then
			local thrown = false -- by one of our own arguments
			for i = 1, n do thrown = thrown or type(args[i]) == "function" or args[i] == odd end
			if not thrown then error(chosen.name .. ": an error that is no text") end
		end
		keep(result)
		calls = calls + 1
	end
	return calls
end

local function still_works(bt)
	assert(bt:pid() == 101 and bt() and bt()() and pmodule.bt_query("head").value)
	for thr in bt do
		for fr in thr do
			for v in fr do local _ = tostring(v), v:value() end
		end
	end
end

local function find_functions(bt)
	collect(pmodule, "pmodule.")
	for _, o in ipairs(objects(bt)) do
		local meta = debug.getmetatable(o)
		if type(meta.__index) == "table" then collect(meta.__index, meta.__name .. ":") end
		collect(meta, meta.__name .. ".")
	end
	for i = #functions, 1, -1 do
		if skipped[functions[i].name] then table.remove(functions, i) end
	end
end

pmodule.define {
	id = "fuzz",
	load = function()
		pmodule.register(pmodule.event.postattach, function(bt)
			if #stale == 0 then
				find_functions(bt)
				make_pool(bt)
				play((pmodule.address_read_raw(0x10000, 1 << 20) or ""):reverse())
				stale = objects(bt)
				return
			end
			make_pool(bt)
			local calls = play(pmodule.address_read_raw(0x10000, 1 << 20) or "")
			still_works(bt)
			bt:add_kv_int("calls", calls)
			bt:add_kv_int("functions", #functions)
			bt:add_kv_int("passed", 1)
		end)
	end,
}
