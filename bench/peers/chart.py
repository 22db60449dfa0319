# SPDX-License-Identifier: MIT
"""Bars on a logarithmic scale, as SVG that is readable on light and dark pages. Pure: groups of values in, text out."""

import html
import math

WIDTH, LEFT, RIGHT, LINE, BAR, HEAD = 860, 190, 90, 21, 13, 30

STYLE = """
text { font: 12px system-ui, -apple-system, "Segoe UI", "DejaVu Sans", sans-serif; fill: #24292f }
.title { font-size: 15px; font-weight: bold }
.group { font-weight: bold }
.note, .tick { font-size: 11px; fill: #57606a }
.tick { text-anchor: middle }
.name { text-anchor: end }
.back { fill: #ffffff }
.grid { stroke: #d8dee4 }
.ours { fill: #1f6feb }
.theirs { fill: #8c959f }
@media (prefers-color-scheme: dark) {
text { fill: #d7dde4 }
.note, .tick { fill: #9aa4af }
.back { fill: #14181d }
.grid { stroke: #333b44 }
.ours { fill: #58a6ff }
.theirs { fill: #6e7781 }
}
"""


def scale(values, least):
    """The decades that hold all values: exponents of the first and the last grid line. Values below `least` count as that."""
    found = [max(v, least) for v in values] or [least]
    low, high = math.floor(math.log10(min(found)) + 1e-9), math.ceil(math.log10(max(found)) - 1e-9)
    return low, max(high, low + 1)


def position(value, low, high):
    """0 at the first grid line, 1 at the last."""
    share = (math.log10(value) - low) / (high - low) if value > 0 else 0
    return min(max(share, 0), 1)


def duration(ns):
    """Two or three digits and a unit."""
    for limit, unit, name in ((1e3, 1, "ns"), (1e6, 1e3, "µs"), (1e9, 1e6, "ms")):
        if abs(ns) < limit * 0.9995:
            return f"{digits(ns / unit)} {name}"
    return f"{digits(ns / 1e9)} s"


def digits(value):
    return f"{value:.0f}" if abs(value) >= 99.5 else f"{value:.1f}" if abs(value) >= 0.95 else f"{value:.2f}"


def bars(title, groups, notes, least):
    """groups: [(heading, [(name, nanoseconds, ours)])]; notes: lines below."""
    values = [ns for _, rows in groups for _, ns, _ in rows]
    low, high = scale(values, least)
    top = 62
    bottom = top + sum(HEAD + LINE * len(rows) for _, rows in groups) + 6
    height = bottom + 14 + 16 * len(notes)
    lines = [f'<svg xmlns="http://www.w3.org/2000/svg" role="img" viewBox="0 0 {WIDTH} {height}">',
             "<!-- SPDX-License-Identifier: MIT. Made by bench/run_peers.py. -->", f"<title>{html.escape(title)}</title>", f"<style>{STYLE}</style>",
             '<rect class="back" width="100%" height="100%" rx="8"/>', f'<text class="title" x="14" y="26">{html.escape(title)}</text>']
    lines += grid(low, high, top, bottom)
    y = top
    for heading, rows in groups:
        lines.append(f'<text class="group" x="14" y="{y + 20}">{html.escape(heading)}</text>')
        y += HEAD
        for row in rows:
            lines += bar(row, y, low, high)
            y += LINE
    lines += [f'<text class="note" x="14" y="{bottom + 14 + 16 * i}">{html.escape(note)}</text>' for i, note in enumerate(notes)]
    return "\n".join(lines + ["</svg>", ""])


def x_of(value, low, high):
    return round(LEFT + (WIDTH - LEFT - RIGHT) * position(value, low, high), 1)


def grid(low, high, top, bottom):
    for exponent in range(low, high + 1):
        x = x_of(10 ** exponent, low, high)
        yield f'<path class="grid" d="M{x} {top}V{bottom - 6}"/>'
        yield f'<text class="tick" x="{x}" y="{top - 8}">{tick(exponent)}</text>'


def tick(exponent):
    """A power of ten nanoseconds."""
    unit = min(max(exponent // 3, 0), 3)
    power = exponent - 3 * unit
    return f"{10 ** power if power >= 0 else round(10.0 ** power, -power)} {('ns', 'µs', 'ms', 's')[unit]}"


def bar(row, y, low, high):
    name, ns, ours = row
    x = max(x_of(ns, low, high), LEFT + 2)
    yield f'<text class="name" x="{LEFT - 8}" y="{y + 11}">{html.escape(name)}</text>'
    yield f'<rect class="{"ours" if ours else "theirs"}" x="{LEFT}" y="{y}" width="{round(x - LEFT, 1)}" height="{BAR}" rx="2"/>'
    yield f'<text x="{x + 6}" y="{y + 11}">{duration(ns)}</text>'
