# SPDX-License-Identifier: MIT
"""For gdb: at the first hit of some instructions of FUNCTIONS, prints one line of JSON with gdb's values of the variables there.

env FUNCTIONS="work fill" EVERY=3 ARGS=10 gdb -batch -nx -x gdb_values.py PROGRAM
"""

import json
import os

import gdb

MEMBERS = 2  # depth of structs


def scalar(value, type):
    if type.code == gdb.TYPE_CODE_ENUM:
        return str(value)
    if type.code == gdb.TYPE_CODE_BOOL:
        return bool(value)
    if type.code == gdb.TYPE_CODE_FLT:
        return {"float": float(value), "size": type.sizeof}
    if type.code == gdb.TYPE_CODE_PTR and type.target().strip_typedefs().code == gdb.TYPE_CODE_INT and type.target().sizeof == 1:
        return {"string": value.string(length=-1)[:64]}
    if type.code in (gdb.TYPE_CODE_INT, gdb.TYPE_CODE_CHAR, gdb.TYPE_CODE_PTR):
        return int(value)
    return None


def add(out, name, value, depth):
    type = value.type.strip_typedefs()
    if type.code in (gdb.TYPE_CODE_STRUCT, gdb.TYPE_CODE_UNION):
        for f in type.fields() if depth < MEMBERS else ():
            if not f.is_base_class and f.name:
                add(out, f"{name}_{f.name}", value[f], depth + 1)
        return
    try:
        if value.is_optimized_out:
            out[name] = "<optimized out>"
        else:
            said = scalar(value, type)
            if said is not None:
                out[name] = said
    except (gdb.error, gdb.MemoryError, UnicodeDecodeError):
        pass


def variables(frame):
    """Variables of the innermost function, inlined or not. Of variables with the same name only the inner one counts."""
    out, block = {}, frame.block()
    while block:
        for s in block:
            if (s.is_variable or s.is_argument) and s.name not in out and s.addr_class != gdb.SYMBOL_LOC_STATIC:
                mine = {}
                add(mine, s.name, s.value(frame), 0)
                out.setdefault(s.name, None)
                out.update(mine)
        if block.function:
            break
        block = block.superblock
    return {k: v for k, v in out.items() if v is not None}


def places(name, every):
    """Skips the first instruction: there gdb ignores the calling convention, and shows memory that the prologue has not written yet."""
    start = int(gdb.parse_and_eval(f"(unsigned long)&{name}"))
    block = gdb.block_for_pc(start)
    while not block.function or block.function.name != name:
        block = block.superblock
    code = gdb.selected_inferior().architecture().disassemble(block.start, block.end - 1)
    return [(i["addr"], f"{name}+{i['addr'] - start:#x}") for i in code[1::every]]


gdb.execute("set pagination off")
gdb.execute("set confirm off")
if os.environ.get("RANDOM"):
    gdb.execute("set disable-randomization off")
gdb.execute(f"set args {os.environ['ARGS']} > /dev/null")
gdb.execute("starti", to_string=True)
wanted = dict(p for f in os.environ["FUNCTIONS"].split() for p in places(f, int(os.environ["EVERY"])))
for address in wanted:
    gdb.Breakpoint(f"*{address}", internal=True, temporary=True)
while True:
    gdb.execute("continue", to_string=True)
    if not gdb.selected_inferior().pid:
        break
    frame = gdb.newest_frame()
    # At the start of an inlined function gdb shows the function around it.
    inner = gdb.block_for_pc(frame.pc())
    while inner and not inner.function:
        inner = inner.superblock
    if frame.pc() in wanted and inner and inner.function.name == frame.name():
        print("VALUES " + json.dumps({"site": wanted[frame.pc()], "address": frame.pc(), "values": variables(frame)}), flush=True)
