"""``kafka-quotas why``: recorded throttles are facts, limits are those of each moment, and what is computed is said to be."""

from __future__ import annotations

import datetime
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from reconciler.model.entity import Entity
from tests.support import manifests
from tests.support.bad_servers import refusing_port
from tests.support.command import Done, invoke
from tests.support.git_repository import GitRepository
from tests.support.incident_log import START, Sender, write_log
from tests.support.recorded_parquet import SCHEMA
from tests.support.recorder_lines import header, write_members

pa = pytest.importorskip("pyarrow")
pq = pytest.importorskip("pyarrow.parquet")

TEAM = "quotas/team.yaml"
ALICE = ("--names", "user=alice,client-id=app")
SINCE = ("--since", "2026-11-21T13:00:00Z", "--until", "2026-11-21T13:10:00Z")


def at(seconds: float) -> datetime.datetime:
    return START + datetime.timedelta(seconds=seconds)


def repository(folder: Path, *limits: tuple[float, str | None], key: str = "producer_byte_rate") -> GitRepository:
    """Commits at seconds after ``START``, each with the value of alice's limit; ``None``: of an entity that is another's."""
    made = GitRepository(folder)
    for number, (second, value) in enumerate(limits):
        entry = ({"user": "alice"}, {key: value}) if value is not None else ({"user": "zoe"}, {key: "1"})
        made.write(TEAM, manifests.quotas(entry))
        made.commit(f"Change {number}", at=at(second))
    return made


def rows(path: Path, *, size: int, seconds: Iterator[int] | range, **more: Any) -> Path:
    common = {"broker": 1, "user": "alice", "client_id": "app", "kind": "produce", "semantics": "event", "throttled": False}
    table = [{**common, "ts": at(second), "amount": size, **more} for second in seconds]
    pq.write_table(pa.Table.from_pylist(table, schema=SCHEMA), path)
    return path


def why(repository: GitRepository, *arguments: str) -> Done:
    return invoke("why", "quotas", *arguments, cwd=repository.folder)


def report(repository: GitRepository, *arguments: str) -> dict[str, Any]:
    done = why(repository, *arguments, "--format", "json")
    assert done.code in (0, 1), done.err
    made: dict[str, Any] = done.json()
    return made


def topics_line(second: float, *, version: int, code: int, throttle_ms: int, number: int) -> str:
    """CreateTopics: the controller's throttle is in the answer alone."""
    document = {
        "isForwarded": True,
        "requestHeader": {
            "requestApiKey": 19, "requestApiVersion": version, "correlationId": number, "clientId": "app",
            "requestApiKeyName": "CREATE_TOPICS",
        },
        "request": {"topics": [{"name": f"t{number}", "numPartitions": 3, "assignments": []}], "validateOnly": False},
        "response": {"throttleTimeMs": throttle_ms, "topics": [{"name": f"t{number}", "errorCode": code, "numPartitions": 3}]},
        "connection": "10.0.0.5:9092-10.0.0.9:53412-2-0", "totalTimeMs": 3.4, "requestQueueTimeMs": 0.1, "localTimeMs": 2.9,
        "remoteTimeMs": 0.0, "throttleTimeMs": 0, "responseQueueTimeMs": 0.0, "sendTimeMs": 0.0,
        "securityProtocol": "SASL_PLAINTEXT", "principal": "User:alice", "listener": "SASL",
        "clientInformation": {"softwareName": "x", "softwareVersion": "1"},
    }  # fmt: skip
    text = json.dumps(document, separators=(",", ":"))
    return f"[{at(second):%Y-%m-%d %H:%M:%S},000] DEBUG Completed request:{text} (kafka.request.logger)\n"


@pytest.mark.parametrize(("version", "code", "throttle_ms", "refused"), [(7, 89, 0, 26), (7, 89, 7_900, 26), (4, 0, 10_000, 0)])
def test_a_refused_topic_and_a_delayed_old_client_are_throttles(
    tmp_path: Path, version: int, code: int, throttle_ms: int, refused: int
) -> None:
    made = repository(tmp_path / "repository", (-3600, "2"), key="controller_mutation_rate")
    lines = [topics_line(60, version=version, code=0, throttle_ms=0, number=0)]
    lines += [topics_line(61 + n, version=version, code=code, throttle_ms=throttle_ms, number=n + 1) for n in range(26)]
    (tmp_path / "request.log").write_text("".join(lines))

    answer = report(made, *ALICE, *SINCE, "--traffic", "1=../request.log")

    assert (answer["answer"], answer["incident"]["begin"][:19]) == ("throttled", "2026-11-21T13:01:01")
    assert (answer["recorded"]["refused"], answer["recorded"]["longest_ms"]) == (refused, throttle_ms or None)
    causes = [(group["key"], group["limit"], group["origin"]["subject"]) for group in answer["groups"] if group["cause"]]
    assert causes == [("controller_mutation_rate", 2, "Change 0")]
    assert ("refused 26 topics (error 89" in why(made, *ALICE, *SINCE, "--traffic", "1=../request.log").out) is bool(refused)
    (tmp_path / "now.json").write_text(manifests.snapshot({Entity.of({"user": "alice"}): {"controller_mutation_rate": 2.0}}))
    done = invoke("headroom", "--current", "now.json", "--traffic", "1=request.log", "--format", "json", cwd=tmp_path)
    (row,) = [row for row in done.json()["groups"] if row["key"] == "controller_mutation_rate"]
    assert (row["bucket"], row["limit"], row["throttled"] is not None) == ({"user": "alice"}, 2, True), done.err


