# SPDX-License-Identifier: MIT
"""--all, pid*: every process that maps a module, now and to come. The module is one of the test's own, so that no other process of the
machine is meant."""

import collections
import os
import re
import shutil
import signal
import subprocess
import tempfile
import time

from harness import DYNPROBE, EXIT_PARTIAL, FULL, NOBODY, OWN_FAILURE, ROOT, Case, armed, compiled, environment, main, maps, needs, needs_root, status, target_path, tool, wait_until

SOURCE = os.path.join(ROOT, "tests", "e2e", "mapper.c")


def called(*texts):
    """{pid: number of calls}, as the processes themselves counted."""
    return {int(pid): int(n) for pid, n in re.findall(r"CALLED (\d+) (\d+)", "".join(texts))}


def recorded(r):
    return dict(collections.Counter(e["pid"] for e in r.events))


def build(folder, name):
    """The library `name`, and programs that use it."""
    library = compiled(os.path.join(folder, name), "gcc", "-g", "-O1", "-shared", "-fPIC", "-DLIBRARY", f"-Wl,-soname,{name}", SOURCE)
    compiled(os.path.join(folder, "linked"), "gcc", "-O1", SOURCE, library, f"-Wl,-rpath,{folder}")
    compiled(os.path.join(folder, "loader"), "gcc", "-O1", f"-DLOADS={library}", SOURCE)
    return library


class All(Case):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.mkdtemp(prefix="dp-all-")
        cls.addClassCleanup(shutil.rmtree, cls.folder)
        os.chmod(cls.folder, 0o755)
        cls.name = f"libstride{os.getpid()}.so.1"  # as no other file on the machine
        cls.shared = build(cls.folder, cls.name)

    def mapper(self, *args, program="linked", **kw):
        return self.target(os.path.join(self.folder, program), *args, **kw)

    def run_mapper(self, *args, prefix=(), program="linked", status=0):
        p = subprocess.run([*prefix, os.path.join(self.folder, program), *map(str, args)], capture_output=True, text=True, timeout=300, env=environment())
        self.assertEqual(p.returncode, status, p.stderr)
        return p.stdout

    def watch(self, *args, spec=None, said="waiting for", **kw):
        """Starts dynprobe, and returns when it watches."""
        p = self.start(*(spec or ("--all", f"{self.shared}!stride")), *args, **kw)
        wait_until(lambda: p.poll() is not None or said in self.said(p), what="dynprobe to watch")
        self.assertIsNone(p.poll(), self.said(p))
        return p

    def step(self, p, *targets):
        """Lets each call once more, and returns when an event of each is there: from then on new processes are held."""
        for t in targets:
            self.await_armed(p, t.pid)
            os.kill(t.pid, signal.SIGUSR1)
            wait_until(lambda: p.poll() is not None or re.search(f'"pid": ?{t.pid}\\b', self.said(p)), what="an event")  # noqa: B023
            self.assertIsNone(p.poll(), self.said(p))

    def watch_beside(self, *targets, **kw):
        p = self.watch(said="those to come", **kw)
        self.step(p, *targets)
        return p

    def ended(self, *targets):
        """What they say at their end."""
        for t in targets:
            self.assertEqual(t.stop(), 0)
        return "".join(t.output() for t in targets)

    def assert_all(self, r, text, started, status=0, late=0):
        self.assert_ok(r, status)
        self.assertEqual(recorded(r), called(text), str(r))
        self.assertEqual((r.summary["started"], r.summary["late"], r.summary["unprobed"]), (started, late, 0), str(r.summary))
        self.assertEqual(r.summary["lost"]["total"], 0, str(r.summary))


