# SPDX-License-Identifier: MIT
"""Tests --profile: the number of samples fits the CPU time, threads and functions are right, and the process is unchanged."""

import json
import os
import re
import signal
import subprocess
import sys
import unittest

import harness
from harness import Case

HZ = 500

NAMED = '''
import threading
def work(name):
    with open(f"/proc/self/task/{threading.get_native_id()}/comm", "w") as f:
        f.write(name)
    begun.wait()
    while True:
        sum(range(500))
begun = threading.Barrier(3)
for name in "one", "two":
    threading.Thread(target=work, args=(name,), daemon=True).start()
begun.wait()
print("READY", flush=True)
threading.Event().wait()
'''


def refused():
    p = harness.tool("--profile", "10", "--no-record", "-q", "--", "/bin/true")
    return "DP-PERF" in p.stderr


def functions(frames):
    return [f.get("symbol", "").split("+")[0] for f in frames]


@unittest.skipIf(refused(), "perf events are refused here")
class Profile(Case):
    def summary(self, r):
        return next(x for x in r.lines if x["type"] == "profile")

    def test_as_many_samples_as_cpu_time(self):
        t = self.target("spin")
        seconds = lambda: t.cpu_ticks() / os.sysconf("SC_CLK_TCK")
        before = seconds()
        p = self.start("--pid", t.pid, "--profile", HZ)
        self.await_events(p, "profile", 20)
        begin = seconds()
        harness.wait_until(lambda: p.poll() is not None or seconds() - begin > 1, what="a second of processor time")
        end = seconds()
        r = self.finish(p)
        after = seconds()
        self.assert_ok(r)
        s = self.summary(r)
        # cpu_ticks() counts in hundredths of a second, and omits time of interrupts and of the machine's host; perf's clock does not.
        self.assertLessEqual(s["samples"], (after - before) * HZ * 1.5 + 25)
        self.assertGreater(s["samples"] + s["lost"], (end - begin) * HZ * 0.5 - 25)
        self.assertEqual(len(r.events), s["samples"])
        self.assert_result_ok(t)

    def test_several_processes_have_one_table_and_one_that_has_ended_costs_nothing(self):
        a, b, dead = (self.target("spin") for _ in range(3))
        dead.process.kill()
        dead.process.wait()
        args = ("--pid", f"{a.pid},{dead.pid},{b.pid}", "--profile", HZ, "-n", 200)
        r = self.dynprobe(*args)
        self.assert_ok(r, status=harness.EXIT_PARTIAL)
        self.assertRegex(r.err, rf"process {dead.pid} is left out \[DP-NO-PROCESS\]")
        counts = {x["pid"]: x["samples"] for x in r.lines if x["type"] == "profile"}
        self.assertEqual(set(counts), {a.pid, b.pid})
        self.assertEqual(sum(counts.values()), 200)
        self.assertEqual({pid: len([e for e in r.events if e["pid"] == pid]) for pid in counts}, counts)
        r = self.dynprobe(*args, "--by", "pid")
        counts = {x["pid"]: x["samples"] for x in r.lines if x["type"] == "profile"}
        self.assertEqual({x["key"]: x["hits"] for x in r.answers}, counts)
        self.assertEqual(sum(counts.values()), 200)
        r = self.dynprobe(*args, "--by", "backtrace")
        chains = [tuple(functions(x["stack"])) for x in r.answers]
        self.assertEqual(sum(x["hits"] for x in r.answers), 200)
        self.assertEqual({x["pid"] for x in r.answers}, {None})
        self.assertEqual([chains.count(c) for c in chains if c[0] == "foo"], [1], chains)
        for t in a, b:
            self.assert_result_ok(t)

    def test_several_processes_end_with_the_last(self):
        a, b = (self.target("spin") for _ in range(2))
        p = self.start("--pid", f"{a.pid},{b.pid}", "--profile", HZ)
        harness.wait_until(lambda: p.poll() is not None or os.path.exists(p.events), what="the events' file")
        self.await_events(p, "profile", 20)
        self.assert_result_ok(a)
        of_b = lambda: self.said(p).count(f'"pid":{b.pid},')
        before = of_b()
        harness.wait_until(lambda: of_b() > before + 20, what="samples after one has ended")
        self.assert_result_ok(b)
        r = self.finish(p, None)
        self.assert_ok(r)
        self.assertEqual({x["ended_by"] for x in r.lines if x["type"] == "profile"}, {"target exited"})

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
        t = self.target("deep")  # it sleeps nearly all the time
        ticks = t.cpu_ticks()
        p = self.start("--pid", t.pid, "--profile", HZ, "--by", "backtrace")
        harness.wait_until(lambda: p.poll() is not None or t.cpu_ticks() - ticks > 0.1 * os.sysconf("SC_CLK_TCK"), what="a tenth of a second of processor time")
        r = self.finish(p)
        self.assert_ok(r)
        rows = r.answers
        self.assertEqual(sum(row["hits"] for row in rows), self.summary(r)["samples"])
        whole = sum(row["hits"] for row in rows if functions(row["stack"])[-1] in ("_start", "clone3", "__clone3", "clone"))
        self.assertGreaterEqual(whole, 0.98 * self.summary(r)["samples"] - self.summary(r)["cut"] - 2, [functions(row["stack"])[-3:] for row in rows])
        self.assertTrue(any("main" in functions(row["stack"]) for row in rows), [functions(row["stack"]) for row in rows][:5])

    def test_a_stack_with_a_page_that_was_never_touched_is_cut_and_says_so(self):
        """The kernel copies only the part up to that page."""
        r = self.dynprobe("--profile", HZ, "--folded", "--", harness.target_path("sparse"), json_events=False)
        cut = re.search(r"([0-9]+) stacks cut \(", r.err)
        self.assertTrue(cut and int(cut[1]) > 10, r)
        self.assertRegex(r.err + r.out, r"(?m)^\.\.\.;(middle;)?work [0-9]+")
        self.assertNotRegex(r.err + r.out, r"(?m)^(middle|work)\b")

    def test_threads_that_come_later_are_sampled(self):
        script = ("import os, sys, threading, time\nprint('READY', flush=True)\n"
                  "def work():\n while time.thread_time() < 0.15: sum(range(500))\n"
                  "while not os.path.exists(sys.argv[1]): sum(range(500))\n"
                  "for i in range(3): t = threading.Thread(target=work); t.start(); t.join()\n")
        t = self.target(sys.executable, "-c", script, self.path("go"))
        p = self.start("--pid", t.pid, "--profile", HZ)
        self.await_events(p, "profile", 20)
        self.written("go", "")
        r = self.finish(p, None)
        self.assert_ok(r)
        self.assertEqual(self.summary(r)["ended_by"], "target exited")
        self.assertEqual({e["pid"] for e in r.events}, {t.pid})
        late = {}
        for e in r.events:
            late.setdefault(e["tid"], []).append(e["mono"] / 1e9)
        late.pop(t.pid, None)
        self.assertEqual(len(late), 3)
        # Each thread once, although it may have its own event and its creator's: no thread runs for longer than the elapsed time.
        for times in late.values():
            self.assertGreater(len(times), 0.15 * HZ * 0.5)
            self.assertLessEqual(len(times), (max(times) - min(times)) * HZ + 3)

    def test_samples_have_the_names_of_their_threads(self):
        t = self.target(sys.executable, "-c", NAMED)
        r = self.attach(t, "--profile", HZ, "-n", 100)
        self.assert_ok(r)
        self.assertEqual({e["comm"] for e in r.events if e["tid"] != t.pid}, {"one", "two"})
        self.assertEqual(len({(e["tid"], e["comm"]) for e in r.events if e["tid"] != t.pid}), 2)
        file, name = self.path("perfetto.json"), harness.status(t.pid, "Name")
        harness.tool("--pid", t.pid, "--profile", HZ, "-n", 100, "-f", "perfetto", "--no-record", "-o", file, status=0)
        with open(file) as f:
            said = [(e["name"], e["args"]["name"]) for e in json.load(f)["traceEvents"] if e["ph"] == "M"]
        self.assertEqual(set(said) - {("thread_name", name)}, {("process_name", name), ("thread_name", "one"), ("thread_name", "two")})

    def test_a_command_from_its_start_and_folded(self):
        script = "import time\nend = time.process_time() + 0.4\nwhile time.process_time() < end: sum(range(1000))\n"
        r = self.dynprobe("--profile", HZ, "--folded", "--", "/usr/bin/python3", "-S", "-c", script, json_events=False)
        self.assert_ok(r)
        lines = [line for line in r.err.splitlines() if re.fullmatch(r"(?!dynprobe:)\S.* \d+", line)]  # a stack may be one frame
        total = sum(int(line.rpartition(" ")[2]) for line in lines)
        said = int(re.search(r"(\d+) samples? in", r.err)[1])
        self.assertEqual(total, said)
        self.assertGreater(total, HZ * 0.2)
        stacks = {line.rpartition(" ")[0] for line in lines}
        self.assertEqual(len(stacks), len(lines), "the same functions are one line")
        self.assertTrue(any(s.startswith("_start;") and "PyEval" in s for s in stacks), sorted(stacks)[:5])

    def test_a_command_that_fails(self):
        self.assertEqual(self.dynprobe("--profile", 10, "--", "/nonexistent/command").status, 127)
        self.assertEqual(self.dynprobe("--profile", 10, "--", "/nonexistent/command", record=self.path("left")).status, 127)
        self.assertFalse(os.path.exists(self.path("left")))
        self.assertEqual(self.dynprobe("--profile", 10, "--", "/bin/sh", "-c", "exit 3").status, 3)

    def test_so_many_samples_and_no_more(self):
        t = self.target("spin")
        r = self.attach(t, "--profile", HZ, "-n", 7)
        self.assert_ok(r)
        self.assertEqual((len(r.events), self.summary(r)["ended_by"]), (7, "hits"))


    BURN = """#include <time.h>
static double now(void) { struct timespec t; clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t); return t.tv_sec + t.tv_nsec / 1e9; }
int NAME(void) { volatile long x = 0; double end = now() + 0.15; while (now() < end) for (int i = 0; i < 20000; i++) x += i; return 0; }
"""

    @harness.needs("gcc")
    def test_a_library_that_takes_the_place_of_another_has_names_of_its_own(self):
        for name in ("burn_a", "burn_b"):
            harness.compiled(self.path(name), "gcc", "-O1", "-shared", "-fPIC", f"-DNAME={name}", text=self.BURN)
        script = (f"import ctypes, _ctypes, os, time\nat = []\nfor name in ('burn_a', 'burn_b'):\n"
                  f" lib = ctypes.CDLL({self.dir!r} + '/' + name)\n f = getattr(lib, name)\n at.append(ctypes.cast(f, ctypes.c_void_p).value)\n"
                  f" begin = time.monotonic()\n f()\n print(name, time.monotonic() - begin)\n _ctypes.dlclose(lib._handle)\nprint('SAME', at[0] == at[1], flush=True)\n"
                  # Then it becomes another program, for which the addresses have no meaning.
                  f"os.execv('/usr/bin/python3', ['python3', '-S', '-c', 'import time\\nend = time.process_time() + 0.15\\nwhile time.process_time() < end: sum(range(1000))'])\n")
        r = self.dynprobe("--profile", HZ, "--folded", "--", sys.executable, "-c", script, json_events=False)
        self.assert_ok(r)
        self.assertIn("SAME True", r.out)
        hits = {"burn_a": 0, "burn_b": 0, "PyEval": 0}
        for line in r.err.splitlines():
            stack, _, n = line.rpartition(" ")
            for name in hits:
                if ";" in stack and name in stack:
                    hits[name] += int(n)
                    break
        for name in ("burn_a", "burn_b"):
            took = float(re.search(f"^{name} (.*)", r.out, re.M)[1])
            self.assertLessEqual(hits[name], took * HZ + 3, hits)
            self.assertGreater(hits[name], 0, f"{hits}: the number depends on how soon the tool sees the library")
        self.assertGreater(hits["PyEval"], 0.05 * HZ, hits)

    def test_a_command_does_not_begin_before_its_samples_can_be_kept(self):
        r = self.dynprobe("--profile", HZ, "--folded", "-o", self.path("missing/out"), "--", "/usr/bin/touch", self.path("ran"), json_events=False)
        self.assert_refused(r, "DP-OUTPUT", "missing/out")
        self.assertFalse(os.path.exists(self.path("ran")))

    def test_a_table_that_cannot_be_written_is_a_failure(self):
        t = self.target("spin")
        r = self.attach(t, "--profile", HZ, "--folded", "-o", "/dev/full", "-n", 5, json_events=False)
        self.assert_refused(r, "DP-OUTPUT", "No space left")

    def test_a_signal_ends_the_waiting_for_a_command(self):
        p = self.start("--profile", HZ, "-d", 0.05, "--", "/bin/sh", "-c", f"echo $$ >{self.path('pid')}; exec sleep 60")
        harness.wait_until(lambda: os.path.exists(p.events) and re.search("samples? in", self.said(p)), what="the end of the profile")
        harness.wait_until(lambda: os.path.exists(self.path("pid")) and os.path.getsize(self.path("pid")), what="the command to run")
        with open(self.path("pid")) as f:
            pid = int(f.read())
        try:
            os.kill(p.pid, signal.SIGTERM)
            self.assertEqual(p.wait(timeout=20), 0)
            self.assertNotEqual(harness.status(pid, "State")[0], "Z")
        finally:
            os.kill(pid, signal.SIGKILL)

    @harness.needs("gcc")
    def test_a_process_goes_on_without_its_first_thread_and_any_threads_number_will_do(self):
        source = ("#include <pthread.h>\n#include <stdio.h>\n#include <unistd.h>\nstatic void *work(void *a) { printf(\"READY %d\\n\", gettid()); fflush(stdout);\n"
                  "for (volatile long x = 0;; x++); return a; }\nint main(void) { pthread_t t; pthread_create(&t, 0, work, 0); pthread_exit(0); }\n")
        t = self.target(harness.compiled(self.path("leaderless"), "gcc", "-D_GNU_SOURCE", "-O1", "-pthread", text=source))
        harness.wait_until(lambda: harness.status(t.pid, "State").startswith("Z"), what="the end of the first thread")
        worker = next(int(tid) for tid in os.listdir(f"/proc/{t.pid}/task") if int(tid) != t.pid)
        for number in (t.pid, worker):
            r = self.dynprobe("--pid", number, "--profile", HZ, "-n", 5)
            self.assert_ok(r)
            self.assertEqual({(e["pid"], e["tid"]) for e in r.events}, {(t.pid, worker)})
            self.assertTrue(all("work" in functions(e["fields"]["backtrace"]) for e in r.events), r.events)

    def test_child_processes_are_said(self):
        r = self.dynprobe("--profile", HZ, "--", "/bin/sh", "-c", "/bin/true; /bin/true; :")
        self.assert_ok(r)
        self.assertEqual(self.summary(r)["children"], 2)
        self.assertIn("2 child processes not sampled", r.err)


