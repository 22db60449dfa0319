# SPDX-License-Identifier: MIT
"""Tests LTTng events of a program with many threads: at no time are all of them stopped."""

import re

import harness
import lttng_env
import lttng_probe

THREADS = 400


class ManyThreads(lttng_probe.Case):
    def test_first_attach_and_the_next_hold_one_at_a_time(self):
        self.sessiond()
        self.session("s", "dynprobe:*")
        t = self.program("throng", THREADS)
        for args in ((), ("--name", "again")):
            p = self.tool("--pid", t.pid, "--function", "foo", "-t", "reg:edi", "--when", "(edi & 1023) == 5", "--session", "s", "-d", "0.3", "-v", *args)
            self.assertIn("1 probe placed", p.stderr)
            self.assertNotRegex(p.stderr, r"all threads|: threads held|will be counted as unprimed")
        self.lttng("stop", "s")
        seen = "\n".join(harness.babeltrace(self.path("s")))
        for name in ("foo", "again"):
            self.assertTrue(re.search(rf"dynprobe:{name}:", seen), name)
        self.end(t)


if __name__ == "__main__":
    lttng_env.main()
