# SPDX-License-Identifier: MIT
"""Tests docs/cookbook.md and docs/coming-from.md: each command runs as printed there, and its output must be true of the program."""

import concurrent.futures
import json
import os
import re
import shutil
import signal
import socket
import subprocess
import tempfile
import threading
import unittest

import harness

PAGES = [os.path.join(harness.ROOT, "docs", page) for page in ("cookbook.md", "coming-from.md")]
BLOCK = re.compile(r"^```sh([^\n]*)\n(.*?)^```$(?:\n\n```\n(.*?)^```$)?", re.M | re.S)
SYSTEM = "/usr/local/sbin:/usr/sbin:/usr/bin:/sbin:/bin"
PYTHON = "/usr/bin/python3"  # Debian's: its markers, its libsqlite3
NEEDS = {"redis": "redis-server", "shop": "g++", "statements": "sqlite3", "sizes": "sqlite3", "sampled": "sqlite3", "allocators": "sqlite3", "callers_table": "sqlite3", "used": "sqlite3", "go": "fzf"}


class Block:
    def __init__(self, words, text, shown):
        self.marks = dict(w.split("=", 1) for w in words.split())
        self.name, self.on, self.text, self.shown = self.marks.get("ask"), self.marks.get("on"), text, shown or ""


class Answer:
    """The output of a block of the page, and the files that it left in its directory."""

    def __init__(self, status, out, directory):
        self.status, self.out = status, out
        self.files = {}
        for name in os.listdir(directory):
            if os.path.isfile(os.path.join(directory, name)):
                with open(os.path.join(directory, name), errors="replace") as f:
                    self.files[name] = f.read()

    def rows(self, pattern, where=None):
        return [m.groups() if m.lastindex != 1 else m[1] for m in re.finditer(pattern, self.out if where is None else where, re.M)]

    def hits(self):
        return int(re.search(r"^  hits +(\d+) ", self.out, re.M)[1])


def blocks(pages=PAGES):
    found = []
    for page in pages:
        with open(page) as f:
            found += [Block(*m.groups()) for m in BLOCK.finditer(f.read())]
    return found


# ---- programs ------------------------------------------------------------------------------------------------------------


class Redis:
    """A redis-server and a client that sends SETs, and twice as many GETs."""

    def __init__(self, directory):
        path = os.path.join(directory, "socket")
        self.process = subprocess.Popen(["redis-server", "--port", "0", "--unixsocket", path, "--save", ""], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, cwd=directory)
        self.pid, self.stopping = self.process.pid, False
        self.client = socket.socket(socket.AF_UNIX)
        self.client.settimeout(20)
        harness.wait_until(lambda: self.client.connect_ex(path) == 0, what="redis to listen")
        self.thread = threading.Thread(target=self.work, daemon=True)
        self.thread.start()

    def work(self):
        answered = self.client.makefile("rb")
        while not self.stopping:
            try:
                self.client.sendall(b"SET key value\r\nGET key\r\nGET key\r\n")
                for _ in range(5):
                    answered.readline()
            except OSError:
                return
            threading.Event().wait(0.002)

    def close(self):
        self.stopping = True
        self.process.kill()
        self.process.wait()
        self.thread.join(10)
        self.client.close()


