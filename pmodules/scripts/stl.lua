-- stl: shows strings and containers of libstdc++ by their contents: std::string, string_view, vector, deque, list, forward_list,
-- map, set, multimap, multiset, unordered_*, pair, optional, variant, unique_ptr, shared_ptr, weak_ptr.
--
-- A container's own numbers are not trusted: it may not be constructed yet, destroyed, or damaged. So walks are limited to the
-- number of elements shown, and a container whose first element is unreadable is left as it is.
-- Options: --module=stl:elements,64,string,256

local ELEMENTS, STRING = 64, 256
local NODE_VALUE = 32 -- offset in a tree's node: after colour, parent, left, right

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

-- The string on one line; nil: not a valid string (not constructed yet, or destroyed).
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

local function is_readable(b)
	return b and pmodule.variable_from_bt(b):resolved()
end

-- Adds elements below v. next_value(i) returns each, in order.
local function fill(v, kind, count, next_value)
	local b = count > 0 and next_value(0)
	if count < 0 or count > 0 and not is_readable(b) then return end
	v:set_string(string.format("%s of %d", kind, count))
	v:skip()
	for i = 0, math.min(count, ELEMENTS) - 1 do
		b = i == 0 and b or next_value(i)
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

-- The next node of a red-black tree in order, or nil. Bounded, since links may be damaged.
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

-- The element type, from the allocator: std::map<int, long, std::less<int>, std::allocator<std::pair<int const, long> > >.
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

-- On one line: {1, "one"}. If one part is neither a number nor a string, the members are added below.
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

-- ---- bits, lists, deques ------------------------------------------------------------------------------------------------------

