# SPDX-License-Identifier: MIT
"""Symbols and instructions of a file as binutils print them, for comparison; and core files made by gdb."""

import functools
import os
import re
import subprocess


def said(*argv):
    return subprocess.run(argv, capture_output=True, text=True, errors="replace", stdin=subprocess.DEVNULL, timeout=300).stdout


@functools.lru_cache(maxsize=64)
def said_of_version(version, *argv):
    return said(*argv)


def said_of(path, *argv):
    """The same as long as the file does: tests ask for each event where a function is."""
    s = os.stat(path)
    return said_of_version((s.st_dev, s.st_ino, s.st_size, s.st_mtime_ns), *argv, path)


def readelf(*args):
    return said_of(args[-1], "readelf", *args[:-1])


def core_of_crash(core, *command):
    """The path of the core file that gdb writes where a program crashes."""
    said("gdb", "-nx", "-q", "-batch", "-ex", "run", "-ex", f"generate-core-file {core}", "--args", *command)
    return core


def symbol_address(path, symbol):
    """The address of a symbol in the file, by nm."""
    for options in ([], ["-D"]):
        for line in said_of(path, "nm", *options).splitlines():
            fields = line.split()
            if len(fields) == 3 and fields[2].split("@")[0] == symbol:
                return int(fields[0], 16)
    raise KeyError(symbol)


def exported(path, types="T"):
    """Names that a program or library exports."""
    lines = (line.split() for line in said("nm", "-D", "--defined-only", path).splitlines())
    return [fields[2].split("@")[0] for fields in lines if len(fields) == 3 and fields[1] in types]


def instructions(path, *options):
    """[(address, text)]; options are objdump's."""
    text = said("objdump", "-d", "--no-show-raw-insn", *options, path)
    return [(int(at, 16), code.strip()) for at, code in re.findall(r"^ +([0-9a-f]+):\t(.*)$", text, re.M)]


def offsets(path, function):
    """Offsets of a function's instructions from its start."""
    at = [address for address, _ in instructions(path, f"--disassemble={function}")]
    return [a - at[0] for a in at]
