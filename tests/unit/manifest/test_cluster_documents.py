"""Cluster and Repository documents into the model."""

import datetime

import pytest

from reconciler.manifest.catalogue import RULES
from reconciler.manifest.documents import ClusterDocument, RepositoryDocument
from reconciler.manifest.reading import read_documents
from reconciler.model.cluster import Acceptance, Connection, Prune
from reconciler.model.entity import DEFAULT, Entity
from reconciler.model.finding import Severity
from reconciler.model.selector import MatchKind, Selector, TypeMatch
from reconciler.model.source import Span

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
        "guards: {too-many-removals: {percent: 50, count: 7}}",
        "accept: [{guard: default-entity, match: {user: {default: true}}, until: 2027-01-31, reason: planned}]",
    )

    assert (spec.name, spec.labels, spec.cluster_id) == ("prod-eu", {"tier": "gold", "zone": "1"}, "4L6g3nShT-eMCtK--X86sw")
    assert spec.connection == Connection(bootstrap_servers=("b1:9092", "b2:9092"), properties="client.properties")
    assert spec.prune is Prune.CONFIRM
    assert spec.scope.contains(Entity.of({"user": "pay-a"}))
    assert not spec.scope.contains(Entity.of({"user": "pay-admin"}))
    default_user = (("user", TypeMatch(kind=MatchKind.DEFAULT)),)
    assert spec.protected == (Selector(types=default_user, strict=True),)
    assert (spec.removal_limit.percent, spec.removal_limit.count) == (50.0, 7)
    assert spec.removal_limit.set_in == Span(file="c.yaml", line=10, column=31)
    assert spec.accept == (
        Acceptance(
            guard="default-entity",
            reason="planned",
            until=datetime.date(2027, 1, 31),
            match=Selector(types=default_user),
            span=Span(file="c.yaml", line=11, column=12),
        ),
    )


def test_a_cluster_needs_no_more_than_prune():
    spec = cluster("prune: always")

    assert (spec.prune, spec.connection, spec.cluster_id, spec.accept, spec.protected) == (Prune.ALWAYS, None, None, (), ())
    assert spec.scope.contains(Entity.of({"ip": DEFAULT}))


def test_zookeeper_is_another_way_to_connect():
    assert cluster("prune: never", 'connection: {zookeeper: "zk1:2181/chroot"}').connection == Connection(
        zookeeper="zk1:2181/chroot"
    )


@pytest.mark.parametrize(
    ("selector", "chosen", "not_chosen"),
    [
        ("{user: on}", {"user": "on"}, {"user": "off"}),
        ("{user: {default: true}}", {"user": DEFAULT}, {"user": "a"}),
        ("{user: {named: true}}", {"user": "a"}, {"user": DEFAULT}),
        ("{user: {any: true}}", {"user": DEFAULT}, {"client-id": "a"}),
        ("{user: {prefix: 012}}", {"user": "0123"}, {"user": "123"}),
        ("{user: {glob: 'a?c*'}}", {"user": "abcd"}, {"user": "xabcd"}),
        ("{user: {regex: 'a[0-9]+'}}", {"user": "a12"}, {"user": "a12b"}),
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
        ("scope: {include: [{user: {regex: 'a['}}]}", "invalid-selector"),
        ("scope: {include: [{usr: a}]}", "unknown-field"),
        ("scope: {include: [{user: null}]}", "empty-name"),
        ("accept: [{guard: prune, until: 2027-02-30, reason: x}]", "invalid-date"),
        ("accept: [{guard: prune, until: soon, reason: x}]", "wrong-value"),
        ("accept: [{guard: prune, until: 2027-02-01}]", "missing-field"),
        ("accept: [{guard: prune, reason: '', until: 2027-02-01}]", "wrong-value"),
        ("connection: {bootstrapServers: ['a:1'], zookeeper: 'b:1'}", "conflicting-connection"),
        ("connection: {bootstrapServers: ['a:1'], password: x}", "unknown-field"),
        ("guards: {too-many-removals: {percent: 101}}", "wrong-value"),
        ("guards: {too-many-removals: {count: 1.5}}", "wrong-type"),
        ("guards: {too-many: {count: 1}}", "unknown-field"),
    ],
)
def test_a_cluster_that_cannot_be_meant_is_an_error(line, rule):
    assert rule in ids(f"{CLUSTER}  prune: never\n  {line}\n")


def test_an_acceptance_whose_selector_is_broken_accepts_nothing():
    accept = "accept: [{guard: prune, match: {user: {regex: '('}}, until: 2027-02-01, reason: x}]"
    content = read_documents(f"{CLUSTER}  prune: never\n  {accept}\n".encode(), "c.yaml")

    assert [finding.id for finding in content.findings] == ["invalid-selector"]
    assert content.documents[0].spec.accept == ()


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
        ("lint: {user-prefix: fatal}", "wrong-value"),
        ("owners: {}", "unknown-field"),
        ("limits: []", "unknown-field"),
    ],
)
def test_settings_that_would_have_no_effect_are_errors(line, rule):
    assert ids(f"{REPOSITORY}  {line}\n") == [rule]


def test_owners_are_said_to_be_unsupported_instead_of_being_ignored():
    (finding,) = read_documents(f"{REPOSITORY}  owners: {{a: {{}}}}\n".encode(), "c.yaml").findings

    assert "not supported yet" in finding.message


def test_every_rule_is_explained():
    assert len(RULES) > 40
    assert [rule.id for rule in RULES.values() if len(rule.explanation) < 60] == []
