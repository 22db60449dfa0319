-- SPDX-License-Identifier: MIT
-- A hash table shown as its entries: variables made below a global, which has no frame.
local MOST = 4

local function value(b)
	local v = pmodule.variable_from_bt(b)
	return v:value() or -1, v
end

local function text(b)
	local _, v = value(b)
	return v:symbol() or "(none)"
end

local function each_entry(raw)
	return coroutine.wrap(function()
		for i = 0, value(raw.nbuckets) - 1 do
			local entry = raw.buckets[i]
			while value(entry) ~= 0 do
				coroutine.yield(entry)
				entry = entry.next
			end
		end
	end)
end

local function on_table(variable, raw)
	if variable:frame() ~= nil then return end
	local shown = pmodule.create_variable("entries", "entries", variable:address(), -1, variable)
	shown:set_array()
	local n = 0
	for entry in each_entry(raw) do
		if n == MOST then
			variable:annotate(pmodule.annotation.warning, "%d of %d entries are shown", MOST, value(raw.used))
			break
		end
		local v = pmodule.create_variable("struct entry", nil, 0, n, shown)
		v:set_string(string.format("%s=%d", text(entry.key), value(entry.value)))
		n = n + 1
	end
end

pmodule.define {
	id = "table",
	load = function()
		local m = pmodule.match()
		m:add_base_type("table")
		m:add_variable_ptrace_type(pmodule.variable_type.tuple)
		pmodule.register(pmodule.event.variable, on_table, m)
	end,
}