@needs_root
class Processes(All):
    def test_those_of_now_those_that_start_and_those_that_load_it(self):
        now = [self.mapper(0, "wait") for _ in range(3)]
        loader = self.mapper(4, program="loader")
        p = self.watch_beside(*now)
        text = "".join(self.run_mapper(5) for _ in range(5))
        os.kill(loader.pid, signal.SIGUSR1)
        self.assertEqual(loader.process.wait(300), 0)
        text += self.run_mapper(6)
        r = self.finish(p)
        for t in now:
            self.assert_clean(t.pid)
        self.assert_all(r, text + loader.output() + self.ended(*now), started=7)
        self.assertEqual(len(called(text)), 6)
        self.assertEqual(sum(x.get("processes", 1) for x in r.summary["probes"]), 10, str(r.summary))

    def test_totals(self):
        now, loader = self.mapper(0, "wait"), self.mapper(4, program="loader")
        p = self.watch("--count", "--by", "pid", "--interval", "30ms", said="those to come")
        self.await_armed(p, now.pid)
        os.kill(now.pid, signal.SIGUSR1)
        wait_until(lambda: p.poll() is not None or f'"key":{now.pid},"hits":1' in self.said(p), what="a row of the process")
        text = "".join(self.run_mapper(5) for _ in range(5))
        os.kill(loader.pid, signal.SIGUSR1)
        self.assertEqual(loader.process.wait(300), 0)
        r = self.finish(p)
        self.assert_ok(r)
        self.assertEqual({x["key"]: x["hits"] for x in r.answers if x["final"]}, called(text, loader.output(), self.ended(now)), str(r))
        self.assertEqual(r.summary["lost"]["total"], 0, str(r.summary))

    def test_waits_for_the_first(self):
        p = self.watch()
        text = "".join(self.run_mapper(n) for n in (3, 4))
        self.assert_all(self.finish(p), text, started=2)

    def test_first_one_loads_it_and_its_constructor_counts(self):
        loader = self.mapper(3, program="loader", env=environment(STRIDE_AT_ONCE="1"))
        p = self.watch()
        os.kill(loader.pid, signal.SIGUSR1)
        self.assertEqual(loader.process.wait(300), 0)
        self.assert_all(self.finish(p), loader.output(), started=1)
        self.assertEqual(called(loader.output()), {loader.pid: 4})

    def test_loaded_beside_other_threads_is_late(self):
        loader = self.mapper(1, "wait", "threads", program="loader")
        p = self.watch()
        os.kill(loader.pid, signal.SIGUSR1)
        wait_until(lambda: p.poll() is not None or (os.kill(loader.pid, signal.SIGUSR1), '"event"' in self.said(p))[1], what="an event")
        r = self.finish(p)
        self.assert_ok(r)
        self.assertEqual((r.summary["started"], r.summary["late"]), (1, 1), str(r.summary))
        self.assertLessEqual(recorded(r)[loader.pid], called(self.ended(loader))[loader.pid])

    def test_second_module_of_a_process_is_missed_and_noted(self):
        other = build(self.dir, "libother.so.1")
        program = compiled(self.path("both"), "gcc", "-O1", f"-DLOADS={other}", SOURCE, "-Wl,--no-as-needed", self.shared, f"-Wl,-rpath,{self.folder}")
        both, now = self.target(program, 3), self.mapper(0, "wait")
        p = self.watch_beside(now, spec=("--all", f"{self.shared}!stride", "--all", f"{other}!stride"))
        self.await_armed(p, both.pid)
        os.kill(both.pid, signal.SIGUSR1)
        self.assertEqual(both.process.wait(300), 0)
        self.assertEqual(called(both.output()), {both.pid: 3})
        r = self.finish(p)
        self.assert_ok(r, EXIT_PARTIAL)  # no process of the run has the other place
        self.assertIn(f"process {both.pid} opens a module after its probes were placed", str([x for x in r.told if x.get("type") == "note"]))

    def test_name_is_that_of_any_file(self):
        """The file of a name is known when a process has mapped it, or where loaders look for it."""
        now = self.mapper(0, "wait")
        p = self.watch_beside(now, spec=("--all", f"{self.name}!stride"))
        text = self.run_mapper(5)
        self.assert_all(self.finish(p), text + self.ended(now), started=1)

    def test_module_is_an_executable(self):
        program = shutil.copy(target_path("started"), self.path("started"))
        p = self.watch(spec=("--all", f"{program}!foo"))
        text = subprocess.run(["sh", "-c", f"{program} 3; exec {program} 4"], capture_output=True, text=True, timeout=300).stdout
        self.assertEqual(len(called(text)), 2)
        self.assert_all(self.finish(p), text, started=2)

    def test_spelling_of_dtrace(self):
        now = self.mapper(0, "wait")
        p = self.watch_beside(now, spec=("--probe", f"pid*:{self.name}:stride:entry"))
        text = self.run_mapper(5)
        r = self.finish(p)
        self.assert_all(r, text + self.ended(now), started=1)
        self.assertEqual({e["probe"] for e in r.events}, {"stride_entry"})

    def test_counts_include_those_that_have_ended(self):
        now = self.mapper(0, "wait")
        p = self.start("--all", f"{self.shared}!stride", "--count", "--by", "pid")
        self.await_armed(p, now.pid)
        wait_until(lambda: p.poll() is not None or "those to come" in self.said(p), what="dynprobe to watch")
        first = self.mapper(0, "wait")  # may be late; the next ones are not
        self.await_armed(p, first.pid)
        text = self.run_mapper(5) + self.run_mapper(6)
        r = self.finish(p)
        self.assert_ok(r)
        got = {a["key"] if "key" in a else a["pid"]: a["hits"] for a in r.answers}
        self.assertEqual({int(pid): n for pid, n in got.items() if n}, called(text), str(r.answers))

    def test_patterns_and_returns(self):
        now = self.mapper(0, "wait")
        p = self.watch_beside(now, spec=("--all", f"{self.shared}!strid[e]", "--all", f"{self.shared}!stride:return", "-t", "retval"))
        text = self.run_mapper(5)
        r = self.finish(p)
        self.assert_ok(r)
        self.assertEqual(recorded(r), {pid: 2 * n for pid, n in called(text, self.ended(now)).items()}, str(r))

    def test_fork_children_record(self):
        p = self.watch()
        self.run_mapper(1)
        text = self.run_mapper(3, "fork")
        self.assertEqual(len(called(text)), 2)
        r = self.finish(p)
        self.assert_ok(r)
        self.assertEqual({pid: n for pid, n in recorded(r).items() if pid in called(text)}, called(text), str(r))
        self.assertEqual((r.summary["started"], r.summary["followed"]), (2, 1), str(r.summary))

    def test_process_that_executes_it_again(self):
        script = self.written("again", f"#!/bin/sh\n{self.folder}/linked 1\nexec {self.folder}/linked 2\n")
        os.chmod(script, 0o755)
        p = self.watch()
        text = "".join(subprocess.run([script], capture_output=True, text=True, timeout=300).stdout for _ in range(3))
        self.assert_all(self.finish(p), text, started=6)

    def test_ways_to_start(self):
        p = self.watch()
        text = "".join(subprocess.run([target_path("starter"), how, "5", f"{self.folder}/linked", "2"], capture_output=True, text=True, timeout=300).stdout
                       for how in ("fork", "vfork", "spawn", "thread", "at"))
        self.assertEqual(len(called(text)), 25)
        self.assert_all(self.finish(p), text, started=25)

    def test_who_only_reads_the_file_is_no_process_of_it(self):
        p = self.watch()
        for command in (["cat", self.shared], ["ldd", f"{self.folder}/linked"], ["cp", self.shared, self.path("copy")]):
            self.assertEqual(subprocess.run(command, capture_output=True, timeout=300).returncode, 0)
        text = self.run_mapper(2)
        self.assert_all(self.finish(p), text, started=1)

    def test_file_that_is_replaced(self):
        p = self.watch()
        text = self.run_mapper(2)
        shutil.copy(self.shared, self.path("new"))
        shutil.move(self.path("new"), self.shared)
        while len(called(text)) < 10:  # the directory is watched from a thread: the first start may come before it has looked
            text += self.run_mapper(3)
        r = self.finish(p)
        self.assert_ok(r)
        missing = set(called(text)) - set(recorded(r))
        self.assertLessEqual(len(missing), 5, str(r))
        self.assertEqual(recorded(r), {pid: n for pid, n in called(text).items() if pid not in missing})

    def test_probe_without_a_module_is_looked_for_in_every_program(self):
        """In a pid namespace, where these processes are all that there are."""
        script = """
            linked=$1/linked; shift
            "$linked" 0 wait > now & now=$!
            until grep -q READY now; do sleep 0.05; done
            "$@" -f json -o events --no-record --probe 'pid*::stride:entry' 2> err & tool=$!
            until grep -q '"event"' events 2> /dev/null; do kill -USR1 $now; sleep 0.05; kill -0 $tool || exit 9; done
            sh -c :; "$linked" 5; /bin/echo done; "$linked" 6
            kill -INT $tool; wait $tool; echo STATUS $?
            kill $now; wait $now; cat now
        """
        p = subprocess.run(["unshare", "--pid", "--fork", "--kill-child", "--mount-proc", "sh", "-c", script, "sh", self.folder, DYNPROBE], cwd=self.dir,
                           capture_output=True, text=True, timeout=300, env=environment())
        with open(self.path("err")) as f:
            said = p.stdout + p.stderr + f.read()
        self.assertIn("STATUS 0", p.stdout, said)
        with open(self.path("events")) as f:
            got = collections.Counter(int(pid) for pid in re.findall(r'"type": ?"event".*?"pid": ?(\d+)', f.read()))
        first = int(re.search(r"READY (\d+)", p.stdout)[1])  # it may call before it has the probe
        self.assertLessEqual(got.pop(first), called(p.stdout)[first], said)
        self.assertEqual(dict(got), {pid: n for pid, n in called(p.stdout).items() if pid != first}, said)
        self.assertEqual(len(got), 2)


