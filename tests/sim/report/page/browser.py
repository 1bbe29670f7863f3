# SPDX-License-Identifier: BSD-3-Clause
"""Drives a headless Chromium over pipes by its DevTools protocol. Needs nothing but Python's own library."""

import base64
import json
import os
import select
import shutil
import subprocess
import tempfile
import time

NAMES = ("chromium", "chromium-browser", "google-chrome")
SECONDS_MOST = 60  # for one answer, on a busy machine


def program():
    """The browser's path, or None if there is no browser."""
    return next(filter(None, map(shutil.which, NAMES)), None)


class BrowserError(Exception):
    pass


class Browser:
    """Use it in a `with` statement, which ends the browser and removes its folder."""

    def __enter__(self):
        self.folder = tempfile.mkdtemp(prefix="rehearse-browser-")
        to_read, self.to_browser = os.pipe()
        self.from_browser, to_write = os.pipe()

        def as_3_and_4():  # where Chromium looks for its pipes
            read, write = os.dup(to_read), os.dup(to_write)
            os.dup2(read, 3)
            os.dup2(write, 4)

        command = [program(), "--headless=new", "--remote-debugging-pipe", f"--user-data-dir={self.folder}",
                   "--disable-gpu", "--hide-scrollbars", "--no-first-run", "--disable-background-networking",
                   "--disable-component-update", "--disable-extensions", "--force-color-profile=srgb"]
        if os.geteuid() == 0:
            command.append("--no-sandbox")  # root cannot have a sandbox
        self.process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                                        stderr=subprocess.DEVNULL, close_fds=False, preexec_fn=as_3_and_4)
        os.close(to_read)
        os.close(to_write)
        self.rest = b""
        self.sent = 0
        self.events = []
        return self

    def __exit__(self, *_):
        try:
            self.call("Browser.close")
        except (BrowserError, OSError):
            self.process.kill()
        self.process.wait()
        os.close(self.to_browser)
        os.close(self.from_browser)
        shutil.rmtree(self.folder, ignore_errors=True)

    def _message(self, until):
        while b"\0" not in self.rest:
            ready, _, _ = select.select([self.from_browser], [], [], max(until - time.monotonic(), 0))
            part = os.read(self.from_browser, 1 << 20) if ready else b""
            if not part:
                raise BrowserError("the browser gives no answer" if not ready else "the browser has ended")
            self.rest += part
        message, self.rest = self.rest.split(b"\0", 1)
        return json.loads(message)

    def call(self, method, session=None, **parameters):
        """The result of a protocol command. Events that come meanwhile go to `events`."""
        self.sent += 1
        command = {"id": self.sent, "method": method, "params": parameters}
        if session:
            command["sessionId"] = session
        os.write(self.to_browser, json.dumps(command).encode() + b"\0")
        until = time.monotonic() + SECONDS_MOST
        while True:
            message = self._message(until)
            if message.get("id") == self.sent:
                break
            self.events.append(message)
        if "error" in message:
            raise BrowserError(f"{method}: {message['error']['message']}")
        return message["result"]

    def page(self, width=1280, height=900, mobile=False):
        return Page(self, width, height, mobile)


