# SPDX-License-Identifier: MIT
"""Debian's servers under a load that checks their answers, for the matrix of ways to probe."""

import contextlib
import functools
import os
import pwd
import shutil
import signal
import socket
import struct
import subprocess
import tempfile
import threading
import time
import urllib.request

import harness
from harness import free_port, listens, wait_until


PAUSE = 0 if harness.FULL else 0.002  # between two requests of a load


def work(n):
    """The reply of every web server here to /N."""
    return sum(i * i % 7 for i in range(n % 1000 + 1))


def write_answers(directory, n):
    """Writes files for a server to send, named by number."""
    os.mkdir(directory)
    for i in range(n):
        with open(os.path.join(directory, str(i)), "w") as f:
            f.write(f"{work(i)}\n")


class Server:
    """A server; `hot` is a function that its load calls all the time, with a pointer in $rsi."""

    needs = ()
    hot = "libc.so.6!write"
    argv = ()
    own_program = False  # True: no other process on the machine runs the same file

    def __init__(self, case):
        self.dir = tempfile.mkdtemp(prefix="srv-", dir=case.dir)
        os.chmod(self.dir, 0o755)
        self.port = free_port()
        self.wrong, self.answers, self.over = [], 0, threading.Event()
        self.log = open(self.path("log"), "w+b")
        case.addCleanup(self.close)
        self.process = self.start()
        wait_until(lambda: listens(self.port) or self.process.poll() is not None, 60, f"{type(self).__name__} to listen: {self.said()}")
        self.go_on()

    def go_on(self):
        """Starts the load, at first or after end_load()."""
        self.over.clear()
        self.thread = threading.Thread(target=self.load, daemon=True)
        self.thread.start()
        before = self.answers
        wait_until(lambda: self.answers > before + 3 or self.wrong, 60, "answers")

    @classmethod
    def missing(cls):
        return [name for name in cls.needs if not (shutil.which(name) or os.path.exists(name))]

    def path(self, name):
        return os.path.join(self.dir, name)

    def said(self):
        return os.pread(self.log.fileno(), 4000, 0).decode(errors="replace")

    def spawn(self, *argv, **kw):
        return subprocess.Popen(argv, stdin=subprocess.DEVNULL, stdout=self.log, stderr=self.log, cwd=self.dir, start_new_session=True, **kw)

    def start(self):
        return self.spawn(*self.command())

    def pid(self):
        """The process that does the work."""
        return self.process.pid

    def load(self):
        n = 0
        while not self.over.is_set() and not self.wrong:
            n += 1
            try:
                self.ask(n)
                self.answers += 1
                time.sleep(PAUSE)
            except Exception as e:  # any exception: the server gave a wrong answer
                if not self.over.is_set():
                    self.wrong.append(f"request {n}: {e!r}")

    def ask(self, n):
        with urllib.request.urlopen(f"http://127.0.0.1:{self.port}/{n}", timeout=300) as answer:
            got = answer.read()
        if got != b"%d\n" % work(n):
            raise ValueError(got[:200])

    def settle(self):
        """Waits, without load, until no process begins or ends."""

    def is_armed(self, pid):
        """Is the probe in place, once memory and text of the process have changed?"""
        return True

    def end_load(self):
        self.over.set()
        self.thread.join(60)

    def close(self):
        self.over.set()
        if self.process.poll() is None:
            os.killpg(self.process.pid, signal.SIGKILL)
            self.process.wait()
        self.log.close()

    def end(self):
        """Ends it in an orderly way; returns its exit status."""
        self.end_load()
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait(300)

    ended_well = (0, -signal.SIGTERM)


class Python(Server):
    needs = ("/usr/bin/python3",)
    hot = "libc.so.6!send"

    def command(self):
        script = (
            "import http.server, sys\n"
            "class H(http.server.BaseHTTPRequestHandler):\n"
            "    def do_GET(self):\n"
            "        n = int(self.path[1:]); text = b'%d\\n' % sum(i * i % 7 for i in range(n % 1000 + 1))\n"
            "        self.send_response(200); self.send_header('Content-Length', str(len(text))); self.end_headers(); self.wfile.write(text)\n"
            "    def log_message(self, *a): pass\n"
            "http.server.ThreadingHTTPServer(('127.0.0.1', int(sys.argv[1])), H).serve_forever()\n"
        )
        return "/usr/bin/python3", "-c", script, str(self.port)


