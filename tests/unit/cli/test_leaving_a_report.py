"""What a run did is told, whatever goes wrong while it is told, and the exit code never says less was written than was."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from reconciler.cli import writing
from reconciler.cli.declaration import read
from reconciler.cli.main import build_parser
from reconciler.errors import FileAccessError, OutputError
from reconciler.model.plan import Action, ApplyReport, ApplyResult, Change, ChangeOutcome, ChangeStatus, KeyChange, Reason
from reconciler.model.state import ClusterIdentity
from reconciler.ports import SystemClock
from reconciler.workflows import AuditFile
from tests.builders import user
from tests.fakes import FakeCluster

CHANGE = Change(
    entity=user("a"),
    action=Action.CREATE,
    keys=(KeyChange(key="producer_byte_rate", before=None, after=1.0, reason=Reason.NOT_IN_CURRENT),),
)


def report(result: ApplyResult, status: ChangeStatus) -> ApplyReport:
    return ApplyReport(
        cluster=ClusterIdentity(id="c1"),
        digest="sha256:" + "0" * 64,
        result=result,
        outcomes=(ChangeOutcome(change=CHANGE, status=status),),
        verified=result is ApplyResult.DONE,
    )


DONE = report(ApplyResult.DONE, ChangeStatus.APPLIED)
REFUSED = report(ApplyResult.REFUSED, ChangeStatus.NOT_ATTEMPTED)


class Failing(writing.Audit):
    """An audit file that cannot be written, for one reason or another."""

    def __init__(self, file: Path, error: BaseException) -> None:
        super().__init__()
        self.file = AuditFile(file, command="apply", validate_only=False, clock=SystemClock())
        self._error = error

    def ended(self, report: ApplyReport) -> None:
        raise self._error


def finish(tmp_path: Path, what: ApplyReport, error: BaseException) -> int:
    line = ["apply", "--report", str(tmp_path / "report.json")]
    write = read(writing.WritingOptions, build_parser("apply").parse_args(line))
    left = writing.finish(write, what, Failing(tmp_path / "audit.jsonl", error), "json")
    return left.exit


@pytest.mark.parametrize(("error", "refused"), [(FileAccessError("disk full"), 3), (OutputError("gone"), 3)], ids=repr)
def test_the_report_is_left_in_file_and_on_stdout_all_the_same(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], error: BaseException, refused: int
) -> None:
    assert finish(tmp_path, DONE, error) == 4
    assert json.loads(capsys.readouterr().out) == json.loads((tmp_path / "report.json").read_text())
    assert finish(tmp_path, REFUSED, error) == refused


def test_an_error_of_our_own_after_a_write_is_exit_4_with_the_report(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert finish(tmp_path, DONE, ZeroDivisionError("oops")) == 4
    printed = capsys.readouterr()
    assert json.loads(printed.out)["result"] == "done"
    assert "internal error: ZeroDivisionError: oops" in printed.err


def test_an_error_of_our_own_where_nothing_was_written_is_an_ordinary_one(tmp_path: Path) -> None:
    with pytest.raises(ZeroDivisionError):
        finish(tmp_path, REFUSED, ZeroDivisionError("oops"))


class Stuck(FakeCluster):
    """Something breaks while the connection is given back."""

    def close(self) -> None:
        super().close()
        raise RuntimeError("the thread does not end")


def test_an_error_while_the_connection_is_given_back_costs_no_report() -> None:
    cluster = Stuck()
    with writing.given_back(cluster):
        pass
    assert cluster.closes == 1


def test_an_error_inside_closes_the_connection_and_goes_on() -> None:
    cluster = FakeCluster()
    with pytest.raises(ZeroDivisionError), writing.given_back(cluster):
        raise ZeroDivisionError
    assert cluster.closes == 1
