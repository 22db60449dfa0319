# SPDX-License-Identifier: MIT
"""Tests dynprobe list against nm, objdump and real probes; the process does not notice it."""

import json
import os
import re
import signal
import subprocess

import binutils
import harness
from harness import Case, State, needs, needs_root, wait_until

LIBC = "libc.so.6"


def nm_functions(path):
    """{name: (address, size)}"""
    out = binutils.said("nm", "-S", path)
    found = re.findall(r"^([0-9a-f]+) ([0-9a-f]+) [tTwWi] (\S+)$", out, re.M)
    return {name.split("@")[0]: (int(a, 16), int(n, 16)) for a, n, name in found}


def objdump_boundaries(path, start, end):
    return [address for address, _ in binutils.instructions(path, f"--start-address={start:#x}", f"--stop-address={end:#x}")]


def bias(t, path):
    first = next(m for m in harness.maps(t.pid) if m.path == os.path.realpath(path))
    return first.start - first.offset


SHAPE = """
#include <cstdlib>
#include <unistd.h>
namespace ns {
struct Shape {
	int n;
	__attribute__((noinline)) int area(int k) const;
	__attribute__((noinline)) int twice(int k) const;
};
int Shape::area(int k) const
{
	asm volatile("");
	return n * k;
}
int Shape::twice(int k) const
{
	asm volatile("");
	return area(k) + area(k + 1) * 2;
}
}
int main(int argc, char **argv)
{
	const ns::Shape s{argc};
	for (int i = 0; i < atoi(argv[1]); i++) {
		usleep(1000);
		if (s.twice(i) == -1)
			return 1;
	}
}
"""


class ListCase(Case):
    def list(self, *words, status=0, **kw):
        return harness.tool("list", *words, **kw, status=status)

    def functions(self, *words):
        return [json.loads(line) for line in self.list("-f", "json", *words).stdout.splitlines()]

    def verdict(self, target, spec):
        """The result of a dry run for a probe at that place."""
        p = harness.tool("--pid", target.pid, "--probe", spec, "--dry-run", "-f", "json")
        self.assertIn(p.returncode, (0, 121), p.stderr)
        return next(x for x in map(json.loads, p.stdout.splitlines()) if x["type"] == "plan")


