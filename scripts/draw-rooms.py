#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Draws docs/rooms.svg: the rooms of scripts/layers.txt, highest on top, and which room includes headers of which.

    scripts/draw-rooms.py            writes docs/rooms.svg
    scripts/draw-rooms.py --check    exits with 1 if docs/rooms.svg is out of date

An arrow's width shows the number of includes in a few classes, so that the picture changes with the structure, not with every include.
"""

import collections
import html
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
PICTURE = ROOT / "docs" / "rooms.svg"
INCLUDE = re.compile(r'^[ \t]*#[ \t]*include[ \t]*"([^"/]+)/', re.MULTILINE)

# From this many includes on an arrow is so wide.
CLASSES = ((1, 1.2), (4, 2.2), (16, 3.6), (64, 5.4))
COLOURS = ("#7f8c99", "#c2571a", "#2e8b57", "#b8860b", "#3b7dd8", "#9b59b6", "#c0392b", "#138d90", "#8a6d3b", "#5d6dc4")
WIDTH, LEFT, BOX, GAP, PORT = 900, 10, 600, 12, 10
CHARACTER, PILL, LINE = 6.7, 20, 26  # of the folders' names: one character, a name's box, a row of them

STYLE = """
text { font: 11px ui-monospace, Menlo, Consolas, "DejaVu Sans Mono", monospace; fill: #24292f }
.room { font-weight: bold; font-size: 14px }
.back { fill: #ffffff }
.box { fill: #f3f5f7; stroke-width: 2 }
.folder { fill: #ffffff; stroke: #b5bdc6 }
.arrow { fill: none; stroke-opacity: 0.85 }
@media (prefers-color-scheme: dark) {
text { fill: #d7dde4 }
.back { fill: #14181d }
.box { fill: #1d232a }
.folder { fill: #29313a; stroke: #55606c }
}
"""


def read_layers():
    """The rooms, lowest first: a name and its folders, lowest first."""
    lines = (line.split() for line in (ROOT / "scripts" / "layers.txt").read_text().splitlines() if not line.startswith("#"))
    return [(words[0], words[1:]) for words in lines if words]


def count_includes(rooms):
    """How many lines of one room include a header of another one: {(from, to): number}."""
    count = collections.Counter()
    for room in rooms:
        for path in (ROOT / room).rglob("*.[chS]"):
            count.update((room, to) for to in INCLUDE.findall(path.read_text()) if to in rooms and to != room)
    return count


def rows_of(room, folders):
    """The folders' names in rows that fit into a box: [[(x, width, name)]]."""
    rows, x = [[]], LEFT + 12
    for folder in folders:
        name = room + "/" if folder == "." else folder
        width = round(len(name) * CHARACTER + 12)
        if x + width > LEFT + BOX - 12:
            rows, x = rows + [[]], LEFT + 12
        rows[-1].append((x, width, name))
        x += width + 6
    return rows


def place(layers):
    """Each room's top and height, highest room first: {room: (top, height)}."""
    places, top = {}, 10
    for room, folders in reversed(layers):
        height = max(32 + LINE * len(rows_of(room, folders)), PORT * len(layers) + 8)
        places[room] = (top, height)
        top += height + GAP
    return places


def ports(layers, places, arrows):
    """Where arrows leave and arrive: {(from, to): (y, y)}. What arrives is above what leaves, and long arrows are outside of short ones."""
    rank = {room: i for i, (room, _) in enumerate(layers)}
    ends = {}
    for room, (top, height) in places.items():
        into = sorted((a for a in arrows if a[1] == room), key=lambda a: rank[a[0]])
        out = sorted((a for a in arrows if a[0] == room), key=lambda a: rank[a[1]])
        y = top + (height - PORT * (len(into) + len(out) - 1)) / 2
        for i, arrow in enumerate(into + out):
            ends[arrow, room] = round(y + PORT * i, 1)
    return {a: (ends[a, a[0]], ends[a, a[1]]) for a in arrows}


def class_of(number):
    return max(i for i, (least, _) in enumerate(CLASSES) if number >= least)


def words_of(index):
    least = CLASSES[index][0]
    return f"{least} or more" if index + 1 == len(CLASSES) else f"{least} to {CLASSES[index + 1][0] - 1}"


def draw_room(room, folders, at, colour):
    top, height = at
    yield f'<rect class="box" x="{LEFT}" y="{top}" width="{BOX}" height="{height}" rx="6" stroke="{colour}"/>'
    yield f'<text class="room" x="{LEFT + 12}" y="{top + 20}">{html.escape(room)}</text>'
    for i, row in enumerate(rows_of(room, folders)):
        y = top + 30 + LINE * i
        for x, width, name in row:
            yield f'<rect class="folder" x="{x}" y="{y}" width="{width}" height="{PILL}" rx="4"/>'
            yield f'<text x="{x + 6}" y="{y + 14}">{html.escape(name)}</text>'


def draw_arrow(arrow, number, ends, reach, colour):
    """A curve to the right of the boxes; reach, from 0 to 1, is how far out it goes."""
    x, (start, end), kind = LEFT + BOX, ends, class_of(number)
    width, out = CLASSES[kind][1], round(x + 50 + 310 * reach)
    tip, half = x + 3, 2.5 + width
    base = tip + 2 * half
    yield f"<g><title>{arrow[0]} includes headers of {arrow[1]}: {words_of(kind)} lines</title>"
    yield f'<path class="arrow" d="M{x} {start}C{out} {start} {out} {end} {base:g} {end}" stroke="{colour}" stroke-width="{width}"/>'
    yield f'<path d="M{tip} {end}L{base:g} {end - half:g}V{end + half:g}Z" fill="{colour}"/></g>'


def draw_legend(y):
    yield f'<text x="{LEFT}" y="{y}">An arrow: one room includes headers of another. Colour: the room that includes. Width: how many #include lines.</text>'
    yield f'<text x="{LEFT}" y="{y + 20}">A room includes only rooms below it, a folder only folders to its left or above.</text>'
    for i, (_, width) in enumerate(CLASSES):
        x = LEFT + 110 * i
        yield f'<path class="arrow" d="M{x} {y + 38}h30" stroke="{COLOURS[0]}" stroke-width="{width}"/>'
        yield f'<text x="{x + 36}" y="{y + 42}">{words_of(i)}</text>'


def draw_arrows(layers, places, colour):
    rank = {room: i for i, (room, _) in enumerate(layers)}
    count = count_includes(rank)
    ends = ports(layers, places, sorted(count))
    reach = {a: abs(rank[a[0]] - rank[a[1]]) / (len(rank) - 1) for a in count}
    for arrow in sorted(count, key=lambda a: (reach[a], a), reverse=True):
        yield from draw_arrow(arrow, count[arrow], ends[arrow], reach[arrow], colour[arrow[0]])


def draw():
    layers = read_layers()
    places = place(layers)
    colour = {room: COLOURS[i % len(COLOURS)] for i, (room, _) in enumerate(layers)}
    bottom = max(top + height for top, height in places.values()) + 26
    head = f'<svg xmlns="http://www.w3.org/2000/svg" role="img" viewBox="0 0 {WIDTH} {bottom + 54}">'
    lines = [head, "<!-- SPDX-License-Identifier: MIT. Made by scripts/draw-rooms.py. -->", "<title>The rooms of dynprobe</title>", f"<style>{STYLE}</style>",
             '<rect class="back" width="100%" height="100%" rx="8"/>']
    lines += draw_arrows(layers, places, colour)
    for room, folders in reversed(layers):
        lines += draw_room(room, folders, places[room], colour[room])
    return "\n".join(lines + list(draw_legend(bottom)) + ["</svg>", ""])


def main(arguments):
    if arguments not in ([], ["--check"]):
        return __doc__
    picture = draw()
    if not arguments:
        PICTURE.write_text(picture)
    elif not PICTURE.exists() or PICTURE.read_text() != picture:
        return "docs/rooms.svg does not show the rooms as they are: run scripts/draw-rooms.py and commit the picture"
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
