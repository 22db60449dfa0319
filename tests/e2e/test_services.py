# SPDX-License-Identifier: MIT
"""Whole services under --follow: right answers, exact counts, nothing left behind, and the tool killed at any moment."""

import contextlib
import os
import random
import shutil
import signal
import subprocess
import time

import servers
from harness import FULL, Case, children, holders, long_form, main, tool, wait_until
from process import changed_text, our_files

KILLS = 50 if FULL else 2
RELOADS = 5 if FULL else 2
IDLE = ("7", "219", "232", "281", "288")  # poll, restart_syscall, epoll_wait, epoll_pwait, accept4


class Nginx(servers.Nginx):
    """A master and four workers."""

    probe = "ngx_http_create_request"
    per_answer = 1
    workers = 4


def blocked(pid):
    """The number of the system call that the process's first thread is blocked in; "running" or "" otherwise."""
    try:
        with open(f"/proc/{pid}/syscall") as f:
            return f.read().split(" ", 1)[0].strip()
    except OSError:
        return ""


class Prefork(servers.Server):
    """A parent that listens, and four children that accept. A child is replaced after 50 requests."""

    needs = ("/usr/bin/python3",)
    probe = "libc.so.6!send"
    per_answer = 2  # head and body
    ended_well = (-signal.SIGTERM,)

    def command(self):
        script = (
            "import http.server, os, sys\n"
            "class H(http.server.BaseHTTPRequestHandler):\n"
            "    def do_GET(self):\n"
            "        n = int(self.path[1:]); text = b'%d\\n' % sum(i * i % 7 for i in range(n % 1000 + 1))\n"
            "        self.send_response(200); self.send_header('Content-Length', str(len(text))); self.end_headers(); self.wfile.write(text)\n"
            "    def log_message(self, *a): pass\n"
            "s = http.server.HTTPServer(('127.0.0.1', int(sys.argv[1])), H)\n"
            "def work():\n"
            "    if os.fork(): return\n"
            "    for i in range(50): s.handle_request()\n"
            "    os._exit(0)\n"
            "for i in range(4): work()\n"
            "while True:\n"
            "    if os.wait()[1]: os._exit(3)\n"
            "    work()\n"
        )
        return "/usr/bin/python3", "-c", script, str(self.port)

    def settle(self):
        """Waits until no worker is being replaced: the parent is in wait4, and four children wait for requests."""

        def waits():
            workers = children(self.process.pid)
            return len(workers) == 4 and blocked(self.process.pid) == "61" and all(blocked(pid) in IDLE for pid in workers)

        wait_until(waits, what="four idle workers")


class Redis(servers.Redis):
    """Children that save the whole database, one after the other."""

    probe = "rdbSaveKeyValuePair"
    per_answer = 100
    keys = 100

    def ask(self, n):
        if n == 1:
            for i in range(self.keys):
                super().ask(i)
        super().ask(n)
        self.save()

    def call(self, *words):
        self.client.write(" ".join(words).encode() + b"\r\n")
        return self.client.readline().strip()

    def save(self):
        """Waits until a child has saved what is stored now."""
        said = self.call("BGSAVE")
        if not said.startswith(b"+"):
            raise ValueError(said)
        wait_until(lambda: self.info("rdb_bgsave_in_progress") == b"0", what="a save")
        done = subprocess.run(["redis-check-rdb", self.path("dump.rdb")], capture_output=True, text=True, timeout=300)
        if done.returncode or f"{self.keys} keys read" not in done.stdout:
            raise ValueError(done.stdout)

    def info(self, name):
        size = int(self.call("INFO", "persistence")[1:])
        text = self.client.read(size + 2)
        while len(text) < size + 2:
            text += self.client.read(size + 2 - len(text))
        return dict(line.split(b":", 1) for line in text.splitlines() if b":" in line).get(name.encode())


class Postgres(servers.Postgres):
    """A backend for each session."""

    probe = "pg_parse_query"
    per_answer = 1

    def ask(self, n):
        done = subprocess.run([*self.client_words(), "-c", f"select {n} * 2"], capture_output=True, text=True, timeout=300)
        if done.stdout.strip() != str(2 * n):
            raise ValueError(done.stdout + done.stderr)


