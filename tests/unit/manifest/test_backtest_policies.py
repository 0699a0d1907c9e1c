"""``spec.backtest`` of a Cluster manifest."""

from __future__ import annotations

from pathlib import Path

import pytest

from reconciler.manifest.documents import ClusterDocument
from reconciler.manifest.reading import FileContent, read_documents
from reconciler.model import Verdict
from reconciler.model.cluster import ClusterSpec, HistoryNeeds
from reconciler.model.entity import Entity
from reconciler.workflows.load import load_manifests

CLUSTER = "apiVersion: kafka-quotas/v1\nkind: Cluster\nmetadata: {name: prod}\nspec:\n  prune: never\n"
REPOSITORY = "apiVersion: kafka-quotas/v1\nkind: Repository\nspec:\n"


def read(*lines: str, head: str = CLUSTER) -> FileContent:
    return read_documents((head + "".join(f"  {line}\n" for line in lines)).encode(), "c.yaml")


def spec(*lines: str) -> ClusterSpec:
    content = read(*lines)
    assert content.findings == ()
    (document,) = content.documents
    assert isinstance(document, ClusterDocument)
    return document.spec


def test_a_policy_with_everything_is_read() -> None:
    policy = spec(
        "backtest:",
        "  history: {hours: 24, coveragePercent: 90}",
        "  fail:",
        "    - {verdicts: [throttled], owners: [gold], reason: gold is never throttled}",
        "    - verdicts: [throttled, possible]",
        "      owners: [team-a, 7]",
        "      match: {user: {prefix: pay-}}",
        "      keys: [producer_byte_rate]",
        "      seconds: 10",
        "      unchanged: true",
    ).backtest
    assert policy.history == HistoryNeeds(hours=24, coverage_percent=90)
    gold, other = policy.fail
    assert (gold.verdicts, gold.owners, gold.reason) == ((Verdict.THROTTLED,), ("gold",), "gold is never throttled")
    assert (gold.match, gold.keys, gold.seconds, gold.unchanged) == (None, (), 1, False)
    assert other.owners == ("team-a", "7")
    assert other.match is not None
    assert other.match.matches(Entity.of({"user": "pay-1", "client-id": "x"}))
    assert (other.keys, other.seconds, other.unchanged) == (("producer_byte_rate",), 10, True)
    assert other.span is not None
    assert (other.span.line, other.span.column) == (10, 9)


@pytest.mark.parametrize(
    ("line", "found"),
    [
        ("backtest: {fail: [{verdicts: [clear]}]}", "wrong-value"),
        ("backtest: {fail: [{owners: [a]}]}", "missing-field"),
        ("backtest: {history: {coveragePercent: 101}}", "wrong-value"),
    ],
)
def test_what_cannot_be_meant_is_a_finding(line: str, found: str) -> None:
    content = read(line)
    assert [one.id for one in content.findings] == [found]


@pytest.mark.parametrize(("owners", "said"), [("[team-a]", None), ("[team-z]", "the repository declares no owner 'team-z'")])
def test_a_rule_about_an_owner_that_nobody_is_would_never_fail(tmp_path: Path, owners: str, said: str | None) -> None:
    (tmp_path / "kafka-quotas.yaml").write_text(f"{REPOSITORY}  owners: {{team-a: {{}}}}\n", encoding="utf-8")
    rule = f"  backtest: {{fail: [{{verdicts: [throttled], owners: {owners}}}]}}\n"
    (tmp_path / "cluster.yaml").write_text(CLUSTER + rule, encoding="utf-8")
    found = [(one.id, one.message) for one in load_manifests([str(tmp_path)]).findings]
    assert [one for one, _ in found] == ([] if said is None else ["unknown-owner"])
    assert said is None or said in found[0][1]
