# SPDX-License-Identifier: MIT
"""Tests every kind of context as a field of an LTTng event: its type in LTTng's list, its value, and every hit once."""

import json
import os
import re
import struct

import binutils
import harness
import lttng_env
import lttng_probe
from harness import REGISTERS, number, read_memory

UNREADABLE = 0xDEADBEEF000
MASK = (1 << 64) - 1
MEMORY = {
    "int8": "<b", "int16": "<h", "int32": "<i", "int64": "<q", "uint8": "<B", "uint16": "<H", "uint32": "<I", "uint64": "<Q",
    "int": "<i", "float": "<f", "double": "<d", "pointer": "<Q",
}  # fmt: skip


def contexts(*names):
    return [x for name in names for x in ("-t", name)]


def as_read(value, name):
    """babeltrace2 writes six digits of a floating-point number."""
    return float(f"{value:g}") if name in ("d", "mixed_d", "req_weight", "req_ratio") else value


class Values(lttng_probe.WithDaemon):
    def traced(self, *args, calls=200, delay=200):
        """All events of a `spin` that dynprobe started."""
        p = self.tool("-c", f"{harness.target_path('spin')} {calls} {delay}", "--function", "foo", *args, "--set-url", "file://" + self.path("t"))
        self.assertIn("RESULT OK", p.stdout)
        return self.read(self.path("t"), name="dynprobe:foo")

    def attached(self, t, *args, n=100):
        """At least n events of a running `spin`."""
        self.session("s")
        self.leave(t, *args)
        self.let_run(steps=2 * n + 50)
        events = self.events("s", None)
        self.assertGreater(len(events), n)
        return events

    def word_addresses(self, t):
        return struct.unpack("<4Q", read_memory(t.pid, t.site("words"), 32))

    def test_an_event_without_fields(self):
        events = self.traced(calls=300)
        self.assertEqual([e.fields for e in events], [{}] * 300)
        self.assertEqual([e.ns for e in events], sorted(e.ns for e in events))

    def test_hits_and_numbers_of_sixteen_bytes(self):
        events = self.traced("-t", "hits", "-t", "wide=*(__int128 *)$rsi", "-t", "low=*(long *)$rsi", "--when", "hits % 3 == 0", calls=300)
        self.assertEqual([e.fields["hits"] for e in events], list(range(3, 301, 3)))
        for e in events:
            self.assertEqual(len(e.fields["wide"]), 16)
            self.assertEqual(int.from_bytes(bytes(e.fields["wide"][:8]), "little", signed=True), e.fields["low"])

    def test_all_registers(self):
        t = self.spin()
        site, words = t.site(), self.word_addresses(t)
        events = self.attached(t, "--function", "foo", "-t", "regs", "-t", "reg:edi")
        self.assert_contiguous(self.calls(events))
        for e in events:
            f = e.fields
            self.assertEqual(set(f), {*REGISTERS, "rip", "rflags", "edi"})
            self.assertEqual((f["rip"], f["rsi"], f["rdi"] & 0xFFFFFFFF), (site, words[f["edi"] & 3], f["edi"]))
            self.assertEqual(f["rsp"] % 16, 8)
            self.assertTrue(f["rflags"] & 2)
        self.end(t)

    def test_every_register_of_every_width(self):
        wide = ("rdi", "rcx", "rsi", "rax", "r8", "r15")
        parts = {
            "rdi": ("edi", "di", "dil"), "rcx": ("ecx", "cx", "cl"), "rsi": ("esi", "si", "sil"), "rax": ("eax", "ax", "al"),
            "r8": ("r8d", "r8w", "r8b"), "r15": ("r15d", "r15w", "r15b"),
        }  # fmt: skip
        names = [n for r in wide for n in (r, *parts[r])] + ["ah", "ch"]
        t = self.spin()
        self.session("s")
        self.leave(t, "--function", "foo", *contexts(*("reg:" + n for n in names)))
        listed = self.list_fields(t.pid)
        self.assertEqual(listed["dynprobe:foo"], {n: "integer" for n in names})
        self.let_run()
        events = self.events("s")
        self.assert_contiguous(self.calls(events))
        for f in (e.fields for e in events):
            for r in wide:
                for name, bits in zip(parts[r], (32, 16, 8)):
                    self.assertEqual(f[name], f[r] & (1 << bits) - 1, name)
            self.assertEqual((f["ah"], f["ch"]), (f["rax"] >> 8 & 0xFF, f["rcx"] >> 8 & 0xFF))
        self.assertRegex(events[0].line, r"\brdi = 0x[0-9A-F]+")
        self.end(t)

    def list_fields(self, pid):
        """{event: {field: type}} from the text of `lttng list -u -f`, which users read."""
        found, here, event = {}, False, None
        for line in self.lttng("list", "-u", "-f").stdout.splitlines():
            if line.startswith("PID: "):
                here = line.split()[1] == str(pid)
            elif here and (m := re.match(r"\s+(\S+:\S+) \(loglevel: .*\(type: tracepoint\)", line)):
                event = found.setdefault(m[1], {})
            elif here and (m := re.match(r"\s+field: (\S+) \((\w+)\)", line)):
                event[m[1]] = m[2]
        return found

    def test_vector_registers(self):
        t = self.program("asm_forms")
        data = list(read_memory(t.pid, t.site("data"), 16))
        self.session("s")
        self.leave(t, "--name", "loaded", "--probe", "form_vex_rip+8", *contexts("reg:xmm1", "reg:xmm15", "reg:rdi"))
        self.assertEqual(self.list_fields(t.pid)["dynprobe:loaded"]["rdi"], "integer")
        self.let_run()
        events = self.events("s", "loaded")
        self.assertGreater(len(events), 50)
        self.assertEqual([e.fields["xmm1"] for e in events], [data] * len(events))
        self.assertEqual({len(e.fields["xmm15"]) for e in events}, {16})
        self.end(t)

    def test_variables_and_expressions(self):
        """The program prints its values at each call; `--when` selects some of them. Enumerations are numbers in LTTng."""
        program = harness.compiled(self.path("plain"), "gcc", "-O0", "-g", os.path.join(harness.ROOT, "tests", "e2e", "variables", "plain.c"))
        p = self.tool("-c", f"{program} 300", "--function", "work", *contexts("args", "*req", "twice=n * 2l", "next_len=req->next->len", "verb=str(req->name, 4)"),
                      "--when", 'n > 0 && req->name =~ "GET*"', "--set-url", "file://" + self.path("t"))
        said = [x for x in map(json.loads, (line for line in p.stdout.splitlines() if line.startswith("{"))) if x["n"] > 0 and x["req_name"].startswith("GET")]
        events = self.read(self.path("t"), name="dynprobe:work")
        self.assertGreater(len(said), 50)
        self.assertEqual(len(events), len(said))
        for x, f in zip(said, (e.fields for e in events)):
            for name in "n small big d mixed_n mixed_d seventh eighth req_len req_name req_hdr_type req_hdr_tag req_weight next_len".split():
                self.assertEqual(f[name], as_read(x[name], name), name)
            self.assertEqual(f["twice"], 2 * x["n"])
            self.assertEqual(f["color"], {"RED": 0, "GREEN": 5, "BLUE": 6, "DARK": -3}[x["color"]])
            self.assertEqual(f["req_ratio"], as_read(x["req_ratio"], "req_ratio"))
            self.assertEqual((f["req_raw"], f["req_ok"]), (list(bytes.fromhex(x["req_raw"])), int(x["req_ok"])))
            self.assertIn(f["verb"], (x["req_name"], "GET ..."))
            self.assertLess(len(f["verb"]), 8)

    def test_memory_of_every_type(self):
        t = self.spin()
        greeting, counter = t.site("greeting"), t.site("counter")
        raw = read_memory(t.pid, greeting, 32)
        names = [f"{kind}:v_{kind}:{greeting:#x}" for kind in MEMORY]
        names += [f"int:counter:{counter:#x}", f"string:s:{greeting:#x}", f"bytes[5]:b:{greeting:#x}", "reg:edi"]
        events = self.attached(t, "--function", "foo", *contexts(*names))
        self.assert_contiguous(self.calls(events))
        for f in (e.fields for e in events):
            self.assertEqual((f["counter"], f["s"], f["b"]), (-7, "hello from the target", list(b"hello")))
            for kind, form in MEMORY.items():
                value = struct.unpack(form, raw[: struct.calcsize(form)])[0]
                same = (lambda a, b: abs(a / b - 1) < 1e-5) if kind in ("float", "double") else int.__eq__
                self.assertTrue(same(f["v_" + kind], value), kind)
            self.assertEqual(f["unreadable"], 0)
        listed = self.list_fields(t.pid)["dynprobe:foo"]
        self.assertEqual({listed[k] for k in ("v_float", "v_double")}, {"float"})
        self.assertEqual((listed["s"], listed["counter"], listed["unreadable"]), ("string", "integer", "integer"))
        self.assertRegex(events[0].line, r"v_pointer = 0x[0-9A-F]+")
        self.end(t)

    def test_unreadable_memory_of_every_type_is_marked(self):
        t = self.spin()
        kinds = ("int8", "int16", "uint32", "uint64", "float", "double", "pointer", "string", "bytes[64]")
        bad = [f"{kind}:x{i}:{UNREADABLE:#x}" for i, kind in enumerate(kinds)]
        good = f"string:good:{t.site('greeting'):#x}"
        events = self.attached(t, "--function", "foo", *contexts("reg:edi", *bad, good))
        self.assert_contiguous(self.calls(events))
        for f in (e.fields for e in events):
            self.assertEqual(f["unreadable"], sum(1 << (1 + i) for i in range(len(kinds))), "bit i: field i")
            self.assertEqual((f["good"], f["x7"], f["x0"], f["x8"]), ("hello from the target", "", 0, [0] * 64))
        self.end(t)

    def test_a_null_string_has_a_bit_and_a_text(self):
        t = self.spin()
        events = self.attached(t, "--function", "foo", *contexts("reg:edi", "string[16]:short:0", "string:long:0", f"string:bad:{UNREADABLE:#x}", "string:end:0"))
        for f in (e.fields for e in events):
            self.assertEqual((f["unreadable"], f["short"], f["long"], f["bad"], f["end"]), (0b11110, "NULL", "NULL", "", "NULL"))
        self.end(t)

    def test_a_backtrace(self):
        t = self.spin()
        events = self.attached(t, "--function", "foo", *contexts("reg:edi", "backtrace", "reg:rsp"))
        self.assert_contiguous(self.calls(events))
        caller, main = t.site("caller"), t.site("main")
        for e in events:
            chain = e.fields["backtrace"]
            self.assertEqual(chain[0], t.site())
            self.assertTrue(caller < chain[1] < caller + 64 and main < chain[2] < main + 4096, e.line)
            self.assertEqual(e.fields["_backtrace_length"], len(chain))
            self.assertEqual(e.fields["rsp"] & 7, 0, "the field after a sequence has the right value")
        self.assertRegex(events[0].line, r"\[0\] = 0x[0-9A-F]+")
        self.end(t)

    def test_a_backtrace_cut_short(self):
        self.assertEqual({len(e.fields["backtrace"]) for e in self.traced("-t", "backtrace:2")}, {2})

    def test_the_ring_has_the_same(self):
        """The same program and probe, first with one sink, then with the other: values that depend on the call are the same for the same call."""
        t = self.spin(delay=300)
        greeting, counter = t.site("greeting"), t.site("counter")
        asked = contexts(
            "reg:rdi", "reg:esi", "reg:rsi", "reg:rip", "backtrace", f"string:s:{greeting:#x}", f"double:d:{greeting:#x}", f"float:f:{greeting:#x}",
            f"int:c:{counter:#x}", f"uint16:u:{greeting:#x}", f"pointer:p:{greeting:#x}", f"bytes[7]:b:{greeting:#x}", f"int:none:{UNREADABLE:#x}",
        )  # fmt: skip
        r = self.attach(t, "--sink", "ring", "--function", "foo", *asked, "-n", 40)
        self.assert_ok(r)
        events = self.attached(t, "--function", "foo", *asked)
        kinds = {f["name"]: f["type"] for f in r.header["probes"][0]["fields"]}
        order = list(kinds)
        by_word = {}
        for e in r.events:
            by_word[number(e["fields"]["rdi"]) & 3] = self.plain(e)
        self.assertEqual(len(by_word), 4)
        for e in events:
            f = dict(e.fields)
            f.pop("_backtrace_length")
            missing = f.pop("unreadable")
            self.assertEqual(list(f), order)
            word = f.pop("rdi") & 3
            self.assertEqual([n for i, n in enumerate(order) if missing >> i & 1], ["none"])
            f["none"] = None
            for name, value in by_word[word].items():
                if name in ("d", "f"):
                    self.assertAlmostEqual(f[name] / value, 1, places=5)
                else:
                    self.assertEqual(f[name], value, name)
        self.end(t)

    @staticmethod
    def plain(event):
        """The fields of a ring event as babeltrace2 prints them."""
        f = dict(event["fields"])
        f.pop("rdi")
        for name, value in f.items():
            if name == "backtrace":
                f[name] = [number(x["addr"] if isinstance(x, dict) else x) for x in value]
            elif name == "b":
                f[name] = list(bytes.fromhex(value.removeprefix("0x")))
            elif name not in ("s", "none"):
                f[name] = float(value) if name in ("d", "f") else number(value)
        return f


