"""Strimzi's resources: the principal that its operators give each user, the plugin's types, lists, namespaces, and faults."""

import json
from pathlib import Path

import pytest

from reconciler.features.importing.strimzi import read_strimzi
from tests.builders import user

FIXTURE = (Path(__file__).parent / "fixtures" / "strimzi.yaml").read_bytes()


def read(text):
    return read_strimzi(text.encode(), "users.yaml")


def kafka_user(quotas="{producerByteRate: 1024}", authentication="{type: tls}", metadata="{name: a}"):
    return (
        f"apiVersion: kafka.strimzi.io/v1\nkind: KafkaUser\nmetadata: {metadata}\n"
        f"spec:\n  authentication: {authentication}\n  quotas: {quotas}\n"
    )


def kafka(quotas, config="{}"):
    return (
        "apiVersion: kafka.strimzi.io/v1\nkind: Kafka\nmetadata: {name: prod}\n"
        f"spec:\n  kafka:\n    config: {config}\n    quotas: {quotas}\n"
    )


def findings(text):
    return [(one.id, one.span.line, one.span.column) for one in read(text).findings]


def test_a_cluster_and_its_users_are_what_the_two_operators_set():
    result = read_strimzi(FIXTURE, "strimzi.yaml")

    assert [(one.id, one.severity.value, one.message) for one in result.findings] == [
        ("import-left-out", "info", "1 KafkaUser without quotas declares no client quota, and is left out"),
        (
            "import-left-out",
            "info",
            "1 resource of kind 'KafkaTopic' ('kafka.strimzi.io/v1') declares no client quota, and is left out",
        ),
    ]
    assert {(one.cluster, one.namespace) for one in result.quotas} == {("orders", "streaming")}
    assert {one.entity: one.quotas for one in result.quotas} == {
        user(): {
            "producer_byte_rate": 5242880.0,
            "consumer_byte_rate": 10485760.0,
            "request_percentage": 200.0,
            "controller_mutation_rate": 12.5,
        },
        user("CN=settlement"): {
            "producer_byte_rate": 1048576.0,
            "consumer_byte_rate": 2097152.0,
            "request_percentage": 55.0,
            "controller_mutation_rate": 10.0,
        },
        user("CN=partner"): {"producer_byte_rate": 1048576.0},
        user("reports"): {"consumer_byte_rate": 3145728.0},
        user("oauth-client"): {"request_percentage": 20.0},
    }


@pytest.mark.parametrize("as_json", [False, True])
@pytest.mark.parametrize(("kind", "whole"), [("List", True), ("KafkaUserList", True), ("KafkaUserList", False)])
def test_lists_as_kubectl_prints_them_are_read(as_json, kind, whole):
    head = {"apiVersion": "kafka.strimzi.io/v1", "kind": "KafkaUser"} if whole else {}
    item = {**head, "metadata": {"name": "a"}, "spec": {"quotas": {"producerByteRate": 1024}}, "status": {"username": "a"}}
    api = "v1" if kind == "List" else "kafka.strimzi.io/v1"
    document = {"apiVersion": api, "kind": kind, "items": [item, {**item, "metadata": {"name": "b"}}], "metadata": {}}
    # A document in JSON is one in YAML, too; kubectl indents both.
    result = read(json.dumps(document, indent=4 if as_json else None))

    assert result.findings == ()
    assert [one.entity for one in result.quotas] == [user("a"), user("b")]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (kafka_user(authentication="{type: plain}"), ("import-unsupported", 5, 26)),
        (kafka_user(authentication="tls"), ("import-unsupported", 5, 19)),
        (kafka_user("{connectionCreationRate: 5}"), ("import-unsupported", 6, 36)),
        (kafka_user("{producerByteRate: 1.5}"), ("import-ambiguous", 6, 30)),
        (kafka_user("{producerByteRate: 2147483648}"), ("import-ambiguous", 6, 30)),
        (kafka_user("{controllerMutationRate: 1e400}"), ("value-not-finite", 6, 36)),
        (kafka_user("{producerByteRate: 10Mi}"), ("value-syntax", 6, 30)),
        (kafka_user("{producerByteRate: [1]}"), ("value-syntax", 6, 30)),
        (kafka_user("{producerByteRate: -1}"), ("value-not-positive", 6, 30)),
        (kafka_user("[1]"), ("import-syntax", 6, 11)),
        (kafka_user(metadata="{}"), ("import-syntax", 1, 1)),
        (kafka_user(metadata="{name: [a]}"), ("import-syntax", 3, 18)),
        (kafka_user(metadata="{name: 7}"), ("import-syntax", 3, 18)),
        (kafka_user(metadata="{name: a, labels: {strimzi.io/cluster: [x]}}"), ("import-syntax", 3, 50)),
        (kafka_user(metadata="{name: a, quotas: {}}"), ("import-unsupported", 3, 21)),
        (kafka_user('{producerByteRate: "1024"}'), ("import-ambiguous", 6, 30)),
        (kafka_user("{producerByteRate: 1024, value: 5}"), ("import-unsupported", 6, 43)),
        (kafka_user("{producerByteRate: 0x10}"), ("value-syntax", 6, 30)),
        (kafka_user() + "  clientQuotas: [{producerByteRate: 4096}]\n", ("import-unsupported", 7, 3)),
        (kafka_user() + "  quota: {consumerByteRate: 1}\n", ("import-unsupported", 7, 3)),
        (kafka_user() + "  limits: {consumerByteRate: 1}\n", ("import-unsupported", 7, 3)),
        (kafka_user() + "quotas: {consumerByteRate: 1}\n", ("import-unsupported", 7, 1)),
        (kafka_user(authentication="{type: tls, quotas: {}}"), ("import-unsupported", 5, 31)),
        (kafka_user().replace("/v1", "/v2"), ("import-unsupported", 6, 3)),
        (kafka("null") + "    clientQuotas: {}\n", ("import-unsupported", 8, 5)),
        (kafka("null", "{quota.producer.default: 1024}"), ("import-unsupported", 6, 14)),
        ("apiVersion: kafka.strimzi.io/v1\nkind: KafkaUser\nmetadata: {name: a}\nspec: 3\n", ("import-syntax", 4, 7)),
        ("apiVersion: v1\nkind: List\nitems: {}\n", ("import-syntax", 3, 8)),
        ("apiVersion: v1\nkind: List\nitems: [3]\n", ("import-syntax", 3, 9)),
        ("- 1\n", ("import-syntax", 1, 1)),
        ("just text\n", ("import-syntax", 1, 1)),
        ("kind: KafkaUser\n", ("import-syntax", 1, 1)),
        (kafka("{producerByteRate: 1}"), ("import-syntax", 7, 13)),
        ("apiVersion: aiven.io/v1\nkind: KafkaQuota\nspec: {}\n", ("import-unsupported", 2, 7)),
        ("apiVersion: v1\nkind: List\nmetadata: {continue: abc}\nitems: []\n", ("import-syntax", 3, 22)),
        (kafka("{type: strimzi, producerByteRate: 41943040}"), ("import-unsupported", 7, 20)),
        (kafka("{type: other}"), ("import-unsupported", 7, 20)),
        (kafka("null", "{client.quota.callback.class: a.B}"), ("import-unsupported", 6, 43)),
        ("metadata: {name: '{{ .Values.name }}'}\n", ("import-template", 1, 19)),
        ("a: [\n", ("yaml-syntax", 2, 1)),
        ("a: 1\na: 2\n", ("duplicate-key", 2, 1)),
    ],
)
def test_what_cannot_be_converted_has_its_place(text, expected):
    assert read(text).quotas == ()
    assert findings(text) == [expected]


