#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Installs and removes 20,000 probes: the time that this takes, and what the program notices, compared with the program alone.

run_wildcards.py [--build DIR] [--rounds N]    Measure on a quiet machine. Needs the test targets (BUILD_TESTING).

entries     every function of a program with 20,000 functions and 5 threads. One thread reads the clock all the time. "stopped" is the
            part of a gap in which it did not wait for a processor, by the kernel's count: dynprobe's share.
returns     every return of a python3 server and its libraries. "wait" is how long a client waited for an answer; "stopped" is that
            without the time in which the server's threads and the client waited for a processor.
"""
import argparse
import glob
import http.client
import json
import os
import subprocess
import sys
import tempfile
import threading
import time

SERVER = """
import hashlib, http.server, json, sqlite3, ssl
class Answer(http.server.BaseHTTPRequestHandler):
    protocol_version, wbufsize, disable_nagle_algorithm = "HTTP/1.1", 65536, True
    def do_GET(self):
        body = json.dumps({"path": self.path, "numbers": list(range(20))}).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)
    def log_message(self, *args):
        pass
server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Answer)
print(server.server_address[1], flush=True)
server.serve_forever()
"""
QUIET_S, STANDING_S = 3, 2


def within(gaps, begin, end):
    """The longest and the sum, in ms, of the (end, length) that overlap [begin, end)."""
    found = [length for at, length in gaps if at > begin and at - length < end]
    return {"longest_ms": round(max(found, default=0) / 1e6, 2), "sum_ms": round(sum(found) / 1e6, 1)}


def probe(build, pid, *what):
    """(begin, end, dynprobe's figures): ms until armed and removed, and the pauses."""
    begin = time.monotonic_ns()
    r = subprocess.run([os.path.join(build, "dynprobe"), "--pid", str(pid), "--no-record", "--count", "-f", "json", "-d", str(STANDING_S), *what],
                       capture_output=True, text=True, timeout=600)
    end = time.monotonic_ns()
    said = [json.loads(line) for line in r.stdout.splitlines() if line.startswith('{"type":"summary"')]
    if not said or not said[0]["placed"]:
        sys.exit(f"dynprobe placed no probe:\n{r.stderr[-2000:]}")
    s = said[0]
    return begin, end, {"placed": s["placed"], "armed_ms": round(s["attach_ns"] / 1e6),
                        "all_but_standing_and_armed_ms": round((end - begin - s["attach_ns"]) / 1e6 - STANDING_S * 1000),
                        "attach_pause_us": round(s["pause_attach_ns"] / 1e3), "detach_pause_us": round(s["pause_detach_ns"] / 1e3)}


def entries(build):
    t = subprocess.Popen([os.path.join(build, "tests", "targets", "thousands"), "5"], stdout=subprocess.PIPE, text=True)
    try:
        t.stdout.readline()
        from_ns = time.monotonic_ns()
        time.sleep(QUIET_S)
        begin, end, said = probe(build, t.pid, "--function", "f[12]*")
        t.terminate()
        out = t.communicate(timeout=60)[0]
    finally:
        t.kill()
    if "RESULT OK" not in out:
        sys.exit("the program's results are wrong")
    gaps = [tuple(map(int, line.split()[1:])) for line in out.splitlines() if line.startswith("gap ")]
    all_of = [(at, length) for at, length, _ in gaps]
    stopped = [(at, max(0, length - waited)) for at, length, waited in gaps]
    return said | {name + when: within(of, *times) for when, times in (("_quiet", (from_ns, begin)), ("", (begin, end)))
                   for name, of in (("gap", all_of), ("stopped", stopped))}


def waited_ns(path):
    """How long a thread, or all threads of a process, waited for a processor."""
    total = 0
    for file in glob.glob(path):
        try:
            total += int(open(file).read().split()[1])
        except OSError:
            pass  # it has ended
    return total


def ask(pid, port, answers, over):
    def waited():
        return waited_ns("/proc/thread-self/schedstat") + waited_ns(f"/proc/{pid}/task/*/schedstat")

    c = http.client.HTTPConnection("127.0.0.1", port)
    while not over.is_set():
        before = waited()
        begin = time.monotonic_ns()
        c.request("GET", "/")
        if b"path" not in c.getresponse().read():
            sys.exit("a wrong answer")
        end = time.monotonic_ns()
        answers.append((end, end - begin, max(0, end - begin - (waited() - before))))
        time.sleep(0.0005)


def returns(build):
    with tempfile.NamedTemporaryFile("w", suffix=".py") as f:
        f.write(SERVER)
        f.flush()
        t = subprocess.Popen(["/usr/bin/python3", f.name], stdout=subprocess.PIPE, text=True)
        try:
            answers, over = [], threading.Event()
            client = threading.Thread(target=ask, args=(t.pid, int(t.stdout.readline()), answers, over))
            client.start()
            from_ns = time.monotonic_ns()
            time.sleep(QUIET_S)
            begin, end, said = probe(build, t.pid, "--return", "*")
            over.set()
            client.join()
        finally:
            over.set()
            t.kill()
            t.wait()
    all_of = [(at, length) for at, length, _ in answers]
    stopped = [(at, length) for at, _, length in answers]
    return said | {name + when: within(of, *times) for when, times in (("_quiet", (from_ns, begin)), ("", (begin, end)))
                   for name, of in (("wait", all_of), ("stopped", stopped))}


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--build", default="build")
    p.add_argument("--rounds", type=int, default=3)
    a = p.parse_args()
    for _ in range(a.rounds):
        for row in entries, returns:
            print(json.dumps({"row": row.__name__, "load": round(os.getloadavg()[0], 1)} | row(a.build)), flush=True)


main()