def test_a_window_with_a_change_has_the_limit_of_each_moment(tmp_path: Path) -> None:
    made = repository(tmp_path / "repository", (-3600, None), (100, "10KB"), (300, "1MB"))
    rows(tmp_path / "traffic.parquet", size=30_000, seconds=range(600))

    answer = report(made, *ALICE, *SINCE, "--traffic", "../traffic.parquet")

    begin, end = (datetime.datetime.fromisoformat(answer["incident"][name]) for name in ("begin", "end"))
    assert answer["answer"] == "computed"
    # Before the limit there was nothing to be over, and what was sent then does not count.
    assert at(100) <= begin <= at(106)
    assert at(299) <= end <= at(300)
    (cause,) = [group for group in answer["groups"] if group["cause"]]
    assert (cause["limit"], cause["origin"]["subject"]) == (10_000, "Change 1")


def test_a_computed_throttle_says_so(tmp_path: Path) -> None:
    made = repository(tmp_path / "repository", (-3600, "10KB"))
    rows(tmp_path / "traffic.parquet", size=30_000, seconds=range(100, 160))

    text = why(made, *ALICE, *SINCE, "--traffic", "../traffic.parquet").out

    first = text.split(".\n")[0].replace("\n", " ")
    assert first.startswith("user=alice client-id=app would have been throttled for ")
    assert first.endswith("(computed: the traffic shows no throttle)")


def test_a_later_snapshot_is_named_as_what_the_answer_depends_on(tmp_path: Path) -> None:
    folder = GitRepository(tmp_path / "empty")
    quotas = {Entity.of({"user": "alice"}): {"producer_byte_rate": 10_000.0}}
    (folder.folder / "now.json").write_text(manifests.snapshot(quotas, at=at(700)))
    rows(tmp_path / "traffic.parquet", size=30_000, seconds=range(600))
    command = ("why", *ALICE, *SINCE, "--traffic", "../traffic.parquet", "--current", "now.json")

    text = invoke(*command, cwd=folder.folder).out

    assert " would have been throttled for " in text
    assert "with the quotas of the snapshot of " in " ".join(text.split())
    assert "if they were in effect then (computed: " in " ".join(text.split())


def test_the_recorder_proves_a_throttle_of_a_group_above_the_client(tmp_path: Path) -> None:
    made = repository(tmp_path / "repository", (-3600, "10KB"))
    first = int(START.timestamp())
    lines = [["c", 0, "produce", "alice", None]]
    lines += [["s", first + second, [0, 4_000], [0, 40] if 100 <= second < 130 else []] for second in range(200)]
    write_members(tmp_path / "recorder" / "quota-recorder-1-20261121T130000000Z.jsonl.gz", [header(1)], lines)

    answer = report(made, *ALICE, *SINCE, "--traffic", "../recorder")
    before = report(made, *ALICE, "--since", at(0).isoformat(), "--until", at(90).isoformat(), "--traffic", "../recorder")

    assert answer["answer"] == "throttled"
    assert "which clients of the quota group were throttled" in {gap["what"] for gap in answer["missing"]}
    assert at(100) <= datetime.datetime.fromisoformat(answer["incident"]["begin"]) <= at(101)
    assert at(129) <= datetime.datetime.fromisoformat(answer["incident"]["end"]) <= at(131)
    assert [group["limit"] for group in answer["groups"] if group["cause"]] == [10_000]
    assert before["answer"] == "unknown"


def gauges(path: Path, *, throttled: range, amount: int = 9_000) -> Path:
    """Samples of the group of alice each 15 s; a throttle time shows for a minute."""
    common = {"broker": 1, "user": "alice", "client_id": None, "kind": "produce", "semantics": "gauge", "interval_ms": 15_000}
    table = [{**common, "ts": at(second), "amount": amount, "throttled": second in throttled} for second in range(0, 600, 15)]
    pq.write_table(pa.Table.from_pylist(table, schema=SCHEMA), path)
    return path


