# SPDX-License-Identifier: MIT
"""--follow with traps, and with probes that follow pointers: fork children have the handler, and SIGTRAP and SIGSEGV of their own."""

import os
import re
import shutil
import signal
import subprocess

from harness import FULL, armed, caught, cpu_ticks, main, needs_root, target_path, tool, wait_until
from test_follow import Families, called, children, lost, recorded

TRAP = ("--tactic", "trap")

OWN_SIGNALS = r"""
#define _GNU_SOURCE
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <ucontext.h>
#include <unistd.h>

static volatile sig_atomic_t traps, faults;
static long bad;

__attribute__((noipa)) unsigned foo(unsigned a) { return a * 3 + 1; }

static void on_trap(int sig, siginfo_t *info, void *uc) { (void)sig; (void)info; (void)uc; traps++; }

static void on_fault(int sig, siginfo_t *info, void *uc)
{
	(void)sig;
	bad += info->si_addr != (void *)16;
	((ucontext_t *)uc)->uc_mcontext.gregs[REG_RIP] += 3; /* mov (%rax),%rax */
	faults++;
}

static void take(int sig, void (*f)(int, siginfo_t *, void *))
{
	struct sigaction a = {.sa_sigaction = f, .sa_flags = SA_SIGINFO}, old;
	sigaction(sig, &a, NULL);
	sigaction(sig, NULL, &old);
	bad += old.sa_sigaction != f;
}

/* Its own traps and faults, between calls of the probed function, with SIGTRAP blocked for a while. */
static void work(unsigned n)
{
	sigset_t set, old;
	traps = faults = 0;
	sigemptyset(&set);
	sigaddset(&set, SIGTRAP);
	for (unsigned i = 0; i < n; i++) {
		bad += foo(i) != i * 3 + 1;
		__asm__ volatile("int3");
		__asm__ volatile("mov $16, %%eax\n\tmov (%%rax), %%rax" ::: "rax", "memory");
		raise(SIGTRAP);
		sigprocmask(SIG_BLOCK, &set, NULL);
		raise(SIGTRAP);
		bad += foo(i) != i * 3 + 1;
		sigprocmask(SIG_SETMASK, NULL, &old);
		bad += !sigismember(&old, SIGTRAP) || traps != 3 * (int)i + 2;
		sigprocmask(SIG_UNBLOCK, &set, NULL);
	}
	bad += traps != 3 * (int)n || faults != (int)n;
	printf("CALLED %d %u\n", (int)getpid(), 2 * n);
	fflush(stdout);
}

static void family(int generation, unsigned n)
{
	int s;
	work(n);
	for (int k = 1; generation < 3 && k <= 2; k++)
		if (!fork()) {
			if (k == 2) {
				take(SIGTRAP, on_trap);
				take(SIGSEGV, on_fault);
			}
			bad = 0;
			family(generation + 1, n + k);
			_exit(bad != 0);
		}
	while (wait(&s) > 0)
		bad += s != 0;
}

/* A child that dies of a trap of its own must die of it. */
static void victims(void)
{
	for (int sig = 0; sig < 2; sig++) {
		int s;
		const pid_t pid = fork();
		if (!pid) {
			foo(1); /* its state becomes its own at its first hit, or at its first system call that is hooked */
			signal(SIGTRAP, SIG_DFL);
			signal(SIGSEGV, SIG_DFL);
			foo(1);
			if (sig)
				*(volatile int *)16 = 0;
			__asm__ volatile("int3");
			_exit(0);
		}
		waitpid(pid, &s, 0);
		bad += !WIFSIGNALED(s) || WTERMSIG(s) != (sig ? SIGSEGV : SIGTRAP);
	}
}

int main(int argc, char **argv)
{
	take(SIGTRAP, on_trap);
	take(SIGSEGV, on_fault);
	family(1, argc > 1 ? (unsigned)atoi(argv[1]) : 10);
	victims();
	printf("RESULT %s\n", bad ? "BAD" : "OK");
	return bad != 0;
}
"""


