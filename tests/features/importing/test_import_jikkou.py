"""jikkou's resources: every type and key that its reference has, and what is refused."""

import pytest

from reconciler.features.importing.resources import read_jikkou
from reconciler.model.entity import DEFAULT
from tests.builders import client, pair, user

HEAD = "apiVersion: kafka.jikkou.io/v1beta2\nkind: KafkaClientQuota\n"
ALL_KEYS = "{producerByteRate: 1048576, consumerByteRate: 2.0E6, requestPercentage: 12.5}"


def quota(type_name="CLIENT", entity="{clientId: orders}", configs="{producerByteRate: 1024}"):
    return f"{HEAD}spec:\n  type: {type_name}\n  entity: {entity}\n  configs: {configs}\n"


def read(text):
    return read_jikkou(text.encode(), "quotas.yaml")


def said(text):
    return [(one.id, one.span.line, one.span.column) for one in read(text).findings]


@pytest.mark.parametrize(
    ("type_name", "entity", "expected"),
    [
        ("USERS_DEFAULT", "{}", user()),
        ("USERS_DEFAULT", "{user: null}", user()),
        ("USERS_DEFAULT", '{user: ""}', user()),
        ("USER", "{user: alice}", user("alice")),
        ("USER", "{user: <default>}", user("<default>")),
        ("USER", "{user: 0123, clientId: null}", user("0123")),
        ("USER_CLIENT", "{user: alice, clientId: app}", pair("alice", "app")),
        ("USER_ALL_CLIENTS", "{user: alice}", pair("alice", DEFAULT)),
        ("CLIENT", "{clientId: app}", client("app")),
        ("CLIENTS_DEFAULT", "{clientId: ~}", client()),
    ],
)
def test_each_type_is_the_entity_that_jikkou_means(type_name, entity, expected):
    found = read(quota(type_name, entity, ALL_KEYS))

    assert found.findings == ()
    assert [(one.entity, one.quotas) for one in found.quotas] == [
        (expected, {"producer_byte_rate": 1048576.0, "consumer_byte_rate": 2000000.0, "request_percentage": 12.5})
    ]


def test_a_default_type_needs_no_entity_at_all():
    text = f"{HEAD}spec:\n  type: USERS_DEFAULT\n  configs: {{producerByteRate: '1024'}}\n"

    assert [(one.entity, one.quotas) for one in read(text).quotas] == [(user(), {"producer_byte_rate": 1024.0})]


def test_streams_and_lists_are_read_whole_with_the_place_of_each_quota():
    listed = (
        "---\napiVersion: kafka.jikkou.io/v1beta2\nkind: KafkaClientQuotaList\nmetadata: {labels: {}}\nitems:\n"
        "  - spec:\n      type: USER\n      entity: {user: a}\n      configs: {producerByteRate: 1}\n"
        "  - spec: {type: USER, entity: {user: b}, configs: {producerByteRate: 2}}\n"
    )
    topic = "---\napiVersion: kafka.jikkou.io/v1beta2\nkind: KafkaTopic\nmetadata: {name: t}\nspec: {partitions: 1}\n"

    found = read(quota() + topic + listed + topic)

    assert [(one.id, one.message) for one in found.findings] == [
        (
            "import-left-out",
            "2 resources of kind 'KafkaTopic' ('kafka.jikkou.io/v1beta2') declare no client quota, and are left out",
        )
    ]
    assert [(one.entity, one.span.line) for one in found.quotas] == [(client("orders"), 4), (user("a"), 18), (user("b"), 21)]


@pytest.mark.parametrize(
    ("places", "text"),
    [
        ([(5, 23)], quota(entity='{clientId: "{{ values.app }}"}')),
        ([(1, 1), (8, 1)], "{% for a in values.apps %}\n" + quota() + "{% endfor %}\n"),
        ([(4, 9)], quota("{# what #} CLIENT")),
    ],
)
def test_a_template_stops_the_whole_file_at_each_of_its_places(places, text):
    found = read(text)

    assert found.quotas == ()
    assert said(text) == [("import-template", *place) for place in places]
    assert "jikkou prepare" in found.findings[0].message


def test_braces_in_a_comment_are_no_template():
    assert read("# {{ see the page }}\n" + quota()).findings == ()


