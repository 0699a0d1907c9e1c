"""Audit files as why and describe read them: whole, in part, and when they are something else."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from reconciler.documents import AUDIT, AuditedRun, audit_line, parse
from reconciler.errors import FileAccessError, UnreachableError
from reconciler.features.insight.value_history import MOST_RUNS, read_runs
from reconciler.model.state import ClusterIdentity
from tests.builders import NOON


def line(minute: int, **changes: Any) -> str:
    """A line as ``apply --audit`` writes it."""
    run = AuditedRun(command="apply", started=NOON, os_user="ci", cluster=ClusterIdentity(name="prod"))
    line = json.loads(audit_line(run, UnreachableError("no"), at=NOON.replace(minute=minute)))
    return json.dumps({**line, **changes}) + "\n"


@pytest.fixture
def audit(tmp_path: Path) -> Path:
    return tmp_path / "audit.jsonl"


def test_runs_of_all_files_are_the_latest_first(audit: Path, tmp_path: Path) -> None:
    audit.write_text(line(5) + "\n" + line(1))
    other = tmp_path / "other.jsonl"
    other.write_text(line(3))
    runs, notes = read_runs([str(audit), str(other)])
    assert [run.ended.minute for run in runs] == [5, 3, 1]
    assert notes == ()
    assert (runs[0].result, runs[0].failure_reason) == ("failed", "unreachable")


def test_a_line_that_is_none_is_told_by_its_number_and_the_others_are_read(audit: Path) -> None:
    audit.write_bytes(line(1).encode() + b'{"format_version": "1.0"}\n' + b"\xff\xfe\n" + b'{"broken\n' + line(2).encode()[:40])
    runs, notes = read_runs([str(audit)])
    assert len(runs) == 1
    (note,) = notes
    assert note.startswith(f"{audit}:2 is not a line that --audit writes")
    assert note.endswith(". So are 3 more lines")


@pytest.mark.parametrize("changes", [{"format_version": "2.0"}, {"summary": {"applied": -1}}])
def test_a_field_of_another_kind_is_no_run(audit: Path, changes: dict[str, object]) -> None:
    audit.write_text(line(1, **changes))
    runs, notes = read_runs([str(audit)])
    assert runs == ()
    assert len(notes) == 1


def test_of_a_long_file_the_last_lines_are_kept(audit: Path) -> None:
    audit.write_text("".join(line(number % 60) for number in range(MOST_RUNS + 30)))
    runs, _ = read_runs([str(audit), str(audit)])
    assert len(runs) == MOST_RUNS


def test_a_file_that_is_not_there_is_refused(tmp_path: Path) -> None:
    with pytest.raises(FileAccessError, match="cannot read the audit file"):
        read_runs([str(tmp_path / "none")])


@pytest.mark.parametrize(
    ("ours", "theirs", "same"),
    [
        (("a", "1"), ("a", "1"), True),
        (("a", "1"), ("b", "1"), True),
        (("a", "1"), ("a", "2"), False),
        (("a", None), ("a", "2"), True),
        ((None, None), (None, "2"), False),
    ],
)
def test_a_run_belongs_to_the_cluster_of_its_id_else_of_its_name(
    ours: tuple[str | None, str | None], theirs: tuple[str | None, str | None], same: bool
) -> None:
    run = AUDIT.build(parse(line(1, cluster={"name": ours[0], "id": ours[1], "kafka_version": None}).encode()))
    assert run.is_of(ClusterIdentity(name=theirs[0], id=theirs[1])) is same
