-- SPDX-License-Identifier: MIT
-- heap: the state of the memory that a pointer into the heap of glibc's malloc points to (2.26 and newer, x86-64): a block in
-- use, a freed block, or a damaged one. The pointer may point to the block's start or into it.
--
-- A block's chunk starts 16 bytes before it. Size and flags are 8 bytes before the block; a flag of the next chunk says whether
-- it is in use. This does not hold for cached blocks, which look as if they were in use:
--   a thread's cache (tcache)  lists of blocks in the heap's first chunk; each block has the cache's key in its second word
--   fast lists                 of an arena; found by the symbol main_arena, if the C library's symbols are installed (libc6-dbg).
--                              The layout is that of 2.27 to 2.41; anything that does not look like it is ignored
-- Links of both are mangled with their own address (glibc 2.32 and newer). Large blocks have a mapping of their own, which is
-- unmapped by free. Chunks are adjacent, so the chunk around an address is found by walking them: --module=heap:walk,20000 limits
-- that.
--
-- malloc's message before it aborted (__abort_msg) names the error. Classifiers: double-free, invalid-free, heap-corrupt,
-- use-after-free (a pointer of the faulting frame, or of its caller, points to a freed block). Attributes: heap.freed,
-- heap.damaged.

local POINTER = pmodule.variable_type.reference
local NON_MAIN, MMAPPED, FLAGS = 4, 2, 15
local TCACHE_SIZE, BINS, PAGE = 0x291, 64, 4096
local FASTBINS, NFASTBINS, TOP, UNSORTED, NEXT = 16, 10, 96, 112, 2160 -- offsets in struct malloc_state
local MOST_LISTED = 10000
local WALK = 20000
local found, heaps, keys, fast, twice, map = {}, {}, {}, {}, {}, nil

-- ---- finding heaps ------------------------------------------------------------------------------------------------------------

local function heap_of(address)
	for _, h in ipairs(heaps) do
		if not math.ult(address, h.start) and math.ult(address, h.stop) then return h end
	end
	return nil
end

-- Walks a list of blocks by their first word, which may be mangled. Calls each(block) until it returns true.
local function each_listed(first, each)
	local at, n = first, 0
	while at ~= 0 and at % 16 == 0 and heap_of(at) and n < MOST_LISTED do
		if each(at) then return end
		local link = pmodule.address_read_u64(at)
		if not link then return end
		local clear = link ~ (at >> 12)
		at = clear == 0 and 0 or clear % 16 == 0 and heap_of(clear) and clear or link
		n = n + 1
	end
end

