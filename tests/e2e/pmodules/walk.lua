-- SPDX-License-Identifier: MIT
-- Typed values: a queue walked to its end, an array by address arithmetic, a member behind three pointers, a value kept across callbacks.
local registry

local function value(b) return pmodule.variable_from_bt(b):value() end
local function address(b) return pmodule.variable_from_bt(b):address() end

local function on_attach(backtrace)
	registry = pmodule.bt_query("registry_g", "specimen", "specimen.c")
end

local function weights(b)
	local all = {}
	local node = b.list.stqh_first
	while value(node) ~= 0 do
		all[#all + 1] = value(node.weight)
		assert(value(node.triple.c) == 77)
		assert(pmodule.variable_from_bt(node.triple.tag):symbol() == "deep")
		node = node.linkage.stqe_next
	end
	return table.concat(all, "+")
end

local function cells(b)
	local all = {}
	local first = pmodule.deref(b.cells, address(b.cells))
	local element = pmodule.variable_at("struct inner", address(b.cells))
	for i = 0, 3 do
		local cell = pmodule.deref(element, address(b.cells) + i * pmodule.sizeof(element))
		all[#all + 1] = value(cell.c)
		assert(value(b.cells[i].c) == value(cell.c))
	end
	assert(pmodule.sizeof(first) == 4 * pmodule.sizeof(element) and #b.cells == 4)
	return table.concat(all, "+")
end

local done = false
local function on_variable(variable, raw)
	if done then return end
	done = true
	local backtrace = variable:backtrace()
	backtrace:add_kv_string("walk.weights", weights(registry))
	backtrace:add_kv_string("walk.through_pointer", weights(pmodule.bt_query("registry_p", nil, nil)))
	backtrace:add_kv_string("walk.cells", cells(registry))
	backtrace:add_kv_string("walk.high_bits", string.format("%x", value(pmodule.bt_query("high_bits_g", "specimen", "specimen.c"))))
	local ok, why = pcall(function() return registry.list.stqh_frist end)
	backtrace:add_kv_string("walk.error", ok and "none" or why:gsub("^[^:]*:%d+: ", ""))
end

pmodule.define {
	id = "walk",
	load = function()
		pmodule.register(pmodule.event.attach, on_attach)
		pmodule.register(pmodule.event.variable, on_variable)
	end,
}
