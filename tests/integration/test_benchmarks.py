"""The benchmarks still run: every program does what it is timed for, and every scripted request is sent."""

from __future__ import annotations

from contextlib import nullcontext
from pathlib import Path

import pytest

from benchmarks.apply.comparison import compare
from benchmarks.apply.programs import BARE, BARE_OWN, OURS, java_program
from benchmarks.apply.scenes import write_wanted
from benchmarks.fidelity.arrivals import Client, Poisson, Timer, arrivals
from benchmarks.fidelity.observed import observed
from benchmarks.fidelity.recording import make_topics, record
from benchmarks.fidelity.rehearsal import planned_throttles
from benchmarks.fidelity.scenarios import Scenario
from reconciler.features.sandbox.spec import Sandbox
from reconciler.model.entity import Entity

pytestmark = pytest.mark.kafka


@pytest.mark.large
@pytest.mark.parametrize("scene", ["from empty", "1 % changed", "nothing to do"])
def test_every_program_brings_a_small_cluster_to_what_is_wanted(scene, clean_kafka: Sandbox, tmp_path: Path, capsys):
    rivals = [BARE, BARE_OWN] if scene == "from empty" else []
    java = java_program(tmp_path) if scene == "from empty" else None
    programs = [OURS, *rivals, *([java] if java is not None else [])]
    wanted = write_wanted(tmp_path, entities=20)
    result = compare(lambda: nullcontext(clean_kafka.bootstrap_servers), wanted, programs, scene=scene, times=1)
    assert set(result) == {program.name for program in programs}
    assert all(run.wall > 0 and run.cpu > 0 for run in result.values())
    printed = capsys.readouterr().out
    assert f"20 entities x 2 keys, {scene}" in printed
    assert all(program.name in printed for program in programs)


SCENARIO = Scenario(
    name="small",
    clients=(
        Client(user="alice", client_id="script-1", kind="produce", pattern=Timer(period_s=0.2), size=20_000),
        Client(user="alice", client_id="script-2", kind="produce", pattern=Poisson(rate=4), size=3_000, acks=0),
        Client(user="bob", client_id="script-3", kind="fetch", pattern=Timer(period_s=0.25), size=150_000),
        Client(user="bob", client_id="script-4", kind="produce", pattern=Poisson(rate=4), size=1_000, acks=-1),
    ),
    quotas={
        Entity.of({"user": "alice"}): {"producer_byte_rate": 10_000.0},
        Entity.of({"user": "bob"}): {"consumer_byte_rate": 50_000.0},
    },
)


def test_the_script_is_sent_as_planned_whatever_is_throttled(clean_kafka: Sandbox, tmp_path: Path) -> None:
    plan = arrivals(SCENARIO.clients, seconds=4)
    make_topics(clean_kafka)

    run = record(clean_kafka, SCENARIO, plan, SCENARIO.quotas, tmp_path, quiet_s=0.0)

    seen = observed(run.logs)
    numbers = {one.number for one in plan}
    unacknowledged = {one.number for one in plan if one.client.acks == 0}
    assert set(seen) == set(run.sent.at) == numbers
    assert set(run.sent.throttle_ms) == numbers - unacknowledged
    assert all(seen[number].throttle_ms == ms for number, ms in run.sent.throttle_ms.items())
    rehearsed = {one.number for one, ms in zip(plan, planned_throttles(plan, SCENARIO.quotas), strict=True) if ms}
    throttled = {number for number, one in seen.items() if one.throttle_ms > 0}
    assert throttled & unacknowledged
    assert {one.client.client_id for one in plan if one.number in throttled} == {"script-1", "script-2", "script-3"}
    # Times differ by what the machine takes, so that requests near the limit may come out otherwise.
    assert len(rehearsed ^ throttled) <= len(rehearsed) / 3