class Node(Server):
    needs = ("node",)

    def command(self):
        script = (
            "require('http').createServer((q, a) => { let n = parseInt(q.url.slice(1)), s = 0; for (let i = 0; i <= n % 1000; i++) s += i * i % 7;"
            " a.end(s + '\\n'); }).listen(process.argv[1], '127.0.0.1')"
        )
        return "node", "-e", script, str(self.port)


class Java(Server):
    needs = ("java", "javac")
    hot = "libnio.so!*FileDispatcherImpl_read0"
    ended_well = (0, 143, -signal.SIGTERM)
    flags = ("-Xmx64m",)
    besides = ""  # what its main does first

    def command(self):
        with open(self.path("Srv.java"), "w") as f:
            f.write(
                """import com.sun.net.httpserver.*; import java.net.*;
public class Srv { static Object nothing; static long sum; public static void main(String[] a) throws Exception { """
                + self.besides
                + """
  HttpServer s = HttpServer.create(new InetSocketAddress("127.0.0.1", Integer.parseInt(a[0])), 0);
  s.setExecutor(java.util.concurrent.Executors.newFixedThreadPool(4));
  s.createContext("/", x -> { long n = Long.parseLong(x.getRequestURI().getPath().substring(1)), t = 0;
    for (long i = 0; i <= n % 1000; i++) t += i * i % 7;
    byte[] b = (t + "\\n").getBytes(); x.sendResponseHeaders(200, b.length); x.getResponseBody().write(b); x.close(); });
  s.start(); } }
"""
            )
        subprocess.run(["javac", "Srv.java"], cwd=self.dir, check=True, capture_output=True, timeout=300)
        return "java", *self.flags, "-cp", self.dir, "Srv", str(self.port)


class Nginx(Server):
    needs = ("nginx",)
    hot = "libc.so.6!writev"
    workers = 2

    def command(self):
        conf = f"""worker_processes {self.workers}; daemon off; master_process on; user root; error_log {self.dir}/error.log notice; pid {self.dir}/pid;
events {{ worker_connections 64; }}
http {{ access_log off; client_body_temp_path {self.dir}/b; proxy_temp_path {self.dir}/p; fastcgi_temp_path {self.dir}/f;
uwsgi_temp_path {self.dir}/u; scgi_temp_path {self.dir}/s; server {{ listen 127.0.0.1:{self.port}; root {self.dir}/www; }} }}
"""
        write_answers(self.path("www"), 50)
        with open(self.path("conf"), "w") as f:
            f.write(conf)
        return "nginx", "-p", self.dir, "-c", self.path("conf")

    def ask(self, n):
        super().ask(n % 50)

    def workers_now(self):
        return set(harness.children(self.process.pid))

    def pid(self):
        return min(self.workers_now())


class Redis(Server):
    needs = ("redis-server",)
    hot = "libc.so.6!write"

    def command(self):
        return "redis-server", "--port", str(self.port), "--save", "", "--bind", "127.0.0.1", "--dir", self.dir

    @functools.cached_property
    def client(self):
        with socket.create_connection(("127.0.0.1", self.port), 30) as s:
            return s.makefile("rwb", buffering=0)

    def close(self):
        super().close()
        if "client" in vars(self):
            self.client.close()

    def ask(self, n):
        value = b"%d" % (n * 7919)
        for words, expected in (((b"SET", b"k%d" % (n % 100), value), b"+OK"), ((b"GET", b"k%d" % (n % 100)), value)):
            self.client.write(b"*%d\r\n" % len(words) + b"".join(b"$%d\r\n%s\r\n" % (len(w), w) for w in words))
            got = self.client.readline().strip()
            if got.startswith(b"$"):
                got = self.client.readline().strip()
            if got != expected:
                raise ValueError(got)