-- Adds a cache's blocks. A block that is in it twice was freed twice, and malloc will give it to two owners.
local function add_cache(start)
	local entries = pmodule.address_read_ptrs(start + 2 * BINS, BINS)
	for _, entry in ipairs(entries or {}) do
		local seen = {}
		local key = entry ~= 0 and pmodule.address_read_u64(entry + 8)
		if key and key ~= 0 then keys[key] = true end
		each_listed(entry, function(block)
			if seen[block] then twice[#twice + 1] = block end
			seen[block], fast[block] = true, "in a thread's cache"
			return #twice > 0 and twice[#twice] == block
		end)
	end
end

-- Is it an arena? Its unsorted list points to itself, or to chunks of the heap.
local function is_arena(at)
	local top, unsorted = pmodule.address_read_ptr(at + TOP), pmodule.address_read_ptr(at + UNSORTED)
	return top and unsorted and (unsorted == at + TOP or heap_of(unsorted) ~= nil) and (top == at + TOP or heap_of(top) ~= nil)
end

local function add_arenas()
	local main = pmodule.symbol_address("main_arena", "libc.so.6")
	local at = main
	for _ = 1, 256 do
		if not at or not is_arena(at) then return end
		local top = pmodule.address_read_ptr(at + TOP)
		local h = heap_of(top)
		if h then h.top = top end
		for _, chunk in ipairs(pmodule.address_read_ptrs(at + FASTBINS, NFASTBINS) or {}) do
			if chunk ~= 0 then each_listed(chunk + 16, function(block) fast[block] = fast[block] or "in a fast list of malloc" end) end
		end
		at = pmodule.address_read_ptr(at + NEXT)
		if at == main then return end
	end
end

-- The main heap is [heap]. Others are aligned to 64 MiB and start with a pointer to their arena, in themselves or an earlier one.
local function find_heaps(bt)
	heaps, keys, fast, twice, map = {}, {}, {}, {}, bt
	for e in bt:pmap() do
		local start = e:start()
		if e:path() == "[heap]" then
			heaps[#heaps + 1] = { start = start, stop = e:stop(), is_main = true }
		elseif e:path() == "" and start & 0x3ffffff == 0 and e:permissions(pmodule.pmap_perms.rd, pmodule.pmap_perms.wr) then
			local arena = pmodule.address_read_ptr(start)
			if arena == start + 0x20 or arena == start + 0x30 then
				heaps[#heaps + 1] = { start = (arena + 0x898 + 15) & ~15, stop = e:stop() }
			end
		end
	end
	local key = pmodule.symbol_address("tcache_key", "libc.so.6")
	key = key and pmodule.address_read_u64(key)
	if key and key ~= 0 then keys[key] = true end
	for _, h in ipairs(heaps) do
		if (pmodule.address_read_u64(h.start + 8) or 0) & ~NON_MAIN == TCACHE_SIZE then add_cache(h.start + 16) end
	end
	add_arenas()
end

-- ---- one block ------------------------------------------------------------------------------------------------------------------

local function is_size(size, h, chunk)
	return size >= 32 and size & 8 == 0 and not math.ult(h.stop, chunk + (size & ~FLAGS)) and chunk + (size & ~FLAGS) > chunk
end

-- The state of a block that starts there: "used", "freed", "damaged" or nil (no block), its size, and details.
local function state_at(address, h)
	local chunk, field = address - 16, pmodule.address_read_u64(address - 8)
	if not field or field & NON_MAIN ~= 0 and h.is_main or not is_size(field, h, chunk) then return nil end
	local size = field & ~FLAGS
	if fast[address] then return "freed", size - 8, fast[address] end
	if keys[pmodule.address_read_u64(address + 8) or 0] then return "freed", size - 8, "in a thread's cache" end
	local behind = pmodule.address_read_u64(chunk + size + 8)
	if chunk + size == h.stop then return nil end -- the rest of the heap
	if not behind then return nil end
	if behind & ~FLAGS == 0 or math.ult(h.stop - h.start, behind & ~FLAGS) then
		return "damaged", size - 8, string.format("the next block's size is 0x%x: something wrote past this one", behind)
	end
	if behind & 1 == 0 then
		if pmodule.address_read_u64(chunk + size) ~= size then return nil end
		return "freed", size - 8, "in a list of malloc"
	end
	return "used", size - 8
end

-- The starts of chunks, in order, as far as they can be walked.
local function chunks_of(h)
	if h.chunks then return h.chunks end
	h.chunks = {}
	local at = h.start
	for i = 1, WALK do
		local field = pmodule.address_read_u64(at + 8)
		h.chunks[i] = at
		if not field or not is_size(field, h, at) or at == h.top then break end
		at = at + (field & ~FLAGS)
	end
	return h.chunks
end

local function chunk_around(address, h)
	local list, low, high = chunks_of(h), 1, 0
	high = #list
	while low < high do
		local middle = (low + high + 1) // 2
		if math.ult(address, list[middle]) then high = middle - 1 else low = middle end
	end
	return list[low] and low < #list and list[low]
end

-- A large block: at the start of a mapping's first page, with a size of whole pages.
local function mmapped(address)
	local field = address % PAGE == 16 and pmodule.address_read_u64(address - 8)
	if not field or field & FLAGS ~= MMAPPED or field & ~FLAGS == 0 or field & (PAGE - 1) & ~FLAGS ~= 0 then return nil end
	return "used", (field & ~FLAGS) - 16, "a mapping of its own"
end

local function state_of(address)
	local h = heap_of(address - 16)
	if not h then return mmapped(address) end
	if h.top and not math.ult(address - 16, h.top) then return "freed", h.stop - h.top, "it is part of the free rest of the heap" end
	if address % 16 == 0 then
		local state, size, how = state_at(address, h)
		if state and (state ~= "used" or not h.chunks) then return state, size, how end
	end
	local chunk = chunk_around(address, h)
	if not chunk then return nil end
	local state, size, how = state_at(chunk + 16, h)
	if state == "damaged" then return nil end
	return state, size, how, address - chunk - 16
end

-- ---- variables -----------------------------------------------------------------------------------------------------------------------

-- Is a block of this size exactly one object of the pointer's target type? A pointer into a block may have a number before it
-- that looks like a size, so damage is reported only for blocks of exactly the right size.
local function is_block_of(b, size)
	local ok, target = pcall(pmodule.deref, b)
	local needed = ok and pmodule.sizeof(target) or 0
	return needed > 1 and size + 8 == math.max(32, (needed + 23) & ~15)
end

local function variable(v, b)
	local to = v:value()
	if not to or to == 0 or v:owner() then return end
	local state, size, how, inside = state_of(to)
	if not state or state == "damaged" and not (b and is_block_of(b, size)) then return end
	if state ~= "used" then
		found[#found + 1] = { variable = v, frame = v:frame(), name = v:name(), state = state, size = size, how = how, inside = inside }
	elseif v:frame() and v:frame():fault() then
		v:annotate(pmodule.annotation.comment, "%sa block of %d bytes, in use%s", inside and inside > 0 and inside .. " bytes into " or "", size, how and ", " .. how or "")
	end
end

local function abort_message()
	local at = pmodule.symbol_address("__abort_msg", "libc.so.6")
	local message = at and pmodule.address_read_ptr(at)
	local text = message and message ~= 0 and pmodule.address_read_string(message + 4, 256)
	return text and text ~= "" and text:gsub("%s+$", "") or nil
end

local meanings = {
	{ "double free", "double-free" }, { "invalid pointer", "invalid-free" }, { "invalid size", "invalid-free" },
	{ "corrupt", "heap-corrupt" }, { "invalid next size", "heap-corrupt" }, { "unaligned", "heap-corrupt" },
	{ "mismatching", "heap-corrupt" }, { "stack smashing", "stack-smash" }, { "buffer overflow", "fortify" },
}

local function classify_message(bt, text)
	bt:annotate(pmodule.annotation.critical, "the C library ended the process: " .. text)
	for _, m in ipairs(meanings) do
		if text:find(m[1], 1, true) then
			bt:add_classifier(m[2])
			return
		end
	end
end

local function report(bt)
	local freed, damaged = 0, 0
	for _, f in ipairs(found) do
		local kind = pmodule.annotation.warning
		if f.frame and f.frame:fault() and f.state == "freed" then
			bt:add_classifier("use-after-free")
			kind = pmodule.annotation.critical
		end
		if f.state == "freed" then
			freed = freed + 1
			f.variable:annotate(kind, "%s points %sto a freed block of %d bytes, %s", f.name or "it",
				f.inside and f.inside > 0 and f.inside .. " bytes in" or "", f.size, f.how)
		else
			damaged = damaged + 1
			bt:add_classifier("heap-corrupt")
			f.variable:annotate(pmodule.annotation.critical, "%s points to a damaged block of %d bytes: %s", f.name or "it", f.size, f.how)
		end
	end
	for _, block in ipairs(twice) do
		bt:add_classifier("double-free")
		bt:annotate(pmodule.annotation.critical, "the block at 0x%x is in a thread's cache twice: it was freed twice", block)
	end
	bt:add_kv_int("heap.freed", freed)
	bt:add_kv_int("heap.damaged", damaged)
	local text = abort_message()
	if text then classify_message(bt, text) end
end

pmodule.define {
	id = "heap",
	description = "the state of blocks of malloc behind pointers: freed, damaged; what malloc said before it aborted",
	load = function()
		WALK = tonumber(pmodule.config_option("walk")) or WALK
		local m = pmodule.match()
		m:add_variable_ptrace_type(POINTER)
		pmodule.register(pmodule.event.attach, function(bt)
			found = {}
			find_heaps(bt)
		end)
		pmodule.register(pmodule.event.variable, variable, m)
		pmodule.register(pmodule.event.postattach, report)
	end,
}
