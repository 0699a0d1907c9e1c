"""Watched steps on a real broker that something cuts short: a signal, a second run, another writer, or the end of the source.

What each report states is what the broker holds, ``apply`` goes on from there, and ``revert`` undoes the run.
"""

from __future__ import annotations

import contextlib
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from reconciler.client import manifests
from reconciler.errors import NotAppliedError
from reconciler.features.sandbox.clients import create_topic
from reconciler.features.sandbox.spec import SandboxSpec
from tests.support import raw_quotas
from tests.support.jmx_exporter import ExportedCluster, exported_cluster
from tests.support.metrics_exporter import served
from tests.support.watched_steps import (
    APP,
    BATCH,
    CALM,
    HIGH,
    KEY,
    MIDDLE,
    QUIET,
    finish,
    limits,
    prepared,
    require_true,
    sending,
    undo,
    watching,
)

pytestmark = [pytest.mark.kafka, pytest.mark.interop]

LOWER = 90_000.0
"""What the manifests of a second run want. A backtest of the history clears it."""
INT, TERM = signal.SIGINT, signal.SIGTERM
VALIDATED, WRITES, READ_BACK, WATCHED = "applying a plan", "writing a step", "read back", "watched a step"


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ExportedCluster]:
    with exported_cluster(tmp_path_factory.mktemp("kafka"), spec=SandboxSpec(heap_mb=384)) as running:
        create_topic(running.sandbox.bootstrap_servers, "orders")
        yield running


def live(broker: ExportedCluster) -> dict[raw_quotas.RawEntity, dict[str, float]]:
    return raw_quotas.settled(broker.sandbox.bootstrap_servers, brokers=(1,))


def page(broker: ExportedCluster) -> str:
    return f"1=metrics+{broker.url()}"


@pytest.mark.parametrize(
    ("event", "count", "number", "batch"),
    [
        (VALIDATED, 1, INT, CALM),
        (WRITES, 1, TERM, CALM),
        (READ_BACK, 1, INT, CALM),
        (READ_BACK, 1, TERM, CALM),
        (WATCHED, 1, INT, CALM),
        (READ_BACK, 2, TERM, CALM),
        (WATCHED, 2, INT, BATCH),
        (READ_BACK, 3, TERM, BATCH),
    ],
    ids=[
        "before-the-first-step", "in-its-write", "while-it-is-watched", "while-it-is-watched-term", "between-two-steps",
        "while-the-last-is-watched", "while-it-is-given-back", "after-it-was-given-back",
    ],
)  # fmt: skip
def test_a_signal_at_any_moment_leaves_what_the_report_states(
    broker: ExportedCluster, tmp_path: Path, event: str, count: int, number: signal.Signals, batch: bytes
) -> None:
    servers = broker.sandbox.bootstrap_servers
    folder = prepared(servers, tmp_path)
    with sending(servers, "app", batch), sending(servers, "quiet", CALM):
        with watching(folder, page(broker)) as run:
            run.at(event, count)
            run.interrupt(number)
            code, report = run.ended()
        held = live(broker)
    if not report:
        assert (code, held) == (130, limits(HIGH, HIGH))
        return
    require_true(report, held)
    assert (code, report["result"]) == (4, "partial"), report
    assert report["failure_reason"] in ("interrupted", "not-given-back", "throttled"), report
    if number is TERM:
        finish(folder, servers)
        return
    undone = undo(folder, servers)
    assert undone.code == 0, undone.err
    assert live(broker) == limits(HIGH, HIGH)


def test_of_two_runs_at_once_the_one_that_comes_second_to_a_value_stops(broker: ExportedCluster, tmp_path: Path) -> None:
    servers = broker.sandbox.bootstrap_servers
    folder, other = prepared(servers, tmp_path / "first"), prepared(servers, tmp_path / "second", low=LOWER)
    with sending(servers, "app", CALM), sending(servers, "quiet", CALM):
        with watching(folder, page(broker)) as first:
            first.at(READ_BACK)
            with watching(other, page(broker)) as second:
                stopped, done = first.ended(), second.ended()
        held = live(broker)
    assert (done[0], done[1]["result"], held) == (0, "done", limits(LOWER, LOWER)), done
    require_true(done[1], held)
    assert (stopped[0], stopped[1]["failure_reason"]) == (4, "stale-plan"), stopped
    require_true(stopped[1], held, theirs=held)
    assert {tuple(change["reached"][KEY]) for change in stopped[1]["changes"]} == {(MIDDLE,)}
    assert [step["step"] for step in stopped[1]["watch"]["steps"]] == [1]
    refused = undo(folder, servers)
    assert (refused.code, live(broker)) == (3, held), refused.err
    assert undo(other, servers).code == 0
    assert live(broker) == limits(MIDDLE, MIDDLE)
    assert undo(folder, servers).code == 0
    assert live(broker) == limits(HIGH, HIGH)


