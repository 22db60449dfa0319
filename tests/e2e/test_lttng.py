# SPDX-License-Identifier: MIT
"""A trace of ours beside one of LTTng-UST, of the same program at the same time: babeltrace2 merges them into one order."""

import re
import subprocess

import harness
from harness import Case, needs, wait_until


@needs("lttng")
@needs("lttng-sessiond")
@needs("babeltrace2")
class Merge(Case):
    def setUp(self):
        super().setUp()
        self.env = harness.environment(LTTNG_HOME=self.dir)
        if subprocess.run(["pgrep", "-x", "lttng-sessiond"], capture_output=True).returncode == 0:
            self.skipTest("a session daemon is running: not disturbed")
        self.daemon = subprocess.Popen(["lttng-sessiond", "--no-kernel"], env=self.env, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        self.addCleanup(self.stop_daemon)
        wait_until(lambda: self.lttng("list", check=False).returncode == 0, 20, "the session daemon")

    def stop_daemon(self):
        self.daemon.terminate()
        try:
            self.daemon.wait(20)
        except subprocess.TimeoutExpired:
            self.daemon.kill()
            self.daemon.wait()

    def lttng(self, *args, check=True):
        return subprocess.run(["lttng", "-n", *args], env=self.env, capture_output=True, text=True, timeout=60, check=check)

    def test_our_events_lie_between_the_programs_own(self):
        ust, ours = self.path("ust"), self.path("ours")
        self.lttng("create", "merge", f"--output={ust}")
        self.lttng("enable-event", "-u", "lttng_ust_tracef:*")
        self.lttng("start")
        t = self.target("usttrace", env=self.env)
        r = self.attach(t, "--function", "foo", "-t", "reg:edi", "-n", 100, record=ours)
        self.assert_ok(r)
        self.assert_result_ok(t)
        self.lttng("stop")
        self.lttng("destroy")
        order = []
        for line in harness.babeltrace(ours, ust):
            m = re.search(r'msg = "(before|after) (\d+)"', line)
            if m:
                order.append((m[1], int(m[2])))
            elif "dynprobe:foo:" in line:
                order.append(("foo", int(re.search(r"\bedi = (\w+)", line)[1], 0)))
        at = [i for i, (what, _) in enumerate(order) if what == "foo"]
        self.assertGreaterEqual(len(at), 100)
        for i in at:
            n = order[i][1]
            self.assertEqual(order[i - 1 : i + 2], [("before", n), ("foo", n), ("after", n)])


if __name__ == "__main__":
    harness.main()
