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


USERS = ["{user: a}", "{user: CN=a}", "{user: {default: true}}", "{user: mirror-1}"]
OTHERS = ["{client-id: app}", "{user: a, client-id: app}", "{user: {default: true}, client-id: app}", "{ip: 10.0.0.1}"]


@pytest.mark.parametrize(
    ("cluster", "match", "errors"),
    [
        *((ALL_EXCLUDED, match, ["outside-scope"]) for match in USERS),
        *((each, match, []) for each in (ALL_EXCLUDED, SOME_INCLUDED) for match in OTHERS),
        (SOME_INCLUDED, "{user: mirror-1}", []),
        (SOME_INCLUDED, "{user: CN=mirror-1}", []),
        (SOME_INCLUDED, "{user: a}", ["outside-scope"]),
    ],
)
def test_the_first_manifest_leaves_users_to_the_operators_and_the_second_only_theirs(
    tmp_path: Path, cluster: str, match: str, errors: list[str]
) -> None:
    assert validated(tmp_path, cluster, match) == errors
