"""The Cluster manifests of docs/adopt-a-cluster.md: they refuse the entities of Strimzi's operators, and take the rest."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.support.command import invoke
from tests.support.pages import part

PAGE = part("adopt-a-cluster", "Live beside Strimzi")
ALL_EXCLUDED, SOME_INCLUDED = re.findall(r"```yaml\n(apiVersion: kafka-quotas/v1\n.*?)```", PAGE, re.DOTALL)


def validated(folder: Path, cluster: str, match: str) -> list[str]:
    key = "{connection_creation_rate: 5}" if "ip" in match else "{producer_byte_rate: 1MiB}"
    (folder / "cluster.yaml").write_text(cluster)
    (folder / "orders.properties").write_text("security.protocol=SSL\n")
    (folder / "quotas.yaml").write_text(
        "apiVersion: kafka-quotas/v1\nkind: ClientQuotas\nmetadata: {name: q}\n"
        f"spec:\n  quotas:\n    - match: {match}\n      quotas: {key}\n"
    )
    document = invoke("validate", ".", "--format", "json", cwd=folder).json()
    return [one["id"] for one in document["findings"] if one["severity"] == "error"]


@pytest.mark.parametrize("match", ["{user: a}", "{user: CN=a}", "{user: {default: true}}", "{user: mirror-1}"])
def test_the_first_manifest_leaves_every_user_to_the_operators(tmp_path: Path, match: str) -> None:
    assert validated(tmp_path, ALL_EXCLUDED, match) == ["outside-scope"]


OTHERS = ["{client-id: app}", "{user: a, client-id: app}", "{user: {default: true}, client-id: app}", "{ip: 10.0.0.1}"]


@pytest.mark.parametrize("match", OTHERS)
def test_the_first_manifest_owns_the_rest(tmp_path: Path, match: str) -> None:
    assert validated(tmp_path, ALL_EXCLUDED, match) == []


@pytest.mark.parametrize(
    ("match", "errors"),
    [("{user: mirror-1}", []), ("{user: CN=mirror-1}", []), ("{user: a}", ["outside-scope"]), *((one, []) for one in OTHERS)],
)
def test_the_second_manifest_owns_the_ignored_users_too(tmp_path: Path, match: str, errors: list[str]) -> None:
    assert validated(tmp_path, SOME_INCLUDED, match) == errors
