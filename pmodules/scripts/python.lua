-- SPDX-License-Identifier: MIT
-- python: the Python functions that each thread runs, as frames with file, line and local variables (CPython 3.11, 3.12, 3.13).
--
-- _PyRuntime has a list of interpreters, each a list of thread states. A state's thread_id is the thread's pthread_self(), its fs_base.
-- One call of _PyEval_EvalFrameDefault runs one Python frame or several. An address on the C stack tells between which C frames they
-- belong: 3.11 has a _PyCFrame there for each call, which leads to its innermost frame; 3.12 and 3.13 have a frame without a function
-- there, below its outermost one.
--
-- Offsets are from the table below, by Py_Version: they do not change within a minor version. 3.13 has most of them in memory. If the
-- thread states are not where they should be, the interpreter's debug information tells (always with --module=python:layout,debug).
-- A thread may be held anywhere, also while it links a frame, and memory may be damaged: each object is checked for its type, each
-- walk is bounded. Frames are read first, then variables while there is time.
--
-- Lines: co_linetable, described in Objects/locations.md of CPython. Options: --module=python:frames,512,locals,64. Attributes:
-- python.version, python.threads, python.frames, python.incomplete (threads that are not shown to the end).

local FRAMES, LOCALS = 512, 64                           -- of a thread; of a frame
local ALL_FRAMES, ALL, EACH = 20000, 60000, 48           -- frames; objects that are read, in all and of one variable
local ITEMS, DEPTH, TEXT, DIGITS = 16, 3, 200, 70        -- shown of an object; 70 digits of 30 bits
local SIZE, ITEM, DIGIT, CELL, DATA = 16, 24, 24, 16, 32 -- in PyVarObject; PyTuple-, PyListObject; int; cell; bytes
local ON_C_STACK = 3                                     -- owner of a frame without a function
local LONG, LIST, TUPLE, BYTES, STR, DICT, CLASS, HEAP = 1 << 24, 1 << 25, 1 << 26, 1 << 27, 1 << 28, 1 << 29, 1 << 31, 1 << 9 -- tp_flags

local layout, runtime, version, stacks, by_id, types, codes, texts, frames_left, left, budget
local u64, u32, raw, pointers = pmodule.address_read_u64, pmodule.address_read_u32, pmodule.address_read_raw, pmodule.address_read_ptrs

local function word(bytes, offset) return (string.unpack("<I8", bytes, offset + 1)) end
local function has_time(part) return pmodule.time_left() > budget * part end

-- ---- layout -------------------------------------------------------------------------------------------------------------------

local function but(base, changes)
	local t = {}
	for k, v in pairs(base) do t[k] = v end
	for k, v in pairs(changes) do t[k] = v or nil end
	return t
end

local v311 = { interpreters = 40, next_interpreter = 0, threads = 16, next_thread = 8, interpreter = 16, thread_id = 152, cframe = 56, cframe_frame = 8,
	cframe_previous = 16, code = 32, previous = 48, at = 56, entry = 68, owner = 69, slots = 72, first_line = 72, n_slots = 76, names = 96,
	file = 112, name = 128, lines = 136, bytecode = 184, type = 8, type_name = 24, flags = 168, ascii = 48, compact = 72 }
local v312 = but(v311, { threads = 72, thread_id = 136, cframe_frame = 0, cframe_previous = 8, code = 0, previous = 8, entry = false, owner = 70,
	first_line = 68, n_slots = 72, bytecode = 192, ascii = 40, compact = 56 })
local v313 = but(v312, { interpreters = 632, next_interpreter = 7264, threads = 7344, thread_id = 152, frame = 72, cframe = false,
	cframe_frame = false, cframe_previous = false, bytecode = 200 })
local tables = { [11] = v311, [12] = v312, [13] = v313 }

-- Where _Py_DebugOffsets has them, with which _PyRuntime begins in 3.13.
local in_memory = { interpreters = 40, next_interpreter = 64, threads = 72, next_thread = 168, frame = 184, thread_id = 192, previous = 232,
	code = 240, at = 248, slots = 256, owner = 264, file = 280, name = 296, lines = 304, first_line = 312, names = 328, bytecode = 344,
	type = 360, type_name = 376, flags = 392, ascii = 560 }

