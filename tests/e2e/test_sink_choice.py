# SPDX-License-Identifier: MIT
"""Tests the choice of the sink: by the user's current LTTng session, by options, and by what the program can load."""

import re

import harness
import lttng_env
import lttng_probe

OWN = r"(recording into .* with the embedded recorder|showing events; recording is off)(?: \((.*)\))?; Ctrl-C ends"
LTTNG = r"events go to the LTTng session '(.*)' \((.*)\)"


class Choice(lttng_probe.Case):
    """The choice is reported in one line, with the reason, and the report is true."""

    def choose(self, t, *args, status=0, duration="300ms"):
        """"ring" or the session's name, and the reason."""
        p = self.tool("--pid", t.pid, "--function", "foo", "-t", "reg:edi", "-d", duration, *args, status=status)
        said = [m for line in p.stderr.splitlines() if (m := re.fullmatch(f"dynprobe: (?:{OWN}|{LTTNG}).*", line))]
        self.assertEqual(len(said), 1, p.stderr[:2000])
        own, own_why, session, why = said[0].groups()
        hits = len(re.findall(r"\] foo: edi=", p.stdout))
        quiet = session or any(a in args for a in ("-q", "-o")) or "ctf" in args
        self.assertEqual(hits == 0, bool(quiet), p.stderr[:2000])
        self.assertTrue(p.stderr.startswith("dynprobe: " + (own or "events go")), p.stderr[:2000])
        return (session or "ring", why if session else own_why)

    def test_what_the_current_session_wants_and_what_is_asked(self):
        self.sessiond()
        t = self.spin()
        maps = lambda: {m.path for m in harness.maps(t.pid)}
        self.assertEqual(self.choose(t), ("ring", "there is no current LTTng session"))
        self.set_current("gone")
        self.assertEqual(self.choose(t), ("ring", "there is no current LTTng session"))
        self.session("cur", "other:*", "dynprobe:bar", ["*", "--loglevel=TRACE_ERR"])
        self.set_current("cur")
        self.assertEqual(self.choose(t), ("ring", "the current LTTng session 'cur' has no rule for it"))
        self.assertFalse([p for p in maps() if "lttng" in p], "LTTng was loaded without need")
        self.lttng("enable-event", "-u", "-s", "cur", "-c", "c", "dynprobe:f*")
        self.assertEqual(self.choose(t, duration="3s"), ("cur", "its rules already include dynprobe:*"))  # its events are checked at the end
        self.assertEqual(self.choose(t, "--function", "caller")[0], "ring")
        # who chose the ring is not told why it is not LTTng
        for options in (["--sink", "ring"], ["-n", 3], ["--no-record"], ["-f", "text"], ["-f", "ctf"], ["-o", self.path("o")], ["--record", self.path("r")]):
            self.assertEqual(self.choose(t, *options), ("ring", None), options)
        p = self.tool("attach", "--pid", t.pid, "--function", "foo", "-t", "reg:edi")
        self.assertIn("events go to the LTTng session 'cur' (its rules already include dynprobe:*)", p.stderr)
        self.tool("detach", "--pid", t.pid)
        self.lttng("disable-event", "-u", "-s", "cur", "-c", "c", "dynprobe:f*")
        self.assertEqual(self.choose(t)[0], "ring")
        self.assertEqual(self.choose(t, "--session", "cur"), ("cur", "as requested"))
        self.assertEqual(self.choose(t, "--session", "new"), ("new", "created for this run"))
        name, why = self.choose(t, "--sink", "lttng")
        self.assertRegex(name, r"dynprobe-spin-\d{8}-\d{6}")
        self.assertEqual(sorted(self.sessions()), ["cur"], "sessions that were created for a run must end with it")
        self.assert_contiguous(self.calls(self.events("cur")[:50]))
        self.assert_result_ok(t)

    def test_liblttng_ctl_that_cannot_be_loaded(self):
        """Only runs that talk to a session daemon need the library."""
        t = self.spin()
        open(self.path("liblttng-ctl.so.0"), "w").close()
        env = harness.environment(LD_LIBRARY_PATH=self.path(""))
        p = self.tool("--pid", t.pid, "--function", "foo", "--session", "s", status=harness.OWN_FAILURE, env=env)
        self.assertRegex(p.stderr, r"cannot load liblttng-ctl\.so\.0: .*; install .*\[DP-LTTNG\]")
        self.assertFalse([m for m in harness.maps(t.pid) if "lttng" in m.path], "the program was changed")
        p = self.tool("--pid", t.pid, "--function", "foo", "-n", 1, status=0, env=env)
        self.assertIn("] foo", p.stdout)
        self.assert_result_ok(t)

    def test_what_excludes_each_other(self):
        t = self.spin()
        for lttngs in (["--sink", "lttng"], ["--session", "s"], ["--filter", "edi > 1"], ["--live"], ["--set-url", "file:///tmp"]):
            for own in (["-n", 1], ["-o", "-"], ["-f", "json"], ["--record", self.path("r")], ["--no-record"], ["--sink", "ring"]):
                if lttngs[0] == own[0]:
                    continue
                p = self.tool("--pid", t.pid, "--function", "foo", *lttngs, *own, status=harness.OWN_FAILURE)
                self.assertIn("DP-USAGE", p.stderr)

    def test_DP_SINK_programs_that_cannot_load_it(self):
        self.sessiond()
        self.session("cur", "dynprobe:*")
        self.set_current("cur")
        for name in ("spin-static", "spin-static-pie", "spin-musl", "spin-musl-static"):
            with self.subTest(name):
                t = self.spin_of(name)
                before = harness.State(t.pid)
                for verb in ([], ["attach"]):
                    p = self.tool(*verb, "--pid", t.pid, "--function", "foo", "--session", "mine", status=harness.OWN_FAILURE)
                    self.assertIn("DP-SINK", p.stderr)
                    self.assertIn("--sink ring", p.stderr)
                self.assertEqual(list(self.sessions()), ["cur"])
                self.assert_clean(t.pid, before)
                sink, why = self.choose(t)
                self.assertEqual(sink, "ring")
                self.assertIn("DP-SINK", why)
                p = self.tool("attach", "--pid", t.pid, "--function", "foo")
                self.assertRegex(p.stderr, r"(?m)^dynprobe: events stay in the target \(not LTTng: .*DP-SINK")
                self.end(t)

    def spin_of(self, name):
        return self.program(name, 0, 500)

    def test_no_event_goes_nowhere_when_a_probe_is_refused(self):
        """A session that was created for probes, none of which could be placed, is removed."""
        self.sessiond()
        t = self.spin()
        self.leave(t, "--function", "foo", session="first")
        p = self.run_tool("attach", "--pid", t.pid, "--name", "other", "--function", "foo", "--session", "second")
        self.assertEqual(p.returncode, harness.OWN_FAILURE, p.stderr)
        self.assertEqual(list(self.sessions()), ["first"])
        self.end(t)


if __name__ == "__main__":
    lttng_env.main()
