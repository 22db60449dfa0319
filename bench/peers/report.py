# SPDX-License-Identifier: MIT
"""docs/peers.md and its two charts from what a run has measured. Pure: the measurements in, text out."""

import statistics

from . import chart
from .tools import QUESTIONS

CHARTED = {"count": "Count calls", "filter": "Count calls with one argument of 4,096", "hist": "Histogram of an argument", "text": "A line of text for each call",
           "record": "A record in a file for each call", "stacks": "Count by call stack", "duration": "Histogram of durations"}


def good(rounds):
    return [r for r in rounds if "failed" not in r]


def spread(values, show):
    """The median, and the least and most where there are several."""
    if not values:
        return "–"
    middle = show(statistics.median(values))
    ends = [show(min(values)), show(max(values))]
    return middle if len(values) == 1 or ends[0] == ends[1] else f"{middle} ({ends[0]}–{ends[1]})"


def costs(row, threads):
    """JSON has made the numbers of threads strings."""
    return [cost for r in good(row["rounds"]) if (cost := {int(k): v for k, v in r["cost"].items()}.get(threads)) is not None]


def answer(row):
    """What is worst of all rounds, with all remarks."""
    rounds = good(row["rounds"])
    wrong = [r["answer"] for r in rounds if r["equal"] is False]
    said = wrong[:1] or sorted({r["answer"] for r in rounds}, key=len)[-1:]
    notes = list(dict.fromkeys(note for r in rounds for note in r["notes"]))
    return "; ".join(said + notes)


def table(head, rows):
    return "\n".join("| " + " | ".join(cells) + " |" for cells in (head, ["---"] * len(head), *rows))


def times(row, ours):
    """How many times dynprobe's cost; only a bound where that is too small to divide by."""
    mine, theirs = (statistics.median(costs(r, 1) or [0]) if r else 0 for r in (ours, row))
    if row is ours or not theirs or not ours:
        return ""
    ratio = float(f"{theirs / max(mine, 0.5):.2g}")
    return f"{'> ' if mine < 0.5 else ''}{ratio:,.0f} ×" if ratio >= 10 else f"{ratio:.1f} ×"


def hit_rows(hits):
    for question, words in QUESTIONS.items():
        rows = [row for row in hits if row["question"] == question and good(row["rounds"])]
        ours = next((row for row in rows if row["tool"] == "dynprobe"), None)
        for i, row in enumerate(rows):
            yield [words if i == 0 else "", row["tool"], spread(costs(row, 1), chart.duration), spread(costs(row, 8), chart.duration), times(row, ours),
                   answer(row)]


def of(row, key):
    return [r[key] for r in good(row["rounds"]) if key in r]


def ms(value):
    return chart.duration(value * 1e6)


def place_rows(places):
    for row in places:
        if row.get("not_tried"):
            yield [row["tool"], f"{row['places']:,}", "", "", "", "", "", row["not_tried"]]
        elif good(row["rounds"]):
            yield [row["tool"], f"{row['places']:,}", spread(of(row, "armed_ms"), ms), spread(of(row, "pause_ms"), ms), spread(of(row, "removed_ms"), ms),
                   spread(of(row, "pause_removed_ms"), ms), spread(of(row, "cost"), chart.duration), answer(row)]
        else:
            yield [row["tool"], f"{row['places']:,}", "", "", "", "", "", row["rounds"][0]["failed"]]


def redis_rows(redis):
    for row in redis:
        if good(row["rounds"]):
            alone, probed = of(row, "alone"), of(row, "probed")
            share = [100 * p / a for a, p in zip(alone, probed)]
            yield [row["tool"], spread(alone, thousands), spread(probed, thousands), spread(share, lambda v: f"{v:.3g} %"), answer(row)]


def thousands(value):
    return f"{value / 1000:.3g}k" if value < 1e6 else f"{value / 1e6:.2f}M"


def quiet(places):
    """The longest gaps of the program alone, in the moments before each attach."""
    return [v for row in places for v in of(row, "quiet_ms")]


def under_charts(data):
    versions = ", ".join(f"{tool} {version}" for tool, version in data["versions"].items())
    machine = data["machine"][:1].upper() + data["machine"][1:]
    return [f"{machine}; {data['date']}, median of {data['rounds']} round{'s' if data['rounds'] != 1 else ''}.", f"{versions}."]


def marked(row):
    """A bar whose answer was wrong says so."""
    return " (wrong count)" if any(r["equal"] is False for r in good(row["rounds"])) else ""


def cost_chart(data):
    groups = []
    for question, words in CHARTED.items():
        rows = [(row["tool"] + marked(row), statistics.median(costs(row, 1)), row["tool"] == "dynprobe") for row in data["hits"]
                if row["question"] == question and costs(row, 1)]
        groups += [(words, sorted(rows, key=lambda row: row[1]))] if rows else []
    notes = ["What one call of a probed function costs more, one thread, logarithmic scale. Uprobes (bpftrace, perf) have their fast case here: a push.",
             *under_charts(data)]
    return chart.bars("Cost of a hit", groups, notes, 0.5)


