# SPDX-License-Identifier: MIT
"""Runs inside gdb: prints all frames of all threads with their variables, in the lines of extract_dump."""
import re

import gdb

LIMIT = 128
TEXT = 256


def text(raw):
    out = []
    for b in raw:
        c = chr(b)
        out.append(c if 32 <= b < 127 and c not in '"\\' else "\\%03o" % b)
    return '"' + "".join(out) + '"'


def characters(value, t):
    low, high = t.range()
    count = high - low + 1
    if count <= 0:
        return '""'
    n = min(count, TEXT)
    raw = bytes(int(value[low + i]) & 0xFF for i in range(n))
    return text(raw.rstrip(b"\0"))


def part(value, field):
    """An error in one value must not lose the others."""
    try:
        return show(value[field])
    except gdb.error as e:
        return "<%s>" % e


def members(value, t):
    parts = []
    for field in t.fields():
        if not hasattr(field, "bitpos") and not field.is_base_class:
            continue  # a static member
        name = "base" if field.is_base_class else field.name or ""
        parts.append("%s = %s" % (name, part(value, field)))
    return "{" + ", ".join(parts) + "}"


def elements(value, t):
    low, high = t.range()
    count = high - low + 1
    if count <= 0:
        return "{}"
    n = min(count, LIMIT)
    return "{" + ", ".join(part(value, low + i) for i in range(n)) + ("..." if count > n else "") + "}"


def real(value, t):
    return ("%.9g" if t.sizeof == 4 else "%.17g") % float(value)


def is_char(t):
    return t.code in (gdb.TYPE_CODE_INT, gdb.TYPE_CODE_CHAR) and t.sizeof == 1 and "char" in str(t.unqualified())


def enumerator(value):
    shown = re.sub(r"^unknown: (0x[0-9a-f]+)$", lambda m: str(int(m.group(1), 16)), value.format_string().strip("()")).replace("unknown: ", "")
    return shown.split("::")[-1] if "|" not in shown else " | ".join(p.strip().split("::")[-1] for p in shown.split("|"))


def to_member(value):
    """A pointer to member: a member's name, or a function's address."""
    shown = re.sub(r"^\(.*::\*.*?\) (?=0x|&|NULL|-?\d)", "", value.format_string())
    return re.sub(r"^0x[0-9a-f]+ <(.*)>", r"\1", shown)


def show_typed(value, t, code):
    if code in (gdb.TYPE_CODE_MEMBERPTR, gdb.TYPE_CODE_METHODPTR):
        return to_member(value)
    if "nullptr" in str(t):
        return "0x%x" % int(value)
    if code in (gdb.TYPE_CODE_STRUCT, gdb.TYPE_CODE_UNION):
        return members(value, t) if t.fields() or t.sizeof else "?"
    if code == gdb.TYPE_CODE_ARRAY:
        if not t.sizeof:
            return '""' if is_char(t.target().strip_typedefs()) else "{}"
        return characters(value, t) if is_char(t.target().strip_typedefs()) else elements(value, t)
    if code == gdb.TYPE_CODE_BOOL:
        n = int(value)
        return {0: "false", 1: "true"}.get(n, str(n))
    if code in (gdb.TYPE_CODE_INT, gdb.TYPE_CODE_CHAR):
        return str(int(value)) if t.sizeof <= 8 else value.format_string()
    if code == gdb.TYPE_CODE_FLT:
        return real(value, t) if t.sizeof <= 8 else value.format_string()
    if code == gdb.TYPE_CODE_ENUM:
        return enumerator(value)
    if code == gdb.TYPE_CODE_PTR:
        return "0x%x" % int(value)
    if code in (gdb.TYPE_CODE_REF, gdb.TYPE_CODE_RVALUE_REF):
        return "0x%x" % int(value.referenced_value().address)
    return value.format_string(symbols=False)


def show(value):
    try:
        t = value.type.strip_typedefs()
        code = t.code
        if value.is_optimized_out and code not in (gdb.TYPE_CODE_STRUCT, gdb.TYPE_CODE_UNION, gdb.TYPE_CODE_ARRAY):
            return "<optimized out>"
        if code == gdb.TYPE_CODE_PTR and "synthetic pointer" in value.format_string():
            return "<synthetic pointer>"
        return show_typed(value, t, code)
    except gdb.error as e:
        return "<%s>" % e