@needs_root
class Untouched(All):
    def test_another_file_under_the_same_path(self):
        """A path is one file: what another mount namespace has there is another."""
        other = os.path.join(self.dir, "other.so")
        shutil.copy(self.shared, other)
        mount = ("unshare", "--mount", "sh", "-c", f'mount --bind {other} {self.shared} && exec "$@"', "sh")
        stranger = self.mapper(0, "wait", prefix=mount)
        self.assertTrue(any(m.path == self.shared for m in maps(stranger.pid)))
        now = self.mapper(0, "wait")
        p = self.watch_beside(now)
        self.assertFalse(any(m.is_ours for m in maps(stranger.pid)))
        self.assertEqual(called(self.run_mapper(3, prefix=mount)).popitem()[1], 3)
        r = self.finish(p)
        self.assert_clean(stranger.pid)
        self.assert_all(r, self.ended(now), started=0)

    def test_name_means_the_files_of_other_mount_namespaces(self):
        other = os.path.join(self.dir, "other.so")
        shutil.copy(self.shared, other)
        mount = ("unshare", "--mount", "sh", "-c", f'mount --bind {other} {self.shared} && exec "$@"', "sh")
        now = [self.mapper(0, "wait", prefix=mount), self.mapper(0, "wait")]
        p = self.watch_beside(*now, spec=("--all", f"{self.name}!stride"))
        text = self.run_mapper(3, prefix=mount) + self.run_mapper(4)
        self.assert_all(self.finish(p), text + self.ended(*now), started=2)

    @needs("strace")
    def test_traced_one_is_left_out_DP_TRACED(self):
        now, traced = self.mapper(0, "wait"), self.mapper(0, "wait")
        self.strace(traced)
        p = self.watch_beside(now)
        text = self.run_mapper(2)
        r = self.finish(p)
        self.assert_ok(r, EXIT_PARTIAL)
        self.assertIn(f"process {traced.pid} is left out", r.err)
        self.assertIn("DP-TRACED", r.err)
        self.assertEqual(recorded(r), called(text, self.ended(now)), str(r))

    @needs("strace")
    def test_traced_one_that_starts_is_let_go_DP_TRACED(self):
        p = self.watch()
        text = self.run_mapper(2)
        self.assertEqual(len(called(self.run_mapper(2, prefix=("strace", "-f", "-o", os.devnull)))), 1)
        r = self.finish(p)
        self.assert_ok(r, EXIT_PARTIAL)
        self.assertIn("DP-TRACED", r.tags(), r.told)
        self.assertEqual(recorded(r), called(text), str(r))
        self.assertEqual(r.summary["unprobed"], 1)

    def test_own_tool_and_debuggers(self):
        """A program of a debugger's name is left alone, and so is dynprobe, although they map the library."""
        debugger = shutil.copy(f"{self.folder}/linked", self.path("gdb"))
        now, other = self.mapper(0, "wait"), self.target(debugger, 0, "wait")
        p = self.watch_beside(now)
        self.assertEqual(len(called(subprocess.run([debugger, "3"], capture_output=True, text=True, timeout=300).stdout)), 1)
        r = self.finish(p)
        self.assert_clean(other.pid)
        self.assert_all(r, self.ended(now), started=0)


