"""Who may declare what, where, and up to which value: every way around it is an error at the right place."""

from __future__ import annotations

from pathlib import Path

import pytest

from reconciler.model.finding import Finding, Severity
from reconciler.workflows.intent import validate_manifests
from reconciler.workflows.load import desired_for, load_manifests

HEAD = "apiVersion: kafka-quotas/v1\n"
OWNERS = """\
kind: Repository
spec:
  owners:
    payments: {paths: ["teams/payments/**"], entities: [{user: {prefix: pay-}}]}
    apps: {paths: ["teams/apps/**"], entities: [{client-id: {glob: "app-*"}}, {user: bob}]}
    platform: {paths: [platform]}
    regional: {clusters: {labels: {zone: eu}}, entities: [{user: {prefix: eu-}}]}
"""
CLUSTERS = "".join(
    f"---\n{HEAD}kind: Cluster\nmetadata: {{name: {name}, labels: {{zone: {name}}}}}\nspec: {{prune: never}}\n"
    for name in ("eu", "us")
)


def document(owner: str | None, match: str, quotas: str = "request_percentage: 5", more: str = "", spec: str = "") -> str:
    metadata = f"metadata: {{owner: {owner}}}\n" if owner else ""
    entry = f"    - match: {{{match}}}\n      quotas: {{{quotas}}}\n{more}"
    return f"{HEAD}kind: ClientQuotas\n{metadata}spec:\n{spec}  quotas:\n{entry}"


def checked(root: Path, files: dict[str, str], repository: str = OWNERS) -> tuple[Finding, ...]:
    for name, text in {"kafka-quotas.yaml": HEAD + repository, "clusters.yaml": CLUSTERS, **files}.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    return errors([str(root)])


def errors(paths: list[str]) -> tuple[Finding, ...]:
    return tuple(one for one in validate_manifests(paths).findings if one.severity is Severity.ERROR)


@pytest.mark.parametrize(
    ("file", "owner", "match", "rule"),
    [
        ("teams/payments/a.yaml", "payments", "user: pay-api", None),
        ("teams/payments/deep/er/a.yaml", "payments", "user: pay-api, client-id: app-1", None),
        ("teams/payments/a.yaml", "payments", "user: pay-api, client-id: {default: true}", None),
        ("teams/apps/a.yaml", "apps", "client-id: app-1", None),
        ("teams/apps/a.yaml", "apps", "user: bob", None),
        ("teams/apps/a.yaml", "apps", "user: carol, client-id: app-1", None),
        ("platform/a.yaml", "platform", "user: {default: true}", None),
        ("platform/a.yaml", "platform", "user: carol", None),
        ("teams/payments/a.yaml", None, "user: pay-api", "missing-owner"),
        ("teams/payments/a.yaml", "paymets", "user: pay-api", "unknown-owner"),
        ("teams/apps/a.yaml", "payments", "user: pay-api", "outside-owner-paths"),
        ("teams/payments-not/a.yaml", "payments", "user: pay-api", "outside-owner-paths"),
        ("a.yaml", "payments", "user: pay-api", "outside-owner-paths"),
        ("teams/payments/a.yaml", "payments", "user: other", "outside-owner-entities"),
        ("teams/payments/a.yaml", "payments", "user: {default: true}", "outside-owner-entities"),
        ("teams/payments/a.yaml", "payments", "user: {default: true}, client-id: a", "outside-owner-entities"),
        ("teams/payments/a.yaml", "payments", "user: bob", "foreign-entity"),
        ("teams/payments/a.yaml", "payments", "client-id: app-1", "foreign-entity"),
        ("teams/apps/a.yaml", "apps", "user: pay-api, client-id: app-1", "foreign-entity"),
        ("platform/a.yaml", "platform", "user: pay-api", "foreign-entity"),
        ("platform/a.yaml", "platform", "user: pay-api, client-id: {default: true}", "foreign-entity"),
    ],
)
def test_an_owner_declares_its_own_entities_in_its_own_paths(
    tmp_path: Path, file: str, owner: str | None, match: str, rule: str | None
) -> None:
    found = checked(tmp_path, {file: document(owner, match)})
    assert [one.id for one in found] == ([] if rule is None else [rule])
    assert all(one.related and one.related[0].span.file.endswith("kafka-quotas.yaml") for one in found)


