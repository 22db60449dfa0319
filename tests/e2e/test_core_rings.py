# SPDX-License-Identifier: MIT
"""Tests attach --dump-ring and record --core: the last events before a crash, read from the program's core file."""

import contextlib
import mmap
import os
import re
import signal
import time

import harness
from cores import CoreCase
from harness import OWN_FAILURE, State, babeltrace, compiled, needs, number

MIB = 1 << 20
CALLS = 1000

FORKING = """
#include <signal.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>
__attribute__((noinline)) int work(int n) { __asm__ volatile("" ::: "memory"); return n; }
int main(void)
{
	sigset_t go;
	int sig;
	sigemptyset(&go);
	sigaddset(&go, SIGUSR1);
	sigprocmask(SIG_BLOCK, &go, NULL);
	write(1, "READY\\n", 6);
	sigwait(&go, &sig);
	for (int i = 0; i < 100; i++)
		work(i);
	if (!fork()) {
		for (int i = 1000; i < 1100; i++)
			work(i);
		abort();
	}
	wait(NULL);
	return 0;
}
"""


class CoreRings(CoreCase):
    def leave(self, t, *args):
        return harness.tool("attach", "--sink", "ring", "--dump-ring", "--pid", t.pid, *args, status=0)

    def crash(self, t, folder):
        """The core file, and when it was made."""
        begin = time.time_ns()
        os.kill(t.pid, signal.SIGUSR1)
        self.assertEqual(t.process.wait(300), -signal.SIGABRT)
        self.span = begin, time.time_ns()
        return self.dumped(folder)

    def crashed(self, *args, calls=CALLS):
        """The core file of a program that has called foo() so many times just before it crashed."""
        self.count += 1
        folder = self.path(f"cores-{self.count}")
        t = self.dumping(folder, "crasher", "abort", calls)
        if args:
            self.leave(t, *args)
        self.let_run(t, steps=20)
        self.pid = t.pid
        return self.crash(t, folder)

    def read(self, core, *args, status=0):
        self.count += 1
        events = self.path(f"events-{self.count}.json")
        p = harness.tool("record", "--core", core, "--no-record", "-f", "json", "-o", events, *args, status=status)
        return harness.Result(p.returncode, p.stdout, p.stderr, events)

    def refused(self, core, *args):
        p = harness.tool("record", "--core", core, "--no-record", *args, status=OWN_FAILURE)
        self.assertEqual(p.stdout, "")
        return p.stderr

    def assert_calls_of_foo(self, events):
        """Each call's argument follows from the one before."""
        calls = [number(e["fields"]["edi"]) for e in events]
        self.assertEqual([(3 * a + 1) & 0xFFFFFFFF for a in calls[:-1]], calls[1:])

    def test_the_last_events_before_a_crash_are_in_the_core(self):
        core = self.crashed("--function", "foo", "-t", "reg:edi", "-t", "backtrace")
        r = self.read(core)
        self.assertGreater(len(r.events), CALLS)
        self.assert_calls_of_foo(r.events)
        self.assertEqual({(e["pid"], e["tid"], e["comm"]) for e in r.events}, {(self.pid, self.pid, "crasher")})
        self.assertEqual(r.events[-1]["fields"]["backtrace"][1]["symbol"].split("+")[0], "main")
        self.assertEqual(r.summary["hits"], len(r.events))
        self.assertEqual((r.summary["lost"]["total"], r.summary["ended_by"]), (0, "core file"))
        times = [e["ts"] for e in r.events]
        self.assertEqual(times, sorted(times))
        for ts in times[-CALLS:]:
            self.assertTrue(self.span[0] <= ts <= self.span[1], (ts, self.span))

    def test_the_events_are_recorded_as_a_trace(self):
        core = self.crashed("--function", "foo", "-t", "reg:edi")
        events, folder = self.read(core).events, self.path("trace")
        p = harness.tool("record", "--core", core, "--record", folder, "-q", status=0)
        self.assertNotIn("Ctrl-C", p.stderr)
        lines = babeltrace(folder)
        self.assertEqual(len(lines), len(events))
        shown = [int(re.search(r"edi = (\w+)", line)[1], 0) for line in lines]
        self.assertEqual(shown, [number(e["fields"]["edi"]) for e in events])

    def test_full_rings_have_the_newest_events_and_count_the_others(self):
        core = self.crashed("--function", "foo", "-t", "reg:edi", "--buffer-size", "16K", calls=20000)
        r = self.read(core)
        self.assertGreater(len(r.events), 100)
        self.assert_calls_of_foo(r.events)
        self.assertGreater(r.summary["lost"]["overwritten"], 10000)
        self.assertEqual(r.summary["hits"], r.summary["recorded"] + r.summary["lost"]["overwritten"])
        self.assertEqual([e["fields"] for e in self.read(core, "-n", 7).events], [e["fields"] for e in r.events[:7]])

    def test_probes_of_several_attaches_are_in_one_order(self):
        folder = self.path("cores")
        t = self.dumping(folder, "crasher", "abort", CALLS)
        self.leave(t, "--function", "foo", "-t", "reg:edi")
        self.leave(t, "--function", "target_sleep_us", "-t", "reg:edi")
        self.leave(t, "--function", "libc.so.6!abort")
        self.let_run(t, steps=20)
        r = self.read(self.crash(t, folder))
        probes = [e["probe"] for e in r.events]
        self.assertEqual(probes[-CALLS - 1 :], ["foo"] * CALLS + ["abort"])
        before = "".join(name[0] for name in probes[: -CALLS - 1])
        self.assertIn("ftftftft", before)
        self.assertNotIn("tt", before.lstrip("t"))
        self.assert_calls_of_foo([e for e in r.events if e["probe"] == "foo"])

    def test_each_thread_has_its_events(self):
        folder = self.path("cores")
        t = self.dumping(folder, "threads", 8)
        self.leave(t, "--function", "foo", "-t", "tid")
        self.let_run(t)
        tids = {int(tid) for tid in os.listdir(f"/proc/{t.pid}/task")}
        os.kill(t.pid, signal.SIGABRT)
        self.assertEqual(t.process.wait(300), -signal.SIGABRT)
        r = self.read(self.dumped(folder))
        recorded = {e["tid"] for e in r.events}
        self.assertGreaterEqual(len(recorded), 4)
        self.assertLessEqual(recorded, tids)
        times = [e["ts"] for e in r.events]
        self.assertEqual(times, sorted(times))

    def test_without_it_a_core_has_no_events_and_record_says_what_to_do_DP_NO_PROBE(self):
        folder = self.path("cores")
        t = self.dumping(folder, "crasher", "abort", CALLS)
        harness.tool("attach", "--sink", "ring", "--pid", t.pid, "--function", "foo", status=0)
        for core, text in ((self.crash(t, folder), "does not include the rings"), (self.crashed(), "no resident probes were in")):
            err = self.refused(core)
            self.assertIn(text, err)
            self.assertIn("attach --dump-ring", err)
            self.assertIn("DP-NO-PROBE", err)

    def test_the_core_is_larger_by_no_more_than_its_rings(self):
        plain, small, usual = (os.path.getsize(self.crashed(*args)) for args in ((), ("--function", "foo", "--buffer-size", "16K"), ("--function", "foo")))
        self.assertLessEqual(small, 1.05 * plain + 6 * MIB)
        self.assertLessEqual(usual, 1.05 * plain + 12 * MIB)

    def test_max_memory_bounds_the_rings_of_many_threads(self):
        folder = self.path("cores")
        t = self.dumping(folder, "threads", 200)
        p = harness.tool("attach", "--dry-run", "--dump-ring", "--pid", t.pid, "--function", "foo", "--max-memory", "4M", "-f", "json", status=0)
        (plan,) = (x for x in harness.objects(p.stdout) if x["type"] == "plan_total")
        self.assertLessEqual(plan["ring_bytes"], 4 * MIB)
        self.assertLessEqual(plan["ring_memory"], plan["ring_bytes"])

    @needs("gcore")
    def test_a_debuggers_core_without_the_rings_is_told_from_one_without_probes_DP_NO_PROBE(self):
        t = self.target("spin", 0, 300)
        self.assertIn("no resident probes were in", self.refused(self.core(t.pid)))
        os.unlink(self.path(f"core.{t.pid}"))
        harness.tool("attach", "--sink", "ring", "--pid", t.pid, "--function", "foo", status=0)
        self.assertIn("does not include the rings", self.refused(self.core(t.pid)))

    def test_a_probe_that_records_more_is_dumped_as_before(self):
        folder = self.path("cores")
        t = self.dumping(folder, "crasher", "abort", CALLS)
        self.leave(t, "--function", "foo", "-t", "reg:edi")
        harness.tool("add-context", "--pid", t.pid, "-e", "foo", "-t", "tid", status=0)
        r = self.read(self.crash(t, folder))
        self.assertGreaterEqual(len(r.events), CALLS)
        self.assertEqual({e["fields"].get("tid") for e in r.events}, {t.pid})
        self.assert_calls_of_foo(r.events)

    @needs("gcore")
    def test_a_core_of_a_program_that_lives_on_leaves_its_rings_alone(self):
        t = self.target("spin", 0, 300)
        before = State(t.pid)
        self.leave(t, "--function", "foo", "-t", "reg:edi")
        self.let_run(t)
        events = self.read(self.core(t.pid)).events
        self.assertGreater(len(events), 50)
        first = self.read_live(t)
        self.assertEqual([e["fields"] for e in events[:50]], [e["fields"] for e in first[:50]])
        for a, b in zip(events[:50], first):
            self.assertLess(abs(a["mono"] - b["mono"]), 1_000_000)
        harness.tool("detach", "--pid", t.pid, status=0)
        self.assert_clean(t.pid, before)
        self.assert_result_ok(t)

    def read_live(self, t):
        events = self.path("live.json")
        harness.tool("record", "--once", "--pid", t.pid, "--no-record", "-f", "json", "-o", events, status=0)
        return harness.Result(0, "", "", events).events

    def test_the_core_of_a_fork_child_has_its_parents_events_with_the_parents_pid(self):
        folder = self.path("cores")
        program = compiled(self.path("forking"), "gcc", "-O1", "-Wno-unused-result", text=FORKING)
        t = self.dumping(folder, program)
        self.leave(t, "--function", "work", "-t", "reg:edi")
        os.kill(t.pid, signal.SIGUSR1)
        self.assertEqual(t.process.wait(300), 0)
        r = self.read(self.dumped(folder))
        self.assertEqual([number(e["fields"]["edi"]) for e in r.events], list(range(100)))
        self.assertEqual({e["pid"] for e in r.events}, {t.pid})
        self.assertEqual(r.summary["lost"]["forked"], 100)

    # ---- cores from elsewhere, and damaged ones

    @contextlib.contextmanager
    def changed(self, core):
        """The core's bytes, to be changed."""
        with open(core, "r+b") as f, mmap.mmap(f.fileno(), 0) as m:
            yield m

    def test_a_core_of_another_boot_is_read_by_the_clocks_it_has(self):
        core = self.crashed("--function", "foo", "-t", "reg:edi")
        here = self.read(core)
        self.assertEqual(here.err.count("another one"), 0, here.err)
        with open("/proc/sys/kernel/random/boot_id", "rb") as f:
            boot = f.read().strip()
        with self.changed(core) as m:
            at = m.find(boot)
            m[at : at + len(boot)] = boot[::-1].replace(b"-", b"f")
        there = self.read(core)
        self.assertIn("before this machine started, or on another one", there.err)
        self.assertEqual([e["fields"] for e in there.events], [e["fields"] for e in here.events])
        for a, b in zip(there.events, here.events):
            self.assertLess(abs(a["ts"] - b["ts"]), 1_000_000_000)

    def test_damage_is_refused_and_named_DP_BAD_CORE_DP_MANIFEST(self):
        core = self.crashed("--function", "foo", "-t", "reg:edi")
        with self.changed(core) as m:
            control = next(at for at in range(0, len(m), 4096) if m[at : at + 8] == b"dnyprobe")
            whole = m[control : control + 4096]
            for offset, value, text in ((8, 77, "another version"), (20, 0xFFFFFFFF, "is damaged"), (24, 3, "is damaged"), (8 + 12, 0, "is damaged")):
                m[control + offset : control + offset + 4] = value.to_bytes(4, "little")
                err = self.refused(core)
                self.assertIn(text, err)
                self.assertIn("DP-BAD-CORE", err)
                m[control : control + 4096] = whole
            text = m.find(b'{"dynprobe"', control)
            m[text + 2] = ord("?")
            self.assertIn("DP-MANIFEST", self.refused(core))

    def test_what_a_truncated_core_still_has_is_shown(self):
        core = self.crashed("--function", "foo", "-t", "reg:edi")
        whole, size, shown = self.read(core), os.path.getsize(core), 0
        for k in range(16):
            os.truncate(core, size * (15 - k) // 16)
            p = harness.tool("record", "--core", core, "--no-record")
            self.assertIn(p.returncode, (0, OWN_FAILURE), p.stderr)
            if p.returncode == 0:
                self.assertIn("truncated", p.stderr)
                shown += 1
            else:
                self.assertRegex(p.stderr, "DP-(BAD-CORE|NO-PROBE|MANIFEST)")
        self.assertGreater(shown, 0)
        self.assertGreater(len(whole.events), CALLS)

    def test_what_makes_no_sense_is_refused(self):
        t = self.target("spin", 0, 300)
        for wrong in (("record", "--core", "x", "--pid", t.pid), ("record", "--core", "x", "exe", "more"), ("record", "exe", "--pid", t.pid),
                      ("--dump-ring", "--pid", t.pid, "--function", "foo"), ("attach", "--dump-ring", "--sink", "lttng", "--pid", t.pid, "--function", "foo")):
            self.assertIn("DP-USAGE", harness.tool(*wrong, status=OWN_FAILURE).stderr)
        self.assertIn("DP-BAD-CORE", self.refused("/etc/passwd"))
        self.assertIn("DP-BAD-CORE", self.refused(self.path("nothing")))


if __name__ == "__main__":
    harness.main()
