-- SPDX-License-Identifier: MIT
-- stl: strings and containers of libstdc++ as what they hold: std::string, vector, map, set, multimap, multiset, unordered_*, pair.
-- Options: --module=stl:elements,64,string,256

local ELEMENTS, STRING = 64, 256
local NODE_VALUE = 32 -- of a tree's node: behind colour, parent, left, right

local function number(b)
	local v = b and pmodule.variable_from_bt(b)
	return v and v:value()
end

local function member(b, path)
	return number(pmodule.try(b, path))
end

local function quoted(text, length)
	local shown = text:gsub("[%c\\\"]", function(c)
		local known = { ["\n"] = "\\n", ["\t"] = "\\t", ["\r"] = "\\r", ["\0"] = "\\0", ["\\"] = "\\\\", ['"'] = '\\"' }
		return known[c] or string.format("\\x%02x", c:byte())
	end)
	return string.format('"%s"%s', shown, length > #text and string.format("... (%d bytes)", length) or "")
end

-- One line instead of the members; nil: it is not what its name says (not made yet, or destroyed).
local function string_text(b)
	local data, length = member(b, "_M_dataplus._M_p"), member(b, "_M_string_length")
	if not data or not length or length < 0 then return nil end
	local text = length == 0 and "" or pmodule.address_read_raw(data, math.min(length, STRING))
	return text and quoted(text, length)
end

local function show_string(v, b)
	local text = string_text(b)
	if not text then return end
	v:set_string(text)
	v:skip()
end

local function add_value(v, name, index, b)
	local e = pmodule.create_variable(pmodule.typeof(b), name, pmodule.address(b) or 0, index, v)
	e:set_value(b)
	if v:frame() then v:frame():add_variable(e) end
	pmodule.dispatch(e, b)
end

-- Adds the elements that next() gives, one value each, below v.
local function fill(v, kind, count, next_value)
	v:set_string(string.format("%s of %d", kind, count))
	v:skip()
	for i = 0, math.min(count, ELEMENTS) - 1 do
		local b = next_value(i)
		if not b then break end
		add_value(v, nil, i, b)
	end
	if count > ELEMENTS then v:annotate(pmodule.annotation.comment, "%d of %d elements are shown", ELEMENTS, count) end
end

local function show_vector(v, b)
	local first, last = pmodule.try(b, "_M_impl._M_start"), member(b, "_M_impl._M_finish")
	local begin, room = number(first), member(b, "_M_impl._M_end_of_storage")
	if not begin or not last or not room or math.ult(last, begin) or math.ult(room, last) then return end
	local size = begin ~= 0 and pmodule.sizeof(pmodule.deref(first)) or 1
	if size == 0 or (last - begin) % size ~= 0 then return end
	fill(v, "vector", (last - begin) // size, function(i) return pmodule.deref(pmodule.deref(first), begin + i * size) end)
end

-- Next node of a red-black tree in order, from its links; bounded, whatever they are.
local function successor(node)
	local right = pmodule.address_read_ptr(node + 24)
	if not right then return nil end
	if right ~= 0 then
		for _ = 1, 128 do
			local left = pmodule.address_read_ptr(right + 16)
			if not left or left == 0 then return left and right end
			right = left
		end
		return nil
	end
	for _ = 1, 128 do
		local parent = pmodule.address_read_ptr(node + 8)
		if not parent or pmodule.address_read_ptr(parent + 24) ~= node then return parent end
		node = parent
	end
	return nil
end

-- What a container is made of, by its allocator: std::map<int, long, std::less<int>, std::allocator<std::pair<int const, long> > >.
local function element_type(type)
	for i = 1, 4 do
		local argument = pmodule.template_arg(type, i)
		if argument and argument:find("^std::allocator<") then return pmodule.template_arg(argument, 0) end
	end
	return nil
end

local function show_tree(v, b, kind)
	local tree = pmodule.try(b, "_M_t")
	local count = tree and member(tree, "_M_impl._M_node_count")
	local node = tree and member(tree, "_M_impl._M_header._M_left")
	local value = element_type(v:base_type())
	if not count or not node or not value or count < 0 then return end
	fill(v, kind, count, function(i)
		if i > 0 then node = successor(node) end
		return node and pmodule.variable_at(value, node + NODE_VALUE, v:object())
	end)
end

local function show_hash(v, b, kind)
	local hash = pmodule.try(b, "_M_h")
	local count, node = hash and member(hash, "_M_element_count"), hash and member(hash, "_M_before_begin._M_nxt")
	local value = element_type(v:base_type())
	if not count or not node or not value or count < 0 then return end
	fill(v, kind, count, function(i)
		if i > 0 then node = node and pmodule.address_read_ptr(node) end
		return node and node ~= 0 and pmodule.variable_at(value, node + 8, v:object())
	end)
end

-- One line: {1, "one"}; what is neither a number nor a string keeps its members below.
local function show_pair(v, b)
	local parts, simple = {}, true
	for i, name in ipairs { "first", "second" } do
		local m = pmodule.try(b, name)
		local value = m and number(m)
		parts[i] = m and string_text(m) or value and tostring(value) or "{...}"
		simple = simple and parts[i] ~= "{...}"
	end
	v:set_string(string.format("{%s, %s}", parts[1], parts[2]))
	if simple then return v:skip() end
	v:skip()
	for _, name in ipairs { "first", "second" } do
		local m = pmodule.try(b, name)
		if m then add_value(v, name, -1, m) end
	end
end

local printers = {
	["basic_string"] = show_string,
	["string"] = show_string,
	["vector"] = show_vector,
	["pair"] = show_pair,
}
for _, name in ipairs { "map", "set", "multimap", "multiset" } do
	printers[name] = function(v, b) show_tree(v, b, name) end
	printers["unordered_" .. name] = function(v, b) show_hash(v, b, "unordered_" .. name) end
end

local known = {} -- type's name -> its printer, or false

local function printer_of(type)
	local p = known[type]
	if p == nil then
		local name = type:match("^std::__cxx11::([%w_]+)") or type:match("^std::([%w_]+)") or (type == "string" and type)
		local arguments = type:match("<(.*)>")
		p = name and printers[name] or false
		if name == "vector" and arguments and arguments:find("^bool[,>]") then p = false end -- bits, not elements
		if name == "basic_string" and arguments and not arguments:find("^char[,>]") then p = false end
		known[type] = p
	end
	return p
end

local function variable(v, b)
	if not b then return end
	local p = printer_of(v:base_type() or "")
	if p and v:type() == pmodule.variable_type.tuple then p(v, b) end
end

pmodule.define {
	id = "stl",
	description = "strings and containers of libstdc++ as what they hold",
	load = function()
		ELEMENTS = tonumber(pmodule.config_option("elements")) or ELEMENTS
		STRING = tonumber(pmodule.config_option("string")) or STRING
		local m = pmodule.match()
		m:add_variable_ptrace_type(pmodule.variable_type.tuple)
		pmodule.register(pmodule.event.variable, variable, m)
	end,
}
