"""The summary of an apply on the page of a CI run."""

from __future__ import annotations

from pathlib import Path

from reconciler.documents import APPLY_REPORT, failed_apply
from reconciler.errors import GuardRefusedError
from reconciler.model import (
    Action,
    ApplyReport,
    ApplyResult,
    Change,
    ChangeOutcome,
    ChangeStatus,
    ClusterIdentity,
    KeyChange,
    Reason,
)
from tests.builders import user
from tests.support.command import invoke
from tests.support.hostile_names import HOSTILE
from tests.support.markdown_views import by_github

PROD = ClusterIdentity(name="prod", id="c1")


def outcome(name: str, status: ChangeStatus, error: str | None = None) -> ChangeOutcome:
    key = KeyChange(key="producer_byte_rate", before=1024.0, after=2048.0, reason=Reason.VALUE_DIFFERS)
    change = Change(entity=user(name), action=Action.UPDATE, keys=(key,))
    return ChangeOutcome(change=change, status=status, error_code=None if error is None else 7, error=error)


def written(*outcomes: ChangeOutcome, result: ApplyResult = ApplyResult.DONE) -> str:
    report = ApplyReport(
        cluster=PROD, digest="sha256:" + "0" * 64, result=result, outcomes=outcomes, verified=True, failure_reason=None,
        message=None, validate_only=False, seconds=3.0, brokers=3,
    )  # fmt: skip
    return APPLY_REPORT.text(report)


def summary(folder: Path, text: str) -> str:
    (folder / "result.json").write_text(text, encoding="utf-8")
    done = invoke("tool", "render", "result.json", "--format", "markdown", cwd=folder)
    assert (done.code, done.err) == (0, "")
    return done.out


def test_a_good_run_is_a_sentence_and_a_table(tmp_path: Path) -> None:
    text = summary(tmp_path, written(outcome("alice", ChangeStatus.APPLIED)))
    assert text.startswith("### Kafka quotas, apply: `prod`\n\n**Applied: 1 entity written in 3 s, verified on 3 brokers.**\n")
    row = ["user=alice", "producer_byte_rate", "1\N{NO-BREAK SPACE}KiB/s", "2\N{NO-BREAK SPACE}KiB/s", "written"]
    assert by_github(text).rows[1] == row
    assert "{" not in text


def test_a_run_that_guards_refuse_says_how_to_accept_them_in_ci(tmp_path: Path) -> None:
    error = GuardRefusedError("guards need acceptance", guard_ids=("prune", "large-reduction"))
    text = summary(tmp_path, APPLY_REPORT.text(failed_apply(error, cluster=PROD, validate_only=False)))
    assert text.startswith("### Kafka quotas, apply: `prod`\n\n**Refused: ")
    assert "To accept `prune`, `large-reduction` for one run instead, start this workflow by hand" in text
    assert "their ids, one a line, into its input `accept`" in text
    assert text.index("Correct the values") < text.index("To accept")
    assert "--accept" not in text


def test_strange_names_stay_in_their_cells(tmp_path: Path) -> None:
    names = sorted({name or "x" for name in HOSTILE if name != "\ud800"})
    failed = (outcome(name, ChangeStatus.FAILED, error=name) for name in names)
    text = summary(tmp_path, written(*failed, result=ApplyResult.PARTIAL))
    assert len(by_github(text).rows) == len(names) + 1