CLOBBERED = re.compile(r"\$(r?[acd]x|[er]?[sd]i|r[89]|r1[01]|xmm\d+)\b")


def place_of(symbol, frame):
    """Where gdb says that the variable is."""
    frame.select()
    try:
        where = gdb.execute("info address " + symbol.name, to_string=True)
    except gdb.error:
        return ""
    lines, at = [], frame.pc() - 1
    inside = "Range" not in where
    for line in where.splitlines():
        m = re.search(r"Range (0x[0-9a-f]+)-(0x[0-9a-f]+)", line)
        if m:
            inside = int(m.group(1), 16) <= at < int(m.group(2), 16)
        if inside:
            lines.append(line)
    return "\n".join(lines)


PASSED = re.compile(r"entry_value[^\n]*(\n[^\n]*\$[^\n]*)?")


def marks(symbol, frame, called):
    """clobbered: said to be in a register that calls do not preserve, in a frame that has made a call; gdb shows the register's current value.
    passed: a copy's parameter, by the value that the function around it was passed; gdb reads that in the wrong frame."""
    place = place_of(symbol, frame)
    found = ["clobbered"] if called and CLOBBERED.search(PASSED.sub("", place)) else []
    return found + (["passed"] if PASSED.search(place) and frame.type() == gdb.INLINE_FRAME else [])


def is_object(symbol):
    """A parameter, or a variable that `info locals` prints; not a label, an enumerator or a type."""
    t = symbol.type
    if t is None or symbol.is_argument:
        return symbol.is_argument
    if str(t) == "__CORE_ADDR":
        return False  # a label
    if symbol.addr_class == gdb.SYMBOL_LOC_CONST:
        t = t.strip_typedefs()
        return not (t.code == gdb.TYPE_CODE_ENUM and symbol.name in [f.name for f in t.fields()])
    return symbol.is_variable or symbol.addr_class == gdb.SYMBOL_LOC_CONST_BYTES


def variables(frame, called):
    try:
        block = frame.block()
    except RuntimeError:
        return
    depth = 0
    while block:
        depth += 1
        for symbol in block:
            if not is_object(symbol):
                continue
            try:
                shown = show(symbol.value(frame))
            except (gdb.error, RuntimeError) as e:
                shown = "<%s>" % e
            print("V\t%d\t%s\t%s\t%s" % (symbol.is_argument, symbol.name, shown, " ".join(["block%d" % depth] + marks(symbol, frame, called))), flush=True)
        if block.function:
            break
        block = block.superblock


def is_called(frame, called):
    """Has the frame made a call since its registers had these values? In a frame interrupted by a signal all registers are known."""
    newer = frame.newer()
    if not newer or newer.type() == gdb.SIGTRAMP_FRAME:
        return False
    return called or newer.type() != gdb.INLINE_FRAME


LINES = {}


def lines_at(sal):
    """All rows of the line table that begin there."""
    if not sal.symtab or not sal.pc:
        return []
    if sal.symtab.filename not in LINES:
        table = LINES[sal.symtab.filename] = {}
        for row in sal.symtab.linetable():
            table.setdefault(row.pc, set()).add(row.line)
    return sorted(LINES[sal.symtab.filename].get(sal.pc, []))


def one_frame(frame, index, called):
    kind = {gdb.INLINE_FRAME: 1, gdb.TAILCALL_FRAME: 2}.get(frame.type(), 0)
    sal = frame.find_sal()
    path = sal.symtab.filename if sal.symtab else ""
    lines = " ".join(str(n) for n in lines_at(sal))
    print("F\t%d\t%d\t%x\t%s\t%s\t%d\t%s" % (index, kind, frame.pc(), frame.name() or "??", path, sal.line, lines))
    variables(frame, called)


def main():
    gdb.execute("set print symbol off")
    gdb.execute("set backtrace past-main on")
    gdb.execute("set backtrace past-entry on")
    for thread in sorted(gdb.selected_inferior().threads(), key=lambda t: t.ptid[1]):
        thread.switch()
        print("T\t%d\t" % thread.ptid[1])
        frame, index, called = gdb.newest_frame(), 0, False
        while frame:
            called = is_called(frame, called)
            one_frame(frame, index, called)
            index += 1
            try:
                frame = frame.older()
            except gdb.error:
                break


main()
