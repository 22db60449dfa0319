# SPDX-License-Identifier: MIT
"""Tests real programs under their own load, with at least 20 probes on hot functions each: their output is the same bit by bit."""

import os
import random
import re
import shutil
import subprocess

import harness
from binutils import exported
from harness import Case, needs
from redis_server import RedisServer

PYTHON = "/usr/bin/python3"

PYTHON_FUNCTIONS = """_PyEval_EvalFrameDefault PyObject_GetAttr PyObject_SetAttr PyDict_GetItemWithError PyDict_SetItem PyLong_FromLong PyLong_AsLong
 PyObject_Malloc PyObject_Free PyObject_Realloc PyUnicode_FromStringAndSize PyUnicode_Append PyUnicode_Concat PyList_Append PyList_New PyTuple_New
 PyObject_Call PyObject_Vectorcall PyObject_RichCompare PyObject_Hash PyObject_IsTrue PyNumber_Add PyNumber_Multiply PyFloat_FromDouble
 PyObject_GetIter PyIter_Next PyType_IsSubtype PyErr_SetString PyErr_Occurred PyErr_Clear _PyObject_GC_New PyObject_GC_Del PyUnicode_Join
 PyDict_New PyLong_FromSsize_t PyObject_Str PyObject_Repr PyObject_Size PyMem_Malloc PyMem_Free""".split()

SHARE = 1 if harness.FULL else 5  # of the work

PYTHON_SCRIPT = f"CALLS = {1500 // SHARE}" + r"""
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
results = [None] * 4
def run(k): results[k] = work(CALLS + k)
threads = [threading.Thread(target=run, args=(k,)) for k in range(4)]
[t.start() for t in threads]; [t.join() for t in threads]
print(results)
"""

SQLITE_FUNCTIONS = """sqlite3_step sqlite3_prepare_v2 sqlite3_finalize sqlite3_reset sqlite3_column_text sqlite3_column_int sqlite3_column_type
 sqlite3_column_count sqlite3_column_name sqlite3_malloc sqlite3_malloc64 sqlite3_free sqlite3_realloc sqlite3_realloc64 sqlite3_mprintf
 sqlite3_vmprintf sqlite3_snprintf sqlite3_errcode sqlite3_errmsg sqlite3_exec sqlite3_complete sqlite3_value_text sqlite3_value_type
 sqlite3_value_bytes sqlite3_value_int64 sqlite3_value_double sqlite3_result_text sqlite3_result_int64 sqlite3_result_value sqlite3_mutex_enter
 sqlite3_mutex_leave sqlite3_stricmp sqlite3_strnicmp sqlite3_column_bytes sqlite3_column_int64 sqlite3_column_value sqlite3_user_data
 sqlite3_context_db_handle sqlite3_str_append sqlite3_str_appendall sqlite3_randomness sqlite3_sql""".split()

SQLITE_SCRIPT = f"""
CREATE TABLE t(a INTEGER PRIMARY KEY, b TEXT, c REAL);
WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i+1 FROM n WHERE i < {20000 // SHARE})
INSERT INTO t SELECT i, printf('row %d', i * 7919 % 10007), i / 3.0 FROM n;
CREATE INDEX ti ON t(b);
SELECT count(*), sum(a), total(c), min(b), max(b) FROM t;
SELECT b, group_concat(a) FROM (SELECT * FROM t ORDER BY b, a) GROUP BY substr(b, 1, 6) ORDER BY b LIMIT 50;
SELECT a, upper(b), round(c, 3), length(b), substr(b, 2, 4) FROM t WHERE b LIKE 'row 1%' ORDER BY c DESC LIMIT 500;
DELETE FROM t WHERE a % 3 = 0; UPDATE t SET b = b || 'x' WHERE a % 2; PRAGMA integrity_check; SELECT count(*), sum(length(b)) FROM t;
"""

