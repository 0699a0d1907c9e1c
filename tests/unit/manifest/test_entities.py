"""Entities and values of ClientQuotas documents: all shapes, and every way in which one can be wrong."""

import pytest

from reconciler.manifest.documents import ClientQuotasDocument
from reconciler.manifest.reading import read_documents
from reconciler.model.entity import DEFAULT, Entity
from reconciler.model.finding import Severity
from reconciler.model.quota import QuotaKey

HEAD = "apiVersion: kafka-quotas/v1\nkind: ClientQuotas\nspec:\n  quotas:\n"


def read(*entries):
    return read_documents((HEAD + "".join(f"    - {entry}\n" for entry in entries)).encode(), "q.yaml")


def entries_of(content):
    (document,) = content.documents
    assert isinstance(document, ClientQuotasDocument)
    return document.entries


def ids(content):
    return [finding.id for finding in content.findings]


@pytest.mark.parametrize(
    ("match", "names"),
    [
        ("{user: a}", {"user": "a"}),
        ("{user: {default: true}}", {"user": DEFAULT}),
        ("{client-id: a}", {"client-id": "a"}),
        ("{client-id: {default: true}}", {"client-id": DEFAULT}),
        ("{user: a, client-id: b}", {"user": "a", "client-id": "b"}),
        ("{user: a, client-id: {default: true}}", {"user": "a", "client-id": DEFAULT}),
        ("{client-id: b, user: {default: true}}", {"user": DEFAULT, "client-id": "b"}),
        ("{user: {default: true}, client-id: {default: true}}", {"user": DEFAULT, "client-id": DEFAULT}),
        ("{ip: 10.0.0.7}", {"ip": "10.0.0.7"}),
        ("{ip: {default: true}}", {"ip": DEFAULT}),
    ],
)
def test_each_of_the_ten_shapes_is_read(match, names):
    key = "connection_creation_rate" if "ip" in names else "producer_byte_rate"
    content = read(f"{{match: {match}, quotas: {{{key}: 5}}}}")

    assert ids(content) == []
    (entry,) = entries_of(content)
    assert entry.declared.entity == Entity.of(names)
    assert {k: q.value for k, q in entry.declared.quotas.items()} == {QuotaKey(key): 5.0}


@pytest.mark.parametrize("name", ["on", "0123", "1e6", "'null'", '"~"', "true", "2026-01-02", "no"])
def test_a_name_is_a_string_as_it_is_written(name):
    content = read(f"{{match: {{user: {name}}}, quotas: {{}}}}")

    assert ids(content) == []
    assert entries_of(content)[0].declared.entity == Entity.of({"user": name.strip("'\"")})


def test_all_five_keys_are_read_with_their_places_and_texts():
    content = read(
        "{match: {user: a}, quotas: {producer_byte_rate: 1MiB, consumer_byte_rate: 2 KB/s, request_percentage: 12.5%, "
        "controller_mutation_rate: 0.5}}",
        "{match: {ip: 10.0.0.7}, quotas: {connection_creation_rate: 50}}",
    )

    first, second = entries_of(content)
    assert {k.value: (q.value, q.text) for k, q in first.declared.quotas.items()} == {
        "producer_byte_rate": (1048576.0, "1MiB"),
        "consumer_byte_rate": (2000.0, "2 KB/s"),
        "request_percentage": (12.5, "12.5%"),
        "controller_mutation_rate": (0.5, "0.5"),
    }
    assert second.declared.quotas[QuotaKey.CONNECTION_CREATION_RATE].value == 50.0
    assert str(first.declared.quotas[QuotaKey.PRODUCER_BYTE_RATE].source) == "q.yaml:5:55"
    assert str(first.declared.source) == "q.yaml:5:15"


@pytest.mark.parametrize(
    ("match", "rule"),
    [
        ("{ip: 10.0.0.7, user: a}", "illegal-entity"),
        ("{ip: 10.0.0.7, client-id: a}", "illegal-entity"),
        ("{usr: a}", "unknown-entity-type"),
        ("{client-id-prefix: a}", "unknown-entity-type"),
        ("{user: [[a]]}", "wrong-type"),
        ("{user: []}", "wrong-value"),
        ("{user: [a, ~]}", "wrong-type"),
        ("{user: {named: true}}", "unknown-field"),
        ("[user, a]", "wrong-type"),
        ("{ip: 10.0.1.0/24}", "ip-invalid"),
        ("{ip: 300.1.1.1}", "ip-invalid"),
        ("{ip: 10.1}", "ip-invalid"),
        ("{ip: '10.0.0.*'}", "ip-invalid"),
        ("{ip: localhost}", "ip-host-name"),
        ("{ip: db-1.example.org}", "ip-host-name"),
    ],
)
def test_an_entity_that_kafka_refuses_is_an_error(match, rule):
    content = read(f"{{match: {match}, quotas: {{}}}}")

    assert rule in ids(content)
    assert {finding.severity for finding in content.findings} == {Severity.ERROR}


