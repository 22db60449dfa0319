# SPDX-License-Identifier: MIT
"""The tools, and how each is asked the same question: commands as one types them, and what reads the answer.

In a command PID, PROGRAM (its file), EVENT (a uprobe that perf added) and OUT (a file) stand for values of the run.
"""

import collections
import os
import re
import shutil
import subprocess

from . import parse

QUESTIONS = {
    "count": "count the calls",
    "wide": "count the calls of a function that begins with `lea` (most other instructions but `push`, for the kernel's uprobes)",
    "filter": "count the calls with one argument (1 of 4,096)",
    "hist": "histogram of an argument, by powers of two",
    "text": "a line of text for each call, with an argument",
    "record": "a record for each call, with an argument, in a file",
    "stacks": "count by call stack",
    "duration": "histogram of the calls' durations",
    "syscall": "count a system call (getppid)",
}
SHORT = {"wide": "count, lea", "text": "text", "stacks": "stacks", "duration": "durations"}

# how: attach, or perf (a uprobe is added first), gdb (the command is what gdb is told), fixed (gdb on the program that is not
# position-independent), launch (the tool starts the program), lttng (compiled in). after: what shows the result.
Way = collections.namedtuple("Way", "question tool command read function events how after", defaults=("work", False, "attach", ""))


def dynprobe(question, options, **more):
    return Way(question, "dynprobe", f"dynprobe --pid PID -q -f json -o OUT --no-record {options}", parse.dynprobe, **more)


def bpftrace(question, script, **more):
    return Way(question, "bpftrace", f"bpftrace -p PID -f json -o OUT -e '{script}'", parse.bpftrace, **more)


COUNT_TRACE = "babeltrace2 -c sink.utils.counter OUT"
PERF_SCRIPT = "perf script -i OUT -F event,ip --show-lost-events"

WAYS = [
    dynprobe("count", "--function work --count"),
    bpftrace("count", "uprobe:PROGRAM:work { @ = count(); }"),
    Way("count", "perf stat", "perf stat -x , -o OUT -e EVENT -p PID", parse.perf_stat, how="perf"),
    Way("count", "systemtap", "stap --runtime=bpf -x PID -o OUT -e 'global n; probe process(\"PROGRAM\").function(\"work\") { n++ } "
        "probe end { printf(\"%d\\n\", n) }'", parse.number_line),
    Way("count", "gdb breakpoint", "break *work\ncommands\nsilent\ncontinue\nend", parse.gdb_breakpoint, how="gdb"),
    Way("count", "ltrace", "ltrace -f -L -c -x work -p PID -o OUT", parse.call_table("work")),
    dynprobe("wide", "--function wide --count", function="wide"),
    bpftrace("wide", "uprobe:PROGRAM:wide { @ = count(); }", function="wide"),
    Way("wide", "gdb fast tracepoint", "set trace-buffer-size 67108864\nftrace *wide\ntstart", parse.gdb_tracepoint, function="wide", events=True, how="fixed"),
    dynprobe("filter", "--function work --when 'arg0 == 4095' --count"),
    bpftrace("filter", "uprobe:PROGRAM:work /arg0 == 4095/ { @ = count(); }"),
    Way("filter", "perf stat", "perf stat -x , -o OUT -e EVENT --filter 'a == 4095' -p PID", parse.perf_stat, how="perf"),
    Way("filter", "gdb breakpoint", "break *work if $edi == 4095\ncommands\nsilent\ncontinue\nend", parse.gdb_breakpoint, how="gdb"),
    dynprobe("hist", "--function work --hist arg0"),
    bpftrace("hist", "uprobe:PROGRAM:work { @ = hist(arg0); }"),
    Way("text", "dynprobe", "dynprobe --pid PID -o OUT --no-record --buffer-size 16M --function work -t reg:rdi", parse.dynprobe_lines, events=True),
    Way("text", "bpftrace", "bpftrace -p PID -o OUT -e 'uprobe:PROGRAM:work { printf(\"%d\\n\", arg0); }'", parse.bpftrace_lines, events=True),
    Way("text", "gdb dprintf", 'dprintf *work,"hit %d\\n",$edi', parse.gdb_lines, events=True, how="gdb"),
    Way("text", "ltrace", "ltrace -f -L -x work -p PID -o OUT", parse.called("work"), events=True),
    Way("record", "dynprobe", "dynprobe --pid PID -f ctf --record OUT --buffer-size 16M --function work -t reg:rdi", parse.dynprobe_trace, events=True,
        after=COUNT_TRACE),
    Way("record", "LTTng, compiled in", "lttng enable-event -u bench:wanted", parse.babeltrace, function="traced", events=True, how="lttng",
        after=COUNT_TRACE),
    Way("record", "perf record", "perf record -q -m 16M -o OUT -e EVENT -p PID", parse.perf_script, events=True, how="perf", after=PERF_SCRIPT),
    Way("record", "uftrace", "uftrace record -d OUT --no-libcall --no-event -P ^work$ PROGRAM", parse.uftrace, events=True, how="launch",
        after="uftrace report -d OUT"),
    dynprobe("stacks", "--function work --count --by backtrace"),
    bpftrace("stacks", "uprobe:PROGRAM:work { @[ustack] = count(); }"),
    Way("stacks", "perf record -g", "perf record -q -g -m 16M -o OUT -e EVENT -p PID", parse.perf_script, events=True, how="perf", after=PERF_SCRIPT),
    dynprobe("duration", "--return work --hist duration"),
    bpftrace("duration", "uprobe:PROGRAM:work { @t[tid] = nsecs; } uretprobe:PROGRAM:work /@t[tid]/ { @ = hist(nsecs - @t[tid]); delete(@t[tid]); }"),
    dynprobe("syscall", "--syscall getppid --count", function="getppid"),
    bpftrace("syscall", "tracepoint:syscalls:sys_enter_getppid /pid == PID/ { @ = count(); }", function="getppid"),
    Way("syscall", "perf stat", "perf stat -x , -o OUT -e syscalls:sys_enter_getppid -p PID", parse.perf_stat, function="getppid"),
    Way("syscall", "strace", "strace -f -c -e trace=getppid -p PID -o OUT", parse.call_table("getppid"), function="getppid"),
]