class Pages(unittest.TestCase):
    """Blocks run at the same time, each with a program of its own; the tests check the results."""

    maxDiff = None
    pages = PAGES
    at_once = 4

    @classmethod
    def prepare(cls):
        """Makes what these pages need in addition."""

    @classmethod
    def setUpClass(cls):
        cls.dir = tempfile.mkdtemp(prefix="dp-cookbook-")
        cls.bin = os.path.join(cls.dir, "bin")
        os.mkdir(cls.bin)
        os.symlink(os.path.abspath(harness.DYNPROBE), os.path.join(cls.bin, "dynprobe"))
        os.symlink(PYTHON, os.path.join(cls.bin, "python3"))
        source = os.path.join(os.path.dirname(os.path.abspath(__file__)), "cookbook", "shop.cc")
        if harness.have("g++"):
            harness.compiled(os.path.join(cls.bin, "shop"), "g++", "-O1", "-g", "-pthread", source)
        cls.prepare()
        pool = concurrent.futures.ThreadPoolExecutor(max_workers=cls.at_once)
        cls.answers = {b.name: pool.submit(cls.run_block, b) for b in blocks(cls.pages) if b.name and not cls.lacks(b)}
        pool.shutdown(wait=True)

    @classmethod
    def tearDownClass(cls):
        shutil.rmtree(cls.dir, ignore_errors=True)

    @staticmethod
    def lacks(block):
        program = NEEDS.get(block.on) or NEEDS.get(block.name)
        return program if program and not harness.have(program) else None

    @classmethod
    def start(cls, name, directory):
        if name == "redis":
            return Redis(directory)
        return harness.Target(os.path.join(cls.bin, "shop")) if name == "shop" else harness.Target(harness.DEMO_SERVER, 8, 200)

    @classmethod
    def run_block(cls, block):
        directory = os.path.join(cls.dir, block.name)
        os.mkdir(directory)
        env = dict(harness.environment(), PATH=f"{cls.bin}:{SYSTEM}", HOME=directory, LTTNG_HOME=directory, SURNAME="")
        target = cls.start(block.on, directory) if block.on else None
        try:
            text = re.sub(r"\b4242\b", str(target.pid), block.text) if target else block.text
            with tempfile.TemporaryFile() as printed:
                shell = subprocess.Popen(["bash", "-ec", text], stdin=subprocess.DEVNULL, stdout=printed, stderr=subprocess.STDOUT, cwd=directory,
                                         env=env, start_new_session=True)
                status = cls.ended(shell, 300)
                printed.seek(0)
                answer = Answer(status, printed.read().decode(errors="replace"), directory)
            answer.clean = not target or not harness.changed_text(target.pid)
            return answer
        finally:
            if target:
                target.close()

    @staticmethod
    def ended(shell, seconds):
        try:
            return shell.wait(seconds)
        except subprocess.TimeoutExpired:
            os.killpg(shell.pid, signal.SIGKILL)
            return f"not ended within {seconds} s, {shell.wait()}"

    def ask(self, name, status=0):
        block = next(b for b in blocks(self.pages) if b.name == name)
        if self.lacks(block):
            self.skipTest(f"{self.lacks(block)} is not installed")
        answer = self.answers[name].result()
        self.assertEqual(answer.status, status, answer.out)
        self.assertTrue(answer.clean, "the program's text was changed back")
        self.as_shown(block, answer)
        return answer

    def as_shown(self, block, answer):
        """The words in the page's output also occur in the real output; numbers, addresses and threads differ from run to run."""
        words = lambda text: set(re.findall(r"(?<!\w)[A-Za-z_]{4,}", re.sub(r'"[^"\n]*"', "", text)))
        real = words(answer.out) | {w for text in answer.files.values() for w in words(text)}
        self.assertEqual(words(block.shown) - real, set(), f"{block.name}: shown on the page, but not printed:\n{answer.out}")


# ---- checks of the output --------------------------------------------------------------------------------------------------


