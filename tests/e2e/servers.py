# SPDX-License-Identifier: MIT
"""Servers of Debian under a load whose answers are checked: what a matrix of ways to probe them is tried on."""

import contextlib
import functools
import os
import pwd
import shutil
import signal
import socket
import subprocess
import tempfile
import threading
import time
import urllib.request

import harness
from harness import wait_until


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def listens(port):
    with socket.socket() as s:
        s.settimeout(1)
        return s.connect_ex(("127.0.0.1", port)) == 0


def work(n):
    """What every web server here answers to /N."""
    return sum(i * i % 7 for i in range(n % 1000 + 1))


class Server:
    """One of them: `hot` is a function that its load calls all the time, with a pointer in $rsi."""

    needs = ()
    hot = "libc.so.6!write"
    argv = ()

    def __init__(self, case):
        self.dir = tempfile.mkdtemp(prefix="srv-", dir=case.dir)
        os.chmod(self.dir, 0o755)
        self.port = free_port()
        self.wrong, self.answers, self.over = [], 0, threading.Event()
        self.log = open(self.path("log"), "w+b")
        case.addCleanup(self.close)
        self.process = self.start()
        wait_until(lambda: listens(self.port) or self.process.poll() is not None, 60, f"{type(self).__name__} to listen: {self.said()}")
        self.thread = threading.Thread(target=self.load, daemon=True)
        self.thread.start()
        wait_until(lambda: self.answers > 3 or self.wrong, 60, "answers")

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
        """Of the process that does the work."""
        return self.process.pid

    def load(self):
        n = 0
        while not self.over.is_set() and not self.wrong:
            n += 1
            try:
                self.ask(n)
                self.answers += 1
            except Exception as e:  # whatever it is, the server did not answer as it should
                if not self.over.is_set():
                    self.wrong.append(f"request {n}: {e!r}")

    def ask(self, n):
        with urllib.request.urlopen(f"http://127.0.0.1:{self.port}/{n}", timeout=30) as answer:
            got = answer.read()
        if got != b"%d\n" % work(n):
            raise ValueError(got[:200])

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
        """Ends it in good order; its exit status."""
        self.end_load()
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait(60)

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

    def command(self):
        with open(self.path("Srv.java"), "w") as f:
            f.write(
                """import com.sun.net.httpserver.*; import java.net.*;
public class Srv { public static void main(String[] a) throws Exception {
  HttpServer s = HttpServer.create(new InetSocketAddress("127.0.0.1", Integer.parseInt(a[0])), 0);
  s.setExecutor(java.util.concurrent.Executors.newFixedThreadPool(4));
  s.createContext("/", x -> { long n = Long.parseLong(x.getRequestURI().getPath().substring(1)), t = 0;
    for (long i = 0; i <= n % 1000; i++) t += i * i % 7;
    byte[] b = (t + "\\n").getBytes(); x.sendResponseHeaders(200, b.length); x.getResponseBody().write(b); x.close(); });
  s.start(); } }
"""
            )
        subprocess.run(["javac", "Srv.java"], cwd=self.dir, check=True, capture_output=True, timeout=120)
        return "java", "-Xmx64m", "-cp", self.dir, "Srv", str(self.port)


class Nginx(Server):
    needs = ("nginx",)
    hot = "libc.so.6!writev"

    def command(self):
        conf = f"""worker_processes 2; daemon off; master_process on; user root; error_log {self.dir}/error.log notice; pid {self.dir}/pid;
events {{ worker_connections 64; }}
http {{ access_log off; client_body_temp_path {self.dir}/b; proxy_temp_path {self.dir}/p; fastcgi_temp_path {self.dir}/f;
uwsgi_temp_path {self.dir}/u; scgi_temp_path {self.dir}/s; server {{ listen 127.0.0.1:{self.port}; root {self.dir}/www; }} }}
"""
        os.mkdir(self.path("www"))
        for n in range(50):
            with open(self.path(f"www/{n}"), "w") as f:
                f.write(f"{work(n)}\n")
        with open(self.path("conf"), "w") as f:
            f.write(conf)
        return "nginx", "-p", self.dir, "-c", self.path("conf")

    def ask(self, n):
        super().ask(n % 50)

    def pid(self):
        return min(harness.children(self.process.pid))


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


