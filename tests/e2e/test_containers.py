# SPDX-License-Identifier: MIT
"""Tests processes in containers (containers.py): their files, names, snapshots and seccomp filters, seen from the host."""

import contextlib
import json
import os
import re
import signal

import containers
import harness
from containers import ALLOW, ERRNO, KILL
from harness import FULL, Case, State, long_form, needs_root, tool, wait_until

DOCKER = {"filters": [containers.docker_default()], "readonly": True, "noexec": True}
# All system calls that dynprobe makes in a process, with the exception of mode fork's (injector/tracee/proc/filter_calls.c).
ATTACH = {"mmap": 9, "mprotect": 10, "munmap": 11, "rt_sigaction": 13, "rt_sigprocmask": 14, "close": 3, "mremap": 25, "madvise": 28, "getpid": 39,
          "fcntl": 72, "munlock": 150, "prctl": 157, "restart_syscall": 219, "openat": 257, "pselect6": 270, "memfd_create": 319}
HIT = {"rt_sigreturn": 15, "getppid": 110, "prctl": 157, "arch_prctl": 158, "gettid": 186, "futex": 202, "clock_gettime": 228, "tgkill": 234,
       "rt_tgsigqueueinfo": 297, "getcpu": 309, "process_vm_readv": 310, "kcmp": 312}
COPY = {"clone": 56, "wait4": 61, "exit_group": 231, "close_range": 436}
# What spin itself calls, from its execve on.
PROGRAM = (0, 1, 5, 12, 17, 21, 35, 59, 137, 217, 218, 230, 231, 262, 273, 302, 318, 332, 334)


def allow_only(*numbers):
    """A filter that kills for all other calls."""
    return containers.denies([(n, ALLOW) for n in sorted(set(numbers))], otherwise=KILL)


def but(*numbers):
    """A filter that allows what dynprobe calls, what spin calls, and nothing else, without these."""
    return allow_only(*({*ATTACH.values(), *HIT.values(), *COPY.values(), *PROGRAM} - set(numbers)))


@needs_root
class Containers(Case):
    def container(self, name, *args, ready="READY", programs=(), more=(), **spec):
        """Starts a target as process 1 of a container. Its pid is the one that the host sees."""
        self.count += 1
        paths = [p if os.path.isabs(p) else harness.target_path(p) for p in (name, *programs)]
        missing = [p for p in paths if not os.path.exists(p)]
        if missing:
            self.skipTest(f"target {missing[0]} was not built on this machine")
        base = self.path(f"base-{self.count}")
        os.mkdir(base)
        spec["filters"] = [f.hex() for f in spec.get("filters", [])]
        spec.update(image=containers.copied(self, str(self.count), paths, more), base=base, argv=["/app/" + os.path.basename(name), *map(str, args)])
        command = containers.command(spec)
        t = self.target(command[0], *command[1:], ready=ready)
        self.assertTrue(t.alive(), t.output() + t.errors())
        t.path, t.pid = spec["argv"][0], harness.children(t.pid)[0]
        self.addCleanup(self.end_children, t.process.pid)
        return t

    def end_children(self, pid):
        """One that has changed its user does not get the signal of --kill-child."""
        for child in harness.children(pid):
            with contextlib.suppress(ProcessLookupError):
                os.kill(child, signal.SIGKILL)

    def assert_probed(self, t, *args, n=5, frames=("foo", "caller", "main")):
        """Probes foo with its callers' names and memory; the process is then as before."""
        before = State(t.pid)
        r = self.attach(t, "--function", "foo", "-t", "s", "-t", "backtrace", "-n", n, *args)
        self.assert_ok(r)
        self.assertEqual(len(r.events), n)
        for e in r.events:
            names = [f["symbol"].partition("+")[0] for f in e["fields"]["backtrace"]]
            self.assertEqual(names[:len(frames)], list(frames), e)
            self.assertIn(e["fields"]["s"], ("alpha", "beta", "gamma", ""))
        self.assertEqual(before.differences(State(t.pid)), {})
        return r

    def assert_goes_on(self, t):
        self.assertTrue(os.path.exists(f"/proc/{t.pid}"), t.output() + t.errors())
        calls = t.steps()
        wait_until(lambda: t.steps() > calls, what="the program to continue")


