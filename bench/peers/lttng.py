# SPDX-License-Identifier: MIT
"""LTTng's compiled-in tracepoint in the same loops, with a private session daemon (tests/e2e/lttng_env.py).

    python3 -m peers.lttng PROGRAM      that is a process in namespaces of its own: prints what it measured as JSON
"""

import json
import os
import subprocess
import sys
import tempfile
import time

from . import tools
from .attach import Failed, reason
from .program import Program, Run, loops

BENCH = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))


def recorded(way, bench, alone, during):
    """The loops before the session starts, and while it records. Returns what shows the trace, and remarks."""
    p = subprocess.run([sys.executable, "-B", "-m", "peers.lttng", bench.program("lttng")], cwd=BENCH, capture_output=True, text=True, check=False,
                       timeout=120)
    if p.returncode:
        raise Failed(reason(p.stderr))
    said = json.loads(p.stdout.splitlines()[-1])
    for ret, name in ((alone[0], "before"), (during, "during")):
        ret.update({int(threads): Run(*run) for threads, run in said[name].items()})
    return said["text"], []


def record(path):
    from run_lttng import Lttng
    way = next(w for w in tools.WAYS if w.how == "lttng")
    before, during = {}, {}
    with tempfile.TemporaryDirectory() as directory:
        world = Lttng(directory)
        trace = os.path.join(directory, "trace")
        world.lttng("create", "peers", f"--output={trace}")
        world.lttng("enable-channel", "-u", "-s", "peers", "c", "--num-subbuf=4", "--subbuf-size=4M")
        world.lttng("enable-event", "-u", "-s", "peers", "-c", "c", "bench:wanted")
        with Program(path, env=world.env) as program:
            time.sleep(0.5)  # it registers with the daemon
            loops(program, way, before)
            world.lttng("start", "peers")
            time.sleep(0.3)
            loops(program, way, during)
            world.lttng("stop", "peers")
            world.lttng("destroy", "peers")
        argv = [word.replace("OUT", trace) for word in tools.split(way.after)]
        p = subprocess.run(argv, capture_output=True, text=True, check=False, timeout=60)
        world.close()
    return {"before": before, "during": during, "text": p.stdout + p.stderr}


if __name__ == "__main__":
    sys.path.insert(0, os.path.join(BENCH, "..", "tests", "e2e"))
    import lttng_env
    if lttng_env.missing():
        sys.exit(lttng_env.missing())
    sys.argv[:1] = ["-m", "peers.lttng"]  # isolate() starts it again, in namespaces of its own
    lttng_env.isolate()
    print(json.dumps(record(sys.argv[-1])))
