-- SPDX-License-Identifier: MIT
-- Older names: event_register, event_type; parameters by number until there are no more; tags, options, reset.
local option, resets = nil, 0

local function on_frame(frame)
	local i, names = 0, {}
	while true do
		local p = frame:fprm_at(i)
		if p == nil then break end
		names[#names + 1] = string.format("%s:%s", p:name(), tostring(p:resolved()))
		i = i + 1
	end
	if frame:symbol() == "serve" then
		frame:backtrace():add_kv_string("parameters.serve", table.concat(names, ","))
	end
	local si = frame:siginfo()
	if si then
		local reason, killed = si:reason()
		frame:annotate(pmodule.annotation.comment, "%s: %s", tostring(si), reason)
	end
end

local function on_end(backtrace)
	backtrace:add_tag("looked-at")
	backtrace:add_kv_string("parameters.option", option or "none")
	backtrace:add_kv_int("parameters.state", backtrace:process_state())
	backtrace:add_kv_int("parameters.resets", resets)
	pmodule.log(pmodule.log_level.warning, string.format("100%% of %d", backtrace:pid()))
end

pmodule.define {
	id = "parameters",
	load = function()
		option = pmodule.config_option("depth")
		pmodule.event_register(pmodule.event_type.frame, on_frame)
		pmodule.event_register(pmodule.event_type.postattach, on_end)
	end,
	reset = function() resets = resets + 1 end,
	unload = function() end,
}