def off_cpu_refused():
    p = harness.tool("--profile", "off-cpu", "--no-record", "-q", "--", "/bin/true")
    return "DP-PERF" in p.stderr


@unittest.skipIf(off_cpu_refused(), "perf events of the kernel are refused here")
class OffCpu(Case):
    def test_the_stacks_that_wait_have_the_time_that_they_wait(self):
        t = self.target("offcpu")
        r = self.dynprobe("--pid", t.pid, "--profile", "off-cpu", "-d", 2, "--by", "backtrace")
        self.assert_ok(r)
        sums = {}
        for row in r.answers:
            for name in set(functions(row["stack"])):
                sums[name] = sums.get(name, 0) + row["sum"]
        self.assertGreater(sums["wait_long"], sums["wait_short"])
        self.assertGreater(sums["wait_long"], 10_000_000, "one call waits twice as long at least")
        s = next(x for x in r.lines if x["type"] == "profile")
        self.assertEqual(s["ended_by"], "duration")
        self.assertEqual(sum(row["sum"] for row in r.answers) + s["off_cpu"]["no_stack_ns"], s["off_cpu"]["ns"])

    def test_waits_have_the_names_of_their_threads(self):
        t = self.target(sys.executable, "-c", NAMED)
        r = self.attach(t, "--profile", "off-cpu", "-n", 100)
        self.assert_ok(r)
        self.assertEqual({e["comm"] for e in r.events if e["tid"] != t.pid}, {"one", "two"})
        self.assertEqual(len({(e["tid"], e["comm"]) for e in r.events if e["tid"] != t.pid}), 2)

    def test_columns_are_named_and_the_end_is_readable(self):
        t = self.target("offcpu")
        p = harness.tool("--pid", t.pid, "--profile", "off-cpu", "-d", 1, "--by", "backtrace", status=0)
        self.assertRegex(p.stdout, r"^in [\d.]+ s\n +waits +time by backtrace\n +\d+ +[\d.]+\w+\n {16}\S")
        self.assertRegex(p.stderr, r"(?m)^dynprobe: \d+ waits? in [\d.]+ s, [\d.]+\w+ off the processor; duration$")
        self.assertLess(max(map(len, p.stderr.splitlines())), 120)
        p = harness.tool("--pid", t.pid, "--profile", "off-cpu", "-d", 1, "--by", "pid", status=0)
        self.assertRegex(p.stdout, rf"^in [\d.]+ s\n +waits +time by pid\n +\d+ +[\d.]+\w+ {t.pid}\n$")


