# SPDX-License-Identifier: MIT
"""Tests LTTng as a guest in a program (dynprobe --session): the program behaves as if it were alone."""

import os
import re
import shutil
import signal
import subprocess
import threading
import time

import harness
import lttng_env
from harness import wait_until

CHILDREN = 1000 if harness.FULL else 150
FILES = 30
TLS_LIBRARIES = 40


class GuestCase(lttng_env.Case):
    def program(self, user=None):
        return lttng_env.Conversation(self, harness.target_path("host"), **(user or self.root).popen())

    def session(self, name, rule="dynprobe:*", **kw):
        super().session(name, rule, **kw)

    def probe(self, program, *args):
        """Runs dynprobe in the program for the length of a with-block."""
        log = open(self.path("dynprobe.log"), "w+")
        self.addCleanup(log.close)
        argv = [harness.DYNPROBE, "--pid", program.pid, *(args or ("--function", "foo", "--session", "s"))]
        p = subprocess.Popen([*map(str, argv)], stdin=subprocess.DEVNULL, stdout=log, stderr=log, env=self.root.env())
        self.addCleanup(lambda: (p.poll() is None and p.kill(), p.wait()))

        def placed():
            if p.poll() is not None:
                log.seek(0)
                self.fail(f"dynprobe ended: {log.read()}")
            return harness.changed_text(program.pid)

        wait_until(placed, 60, "the probe to be placed")
        return p

    def events(self, session="s", name="dynprobe:foo"):
        return self.last_events(session, name)

    def await_events(self, program, session="s"):
        """Waits until the session daemon lists the event, and its session has some."""

        def some():
            program("hit 10")
            self.lttng("stop", session)
            found = self.read(self.path(session), check=False)
            self.lttng("start", session)
            return found

        wait_until(some, 60, f"events of session {session}")

    def begin(self, user=None, **kw):
        """Starts a daemon, a session, a program and dynprobe in it; returns when events arrive."""
        self.sessiond()
        self.session("s", **kw)
        program = self.program(user)
        self.probe(program)
        self.await_events(program)
        return program


class Ends(GuestCase):
    def files_of(self, program):
        directory = self.path("files")
        os.mkdir(directory)
        self.assertEqual(program(f"files {directory} {FILES}"), f"files {FILES}")
        return directory

    def check_files(self, directory):
        found = {}
        for name in os.listdir(directory):
            with open(os.path.join(directory, name), "rb") as f:
                found[name] = f.read()
        self.assertEqual(found, {str(i): b"line of %d\n" % i for i in range(FILES)})

    def test_exit_writes_every_file(self):
        """The program's files have descriptor numbers that LTTng uses in its own table."""
        self.sessiond()
        self.session("s")
        program = self.program()
        directory = self.files_of(program)
        self.probe(program)
        self.await_events(program)
        self.assertEqual(program("hit 100"), "hit 100")
        self.assertEqual(program.exit(), 0)
        self.check_files(directory)
        self.assertGreaterEqual(len(self.events()), 100)

    def test_exit_while_the_daemon_hangs(self):
        daemon = self.sessiond()
        self.session("s")
        program = self.program()
        directory = self.files_of(program)
        self.probe(program)
        self.await_events(program)
        daemon.freeze()
        self.assertEqual(program("hit 100"), "hit 100")
        self.assertEqual(program.exit(), 0)
        self.check_files(directory)

    def test_children_that_call_exit(self):
        """Commands arrive meanwhile, so that LTTng's threads hold their locks during some of the forks."""
        program = self.begin()
        over = threading.Event()

        def churn():
            for n in range(1 << 30):
                if over.is_set():
                    return
                self.lttng("enable-event", "-u", "-s", "s", "-c", "c", f"dynprobe:none{n}", check=False)
                self.lttng("list", "-u", "-f", check=False)
                self.lttng("stop", "s", check=False)
                self.lttng("start", "s", check=False)

        commands = threading.Thread(target=churn)
        commands.start()
        try:
            self.assertEqual(program(f"forks {CHILDREN}"), f"forks {CHILDREN} failed 0 hung 0")
        finally:
            over.set()
            commands.join()
        self.assertEqual(program.exit(), 0)


