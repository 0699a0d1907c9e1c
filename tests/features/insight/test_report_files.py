"""Audit files and backtests, as a report reads them: whole, in part, and when they are none."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from reconciler.documents.audit import AuditedRun, audit_text, failed_audit_to_json
from reconciler.documents.backtest import backtest_to_json
from reconciler.errors import FileAccessError, UnreachableError
from reconciler.features.insight.report.reading import MOST_RUNS, read_report_inputs, read_traffic
from reconciler.formats.canonical import document_text
from reconciler.model import Form, Verdict
from reconciler.model.state import ClusterIdentity
from tests.builders import NOON
from tests.support import backtest_reports
from tests.support.report_world import BACKTEST


def line(minute: int, **changes: Any) -> str:
    """A line as ``apply --audit`` writes it."""
    run = AuditedRun(command="apply", started=NOON, os_user="ci", cluster=ClusterIdentity(name="prod"))
    return audit_text(failed_audit_to_json(run, UnreachableError("no"), at=NOON.replace(minute=minute)) | changes) + "\n"  # type: ignore[operator]  # any JSON


@pytest.fixture
def audit(tmp_path: Path) -> Path:
    return tmp_path / "audit.jsonl"


def test_runs_of_all_files_are_the_latest_first(audit: Path, tmp_path: Path) -> None:
    audit.write_text(line(5) + "\n" + line(1))
    other = tmp_path / "other.jsonl"
    other.write_text(line(3))
    found = read_report_inputs([str(audit), str(other)], [])
    assert [run.ended.minute for run in found.runs] == [5, 3, 1]
    assert [run.file for run in found.runs] == [str(audit), str(other), str(audit)]
    assert (found.audited, found.runs_left_out, found.notes) == (True, 0, ())
    assert (found.runs[0].result, found.runs[0].failure_reason) == ("failed", "unreachable")


def test_a_line_that_is_none_is_told_by_its_number_and_the_others_are_read(audit: Path) -> None:
    audit.write_bytes(line(1).encode() + b'{"format_version": "1.0"}\n' + b"\xff\xfe\n" + b'{"broken\n' + line(2).encode()[:40])
    found = read_report_inputs([str(audit)], [])
    assert len(found.runs) == 1
    assert [note.split(" is not")[0] for note in found.notes] == [f"{audit}:{number}" for number in (2, 3, 4, 5)]


@pytest.mark.parametrize(
    "changes",
    [
        {"format_version": "2.0"},
        {"ended": "yesterday"},
        {"verified": "yes"},
        {"accepted": "default-entity"},
        {"cluster": None},
        {"summary": {"applied": -1}},
        {"os_user": None},
    ],
)
def test_a_field_of_another_kind_is_no_run(audit: Path, changes: dict[str, object]) -> None:
    audit.write_text(line(1, **changes))
    found = read_report_inputs([str(audit)], [])
    assert found.runs == ()
    assert len(found.notes) == 1


def test_of_many_bad_lines_few_are_told(audit: Path) -> None:
    audit.write_text("no\n" * 100)
    notes = read_report_inputs([str(audit)], []).notes
    assert len(notes) == 6
    assert notes[-1].endswith("95 more lines like these are left out")


def test_of_a_long_file_the_last_lines_are_kept(audit: Path) -> None:
    audit.write_text("".join(line(number % 60) for number in range(MOST_RUNS + 30)))
    found = read_report_inputs([str(audit), str(audit)], [])
    assert len(found.runs) == MOST_RUNS
    assert found.runs_left_out == MOST_RUNS + 60


def test_a_backtest_is_read_with_what_a_later_version_adds(tmp_path: Path) -> None:
    file = tmp_path / "backtest.json"
    file.write_text(json.dumps(BACKTEST))
    found = read_traffic(str(file))
    assert (found.cluster, found.requests, found.current_known) == ("prod-eu", 12, False)
    (bucket,) = found.buckets
    assert (bucket.verdict, bucket.reason) == (Verdict.INCONCLUSIVE, "who sent it is not known")
    assert (str(bucket.limits.entity), bucket.peak.rate) == ("user=<default>", 17.5)


def test_a_backtest_without_a_field_of_its_schema_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "backtest.json"
    verdict = {key: value for key, value in BACKTEST["verdicts"][0].items() if key != "reason"}
    file.write_text(json.dumps({**BACKTEST, "verdicts": [verdict]}))
    with pytest.raises(FileAccessError, match=r"verdicts\[0\] lacks 'reason'"):
        read_traffic(str(file))


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"format_version": "1.0"}, "of format 1.0, and this version reads format 2"),
        ({"provenance": None}, "provenance must be an object"),
        ({"verdicts": [BACKTEST["verdicts"][0] | {"bucket": {"user": 7}}]}, "verdicts[0].bucket.user must be a string"),
        ({"verdicts": {}}, "verdicts must be a list"),
    ],
)
def test_what_is_no_backtest_is_refused_with_the_field(tmp_path: Path, change: dict[str, object], words: str) -> None:
    file = tmp_path / "backtest.json"
    file.write_text(json.dumps({**BACKTEST, **change}))
    with pytest.raises(FileAccessError, match=r"is (not )?a (backtest )?report") as refused:
        read_traffic(str(file))
    assert words in str(refused.value)


@pytest.mark.parametrize(
    "content", [b"", b"[]", b"\xff", b"[" * 100_000, b'{"format_version": 1}'], ids=["nothing", "list", "bytes", "deep", "number"]
)
def test_a_file_that_is_something_else_is_refused(tmp_path: Path, content: bytes) -> None:
    file = tmp_path / "backtest.json"
    file.write_bytes(content)
    with pytest.raises(FileAccessError):
        read_traffic(str(file))


def test_files_that_are_not_there_are_refused(tmp_path: Path) -> None:
    with pytest.raises(FileAccessError, match="cannot read the audit file"):
        read_report_inputs([str(tmp_path / "none")], [])
    with pytest.raises(FileAccessError, match="cannot read the backtest"):
        read_report_inputs([], [str(tmp_path / "none")])


def test_what_backtest_prints_today_is_read(tmp_path: Path) -> None:
    made = backtest_reports.report_of(
        backtest_reports.verdict(verdict=Verdict.THROTTLED, seconds_over=40, peak=150_000.0, rates=backtest_reports.rates()),
        backtest_reports.verdict(
            user="", client_id="app", key="request_percentage", limit_after=None, limits_before=(), entity=None
        ),
        backtest_reports.verdict(user="", verdict=Verdict.INCONCLUSIVE, reason="some requests tell no user"),
    )
    file = tmp_path / "backtest.json"
    file.write_text(document_text(backtest_to_json(made)))
    found = read_traffic(str(file))
    assert (found.requests, found.start, found.end, found.form) == (
        1000,
        backtest_reports.START,
        backtest_reports.END,
        Form.SECONDS,
    )
    assert [(one.name.user, one.name.client_id, one.key, one.verdict, one.reason) for one in found.buckets] == [
        ("alice", "", "producer_byte_rate", Verdict.THROTTLED, None),
        ("", "app", "request_percentage", Verdict.CLEAR, None),
        ("", "", "producer_byte_rate", Verdict.INCONCLUSIVE, "some requests tell no user"),
    ]
