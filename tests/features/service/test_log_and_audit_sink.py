"""What the service leaves behind: lines nobody can forge, an audit file, and the report of its last write."""

from __future__ import annotations

import io
import json
import logging
from pathlib import Path

import pytest

from reconciler.features.service.log import Log
from tests.builders import user
from tests.fakes import FakeCluster
from tests.support.manifests import cluster as cluster_document
from tests.support.manifests import quotas
from tests.support.schemas import valid
from tests.support.service_world import ServiceWorld, write_manifests

HOSTILE = 'a"\nerror pass: applied\u202e\x1b[2J\u2028'


@pytest.mark.parametrize("as_json", [False, True])
def test_a_hostile_name_cannot_break_or_forge_a_line(tmp_path: Path, *, as_json: bool) -> None:
    folder = write_manifests(tmp_path)
    (folder / "quotas.yaml").write_text(quotas(({"user": HOSTILE}, {"producer_byte_rate": "1MiB"})))
    world = ServiceWorld(folder, FakeCluster(), as_json=as_json)

    world.run(5)

    assert world.cluster.entities == {user(HOSTILE): {"producer_byte_rate": 1048576.0}}
    assert len(world.log) == 1
    assert world.log[0].isprintable()
    assert world.log[0].isascii() or not as_json


def test_json_lines_say_in_fields_what_the_text_says_in_words(tmp_path: Path) -> None:
    world = ServiceWorld(write_manifests(tmp_path), FakeCluster(), as_json=True)

    world.run(5)

    (row,) = map(json.loads, world.log)
    assert (row["level"], row["event"], row["result"], row["written"]) == ("info", "pass", "applied", {"applied": 1})
    assert row["logger"] == "reconciler.service"
    assert row["drift"]["in-sync"] == 1


def test_a_message_of_any_length_is_one_bounded_line(tmp_path: Path) -> None:
    folder = write_manifests(tmp_path)
    (folder / "quotas.yaml").write_text(
        quotas(*(({"user": f"{'x' * 200}{n}"}, {"producer_byte_rate": "-1"}) for n in range(500)))
    )
    world = ServiceWorld(folder, FakeCluster())

    world.run(5)

    assert world.results == ["invalid"]
    assert len(world.log) <= 21
    assert max(map(len, world.log)) < 2_200


def test_a_log_that_takes_no_more_stops_nothing() -> None:
    class Full(io.StringIO):
        def write(self, text: str) -> int:
            raise OSError(28, "No space left on device")

    Log(Full(), as_json=False).write(logging.INFO, "pass", "text")


def test_what_a_library_warns_of_is_a_line_like_any_other() -> None:
    stream = io.StringIO()

    with Log(stream, as_json=True).with_libraries():
        logging.getLogger("kafka.conn").warning("node %s\nis away", 1)
        logging.getLogger("kafka.conn").debug("a detail")
    logging.getLogger("kafka.conn").debug("afterwards")

    (row,) = map(json.loads, stream.getvalue().splitlines())
    assert (row["level"], row["event"], row["logger"]) == ("warning", "library", "kafka.conn")
    assert row["message"] == "node 1\\u000ais away"


def test_each_write_leaves_a_line_of_audit_and_its_report(tmp_path: Path) -> None:
    folder, audit, report = write_manifests(tmp_path / "q"), tmp_path / "audit.jsonl", tmp_path / "report.json"
    world = ServiceWorld(folder, FakeCluster(), audit=audit, report=report)

    world.run(250, at={150: lambda: world.cluster.write_from_outside(user("alice"), {})})

    assert world.results == ["applied", "in_sync", "applied"]
    lines = [json.loads(line) for line in audit.read_text().splitlines()]
    for line in lines:
        valid(line, "audit")
    assert [(line["command"], line["result"], line["summary"]["applied"]) for line in lines] == [("run", "done", 1)] * 2
    document = json.loads(report.read_text())
    valid(document, "apply-report")
    assert document["changes"][0]["entity"] == {"user": "alice"}


def test_the_same_refusal_over_and_over_is_one_line_of_audit(tmp_path: Path) -> None:
    folder, audit = write_manifests(tmp_path / "q"), tmp_path / "audit.jsonl"
    (folder / "cluster.yaml").write_text(cluster_document(prune="never", protected=[{"user": "alice"}]))
    cluster = FakeCluster({user("alice"): {"producer_byte_rate": 5.0}})
    world = ServiceWorld(folder, cluster, audit=audit)

    world.run(950)

    assert world.results == ["refused"] * 10
    assert [json.loads(line)["failure_reason"] for line in audit.read_text().splitlines()] == ["guard"]


def test_where_no_line_of_audit_could_be_added_nothing_is_written(tmp_path: Path) -> None:
    folder = write_manifests(tmp_path / "q")
    world = ServiceWorld(folder, FakeCluster(), audit=tmp_path / "no" / "audit.jsonl")

    world.run(3)

    assert (world.results, world.cluster.writes) == (["failed"], 0)
    assert "cannot append" in world.outcomes[0].message


def test_a_report_that_cannot_be_kept_does_not_hide_that_something_was_written(tmp_path: Path) -> None:
    folder = write_manifests(tmp_path / "q")
    world = ServiceWorld(folder, FakeCluster(), report=tmp_path / "no" / "report.json")

    world.run(3)

    assert world.results == ["partial"]
    assert world.metric("changes_total", action="create", status="applied") == 1
    assert "could not be written" in world.outcomes[0].message