class NodeCluster(servers.Server):
    """A primary that accepts, and three workers, each of which starts as a new node, and is replaced after 40 requests by another one."""

    needs = ("node",)
    own_program = True
    probe = "node!llhttp__on_message_complete"
    per_answer = 1
    ended_well = (0, -signal.SIGTERM)

    def command(self):
        script = """const cluster = require('cluster'), http = require('http');
if (cluster.isPrimary) {
  for (let i = 0; i < 3; i++) cluster.fork();
  cluster.on('message', (worker, message) => cluster.fork().once('listening', () => worker.disconnect()));
  cluster.on('exit', (worker, code, signal) => { if (code || signal) process.exit(3); });
} else {
  let left = 40;
  function answer(q, a) {
    let n = parseInt(q.url.slice(1)), s = 0;
    for (let i = 0; i <= n % 1000; i++) s += i * i % 7;
    if (!--left) process.send('full');
    a.end(s + '\\n');
  }
  http.createServer(answer).listen(process.argv[2], '127.0.0.1');
}
"""
        with open(self.path("cluster.js"), "w") as f:
            f.write(script)
        self.seen = set()
        shutil.copy(shutil.which("node"), self.path("node"))  # --program watches no other node
        return self.path("node"), "--perf-basic-prof", self.path("cluster.js"), str(self.port)

    def ask(self, n):
        super().ask(n)
        self.seen.update(children(self.process.pid), [self.process.pid])

    def close(self):
        super().close()
        for pid in self.seen:
            with contextlib.suppress(FileNotFoundError):
                os.remove(f"/tmp/perf-{pid}.map")

    def settle(self):
        """Waits until no worker is being replaced: all four processes wait for events, and the workers are old enough to listen."""

        def wait():
            workers = children(self.process.pid)
            return len(workers) == 3 and all(blocked(pid) in IDLE for pid in (self.process.pid, *workers))

        settled = 0
        while settled < 5:  # a young worker sleeps now and then
            wait_until(wait, what="three idle workers")
            time.sleep(0.1)  # lets a worker that is only starting go on
            settled = settled + 1 if wait() else 0


class JavaThatFaults(servers.Java):
    """A server with threads that the collector stops, by faults (safepoints), and that read null (an exception, by a fault, too)."""

    probe = "libnio.so!Java_sun_nio_ch_FileDispatcherImpl_write0"
    per_answer = 2  # head and body
    own_program = True
    flags = ("-Xmx64m", "-XX:TieredStopAtLevel=1")  # the second compiler would soon compare with null
    besides = """
  for (int t = 0; t < 2; t++) { Thread w = new Thread(() -> { for (long i = 0;; i++) {
    for (int k = 0; k < 50; k++) try { nothing.hashCode(); System.exit(3); } catch (NullPointerException e) { }
    int[][] room = new int[50][]; int got = 0; for (int k = 0; k < 5000; k++) { room[k % 50] = new int[k % 90 + 1]; got += room[k % 50].length; }
    if (got != 226500) System.exit(4); sum += got; try { if (i % 5 == 0) { System.gc(); Thread.sleep(5); } } catch (InterruptedException e) { System.exit(5); } } });
    w.setDaemon(true); w.start(); }
"""

    def command(self):
        """Runs a copy of the launcher: --program watches no other java."""
        program, *args = super().command()
        home = os.path.dirname(os.path.dirname(os.path.realpath(shutil.which(program))))
        for name in set(os.listdir(home)) - {"bin"}:
            os.symlink(os.path.join(home, name), self.path(name))
        os.mkdir(self.path("bin"))
        shutil.copy(os.path.join(home, "bin", program), self.path("bin"))
        return self.path("bin/java"), *args

    def is_armed(self, pid):
        """Threads are borrowed for a long time before the probe goes in, which changes other text."""
        return any("libnio" in path for path, _ in changed_text(pid))


