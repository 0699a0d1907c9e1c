"""Progress is for what takes long, at a terminal, and for nobody who asked for quiet."""

from __future__ import annotations

import io
import re
import threading
from typing import TextIO, cast

import pytest

from reconciler.cli.output import PatientProgress, console
from reconciler.render.sink import Sink
from reconciler.render.terminal import cells
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


def progress(screen: Screen, *, quiet: bool = False, after_seconds: float = SOON) -> PatientProgress:
    with console(color="auto", quiet=quiet):
        return PatientProgress(after_seconds=after_seconds, stream=screen)


def timer_of(telling: PatientProgress) -> threading.Timer | None:
    return telling._timer


def test_the_step_that_goes_on_is_told_once(screen: Screen) -> None:
    with progress(screen) as telling:
        telling.step("reading")
        wait_until(lambda: "reading" in screen.getvalue())
        telling.step("writing")
        wait_until(lambda: "writing" in screen.getvalue())
    assert screen.getvalue() == "kafka-quotas: reading\nkafka-quotas: writing\n"


def test_what_ends_in_time_tells_nothing(screen: Screen) -> None:
    with progress(screen, after_seconds=NEVER) as telling:
        telling.step("reading")
        telling.step("writing")
    assert screen.getvalue() == ""


@pytest.mark.parametrize(("quiet", "terminal"), [(True, True), (False, False)])
def test_quiet_and_no_terminal_start_nothing_that_could_print(screen: Screen, quiet: bool, terminal: bool) -> None:
    screen.terminal = terminal
    with progress(screen, quiet=quiet) as telling:
        telling.step("reading")
        assert timer_of(telling) is None


def test_nothing_is_printed_while_a_person_is_asked_and_the_time_starts_again_after(screen: Screen) -> None:
    with progress(screen, after_seconds=NEVER) as telling:
        telling.step("reading")
        first = timer_of(telling)
        assert first is not None
        with telling.silent():
            wait_until(lambda: not first.is_alive())
            assert timer_of(telling) is None
        telling.step("writing")
        second = timer_of(telling)
        assert second is not None
        assert second.is_alive()
    assert screen.getvalue() == ""


def test_a_terminal_shows_one_line_in_place_and_nothing_of_it_stays(screen: Screen, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "xterm")
    live = cast("TextIO", Sink(screen, breaks=False))
    with PatientProgress(after_seconds=SOON, stream=live) as telling:
        telling.step("reading")
        wait_until(lambda: "reading" in screen.getvalue())
        live.write("a warning\n")
        telling.step("writing")
        wait_until(lambda: "writing" in screen.getvalue())
    shown = screen.getvalue()
    assert re.search(r"reading \([\d.]+ s\)\r\x1b\[K", shown)
    assert "\r\x1b[Ka warning\n" in shown
    assert shown.count("\n") == 1
    assert shown.endswith("\r\x1b[K")


def test_a_dumb_terminal_gets_lines(screen: Screen, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "dumb")
    sink = cast("TextIO", Sink(screen, breaks=False))
    with PatientProgress(after_seconds=SOON, stream=sink) as telling:
        telling.step("reading")
        wait_until(lambda: "reading" in screen.getvalue())
    assert screen.getvalue() == "kafka-quotas: reading\n"


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
