-- SPDX-License-Identifier: MIT
-- After the detach, without its argument: globals by name, raw reads decoded by hand, JSON without a title.
local function little_endian(bytes)
	local n = 0
	for i = #bytes, 1, -1 do n = (n << 8) | bytes:byte(i) end
	return n
end

local function connections(variable, object, cu)
	local raw = pmodule.bt_query(variable:name(), object, cu)
	local parts = {}
	for i = 0, 2 do
		local bytes = pmodule.address_read_raw(variable:address() + 8 * i, 8)
		local at = little_endian(bytes)
		local fd = pmodule.address_read_raw(at, 4) -- nil: there is none
		if fd then
			local c = raw[i]
			local length = pmodule.variable_from_bt(c.payload_length):value()
			local payload = pmodule.address_read_string(pmodule.variable_from_bt(c.payload):value(), length)
			parts[#parts + 1] = string.format('"%d": {"peer": "%s", "share": "100%%", "payload": "%s"}', little_endian(fd),
				pmodule.variable_from_bt(c.peer):symbol(), payload or "")
		end
	end
	return '{ "json": { "observer": {' .. table.concat(parts, ", ") .. "} } }"
end

pmodule.define {
	id = "observer",
	load = function()
		pmodule.register(pmodule.event.postattach, function()
			local backtrace = pmodule.backtrace()
			for variable, object, cu in backtrace:variables(), { name = "connections_g" } do
				backtrace:annotate(pmodule.annotation.json, connections(variable, object, cu))
			end
			backtrace:add_kv_string("observer.missing", tostring(pmodule.bt_query("no_such_global", nil, nil)))
		end)
	end,
}
