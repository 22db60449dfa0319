# SPDX-License-Identifier: MIT
"""Tests USDT markers of a program that knows its own values, of python3 and of libstdc++; and semaphores, also if dynprobe is killed."""

import json
import os
import signal
import struct

import binutils
import harness
from harness import Case, needs, number, wait_until

ITEMS = [(-3, 200, -5000000000), (-4, 201, -5000000001), (-5, 202, -5000000002), (-6, 203, -5000000003)]  # of markers.c


class Markers(Case):
    def setUp(self):
        super().setUp()
        if not os.path.exists(harness.target_path("markers")):
            self.skipTest("markers needs sys/sdt.h")
        self.t = self.target("markers")

    def semaphore(self, name="work_guarded_semaphore"):
        return struct.unpack("<H", harness.read_memory(self.t.pid, harness.live_address(self.t.pid, self.t.path, name), 2))[0]

    def test_arguments_of_every_kind_of_operand(self):
        r = self.attach(self.t, "--usdt", "work:plain", "--usdt", "work:mixed", "-n", 200)
        self.assert_ok(r)
        seen = {e["probe"]: 0 for e in r.events}
        for e in r.events:
            seen[e["probe"]] += 1
            a = {name: number(v) for name, v in e["fields"].items()}
            if e["probe"] == "work_plain":
                self.assertEqual((a["arg1"], a["arg2"]), (-a["arg0"], 42))
            else:
                self.assertEqual(tuple(a[f"arg{i}"] for i in range(4)), (*ITEMS[a["arg5"]], -77))
        self.assertGreater(min(seen["work_plain"], seen["work_mixed"]), 50)

    def test_arguments_by_name_and_conditions(self):
        r = self.attach(self.t, "--usdt", "work:mixed", "-t", "twice=arg0*2", "-t", "arg3", "--when", "arg5 == 2", "-n", 20)
        self.assert_ok(r)
        self.assertEqual({(number(e["fields"]["twice"]), number(e["fields"]["arg3"])) for e in r.events}, {(-10, -77)})

    def test_a_semaphore_is_up_while_the_probe_stands(self):
        self.assertEqual(self.semaphore(), 0)
        p = self.start_attached(self.t, "--usdt", "work:guarded")
        self.await_events(p, "work_guarded", 3)
        self.assertEqual(self.semaphore(), 1)
        r = self.finish(p)
        self.assert_ok(r)
        self.assertEqual(self.semaphore(), 0)
        values = [number(e["fields"]["arg0"]) for e in r.events]
        self.assertEqual([v % 3 for v in values], [0] * len(values))
        self.assert_clean(self.t.pid)

    def test_two_probes_hold_two_counts(self):
        self.assert_ok(self.attach(self.t, "--usdt", "work:guarded", "--usdt", "w*:*", "-n", 5))
        self.assertEqual([self.semaphore(f"work_{m}_semaphore") for m in ("plain", "mixed", "guarded")], [0, 0, 0])

    def test_the_count_of_another_tracer_stays(self):
        at = harness.live_address(self.t.pid, self.t.path, "work_guarded_semaphore")
        with open(f"/proc/{self.t.pid}/mem", "r+b", buffering=0) as f:
            f.seek(at)
            f.write(struct.pack("<H", 7))
        self.assert_ok(self.attach(self.t, "--usdt", "work:guarded", "-n", 3))
        self.assertEqual(self.semaphore(), 7)

    def test_a_killed_tools_count_is_taken_back_by_the_next_one(self):
        p = self.start_attached(self.t, "--usdt", "work:guarded")
        wait_until(lambda: self.semaphore() == 1, what="the semaphore to be up")
        p.kill()
        p.wait()
        self.assertEqual(self.semaphore(), 1)
        self.assert_ok(self.attach(self.t, "--function", "guarded", "-n", 3))
        self.assertEqual(self.semaphore(), 0)
        self.assert_clean(self.t.pid)

    def test_the_count_goes_with_a_probe_that_another_tool_ends(self):
        p = self.start_attached(self.t, "--usdt", "work:guarded", "-t", "reg:rip")
        self.await_events(p, "work_guarded", 3)
        site = next(number(e["fields"]["rip"]) for e in map(json.loads, self.said(p).splitlines()[-3:]) if "fields" in e)
        os.kill(self.t.pid, signal.SIGSTOP)  # no thread may execute the byte meanwhile
        wait_until(lambda: harness.status(self.t.pid, "State")[0] == "T", what="the program to stop")
        with open(f"/proc/{self.t.pid}/mem", "r+b", buffering=0) as f:
            f.seek(site)
            f.write(b"\x90")  # as a uprobe that is removed does
        wait_until(lambda: "retired" in self.said(p), what="the probe to retire")
        self.assertEqual(self.semaphore(), 0)
        os.kill(self.t.pid, signal.SIGCONT)
        self.finish(p)
        self.assertEqual(self.semaphore(), 0)
        self.assert_clean(self.t.pid)

    def test_the_count_of_a_probe_that_stays_goes_with_it(self):
        for command in (("remove", "work_guarded"), ("detach",)):
            self.assert_ok(self.verb("attach", "--usdt", "work:guarded", "--usdt", "work:plain"))
            self.assertEqual(self.semaphore(), 1)
            self.assert_ok(self.verb(*command))
            self.assertEqual(self.semaphore(), 0)
            self.verb("detach")
        self.assert_clean(self.t.pid)

    def verb(self, *args):
        p = harness.tool(*args, "--pid", self.t.pid)
        return harness.Result(p.returncode, p.stdout, p.stderr)

    def test_what_is_not_there(self):
        self.assert_refused(self.attach(self.t, "--usdt", "work:nothing", "-n", 1), "DP-NO-SYMBOL", "no marker of that name among the")
        self.assert_refused(self.attach(self.t, "--usdt", "work", "-n", 1), "DP-SYNTAX", "\n  work\n      ^")

    def test_they_are_listed(self):
        def listed(*words):
            p = harness.tool("list", "-f", "json", harness.target_path("markers"), *words)
            return {f"{m['provider']}:{m['name']}": m for m in map(json.loads, p.stdout.splitlines()) if m["type"] == "marker"}
        self.assertEqual(set(listed()), {"work:plain", "work:mixed", "work:guarded"})
        self.assertEqual(set(listed("usdt:*:g*")), {"work:guarded"})
        readelf = binutils.readelf("-n", harness.target_path("markers"))
        for m in listed().values():
            self.assertIn("Arguments: " + m["args"], readelf)
            self.assertIn(f"Location: {int(m['file_addr'], 16):#018x}", readelf)


