-- SPDX-License-Identifier: MIT
-- heap: what is behind a pointer into the heap of glibc's malloc (2.26 and newer, x86-64): a block in use, a freed one, or a damaged one.
--
-- A block's chunk begins 16 bytes before it: size and flags stand 8 bytes before the block, and whether it is in use is a flag of the chunk
-- behind it. Blocks in a thread's cache (tcache) look as if they were in use; the cache is the first chunk of the heap, lists of blocks that
-- point to each other with the links mangled by their own address (glibc 2.32 and newer), each with the key of the cache in its second word.
--
-- What malloc itself said before it aborted (__abort_msg) names the fault. Classifiers: double-free, invalid-free, heap-corrupt,
-- use-after-free (a pointer of the faulting frame, or of its caller, leads to a freed block). Attributes: heap.freed, heap.damaged.

local POINTER = pmodule.variable_type.reference
local NON_MAIN, MMAPPED, FLAGS = 4, 2, 15
local TCACHE_SIZE, BINS = 0x291, 64
local found, heaps, keys = {}, nil, nil

-- ---- where heaps are ---------------------------------------------------------------------------------------------------------

local function add_cache(start)
	local counts = pmodule.address_read_raw(start, 2 * BINS)
	local entries = pmodule.address_read_ptrs(start + 2 * BINS, BINS)
	if not counts or not entries then return end
	for i, entry in ipairs(entries) do
		local key = entry ~= 0 and pmodule.address_read_u64(entry + 8)
		if key and key ~= 0 then keys[key] = true end
	end
end

-- Main heap: [heap]. Others: 64 MiB aligned, with a pointer to their arena first, which is inside of them or of an earlier one.
local function find_heaps(bt)
	heaps, keys = {}, {}
	for e in bt:pmap() do
		local start = e:start()
		if e:path() == "[heap]" then
			heaps[#heaps + 1] = { start = start, stop = e:stop() }
		elseif e:path() == "" and start & 0x3ffffff == 0 and e:permissions(pmodule.pmap_perms.rd, pmodule.pmap_perms.wr) then
			local arena = pmodule.address_read_ptr(start)
			if arena == start + 0x20 or arena == start + 0x30 then
				heaps[#heaps + 1] = { start = (arena + 0x898 + 15) & ~15, stop = e:stop() }
			end
		end
	end
	for _, h in ipairs(heaps) do
		if pmodule.address_read_u64(h.start + 8) == TCACHE_SIZE then add_cache(h.start + 16) end
	end
end

local function heap_of(address)
	for _, h in ipairs(heaps) do
		if not math.ult(address, h.start) and math.ult(address, h.stop) then return h end
	end
	return nil
end

-- ---- one block ------------------------------------------------------------------------------------------------------------------

local function is_size(size, h, chunk)
	return size >= 32 and size & 8 == 0 and not math.ult(h.stop, chunk + (size & ~FLAGS)) and chunk + (size & ~FLAGS) > chunk
end

-- "used", "freed", "damaged" or nil (no block begins there), and its size or what is wrong.
local function state_of(address)
	local h = address % 16 == 0 and heap_of(address - 16)
	if not h then return nil end
	local chunk, field = address - 16, pmodule.address_read_u64(address - 8)
	if not field or field & NON_MAIN ~= 0 and h == heaps[1] or not is_size(field, h, chunk) then return nil end
	local size = field & ~FLAGS
	if keys[pmodule.address_read_u64(address + 8) or 0] then return "freed", size - 8, "in a thread's cache" end
	local behind = pmodule.address_read_u64(chunk + size + 8)
	if chunk + size == h.stop then return nil end -- the rest of the heap
	if not behind then return nil end
	if behind & ~FLAGS == 0 or math.ult(h.stop - h.start, behind & ~FLAGS) then
		return "damaged", size - 8, string.format("the next block's size is 0x%x: something wrote behind this one", behind)
	end
	if behind & 1 == 0 then
		if pmodule.address_read_u64(chunk + size) ~= size then return nil end
		return "freed", size - 8, "in a list of malloc"
	end
	return "used", size - 8
end

-- ---- variables -----------------------------------------------------------------------------------------------------------------------

-- Does a block of this size hold just one of what the pointer points at? A pointer into the middle of a block may have a number before it
-- that looks like a size; what follows from it would be nonsense, so damage is believed only of blocks of the very size.
local function is_block_of(b, size)
	local ok, target = pcall(pmodule.deref, b)
	local needed = ok and pmodule.sizeof(target) or 0
	return needed > 1 and size + 8 == math.max(32, (needed + 23) & ~15)
end

local function variable(v, b)
	local to = v:value()
	if not to or to == 0 or v:owner() then return end
	local state, size, how = state_of(to)
	if not state or state == "damaged" and not (b and is_block_of(b, size)) then return end
	if state ~= "used" then
		found[#found + 1] = { variable = v, frame = v:frame(), name = v:name(), state = state, size = size, how = how }
	elseif v:frame() and v:frame():fault() then
		v:annotate(pmodule.annotation.comment, "a block of %d bytes, in use", size)
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
			f.variable:annotate(kind, "%s points to a freed block of %d bytes, %s", f.name or "it", f.size, f.how)
		else
			damaged = damaged + 1
			bt:add_classifier("heap-corrupt")
			f.variable:annotate(pmodule.annotation.critical, "%s points to a damaged block of %d bytes: %s", f.name or "it", f.size, f.how)
		end
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