def pause_chart(data):
    groups = []
    for n in sorted({row["places"] for row in data["places"]}):
        rows = [(row["tool"], statistics.median(of(row, "pause_ms")) * 1e6, row["tool"] == "dynprobe") for row in data["places"]
                if row["places"] == n and of(row, "pause_ms") and not row["tool"].startswith("floor")]
        groups += [(f"{n:,} place{'s' if n > 1 else ''}", sorted(rows, key=lambda row: row[1]))] if rows else []
    alone = quiet(data["places"])
    if alone:
        floors = [("all threads stopped once", statistics.median(of(row, "pause_ms")) * 1e6, False) for row in data["places"]
                  if row["tool"].startswith("floor") and of(row, "pause_ms")]
        groups.insert(0, ("Nothing attached", [("the program alone", statistics.median(alone) * 1e6, False), *floors]))
    notes = ["The longest time that a thread that never rests did not run while a tool attached, logarithmic scale.", *under_charts(data)]
    return chart.bars("Longest pause of the program at attach", groups, notes, 10000)


def page(data):
    """docs/peers.md"""
    return PAGE.format(
        date=data["date"], machine=data["machine"], rounds="one round" if data["rounds"] == 1 else f"{data['rounds']} rounds", versions=", ".join(f"{t} {v}" for t, v in data["versions"].items()),
        bare=chart.duration(data["bare_ns"]), quiet=spread(quiet(data["places"]), ms),
        hits=table(["what", "tool", "1 thread", "8 threads", "1 thread, times dynprobe", "its answer"], hit_rows(data["hits"])),
        places=table(["tool", "places", "armed after", "longest pause", "removed after", "longest pause then", "a hit", "its answer"],
                     place_rows(data["places"])),
        redis=table(["tool", "SETs a second without", "with", "share", "its answer"], redis_rows(data["redis"])),
        skipped="\n".join(f"- {name}: {why}" for name, why in data["skipped"].items()) or "- none",
        commands="\n".join(commands(data)))


def commands(data):
    for row in data["hits"] + data["redis"]:
        where = QUESTIONS[row["question"]] if "question" in row else f"redis: {row['tool']}"
        yield f"- {where}: `" + row["command"].replace("\n", "` `") + "`"


PAGE = """# dynprobe beside its peers

This page answers: what do other tools cost for the same question, on the same program, in the same run? `make bench-peers` writes it.
Every tool is asked as its users ask it; [the commands](#the-commands) are below.

Measured {date} on {machine}; {rounds}: the median, then the least and the most. {versions}. Differences of a nanosecond are noise.

![Cost of a hit](peers-cost.svg)

![Longest pause at attach](peers-pause.svg)

## One hit

The program calls a function in a loop and, in turn, an equal function that no tool probes, five milliseconds each (`bench/peers/loops.c`). A
figure is the difference of the two, by the clock, times the processors that its threads could use, less what it was before the tool came
and after it had gone. So it contains what tools do on other processors and while the program is stopped. An unprobed call takes {bare}.

- The function begins with `push`, which the kernel emulates: the fast case of its uprobes (bpftrace, perf). `lea` is the other case: most instructions
  are single-stepped, which is slow on virtual machines above all.
- Tools that write an event for each call get bursts of at most 40,000 calls (text: 10,000), with 8 threads a quarter of that from each, and rests
  in between, with buffers of 16 MiB or more: this is the cost of kept events, not a rate that a tool can keep up.
- *Its answer* is compared with the program's own count. *Equal* means count and lost together are exactly the truth, and buckets where there are
  some. A histogram of durations has no truth but its number.
- uftrace records entry and exit, and can only start programs. LTTng's tracepoint is compiled in; its reference is the same without a session.

{hits}

## Attaching and detaching

A thread of the program reads the clock without rest; seven others sleep. A *pause* is the longest time that this thread did not run, less
what it waited for a processor: {quiet} without any tool. *Armed* is when the last function's first byte had changed (strace: when it traced; uftrace: how
much later the program was ready), by the program's own eyes; *removed* is from Ctrl-C to the tool's end. The floor is `bench/stop_floor.c`. With 100
and more places the program has 20,000 functions, which begin with an instruction that uprobes single-step.

{places}

## redis-server

`redis-benchmark -P 16 -c 8 -t set` at a Unix socket, alone and with a probe at `processCommand`, in turn; client and server share the processors.

{redis}

## Not measured

{skipped}

## The commands

PID, PROGRAM, OUT (a file) and EVENT (a uprobe, as `perf probe -x` adds it) stand for values of the run. gdb's lines are followed by `continue`.

{commands}
"""
