"""A real headless Chromium, spoken to in the DevTools protocol over two pipes: no driver, no library, no port."""

from __future__ import annotations

import base64
import contextlib
import json
import os
import select
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Self

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
MISSING = "there is no Chromium on PATH; these tests look at pages in a real one (Debian and Ubuntu: package chromium)"
ANSWER_S = 120.0
LAUNCHER = """
import fcntl, os, sys
read, write = (fcntl.fcntl(int(number), fcntl.F_DUPFD, 10) for number in sys.argv[1:3])
os.dup2(read, 3)
os.dup2(write, 4)
os.execv(sys.argv[3], sys.argv[3:])
"""
"""Becomes Chromium, with the pipes where it looks for them: descriptors 3 and 4."""


def program() -> str:
    """Where Chromium is. Raises ``AssertionError`` that says what to install."""
    found = next((path for name in NAMES if (path := shutil.which(name))), None)
    assert found is not None, MISSING
    return found


class Chromium:
    """One browser with one tab. ``said`` are the events of the tab so far: ``(method, parameters)``."""

    def __init__(self, home: Path) -> None:
        ours_read, theirs_write = os.pipe()
        theirs_read, ours_write = os.pipe()
        options = [
            "--headless=new", "--remote-debugging-pipe", "--no-first-run", "--disable-gpu", "--no-sandbox", "--hide-scrollbars",
            "--force-device-scale-factor=1", "--disable-dev-shm-usage", "--disable-background-networking", "--disable-sync",
            "--disable-component-update", "--no-default-browser-check", f"--user-data-dir={home}", "about:blank",
        ]  # fmt: skip
        self._process = subprocess.Popen(
            [sys.executable, "-c", LAUNCHER, str(theirs_read), str(theirs_write), program(), *options],
            pass_fds=(theirs_read, theirs_write),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
        os.close(theirs_read)
        os.close(theirs_write)
        self._in, self._out = ours_read, ours_write
        self._buffer = b""
        self._number = 0
        self._session: str | None = None
        self.said: list[tuple[str, dict[str, Any]]] = []

    def __enter__(self) -> Self:
        try:
            targets = self.call("Target.getTargets")["targetInfos"]
            page = next(one["targetId"] for one in targets if one["type"] == "page")
            self._session = self.call("Target.attachToTarget", targetId=page, flatten=True)["sessionId"]
            for domain in ("Page", "Runtime", "Network", "Log", "Accessibility"):
                self.call(f"{domain}.enable")
        except BaseException:
            self.close()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """End the browser, and whatever it has started."""
        self._session = None
        with contextlib.suppress(OSError, AssertionError):
            self._send("Browser.close", {})
        try:
            self._process.wait(300)
        except subprocess.TimeoutExpired:
            os.killpg(self._process.pid, 9)
            self._process.wait(300)
        os.close(self._in)
        os.close(self._out)

    def call(self, method: str, **parameters: Any) -> dict[str, Any]:
        """Do it and wait for the answer. Raises ``AssertionError`` for an error."""
        number = self._send(method, parameters)
        while True:
            message = self._receive()
            if message.get("id") == number:
                assert "error" not in message, (method, message["error"])
                return dict(message["result"])

    def event(self, method: str) -> dict[str, Any]:
        """The next event of that kind that has not been asked for yet."""
        while True:
            for place, (name, parameters) in enumerate(self.said):
                if name == method:
                    del self.said[place]
                    return parameters
            self._receive()

    def open(self, path: Path, fragment: str = "", *, ready: str = "document.documentElement.dataset.ready === 'true'") -> None:
        """Load a file as a user would open it, and wait for its script."""
        # From another page: to the same file with another fragment would load nothing.
        for url in ("about:blank", path.as_uri() + fragment):
            self.said.clear()
            self.call("Page.navigate", url=url)
            self.event("Page.loadEventFired")
        assert self.evaluate(ready), "the script of the page did not run to its end: " + str(self.said)

    def evaluate(self, expression: str) -> Any:
        """The value of an expression in the page; a promise is waited for. Raises ``AssertionError`` for what it throws."""
        done = self.call("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True)
        assert "exceptionDetails" not in done, done["exceptionDetails"]
        return done["result"].get("value")

    def run(self, function: str, *arguments: object) -> Any:
        """Call a function of JavaScript source with JSON arguments."""
        return self.evaluate(f"({function})({', '.join(json.dumps(one) for one in arguments)})")

    def look(
        self, *, width: int, height: int = 900, dark: bool = False, media: str = "", script: bool = True, scale: int = 1
    ) -> None:
        """The size of the window in CSS pixels, ``scale`` of a screen for each, and what the user prefers."""
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=scale, mobile=width < 600)
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self.call("Emulation.setEmulatedMedia", media=media, features=[scheme])
        self.call("Emulation.setScriptExecutionDisabled", value=not script)

    def screenshot(self, *, selector: str | None = None, whole: bool = False, until: str | None = None) -> bytes:
        """A PNG of what is seen, of the whole page, of one element, or of the page down to the foot of an element."""
        more: dict[str, Any] = {}
        if whole or selector or until:
            box = self.run(
                """(selector, until) => {
                  const box = (selector ? document.querySelector(selector) : document.documentElement).getBoundingClientRect();
                  const foot = until ? document.querySelector(until).getBoundingClientRect().bottom + scrollY + 12 : box.height;
                  return {x: box.x + scrollX, y: box.y + scrollY, width: box.width, height: Math.min(foot, 8000)};
                }""",
                selector,
                until,
            )
            more = {"clip": {**box, "scale": 1}, "captureBeyondViewport": True}
        return base64.b64decode(self.call("Page.captureScreenshot", format="png", **more)["data"])

    def pdf(self) -> bytes:
        """The page as it is printed."""
        return base64.b64decode(self.call("Page.printToPDF", preferCSSPageSize=True, printBackground=True)["data"])

    def press(self, key: str, *, code: int = 0, text: str = "", shift: bool = False) -> None:
        """A key of a real keyboard, down and up."""
        same = {"key": key, "windowsVirtualKeyCode": code, "modifiers": 8 if shift else 0}
        self.call("Input.dispatchKeyEvent", type="keyDown" if text else "rawKeyDown", text=text, **same)
        self.call("Input.dispatchKeyEvent", type="keyUp", **same)

    def type(self, text: str) -> None:
        """Text into whatever has the focus."""
        self.call("Input.insertText", text=text)

    def accessible(self) -> list[dict[str, Any]]:
        """The tree that a screen reader is given, without what it ignores: ``{role, name, ...properties}`` in reading order."""
        nodes = self.call("Accessibility.getFullAXTree")["nodes"]
        by_id = {node["nodeId"]: node for node in nodes}
        found = []
        waiting = [nodes[0]["nodeId"]]
        while waiting:
            node = by_id.get(waiting.pop())
            if node is None:
                continue
            waiting += reversed(node.get("childIds", []))
            if not node["ignored"]:
                more = {one["name"]: one["value"].get("value") for one in node.get("properties", [])}
                found.append({"role": node["role"]["value"], "name": node.get("name", {}).get("value", ""), **more})
        return found

    def _send(self, method: str, parameters: dict[str, Any]) -> int:
        self._number += 1
        message: dict[str, Any] = {"id": self._number, "method": method, "params": parameters}
        if self._session is not None:
            message["sessionId"] = self._session
        data = json.dumps(message).encode() + b"\0"
        while data:
            data = data[os.write(self._out, data) :]
        return self._number

    def _receive(self) -> dict[str, Any]:
        """One message; events are kept."""
        until = time.monotonic() + ANSWER_S
        while b"\0" not in self._buffer:
            ready, _, _ = select.select([self._in], [], [], max(0.0, until - time.monotonic()))
            assert ready, f"Chromium has not answered within {ANSWER_S:g} s"
            read = os.read(self._in, 1 << 20)
            assert read, f"Chromium has ended with code {self._process.poll()}"
            self._buffer += read
        one, _, self._buffer = self._buffer.partition(b"\0")
        message: dict[str, Any] = json.loads(one)
        if "method" in message and message.get("sessionId") == self._session:
            self.said.append((message["method"], message["params"]))
        return message


def complaints(browser: Chromium) -> list[Any]:
    """What the browser has to say against the page."""
    return [said for said in browser.said if said[0] in ("Log.entryAdded", "Runtime.exceptionThrown")]


@contextlib.contextmanager
def chromium() -> Iterator[Chromium]:
    """A browser with a profile of its own, ended and removed in the end."""
    home = tempfile.TemporaryDirectory(prefix="kafka-quotas-chromium-", ignore_cleanup_errors=True)
    with home as folder, Chromium(Path(folder)) as browser:
        yield browser
