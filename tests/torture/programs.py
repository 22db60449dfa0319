# SPDX-License-Identifier: MIT
"""The programs: each a function of a Box that does the same work in every run and returns everything that must not differ."""

import atexit
import functools
import glob
import hashlib
import http.client
import os
import random
import re
import shutil
import socket
import subprocess
import tempfile

TARGETS = os.environ.get("TARGETS", "build/tests/targets")
SOURCES = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
PYTHON_TESTS = """test_json test_re test_struct test_zlib test_hashlib test_dict test_set test_list test_generators test_exceptions test_float test_math
 test_long test_unicode test_bytes test_itertools test_functools test_collections test_threading test_queue test_contextlib test_pickle test_ctypes
 test_asyncio.test_tasks test_subprocess test_traceback test_gc test_coroutines test_descr test_io test_lzma test_bz2""".split()


def sha(data):
    return hashlib.sha256(data).hexdigest()


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def words(n, seed=1):
    r = random.Random(seed)
    return " ".join("".join(r.choices("etaoinshrdlu", k=r.randint(1, 9))) for _ in range(n))


# ---- interpreters -----------------------------------------------------------------------------------------------------------


# A stop shortens a blocking write in progress (docs/torture.md), and these tests expect that only a signal does.
WRITES_CUT_SHORT = re.compile(r"^test_interrupted_write")


def verdicts(text):
    """The lines of a unittest run that name tests and their results, without times and the order of threads' output."""
    lines = [line for line in text.splitlines() if re.search(r" \.\.\. (ok|FAIL|ERROR|skipped|expected failure)", line)]
    return sorted(line for line in lines if not WRITES_CUT_SHORT.match(line))


def python_tests(box, tests):
    """Exit statuses above 1 count; 0 or 1 follows from the verdicts."""
    status, out, err = box.run(["/usr/bin/python3", "-W", "ignore", "-m", "unittest", "-v", *tests], env={"PYTHONHASHSEED": "0"})
    text = re.sub(r"0x[0-9a-f]+", "0x", (out + err).decode(errors="replace"))
    return {"status": max(status, 1), "tests": verdicts(text), "count": re.findall(r"^Ran (\d+) tests", text, re.M)}


def python(box):
    """Uses a process per file: if one is killed, the others' verdicts remain."""
    return {t: python_tests(box, ["test." + t]) for t in PYTHON_TESTS}


PYTHON_WORK = r"""
import hashlib, json, re, threading
def work(n):
    d, out = {}, []
    for i in range(n):
        d[str(i)] = [i * 0.5, "x" * (i % 17), {"k": i}]
        try:
            if i % 7 == 0: raise ValueError(i)
        except ValueError as e:
            out.append(repr(e))
        out.append(re.sub("[0-9]+", lambda m: str(int(m[0]) + 1), "a%db%d" % (i, i * i)))
    return hashlib.sha256(json.dumps([d, sorted(out)]).encode()).hexdigest()
results = {}
def run(k): results[k] = [work(300 + k + j) for j in range(40)]
threads = [threading.Thread(target=run, args=(k,)) for k in range(4)]
[t.start() for t in threads]; [t.join() for t in threads]
print(sorted(results.items()))
"""


def python_script(box):
    return box.run(["/usr/bin/python3", "-X", "utf8", box.write("work.py", PYTHON_WORK)])


def sqlite(box):
    script = """
    CREATE TABLE t(a INTEGER PRIMARY KEY, b TEXT, c REAL);
    WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i+1 FROM n WHERE i < 60000)
    INSERT INTO t SELECT i, printf('row %d', i * 7919 % 10007), i / 3.0 FROM n;
    CREATE INDEX ti ON t(b);
    SELECT count(*), sum(a), total(c), min(b), max(b) FROM t;
    SELECT b, group_concat(a) FROM (SELECT * FROM t ORDER BY b, a) GROUP BY substr(b, 1, 6) ORDER BY b LIMIT 50;
    SELECT a, upper(b), round(c, 3), length(b), json_array(a, b, c) FROM t WHERE b LIKE 'row 1%' ORDER BY c DESC LIMIT 500;
    SELECT x.a, y.a FROM t x JOIN t y ON x.b = y.b AND x.a < y.a ORDER BY 1, 2 LIMIT 5000 OFFSET 20000;
    UPDATE t SET b = b || hex(b) WHERE a % 2; DELETE FROM t WHERE a % 3 = 0; PRAGMA integrity_check;
    SELECT count(*), sum(length(b)), sum(c * c) FROM t; VACUUM;
    SELECT sum(length(b) * a % 97) OVER (ORDER BY a ROWS 20 PRECEDING) FROM t LIMIT 3000;
    """
    return box.run(["sqlite3", ":memory:"], stdin=box.write("work.sql", script))


