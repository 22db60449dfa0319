# SPDX-License-Identifier: MIT
"""Tests threads in every state: none sees an interrupted call, a lost wake-up, a wrong result or another signal mask."""

import json
import os
import signal
import time

import harness
from harness import Case, State, wait_until


NAMED = """
#define _GNU_SOURCE
#include <pthread.h>
#include <stdio.h>
#include <unistd.h>
__attribute__((noinline)) void tick(void) { asm volatile(""); }
static void *worker(void *p) { for (;;) { tick(); usleep(1000); } return p; }
int main(void)
{
	for (int i = 0; i < 3; i++) {
		char name[16];
		pthread_t t;
		pthread_create(&t, NULL, worker, NULL);
		snprintf(name, sizeof(name), "worker-%d", i);
		pthread_setname_np(t, name);
	}
	puts("READY");
	fflush(stdout);
	worker(NULL);
}
"""

CROWD = """
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
static volatile sig_atomic_t stop;
static void on_term(int n) { (void)n; stop = 1; }
__attribute__((noipa)) int serve(const char *path, int n) { asm volatile("" :: "r"(path)); return n + 1; }
static void *idle(void *p) { for (;;) pause(); return p; }
int main(int argc, char **argv)
{
	pthread_attr_t small;
	int bad = 0;
	pthread_attr_init(&small);
	pthread_attr_setstacksize(&small, 64 << 10);
	for (int i = 0; i < atoi(argv[argc - 1]); i++) {
		pthread_t t;
		if (pthread_create(&t, &small, idle, NULL))
			return 9;
	}
	signal(SIGTERM, on_term);
	puts("READY");
	fflush(stdout);
	for (int i = 0; !stop; i++, usleep(100))
		bad |= serve("/path", i) != i + 1;
	puts(bad ? "RESULT BAD" : "RESULT OK");
	return bad;
}
"""


ROUNDS = 5 if harness.FULL else 2


