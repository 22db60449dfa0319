# SPDX-License-Identifier: MIT
"""What tools print, as answers that compare. Text in, values out: tests/peers checks these without any of the tools."""

import collections
import json
import re

VALUES = 4096  # loops.c: the argument counts from 0 to 4095, and again


class Answer(collections.namedtuple("Answer", "count lost buckets note", defaults=(None, 0, None, ""))):
    """What a tool claims: hits (None: it says nothing), hits that it says it lost, {lower bound: hits}, and a remark."""


def number(pattern, text):
    """The first group of a pattern as a number, 0 if it is not there."""
    found = re.search(pattern, text, re.MULTILINE)
    return int(found[1].replace(",", "")) if found else 0


def numbers(pattern, text):
    return sum(int(n) for n in re.findall(pattern, text, re.MULTILINE))


def merged(pairs):
    """An object: bpftrace writes a key twice if two stacks have the same names."""
    found = {}
    for key, value in pairs:
        found[key] = found[key] + value if key in found and isinstance(value, int) else value
    return found


def json_lines(text):
    for line in text.splitlines():
        try:
            yield json.loads(line, object_pairs_hook=merged)
        except ValueError:
            pass  # a message between the objects


# ---- what each tool prints ----


def dynprobe(text):
    """NDJSON with answers and a summary."""
    count, lost, buckets, recorded = None, 0, None, 0
    for line in json_lines(text):
        if line.get("type") == "answer" and line.get("final"):
            count = (count or 0) + line["hits"]
            for b in line.get("buckets", ()):
                buckets = buckets or {}
                buckets[b.get("from", 0)] = buckets.get(b.get("from", 0), 0) + b["hits"]
        elif line.get("type") == "summary":
            lost, recorded = line["lost"]["total"], line["recorded"]
    return Answer(recorded if count is None else count, lost, buckets)


def dynprobe_lines(text):
    """Events as text, and the summary."""
    return Answer(len(re.findall(r"^\S+ \S+\[\d+\] work: ", text, re.MULTILINE)), number(r"\blost (\d+) \(", text))


def bpftrace(text):
    """-f json: maps, histograms, and lost events."""
    count, lost, buckets = None, 0, None
    for line in json_lines(text):
        for value in line.get("data", {}).values() if line.get("type") in ("map", "hist") else ():
            if line["type"] == "hist":
                buckets = {b.get("min", 0): b["count"] for b in value if b["count"]}
                count = sum(buckets.values())
            else:
                count = (count or 0) + (sum(value.values()) if isinstance(value, dict) else value)
        if line.get("type") == "lost_events":
            lost += line["data"]["events"]
    return Answer(count, lost, buckets)


def bpftrace_lines(text):
    """printf("%d\\n")."""
    return Answer(len(re.findall(r"^\d+$", text, re.MULTILINE)), numbers(r"^Lost (\d+) events", text))


def perf_stat(text):
    """-x , : a line for each event."""
    found = re.findall(r"^(\d+),", text, re.MULTILINE)
    return Answer(sum(map(int, found)) if found else None)


def perf_script(text):
    """--show-lost-events: a line for each sample of the event `peers...:work`, and for each loss."""
    return Answer(len(re.findall(r"^.*\bpeers\d+:\w+:", text, re.MULTILINE)), numbers(r"PERF_RECORD_LOST.*?lost (\d+)", text))


def uftrace(text):
    """The report, and what `record` said at its end."""
    return Answer(numbers(r"^.*\s(\d+)\s+(?:work|f[12]\d{4})$", text), number(r"LOST (\d+) records", text))


def babeltrace(text):
    """sink.utils.counter: its last table."""
    last = text[max(text.rfind("Event message"), 0) - 30:]
    return Answer(number(r"^\s*([\d,]+) Event message", last), number(r"^\s*([\d,]+) Discarded event message", last),
                  note="" if "Event message" in last else "the trace cannot be read")


def dynprobe_trace(text):
    """The events in the trace; the losses that the summary on standard error says."""
    return babeltrace(text)._replace(lost=dynprobe_lines(text).lost)


def gdb_breakpoint(text):
    return Answer(numbers(r"breakpoint already hit (\d+) time", text))


def gdb_lines(text):
    return Answer(len(re.findall(r"^(?:\(gdb\) )*hit \d+$", text, re.MULTILINE)))


def gdb_tracepoint(text):
    """tstatus"""
    return Answer(number(r"(?:Collected|created) (\d+) (?:trace )?frames?", text))


def called(name):
    """Lines of ltrace or strace that show a call."""
    pattern = re.compile(r"(?:^|[\s\]>])" + name + r"(?:@[\w.-]+)?\(")
    return lambda text: Answer(sum(1 for line in text.splitlines() if pattern.search(line) and "resumed>" not in line))


def call_table(name):
    """-c of ltrace or strace: time, seconds, microseconds a call, calls, errors, name; and a total."""
    pattern = r"^\s*[\d.]+\s+[\d.]+\s+\d+\s+(\d+)\s+(?:\d+\s+)?" + name + r"(?:@\S+)?$"
    return lambda text: Answer(numbers(pattern, text))


def number_line(text):
    """A line with nothing but a number (stap's printf)."""
    found = re.search(r"^(\d+)$", text, re.MULTILINE)
    return Answer(int(found[1]) if found else None)


# ---- the truth ----


def powers(calls):
    """{lower bound: calls} of the arguments by powers of two, from the calls of each thread."""
    buckets = collections.Counter()
    for n in calls:
        for low in [0] + [1 << i for i in range(12)]:
            width = low or 1
            buckets[low] += n // VALUES * width + min(max(n % VALUES - low, 0), width)
    return {low: hits for low, hits in buckets.items() if hits}


def filtered(calls, value=VALUES - 1):
    """How often the argument had one value."""
    return sum(n // VALUES + (n % VALUES > value) for n in calls)


def verdict(answer, truth, buckets=None):
    """(equal?, in words); equal is None where the tool claims nothing."""
    if answer is None or answer.count is None:
        return None, answer.note if answer and answer.note else "no figure"
    if answer.note:
        return False, answer.note
    if answer.count + answer.lost != truth:
        said = f", {answer.lost:,} said lost" if answer.lost else ""
        return False, f"**{answer.count:,} of {truth:,}**{said}"
    if answer.buckets is not None and buckets is not None and answer.buckets != buckets:
        return False, "**buckets differ**"
    return True, f"equal, {answer.lost:,} of {truth:,} said lost" if answer.lost else "equal"