BASH_WORK = r"""
declare -A count; shopt -s extglob
trap 'echo child' CHLD; trap - CHLD
fib() { local n=$1; if ((n < 2)); then echo $n; else echo $(( $(fib $((n-1))) + $(fib $((n-2))) )); fi; }
for ((i = 0; i < 4000; i++)); do
  w=w$((i * 7919 % 101)); count[$w]=$(( ${count[$w]:-0} + i ))
  [[ $w =~ ^w([0-9]+)$ ]] && s+=${BASH_REMATCH[1]}
  s=${s: -400}; t=${s//1/one}; t=${t^^}; printf -v u '%05d:%s' $i "${t:0:20}"
  case $u in *ONE*) ((ones++));; +([0-9])*) ((other++));; esac
done
for k in "${!count[@]}"; do echo "$k ${count[$k]}"; done | sort
echo $ones $other $s; fib 11
while read -r a b; do echo "$b $a"; done < <(seq 1 600 | paste - - )
for i in 1 2 3 4 5 6 7 8; do (exit $i); echo "status $?"; done
x=$(printf '%s\n' {a..z}{0..9} | tr a-z A-Z | while read -r l; do echo -n "$l."; done); echo "$x"
trap 'got=1' USR1; kill -USR1 $$ & wait; wait; sleep 0.1; echo end $got
"""


def bash(box):
    return box.run(["bash", box.write("work.sh", BASH_WORK)])


# ---- servers ------------------------------------------------------------------------------------------------------------------


class RedisClient:
    def __init__(self, port):
        self.socket = socket.create_connection(("127.0.0.1", port), 30)
        self.file = self.socket.makefile("rb")
        self.hash = hashlib.sha256()

    def reply(self):
        line = self.file.readline()
        if not line:
            raise ConnectionError("redis closed the connection")
        self.hash.update(line)
        if line[:1] == b"$" and int(line[1:]) >= 0:
            self.hash.update(self.file.read(int(line[1:]) + 2))
        elif line[:1] == b"*":
            for _ in range(int(line[1:])):
                self.reply()

    def pipeline(self, commands):
        coded = b"".join(b"*%d\r\n" % len(c) + b"".join(b"$%d\r\n%s\r\n" % (len(a), a) for a in (str(x).encode() for x in c)) for c in commands)
        self.socket.sendall(coded)
        for _ in commands:
            self.reply()


def redis_commands(n, seed):
    r = random.Random(seed)
    for i in range(n):
        k = r.randint(0, 400)
        yield r.choice([("set", f"s{k}", words(5, i)), ("get", f"s{k}"), ("append", f"a{k}", i), ("incrby", f"n{k}", i), ("lpush", f"l{k}", i, i + 1),
                        ("lrange", f"l{k}", 0, 20), ("hset", f"h{k}", f"f{i % 50}", i), ("hmget", f"h{k}", "f1", "f2", "f3"), ("zadd", f"z{k}", i % 97, f"m{i % 300}"),
                        ("zrange", f"z{k}", 0, 30, "withscores"), ("zscore", f"z{k}", "m5"), ("rpop", f"l{k}"), ("strlen", f"a{k}"), ("getrange", f"a{k}", 0, 50),
                        ("setbit", f"b{k}", i % 9000, 1), ("bitcount", f"b{k}"), ("pfadd", f"p{k}", i), ("pfcount", f"p{k}"), ("del", f"s{r.randint(0, 400)}"),
                        ("eval", "local s = 0 for i = 1, 50 do s = s + i * ARGV[1] end return tostring(s)", 0, i)])


def redis(box):
    port, got = free_port(), []
    server = box.serve(["redis-server", "--port", port, "--bind", "127.0.0.1", "--save", "", "--io-threads", "2", "--databases", "2"],
                       lambda: b"Ready to accept" in box.read("served"))
    try:
        tool = box.attach(server.pid)
        load = subprocess.Popen(["redis-benchmark", "-p", str(port), "-q", "-n", "6000", "-c", "20", "-P", "4", "--dbnum", "1",
                                 "-t", "set,get,incr,lpush,lpop,sadd,hset,spop,zadd,mset"], stdout=subprocess.DEVNULL, stderr=subprocess.STDOUT)
        client = RedisClient(port)
        for i in range(12):
            client.pipeline(list(redis_commands(1500, i)))
        got = [client.hash.hexdigest(), load.wait(box.timeout)]
        box.detach(tool)
        client.pipeline([("debug", "sleep", "0"), ("dbsize",), ("object", "encoding", "z1")])
        got.append(client.hash.hexdigest())
    finally:
        status = box.end(server)
    return got + [status]