def test_two_runs_at_once_that_throttle_give_back_their_own_steps_alone(broker: ExportedCluster, tmp_path: Path) -> None:
    servers = broker.sandbox.bootstrap_servers
    folder, other = prepared(servers, tmp_path / "first"), prepared(servers, tmp_path / "second", low=LOWER)
    with sending(servers, "app"), sending(servers, "quiet", CALM):
        with watching(folder, page(broker)) as first:
            first.at(READ_BACK)
            with watching(other, page(broker)) as second:
                both = first.ended(), second.ended()
        held = live(broker)
    # Each stands where the last of both left it: at no value that one of the reports does not name.
    for code, report in both:
        assert (code, report["result"]) == (4, "partial"), report
        require_true(report, held)
    assert held == limits(MIDDLE, MIDDLE)


def test_another_writer_stops_the_run_at_the_next_step(broker: ExportedCluster, tmp_path: Path) -> None:
    servers, theirs = broker.sandbox.bootstrap_servers, {APP: {KEY: 300_000.0}}
    folder = prepared(servers, tmp_path)
    with sending(servers, "app", CALM), sending(servers, "quiet", CALM):
        with watching(folder, page(broker)) as run:
            run.at(READ_BACK)
            raw_quotas.alter(servers, theirs)
            code, report = run.ended()
        held = live(broker)
    assert (code, report["failure_reason"]) == (4, "stale-plan"), report
    assert held == limits(300_000.0, MIDDLE)
    require_true(report, held, theirs=theirs)
    refused = undo(folder, servers)
    assert (refused.code, live(broker)) == (3, held)
    assert "Another writer changed it since: client-id=app" in refused.out
    finish(folder, servers)


def test_another_writer_keeps_no_other_client_from_getting_its_limit_back(broker: ExportedCluster, tmp_path: Path) -> None:
    servers, theirs = broker.sandbox.bootstrap_servers, {QUIET: {KEY: 300_000.0}}
    folder = prepared(servers, tmp_path)
    with sending(servers, "app"), sending(servers, "quiet", CALM):
        with watching(folder, page(broker)) as run:
            run.at(READ_BACK, 2)
            raw_quotas.alter(servers, theirs)
            code, report = run.ended()
        held = live(broker)
    assert (code, report["failure_reason"], report["watch"]["given_back"]) == (4, "not-given-back", False), report
    assert held == limits(MIDDLE, 300_000.0)
    require_true(report, held, theirs=theirs)
    assert "given back for 1 of 2 entities: changes by another writer stay: client-id=quiet" in report["message"]


@pytest.mark.parametrize("step", [1, 2])
def test_a_source_that_ends_costs_the_step_that_it_no_longer_shows(broker: ExportedCluster, tmp_path: Path, step: int) -> None:
    servers = broker.sandbox.bootstrap_servers
    folder = prepared(servers, tmp_path)
    with sending(servers, "app", CALM), sending(servers, "quiet", CALM), contextlib.ExitStack() as page_of_its_own:
        port = page_of_its_own.enter_context(served(lambda *_: (200, "text/plain; version=0.0.4", broker.page().encode())))
        with watching(folder, f"1=metrics+http://127.0.0.1:{port}/metrics") as run:
            run.at(READ_BACK, step)
            page_of_its_own.close()
            code, report = run.ended()
        held = live(broker)
    assert (code, report["failure_reason"], report["watch"]["given_back"]) == (4, "source-lost", True), report
    before = {1: HIGH, 2: MIDDLE}[step]
    assert (held, len(report["watch"]["steps"])) == (limits(before, before), step - 1)
    require_true(report, held)
    if step == 1:
        finish(folder, servers)
    else:
        assert undo(folder, servers).code == 0
        assert live(broker) == limits(HIGH, HIGH)


def test_a_python_program_learns_of_the_step_that_was_given_back(broker: ExportedCluster, tmp_path: Path) -> None:
    servers = broker.sandbox.bootstrap_servers
    folder = prepared(servers, tmp_path)
    quotas_of_folder = manifests([folder / "quotas"])
    with sending(servers, "app"), sending(servers, "quiet", CALM), pytest.raises(NotAppliedError) as stopped:
        quotas_of_folder.apply(accept=["large-reduction"], step_down=2, watch=[page(broker)])
    report = stopped.value.report
    assert (report.failure_reason, live(broker)) == ("throttled", limits(MIDDLE, MIDDLE))
    assert report.facts.watch is not None
    assert report.facts.watch.given_back is True
