# SPDX-License-Identifier: MIT
"""Tests the command lines of the 2013 proposal with an LTTng session: like lttng enable-event, they add a rule to it."""

import harness
import lttng_env
import lttng_probe

ROUNDS = 100 if harness.FULL else 2


class Words(lttng_probe.WithDaemon):
    def test_an_event_in_the_current_session(self):
        for i in range(ROUNDS):
            name = f"mine{i}"
            self.lttng("create", name, "--output=" + self.path(name))
            self.set_current(name)
            t = self.spin()
            p = self.tool("enable-event", "aname", "-u", "--pid", t.pid, "--probe", "foo")
            self.assertIn(f"'{name}' (the current session, with a new rule for them)", p.stderr)
            self.lttng("start")
            self.let_run()
            self.tool("enable-event", "later", "-u", "--pid", t.pid, "--function", "caller")
            self.let_run()
            self.lttng("stop")
            events = self.read(self.path(name))
            self.assertGreater(sum(e.name == "dynprobe:aname" for e in events), 50)
            self.assertGreater(sum(e.name == "dynprobe:later" for e in events), 20)
            self.lttng("destroy", name)
            self.end(t)

    def test_a_session_that_is_named(self):
        self.session("s", start=False)
        self.lttng("create", "other", "--output=" + self.path("other"))
        self.set_current("other")
        t = self.spin()
        self.tool("enable-event", "aname", "-u", "-s", "s", "--pid", t.pid, "--probe", "foo")
        self.let_run()
        self.assertGreater(len(self.events("s", "aname")), 50)
        self.end(t)


if __name__ == "__main__":
    lttng_env.main()