def test_the_finding_is_at_the_entity_and_names_the_line_of_the_owner_it_belongs_to(tmp_path: Path) -> None:
    (one,) = checked(tmp_path, {"teams/payments/a.yaml": document("payments", "user: bob")})
    assert one.span is not None
    assert (one.span.file, one.span.line, one.span.column) == (str(tmp_path / "teams/payments/a.yaml"), 6, 14)
    assert (one.related[0].span.line, one.related[0].span.column) == (6, 5)
    assert "'apps'" in one.message


def test_paths_are_those_from_the_root_however_the_command_was_called(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert checked(tmp_path, {"teams/payments/a.yaml": document("payments", "user: pay-api")}) == ()
    monkeypatch.chdir(tmp_path / "teams")
    assert errors(["payments/a.yaml"]) == ()
    monkeypatch.chdir(tmp_path / "teams" / "payments")
    assert errors(["../.."]) == ()


def test_without_owners_anybody_declares_anything(tmp_path: Path) -> None:
    files = {"a.yaml": document(None, "user: a"), "b.yaml": document("whoever", "user: b")}
    assert checked(tmp_path, files, "kind: Repository\nspec: {}\n") == ()


def test_an_owner_of_some_clusters_declares_nothing_for_the_others(tmp_path: Path) -> None:
    files = {
        "ok.yaml": document("regional", "user: eu-a", spec="  clusters: [eu]\n"),
        "labels.yaml": document("regional", "user: eu-b", spec="  clusters: {labels: {zone: eu}}\n"),
        "named.yaml": document("regional", "user: eu-c", spec="  clusters: [eu, us]\n"),
        "all.yaml": document("regional", "user: eu-d"),
    }
    found = checked(tmp_path, files)
    assert {(one.id, Path(one.span.file).name, one.span.line) for one in found if one.span} == {
        ("outside-owner-clusters", "named.yaml", 5),
        ("outside-owner-clusters", "all.yaml", 3),
    }


def limits(*items: str) -> str:
    return "kind: Repository\nspec:\n  limits:\n" + "".join(f"    - {{{item}}}\n" for item in items)


@pytest.mark.parametrize(
    ("limit", "value", "rule"),
    [
        ("producer_byte_rate: {max: 200MiB}", "producer_byte_rate: 200MiB", None),
        ("producer_byte_rate: {max: 200MiB}", "producer_byte_rate: 209715201", "above-limit"),
        ("producer_byte_rate: {min: 1KiB}", "producer_byte_rate: 1024", None),
        ("producer_byte_rate: {min: 1KiB}", "producer_byte_rate: 1KB", "below-limit"),
        ("producer_byte_rate: {min: 1KiB, max: 2KiB}", "producer_byte_rate: 3KiB", "above-limit"),
        ("request_percentage: {max: 50%}", "request_percentage: 50.5", "above-limit"),
        ("request_percentage: {max: 50%}", "producer_byte_rate: 200MiB", None),
        ("owner: team, producer_byte_rate: {max: 1}", "producer_byte_rate: 2", "above-limit"),
        ("owner: other, producer_byte_rate: {max: 1}", "producer_byte_rate: 2", None),
        ("match: {user: {prefix: a}}, producer_byte_rate: {max: 1}", "producer_byte_rate: 2", "above-limit"),
        ("match: {user: {prefix: b}}, producer_byte_rate: {max: 1}", "producer_byte_rate: 2", None),
        ("clusters: [us], producer_byte_rate: {max: 1}", "producer_byte_rate: 2", "above-limit"),
        ("clusters: {labels: {zone: none}}, producer_byte_rate: {max: 1}", "producer_byte_rate: 2", None),
    ],
)
def test_values_are_within_the_limits_that_hold_for_them(tmp_path: Path, limit: str, value: str, rule: str | None) -> None:
    found = checked(tmp_path, {"a.yaml": document("team", "user: alice", value)}, limits(limit))
    assert [one.id for one in found] == ([] if rule is None else [rule])


def test_overrides_obey_the_limits_where_they_hold(tmp_path: Path) -> None:
    more = "      overrides: [{clusters: [us], quotas: {producer_byte_rate: 9MiB}}]\n"
    text = document("team", "user: alice", "producer_byte_rate: 1MiB", more)
    (one,) = checked(tmp_path, {"a.yaml": text}, limits("producer_byte_rate: {max: 5MiB}"))
    assert (one.id, one.span.line if one.span else None) == ("above-limit", 8)
    loaded = load_manifests([str(tmp_path)])
    assert desired_for(loaded, "eu")[2] == ()
    assert [finding.id for finding in desired_for(loaded, "us")[2]] == ["above-limit"]
