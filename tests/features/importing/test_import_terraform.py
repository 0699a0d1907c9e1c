"""Terraform's quotas in a raw state; everything else is refused or named."""

import json

import pytest

from reconciler.features.importing.terraform import read_terraform
from reconciler.model.entity import DEFAULT
from tests.builders import client, ip, pair, user
from tests.support.spans import span_of

RATE = {"producer_byte_rate": 1024.0}
PROVIDER = 'provider["registry.terraform.io/mongey/kafka"]'


def read(document, file="terraform.tfstate"):
    text = document if isinstance(document, str) else json.dumps(document, indent=1, ensure_ascii=False)
    return read_terraform(text.encode(), file)


def state(found):
    return [(one.cluster, one.entity, one.quotas) for one in found.quotas]


def said(found):
    return [(one.id, one.message) for one in found.findings]


def ids(found):
    return [one.id for one in found.findings]


def instance(attributes, **more):
    return {"schema_version": 0, "attributes": attributes, "sensitive_attributes": [], "private": "bnVsbA==", **more}


def row(*instances, kind="kafka_quota", **more):
    return {"mode": "managed", "type": kind, "name": "q", "provider": PROVIDER, "instances": list(instances), **more}


def raw(*rows, **more):
    return {"version": 4, "terraform_version": "1.9.0", "serial": 3, "lineage": "x", "outputs": {}, "resources": [*rows], **more}


def quota(**values):
    return row(instance({"entity_type": "user", "entity_name": "a", "config": {"producer_byte_rate": 1024}, "id": "x", **values}))


def of_type(kind, **attributes):
    return row(instance(attributes), kind=kind)


def composite(*entities, **more):
    return of_type("kafka_quota_composite", entity=[*entities], config={"producer_byte_rate": 1024}, **more)


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ({"entity_type": "user", "entity_name": "alice"}, user("alice")),
        ({"entity_type": "client-id", "entity_name": "app"}, client("app")),
        ({"entity_type": "user", "entity_name": None}, user()),
        ({"entity_type": "client-id", "entity_name": ""}, client()),
        ({"entity_type": "user", "entity_name": "<default>"}, user("<default>")),
        ({"entity_type": "user", "entity_name": 'a"b\\c${x}😀'}, user('a"b\\c${x}😀')),
    ],
)
def test_a_missing_name_is_the_default_and_texts_are_as_they_are(values, expected):
    assert state(read(raw(quota(**values)))) == [(None, expected, RATE)]


@pytest.mark.parametrize("value", [1024, "1024", 1024.0, "1.024e3"])
def test_numbers_and_texts_of_numbers_come_to_the_same(value):
    assert state(read(raw(quota(config={"producer_byte_rate": value})))) == [(None, user("a"), RATE)]


def test_every_key_of_an_address_and_of_a_client_is_read():
    values = {"producer_byte_rate": 1.0, "consumer_byte_rate": 2.0, "request_percentage": 12.5, "controller_mutation_rate": 0.5}
    address = quota(entity_type="ip", entity_name="10.0.0.1", config={"connection_creation_rate": 5})

    assert state(read(raw(quota(config=values), address))) == [
        (None, user("a"), values),
        (None, ip("10.0.0.1"), {"connection_creation_rate": 5.0}),
    ]


@pytest.mark.parametrize(
    ("entities", "expected"),
    [
        ([{"type": "user"}, {"type": "client-id"}], pair(DEFAULT, DEFAULT)),
        ([{"name": None, "type": "user"}, {"name": "app", "type": "client-id"}], pair(DEFAULT, "app")),
        ([{"type": "client-id", "name": "b"}, {"type": "user", "name": "a"}], pair("a", "b")),
    ],
)
def test_a_composite_is_a_pair(entities, expected):
    assert state(read(raw(composite(*entities)))) == [(None, expected, RATE)]


def test_aiven_says_default_and_names_the_cluster():
    def aiven(**names):
        values = {"project": "p", "service_name": "kafka-eu", "producer_byte_rate": 1024, "consumer_byte_rate": None, **names}
        return state(read(raw(of_type("aiven_kafka_quota", **values))))

    assert aiven(user="default", client_id="app") == [("kafka-eu", pair(DEFAULT, "app"), RATE)]
    assert aiven(user="alice", client_id=None) == [("kafka-eu", user("alice"), RATE)]
    assert aiven(client_id="default") == [("kafka-eu", client(), RATE)]