class Threads(Case):
    NAMES = {"app", "worker-0", "worker-1", "worker-2"}

    def named(self):
        return self.target(harness.compiled(self.path("app"), "gcc", "-O1", "-pthread", text=NAMED))

    def assert_named(self, t, events):
        self.assertEqual({e["comm"] for e in events}, self.NAMES)
        self.assertEqual({e["comm"] for e in events if e["tid"] == t.pid}, {"app"})
        self.assertEqual(len({(e["tid"], e["comm"]) for e in events}), 4)

    def assert_named_in_perfetto(self, file):
        with open(file) as f:
            said = [e for e in json.load(f)["traceEvents"] if e["ph"] == "M"]
        self.assertEqual({e["args"]["name"] for e in said if e["name"] == "thread_name"}, self.NAMES)
        self.assertEqual([e["args"]["name"] for e in said if e["name"] == "process_name"], ["app"])

    def events(self, *args):
        return [e for e in harness.objects(harness.tool(*args, "-f", "json", status=0).stdout) if e["type"] == "event"]

    def assert_named_in_trace(self, t, trace):
        self.assert_named(t, self.events("view", trace))

    @harness.needs("gcc")
    def test_a_crowd_is_not_held_for_what_probes_can_do_without(self):
        """It would be in vain: so many threads do not stop together in time, and the attempts would cost the program seconds."""
        t = self.target(harness.compiled(self.path("crowd"), "gcc", "-g", "-O1", "-w", "-pthread", text=CROWD), 1000)
        before = State(t.pid)
        r = self.attach(t, "--function", "serve", "-t", "str(path)", "-n", 50)
        self.assert_ok(r)
        self.assertEqual({e["fields"][k] for e in r.events for k in e["fields"]}, {"/path"})
        self.assertEqual(r.summary["memory_by_calls"], {"why": "the process has more threads than can be stopped together within --max-pause", "ns": None})
        self.assertEqual(r.summary["stops_attach"]["given_up"], 0, "attempts to stop all of them")
        self.assertEqual(State(t.pid).changed_text, before.changed_text)
        self.assert_clean(t.pid)
        self.assert_result_ok(t)
        patient = self.attach(self.target(self.path("crowd"), 20), "--function", "serve", "-t", "str(path)", "-n", 5)
        self.assertNotIn("more threads", str(patient.summary["memory_by_calls"]))

    def rounds(self, t, n, *args):
        before = State(t.pid)
        for i in range(n):
            r = self.attach(t, *(args or ("--function", "foo", "-t", "regs", "-n", 20)))
            self.assert_ok(r)
            self.assert_clean(t.pid, before)

    def test_sixty_four_threads_running_and_asleep(self):
        t = self.target("threads", 64)
        self.rounds(t, ROUNDS)
        self.assert_result_ok(t)

    def test_events_name_their_threads(self):
        t = self.target("threads", 16)
        r = self.attach(t, "--function", "foo", "--when", harness.CALM, "-d", 1)
        tasks = {int(x) for x in os.listdir(f"/proc/{t.pid}/task")}
        seen = {e["tid"] for e in r.events}
        self.assertGreater(len(seen), 5)
        self.assertEqual(seen - tasks, set())
        self.assert_result_ok(t)

    def test_threads_have_their_own_names(self):
        t = self.named()
        r = self.attach(t, "--function", "tick", "-n", 400)
        self.assert_ok(r)
        self.assert_named(t, r.events)
        file = self.path("perfetto.json")
        harness.tool("--pid", t.pid, "--function", "tick", "-n", 400, "-f", "perfetto", "-o", file, status=0)
        self.assert_named_in_perfetto(file)
        trace = self.path("trace")
        harness.tool("--pid", t.pid, "--function", "tick", "-n", 400, "-q", "--record", trace, status=0)
        self.assert_named_in_trace(t, trace)

    def test_threads_have_their_own_names_in_the_events_of_resident_probes(self):
        t = self.named()
        harness.tool("attach", "--pid", t.pid, "--function", "tick", "--sink", "ring", status=0)
        self.assert_named(t, self.events("record", "--pid", t.pid, "-n", 400, "--no-record"))
        file = self.path("perfetto.json")
        harness.tool("record", "--pid", t.pid, "-n", 400, "-f", "perfetto", "--no-record", "-o", file, status=0)
        self.assert_named_in_perfetto(file)
        for end, most in ("-n", 400), ("-d", 1):  # one by one, and in batches
            harness.tool("record", "--pid", t.pid, end, most, "-q", "--record", self.path("trace" + end), status=0)
            self.assert_named_in_trace(t, self.path("trace" + end))
        harness.tool("detach", "--pid", t.pid, status=0)
        self.assert_clean(t.pid)

    def test_no_system_call_is_interrupted_and_no_wake_up_lost(self):
        """Covers every call that a stop makes fail with EINTR, and handled signals that arrive during the stop."""
        t = self.target("eintr")
        self.rounds(t, 2 * ROUNDS, "--function", "foo", "-n", 2)
        self.rounds(t, ROUNDS, "--function", "foo", "--tactic", "window", "-n", 2)  # with all threads held
        self.assert_result_ok(t)

    def test_all_signals_blocked(self):
        t = self.target("blocked")
        self.rounds(t, ROUNDS)
        self.assert_result_ok(t)

    def test_signal_storm(self):
        t = self.target("sigstorm")
        self.rounds(t, ROUNDS, "--function", "foo", "-t", "regs", "-t", "backtrace", "-n", 500)
        self.assert_result_ok(t)

    def test_longjmp_out_of_probed_functions(self):
        t = self.target("longjmper")
        self.rounds(t, ROUNDS, "--function", "foo", "--function", "on_alarm", "-t", "regs", "-d", "0.3")
        self.assert_result_ok(t)

    def test_exceptions_through_probed_functions(self):
        t = self.target("cxxthrow")
        self.rounds(t, 3, "--function", "thrower", "--function", "middle", "-t", "regs", "-t", "backtrace", "-n", 200)
        self.assert_result_ok(t)

    def test_job_stopped_target_stays_stopped(self):
        t = self.target("spin", 0, 500)
        os.kill(t.pid, signal.SIGSTOP)
        wait_until(lambda: t.state() == "T", what="the stop")
        p = self.start_attached(t, "--function", "foo")
        time.sleep(0.2)  # it must not start to run meanwhile
        wait_until(lambda: t.state() == "T", what="the target to stop again")  # it needs a processor for that
        os.kill(t.pid, signal.SIGCONT)
        self.await_output(p)
        os.kill(t.pid, signal.SIGSTOP)
        wait_until(lambda: t.state() == "T", what="the stop")
        self.finish(p)
        wait_until(lambda: t.state() == "T", what="the target to stop again")
        self.assert_clean(t.pid)
        os.kill(t.pid, signal.SIGCONT)
        self.assert_result_ok(t)

    def test_threads_that_start_and_end_while_probed(self):
        """More threads come and go than there are rings: rings are reused, or the loss is counted."""
        t = self.target("churn")
        r = self.attach(t, "--function", "foo", "-t", "reg:rdi", "-d", 2 if harness.FULL else 1)
        self.assert_ok(r)
        self.assertGreater(len({e["tid"] for e in r.events}), 20)
        self.assert_clean(t.pid)
        self.assert_result_ok(t)


if __name__ == "__main__":
    harness.main()
