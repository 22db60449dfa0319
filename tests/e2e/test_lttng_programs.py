# SPDX-License-Identifier: MIT
"""Tests real programs with LTTng events in hot functions, under load: answers and output are the same as without probes."""

import contextlib
import json
import os
import shutil
import signal
import subprocess
import threading
import time
import urllib.error
import urllib.request

import harness
import lttng_env
import lttng_probe
from binutils import exported
from harness import free_port, long_form, needs, wait_until
from redis_server import RedisServer

TIMES = 30 if harness.FULL else 2  # how often probes come and go during a load
PYTHON = "/usr/bin/python3"
CHANNEL = ("--subbuf-size=64K", "--num-subbuf=4", "--tracefile-size=512K", "--tracefile-count=2")  # the newest events of a load


def functions(names, *contexts):
    return [x for name in names for x in ("--function", name, *(y for c in contexts for y in ("-t", c)))]


class Programs(lttng_probe.WithDaemon):
    def counted(self, pid):
        """{probe: {cause: hits}} of the probes left in a process."""
        told = self.tool("status", "--pid", pid, "-f", "json").stdout
        rows = [probe for line in told.splitlines() for probe in json.loads(line)["probes"]]
        return {row["name"]: row["lost"] for row in rows}

    def put(self, pids, *probes, session="s", status=(0,)):
        pids = [x for pid in pids for x in ("--pid", pid)]
        p = self.run_tool("attach", *pids, *probes, "--session", session)
        self.assertIn(p.returncode, status, p.stderr)
        return p

    def take(self, *pids):
        for pid in pids:
            self.tool("detach", "--pid", pid)
            self.assertEqual(harness.changed_text(pid), [])

    def come_and_go(self, pids, *probes, going=lambda: True):
        for _ in range(TIMES):
            self.put(pids, *probes)
            time.sleep(0.1)  # hits under load
            self.take(*pids)
            self.assertTrue(going(), "the load ended early")

    def names_seen(self, session="s"):
        return {e.name.removeprefix("dynprobe:") for e in self.events(session, None)}


# ---- nginx ---------------------------------------------------------------------------------------------------------------

NGINX_CONF = """
worker_processes {workers};
daemon off;
master_process on;
user root;
error_log {dir}/error.log notice;
pid {dir}/nginx.pid;
events {{ worker_connections 256; }}
http {{
    access_log {dir}/access.log;
    client_body_temp_path {dir}/body; proxy_temp_path {dir}/proxy;
    fastcgi_temp_path {dir}/fcgi; uwsgi_temp_path {dir}/uwsgi; scgi_temp_path {dir}/scgi;
    server {{
        listen 127.0.0.1:{port} backlog=512;
        root {dir}/www;
        location /code {{ return 200 "generation $arg_n of nothing\\n"; }}
        location /gz {{ gzip on; gzip_min_length 1; gzip_types *; alias {dir}/www; }}
    }}
}}
"""

NGINX_OWN = """ngx_palloc ngx_pnalloc ngx_pcalloc ngx_create_pool ngx_destroy_pool ngx_http_process_request ngx_http_output_filter ngx_http_write_filter
 ngx_http_send_header ngx_http_finalize_request ngx_http_core_run_phases ngx_event_accept ngx_unix_recv ngx_linux_sendfile_chain
 ngx_process_events_and_timers ngx_http_handler ngx_open_cached_file""".split()
NGINX_LIBC = ["libc.so.6!" + f for f in "recv writev epoll_wait malloc free accept4 close clock_gettime pthread_mutex_lock".split()]