@needs("/usr/bin/python3")
class Python(Case):
    def test_imports_by_their_names(self):
        if b"import__find__load__start" not in open(os.path.realpath("/usr/bin/python3"), "rb").read():
            self.skipTest("this python3 has no markers")
        r = self.dynprobe("--usdt", "python:import-find-load-start", "-t", "name=str(arg0,32)", "--", "/usr/bin/python3", "-S", "-c", "import colorsys, bisect")
        self.assert_ok(r)
        names = [e["fields"]["name"] for e in r.events]
        self.assertEqual(names.count("colorsys") + names.count("bisect"), 2, names[-20:])

    def test_collections_are_counted(self):
        if b"gc__start" not in open(os.path.realpath("/usr/bin/python3"), "rb").read():
            self.skipTest("this python3 has no markers")
        r = self.dynprobe("--usdt", "python:gc*", "--", "/usr/bin/python3", "-S", "-c", "import gc\ngc.disable()\nfor i in range(11): gc.collect(i % 3)\n")
        self.assert_ok(r)
        generations = [number(e["fields"]["arg0"]) for e in r.events if e["probe"] == "python_gc__start"]
        ours = [i % 3 for i in range(11)]  # the interpreter also collects at its start and end
        self.assertIn(ours, [generations[i:i + 11] for i in range(len(generations))], generations)


@needs("g++")
class Libstdcxx(Case):
    def test_exceptions_are_seen(self):
        source = self.written("thrower.cc", "int main() { for (int i = 0; i < 13; i++) try { throw i; } catch (int) {} }\n")
        harness.compiled(self.path("thrower"), "g++", "-O2", source)
        r = self.dynprobe("--usdt", "libstdcxx:*", "--", self.path("thrower"))
        self.assert_ok(r)
        hits = {p["name"]: p["hits"] for p in r.summary["probes"]}
        self.assertEqual((hits["libstdcxx_throw"], hits["libstdcxx_catch"]), (13, 13), hits)


if __name__ == "__main__":
    harness.main()
