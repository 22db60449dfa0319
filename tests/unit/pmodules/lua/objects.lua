-- SPDX-License-Identifier: MIT
-- Every getter of every object returns what the snapshot has.
local seen = { variable = 0, frame = 0, thread = 0, attach = 0, preattach = 0 }

local function equal(got, wanted, what)
	if got ~= wanted then
		error(string.format("%s: %s, expected %s", what or "value", tostring(got), tostring(wanted)), 2)
	end
end

local function check_frame(fr)
	equal(fr:symbol(), "boom")
	equal(fr:path(), "src/crash.c")
	equal(fr:line(), 10)
	equal(fr:decl_line(), 0)
	equal(fr:line_resolved(), true)
	equal(fr:object_file(), "/bin/crash")
	equal(fr:instruction(), "mov (%rdi), %eax")
	equal(fr:pc(), 0x40100a)
	equal(fr:sp(), 0x7fff0000)
	equal(fr:index(), 0)
	equal(fr:is_inline(), false)
	equal(fr:is_tail(), false)
	equal(fr:is_guess(), false)
	equal(fr:fault(), true)
	equal(fr:register("rax"), 0x11)
	equal(fr:register("rbx"), nil, "an unknown register")
	equal(fr:register("nonsense"), nil)
	equal(fr:registers().rip, 0x40100a)
	equal(fr:thread():tid(), 101)
	equal(fr:backtrace():pid(), 101)
	local si = fr:siginfo()
	equal(si:num(), 11)
	equal(si:code(), 1)
	equal(si:address(), 0x10)
	equal(si:address_populated(), true)
	local reason, killed = si:reason()
	equal(reason, "address not mapped to object")
	equal(killed, false)
	equal(tostring(si), "SIGSEGV")
	equal(fr:fprm_at(0):name(), "depth")
	equal(fr:fprm_at(1):name(), "message")
	equal(fr:fprm_at(2), nil, "parameter 2")
	equal(fr:fprm_at(-1), nil)
	equal(fr:fprm_at(math.maxinteger), nil)
	local names = {}
	for v, i in fr:fprm() do
		equal(v:fprm_offset(), i)
		names[#names + 1] = v:name()
	end
	equal(table.concat(names, ","), "depth,message")
end

local function check_variables(fr)
	local by = {}
	for v in fr do by[v:name()] = v end
	local vt = pmodule.variable_type
	equal(by.depth:value(), -3)
	equal(by.depth:type(), vt.ll)
	equal(by.depth:type_name(), "int")
	equal(by.depth:address(), 0x7000)
	equal(by.depth:resolved(), true)
	equal(by.depth:owner(), nil)
	equal(by.depth:frame(), fr)
	equal(by.depth:thread(), fr:thread())
	equal(by.depth:is_string(), false)
	equal(by.message:type(), vt.reference)
	equal(by.message:value(), 0x8010)
	equal(by.message:is_string(), true)
	equal(by.message:symbol(), "hello")
	equal(by.c:type(), vt.tuple)
	equal(by.c:base_type(), "crash")
	equal(by.c:type_name(), "struct(crash)")
	equal(by.c:value(), nil)
	equal(by.c:fprm_offset(), nil)
	equal(by.code:owner(), by.c)
	equal(by.code:value(), 7)
	equal(by.gone:resolved(), false)
	equal(by.gone:value(), nil)
	local re, im = by.z:value()
	equal(re, 1.5)
	equal(im, -2.5)
	equal(by.big:value(), 0xfedcba9876543210)
	equal(string.format("%x", by.big:value()), "fedcba9876543210", "an address keeps all its bits")
	equal(math.ult(by.big:value(), 0x10), false)
	equal(by.big:symbol(), nil)
end

local function check_threads(bt)
	local names = {}
	for thr in bt do
		names[#names + 1] = thr:name()
		equal(thr:backtrace(), bt)
	end
	equal(table.concat(names, ","), "main,worker")
	local first = bt()
	equal(first:fault(), true)
	equal(first:n_frames(), 3)
	equal(first:state(), pmodule.process_state.running)
	equal(first:register("rsp"), 0x7fff0000)
	equal(first:registers().rax, 0x11)
	equal(first:n_kframes(), 0)
	local second = bt(nil, first)
	equal(second:tid(), 102)
	equal(second:n_kframes(), 1)
	equal(second:kframes()[1], "futex_wait")
	equal(second:state(), pmodule.process_state.sleeping)
	equal(bt(nil, second), nil, "behind the last thread")
end

local function check_process(bt)
	equal(bt:pid(), 101)
	equal(bt:inner_pid(), 101, "no other pid namespace")
	equal(bt:application_name(), "crash")
	equal(bt:process_state(), pmodule.process_state.sleeping)
	equal(math.type(bt:process_state()), "integer")
	local e = bt:pmap_entry(0x401000)
	local p = pmodule.pmap_perms
	equal(e:permissions(p.rd, p.ex), true)
	equal(e:permissions(p.rd, p.wr), false)
	equal(e:permissions(p.all), false)
	equal(e:permissions(p.pr), true)
	equal(e:permissions(p.sh), false)
	equal(e:start(), 0x400000)
	equal(e:stop(), 0x402000)
	equal(e:path(), "/bin/crash")
	equal(e:offset(), 0)
	equal(e:inode(), 9)
	equal(e:guard(), false)
	equal(bt:pmap_entry(0x1), nil)
	local n = 0
	for entry in bt:pmap() do n = n + 1 end
	equal(n, 2)
	equal(next(bt:files()), nil)
	equal(pmodule.pmap_enabled(), true)
	equal(pmodule.pmap_cached(), false)
end

local function check_frameless(bt)
	for v, object, cu in bt:variables() do
		equal(v:name(), "counter")
		equal(v:value(), 99)
		equal(v:frame(), nil)
		equal(v:thread(), nil)
		equal(object, "/bin/crash")
		equal(cu, "src/crash.c")
		equal(v:object(), object)
		equal(v:cu(), cu)
	end
	for v, object, cu in bt():variables(), { name = "errno_copy" } do
		equal(v:thread():tid(), 101)
		equal(object, "/bin/crash")
	end
end

local function postattach(bt)
	equal(bt, pmodule.backtrace(), "two objects of one thing")
	check_process(bt)
	check_threads(bt)
	check_frameless(bt)
	local fr = bt()()
	check_frame(fr)
	check_variables(fr)
	equal(bt()(nil, fr):is_tail(), true, "it has jumped")
	equal(seen.preattach, 1)
	equal(seen.attach, 1)
	equal(seen.thread, 2)
	equal(seen.frame, 5)
	equal(seen.variable, 11, "variable events")
	bt:add_kv_int("passed", 1)
end

pmodule.define {
	id = "objects",
	load = function()
		for _, name in ipairs { "preattach", "attach", "thread", "frame", "variable" } do
			pmodule.register(pmodule.event[name], function(object) seen[name] = seen[name] + 1 end)
		end
		pmodule.register(pmodule.event.postattach, postattach)
	end,
}