class Roots(Containers):
    """Files of another root: the same paths on the host are other files."""

    def test_overlay_root_read_only_noexec_under_docker_s_filter(self):
        t = self.container("spin", 0, 500, **DOCKER)
        self.assert_probed(t)
        r = self.attach(t, "--function", "libc.so.6!clock_nanosleep", "-t", "backtrace", "-n", 3)
        self.assert_ok(r)
        self.assertRegex(r.events[0]["fields"]["backtrace"][1]["symbol"], r"^\w*nanosleep.*\[libc.so.6\]")

    def test_user_namespace(self):
        self.assert_probed(self.container("spin", 0, 500, user=True))

    @long_form  # as in Sidecar
    def test_user_other_than_root_inside(self):
        self.assert_probed(self.container("spin", 0, 500, uid=1000, **DOCKER))

    @long_form
    def test_neither_proc_nor_tmp(self):
        self.assert_probed(self.container("spin", 0, 500, proc=False, tmp=False, readonly=True))

    @long_form  # the next one in the default form
    def test_executable_and_library_deleted_after_the_start(self):
        t = self.container("spin", 0, 500)
        for path in ("/app/spin", "/lib/x86_64-linux-gnu/libc.so.6"):
            os.unlink(f"/proc/{t.pid}/root{path}")
        self.assert_probed(t)

    def test_executable_replaced_by_another_version(self):
        t = self.container("spin", 0, 500, programs=["deep"])
        os.rename(f"/proc/{t.pid}/root/app/deep", f"/proc/{t.pid}/root/app/spin")
        self.assert_probed(t)

    def test_root_mounted_noexec_after_the_start(self):
        t = self.container("spin", 0, 500)
        containers.remount_noexec(t.pid)
        r = self.assert_probed(t)
        self.assertIn("Operation not permitted", r.summary["frozen_attach"], "text is written in place, with all threads held")

    @long_form
    def test_musl_image(self):
        self.assert_probed(self.container("spin-musl", 0, 500, readonly=True))

    def test_static_musl_program_alone_in_its_image(self):
        self.assert_probed(self.container("spin-musl-static", 0, 500, **DOCKER), frames=("foo", "caller", "main"))

    def test_snapshots_in_all_modes(self):
        t = self.container("spin", 0, 500, **DOCKER)
        for mode in ("stop", "quick", "fork") if FULL else ("stop", "fork"):
            file = self.path(mode)
            p = tool("snapshot", t.pid, "--mode", mode, "-o", file, status=0)
            self.assertIn(f"mode {mode}", p.stderr)
            self.assertNotIn("instead", p.stderr)
            names = [f.get("symbol") for f in harness.shown(file)["threads"][0]["frames"]]
            self.assertIn("main", names)
        self.assert_goes_on(t)

    def test_snapshot_on_a_hit(self):
        t = self.container("spin", 0, 500, **DOCKER)
        r = self.attach(t, "--function", "foo", "--snapshot", "--max-pause", "30000", "-n", 3, cwd=self.dir)
        self.assert_ok(r)
        self.assertGreaterEqual(sum(e["fields"]["snapshot_id"] != "0x0" for e in r.events), 1, r)
        self.assert_goes_on(t)

    def test_resident_probes(self):
        t = self.container("spin", 0, 500, **DOCKER)
        before = State(t.pid)
        tool("attach", "--pid", t.pid, "--function", "foo", status=0)
        self.assertIn("foo", tool("status", "--pid", t.pid, status=0).stdout)
        self.let_run(t)
        self.assertIn("] foo", tool("record", "--pid", t.pid, "--once", "--no-record", status=0).stdout)
        tool("detach", "--pid", t.pid, status=0)
        self.assertEqual(before.differences(State(t.pid)), {})


