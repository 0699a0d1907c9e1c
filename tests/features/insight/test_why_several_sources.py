"""``kafka-quotas why`` with several kinds of traffic: one answer, and which source gave which part of it."""

from __future__ import annotations

import datetime
from pathlib import Path
from typing import Any

import pytest

from tests.support.command import invoke
from tests.support.git_repository import GitRepository
from tests.support.incident_log import START, Sender, write_log
from tests.support.manifests import quotas
from tests.support.metrics_exporter import served

pytest.importorskip("pyarrow")

AT = ("--at", "2026-11-21T13:02:00Z")
SENDERS = (
    Sender(user="orders", client_id="checkout", size=4_000, every_s=0.5, begin_s=0, end_s=240),
    Sender(user="orders", client_id="batch", size=90_000, every_s=0.5, begin_s=90, end_s=150),
)
VIOLATION = "Quota violated for sensor (Produce-orders:). Delay time: (30000)"
LOGGER = "(org.apache.kafka.server.quota.ClientQuotaManager)"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A repository with a limit, the request log of broker 1, the same as a folder of compact, and two violation logs."""
    repository = GitRepository(tmp_path / "repository")
    repository.write("quotas/team.yaml", quotas(({"user": "orders"}, {"producer_byte_rate": "50KB"})))
    repository.commit("Limit orders", at=START - datetime.timedelta(days=1))
    write_log(tmp_path / "request.log", SENDERS, {"orders": 50_000.0})
    done = invoke("compact", "--traffic", "1=request.log", "--folder", "totals", cwd=tmp_path)
    assert done.code == 0, done.err
    for name, moments in (("server.log", ("13:01:40", "13:02:10")), ("other.log", ("13:20:00",))):
        lines = (f"[2026-11-21 {at},250] DEBUG {VIOLATION} {LOGGER}\n" for at in moments)
        (tmp_path / name).write_text("".join(lines))
    return repository.folder


def why(folder: Path, *arguments: str) -> dict[str, Any]:
    done = invoke(
        "why", "quotas", "--name", "client-id=checkout", "--name", "user=orders", *AT, *arguments, "--format", "json", cwd=folder
    )
    assert done.code in (0, 1), done.err
    made: dict[str, Any] = done.json()
    return made


def whats(report: dict[str, Any]) -> set[str]:
    return {gap["what"] for gap in report["missing"]}


FILLED = "who filled the quota group, and which limit would have passed"
HOW_LONG = "how long each request was throttled"


def test_totals_show_who_filled_the_group_and_the_violation_log_when_it_was_throttled(folder: Path) -> None:
    log, totals = ("--traffic", "1=../server.log"), ("--traffic", "../totals")
    only_log, only_totals, both = why(folder, *log), why(folder, *totals), why(folder, *log, *totals)

    assert FILLED in whats(only_log)
    assert HOW_LONG in whats(only_totals)
    assert not {FILLED, HOW_LONG} & whats(both)
    assert both["answer"] == "throttled"
    assert both["recorded"] == only_log["recorded"]
    assert (both["incident"]["begin"], both["incident"]["end"]) == (only_log["incident"]["begin"], only_log["incident"]["end"])
    assert [member["client_id"] for member in both["groups"][0]["members"]] == ["batch", "checkout"]
    assert both["groups"][0]["would_pass"] == only_totals["groups"][0]["would_pass"] is not None
    assert both["evidence"][0].startswith("Traffic: per-second totals of request logs, from ")
    assert both["evidence"][0].endswith(" UTC. It records no throttle")
    assert both["evidence"][1].startswith("Traffic: violation log, from ")
    assert both["evidence"][1].endswith(" UTC. It records throttles")
    assert "Raise the limit now" in {step["title"] for step in both["steps"]}


def test_the_order_of_the_sources_does_not_matter(folder: Path) -> None:
    sources = ("1=../server.log", "../totals", "1=../request.log")
    reports = [why(folder, *(word for source in order for word in ("--traffic", source))) for order in (sources, sources[::-1])]
    for report in reports:
        report["evidence"].sort()
    assert reports[0] == reports[1]


def test_a_source_of_another_time_is_named_and_changes_nothing(folder: Path) -> None:
    alone = why(folder, "--traffic", "1=../request.log")
    both = why(folder, "--traffic", "1=../request.log", "--traffic", "1=../other.log")

    assert [both[key] for key in ("answer", "groups", "recorded")] == [alone[key] for key in ("answer", "groups", "recorded")]
    assert [both["incident"][key] for key in ("begin", "end")] == [alone["incident"][key] for key in ("begin", "end")]
    assert both["evidence"][1].startswith("Traffic: violation log, from 2026-11-21 13:20:00 to ")
    assert both["incident"]["others"] == alone["incident"]["others"] + 1


def test_a_server_that_refuses_is_named_beside_the_answer_of_the_log(folder: Path) -> None:
    with served(lambda *_: (401, "text/plain", b"")) as port:
        server = f"http://127.0.0.1:{port}"
        report = why(folder, "--traffic", "1=../request.log", "--traffic", f"prometheus+{server}")

    assert report["answer"] == "throttled"
    assert report["evidence"][1].startswith(f"Also read: {server}. Nothing of this client and time: ")
    assert "401" in report["evidence"][1]


def test_no_source_with_anything_names_each_reason(folder: Path) -> None:
    traffic = ("--traffic", "1=../server.log", "--traffic", "../totals")
    done = invoke("why", "quotas", "--name", "user=audit", *AT, *traffic, "--format", "json", cwd=folder)

    report = done.json()
    reasons = [gap["because"] for gap in report["missing"] if gap["what"] == "whether the client was throttled"]
    assert (done.code, report["answer"], len(reasons)) == (1, "unknown", 2)
