# SPDX-License-Identifier: MIT
"""Tests small control groups: rings take only memory that the group can spare, or probes are refused with the group's name."""

import os
import signal

import harness
from harness import Case, State, wait_until

MIB = 1 << 20
THREADS, BURST, CALLS = 41, 1500, 200000  # a burst of all registers (160 bytes a record) fits into a ring of 256 KiB
FILES = {2: ("memory.max", "memory.current"), 1: ("memory.limit_in_bytes", "memory.usage_in_bytes")}


def delegates_memory(folder):
    with open(folder + "/cgroup.subtree_control") as f:
        return "memory" in f.read().split()


def own_group():
    """(version, directory) of this process's group in the hierarchy with the memory controller."""
    with open("/proc/self/cgroup") as f:
        groups = [line.rstrip("\n").split(":", 2) for line in f]
    with open("/proc/self/mountinfo") as f:
        mounts = [(line.split(" - ")[0].split(), line.split(" - ")[1].split()) for line in f]
    for version, kind in (2, "cgroup2"), (1, "cgroup"):
        for mount, (fstype, _, options) in mounts:
            if fstype != kind or (version == 1 and "memory" not in options.split(",")):
                continue
            path = next((g[2] for g in groups if (g[1] == "" if version == 2 else "memory" in g[1].split(","))), None)
            folder = path and os.path.normpath(mount[4] + "/" + os.path.relpath(path, mount[3]))
            if folder and os.path.isdir(folder) and (version == 1 or delegates_memory(folder)):
                return version, folder
    return None


class SmallContainer(Case):
    def group(self, limit):
        found = own_group()
        if not found:
            self.skipTest("cannot create a control group with the memory controller below the test's")
        version, parent = found
        folder = os.path.join(parent, f"dynprobe-test-{os.getpid()}-{self.count}")
        self.count += 1
        try:
            os.mkdir(folder)
        except OSError as e:
            self.skipTest(f"no control group can be made in {parent}: {e}")
        self.addCleanup(os.rmdir, folder)
        with open(f"{folder}/{FILES[version][0]}", "w") as f:
            f.write(str(limit))
        return folder

    def inside(self, folder, name, *args):
        """Starts a target in the group, so that all of its memory counts there; the tool is outside."""

        def enter():
            with open(folder + "/cgroup.procs", "w") as f:
                f.write(str(os.getpid()))

        return self.target(name, *args, preexec_fn=enter)

    def crew(self, t, *args):
        """Probes the crew with a tool that is stopped: the rings must hold all records."""
        tool = self.start_attached(t, "--function", "foo", "-t", "regs", "-q", *args)
        os.kill(tool.pid, signal.SIGSTOP)
        wait_until(lambda: harness.status(tool.pid, "State")[0] == "T", what="dynprobe to stop")
        return tool

    def burst(self, t):
        os.kill(t.pid, signal.SIGUSR1)
        wait_until(lambda: "BURST" in t.output() or not t.alive(), what="the burst")
        self.assertTrue(t.alive(), t.process.returncode)

    def rest(self, t, tool):
        """Makes the other calls, and then lets the tool continue. Returns the probe's part of the summary."""
        os.kill(t.pid, signal.SIGUSR2)
        self.assertEqual(t.process.wait(300), 0, "killed by the OOM killer")
        self.assertIn("RESULT OK", t.output())
        os.kill(tool.pid, signal.SIGCONT)
        return self.finish(tool, None).summary["probes"][0]

    def test_what_fits_into_rings_of_256_kib_is_not_lost_in_32_mib(self):
        t = self.inside(self.group(32 * MIB), "crew", THREADS, BURST, 0)
        tool = self.crew(t)
        self.burst(t)
        probe = self.rest(t, tool)
        self.assertEqual((probe["recorded"], probe["lost"]["total"]), (THREADS * BURST, 0), probe)

    def test_forty_one_threads_live_in_32_mib_through_200000_hits_each(self):
        t = self.inside(self.group(32 * MIB), "crew", THREADS, BURST, CALLS)
        tool = self.crew(t)
        self.burst(t)
        probe = self.rest(t, tool)
        self.assertEqual(probe["hits"], THREADS * (BURST + CALLS), probe)
        self.assertGreaterEqual(probe["recorded"], THREADS * BURST, probe)

    def test_refuse_DP_LIMIT_group_that_has_nothing_to_spare(self):
        folder = self.group(4 * MIB)
        t = self.inside(folder, "spin", 0, 300)
        limit, used = (os.path.join(folder, f) for f in next(f for f in FILES.values() if os.path.exists(os.path.join(folder, f[0]))))
        # Version 1 also counts what a processor has set aside for the group, until it is wanted for another one: by the second run at the latest.
        now = 1 << 60
        for _ in range(4):
            self.assert_ok(self.attach(t, "--function", "foo", "--dry-run"))
            with open(used) as f:
                now = min(now, int(f.read()))
        with open(limit, "w") as f:
            f.write(str(now + 64 * 1024))
        before = State(t.pid)
        for more in (["--dry-run"], ["-n", 1]):
            self.assert_refused(self.attach(t, "--function", "foo", *more), "DP-LIMIT", os.path.basename(folder), os.path.basename(limit), "--max-memory")
            self.assertEqual(before.differences(State(t.pid)), {})
        self.assert_result_ok(t)

    def test_max_memory_bounds_all_rings_together(self):
        t = self.target("crew", THREADS, BURST, CALLS)
        shared = lambda: int(harness.status(t.pid, "RssShmem").split()[0]) << 10
        tool = self.crew(t, "--max-memory", "2M")
        before = shared()
        self.burst(t)
        self.assertLessEqual(shared() - before, 2 * MIB + 4096 * THREADS)
        self.assertEqual(self.rest(t, tool)["hits"], THREADS * (BURST + CALLS))


if __name__ == "__main__":
    harness.main()
