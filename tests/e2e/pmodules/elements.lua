-- SPDX-License-Identifier: MIT
-- The usual walk over an array of structs and a list; callbacks that raise; values that are missing.
local function value(b) return pmodule.variable_from_bt(b):value() end

local function line(e)
	return string.format("%d %.1f %d %d %d %d %s", value(e.a), value(e.b), value(e.n.c), value(e.np.c), value(e.npp.c), value(e.nppp.c),
		pmodule.variable_from_bt(e.nppp.tag):symbol())
end

local function walk()
	local head = pmodule.bt_query("head")
	local size, base = pmodule.sizeof(pmodule.deref(head)), value(head)
	for i = 0, value(pmodule.bt_query("n_elements")) - 1 do
		print(line(pmodule.deref(head, base + i * size)))
	end
	local e, n = pmodule.bt_query("list").stqh_first, 0
	while value(e) ~= 0 do
		n, e = n + value(e.a), e.next.stqe_next
	end
	print("list", n)
end

local raised = 0
local function on_variable(v)
	raised = raised + 1
	error("raised for " .. (v:name() or "?"))
end

local function on_thread(t)
	local nothing = pmodule.variable_from_bt(pmodule.deref(pmodule.bt_query("head"), 0x10).a)
	t:annotate(pmodule.annotation.comment, "[%x] %s %5.1f%% of %d", 255, nothing:value(), nothing:symbol(), 7)
end

local function on_end(bt)
	walk()
	bt:add_kv_int("missing.int", nil)
	bt:add_kv_string("missing.string", "%d and %d", nil, 2)
	print("raised", raised > 1)
end

pmodule.define { id = "elements", load = function()
	pmodule.register(pmodule.event.variable, on_variable)
	pmodule.register(pmodule.event.thread, on_thread)
	pmodule.register(pmodule.event.postattach, on_end)
end }