class Refused(Case):
    @harness.needs_root
    def test_waits_are_refused_where_only_events_of_user_space_are_allowed(self):
        if int(open("/proc/sys/kernel/perf_event_paranoid").read()) < 2:
            self.skipTest("kernel.perf_event_paranoid allows events of the kernel")
        words = [harness.DYNPROBE, "--profile", "off-cpu", "--no-record", "--", "/bin/true"]
        p = subprocess.run([sys.executable, "-c", f"import os; os.setgroups([]); os.setgid(65534); os.setuid(65534); os.execv({words[0]!r}, {words!r})"],
                           capture_output=True, text=True, timeout=300, cwd="/")
        self.assertEqual(p.returncode, harness.OWN_FAILURE, p.stderr)
        self.assertRegex(p.stderr, r"perf_event_paranoid=1;(.|\n)*DP-PERF")

    def test_what_it_does_not_go_with(self):
        t = self.target("spin")
        for words in (("--function", "foo"), ("--sink", "lttng"), ("--hist", "rax"), ("--by", "tid"), ("--dry-run",), ("-t", "regs"), ("--when", "rax == 1"),
                      ("-x", "foo*"), ("--tactic", "trap"), ("--no-trap",), ("--allow-seccomp",), ("--buffer-size", "1M")):
            self.assert_refused(self.attach(t, "--profile", 10, *words), "DP-USAGE", "exclude each other")
        self.assert_refused(self.attach(t, "--profile", 0), "DP-USAGE")
        self.assert_refused(self.attach(t, "--profile", 1000000), "DP-USAGE", "10000")

    @harness.needs_root
    def test_refused_by_the_kernel_says_why_and_what_to_do(self):
        level = "/proc/sys/kernel/perf_event_paranoid"
        # Another user's process: refused at every level of perf_event_paranoid.
        t = self.target("spin")
        os.chmod(self.dir, 0o755)
        script = f"import os; os.setgroups([]); os.setgid(65534); os.setuid(65534); os.execv({harness.DYNPROBE!r}, [{harness.DYNPROBE!r}, '--profile', '10', '--no-record', '--pid', '{t.pid}'])"
        p = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=300, cwd="/")
        self.assertEqual(p.returncode, harness.OWN_FAILURE, p.stderr)
        self.assertIn("DP-PERF", p.stderr)
        if os.path.exists(level):
            self.assertIn("kernel.perf_event_paranoid is " + open(level).read().strip(), p.stderr)


if __name__ == "__main__":
    harness.main()
