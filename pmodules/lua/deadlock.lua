-- SPDX-License-Identifier: MIT
-- deadlock: which thread waits for which mutex, who holds it, and whether they wait for each other in a ring.
--
-- A thread that waits for a mutex of glibc's is in the system call futex, called from pthread_mutex_lock (or another of that family), with
-- the mutex's address in rdi: its lock word is its first field, and the owner's tid stands 8 bytes behind it (struct pthread_mutex_t of
-- glibc on x86-64). In a container the owner's tid is one of the container's; then only the mutex is named.
--
-- Classifier `deadlock`; attributes deadlock.waiting, deadlock.rings.

local FUTEX, OWNER, KIND = 202, 8, 16
local waits = {} -- tid -> { thread, mutex, owner }

local function waits_for_mutex(thr)
	if thr:register("orig_rax") ~= FUTEX then return false end
	local depth = 0
	for fr in thr do
		local symbol = fr:symbol() or ""
		if symbol:find("mutex_.*lock") or symbol:find("lll_lock_wait") then return true end
		depth = depth + 1
		if depth == 4 then return false end
	end
	return false
end

-- While the process is held: owner and lock word are of one moment, and are kept in the snapshot.
local function look(thr)
	if not waits_for_mutex(thr) then return end
	local mutex = thr:register("rdi")
	local lock, owner = pmodule.address_read_u32(mutex), pmodule.address_read_i32(mutex + OWNER)
	local kind = pmodule.address_read_u32(mutex + KIND)
	if not lock or not owner or not kind or lock == 0 or kind > 0x3ff then return end
	waits[thr:tid()] = { thread = thr, mutex = mutex, owner = owner }
end

local function mutex_name(address)
	local symbol = pmodule.address_symbol(address)
	return symbol and string.format("%s (0x%x)", symbol, address) or string.format("0x%x", address)
end

local function thread_name(thr)
	return string.format("%d (%s)", thr:tid(), thr:name() or "?")
end

-- The ring that `tid` is in, beginning with it; nil.
local function ring_of(tid)
	local ring, seen, at = {}, {}, tid
	while waits[at] and not seen[at] do
		seen[at] = true
		ring[#ring + 1] = at
		at = waits[at].owner
	end
	return at == tid and #ring > 0 and ring or nil
end

local function lowest(ring)
	local low = ring[1]
	for _, tid in ipairs(ring) do low = math.min(low, tid) end
	return low
end

local function describe_ring(ring)
	local parts = {}
	for _, tid in ipairs(ring) do
		local w = waits[tid]
		parts[#parts + 1] = string.format("thread %s waits for mutex %s, held by %d", thread_name(w.thread), mutex_name(w.mutex), w.owner)
	end
	return table.concat(parts, "; ")
end

local function report_ring(bt, ring)
	local text = "deadlock: " .. describe_ring(ring)
	bt:annotate(pmodule.annotation.critical, text)
	for _, tid in ipairs(ring) do
		local w = waits[tid]
		w.thread:annotate(pmodule.annotation.critical, "deadlock: waits for mutex %s, held by thread %d%s", mutex_name(w.mutex), w.owner,
			w.owner == tid and ": itself" or "")
	end
end

local function report(bt)
	local threads, rings, waiting = {}, 0, 0
	for thr in bt do threads[thr:tid()] = thr end
	for tid, w in pairs(waits) do
		waiting = waiting + 1
		local ring = ring_of(tid)
		if ring and lowest(ring) == tid then
			rings = rings + 1
			report_ring(bt, ring)
		elseif not ring then
			local holder = threads[w.owner]
			w.thread:annotate(holder and pmodule.annotation.comment or pmodule.annotation.warning, "waits for mutex %s, %s", mutex_name(w.mutex),
				holder and "held by thread " .. thread_name(holder)
					or string.format("held by %d, which is no thread of this process (it may have ended)", w.owner))
		end
	end
	bt:add_kv_int("deadlock.waiting", waiting)
	bt:add_kv_int("deadlock.rings", rings)
	if rings > 0 then bt:add_classifier("deadlock") end
end

pmodule.define {
	id = "deadlock",
	description = "who holds and who waits for which pthread mutex",
	load = function()
		pmodule.register(pmodule.event.attach, function() waits = {} end)
		pmodule.register(pmodule.event.thread, look)
		pmodule.register(pmodule.event.postattach, report)
	end,
}