class Ids(Containers):
    """Process and thread ids: those that dynprobe's user sees, and the inner ones besides."""

    def test_events_summary_and_trace_have_the_outer_ids(self):
        t = self.container("spin", 0, 500)
        trace = self.path("trace")
        r = self.attach(t, "--function", "foo", "-n", 5, record=trace)
        self.assert_ok(r)
        self.assertEqual({(e["pid"], e["tid"], e["inner_pid"], e["inner_tid"]) for e in r.events}, {(t.pid, t.pid, 1, 1)})
        self.assertEqual([(p["pid"], p["inner_pid"]) for p in r.summary["probes"]], [(t.pid, 1)])
        self.assertIn(f"vpid = {t.pid}, vtid = {t.pid}", harness.babeltrace(trace)[0])
        p = tool("--no-record", "--pid", t.pid, "--function", "foo", "-n", 2, status=0)
        self.assertEqual(p.stdout.count(f"spin[{t.pid}] foo"), 2)
        self.assertEqual(p.stderr.count(f"{t.pid} (inner 1)"), 2, p.stderr)

    def test_ids_are_not_translated_where_there_is_one_namespace(self):
        t = self.target("spin", 0, 500)
        r = self.attach(t, "--function", "foo", "-n", 5)
        self.assertEqual({(e["pid"], e["tid"]) for e in r.events}, {(t.pid, t.pid)})
        self.assertNotIn("inner", r.err + str(r.told))

    def test_each_thread_of_a_container(self):
        t = self.container("threads", 8)
        r = self.attach(t, "--function", "foo", "--when", harness.CALM, "-d", "300ms")
        self.assert_ok(r)
        tids = set(os.listdir(f"/proc/{t.pid}/task"))
        seen = {(str(e["tid"]), str(e["inner_tid"])) for e in r.events}
        self.assertGreater(len(seen), 1)
        for outer, inner in seen:
            self.assertIn(outer, tids)
            self.assertEqual(harness.status(f"{t.pid}/task/{outer}", "NSpid").split(), [outer, inner])

    @long_form  # as in Roots
    def test_resident_probes_too(self):
        t = self.container("spin", 0, 500)
        tool("attach", "--pid", t.pid, "--function", "foo", status=0)
        self.let_run(t)
        p = tool("record", "--pid", t.pid, "--once", "--no-record", "-f", "json", status=0)
        events = [e for e in harness.objects(p.stdout) if e["type"] == "event"]
        self.assertEqual({(e["tid"], e["inner_tid"]) for e in events}, {(t.pid, 1)})
        tool("detach", "--pid", t.pid, status=0)

    def test_fork_children_in_a_container_are_followed(self):
        t = self.container("family", "on", **DOCKER)
        p = self.start_attached(t, "--follow", "--function", "foo")
        os.kill(t.pid, signal.SIGUSR1)
        wait_until(lambda: len(harness.children(t.pid)) == 2, what="children")
        pids = {t.pid, *harness.children(t.pid)}
        inner = {pid: int(harness.status(pid, "NSpid").split()[-1]) for pid in pids}
        wait_until(lambda: pids <= {e["pid"] for e in self.events_so_far(p)}, what="events of all three")
        r = self.finish(p)
        self.assertEqual({(e["pid"], e["inner_pid"]) for e in r.events}, set(inner.items()))
        self.assertEqual(r.summary["lost"]["total"], 0, r.summary)
        for pid in pids:
            self.assertEqual(harness.changed_text(pid), [])

    def test_rows_by_pid_of_followed_containers_are_by_the_pid_that_the_user_sees(self):
        """Each calls itself 1 or 2: rows by those would be of both containers."""
        a, b = self.container("family", "on", **DOCKER), self.container("family", "on", **DOCKER)
        p = self.start("--pid", f"{a.pid},{b.pid}", "--follow", "--function", "foo", "--count", "--by", "pid", "--interval", "100ms")
        for t in (a, b):
            self.await_armed(p, t.pid)
            os.kill(t.pid, signal.SIGUSR1)
            wait_until(lambda t=t: len(harness.children(t.pid)) == 2, what="children")
        pids = {pid for t in (a, b) for pid in (t.pid, *harness.children(t.pid))}
        wait_until(lambda: all(f'"key":{pid},' in self.said(p) for pid in pids), what="rows of all six")
        r = self.finish(p)
        self.assertEqual({x["key"] for x in r.answers if x["final"]}, pids, str(r.answers))

    def events_so_far(self, p):
        with open(p.events) as f:
            lines = f.read().split("\n")[:-1]
        return [e for e in map(json.loads, lines) if e.get("type") == "event"]


