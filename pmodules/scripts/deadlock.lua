-- SPDX-License-Identifier: MIT
-- deadlock: which thread waits for which lock, who owns it, and whether threads wait for each other in a cycle.
--
-- A thread that waits for a lock of glibc is in the system call futex, called by a function of the lock's family, with an address
-- inside the lock in rdi (x86-64; nptl's struct pthread_mutex_t, pthread_rwlock_t, pthread_cond_t):
--   mutex     the lock word is the first field; the owner's tid is at offset 8, the kind at 16. If robust or priority-inheriting,
--             the lock word is the owner's tid, with a flag if the owner died. Includes std::mutex, std::recursive_mutex
--   rwlock    wrphase_futex at 8, writers_futex at 12, the writer's tid at 24; readers are only counted (first word, by 8s).
--             Includes std::shared_mutex
--   condition the signals of its two groups are at 40 and 44. There is no owner: who will signal it is unknown
-- A spin lock is waited for without a system call; its owner is not recorded.
-- In a container the owner's tid is one of the container's pid namespace; then only the lock is named.
--
-- Classifier `deadlock`; attributes deadlock.waiting, deadlock.rings, deadlock.conditions, deadlock.spinning, and for each cycle
-- deadlock.cycle.1, ...: a JSON array of its threads, each of which waits for the next one.

local FUTEX, RESTART, TID, DIED = 202, 219, 0x3fffffff, 0x40000000
local ROBUST_OR_INHERIT, KINDS = 0x30, 0x3ff
local waits, others = {}, {} -- tid -> { thread, what, lock, owner, note }; waits without an owner

local families = { -- by the waiting functions, innermost first
	{ "rwlock_", "rwlock" }, { "^__pthread_rwlock", "rwlock" }, { "cond_.*wait", "condition variable" }, { "cond_wait", "condition variable" },
	{ "mutex_.*lock", "mutex" }, { "lll_lock_wait", "mutex" },
}

local function family_of(thr)
	local depth = 0
	for fr in thr do
		local symbol = fr:symbol() or ""
		for _, f in ipairs(families) do
			if symbol:find(f[1]) then return f[2] end
		end
		depth = depth + 1
		if depth == 5 then return nil end
	end
	return nil
end

local function mutex(address)
	local lock, owner, kind = pmodule.address_read_u32(address), pmodule.address_read_i32(address + 8), pmodule.address_read_u32(address + 16)
	if not lock or not owner or not kind or lock == 0 or kind > KINDS then return nil end
	if kind & ROBUST_OR_INHERIT == 0 then return { what = "mutex", lock = address, owner = owner } end
	local died = lock & DIED ~= 0 and "its owner has died" or nil
	return { what = "mutex", lock = address, owner = lock & TID ~= 0 and lock & TID or owner, note = died }
end

-- Locks are aligned to 8, so the address shows which of the two futexes it is.
local function rwlock(futex)
	local address = futex % 8 == 4 and futex - 12 or futex - 8
	local readers, writer = pmodule.address_read_u32(address), pmodule.address_read_i32(address + 24)
	if not readers or not writer then return nil end
	if writer ~= 0 then return { what = "rwlock", lock = address, owner = writer, note = "for writing" } end
	return { what = "rwlock", lock = address, note = string.format("held by %d readers, which are not recorded", readers >> 3) }
end

local function condition(futex)
	return { what = "condition variable", lock = futex % 8 == 4 and futex - 44 or futex - 40 }
end

local readers = { mutex = mutex, rwlock = rwlock, ["condition variable"] = condition }

local function spinning(thr)
	local fr = thr()
	if not fr or not (fr:symbol() or ""):find("pthread_spin_lock", 1, true) then return nil end
	return { what = "spin lock", lock = thr:register("rdi"), note = "its holder is not recorded" }
end

local function wait_of(thr)
	local call = thr:register("orig_rax")
	if call ~= FUTEX and call ~= RESTART then return spinning(thr) end -- restart_syscall: an interrupted wait with a timeout
	local family, futex = family_of(thr), thr:register("rdi")
	return family and futex and readers[family](futex)
end

-- Runs while the process is held: owner and lock word are of one moment, and are saved in the snapshot.
local function look(thr)
	local w = wait_of(thr)
	if not w then return end
	w.thread = thr
	if w.owner and w.owner ~= 0 then waits[thr:tid()] = w else others[#others + 1] = w end
end

-- ---- words --------------------------------------------------------------------------------------------------------------------

local function lock_name(w)
	local symbol = w.lock and pmodule.address_symbol(w.lock)
	return w.what .. " " .. (symbol and string.format("%s (0x%x)", symbol, w.lock) or string.format("0x%x", w.lock or 0))
end

local function thread_name(thr)
	return string.format("%d (%s)", thr:tid(), thr:name() or "?")
end

local function holder_name(threads, w)
	local thr = threads[w.owner]
	local note = w.note and ", " .. w.note or ""
	if not thr then return string.format("held by %d, not a thread of this process (it may have ended)%s", w.owner, note) end
	return "held by thread " .. thread_name(thr) .. (w.owner == w.thread:tid() and ": itself" or "") .. note
end

-- ---- cycles -------------------------------------------------------------------------------------------------------------------

-- The cycle that `tid` is in, starting with it; or nil.
local function ring_of(tid)
	local ring, seen, at = {}, {}, tid
	while waits[at] and not seen[at] do
		seen[at] = true
		ring[#ring + 1] = at
		at = waits[at].owner
	end
	return at == tid and #ring > 0 and ring or nil
end

local function quoted(text)
	return '"' .. (text:gsub('[%c"\\]', function(c) return string.format("\\u%04x", c:byte()) end)) .. '"'
end

local function in_json(w)
	local lock = w.lock and pmodule.address_symbol(w.lock) or string.format("0x%x", w.lock or 0)
	return string.format('{"tid": %d, "name": %s, "what": %s, "lock": %s}', w.thread:tid(), quoted(w.thread:name() or ""), quoted(w.what), quoted(lock))
end

local function report_ring(bt, threads, ring, number)
	local parts, members = {}, {}
	for _, tid in ipairs(ring) do
		local w = waits[tid]
		members[#members + 1] = in_json(w)
		parts[#parts + 1] = string.format("thread %s waits for %s, %s", thread_name(w.thread), lock_name(w), holder_name(threads, w))
		w.thread:annotate(pmodule.annotation.critical, "deadlock: waits for %s, %s", lock_name(w), holder_name(threads, w))
	end
	bt:annotate(pmodule.annotation.critical, "deadlock: " .. table.concat(parts, "; "))
	bt:add_kv_string("deadlock.cycle." .. number, "[" .. table.concat(members, ", ") .. "]")
end

-- These waits end when the owner releases the lock; if the owner is gone, it never will.
local function report_wait(threads, w)
	local kind = threads[w.owner] and not w.note and pmodule.annotation.comment or pmodule.annotation.warning
	if w.note == "for writing" and threads[w.owner] then kind = pmodule.annotation.comment end
	w.thread:annotate(kind, "waits for %s, %s", lock_name(w), holder_name(threads, w))
end

local function report_others(bt)
	local n = {}
	for _, w in ipairs(others) do
		n[w.what] = (n[w.what] or 0) + 1
		w.thread:annotate(pmodule.annotation.comment, "waits for %s%s", lock_name(w), w.note and ", " .. w.note or "")
	end
	bt:add_kv_int("deadlock.conditions", n["condition variable"] or 0)
	bt:add_kv_int("deadlock.spinning", n["spin lock"] or 0)
	return (n.mutex or 0) + (n.rwlock or 0) + (n["spin lock"] or 0)
end

local function report(bt)
	local threads, tids, rings, waiting = {}, {}, 0, report_others(bt)
	for thr in bt do threads[thr:tid()] = thr end
	for tid in pairs(waits) do tids[#tids + 1] = tid end
	table.sort(tids)
	for _, tid in ipairs(tids) do
		waiting = waiting + 1
		local ring = ring_of(tid)
		if ring and math.min(table.unpack(ring)) == tid then
			rings = rings + 1
			report_ring(bt, threads, ring, rings)
		elseif not ring then
			report_wait(threads, waits[tid])
		end
	end
	bt:add_kv_int("deadlock.waiting", waiting)
	bt:add_kv_int("deadlock.rings", rings)
	if rings > 0 then bt:add_classifier("deadlock") end
end

pmodule.define {
	id = "deadlock",
	description = "who holds and who waits for which mutex, rwlock, condition variable, spin lock",
	load = function()
		pmodule.register(pmodule.event.attach, function() waits, others = {}, {} end)
		pmodule.register(pmodule.event.thread, look)
		pmodule.register(pmodule.event.postattach, report)
	end,
}
