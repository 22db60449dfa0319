# SPDX-License-Identifier: MIT
"""--profile: as many samples as CPU time was used, of the right threads and functions, without a touch to the process."""

import os
import re
import subprocess
import sys
import unittest

import harness
from harness import Case, target_path

HZ = 500


def refused():
    p = subprocess.run([harness.DYNPROBE, "--profile", "10", "--no-record", "-q", "--", "/bin/true"], capture_output=True, text=True)
    return "DP-PERF" in p.stderr


def answers(r):
    return [x for x in r.lines if x["type"] == "answer"]


def functions(frames):
    return [f.get("symbol", "").split("+")[0] for f in frames]


@unittest.skipIf(refused(), "perf events are refused here")
class Profile(Case):
    def summary(self, r):
        return next(x for x in r.lines if x["type"] == "profile")

    def test_as_many_samples_as_cpu_time(self):
        t = self.target("spin")
        ticks = t.cpu_ticks()
        r = self.attach(t, "--profile", HZ, "-d", 1)
        used = (t.cpu_ticks() - ticks) / os.sysconf("SC_CLK_TCK")
        self.assert_ok(r)
        s = self.summary(r)
        # cpu_ticks() was asked a little before and behind, and counts in hundredths.
        self.assertLessEqual(s["samples"], (used + 0.05) * HZ)
        self.assertGreater(s["samples"] + s["lost"], used * HZ * 0.5 - 25)
        self.assertEqual(len(r.events), s["samples"])
        self.assert_result_ok(t)

    def test_nothing_in_the_process_changes_and_another_tracer_may_be_there(self):
        t = self.target("spin")
        before = harness.State(t.pid)
        p = self.start("--pid", t.pid, "--profile", HZ)
        harness.wait_until(lambda: p.poll() is not None or os.path.exists(p.events), what="the events' file")
        self.await_events(p, "profile", 20)
        self.assertEqual(before.differences(harness.State(t.pid)), {})
        self.assertEqual(harness.status(t.pid, "TracerPid"), "0")
        self.assert_ok(self.finish(p))
        self.assert_clean(t.pid, before)
        self.assert_result_ok(t)

    def test_stacks_lead_from_the_start_to_the_work(self):
        t = self.target("deep")
        r = self.attach(t, "--profile", HZ, "--by", "backtrace", "-d", 0.5)
        self.assert_ok(r)
        rows = answers(r)
        self.assertEqual(sum(row["hits"] for row in rows), self.summary(r)["samples"])
        whole = sum(row["hits"] for row in rows if functions(row["stack"])[-1] in ("_start", "clone3", "__clone3", "clone"))
        self.assertGreaterEqual(whole, 0.98 * self.summary(r)["samples"] - self.summary(r)["cut"] - 2, [functions(row["stack"])[-3:] for row in rows])
        self.assertTrue(any("main" in functions(row["stack"]) for row in rows), [functions(row["stack"]) for row in rows][:5])

    def test_threads_that_come_later_are_sampled(self):
        script = ("import sys, threading, time\nprint('READY', flush=True)\n"
                  "def work():\n while time.thread_time() < 0.15: sum(range(500))\n"
                  "time.sleep(1)\nfor t in [threading.Thread(target=work) for i in range(3)]: t.start()\n")
        t = self.target(sys.executable, "-c", script)
        r = self.attach(t, "--profile", HZ)
        self.assert_ok(r)
        self.assertEqual(self.summary(r)["ended_by"], "target exited")
        self.assertEqual({e["pid"] for e in r.events}, {t.pid})
        late = [e["tid"] for e in r.events if e["tid"] != t.pid]
        self.assertEqual(len(set(late)), 3)
        # Once each, though a thread may have an event of its own besides its maker's.
        self.assertLessEqual(max(late.count(tid) for tid in late), 0.16 * HZ + 10)

    def test_a_command_from_its_start_and_folded(self):
        script = "import time\nend = time.process_time() + 0.4\nwhile time.process_time() < end: sum(range(1000))\n"
        r = self.dynprobe("--profile", HZ, "--folded", "--", "/usr/bin/python3", "-S", "-c", script, json_events=False)
        self.assert_ok(r)
        lines = [line for line in r.err.splitlines() if re.fullmatch(r"\S.* \d+", line) and ";" in line]
        total = sum(int(line.rpartition(" ")[2]) for line in lines)
        said = int(re.search(r"(\d+) samples in", r.err)[1])
        self.assertEqual(total, said)
        self.assertGreater(total, HZ * 0.2)
        stacks = {line.rpartition(" ")[0] for line in lines}
        self.assertEqual(len(stacks), len(lines), "the same functions are one line")
        self.assertTrue(any(s.startswith("_start;") and "PyEval" in s for s in stacks), sorted(stacks)[:5])

    def test_a_command_that_fails(self):
        self.assertEqual(self.dynprobe("--profile", 10, "--", "/nonexistent/command").status, 127)
        self.assertEqual(self.dynprobe("--profile", 10, "--", "/bin/sh", "-c", "exit 3").status, 3)

    def test_so_many_samples_and_no_more(self):
        t = self.target("spin")
        r = self.attach(t, "--profile", HZ, "-n", 7)
        self.assert_ok(r)
        self.assertEqual((len(r.events), self.summary(r)["ended_by"]), (7, "hits"))


class Refused(Case):
    def test_what_it_does_not_go_with(self):
        t = self.target("spin")
        for words in (("--function", "foo"), ("--sink", "lttng"), ("--hist", "rax"), ("--by", "tid"), ("--dry-run",), ("-t", "regs"), ("--when", "rax == 1")):
            self.assert_refused(self.attach(t, "--profile", 10, *words), "DP-USAGE", "exclude each other")
        self.assert_refused(self.attach(t, "--profile", 0), "DP-USAGE")
        self.assert_refused(self.attach(t, "--profile", 1000000), "DP-USAGE", "10000")

    @harness.needs_root
    def test_refused_by_the_kernel_says_why_and_what_to_do(self):
        level = "/proc/sys/kernel/perf_event_paranoid"
        # Another user's process: refused at every level of that setting.
        t = self.target("spin")
        os.chmod(self.dir, 0o755)
        script = f"import os; os.setgroups([]); os.setgid(65534); os.setuid(65534); os.execv({harness.DYNPROBE!r}, [{harness.DYNPROBE!r}, '--profile', '10', '--no-record', '--pid', '{t.pid}'])"
        p = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=60, cwd="/")
        self.assertEqual(p.returncode, harness.OWN_FAILURE, p.stderr)
        self.assertIn("DP-PERF", p.stderr)
        if os.path.exists(level):
            self.assertIn("kernel.perf_event_paranoid is " + open(level).read().strip(), p.stderr)


if __name__ == "__main__":
    harness.main()
