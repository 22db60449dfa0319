# SPDX-License-Identifier: MIT
"""Kills dynprobe with SIGKILL at its system calls: tests/targets/killat counts their entries and exits, and kills at one of them."""

import random

import harness
from harness import wait_until


class Killing:
    """A mixin for harness.Case."""

    def run_killed(self, at, *args, **popen):
        """Returns (system call stops, number of the last call, the run); counts all stops if `at` is 0."""
        report = self.path("stops")
        p = harness.tool(*args, prefix=(harness.target_path("killat"), str(at), report), **popen)
        with open(report) as f:
            stops, call = map(int, f.read().split())
        return stops, call, p

    def instants(self, total, samples):
        """All stops, or one from each of several equal parts."""
        if harness.FULL:
            return range(1, total + 1)
        seed = random.randrange(1 << 30)
        print(f"seed {seed}, {total} system call stops", flush=True)
        rng = random.Random(seed)
        return sorted({min(total, 1 + int((i + rng.random()) * total / samples)) for i in range(samples)})

    def goes_on(self, t):
        """Asserts that the target runs: nothing holds it, and its processor time or its sleep advances."""
        self.assertTrue(t.alive(), f"the target died: {t.process.returncode}\n{t.output()[-500:]}\n{t.errors()[-500:]}")
        wait_until(lambda: harness.status(t.pid, "TracerPid") == "0", what="the kernel to release the target")
        self.let_run(t, steps=30)
