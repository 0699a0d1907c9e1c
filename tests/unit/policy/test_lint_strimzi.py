"""Quotas that Strimzi's operators write: which names they decode to a KafkaUser, and which stay silent."""

from pathlib import Path

import pytest

from reconciler.policy.lint.rules import resource_of
from tests.support.command import invoke

HEAD = "apiVersion: kafka-quotas/v1\n"
IGNORED = "strimzi: {ignoredUsers: [{user: {prefix: mirror-}}]}"


def findings(folder: Path, match: str, strimzi: str = IGNORED) -> list[tuple[str, int]]:
    (folder / "cluster.yaml").write_text(f"{HEAD}kind: Cluster\nmetadata: {{name: c}}\nspec:\n  prune: never\n  {strimzi}\n")
    (folder / "q.yaml").write_text(
        f"{HEAD}kind: ClientQuotas\nspec:\n  quotas:\n    - match: {match}\n      quotas: {{producer_byte_rate: 1MiB}}\n"
    )
    document = invoke("validate", ".", "--format", "json", cwd=folder).json()
    return [(one["id"], one["line"]) for one in document["findings"] if one["id"].startswith("strimzi")]


@pytest.mark.parametrize("match", ["{user: a}", "{user: CN=a}", "{user: 'CN=a b'}"])
def test_users_of_the_operator_are_named_with_their_place(tmp_path: Path, match: str) -> None:
    assert findings(tmp_path, match) == [("strimzi-owns-user", 5)]


def test_the_default_user_belongs_to_the_cluster_operator(tmp_path: Path) -> None:
    assert findings(tmp_path, "{user: {default: true}}") == [("strimzi-owns-default", 5)]


@pytest.mark.parametrize(
    "match",
    [
        "{user: mirror-1}",
        "{user: a, client-id: b}",
        "{user: {default: true}, client-id: b}",
        "{client-id: a}",
        "{user: 'CN=a,OU=b'}",
    ],
)
def test_what_no_operator_writes_stays_silent(tmp_path: Path, match: str) -> None:
    assert findings(tmp_path, match) == []


def test_without_the_field_nothing_is_reported(tmp_path: Path) -> None:
    assert findings(tmp_path, "{user: a}", strimzi="rebalance: never") == []


@pytest.mark.parametrize(
    ("user", "resource"), [("a", "a"), ("CN=a", "a"), ("CN=a,OU=b", None), ("O=x,CN=a", None), ("CN=", None), ("cn=a", "cn=a")]
)
def test_the_resource_of_a_user_is_the_one_that_the_operator_decodes_and_writes(user: str, resource: str | None) -> None:
    assert resource_of(user) == resource