C_SOURCE = "\n".join(f"int f{i}(int a, const char *s) {{ int r = 0; for (int i = 0; i < a; i++) r += s[i % {i + 1}] * {i}; return r ^ (a << {i % 31}); }}"
                     for i in range(300 // SHARE))


def probes(names, *contexts):
    """Every second function records registers, the others have a condition that is rarely true."""
    args = []
    for i, name in enumerate(names):
        args += ["--function", name]
        args += [x for c in contexts for x in ("-t", c)] if i % 2 == 0 else ["--when", "(rdi & 0xff0) == 0x550"]
    return args


class RealPrograms(Case):
    def placed(self, r):
        self.assertIsNotNone(r.summary, str(r))
        rows = r.summary["probes"]
        return [p for p in rows if p.get("tactic")]

    def launched(self, argv, functions, stdin=None, cwd=None):
        plain = subprocess.run(argv, capture_output=True, stdin=open(stdin) if stdin else subprocess.DEVNULL, cwd=cwd)
        r = self.dynprobe("-q", *probes(functions, "regs"), "--", *argv, stdin=open(stdin) if stdin else subprocess.DEVNULL, timeout=300, cwd=cwd)
        self.assertEqual(plain.returncode, 0)
        self.assertEqual(r.status, 121 if r.summary["refused"] > r.summary["left_out"] else 0, str(r)[-3000:])
        self.assertEqual(r.out, plain.stdout.decode())
        self.assertGreaterEqual(len(self.placed(r)), 20, str(r)[-3000:])
        return r

    @needs(PYTHON)
    def test_python(self):
        available = set(exported(os.path.realpath(PYTHON)))
        self.written("work.py", PYTHON_SCRIPT)
        self.launched([PYTHON, "-X", "utf8", self.path("work.py")], [f for f in PYTHON_FUNCTIONS if f in available])

    @needs("sqlite3")
    def test_sqlite(self):
        self.written("work.sql", SQLITE_SCRIPT)
        libraries = subprocess.run(["ldd", shutil.which("sqlite3")], capture_output=True, text=True).stdout
        library = re.search(r"=> (\S*libsqlite3\S*)", libraries)
        if not library:
            self.skipTest("sqlite3 does not use the shared library on this machine")
        available = set(exported(library[1]))
        module = os.path.basename(os.path.realpath(library[1]))
        self.launched(["sqlite3", ":memory:"], [module + "!" + f for f in SQLITE_FUNCTIONS if f in available], stdin=self.path("work.sql"))

    def test_gcc_compiling(self):
        cc1 = subprocess.run(["gcc", "-print-prog-name=cc1"], capture_output=True, text=True).stdout.strip()
        functions = [f for f in exported(cc1) if f.startswith(("ggc_", "_cpp_", "cpp_", "xmalloc", "xrealloc", "htab_"))][:60]
        if len(functions) < 20:
            self.skipTest("cc1 exports too few functions on this machine")
        self.written("work.c", C_SOURCE)
        argv = [cc1, "-quiet", "-O2", self.path("work.c"), "-o", "-"]
        self.launched(argv, functions, cwd=self.dir)

    def test_shell_tools_of_coreutils(self):
        with open(self.path("numbers"), "w") as f:
            f.writelines(f"{random.Random(i).random()}\n" for i in range(20000 // SHARE))
        functions = ["libc.so.6!" + f for f in "malloc free realloc strcoll memcpy strlen memchr".split()]
        plain = subprocess.run(["sort", self.path("numbers")], capture_output=True)
        r = self.dynprobe("-q", "--function", "main", *(x for f in functions[:3] for x in ("--function", f)), "--", "sort", self.path("numbers"))
        self.assertEqual(r.out.encode(), plain.stdout)
        self.assertIn(r.status, (0, 121), str(r))


@needs("redis-server")
@needs("redis-benchmark")
class Redis(Case):
    def setUp(self):
        super().setUp()
        self.server = RedisServer(self, "--io-threads", "2")
        self.pid, self.cli = self.server.pid, self.server.cli

    def functions(self):
        wanted = """processCommand call lookupKeyRead lookupKeyWrite setGenericCommand getGenericCommand incrDecrCommand lpushCommand rpushCommand
            lpopCommand saddCommand hsetCommand zaddCommand addReply addReplyBulk addReplyLongLong createObject createStringObject decrRefCount
            incrRefCount sdsnewlen sdscatlen sdsfree dictFind dictAdd dictGenericDelete readQueryFromClient processInputBuffer
            processMultibulkBuffer writeToClient aeProcessEvents zmalloc zfree zrealloc raxInsert listAddNodeTail dbAdd setKey getCommand
            setCommand incrCommand spopCommand hashTypeSet zslInsert ziplistNew lpNew lpAppend quicklistPush""".split()
        have = set(exported(shutil.which("redis-server")))
        return [f for f in wanted if f in have]

    def test_redis_under_its_benchmark_with_a_data_check(self):
        functions = self.functions()
        if len(functions) < 25:
            self.skipTest("redis-server exports too few functions on this machine")
        p = self.start("-q", "--pid", self.pid, *probes(functions, "regs"))
        self.await_armed(p, self.pid)
        self.assertIsNone(p.poll(), "dynprobe ended early")
        bench = subprocess.run(["redis-benchmark", *self.server.at, "-q", "-n", "4000", "-c", "20", "-P", "4",
                                "-t", "set,get,incr,lpush,lpop,sadd,hset,spop,zadd,mset"], capture_output=True, text=True, timeout=300)
        self.assertEqual(bench.returncode, 0, bench.stderr)
        self.assertNotIn("Error", bench.stdout)
        model = {f"key:{i}": f"value-{i * 7919 % 10007}" for i in range(3000)}
        self.cli(stdin="".join(f"set {k} {v}\n" for k, v in model.items()))
        self.assertEqual(dict(zip(model, self.cli(stdin="".join(f"get {k}\n" for k in model)).splitlines())), model)
        r = self.finish(p, timeout=300)
        self.assertIn(r.status, (0, 121), str(r)[-3000:])
        self.assertGreaterEqual(len([x for x in r.summary["probes"] if x.get("tactic")]), 20, str(r)[-3000:])
        self.assertEqual(dict(zip(model, self.cli(stdin="".join(f"get {k}\n" for k in model)).splitlines())), model)
        self.assert_clean(self.pid)
        self.assertEqual(self.cli("ping"), "PONG")


if __name__ == "__main__":
    harness.main()
