# SPDX-License-Identifier: MIT
"""Tests dynprobe snapshot: its contents are true, and the program notices nothing, also if dynprobe is killed."""

import json
import os
import random
import re
import subprocess
import time

from harness import DYNPROBE, FULL, OWN_FAILURE, Case, Result, children, compiled, environment, main, maps, number, shown, status, tool, wait_until

MODES = ("stop", "quick", "fork")


class Snapshot(Case):
    def take(self, *args, timeout=300, **popen):
        """Runs dynprobe snapshot; .path is the file that it names."""
        self.count += 1
        place = () if "-o" in args else ("-o", self.path(f"snapshot-{self.count}.dps"))
        p = tool("snapshot", *args, *place, timeout=timeout, **popen)
        r = Result(p.returncode, p.stdout, p.stderr)
        r.path = r.out.strip()
        return r

    def read(self, r):
        """What is in the file."""
        self.assert_ok(r)
        return shown(r.path)

    def crowd(self, threads=6, depth=5, mib=0):
        t = self.target("crowd", threads, depth, mib)
        t.tids = {int(tid): int(n) for n, tid in re.findall(r"THREAD (\d+) (\d+)", t.output())}
        self.assertEqual(len(t.tids), threads)
        return t

    def assert_truth(self, target, snapshot, depth=5):
        """Registers, frames and variables of every thread of a crowd are correct."""
        found = {t["tid"]: t for t in snapshot["threads"]}
        self.assertEqual(set(found), set(target.tids) | {target.pid})
        for tid, n in target.tids.items():
            regs = {k: number(v) for k, v in found[tid]["registers"].items()}
            self.assertEqual([regs[r] for r in ("rbx", "r12", "r13", "r14", "r15")], [n + i * 0x10000 for i in range(1, 6)])
            self.assertEqual(found[tid]["name"], f"crowd-{n}")
            symbols = [f.get("symbol") for f in found[tid]["frames"]]
            self.assertEqual(symbols[: depth + 3], ["wait_marked"] + ["descend"] * (depth + 1) + ["run"], symbols)
            self.assertTrue(found[tid]["syscall_text"].startswith("read("), found[tid])
            self.assertIn(f'"{n}/3"', json.dumps(found[tid]["frames"]))

    def assert_unharmed(self, target):
        self.assertEqual(status(target.pid, "TracerPid"), "0")
        self.assertEqual([m.path for m in maps(target.pid) if m.is_ours], [])
        self.assert_result_ok(target)

    def test_every_thread_with_its_registers_frames_and_variables(self):
        t = self.crowd()
        for mode in MODES:
            with self.subTest(mode=mode):
                r = self.take(t.pid, "--mode", mode, "--kv", "ticket:4711,who:me", "--classifier", "mine")
                s = self.read(r)
                self.assertEqual(s["mode"], mode, r.err)
                self.assert_truth(t, s)
                self.assertRegex(r.err, r"stopped for \d+\.\d\d ms")
                self.assertIn("mine", json.dumps(s["classifiers"]))
                self.assertIn("4711", json.dumps(s["attributes"]))
                self.assertEqual(number(s["attributes"]["snapshot.pause.us"]), number(s["pause_ns"]) // 1000)
                self.assertNotIn("PATH=", json.dumps(s), "the environment may contain secrets")
                self.assertEqual(s["argv"][1:], ["6", "5", "0"])
                self.assertEqual(children(t.pid), [])
        self.assert_unharmed(t)

    def test_kernel_stacks_are_of_the_call_that_is_shown(self):
        """Kernel stacks are read before the stop; for a thread that has continued since, they are omitted."""
        t, seen = self.target("turns"), 0
        for _ in range(12 if FULL else 4):
            for thread in self.read(self.take(t.pid))["threads"]:
                frames, call = " ".join(f["symbol"] for f in thread.get("kernel_frames") or ()), thread.get("syscall_text") or ""
                if frames:
                    seen += 1
                    self.assertIn("nanosleep" if "nanosleep" in call else "poll" if "poll" in call else "futex", frames, call)
        if os.geteuid() == 0:
            self.assertGreater(seen, 0)
        self.assert_unharmed(t)

    def test_only_the_threads_that_were_asked_for(self):
        t = self.crowd()
        tid = next(iter(t.tids))
        s = self.read(self.take(t.pid, "--thread", tid, "--fault-thread", tid, "--environ"))
        self.assertEqual([x["tid"] for x in s["threads"]], [tid])
        self.assertTrue(s["threads"][0]["is_fault"])
        self.assertIn("PATH=", json.dumps(s["environ"]))

    def test_what_was_asked_for_and_is_not_there_is_said(self):
        r = self.take(self.crowd().pid, "--thread", 1, "--global", "no_such_global", "--global", "no_such_*")
        self.assert_ok(r)
        self.assertIn("the process has no thread 1", r.err)
        self.assertIn("static variable 'no_such_global'", r.err)

    def test_a_global_of_a_certain_file(self):
        t = self.crowd()
        for name in "crowd.c::wait_pipe", "targets/crowd.c::wait_pipe", "*.c::wait_pipe", "crowd!crowd.c::wait_p*":
            with self.subTest(name):
                self.assertEqual([g["name"] for g in self.read(self.take(t.pid, "--global", name))["globals"]], ["wait_pipe"])
        for name in "rowd.c::wait_pipe", "other.c::*", "crowd.c::wait":
            self.assertIn(f"static variable '{name}'", self.take(t.pid, "--global", name).err)

    def test_a_global_that_a_header_declares(self):
        """Its definition refers to the declaration for name and type."""
        text = ('#include <stdio.h>\n#include <unistd.h>\nextern struct point { int x, y; } corner; extern int counts[2];\n'
                'struct point corner = {3, 4}; int counts[2] = {5, 6};\n'
                'int main(void) { puts("READY"); fflush(stdout); return pause() + corner.x + counts[0]; }\n')
        t = self.target(compiled(self.path("declares"), "gcc", "-g", text=text))
        snapshot = self.read(self.take(t.pid, "--global", "corner", "--global", "count*"))
        told = {g["name"]: [v["value"] for v in g["children"]] for g in snapshot["globals"]}
        self.assertEqual(told, {"corner": ["3", "4"], "counts": ["5", "6"]})

    def test_a_tool_that_is_killed_leaves_the_program_as_it_was(self):
        for mode in MODES:
            t = self.crowd(20, 10, 32)
            for _ in range(4):
                p = subprocess.Popen([DYNPROBE, "snapshot", str(t.pid), "--mode", mode, "-q", "-o", self.path("killed.dps")], env=environment(), stdout=subprocess.DEVNULL)
                time.sleep(random.random() * 0.15)  # any moment
                p.kill()
                p.wait()
                # a remaining copy has no memory and does not run
                wait_until(lambda: all((status(c, "State") or "Z")[0] == "Z" for c in children(t.pid)), what="the copy to end")
            self.read(self.take(t.pid))
            with self.subTest(mode=mode):
                self.assert_unharmed(t)

    def test_what_the_look_before_has_not_found_is_read_by_another_short_hold(self):
        t = self.target("fresh")
        for _ in range(40):
            a = self.read(self.take(t.pid))["attributes"]
            if number(a["snapshot.holds"]) > 1:
                break
        self.assertGreater(number(a["snapshot.holds"]), 1, "all work was done while the threads were stopped")
        self.assertGreater(number(a["snapshot.held.us"]), number(a["snapshot.pause.us"]), "the longest of several must not be their sum")
        self.assertGreaterEqual(number(a["snapshot.holds.vain"]), 0)

    def test_no_call_of_the_program_is_interrupted(self):
        t = self.target("eintr", 0)
        for mode in MODES:
            self.assert_ok(self.take(t.pid, "--mode", mode))
        self.assert_unharmed(t)

    def test_a_program_under_a_load_of_signals(self):
        t = self.target("sigstorm")
        for mode in MODES:
            self.assert_ok(self.take(t.pid, "--mode", mode))
        self.assert_unharmed(t)

    def test_a_thread_that_waits_for_its_vfork_child_DP_VFORK(self):
        t = self.target("vforker", 20)
        self.assert_ok(self.take(t.pid))
        self.assert_result_ok(t)
        stuck = self.target("vforker", 60000)
        self.assert_refused(self.take(stuck.pid), "DP-VFORK", stuck.pid)

    def test_a_process_whose_first_thread_has_ended(self):
        t = self.target("odd", "leaderless")
        s = self.read(self.take(t.pid))
        self.assertNotIn(t.pid, [x["tid"] for x in s["threads"]])

    def test_a_filter_forbids_the_copy_and_no_more(self):
        t = self.target("caged")
        r = self.take(t.pid, "--mode", "fork")
        self.assertEqual(self.read(r)["mode"], "stop")
        self.assertIn("mode stop instead of fork", r.err)
        self.assert_unharmed(t)

    def test_an_unprivileged_user_takes_one_of_a_program_of_his(self):
        if os.geteuid():
            return  # then all others did as well
        os.chmod(self.dir, 0o777)
        user = {"user": 65534, "group": 65534, "extra_groups": []}
        own = self.target("crowd", 3, 5, 0, **user)
        foreign = self.crowd(3)
        own.tids = {int(tid): int(n) for n, tid in re.findall(r"THREAD (\d+) (\d+)", own.output())}
        for mode in MODES:
            r = self.take(own.pid, "--mode", mode, **user)
            self.assert_truth(own, self.read(r))
        self.assert_refused(self.take(foreign.pid, **user), "DP-PERMISSION")

    def test_a_core_file_says_what_the_process_said(self):
        t = self.crowd(4)
        live = self.read(self.take(t.pid))
        s = self.read(self.take("--core", self.core(t.pid), t.path))
        self.assertEqual(s["mode"], "core")
        of = lambda snapshot: {x["tid"]: (x["registers"], [(f["pc"], f.get("symbol"), f.get("line"), f["variables"]) for f in x["frames"]]) for x in snapshot["threads"] if x["tid"] in t.tids}
        self.assertEqual(of(s), of(live))

    def test_damaged_core_files_DP_BAD_CORE(self):
        t = self.crowd(2)
        core = self.core(t.pid)
        self.assert_refused(self.take("--core", core, "/bin/sh"), "DP-BAD-CORE", "is not the program")
        with open(core, "r+b") as f:
            f.truncate(100)
        self.assert_refused(self.take("--core", core), "DP-BAD-CORE", "truncated")
        self.assert_refused(self.take("--core", t.path), "DP-BAD-CORE", "another type")
        self.assert_refused(self.take("--core", "/nowhere"), "DP-BAD-CORE")

    def test_what_is_not_understood_DP_USAGE(self):
        for args in ([], ["--core", "x", "y", "z"], ["--mode", "slow", "1"], ["--kv", "nothing", "1"], ["--max-depth", "65", "1"], ["--core", "x", "--pid", "1"], ["--thread", "0", "1"]):
            self.assert_refused(self.take(*args), "DP-USAGE")
        self.assert_refused(self.take(2**22 + 1), "DP-NO-PROCESS")

    def test_a_place_that_cannot_be_written_is_said_before_the_process_is_looked_at_DP_OUTPUT(self):
        gone = self.target("crowd", 1, 2, 0)
        self.assert_result_ok(gone)
        for path in (self.path("no-such-directory/x.dps"), self.dir):
            r = self.take(gone.pid, "-o", path)
            self.assertEqual(r.status, OWN_FAILURE)
            self.assertIn("DP-OUTPUT", r.err)
        self.assertEqual(tool("snapshot", gone.pid, cwd="/proc").stderr.count("DP-OUTPUT"), 1)
        self.assertEqual([n for n in os.listdir(self.dir) if ".dps" in n or "dynprobe" in n], [], "the failed attempt must leave no file")

    def test_names_that_the_program_chose_do_not_turn_or_break_our_lines(self):
        t = self.crowd(1, 2)
        r = self.take(t.pid, "--application", "a\u202eb\u2066c\x1b[31md\ndynprobe: e")
        self.assert_ok(r)
        self.assertIn("(a???b???c?[31md?dynprobe: e)", r.err)
        self.assert_unharmed(t)

    def test_no_frame_of_a_probe_shows(self):
        """Threads in the stubs of a recording dynprobe appear at the program's own address."""
        t = self.target("spin")
        p = self.start_attached(t, "--function", "foo", "-t", "backtrace")
        for mode in MODES:
            for _ in range(2):
                s = self.read(self.take(t.pid, "--mode", mode))
                ours = [(m.start, m.end) for m in maps(t.pid) if "memfd:dynprobe" in m.path]
                for f in (f for x in s["threads"] for f in x["frames"]):
                    self.assertFalse([o for o in ours if o[0] <= number(f["pc"]) < o[1]], f)
        self.assert_ok(self.finish(p))
        self.assert_result_ok(t)


if __name__ == "__main__":
    main()
