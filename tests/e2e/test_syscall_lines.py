# SPDX-License-Identifier: MIT
"""Tests the lines of system calls: strace's own, and calls that last, are lost, or have only an end."""

import os
import re
import subprocess
import sys

import harness
from harness import Case, needs, target_path

LINE = re.compile(r"^\d\d:\d\d:\d\d\.\d{9} (?P<comm>.+?)\[(?P<tid>[\d/]+)\] (?P<text>.*?)(?P<time> <[0-9.]+(ns|us|ms|s)>)?$")
# What both say of these calls; strace's versions and the addresses differ for others.
COMPARED = "openat|newfstatat|fstat|read|write|lseek|close|getdents64|access|readlink|unlink|mkdir|rmdir|pipe2|dup2|socket|poll|nanosleep|rt_sigprocmask|exit_group"


def parsed(text):
    return [m for m in map(LINE.match, text.splitlines()) if m]


def text_of(path):
    with open(path, errors="surrogateescape") as f:
        return f.read()


def texts(lines):
    """One for each call: what a slow machine makes two lines of is joined."""
    begun, found = {}, []
    for m in lines:
        text = m["text"]
        if text.endswith("<unfinished ...>"):
            begun[m["tid"]] = text[:-len("<unfinished ...>")] if text.endswith(", <unfinished ...>") else text[:-len(" <unfinished ...>")]
        elif text.startswith("<... ") and m["tid"] in begun:
            found.append(begun.pop(m["tid"]) + text.split(" resumed>", 1)[1])
        else:
            found.append(text)
    return found


def common(lines):
    """Without what may differ: addresses, the order of flags, comments."""
    kept = [line for line in lines if re.match(rf"({COMPARED})\(", line)]
    kept = [re.sub(r" /\*.*?\*/", "", re.sub(r"0x[0-9a-f]{5,}", "ADDR", re.sub(r"\)\s+= ", ") = ", line))) for line in kept]
    return [re.sub(r"\b[A-Z][A-Z_0-9]+(\|[A-Z][A-Z_0-9]+)+", lambda m: "|".join(sorted(m[0].split("|"))), line) for line in kept]


