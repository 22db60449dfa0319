-- SPDX-License-Identifier: MIT
-- Both spellings of what public sources spell in two ways, and constants that are integers.
assert(pmodule.register == pmodule.event_register)
assert(pmodule.event == pmodule.event_type)
local m = pmodule.match()
assert(m.add_base_type == m.add_variable_base_type)
for _, name in ipairs { "event", "log_level", "match_type", "variable_type", "process_state", "annotation", "pmap_perms" } do
	for _, value in pairs(pmodule[name]) do assert(math.type(value) == "integer") end
end
for _, name in ipairs { "running", "sleeping", "disk", "stopped", "traced", "zombie", "dead", "idle", "blocked", "queued", "unknown" } do
	assert(pmodule.process_state[name])
end
for _, name in ipairs { "ll", "ull", "flt", "dbl", "ldbl", "cflt", "cdbl", "cldbl", "string", "enum", "tuple", "array", "bottom", "fn", "reference" } do
	assert(pmodule.variable_type[name])
end

pmodule.define {
	id = "aliases",
	load = function()
		pmodule.register(pmodule.event.variable, function(v, raw)
			assert(raw == nil) -- nothing was extracted from a process here
			if v:name() == "c" then
				v:set_string("crash 7 at 42") -- one line instead of the struct
				v:skip()
			elseif v:name() == "depth" then
				v:set_string(2, "TWO") -- the enum setter under its other name
			end
		end)
		pmodule.register(pmodule.event.postattach, function() -- without its argument
			local bt = pmodule.backtrace()
			bt:add_kv_int("passed", 1)
			bt:add_kv_string("text", "a\0b")
			bt:add_tag("tag")
			bt:add_classifier("odd")
		end)
	end,
	reset = function() end,
	unload = function() end,
}
