#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Checks names that pages mention: tests, files and functions, and where links lead. usage: check-names.py [PAGE...]

Pages name tests in the last column of tables that are headed `test` or `tests`, and in paragraphs that begin with "Tests." or "Test:".
The notation: `FILE: name, name` for tests (or classes) of tests/e2e/test_FILE.py, `ROOM/TOPIC: name` for those of test_TOPIC.c
somewhere below tests/unit/ROOM; semicolons separate items, `all` means every test of a file, parentheses contain remarks.

Files are `DIRECTORY/NAME`, functions are `NAME()`. "`FILE`: `NAME()`" and "`NAME()` in `FILE`" say where a function is.

Links are checked in every page of the project, the rest in PAGES.
"""

import functools
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
PAGES = ("docs/guarantees.md", "docs/hazards.md", "docs/tour.md")
PARAGRAPH = re.compile(r"^\W*Tests?[.:]\W(.*?)(?=\n\s*\n|\n#|\Z)", re.MULTILINE | re.DOTALL)
E2E_TEST = re.compile(r"^class (\w+)|^ +def test_(\w+)", re.MULTILINE)
UNIT_TEST = re.compile(r"^[A-Z]\w*\(\w+, *(\w+)|^[A-Z_]+\((\w+)\)", re.MULTILINE) # Test(suite, name), and DEATH(name) of some macro
FILE = re.compile(r"`((?:\w[\w.-]*/)+(?:\w[\w-]*(?:\.[a-z]+)?)?)`")
FUNCTION = re.compile(r"`(\w+)\(\)`")
PLACES = (re.compile(r"`(?P<file>[\w/-]+\.[chS])`: `(?P<name>\w+)\(\)`"), re.compile(r"`(?P<name>\w+)\(\)` (?:in|of) `(?P<file>[\w/-]+\.[chS])`"))


def rooms():
    lines = (line.split() for line in (ROOT / "scripts" / "layers.txt").read_text().splitlines() if not line.startswith("#"))
    return [words[0] for words in lines if words]


# ---- tests ----


def cells(text):
    """The last column of tables of tests."""
    for table in re.findall(r"(?:^\|.*\n)+", text + "\n", re.MULTILINE):
        rows = [[cell.strip() for cell in line.strip("| ").split(" | ")] for line in table.splitlines()]
        if rows[0][-1] in ("test", "tests"):
            yield from (row[-1] for row in rows[2:] if len(row) == len(rows[0]))


def claims(text):
    """The tests that a page names, as (file, name or None)."""
    for said in [*cells(text), *(m.group(1) for m in PARAGRAPH.finditer(text))]:
        said = re.sub(r"\([^)]*\)|\*\*", "", said.replace("\n", " "))
        for item in re.split(r"\.(?:\s|$)", said)[0].split(";"):
            files, colon, names = item.partition(":")
            yield from claims_of([f.strip() for f in files.split(",")], [n.strip() for n in names.split(",")] if colon else ["all"])


def claims_of(files, names):
    for file in files:
        if not re.fullmatch(r"[\w/]+", file): # prose: "Every end-to-end test checks ..."
            return
        yield from ((file, None if name == "all" else name) for name in names)


@functools.lru_cache(None)
def tests_of(file):
    """The names of a file's tests, or None if there is no such file."""
    kind, path, found = "e2e/" + file, ROOT / "tests" / "e2e" / f"test_{file}.py", E2E_TEST
    if "/" in file:
        kind = "unit/" + file.removeprefix("unit/")
        room, topic = pathlib.Path(kind).parts[1:3]
        path, found = next((ROOT / "tests" / "unit" / room).rglob(f"test_{topic}.c"), ROOT / kind), UNIT_TEST
    if path.exists():
        return {name for groups in found.findall(path.read_text()) for name in groups if name}
    return set() if any(f"add_test(NAME {kind} " in lists.read_text() for lists in ROOT.glob("tests/*/CMakeLists.txt")) else None


def wrong_tests(text):
    for file, name in dict.fromkeys(claims(text)):
        tests = tests_of(file)
        if tests is None:
            yield f"no test file {file}"
        elif name and name.removeprefix("test_") not in tests:
            yield f"no test {file}: {name}"


# ---- files and functions ----


@functools.lru_cache(None)
def functions():
    """Every name in product code that is called or defined."""
    return {name for room in rooms() for path in (ROOT / room).rglob("*.[chS]") for name in re.findall(r"(\w+)\(", path.read_text())}


def defines(path, name):
    """Does a function's definition begin there, or a label of assembly?"""
    return path.exists() and re.search(rf"^(?:\w[^;=\n]*\b)?{name}[(:]", path.read_text(), re.MULTILINE)


def wrong_code(text):
    yield from (f"no file {name}" for name in dict.fromkeys(FILE.findall(text)) if name.split("/")[0] in rooms() and not (ROOT / name).exists())
    yield from (f"no function {name}()" for name in dict.fromkeys(FUNCTION.findall(text)) if name not in functions())
    for place in (match for pattern in PLACES for match in pattern.finditer(text)):
        if not defines(ROOT / place["file"], place["name"]):
            yield f"no function {place['name']}() in {place['file']}"


def wrong(page):
    text = (ROOT / page).read_text()
    if not FILE.search(text) and not any(claims(text)):
        yield "names nothing: has its notation changed?"
    yield from wrong_tests(text)
    yield from wrong_code(text)


# ---- links ----


def heads(path):
    """The anchors of a page's headings, as GitHub and GitLab make them."""
    found = re.findall(r"^#+ (.*)$", path.read_text(), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", re.sub(r"\[([^]]*)\]\([^)]*\)", r"\1", head).lower()).strip().replace(" ", "-") for head in found}


def wrong_links(page):
    text = re.sub(r"^```.*?^```|`[^`\n]*`", "", (ROOT / page).read_text(), flags=re.MULTILINE | re.DOTALL)
    for to, anchor in re.findall(r"\]\((?!\w+:)([^)#\s]*)(?:#([^)\s]*))?\)", text):
        path = (ROOT / page).parent / to if to else ROOT / page
        if not path.exists():
            yield f"no file {to}"
        elif anchor and path.suffix == ".md" and anchor not in heads(path):
            yield f"no heading {to}#{anchor}"


def every_page():
    return sorted(str(path.relative_to(ROOT)) for path in (*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md"), *(ROOT / "tests").rglob("*.md")))


def main(pages):
    lines = dict.fromkeys(f"  {page}: {what}" for page in pages or PAGES for what in wrong(page))
    lines.update(dict.fromkeys(f"  {page}: {what}" for page in pages or every_page() for what in wrong_links(page)))
    print("\n".join(lines), end="\n" if lines else "")
    return bool(lines)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
