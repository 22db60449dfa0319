-- SPDX-License-Identifier: MIT
-- Requests found by a part of the file's name and the exact type; a thread is told what it serves; a NULL string is nil.
local function text(b)
	local at = pmodule.variable_from_bt(b):value()
	return at and pmodule.address_read_string(at, 256)
end

local function on_request(variable, raw)
	if variable:name() ~= "request" or variable:type() ~= pmodule.variable_type.reference then return end
	local path, query = text(raw.path), text(raw.query)
	query = query and "?" .. query
	local peer = pmodule.variable_from_bt(raw.from.peer):symbol()
	variable:thread():annotate(pmodule.annotation.comment, "serves %s%s for %s", path, query or "", peer)
	variable:thread():set_name("serving")
	variable:backtrace():add_kv_string("request.path", path)
	variable:backtrace():add_kv_int("request.status", pmodule.variable_from_bt(raw.status):value())
	local f = pmodule.create_frame()
	f:set_symbol("handler of " .. path)
	f:set_path("/srv/site/routes.conf")
	f:set_line(12)
	variable:frame():add_frame(f, true)
end

pmodule.define {
	id = "requests",
	load = function()
		local m = pmodule.match()
		m:add_file("specimen", pmodule.match_type.substr)
		m:add_variable_base_type("request", pmodule.match_type.exact)
		pmodule.register(pmodule.event.variable, on_request, m)
	end,
}
