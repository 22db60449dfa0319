#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The table of docs/kernels.md from what the machines have said. usage: table.py DIR NAME...   (reads DIR/NAME.results)"""

import collections
import os
import re
import sys

LINE = re.compile(r"(ok|FAIL|late|skip) (\S+) (\S+) ")


def read(path):
    """The machine, and {topic: how many results of each kind}."""
    facts, topics = {}, collections.OrderedDict()
    with open(path, errors="replace") as f:
        for line in f:
            if m := LINE.match(line):
                topics.setdefault(m[2], collections.Counter())[m[1]] += 1
            elif m := re.match(r"(kernel|processor): (.*)", line):
                facts[m[1]] = m[2]
    return facts, topics


def cell(counts):
    if not counts:
        return "?"
    tried = counts["ok"] + counts["FAIL"] + counts["late"]
    words = [f"**{counts['FAIL']} of {tried} fail**"] * bool(counts["FAIL"]) + [f"{counts['late']} of {tried} late"] * bool(counts["late"])
    return ", ".join(words) or ("ok" if tried else "–")


def row(cells):
    return "| " + " | ".join(cells) + " |"


def main():
    directory, names = sys.argv[1], sys.argv[2:]
    found = {name: read(os.path.join(directory, name + ".results")) for name in names}
    topics = list(collections.OrderedDict.fromkeys(t for _, counted in found.values() for t in counted))
    print(row(["", *names]))
    print(row(["---"] * (len(names) + 1)))
    for topic in topics:
        print(row([topic, *(cell(found[name][1].get(topic)) for name in names)]))
    total = {name: sum((found[name][1][t] for t in found[name][1]), collections.Counter()) for name in names}
    print(row(["passed, failed, late, skipped", *(f"{c['ok']}, {c['FAIL']}, {c['late']}, {c['skip']}" for c in total.values())]))
    print()
    for name in names:
        print(f"- {name}: " + ", ".join(f"{k} {v}" for k, v in found[name][0].items()))


if __name__ == "__main__":
    main()