def test_samples_prove_a_throttle_only_where_it_rose_or_lasted(tmp_path: Path) -> None:
    made = repository(tmp_path / "repository", (-3600, "10KB"))
    gauges(tmp_path / "samples.parquet", throttled=range(240, 420))

    def between(since: int, until: int) -> dict[str, Any]:
        times = ("--since", at(since).isoformat(), "--until", at(until).isoformat())
        return report(made, *ALICE, *times, "--traffic", "../samples.parquet")

    whole, decay, calm = between(0, 600), between(405, 500), between(0, 200)

    assert (whole["answer"], whole["recorded"]["samples"]) == ("throttled", 12)
    assert (whole["incident"]["begin"], whole["incident"]["end"]) == ("2026-11-21T13:04:00Z", "2026-11-21T13:05:45Z")
    assert [group["limit"] for group in whole["groups"] if group["cause"]] == [10_000]
    # A sample of 13:06:45 may show a throttle from before 13:06:45, unless the rate is over the limit.
    gauges(tmp_path / "samples.parquet", throttled=range(240, 420), amount=20_000)
    over = between(405, 500)
    assert (over["answer"], over["incident"]["begin"]) == ("throttled", "2026-11-21T13:06:45Z")
    assert (decay["answer"], calm["answer"]) == ("unknown", "unknown")


def test_a_throttle_from_before_the_commit_blames_no_other_limit(tmp_path: Path) -> None:
    """The limit was lowered on the brokers at 300 s, and the commit came at 400 s."""
    made = repository(tmp_path / "repository", (-3600, "20KB"), (400, "8KB"))
    gauges(tmp_path / "samples.parquet", throttled=range(300, 600))

    answer = report(made, *ALICE, *SINCE, "--traffic", "../samples.parquet")

    (cause,) = [group for group in answer["groups"] if group["cause"]]
    assert (answer["incident"]["begin"], cause["limit"], cause["origin"]["subject"]) == (
        "2026-11-21T13:05:00Z",
        8_000,
        "Change 1",
    )
    assert cause["since"] == "2026-11-21T13:06:40Z"
    gaps = {gap["what"]: gap["because"] for gap in answer["missing"]}
    assert gaps["which limits were in effect in all of this incident"].endswith("changed at 2026-11-21 13:06:40 UTC")


def test_lines_that_cannot_be_read_leave_it_open(tmp_path: Path) -> None:
    made = repository(tmp_path / "repository", (-3600, "10MB"))
    write_log(tmp_path / "request.log", [Sender(user="alice", client_id="app", size=100, every_s=0.5, begin_s=0, end_s=300)], {})
    clear = report(made, *ALICE, *SINCE, "--traffic", "1=../request.log")
    with (tmp_path / "request.log").open("a") as log:
        log.write('[2026-11-21 13:05:01,000] DEBUG Completed request:{"isForwarded":false,"requestHeader":{"requestApiKey":0,\n')

    cut = report(made, *ALICE, *SINCE, "--traffic", "1=../request.log")

    assert (clear["answer"], cut["answer"]) == ("clear", "unknown")
    assert "1 of its lines cannot be read" in cut["missing"][0]["because"]


def test_the_log_of_one_broker_clears_no_time_of_another(tmp_path: Path) -> None:
    made = repository(tmp_path / "repository", (-3600, "10MB"))
    for broker, end in ((1, 300), (2, 100)):
        sender = Sender(user="alice", client_id="app", size=100, every_s=0.5, begin_s=broker / 10, end_s=end)
        write_log(tmp_path / f"{broker}.log", [sender], {})
    traffic = ("--traffic", "1=../1.log", "--traffic", "2=../2.log")

    clear = report(made, *ALICE, *SINCE, *traffic)
    late = report(made, *ALICE, "--at", at(200).isoformat(), *traffic)

    assert (clear["answer"], clear["until"][:18]) == ("clear", "2026-11-21T13:01:3")
    assert late["answer"] == "unknown"


def test_a_server_of_the_manifest_that_is_gone_is_the_reason(tmp_path: Path) -> None:
    made = repository(tmp_path / "repository", (-3600, "10KB"))
    made.write("quotas/cluster.yaml", manifests.cluster(traffic={"prometheus": f"http://127.0.0.1:{refusing_port()}"}))

    answer = report(made, *ALICE, *SINCE, "--traffic-store", str(tmp_path / "store"))

    assert answer["answer"] == "unknown"
    assert "the samples of Prometheus cannot be read" in answer["missing"][0]["because"]
