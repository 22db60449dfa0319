#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Draws the README's picture: a terminal in which dynprobe is used on the demo server. Everything below a command is what it printed.

usage: draw-session.py [--build DIRECTORY] [-o FILE.svg]      (a finished build; default: build, docs/session.svg)
"""

import argparse
import html
import os
import pathlib
import re
import shlex
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
COLUMNS = 110
SIZE, LINE, MARGIN = 14, 19, 18
NBSP = "\u00a0"  # renderers join other spaces
CHARACTER = SIZE * 0.6  # of every usual monospaced font
# What is asked, and how many lines of the answer are shown.
COMMANDS = (
    ("--function handle_request -t 'request->verb' -t 'request->operand' -t backtrace -n 1", 10),
    ("--function compute --when 'verb == 2 && operand > 900' -t verb -t operand -n 2", 6),
    ("--return handle_request --hist duration -d 2s", 16),
)
STYLE = """
.page { fill: #ffffff; stroke: #d0d7de } text { fill: #1f2328 } .command { fill: #116329; font-weight: 600 } .faint { fill: #6e7781 }
.bold { font-weight: 600 } .red { fill: #cf222e } .green { fill: #116329 } .yellow { fill: #7d4e00 } .blue { fill: #0969da } .magenta { fill: #8250df } .cyan { fill: #1b7c83 }
@media (prefers-color-scheme: dark) {
.page { fill: #0d1117; stroke: #30363d } text { fill: #e6edf3 } .command { fill: #7ee787 } .faint { fill: #8b949e }
.red { fill: #ff7b72 } .green { fill: #7ee787 } .yellow { fill: #e3b341 } .blue { fill: #79c0ff } .magenta { fill: #d2a8ff } .cyan { fill: #76e3ea }
}
"""
SGR = {"1": "bold", "2": "faint", "31": "red", "32": "green", "33": "yellow", "34": "blue", "35": "magenta", "36": "cyan", "90": "faint"}


def answers(build):
    """Runs the commands on a server of their own; yields each command with its lines."""
    server = subprocess.Popen([build / "demo" / "server", "3", "60"], stdout=subprocess.PIPE, text=True)
    try:
        server.stdout.readline()
        for words, most in COMMANDS:
            shown = f"dynprobe --pid {server.pid} {words}"
            command = [build / "dynprobe", "--pid", str(server.pid), "--color", "always", *shlex.split(words)]
            done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=60, env=dict(os.environ, COLUMNS=str(COLUMNS)))
            lines = done.stdout.rstrip("\n").split("\n")
            if done.returncode or not lines[0]:
                sys.exit(f"{shown}: status {done.returncode}\n{done.stdout}{done.stderr}")
            yield shown, lines[:most] + ["..."] * (len(lines) > most)
    finally:
        server.terminate()
        server.wait()


def spans(line):
    """A line's pieces as (class, text), cut at the terminal's width."""
    classes, room = [], COLUMNS
    for text, codes in re.findall(r"([^\x1b]*)(?:\x1b\[([\d;]*)m)?", line):
        piece, room = text[:room], room - len(text[:room])
        if piece:
            yield " ".join(classes), piece
        for code in codes.split(";") if codes else ():
            classes = classes + [SGR[code]] if code in SGR else []


def row(y, pieces):
    out, x = [], MARGIN
    for name, text in pieces:
        mark = f' class="{name}"' if name else ""
        shown = html.escape(text, quote=False).replace(" ", NBSP)
        out.append(f'<tspan x="{x:.1f}"{mark}>{shown}</tspan>')
        x += len(text) * CHARACTER
    return f'<text y="{y}">{"".join(out)}</text>'


def picture(build):
    rows = []
    for command, lines in answers(build):
        if rows:
            rows.append([])
        rows.append([("faint", "$ "), ("command", command)])
        rows += [list(spans(line)) for line in lines]
    width, height = MARGIN * 2 + COLUMNS * CHARACTER, MARGIN * 2 + len(rows) * LINE
    body = "\n".join(row(MARGIN + SIZE + i * LINE, pieces) for i, pieces in enumerate(rows) if pieces)
    return (f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:.0f} {height:.0f}" width="{width:.0f}" height="{height:.0f}" '
            f'font-family="ui-monospace, SFMono-Regular, Menlo, Consolas, \'DejaVu Sans Mono\', monospace" font-size="{SIZE}" role="img">\n'
            f"<title>dynprobe on a running server</title>\n<style>{STYLE}</style>\n"
            f'<rect class="page" x="0.5" y="0.5" width="{width - 1:.0f}" height="{height - 1:.0f}" rx="8"/>\n{body}\n</svg>\n')


def main():
    words = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    words.add_argument("--build", type=pathlib.Path, default=ROOT / "build")
    words.add_argument("-o", type=pathlib.Path, default=ROOT / "docs" / "session.svg")
    given = words.parse_args()
    given.o.write_text(picture(given.build.resolve()))


if __name__ == "__main__":
    main()
