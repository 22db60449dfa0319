# SPDX-License-Identifier: MIT
"""Kills dynprobe with SIGKILL at its system calls: tests/targets/killat counts their entries and exits, and kills at one of them."""

import random

import harness
from harness import wait_until


class Killing:
    """Mixed into a harness.Case."""

    def run_killed(self, at, *args, **popen):
        """(edges of system calls, number of the last call, the run), of all if `at` is 0."""
        report = self.path("stops")
        p = harness.tool(*args, prefix=(harness.target_path("killat"), str(at), report), **popen)
        with open(report) as f:
            stops, call = map(int, f.read().split())
        return stops, call, p

    def instants(self, total, samples):
        """All, or one from each of some equal parts."""
        if harness.FULL:
            return range(1, total + 1)
        seed = random.randrange(1 << 30)
        print(f"seed {seed}, {total} system call stops", flush=True)
        rng = random.Random(seed)
        return sorted({min(total, 1 + int((i + rng.random()) * total / samples)) for i in range(samples)})

    def goes_on(self, t):
        """It runs: nobody holds it, and its own processor time or its sleep goes on."""
        self.assertTrue(t.alive(), f"the target died: {t.process.returncode}\n{t.output()[-500:]}\n{t.errors()[-500:]}")
        wait_until(lambda: harness.status(t.pid, "TracerPid") == "0", what="the kernel to release the target")
        self.let_run(t, steps=30)