class Sql(Server):
    """One client writes and reads a table of a hundred rows."""

    first = ""

    @functools.cached_property
    def client(self):
        return subprocess.Popen(self.client_words(), stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self.log, text=True, bufsize=1)

    def takes_sessions(self):
        done = subprocess.run(self.client_words(), input="select 1;", capture_output=True, text=True, timeout=300)
        return done.returncode == 0 and done.stdout.strip() == "1"

    def ask(self, n):
        if n == 1:
            wait_until(self.takes_sessions, what="sessions after listening")
            rows = ", ".join(f"({i}, 0)" for i in range(100))
            self.client.stdin.write(f"{self.first} create table t(k int primary key, v bigint); insert into t values {rows};\n")
        self.client.stdin.write(f"update t set v = {n} where k = {n % 100}; select v + {n} from t where k = {n % 100};\n")
        got = self.client.stdout.readline().strip()
        if got != str(2 * n):
            raise ValueError(got)

    def close(self):
        if "client" in vars(self):
            self.client.kill()
            self.client.wait()
            self.client.stdin.close()
            self.client.stdout.close()
        super().close()

    def as_user(self, name):
        """Keyword arguments to start a program that root must not run."""
        who = pwd.getpwnam(name)
        os.chown(self.dir, who.pw_uid, who.pw_gid)
        return {"user": who.pw_uid, "group": who.pw_gid, "env": {**os.environ, "HOME": self.dir, "LC_ALL": "C"}}


class Postgres(Sql):
    needs = ("/usr/lib/postgresql/15/bin/postgres", "psql")
    hot = "libc.so.6!send"

    def start(self):
        bin_dir = os.path.dirname(self.needs[0])
        as_him = self.as_user("postgres")
        data = self.path("data")
        subprocess.run([f"{bin_dir}/initdb", "-D", data, "-A", "trust", "--no-sync"], capture_output=True, check=True, timeout=300, **as_him)
        return self.spawn(f"{bin_dir}/postgres", "-D", data, "-p", str(self.port), "-k", self.dir, "-c", "fsync=off", "-c", "listen_addresses=127.0.0.1", **as_him)

    def client_words(self):
        return "psql", "-h", "127.0.0.1", "-p", str(self.port), "-U", "postgres", "-d", "postgres", "-qAt"

    def pid(self):
        """The backend process that serves the client."""
        found = []
        for child in harness.children(self.process.pid):
            with contextlib.suppress(OSError):  # some end meanwhile
                with open(f"/proc/{child}/cmdline") as f:
                    if "127.0.0.1" in f.read():
                        found.append(child)
        if not found:
            raise AssertionError("there is no backend")
        return max(found)  # those that served takes_sessions() may still exist

    def end(self):
        self.end_load()
        self.process.send_signal(signal.SIGINT)  # fast shutdown
        return self.process.wait(300)


class Chromium(Server):
    needs = ("chromium-headless-shell",)
    hot = "libc.so.6!sendmsg"
    ended_well = (0, -signal.SIGTERM, 143)

    def start(self):
        os.chmod(self.dir, 0o777)
        # One worker at a time: on a slow machine there would be more and more.
        page = ("<script>const next = () => { const w = new Worker(URL.createObjectURL(new Blob(['postMessage(1)'])));"
                " w.onmessage = () => { w.terminate(); setTimeout(next, 50); } }; next();</script>")
        nobody = pwd.getpwnam("nobody")
        argv = ["chromium-headless-shell", "--disable-gpu", f"--remote-debugging-port={self.port}", f"--user-data-dir={self.dir}/profile", "data:text/html," + page]
        return self.spawn(*argv, user=nobody.pw_uid, group=nobody.pw_gid, extra_groups=[], env={**os.environ, "HOME": self.dir})

    def ask(self, n):
        with urllib.request.urlopen(f"http://127.0.0.1:{self.port}/json/version", timeout=300) as answer:
            if b"HeadlessChrome" not in answer.read():
                raise ValueError("not its version")
        time.sleep(0.01)  # the page itself makes most of the load

    def pid(self):
        """The browser's main process: not the shell that starts it, and none of its helpers."""
        found = {}
        for pid in filter(str.isdigit, os.listdir("/proc")):
            with contextlib.suppress(OSError):  # some end meanwhile
                with open(f"/proc/{pid}/cmdline") as f:
                    if os.getpgid(int(pid)) == self.process.pid and "--type=" not in f.read():
                        found[int(pid)] = len(os.listdir(f"/proc/{pid}/task"))
        return max(found, key=found.get)


