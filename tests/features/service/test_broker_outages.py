"""A cluster that is away for hours: the service waits longer and longer up to a bound, keeps no memory of it, and comes back."""

from __future__ import annotations

import gc
import tracemalloc
from pathlib import Path

import pytest

from reconciler.errors import UnreachableError
from reconciler.features.service.loop import may_pass, retry_wait_s
from reconciler.features.service.passes import PassOutcome, PassResult
from reconciler.workflows.intent import load_intent
from tests.builders import user
from tests.fakes import FakeClock, FakeCluster
from tests.support.service_world import ServiceWorld, write_manifests

HOUR = 3600.0


class BusyClock(FakeClock):
    """Whatever waits for a moment is woken after 8 s."""

    def sleep(self, seconds: float) -> None:
        super().sleep(max(seconds, 8.0))


@pytest.mark.bulk
def test_an_outage_of_hours_costs_no_memory_and_ends_by_itself(tmp_path: Path) -> None:
    folder = write_manifests(tmp_path)
    intent = load_intent([str(folder)], cluster=None)
    world = ServiceWorld(folder, FakeCluster(), clock=BusyClock(), load=lambda: (intent,))
    world.down = UnreachableError("no broker can be reached (127.0.0.1:9092: connection refused)")
    world.run(HOUR)

    gc.collect()
    tracemalloc.start()
    try:
        before = world.connects
        world.run(2 * HOUR)
        world.stream.seek(0)
        world.stream.truncate(0)
        world.outcomes.clear()
        gc.collect()
        grown, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()

    tries = world.connects - before
    assert tries > 60
    assert grown < 25_000, f"{grown} bytes after {tries} failures"
    assert world.metric("passes_total", result="cluster") == world.connects
    assert (world.metric("consecutive_failures") or 0) > 60

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


@pytest.mark.parametrize(
    ("result", "reason", "expected"),
    [
        (PassResult.CLUSTER, "unreachable", True),
        (PassResult.PARTIAL, "not-verified", True),
        (PassResult.FAILED, "refused-by-cluster", True),
        (PassResult.REFUSED, "stale-plan", True),
        (PassResult.REFUSED, "locked", True),
        (PassResult.REFUSED, "guard", False),
        (PassResult.REFUSED, "frozen", False),
        (PassResult.REFUSED, "wrong-cluster", False),
        (PassResult.INVALID, "invalid-manifests", False),
        (PassResult.VANISHED, "vanished", False),
    ],
)
def test_what_may_pass_by_itself_is_tried_soon_and_what_needs_a_person_is_not(
    result: PassResult, reason: str, *, expected: bool
) -> None:
    assert may_pass(PassOutcome(result=result, reason=reason)) is expected


def test_the_waits_grow_up_to_the_interval() -> None:
    waits = [retry_wait_s(failures, most_s=60.0) for failures in range(1, 2000)]
    assert waits[:5] == [5.0, 10.0, 20.0, 40.0, 60.0]
    assert waits[-1] == 60.0
    assert retry_wait_s(1, most_s=1.0) == 1.0
