# SPDX-License-Identifier: MIT
"""Tests backtraces through libraries that a process loads while its probes are there."""

import os
import re
import resource
import signal
import sys
import time

import harness
from harness import Case, compiled, needs, wait_until

# inner() is called directly until a library is asked for, and through each library that is loaded then.
PROGRAM = r"""
#define _GNU_SOURCE
#include <dlfcn.h>
#include <signal.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>
#include <sys/wait.h>
static volatile sig_atomic_t asked, stop;
static void on_usr1(int n) { (void)n; asked++; }
static void on_term(int n) { (void)n; stop = 1; }
__attribute__((noinline)) int inner(int n) { __asm__ volatile("" : "+r"(n)); return n + 1; }
static int call(int n) { int r = inner(n); __asm__ volatile("" ::: "memory"); return r; }
static void some(int (*outer)(int (*)(int), int), int loaded)
{
	for (int i = 0; i < 10; i++)
		if ((outer ? outer(call, i) : call(i)) != i + 1 + (outer != 0))
			puts("RESULT BAD");
	(void)loaded;
}
int main(int argc, char **argv)
{
	int (*outer)(int (*)(int), int) = NULL;
	void *library = NULL;
	int loaded = 0;
	signal(SIGUSR1, on_usr1);
	signal(SIGTERM, on_term);
	puts("READY");
	fflush(stdout);
	while (!stop) {
		if (loaded < asked && loaded < argc - 1) {
			if (library)
				dlclose(library);
			library = dlopen(argv[++loaded], RTLD_NOW);
			outer = library ? (int (*)(int (*)(int), int))dlsym(library, "outer") : NULL;
			printf("LOADED %d\n", loaded);
			fflush(stdout);
		}
		some(outer, loaded);
		nanosleep(&(struct timespec){0, 4000000}, NULL);
	}
	puts("RESULT OK");
	return 0;
}
"""
# On a signal it forks and executes another program. Its child has its first hits when it is asked to.
FORKER = r"""
#define _GNU_SOURCE
#include <signal.h>
#include <stdio.h>
#include <unistd.h>
__attribute__((noinline)) int inner(int n) { __asm__ volatile("" : "+r"(n)); return n + 1; }
__attribute__((noinline)) static int call(int n) { int r = inner(n); __asm__ volatile("" ::: "memory"); return r; }
int main(int argc, char **argv)
{
	sigset_t set;
	int n, bad = 0;
	sigemptyset(&set);
	sigaddset(&set, SIGUSR1);
	sigaddset(&set, SIGUSR2);
	sigprocmask(SIG_BLOCK, &set, NULL);
	puts("READY");
	fflush(stdout);
	sigwait(&set, &n);
	if (argc > 1 && fork())
		return execvp(argv[1], argv + 1);
	printf("CHILD %d\n", getpid());
	fflush(stdout);
	sigwait(&set, &n);
	for (int i = 0; i < 200; i++)
		bad |= call(i) != i + 1;
	puts(bad ? "RESULT BAD" : "RESULT OK");
	fflush(stdout);
	return 0;
}
"""
# Without frame pointers: only its tables lead through it.
LIBRARY = r"""
__attribute__((noinline)) static int middle_%(name)s(int (*f)(int), int n)
{
	volatile char room[%(room)d];
	room[n] = 1;
	int r = f(n) + room[n] - 1;
	__asm__ volatile("" ::: "memory");
	return r;
}
int outer(int (*f)(int), int n) { int r = middle_%(name)s(f, n); __asm__ volatile("" ::: "memory"); return r + 1; }
"""
FLAGS = ("-O2", "-g", "-fomit-frame-pointer", "-fno-optimize-sibling-calls")


