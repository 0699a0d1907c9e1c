"""Whoever writes "no limit" learns which weaker quota decides without the key, and which value exempts from it."""

from __future__ import annotations

from pathlib import Path

import pytest

from reconciler.formats.units import parse_value
from reconciler.model.finding import Finding
from reconciler.model.quota import QuotaKey
from reconciler.workflows.load import load_manifests

MUTATIONS = "controller_mutation_rate"
HEAD = "apiVersion: kafka-quotas/v1\nkind: ClientQuotas\nspec:\n  quotas:\n"


def refused(folder: Path, value: str, *defaults: str, match: str = "{user: operator}", key: str = MUTATIONS) -> Finding:
    """The finding about ``key: value``, beside entries of other files."""
    (folder / "defaults.yaml").write_text(HEAD + "".join(f"    - {entry}\n" for entry in defaults))
    (folder / "exempt.yaml").write_text(f"{HEAD}    - match: {match}\n      quotas: {{{key}: {value}}}\n")
    (found,) = load_manifests([str(folder)]).findings
    return found


def entry(match: str, key: str, value: str) -> str:
    return f"{{match: {match}, quotas: {{{key}: {value}}}}}"


DEFAULT_USER = entry("{user: {default: true}}", MUTATIONS, "2")
VALUES = ["unlimited", "-1", "0", ".inf", "null", "~", "1e400", "nan", "{value: unlimited, until: 2030-01-01}"]
NONE = "which no client reaches"


@pytest.mark.parametrize("value", VALUES)
def test_the_declared_default_that_decides_is_named(tmp_path: Path, value: str) -> None:
    found = refused(tmp_path, value, DEFAULT_USER)
    assert "Without the key, the next weaker precedence level decides" in found.message
    assert "write 1000000, which no client reaches" in found.message
    assert found.message.endswith("Here, user=<default> would limit it to 2")
    assert found.span is not None
    assert (found.span.file, found.span.line) == (str(tmp_path / "exempt.yaml"), 6)


@pytest.mark.parametrize(
    ("match", "key", "beside", "value", "ending"),
    [
        ("{client-id: etl}", MUTATIONS, "{user: {default: true}}", "2", NONE),
        ("{client-id: etl}", MUTATIONS, "{client-id: {default: true}}", "3", "client-id=<default> would limit it to 3"),
        ("{user: a, client-id: b}", "producer_byte_rate", "{user: a}", "5MiB", "user=a would limit it to 5MiB"),
        ("{ip: 10.0.0.1}", "connection_creation_rate", "{ip: {default: true}}", "7", "ip=<default> would limit it to 7"),
        ("{user: {default: true}}", MUTATIONS, "{user: a}", "2", NONE),
    ],
)
def test_only_a_weaker_quota_of_the_key_is_named(
    tmp_path: Path, match: str, key: str, beside: str, value: str, ending: str
) -> None:
    assert refused(tmp_path, "unlimited", entry(beside, key, value), match=match, key=key).message.endswith(ending)


@pytest.mark.parametrize("key", list(QuotaKey))
def test_the_value_that_exempts_can_be_written_and_is_out_of_reach(tmp_path: Path, key: QuotaKey) -> None:
    match = "{ip: 10.0.0.1}" if key is QuotaKey.CONNECTION_CREATION_RATE else "{user: operator}"
    beside = entry("{user: other}", "producer_byte_rate", "1MiB")
    advised = refused(tmp_path, "unlimited", beside, match=match, key=key.value).message.partition("write ")[2]
    advised = advised.partition(",")[0]
    assert parse_value(key, advised).number >= key.unreachable


def test_a_default_of_a_profile_counts(tmp_path: Path) -> None:
    (tmp_path / "kafka-quotas.yaml").write_text(
        f"apiVersion: kafka-quotas/v1\nkind: Repository\nspec:\n  profiles: {{small: {{quotas: {{{MUTATIONS}: 4}}}}}}\n"
    )
    found = refused(tmp_path, "unlimited", "{match: {user: {default: true}}, profile: small}")
    assert found.message.endswith("Here, user=<default> would limit it to 4")
