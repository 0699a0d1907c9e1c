"""A cluster that is away for hours: the service waits longer and longer up to a bound, keeps no memory of it, and comes back."""

from __future__ import annotations

import gc
import tracemalloc
from dataclasses import replace
from pathlib import Path

import pytest

from reconciler.errors import UnreachableError
from reconciler.features.service.loop import Pace, Pacing
from reconciler.features.service.passes import PassOutcome, PassResult
from reconciler.model.plan import Action, ChangeStatus
from reconciler.workflows.intent import load_intent
from tests.builders import user
from tests.fakes import FakeCluster
from tests.support.service_world import PACE, ServiceWorld, write_manifests

HOUR = 3600.0


@pytest.mark.bulk
def test_an_outage_of_hours_costs_no_memory_and_ends_by_itself(tmp_path: Path) -> None:
    folder = write_manifests(tmp_path)
    intent = load_intent([str(folder)], cluster=None)
    world = ServiceWorld(folder, FakeCluster(), load=lambda: intent, pace=replace(PACE, poll=50.0))
    world.keep_outcomes = False
    world.down = UnreachableError("no broker can be reached (127.0.0.1:9092: connection refused)")
    world.run(HOUR)

    gc.collect()
    tracemalloc.start()
    try:
        before = world.connects
        world.run(6 * HOUR)
        world.stream.seek(0)
        world.stream.truncate(0)
        gc.collect()
        grown, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()

    tries = world.connects - before
    assert tries > 350
    assert grown < 25_000, f"{grown} bytes after {tries} failures"
    assert world.metric("broker_errors_total", reason="unreachable") == world.connects
    assert world.metric("consecutive_failures") > 350

    world.down = None
    world.run(100)

    assert world.cluster.entities.keys() == {user("alice")}
    assert world.metric("consecutive_failures") == 0


def test_manifests_that_change_during_an_outage_are_applied_when_it_ends(tmp_path: Path) -> None:
    folder = write_manifests(tmp_path, alice="1MiB")
    world = ServiceWorld(folder, FakeCluster())
    world.down = UnreachableError("nobody answers")

    world.run(300, at={60: lambda: write_manifests(folder, bob="2MiB"), 200: lambda: setattr(world, "down", None)})

    assert world.cluster.entities.keys() == {user("bob")}


def outcome(result: PassResult, reason: str | None = None) -> PassOutcome:
    return PassOutcome(result=result, reason=reason, written={(Action.CREATE, ChangeStatus.APPLIED): 1})


@pytest.mark.parametrize(
    ("result", "reason", "waits_for_a_person"),
    [
        (PassResult.CLUSTER, "unreachable", False),
        (PassResult.PARTIAL, "not-verified", False),
        (PassResult.FAILED, "refused-by-cluster", False),
        (PassResult.REFUSED, "stale-plan", False),
        (PassResult.REFUSED, "locked", False),
        (PassResult.REFUSED, "guard", True),
        (PassResult.REFUSED, "frozen", True),
        (PassResult.REFUSED, "wrong-cluster", True),
        (PassResult.INVALID, "invalid-manifests", True),
        (PassResult.VANISHED, "vanished", True),
    ],
)
def test_what_may_pass_by_itself_is_tried_soon_and_what_needs_a_person_at_the_interval(
    result: PassResult, reason: str, *, waits_for_a_person: bool
) -> None:
    pacing = Pacing(Pace(interval=300.0, jitter=0.0, first_retry=5.0, longest_retry=60.0), jitter=lambda: 0.0)

    waits = [pacing.after(outcome(result, reason)) for _ in range(100)]

    assert waits[:6] == ([300.0] * 6 if waits_for_a_person else [2.5, 5.0, 10.0, 20.0, 30.0, 30.0])
    assert waits[-1] == (300.0 if waits_for_a_person else 30.0)
    assert pacing.failures == 100


def test_jitter_only_adds_and_at_most_its_share() -> None:
    pace = Pace(interval=100.0, jitter=0.2)

    assert Pacing(pace, jitter=lambda: 0.0).after(outcome(PassResult.IN_SYNC)) == 100.0
    assert 119.0 < Pacing(pace, jitter=lambda: 0.999).after(outcome(PassResult.IN_SYNC)) < 120.0


def test_a_success_ends_the_growth_of_the_waits() -> None:
    pacing = Pacing(Pace(interval=300.0, first_retry=5.0), jitter=lambda: 0.0)
    for _ in range(10):
        pacing.after(outcome(PassResult.CLUSTER))

    pacing.after(outcome(PassResult.APPLIED))

    assert pacing.after(outcome(PassResult.CLUSTER)) == 2.5
