"""Progress is for long work: one live line at a terminal, a line at times in a log, and nothing with ``--quiet``."""

from __future__ import annotations

import io
import re
import threading
from typing import TextIO, cast

import pytest

from reconciler.cli.output import LiveProgress, console
from reconciler.render.sink import Sink
from reconciler.render.terminal import cells, progress_text
from tests.support.polling import wait_until

SOON, NEVER = 0.01, 3600.0


class Screen(io.StringIO):
    """A stderr that says whether it is a terminal."""

    terminal = True

    def isatty(self) -> bool:
        return self.terminal


@pytest.fixture
def screen() -> Screen:
    return Screen()


def progress(screen: Screen, *, quiet: bool = False, every_s: float = SOON) -> LiveProgress:
    with console(color="auto", quiet=quiet):
        return LiveProgress(every_s=every_s, stream=screen)


def timer_of(live: LiveProgress) -> threading.Timer | None:
    return live._timer


def at_terminal(screen: Screen, monkeypatch: pytest.MonkeyPatch, *, after_s: float = SOON) -> tuple[LiveProgress, Sink]:
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "80")
    sink = Sink(screen, breaks=False)
    with console(color="auto", quiet=False):
        return LiveProgress(after_s=after_s, stream=cast("TextIO", sink)), sink


def test_a_log_gets_a_line_for_each_interval_with_the_time_of_the_step(screen: Screen) -> None:
    screen.terminal = False
    with progress(screen) as live:
        live.step("reading")
        wait_until(lambda: screen.getvalue().count("\n") > 1)
        live.step("writing")
        wait_until(lambda: "writing" in screen.getvalue())
    assert {line.partition(" (")[0] for line in screen.getvalue().splitlines()} == {
        "kafka-quotas: reading",
        "kafka-quotas: writing",
    }


def test_quiet_starts_nothing_that_could_print(screen: Screen) -> None:
    with progress(screen, quiet=True) as live:
        live.step("reading")
        assert timer_of(live) is None


def test_nothing_is_printed_while_a_person_is_asked_and_the_time_starts_again_after(screen: Screen) -> None:
    with progress(screen, every_s=NEVER) as live:
        live.step("reading")
        first = timer_of(live)
        assert first is not None
        with live.silent():
            wait_until(lambda: not first.is_alive())
            assert timer_of(live) is None
        live.step("reading")
        second = timer_of(live)
        assert second is not None
        assert second.is_alive()
    assert screen.getvalue() == ""


def test_a_terminal_shows_one_line_in_place_and_nothing_of_it_stays(screen: Screen, monkeypatch: pytest.MonkeyPatch) -> None:
    live, sink = at_terminal(screen, monkeypatch)
    with live:
        live.step("reading")
        wait_until(lambda: "reading" in screen.getvalue())
        sink.write("a warning\n")
        live.step("writing")
        live.count(2, 4, "files")
        wait_until(lambda: "2 of 4 files" in screen.getvalue())
    shown = screen.getvalue()
    assert re.search(r"reading \([\d.]+ s\)\r\x1b\[K", shown)
    assert "writing: 50 %, 2 of 4 files" in shown
    assert "\r\x1b[Ka warning\n" in shown
    assert shown.count("\n") == 1
    assert shown.endswith("\r\x1b[K")


def test_an_interrupt_has_the_step_that_it_ended(screen: Screen) -> None:
    def work() -> None:
        with progress(screen, every_s=NEVER) as live:
            live.step("reading 2 files")
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt) as interrupt:
        work()
    assert interrupt.value.__notes__ == ["interrupted while reading 2 files"]


GIB = 1024.0**3


@pytest.mark.parametrize(
    ("count", "per_s", "expected"),
    [
        ((14.2 * GIB, 23.3 * GIB, ""), 1.1 * GIB, "reading traffic: 61 %, 14.2 of 23.3 GiB, 1.1 GiB/s, 0:08 left (12 s)"),
        ((3, 24, "hours"), 0.5, "reading traffic: 12 %, 3 of 24 hours, 0:42 left (12 s)"),
        ((2e7, None, "rows"), 1.0, "reading traffic: 20.0 million rows (12 s)"),
        ((7, 7, "tasks"), 0.1, "reading traffic: 100 %, 7 of 7 tasks (12 s)"),
        (None, 0.0, "reading traffic (12 s)"),
    ],
)
def test_a_line_has_the_figures_that_are_known(
    count: tuple[float, float | None, str] | None, per_s: float, expected: str
) -> None:
    assert progress_text("reading traffic", count, per_s=per_s, seconds=12) == expected


def test_a_live_line_never_follows_text_without_an_end_and_never_wraps(screen: Screen) -> None:
    sink = Sink(screen, breaks=False)
    sink.write("Apply these changes? ")
    sink.show_status("busy", columns=80)
    assert screen.getvalue() == "Apply these changes? "
    sink.write("\n")
    sink.show_status("漢字" * 200 + "\n\x1b[2J", columns=80)
    last = screen.getvalue().splitlines()[-1]
    assert cells(last) < 80
    sink.clear_status()
    assert screen.getvalue().endswith("\r\x1b[K")
