# SPDX-License-Identifier: MIT
"""Tests backtraces through code that the program generates: names from its perf map, frames by frame pointers, down to main."""

import os
import re
import signal
import unittest

import harness
import test_profile
from harness import Case

MARK = " (by frame pointer)"


def names(frames):
    return [f.get("symbol", f["addr"]).split("+")[0] for f in frames]


class Generated(Case):
    def jit(self, *args):
        t = self.target("jit", *args)
        self.addCleanup(lambda: os.path.lexists(self.map(t)) and os.remove(self.map(t)))
        return t

    def map(self, t):
        return f"/tmp/perf-{t.pid}.map"

    def assert_down_to_main(self, t, frames, names_known=True):
        got = names(frames)
        self.assertEqual((got[0], got[3:5], got[-1]), ("foo", ["round_of", "main"], "_start"), frames)
        if names_known:
            self.assertEqual(got[1:3], ["jit_inner", "jit_outer a;b (x)"])
            self.assertEqual([f["symbol"].split("+")[1] for f in frames[1:3]], [f"0x10/0x15 [perf-{t.pid}.map]", f"0x18/0x1d [perf-{t.pid}.map]"])
        # jit_inner is found by foo's table; its frame pointer leads to jit_outer, and that function's to round_of.
        self.assertEqual([i for i, f in enumerate(frames) if f.get("by_frame_pointer")], [2, 3], frames)

    def test_hits(self):
        t = self.jit()
        r = self.attach(t, "--function", "foo", "-t", "backtrace", "-n", 5)
        self.assert_hits(r, 5)
        for e in r.events:
            self.assert_down_to_main(t, e["fields"]["backtrace"])
        r = self.attach(t, "--function", "foo", "-t", "backtrace", "--no-lines", "-n", 1, json_events=False)
        file = rf"\[perf-{t.pid}.map\]"
        self.assertRegex(r.out, rf"#1  jit_inner\+0x10/0x15 {file}\n +#2  jit_outer a;b \(x\)\+0x18/0x1d {file}{re.escape(MARK)}\n +#3  round_of.*\[jit\]{re.escape(MARK)}\n +#4  main\S+ \[jit\]\n")
        self.assert_result_ok(t)

    def test_code_that_is_generated_meanwhile(self):
        t = self.jit()
        p = self.start_attached(t, "--function", "foo", "-t", "backtrace")
        self.await_events(p)
        t.process.send_signal(signal.SIGUSR1)

        self.await_text(p, "jit_later+")
        r = self.finish(p)
        for e in r.events:
            frames = names(e["fields"]["backtrace"])
            self.assertEqual(frames[-1], "_start")
            self.assertEqual([n for n in frames if n.startswith("0x")], [], "a function without a name")
        self.assert_result_ok(t)

    def test_names_of_a_dump_that_the_process_has_mapped(self):
        t = self.jit(self.dir + "/")
        file = f"jit-{t.pid}.dump"
        p = self.start_attached(t, "--function", "foo", "-t", "backtrace")
        self.await_events(p)
        t.process.send_signal(signal.SIGUSR1)
        self.await_text(p, "jit_later+")
        r = self.finish(p)
        for e in r.events:
            frames = e["fields"]["backtrace"]
            self.assertEqual([n for n in names(frames) if n.startswith("0x")], [], "a function without a name")
            self.assertEqual(frames[1]["symbol"], f"jit_inner+0x10/0x15 [{file}]")
        r = self.attach(t, "--function", "foo", "--count", "--by", "backtrace", "--folded", "-d", 0.3, json_events=False)
        self.assertRegex(r.out, r"(?m)^_start;.*;main;round_of;jit_outer a:b \(x\);jit_inner;foo [0-9]+$")
        self.assert_result_ok(t)

    def test_only_a_dump_that_is_the_mapped_file_is_read(self):
        t = self.jit(self.dir + "/")
        dump = self.path(f"jit-{t.pid}.dump")
        os.rename(dump, dump + ".real")
        os.symlink(dump + ".real", dump)
        self.unnamed(t)
        os.remove(dump)
        with open(dump + ".real", "rb") as f, open(dump, "wb") as to:
            to.write(f.read())
        self.unnamed(t)  # another inode
        os.rename(dump + ".real", dump)
        r = self.attach(t, "--function", "foo", "-t", "backtrace", "-n", 1)
        self.assertEqual(names(r.events[0]["fields"]["backtrace"])[1:3], ["jit_inner", "jit_outer a;b (x)"])
        self.assert_result_ok(t)

    def await_text(self, p, text):
        def seen():
            with open(p.events) as f:
                return p.poll() is not None or text in f.read()
        harness.wait_until(seen, what=f"an event with {text}")

    def test_only_a_plain_file_of_the_programs_user_is_read(self):
        elsewhere = self.path("names")
        t = self.jit(elsewhere)
        os.symlink(elsewhere, self.map(t))
        self.unnamed(t)
        os.remove(self.map(t))
        os.mkfifo(self.map(t))
        self.unnamed(t)
        os.remove(self.map(t))
        with open(elsewhere) as f, open(self.map(t), "w") as to:
            to.write(f.read())
        if os.geteuid() == 0:
            os.chown(self.map(t), 12345, 12345)
            self.unnamed(t)
            os.chown(self.map(t), 0, 0)
        r = self.attach(t, "--function", "foo", "-t", "backtrace", "-n", 1)
        self.assert_down_to_main(t, r.events[0]["fields"]["backtrace"])
        self.assert_result_ok(t)

    def unnamed(self, t):
        r = self.attach(t, "--function", "foo", "-t", "backtrace", "-n", 1)
        self.assert_down_to_main(t, r.events[0]["fields"]["backtrace"], names_known=False)
        self.assertEqual([n[:2] for n in names(r.events[0]["fields"]["backtrace"])[1:3]], ["0x", "0x"])

    def test_counts_by_backtrace(self):
        t = self.jit()
        r = self.attach(t, "--function", "foo", "--count", "--by", "backtrace", "-d", 0.3)
        stack = next(x for x in r.lines if x.get("stack"))["stack"]
        got = [f["symbol"].split("+")[0] for f in stack]
        self.assertEqual((got[:5], got[-1]), (["foo", "jit_inner", "jit_outer a;b (x)", "round_of", "main"], "_start"))
        self.assertEqual([i for i, f in enumerate(stack) if f.get("by_frame_pointer")], [2, 3])
        r = self.attach(t, "--function", "foo", "--count", "--by", "backtrace", "-d", 0.3, json_events=False)
        self.assertIn(f"[perf-{t.pid}.map]{MARK}\n", r.out)
        r = self.attach(t, "--function", "foo", "--count", "--by", "backtrace", "--folded", "-d", 0.3, json_events=False)
        self.assertRegex(r.out, r"(?m)^_start;.*;main;round_of;jit_outer a:b \(x\);jit_inner;foo [0-9]+$")
        self.assert_result_ok(t)

    def test_a_recorded_trace_has_plain_addresses(self):
        t = self.jit()
        self.assert_ok(self.attach(t, "--function", "foo", "-t", "backtrace", "-n", 2, record=self.path("trace")))
        for line in harness.babeltrace(self.path("trace")):
            found = [int(a, 16) for a in re.findall(r"\[\d+\] = (0x[0-9A-F]+)", line)]
            self.assertGreater(len(found), 5, line)
            self.assertLess(max(found), 1 << 47, line)
        self.assert_result_ok(t)

    def test_snapshots(self):
        t = self.jit()
        r = self.attach(t, "--function", "foo", "--snapshot", "--max-pause", "30000", "-n", 1, cwd=self.dir)
        self.assert_ok(r)
        path = next(os.path.join(self.dir, n) for n in os.listdir(self.dir) if n.endswith(".dps"))
        s = harness.shown(path)
        frames = [f for thread in s["threads"] for f in thread["frames"]]
        self.assertEqual([f.get("symbol") for f in frames[:5]], ["foo", "jit_inner", "jit_outer a;b (x)", "round_of", "main"])
        self.assertEqual([i for i, f in enumerate(frames) if f.get("by_frame_pointer")], [2, 3], frames)
        self.assertEqual(frames[1]["object"], f"perf-{t.pid}.map")
        text = harness.tool("show", path, status=0).stdout
        self.assertRegex(text, rf"jit_outer a;b \(x\) \[perf-{t.pid}.map\]{re.escape(MARK)}\n")
        self.assert_result_ok(t)

    def test_snapshots_at_any_instruction(self):
        t = self.jit("", "busy")
        for _ in range(10):
            harness.tool("snapshot", t.pid, "-o", self.path("any.dps"), status=0)
            frames = harness.shown(self.path("any.dps"))["threads"][0]["frames"]
            self.assertEqual(frames[-1].get("symbol"), "_start", frames)
        self.assert_result_ok(t)

    @unittest.skipIf(test_profile.refused(), "perf events are refused here")
    def test_samples(self):
        t = self.jit("", "busy")
        p = self.start("--pid", t.pid, "--profile", 500)
        harness.wait_until(lambda: p.poll() is not None or os.path.exists(p.events), what="the events' file")
        self.await_events(p, "profile", 100)
        t.process.send_signal(signal.SIGUSR1)
        self.await_text(p, "jit_later+")
        r = self.finish(p)
        self.assert_ok(r)
        stacks = [e["fields"]["backtrace"] for e in r.events]
        self.assertEqual([f for f in stacks if names(f)[-1] != "_start"], [], "a walk ended in code that is newer than the tables")
        self.assertEqual([f for f in stacks if any(n.startswith("0x") for n in names(f))], [], "a function without a name")
        through = [names(f) for f in stacks if "jit_outer a;b (x)" in names(f)]
        self.assertTrue(through)
        for got in through:
            outside = got[got.index("jit_outer a;b (x)") + 1:]
            self.assertEqual(outside[:2] if outside[0] == "round_of" else outside[1:3], ["round_of", "main"], got)
        self.assert_result_ok(t)


