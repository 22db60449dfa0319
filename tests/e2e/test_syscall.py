# SPDX-License-Identifier: MIT
"""Tests --syscall against programs that count their own calls, against strace, and with calls that return twice, elsewhere, or never."""

import json
import os
import re
import subprocess
import tempfile

import harness
from harness import Case, needs, target_path

ROUNDS = 25

SKIPS = """long maybe(long go, long pid);
__asm__(".globl maybe\\n.type maybe, @function\\nmaybe: mov %rdi, %rdx\\nmov %rsi, %rdi\\ntest %rdx, %rdx\\njz 1f\\n"
        "mov $121, %eax\\nsyscall\\n1: mov %edx, %eax\\nnop\\nnop\\nnop\\nret\\n.size maybe, .-maybe");
int main(void)
{
	for (long i = 0; i < 100; i++)
		maybe(i % 5 == 0, 0);
	return 0;
}
"""


def titles(r):
    found = {}
    for e in r.events:
        found.setdefault(e.get("title"), []).append(e["fields"])
    return found


class Counted(Case):
    def counts_of(self, r):
        words = re.search(r"^read .*$", r.out, re.M)[0].split()
        self.assertIn("RESULT OK", r.out)
        return dict(zip(words[::2], map(int, words[1::2])))

    def test_each_call_is_seen_once_whoever_makes_it(self):
        names = ("read", "getppid", "getpgid", "syscall_900", "wait4")
        r = self.dynprobe(*(w for n in names for w in ("--syscall", n)), "--", target_path("calls"), ROUNDS)
        self.assert_ok(r)
        said, seen = self.counts_of(r), titles(r)
        for name in names:
            for point in ("entry", "exit"):
                self.assertEqual(len(seen.get(f"syscall:{name}:{point}", [])), said[name], (name, point, said))

    def test_arguments_and_results_by_name(self):
        r = self.dynprobe("--syscall", "openat", "--syscall", "read", "--syscall", "getpgid", "--", target_path("calls"), 3)
        self.assert_ok(r)
        seen, n = titles(r), self.counts_of(r)["enoent"]
        missing = [f for f in seen["syscall:openat:entry"] if f["filename"] == "/nonexistent/path"]
        self.assertEqual(len(missing), n)
        self.assertEqual({(f["dirfd"], f["flags"]) for f in missing}, {(-100, "0x0")})
        self.assertEqual([f["retval"] for f in seen["syscall:openat:exit"]].count("-ENOENT"), n)
        self.assertEqual({f["count"] for f in seen["syscall:read:entry"]}, {7})
        self.assertEqual({f["retval"] for f in seen["syscall:read:exit"]}, {7})
        self.assertEqual([f["pid"] for f in seen["syscall:getpgid:entry"]].count(-5), n)
        self.assertEqual([f["retval"] for f in seen["syscall:getpgid:exit"]].count("-ESRCH"), n)

    def test_conditions_and_what_the_kernel_has_written(self):
        r = self.dynprobe("--syscall", "getpgid", "--when", "pid == -5", "--syscall", "read:exit", "-t", "args", "-t", "retval", "--when", "retval == 7 && count == 7",
                          "--", target_path("calls"), 3)
        self.assert_ok(r)
        seen, n = titles(r), self.counts_of(r)["enoent"]
        self.assertEqual(len(seen["syscall:getpgid:entry"]), n)
        self.assertEqual(len(seen["syscall:read:exit"]), n)
        self.assertEqual({tuple(f) for f in seen["syscall:read:exit"]}, {("fd", "buf", "count", "retval")})

    def test_all_calls_in_one_count(self):
        r = self.dynprobe("--syscall", "*", "--count", "--", target_path("calls"), ROUNDS)
        self.assert_ok(r)
        said = self.counts_of(r)
        rows = {row["probe"]: row["hits"] for row in r.answers}
        self.assertEqual(rows["syscall:read:entry"], said["read"])
        self.assertEqual(rows["syscall:wait4:entry"], said["wait4"])
        self.assertGreaterEqual(rows["syscall:vfork:entry"], 3)
        # Calls by syscall() and by an instruction share places with any number; the other half goes through libc's getppid() and getpgid().
        n = said["enoent"]
        self.assertEqual(rows["syscall:getppid:entry"], n)
        self.assertGreaterEqual(rows["syscall:*:entry"], 4 * n)

    def test_code_that_skips_the_call_is_no_exit_of_it(self):
        program = harness.compiled(self.path("skips"), "cc", "-O1", text=SKIPS)
        for aggregated in ((), ("--count",)):
            for points in (("getpgid",), ("getpgid:exit",)):
                r = self.dynprobe("--syscall", *points, *aggregated, "--", program)
                self.assert_ok(r)
                exits = [f for title, f in titles(r).items() if title.endswith(":exit")]
                if aggregated:
                    self.assertEqual({x["hits"] for x in r.answers}, {20}, str(r.answers))
                else:
                    self.assertEqual([len(f) for f in exits], [20])

    def test_of_calls_that_return_twice_the_parents_return_is_seen(self):
        r = self.dynprobe("--syscall", "vfork", "--syscall", "clone", "--syscall", "clone3", "--", target_path("calls"), 2)
        self.assert_ok(r)
        self.counts_of(r)
        seen = titles(r)
        self.assertEqual(len(seen["syscall:vfork:exit"]), 3)
        self.assertEqual(len(seen["syscall:clone:exit"]), 2)  # fork()
        self.assertEqual(len(seen["syscall:clone3:exit"]), 4)  # threads
        self.assertEqual([f for e in seen.values() for f in e if f.get("retval") == 0], [])

    def test_durations_of_calls_at_places_of_any_number(self):
        r = self.dynprobe("--syscall", "getpgid", "--hist", "duration", "--", target_path("calls"), ROUNDS)
        self.assert_ok(r)
        self.assertEqual([(row["probe"], row["hits"]) for row in r.answers], [("syscall:getpgid:exit", self.counts_of(r)["getpgid"])])
        self.assertEqual(r.summary["lost"]["total"], 0)

    def test_numbers_by_name_at_places_of_any_number(self):
        r = self.dynprobe("--syscall", "get*pgid", "--syscall", "syscall_900:entry", "--", target_path("calls"), 2)
        self.assert_ok(r)
        self.assertEqual(len(titles(r)["syscall:syscall_900:entry"]), self.counts_of(r)["syscall_900"])