class Traps(Families):
    def assert_trapped(self, r):
        self.assertEqual({p["tactic"] for p in r.summary["probes"]}, {"trap"}, str(r.summary))

    def test_tree_of_children_with_threads_each_call_of_each_process(self):
        t = self.family("tree", 100)
        r = self.follow(t, *TRAP, "-t", "pid")
        self.assert_all(t, r)
        self.assert_trapped(r)
        self.assertEqual((len(called(t)), r.summary["followed"]), (7, 6), str(r.summary))
        self.assertTrue(all(e["pid"] == e["fields"]["pid"] for e in r.events))

    def test_children_that_follow_pointers_good_and_bad(self):
        t = self.family("tree", 100)
        r = self.follow(t, *TRAP, "-t", "str($rsi)", "-t", "long:nothing:16")
        self.assert_all(t, r)
        self.assertEqual({tuple(e["fields"].values()) for e in r.events}, {("family", None)})
        t = self.family("tree", 100)
        r = self.follow(t, "-t", "str($rsi)", "-t", "long:nothing:16")
        self.assert_all(t, r)
        self.assertIsNone(r.summary["memory_by_calls"], "loads, not system calls")
        self.assertEqual({tuple(e["fields"].values()) for e in r.events}, {("family", None)})

    def test_counts_and_durations_of_all_processes(self):
        t = self.family("tree", 200)
        r = self.follow(t, *TRAP, "--count", "--by", "pid")
        self.assert_ok(r)
        self.assertEqual({row["key"]: row["hits"] for row in r.answers if row["final"]}, called(t), str(r))
        t = self.family("tree", 200)
        r = self.follow(t, *TRAP, "--hist", "duration", probe=("--return", "foo"))
        self.assert_ok(r)
        self.assertEqual(sum(row["hits"] for row in r.answers if row["final"]) + lost(r), sum(called(t).values()), str(r))

    def test_short_children_one_after_the_other(self):
        t = self.family("burst", 100)
        r = self.follow(t, *TRAP)
        self.assert_ok(r)
        self.assertEqual((len(recorded(r)), lost(r)), (100, 0), str(r.summary))
        self.assertEqual(set(recorded(r).values()), {3})

    def alive(self, *args):
        """A parent and two children that call; each has been seen."""
        t = self.family("on")
        p = self.start_attached(t, "--follow", "--function", "foo", *TRAP, *args)
        os.kill(t.pid, signal.SIGUSR1)
        wait_until(lambda: len(children(t.pid)) == 2, what="children")
        pids = [t.pid, *children(t.pid)]
        wait_until(lambda: all(f'"pid":{pid},' in self.said(p) for pid in pids), what="events of each")
        return t, p, pids

    def test_interrupt_leaves_all_processes_clean_and_their_signals_theirs(self):
        t, p, pids = self.alive()
        r = self.finish(p)
        self.assert_ok(r)
        self.assertEqual((lost(r), set(recorded(r))), (0, set(pids)), str(r.summary))
        for pid in pids:
            self.assert_clean(pid)
            self.assertFalse(caught(pid) >> (signal.SIGTRAP - 1) & 1, "no handler of ours")
        self.assert_result_ok(t)

    def test_killed_dynprobe_leaves_the_family_running(self):
        t, p, pids = self.alive("-t", "str($rsi)")
        p.kill()
        p.wait()
        for pid in reversed(pids):
            before = cpu_ticks(pid)
            wait_until(lambda: cpu_ticks(pid) > before + 2, what="it to go on")  # noqa: B023
            self.assertTrue(armed(pid))
            self.assert_ok(self.dynprobe("--pid", pid, "--function", "foo", "-n", 2))
            self.assert_clean(pid)
        self.assert_result_ok(t)

    def test_killed_while_children_are_born(self):
        for n in (1, 20, 100) if FULL else (1, 100):
            t = self.family("burst", 1000 if FULL else 500)
            p = self.start_attached(t, "--follow", "--function", "foo", *TRAP)
            os.kill(t.pid, signal.SIGUSR1)
            self.await_output(p, 150 * n)
            p.kill()
            p.wait()
            self.assertEqual(t.process.wait(300), 0, t.output())

    def test_program_with_traps_and_faults_of_its_own(self):
        self.written("own.c", OWN_SIGNALS)
        subprocess.run(["gcc", "-O1", "-o", self.path("own"), self.path("own.c")], check=True)
        for more in ((*TRAP, "-t", "long:nothing:16"), (*TRAP,), ("-t", "long:nothing:16")):
            r = self.dynprobe("--follow", "--function", "foo", *more, "--", self.path("own"), 20)
            self.assert_ok(r)
            self.assertIn("RESULT OK", r.out)
            calls = {int(pid): int(n) for pid, n in re.findall(r"CALLED (\d+) (\d+)", r.out)}
            self.assertEqual({pid: n for pid, n in recorded(r).items() if pid in calls}, calls, str(r))
            self.assertEqual(sorted(n for pid, n in recorded(r).items() if pid not in calls), [2, 2], "the victims")
            self.assertEqual(lost(r), 0, str(r.summary))

    def test_children_forked_in_the_middle_of_a_trap_or_a_load_that_faults(self):
        both = (("-t", "long:nothing:16", *TRAP), ("--count", "--by", "backtrace", *TRAP))  # the first: a trap, and a load that faults in it
        for words in (("-t", "regs", *TRAP), ("-t", "long:nothing:16"), *both) if FULL else both:
            with self.subTest(words):
                shown = () if "--count" in words else ("--no-record", "-f", "json", "-o", "/dev/null")
                tool("--follow", "--function", "foo", "-q", *words, *shown, "--", target_path("handler_forks"), 3000 if FULL else 150, status=0)

    @needs_root
    def test_programs_that_children_execute(self):
        started = shutil.copy(target_path("started"), self.path("started"))
        for how in ("fork", "vfork", "spawn", "thread"):
            r = self.dynprobe("--follow", "--function", "foo", *TRAP, "--", target_path("starter"), how, 5, started, 3)
            self.assert_ok(r)
            calls = {int(pid): int(n) for pid, n in re.findall(r"CALLED (\d+) (\d+)", r.out)}
            self.assertEqual((len(calls), recorded(r)), (5, calls), str(r))
            self.assertIn("STATUS 0 5", r.out)

    def test_load_of_children_that_execute_and_come_back(self):
        """vfork, posix_spawn and fork all the time: none of them loses its signals."""
        t = self.target("forkload")
        p = self.start_attached(t, "--follow", "--function", "foo", *TRAP)
        self.await_output(p, 100000 if FULL else 30000)
        r = self.finish(p)
        self.assert_ok(r)
        self.assert_trapped(r)
        self.assert_clean(t.pid)
        self.assert_result_ok(t)


del Families
if __name__ == "__main__":
    main()