class Names(Containers):
    """--container and --user."""

    ID = "%064x" % os.getpid()

    def groups(self, *names):
        """Control groups with such names; returns their folders."""
        for base in "/sys/fs/cgroup", "/sys/fs/cgroup/pids", "/sys/fs/cgroup/unified":
            top = f"{base}/dynprobe-test-{os.getpid()}"
            folders = [f"{top}/{name}" for name in names]
            try:
                for folder in folders:
                    os.makedirs(folder)
            except OSError:
                continue
            for folder in [top, *folders]:
                self.addCleanup(self.remove_group, folder)
            if os.path.exists(top + "/cgroup.procs"):
                return folders
        self.skipTest("no control group can be made here")

    def remove_group(self, folder):
        def gone():
            try:
                os.rmdir(folder)
            except FileNotFoundError:
                return True
            except OSError:  # its last process is still ending
                return False
            return True

        wait_until(gone, what=f"an empty {folder}")

    def inside(self, folder):
        t = self.target("spin", 0, 500)
        with open(folder + "/cgroup.procs", "w") as f:
            f.write(str(t.pid))
        self.addCleanup(t.close)
        return t

    def pids(self, *args, **kw):
        r = self.dynprobe(*args, "--function", "foo", "--count", "--by", "pid", "-d", 0.5, **kw)
        self.assert_ok(r)
        return {row["key"] for row in r.answers if row["hits"]}

    def test_processes_of_a_container_by_its_id_or_its_beginning(self):
        first, second = "ab" + self.ID[2:], "ac" + self.ID[2:]
        folders = self.groups(f"docker-{first}.scope", f"libpod-{second}.scope", f"libpod-conmon-{second}.scope")
        a, b, other = (self.inside(f) for f in folders)
        self.assertEqual(self.pids("--container", first), {a.pid})
        self.assertEqual(self.pids("--container", second[:12]), {b.pid})
        self.assert_refused(self.dynprobe("--container", "a", "--function", "foo"), "DP-USAGE", first[:12], second[:12])
        self.assert_refused(self.dynprobe("--container", "zz", "--function", "foo"), "DP-NO-PROCESS", first[:12], second[:12])
        self.assertEqual(tool("status", "--container", first, status=0).stdout.split()[0], str(a.pid))

    def test_name_that_the_runtime_knows(self):
        folder, = self.groups(f"docker-{self.ID}.scope")
        t = self.inside(folder)
        config = f"/var/lib/docker/containers/{self.ID}"
        make = f"mount -t tmpfs none /var/lib && mkdir -p {config} && echo '{{\"Name\":\"/web\"}}' >{config}/config.v2.json && exec \"$@\""
        self.assertEqual(self.pids("--container", "web", prefix=("unshare", "-m", "sh", "-c", make, "sh")), {t.pid})

    def test_user(self):
        for_nobody = self.for_nobody("spin")
        a, b = (self.target(for_nobody, 0, 500, prefix=["setpriv", "--reuid", "54321", "--regid", "54321", "--clear-groups"]) for _ in range(2))
        other = self.target("spin", 0, 500)
        self.assertEqual(self.pids("--user", 54321), {a.pid, b.pid})
        self.assertNotIn(other.pid, self.pids("--user", 54321))
        self.assert_refused(self.dynprobe("--user", "nosuchuser", "--function", "foo"), "DP-USAGE", "nosuchuser")
        self.assert_refused(self.dynprobe("--user", 54322, "--function", "foo"), "DP-NO-PROCESS", "54322")


