"""The address of a cluster leads to another cluster in the middle of a command: nothing is written or verified there."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from reconciler.features.sandbox.spec import Sandbox
from tests.support import raw_quotas
from tests.support.bad_servers import serving
from tests.support.change_set import PRODUCE, ChangeSet, mixed, statuses, user
from tests.support.service_process import running
from tests.support.write_proxy import Last, WriteProxy

pytestmark = pytest.mark.kafka


@pytest.fixture
def other(zookeeper_kafka: Sandbox) -> Sandbox:
    """The shared broker of another kind: its cluster is another one, too."""
    return zookeeper_kafka


@contextlib.contextmanager
def flipping(one: Sandbox, other: Sandbox, *, before: int | None = None, after: int | None = None) -> Iterator[int]:
    """An address that leads to the other cluster before the n-th write is passed on, or after it was answered."""

    def request(number: int, frame: bytes) -> bytes:
        if number != before:
            return frame
        proxy.lead_to(other.nodes[0].port)
        return Last()

    def answer(number: int, frame: bytes) -> bytes:
        if number != after:
            return frame
        proxy.lead_to(other.nodes[0].port)
        return Last(frame)

    proxy = WriteProxy(one.nodes[0].port, request=request, answer=answer)
    with serving(proxy) as port:
        yield port


def require_stopped(done: Any, one: Sandbox, other: Sandbox) -> Any:
    report = done.json()
    assert done.code == 4, done.err
    assert (report["result"], report["failure_reason"], report["verified"]) == ("partial", "wrong-cluster", False)
    assert other.cluster_id in report["message"]
    assert one.cluster_id in report["message"]
    return report


@pytest.mark.parametrize(
    ("moment", "statuses_of_the_rest"),
    [
        # The second request may leave before the client sees the end of the connection. What became of it is unknown then.
        ({"after": 1}, [{"not_attempted"}, {"not_attempted", "unknown"}]),
        ({"before": 2}, [{"unknown"}, {"not_attempted", "unknown"}]),
    ],
)
def test_apply_sends_nothing_to_the_other_cluster(
    tmp_path: Path, clean_kafka: Sandbox, other: Sandbox, moment: dict[str, int], statuses_of_the_rest: list[set[str]]
) -> None:
    before, wanted = mixed()
    work = ChangeSet(tmp_path, clean_kafka.bootstrap_servers, before=before, wanted=wanted)
    raw_quotas.alter(other.bootstrap_servers, before)
    with flipping(clean_kafka, other, **moment) as port:
        report = require_stopped(work.run(port), clean_kafka, other)
    assert "applied" in statuses(report)
    assert statuses(report).keys() - {"applied"} in statuses_of_the_rest
    work.require_true(report)
    assert raw_quotas.settled(other.bootstrap_servers) == before


def test_apply_does_not_verify_on_another_cluster_that_has_the_same_values(
    tmp_path: Path, clean_kafka: Sandbox, other: Sandbox
) -> None:
    wanted = {user("a"): {PRODUCE: 1_500_000.0}}
    work = ChangeSet(tmp_path, clean_kafka.bootstrap_servers, wanted=wanted)
    raw_quotas.alter(other.bootstrap_servers, wanted)
    with flipping(clean_kafka, other, after=1) as port:
        report = work.run(port)
    assert report.code == 4, report.err
    assert report.json()["verified"] is False
    assert f"answers as cluster {other.cluster_id}" in report.json()["message"]
    work.require_true(report.json())


def test_the_service_stops_a_write(clean_kafka: Sandbox, other: Sandbox, tmp_path: Path) -> None:
    folder = tmp_path / "quotas"
    folder.mkdir()
    ChangeSet(folder, clean_kafka.bootstrap_servers, wanted={user("a"): {PRODUCE: 1_500_000.0}})
    with flipping(clean_kafka, other, before=1) as port:
        options = ("--apply", "--interval", "3600", "--bootstrap-server", f"127.0.0.1:{port}")
        with running(folder, tmp_path / "log", *options) as service:
            service.until(service.results)
            (first, *_) = service.events("pass")
    assert (first["result"], first["reason"]) == ("partial", "wrong-cluster"), json.dumps(first)
    assert raw_quotas.settled(other.bootstrap_servers) == {}
