# SPDX-License-Identifier: MIT
"""Tests limits of the process, the machine and dynprobe: probes fit, or are refused with the limit's name before anything changes."""

import os
import resource
import shutil
import signal
import subprocess

import harness
from harness import Case, State, needs, needs_root

MIB = 1 << 20
UNLIMITED = resource.RLIM_INFINITY


def limit(what, soft, hard=None):
    """Returns a function that a child calls before it starts its program."""
    return lambda: resource.setrlimit(what, (soft, soft if hard is None else hard))


class Limits(Case):
    def limited(self, what, soft, name="spin", args=(0, 300), **kw):
        """A target that gets a limit after READY."""
        t = self.target(name, *args, **kw)
        resource.prlimit(t.pid, what, (soft, resource.prlimit(t.pid, what)[1]))
        return t

    def check_refused(self, t, *words, args=()):
        """The dry run refuses it too, and nothing has changed."""
        before = State(t.pid)
        for more in (["--dry-run"], ["-n", 5]):
            self.assert_refused(self.attach(t, "--function", "foo", *more, *args), "DP-LIMIT", *words)
            self.assertEqual(before.differences(State(t.pid)), {})

    def check_probed(self, t, *args, env=None, **popen):
        before = State(t.pid)
        r = self.attach(t, "--function", "foo", "-t", "regs", "-n", 20, *args, **popen)
        self.assert_ok(r)
        self.assert_hits(r, 20)
        self.assert_clean(t.pid, before)
        return r

    # -- address space, data, mappings, descriptors

    def test_address_space_that_is_short_gets_smaller_rings(self):
        t = self.limited(resource.RLIMIT_AS, 400 * MIB)
        self.check_probed(t)
        self.assert_ok(self.attach(t, "--function", "foo", "--dry-run"))
        self.assert_result_ok(t)

    def test_address_space_is_left_to_the_program(self):
        """dynprobe takes less than half of the remaining address space, also if there is little."""
        t = self.limited(resource.RLIMIT_AS, 32 * MIB)
        size = lambda: int(harness.status(t.pid, "VmSize").split()[0]) << 10
        before = size()
        tool = self.start_attached(t, "--function", "foo")
        self.await_events(tool)
        taken, left = size() - before, 32 * MIB - before
        self.assertLess(taken, left / 2)
        self.assert_hits(self.finish(tool))
        self.assert_result_ok(t)

    def test_refuse_DP_LIMIT_address_space(self):
        t = self.limited(resource.RLIMIT_AS, 400 * MIB)
        self.check_refused(t, "RLIMIT_AS", "400 MiB", t.pid, "--buffer-size", args=["--buffer-size", "64M"])
        words = self.attach(t, "--function", "foo", "--buffer-size", "64M").err
        helps = words.split("--buffer-size ")[1].split()[0]
        self.check_probed(t, "--buffer-size", helps)
        tight = self.limited(resource.RLIMIT_AS, 4 * MIB)
        self.check_refused(tight, "RLIMIT_AS", "prlimit --pid", tight.pid, "--as")
        self.assert_result_ok(t)
        self.assert_result_ok(tight)

    def test_refuse_DP_LIMIT_data(self):
        t = self.target("spin", 0, 300)
        used = int(harness.status(t.pid, "VmData").split()[0]) << 10
        resource.prlimit(t.pid, resource.RLIMIT_DATA, (used + 4096, UNLIMITED))
        self.check_refused(t, "RLIMIT_DATA", "prlimit --pid", "--data")
        self.assert_result_ok(t)

    def test_refuse_DP_LIMIT_file_descriptors(self):
        t = self.limited(resource.RLIMIT_NOFILE, 3)
        self.check_refused(t, "RLIMIT_NOFILE", "is 3", "--nofile=4")
        resource.prlimit(t.pid, resource.RLIMIT_NOFILE, (4, resource.prlimit(t.pid, resource.RLIMIT_NOFILE)[1]))
        self.check_probed(t)
        self.assert_result_ok(t)

    def test_refuse_DP_LIMIT_mappings(self):
        t = self.target("cramped", "maps", 4)
        self.check_refused(t, "vm.max_map_count", "sysctl")
        self.assert_result_ok(t)

    def test_a_few_hundred_mappings_left_are_enough(self):
        t = self.target("cramped", "maps", 300)
        self.check_probed(t)
        self.assert_result_ok(t)

    # -- locked memory

    @needs_root
    @needs("setpriv")
    def test_locked_memory_that_is_limited_gets_smaller_rings_or_is_named_DP_LIMIT(self):
        program = self.path("cramped")
        shutil.copy(harness.target_path("cramped"), program)
        os.chmod(self.dir, 0o777)
        nobody = ["setpriv", "--reuid", "65534", "--regid", "65534", "--clear-groups", "--inh-caps=-all"]
        t = harness.Target(program, "lock", prefix=nobody, preexec_fn=limit(resource.RLIMIT_MEMLOCK, 8 * MIB))
        self.addCleanup(t.close)
        self.check_probed(t)
        before = State(t.pid)
        self.assert_refused(self.attach(t, "--function", "foo", "-n", 1, "--buffer-size", "16M"), "DP-LIMIT", "RLIMIT_MEMLOCK", "8192 KiB", "--buffer-size")
        self.assertEqual(before.differences(State(t.pid)), {})
        self.assert_result_ok(t)

    def test_pages_of_a_process_that_locks_its_memory_exist_before_they_are_used(self):
        t = self.target("cramped", "lock", ready=None)
        harness.wait_until(lambda: "READY" in t.output() or not t.alive(), what="the target")
        if not t.alive():
            self.skipTest("memory cannot be locked here: " + t.output())
        tool = self.start_attached(t, "--function", "foo", "-t", "backtrace")
        self.await_events(tool)
        harness.assert_memory_exists(self, t.pid)
        self.assert_hits(self.finish(tool))
        self.assert_clean(t.pid)
        self.assert_result_ok(t)

    # -- code

    def test_no_memory_that_was_writable_may_become_executable(self):
        t = self.target("cramped", "mdwe", ready=None)
        harness.wait_until(lambda: "READY" in t.output() or not t.alive(), what="the target")
        if not t.alive():
            self.skipTest("this kernel has no PR_SET_MDWE")
        self.check_probed(t)
        self.check_probed(t, "--probe", "foo:*")
        self.assert_ok(self.attach(t, "--function", "foo", "-t", "backtrace", "--when", "str(s) == \"alpha\"", "-n", 5))
        self.assert_result_ok(t)

    @needs_root
    def test_memory_files_that_may_not_be_executed(self):
        """vm.memfd_noexec belongs to the pid namespace, so the test makes one. With 2, execve() of a memory file fails, but mapping it works."""
        script = """
            echo $1 > /proc/sys/vm/memfd_noexec || exit 77
            : > out # of the other value
            "$3" 0 300 > out & until grep -qs READY out; do :; done
            "$2" --no-record --pid $! --function foo -t regs -n 20 > events 2> err; status=$?
            grep -q memfd:dynprobe /proc/$!/maps && status=1
            kill $!; wait; grep -q "RESULT OK" out || status=2
            exit $status"""
        if not os.path.exists("/proc/sys/vm/memfd_noexec"):
            self.skipTest("this kernel has no vm.memfd_noexec")
        for value in "1", "2":
            p = subprocess.run(["unshare", "--pid", "--fork", "--mount-proc", "sh", "-c", script, "sh", value, harness.DYNPROBE, harness.target_path("spin")],
                               cwd=self.dir, timeout=300)
            if p.returncode == 77:
                self.skipTest("vm.memfd_noexec cannot be set here")
            with open(self.path("err"), encoding="utf-8") as err, open(self.path("events"), encoding="utf-8") as events:
                said, shown = err.read(), events.read()
            self.assertEqual(p.returncode, 0, said)
            self.assertGreaterEqual(shown.count("] foo"), 20, said)

    # -- dynprobe's own

    def test_largest_file_of_dynprobe_is_lifted_where_it_may_be(self):
        t = self.target("spin", 0, 300)
        self.check_probed(t, preexec_fn=limit(resource.RLIMIT_FSIZE, MIB, UNLIMITED))
        self.assert_result_ok(t)

    def test_commands_have_the_limit_and_the_signal_that_they_were_given(self):
        r = self.dynprobe("-c", "sh -c 'ulimit -f; grep SigIgn /proc/self/status'", "--function", "main", preexec_fn=limit(resource.RLIMIT_FSIZE, MIB, UNLIMITED))
        with open("/proc/self/status", encoding="ascii") as f:
            ours = next(line.split()[1] for line in f if line.startswith("SigIgn:"))
        mask = int(ours, 16) & ~(1 << signal.SIGXFSZ - 1 | 1 << signal.SIGPIPE - 1)  # Popen restores both
        self.assertEqual(r.out.split(), ["2048", "SigIgn:", f"{mask:016x}"], str(r))

    @needs_root
    @needs("setpriv")
    def test_refuse_DP_LIMIT_largest_file_of_dynprobe(self):
        nobody = [*harness.NOBODY, "--bounding-set=-all"]
        t = self.target(self.for_nobody("spin"), 0, 300, prefix=nobody)
        run = lambda *args: harness.tool("--no-record", "--pid", t.pid, "--function", "foo", "-n", 20, *args, prefix=nobody, binary=self.for_nobody("dynprobe"),
                                         env=harness.environment(HOME=self.dir), preexec_fn=limit(resource.RLIMIT_FSIZE, 64 * MIB))
        p = run()  # with smaller rings
        self.assertEqual(p.returncode, 0, p.stderr)
        self.assertGreaterEqual(p.stdout.count("] foo"), 20)
        before = State(t.pid)
        p = run("--buffer-size", "16M")
        self.assertEqual(p.returncode, harness.OWN_FAILURE, p.stderr)
        for word in ("DP-LIMIT", "RLIMIT_FSIZE", "65536 KiB", "--buffer-size", "ulimit -f"):
            self.assertIn(word, p.stderr)
        self.assertEqual(before.differences(State(t.pid)), {})
        self.assert_result_ok(t)


if __name__ == "__main__":
    harness.main()
