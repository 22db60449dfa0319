# SPDX-License-Identifier: MIT
"""The environment of a program of programs.py: the same steps first undisturbed, and then with probes that come and go."""

import json
import os
import signal
import subprocess
import time

OWN_FAILURE = 125


class Mismatch(Exception):
    """The program's results differ."""


class Box:
    """`torture` is None for the reference run, otherwise the instrument's path."""

    def __init__(self, directory, torture=None, seed=1, batch=500, stay=40, options=(), timeout=600):
        self.dir, self.torture, self.seed, self.batch, self.stay = directory, torture, seed, batch, stay
        self.options, self.timeout = list(options), timeout
        self.runs = 0
        self.sums = []

    def path(self, name):
        return os.path.join(self.dir, name)

    def write(self, name, text):
        mode = "wb" if isinstance(text, bytes) else "w"
        with open(self.path(name), mode) as f:
            f.write(text)
        return self.path(name)

    def read(self, name):
        with open(self.path(name), "rb") as f:
            return f.read()

    # -- the instrument

    def torturing(self, seconds, *target):
        self.runs += 1
        run = self.path(f"run-{self.runs}")
        os.makedirs(run, exist_ok=True)
        self.seed += 1
        self.report, self.log = os.path.join(run, "report"), os.path.join(run, "log")
        return [self.torture, "--seconds", str(seconds), "--seed", str(self.seed), "--batch", str(self.batch), "--stay", str(self.stay),
                "--batches", run, "--report", self.report, "--log", self.log, *self.options, *target]

    def took(self, report):
        """Adds the instrument's report of one use."""
        if not os.path.exists(report):
            raise Mismatch(f"the instrument gave no report: see {os.path.dirname(report)}/log")
        with open(report) as f:
            self.sums.append(json.load(f))
        if self.sums[-1]["changed_bytes"] or self.sums[-1]["left_sites"]:
            raise Mismatch(f"text differs from its file after removal: see {os.path.dirname(report)}/log\n{self.told(report)}")

    @staticmethod
    def told(report):
        """The instrument's log: its entries, and its end."""
        with open(os.path.join(os.path.dirname(report), "log"), errors="replace") as f:
            lines = f.readlines()
        return "".join([x for x in lines if x.startswith(("TEXT DIFFERS", "removal:"))][:12] + ["...\n"] + lines[-12:])

    # -- programs that end by themselves

    def run(self, argv, stdin=None, env=None, cwd=None, seconds=3600, merge=False):
        """Runs a command to its end, launched by the instrument. Returns exit status, standard output, standard error."""
        argv = [str(a) for a in argv]
        if self.torture:
            argv = self.torturing(seconds, "--", *argv)
        with open(stdin or os.devnull, "rb") as given:
            p = subprocess.Popen(argv, stdin=given, stdout=subprocess.PIPE, stderr=subprocess.STDOUT if merge else subprocess.PIPE, cwd=cwd or self.dir,
                                 env=dict(os.environ, LC_ALL="C.UTF-8", **(env or {})), start_new_session=True)
        try:
            out, err = p.communicate(timeout=self.timeout)
        except subprocess.TimeoutExpired:
            os.killpg(p.pid, signal.SIGKILL)
            p.communicate()
            raise Mismatch(f"hangs: {' '.join(argv)}") from None
        if self.torture:
            self.took(self.report)
            if p.returncode == OWN_FAILURE:
                raise Mismatch(f"the instrument failed: see {self.log}")
        return p.returncode if p.returncode >= 0 else 128 - p.returncode, out, err

    # -- programs that serve until they are stopped

    def serve(self, argv, ready, **popen):
        with open(self.path("served"), "wb") as out:
            p = subprocess.Popen([str(a) for a in argv], stdin=subprocess.DEVNULL, stdout=out, stderr=subprocess.STDOUT, cwd=self.dir, **popen)
        end = time.monotonic() + 30
        while not ready():
            if p.poll() is not None or time.monotonic() > end:
                p.kill()
                raise Mismatch(f"{argv[0]} does not start: {self.read('served')[-500:]}")
            time.sleep(0.02)
        return p

    def attach(self, pid):
        """Runs the instrument on a process until detach()."""
        if not self.torture:
            return None
        p = subprocess.Popen(self.torturing(3600, "--pid", str(pid)), stdin=subprocess.DEVNULL)
        p.report = self.report
        return p

    def detach(self, p):
        if not p:
            return
        if p.poll() is None:
            p.send_signal(signal.SIGTERM)
        try:
            status = p.wait(60)
        except subprocess.TimeoutExpired:
            p.kill()
            p.wait()
            raise Mismatch("the instrument does not end") from None
        self.took(p.report)
        if status:
            raise Mismatch(f"the instrument failed with {status}: see {os.path.dirname(p.report)}/log")

    def end(self, p, sig=signal.SIGTERM):
        if p.poll() is None:
            p.send_signal(sig)
        try:
            return p.wait(30)
        except subprocess.TimeoutExpired:
            self.look_at(p.pid)
            p.kill()
            p.wait()
            raise Mismatch(f"{p.args[0]} does not end") from None

    def look_at(self, pid):
        """Writes the stacks of a program that does not end to the file `stuck`."""
        with open(os.path.join(self.dir, "stuck"), "w") as out:
            for args in (["sh", "-c", f"cat /proc/{pid}/task/*/status /proc/{pid}/task/*/syscall /proc/{pid}/timers /proc/{pid}/maps"],
                         ["gdb", "-q", "-nx", "-batch", "-p", str(pid), "-ex", "info registers", "-ex", "x/6i $pc", "-ex", "thread apply all bt 30"]):
                try:
                    subprocess.run(args, stdin=subprocess.DEVNULL, stdout=out, stderr=subprocess.STDOUT, timeout=60, check=False)
                except (OSError, subprocess.TimeoutExpired) as e:
                    out.write(f"{e}\n")
                out.flush()
