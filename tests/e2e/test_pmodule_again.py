# SPDX-License-Identifier: MIT
"""Tests pmodules run again on a saved snapshot: their old results are replaced, those of others stay, and a program that was rebuilt
since is not taken for the one in the snapshot.
"""

import os
import signal

import harness

FIRST = """
local n = 0
pmodule.define{id = "first", load = function()
	pmodule.register(pmodule.event.postattach, function(bt)
		bt:add_kv_int("first.always", 1)
		if not pmodule.config_option("again") then
			bt:add_kv_int("first.once", 1)
			bt:add_classifier("first-once")
			bt:add_tag("first-tag")
		end
		bt:annotate(pmodule.annotation.comment, "said by first")
		local fr = pmodule.create_frame()
		fr:set_symbol("made by first")
		bt():add_frame(fr)
	end)
end}
"""
SECOND = """
pmodule.define{id = "second", load = function()
	pmodule.register(pmodule.event.variable, function(v)
		if v:name() ~= "wanted" or v:owner() then return end
		v:set_string("summed up by second")
		local made = pmodule.create_variable("int", "made_by_second", 0, -1, v)
		made:set_ll(7)
		v:frame():add_variable(made)
	end)
	pmodule.register(pmodule.event.postattach, function(bt)
		bt:add_kv_int("second.threads", 1)
		bt:add_classifier("second-class")
		local fr = pmodule.create_frame()
		fr:set_symbol("made by second")
		bt():add_frame(fr, false)
	end)
end}
"""
TYPES = """
pmodule.define{id = "types", load = function()
	pmodule.register(pmodule.event.variable, function(v, raw)
		if v:name() ~= "wanted" or v:owner() then return end
		local b = raw and pmodule.try(raw, "second")
		v:backtrace():add_kv_string("types.second", b and tostring(pmodule.variable_from_bt(b):value()) or "no type")
	end)
	pmodule.register(pmodule.event.variable, function(v, raw)
		if v:name() ~= "kept" or v:owner() then return end
		local b = raw and pmodule.try(raw, "first")
		v:backtrace():add_kv_string("types.kept", v:address() .. ":" .. (b and pmodule.variable_from_bt(b):value() or "no type"))
	end)
end}
"""
PROGRAM = """
#include <unistd.h>
struct pair { %s };
__attribute__((noinline)) static int look(struct pair wanted, struct pair *held)
{
	register struct pair *kept __asm__("rbx") = held;
	__asm__ volatile("" : "+r"(kept));
	write(1, "READY 0\\n", 8);
	for (;;)
		pause();
	return wanted.second + kept->second;
}
int main(void)
{
	struct pair p = {.first = 11, .second = 22};
	return look(p, &p);
}
"""


class Again(harness.Case):
    def module(self, name, text):
        return self.written(name + ".lua", text)

    def build(self, members):
        harness.compiled(self.path("p"), "cc", "-g", "-O0", "-Wl,--build-id=sha1", self.written("p.c", PROGRAM % members))

    def taken(self, *modules):
        t = self.target(self.path("p"))
        loads = [word for m in modules for word in ("--module-load", m)]
        harness.tool("snapshot", t.pid, "-o", self.path("a.dps"), "--module-timeout", 20000, *loads, status=0)
        t.stop(signal.SIGKILL)
        return self.whole("a.dps")

    def whole(self, name):
        return harness.shown(self.path(name))

    def again(self, *modules, options=()):
        loads = [word for m in modules for word in ("--module-load", m)]
        p = harness.tool("pmodule", "run", self.path("a.dps"), "-o", self.path("b.dps"), "--module-timeout", 20000, *options, *loads, status=0)
        self.assertEqual(p.stdout, self.path("b.dps") + "\n", "it prints what it has written")
        return self.whole("b.dps"), p.stderr

    def test_what_a_module_said_goes_and_what_others_said_stays(self):
        self.build("int first, second;")
        first, second = self.module("first", FIRST), self.module("second", SECOND)
        before = self.taken(first, second)
        symbols = lambda s: [f.get("symbol") for f in s["threads"][0]["frames"]]
        wanted = lambda s: next(v for f in s["threads"][0]["frames"] for v in f["variables"] if v["name"] == "wanted")
        self.assertEqual(before["attributes"]["first.once"], 1)
        self.assertEqual((symbols(before)[0], symbols(before)[-1]), ("made by first", "made by second"))
        b, _ = self.again(first, options=("--module", "first:again,1"))
        self.assertNotIn("first.once", b["attributes"])
        self.assertNotIn("first-once", b["classifiers"])
        self.assertNotIn("first-tag", b.get("tags", []))
        self.assertEqual(b["attributes"]["first.always"], 1)
        self.assertEqual([n["text"] for n in b["notes"]].count("said by first"), 1)
        self.assertEqual(symbols(b), symbols(before))
        self.assertEqual(b["attributes"]["second.threads"], 1)
        self.assertIn("second-class", b["classifiers"])
        self.assertEqual(wanted(b), wanted(before))
        self.assertEqual(wanted(b)["summary"], "summed up by second")
        self.assertIn("made_by_second", [c["name"] for c in wanted(b)["children"]])
        self.assertIn("first.always", b["attributes"], "dynprobe's own data stays, too")
        self.assertEqual(set(before["attributes"]) - set(b["attributes"]), {"first.once"})

    def test_a_program_that_was_built_again_has_no_types_for_the_old_snapshot(self):
        self.build("int first, second;")
        types = self.module("types", TYPES)
        before = self.taken(types)["attributes"]
        self.assertEqual((before["types.second"], before["types.kept"]), ("22", "0:11"))
        same, said = self.again(types)
        self.assertEqual(same["attributes"]["types.second"], "22")
        self.assertEqual(same["attributes"]["types.kept"], "0:11", "a pointer that was in a register")
        self.assertNotIn("missing or have changed", said)
        self.build("char other[40]; int second, first;")
        other, said = self.again(types)
        self.assertEqual(other["attributes"]["types.second"], "no type")
        self.assertRegex(said, r"1 of \d+ files are missing or have changed")
        os.unlink(self.path("p"))
        gone, said = self.again(types)
        self.assertEqual(gone["attributes"]["types.second"], "no type")
        self.assertIn("1 of", said)


if __name__ == "__main__":
    harness.main()
