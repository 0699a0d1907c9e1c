"""helmsman's quota enforcer: entities, defaults, clusters, and which value wins."""

import pytest

from reconciler.importing.helmsman import read_helmsman
from reconciler.model.entity import DEFAULT
from tests.builders import client, pair, user

KAFKA = "kafka:\n  bootstrap.servers: b1:9092\n"


def read(text, others=None):
    files = others or {}
    return read_helmsman(text.encode(), "conf.yaml", lambda name: (name, files[name].encode()) if name in files else None)


def quotas(found):
    return [(one.cluster, one.entity, one.quotas) for one in found.quotas]


@pytest.mark.parametrize(
    ("names", "expected"),
    [
        ("principal: alice", user("alice")),
        ("principal: <default>", user()),
        ("client: app", client("app")),
        ("client: <default>", client()),
        ("principal: alice, client: app", pair("alice", "app")),
        ("principal: alice, client: <default>", pair("alice", DEFAULT)),
        ("principal: <default>, client: app", pair(DEFAULT, "app")),
        ("principal: <default>, client: <default>", pair(DEFAULT, DEFAULT)),
        ("principal: alice, client: null", user("alice")),
        ('principal: "User:alice"', user("User:alice")),
    ],
)
def test_all_eight_shapes_are_read(names, expected):
    found = read(f"- {{{names}, producer-byte-rate: 5000, consumer-byte-rate: 4000, request-percentage: 400}}\n")

    assert found.findings == ()
    values = {"producer_byte_rate": 5000.0, "consumer_byte_rate": 4000.0, "request_percentage": 400.0}
    assert quotas(found) == [(None, expected, values)]


def test_a_configuration_holds_its_quotas_or_names_their_file():
    listed = "- principal: alice\n  producer-byte-rate: 7000\n"
    inside = KAFKA + "quotas:\n  - principal: alice\n    producer-byte-rate: 7000\n"

    named = read(KAFKA + "quotasFile: q.yaml\n", {"q.yaml": listed})

    assert (
        quotas(read(inside)) == quotas(named) == quotas(read(listed)) == [(None, user("alice"), {"producer_byte_rate": 7000.0})]
    )
    assert named.quotas[0].span.file == "q.yaml"
    (missing,) = read(KAFKA + "quotasFile: /q.yaml\n").findings
    assert (missing.id, missing.span.line, missing.span.column) == ("import-nothing-found", 3, 13)


def test_defaults_fill_what_a_quota_leaves_open_in_the_documented_order():
    text = (
        KAFKA + "defaults:\n  producer-byte-rate: 1\n  consumer-byte-rate: 2\n  request-percentage: 3\n"
        "  clusters:\n    foo: {producer-byte-rate: 10, consumer-byte-rate: 20, request-percentage: 30}\n"
        "quotas:\n"
        "  - principal: alice\n    producer-byte-rate: 100\n    consumer-byte-rate: 200\n"
        "    clusters: {foo: {producer-byte-rate: 1000}, bar: {}}\n"
    )
    found = read(text)

    assert found.findings == ()
    assert quotas(found) == [
        ("foo", user("alice"), {"producer_byte_rate": 1000.0, "consumer_byte_rate": 200.0, "request_percentage": 30.0}),
        ("bar", user("alice"), {"producer_byte_rate": 100.0, "consumer_byte_rate": 200.0, "request_percentage": 3.0}),
    ]


def test_a_quota_without_clusters_beside_one_with_some_is_for_none_and_says_so():
    found = read("- {principal: a, producer-byte-rate: 1, clusters: {foo: {}}}\n- {principal: b, producer-byte-rate: 1}\n")

    assert quotas(found) == [("foo", user("a"), {"producer_byte_rate": 1.0})]
    assert [(one.id, one.span.line) for one in found.findings] == [("import-ambiguous", 2)]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("- {producer-byte-rate: 1}", ("import-syntax", 1, 3)),
        ("- {principal: '', producer-byte-rate: 1}", ("import-ambiguous", 1, 15)),
        ("- {principal: a, producer_byte_rate: 1}", ("import-unsupported", 1, 38)),
        ("- {principal: a, producer-byte-rate: 12.5}", ("value-fractional", 1, 38)),
        ("- {principal: a, producer-byte-rate: -1}", ("value-not-positive", 1, 38)),
        ("- {principal: a, producer-byte-rate: lots}", ("value-syntax", 1, 38)),
        ("- {principal: a, clusters: [foo]}", ("import-syntax", 1, 28)),
        ("- {principal: a, clusters: {foo: {principal: b}}}", ("import-unsupported", 1, 46)),
        ("quotas: {a: b}", ("import-syntax", 1, 9)),
        ("quotas: []\ndefaults: {principal: a}", ("import-unsupported", 2, 23)),
        ("quotas: [{principal: a}]\ndefaults: {clusters: {foo: {}}}", ("import-ambiguous", 2, 22)),
        ("quotas: []\n---\nquotas: []\n", ("import-syntax", 3, 1)),
        ("words", ("import-syntax", 1, 1)),
    ],
)
def test_what_cannot_be_converted_has_its_place(text, expected):
    found = read(text)

    assert found.quotas == ()
    assert [(one.id, one.span.line, one.span.column) for one in found.findings] == [expected]


def test_fractions_and_large_numbers_are_the_doubles_that_helmsman_sends():
    found = read("- {principal: a, request-percentage: 12.5, producer-byte-rate: 2147483648}")

    assert quotas(found) == [(None, user("a"), {"request_percentage": 12.5, "producer_byte_rate": 2147483648.0})]
    assert found.findings == ()
