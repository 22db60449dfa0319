# SPDX-License-Identifier: MIT
"""Tests -t backtrace: frames from the site to the thread's start, through libc and code without frame pointers."""

import re

import binutils
import harness
from harness import Case

FRAME = re.compile(r"^(\S+\+0x[0-9a-f]+/0x[0-9a-f]+ \[\S+\]|\[\S+\]\+0x[0-9a-f]+)$")


def names(frames):
    return [f.get("symbol", "?").split("+")[0] for f in frames]


class Backtrace(Case):
    def frames(self, target, function, context="backtrace", n=3):
        r = self.attach(target, "--function", function, "-t", context, "-n", n)
        self.assert_ok(r)
        self.assert_hits(r, n)
        return [e["fields"]["backtrace"] for e in r.events]

    def test_down_to_start(self):
        t = self.target("spin", 0, 500)
        for frames in self.frames(t, "foo"):
            self.assertEqual(names(frames)[:3], ["foo", "caller", "main"])
            self.assertEqual(names(frames)[-1], "_start")
            for f in frames:
                self.assertRegex(f["symbol"], FRAME)
        self.assert_result_ok(t)

    def test_through_libc_and_without_frame_pointers(self):
        t = self.target("deep", 10)
        for frames in self.frames(t, "leaf"):
            got = names(frames)
            self.assertEqual(got[:11], ["leaf"] + ["descend"] * 10)
            self.assertEqual(got[11], "compare")
            self.assertIn("main", got)
            self.assertTrue(any("libc" in f["symbol"] for f in frames[12:]), frames)
            self.assertEqual(got[-1], "_start")
        self.assert_result_ok(t)

    def test_depth_is_bounded_as_asked(self):
        t = self.target("deep", 10)
        for frames in self.frames(t, "leaf", "backtrace:5"):
            self.assertEqual(names(frames), ["leaf"] + ["descend"] * 4)

    def test_what_is_cut_says_so(self):
        """A stack that is cut must not look like one that is complete."""
        t = self.target("deep", 40)
        r = self.dynprobe("--pid", t.pid, "--function", "leaf", "-t", "backtrace:5", "-n", 3, json_events=False)
        self.assertEqual(len(re.findall(r"#4  descend.*\n +#5  \.\.\.\n", r.out)), 3, r)
        r = self.dynprobe("--pid", t.pid, "--function", "leaf", "--count", "--by", "backtrace", "--folded", "-d", 0.3, json_events=False)
        self.assertRegex(r.out, r"(?m)^\.\.\.;descend;", r)
        t = self.target("spin", 0, 500)
        r = self.dynprobe("--pid", t.pid, "--function", "foo", "--count", "--by", "backtrace", "--folded", "-d", 0.3, json_events=False)
        self.assertRegex(r.out, r"(?m)^_start;.*;main;caller;foo [0-9]+", r)
        self.assertNotIn("...", r.out)

    def test_deeper_than_a_record_holds(self):
        t = self.target("deep", 2000)
        for frames in self.frames(t, "leaf", "backtrace:100"):
            self.assertEqual(names(frames), ["leaf"] + ["descend"] * 99)
        self.assert_result_ok(t)

    def test_of_threads_down_to_clone(self):
        t = self.target("threads", 8)
        for frames in self.frames(t, "foo", n=20):
            self.assertTrue(any("clone" in f.get("symbol", "") for f in frames[-1:]), frames)
        self.assert_result_ok(t)

    def test_from_a_signal_handler_through_its_frame(self):
        t = self.target("sigstorm")
        r = self.attach(t, "--function", "foo", "-t", "backtrace:64", "--when", "edi == 14 || edi == 34", "-n", 50)
        through = [names(e["fields"]["backtrace"]) for e in r.events if any(x in ("on_alarm", "on_realtime") for x in names(e["fields"]["backtrace"]))]
        self.assertTrue(through, "no hit in a signal handler was recorded")
        self.assertTrue(any(n[-1] in ("_start", "clone3", "clone", "__clone3", "__clone") for n in through), through[0])
        self.assert_result_ok(t)

    def test_in_the_middle_of_a_function(self):
        """After the prologue the stack pointer differs: the walk must use the row of that very instruction."""
        t = self.target("deep", 3)
        offsets = binutils.offsets(harness.target_path("deep"), "descend")
        placed = 0
        for offset in offsets[1:6]:
            r = self.attach(t, "--probe", f"descend+{offset:#x}", "-t", "backtrace", "-n", 2)
            if r.status == harness.OWN_FAILURE:
                self.assertRegex(r.err, r"DP-(TOO-SHORT|UNRELOCATABLE|NO-SPACE)", str(r))
                continue
            placed += 1
            self.assert_ok(r)
            self.assert_hits(r, 2)
            for e in r.events:
                got = names(e["fields"]["backtrace"])
                self.assertEqual(got[0], "descend")
                self.assertEqual(got[-1], "_start", got)
        self.assertGreater(placed, 0)
        self.assert_result_ok(t)

    def test_in_functions_without_tables(self):
        """Hand-written code without a table: the walk analyses its instructions, and is right at each of them."""
        t = self.target("asm_forms")
        for function, placed in (("form_short_jcc", 1), ("form_cmp_rip_imm", 2), ("form_rep_movsb", 4)):
            with self.subTest(function):
                r = self.attach(t, "--probe", f"{function}:*", "-t", "backtrace", "-n", 40)
                self.assertGreaterEqual(len({e["fields"]["backtrace"][0]["addr"] for e in r.events}), placed, r.err)
                for e in r.events:
                    got = names(e["fields"]["backtrace"])
                    self.assertEqual((got[:3], got[-1]), ([function, "with_registers", "main"], "_start"))
        self.assert_result_ok(t)

    def test_in_text_each_frame_has_a_line(self):
        t = self.target("spin", 0, 500)
        r = self.attach(t, "--function", "foo", "-t", "backtrace", "-n", 2, json_events=False)
        self.assertRegex(r.out, r"(?m)^\s+#1 +caller\+0x[0-9a-f]+/0x[0-9a-f]+ \[spin\] spin\.c:\d+$")

    def test_static_and_musl(self):
        for name in ("spin-static", "spin-static-pie", "spin-nopie", "spin-musl", "spin-musl-static"):
            with self.subTest(name):
                t = self.target(name, 0, 500)
                for frames in self.frames(t, "foo"):
                    self.assertEqual(names(frames)[:3], ["foo", "caller", "main"])
                    if name == "spin-musl-static":  # musl has no tables: its code is analysed
                        self.assertEqual(names(frames)[-1], "_start")
                self.assert_result_ok(t)


if __name__ == "__main__":
    harness.main()