@pytest.mark.parametrize(
    ("resource", "rule_id"),
    [
        (quota(entity_type="group"), "unknown-entity-type"),
        (quota(entity_type=["user"]), "import-syntax"),
        (quota(entity_name=["a"]), "import-syntax"),
        (quota(unit="MiB"), "import-unsupported"),
        (quota(config={"producer_byterate": 1}), "import-unsupported"),
        (quota(config={"connection_creation_rate": 1}), "key-not-for-entity"),
        (quota(config={"producer_byte_rate": -1}), "value-not-positive"),
        (quota(config={"producer_byte_rate": "010"}), "value-syntax"),
        (quota(config={"producer_byte_rate": [1]}), "value-syntax"),
        (quota(config={"producer_byte_rate": True}), "value-syntax"),
        (quota(config=[{"producer_byte_rate": 1}]), "import-syntax"),
        (quota(config={}), "import-left-out"),
        (row(instance({}), mode=None), "import-syntax"),
        (row({"attributes_flat": {"entity_name": "a"}}), "import-syntax"),
        (row(instance({}, deposed="0badcafe")), "import-left-out"),
        (row(instance({}, sensitive_attributes=[[{"type": "get_attr", "value": "config"}]])), "import-unsupported"),
        (row(instances={}), "import-syntax"),
        (3, "import-syntax"),
        (composite({"type": "user"}), "import-syntax"),
        (composite({"type": "user"}, {"type": "user"}), "import-ambiguous"),
        (composite({"type": "ip"}), "unknown-entity-type"),
        (composite({"type": "user", "match": "a"}), "import-unsupported"),
        (of_type("kafka_quota_composite"), "import-syntax"),
        (of_type("aiven_kafka_quota", service_name="s"), "import-ambiguous"),
        (of_type("confluent_kafka_client_quota"), "import-unsupported"),
        (of_type("redpanda_user", limits=[{"producerByteRate": 5}]), "import-unsupported"),
        (of_type("google_managed_kafka_quota"), "import-unsupported"),
        (of_type("aws_servicequotas_service_quota", quota_code="L-1"), "import-left-out"),
    ],
)
def test_what_is_no_quota_that_can_be_converted_has_its_place(resource, rule_id):
    found = read(raw(resource))

    assert found.quotas == ()
    assert ids(found) == [rule_id]
    assert span_of(found.findings[0]).line > 6


@pytest.mark.parametrize(
    ("document", "rule_id", "text"),
    [
        ("[]", "import-syntax", "terraform state pull"),
        ('{"a": ', "yaml-syntax", ""),
        ("{}\n---\n{}\n", "import-syntax", "terraform state pull"),
        ({"format_version": "1.0", "values": {}}, "import-syntax", "terraform state pull"),
        ({"version": 3, "serial": 1, "lineage": "x", "modules": []}, "import-syntax", "terraform state pull"),
        ({"encrypted_data": "aGVsbG8=", "meta": {}, "serial": 1, "lineage": "x"}, "import-syntax", "tofu state pull"),
        ('{"version": 4, "version": 4}', "duplicate-key", ""),
    ],
)
def test_json_that_is_no_state_is_refused(document, rule_id, text):
    found = read(document)

    assert found.quotas == ()
    assert ids(found) == [rule_id]
    assert text in found.findings[0].message


@pytest.mark.parametrize("file", ["main.tf", "main.tf.json", "main.tofu", "prod.tfvars", "terragrunt.hcl"])
def test_a_configuration_is_refused_with_the_command_that_prints_its_state(file):
    found = read('resource "kafka_quota" "q" {}\n', file)

    assert ids(found) == ["import-template"]
    assert "'terraform state pull'" in found.findings[0].message


def test_the_alias_of_a_provider_names_the_cluster():
    alone = {**quota(), "provider": f"module.m.{PROVIDER}.eu"}

    assert state(read(raw(alone))) == [("eu", user("a"), RATE)]
    assert state(read(raw(quota(), alone))) == [("kafka", user("a"), RATE), ("eu", user("a"), RATE)]


def test_all_instances_are_read_and_data_and_other_resources_are_mentioned():
    both = [instance({"entity_type": "user", "entity_name": name, "config": RATE}, index_key=name) for name in ("a", "b")]
    topic = of_type("kafka_topic", name="t")
    found = read(raw(row(*both, module="module.m"), row(instance({}), mode="data"), topic, topic))

    assert state(found) == [(None, user("a"), RATE), (None, user("b"), RATE)]
    assert said(found) == [
        ("import-left-out", "1 data source of type 'kafka_quota' declares no client quota, and is left out"),
        ("import-left-out", "2 resources of type 'kafka_topic' declare no client quota, and are left out"),
    ]


def test_an_address_with_control_characters_is_escaped():
    (finding,) = read(raw(of_type("x_kafka_quota") | {"name": "a\x1b[2J"})).findings

    assert "\x1b" not in finding.message
