# SPDX-License-Identifier: MIT
"""For test_pmodule_python.py: threads that wait in C functions, in all kinds of Python functions. Prints what Python says about its own
frames, then READY. All that a thread does after it said that it waits is on one line.
"""

import _thread
import json
import sys
import threading

forever, started = _thread.allocate_lock(), _thread.allocate_lock()
forever.acquire()
started.acquire()


class Plain:
    class_value = 7


class Number(int):
    """Derived from int: its text is not int's."""


class Überprüfung:
    def méthode(self, wörter, *rest, schlüssel="ß", **more):
        shared = ["кот", "猫", "🐈"]

        def inner(depth):
            nonlocal shared
            both = (shared, depth)
            started.release(), forever.acquire()
            return both

        return inner(3)


def values():
    none, yes, no = None, True, False
    zero, small, negative, word, wide = 0, 42, -5, 2**62 + 1, -(2**64)
    big, negative_big = 2**200 + 12345678901234567890, -(10**50)
    f0, f1, f2, f3, f4, f5, f6 = 0.1, -2.0, 1e22, 5e-324, float("inf"), float("nan"), 123456.789
    empty, ascii_text, latin, wide_text, astral = "", "it's", 'say "ü"', "Ωμέγα", "🐍\u200b\u202e"
    both_quotes, controls, lone = "'\"", "a\tb\nc\\d\x00\x7f\x85\xa0", "\ud800"
    raw, raw_quotes, no_bytes = b"\x00\xff'abc\n\\", b"'\"", b""
    no_list, numbers, nested, one, no_tuple = [], [1, 2.5, None], [1, [2, (3,)]], ("one",), ()
    no_dict, by_name, by_many = {}, {"a": 1, "é": [True]}, {1: "x", (1, 2): b"y", None: {}}
    kind, own_kind, derived, plain, a_set = int, Plain, Number(5), Plain(), {1}
    deleted = 1
    del deleted
    started.release(), forever.acquire()
    return locals()


def cut():
    long_text, long_bytes, long_list = "x" * 1000, b"y" * 1000, list(range(100))
    long_dict, deep, huge = dict.fromkeys(range(50), 0), [[[[[1]]]]], 1 << 5000
    ring = [1]
    ring.append(ring)
    many = [[1] * 16] * 16
    holes = dict.fromkeys(range(20), 1)
    for key in range(18):
        del holes[key]
    started.release(), forever.acquire()
    return locals()


def recursion(n):
    if n == 0:
        started.release(), forever.acquire()
    return recursion(n - 1) if n % 2 else len([recursion(n - 1)])


def generator(n):
    for i in range(n):
        if i == 2:
            started.release(), forever.acquire()
        yield i


def delegating():
    yield from generator(5)


def through_generators():
    return sum(delegating())


class Called:
    def __init__(self, value):
        self.value = value

    def __lt__(self, other):
        started.release(), forever.acquire()
        return self.value < other.value


def through_c():
    """From C to Python and back, several times."""
    return list(map(lambda pair: sorted(pair), [[Called(1), Called(2)]]))


def executed():
    exec(compile("answer = 6 * 7\nif answer:\n\n    started.release(), forever.acquire()\n", "<made up>", "exec"), {"started": started, "forever": forever})


async def awaited(level):
    if level:
        return await awaited(level - 1)
    started.release(), forever.acquire()


def coroutine():
    awaited(3).send(None)


def far_down():
    if "a line table with long and negative steps":
        total = 0

        total += (
            1 +


            (started.release() or forever.acquire())
            + 2)
    return total


def many_variables():
    scope = {"started": started, "forever": forever}
    names = [f"v{i}" for i in range(100)]
    exec("def wide():\n " + " = ".join(names) + " = 1\n started.release(), forever.acquire()\n", scope)
    scope["wide"]()


def text_of(value):
    """As the module writes it: it does not call the program's own __repr__."""
    simple = (type(None), bool, int, float, str, bytes, list, tuple, dict)
    if type(value) in simple:
        return repr(value)
    return f"<class '{value.__name__}'>" if isinstance(value, type) else f"<{type(value).__name__} object at {id(value):#x}>"


def described(frame):
    frames = []
    while frame:
        code = frame.f_code
        variables = {} if code.co_name == "<module>" else {name: text_of(v) for name, v in frame.f_locals.items()}
        frames.append([code.co_qualname, code.co_filename, frame.f_lineno, variables])
        frame = frame.f_back
    return frames


def expected(threads):
    current = sys._current_frames()
    told = {t.native_id: (t.name, described(current[t.ident])) for t in threads}
    told[threading.main_thread().native_id] = ("main", described(sys._getframe(1)))
    return "EXPECTED " + json.dumps(told) + "\nREADY"


def main():
    functions = [values, cut, through_generators, through_c, executed, coroutine, far_down, many_variables]
    functions += [lambda: recursion(12), lambda: Überprüfung().méthode(1, 2, 3, wörter2=4)]
    threads = [threading.Thread(target=f, name=f.__name__ if i < 8 else ("recursion", "method")[i - 8], daemon=True) for i, f in enumerate(functions)]
    for t in threads:
        t.start()
        started.acquire()
    print(expected(threads), flush=True), forever.acquire()


if __name__ == "__main__":
    main()
