# SPDX-License-Identifier: MIT
"""Shared by the tests of dynprobe's events in LTTng: real probes and a private LTTng."""

import contextlib
import os
import signal
import subprocess

import harness
import lttng_env


class Case(lttng_env.Case):
    """`user` runs programs and dynprobe, with a home directory of his own."""

    user = None

    def setUp(self):
        super().setUp()
        self.user = self.root

    # -- programs

    def program(self, name, *args, user=None, **kw):
        return self.target(name, *args, **{**(user or self.user).popen(), **kw})

    def spin(self, calls=0, delay=500, **kw):
        return self.program("spin", calls, delay, **kw)

    # -- dynprobe

    def run_tool(self, *args, user=None, timeout=300, **kw):
        """Runs dynprobe to its end, whatever its status."""
        return harness.tool(*args, timeout=timeout, **{**(user or self.user).popen(), **kw})

    def tool(self, *args, status=0, **kw):
        return self.run_tool(*args, status=status, **kw)

    def leave(self, t, *args, session="s", names=None, **kw):
        """dynprobe attach; returns when LTTng lists the probes."""
        p = self.tool("attach", "--pid", t.pid, *args, *(["--session", session] if session else ["--sink", "lttng"]), **kw)
        for name in names or self.names(args):
            self.wait_listed(t.pid, "dynprobe:" + name)
        return p

    @staticmethod
    def names(args):
        given = [args[i + 1] for i, a in enumerate(args) if a == "--name"]
        return given or [args[i + 1] for i, a in enumerate(args) if a in ("--function", "--probe")]

    @contextlib.contextmanager
    def running(self, t, *args, pids=None, **kw):
        """A run in the foreground, from its first patch to Ctrl-C, or to its end if it has -d; yields an object that becomes its Result.
        `pids`: all processes, if the program is not the only one."""
        argv = [harness.DYNPROBE, "--pid", pids or str(t.pid), *map(str, args)]
        others = harness.changed_text(t.pid)  # probes of other runs
        with open(self.path("foreground.err"), "w+b") as err:
            p = subprocess.Popen(argv, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=err, **{**self.user.popen(), **kw})
            p.err_file, p.events = err, None
            self.addCleanup(lambda: (p.poll() is None and p.kill(), p.wait(), p.stdout.close()))
            harness.wait_until(lambda: p.poll() is not None or harness.changed_text(t.pid) != others, what="its first patch")
            self.await_armed(p, t.pid)
            if p.poll() is not None:
                self.fail("dynprobe ended early:\n" + str(self.finish(p, None)))
            result = harness.Result(None, "", "")
            yield result
            vars(result).update(vars(self.finish(p, None if "-d" in args else signal.SIGINT)))

    def end(self, t):
        """Removes the probes; the text must be the original, and the program must have noticed nothing."""
        self.tool("detach", "--pid", t.pid)
        self.assert_clean_text(t)

    def assert_clean_text(self, t):
        self.assertEqual(harness.changed_text(t.pid), [])
        self.assert_result_ok(t)

    # -- sessions

    def session(self, *args, user=None, **kw):
        super().session(*args, user=user or self.user, **kw)

    def events(self, name="s", probe="foo", user=None):
        """A session's events of a probe (None: of all), after the session is stopped."""
        self.lttng("stop", name, user=user or self.user, check=False)
        return self.read(self.path(name), name="dynprobe:" + probe if probe else None)

    @staticmethod
    def calls(events, field="edi"):
        return [e.fields[field] for e in events]

    def assert_contiguous(self, calls, least=50):
        """Checks a field that counts calls: none is missing or repeated, and they are in order."""
        self.assertGreaterEqual(len(calls), least)
        self.assertEqual(calls, list(range(calls[0], calls[0] + len(calls))))

    def set_current(self, name, user=None):
        """Sets the user's current session, as `lttng set-session` does."""
        path = os.path.join((user or self.user).home, ".lttngrc")
        with open(path, "w") as f:
            f.write(f"session={name}\n")
        os.chmod(path, 0o644)


class WithDaemon(Case):
    """Tests for which root's session daemon runs from the beginning."""

    def setUp(self):
        super().setUp()
        self.sessiond()
