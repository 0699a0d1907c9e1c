"""``kafka-quotas run`` as a process: its log, its pages, its signals."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tests.support.command import COMMAND, environment, start_on
from tests.support.polling import wait_until
from tests.support.warm_process import Started


class Running:
    """A service that runs; its log is JSON lines in a file."""

    def __init__(self, process: subprocess.Popen[bytes] | Started, log: Path) -> None:
        self.process = process
        self.log = log

    def events(self, event: str) -> list[dict[str, Any]]:
        whole = (self.log.read_text() if self.log.exists() else "").rpartition("\n")[0]
        return [row for row in map(json.loads, whole.splitlines()) if row["event"] == event]

    def results(self) -> list[str]:
        return [row["result"] for row in self.events("pass")]

    def until(self, look: Callable[[], object]) -> None:
        wait_until(lambda: self.process.poll() is not None or look())
        assert self.process.poll() is None, self.log.read_text()

    def page(self, path: str) -> tuple[int, str]:
        (started,) = self.events("started")
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{started['port']}{path}", timeout=10) as answer:
                return answer.status, answer.read().decode()
        except urllib.error.HTTPError as error:
            with error:
                return error.code, error.read().decode()

    def metric(self, name: str) -> float:
        """The value of the one series of this name and labels, whatever its cluster."""
        page = re.sub(r'(?<=[{,])cluster="[^"]*",?', "", self.page("/metrics")[1]).replace(",}", "}").replace("{}", "")
        (value,) = re.findall(rf"^kafka_quotas_{re.escape(name)} (\S+)$", page, re.MULTILINE)
        return float(value)

    def end(self, number: signal.Signals) -> int:
        self.process.send_signal(number)
        return self.process.wait(300)


@contextmanager
def running(folder: Path, log: Path, *options: str, fresh: bool = False) -> Iterator[Running]:
    """``fresh``: by a new interpreter, not forked from one that has imported the modules."""
    arguments = ("run", str(folder), "--port", "0", "--log-format", "json", *options)
    process: subprocess.Popen[bytes] | Started
    with log.open("wb") as stderr, Path(os.devnull).open("r+b") as null:
        if fresh:
            process = subprocess.Popen([*COMMAND, *arguments], env=environment(), stdin=null, stderr=stderr)
        else:
            process = start_on((null.fileno(), null.fileno(), stderr.fileno()), *arguments, cwd=log.parent)
    service = Running(process, log)
    try:
        service.until(lambda: service.events("started"))
        yield service
    finally:
        process.kill()
        process.wait()