@needs_root
class Killed(All):
    def test_killed_tool_leaves_nobody_stuck(self):
        for i in range(12) if FULL else (0, 3):
            now, loader = self.mapper(0, "wait"), self.mapper(3, program="loader")
            p = self.watch_beside(now)
            t = self.target("starter", "many", 20, f"{self.folder}/linked", 3)
            os.kill(loader.pid, signal.SIGUSR1)
            if i:
                wait_until(lambda: self.said(p).count('"event"') >= 2 * i or t.process.poll() is not None, what="starts")  # noqa: B023
            p.kill()
            p.wait()
            self.assertEqual((t.process.wait(300), loader.process.wait(300)), (0, 0))
            self.assertEqual(re.findall(r"STATUS (\d+) (\d+)", t.output()), [("0", "20")], t.output())
            self.assertEqual(status(now.pid, "TracerPid"), "0")
            self.assertEqual(len(called(self.ended(now))), 1)

    def test_stopped_tool_is_continued(self):
        p = self.watch("--max-wait", "1s")
        os.kill(p.pid, signal.SIGSTOP)
        text = "".join(self.run_mapper(3) for _ in range(2))
        self.assertEqual(len(called(text)), 2)
        self.assertEqual(self.finish(p).status, 0)


class Refused(All):
    prefix = NOBODY if os.geteuid() == 0 else ()

    def watch_as_nobody(self, *targets):
        argv, events = self.command("--all", f"{self.shared}!stride")
        err = open(self.path("err"), "w+b")
        self.addCleanup(err.close)
        p = self.spawn(*self.prefix, self.for_nobody("dynprobe"), *argv[1:], stderr=err, env=environment())
        p.err_file, p.events = err, events
        self.step(p, *targets)
        return p

    def test_one_that_only_reads_the_file_has_its_turn_when_it_loads_it(self):
        now = self.mapper(0, "wait", prefix=self.prefix)
        p = self.watch_as_nobody(now)
        reader = self.mapper(0, "wait", "reads", program="loader", prefix=self.prefix)
        time.sleep(2.5)  # it is looked at, once a second
        os.kill(reader.pid, signal.SIGUSR1)
        wait_until(lambda: reader.output().count("READY") == 2, what="a loaded library")
        self.step(p, reader)
        p.send_signal(signal.SIGINT)
        self.assertEqual(p.wait(300), 0, self.said(p))

    def test_without_privilege_processes_to_come_are_late(self):
        now = self.mapper(0, "wait", prefix=self.prefix)
        p = self.watch_as_nobody(now)
        later = self.mapper(0, "wait", prefix=self.prefix)
        self.step(p, later)
        p.send_signal(signal.SIGINT)
        self.assertEqual(p.wait(300), 0, self.said(p))
        self.assertIn("CAP_SYS_ADMIN", self.said(p))
        self.assertIn("looked for once a second", self.said(p))
        self.assertRegex(self.said(p), '"late": ?1')
        if os.geteuid() == 0:
            self.assertRegex(self.said(p), '"denied": ?[1-9]')

    def test_place_that_the_module_lacks_DP_NO_SYMBOL(self):
        now = self.mapper(0, "wait")
        self.assert_refused(self.dynprobe("--all", f"{self.shared}!stirde"), "DP-NO-SYMBOL", "stirde")
        self.assert_refused(self.dynprobe("--all", f"{self.shared}!stirde*"), "DP-NO-SYMBOL", "stirde")
        self.assert_clean(now.pid)

    @needs_root
    def test_place_that_the_first_to_come_lacks_DP_NO_SYMBOL(self):
        p = self.watch(spec=("--all", f"{self.shared}!stirde"))
        self.assertEqual(len(called(self.run_mapper(3))), 1, "it goes on")
        self.assert_refused(self.finish(p, None), "DP-NO-SYMBOL", "stirde")

    def test_no_process_DP_NO_PROCESS(self):
        self.assert_refused(self.dynprobe("--all", f"{self.shared}!stride", "-d", "50ms"), "DP-NO-PROCESS", "a process that has")
        self.assert_refused(self.dynprobe("--all", f"{self.shared}!stride", "--dry-run", json_events=False), "DP-NO-PROCESS", "does not wait")

    def test_no_file_DP_NO_MODULE(self):
        self.assert_refused(self.dynprobe("--all", "/none/of/this.so!stride"), "DP-NO-MODULE", "/none/of/this.so")

    def test_what_it_excludes(self):
        for other in (("--pending",), ("--sink", "lttng"), ("--snapshot",), ("-c", "true"), ("--pid", os.getpid()),
                      ("--program", "true"), ("--tactic", "trap"), ("--syscall", "read")):
            p = tool("--all", f"{self.shared}!stride", *other, status=OWN_FAILURE)
            self.assertIn("DP-USAGE", p.stderr)
            self.assertIn("--all", p.stderr)
        self.assert_refused(self.dynprobe("--all", "0x1234"), "DP-USAGE", "a single process")
        p = tool("attach", "--probe", f"pid*:{self.name}:stride:entry")
        self.assertIn("DP-USAGE", p.stderr)

    def test_plan_for_all_of_now(self):
        now = [self.mapper(0, "wait") for _ in range(2)]
        r = self.dynprobe("--all", f"{self.shared}!stride", "--dry-run", json_events=False)
        self.assert_ok(r)
        for t in now:
            self.assertIn(str(t.pid), r.out)
            self.assert_clean(t.pid)


if __name__ == "__main__":
    main()