local RUNTIME, INTERPRETER, THREAD, FRAME, CODE = "_PyRuntimeState", "PyInterpreterState", "PyThreadState", "struct _PyInterpreterFrame", "PyCodeObject"
local members = { -- type, and the member, by the names of several versions; only a type: its size
	interpreters = { RUNTIME, "interpreters.head" }, next_interpreter = { INTERPRETER, "next" }, threads = { INTERPRETER, "threads.head" },
	next_thread = { THREAD, "next" }, interpreter = { THREAD, "interp" }, thread_id = { THREAD, "thread_id" }, code = { FRAME, "f_code", "f_executable" },
	previous = { FRAME, "previous" }, at = { FRAME, "prev_instr", "instr_ptr" }, owner = { FRAME, "owner" }, slots = { FRAME, "localsplus" },
	first_line = { CODE, "co_firstlineno" }, n_slots = { CODE, "co_nlocalsplus" }, names = { CODE, "co_localsplusnames" },
	file = { CODE, "co_filename" }, name = { CODE, "co_qualname" }, lines = { CODE, "co_linetable" }, bytecode = { CODE, "co_code_adaptive" },
	type = { "PyObject", "ob_type" }, type_name = { "PyTypeObject", "tp_name" }, flags = { "PyTypeObject", "tp_flags" },
	ascii = { "PyASCIIObject" }, compact = { "PyCompactUnicodeObject" }, entry = { FRAME, "is_entry" }, cframe = { THREAD, "cframe" },
	cframe_frame = { "_PyCFrame", "current_frame" }, cframe_previous = { "_PyCFrame", "previous" }, frame = { THREAD, "current_frame" } }

local function by_debug_information(object, minor)
	local t = {}
	for name in pairs(tables[minor]) do
		local type, member, renamed = table.unpack(members[name])
		local at = pmodule.variable_at(type, runtime, object)
		local field = at and member and (pmodule.try(at, member) or renamed and pmodule.try(at, renamed))
		if not field and (member or not at) then return nil end
		t[name] = field and pmodule.address(field) - runtime or pmodule.sizeof(at)
	end
	return t
end

local function by_table(minor)
	if minor ~= 13 then return tables[minor] end
	if raw(runtime, 8) ~= "xdebugpy" or u64(runtime + 16) ~= 0 then return nil end -- the latter: built without the GIL
	local changes = {}
	for name, at in pairs(in_memory) do
		changes[name] = u64(runtime + at)
		if not changes[name] or math.ult(65536, changes[name]) then return nil end
	end
	return but(v313, changes)
end

-- Does the first thread state belong to the first interpreter?
local function fits(t)
	local interpreter = t and u64(runtime + t.interpreters)
	local state = interpreter and u64(interpreter + t.threads)
	return state and u64(state + t.interpreter) == interpreter and t
end

-- Sets `layout`, or returns why there is none.
local function find_layout(bt)
	runtime, layout = pmodule.symbol_address("_PyRuntime"), nil
	if not runtime then return "no Python runs here: no module has the symbol _PyRuntime" end
	local mapped = bt:pmap_entry(runtime)
	local object = mapped and mapped:path() ~= "" and mapped:path() or nil
	local at = pmodule.symbol_address("Py_Version", object)
	local number = at and u64(at)
	if not number then return "this Python is older than 3.11, or its memory was not kept" end
	local major, minor = number >> 24, number >> 16 & 255
	version = string.format("%d.%d.%d", major, minor, number >> 8 & 255)
	if major ~= 3 or not tables[minor] then return "Python " .. version .. " is not one of 3.11, 3.12 and 3.13" end
	layout = pmodule.config_option("layout") ~= "debug" and fits(by_table(minor)) or fits(by_debug_information(object, minor))
	if layout and layout.type == 8 then return nil end
	layout = nil
	return "the layout of this build of Python " .. version .. " is not known: install its debug information (python3-dbg)"
end

-- ---- objects ------------------------------------------------------------------------------------------------------------------