class Page:
    """A tab of one size. problems() has the page's errors, requests() the resources that it requests."""

    def __init__(self, browser, width, height, mobile):
        self.browser = browser
        target = browser.call("Target.createTarget", url="about:blank")["targetId"]
        self.session = browser.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.call(f"{domain}.enable")
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=mobile)
        self.call("Emulation.setTouchEmulationEnabled", enabled=mobile)

    def call(self, method, **parameters):
        return self.browser.call(method, self.session, **parameters)

    def _events(self, method):
        return [event["params"] for event in self.browser.events
                if event.get("sessionId") == self.session and event["method"] == method]

    def problems(self):
        self.value("0")  # all earlier messages of the browser come before this answer
        texts = [event["exceptionDetails"].get("exception", {}).get("description", "an exception")
                 for event in self._events("Runtime.exceptionThrown")]
        texts += [json.dumps(event["args"]) for event in self._events("Runtime.consoleAPICalled")
                  if event["type"] in ("error", "warning", "assert")]
        texts += [event["entry"]["text"] for event in self._events("Log.entryAdded")
                  if event["entry"]["level"] in ("error", "warning")]
        return texts

    def requests(self):
        return [event["request"]["url"] for event in self._events("Network.requestWillBeSent")]

    def open(self, path):
        """Waits until the page reports that it is complete."""
        self.browser.events.clear()
        self.call("Page.navigate", url=f"file://{path}")
        self.wait("document.documentElement?.dataset.ready === 'yes'")

    def value(self, expression):
        answer = self.call("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True)
        if "exceptionDetails" in answer:
            raise BrowserError(f"{expression}: {answer['exceptionDetails']['exception'].get('description')}")
        return answer["result"].get("value")

    def wait(self, condition):
        until = time.monotonic() + SECONDS_MOST
        while not self.value(condition):
            if time.monotonic() > until:
                raise BrowserError(f"never came true: {condition}")
            time.sleep(0.02)

    def frame(self):
        """Returns when all requested drawing is done."""
        self.value("new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(() => done(1))))")

    def text(self, selector):
        return self.value(f"document.querySelector({json.dumps(selector)})?.innerText")

    def texts(self, selector):
        return self.value(f"[...document.querySelectorAll({json.dumps(selector)})].map((each) => each.innerText)")

    def box(self, selector):
        """x, y, width and height, after scrolling to the element."""
        return self.value(f"(() => {{ const element = document.querySelector({json.dumps(selector)});"
                          " element.scrollIntoView({ block: 'center' }); const box = element.getBoundingClientRect();"
                          " return [box.x, box.y, box.width, box.height]; })()")

    def mouse(self, kind, x, y, **more):
        self.call("Input.dispatchMouseEvent", type=kind, x=x, y=y, **more)

    def click(self, selector, x=0.5, y=0.5):
        """Clicks at that fraction of the element's width and height. Values from 1 on are pixels from its corner."""
        left, top, width, height = self.box(selector)
        place = (left + (x * width if x < 1 else x), top + (y * height if y < 1 else y))
        self.mouse("mousePressed", *place, button="left", clickCount=1)
        self.mouse("mouseReleased", *place, button="left", clickCount=1)
        self.frame()

    def drag(self, selector, by):
        left, top, width, height = self.box(selector)
        x, y = left + width / 2, top + height / 2
        self.mouse("mousePressed", x, y, button="left", clickCount=1)
        for step in (0.3, 0.6, 1):
            self.mouse("mouseMoved", x + by * step, y, button="left", buttons=1)
        self.mouse("mouseReleased", x + by, y, button="left", clickCount=1)
        self.frame()

    def pinch(self, selector, before, after):
        left, top, width, height = self.box(selector)
        x, y = left + width * 0.6, top + height / 2

        def fingers(apart):
            return [{"x": x - apart / 2, "y": y, "id": 0}, {"x": x + apart / 2, "y": y, "id": 1}]

        self.call("Input.dispatchTouchEvent", type="touchStart", touchPoints=fingers(before))
        for part in (0.25, 0.5, 0.75, 1):
            self.call("Input.dispatchTouchEvent", type="touchMove",
                      touchPoints=fingers(before + (after - before) * part))
        self.call("Input.dispatchTouchEvent", type="touchEnd", touchPoints=[])
        self.frame()

    def press(self, *keys):
        for key in keys:
            text = {"text": key} if len(key) == 1 else {}
            if key == "Enter":
                text = {"text": "\r"}
            self.call("Input.dispatchKeyEvent", type="keyDown", key=key, code=key, **text,
                      windowsVirtualKeyCode=VIRTUAL_KEYS.get(key, 0))
            self.call("Input.dispatchKeyEvent", type="keyUp", key=key, code=key)
        self.frame()

    def write(self, selector, text):
        self.value(f"document.querySelector({json.dumps(selector)}).select()")
        if text == "":
            self.press("Delete")
        else:
            self.call("Input.insertText", text=text)
        self.frame()

    def choose(self, selector, value):
        self.value(f"(() => {{ const each = document.querySelector({json.dumps(selector)});"
                   f" each.value = {json.dumps(value)}; each.dispatchEvent(new Event('change')); }})()")
        self.frame()

    def colours(self, scheme):
        self.call("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": scheme}])
        self.frame()

    def screenshot(self, path, whole=False):
        shot = self.call("Page.captureScreenshot", format="png", captureBeyondViewport=whole)
        with open(path, "wb") as out:
            out.write(base64.b64decode(shot["data"]))

    def close(self):
        self.call("Page.close")


VIRTUAL_KEYS = {"Tab": 9, "Enter": 13, "Escape": 27, "ArrowLeft": 37, "ArrowUp": 38, "ArrowRight": 39, "ArrowDown": 40,
                "Delete": 46}
