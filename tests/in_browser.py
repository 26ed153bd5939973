#!/usr/bin/env python3
"""Opens pages of `cuptop export -o run.html` in Chromium as their readers do, and says what they drew, asked for, and how soon.

    tests/in_browser.py CUPTOP TRACE...

Needs Chromium (Debian's package). Exit code 1 says what is wrong.
Times are printed, not judged: they are those of this machine."""

import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import time

# Counts what the page draws on its canvas, and since when.
WATCH = """
(() => {
  const fill = CanvasRenderingContext2D.prototype.fillRect;
  window.drawn = { boxes: 0, first: 0 };
  CanvasRenderingContext2D.prototype.fillRect = function (...it) { drawn.first ||= performance.now(); drawn.boxes++; return fill.apply(this, it); };
})();
"""


class Browser:
    """Chromium, spoken to by the DevTools protocol over two pipes."""

    def __init__(self, path, folder):
        theirs_in, self.write = os.pipe()
        self.read, theirs_out = os.pipe()
        # Chromium reads its orders from descriptor 3 and answers on 4. High numbers first: either may be 3 or 4 already.
        theirs = [os.dup2(fd, 60 + i) for i, fd in enumerate((theirs_in, theirs_out))]
        command = f'exec "$@" 3<&{theirs[0]} 4>&{theirs[1]} {theirs[0]}<&- {theirs[1]}>&-'
        options = ["--headless=new", "--no-sandbox", "--disable-gpu", "--remote-debugging-pipe", f"--user-data-dir={folder}"]
        self.program = subprocess.Popen(
            ["bash", "-c", command, "bash", path, *options, "about:blank"],
            pass_fds=theirs, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        for fd in (theirs_in, theirs_out, *theirs):
            os.close(fd)
        self.rest, self.count, self.events = b"", 0, []
        target = self.ask("Target.createTarget", url="about:blank")["targetId"]
        self.session = self.ask("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]

    def next(self):
        while b"\0" not in self.rest:
            more = os.read(self.read, 1 << 20)
            if not more:
                sys.exit("Chromium ended")
            self.rest += more
        message, self.rest = self.rest.split(b"\0", 1)
        return json.loads(message)

    def ask(self, method, **params):
        self.count += 1
        order = {"id": self.count, "method": method, "params": params}
        if hasattr(self, "session"):
            order["sessionId"] = self.session
        os.write(self.write, json.dumps(order).encode() + b"\0")
        while (answer := self.next()).get("id") != self.count:
            self.events.append(answer)
        if "error" in answer:
            sys.exit(f"{method}: {answer['error']}")
        return answer["result"]

    def value(self, expression):
        answer = self.ask("Runtime.evaluate", expression=expression, returnByValue=True)
        return answer["result"].get("value")

    def close(self):
        self.program.terminate()
        self.program.wait()


def check(browser, page, report, is_light):
    """What is wrong of one page, and when its first picture was there, in milliseconds of its navigation."""
    browser.events = []
    features = [{"name": "prefers-color-scheme", "value": "light" if is_light else "dark"}]
    browser.ask("Emulation.setEmulatedMedia", features=features)
    url = page.as_uri()
    browser.ask("Page.navigate", url=url)
    end = time.monotonic() + 30
    while not browser.value("window.drawn && drawn.boxes && performance.getEntriesByName('first-contentful-paint').length"):
        if time.monotonic() > end:
            return ["nothing was drawn in 30 s"], 0, 0
        time.sleep(0.01)
    first = browser.value("performance.getEntriesByName('first-contentful-paint')[0].startTime")
    timeline = browser.value("drawn.first")
    wrong = []
    browser.value("document.querySelector('canvas').focus()")
    # The keys of the page: the whole, the longest gap, closer.
    for key in ["0", "L", "+"]:
        browser.value("drawn.boxes = 0")
        browser.ask("Input.dispatchKeyEvent", type="keyDown", key=key, text=key)
        browser.ask("Input.dispatchKeyEvent", type="keyUp", key=key)
        browser.value("new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)))")
        time.sleep(0.1)
        if not browser.value("drawn.boxes"):
            wrong.append(f"key {key} draws nothing")
    text = browser.value("document.body.innerText")
    # Of a scenario's variants each has a headline of its own.
    if "variants" not in report and report["verdicts"][0]["text"] not in text:
        wrong.append(f"the headline is missing: {report['verdicts'][0]['text']}")
    for it in browser.events:
        params = it.get("params", {})
        if it.get("method") == "Network.requestWillBeSent" and params["request"]["url"] not in (url,):
            wrong.append(f"it asks for {params['request']['url'][:80]}")
        if it.get("method") == "Runtime.exceptionThrown":
            wrong.append(str(params["exceptionDetails"])[:300])
        if it.get("method") == "Log.entryAdded" and params["entry"]["level"] == "error":
            wrong.append(params["entry"]["text"][:300])
    return wrong, first, timeline


def main():
    path = shutil.which("chromium") or sys.exit("there is no chromium here")
    cuptop, *traces = sys.argv[1:]
    failed = False
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        browser = Browser(path, folder)
        for domain in ["Page", "Runtime", "Network", "Log"]:
            browser.ask(f"{domain}.enable")
        browser.ask("Page.addScriptToEvaluateOnNewDocument", source=WATCH)
        for trace in traces:
            page = pathlib.Path(folder) / "run.html"
            subprocess.run([cuptop, "export", trace, "-o", page], check=True, capture_output=True)
            answer = subprocess.run([cuptop, "report", trace, "--json"], check=True, capture_output=True).stdout
            for is_light in [False, True]:
                wrong, first, timeline = check(browser, page, json.loads(answer), is_light)
                size = page.stat().st_size
                print(f"{pathlib.Path(trace).name} {'light' if is_light else 'dark'}: {size:,} bytes, first picture after {first:.0f} ms, timeline after {timeline:.0f} ms")
                for it in wrong:
                    failed = True
                    print(f"  WRONG: {it}")
            page.unlink()
        browser.close()
    sys.exit(failed)


if __name__ == "__main__":
    main()
