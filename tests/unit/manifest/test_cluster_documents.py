"""Cluster and Repository documents into the model."""

import datetime

import pytest

from reconciler.manifest.documents import ClusterDocument, RepositoryDocument
from reconciler.manifest.reading import read_documents
from reconciler.model.cluster import (
    Acceptance,
    Connection,
    FreezeWindow,
    GuardLimits,
    Once,
    Prune,
    ReductionLimit,
    VolumeLimit,
    Weekly,
    WindowKind,
)
from reconciler.model.entity import DEFAULT, Entity, MatchKind, Selector, TypeMatch
from reconciler.model.finding import Severity, Span

CLUSTER = "apiVersion: kafka-quotas/v1\nkind: Cluster\nmetadata: {name: prod-eu, labels: {tier: gold, zone: 1}}\nspec:\n"
REPOSITORY = "apiVersion: kafka-quotas/v1\nkind: Repository\nspec:\n"


def cluster(*lines):
    content = read_documents((CLUSTER + "".join(f"  {line}\n" for line in lines)).encode(), "c.yaml")
    assert content.findings == ()
    (document,) = content.documents
    assert isinstance(document, ClusterDocument)
    return document.spec


def ids(text):
    return [finding.id for finding in read_documents(text.encode(), "c.yaml").findings]


def test_a_cluster_with_everything_is_read():
    spec = cluster(
        "clusterId: 4L6g3nShT-eMCtK--X86sw",
        'connection: {bootstrapServers: ["b1:9092", "b2:9092"], properties: client.properties}',
        "scope: {include: [{user: {prefix: pay-}}], exclude: [{user: pay-admin}]}",
        "prune: confirm",
        "protected: [{user: {default: true}, strict: true}]",
        "guards: {too-many-removals: {percent: 50, count: 7, minimum: 9},"
        " large-reduction: {factor: 0.9, keys: {request_percentage: 0.2}}}",
        "accept: [{guard: default-entity, match: {user: {default: true}}, until: 2027-01-31, reason: planned}]",
    )

    assert (spec.name, spec.labels, spec.cluster_id) == ("prod-eu", {"tier": "gold", "zone": "1"}, "4L6g3nShT-eMCtK--X86sw")
    assert spec.connection == Connection(bootstrap_servers=("b1:9092", "b2:9092"), properties="client.properties")
    assert spec.prune is Prune.CONFIRM
    assert spec.scope.contains(Entity.of({"user": "pay-a"}))
    assert not spec.scope.contains(Entity.of({"user": "pay-admin"}))
    default_user = (("user", TypeMatch(kind=MatchKind.DEFAULT)),)
    assert spec.safety.protected == (Selector(types=default_user, strict=True),)
    assert spec.safety.guards.too_many_removals == VolumeLimit(percent=50.0, count=7, minimum=9)
    assert spec.safety.guards.too_many_removals.set_in == Span(file="c.yaml", line=10, column=31)
    assert spec.safety.guards.large_reduction == ReductionLimit(factor=0.9, keys={"request_percentage": 0.2})
    assert spec.safety.guards.too_many_changes == GuardLimits().too_many_changes
    assert spec.safety.accept == (
        Acceptance(
            guard="default-entity", reason="planned", until=datetime.date(2027, 1, 31), match=Selector(types=default_user)
        ),
    )
    assert spec.safety.accept[0].span == Span(file="c.yaml", line=11, column=12)
    assert (spec.place("prune"), spec.place("freeze")) == (Span(file="c.yaml", line=8, column=10), spec.span)


def test_two_clusters_that_say_the_same_are_equal_wherever_they_are_written():
    lines = ("prune: never", "guards: {too-many-changes: {count: 1}}", "freeze: [{days: [sat]}]")
    accept = "accept: [{guard: prune, until: 2027-01-31, reason: x}]"

    assert cluster(*lines, accept) == cluster(accept, *reversed(lines))
    assert cluster(*lines) != cluster("prune: never", "guards: {too-many-changes: {count: 2}}", "freeze: [{days: [sat]}]")


def test_freeze_windows_are_once_or_weekly():
    spec = cluster(
        "prune: never",
        "freeze:",
        "  - {from: 2026-12-23T18:00:00+01:00, to: 2027-01-04T08:00:00Z, reason: end of the year}",
        "  - {from: 2026-12-23T18:00:00+01:00}",
        "  - {kind: allow, days: [mon, fri], hours: 18:00-08:00, timeZone: Europe/Berlin}",
        "  - {days: [sun]}",
    )
    start = datetime.datetime(2026, 12, 23, 17, tzinfo=datetime.UTC)

    assert spec.safety.freeze == (
        FreezeWindow(
            kind=WindowKind.DENY,
            when=Once(start=start, end=datetime.datetime(2027, 1, 4, 8, tzinfo=datetime.UTC)),
            reason="end of the year",
        ),
        FreezeWindow(kind=WindowKind.DENY, when=Once(start=start)),
        FreezeWindow(kind=WindowKind.ALLOW, when=Weekly(days=frozenset({0, 4}), start=1080, end=480, time_zone="Europe/Berlin")),
        FreezeWindow(kind=WindowKind.DENY, when=Weekly(days=frozenset({6}))),
    )
    assert [str(window.span) for window in spec.safety.freeze] == ["c.yaml:7:7", "c.yaml:8:7", "c.yaml:9:7", "c.yaml:10:7"]