class Postgres(Server):
    needs = ("/usr/lib/postgresql/15/bin/postgres", "psql")
    hot = "libc.so.6!send"

    def start(self):
        bin_dir = os.path.dirname(self.needs[0])
        who = pwd.getpwnam("postgres")
        as_him = {"user": who.pw_uid, "group": who.pw_gid, "env": {**os.environ, "HOME": self.dir, "LC_ALL": "C"}}
        os.chown(self.dir, who.pw_uid, who.pw_gid)
        data = self.path("data")
        subprocess.run([f"{bin_dir}/initdb", "-D", data, "-A", "trust", "--no-sync"], capture_output=True, check=True, timeout=120, **as_him)
        return self.spawn(f"{bin_dir}/postgres", "-D", data, "-p", str(self.port), "-k", self.dir, "-c", "fsync=off", "-c", "listen_addresses=127.0.0.1", **as_him)

    @functools.cached_property
    def client(self):
        argv = ["psql", "-h", "127.0.0.1", "-p", str(self.port), "-U", "postgres", "-d", "postgres", "-qAt"]
        return subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self.log, text=True, bufsize=1)

    def ask(self, n):
        if n == 1:
            time.sleep(1)  # it listens before it takes sessions
            self.client.stdin.write("create table t(k int primary key, v bigint); insert into t select i, 0 from generate_series(0, 99) i;\n")
        self.client.stdin.write(f"update t set v = {n} where k = {n % 100}; select v + {n} from t where k = {n % 100};\n")
        got = self.client.stdout.readline().strip()
        if got != str(2 * n):
            raise ValueError(got)

    def pid(self):
        """Of the backend that serves the client."""
        for child in harness.children(self.process.pid):
            with open(f"/proc/{child}/cmdline") as f:
                if "127.0.0.1" in f.read():
                    return child
        raise AssertionError("there is no backend")

    def close(self):
        if "client" in vars(self):
            self.client.kill()
            self.client.wait()
            self.client.stdin.close()
            self.client.stdout.close()
        super().close()

    def end(self):
        self.end_load()
        self.process.send_signal(signal.SIGINT)  # fast shutdown
        return self.process.wait(60)


class Chromium(Server):
    needs = ("chromium-headless-shell",)
    hot = "libc.so.6!sendmsg"
    ended_well = (0, -signal.SIGTERM, 143)

    def start(self):
        os.chmod(self.dir, 0o777)
        page = "<script>setInterval(() => { let w = new Worker(URL.createObjectURL(new Blob(['postMessage(1)']))); w.onmessage = () => w.terminate() }, 50)</script>"
        nobody = pwd.getpwnam("nobody")
        argv = ["chromium-headless-shell", "--disable-gpu", f"--remote-debugging-port={self.port}", f"--user-data-dir={self.dir}/profile", "data:text/html," + page]
        return self.spawn(*argv, user=nobody.pw_uid, group=nobody.pw_gid, extra_groups=[], env={**os.environ, "HOME": self.dir})

    def ask(self, n):
        with urllib.request.urlopen(f"http://127.0.0.1:{self.port}/json/version", timeout=30) as answer:
            if b"HeadlessChrome" not in answer.read():
                raise ValueError("not its version")
        time.sleep(0.01)

    def pid(self):
        """The browser: not the shell that starts it, and none of its helpers."""
        found = {}
        for pid in filter(str.isdigit, os.listdir("/proc")):
            with contextlib.suppress(OSError):  # some end meanwhile
                with open(f"/proc/{pid}/cmdline") as f:
                    if os.getpgid(int(pid)) == self.process.pid and "--type=" not in f.read():
                        found[int(pid)] = len(os.listdir(f"/proc/{pid}/task"))
        return max(found, key=found.get)


ALL = (Python, Nginx, Redis, Node, Java, Postgres, Chromium)
SOME = (Python, Nginx, Redis, Postgres, Chromium)  # where there is less time