-- What a terminal does not show as one character: controls, format and bidirectional marks, odd spaces, private use.
local hidden = { { 0, 0x1f }, { 0x7f, 0xa0 }, { 0xad, 0xad }, { 0x600, 0x605 }, { 0x61c, 0x61c }, { 0x6dd, 0x6dd }, { 0x70f, 0x70f }, { 0x180e, 0x180e },
	{ 0x2000, 0x200f }, { 0x2028, 0x202f }, { 0x205f, 0x206f }, { 0x3000, 0x3000 }, { 0xd800, 0xf8ff }, { 0xfeff, 0xfeff }, { 0xfff0, 0xfffb },
	{ 0xfffe, 0xffff }, { 0xe0000, 0xe00ff }, { 0xe01f0, 0xffffffff } }
local named = { [9] = "\\t", [10] = "\\n", [13] = "\\r", [92] = "\\\\" }

local function character(c)
	if c >= 32 and c < 127 or named[c] then return named[c] or string.char(c) end
	for _, range in ipairs(hidden) do
		if c >= range[1] and c <= range[2] then return string.format(c < 256 and "\\x%02x" or c < 65536 and "\\u%04x" or "\\U%08x", c) end
	end
	return utf8.char(c)
end

-- The name and flags of the type at that address; nil if there is none.
local function type_at(at)
	if not at or at == 0 or at % 8 ~= 0 then return nil end
	if types[at] == nil then
		local name, flags = u64(at + layout.type_name), u64(at + layout.flags)
		name = name and flags and pmodule.address_read_string(name, 100)
		types[at] = name and name ~= "" and utf8.len(name) and not name:find("[%c%s]") and { name = name, flags = flags } or false
	end
	return types[at] or nil
end

local function type_of(object)
	return object ~= 0 and object % 8 == 0 and type_at(u64(object + layout.type)) or nil
end

-- A str's bytes, at most `most` characters; bytes of each; its length. Or nil.
local function text_of(object, most)
	local t, head = type_of(object), raw(object, layout.compact)
	if not t or t.flags & STR == 0 or not head or #head < layout.ascii then return nil end
	local length, state = word(head, SIZE), head:byte(33)
	local kind, is_compact, is_ascii = state >> 2 & 7, state & 32 ~= 0, state & 64 ~= 0
	if not is_compact or length < 0 or kind ~= 1 and kind ~= 2 and kind ~= 4 then return nil end
	local n = math.min(length, most)
	local text = n == 0 and "" or raw(object + (is_ascii and layout.ascii or layout.compact), n * kind)
	if text and #text == n * kind then return text, kind, length end
	return nil
end

local function characters(text, kind)
	local all = {}
	for i = 1, #text, kind do all[#all + 1] = string.unpack("<I" .. kind, text, i) end
	return all
end

-- A name or path, as people read it.
local function plain(object)
	local text, kind, length = text_of(object, 1024)
	if not text or kind == 1 and #text == length and not text:find("[^ -~]") then return text end
	local all = characters(text, kind)
	for i, c in ipairs(all) do all[i] = c == 92 and "\\" or character(c) end
	return table.concat(all) .. (length > 1024 and "..." or "")
end

-- In single quotes, or in double ones if there are only single ones in it.
local function quoted(text, kind, length, unit)
	local more = length * kind > #text and string.format("... (%d %s)", length, unit) or ""
	if kind == 1 and not text:find("[^ -&(-%[%]-~]") then return "'" .. text .. "'" .. more end
	local all, has = characters(text, kind), {}
	for _, c in ipairs(all) do has[c] = true end
	local quote = has[39] and not has[34] and 34 or 39
	for i, c in ipairs(all) do
		all[i] = c == quote and "\\" .. string.char(c) or unit == "bytes" and c > 126 and string.format("\\x%02x", c) or character(c)
	end
	return string.char(quote) .. table.concat(all) .. string.char(quote) .. more
end

local function str(object)
	local text, kind, length = text_of(object, TEXT)
	return text and quoted(text, kind, length, "characters")
end

local function bytes(object)
	local length = u64(object + SIZE)
	local text = length and length >= 0 and (length == 0 and "" or raw(object + DATA, math.min(length, TEXT)))
	return text and #text == math.min(length, TEXT) and "b" .. quoted(text, 1, length, "bytes")
end

