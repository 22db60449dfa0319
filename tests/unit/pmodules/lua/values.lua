-- SPDX-License-Identifier: MIT
-- Typed values: members through pointers, elements, casts, the owner of a member; and errors that say where the path ended.
local cached

local function number(b) return pmodule.variable_from_bt(b):value() end

local function fails(words, f, ...)
	local ok, why = pcall(f, ...)
	assert(not ok and why:find(words, 1, true), string.format("'%s' expected in: %s", words, tostring(why)))
end

local function check(bt)
	local head = pmodule.bt_query("head", "crash", "crash.c")
	assert(number(head.value) == 1 and number(head.next.value) == 2 and number(head.next.next.value) == 3)
	assert(number(head.kids[0]) == 10 and number(head.kids[2]) == 12 and #head.kids == 3)
	assert(number(head[1].value) == 2, "a pointer's elements")
	assert(head.kids[math.maxinteger], "nothing is read yet")
	assert(number(cached.value) == 1, "a value of another callback is still good")
	assert(pmodule.sizeof(head) == 8 and pmodule.sizeof(pmodule.deref(head)) == 32)
	assert(pmodule.typeof(head) == "struct node *" and pmodule.typeof(head.kids) == "int [3]")
	assert(pmodule.address(head.next) == 0x9008)
	assert(number(pmodule.deref(pmodule.deref(head), 0x9020).value) == 2, "the same type elsewhere")
	assert(number(pmodule.deref(head, 0x9020).value) == 2, "an element")
	assert(pmodule.sizeof(pmodule.deref(head, 0x9020)) == 32 and pmodule.typeof(pmodule.deref(head, 0)) == "struct node")
	assert(number(pmodule.addressof(head.next)) == 0x9008)
	assert(pmodule.address(pmodule.addressof(head.next)) == nil, "a value that is nowhere")
	assert(number(pmodule.cast(head.value, "struct node").kids[1]) == 11)
	assert(number(pmodule.container_of(head.next.next, "struct node", "next").value) == 2)
	assert(number(pmodule.variable_at("struct node", 0x9040).value) == 3)
	assert(pmodule.variable_at("struct unknown", 0x9040) == nil)
	assert(pmodule.bt_frame_query(bt()(), "first").value and bt()():query("nothing") == nil)
	assert(pmodule.symbol_address("head") == 0x9060 and pmodule.address_symbol(0x9060) == "head")
	assert(#pmodule.symbol_read_raw("head", nil, 8) == 8)
	fails("no member 'nxt' in struct node", function() return head.next.nxt.value end)
	fails("nothing readable at 0xdead", function() return head.next.next.next.value end)
	fails("is no array", function() return head.value[0] end)
	fails("not an array of known length", function() return #head end)
	fails("no type 'struct x'", pmodule.cast, head, "struct x")
	fails("read-only", function() head.value = 3 end)
	fails("member name", function() return head[{}] end)
	fails("NUL", function() return head["a\0b"] end)
end

local function check_try(bt)
	local head = pmodule.bt_query("head")
	assert(number(pmodule.try(head, "next->next.value")) == 3)
	assert(number(pmodule.try(head, "next.kids[0x1]")) == 21)
	assert(pmodule.try(head, "") == head)
	local value, why = pmodule.try(head, "next.nothing.more")
	assert(value == nil and why:find("no member 'nothing'", 1, true), why)
	for _, path in ipairs { ".", "next..value", "kids[", "kids[]", "kids[x]", "[", "-", ("x"):rep(1000) } do
		value, why = pmodule.try(head, path)
		assert(value == nil and why:find("invalid step", 1, true), why)
	end
end

local function check_members()
	local names = {}
	for name, value in pmodule.members(pmodule.bt_query("first")) do
		names[#names + 1] = name .. ":" .. pmodule.typeof(value)
	end
	assert(table.concat(names, " ") == "value:int next:struct node * kids:int [3]", table.concat(names, " "))
	fails("no member", pmodule.members, pmodule.bt_query("first").value)
end

local function check_shown(bt)
	local made = pmodule.variable_from_bt(pmodule.bt_query("first").value)
	assert(made:type() == pmodule.variable_type.ll and made:address() == 0x9000)
	local refused = pcall(function() bt()():add_variable(made) end)
	assert(not refused, "what variable_from_bt makes is never part of the snapshot")
	assert(pmodule.template_arg("std::map<int, std::vector<char> >", 1) == "std::vector<char>")
	assert(pmodule.template_arg("int", 0) == nil and pmodule.template_arg("a<b>", -1) == nil)
end

-- A printer that passes its elements to all printers again, deeper than the limit.
local depth = 0
local function dispatched(v, raw)
	if v:base_type() ~= "made" then return end
	depth = depth + 1
	pmodule.dispatch(pmodule.create_variable("struct made", "deeper", 0, -1, v))
end

pmodule.define {
	id = "values",
	load = function()
		pmodule.register(pmodule.event.attach, function() cached = pmodule.bt_query("first") end)
		pmodule.register(pmodule.event.variable, dispatched)
		pmodule.register(pmodule.event.postattach, function(bt)
			check(bt)
			check_try(bt)
			check_members()
			check_shown(bt)
			local co = coroutine.wrap(function() -- callbacks run where the dispatch came from
				pmodule.dispatch(pmodule.create_variable("struct made", "outermost", 0, -1))
				coroutine.yield(1)
			end)
			co()
			assert(depth > 1 and depth < 100, depth)
			bt:add_kv_int("passed", 1)
		end)
	end,
}
