# SPDX-License-Identifier: MIT
"""For gdb: single-steps the process STEPS times and writes a JSON line for each step to the file OUT: [is it at a ret, [[name, pc], ...]].
"""

import json
import os

import gdb

gdb.execute("set pagination off")
with open(os.environ["OUT"], "w") as out:
    inferior = gdb.selected_inferior()
    for step in range(int(os.environ["STEPS"])):
        gdb.execute("stepi", to_string=True)
        frames, frame = [], gdb.newest_frame()
        while frame and len(frames) < 20:
            frames.append([frame.name(), frame.pc()])
            frame = frame.older()
        at_ret = bytes(inferior.read_memory(frames[0][1], 1)) == b"\xc3"
        out.write(json.dumps([at_ret, frames]) + "\n")