class Sidecar(Containers):
    """dynprobe in a container of its own, in the pid namespace of the probed one: docker run --pid=container:ID, kubectl debug --target."""

    def sidecar(self, t, *args, capabilities, status=0, filters=(), **spec):
        self.count += 1
        base = self.path(f"base-{self.count}")
        os.mkdir(base)
        argv = ["/app/dynprobe", *map(str, args)]
        spec.update(beside=t.pid, image=containers.copied(self, f"sidecar-{self.count}", [harness.DYNPROBE]), base=base, argv=argv, capabilities=capabilities,
                    filters=[f.hex() for f in filters])
        command = containers.command(spec)
        return tool(*command[1:], binary=command[0], status=status)

    def test_cap_sys_ptrace_is_enough_where_there_is_no_filter(self):
        t = self.container("spin", 0, 500)
        probe = ("--no-record", "--pid", 1, "--function", "foo", "-t", "s", "-t", "backtrace", "-n", 3)
        p = self.sidecar(t, *probe, capabilities=[*containers.DOCKER_CAPABILITIES, containers.CAP_SYS_PTRACE])
        self.assertEqual(len(re.findall(r"spin\[1\] foo: s=", p.stdout)), 3, p.stderr)
        self.assertIn("caller+", p.stdout)
        p = self.sidecar(t, *probe, capabilities=containers.DOCKER_CAPABILITIES, status=harness.OWN_FAILURE)
        for word in ("DP-PERMISSION", "CAP_SYS_PTRACE", "--cap-add"):
            self.assertIn(word, p.stderr)

    def test_no_capability_for_a_program_of_the_same_user(self):
        t = self.container("spin", 0, 500, uid=1000)
        p = self.sidecar(t, "--no-record", "--pid", 1, "--function", "foo", "-n", 3, capabilities=[], uid=1000)
        self.assertEqual(p.stdout.count("spin[1] foo"), 3, p.stderr)

    def test_snapshots_and_resident_probes(self):
        t = self.container("spin", 0, 500)
        capabilities = [*containers.DOCKER_CAPABILITIES, containers.CAP_SYS_PTRACE]
        for mode in ("stop", "fork") if FULL else ("fork",):
            self.assertIn(f"mode {mode}", self.sidecar(t, "snapshot", 1, "--mode", mode, "-o", "/tmp/x", capabilities=capabilities).stderr)
        before = State(t.pid)
        self.sidecar(t, "attach", "--pid", 1, "--function", "foo", capabilities=capabilities)
        self.assertIn("foo", tool("status", "--pid", t.pid, status=0).stdout)
        self.sidecar(t, "detach", "--pid", 1, capabilities=capabilities)
        self.assertEqual(before.differences(State(t.pid)), {})

    def test_a_filter_of_the_program_takes_cap_sys_admin_and_no_own_filter(self):
        t = self.container("spin", 0, 500, **DOCKER)
        probe = ("--no-record", "--pid", 1, "--function", "foo", "-t", "s", "-n", 3)
        capabilities = [*containers.DOCKER_CAPABILITIES, containers.CAP_SYS_PTRACE]
        p = self.sidecar(t, *probe, capabilities=capabilities, status=harness.OWN_FAILURE)
        self.assertIn("to read it, dynprobe needs CAP_SYS_ADMIN", p.stderr)
        capabilities += [containers.CAP_SYS_ADMIN]
        p = self.sidecar(t, *probe, capabilities=capabilities, filters=[containers.docker_default()], status=harness.OWN_FAILURE)
        self.assertIn("dynprobe itself runs under one", p.stderr)
        p = self.sidecar(t, *probe, capabilities=capabilities)
        self.assertEqual(p.stdout.count("spin[1] foo"), 3, p.stderr)