@needs("gcc")
class NewCode(Case):
    def setUp(self):
        super().setUp()
        self.program = compiled(self.path("main"), "gcc", *FLAGS, text=PROGRAM)
        self.library = [compiled(self.path(f"lib{n}.so"), "gcc", *FLAGS, "-shared", "-fPIC", text=LIBRARY % {"name": n, "room": r})
                        for n, r in (("one", 200), ("two", 720))]

    def load(self, t, n):
        os.kill(t.pid, signal.SIGUSR1)
        wait_until(lambda: f"LOADED {n}" in t.output(), what="the program to load a library")

    def through(self, events, name):
        """The backtraces that lead through a library to main()."""
        chain = ("inner", "call", "middle_" + name, "outer", "main")
        functions = lambda e: [re.split(r"[+@ ]", f["symbol"])[0] for f in e["fields"]["backtrace"]]
        return [e for e in events if tuple(functions(e)[:5]) == chain and f"lib{name}.so" in str(e["fields"]["backtrace"][2])]

    def so_far(self, p):
        try:
            with open(p.events) as f:
                return harness.objects(f.read().rpartition("\n")[0])
        except OSError:
            return []

    def events(self, p, name):
        return self.through([e for e in self.so_far(p) if e.get("type") == "event"], name)

    def test_attached_to(self):
        t = self.target(self.program, *self.library)
        before = harness.State(t.pid)
        p = self.start_attached(t, "--function", "inner", "-t", "backtrace", "--buffer-size", "8M")  # a busy machine's tool is late
        for n, name in enumerate(("one", "two"), 1):
            self.load(t, n)
            wait_until(lambda: self.events(p, name), what=f"backtraces through lib{name}.so")  # noqa: B023
        r = self.finish(p)
        self.assert_ok(r)
        self.assertEqual(r.summary["lost"]["total"], 0)
        self.assertEqual(harness.State(t.pid).changed_text, before.changed_text)
        self.assert_result_ok(t)

    def test_a_killed_tool_leaves_nothing_that_stays(self):
        t = self.target(self.program, *self.library)
        before = harness.State(t.pid)
        p = self.start_attached(t, "--function", "inner", "-t", "backtrace")
        self.load(t, 1)
        wait_until(lambda: self.events(p, "one"), what="backtraces through libone.so")
        p.kill()
        p.wait()
        self.load(t, 2)
        self.assert_ok(self.attach(t, "--function", "inner", "-t", "backtrace", "-n", 20))
        self.assertEqual(harness.State(t.pid).changed_text, before.changed_text)
        self.assertEqual([m for m in harness.maps(t.pid) if m.is_ours], [])
        self.assert_result_ok(t)

    def test_a_trace_has_their_names(self):
        t = self.target(self.program, *self.library)
        trace = self.path("trace")
        p = self.start_attached(t, "--function", "inner", "-t", "backtrace", record=trace)
        self.load(t, 1)
        wait_until(lambda: self.events(p, "one"), what="backtraces through libone.so")
        self.assert_ok(self.finish(p))
        self.assert_result_ok(t)
        shown = harness.tool("view", trace, "--count", "--by", "backtrace", status=0).stdout
        self.assertRegex(shown, r"middle_one\+.*\[libone.so\](.*\n) +outer\+.*\[libone.so\]")

    def test_a_child_keeps_its_tables_when_its_parent_executes_another_program(self):
        program = compiled(self.path("forker"), "gcc", *FLAGS, text=FORKER)
        t = self.target(program, sys.executable, "-c", "import time; time.sleep(1000)")
        p = self.start_attached(t, "--follow", "--function", "inner", "-t", "backtrace")
        os.kill(t.pid, signal.SIGUSR1)
        child = int(wait_until(lambda: re.search(r"CHILD (\d+)\n", t.output()), what="the child")[1])
        wait_until(lambda: "python" in os.readlink(f"/proc/{t.pid}/exe"), what="the parent to execute python3")
        time.sleep(0.3)  # a tool that looks for new code there looks now
        os.kill(child, signal.SIGUSR2)
        wait_until(lambda: "RESULT" in t.output(), what="the child's end")
        r = self.finish(p)
        stacks = {tuple(re.split(r"[+@ ]", f["symbol"])[0] for f in e["fields"]["backtrace"])[:3] for e in r.events}
        self.assertEqual((len(r.events), stacks), (200, {("inner", "call", "main")}))
        self.assertIn("RESULT OK", t.output())

    def test_where_addresses_are_limited_walks_end_and_it_is_said(self):
        t = self.target(self.program, *self.library)
        resource.prlimit(t.pid, resource.RLIMIT_AS, (2 << 30, resource.prlimit(t.pid, resource.RLIMIT_AS)[1]))
        p = self.start_attached(t, "--function", "inner", "-t", "backtrace")
        self.load(t, 1)
        wait_until(lambda: any("libone.so" in str(e) for e in self.so_far(p)), what="the name of the library")
        r = self.finish(p)
        self.assert_ok(r)
        self.assertEqual(self.through(r.events, "one"), [])
        self.assertTrue(any("no room for their unwind tables" in str(x) for x in r.lines), r.lines[-2:])
        self.assert_result_ok(t)


if __name__ == "__main__":
    harness.main()