class Descriptors(GuestCase):
    def test_a_program_that_closes_everything(self):
        program = self.begin()
        for n, way in enumerate(("loop", "closefrom", "range", "dup2")):
            self.assertEqual(program(f"close {way}"), "closed")
            self.assertEqual(program("hit 10"), "hit 10")
            self.assertIn("dynprobe:foo", self.listed()[program.pid], way)
            self.session(f"after{n}")
            self.await_events(program, f"after{n}")
            self.lttng("destroy", f"after{n}")
        self.assertEqual(program.exit(), 0)
        self.assertGreaterEqual(len(self.events()), 50)

    def test_notification_of_a_trigger(self):
        """A hit causes it; the program's files have the descriptor numbers that LTTng writes to."""
        self.sessiond()
        self.session("s")
        self.lttng("stop", "s")
        program = self.program()
        directory = self.path("files")
        os.mkdir(directory)
        program(f"files {directory} {FILES}")
        self.lttng(
            "add-trigger", "--name=t", "--condition=event-rule-matches", "--type=user", "--name=dynprobe:foo", "--action=notify", "--action=start-session", "s"
        )
        self.probe(program)
        wait_until(lambda: program("hit 3") and self.sessions()["s"], 30, "the trigger to start the session")
        for _ in range(20):
            program("hit 100")
        sizes = {os.path.getsize(os.path.join(directory, x)) for x in os.listdir(directory)}
        self.assertEqual(sizes, {0})
        self.assertEqual(program.exit(), 0)
        for name in os.listdir(directory):
            with open(os.path.join(directory, name), "rb") as f:
                self.assertEqual(f.read(), b"line of %s\n" % name.encode())

    def test_events_of_an_ordinary_users_program(self):
        """Root's consumer wakes up although the program may not open its pipes: more events arrive than the buffers hold."""
        program = self.begin(self.nobody, channel=["--discard", "--subbuf-size=4K", "--num-subbuf=4"])
        for _ in range(400):
            program("hit 20")
            time.sleep(0.005)  # for the consumer, on a busy machine
        self.assertGreater(len(self.events()), 4000)
        self.assertEqual(program.exit(), 0)


class Process(GuestCase):
    def test_no_child_is_seen(self):
        """Without a daemon LTTng creates its shared memory itself; /dev/shm is empty here."""

        def waits():
            return [x for x in os.listdir("/dev/shm") if x.startswith("lttng-ust-wait-")]

        program = self.program()
        self.assertEqual(os.listdir("/dev/shm"), [])
        self.sessiond()
        wait_until(waits, 60, "the daemon's own")  # after it has said that it is ready
        for name in os.listdir("/dev/shm"):
            os.remove(os.path.join("/dev/shm", name))
        self.session("s")
        self.probe(program)

        def modes():
            return {x.count("-"): os.stat(f"/dev/shm/{x}").st_mode & 0o777 for x in waits()}

        # It creates one after the other, and sets the mode of each after that.
        wait_until(lambda: modes() == {3: 0o666, 4: 0o640}, 20, lambda: f"LTTng's shared memory; the modes are {modes()}")
        self.assertEqual(program("seen"), "seen 0 0 0")
        self.assertEqual(program.exit(), 0)

    def test_children_that_load_libraries(self):
        """They fork while the sink is loaded and while sessions start: then LTTng walks the list of loaded objects."""
        self.sessiond()
        self.session("s")
        for _ in range(10 if harness.FULL else 4):
            t = self.target("forkload", env=self.root.env())
            argv = [harness.DYNPROBE, "--pid", str(t.pid), "--function", "foo", "--session", "s", "-d", "0.3"]
            r = subprocess.run(argv, env=self.root.env(), capture_output=True, text=True, timeout=300)
            self.assertEqual(r.returncode, 0, r.stderr)
            for _ in range(5):
                self.lttng("stop", "s")
                self.lttng("start", "s")
            self.assert_result_ok(t)

    def test_a_process_that_changes_its_user(self):
        """All threads take part in setresuid(), LTTng's too: glibc interrupts each by a signal."""
        program = self.begin()
        self.assertEqual(program("setuid"), "setuid 0")
        self.assertEqual(program("hit 10"), "hit 10")
        self.assertEqual(harness.status(program.pid, "Uid").split(), ["65534"] * 4)
        self.assertEqual(program.exit(), 0)

    def test_directories_are_not_held(self):
        program = self.begin()
        places = {os.readlink(f"/proc/{program.pid}/task/{t}/cwd") for t in os.listdir(f"/proc/{program.pid}/task") if self.is_guest(program.pid, t)}
        self.assertEqual(places, {"/"})
        self.assertEqual(program.exit(), 0)

    def is_guest(self, pid, tid):
        with open(f"/proc/{pid}/task/{tid}/comm") as f:
            return re.search("-ust$|^dynprobe-sink$", f.read().strip())

    def test_malloc_after_the_program_unloaded_libraries(self):
        """ld.so then frees thread-local memory at a thread's next use of any: in a hit on free() that would be a nested hit, or a deadlock."""
        library = harness.compiled(self.path("tls0.so"), "cc", "-shared", "-fPIC", text="static __thread int v[100];\nint *get(void) { return v; }\n")
        for n in range(1, TLS_LIBRARIES):
            shutil.copy(library, self.path(f"tls{n}.so"))
        self.sessiond()
        self.session("s")
        program = self.program()
        dynprobe = self.probe(program, "--function", "malloc", "--function", "free", "--session", "s")
        self.await_events(program)
        self.assertEqual(program("hit 100"), "hit 100")
        for _ in range(5):
            self.assertEqual(program(f"libraries {self.dir} {TLS_LIBRARIES}"), f"libraries {TLS_LIBRARIES}")
            self.assertEqual(program("hit 100"), "hit 100")
        dynprobe.send_signal(signal.SIGINT)
        dynprobe.wait(300)
        with open(self.path("dynprobe.log")) as f:
            self.assertRegex(f.read(), r"not emitted 0\b")
        self.assertEqual(program.exit(), 0)
        names = [e.name for e in self.events(name=None)]
        for name in ("malloc", "free"):
            self.assertGreaterEqual(sum(n.endswith(name) for n in names), 600, name)


if __name__ == "__main__":
    lttng_env.main()