@pytest.mark.parametrize(
    ("window", "rule"),
    [
        ("{from: 2026-12-23T18:00:00}", "invalid-freeze-window"),
        ("{from: 2026-12-23}", "invalid-freeze-window"),
        ("{from: 2026-12-23T18:00:00+01:00, to: 2026-12-23T17:00:00Z}", "invalid-freeze-window"),
        ("{from: 2026-12-23T18:00:00Z, days: [mon]}", "invalid-freeze-window"),
        ("{reason: x}", "invalid-freeze-window"),
        ("{hours: 18:00-08:00}", "invalid-freeze-window"),
        ("{days: [mon], hours: 8-18}", "invalid-freeze-window"),
        ("{days: [mon], hours: 08:00-08:00}", "invalid-freeze-window"),
        ("{days: [mon], hours: 08:00-24:01}", "invalid-freeze-window"),
        ("{days: [mon], timeZone: Europe}", "invalid-freeze-window"),
        ("{days: [mon], timeZone: Europe/Berln}", "invalid-freeze-window"),
        ("{days: [mon], timeZone: ../../etc/passwd}", "invalid-freeze-window"),
    ],
)
def test_a_freeze_window_that_cannot_be_understood_is_one_error(window, rule):
    assert [rule] == ids(f"{CLUSTER}  prune: never\n  freeze: [{window}]\n")


@pytest.mark.parametrize(
    ("selector", "chosen", "not_chosen"),
    [
        ("{user: on}", {"user": "on"}, {"user": "off"}),
        ("{user: {default: true}}", {"user": DEFAULT}, {"user": "a"}),
        ("{user: {named: true}}", {"user": "a"}, {"user": DEFAULT}),
        ("{user: {any: true}}", {"user": DEFAULT}, {"client-id": "a"}),
        ("{user: {prefix: 012}}", {"user": "0123"}, {"user": "123"}),
        ("{user: {glob: 'a?c*'}}", {"user": "abcd"}, {"user": "xabcd"}),
        ("{user: {any: true}, client-id: x}", {"user": "u", "client-id": "x"}, {"user": "u"}),
        ("{user: u, strict: true}", {"user": "u"}, {"user": "u", "client-id": "x"}),
    ],
)
def test_selectors_choose_as_the_manifest_says(selector, chosen, not_chosen):
    scope = cluster("prune: never", f"scope: {{include: [{selector}]}}").scope

    assert scope.contains(Entity.of(chosen))
    assert not scope.contains(Entity.of(not_chosen))


@pytest.mark.parametrize(
    ("line", "rule"),
    [
        ("scope: {include: [{user: {regex: 'a.*'}}]}", "unknown-field"),
        ("scope: {include: [{user: null}]}", "empty-name"),
        ("accept: [{guard: prune, until: 2027-02-30, reason: x}]", "invalid-date"),
        ("connection: {bootstrapServers: ['a:1'], zookeeper: 'b:1'}", "conflicting-connection"),
        ("traffic: {source: history, httpConfig: login.yml}", "conflicting-traffic"),
    ],
)
def test_a_cluster_that_cannot_be_meant_is_an_error(line, rule):
    assert rule in ids(f"{CLUSTER}  prune: never\n  {line}\n")


def test_an_acceptance_whose_selector_is_broken_accepts_nothing():
    accept = "accept: [{guard: prune, match: {user: {regex: 'a'}}, until: 2027-02-01, reason: x}]"
    content = read_documents(f"{CLUSTER}  prune: never\n  {accept}\n".encode(), "c.yaml")

    assert [finding.id for finding in content.findings] == ["unknown-field"]
    (document,) = content.documents
    assert isinstance(document, ClusterDocument)
    assert document.spec.safety.accept == ()


def test_the_repository_lists_what_is_excluded_and_changes_severities():
    content = read_documents(
        (REPOSITORY + "  exclude: [mkdocs.yml]\n  lint: {ip-host-name: warning, user-prefix: 'off'}\n").encode(), "c.yaml"
    )

    assert content.findings == ()
    (document,) = content.documents
    assert isinstance(document, RepositoryDocument)
    assert document.exclude == ("mkdocs.yml",)
    assert document.lint == {"ip-host-name": Severity.WARNING, "user-prefix": None}


@pytest.mark.parametrize(
    ("line", "rule"),
    [
        ("lint: {user-prefx: warning}", "unknown-lint-rule"),
        ("lint: {duplicate-entity: warning}", "unknown-lint-rule"),
        ("limits: [{producer_byte_rate: {max: 5Mb}}]", "unknown-unit"),
        ("limits: [{producer_byte_rate: {min: 0}}]", "value-not-positive"),
        ("limits: [{producer_byte_rate: {min: 2KiB, max: 2KB}}]", "invalid-limit"),
    ],
)
def test_settings_that_would_have_no_effect_are_errors(line, rule):
    assert ids(f"{REPOSITORY}  {line}\n") == [rule]