class Lines(Case):
    def text(self, *args, **kw):
        """The lines of a run, and its result."""
        out = self.path("lines")
        r = self.dynprobe("-o", out, *args, json_events=False, **kw)
        self.assertIn(r.status, (0, harness.EXIT_PARTIAL), str(r))
        return parsed(text_of(out)), r

    def same_as_strace(self, first, *command):
        """From the line on that begins with `first`: before it, the loader works."""
        env = {**harness.environment(), "LC_ALL": "C", "LANGUAGE": "C"}
        said = subprocess.run(["strace", "-o", self.path("strace"), *command], env=env, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, stdin=subprocess.DEVNULL,
                              timeout=300, check=False)
        theirs = common(text_of(self.path("strace")).splitlines())
        out = self.path("ours")
        with open(os.devnull, "r+") as nowhere:
            p = subprocess.run([harness.DYNPROBE, "--no-record", "-o", out, "--syscall", "*", "--", *command], env=env, stdin=nowhere, stdout=nowhere, stderr=nowhere, timeout=300, check=False)
        self.assertEqual(p.returncode, said.returncode)
        ours = common(texts(parsed(text_of(out))))
        begin = lambda lines: next(i for i, line in enumerate(lines) if line.startswith(first))
        self.assertEqual(ours[begin(ours):], theirs[begin(theirs):])
        self.assertGreater(len(ours), 5)

    @needs("strace")
    def test_cat_as_strace_has_it(self):
        self.written("file", "seven\tlines\n" * 7)
        self.same_as_strace(f'openat(AT_FDCWD, "{self.path("file")}"', "cat", self.path("file"), "/nonexistent/file")

    @needs("strace")
    def test_ls_as_strace_has_it(self):
        self.written("one", "")
        os.mkdir(self.path("directory"))
        command = ["ls", "-1", self.path("directory"), "/nonexistent"]
        self.same_as_strace(f'openat(AT_FDCWD, "{self.path("directory")}"', *command)

    @needs("strace")
    def test_python_as_strace_has_it(self):
        script = self.written("script.py", f"""
import os, select, signal, socket, time
os.access("/nonexistent/begin", os.R_OK)
r, w = os.pipe2(os.O_CLOEXEC | os.O_NONBLOCK)
os.write(w, b"\\x7fELF\\0\\1" * 20)
p = select.poll()
p.register(r, select.POLLIN | select.POLLPRI)
os.read(r, 4096)
try: os.read(r, 1)
except BlockingIOError: pass
p.poll(0)
os.mkdir({self.path("made")!r}, 0o750); os.rmdir({self.path("made")!r})
fd = os.open({self.path("new")!r}, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_TRUNC, 0o640)
os.lseek(fd, 0, os.SEEK_END)
os.stat("/dev/null"); os.stat({self.path("new")!r})
os.close(fd); os.unlink({self.path("new")!r})
signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGUSR1, signal.SIGTERM])
try: os.readlink("/nonexistent/link")
except OSError: pass
os._exit(3)
""")
        self.same_as_strace('access("/nonexistent/begin"', "/usr/bin/python3", "-I", "-S", "-B", script)

    @needs("strace")
    def test_a_thread_as_strace_has_it(self):
        command = ["/usr/bin/python3", "-I", "-S", "-c", "import _thread, time; _thread.start_new_thread(time.sleep, (0,)); time.sleep(0.2)"]
        subprocess.run(["strace", "-f", "-o", self.path("strace"), "-e", "trace=clone3", *command], check=False, capture_output=True, timeout=300)
        plain = lambda text: re.sub(r"0x[0-9a-f]{5,}", "ADDR", re.sub(r" => \{.*?\}\)?(?=, )", "", text))
        theirs = [plain(m[0]) for m in re.finditer(r"clone3\(\{.*\}.*?, \d+", text_of(self.path("strace")))]
        lines, _ = self.text("--no-record", "--syscall", "clone3", "--", *command)
        ours = [plain(text.partition(")")[0]) for text in texts(lines)]
        if not theirs:
            self.skipTest("libc starts threads by clone")
        self.assertEqual(ours, theirs)

    def test_calls_at_places_of_any_number_have_names(self):
        lines, r = self.text("--syscall", "*", "--", target_path("calls"), 3)
        seen = texts(lines)
        n = int(re.search(r"enoent (\d+)", r.out)[1])
        self.assertEqual(seen.count("getpgid(-5) = -1 ESRCH (No such process)"), n)
        self.assertEqual(seen.count('openat(AT_FDCWD, "/nonexistent/path", O_RDONLY) = -1 ENOENT (No such file or directory)'), n)
        self.assertEqual(len([t for t in seen if t.startswith("syscall_900(") and t.endswith(") = -1 ENOSYS (Function not implemented)")]), n)
        self.assertEqual(seen[-1], "exit_group(0) = ?")
        self.assertTrue(all(m["time"] for m in lines if m["text"].startswith("getpgid(") and "<unfinished" not in m["text"]))

    def test_a_call_that_lasts_is_shown_while_it_does(self):
        r, w = os.pipe()
        self.addCleanup(os.close, w)
        child = self.spawn(sys.executable, "-c", "import os, sys\nwhile os.read(0, 100) != b'end': pass\nsys.stdin.close(); input", stdin=r)
        os.close(r)
        blocked = lambda: text_of(f"/proc/{child.pid}/syscall").startswith("0 0x0 ")
        harness.wait_until(blocked, what="read()")
        out = self.path("lines")
        p = self.start("-o", out, "--pid", child.pid, "--syscall", "read", json_events=False)
        self.await_armed(p, child.pid)
        said = lambda: [m["text"] for m in parsed(text_of(out))] if os.path.exists(out) else []

        def begun():
            """The probes may come while the first ones are read."""
            found = [t for t in said() if '"first\\n' in t]
            if not found and blocked():
                os.write(w, b"first\n")
            return found

        harness.wait_until(begun, what="a line about a read")
        os.write(w, b"mark\n")  # behind its line, none is of an earlier read
        harness.wait_until(lambda: any('mark\\n"' in t for t in said()), what="a line about the last read")
        harness.wait_until(lambda: said()[-1] == "read(0, <unfinished ...>", what="a line about the blocked call")
        os.write(w, b"second\n")
        harness.wait_until(lambda: '<... read resumed>"second\\n", 100) = 7' in said(), what="its end")
        self.assert_ok(self.finish(p))

    def test_only_exits_are_whole_lines(self):
        lines, _ = self.text("--syscall", "getpgid", "--when", "retval < 0", "--", target_path("calls"), 3)
        self.assertEqual({m["text"] for m in lines}, {"getpgid(-5) = -1 ESRCH (No such process)"})
        lines, _ = self.text("--syscall", "read", "--slower-than", "1ns", "--", target_path("calls"), 3)
        self.assertEqual({m["text"] for m in lines if m["time"]}, {r'read(4, "\0\0\0\0\0\0\0", 7) = 7'.replace("read(4", m["text"][:6]) for m in lines})

    def test_a_backtrace_is_below_the_line(self):
        out = self.path("lines")
        r = self.dynprobe("-o", out, "--no-lines", "--syscall", "read", "-t", "backtrace", "-t", "duration", "--", target_path("calls"), 3, json_events=False)
        self.assert_ok(r)
        self.assertRegex(text_of(out), r'\] read\(\d, "(\\0){7}", 7\) = 7 <[0-9.]+.?s>\n    #0  \S*read\+0x\w+/0x\w+ \[libc.*\n(    #.*\n)*    #\d+ +(one_round|work)\+')

    def test_after_losses_each_line_is_still_of_one_call(self):
        """lseek() returns what it was given: a pair of two calls would not."""
        script = "import os\nfd = os.open('/dev/zero', 0)\nfd = os.open('/etc/passwd', 0)\nfor i in range(60000): os.lseek(fd, i, 0)\n"
        lines, r = self.text("--buffer-size", "16K", "--syscall", "lseek", "--", sys.executable, "-S", "-c", script)
        self.assertRegex(r.err, r"lost +[1-9]")
        whole = [re.match(r"lseek\(\d+, (\d+), SEEK_SET\) = (\d+)$", m["text"]) for m in lines]
        self.assertGreater(len([m for m in whole if m]), 100)
        self.assertEqual([m[0] for m in whole if m and m[1] != m[2]], [])

    def test_json_has_the_parts(self):
        r = self.dynprobe("--syscall", "openat", "--", "cat", "/nonexistent/file")
        entry, leave = [e for e in r.events if e["fields"]["filename"] == "/nonexistent/file"]
        self.assertEqual((entry["call"], entry["args_text"]), ("openat", 'AT_FDCWD, "/nonexistent/file", O_RDONLY'))
        self.assertNotIn("result", entry)
        self.assertEqual((leave["call"], leave["args_text"], leave["result"], leave["error"]), ("openat", entry["args_text"], -1, "ENOENT"))
        self.assertEqual(leave["duration_ns"], leave["mono"] - entry["mono"])
        self.assertEqual(leave["fields"]["retval"], "-ENOENT")

    def test_a_recording_is_shown_alike(self):
        out, trace = self.path("lines"), self.path("trace")
        self.assert_ok(self.dynprobe("-o", out, "--syscall", "*", "--name", "any", "--", "cat", "/etc/passwd", record=trace, json_events=False))
        self.assertEqual(harness.tool("view", trace, status=0).stdout, text_of(out))
        failed = harness.tool("view", trace, "--when", "retval == -2", status=0).stdout.splitlines()
        self.assertTrue(failed and all(line.endswith("ENOENT (No such file or directory)") for line in failed), failed)


if __name__ == "__main__":
    harness.main()