class Apache(Server):
    """Apache; `pid` is the process with the worker threads."""

    needs = ("/usr/sbin/apache2",)
    hot = "libc.so.6!writev"

    def command(self):
        modules = "".join(f"LoadModule {m}_module /usr/lib/apache2/modules/mod_{m}.so\n" for m in ("mpm_event", "authz_core"))
        conf = f"""ServerName localhost
ServerRoot {self.dir}
PidFile {self.dir}/pid
ErrorLog {self.dir}/error.log
{modules}Listen 127.0.0.1:{self.port}
User nobody
Group nogroup
DocumentRoot {self.dir}/www
EnableSendfile Off
EnableMMAP Off
StartServers 1
ServerLimit 1
ThreadsPerChild 25
MaxRequestWorkers 25
"""
        write_answers(self.path("www"), 50)
        with open(self.path("conf"), "w") as f:
            f.write(conf)
        return "/usr/sbin/apache2", "-D", "FOREGROUND", "-f", self.path("conf")

    def ask(self, n):
        super().ask(n % 50)

    def pid(self):
        return max(harness.children(self.process.pid), key=lambda child: len(os.listdir(f"/proc/{child}/task")))


class Php(Server):
    """php-fpm, queried by FastCGI."""

    needs = ("/usr/sbin/php-fpm8.2",)
    hot = "libc.so.6!write"

    def command(self):
        with open(self.path("work.php"), "w") as f:
            f.write("<?php $n = (int)$_SERVER['QUERY_STRING'] % 1000; $sum = 0; for ($i = 0; $i <= $n; $i++) $sum += $i * $i % 7; echo $sum, \"\\n\";")
        with open(self.path("conf"), "w") as f:
            f.write(f"""[global]
error_log = {self.dir}/error.log
[www]
user = nobody
group = nogroup
listen = 127.0.0.1:{self.port}
pm = static
pm.max_children = 1
""")
        return "/usr/sbin/php-fpm8.2", "-F", "-n", "-y", self.path("conf")

    def ask(self, n):
        words = {"SCRIPT_FILENAME": self.path("work.php"), "QUERY_STRING": str(n), "REQUEST_METHOD": "GET"}
        words = b"".join(bytes((len(k), len(v))) + k.encode() + v.encode() for k, v in words.items())
        with socket.create_connection(("127.0.0.1", self.port), 30) as s:
            for kind, content in ((1, bytes((0, 1, 0, 0, 0, 0, 0, 0))), (4, words), (4, b""), (5, b"")):  # begin (a responder), params, stdin
                s.sendall(struct.pack(">BBHHBB", 1, kind, 1, len(content), 0, 0) + content)
            with s.makefile("rb") as answer:
                said = b"".join(answer.read(size + padding)[:size] for kind, size, padding in fcgi_records(answer) if kind == 6)
        if said.rpartition(b"\r\n\r\n")[2] != b"%d\n" % work(n):
            raise ValueError(said[:200])

    def pid(self):
        return min(harness.children(self.process.pid))


def fcgi_records(answer):
    """For each record up to the last: its kind, and the lengths of its content and padding. The caller reads the content."""
    while True:
        head = answer.read(8)
        if len(head) < 8:
            return
        kind, size, padding = struct.unpack(">xBxxHBx", head)
        if kind != 6:
            answer.read(size + padding)
        if kind == 3:
            return
        yield kind, size, padding


class Mariadb(Sql):
    needs = ("/usr/sbin/mariadbd", "mariadb-install-db", "mariadb")
    hot = "libc.so.6!send"
    first = "create database d; use d;"

    def start(self):
        as_him = self.as_user("nobody")
        data = f"--datadir={self.path('data')}"
        subprocess.run(["mariadb-install-db", "--no-defaults", data, "--auth-root-authentication-method=normal", "--skip-test-db"], capture_output=True,
                       check=True, timeout=300, **as_him)
        return self.spawn("/usr/sbin/mariadbd", "--no-defaults", data, f"--port={self.port}", f"--socket={self.path('socket')}",
                          f"--pid-file={self.path('pid')}", "--bind-address=127.0.0.1", "--innodb-flush-log-at-trx-commit=0", **as_him)

    def client_words(self):
        return "mariadb", "--no-defaults", "-h127.0.0.1", f"-P{self.port}", "-uroot", "-BNn"


ALL = (Python, Nginx, Redis, Node, Java, Postgres, Chromium, Apache, Php, Mariadb)
SOME = (Nginx, Redis, Postgres, Chromium)  # for tests with less time