def nginx(box):
    port = free_port()
    os.makedirs(box.path("site"), exist_ok=True)
    for i in range(12):
        box.write(f"site/{i}.html", words(200 * (i + 1) ** 2, i))
    box.write("nginx.conf", f"""daemon off; master_process off; pid {box.dir}/pid; error_log {box.dir}/error.log;
        events {{ worker_connections 256; }}
        http {{ access_log {box.dir}/access.log; client_body_temp_path {box.dir}/t1; proxy_temp_path {box.dir}/t2; fastcgi_temp_path {box.dir}/t3;
        uwsgi_temp_path {box.dir}/t4; scgi_temp_path {box.dir}/t5; gzip on; gzip_min_length 100; gzip_types text/html; keepalive_requests 100000;
        server {{ listen 127.0.0.1:{port}; root {box.dir}/site; location /r {{ rewrite ^/r/([0-9]+)$ /$1.html last; }} location /e {{ return 418 "tea $uri $args"; }} }} }}""")

    def answers():
        with socket.socket() as s:
            return s.connect_ex(("127.0.0.1", port)) == 0
    server = box.serve(["/usr/sbin/nginx", "-c", box.path("nginx.conf"), "-p", box.dir], answers)
    got = []
    try:
        tool = box.attach(server.pid)
        load = subprocess.Popen(["wrk", "-c", "8", "-t", "1", "-d", "4", f"http://127.0.0.1:{port}/3.html"], stdout=subprocess.PIPE, text=True)
        client = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
        for i in range(600):
            where = [f"/{i % 12}.html", f"/r/{i % 13}", f"/e/{i}?a={i}", f"/{i}.none"][i % 4]
            client.request("GET", where, headers={"Accept-Encoding": "gzip"} if i % 3 == 0 else {"Range": f"bytes={i}-{i * 3}"} if i % 5 == 1 else {})
            r = client.getresponse()
            got.append((r.status, r.getheader("Content-Encoding"), sha(r.read())))
        said = load.communicate(timeout=box.timeout)[0]
        got.append(re.findall(r"Non-2xx.*|Socket errors.*", said))
        box.detach(tool)
    finally:
        status = box.end(server)
    return got, status


# ---- compilers ----------------------------------------------------------------------------------------------------------------


@functools.cache
def tree():
    """The compilers' input: a copy of this project's sources, which may change meanwhile."""
    copy = tempfile.mkdtemp(prefix="torture-sources-")
    atexit.register(shutil.rmtree, copy, ignore_errors=True)
    for room in ("base", "agent", "probes", "trampoline"):
        shutil.copytree(f"{SOURCES}/{room}", f"{copy}/{room}")
    return copy


def sources():
    return sorted(f for d in ("base", "probes", "trampoline") for f in glob.glob(f"{tree()}/{d}/**/*.c", recursive=True) if "zydis" not in f)


def cc1(box, files=None):
    program = subprocess.run(["gcc", "-print-prog-name=cc1"], capture_output=True, text=True).stdout.strip()
    got = []
    for i, source in enumerate(files or sources()):
        argv = [program, "-quiet", "-D_GNU_SOURCE", "-I", tree(), source, "-O2" if i % 2 else "-O3", "-g", "-std=gnu11", "-o", box.path("out.s")]
        got.append((source, box.run(argv), sha(box.read("out.s"))))
    return got


def gcc(box):
    """The driver, whose children (cc1, as) share its memory until they call exec."""
    got = []
    for source in sources()[:12]:
        argv = ["gcc", "-D_GNU_SOURCE", "-I", tree(), "-O1", "-c", source, "-o", box.path("out.o")]
        got.append((source, box.run(argv), sha(box.read("out.o"))))
    return got


# ---- tools with results of their own ------------------------------------------------------------------------------------------


def zstd(box):
    data, got = box.write("data", words(600000)), []
    for level in ("-1", "-6", "-12", "--long=24 -3 -T2"):
        got.append(box.run(["zstd", "-f", *level.split(), data, "-o", box.path("data.zst")])[0])
        got.append(sha(box.read("data.zst")))
        got.append(box.run(["zstd", "-d", "-f", box.path("data.zst"), "-o", box.path("back")])[0])
        got.append(sha(box.read("back")) == sha(box.read("data")))
    return got


