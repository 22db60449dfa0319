# SPDX-License-Identifier: MIT
"""Tests unusual states of a target, each of which once caused a crash during development."""

import os
import shutil
import signal
import subprocess

import harness
from harness import Case, State, needs, wait_until

READ = 0  # number of the system call


class Hazards(Case):
    def probe_and_leave(self, t, *args):
        before = State(t.pid)
        r = self.attach(t, *(args or ("--function", "foo", "-t", "reg:rdi", "-n", 5)))
        self.assert_ok(r)
        self.assert_clean(t.pid, before)
        return r

    def test_main_thread_that_has_ended(self):
        t = self.target("odd", "leaderless")
        for _ in range(3 if harness.FULL else 2):
            self.assert_hits(self.probe_and_leave(t), 5)
        self.assert_result_ok(t)

    def test_main_thread_that_ends_while_probed(self):
        t = self.target("odd", "leaving")
        p = self.start_attached(t, "--function", "foo")
        os.kill(t.pid, signal.SIGUSR1)
        wait_until(lambda: t.state() == "Z", what="the main thread's end")
        self.await_events(p, n=10)
        self.assert_ok(self.finish(p))
        self.assertEqual([m.key() for m in harness.maps(t.pid) if m.is_ours], [])
        self.let_run(t)
        self.assert_result_ok(t)

    def test_locked_memory_does_not_fill_the_rings(self):
        t = self.target("odd", "locked")
        before = int(harness.status(t.pid, "VmRSS").split()[0])
        p = self.start_attached(t, "--function", "foo", "-t", "reg:rdi")
        self.assertLess(int(harness.status(t.pid, "VmRSS").split()[0]) - before, 32768)
        self.assert_ok(self.finish(p))
        self.assert_result_ok(t)

    def test_single_thread_in_a_timed_wait(self):
        t = self.target("odd", "polling")
        for _ in range(5 if harness.FULL else 2):
            self.probe_and_leave(t, "--function", "foo", "-n", 1)
        self.assert_result_ok(t)

    def test_thread_blocked_in_a_call_at_the_end_of_the_window(self):
        """The kernel restarts the call two bytes before the thread's pc: this address is inside the jump."""
        t = self.target("odd", "blocked_call")
        wait_until(lambda: t.blocked_in(READ), what="the thread to wait")
        r = self.attach(t, "--probe", "waits+0x2", "--tactic", "window", "-d", "0.2")
        self.assert_refused(r, "DP-BUSY", "what to do: try again; a stopped process must continue first", "probe a neighbouring instruction")
        wait_until(lambda: t.blocked_in(READ), what="the thread to wait again")
        self.assertTrue(t.alive())
        self.assert_result_ok(t)

    def test_thread_blocked_in_a_displaced_call_at_detach(self):
        """The probe is at the call itself: the thread enters the call in the stub, and is still in it when the stub is removed."""
        t = self.target("odd", "blocked_call")
        wait_until(lambda: t.blocked_in(READ), what="the thread to wait")
        before = State(t.pid)
        self.assert_ok(self.attach(t, "--probe", "waits+0x5", "-d", "0.3"))
        self.assert_clean(t.pid, before)
        self.assert_result_ok(t)

    def test_new_text_that_was_not_used_goes(self):
        """Between making new text and moving it the only thread may enter a timed call, in which it cannot be borrowed."""
        targets = [self.target("odd", "polling") for _ in range(12 if harness.FULL else 6)]
        before = [State(t.pid) for t in targets]
        for _ in range(3 if harness.FULL else 1):  # all at once, so that threads and tools wait for a processor
            tools = [self.start("--pid", t.pid, "--function", "crossing", "-d", "0.1", "-q") for t in targets]
            for p in tools:
                self.assert_ok(self.finish(p, None))
        for t, state in zip(targets, before):
            self.assert_clean(t.pid, state)
            self.assert_result_ok(t)

    def test_jump_across_a_page_boundary(self):
        """A jump across two pages cannot be written at once: both pages are replaced together."""
        t = self.target("odd", "polling")
        before = State(t.pid)
        self.assert_ok(self.attach(t, "--function", "crossing", "-d", "0.2"))
        self.assert_clean(t.pid, before)
        self.assert_result_ok(t)

    def test_DP_CROSS_PAGE_of_a_file_that_was_deleted(self):
        """Pages are replaced by copies of the file's: without the file, no jump can cross two of them."""
        path = self.path("odd")
        shutil.copy(harness.target_path("odd"), path)
        t = self.target(path)
        os.unlink(path)
        before = State(t.pid)
        r = self.attach(t, "--function", "crossing", "--no-trap", "-d", "0.2", json_events=False)
        self.assert_refused(r, "DP-CROSS-PAGE", "cannot be replaced page by page: its file has been deleted")
        self.assert_clean(t.pid, before)
        self.assert_result_ok(t)

    @needs("gdb")
    def test_debugger_that_comes_and_goes_on_our_site(self):
        """Its breakpoint hides our first byte and then restores it: dynprobe must not give the site up."""
        t = self.target("spin", 0, 100)
        p = self.start_attached(t, "--function", "foo", "-t", "reg:rdi")
        own_symbols = ("-iex", "set auto-solib-add off", "-iex", "set debuginfod enabled off")  # it reads those of the C library for seconds
        gdb = subprocess.run(["gdb", "-nx", "-batch", *own_symbols, "-p", str(t.pid), "-ex", "set breakpoint always-inserted on", "-ex", "break *foo",
                              "-ex", "shell sleep 0.3", "-ex", "detach"], capture_output=True, text=True, timeout=300)
        self.assertEqual(gdb.returncode, 0, gdb.stderr)
        self.assertIn("Breakpoint 1 at", gdb.stdout, gdb.stderr)
        self.assertIn(f"process {t.pid}", gdb.stdout, "it let the program go")
        self.let_run(t, steps=300)
        self.assert_ok(self.finish(p))
        self.let_run(t, steps=300)
        self.assert_clean(t.pid)
        self.assert_result_ok(t)

    def test_two_at_once_never_both(self):
        """However they race, one refuses and names the other, and the program does not notice."""
        t = self.target("spin", 0, 100)
        for _ in range(10 if harness.FULL else 2):
            both = [self.start("--pid", t.pid, "--function", "foo", "-d", "0.1") for _ in range(2)]
            status = [self.finish(p, None).status for p in both]
            self.assertIn(0, status)
            self.assertTrue(set(status) <= {0, harness.OWN_FAILURE}, status)
        self.assert_clean(t.pid)
        self.assert_result_ok(t)

    def test_dynprobe_itself_as_a_target_keeps_its_own_view(self):
        t = self.target("spin", 0, 100)
        first = self.start_attached(t, "--function", "foo", "-t", "reg:rdi")
        self.assert_ok(self.dynprobe("--pid", first.pid, "--function", "main", "-d", "0.2"))
        self.assertIsNone(first.poll())
        self.assert_ok(self.finish(first))
        self.assert_clean(t.pid)
        self.assert_result_ok(t)


if __name__ == "__main__":
    harness.main()
