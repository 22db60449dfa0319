# SPDX-License-Identifier: MIT
"""Tests traps: SIGTRAP is shared with the program, which loses none and notices nothing."""

import os
import shutil
import signal
import subprocess

import harness
from binutils import instructions, offsets
from harness import Case, State, needs, status

TRAP = 1 << (signal.SIGTRAP - 1)


class Trap(Case):
    def attach_traps(self, t, *args, **kw):
        return self.attach(t, "--tactic", "trap", *args, **kw)

    def assert_trapped(self, r, n=1):
        self.assert_ok(r)
        self.assertEqual([p["tactic"] for p in r.summary["probes"]].count("trap"), n, str(r))

    def test_hits_are_recorded_and_nothing_is_left(self):
        t = self.target("spin", 0, 500)
        before = State(t.pid)
        for _ in range(3):
            r = self.attach_traps(t, "--function", "foo", "-t", "regs", "-n", 50)
            self.assert_trapped(r)
            self.assert_hits(r, 50)
            self.assert_clean(t.pid, before)
        self.assert_result_ok(t)

    def test_program_that_cares_for_its_signals(self):
        """Masks and actions as it set them, its own int3s and SIGTRAPs, temporary signal masks, threads, forks: with probes at every instruction."""
        t = self.target("trapped", 3000)
        for offset in offsets(t.path, "trapped_work"):
            r = self.attach_traps(t, "--probe", f"trapped_work+{offset}", "-t", "reg:rdi", *(("-d", "3") if harness.FULL else ("-n", 1000)))
            if "temporary mask" in r.err or "signal handler" in r.err:  # it is in such a state most of the time
                self.assert_refused(r, "DP-TRAP-UNSAFE")
            else:
                self.assert_trapped(r)
                self.assert_hits(r, 1000)
            self.assert_clean(t.pid)
            self.assertTrue(t.alive(), t.errors())
        self.assert_result_ok(t)

    def test_calls_that_wait_at_the_trap_go_on(self):
        """For nanosleep and its like, the kernel stores the remaining time until a signal is handled."""
        libc = next(p for p in ("/lib/x86_64-linux-gnu/libc.so.6", "/usr/lib64/libc.so.6", "/lib64/libc.so.6") if os.path.exists(p))
        code = instructions(libc, "--disassemble=clock_nanosleep")
        calls = [at - code[0][0] for at, what in code if what == "syscall"]
        self.assertTrue(calls, code[:40])
        t = self.target("eintr")
        placed, enough = 0, 2 if harness.FULL else 1
        for _ in range(10):  # it waits with all kinds of temporary signal masks
            r = self.attach_traps(t, *[a for at in calls for a in ("--probe", f"libc.so.6!clock_nanosleep+{at}")], "-d", "0.5")
            placed += r.status == 0 and [p["tactic"] for p in r.summary["probes"]].count("trap") == len(calls)
            if placed == enough:
                break
        self.assertEqual(placed, enough, str(r))
        self.assert_result_ok(t)

    def test_every_instruction_at_once_in_threads_that_come_and_go(self):
        t = self.target("churn")
        before = harness.caught(t.pid), status(t.pid, "SigIgn")
        probes = [a for o in offsets(t.path, "foo") for a in ("--probe", f"foo+{o}")]
        r = self.attach_traps(t, *probes, *(("-d", "2") if harness.FULL else ("-n", 40 * len(probes))))
        self.assert_trapped(r, len(probes) // 2)
        self.assert_clean(t.pid)
        self.assertEqual((harness.caught(t.pid), status(t.pid, "SigIgn")), before)
        self.assert_result_ok(t)

    def test_killed_tool_leaves_a_program_that_runs_and_the_next_one_takes_it_out(self):
        t = self.target("trapped", 3000)
        for _ in range(3 if harness.FULL else 2):
            p = self.start("--pid", t.pid, "--tactic", "trap", "--function", "trapped_work")
            self.await_output(p, 3000)
            p.kill()
            p.wait()
            self.let_run(t)
        self.assert_cleaned(t)

    def test_probes_that_stay_and_a_process_of_many_forks(self):
        t = self.target("forkload")
        before = harness.caught(t.pid)
        argv = [harness.DYNPROBE, "attach", "--pid", str(t.pid), "--tactic", "trap", "--function", "foo", "--sink", "ring"]
        p = subprocess.run(argv, capture_output=True, text=True, timeout=300)
        self.assertEqual(p.returncode, 0, p.stderr)
        self.assertTrue(harness.caught(t.pid) & TRAP)
        second = self.attach_traps(t, "--function", "main", "-d", "0.1")
        self.assert_refused(second, "DP-TRAP-UNSAFE", "earlier dynprobe")
        self.let_run(t, steps=800 if harness.FULL else 300)
        p = harness.tool("detach", "--pid", t.pid, status=0)
        self.assert_clean(t.pid)
        self.assertEqual(harness.caught(t.pid), before)
        self.assert_result_ok(t)

    def test_one_of_several_is_removed(self):
        t = self.target("churn")
        second = offsets(t.path, "foo")[1]
        run = lambda *args: harness.tool(*args, "--pid", t.pid)
        for _ in range(3 if harness.FULL else 1):
            p = run("attach", "--tactic", "trap", "--sink", "ring", "--name", "one", "--function", "foo", "--name", "two", "--probe", f"foo+{second}")
            self.assertEqual(p.returncode, 0, p.stderr)
            self.assertEqual(len(harness.changed_bytes(t.pid, next(m for m in harness.text_mappings(t.pid) if m.path == t.path))), 2)
            self.let_run(t)
            for verb, name in (("disable", "two"), ("remove", "one"), ("enable", "two")):
                p = run(verb, name)
                self.assertEqual(p.returncode, 0, p.stderr)
                self.let_run(t, steps=80)
            self.assertEqual(len(harness.changed_bytes(t.pid, next(m for m in harness.text_mappings(t.pid) if m.path == t.path))), 1)
            p = run("detach")
            self.assertEqual(p.returncode, 0, p.stderr)
            self.assert_clean(t.pid)
            self.assertFalse(harness.caught(t.pid) & TRAP)
        self.assert_result_ok(t)

    def test_command_that_is_started(self):
        r = self.dynprobe("--tactic", "trap", "--function", "trapped_work", "--", harness.target_path("trapped"), "3" if harness.FULL else "1")
        self.assert_trapped(r)
        self.assertIn("RESULT OK", r.out)

    def test_thread_that_has_sigtrap_blocked_before(self):
        t = self.target("spin", 0, 500, preexec_fn=lambda: signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGTRAP]))
        before = State(t.pid)
        self.assertTrue(int(status(t.pid, "SigBlk"), 16) & TRAP)
        r = self.attach_traps(t, "--function", "foo", "-n", 50)
        self.assert_trapped(r)
        self.assert_hits(r, 50)
        self.assert_clean(t.pid, before)
        self.assert_result_ok(t)

    # ---- where traps are impossible

    def refused(self, t, *words):
        before = State(t.pid)
        r = self.attach_traps(t, "--function", "foo", "-d", "0.1")
        self.assert_refused(r, "DP-TRAP-UNSAFE", *words)
        self.assert_clean(t.pid, before)
        self.assert_result_ok(t)

    def test_trap_unsafe_where_sigtrap_is_ignored(self):
        self.refused(self.target("spin", 0, 500, preexec_fn=lambda: signal.signal(signal.SIGTRAP, signal.SIG_IGN)), "ignores SIGTRAP")

    def test_no_trap_forbids(self):
        t = self.target("spin", 0, 500)
        r = self.attach_traps(t, "--function", "foo", "--no-trap")
        self.assert_refused(r, "DP-TOO-SHORT")
        self.assert_result_ok(t)

    # ---- programs

    def traps_in(self, pid, specs):
        probes = [a for s in specs for a in ("--function", s)]
        r = self.dynprobe("--pid", pid, "--tactic", "trap", *probes, *(("-d", "2") if harness.FULL else ("-n", 2000)))
        self.assertIn(r.status, (0, 121), str(r))
        self.assertGreaterEqual([p["tactic"] for p in r.summary["probes"]].count("trap"), 1, str(r))
        self.assert_hits(r, 10)
        self.assert_clean(pid)

    @needs("python3")
    def test_python_with_threads_children_and_signals(self):
        script = """
import hashlib, signal, subprocess, threading
hits, ended = [], []
signal.signal(signal.SIGTRAP, lambda *a: hits.append(1))
signal.signal(signal.SIGTERM, lambda *a: ended.append(1))
print("READY", flush=True)
ok = True
def work():
    ok = hashlib.sha256(b"x" * 1000).hexdigest()
while not ended:
    ts = [threading.Thread(target=work) for _ in range(4)]
    [t.start() for t in ts]; [t.join() for t in ts]
    ok &= subprocess.run(["true"]).returncode == 0
    old = signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGTRAP])
    ok &= signal.SIGTRAP in signal.pthread_sigmask(signal.SIG_BLOCK, [])
    n = len(hits); signal.raise_signal(signal.SIGTRAP); ok &= len(hits) == n
    signal.pthread_sigmask(signal.SIG_SETMASK, old); ok &= len(hits) == n + 1
    ok &= signal.SIGTRAP not in signal.pthread_sigmask(signal.SIG_BLOCK, [])
print("RESULT", "OK" if ok else "BAD")
"""
        t = self.target(shutil.which("python3"), "-c", script)
        self.traps_in(t.pid, ["malloc", "free", "pthread_sigmask", "pthread_create"])
        self.let_run(t)
        self.assert_result_ok(t)

    @needs("redis-server")
    @needs("redis-benchmark")
    def test_redis_under_load(self):
        sock = self.path("redis.sock")
        t = self.target(shutil.which("redis-server"), "--port", "0", "--unixsocket", sock, "--save", "", "--dir", self.dir, ready="ready to accept")
        load = self.spawn("redis-benchmark", "-s", sock, "-n", 100000000, "-t", "set,get", "-q")
        self.traps_in(t.pid, ["processCommand", "call", "lookupKey", "createStringObject"])
        self.assertIsNone(load.poll())
        p = subprocess.run(["redis-cli", "-s", sock, "ping"], capture_output=True, text=True, timeout=300)
        self.assertEqual(p.stdout.strip(), "PONG")
        self.assertEqual(t.stop(), 0)


if __name__ == "__main__":
    harness.main()