@harness.needs("node")
class Node(Case):
    SOURCE = """
const fs = require('fs');
function innermost(i) { fs.writeSync(nul, 'x'); return i + 1; }
function around(i) { return innermost(i) + 1; }
const nul = fs.openSync('/dev/null', 'w');
console.log('READY');
for (let i = 0; ; i++) { around(i); if (i % 20 == 0) Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 1); }
"""

    def test_javascript_down_to_main(self):
        """V8 generates code with frame pointers. Its optimizer may inline `innermost`; the interpreter's frames have names of their own."""
        t = self.target(harness.shutil.which("node"), "--perf-basic-prof", "--interpreted-frames-native-stack", self.written("busy.js", self.SOURCE), cwd=self.dir)
        self.addCleanup(lambda: os.path.exists(f"/tmp/perf-{t.pid}.map") and os.remove(f"/tmp/perf-{t.pid}.map"))
        p = self.start_attached(t, "--function", "libc.so.6!write", "-t", "backtrace:100")

        def named():
            with open(p.events) as f:
                return f"[perf-{t.pid}.map]" in f.read()
        harness.wait_until(named, what="a frame of JavaScript with a name")
        r = self.finish(p)
        stacks = [names(e["fields"]["backtrace"]) for e in r.events]
        full = [s for s in stacks if any("busy.js" in n for n in s)]
        self.assertTrue(full, stacks[:1])
        for s in full:
            self.assertEqual(s[-1], "_start", s)
            self.assertIn("__libc_start_call_main", s)


if __name__ == "__main__":
    harness.main()
