"""rpk, monedula, Julie and Ansible: whole files as these tools have them, and what is refused with its place."""

from pathlib import Path

import pytest

from reconciler.importing.ansible import read_ansible
from reconciler.importing.julie import read_julie
from reconciler.importing.monedula import read_monedula
from reconciler.importing.rpk import read_rpk
from reconciler.model.entity import DEFAULT
from tests.builders import client, ip, pair, user
from tests.support.spans import span_of

FIXTURES = Path(__file__).parents[2] / "fixtures" / "importing"
READERS = {"rpk": read_rpk, "monedula": read_monedula, "julie": read_julie, "ansible": read_ansible}
PRODUCER, CONSUMER, REQUEST = "producer_byte_rate", "consumer_byte_rate", "request_percentage"
MUTATIONS, CONNECTIONS = "controller_mutation_rate", "connection_creation_rate"
RPK = {
    client("orders"): {PRODUCER: 1048576.0},
    client(): {CONSUMER: 2097152.0, REQUEST: 12.5},
    pair("payments", "batch"): {MUTATIONS: 5.0},
    ip("10.0.0.7"): {CONNECTIONS: 100.0},
}
MONEDULA = {
    pair("checkout", "batch"): {PRODUCER: 1048576.0, REQUEST: 50.0},
    user(): {CONSUMER: 2097152.0, MUTATIONS: 5.0},
    ip("10.0.0.7"): {CONNECTIONS: 100.0},
}
JULIE = {user("checkout"): {PRODUCER: 1048576.0, CONSUMER: 2097152.0, REQUEST: 50.0}, user("reports"): {REQUEST: 80.0}}
ANSIBLE = {
    user(): {PRODUCER: 1048576.0, CONSUMER: 2097152.0},
    pair("checkout", "batch"): {REQUEST: 55.5},
    client("reports"): {CONSUMER: 1048576.0},
}


@pytest.mark.parametrize(
    ("file", "clusters", "expected"),
    [
        ("rpk.json", {None}, RPK),
        ("rpk.yaml", {None}, RPK),
        ("monedula.yaml", {"orders"}, MONEDULA),
        ("julie.yaml", {None}, JULIE),
        ("ansible.yaml", {None}, ANSIBLE),
    ],
)
def test_a_whole_file_is_what_the_tool_would_set(file, clusters, expected):
    found = READERS[file.partition(".")[0]]((FIXTURES / file).read_bytes(), file)

    assert found.findings == ()
    assert {one.entity: one.quotas for one in found.quotas} == expected
    assert {one.cluster for one in found.quotas} == clusters


def rpk(entity='[{"type": "user", "name": "a"}]', values='[{"key": "producer_byte_rate", "value": "1"}]'):
    return f'{{"quotas": [{{"entity":\n{entity}, "values":\n{values}}}]}}'


def monedula(entity="{user: a}", limits="{producerByteRate: 1}"):
    return (
        "apiVersion: gitops.monedula.dev/v1alpha1\nkind: KafkaQuota\nmetadata: {name: q}\n"
        f"spec:\n  clusterRef: {{name: c}}\n  entity: {entity}\n  limits: {limits}\n"
    )


def julie(item="{principal: a, producer_byte_rate: 1}"):
    return f"context: c\nplatform:\n  kafka:\n    quotas:\n      - {item}\n"


def ansible(entry="{entity: {user: a}, quotas: {producer_byte_rate: 1}}", more=""):
    return f"- kafka_quotas:\n    entries:\n      - {entry}\n{more}"


