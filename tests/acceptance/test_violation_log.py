"""A broker's violation log in ``backtest`` and ``why``: every output names what it proves, and what it does not."""

from __future__ import annotations

from pathlib import Path

import pytest

from reconciler.model import Entity
from tests.support.command import Done, invoke
from tests.support.manifests import cluster, quotas, snapshot
from tests.support.schemas import valid

LOGGER = "org.apache.kafka.server.quota.ClientQuotaManager"
HOSTILE = "a\x1b[31m|<b>"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A quota that stays, one that is raised, and a log with throttles of both and of a hostile name."""
    (tmp_path / "quotas").mkdir()
    (tmp_path / "quotas" / "cluster.yaml").write_text(cluster())
    stays, raised = ({"user": "alice"}, {"producer_byte_rate": "20000"}), ({"user": "bob"}, {"producer_byte_rate": "40000"})
    (tmp_path / "quotas" / "quotas.yaml").write_text(quotas(stays, raised))
    now = {Entity.of({"user": user}): {"producer_byte_rate": 20_000.0} for user in ("alice", "bob")}
    (tmp_path / "now.json").write_text(snapshot(now))
    (tmp_path / "kafka").mkdir()
    sensors = ["Produce-alice:", "Produce-alice:", "Produce-bob:", f"Fetch-x:{HOSTILE}"]
    lines = [
        f"[2026-11-22 14:03:0{second},000] DEBUG Quota violated for sensor ({sensor}). Delay time: (900) ({LOGGER})\n"
        for second, sensor in enumerate(sensors)
    ]
    (tmp_path / "kafka" / "server.log").write_text("".join(lines))
    return tmp_path


def backtest(folder: Path, *options: str) -> Done:
    return invoke("backtest", "quotas", "--current", "now.json", "--traffic", "1=kafka", *options, cwd=folder)


def test_the_document_has_the_source_and_its_verdicts(folder: Path) -> None:
    done = backtest(folder, "--format", "json")
    assert done.code == 0, done.err
    document = done.json()
    valid(document, "backtest")
    assert document["provenance"]["source"] == "violation-log"
    (observed,) = document["provenance"]["observations"]
    assert (observed["semantics"], observed["rows"], observed["throttled_then"]) == ("violation", 4, 4)
    found = {(row["bucket"].get("user"), row["verdict"], row["changed"]) for row in document["verdicts"]}
    assert found == {("alice", "throttled", False), ("bob", "inconclusive", True), ("x", "inconclusive", False)}


@pytest.mark.parametrize("form", ["text", "markdown", "html"])
def test_every_text_says_what_the_log_cannot_judge_and_escapes_names(folder: Path, form: str) -> None:
    details = ("--details",) if form == "text" else ()
    done = backtest(folder, "--format", form, *details)
    assert done.code == 0, done.err
    assert "it shows nothing about a changed limit" in done.out
    assert "\x1b" not in done.out
    if form == "text":
        assert "4 logged throttles of 3 quota groups, and no traffic" in done.out
        assert "logged throttles in 2 seconds" in done.out
        assert "a time without a line proves nothing" in done.out


def test_why_has_the_throttles_and_is_plain_about_the_traffic(folder: Path) -> None:
    command = ("why", "quotas", "--current", "now.json", "--traffic", "1=kafka", "--at", "2026-11-22T14:03:01Z", "--name")
    done = invoke(*command, "user=alice", cwd=folder)
    assert done.code == 0, done.err
    assert "user=alice was throttled from 2026-11-22 14:03:00 to 14:03:01" in done.out
    assert "a violation log has throttles and no traffic" in done.out
    unknown = invoke(*command, "user=carol", cwd=folder)
    assert (unknown.code, unknown.err) == (1, "")
    assert "Whether user=carol was throttled is not known" in unknown.out
    assert "its loggers may have been off" in unknown.out
