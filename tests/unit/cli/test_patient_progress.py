"""Progress is for what takes long, at a terminal, and for nobody who asked for quiet."""

from __future__ import annotations

import argparse
import io
import threading

import pytest

from reconciler.cli.progress import PatientProgress
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
    return PatientProgress(argparse.Namespace(quiet=quiet), after_seconds=after_seconds, stream=screen)


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