@pytest.mark.parametrize(
    ("tool", "text", "expected"),
    [
        ("rpk", "[]", ("import-syntax", 1, 1)),
        ("rpk", "quotas: 3", ("import-syntax", 1, 9)),
        ("rpk", '{"quotas": [3]}', ("import-syntax", 1, 13)),
        ("rpk", rpk(entity="[]"), ("illegal-entity", 2, 1)),
        ("rpk", rpk(entity='[{"type": "client-id-prefix", "name": "a"}]'), ("import-unsupported", 2, 2)),
        ("rpk", rpk(entity='[{"type": "usr", "name": "a"}]'), ("unknown-entity-type", 2, 2)),
        ("rpk", rpk(entity='[{"type": "user", "name": ""}]'), ("unknown-entity-type", 2, 2)),
        ("rpk", rpk(entity='[{"type": "user", "name": "a"}, {"type": "user", "name": "b"}]'), ("import-ambiguous", 2, 33)),
        ("rpk", rpk(entity='[{"type": "user", "name": "a"}, {"type": "ip", "name": "b"}]'), ("illegal-entity", 2, 1)),
        ("rpk", rpk(values='[{"key": "producer_byte_rate"}]'), ("import-syntax", 3, 2)),
        ("rpk", rpk(values='[{"key": "producer_byte_rate", "value": "much"}]'), ("value-syntax", 3, 41)),
        ("rpk", rpk(values='[{"key": "byte_rate", "value": "1"}]'), ("unknown-quota-key", 3, 32)),
        ("monedula", monedula("{user: a, userDefault: true}"), ("import-ambiguous", 6, 34)),
        ("monedula", monedula("{user: ''}"), ("import-ambiguous", 6, 18)),
        ("monedula", monedula("{}"), ("import-syntax", 6, 11)),
        ("monedula", monedula("{ip: 10.0.0.1, user: a}"), ("illegal-entity", 6, 11)),
        ("monedula", monedula("{group: a}"), ("import-unsupported", 6, 19)),
        ("monedula", monedula(limits="{connectionCreationRate: 1}"), ("key-not-for-entity", 7, 36)),
        ("monedula", monedula(limits="3"), ("import-syntax", 5, 3)),
        ("julie", "[]", ("import-syntax", 1, 1)),
        ("julie", julie("3"), ("import-syntax", 5, 9)),
        ("julie", julie("{producer_byte_rate: 1}"), ("import-syntax", 5, 9)),
        ("julie", julie("{principal: a, controller_mutation_rate: 1}"), ("import-unsupported", 5, 50)),
        ("julie", "platform: {kafka: {quotas: {}}}", ("import-syntax", 1, 28)),
        ("julie", julie("{principal: '{{ app }}', producer_byte_rate: 1}"), ("import-template", 5, 22)),
        ("ansible", ansible("3"), ("import-syntax", 3, 9)),
        ("ansible", ansible("{entity: {user: '{{ u }}'}, quotas: {producer_byte_rate: 1}}"), ("import-template", 3, 25)),
        ("ansible", ansible("{entity: {user: a}, quotas: {producer_byte_rate: '{{ r }}'}}"), ("import-template", 3, 58)),
        ("ansible", ansible("{entity: {ip: a}, quotas: {producer_byte_rate: 1}}"), ("import-unsupported", 3, 23)),
        ("ansible", ansible("{entity: {}, quotas: {producer_byte_rate: 1}}"), ("import-syntax", 3, 18)),
        ("ansible", ansible("{entity: {user: [a]}, quotas: {producer_byte_rate: 1}}"), ("import-syntax", 3, 25)),
        ("ansible", ansible("{entity: {user: a}, quotas: {ip_rate: 1}}"), ("import-unsupported", 3, 47)),
        ("ansible", ansible(more="  when: env == 'prod'\n"), ("import-template", 4, 9)),
        ("ansible", ansible(more="  with_items: [a, b]\n"), ("import-template", 4, 15)),
        ("ansible", "- kafka_quotas: {entries: '{{ quotas }}'}\n", ("import-template", 1, 27)),
        ("ansible", "- kafka_quotas: 3\n", ("import-syntax", 1, 17)),
        ("ansible", "- block: []\n  rescue:\n    - kafka_quotas: {entries: []}\n", ("import-template", 3, 5)),
    ],
)
def test_what_cannot_be_converted_has_its_place(tool, text, expected):
    found = READERS[tool](text.encode(), "file")

    assert found.quotas == ()
    assert [(one.id, span_of(one).line, span_of(one).column) for one in found.findings] == [expected]


@pytest.mark.parametrize(("tool", "text"), [("rpk", rpk()), ("monedula", monedula()), ("julie", julie()), ("ansible", ansible())])
def test_the_good_neighbours_of_these_cases_are_converted(tool, text):
    found = READERS[tool](text.encode(), "file")

    assert found.findings == ()
    assert [(one.entity, one.quotas) for one in found.quotas] == [(user("a"), {PRODUCER: 1.0})]


@pytest.mark.parametrize(("principal", "expected"), [("'User:a'", user("User:a")), ("''", user())])
def test_julie_sends_a_principal_with_its_prefix_and_an_empty_one_as_the_default(principal, expected):
    found = read_julie(julie(f"{{principal: {principal}, producer_byte_rate: 1}}").encode(), "f")

    assert [one.entity for one in found.quotas] == [expected]


def test_monedula_strips_the_prefix_of_a_principal_and_has_defaults_of_pairs():
    found = read_monedula(monedula("{user: 'User:a', clientIdDefault: true}").encode(), "f")

    assert [one.entity for one in found.quotas] == [pair("a", DEFAULT)]
