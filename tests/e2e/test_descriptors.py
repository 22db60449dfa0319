# SPDX-License-Identifier: MIT
"""dynprobe's own file descriptors (RLIMIT_NOFILE): where they run short, no program pays for it, and what is said is true."""

import os
import resource

import harness
from harness import EXIT_PARTIAL, OWN_FAILURE, Case, babeltrace, compiled, needs_root, wait_until
from test_program import Program, called, recorded

SHOWS = r"""
#include <stdio.h>
#include <sys/resource.h>
__attribute__((noinline)) void foo(struct rlimit limit)
{
	printf("LIMIT %d %d\n", (int)limit.rlim_cur, (int)limit.rlim_max);
}
int main(void)
{
	struct rlimit limit;
	getrlimit(RLIMIT_NOFILE, &limit);
	foo(limit);
	return 0;
}
"""

COUNTS = r"""
#include <fcntl.h>
__attribute__((noinline)) int foo(int open)
{
	return open;
}
int main(void)
{
	int open = 0;
	for (int fd = 0; fd < 3; fd++)
		open += fcntl(fd, F_GETFD) >= 0;
	return foo(open);
}
"""


def take_descriptors(p):
    """From now on dynprobe can open nothing, until it is given its limit again; returns that."""
    was = resource.prlimit(p.pid, resource.RLIMIT_NOFILE)
    resource.prlimit(p.pid, resource.RLIMIT_NOFILE, (3, was[1]))
    return was


class Descriptors(Case):
    def test_more_processes_than_descriptors_DP_LIMIT(self):
        targets = [self.target("spin", 0, 1000) for _ in range(10)]
        pids = ",".join(str(t.pid) for t in targets)
        r = self.dynprobe("--pid", pids, "--function", "foo", "-d", 1, record=self.path("trace"), prefix=["prlimit", "--nofile=48"])
        self.assert_ok(r, EXIT_PARTIAL)
        refused = {p["pid"] for p in r.summary["probes"] if p.get("tag") == "DP-LIMIT"}
        hit = {p["pid"] for p in r.summary["probes"] if p.get("hits")}
        self.assertEqual(refused | hit, {t.pid for t in targets}, str(r))
        self.assertTrue(refused and hit, str(r))
        self.assertIn("RLIMIT_NOFILE", r.err)
        for t in targets:
            self.assert_clean(t.pid)
            self.assert_result_ok(t)

    def test_limit_is_raised_and_a_command_has_its_own(self):
        shows = compiled(self.path("shows"), "gcc", "-g", text=SHOWS)
        r = self.dynprobe("--function", "foo", "--", shows, prefix=["prlimit", "--nofile=40:400"])
        self.assert_ok(r)
        self.assertIn("LIMIT 40 400", r.out)
        self.assert_hits(r)
        targets = [self.target("spin", 0, 1000) for _ in range(10)]
        pids = ",".join(str(t.pid) for t in targets)
        r = self.dynprobe("--pid", pids, "--function", "foo", "-d", 1, prefix=["prlimit", "--nofile=40:400"])
        self.assert_ok(r)
        for t in targets:
            self.assert_result_ok(t)

    def test_closed_standard_descriptors_are_not_used_for_other_files(self):
        closed = ["sh", "-c", 'exec "$@" <&- >&- 2>&-', "sh"]
        t = self.target("spin", 0, 1000)
        argv, events = self.command("--pid", t.pid, "--function", "foo", "-d", 3, record=self.path("trace"))
        p = self.spawn(*closed, *argv)
        wait_until(lambda: p.poll() is not None or t.patched(), what="the probe")
        self.assertEqual([os.readlink(f"/proc/{p.pid}/fd/{fd}") for fd in range(3)], ["/"] * 3)
        self.assertEqual(p.wait(), 0)
        self.assertTrue(babeltrace(self.path("trace")))
        self.assert_clean(t.pid)
        self.assert_result_ok(t)
        counts = compiled(self.path("counts"), "gcc", "-g", text=COUNTS)
        argv, _ = self.command("--function", "foo", record=self.path("trace2"))
        self.assertEqual(self.spawn(*closed, *argv, "--", counts).wait(), 0)

    def test_removal_without_descriptors_is_told(self):
        t = self.target("spin", 0, 1000)
        p = self.start_attached(t, "--function", "foo")
        take_descriptors(p)
        r = self.finish(p)
        self.assert_refused(r, "DP-LIMIT", f"stay in process {t.pid}", "dynprobe detach")
        self.assertTrue(t.patched())
        self.assertEqual(harness.tool("detach", "--pid", t.pid).returncode, 0)
        self.assert_clean(t.pid)
        self.assert_result_ok(t)


@needs_root
class Execs(Program):
    def test_no_exec_fails(self):
        """The kernel denies an exec whose question it cannot deliver."""
        p = self.watch()
        _, text = self.starts("fork", 1, self.started, 2)
        wait_until(lambda: "are probed when" in self.said(p), what="the first process")
        was = take_descriptors(p)
        got, unseen = self.starts("fork", 4, self.started, 3)
        self.assertEqual(got, {0: 4}, unseen)
        many, more = self.starts("many", 30, self.started, 3)
        self.assertEqual(many, {0: 30}, more)
        self.assertIn("DP-LIMIT", self.said(p))
        resource.prlimit(p.pid, resource.RLIMIT_NOFILE, was)
        _, again = self.starts("fork", 1, self.started, 4)
        r = self.finish(p)
        self.assert_ok(r, EXIT_PARTIAL)
        self.assertEqual(recorded(r), called(text + again), str(r))
        self.assertEqual(r.summary["started"], 36, str(r))
        self.assertEqual(r.summary["late"] + r.summary["unprobed"], 34, str(r))


if __name__ == "__main__":
    harness.main()