KINDS = {"work": ("bare", "work"), "wide": ("wide_bare", "wide"), "traced": ("bare", "traced"), "getppid": ("none", "getppid")}

# The program of each tool, its package in Debian, whether it needs root, and how it says its version.
Tool = collections.namedtuple("Tool", "program package root version", defaults=("--version",))
TOOLS = {
    "bpftrace": Tool("bpftrace", "bpftrace", True),
    "perf": Tool("perf", "linux-perf", True),
    "uftrace": Tool("uftrace", "uftrace", False),
    "LTTng": Tool("lttng", "lttng-tools", True),
    "gdb": Tool("gdb", "gdb", False),
    "gdb fast tracepoint": Tool("gdbserver", "gdbserver", False),
    "ltrace": Tool("ltrace", "ltrace", False),
    "strace": Tool("strace", "strace", False, "-V"),
    "systemtap": Tool("stap", "systemtap", True),
}


def tool_of(name):
    """The row of TOOLS with the longest name that `name` begins with; None for dynprobe."""
    return max((t for t in TOOLS if name.startswith(t)), key=len, default=None)


def fill(command, **values):
    """The words of a command with the values in place."""
    pattern = re.compile(r"\b(" + "|".join(values) + r")\b") if values else None
    return [pattern.sub(lambda m: str(values[m[1]]), word) if pattern else word for word in split(command)]


def split(command):
    """As a shell does, for quotes of the one kind that the table uses."""
    return [quoted or word for quoted, word in re.findall(r"'([^']*)'|(\S+)", command)]


def missing(name):
    """Why a tool cannot be tried on this machine, or None."""
    tool = TOOLS.get(tool_of(name))
    if not tool:
        return None
    if not shutil.which(tool.program):
        return f"not installed (Debian's package {tool.package})"
    return "needs root" if tool.root and os.geteuid() != 0 else None


def version(name):
    tool = TOOLS[name]
    said = subprocess.run([tool.program, tool.version], capture_output=True, text=True, check=False, timeout=20)
    found = re.search(r"\d+\.\d+(?:\.\w+)*", said.stdout + said.stderr)
    return found[0] if found else "?"
