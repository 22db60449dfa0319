# SPDX-License-Identifier: MIT
"""Tests -t with every kind of context and known values; unreadable memory is marked and does no harm."""

import json
import struct

import harness
from harness import Case, REGISTERS, number, read_memory

UNREADABLE = 0xDEADBEEF000


class Contexts(Case):
    def events(self, target, *contexts, probe=("--function", "foo"), n=5):
        args = [x for c in contexts for x in ("-t", c)]
        r = self.attach(target, *probe, *args, "-n", n)
        self.assert_ok(r)
        self.assert_hits(r, n)
        return r.events

    def spin(self):
        t = self.target("spin", 0, 500)
        self.addCleanup(lambda: self.assert_result_ok(t))
        return t

    def test_all_general_registers(self):
        t = self.spin()
        site, words = t.site("foo"), self.word_addresses(t)
        for e in self.events(t, "regs"):
            f = {k: number(v) for k, v in e["fields"].items()}
            self.assertEqual(set(f), {*REGISTERS, "rip", "rflags"})
            self.assertIn(f["rip"] - site, (0, 4))
            self.assertIn(f["rsi"], words)
            self.assertEqual(f["rsp"] % 16, 8)  # a call has just pushed its return address
            self.assertTrue(f["rflags"] & 2)

    def word_addresses(self, t):
        return struct.unpack("<4Q", read_memory(t.pid, t.site("words"), 32))

    def test_parts_of_a_register_agree_with_it(self):
        parts = ["reg:" + x for x in ("rdi", "edi", "di", "dil", "rcx", "ecx", "cx", "cl", "ch", "r8", "r8d", "r8w", "r8b")]
        for e in self.events(self.spin(), *parts):
            f = {k: number(v) for k, v in e["fields"].items()}
            for wide, double, word, byte in (("rdi", "edi", "di", "dil"), ("rcx", "ecx", "cx", "cl"), ("r8", "r8d", "r8w", "r8b")):
                mask = (1 << 64) - 1
                self.assertEqual(f[double] & 0xFFFFFFFF, f[wide] & mask & 0xFFFFFFFF)
                self.assertEqual(f[word] & 0xFFFF, f[wide] & mask & 0xFFFF)
                self.assertEqual(f[byte] & 0xFF, f[wide] & mask & 0xFF)
            self.assertEqual(f["ch"] & 0xFF, f["rcx"] >> 8 & 0xFF)

    def test_every_register_by_name(self):
        for e in self.events(self.spin(), *("reg:" + r for r in REGISTERS), "reg:rip", "reg:rflags"):
            self.assertEqual(set(e["fields"]), {*REGISTERS, "rip", "rflags"})

    def test_vector_registers_by_name(self):
        if not harness.has_processor("avx"):
            self.skipTest("the target uses AVX, which this processor does not have")
        for e in self.events(self.target("asm_forms"), "reg:xmm0", "reg:xmm15", probe=("--function", "form_vex_rip")):
            self.assertEqual(set(e["fields"]), {"xmm0", "xmm15"})
            self.assertEqual(len(e["fields"]["xmm0"].replace(" ", "").removeprefix("0x")), 32)

    def test_memory_of_every_type(self):
        t = self.spin()
        counter, greeting = t.site("counter"), t.site("greeting")
        raw = read_memory(t.pid, greeting, 32)
        types = {
            "int8": ("<b", 1), "int16": ("<h", 2), "int32": ("<i", 4), "int64": ("<q", 8), "uint8": ("<B", 1), "uint16": ("<H", 2),
            "uint32": ("<I", 4), "uint64": ("<Q", 8), "int": ("<i", 4), "float": ("<f", 4), "double": ("<d", 8), "pointer": ("<Q", 8),
        }
        contexts = [f"{name}:v_{name}:{greeting:#x}" for name in types] + [f"int:counter:{counter:#o}".replace("0o", "0")]
        e = self.events(t, *contexts)[0]["fields"]
        self.assertEqual(number(e["counter"]), -7)
        for name, (form, size) in types.items():
            expected = struct.unpack(form, raw[:size])[0]
            if form in ("<f", "<d"):
                self.assertAlmostEqual(float(e["v_" + name]) / expected, 1, places=5)
            else:
                self.assertEqual(number(e["v_" + name]), expected, name)

    def test_strings_and_bytes(self):
        t = self.spin()
        greeting = t.site("greeting")
        e = self.events(t, f"string:s:{greeting}", f"bytes[5]:b:{greeting:#x}")[0]["fields"]
        self.assertEqual(e["s"], "hello from the target")
        self.assertEqual(bytes.fromhex(e["b"].removeprefix("0x")), b"hello")

    def test_unreadable_memory_is_marked(self):
        t = self.spin()
        contexts = [f"{kind}:x{i}:{UNREADABLE:#x}" for i, kind in enumerate(("int8", "uint64", "double", "pointer", "string", "bytes[64]"))]
        good = f"string:good:{t.site('greeting'):#x}"
        for e in self.events(t, *contexts, good):
            self.assertEqual(sorted(e["unreadable"]), [f"x{i}" for i in range(6)])
            self.assertIsNone(e["fields"]["x0"])
            self.assertEqual(e["fields"]["good"], "hello from the target")

    def test_unreadable_addresses_of_every_kind_harm_nobody(self):
        """Null, the kernel's half, not canonical, and a read that runs off the end of a mapping."""
        t = self.spin()
        maps = harness.maps(t.pid)
        # After the stack is nothing, or a mapping of the kernel ([vvar]).
        last = max(m.end for m in maps if m.perms[0] == "r" and not m.path.startswith("[v") and m.end not in [n.start for n in maps])
        bad = (0, 8, 0xFFFFFFFF81000000, 0x8000000000000000, 0xFFFFFFFFFFFFFFFF, last - 4)
        for e in self.events(t, *(f"uint64:v{i}:{a:#x}" for i, a in enumerate(bad))):
            self.assertEqual(sorted(e["unreadable"]), [f"v{i}" for i in range(len(bad))])

    def test_unreadable_values_show_in_text_and_trace(self):
        t = self.spin()
        r = self.attach(t, "--function", "foo", "-t", f"int:v:{UNREADABLE:#x}", "-n", 3, json_events=False, record=self.path("trace"))
        self.assert_ok(r)
        self.assertIn("v=<unreadable>", r.out)
        self.assertGreaterEqual(len(harness.babeltrace(self.path("trace"))), 3)

    def test_contexts_belong_to_the_probes_before_them(self):
        t = self.spin()
        r = self.attach(t, "--function", "foo", "-t", "reg:rdi", "--function", "caller", "-t", "reg:rsi", "-n", 10)
        self.assert_ok(r)
        fields = {e["probe"]: set(e["fields"]) for e in r.events}
        self.assertEqual(fields, {"foo": {"rdi"}, "caller": {"rsi"}})

    def test_names_of_events(self):
        t = self.spin()
        r = self.attach(t, "--name", "aname", "--function", "foo", "--function", "caller", "-n", 6)
        self.assert_ok(r)
        self.assertEqual({e["probe"] for e in r.events}, {"aname", "caller"})

    def test_wrong_contexts_are_refused_with_a_caret(self):
        t = self.target("spin", 0, 500)
        for wrong in ("reg:rzx", "int:v", "integer:v:0x10", "string:9lives:0x10", "bytes[0]:b:0x10", "backtrace:0", "int:v:0xzz"):
            with self.subTest(wrong):
                r = self.attach(t, "--function", "foo", "-t", wrong)
                self.assertEqual(r.status, harness.OWN_FAILURE, str(r))
                self.assertRegex(r.err, r"DP-(SYNTAX|USAGE)")
        self.assert_clean(t.pid)

    def test_json_lines_have_their_documented_parts(self):
        t = self.spin()
        r = self.attach(t, "--function", "foo", "-t", "regs", "-n", 3)
        self.assertEqual(r.lines[0]["type"], "header")
        self.assertEqual(r.lines[0]["version"], 1)
        self.assertEqual([f["name"] for f in r.header["probes"][0]["fields"]], list(r.events[0]["fields"]))
        self.assertEqual(json.dumps(r.lines[-1])[:18], '{"type": "summary"')