@pytest.mark.parametrize(
    ("type_name", "entity"),
    [
        ("USER", "{user: alice, clientId: app}"),
        ("USER", "{clientId: app}"),
        ("USER", '{user: ""}'),
        ("USER_CLIENT", "{user: alice}"),
        ("USERS_DEFAULT", "{user: alice}"),
        ("CLIENTS_DEFAULT", "{clientId: app}"),
        ("USER_ALL_CLIENTS", "{user: alice, clientId: app}"),
    ],
)
def test_a_type_and_an_entity_that_disagree_are_ambiguous(type_name, entity):
    found = read(quota(type_name, entity))

    assert found.quotas == ()
    assert [one.id for one in found.findings] == ["import-ambiguous"]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (quota("IP", "{ip: 10.0.0.1}"), ("import-unsupported", 4, 9)),
        (quota(entity="{clientId: a, ip: b}"), ("import-unsupported", 5, 25)),
        (quota(configs="{controllerMutationRate: 5}"), ("import-unsupported", 6, 37)),
        (quota(configs="{producerByteRate: 10MiB}"), ("value-syntax", 6, 31)),
        (quota(configs="{producerByteRate: 0}"), ("value-not-positive", 6, 31)),
        (quota(configs="{producerByteRate: -1}"), ("value-not-positive", 6, 31)),
        (quota(configs="{producerByteRate: 0.5}"), ("value-fractional", 6, 31)),
        (quota(configs="{requestPercentage: .inf}"), ("value-syntax", 6, 32)),
        (quota(configs="{requestPercentage: 1e999}"), ("value-not-finite", 6, 32)),
        (quota().replace("KafkaClientQuota", "KafkaClientQuotas"), ("import-unsupported", 2, 7)),
        (quota().replace("kafka.jikkou.io", "kafka.aiven.io"), ("import-unsupported", 2, 7)),
        (quota().replace("v1beta2", "v1"), ("import-unsupported", 2, 7)),
        (quota().replace("kafka.jikkou.io", "kafka.jikku.io"), ("import-unsupported", 2, 7)),
        (quota(configs="{producerByterate: 1}"), ("import-unsupported", 6, 31)),
        (quota(configs="{producerByteRate: 010}"), ("value-syntax", 6, 31)),
        (quota(configs="{producerByteRate: [1]}"), ("value-syntax", 6, 31)),
        (quota(configs="{producerByteRate: true}"), ("value-syntax", 6, 31)),
        (quota() + "  limit: 5\n", ("import-unsupported", 7, 3)),
        (quota() + "quotas: {producerByteRate: 5}\n", ("import-unsupported", 7, 1)),
        (quota("USERS_DEFAULT", "[user]"), ("import-syntax", 5, 11)),
        (quota("USERS_DEFAULT", "{user: [a]}"), ("import-syntax", 5, 18)),
        (quota().replace("KafkaClientQuota", "KafkaUser"), ("import-unsupported", 6, 13)),
        ("apiVersion: v1\nkind: List\nitems: []\nquotas: {}\n", ("import-unsupported", 4, 1)),
        ("a: [", ("yaml-syntax", 2, 1)),
        ("- 1\n", ("import-syntax", 1, 1)),
        ("kind: KafkaClientQuota\n", ("import-syntax", 1, 1)),
    ],
)
def test_what_cannot_be_converted_has_its_place(text, expected):
    assert read(text).quotas == ()
    assert said(text) == [expected]


def test_one_bad_key_refuses_its_whole_entity_and_no_other():
    found = read(quota(configs="{producerByteRate: 1024, consumerByteRate: ten}") + "---\n" + quota(entity="{clientId: b}"))

    assert [one.entity for one in found.quotas] == [client("b")]


@pytest.mark.parametrize("mark", ["jikkou.io/delete", "jikkou.io/ignore"])
def test_what_jikkou_would_delete_or_ignore_is_left_out_without_an_error(mark):
    text = quota().replace("spec:", f"metadata: {{annotations: {{{mark}: true}}}}\nspec:")

    assert read(text).quotas == ()
    assert [(one.id, one.severity.value) for one in read(text).findings] == [("import-left-out", "info")]
    assert len(read(text.replace("true", "false")).quotas) == 1
