#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Extraction from programs whose debug information is damaged: it must end, soon, whatever it says.

damage.py --dump extract_dump --seconds 600 --seed 1 PROGRAM...    a seed that is named makes the same file again
"""
import argparse
import os
import random
import re
import subprocess
import tempfile
import time

LIMIT = 20.0  # seconds; a run takes a tenth of one


def sections(path):
    out = subprocess.run(["readelf", "-SW", path], stdout=subprocess.PIPE, text=True, check=True).stdout
    found = re.finditer(r"\] (\.\S+)\s+\S+\s+[0-9a-f]+ ([0-9a-f]+) ([0-9a-f]+)", out)
    return {m.group(1): (int(m.group(2), 16), int(m.group(3), 16)) for m in found}


def damaged(path, seed):
    """The program's bytes with changes to its debug information. .eh_frame is unchanged: the program itself needs it."""
    pick = random.Random(seed)
    data, where = bytearray(open(path, "rb").read()), sections(path)
    names = sorted(s for s in where if s.startswith(".debug_") and s != ".debug_str" and where[s][1])
    for _ in range(pick.choice([1, 3, 10, 60])):
        offset, size = where[pick.choice(names)]
        data[offset + pick.randrange(size)] = pick.choice([0, 1, 0x80, 0xFF, pick.randrange(256)])
    return data


def run(dump, path, seed, directory):
    """None, or what went wrong with this seed."""
    copy = os.path.join(directory, "damaged-%d" % seed)
    with open(copy, "wb") as f:
        f.write(damaged(path, seed))
    os.chmod(copy, 0o755)
    program = subprocess.Popen([copy], stdin=subprocess.DEVNULL)
    try:
        r = subprocess.run([dump, str(program.pid), "rehearse"], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, timeout=LIMIT)
        return None if r.returncode >= 0 else "seed %d of %s: ended by signal %d" % (seed, path, -r.returncode)
    except subprocess.TimeoutExpired:
        return "seed %d of %s: does not end" % (seed, path)
    finally:
        program.kill()
        program.wait()
        os.unlink(copy)


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--dump", required=True)
    p.add_argument("--seconds", type=float, default=60)
    p.add_argument("--seed", type=int, default=1)
    p.add_argument("program", nargs="+")
    o = p.parse_args()
    end, seed, bad = time.monotonic() + o.seconds, o.seed, 0
    with tempfile.TemporaryDirectory() as directory:
        while time.monotonic() < end:
            wrong = run(o.dump, o.program[seed % len(o.program)], seed, directory)
            seed += 1
            if wrong:
                bad += 1
                print(wrong, flush=True)
    print("%d runs, %d bad" % (seed - o.seed, bad))
    raise SystemExit(bool(bad))


if __name__ == "__main__":
    main()