class Hits(lttng_probe.WithDaemon):
    def traced(self, calls, delay, *args):
        p = self.tool("-c", f"{harness.target_path('spin')} {calls} {delay}", *args, "--set-url", "file://" + self.path("t"))
        self.assertIn("RESULT OK", p.stdout)
        return self.read(self.path("t"))

    def test_every_hit_of_a_whole_program_once(self):
        """More events than the buffers hold, at a rate at which the consumer keeps up."""
        events = self.traced(20000, 20, "--function", "foo", "-t", "reg:edi", "-t", "backtrace")
        self.assertEqual(self.calls(events), list(range(20000)))

    def test_a_condition_selects(self):
        events = self.traced(400, 100, "--function", "foo", "-t", "reg:edi", "--when", "(edi & 3) == 2 || arg0 > 390")
        self.assertEqual(self.calls(events), [i for i in range(400) if i & 3 == 2 or i > 390])

    def test_several_probes_each_with_its_own_fields(self):
        args = ("--function", "caller", "-t", "reg:edi", "--name", "inner", "--function", "foo", "-t", "reg:rsi", "-t", "reg:edi")
        events = self.traced(300, 100, *args, "--name", "start", "--function", "main")
        self.assertEqual([e.name for e in events], ["dynprobe:start"] + ["dynprobe:caller", "dynprobe:inner"] * 300)
        self.assertEqual(self.calls(events[1::2]), list(range(300)))
        self.assertEqual(self.calls(events[2::2]), list(range(300)))
        self.assertEqual({tuple(e.fields) for e in events[2::2]}, {("rsi", "edi")})
        self.assertEqual(events[0].fields, {})

    def test_probes_of_several_runs_beside_each_other(self):
        t = self.spin()
        self.session("s")
        self.leave(t, "--function", "caller", "-t", "reg:edi")
        with self.running(t, "--name", "inner", "--function", "foo", "-t", "reg:edi", "--session", "s") as r:
            self.wait_listed(t.pid, "dynprobe:inner")
            self.let_run()
        self.assert_ok(r)
        self.leave(t, "--name", "inner", "--function", "foo", "-t", "reg:rdi")
        self.let_run()
        events = self.events("s", None)
        self.assert_contiguous(self.calls([e for e in events if e.name == "dynprobe:caller"]))
        first = self.calls([e for e in events if e.name == "dynprobe:inner" and "edi" in e.fields])
        second = [e.fields["rdi"] & 0xFFFFFFFF for e in events if e.name == "dynprobe:inner" and "rdi" in e.fields]
        self.assert_contiguous(first)
        self.assert_contiguous(second)
        self.assertGreater(second[0], first[-1])
        self.end(t)

    def test_two_probes_on_one_instruction_as_with_the_ring(self):
        """Both sinks place the first and refuse the second, or the other way round: under the same name."""
        t = self.spin()
        twice = ("--name", "a", "--function", "foo", "-t", "reg:edi", "--name", "b", "--function", "foo", "-t", "reg:edi")
        r = self.attach(t, "--sink", "ring", *twice, "-d", "300ms")
        self.session("s")
        with self.running(t, *twice, "--session", "s", "-d", "2s") as of_lttng:
            pass
        refused = {p["name"]: p.get("tag") for p in r.summary["probes"]}
        self.assertEqual(of_lttng.status, r.status, str(of_lttng))
        self.assertEqual(sorted(t for t in refused.values() if t), sorted(re.findall(r"^dynprobe: refused .*\[(DP-[A-Z-]+)\]$", of_lttng.err, re.M)))
        events = self.events("s", None)
        self.assertEqual({e.name for e in events}, {"dynprobe:" + p for p in {e["probe"] for e in r.events}})
        for name in {e.name for e in events}:
            self.assert_contiguous(self.calls([e for e in events if e.name == name]))
        self.assert_clean_text(t)

    def test_the_events_of_many_threads(self):
        t = self.program("threads", 24)
        self.session("s", contexts=["vtid"])
        tids = {int(x) for x in os.listdir(f"/proc/{t.pid}/task")}
        with self.running(t, "--function", "foo", "-t", "reg:edi", "--when", harness.CALM, "--session", "s") as r:
            self.wait_listed(t.pid, "dynprobe:foo")
            self.let_run(steps=5000)
        self.assert_ok(r)
        by_thread = {}
        for e in self.events("s"):
            by_thread.setdefault(e.context["vtid"], []).append(e.fields["edi"])
        self.assertLessEqual(set(by_thread), tids)
        self.assertGreater(len(by_thread), 10)
        sleepers = [c for c in by_thread.values() if not c[0] >> 31]
        for calls in sleepers:
            self.assert_contiguous(calls, 1)
        self.assert_result_ok(t)

    def test_a_probe_in_every_function(self):
        t = self.program("asm_forms")
        out = binutils.said("nm", t.path)
        forms = sorted(set(re.findall(r"T (form_\w+)", out)))
        self.assertGreater(len(forms), 25)
        self.session("s")
        args = ["--when", f"rdi == {3 * 0x123456789:#x}", "-t", "reg:rdi", *(x for f in forms for x in ("--function", f))]
        with self.running(t, *args, "--session", "s") as r:
            self.let_run()
            self.lttng("stop", "s")
        self.assertIn(r.status, (0, 121), str(r))
        seen = {e.name.split(":")[1] for e in self.events("s", None)}
        refused = set(re.findall(r"^dynprobe: refused (\w+)", r.err, re.M))
        self.assertEqual(seen, set(forms) - refused)
        self.assert_result_ok(t)


if __name__ == "__main__":
    lttng_env.main()
