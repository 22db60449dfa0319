# SPDX-License-Identifier: MIT
"""Tests loads that may fault, and instructions that do: the program sees its own faults, at its own addresses, on its own stack."""

import os
import signal

import harness
from harness import Case, State, caught, status, wait_until

SEGV = 1 << (signal.SIGSEGV - 1)
FAULTING = ["fault_load", "fault_divide", "fault_ud2", "fault_ud1", "fault_hlt", "fault_int3"]
PROBES = [a for f in FAULTING for a in ("--function", f)] + ["--probe", "fault_guarded+1"]
UNREADABLE, READABLE = "long:nothing:16", "string:text:0x%x"


STARTS_THREADS = """
#include <pthread.h>
static void *nothing(void *arg) { return arg; }
int main(void)
{
	for (int i = 0; i < 20; i++) {
		pthread_t t;
		pthread_create(&t, 0, nothing, 0);
		pthread_join(t, 0);
	}
}
"""


class Faults(Case):
    def test_probes_between_a_hook_and_its_system_call_are_hit(self):
        """With the handler the agent makes some system calls itself, from a hook a few instructions before them."""
        program = harness.compiled(self.path("program"), "gcc", "-pthread", text=STARTS_THREADS)

        def hit(field):
            r = self.dynprobe("--probe", "libc.so.6!pthread_create:*", "-t", field, "--", program)
            self.assert_ok(r)
            return {e["probe"] for e in r.events}

        always = hit("reg:rax") & hit("reg:rax")
        self.assertGreater(len(always), 100)
        self.assertEqual(always - hit("str((char *)$rsp, 4)"), set())

    def assert_all_placed(self, r):
        self.assert_ok(r)
        self.assertEqual([p["tag"] for p in r.summary["probes"]], [None] * (len(FAULTING) + 1), str(r))

    def test_every_kind_of_fault_at_probed_instructions(self):
        """The pc, siginfo, stack and mask of each fault, with handlers that skip, jump out and repair, and children that die, are as without
        probes. Several rounds."""
        t = self.target("faults", 300)
        before = caught(t.pid)
        for tactic in ("jump,pun,evict,trap", "trap"):
            r = self.attach(t, "--tactic", tactic, *PROBES, "-t", "reg:rdi", "-n", 2000)
            self.assert_all_placed(r)
            self.assert_hits(r, 2000)
            self.assert_clean(t.pid)
            self.assertEqual(caught(t.pid), before)
        self.assert_result_ok(t)

    def test_refuse_DP_UNRELOCATABLE_without_the_handler(self):
        t = self.target("faults", 300)
        r = self.attach(t, "--no-trap", "--function", "fault_ud2", "-d", "0.1")
        self.assert_refused(r, "DP-UNRELOCATABLE", "raises a signal")
        self.assert_result_ok(t)

    def test_memory_that_is_not_there_and_a_program_with_faults_of_its_own(self):
        t = self.target("faults", 300)
        own = next(m for m in harness.text_mappings(t.pid) if m.path == t.path)
        header = own.start & ~0xFFF if own.offset == 0 else own.start - own.offset
        for _ in range(2):
            r = self.attach(t, "--function", "fault_load", "-t", UNREADABLE, "-t", READABLE % header, "-n", "500")
            self.assert_ok(r)
            # Otherwise the program would see the stub's addresses.
            self.assertIsNone(r.summary["memory_by_calls"], "the fault handler was not installed all the time")
            self.assert_hits(r, 500)
            self.assertTrue(all(e["fields"]["nothing"] is None for e in r.events[:100]), r.events[:3])
            self.assertTrue(all(e["fields"]["text"].endswith("ELF\x02\x01\x01") for e in r.events[:100]), r.events[:3])
            self.assert_clean(t.pid)
        self.assert_result_ok(t)

    def test_handler_stands_only_while_it_is_needed(self):
        t = self.target("spin", 0, 500)
        before = State(t.pid)
        self.assertFalse(caught(t.pid) & SEGV)
        p = self.start("--pid", t.pid, "--function", "foo", "-t", UNREADABLE)
        wait_until(lambda: caught(t.pid) & SEGV, what="the handler")
        p.terminate()
        p.wait()
        self.assert_clean(t.pid, before)
        p = self.start("--pid", t.pid, "--function", "foo", "-t", "reg:rdi")
        self.await_output(p)
        self.assertFalse(caught(t.pid) & SEGV)
        p.terminate()
        p.wait()
        self.assert_result_ok(t)

    def test_memory_is_read_by_system_calls_where_signals_cannot_be_used(self):
        t = self.target("spin", 0, 500, preexec_fn=lambda: signal.signal(signal.SIGSEGV, signal.SIG_IGN))
        r = self.attach(t, "--function", "foo", "-t", UNREADABLE, "-n", 50)
        self.assert_ok(r)
        self.assert_hits(r, 50)
        self.assertIsNone(r.events[0]["fields"]["nothing"])
        self.assertTrue(int(status(t.pid, "SigIgn"), 16) & SEGV)
        self.assertIn("ignores a signal", r.summary["memory_by_calls"]["why"])
        self.assert_result_ok(t)

    TEXT = ("--function", "foo", "-t", "text=str(s)")

    def assert_texts(self, r):
        self.assert_ok(r)
        self.assert_hits(r, 10)
        self.assertEqual({e["fields"]["text"] for e in r.events}, {"obstacle"})

    def test_thread_asleep_in_a_call_of_unknown_number_is_not_in_the_way(self):
        """The first stop makes the thread continue in a hook's stub, where it may sleep for any time."""
        t = self.target("obstacle", "call")
        before = State(t.pid)
        p = self.start_attached(t, *self.TEXT)
        self.await_events(p, n=10)
        self.assertTrue(caught(t.pid) & SEGV)
        r = self.finish(p)
        self.assert_texts(r)
        self.assertIsNone(r.summary["memory_by_calls"])
        self.assert_clean(t.pid, before)
        self.assert_result_ok(t)

    def test_memory_read_by_system_calls_is_said_in_the_summary(self):
        t = self.target("obstacle", "handler")
        before = State(t.pid)
        for text in ("text=str(s)", "text=str(s,32)"):
            r = self.attach(t, "--function", "foo", "-t", text, "-n", 10)
            self.assert_texts(r)
            said = r.summary["memory_by_calls"]
            self.assertIn("runs a signal handler with dynprobe's signals blocked", said["why"])
            self.assertIsNone(said["ns"])
        r = self.attach(t, *self.TEXT, "-n", 10, json_events=False)
        self.assertRegex(r.err, r"(?m)^  memory +read by system calls, which takes microseconds: thread \d+ of process \d+ \(obstacle\) runs a signal")
        self.assert_clean(t.pid, before)
        self.assert_result_ok(t)

    def test_handler_goes_in_when_the_thread_in_the_way_has_left(self):
        for text in ("text=str(s)", "text=str(s,32)"):
            t = self.target("obstacle", "handler")
            before = State(t.pid)
            p = self.start_attached(t, "--function", "foo", "-t", text)
            self.await_events(p, n=10)
            self.assertFalse(caught(t.pid) & SEGV)
            os.kill(t.pid, signal.SIGUSR2)
            wait_until(lambda: p.poll() is not None or caught(t.pid) & SEGV, what="the handler")
            self.await_events(p, n=10)
            r = self.finish(p)
            self.assert_texts(r)
            self.assertIn("runs a signal handler", r.summary["memory_by_calls"]["why"])
            self.assertGreater(r.summary["memory_by_calls"]["ns"], 0)
            self.assert_clean(t.pid, before)
            self.assert_result_ok(t)

    def test_ends_as_without_probes(self):
        for kind, sig in (("load", signal.SIGSEGV), ("ud2", signal.SIGILL), ("divide", signal.SIGFPE), ("int3", signal.SIGTRAP), ("load blocked", signal.SIGSEGV)):
            t = self.target("faults", 300, kind)  # dies of the fault at SIGTERM
            p = self.start("--pid", t.pid, "--tactic", "jump,pun,evict,trap", *PROBES)
            wait_until(lambda: p.poll() is not None or any(path == t.path for path, _ in harness.changed_text(t.pid)), what="probes")
            self.assertIsNone(p.poll(), kind)
            t.process.terminate()
            self.assertEqual(t.process.wait(20), -sig, kind)
            p.wait(20)

    def test_killed_tool_leaves_a_program_that_runs_and_the_next_one_takes_it_out(self):
        t = self.target("faults", 300)
        for _ in range(2):
            p = self.start("--pid", t.pid, "--tactic", "jump,pun,evict,trap", *PROBES, "-t", UNREADABLE)
            self.await_output(p, 3000)
            p.kill()
            p.wait()
            self.let_run(t)
        self.assert_cleaned(t)


if __name__ == "__main__":
    harness.main()