class Hazards(Case):
    """Programs that check their own results, with a probe at every system call."""

    def hold(self, name, *args, seconds=0.4, probes=("--syscall", "*")):
        t = self.target(name, *args)
        r = self.attach(t, *probes, "-q", "-d", seconds)
        self.assertIn(r.status, (0, harness.EXIT_PARTIAL), str(r))
        self.assertGreater(r.summary["hits"], 0, str(r))
        self.assert_clean(t.pid)
        self.assert_result_ok(t)
        return r

    def test_children_that_return_from_the_same_call_on_other_stacks(self):
        self.hold("cloner")

    def test_cancelled_threads(self):
        self.hold("canceller")

    def test_restarted_and_interrupted_calls(self):
        self.hold("eintr", seconds=0.6)

    def test_signal_frames(self):
        self.hold("sigstorm")


@needs("strace")
class Strace(Case):
    def strace(self, calls, *command):
        with tempfile.NamedTemporaryFile() as out:
            subprocess.run(["strace", "-f", "-y", "-e", "trace=" + calls, "-o", out.name, *command], check=True, stdout=subprocess.DEVNULL, timeout=300)
            return open(out.name, errors="replace").read()

    def test_python_opens_what_strace_says(self):
        script = "import os\nfor i in range(7):\n try: os.close(os.open(f'/nonexistent/{i}' if i % 2 else '/etc/passwd', os.O_RDONLY))\n except OSError: pass\n"
        mine = lambda names: [n for n in names if n.startswith("/nonexistent/") or n == "/etc/passwd"]
        said = mine(re.findall(r'openat\([^"]*"([^"]*)"', self.strace("openat", "/usr/bin/python3", "-S", "-c", script)))
        r = self.dynprobe("--syscall", "openat", "--", "/usr/bin/python3", "-S", "-c", script)
        self.assert_ok(r)
        self.assertEqual(mine(f["filename"] for f in titles(r)["syscall:openat:entry"]), said)
        self.assertEqual(len(said), 7)

    @needs("sqlite3")
    def test_sqlite_writes_as_often_as_strace_says(self):
        sql = "PRAGMA journal_mode=DELETE; CREATE TABLE t(a); " + "INSERT INTO t VALUES(1);" * 5 + " SELECT count(*) FROM t;"
        calls = ("pwrite64", "fdatasync", "unlink")  # calls that the loader does not make before main()
        def database():
            return os.path.join(tempfile.mkdtemp(dir=self.dir), "db")
        trace = self.strace(",".join(calls), "sqlite3", database(), sql)
        r = self.dynprobe(*(w for c in calls for w in ("--syscall", c)), "--count", "--", "sqlite3", database(), sql)
        self.assert_ok(r)
        rows = {row["probe"]: row["hits"] for row in r.answers}
        for c in calls:
            self.assertEqual(rows.get(f"syscall:{c}:entry", 0), len(re.findall(rf"\b{c}\(", trace)), (c, rows))
        self.assertGreater(rows["syscall:pwrite64:entry"], 10)


class Refused(Case):
    def test_what_is_no_system_call(self):
        t = self.target("spin")
        self.assert_refused(self.attach(t, "--syscall", "raed", "-n", 1), "DP-NO-SYMBOL", "no such system call")
        self.assert_refused(self.attach(t, "--syscall", "s*", "-n", 1), "DP-USAGE", "narrower pattern")
        self.assert_refused(self.attach(t, "--syscall", "re ad", "-n", 1), "DP-SYNTAX", "^")

    def test_dry_run_says_where(self):
        t = self.target("spin")
        p = harness.tool("--pid", t.pid, "--syscall", "openat", "--dry-run", "-f", "json")
        plans = [json.loads(line) for line in p.stdout.splitlines()]
        self.assertEqual({m["name"].rstrip("0123456789").rstrip("_") for m in plans if m["type"] == "plan"}, {"syscall_openat_entry", "syscall_openat_exit"})
        self.assertIsNone(harness.changed_text(t.pid) or None)


if __name__ == "__main__":
    harness.main()
