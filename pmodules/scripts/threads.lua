-- SPDX-License-Identifier: MIT
-- threads: groups of threads with identical stacks. One annotation per group, the largest first. Attributes: threads.count,
-- threads.groups, threads.largest.

local function escape(text)
	return (text:gsub('[%c"\\\x7f-\xff]', function(c)
		if c == '"' or c == "\\" then return "\\" .. c end
		return c:byte() < 0x20 and string.format("\\u%04x", c:byte()) or "?"
	end))
end

local function place(fr)
	return fr:symbol() or string.format("0x%x", fr:pc())
end

local function stack_of(thr)
	local names = {}
	for fr in thr do names[#names + 1] = place(fr) end
	return table.concat(names, " < "), names
end

local function group(bt)
	local by_stack, groups, count = {}, {}, 0
	for thr in bt do
		local key, names = stack_of(thr)
		local g = by_stack[key]
		if not g then
			g = { names = names, threads = {}, first = thr }
			by_stack[key] = g
			groups[#groups + 1] = g
		end
		g.threads[#g.threads + 1] = thr
		count = count + 1
	end
	table.sort(groups, function(a, b)
		if #a.threads ~= #b.threads then return #a.threads > #b.threads end
		return a.first:tid() < b.first:tid()
	end)
	return groups, count
end

local function tids(g)
	local all = {}
	for i, thr in ipairs(g.threads) do
		all[#all + 1] = i > 64 and "..." or tostring(thr:tid())
		if i > 64 then break end
	end
	return table.concat(all, " ")
end

local function describe(g)
	local top = g.names[1] or "no frames"
	local at = #g.names > 0 and table.concat(g.names, " < ", 1, math.min(#g.names, 6)) or top
	return string.format("%d %s", #g.threads, #g.threads == 1 and "thread" or "threads"), at
end

local function report(bt)
	local groups, count = group(bt)
	local lines = {}
	for i, g in ipairs(groups) do
		local how_many, at = describe(g)
		lines[#lines + 1] = string.format('"%d. %s": {"stack": "%s", "tids": "%s"}', i, how_many, escape(at), tids(g))
		if #g.threads > 1 then
			g.first:annotate(pmodule.annotation.comment, "%d threads have this stack: %s", #g.threads, tids(g))
		end
		if i == 100 then break end
	end
	bt:annotate(pmodule.annotation.json, '{"json": {"context": "Threads by stack"' .. (#lines > 0 and ", " or "") ..
		table.concat(lines, ", ") .. "}}")
	bt:add_kv_int("threads.count", count)
	bt:add_kv_int("threads.groups", #groups)
	bt:add_kv_int("threads.largest", groups[1] and #groups[1].threads or 0)
end

pmodule.define {
	id = "threads",
	description = "threads grouped by identical stack",
	load = function() pmodule.register(pmodule.event.postattach, report) end,
}
