-- SPDX-License-Identifier: MIT
-- Five criteria on variables, then the same match object, emptied, for frames: the first registration keeps its criteria.
local seen = 0

local function on_request(variable, raw)
	seen = seen + 1
	variable:annotate(pmodule.annotation.warning, "request answered with %d", pmodule.variable_from_bt(raw.status):value())
end

local function on_fault(frame)
	frame:annotate(pmodule.annotation.comment, "the frame that was asked for: %s", frame:symbol())
end

local function on_end(backtrace)
	backtrace:add_kv_int("filtered.seen", seen)
	backtrace:annotate(pmodule.annotation.comment, "%d requests in %s", seen, backtrace:application_name())
end

local function load()
	local m = pmodule.match()
	m:add_object("specimen", pmodule.match_type.substr)
	m:add_file("specimen.c", pmodule.match_type.substr)
	m:add_frame_symbol("accept_one")
	m:add_variable_base_type("request")
	m:add_variable_name("given")
	pmodule.register(pmodule.event.variable, on_request, m)
	m:reset()
	m:set_fault()
	pmodule.register(pmodule.event.frame, on_fault, m)
	pmodule.register(pmodule.event.postattach, on_end)
end

pmodule.define { id = "filtered", load = load }