class When(Case):
    def test_condition_selects(self):
        t = self.target("spin", 0, 50)
        site = t.site("words")
        empty = struct.unpack("<4Q", read_memory(t.pid, site, 32))[3]
        cases = {
            "arg0 % 2 == 1": lambda f: f["rdi"] % 2 == 1,
            "(edi & 3) == 2": lambda f: f["rdi"] & 3 == 2,
            f"rsi == {empty:#x}": lambda f: f["rsi"] == empty,
            "arg0 > 10 && (dil & 1)": lambda f: f["rdi"] & 1 and f["rdi"] > 10,
            "!(rdi & 1) || arg0 == 7": lambda f: not f["rdi"] & 1 or f["rdi"] == 7,
            "(rdi << 1) == (rdi + rdi) && $rdi >= 0": lambda f: True,
            "rdi * 2 - rdi == rdi && ~rdi < 0": lambda f: True,
        }
        for text, holds in cases.items():
            with self.subTest(text):
                r = self.attach(t, "--function", "foo", "-t", "reg:rdi", "-t", "reg:rsi", "--when", text, "-n", 5)
                if holds is None:
                    self.assertEqual(r.status, harness.OWN_FAILURE, str(r))
                    continue
                self.assert_ok(r)
                self.assert_hits(r, 5)
                for e in r.events:
                    self.assertTrue(holds({k: number(v) for k, v in e["fields"].items()}), e)
        self.assert_result_ok(t)

    def test_condition_that_never_holds_records_nothing(self):
        t = self.target("spin")
        r = self.attach(t, "--function", "foo", "--when", "rdi == 1 && rdi == 2", "-d", 1)
        self.assert_ok(r)
        self.assertEqual(r.events, [])
        self.assert_result_ok(t)

    def test_every_relation_against_the_same_values(self):
        t = self.target("spin", 0, 50)
        for op, holds in (("==", lambda a: a == 5), ("!=", lambda a: a != 5), ("<", lambda a: a < 5), ("<=", lambda a: a <= 5),
                          (">", lambda a: a > 5), (">=", lambda a: a >= 5)):
            with self.subTest(op):
                r = self.attach(t, "--function", "foo", "-t", "reg:rdi", "--when", f"(rdi & 7) {op} 5", "-n", 8)
                self.assert_ok(r)
                self.assertTrue(all(holds(number(e["fields"]["rdi"]) & 7) for e in r.events), r.events)

    def test_wrong_conditions_show_the_place(self):
        t = self.target("spin", 0, 500)
        for wrong in ("rdi ==", "(rdi", "rdi && $zork > 1", "1 2", ""):
            with self.subTest(wrong):
                r = self.attach(t, "--function", "foo", "--when", wrong)
                self.assertEqual(r.status, harness.OWN_FAILURE, str(r))
                self.assertIn("DP-SYNTAX", r.err)
        self.assert_clean(t.pid)


if __name__ == "__main__":
    harness.main()