class Filters(Containers):
    """Seccomp filters are read, and refused only for what they forbid."""

    def test_every_call_that_dynprobe_makes_is_known_to_it(self):
        """The filter kills for a call that is not in the lists above; one that dynprobe lists besides would be refused."""
        t = self.container("spin", 0, 500, filters=[but()])
        self.assert_probed(t, "--when", 'edi > 5 && comm == "spin" && *(char *)rsi != 0')
        for args in (["--tactic", "trap"], ["--snapshot"], ["--count"], ["--follow"], ["--pending", "--function", "nothing.so!f"]):
            r = self.attach(t, "--function", "foo", "-n", 3, *args, cwd=self.dir) if args != ["--count"] else self.attach(t, "--function", "foo", "--count", "-d", "1s")
            self.assertTrue(os.path.exists(f"/proc/{t.pid}/maps") and "dynprobe" not in "".join(m.path for m in harness.maps(t.pid)), r)
            self.assertIn(r.status, (0, 121), r)
        tool("attach", "--pid", t.pid, "--function", "foo", status=0)
        self.let_run(t)
        tool("detach", "--pid", t.pid, status=0)
        self.assertNotIn("instead", tool("snapshot", t.pid, "--mode", "fork", "-o", self.path("copy"), status=0).stderr)
        self.assert_goes_on(t)

    def test_refuse_DP_SECCOMP_names_the_call_and_what_happens(self):
        for name in ("mremap", "openat"):
            t = self.container("spin", 0, 500, filters=[containers.denies([(ATTACH[name], KILL)])] if name == "mremap" else
                               [containers.docker_default(), containers.denies([(ATTACH["mremap"], ERRNO)])])
            what = "mremap kills the process" if name == "mremap" else "mremap fails with errno 1"
            before = State(t.pid)
            self.assert_refused(self.attach(t, "--function", "foo"), "DP-SECCOMP", what)
            self.assertEqual(before.differences(State(t.pid)), {})
            self.assert_ok(self.attach(t, "--function", "foo", "--allow-seccomp", "-n", 3))

    def test_what_only_reading_needs_is_refused_only_to_reading(self):
        t = self.container("spin", 0, 500, filters=[but(HIT["process_vm_readv"])])
        r = self.attach(t, "--function", "foo", "-t", "reg:rdi", "-n", 5)
        self.assert_ok(r)
        self.assertEqual(len(r.events), 5)
        self.assert_refused(self.attach(t, "--function", "foo", "-t", "str(rsi)", "-n", 5), "DP-SECCOMP", "process_vm_readv kills the process")
        self.assert_goes_on(t)

    def test_mode_fork_names_what_its_copy_may_not_call(self):
        t = self.container("spin", 0, 500, filters=[but(COPY["close_range"])])
        p = tool("snapshot", t.pid, "--mode", "fork", "-o", self.path("copy"), status=0)
        self.assertIn("mode stop instead of fork", p.stderr)
        self.assertIn("close_range kills the process", p.stderr)
        self.assert_goes_on(t)

    def test_refuse_DP_SECCOMP_filter_that_may_not_be_read(self):
        t = self.target(self.for_nobody("caged"), ready="CAGED", prefix=harness.NOBODY)
        p = tool("--no-record", "--pid", t.pid, "--function", "foo", "-n", 1, prefix=harness.NOBODY, binary=self.for_nobody("dynprobe"),
                 env=harness.environment(HOME=self.dir), status=harness.OWN_FAILURE)
        for word in ("DP-SECCOMP", "to read it", "CAP_SYS_ADMIN"):
            self.assertIn(word, p.stderr)
        self.assert_result_ok(t)

    def test_dry_run_stops_nobody_and_assumes_that_the_filter_allows_it(self):
        t = self.container("spin", 0, 500, **DOCKER)
        p = tool("--pid", t.pid, "--function", "foo", "-t", "str(rsi)", "--dry-run", status=0)
        self.assertIn("under a seccomp filter, which only an attach reads", p.stdout + p.stderr)
        switches = self.system_calls("ptrace", "--no-record", "--pid", t.pid, "--function", "foo", "-t", "str(rsi)", "--dry-run")
        self.assertNotIn("ptrace(", switches)


if __name__ == "__main__":
    harness.main()