class Files(ListCase):
    def test_functions_are_those_of_nm(self):
        path = harness.target_path("spin")
        listed = self.functions(path)
        by_name = {}
        for f in listed:
            self.assertEqual(f["addr"], f["file_addr"])
            for name in [f["name"], *f["aliases"]]:
                by_name[name] = (int(f["addr"], 16), f["size"])
        for name, place in nm_functions(path).items():
            self.assertEqual(by_name.get(name), place, name)
        addresses = [int(f["addr"], 16) for f in listed]
        self.assertEqual(addresses, sorted(set(addresses)))

    def test_boundaries_are_those_of_objdump(self):
        path = harness.target_path("spin")
        checked = 0
        for f in self.functions("-v", path):
            start = int(f["addr"], 16)
            if f["name"] and f["size"]:
                self.assertEqual([int(s["addr"], 16) for s in f["sites"]], objdump_boundaries(path, start, start + f["size"]), f["name"])
                self.assertEqual(sum(len(s["bytes"]) for s in f["sites"]), 2 * f["size"])
                checked += len(f["sites"])
        self.assertGreater(checked, 100)

    def test_text_has_the_same(self):
        path = harness.target_path("spin")
        f, = self.functions("-v", path, "foo")
        lines = self.list("-v", path, "foo").stdout.splitlines()
        self.assertEqual(lines[0].split(), [f["addr"], str(f["size"]), "spin!foo"])
        self.assertEqual(len(lines) - 1, len(f["sites"]))
        for line, s in zip(lines[1:], f["sites"]):
            self.assertEqual(line.split()[:2], [f"+{s['offset']:#x}", s["addr"]])
            self.assertIn(s["text"], line)
            self.assertEqual(line.split()[-1], s["tactic"] or s["tag"])

    def test_only_the_tactics_that_are_allowed(self):
        path = harness.target_path("spin")
        got = lambda *words: [s["tactic"] or s["tag"] for f in self.functions("-v", path, "foo", *words) for s in f["sites"]]
        self.assertEqual(set(got("--tactic", "trap")), {"trap"})
        self.assertLessEqual(set(got("--tactic", "jump")), {"jump", "DP-TOO-SHORT"})
        self.assertNotIn("trap", got("--tactic", "jump,trap", "--no-trap"))
        self.assertEqual(set(got("--tactic", "jump,trap")) - {"jump"}, {"trap"})
        self.assertEqual([t for t in got("--tactic", "trap", "--no-trap") if not t.startswith("DP-")], [])
        self.assertNotIn("trap", got("--no-trap"))

    def test_it_says_as_if_loaded_where(self):
        for name, base in (("spin", "0x555555554000"), ("spin-nopie", "0x0")):
            self.assertRegex(self.list("-v", harness.target_path(name), "foo").stderr, f"loaded alone at {base}\n")

    def test_patterns_are_of_module_and_name(self):
        path = harness.target_path("spin")
        names = lambda *words: [f["name"] for f in self.functions(path, *words)]
        self.assertEqual(names("fo?"), ["foo"])
        self.assertEqual(names("sp*!foo"), ["foo"])
        self.assertGreater(len(names("*")), 3)
        self.assertEqual(names("*"), names())

    @needs("g++")
    def test_a_program_answers_to_the_name_that_it_is_started_by(self):
        path = self.path("server")
        os.symlink(os.path.realpath(harness.target_path("spin")), path)
        self.assertEqual([f["spec"] for f in self.functions(path, "server!foo")], ["spin!foo"])
        t = self.target(path, 0, 1000)
        self.assertEqual([f["spec"] for f in self.functions("--pid", t.pid, "server!foo")], ["spin!foo"])
        self.assertTrue(self.verdict(t, "server!foo")["tactic"])
        self.assertIn("DP-NO-MODULE", self.list("--pid", t.pid, "serve!foo", status=harness.OWN_FAILURE).stderr)
        self.assert_result_ok(t)

    def test_names_of_cxx_are_readable_and_found_as_people_read_them(self):
        path = harness.compiled(self.path("shop"), "g++", "-O1", "-pthread", os.path.join(harness.ROOT, "tests", "e2e", "cookbook", "shop.cc"))
        for glob in ("shop::*", "shop!shop::*", "serve", "Desk::serve", "shop::Desk::serve(Order const*)"):
            out = self.list(path, glob).stdout
            self.assertRegex(out, r"(?m)^0x[0-9a-f]+ +\d+  shop!shop::Desk::serve\(Order const\*\)$", glob)
            self.assertNotIn("seller", out)
        self.assertEqual({f["name"] for f in self.functions(path, "Desk::serve")}, {"_ZN4shop4Desk5serveEPK5Order"})
        self.assertIn("DP-NO-SYMBOL", self.list(path, "stall::*", status=harness.OWN_FAILURE).stderr)

    @needs("g++")
    def test_people_read_names_of_cxx_where_programs_read_symbols(self):
        path = harness.compiled(self.path("shape"), "g++", "-O1", "-g", self.written("shape.cc", SHAPE))
        text, lines = self.list("-v", path, "twice").stdout, self.list("-v", "-f", "json", path, "twice").stdout
        self.assertEqual(len(re.findall(r"call 0x[0-9a-f]+ <ns::Shape::area> ", text)), 2)
        self.assertRegex(lines, r'"text":"call 0x[0-9a-f]+"')
        plan = ("--dry-run", "--no-record", "--function", "ns::Shape::twice", "--", path, "1")
        self.assertIn(" ns::Shape::twice+0x0/", harness.tool(*plan).stdout)
        self.assertIn('"_ZNK2ns5Shape5twiceEi+0x0/', harness.tool("-f", "json", *plan).stdout)
        p = self.spawn(path, 100000)
        tool = lambda *args: harness.tool(*args, "--pid", p.pid).stdout
        tool("attach", "--sink", "ring", "--function", "ns::Shape::twice")
        self.assertIn("ns::Shape::twice+0x0/", tool("status"))
        self.assertIn('"_ZNK2ns5Shape5twiceEi+0x0/', tool("status", "-f", "json"))
        tool("detach")

    def test_what_is_not_there_is_said(self):
        path = harness.target_path("spin")
        self.assertIn("DP-NO-SYMBOL", self.list(path, "no_such_*", status=harness.OWN_FAILURE).stderr)
        self.assertIn("DP-NO-MODULE", self.list(path, "libzz!foo", status=harness.OWN_FAILURE).stderr)
        self.assertIn("DP-BAD-ELF", self.list(__file__, status=harness.OWN_FAILURE).stderr)
        self.assertIn("DP-BAD-ELF", self.list(self.path("none"), status=harness.OWN_FAILURE).stderr)
        for words in ((), (path, "foo", "bar"), ("--pid", 1, "--pid", 2), ("--pid", 1, "foo", "bar"), (path, "-f", "ctf"), (path, "--function", "foo")):
            self.assertIn("DP-USAGE", self.list(*words, status=harness.OWN_FAILURE).stderr)

    @needs("strip")
    def test_functions_without_a_name_are_named_by_their_address(self):
        path = self.path("bare")
        subprocess.run(["strip", "-o", path, harness.target_path("spin")], check=True)
        foo = harness.symbol_address(harness.target_path("spin"), "foo")
        f = next(f for f in self.functions(path) if int(f["addr"], 16) == foo)
        self.assertEqual((f["name"], f["spec"]), (None, f"bare!{foo:#x}"))
        self.assertIn("main", [f["name"] for f in self.functions(path)])
        t = self.target(path, 0, 1000)
        self.assertEqual(int(self.verdict(t, f["spec"])["addr"], 16), bias(t, path) + foo)
        self.assert_result_ok(t)

    def test_a_reader_that_has_enough_is_no_failure(self):
        for words in ((), ("-v",), ("-f", "json")):
            p = subprocess.Popen([harness.DYNPROBE, "list", *words, harness.target_path("spin-static")], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
            self.assertTrue(p.stdout.readline())
            p.stdout.close()
            err = p.stderr.read().decode()
            p.stderr.close()
            self.assertEqual(p.wait(300), 0)
            self.assertNotIn("error", err)

    def test_a_full_disk_is_a_failure(self):
        with open("/dev/full", "w") as full:
            p = subprocess.run([harness.DYNPROBE, "list", harness.target_path("spin")], stdout=full, stderr=subprocess.PIPE, text=True, timeout=300)
        self.assertEqual(p.returncode, harness.OWN_FAILURE)
        self.assertIn("DP-OUTPUT", p.stderr)


class Processes(ListCase):
    def test_addresses_are_live_ones(self):
        t = self.target("spin", 0, 1000)
        f, = self.functions("--pid", t.pid, "spin!foo")
        self.assertEqual(int(f["addr"], 16), t.site())
        self.assertEqual(int(f["file_addr"], 16), harness.symbol_address(t.path, "foo"))
        modules = []
        for f in self.functions("--pid", t.pid):
            if not modules or modules[-1] != f["module"]:
                modules.append(f["module"])
        self.assertEqual(modules[0], "spin")
        self.assertIn(LIBC, modules)
        self.assertEqual(len(modules), len(set(modules)), "a module's functions are listed together")
        self.assert_result_ok(t)

    def test_a_probe_gets_what_was_said(self):
        t = self.target("spin", 0, 1000)
        asked = 0
        for pattern in ("spin!foo", "spin!caller", f"{LIBC}!getpid", f"{LIBC}!abs"):
            f, = self.functions("-v", "--pid", t.pid, pattern)
            for s in f["sites"]:
                plan = self.verdict(t, f"{f['spec']}+{s['offset']:#x}" if s["offset"] else f["spec"])
                self.assertEqual((plan["addr"], plan["tactic"], plan["tag"]), (s["addr"], s["tactic"], s["tag"]), str(s))
                asked += 1
        self.assertGreater(asked, 20)
        self.assert_result_ok(t)

    def test_tag_and_reason_where_no_probe_fits(self):
        t = self.target("odd")
        sites = [s for f in self.functions("-v", "--pid", t.pid, "odd!*") for s in f["sites"]]
        for s in sites:
            self.assertEqual(s["tactic"] is None, s["tag"] is not None, str(s))
            if s["tag"]:
                self.assertRegex(s["tag"], r"^DP-[A-Z-]+$")
                self.assertTrue(s["reason"])
        self.assertGreater(len(sites), 10)
        p = self.list("-v", "--pid", t.pid, "odd!*")
        self.assertRegex(p.stderr, rf"{len(sites)} instructions, .*\b{sum(1 for s in sites if s['tag'])} refused")

    @needs("strace")
    def test_the_process_is_not_touched(self):
        t = self.target("spin", 0, 1000)
        before = State(t.pid)
        calls = self.system_calls("ptrace,process_vm_writev,kill,tgkill,tkill,open,openat,flock", "list", "-v", "--pid", t.pid, "spin!*")
        self.assertIn("/maps", calls)
        self.assertNotRegex(calls, r"(ptrace|process_vm_writev|kill|flock)\(")
        self.assertNotRegex(calls, r"/mem\"")
        self.assertEqual(before.differences(State(t.pid)), {})
        self.assert_result_ok(t)

    @needs("strace")
    def test_another_tracer_and_a_stop_are_no_hindrance(self):
        t = self.target("spin", 0, 1000)
        tracer = self.strace(t)
        self.assertEqual(len(self.functions("-v", "--pid", t.pid, "spin!foo")), 1)
        tracer.terminate()
        tracer.wait()
        os.kill(t.pid, signal.SIGSTOP)
        wait_until(lambda: t.state() == "T", what="stop")
        self.assertEqual(len(self.functions("-v", "--pid", t.pid, "spin!foo")), 1)
        os.kill(t.pid, signal.SIGCONT)
        self.assert_result_ok(t)

    def test_another_dynprobe_at_work_is_no_hindrance(self):
        t = self.target("spin", 0, 1000)
        tool = self.start_attached(t, "--function", "foo")
        self.assertEqual(len(self.functions("-v", "--pid", t.pid, "spin!caller")), 1)
        self.assert_hits(self.finish(tool))
        self.assert_clean(t.pid)

    def test_a_process_behind_a_filter_can_be_looked_at(self):
        t = self.target("caged", ready="CAGED")
        self.assertEqual(len(self.functions("-v", "--pid", t.pid, "caged!foo")), 1)
        self.assert_result_ok(t)

    def test_no_such_process(self):
        p = subprocess.Popen(["true"])
        p.wait()
        self.assertIn("DP-NO-PROCESS", self.list("--pid", p.pid, status=harness.OWN_FAILURE).stderr)

    @needs_root
    @needs("setpriv")
    def test_somebody_elses_process(self):
        t = self.target("spin", 0, 1000)
        p = harness.tool("list", "--pid", t.pid, prefix=harness.NOBODY, binary=self.for_nobody("dynprobe"), status=harness.OWN_FAILURE)
        self.assertIn("DP-PERMISSION", p.stderr)


if __name__ == "__main__":
    harness.main()
