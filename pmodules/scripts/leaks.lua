-- SPDX-License-Identifier: MIT
-- leaks: blocks of glibc's malloc (x86-64, 2.26 to 2.41) that no pointer was found to. They are candidates, not proven leaks.
--
-- A block is reachable if an aligned word in a register, a stack (from its stack pointer on), writable data of a module, thread-local
-- storage, an anonymous mapping, or another reachable block is an address in it. So:
--   a number that looks like an address hides a leak
--   a pointer that is only in shared memory, in the kernel (epoll, io_uring), in a file, or kept in another form (compressed, xored, unaligned)
--   is not seen, and its block is named although it is no leak
-- Blocks of a program's own allocator on top of malloc or mmap (pools, Python's objects) are not told apart: only malloc's are known.
--
-- Needs memory of one moment: --mode fork, or a core. A hundred megabytes take about half a second: --module-timeout 1s gives ten
-- seconds. --module=leaks:groups,20: how many groups of a size are shown.
--
-- A cache that only grows is no leak in this sense: one line names the largest groups of all blocks in use.
--
-- Classifier `leak-candidates`; attributes leaks.blocks, .bytes, .within, .used, .used.bytes, and JSON arrays of groups: leaks.groups,
-- leaks.used.groups.

local GROUPS, MOST_GROUPS = 10, 100

local function size_of(n)
	if n < 10000 then return n .. " bytes" end
	for _, unit in ipairs { "kB", "MB", "GB" } do
		n = n / 1000
		if n < 1000 then return string.format(n < 100 and "%.1f %s" or "%.0f %s", n, unit) end
	end
	return string.format("%.0f TB", n / 1000)
end

local function blocks(n)
	return n == 1 and "1 block" or n .. " blocks"
end

-- The text at the block's beginning, if it is text.
local function text_at(address, size)
	local raw = pmodule.address_read_raw(address, math.min(size, 32))
	local text = raw and raw:match("^[%g ]+")
	if not text or #text < 4 then return nil end
	if #text < #raw and raw:byte(#text + 1) ~= 0 then return nil end
	return text
end

-- The largest groups; first words without a symbol do not make groups of their own. `what`: the symbol that the first words lead to
-- (of objects with a vtable: their class), or the first block's text.
local function kinds_of(groups)
	local list, by = {}, {}
	for i = 1, math.min(#groups, MOST_GROUPS) do
		local g = groups[i]
		local symbol = g.first ~= 0 and pmodule.address_symbol(g.first) or nil
		local key = g.size .. " " .. (symbol or "")
		local same = by[key]
		if same then
			same.count, same.bytes, same.within = same.count + g.count, same.bytes + g.bytes, same.within + g.within
		else
			g.what = symbol and symbol:gsub("^(vtable for .*)%+16$", "%1") or text_at(g.address, g.size)
			by[key], list[#list + 1] = g, g
		end
	end
	table.sort(list, function(x, y)
		if x.bytes ~= y.bytes then return x.bytes > y.bytes end
		return x.address < y.address
	end)
	return list
end

local function quoted(text)
	return '"' .. (text:gsub('[%c"\\\x7f-\xff]', function(c) return string.format("\\u%04x", c:byte()) end)) .. '"'
end

local function in_json(g)
	return string.format('{"size": %d, "count": %d, "bytes": %d, "within": %d, "address": "0x%x"%s}', g.size, g.count, g.bytes, g.within,
		g.address, g.what and ', "what": ' .. quoted(g.what) or "")
end

-- What was assumed, where it was not as usual.
local function doubts(bt, heap)
	if not heap.knows_caches then
		bt:annotate(pmodule.annotation.comment,
			"leak candidates: no thread's cache was recognized; blocks freed recently (7 of each size and thread) may be among them")
	end
	if not heap.knows_fast then
		bt:annotate(pmodule.annotation.comment, "leak candidates: malloc's fast lists were not found; small blocks freed recently may be among them")
	end
	if heap.unknown_bytes > 0 then
		bt:annotate(pmodule.annotation.warning, "leak candidates: %s of the heap could not be read as blocks (is it damaged?); pointers in it count",
			size_of(heap.unknown_bytes))
	end
end

-- The largest groups of all blocks: two snapshots show what grows.
local function show_used(bt, heap)
	local list, words = {}, {}
	for i, g in ipairs(kinds_of(heap.used_groups)) do
		if i > GROUPS then break end
		list[i] = in_json(g)
		if i <= 3 then words[i] = string.format("%s of %d bytes (%s)%s", blocks(g.count), g.size, size_of(g.bytes), g.what and ": " .. g.what or "") end
	end
	bt:annotate(pmodule.annotation.comment, "most of what is in use: " .. table.concat(words, "; "))
	bt:add_kv_string("leaks.used.groups", "%s", "[" .. table.concat(list, ", ") .. "]")
end

local function show_groups(bt, heap)
	local list, shown = {}, 0
	for i, g in ipairs(kinds_of(heap.groups)) do
		if i > GROUPS then break end
		list[i], shown = in_json(g), shown + g.count
		bt:annotate(pmodule.annotation.comment, string.format("%s of %d bytes (%s)%s, the first at 0x%x%s", blocks(g.count), g.size, size_of(g.bytes),
			g.within > 0 and string.format(", %d of them within others", g.within) or "", g.address, g.what and ": " .. g.what or ""))
	end
	if shown < heap.lost then
		bt:annotate(pmodule.annotation.comment, string.format("and %s of other sizes (--module=leaks:groups,%d)", blocks(heap.lost - shown),
			math.min(MOST_GROUPS, 10 * GROUPS)))
	end
	bt:add_kv_string("leaks.groups", "%s", "[" .. table.concat(list, ", ") .. "]")
end

local function report(bt)
	local heap, why = bt:heap()
	if not heap then
		bt:annotate(pmodule.annotation.warning, "leak candidates are not known: %s", why)
		return
	end
	local of = string.format("of %s (%s) in use", blocks(heap.used), size_of(heap.used_bytes))
	for key, n in pairs { blocks = heap.lost, bytes = heap.lost_bytes, within = heap.within, used = heap.used, ["used.bytes"] = heap.used_bytes } do
		bt:add_kv_int("leaks." .. key, n)
	end
	if heap.lost == 0 then
		bt:annotate(pmodule.annotation.comment, "no leak candidates: a pointer leads to each %s", of)
	else
		bt:add_classifier("leak-candidates")
		bt:annotate(pmodule.annotation.warning, "leak candidates: no pointer was found to %s (%s) %s%s", blocks(heap.lost), size_of(heap.lost_bytes), of,
			heap.within > 0 and string.format("; to %d of them other candidates point", heap.within) or "")
		show_groups(bt, heap)
	end
	show_used(bt, heap)
	doubts(bt, heap)
end

pmodule.define {
	id = "leaks",
	description = "blocks of malloc that no pointer leads to: leak candidates, by size and content",
	load = function()
		GROUPS = math.max(1, math.min(tonumber(pmodule.config_option("groups")) or GROUPS, MOST_GROUPS))
		pmodule.register(pmodule.event.postattach, report)
	end,
}