def openssl(box):
    data, got = box.write("data", words(3000000)), []
    box.write("key.pem", subprocess.run(["openssl", "genrsa", "2048"], capture_output=True).stdout) if not os.path.exists(box.path("key.pem")) else None
    for digest in ("md5", "sha1", "sha256", "sha512", "sha3-256", "blake2b512", "sm3", "ripemd160"):
        got.append(box.run(["openssl", "dgst", "-" + digest, data]))
    for cipher in ("aes-128-cbc", "aes-256-ctr", "chacha20", "camellia-256-cbc", "aria-128-cbc", "sm4-ctr", "des-ede3-cbc"):
        key = ["-K", "00112233445566778899aabbccddeeff" * 2, "-iv", "000102030405060708090a0b0c0d0e0f"]
        got.append(box.run(["openssl", "enc", "-" + cipher, *key, "-in", data, "-out", box.path("coded")])[0])
        got.append(sha(box.read("coded")))
        got.append(box.run(["openssl", "enc", "-d", "-" + cipher, *key, "-in", box.path("coded"), "-out", box.path("back")])[0])
        got.append(sha(box.read("back")) == sha(box.read("data")))
    got.append(box.run(["openssl", "dgst", "-sha256", "-sign", box.path("key.pem"), "-out", box.path("signed"), data])[0])
    got.append(sha(box.read("signed")))
    for prime in ("170141183460469231731687303715884105727", "170141183460469231731687303715884105729"):
        got.append(box.run(["openssl", "prime", prime]))
    return got


def own_check(name, *args):
    """A program of tests/targets, which checks its own results and prints RESULT OK."""
    def work(box):
        p = box.serve([os.path.join(TARGETS, name), *args], lambda: b"READY" in box.read("served"))
        tool = box.attach(p.pid)
        try:
            p.wait(box.quantum if box.torture else 0.2)
        except subprocess.TimeoutExpired:
            pass
        try:
            box.detach(tool)
        finally:
            status = box.end(p)
        return status, b"RESULT OK" in box.read("served")
    work.__doc__ = f"{name}"
    return work


def go_fzf(box):
    lines = box.write("lines", words(120000).replace(" ", "\n"))
    return [box.run(["fzf", "--filter", q], stdin=lines) for q in ("eta", "^sh 'in", "l$ !o", "aeio", "uuu | ddd")]


def go_age(box):
    data = box.write("data", words(1500000))
    if not os.path.exists(box.path("age.key")):
        subprocess.run(["age-keygen", "-o", box.path("age.key")], capture_output=True)
        recipient = re.search(r"age1\w+", box.read("age.key").decode())[0]
        subprocess.run(["age", "-r", recipient, "-o", box.path("data.age"), data], check=True)
    return [(box.run(["age", "-d", "-i", box.path("age.key"), "-o", box.path("back"), box.path("data.age")]), sha(box.read("back"))) for _ in range(3)]


def rust_rg(box):
    found = [box.run(["rg", "-j2", "--no-heading", "-n", "--sort", "path", q, "/usr/include"]) for q in (r"\bstruct \w+_info\b", r"(?i)deprecat\w+", r"^#define\s+[A-Z_]{20,}")]
    loose = box.run(["rg", "-j3", "--no-heading", "-c", "int", "/usr/include"])
    return found, (loose[0], sorted(loose[1].splitlines()))


def rust_fd(box):
    status, out, err = box.run([shutil.which("fdfind") or "fd", "-j2", "-t", "f", r"\.h$", "/usr/include"])
    return status, sorted(out.splitlines()), err


PROGRAMS = {
    "python3 -m unittest": python, "python3": python_script, "sqlite3": sqlite, "bash": bash, "redis-server": redis, "nginx": nginx,
    "cc1": cc1, "gcc": gcc, "zstd": zstd, "openssl": openssl, "fzf (Go)": go_fzf, "age (Go)": go_age, "rg (Rust)": rust_rg, "fd (Rust)": rust_fd,
    "cxxthrow (C++ exceptions)": own_check("cxxthrow"), "threads": own_check("threads", "16"), "sigstorm": own_check("sigstorm"),
    "longjmper": own_check("longjmper"), "forkload": own_check("forkload"), "eintr": own_check("eintr"),
    "libcstorm": own_check("libcstorm"), "deep": own_check("deep"),
}
NEEDS = {"fzf (Go)": "fzf", "age (Go)": "age", "rg (Rust)": "rg", "fd (Rust)": "fdfind", "redis-server": "redis-benchmark", "nginx": "wrk", "zstd": "zstd",
         "sqlite3": "sqlite3"}