-- The digits of 30 bits, the lowest first, as a number in base 10^9: multiplies by 2^30 and adds.
local function decimal(text)
	local parts = { 0 }
	for i = #text - 3, 1, -4 do
		local carry = string.unpack("<I4", text, i)
		for k = 1, #parts do
			local sum = (parts[k] << 30) + carry
			parts[k], carry = sum % 1000000000, sum // 1000000000
		end
		while carry > 0 do
			parts[#parts + 1], carry = carry % 1000000000, carry // 1000000000
		end
	end
	local out = { tostring(parts[#parts]) }
	for k = #parts - 1, 1, -1 do out[#out + 1] = string.format("%09d", parts[k]) end
	return table.concat(out)
end

-- 3.11: the number of digits, with the number's sign. Later: above three bits, of which the lowest two are the sign (2: negative).
local function int(object)
	local size = u64(object + SIZE)
	if not size then return nil end
	local n, is_negative = size >> 3, size & 3 == 2
	if layout.entry then n, is_negative = math.abs(size), size < 0 end
	if n < 0 or n > 1 << 40 then return nil end
	if n > DIGITS then return string.format("<int of %d bits>", n * 30) end
	local text = n == 0 and "" or raw(object + DIGIT, n * 4)
	if not text or #text < n * 4 then return nil end
	for i = 1, #text, 4 do
		if string.unpack("<I4", text, i) >= 1 << 30 then return nil end
	end
	local small = n < 2 and (n == 0 and 0 or string.unpack("<I4", text))
	return (is_negative and "-" or "") .. (small or decimal(text))
end

-- The shortest text that is this number.
local function float(object)
	local x, text = pmodule.address_read_f64(object + 16), nil
	if not x or x ~= x or x == math.huge or x == -math.huge then return x and (x ~= x and "nan" or x > 0 and "inf" or "-inf") end
	for p = math.abs(x) < 1e-300 and 1 or 15, 17 do
		text = string.format("%." .. p .. "g", x)
		if tonumber(text) == x then break end
	end
	return text:find("[.e]") and text or text .. ".0"
end

local repr

local function sequence(object, first, ends, depth, open)
	local n = u64(object + SIZE)
	local all = n and n >= 0 and first and (n == 0 and {} or pointers(first, math.min(n, ITEMS)))
	if not all or #all < math.min(n, ITEMS) then return nil end
	if depth == DEPTH and n > 0 then return ends:sub(1, 1) .. "..." .. ends:sub(2) end
	for i, at in ipairs(all) do all[i] = repr(at, depth + 1, open) end
	local more = n > #all and string.format(", ... %d more", n - #all) or n == 1 and ends == "()" and "," or ""
	return ends:sub(1, 1) .. table.concat(all, ", ") .. more .. ends:sub(2)
end

-- Entries are behind the index: hash, key and value, or (kind 1) key and value, or (2) the key, and the value in ma_values.
local function entries(object)
	local head = raw(object, 48)
	local keys, values = head and #head == 48 and word(head, 32), head and #head == 48 and word(head, 40)
	local about = keys and keys % 8 == 0 and raw(keys, 32)
	if not about or #about < 32 then return nil end
	local log2, kind, n = about:byte(10), about:byte(11), math.min(word(about, 24), 4 * ITEMS)
	if kind > 2 or log2 > 40 or n < 0 then return nil end
	local size = kind == 0 and 3 or 2
	local words = n == 0 and {} or pointers(keys + 32 + (1 << log2), n * size)
	local split = values ~= 0 and n > 0 and pointers(values + (layout.frame and 8 or 0), n)
	if not words or #words < n * size or values ~= 0 and n > 0 and (not split or #split < n) then return nil end
	local out = {}
	for i = 1, n do
		local key, value = words[i * size - 1], split and split[i] or words[i * size]
		if value ~= 0 and key ~= 0 then out[#out + 1] = { key, value } end
	end
	return out, word(head, SIZE)
end

local function dict(object, depth, open)
	local all, n = entries(object)
	if not all or n < 0 then return nil end
	if depth == DEPTH and n > 0 then return "{...}" end
	local out = {}
	for i = 1, math.min(#all, ITEMS) do out[i] = repr(all[i][1], depth + 1, open) .. ": " .. repr(all[i][2], depth + 1, open) end
	return "{" .. table.concat(out, ", ") .. (n > #out and string.format(", ... %d more", n - #out) or "") .. "}"
end

local built_in = { -- by name: the flag of its type, and what makes its text
	NoneType = { 0, function() return "None" end }, float = { 0, float }, int = { LONG, int }, str = { STR, str }, bytes = { BYTES, bytes },
	bool = { LONG, function(object) return ({ [0] = "False", "True" })[u32(object + DIGIT)] end }, dict = { DICT, dict },
	list = { LIST, function(object, depth, open) return sequence(object, u64(object + ITEM), "[]", depth, open) end },
	tuple = { TUPLE, function(object, depth, open) return sequence(object, object + ITEM, "()", depth, open) end },
	type = { CLASS, function(object) return type_at(object) and "<class '" .. type_at(object).name .. "'>" end },
}

-- The text for an object, and its type's name. `open`: the containers around it, and how many objects this variable may still read.
function repr(object, depth, open)
	if open.left <= 0 or left <= 0 then return "..." end
	open.left, left = open.left - 1, left - 1
	local t = type_of(object)
	if not t then return string.format("<no object at 0x%x>", object) end
	if open[object] then return ({ list = "[...]", dict = "{...}" })[t.name] or "(...)" end
	local kind = t.flags & HEAP == 0 and built_in[t.name]
	open[object] = true
	local text = kind and t.flags & kind[1] == kind[1] and kind[2](object, depth, open)
	open[object] = nil
	return text or string.format("<%s object at 0x%x>", t.name, object), t.name
end

-- ---- frames -------------------------------------------------------------------------------------------------------------------

-- The code object at that address, or nil.
local function code_at(address)
	if codes[address] ~= nil then return codes[address] or nil end
	codes[address] = false
	local t = type_of(address)
	local head = t and t.name == "code" and raw(address, layout.bytecode)
	if not head or #head < layout.bytecode then return nil end
	local n, first = string.unpack("<i4", head, layout.n_slots + 1), string.unpack("<i4", head, layout.first_line + 1)
	local name, file = plain(word(head, layout.name)), plain(word(head, layout.file))
	if not name or not file or n < 0 or n > 1 << 16 then return nil end
	local lines, names = word(head, layout.lines), word(head, layout.names)
	local size = type_of(lines) and u64(lines + SIZE) or 0
	local code = { name = name, file = file, first = first, start = address + layout.bytecode, n = math.min(n, LOCALS), more = n - LOCALS,
		names = {}, lines = size > 0 and size < 1 << 20 and raw(lines + DATA, size) or "" }
	local all = type_of(names) and type_of(names).name == "tuple" and pointers(names + ITEM, code.n) or {}
	for i = 1, code.n do code.names[i] = all[i] and plain(all[i]) or "?" end
	codes[address] = code
	return code
end

-- A variable that functions share is in a cell. A slot without an object has no value at present.
local function locals_of(f)
	local out = {}
	for i, object in ipairs(f.code.n > 0 and pointers(f.address + layout.slots, f.code.n) or {}) do
		local t = type_of(object)
		if t and t.name == "cell" then object = u64(object + CELL) or 0 end
		if object ~= 0 then
			local known = texts[object] or { object = object } -- often the same in many frames
			if not known.text then known.text, known.type = repr(object, 0, { left = EACH }) end
			texts[object], out[#out + 1] = known, { f.code.names[i], known }
		end
	end
	return out
end

local function frame_at(address)
	local head = address % 8 == 0 and raw(address, layout.slots)
	if not head or #head < layout.slots then return nil end
	local f = { address = address, previous = word(head, layout.previous), on_c_stack = head:byte(layout.owner + 1) == ON_C_STACK,
		at = word(head, layout.at), is_entry = layout.entry and head:byte(layout.entry + 1) ~= 0 }
	f.code = not f.on_c_stack and code_at(word(head, layout.code)) or nil
	return (f.code or f.on_c_stack) and f
end

-- The frames that one call of the interpreter runs, innermost first; the address of the next call's first; why the frames end there.
local function group_at(address, seen)
	local group = {}
	while address ~= 0 do
		if seen.n >= FRAMES then return group, 0, string.format("there are more than %d Python frames", FRAMES) end
		if seen[address] then return group, 0, string.format("the Python frames form a ring at 0x%x", address) end
		seen[address], seen.n = true, seen.n + 1
		local f = frame_at(address)
		if not f then return group, 0, string.format("there is no Python frame at 0x%x", address) end
		address = f.previous
		if f.on_c_stack then group.anchor = f.address else group[#group + 1] = f end
		if f.on_c_stack or f.is_entry then return group, address end
	end
	return group, 0
end

-- 3.11: each _PyCFrame has the innermost frame of its call, and that call's last frame leads to the next one's first.
local function by_cframes(cframe, seen)
	local groups, first, links = {}, u64(cframe + layout.cframe_frame), 0
	while first and first ~= 0 and links < FRAMES do
		local group, next_first, why = group_at(first, seen)
		local below = u64(cframe + layout.cframe_previous)
		first = below and below % 8 == 0 and u64(below + layout.cframe_frame)
		if not why and next_first ~= first then why = string.format("the Python frames above 0x%x do not belong together", next_first) end
		group.anchor, groups[#groups + 1] = cframe, group
		if why then return groups, why end
		cframe, links = below, links + 1
	end
	return groups, not first and "the calls of the interpreter cannot be read" or nil
end

local function by_links(first, seen)
	local groups, why = {}, nil
	while first and first ~= 0 and not why do
		groups[#groups + 1], first, why = group_at(first, seen)
	end
	return groups, why or not first and "the innermost Python frame cannot be read" or nil
end

-- The innermost call may be in the making: then it has no frame yet, and those of the others are read.
local function groups_of(state)
	if layout.frame then return by_links(u64(state + layout.frame), { n = 0 }) end
	local cframe = u64(state + layout.cframe)
	if not cframe or cframe == 0 or cframe % 8 ~= 0 then return {}, "the calls of the interpreter cannot be read" end
	local walk = layout.entry and by_cframes or function(at, seen) return by_links(u64(at + layout.cframe_frame), seen) end
	local seen = { n = 0 }
	local groups, why = walk(cframe, seen)
	local below = why and #groups <= 1 and seen.n < FRAMES and u64(cframe + layout.cframe_previous)
	if not below or below == 0 or below % 8 ~= 0 then return groups, why end
	local others, no_others = walk(below, { n = 0 })
	if no_others or #others == 0 then return groups, why end
	return others
end

local function add_thread(state)
	local id = u64(state + layout.thread_id)
	if not id or id == 0 then return end
	local stack = { frames = {} }
	if frames_left <= 0 or not has_time(0.4) then
		stack.why = "there is no time to read this thread's Python frames (--module-timeout)"
	else
		stack.groups, stack.why = groups_of(state)
	end
	for _, group in ipairs(stack.groups or {}) do table.move(group, 1, #group, #stack.frames + 1, stack.frames) end
	frames_left = frames_left - #stack.frames
	by_id[id] = by_id[id] or {}
	table.insert(by_id[id], stack)
	table.insert(stacks, stack)
end

-- Calls each(address) for the members of a linked list.
local function each_linked(first, link, most, each)
	local seen, n = {}, 0
	while first and first ~= 0 and first % 8 == 0 and not seen[first] and n < most do
		seen[first], n = true, n + 1
		each(first)
		first = u64(first + link)
	end
end

-- The innermost frames of all threads, then their callers, and so on.
local function read_locals()
	local any, depth = true, 1
	while any do
		any = false
		for _, stack in ipairs(stacks) do
			local f = stack.frames[depth]
			if f and (left <= 0 or not has_time(0.15)) then return end
			if f then f.locals, any = locals_of(f), true end
		end
		depth = depth + 1
	end
end

-- Runs while the process is held; what it reads is saved in the snapshot.
local function look(bt)
	stacks, by_id, types, codes, texts, frames_left, left, budget = {}, {}, {}, {}, {}, ALL_FRAMES, ALL, pmodule.time_left()
	FRAMES, LOCALS = tonumber(pmodule.config_option("frames")) or FRAMES, tonumber(pmodule.config_option("locals")) or LOCALS
	local why = find_layout(bt)
	if why then
		pmodule.log(pmodule.log_level.warning, "%s", why)
		bt:annotate(pmodule.annotation.comment, "%s", why)
		return
	end
	each_linked(u64(runtime + layout.interpreters), layout.next_interpreter, 64, function(interpreter)
		each_linked(u64(interpreter + layout.threads), layout.next_thread, 4096, add_thread)
	end)
	read_locals()
end

-- ---- lines --------------------------------------------------------------------------------------------------------------------

-- 6 bits a byte, the lowest first; bit 6: more follow. The lowest bit of all is the sign.
local function signed_at(text, i)
	local n, shift, b = 0, 0, nil
	repeat
		b = text:byte(i)
		if not b or shift > 30 then return nil end
		n, shift, i = n | (b & 63) << shift, shift + 6, i + 1
	until b & 64 == 0
	return n & 1 ~= 0 and -(n >> 1) or n >> 1
end

-- An entry: bit 7; 4 bits of code; 3 bits of length - 1, in units of two bytes. Codes 10 to 12: so many lines on; 13 and 14: a number of
-- lines on; 15: no line; others: the same line. Then columns, which do not have bit 7.
local function line_of(code, at)
	local unit, line, i, from = math.max((at - code.start) // 2, 0), code.first, 1, 0
	while i <= #code.lines do
		local head = code.lines:byte(i)
		local kind = head >> 3 & 15
		local delta = kind >= 13 and kind <= 14 and signed_at(code.lines, i + 1) or kind >= 10 and kind <= 12 and kind - 10 or 0
		if head & 128 == 0 then return nil end
		line, from = line + delta, from + (head & 7) + 1
		if unit < from then return kind ~= 15 and line > 0 and line < 1 << 31 and line or nil end
		repeat i = i + 1 until i > #code.lines or code.lines:byte(i) & 128 ~= 0
	end
	return nil
end

-- ---- the snapshot -------------------------------------------------------------------------------------------------------------

local function add_local(frame, name, value)
	local v = pmodule.create_variable(value.type or "object", name, value.object, -1)
	local n = value.type == "int" and math.tointeger(tonumber(value.text))
	if n and tostring(n) == value.text then
		v:set_ll(n)
	else
		v:set_struct()
		v:set_string(value.text)
	end
	frame:add_variable(v)
end

local function made(f)
	local frame = pmodule.create_frame()
	frame:set_symbol(f.code.name)
	frame:set_path(f.code.file)
	frame:set_line(line_of(f.code, f.at) or 0)
	frame:set_decl_line(f.code.first)
	for _, l in ipairs(f.locals or {}) do add_local(frame, l[1], l[2]) end
	if f.code.more > 0 then frame:annotate(pmodule.annotation.comment, "%d more local variables", f.code.more) end
	if not f.locals then frame:annotate(pmodule.annotation.comment, "local variables are left out: there was no time (--module-timeout)") end
	return frame
end

-- The C frame that contains the address: the one with the highest sp below it; of several with that sp (inlined ones), the innermost.
-- The outermost one may have callers that were not found.
local function around(thr, address)
	local best, last = nil, 0
	for frame in thr do
		local sp = frame:sp()
		if sp ~= 0 and not math.ult(address, sp) and (not best or math.ult(best:sp(), sp)) then best = frame end
		if sp ~= 0 then last = sp end
	end
	return best and best:sp() ~= last and best or nil
end

local function add_frames(thr, stack)
	for _, group in ipairs(stack.groups or {}) do
		local native = group.anchor and around(thr, group.anchor)
		for _, f in ipairs(group) do
			if native then native:add_frame(made(f)) else thr:add_frame(made(f), false) end
		end
	end
	if stack.why then thr:annotate(pmodule.annotation.warning, "Python: %s", stack.why) end
	return #stack.frames, stack.why and 1 or 0
end

local function report(bt)
	if not layout then return end
	local threads, frames, incomplete = 0, 0, 0
	budget = pmodule.time_left()
	for thr in bt do
		local before = frames
		for _, stack in ipairs(by_id[thr:register("fs_base") or 0] or {}) do
			if not has_time(0.1) then stack = { why = "there is no time to add this thread's Python frames (--module-timeout)", frames = {} } end
			local n, bad = add_frames(thr, stack)
			frames, incomplete = frames + n, incomplete + bad
		end
		threads = threads + (frames > before and 1 or 0)
	end
	bt:add_kv_string("python.version", version)
	bt:add_kv_int("python.threads", threads)
	bt:add_kv_int("python.frames", frames)
	bt:add_kv_int("python.incomplete", incomplete)
end

pmodule.define {
	id = "python",
	description = "Python functions, lines and local variables of each thread (CPython 3.11, 3.12, 3.13)",
	load = function()
		pmodule.register(pmodule.event.attach, look)
		pmodule.register(pmodule.event.postattach, report)
	end,
}
