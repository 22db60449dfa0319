# SPDX-License-Identifier: MIT
"""Tests probes on LTTng and on what it calls: no recursion, no deadlock, right results; and threads that start and end."""

import json
import re

import harness
import lttng_env
import lttng_probe

CHANNEL = ("--subbuf-size=64K", "--num-subbuf=4", "--tracefile-size=512K", "--tracefile-count=2")  # the newest events
LIBC = "malloc free calloc realloc clock_gettime sched_getcpu pthread_mutex_lock pthread_mutex_unlock write close read pthread_setspecific".split()
UST = """liblttng-ust-common.so.1!lttng_ust_urcu_read_lock liblttng-ust-common.so.1!lttng_ust_urcu_read_unlock
 liblttng-ust-common.so.1!lttng_ust_urcu_register liblttng-ust-common.so.1!lttng_ust_urcu_synchronize_rcu
 liblttng-ust.so.1!lttng_ust_probe_register liblttng-ust.so.1!lttng_ust_init_thread
 liblttng-ust-tracepoint.so.1!lttng_ust_tracepoint_provider_register""".split()


def functions(names):
    return [x for name in names for x in ("--function", name)]


class Recursion(lttng_probe.WithDaemon):
    def setUp(self):
        super().setUp()
        self.session("s", "dynprobe:*", channel=CHANNEL)

    def put(self, t, *probes):
        p = self.run_tool("attach", "--pid", t.pid, *probes, "--session", "s")
        self.assertIn(p.returncode, (0, 121), p.stderr)
        return p

    def counted(self, t):
        told = json.loads(self.tool("status", "--pid", t.pid, "-f", "json").stdout)
        return {row["name"]: row["lost"] for row in told["probes"]}

    def names_seen(self):
        return {e.name.removeprefix("dynprobe:") for e in self.events("s", None)}

    def test_functions_of_libc_that_tracing_depends_on(self):
        t = self.program("libcuser", 4)
        chosen = dict(re.findall(r"^(memcpy) (0x\w+)$", t.output(), re.M))
        by_address = [x for name, address in chosen.items() for x in ("--name", name, "--function", address)]
        probes = [x for name in LIBC for x in ("--name", name, "--function", "libc.so.6!" + name)] + by_address
        self.put(t, *probes)
        self.let_run(t, steps=1000)
        self.assertGreaterEqual(len(self.counted(t)), 10)
        self.end(t)
        self.assertGreaterEqual(len(self.names_seen() & {*LIBC, *chosen}), 9)

    def test_functions_of_lttng_itself(self):
        """The first attach loads LTTng; the second puts probes into it, and a third registers through them."""
        t = self.program("churn")
        self.put(t, "--function", "foo", "-t", "reg:edi")
        present = {m.path.rsplit("/", 1)[-1] for m in harness.maps(t.pid)}
        ust = [f for f in UST if any(path.startswith(f.split("!")[0]) for path in present)]
        self.assertGreaterEqual(len(ust), 4, present)
        p = self.put(t, *functions(ust))
        self.let_run(t, steps=500)
        self.put(t, "--name", "more", "--function", "brief", "-t", "reg:rdi")
        self.lttng("create", "other", "--output=" + self.path("other"))
        self.lttng("enable-event", "-u", "-s", "other", "dynprobe:*")
        self.lttng("start", "other")
        self.let_run(t, steps=500)
        self.lttng("destroy", "other")
        self.assertGreaterEqual(len(self.counted(t)), 4, p.stderr)
        self.end(t)
        self.assertLessEqual({"foo", "more"}, self.names_seen())

    def test_threads_that_come_and_go_emit(self):
        """Threads are primed when they start, so no hit of a program's own function is lost."""
        t = self.program("churn")
        # The first probe brings the hook that primes them: it may be in place later than the probe. All threads of before have ended then.
        self.put(t, "--function", "main")
        self.let_run(t)
        self.put(t, "--function", "foo", "-t", "reg:edi")
        self.let_run(t, steps=1000)
        self.assertEqual(self.counted(t)["foo"]["unprimed"], 0)
        self.end(t)
        self.assertIn("foo", self.names_seen())


if __name__ == "__main__":
    lttng_env.main()