@pytest.mark.parametrize(
    ("entity_type", "name", "rule", "words"),
    [
        ("user", "User:alice", "user-prefix", "Did you mean 'alice'"),
        ("user", "<default>", "literal-default-name", "{default: true}"),
        ("client-id", "<default>", "literal-default-name", "{default: true}"),
        ("user", "a%40b", "percent-encoded-name", "percent-encoded"),
        ("user", " a", "unusual-name", "blanks"),
        ("client-id", "a\\tb", "unusual-name", "'a\\u0009b'"),
        ("user", "a\\u202eb", "unusual-name", "\\u202e"),
        ("client-id", "my-producer-*", "wildcard-name", "literal"),
        ("client-id", "${CLIENT}", "unrendered-template", "'${CLIENT}' in"),
        ("user", "team-{{ user }}", "unrendered-template", "'{{ user }}' in"),
        ("user", "%(x)s", "unrendered-template", "not filled in"),
        ("user", "svc-<name>", "unrendered-template", "'<name>' in"),
        ("ip", "::ffff:127.0.0.1", "ip-not-canonical", "127.0.0.1"),
        ("ip", "0:0:0:0:0:0:0:1", "ip-not-canonical", "::1"),
        ("ip", "FE80::1", "ip-not-canonical", "fe80::1"),
    ],
)
def test_a_name_that_is_most_likely_a_mistake_is_a_warning_and_kept_as_it_is(entity_type, name, rule, words):
    content = read(f'{{match: {{{entity_type}: "{name}"}}, quotas: {{}}}}')

    assert ids(content) == [rule]
    assert content.findings[0].severity is Severity.WARNING
    assert words in content.findings[0].message
    literal = name.replace("\\t", "\t").replace("\\u202e", "\u202e")
    assert entries_of(content)[0].declared.entity == Entity.of({entity_type: literal})


def test_the_longest_name_of_the_protocol_is_read_and_one_byte_more_is_an_error():
    assert ids(read(f"{{match: {{user: {'n' * 32767}}}, quotas: {{}}}}")) == []
    assert ids(read(f"{{match: {{user: {'n' * 32768}}}, quotas: {{}}}}")) == ["name-too-long"]
    assert ids(read(f"{{match: {{user: {'é' * 16384}}}, quotas: {{}}}}")) == ["name-too-long"]


@pytest.mark.parametrize(
    ("match", "key"),
    [
        ("{ip: 10.0.0.7}", "producer_byte_rate"),
        ("{user: a}", "connection_creation_rate"),
        ("{ip: 10.0.0.7}", "request_percentage"),
    ],
)
def test_a_key_that_the_entity_cannot_have_is_an_error_at_the_key(match, key):
    content = read(f"{{match: {match}, quotas: {{{key}: 5}}}}")

    assert ids(content) == ["key-not-for-entity"]
    assert content.findings[0].span.column == len(f"    - {{match: {match}, quotas: {{") + 1
    assert entries_of(content)[0].declared.quotas == {}


def test_a_bad_value_is_reported_once_with_its_entity_and_key():
    (finding,) = read("{match: {user: a}, quotas: {producer_byte_rate: -1}}").findings

    assert (finding.id, finding.key, finding.entity) == ("value-not-positive", "producer_byte_rate", Entity.of({"user": "a"}))
    assert str(finding.span) == "q.yaml:5:55"


def test_one_bad_entry_hides_nothing_of_the_others():
    content = read(
        "{match: {user: null}, quotas: {producer_byte_rate: 10Mb}}",
        "{match: {user: b}, quotas: {producer_byte_rate: 0, consumer_byte_rate: 5}}",
        "[]",
        "{match: {user: c}, quotas: {producer_byte_rate: 1}}",
    )

    assert sorted(ids(content)) == ["empty-name", "unknown-unit", "value-not-positive", "wrong-type"]
    assert [str(entry.declared.entity) for entry in entries_of(content)] == ["user=b", "user=c"]
