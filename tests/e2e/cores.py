# SPDX-License-Identifier: MIT
"""What tests of programs that dump their core share."""

import os
import resource

from harness import Case

PATTERN = "/proc/sys/kernel/core_pattern"


def limit_none():
    resource.setrlimit(resource.RLIMIT_CORE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))


class CoreCase(Case):
    def setUp(self):
        super().setUp()
        if resource.getrlimit(resource.RLIMIT_CORE)[1] != resource.RLIM_INFINITY:
            self.skipTest("the hard limit of core files (ulimit -H -c) is not unlimited")
        with open(PATTERN) as f:
            pattern = f.read().strip()
        if pattern.startswith(("|", "/")):  # the core is not written to the program's own directory
            if not os.access(PATTERN, os.W_OK):
                self.skipTest(f"core files go to {pattern}, and {PATTERN} cannot be changed")
            self.addCleanup(self.set_pattern, pattern)
            self.set_pattern("core")

    def set_pattern(self, pattern):
        with open(PATTERN, "w") as f:
            f.write(pattern)

    def dumping(self, folder, *command):
        """A target that may dump its core, into the folder."""
        os.mkdir(folder)
        return self.target(*command, cwd=folder, preexec_fn=limit_none)

    def dumped(self, folder):
        cores = os.listdir(folder)
        self.assertEqual(len(cores), 1, cores)
        return os.path.join(folder, cores[0])
