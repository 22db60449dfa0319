# SPDX-License-Identifier: MIT
"""Tests programs in Go and Rust: goroutine stacks are small and are moved, and only the program's own tables describe them."""

import collections
import functools
import os
import random
import re
import shutil
import struct
import subprocess

import binutils
import harness
from harness import Case, needs

STACK_CHECK = (b"\x49\x3b\x66\x10", b"\x4c\x8d\x64\x24", b"\x4c\x8d\xa4\x24")  # cmp 0x10(%r14),%rsp; lea -N(%rsp),%r12
# Called while goroutines run, grow, are stopped and scavenged; each of these functions checks its stack first.
BUSY = r"runtime\.(mallocgc|growslice|newobject|makeslice|chansend1?|chanrecv[12]?|selectgo|gopark|goready|newproc|deferproc|concatstrings|" \
       r"convTstring|mapaccess\w*|mapassign\w*|gcStart|gcMarkDone|newstack|copystack|morestackc|sweepone)$|(algo|util|sort|strings|bufio|main|src)\.[A-Z]\w*$"

# A goroutine's stack ends at goexit; a thread's own stack at one of the others, some of which change to it.
STACK_ENDS = {f"runtime.{name}" for name in ("goexit", "rt0_go", "mstart", "mcall", "systemstack", "morestack")}

SHARE = 1 if harness.FULL else 4  # of the text that is searched in


def sections(path):
    out = binutils.readelf("-SW", path)
    found = re.findall(r"\] (\.\S+)\s+\S+\s+([0-9a-f]+) ([0-9a-f]+) ([0-9a-f]+)", out)
    return {name: (int(address, 16), int(offset, 16), int(size, 16)) for name, address, offset, size in found}


# As Go's runtime does as a PIE: ld.so starts it, and it moves fs to a block of its own, in which no word is what the C library has there.
OWN_RUNTIME = r"""
static long block[200];
static long call(long n, long a, long b) { long r; __asm__ volatile("syscall" : "=a"(r) : "a"(n), "D"(a), "S"(b) : "rcx", "r11", "memory"); return r; }
__attribute__((noinline)) long work(long n) { __asm__ volatile("" : "+r"(n)); return n * 7 + 1; }
__asm__(".globl _start\n_start: call start\n");
__attribute__((used)) static void start(void) {
	call(158, 0x1002, (long)(block + 1));
	long sum = 0;
	for (long i = 0; i < 3; i++) sum += work(i);
	call(60, sum == 24 ? 0 : 1, 0);
}
"""


class GoProgram:
    """Functions of a Go 1.18 to 1.19 program by .gopclntab, which every Go program carries."""

    def __init__(self, path):
        with open(path, "rb") as f:
            self.bytes = f.read()
        self.sections = sections(path)
        _, at, size = self.sections[".gopclntab"]
        table = self.bytes[at:at + size]
        magic, n = struct.unpack_from("<I", table)[0], struct.unpack_from("<Q", table, 8)[0]
        text, names, *_, functions = struct.unpack_from("<6Q", table, 24)
        if magic not in (0xfffffff0, 0xfffffff1):
            raise ValueError(f"a .gopclntab of version {magic:#x}")
        self.functions = {}
        for i in range(n):
            entry, offset = struct.unpack_from("<2I", table, functions + 8 * i)
            name = names + struct.unpack_from("<I", table, functions + offset + 4)[0]
            self.functions[table[name:table.index(b"\0", name)].decode()] = text + entry

    @functools.lru_cache(maxsize=None)  # noqa: B019
    def function_at(self, address):
        return max((entry, name) for name, entry in self.functions.items() if entry <= address)[1]

    def at(self, address, n):
        start, offset, size = self.sections[".text"]
        return self.bytes[offset + address - start:offset + address - start + n] if start <= address < start + size else b""

    def busy(self):
        """Entries of functions that check their stack, for which the guarantee of docs/guarantees.md holds."""
        return sorted(a for name, a in self.functions.items() if re.search(BUSY, name) and self.at(a, 4) in STACK_CHECK)