def test_the_plugin_of_strimzi_is_refused_since_it_turns_client_quotas_off():
    (finding,) = read(kafka("{type: strimzi, producerByteRate: 41943040}")).findings

    assert "Kafka's client quotas are off while it is configured" in finding.message


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", []),
        ("---\n---\n", []),
        (kafka("null"), ["1 Kafka without quotas declares no client quota, and is left out"]),
        (kafka_user("null"), ["1 KafkaUser without quotas declares no client quota, and is left out"]),
        (
            kafka_user("{producerByteRate: null}"),
            ["producerByteRate has no value, so it sets no limit", "user=CN=a has no quota here, so there is nothing to declare"],
        ),
        (kafka("null", "{quota.window.num: 11}"), ["1 Kafka without quotas declares no client quota, and is left out"]),
        (
            kafka_user(metadata="{name: a, deletionTimestamp: '2026-11-20T10:00:00Z'}"),
            ["this KafkaUser is left out: it is being deleted"],
        ),
        (
            "apiVersion: v1\nkind: ResourceQuota\nspec: {hard: {requests.cpu: 1}}\n",
            ["1 resource of kind 'ResourceQuota' ('v1') declares no client quota, and is left out"],
        ),
    ],
)
def test_what_declares_no_quota_is_mentioned(text, said):
    result = read(text)

    assert result.quotas == ()
    assert [one.message for one in result.findings] == said
    assert {one.severity.value for one in result.findings} <= {"info"}


def test_users_of_another_operator_are_refused_when_they_have_quotas_and_mentioned_otherwise():
    text = kafka_user().replace("kafka.strimzi.io", "kafka.banzaicloud.io")
    bare = text.replace("  quotas: {producerByteRate: 1024}\n", "")

    assert findings(text) == [("import-unsupported", 6, 3)]
    assert findings(bare) == [("import-left-out", 1, 1)]


def test_labels_with_the_word_in_their_names_limit_nothing():
    text = kafka_user() + "  template: {secret: {metadata: {labels: {quota-tier: gold}}}}\n"

    assert [one.entity for one in read(text).quotas] == [user("CN=a")]
    assert findings(text) == []


def test_long_rates_of_a_cluster_are_beyond_those_of_a_user():
    (quota,) = read(kafka("{type: kafka, producerByteRate: 4294967296}")).quotas

    assert (quota.cluster, quota.quotas) == ("prod", {"producer_byte_rate": 4294967296.0})