class Services(Case):
    def setUp(self):
        super().setUp()
        os.chmod(self.dir, 0o755)  # for servers that run as another user

    def serve(self, kind):
        if kind.missing():
            self.skipTest(f"{', '.join(kind.missing())} not installed")
        return kind(self)

    def follow(self, server, *args):
        server.pids = [server.process.pid, *children(server.process.pid)]
        return self.start("--pid", ",".join(map(str, server.pids)), "--follow", "--function", server.probe, *args)

    def watch(self, server):
        """Every process of the program, now and to come."""
        server.pids = [server.process.pid, *children(server.process.pid)]
        return self.start("--program", os.readlink(f"/proc/{server.process.pid}/exe"), "--function", server.probe)

    def exact(self, server, answers, how=follow):
        """Each answer makes the same number of hits, whichever process gives it."""
        server.end_load()
        server.settle()
        left = {pid: our_files(pid) for pid in [server.process.pid, *children(server.process.pid)]}
        p = how(self, server)
        for pid in server.pids:
            if os.path.exists(f"/proc/{pid}"):
                wait_until(lambda pid=pid: p.poll() is not None or our_files(pid) - left.get(pid, set()), what="a mapping of this run")
                self.await_armed(p, pid)
                wait_until(lambda pid=pid: p.poll() is not None or server.is_armed(pid), what="the probe itself")
        for n in range(2, answers + 2):
            server.ask(n)
        r = self.finish(p)
        self.assert_ok(r)
        self.assertEqual((len(r.events), r.summary["lost"]["total"]), (answers * server.per_answer, 0), str(r.summary))
        self.assertEqual(holders(server.process.pid), [])
        server.go_on()

    def killed(self, server, *besides):
        """At any moment: answers stay right, and the next run finds each process as it should be."""
        seed = random.randrange(1 << 30)
        rng = random.Random(seed)
        for i in range(KILLS):
            p = self.follow(server, *besides)
            time.sleep(rng.random() * 0.5)  # the moment of the kill
            self.assertIsNone(p.poll(), "dynprobe ended by itself")
            p.kill()
            p.wait()
            before = server.answers
            wait_until(lambda: server.answers > before + 2 or server.wrong, 60, f"answers after kill {i} of seed {seed}")
            self.assertEqual(server.wrong, [], f"kill {i} of seed {seed}")

    def all_ways(self, kind, answers, *besides):
        """`besides`: more probes while the tool is killed."""
        server = self.serve(kind)
        self.exact(server, answers)
        self.killed(server, *besides)
        self.exact(server, answers, Services.watch if server.own_program else Services.follow)
        self.assertEqual(server.wrong, [])
        self.assertIn(server.end(), server.ended_well, server.said())

    def test_nginx_with_four_workers(self):
        self.all_ways(Nginx, 200 if FULL else 40)

    def test_prefork_server_whose_workers_are_replaced(self):
        self.all_ways(Prefork, 230)  # four workers answer 200 times before the last of them is replaced

    def test_redis_that_saves_in_children(self):
        self.all_ways(Redis, 5 if FULL else 3)

    @long_form  # these packages are not among those that every check installs
    def test_node_cluster_whose_workers_are_replaced(self):
        """A worker is a node of its own: --follow takes it through fork and exec."""
        self.all_ways(NodeCluster, 100, "-t", "backtrace:30")

    @long_form
    def test_java_that_stops_its_threads_by_faults(self):
        """Its handler of SIGSEGV and ours live together: our probes read memory, some of which is not there."""
        reads = ("-t", "there=*(long *)$rdi", "-t", "nowhere=*(long *)8", "-t", "wild=str($rax)", "-t", "backtrace:20")
        self.all_ways(JavaThatFaults, 50, "--function", "libjvm.so!JVM_FillInStackTrace", *reads)

    @long_form
    def test_postgresql_with_a_backend_for_each_session(self):
        self.all_ways(Postgres, 20)

    def test_nginx_reloads(self):
        server = self.serve(Nginx)
        p = self.follow(server)
        self.await_armed(p, server.process.pid)
        for _ in range(RELOADS):
            workers = server.workers_now()
            os.kill(server.process.pid, signal.SIGHUP)
            wait_until(lambda: server.workers_now() and not server.workers_now() & workers, what="new workers")
            before = server.answers
            wait_until(lambda: server.answers > before + 3 or server.wrong, what="answers of new workers")
        r = self.finish(p)
        self.assert_ok(r)
        self.assertEqual((server.wrong, r.summary["lost"]["total"]), ([], 0), str(r.summary))
        self.assertGreaterEqual(len({e["pid"] for e in r.events}), RELOADS)

    def test_shell_pipelines(self):
        script = f'for i in $(seq {100 if FULL else 25}); do echo "line $i" | tr a-z A-Z | (read a b; echo "$b $a"); done | sort -n | md5sum'
        want = subprocess.run(["bash", "-c", script], capture_output=True, text=True, timeout=300)
        got = tool("--no-record", "-q", "--follow", "--function", "execute_command_internal", "--", "bash", "-c", script, status=0)
        self.assertEqual(got.stdout, want.stdout)
        self.assertRegex(got.stderr, r"lost 0")


if __name__ == "__main__":
    main()