local function show_bits(v, b)
	local first, last = member(b, "_M_impl._M_start._M_p"), member(b, "_M_impl._M_finish._M_p")
	local behind = member(b, "_M_impl._M_finish._M_offset")
	if not first or not last or not behind or math.ult(last, first) then return end
	local count = (last - first) * 8 + behind
	local bytes = count == 0 and "" or pmodule.address_read_raw(first, (math.min(count, STRING) + 7) // 8)
	if not bytes or count < 0 then return end
	local shown = {}
	for i = 0, math.min(count, STRING, #bytes * 8) - 1 do shown[#shown + 1] = bytes:byte(i // 8 + 1) >> i % 8 & 1 end
	v:set_string(string.format("vector of %d bits: %s%s", count, table.concat(shown), count > #shown and "..." or ""))
	v:skip()
end

local function show_list(v, b)
	local header = pmodule.try(b, "_M_impl._M_node")
	local count, node, value = header and member(header, "_M_size"), header and member(header, "_M_next"), pmodule.template_arg(v:base_type(), 0)
	if not count or not node or not value then return end
	fill(v, "list", count, function(i)
		if i > 0 then node = node and pmodule.address_read_ptr(node) end
		return node and node ~= 0 and node ~= pmodule.address(header) and pmodule.variable_at(value, node + 16, v:object())
	end)
end

-- It does not store its length.
local function show_forward_list(v, b)
	local node, value, nodes = member(b, "_M_impl._M_head._M_next"), pmodule.template_arg(v:base_type(), 0), {}
	while node and node ~= 0 and #nodes <= ELEMENTS do
		nodes[#nodes + 1] = node
		node = pmodule.address_read_ptr(node)
	end
	if not node or not value then return end
	fill(v, "forward_list", #nodes, function(i) return pmodule.variable_at(value, nodes[i + 1] + 8, v:object()) end)
end

-- Blocks of 512 bytes, or of one element if that is larger, and a map of them.
local function show_deque(v, b)
	local value = pmodule.template_arg(v:base_type(), 0)
	local start, finish = pmodule.try(b, "_M_impl._M_start"), pmodule.try(b, "_M_impl._M_finish")
	local pointer = start and pmodule.try(start, "_M_cur")
	if not pointer or not finish or not value then return end
	local at = {}
	for _, name in ipairs { "_M_cur", "_M_first", "_M_last", "_M_node" } do at[name] = { member(start, name), member(finish, name) } end
	if not at._M_node[1] or not at._M_node[2] or at._M_cur[1] == 0 then return end
	local size = pmodule.sizeof(pmodule.deref(pointer))
	if size == 0 then return end
	local per = math.max(512 // size, 1)
	local count = per * ((at._M_node[2] - at._M_node[1]) // 8 - 1) + (at._M_cur[2] - at._M_first[2]) // size + (at._M_last[1] - at._M_cur[1]) // size
	local before = (at._M_cur[1] - at._M_first[1]) // size
	fill(v, "deque", count, function(i)
		local block = pmodule.address_read_ptr(at._M_node[1] + (before + i) // per * 8)
		return block and pmodule.deref(pmodule.deref(pointer), block + (before + i) % per * size)
	end)
end

-- ---- holders of one value -----------------------------------------------------------------------------------------------------

-- A number or a string is shown on the line itself, anything else below it.
local function show_one(v, kind, b)
	local text = string_text(b) or not is_readable(b) and "(unreadable)" or pmodule.variable_from_bt(b):type() < pmodule.variable_type.string and number(b)
	v:set_string(kind .. (text and " " .. tostring(text) or ""))
	v:skip()
	if not text then add_value(v, "value", -1, b) end
end

local function show_nothing(v, kind)
	v:set_string(kind .. " (empty)")
	v:skip()
end

local function show_optional(v, b)
	local engaged, value = member(b, "_M_payload._M_engaged"), pmodule.try(b, "_M_payload._M_payload._M_value")
	if engaged == 0 then return show_nothing(v, "optional") end
	if engaged == 1 and value then show_one(v, "optional", value) end
end

local function show_variant(v, b)
	local index, union = member(b, "_M_index"), pmodule.try(b, "_M_u")
	if index == 255 or not index or not union then return index and show_nothing(v, "variant") end
	local type = pmodule.template_arg(v:base_type(), index)
	local value = type and pmodule.variable_at(type, pmodule.address(union), v:object())
	if value then show_one(v, "variant<" .. type .. ">", value) end
end

local function show_pointer(v, kind, type, target, more)
	if target == 0 then return show_nothing(v, kind) end
	local b = type and pmodule.variable_at(type, target, v:object())
	v:set_string(string.format("%s 0x%x%s", kind, target, more or ""))
	v:skip()
	if b and is_readable(b) then add_value(v, "*", -1, b) end
end

-- The pointer is the tuple's first element, which libstdc++ stores last; an empty deleter takes no space.
local function show_unique(v, b)
	local at, size = pmodule.address(b), pmodule.sizeof(b)
	local target = at and size >= 8 and pmodule.address_read_ptr(at + size - 8)
	if target then show_pointer(v, "unique_ptr", pmodule.template_arg(v:base_type(), 0), target) end
end

local function show_shared(v, b, kind)
	local target, uses, weak = member(b, "_M_ptr"), member(b, "_M_refcount._M_pi->_M_use_count"), member(b, "_M_refcount._M_pi->_M_weak_count")
	if not target then return end
	local counts = uses and string.format(" (%d shared, %d weak)", uses, weak - (uses > 0 and 1 or 0)) or ""
	if kind == "weak_ptr" and uses == 0 then return v:set_string("weak_ptr (expired)"), v:skip() end
	show_pointer(v, kind, pmodule.template_arg(v:base_type(), 0), target, counts)
end

local function show_view(v, b)
	local data, length = member(b, "_M_str"), member(b, "_M_len")
	local text = data and length and (length == 0 and "" or length > 0 and pmodule.address_read_raw(data, math.min(length, STRING)))
	if not text then return end
	v:set_string(quoted(text, length))
	v:skip()
end

local printers = {
	["basic_string_view"] = show_view,
	["string_view"] = show_view,
	["list"] = show_list,
	["forward_list"] = show_forward_list,
	["deque"] = show_deque,
	["optional"] = show_optional,
	["variant"] = show_variant,
	["unique_ptr"] = show_unique,
	["shared_ptr"] = function(v, b) show_shared(v, b, "shared_ptr") end,
	["weak_ptr"] = function(v, b) show_shared(v, b, "weak_ptr") end,
	["basic_string"] = show_string,
	["string"] = show_string,
	["vector"] = show_vector,
	["pair"] = show_pair,
}
for _, name in ipairs { "map", "set", "multimap", "multiset" } do
	printers[name] = function(v, b) show_tree(v, b, name) end
	printers["unordered_" .. name] = function(v, b) show_hash(v, b, "unordered_" .. name) end
end

local known = {} -- type name -> its printer, or false

local function printer_of(type)
	local p = known[type]
	if p == nil then
		local name = type:match("^std::__cxx11::([%w_]+)") or type:match("^std::([%w_]+)") or (type == "string" and type)
		local arguments = type:match("<(.*)>")
		p = name and printers[name] or false
		if name == "vector" and arguments and arguments:find("^bool[,>]") then p = show_bits end
		if (name == "basic_string" or name == "basic_string_view") and arguments and not arguments:find("^char[,>]") then p = false end
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
	description = "contents of strings and containers of libstdc++",
	load = function()
		ELEMENTS = tonumber(pmodule.config_option("elements")) or ELEMENTS
		STRING = tonumber(pmodule.config_option("string")) or STRING
		local m = pmodule.match()
		m:add_variable_ptrace_type(pmodule.variable_type.tuple)
		pmodule.register(pmodule.event.variable, variable, m)
	end,
}