class Languages(Case):
    def load(self, lines):
        """Text to search in, the same every time."""
        words = random.Random(1)
        with open(self.path("text"), "w") as f:
            for i in range(lines):
                f.write(f"{i} {words.getrandbits(90):x}/{words.getrandbits(40):x} the quick brown fox {words.random()}\n")
        return self.path("text")

    def same_output(self, argv, probes, text, status=(0, 121)):
        """Runs the program with and without probes; the output must be the same. Returns the probes that were hit."""
        with open(text) as f:
            plain = subprocess.run(argv, stdin=f, capture_output=True, text=True)
        with open(text) as f:
            r = self.dynprobe("-q", *probes, "--", *argv, stdin=f, timeout=300)
        self.assertIn(r.status, status, str(r)[-3000:])
        self.assertEqual(r.out, plain.stdout, str(r)[:3000])
        self.assertTrue(plain.stdout)
        hit = [p for p in r.summary["probes"] if p["hits"]]
        self.assertGreaterEqual(len(hit), 5, str(r)[-3000:])
        return hit

    def go_probes(self, *contexts):
        program = GoProgram(os.path.realpath(shutil.which("fzf")))
        entries = program.busy()
        self.assertGreater(len(entries), 40)
        return program, [word for a in entries for word in ("--probe", f"fzf!{a:#x}", *(w for c in contexts for w in ("-t", c)))]

    def search(self):
        return ["fzf", "--filter", "quick fox 7"]

    @needs("fzf")
    def test_go_registers(self):
        program, probes = self.go_probes("regs")
        grow = f"fzf!{program.functions['runtime.newstack']:#x}"
        hit = self.same_output(self.search(), [*probes, "--probe", grow], self.load(60000 // SHARE))
        self.assertTrue([p for p in hit if p["spec"] == grow], "no stack was grown: the test tests nothing")

    @needs("fzf")
    def test_go_strings(self):
        program, _ = self.go_probes()
        self.same_output(self.search(), self.go_probes(f"string:magic:{program.sections['.rodata'][0]}")[1], self.load(30000 // SHARE))

    @needs("fzf")
    def test_go_inside_of_functions(self):
        """Displaced calls leave the program's own return addresses on stacks that are copied meanwhile."""
        program, _ = self.go_probes()
        entries = sorted(program.functions.values())
        ends = dict(zip(entries, entries[1:]))
        chosen = random.Random(7).sample(program.busy(), 30)
        code = lambda f: binutils.instructions(shutil.which("fzf"), f"--start-address={f:#x}", f"--stop-address={ends.get(f, f):#x}")
        sites = [a for f in sorted(chosen) for a, text in code(f) if not text.startswith(("int3", "nop"))]
        sites = random.Random(8).sample(sites, min(400, len(sites)))
        self.same_output(self.search(), [w for a in sites for w in ("--probe", f"fzf!{a:#x}")], self.load(30000 // SHARE))

    @needs("fzf")
    def test_go_backtraces(self):
        program, probes = self.go_probes("backtrace:64")
        grow = f"fzf!{program.functions['runtime.newstack']:#x}"
        with open(self.load(2000)) as f:
            plain = subprocess.run(self.search(), stdin=f, capture_output=True, text=True)
            f.seek(0)
            r = self.dynprobe(*probes, "--probe", grow, "--", *self.search(), stdin=f, timeout=300)
        self.assertEqual(r.out, plain.stdout, str(r)[:3000])
        self.assertTrue(next(p for p in r.summary["probes"] if p["spec"] == grow)["hits"], "no stack was grown: the test tests nothing")
        chains = [e["fields"]["backtrace"] for e in r.events if e["fields"]]
        outermost = collections.Counter(program.function_at(int(chain[-1]["addr"], 16)) for chain in chains)
        self.assertLessEqual(set(outermost), STACK_ENDS, outermost)
        self.assertGreater(outermost["runtime.goexit"], 10 * (outermost.total() - outermost["runtime.goexit"]))

    def build_go(self, *args, name="stress"):
        program, source = self.path(name), os.path.join(harness.ROOT, "tests", "e2e", "golang", name + ".go")
        subprocess.run(["go", "build", *args, "-o", program, source], check=True, capture_output=True, env={**os.environ, "HOME": self.dir}, timeout=300)
        return program

    @needs("gcc")
    def test_runtime_of_its_own_that_ld_so_starts(self):
        """Threads cannot be known by what ld.so left at fs: all of them would be one, and share a ring without a lock."""
        program = harness.compiled(self.path("own"), "gcc", "-O1", "-nostdlib", "-pie", "-fPIE", "-Wl,-dynamic-linker,/lib64/ld-linux-x86-64.so.2", text=OWN_RUNTIME)
        r = self.dynprobe("--function", "work", "-t", "tid", "--", program)
        self.assert_ok(r)
        self.assertEqual({(e["tid"], e["fields"]["tid"]) for e in r.events}, {(e["pid"], e["pid"]) for e in r.events}, str(r.events))
        self.assertEqual(len(r.events), 3)

    def test_durations_of_goroutines_that_change_threads_and_stacks(self):
        """Each call that returns has its own entry, whichever thread and stack it returns on; those that were abandoned have none."""
        program = harness.target_path("goroutines")
        for what in (("-t", "duration"), ("--sum", "duration", "--min", "duration")):
            r = self.dynprobe("--return", "work", "--return", "abandon", *what, "--", program, 1)
            self.assert_ok(r)
            returned, abandoned, moved = map(int, re.search(r"returned (\d+) abandoned (\d+) moved (\d+)\nRESULT OK", r.out).groups())
            lost, hits = r.summary["lost"], {p["name"]: p["hits"] for p in r.summary["probes"]}
            self.assertEqual((hits, lost["unpaired"]), ({"work_return": returned, "abandon_return": 0}, 0), str(r.summary))
            if what[0] == "-t":
                self.assertEqual(len(r.events) + lost["full"], returned)
                least = min(e["fields"]["duration"] for e in r.events)
            else:
                least = next(o["min"] for o in r.answers if o["final"] and o["probe"] == "work_return")
            self.assertGreaterEqual(least, 990000, "a call lasts 1 ms: this is the end of one and the start of another")

    def test_durations_of_goroutines_of_a_running_process(self):
        t = self.target("goroutines")
        p = self.start_attached(t, "--return", "work", "-t", "duration")
        self.await_events(p, "work_return", 100)
        r = self.finish(p)
        self.assert_ok(r)
        self.assertLess(r.summary["lost"]["unpaired"], 24 + 0.05 * r.summary["hits"], "more than the calls that had begun")
        self.assertGreaterEqual(min(e["fields"]["duration"] for e in r.events), 990000)
        self.assert_clean(t.pid)
        self.assert_result_ok(t)

    @needs("gcc")
    def test_DP_NO_VALUE_for_goroutines_that_are_not_found(self):
        source = os.path.join(harness.ROOT, "tests", "targets", "goroutines.c")
        more = self.written("more.c", "__thread long more[3] = {1};\n")
        program = harness.compiled(self.path("own"), "gcc", "-D_GNU_SOURCE", "-O2", "-pthread", source, more)
        for what in (("--return", "work", "-t", "duration"), ("--function", "work", "-t", "goid")):
            r = self.dynprobe(*what, "--", program, 1, json_events=False)
            self.assert_refused(r, "DP-NO-VALUE", "work", "thread-local")

    def test_DP_NO_VALUE_for_goid_without_the_runtimes_types(self):
        r = self.dynprobe("--function", "work", "-t", "goid", "--", harness.target_path("goroutines"), 1, json_events=False)
        self.assert_refused(r, "DP-NO-VALUE", "goroutine's number")
        r = self.dynprobe("--function", "foo", "-t", "goid", "--", harness.target_path("jit"), json_events=False)
        self.assert_refused(r, "DP-NO-VARIABLE", "goid")

    def test_DP_NO_DEBUG_INFO_for_goid(self):
        program = self.path("stripped")
        subprocess.run(["strip", "--strip-debug", "-o", program, harness.target_path("goroutines")], check=True)
        r = self.dynprobe("--function", "work", "-t", "goid", "--", program, 1, json_events=False)
        self.assert_refused(r, "DP-NO-DEBUG-INFO", "stripped")

    @harness.long_form
    @needs("go")
    def test_go_arguments_and_numbers_of_goroutines(self):
        for mode in ("exe", "pie"):
            program = self.build_go(f"-buildmode={mode}", name="arguments")
            probes = [w for f in ("numbers", "lists", "pointers", "who") for w in ("--function", "main." + f, "-t", "args")]
            r = self.dynprobe(*probes, "-t", "goid", "--", program)
            self.assert_ok(r)
            read = lambda k, v: v if k == "s" else harness.number(v)
            fields = {e["probe"]: {k: read(k, v) for k, v in e["fields"].items()} for e in r.events if e["probe"] != "main_who"}
            self.assertEqual(fields["main_numbers"], {"a": -1, "b": -3, "c": 200, "f": 2.5, "ok": True})
            self.assertEqual({k: fields["main_lists"][k] for k in ("s", "t_len", "t_cap")}, {"s": "hello", "t_len": 3, "t_cap": 3})
            self.assertEqual({k: v for k, v in fields["main_pointers"].items() if k.startswith("q_")}, {"q_x": 5, "q_y": 6})
            self.assertNotIn("sum", fields["main_pointers"], "a result is no argument")
            who = [(e["fields"]["id"], e["fields"]["goid"]) for e in r.events if e["probe"] == "main_who"]
            self.assertEqual((len(who), len(set(who)), [w for w in who if w[0] != w[1]]), (1000, 50, []))
            more = ("-t", "str(s.str,5)", "-t", "t.array[0:3]", "-t", "m->count")
            r = self.dynprobe("--function", "main.lists", *more, "--when", "s.len == 5", "--function", "main.pointers", "-t", "p->y", "--", program)
            values = {k: v for e in r.events for k, v in e["fields"].items()}
            self.assertEqual(list(values.values()), ["hello...", 10, 20, 30, 2, 4], values)

    @harness.long_form
    @needs("go")
    def test_go_durations_while_stacks_grow_and_goroutines_panic(self):
        for mode in ("exe", "pie"):
            program = self.build_go(f"-buildmode={mode}")
            probes = [w for f in ("main.grow", "main.wander", "runtime.mallocgc") for w in ("--return", f)]
            r = self.dynprobe(*probes, "--min", "duration", "--", program, "30")
            self.assertIn((r.status, r.out), ((0, "bad 0\n"), (121, "bad 0\n")), r.err[-2000:])  # 121: a ret without room for a jump
            hits = {p["name"]: p["hits"] for p in r.summary["probes"]}
            self.assertGreater(hits["main_wander_return"], 1000)
            self.assertLess(r.summary["lost"]["total"], 0.001 * sum(hits.values()), str(r.summary))
            least = next(o["min"] for o in r.answers if o["final"] and o["probe"] == "main_wander_return")
            self.assertGreaterEqual(least, 990000, "it sleeps for 1 ms")

    @harness.long_form
    @needs("go")
    def test_go_stacks_that_grow_panic_and_are_scanned(self):
        program = self.build_go()
        probes = [w for f in ("main.grow", "runtime.newstack", "runtime.mallocgc") for w in ("--function", f, "-t", "backtrace:100")]
        for _ in range(20):
            r = self.dynprobe(*probes, "--return", "main.grow", "-t", "$rax", "--", program)
            self.assertEqual((r.status, r.out), (0, "bad 0\n"), r.err[-2000:])
            names = {e["fields"]["backtrace"][-1].get("symbol", "").split("+")[0].removesuffix(".abi0") for e in r.events if e["fields"].get("backtrace")}
            self.assertIn("runtime.goexit", names)

    @harness.long_form
    @needs("go")
    def test_go_counts_each_depth_of_a_recursion(self):
        """For a minute, as a PIE and not, with stacks that grow, panics, preemption by signals and the collector all the time."""
        for mode in ("exe", "pie"):
            program = self.build_go(f"-buildmode={mode}")
            r = self.dynprobe("--function", "main.grow", "--function", "runtime.mallocgc", "--function", "main.spin", "--count", "--by", "backtrace", "--", program, "30")
            self.assertEqual((r.status, r.out), (0, "bad 0\n"), r.err[-2000:])
            hits = collections.Counter()
            for row in (o for o in r.answers if o["final"] and o["probe"] == "main_grow"):
                depth = sum(frame["symbol"].startswith("main.grow+") for frame in row["stack"])
                self.assertEqual(len(row["stack"]), min(32, depth + 2), row)
                hits[depth] += row["hits"]
            for depth in range(2, 31):
                self.assertLess(0.95 * hits[depth - 1] * (61 - depth) / (62 - depth), hits[depth], (mode, hits))

    @needs("fzf")
    def test_go_backtraces_as_keys(self):
        """They are found on the unwinder's own stack: goroutines have no room for it."""
        _, probes = self.go_probes()
        with open(self.load(2000)) as f:
            plain = subprocess.run(self.search(), stdin=f, capture_output=True, text=True)
            f.seek(0)
            r = self.dynprobe(*probes, "--count", "--by", "backtrace", "--", *self.search(), stdin=f, timeout=300)
        self.assertEqual((r.status, r.out), (0, plain.stdout), str(r)[:3000])
        rows = [o for o in r.answers if o["final"]]
        self.assertEqual(sum(row["hits"] for row in rows), sum(p["hits"] for p in r.summary["probes"]))
        lost = r.summary["lost"]
        self.assertEqual(lost["total"], lost["crowded"], str(lost))
        whole = [row["stack"][-1]["symbol"].split("+")[0] for row in rows if len(row["stack"]) < 32]
        self.assertGreater(len(whole), 100)
        self.assertLessEqual({name.removesuffix(".abi0") for name in whole}, STACK_ENDS)

    @needs("rg")
    def test_rust(self):
        listed = harness.tool("list", shutil.which("rg")).stdout
        entries = re.findall(r"(rg!0x[0-9a-f]+)$", listed, re.M)
        for context, seed in (("regs", 1), ("backtrace:16", 2)) if harness.FULL else (("backtrace:16", 2),):
            specs = random.Random(seed).sample(entries, 400)
            probes = [w for s in specs for w in ("--function", s, "-t", context)]
            self.same_output(["rg", "-n", "--no-mmap", "qu[a-z]+k.*fox 0[.]1[0-9]", "-"], probes, self.load(40000 // SHARE))


if __name__ == "__main__":
    harness.main()
