"""Another writer or the death of the broker during an apply: what is seen is named, and the report is true."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from reconciler.features.sandbox.spec import Sandbox, SandboxSpec
from tests.support import raw_quotas
from tests.support.bad_servers import serving
from tests.support.change_set import CONSUME, LAST, PERCENT, PRODUCE, ChangeSet, mixed, new_limits, user
from tests.support.command import Done
from tests.support.polling import wait_until
from tests.support.write_proxy import Last, WriteProxy

pytestmark = pytest.mark.kafka

LOOKS_EVERY_S = 3.0
"""How old the last look at the cluster gets before there is another one, ahead of the next request."""

THEIRS = {PRODUCE: 7_700_000.0}


@pytest.fixture
def work(tmp_path: Path, clean_kafka: Sandbox) -> ChangeSet:
    before, wanted = mixed()
    return ChangeSet(tmp_path, clean_kafka.bootstrap_servers, before=before, wanted=wanted)


@pytest.fixture
def small(tmp_path: Path, clean_kafka: Sandbox) -> ChangeSet:
    """All in one request."""
    return ChangeSet(tmp_path, clean_kafka.bootstrap_servers, wanted=new_limits(20))


def with_the_first_answer_held(work: ChangeSet, port: int, *, meanwhile: Callable[[], None]) -> Done:
    """Apply; something happens when all can see the first request done, and it is answered when another look is due."""

    def answer(number: int, frame: bytes) -> bytes:
        if number == 1:
            due = time.monotonic() + LOOKS_EVERY_S
            raw_quotas.settled(work.servers)  # reads lag writes: another copy could plan on what was there before
            meanwhile()
            wait_until(lambda: time.monotonic() > due)
        return frame

    with serving(WriteProxy(port, answer=answer)) as server:
        return work.run(server)


def test_a_second_copy_of_this_tool_changes_what_is_written_and_what_is_not(
    work: ChangeSet, clean_kafka: Sandbox, tmp_path_factory: pytest.TempPathFactory
) -> None:
    first = min(entity for entity in work.wanted if any("0000-looser" in (name or "") for _, name in entity))
    new = next(entity for entity in work.wanted if any("new" in (name or "") for _, name in entity))
    rates = {PRODUCE: 7_700_000.0, CONSUME: 8_800_000.0}
    theirs = {first: rates, new: rates}
    copy = ChangeSet(tmp_path_factory.mktemp("copy"), work.servers, wanted=theirs, alone=False)
    others: list[Done] = []
    stopped = with_the_first_answer_held(work, clean_kafka.nodes[0].port, meanwhile=lambda: others.append(copy.run(copy.servers)))
    assert [done.code for done in others] == [0], others[0].err
    assert others[0].json()["verified"] is True
    assert stopped.code == 4, stopped.err
    report = stopped.json()
    assert (report["result"], report["failure_reason"]) == ("partial", "stale-plan")
    told = {change["entity"]["user"].rstrip("x"): change["error"] for change in report["changes"] if change["error"]}
    assert sorted(told) == ["0000-looser", "0002-new"]
    assert "consumer_byte_rate was 2500000 when planned, was written as 2600000, and is 8800000 now" in told["0000-looser"]
    assert "consumer_byte_rate was not set when planned and is 8800000 now" in told["0002-new"]
    work.require_true(report, theirs=theirs)
    work.finish()


def test_in_the_window_that_remains_the_last_writer_wins_by_whole_keys(small: ChangeSet, clean_kafka: Sandbox) -> None:
    """Kafka compares nothing when it writes: what comes between the last look and the request is overwritten, key by key."""

    def request(_number: int, frame: bytes) -> bytes:
        raw_quotas.alter(small.servers, {user(LAST): {**THEIRS, PERCENT: 300.0}})
        return frame

    with serving(WriteProxy(clean_kafka.nodes[0].port, request=request)) as server:
        done = small.run(server)
    assert done.code == 0, done.err
    small.require_true(done.json(), theirs={user(LAST): {**small.wanted[user(LAST)], PERCENT: 300.0}})
    small.finish()


def test_a_broker_killed_between_two_writes_is_exit_4_with_what_was_done(
    tmp_path: Path, start_kafka: Callable[[SandboxSpec], Sandbox]
) -> None:
    mortal = start_kafka(SandboxSpec())
    before, wanted = mixed()
    work = ChangeSet(tmp_path, mortal.bootstrap_servers, before=before, wanted=wanted)

    def kill_before_the_second(number: int, frame: bytes) -> bytes:
        if number == 2:
            os.kill(mortal.nodes[0].process.pid, signal.SIGKILL)
            return Last()
        return frame

    proxy = WriteProxy(mortal.nodes[0].port, request=kill_before_the_second)
    with serving(proxy) as server:
        broken = work.run(server)
    assert broken.code == 4, broken.err
    report = broken.json()
    assert (report["result"], report["verified"]) == ("partial", False)
    first, second = proxy.writes
    assert report["summary"] == {
        "applied": len(first),
        "failed": 0,
        "unknown": len(second),
        "not_attempted": len(wanted) - len(first) - len(second),
    }