class Cookbook(Pages):
    def test_each_command_of_the_page_is_asked_for_here(self):
        asked = {b.name for b in blocks()}
        self.assertNotIn(None, asked, "a block without ask=NAME")
        self.assertGreaterEqual(len(blocks(PAGES[:1])), 20)
        self.assertEqual([b.name for b in blocks(PAGES[:1]) if not b.shown], [], "blocks without output")
        self.assertEqual(asked, {n[5:] for n in dir(self) if n.startswith("test_") and n[5:] in asked})

    # -- the system

    def test_opens(self):
        asked = self.ask("opens", status=1)
        joined = re.sub(r" <unfinished \.\.\.>\n(?:.*\n)*?.*<\.\.\. openat resumed>", "", asked.out)  # on a slow machine; other lines may be between
        lines = asked.rows(r'openat\(AT_FDCWD, "([^"]*)", [A-Z_|]+\) = (-?\d+)', joined)
        self.assertEqual(lines[-1], ("/nonexistent", "-1"))
        self.assertGreater(int(dict(lines)["/etc/hostname"]), 2)

    def test_names(self):
        self.assertEqual(self.ask("names").rows(r'host="([^"]*)" service="([^"]*)"'), [("localhost", "80")])

    def test_writes(self):
        self.assertEqual(self.ask("writes").rows(r"^ +(\d+) +(\d+) write  (\d)$"), [("9", "90", "1"), ("1", "4", "2")])

    def test_sampled(self):
        numbers = list(map(int, self.ask("sampled").rows(r"malloc: hits=(\d+) size=")))
        self.assertEqual(numbers, list(range(100, 100 * len(numbers) + 1, 100)))
        self.assertGreater(len(numbers), 0)

    def test_files(self):
        self.assertEqual(self.ask("files").rows(r"^ +(\d+) open64  (\S+)$"), [("5", "/etc/hosts"), ("3", "/etc/passwd")])

    def test_environment(self):
        self.assertIn("QUOTING_STYLE", self.ask("environment").rows(r'str\(\$rdi\)="([^"]*)"'))

    def test_exits(self):
        a = self.ask("exits", status=3)
        self.assertEqual(a.rows(r"exit: status=(\d+)"), ["3"])
        self.assertRegex(a.out, r"#0 +exit\+0x0.*\n +#1 .* \[bash\]")

    def test_threads(self):
        a = self.ask("threads")
        self.assertEqual(a.hits(), 1)
        self.assertRegex(a.out, r"#0 +pthread_create.*\n +#1 +PyThread_start_new_thread")

    # -- memory

    def test_large(self):
        sizes = [int(s) for s in self.ask("large").rows(r"malloc: size=(\d+)")]
        self.assertTrue(sizes and all(s > 1 << 20 for s in sizes) and any(5000000 <= s < 5001000 for s in sizes), sizes)

    def test_sizes(self):
        a = self.ask("sizes")
        self.assertEqual(sum(map(int, a.rows(r"^\[.*?\) +(\d+) \|"))), a.hits())
        self.assertGreater(a.hits(), 50)

    def test_callers_table(self):
        rows = [(int(hits), int(total), int(most)) for hits, total, most in
                self.ask("callers_table").rows(r"^ +(\d+) +(\d+) +(\d+) +[\d.]+ +[\d.]+ +[\d.]+ malloc  \S+$")]
        self.assertEqual(len(rows), 2)
        for hits, total, most in rows:
            self.assertLessEqual(most, total)
            self.assertLessEqual(total, hits * most)
        self.assertGreaterEqual(rows[0][1], rows[1][1])

    def test_allocators(self):
        a = self.ask("allocators")
        self.assertEqual(len(a.rows(r"^ +\d+ +\d+ (malloc)$")), 2)
        self.assertIn("sqlite3Malloc", a.out)

    # -- time

    def test_latency(self):
        a = self.ask("latency")
        self.assertEqual(sum(map(int, a.rows(r"^\[.*?\) +(\d+) \|"))), a.hits())
        self.assertGreater(a.hits(), 20)

    def test_tree(self):
        a = self.ask("tree")
        rows = dict(a.rows(r"^ +\S+ +\S+ +(\d+)  +(handle_request|parse|compute)$"))
        self.assertEqual(len(a.rows(r"^ +\S+ +\S+ +(\d+)  +(?:handle_request|parse|compute)$")), 3, (rows, a.out))

    def test_slow(self):
        """The shop sleeps 2 ms for some orders: each line is one call, with what it began with."""
        a = self.ask("slow")
        lines = [line for line in a.out.splitlines() if "shop[" in line]
        calls = a.rows(r"shop\[\d+\] shop::Desk::serve\(this=(0x[0-9a-f]+), order=(0x[0-9a-f]+)\) <([\d.]+)(m?s)>$")
        self.assertEqual(len(calls), len(lines), a.out)
        self.assertTrue(calls, a.out)
        self.assertEqual([c for c in calls if float(c[2]) < 2 and c[3] == "ms"], [])

    def test_locks(self):
        a = self.ask("locks")
        self.assertRegex(a.out, r"(?s)pthread_mutex_lock\+.*shop::Desk::serve\+.* seller\+")
        self.assertGreater(a.hits(), 50)

    def test_waits(self):
        """On a busy machine clients may wait for answers for longer than workers do for requests."""
        a = self.ask("waits")
        sums = a.rows(r"^ +\d+ +[\d.]+[mun]?s syscall:(\w+):exit$")
        self.assertEqual(len(sums), 3, a.out)
        self.assertLessEqual({"clock_nanosleep", "epoll_wait"}, set(sums), a.out)
        self.assertRegex(a.out, r"clock_nanosleep:exit\n(?: +[a-z_].*\n)*? +client\+")
        self.assertRegex(a.out, r"epoll_wait:exit\n(?: +[a-z_].*\n)*? +worker\+")

    def test_flame(self):
        a = self.ask("flame")
        self.assertRegex(a.out, r"flame graph of \d+ stacks?: callers.svg")
        self.assertRegex(a.files["callers.svg"], r"<title>checksum \d+ \(")

    def test_flames(self):
        stacks = dict(a.rsplit(" ", 1) for a in self.ask("flames").files["callers.folded"].splitlines())
        ends = {k: int(v) for k, v in stacks.items()}
        self.assertTrue(any(re.search(r"worker;.*compute;checksum$", k) for k in ends) and any(re.search(r"client;.*checksum$", k) for k in ends), ends)

    # -- counts

    def test_used(self):
        a = self.ask("used")
        counts = {name: int(n) for n, name in a.rows(r"^ +(\d+) (sqlite3_\w+)$")}
        self.assertEqual(len(counts), 5)
        self.assertNotIn("retired", a.out)

    def test_commands(self):
        counts = {name: int(n) for n, name in self.ask("commands").rows(r"^ +(\d+) (\w+Command)$")}
        self.assertGreater(counts["setCommand"], 5)
        self.assertAlmostEqual(counts["getCommand"], 2 * counts["setCommand"], delta=4)

    def test_calls(self):
        a = self.ask("calls")
        self.assertEqual(len(re.findall(r"\] parse\(.+\) = \S+ <[\d.]+(?:ns|us|ms|s)>$", a.out, re.M)), 3, a.out)

    def test_results(self):
        """Every tenth order is refused; the others return -1, 0, 1 in turn."""
        a = self.ask("results")
        counts = {value: int(n) for n, value in a.rows(r"^ +(\d+) [\w:]+  (-?\d)$")}
        self.assertEqual(set(counts), {"-1", "0", "1"})
        self.assertLess(max(counts.values()), 1.3 * min(counts.values()) + 8)

    def test_rates(self):
        a = self.ask("rates")
        counts = [int(n) for n in a.rows(r"^ +(\d+) [\w:]+  [012]$", a.out[a.out.rindex("\nin "):])]
        self.assertEqual((len(counts), sum(counts)), (3, a.hits()))
        self.assertGreaterEqual(a.out.count("\nin "), 2)

    # -- values

    def test_request(self):
        found = self.ask("request").rows(r'request->id=(\d+) request->client=(\d+) request->operand=(\d+) request->verb="(\w+)"')
        self.assertEqual(len(found), 3)
        for number, client, operand, verb in found:
            self.assertEqual((int(number) * 7 + int(client), int(number) % 3, verb), (int(operand), 1, "negate"))

    def test_line(self):
        found = self.ask("line").rows(r"Desk::serve: order (\d+) for ([\d.]+) by customer [AB]$")
        self.assertEqual([f"{int(number) / 2:.2f}" for number, price in found], [price for number, price in found])
        self.assertEqual(len(found), 3)

    def test_locals(self):
        """The line after handle_request(), whose result is known."""
        found = self.ask("locals").rows(r'request.operand=(\d+) request.verb="(\w+)" answer=(-?\d+)')
        self.assertEqual(len(found), 2)
        for operand, verb, answer in found:
            n = int(operand)
            self.assertIn(int(answer), {"square": [n * n], "negate": [-n]}.get(verb, range(1 << 32)))

    def test_static(self):
        found = [int(n) for n in self.ask("static").rows(r"shop.cc::stock=(\d+)")]
        self.assertEqual(len(found), 4)
        for one, next_one in zip(found, found[1:]):
            self.assertIn(next_one, (one, one - 1, one - 2, one + 19, one + 18))

    def test_string(self):
        found = self.ask("string").rows(r'name="([^"]*)"')
        self.assertEqual((len(found), set(found) - {"customer A", "customer B"}), (2, set()))

    def test_kind(self):
        found = self.ask("kind").rows(r"order->kind=(\w+) this->served=(\d+)")
        self.assertEqual([(kind, int(n) % 3) for kind, n in found], [("GAME", 2)] * 3)

    # -- other languages

    def test_statements(self):
        found = self.ask("statements").rows(r'sql="(.*)"$')
        self.assertEqual([s for s in found if "main" not in s], ["create table t(a)", "insert into t values (7)", "select a from t"])

    def test_imports(self):
        self.assertIn("colorsys", self.ask("imports").rows(r'module="([^"]*)"'))

    def test_shell(self):
        self.assertLessEqual({"HOME", "SURNAME"}, set(self.ask("shell").rows(r'find_variable: str\(\$rdi\)="(\w+)"')))

    def test_throws(self):
        found = self.ask("throws").rows(r"^(.*;seller;shop::Desk::serve;__cxa_throw) (\d+)$")
        self.assertTrue(found and all("serve" in stack for stack, n in found), found)

    def test_go(self):
        """Where a goroutine is preempted or its stack grows, Go's prologue begins again, with another hit: on a busy machine for both reasons."""
        self.assertIn(self.ask("go").rows(r"^ +(\d+) main\.main$"), (["1"], ["2"], ["3"]))

    # -- later

    def test_later(self):
        a = self.ask("later")
        self.assertIn("1 probe is pending", a.out)
        self.assertEqual(len(a.rows(r'sqlite3_open_v2: str\(\$rdi\)="([^"]*shop\.db)"')), 1)

    def test_stay(self):
        a = self.ask("stay")
        verbs = set(a.rows(r'="(\w+)"$', a.files["seen.txt"]))
        self.assertTrue(verbs and verbs <= {"square", "negate", "checksum"}, a.files["seen.txt"])
        self.assertRegex(a.out, r"parse +enabled")

    def test_page(self):
        a = self.ask("page")
        self.assertIn("trace.html\n", a.out)
        self.assertIn('class="trace"', a.files["trace.html"])
        self.assertEqual(sum(e["ph"] == "X" for e in json.loads(a.files["trace.json"])["traceEvents"]), 200)

    def test_again(self):
        a = self.ask("again")
        self.assertEqual(sum(int(n) for n in a.rows(r"^ +(\d+) parse  [01]$")), 40)
        self.assertEqual(set(a.rows(r'parse: request->verb="([^"]*)"')), {"square"})
        self.assertEqual(sum(int(n) for n in a.rows(r"^\S+;parse (\d+)$")), 40)

    COMPARED = r"^ +(\d[\d.]*) +(\d[\d.]*) +\S+ .* handle_request:return$"

    def test_changed(self):
        for row in self.ask("changed").rows(self.COMPARED):
            self.assertGreater(min(map(float, row)), 0)

    def test_yesterday(self):
        row, = self.ask("yesterday").rows(self.COMPARED)
        self.assertGreater(min(map(float, row)), 0)

    def test_doctor(self):
        self.assertRegex(self.ask("doctor").out, r"process \d+ \(server\)\n  ok    attach +dynprobe may attach\n")

    def test_looking(self):
        a = self.ask("looking")
        self.assertRegex(a.out, r"0x[0-9a-f]+ +\d+ +server!handle_request\n")
        self.assertIn("copied text: 1 page", a.out)

    def test_json(self):
        a = self.ask("json")
        numbers = [e["fields"]["request_id"] for e in map(json.loads, a.files["events.json"].splitlines()) if e["type"] == "event"]
        self.assertEqual((len(numbers), a.rows(r"^(\d+)$")), (20, [str(max(numbers))]))

    # -- from other tracers

    def test_perf_line(self):
        self.assertLessEqual(set(self.ask("perf_line").rows(r"handle_request\+0x3: verb=(\d+)$")), {"0", "1", "2"})

    def test_perf_return(self):
        a = self.ask("perf_return")
        self.assertEqual(len(a.rows(r"compute:return: (retval)=-?\d+$")), 4)

    def test_perf_file(self):
        found = self.ask("perf_file").rows(r' verbs: request->verb="(\w+)"')
        self.assertEqual((len(found), set(found) - {"square", "negate", "checksum"}), (4, set()))

    def test_bt_hist(self):
        buckets = dict(self.ask("bt_hist").rows(r"^(\[.*?\)) +(\d+) \|"))
        self.assertGreaterEqual(int(buckets["[400, 600)"]), 7)

    def test_bt_strings(self):
        self.assertIn(("6", "/etc/passwd"), self.ask("bt_strings").rows(r"^ +(\d+) open64  (\S+)$"))

    def test_bt_commands(self):
        """bash executes one command after the other, each in this process."""
        self.assertEqual(self.ask("bt_commands").rows(r"^ +(\d+) execute_command$"), ["2"])

    def test_bt_class(self):
        self.assertEqual(len(self.ask("bt_class").rows(r"shop::Desk::serve: order->id=(\d+)$")), 4)

    def test_python_function(self):
        found = self.ask("python_function").rows(r'malloc: size=(\w+) python="([^"]*)"$')
        self.assertEqual([(int(size, 0), name) for size, name in found][-2:], [(5000001, "Shop.fill"), (2400000, "Shop.empty")])

    def test_bt_usdt(self):
        self.assertIn("1", self.ask("bt_usdt").rows(r"python:gc__start: arg0=(\d)$"))

    def test_stap_averages(self):
        """The operands take turns among the three verbs."""
        averages = [float(x) for x in self.ask("stap_averages").rows(r"^ +\d+ +\d+ +([\d.]+) compute  [012]$")]
        self.assertEqual(len(averages), 3)
        self.assertLess(max(averages) - min(averages), 100)

    def test_stap_cast(self):
        found = self.ask("stap_cast").rows(r" id=(\d+) same=(\d+)$")
        self.assertEqual((len(found), [x for x, y in found]), (4, [y for x, y in found]))

    def test_stap_functions(self):
        counts = {name: int(n) for n, name in self.ask("stap_functions").rows(r"^ +(\d+) (handle_request|parse|compute)$")}
        self.assertEqual(set(counts), {"handle_request", "parse", "compute"})
        self.assertLess(max(counts.values()) - min(counts.values()), 10)


if __name__ == "__main__":
    harness.main()
