# SPDX-License-Identifier: MIT
"""A headless Chromium, controlled over a pair of pipes (--remote-debugging-pipe): JSON messages that end in a NUL."""

import json
import os
import shutil
import signal
import statistics
import subprocess
import tempfile

from harness import wait_until

PROGRAM = next((p for p in map(shutil.which, ("chromium-headless-shell", "chromium")) if p), None)

# Texts with less contrast to their background than the 4.5 : 1 that WCAG requires.
TOO_PALE = """(() => {
  const rgb = (c) => c.match(/[\\d.]+/g).map(Number);
  const light = (c) => c.slice(0, 3).map((x) => x / 255).map((x) => x <= 0.03928 ? x / 12.92 : ((x + 0.055) / 1.055) ** 2.4).reduce((sum, x, i) => sum + x * [0.2126, 0.7152, 0.0722][i], 0);
  const behind = (e) => { for (; e; e = e.parentElement) { const c = rgb(getComputedStyle(e).backgroundColor); if (c.length < 4 || c[3] > 0) return c; } return [255, 255, 255]; };
  return [...document.querySelectorAll("body *")].filter((e) => e.offsetParent && [...e.childNodes].some((n) => n.nodeType === 3 && n.data.trim())).map((e) => {
    const [a, b] = [light(rgb(getComputedStyle(e).color)), light(behind(e))].sort((x, y) => y - x);
    return [(a + 0.05) / (b + 0.05), e.className + ": " + e.textContent.slice(0, 30)];
  }).filter((x) => x[0] < 4.5);
})()"""
# The contrast of two colours, which the page's first element has as properties.
CONTRAST = """(() => {
  const rgb = (name) => { const e = document.createElementNS("http://www.w3.org/1999/xhtml", "i"); document.documentElement.append(e); e.style.color = `var(${name})`; const c = getComputedStyle(e).color.match(/[\\d.]+/g).map(Number); e.remove(); return c; };
  const light = (c) => c.slice(0, 3).map((x) => x / 255).map((x) => x <= 0.03928 ? x / 12.92 : ((x + 0.055) / 1.055) ** 2.4).reduce((sum, x, i) => sum + x * [0.2126, 0.7152, 0.0722][i], 0);
  const [a, b] = [light(rgb("%s")), light(rgb("%s"))].sort((x, y) => y - x);
  return (a + 0.05) / (b + 0.05);
})()"""


class Browser:
    def __init__(self):
        self.dir = tempfile.mkdtemp(prefix="dp-browser-")
        to_browser, self.to = os.pipe()
        self.of, from_browser = os.pipe()
        self.process = subprocess.Popen(
            ["/bin/sh", "-c", 'exec "$0" "$@" 3<&%d 4>&%d' % (to_browser, from_browser), PROGRAM, "--headless", "--no-sandbox", "--disable-gpu",
             "--disable-dev-shm-usage", "--remote-debugging-pipe", f"--user-data-dir={self.dir}", "about:blank"],
            pass_fds=(to_browser, from_browser), start_new_session=True, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        os.close(to_browser)
        os.close(from_browser)
        self.rest, self.count, self.requests, self.session = b"", 0, [], None
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        self.session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Network"):
            self.call(f"{domain}.enable")
        self.errors = []

    def close(self):
        os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()
        os.close(self.to)
        os.close(self.of)
        wait_until(self.removed, what="the browser's processes to end and its files to be removed")

    def removed(self):
        """Its other processes may still write when the first one has ended."""
        shutil.rmtree(self.dir, ignore_errors=True)
        return not os.path.exists(self.dir)

    def receive(self):
        while b"\0" not in self.rest:
            piece = os.read(self.of, 1 << 16)
            if not piece:
                raise RuntimeError("the browser is gone")
            self.rest += piece
        line, _, self.rest = self.rest.partition(b"\0")
        message = json.loads(line)
        if message.get("method") == "Network.requestWillBeSent":
            self.requests.append(message["params"]["request"]["url"])
        if message.get("method") == "Runtime.exceptionThrown":
            self.errors.append(message["params"]["exceptionDetails"])
        return message

    def call(self, method, **params):
        self.count += 1
        request = {"id": self.count, "method": method, "params": params}
        if self.session:
            request["sessionId"] = self.session
        os.write(self.to, json.dumps(request).encode() + b"\0")
        while True:
            message = self.receive()
            if message.get("id") == self.count:
                if "error" in message:
                    raise RuntimeError(f"{method}: {message['error']}")
                return message["result"]

    def open(self, path):
        self.call("Page.navigate", url="file://" + path)
        while self.receive().get("method") != "Page.loadEventFired":
            pass

    def run(self, script):
        """The value of a JavaScript expression; waits for a promise."""
        done = self.call("Runtime.evaluate", expression=script, returnByValue=True, awaitPromise=True)
        if "exceptionDetails" in done:
            raise AssertionError(f"{script}: {done['exceptionDetails']}")
        return done["result"].get("value")

    def key(self, name):
        text = {"Enter": "\r"}.get(name, name if len(name) == 1 else None)
        code = {"ArrowDown": 40, "ArrowUp": 38, "ArrowLeft": 37, "ArrowRight": 39, "Enter": 13, "Escape": 27}.get(name, ord(name[0]))
        for kind in ("keyDown", "keyUp"):
            self.call("Input.dispatchKeyEvent", type=kind, key=name, windowsVirtualKeyCode=code, **({"text": text} if text and kind == "keyDown" else {}))

    def scheme(self, name):
        self.call("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": name}])


class Tasks:
    """Measures the tasks of the page's main thread, by its own processor time."""

    def __init__(self, browser):
        self.browser = browser
        browser.call("Tracing.start", traceConfig={"includedCategories": ["toplevel", "disabled-by-default-devtools.timeline", "devtools.timeline"]}, transferMode="ReportEvents")

    def end(self):
        """[(milliseconds, name)] of all tasks since the begin."""
        b, events, mains = self.browser, [], set()
        b.call("Tracing.end")
        while (message := b.receive()).get("method") != "Tracing.tracingComplete":
            if message.get("method") == "Tracing.dataCollected":
                events += message["params"]["value"]
        for e in events:
            if e["name"] == "thread_name" and e["args"]["name"] == "CrRendererMain":
                mains.add((e["pid"], e["tid"]))
        return [(e.get("tdur", e["dur"]) / 1000, e["name"]) for e in events if e["ph"] == "X" and (e["pid"], e["tid"]) in mains and e["name"].endswith("RunTask")]


WORK = """(() => {
	const made = [], sums = new Map();
	for (let i = 0, x = 1; i < 60000; i++) {
		x = (x * 1103515245 + 12345) % 2147483648;
		made.push({n: x, key: "k" + x % 1000});
	}
	for (const e of JSON.parse(JSON.stringify(made)))
		sums.set(e.key, (sums.get(e.key) || 0) + e.n);
	return [...sums].sort((p, q) => p[1] - q[1]).length;
})()"""


def work_ms(browser):
    """Processor time that a fixed piece of work takes in the page: what the machine gives just now. The median of five."""
    tasks = Tasks(browser)
    for _ in range(7):
        browser.run(WORK)
    # Each task is there twice, within the other. The first two make the browser compile the code.
    return statistics.median(sorted((ms for ms, name in tasks.end() if name == "RunTask"), reverse=True)[:7])