@needs("nginx")
@needs("wrk")
class Nginx(Programs):
    def setUp(self):
        super().setUp()
        self.port = free_port()
        self.pages = {f"page{i}": os.urandom(37 + i * i * 911) for i in range(12)}
        os.mkdir(self.path("www"))
        for name, contents in self.pages.items():
            with open(self.path(f"www/{name}"), "wb") as f:
                f.write(contents)
        conf = self.path("nginx.conf")
        with open(conf, "w") as f:
            f.write(NGINX_CONF.format(workers=2, dir=self.dir, port=self.port))
        with open(self.path("nginx.err"), "wb") as err:
            self.server = subprocess.Popen(["nginx", "-p", self.dir, "-c", conf], stdout=err, stderr=err, env=self.root.env())
        self.addCleanup(lambda: (self.server.poll() is None and self.server.terminate(), self.server.wait()))
        wait_until(lambda: len(self.workers()) == 2 and harness.listens(self.port), 30, "nginx to serve")
        self.expected = {url: self.fetch(url) for url in self.urls()}
        have = exported(os.path.realpath(shutil.which("nginx")), "TW")
        self.probes = functions([f for f in NGINX_OWN if f in have], "reg:rdi") + functions(NGINX_LIBC)

    def workers(self):
        return sorted(harness.children(self.server.pid))

    def urls(self):
        return [*self.pages, "code?n=7", "gz/page5", "absent"]

    def fetch(self, url):
        request = urllib.request.Request(f"http://127.0.0.1:{self.port}/{url}", headers={"Accept-Encoding": "gzip"})
        try:
            with urllib.request.urlopen(request, timeout=300) as answer:
                return answer.status, answer.headers.get("Content-Type"), answer.read()
        except urllib.error.HTTPError as e:
            return e.code, e.headers.get("Content-Type"), e.read()

    def reader(self):
        """Compares all pages repeatedly; returns a function that ends that and returns the number of answers."""
        stop, wrong, answers = threading.Event(), [], [0]

        def run():
            while not stop.is_set():
                for url, expected in self.expected.items():
                    try:
                        got = self.fetch(url)
                    except OSError as e:
                        got = e
                    answers[0] += 1
                    if got != expected:
                        wrong.append((url, str(got)[:300]))
                        return

        thread = threading.Thread(target=run, daemon=True)
        thread.start()

        def end():
            stop.set()
            thread.join(90)
            self.assertEqual(wrong, [])
            return answers[0]

        return end

    def wrk(self, seconds):
        url = f"http://127.0.0.1:{self.port}/page3"
        p = subprocess.Popen(["wrk", "-t1", "-c12", f"-d{seconds}s", "--timeout", "60s", url], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        self.addCleanup(lambda: (p.poll() is None and p.kill(), p.wait(), p.stdout.close()))
        return p

    def good_load(self, wrk, errors="Socket errors|Non-2xx"):
        wrk.send_signal(signal.SIGINT)
        said = wrk.communicate(timeout=300)[0]
        self.assertRegex(said, r"[1-9]\d* requests in")
        self.assertNotRegex(said, errors, said)

    def error_log(self):
        with open(self.path("error.log")) as f:
            return f.read()

    def assert_quits(self):
        self.server.send_signal(signal.SIGQUIT)
        self.assertEqual(self.server.wait(300), 0)
        self.assertNotRegex(self.error_log(), r"\[(alert|crit|emerg)\]|exited on signal")

    @long_form
    def test_probes_come_and_go_under_load(self):
        self.session("s", "dynprobe:*", channel=CHANNEL)
        before = self.workers()
        wrk, end = self.wrk(300), self.reader()
        self.come_and_go(before, *self.probes, going=lambda: wrk.poll() is None)
        self.good_load(wrk)
        self.assertGreater(end(), 20)
        self.assertEqual(self.workers(), before)
        self.assertGreaterEqual(len(self.names_seen()), 10)
        self.assert_quits()

    def test_reload_and_quit_with_the_sink_in_master_and_workers(self):
        """New workers are forked from a master that has the sink: they serve, record nothing, and end in an orderly way."""
        self.session("s", "dynprobe:*", channel=CHANNEL)
        wrk, end = self.wrk(300), self.reader()
        self.put([self.server.pid, *self.workers()], *self.probes)
        for _ in range(3):
            old = set(self.workers())
            self.server.send_signal(signal.SIGHUP)
            wait_until(lambda: len(self.workers()) == 2 and not old & set(self.workers()), 60, "new workers")
            self.assertEqual(self.fetch("page7"), self.expected["page7"])
        end()
        self.good_load(wrk, r"connect [1-9]|write [1-9]|timeout [1-9]|Non-2xx")  # nginx closes keep-alive connections
        self.assertGreater(sum(row["forked"] for row in self.counted(self.server.pid).values()), 0)
        self.take(self.server.pid)
        self.assert_quits()


# ---- redis ---------------------------------------------------------------------------------------------------------------

REDIS_OWN = """processCommand call lookupKeyRead lookupKeyWrite setGenericCommand getGenericCommand incrDecrCommand lpushCommand rpushCommand
 lpopCommand saddCommand hsetCommand zaddCommand addReply addReplyBulk addReplyLongLong createObject createStringObject decrRefCount
 incrRefCount sdsnewlen sdscatlen sdsfree dictFind dictAdd dictGenericDelete readQueryFromClient processInputBuffer
 processMultibulkBuffer writeToClient aeProcessEvents zmalloc zfree zrealloc listAddNodeTail dbAdd setKey getCommand
 setCommand incrCommand hashTypeSet zslInsert lpNew lpAppend quicklistPush serverCron rdbSaveBackground""".split()
REDIS_LIBRARIES = ["libjemalloc.so.2!malloc", "libjemalloc.so.2!free", "libc.so.6!epoll_wait", "libc.so.6!read", "libc.so.6!write"]


def redis_workload(n):
    """Commands with the same results each time."""
    for i in range(n):
        k = i * 7919 % 997
        yield f"set key:{k} value-{i}-{'x' * (i % 300)}"
        yield f"incr counter:{k % 10}"
        yield f"rpush list:{k % 20} {i} {i * 3}"
        yield f"hset hash:{k % 15} f{i % 50} v{i} g{i % 7} w{i}"
        yield f"zadd zset:{k % 9} {i % 311} m{i % 400}"
        yield f"sadd set:{k % 5} s{i % 600}"
        if i % 3 == 0:
            yield f"lpop list:{k % 20}"
        if i % 11 == 0:
            yield f"del key:{(k + 5) % 997}"
        if i % 400 == 0:
            yield f"eval 'for i=1,50 do redis.call(\"append\",\"lua:{k % 3}\",i) end return 1' 0"


def start_redis(case, name):
    os.makedirs(case.path(name), exist_ok=True)
    return RedisServer(case, "--enable-debug-command", "yes", directory=case.path(name), env=case.root.env())


def save_in_background(server):
    wait_until(lambda: server.info("persistence", "rdb_bgsave_in_progress") == "0", 90, "the background save")
    status = server.info("persistence", "rdb_last_bgsave_status")
    return server.cli("bgsave"), status


@needs("redis-server")
@needs("redis-benchmark")
class Redis(Programs):
    def probes(self):
        have = exported(os.path.realpath(shutil.which("redis-server")), "TW")
        own = [f for f in REDIS_OWN if f in have]
        if len(own) < 20:
            self.skipTest("redis-server exports too few functions on this machine")
        return functions(own, "reg:rdi") + functions(REDIS_LIBRARIES)

    def test_probes_come_and_go_under_load_and_background_saves(self):
        self.session("s", "dynprobe:*", channel=CHANNEL)
        commands = "".join(f"{c}\n" for c in redis_workload(1500 if harness.FULL else 500))
        plain, probed = start_redis(self, "plain"), start_redis(self, "probed")
        answers = plain.cli(stdin=commands)
        client = threading.Thread(target=lambda: setattr(self, "answers", probed.cli(stdin=commands)), daemon=True)
        bench = ["redis-benchmark", *probed.at, "-l", "-q", "-c", "8", "-P", "4", "--dbnum", "1", "-t", "set,get,lpush,spop,zadd,mset"]
        with subprocess.Popen(bench, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE) as load, contextlib.ExitStack() as ending:
            ending.callback(load.kill)
            client.start()
            for _ in range(TIMES):
                self.put([probed.pid], *self.probes())
                said, status = save_in_background(probed)
                self.assertEqual((said, status), ("Background saving started", "ok"))
                time.sleep(0.1)  # hits under load
                self.take(probed.pid)
                self.assertIsNone(load.poll(), "the load ended early")
            load.kill()
            self.assertEqual(load.stderr.read().decode(), "")
        client.join(400)
        self.assertFalse(client.is_alive())
        self.assertEqual(self.answers, answers)
        save_in_background(probed)
        self.assertEqual(probed.cli("-n", "1", "flushdb"), "OK")
        self.assertEqual(probed.cli("debug", "digest"), plain.cli("debug", "digest"))
        self.assertGreaterEqual(len(self.names_seen()), 15)  # which of the probed functions are hit varies
        self.assert_saved_alike(plain, probed)

    def assert_saved_alike(self, plain, probed):
        """A child that was forked with probes in its memory has written correct data."""
        self.put([probed.pid], *self.probes(), session="t")
        save_in_background(probed)
        wait_until(lambda: probed.info("persistence", "rdb_bgsave_in_progress") == "0", 90, "the background save")
        self.assertEqual(probed.info("persistence", "rdb_last_bgsave_status"), "ok")
        self.assertGreater(self.counted(probed.pid)["zmalloc"]["forked"], 0)
        digest = plain.cli("debug", "digest")
        self.assertNotEqual(digest, "0" * 40)
        probed.cli("shutdown", "nosave")
        self.assertEqual(probed.process.wait(300), 0)
        again = start_redis(self, "probed")
        self.assertEqual(again.cli("debug", "digest"), digest)


# ---- python --------------------------------------------------------------------------------------------------------------

PYTHON_FUNCTIONS = """_PyEval_EvalFrameDefault PyObject_GetAttr PyObject_SetAttr PyDict_GetItemWithError PyDict_SetItem PyLong_FromLong PyLong_AsLong
 PyObject_Malloc PyObject_Free PyUnicode_FromStringAndSize PyUnicode_Concat PyList_Append PyList_New PyTuple_New PyObject_Call
 PyObject_Vectorcall PyObject_RichCompare PyObject_Hash PyObject_IsTrue PyNumber_Add PyFloat_FromDouble PyObject_GetIter PyType_IsSubtype
 PyErr_SetString PyErr_Occurred PyErr_Clear PyDict_New PyObject_Str PyObject_Repr PyOS_AfterFork_Child PyEval_RestoreThread""".split()
PYTHON_LIBC = ["libc.so.6!" + f for f in "malloc free read write fork waitpid sem_wait pthread_mutex_lock".split()]
RARELY = ["--when", "(rdi & 0xff0) == 0x550"]

PYTHON_COMMON = r"""
import hashlib, json, os, random, sys, time
def work(n):
    rng, d, out = random.Random(n), {}, []
    for i in range(n):
        d[str(i)] = [i * 0.5, "x" * (i % 17), {"k": rng.random()}]
        try:
            if i % 7 == 0: raise ValueError(i)
        except ValueError as e:
            out.append(repr(e))
    return hashlib.sha256(json.dumps([d, sorted(out)]).encode()).hexdigest()
def wait_for(path):
    print("READY", flush=True)
    while not os.path.exists(path): work(20)
"""

ASYNCIO = PYTHON_COMMON + r"""
import asyncio, concurrent.futures
async def serve(reader, writer):
    while line := await reader.readline():
        writer.write(work(int(line)).encode() + b"\n")
        await writer.drain()
    writer.close()
async def client(port, k, pool):
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    got = []
    for i in range(8):
        writer.write(b"%d\n" % (40 + k * 10 + i))
        got.append((await reader.readline()).decode().strip())
        got.append(await asyncio.get_running_loop().run_in_executor(pool, work, 30 + i))
        await asyncio.sleep(0.001)
    writer.close()
    return got
async def main():
    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    for r in range(3):
        with concurrent.futures.ThreadPoolExecutor(3) as pool:
            print(r, await asyncio.gather(*(client(port, k, pool) for k in range(6))))
        p = await asyncio.create_subprocess_exec("/bin/echo", "child", str(r), stdout=asyncio.subprocess.PIPE)
        print((await p.communicate())[0], p.returncode)
    server.close()
wait_for(sys.argv[1])
asyncio.run(main())
print("RESULT OK")
"""

MULTIPROCESSING = PYTHON_COMMON + r"""
import multiprocessing, threading
def child(k, queue, lock, total):
    with lock: total.value += k
    threads = [threading.Thread(target=work, args=(30,)) for _ in range(2)]
    [t.start() for t in threads]; [t.join() for t in threads]
    queue.put((k, work(50 + k)))
def normal_end(k):
    pid = os.fork()
    if pid == 0:
        work(20)
        sys.exit(k)                  # destructors run
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
def main():
    ctx = multiprocessing.get_context("fork")
    for r in range(3):
        with ctx.Pool(3) as pool:
            print(r, pool.map(work, range(30, 60)), pool.apply(work, (77,)))
        queue, lock, total = ctx.SimpleQueue(), ctx.Lock(), ctx.Value("i", 0)
        children = [ctx.Process(target=child, args=(k, queue, lock, total)) for k in range(5)]
        [c.start() for c in children]
        print(sorted(queue.get() for _ in children))
        [c.join() for c in children]
        print([c.exitcode for c in children], total.value)
        print([normal_end(k) for k in range(5)])
        with ctx.Manager() as manager:
            shared = manager.dict()
            p = ctx.Process(target=shared.update, args=({r: "set"},))
            p.start(); p.join()
            print(dict(shared), p.exitcode)
wait_for(sys.argv[1])
try: main()
except SystemExit as e: os._exit(e.code)
print("RESULT OK")
"""


@needs(PYTHON)
class Python(Programs):
    def compare(self, script):
        path = self.path("script.py")
        with open(path, "w") as f:
            f.write(script)
        with open(self.path("go"), "w"):
            plain = subprocess.run([PYTHON, path, self.path("go")], capture_output=True, text=True, timeout=300, env=self.root.env())
        self.assertIn("RESULT OK", plain.stdout, plain.stderr)
        self.session("s", "dynprobe:*", channel=CHANNEL)
        have = exported(os.path.realpath(PYTHON), "TW")
        own = [f for f in PYTHON_FUNCTIONS if f in have]
        rare = {"_PyEval_EvalFrameDefault", "PyObject_Malloc", "PyObject_Free"}
        probes = [x for f in own for x in ("--function", f, "-t", "reg:rdi", *(RARELY if f in rare else []))] + functions(PYTHON_LIBC)
        t = self.program(PYTHON, path, self.path("started"))
        self.put([t.pid], *probes, status=(0, 121))
        self.assertGreaterEqual(len(self.counted(t.pid)), 20)
        with open(self.path("started"), "w"):
            pass
        return t, plain

    def assert_same(self, t, plain):
        self.assertEqual(t.process.wait(300), 0, t.errors()[-2000:])
        self.assertEqual(t.output(), plain.stdout)
        self.assertEqual(t.errors(), plain.stderr)
        self.assertGreaterEqual(len(self.names_seen()), 20)

    @long_form
    def test_asyncio(self):
        self.assert_same(*self.compare(ASYNCIO))

    def test_multiprocessing_by_fork(self):
        t, plain = self.compare(MULTIPROCESSING)
        forked = lambda: not t.alive() or sum(row["forked"] for row in self.counted(t.pid).values())
        wait_until(forked, 120, "hits in fork children to be counted")
        self.assertTrue(t.alive(), "no hit in a fork child was ever counted")
        self.assert_same(t, plain)


if __name__ == "__main__":
    lttng_env.main(network=True)
