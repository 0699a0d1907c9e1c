"""Terraform's quotas in a raw state and in what terraform show -json prints of a state; everything else is refused or named."""

import json

import pytest

from reconciler.features.importing.terraform import read_terraform
from reconciler.model.entity import DEFAULT
from tests.builders import client, ip, pair, user
from tests.support.spans import span_of

RATE = {"producer_byte_rate": 1024.0}
PAIR = [{"name": None, "type": "user"}, {"name": "app", "type": "client-id"}]


def read(document, file="state.json"):
    text = document if isinstance(document, str) else json.dumps(document, indent=1, ensure_ascii=False)
    return read_terraform(text.encode(), file)


def state(found):
    return [(one.cluster, one.entity, one.quotas) for one in found.quotas]


def said(found):
    return [(one.id, one.message) for one in found.findings]


def ids(found):
    return [one.id for one in found.findings]


def resource(kind="kafka_quota", **more):
    values = {"entity_type": "user", "entity_name": "a", "config": {"producer_byte_rate": 1024}, "id": "x"}
    return {"address": f"{kind}.q", "mode": "managed", "type": kind, "name": "q", "values": values, **more}


def quota(**values):
    row = resource()
    row["values"] |= values
    return row


def printed(*resources, child=(), **more):
    root = {"resources": list(resources), "child_modules": [{"address": "module.m", "resources": list(child)}]}
    return {"format_version": "1.0", "terraform_version": "1.9.0", "values": {"root_module": root, "outputs": {}}, **more}


def raw(*instances, kind="kafka_quota", provider='provider["registry.terraform.io/mongey/kafka"]', **more):
    row = {"mode": "managed", "type": kind, "name": "q", "provider": provider, "instances": list(instances), **more}
    return {"version": 4, "terraform_version": "1.9.0", "serial": 3, "lineage": "x", "outputs": {}, "resources": [row]}


def instance(name="a", **more):
    attributes = {"config": {"producer_byte_rate": "1024"}, "entity_name": name, "entity_type": "user", "id": f"{name}|user"}
    return {"schema_version": 0, "attributes": attributes, "sensitive_attributes": [], "private": "bnVsbA==", **more}


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
    assert state(read(printed(quota(**values)))) == [(None, expected, RATE)]


@pytest.mark.parametrize("value", [1024, "1024", 1024.0, "1.024e3"])
def test_numbers_and_texts_of_numbers_come_to_the_same(value):
    assert state(read(printed(quota(config={"producer_byte_rate": value})))) == [(None, user("a"), RATE)]


def test_every_key_of_an_address_and_of_a_client_is_read():
    values = {"producer_byte_rate": 1.0, "consumer_byte_rate": 2.0, "request_percentage": 12.5, "controller_mutation_rate": 0.5}
    address = quota(entity_type="ip", entity_name="10.0.0.1", config={"connection_creation_rate": 5})

    assert state(read(printed(quota(config=values), address))) == [
        (None, user("a"), values),
        (None, ip("10.0.0.1"), {"connection_creation_rate": 5.0}),
    ]


@pytest.mark.parametrize(
    ("entities", "expected"),
    [
        ([{"type": "user"}, {"type": "client-id"}], pair(DEFAULT, DEFAULT)),
        (PAIR, pair(DEFAULT, "app")),
        ([{"type": "client-id", "name": "b"}, {"type": "user", "name": "a"}], pair("a", "b")),
    ],
)
def test_a_composite_is_a_pair(entities, expected):
    row = resource("kafka_quota_composite", values={"entity": entities, "config": {"producer_byte_rate": 1024}})

    assert state(read(printed(row))) == [(None, expected, RATE)]


def test_aiven_says_default_and_names_the_cluster():
    def aiven(**names):
        values = {"project": "p", "service_name": "kafka-eu", "producer_byte_rate": 1024, "consumer_byte_rate": None, **names}
        return state(read(printed(resource("aiven_kafka_quota", values=values))))

    assert aiven(user="default", client_id="app") == [("kafka-eu", pair(DEFAULT, "app"), RATE)]
    assert aiven(user="alice", client_id=None) == [("kafka-eu", user("alice"), RATE)]
    assert aiven(client_id="default") == [("kafka-eu", client(), RATE)]


def test_huawei_has_flags_for_defaults():
    def huawei(**names):
        values = {"instance_id": "i", "producer_byte_rate": 1024, **names}
        return state(read(printed(resource("huaweicloud_dms_kafka_user_client_quota", values=values))))

    assert huawei(user_default=True) == [("i", user(), RATE)]
    assert huawei(user="a", user_default=False, client_default=True) == [("i", pair("a", DEFAULT), RATE)]
    assert huawei(client="app") == [("i", client("app"), RATE)]
    assert huawei() == huawei(user="a", user_default=True) == huawei(user="a", client_default="yes") == []


def test_a_printed_state_is_read_with_the_modules_in_it_and_names_the_rest():
    child = resource("kafka_quota_composite", values={"entity": PAIR, "config": {"producer_byte_rate": 1024}, "id": "x"})
    topics = [resource("kafka_topic", values={"name": "t"}), resource("kafka_topic", values={"name": "u"})]
    found = read(printed(quota(), *topics, resource("kafka_quota", mode="data"), child=[child]))

    assert state(found) == [(None, user("a"), RATE), (None, pair(DEFAULT, "app"), RATE)]
    assert said(found) == [
        ("import-left-out", "2 resources of type 'kafka_topic' declare no client quota, and are left out"),
        ("import-left-out", "1 data source of type 'kafka_quota' declares no client quota, and is left out"),
    ]


@pytest.mark.parametrize(
    ("row", "rule_id"),
    [
        (quota(entity_type="group"), "unknown-entity-type"),
        (quota(entity_type=None), "unknown-entity-type"),
        (quota(entity_type=["user"]), "import-syntax"),
        (quota(entity_name=["a"]), "import-syntax"),
        (quota(unit="MiB"), "import-unsupported"),
        (quota(config={"producer_byterate": 1}), "import-unsupported"),
        (quota(config={"connection_creation_rate": 1}), "key-not-for-entity"),
        (quota(config={"producer_byte_rate": -1}), "value-not-positive"),
        (quota(config={"producer_byte_rate": "10MB"}), "value-syntax"),
        (quota(config={"producer_byte_rate": "010"}), "value-syntax"),
        (quota(config={"producer_byte_rate": [1]}), "value-syntax"),
        (quota(config={"producer_byte_rate": True}), "value-syntax"),
        (quota(config=[{"producer_byte_rate": 1}]), "import-syntax"),
        (quota(config={}), "import-left-out"),
        (resource(quotas={}), "import-unsupported"),
        (resource(mode="other"), "import-unsupported"),
        (resource(mode=None), "import-syntax"),
        (resource(values=None), "import-syntax"),
        (resource(address=""), "import-syntax"),
        (3, "import-syntax"),
        (resource(deposed_key="0badcafe"), "import-left-out"),
        (resource(sensitive_values={"config": True}), "import-unsupported"),
        (resource(sensitive_values={"config": {"producer_byte_rate": True}}), "import-unsupported"),
        (resource("kafka_quota_composite", values={"entity": [{"type": "user"}]}), "import-syntax"),
        (resource("kafka_quota_composite", values={"entity": [{"type": "user"}] * 2}), "import-ambiguous"),
        (resource("kafka_quota_composite", values={"entity": [{"type": "ip"}]}), "unknown-entity-type"),
        (resource("kafka_quota_composite", values={"entity": [{"type": "user", "match": "a"}]}), "import-unsupported"),
        (resource("kafka_quota_composite", values={}), "import-syntax"),
        (resource("aiven_kafka_quota", values={"service_name": "s"}), "import-ambiguous"),
        (resource("confluent_kafka_client_quota"), "import-unsupported"),
        (resource("ibm_event_streams_quota"), "import-unsupported"),
        (resource("other_kafka_user_quota"), "import-unsupported"),
        (resource("redpanda_client_quota", values={}), "import-unsupported"),
        (resource("redpanda_user", values={"limits": [{"producerByteRate": 5}]}), "import-unsupported"),
        (
            resource("kubernetes_manifest", values={"manifest": {"spec": {"quotas": {"producerByteRate": 5}}}}),
            "import-unsupported",
        ),
        (resource("google_managed_kafka_quota", values={}), "import-unsupported"),
        (resource("aws_servicequotas_service_quota", values={"quota_code": "L-1"}), "import-left-out"),
        (resource("aws_api_gateway_usage_plan", values={"quota_settings": []}), "import-left-out"),
    ],
)
def test_what_is_no_quota_that_can_be_converted_has_its_place(row, rule_id):
    text = json.dumps(printed(row), indent=1)
    found = read(text)

    assert found.quotas == ()
    assert ids(found) == [rule_id]
    assert 6 < span_of(found.findings[0]).line < text.count("\n") - 5


def test_marks_of_sensitive_values_that_mark_nothing_change_nothing():
    assert state(read(printed(resource(sensitive_values={"config": {}, "entity": [{}]})))) == [(None, user("a"), RATE)]


@pytest.mark.parametrize(
    ("document", "rule_id", "text"),
    [
        ("[]", "import-syntax", "not JSON of Terraform"),
        ("{}", "import-syntax", "not JSON of Terraform"),
        ('{"a": ', "yaml-syntax", ""),
        ("{}\n---\n{}\n", "import-syntax", "one JSON document"),
        ({"format_version": "1.0", "terraform_version": "1.9"}, "import-nothing-found", "terraform show -json"),
        ({"format_version": "2.0", "values": {}}, "import-unsupported", "'2.0'"),
        ({**printed(quota()), "quotas": []}, "import-unsupported", "'quotas'"),
        ({"format_version": "1.0", "values": []}, "import-syntax", "mapping"),
        ({"format_version": "1.0", "values": {"root": {}}}, "import-unsupported", "'root'"),
        ({"format_version": "1.0", "values": {"root_module": {"resources": {}}}}, "import-syntax", "list"),
        (
            {"format_version": "1.0", "values": {"root_module": {"child_modules": [{"modules": []}]}}},
            "import-unsupported",
            "modules",
        ),
        ({"format_version": "1.0", "values": {"root_module": []}}, "import-syntax", "mapping"),
        ({**printed(quota()), "planned_values": {}}, "import-unsupported", "this is a plan"),
        ({"resource": {"kafka_quota": {"a": {}}}}, "import-template", "terraform state pull"),
        ('{"format_version": "1.0", "format_version": "1.0"}', "duplicate-key", ""),
    ],
)
def test_json_that_is_no_state_is_refused(document, rule_id, text):
    found = read(document)

    assert found.quotas == ()
    assert ids(found) == [rule_id]
    assert text in found.findings[0].message


@pytest.mark.parametrize("file", ["main.tf", "main.tf.json", "main.tofu", "prod.tfvars", "terragrunt.hcl"])
def test_a_configuration_is_refused_with_the_commands_that_print_its_state(file):
    found = read('resource "kafka_quota" "q" {}\n', file)

    assert ids(found) == ["import-template"]
    assert "'terraform state pull' or 'terraform show -json'" in found.findings[0].message


def test_what_is_not_utf_8_is_a_finding():
    assert ids(read_terraform(b'{"a": "\xff"}\n', "state.json")) == ["invalid-utf8"]


@pytest.mark.parametrize("file", ["state.json", "terraform.tfstate", "terraform.tfstate.backup"])
def test_a_raw_state_is_read_with_all_instances(file):
    found = read(raw(instance("a", index_key="a"), instance("", index_key=0), module="module.m"), file)

    assert found.findings == ()
    assert state(found) == [(None, user("a"), RATE), (None, user(), RATE)]
    assert [one.span.line for one in found.quotas] == [16, 30]


def test_a_raw_state_names_the_cluster_by_the_alias_of_the_provider():
    document = raw(instance())
    alone = raw(instance(), provider='module.m.provider["registry.terraform.io/mongey/kafka"].eu')
    document["resources"] += alone["resources"]

    assert state(read(alone)) == [("eu", user("a"), RATE)]
    assert state(read(document)) == [("kafka", user("a"), RATE), ("eu", user("a"), RATE)]


def test_data_and_other_resources_of_a_raw_state_and_deposed_instances_are_mentioned():
    document = raw(instance("a", deposed="0badcafe"), instance("b"))
    document["resources"] += raw(instance("c"), mode="data")["resources"]
    document["resources"] += raw({"attributes": {"name": "t"}}, kind="kafka_topic")["resources"]
    found = read(document)

    assert state(found) == [(None, user("b"), RATE)]
    assert said(found) == [
        ("import-left-out", "kafka_quota.q is left out: Terraform will delete this instance"),
        ("import-left-out", "1 data source of type 'kafka_quota' declares no client quota, and is left out"),
        ("import-left-out", "1 resource of type 'kafka_topic' declares no client quota, and is left out"),
    ]


@pytest.mark.parametrize(
    ("document", "advice"),
    [
        ({"version": 3, "serial": 1, "lineage": "x", "modules": []}, "terraform show -json"),
        ({"serial": 1, "lineage": "x"}, "terraform show -json"),
        ({"encrypted_data": "aGVsbG8=", "meta": {}, "serial": 1, "lineage": "x"}, "tofu show -json"),
        ({**raw(), "quotas": []}, "'quotas'"),
        (raw(instance(), type=None), "a type, a name and a mode"),
        (raw(instance(), limits={}), "'limits'"),
        (raw(instance(limits={})), "'limits'"),
        (raw(instance(sensitive_attributes=[[{"type": "get_attr", "value": "config"}]])), "sensitive"),
        (raw({"attributes_flat": {"entity_name": "a"}}), "no mapping as its attributes"),
        (raw(instances={}), "instances is a list"),
        ({**raw(), "resources": [3]}, "a type, a name and a mode"),
    ],
)
def test_a_raw_state_of_another_form_is_refused(document, advice):
    (finding,) = read(document, "terraform.tfstate").findings

    assert finding.severity.value == "error"
    assert advice in finding.message


def test_a_quota_of_confluent_cloud_names_the_reason_why_it_has_no_counterpart():
    (finding,) = read(printed(resource("confluent_kafka_client_quota", values={"principals": ["sa-1"]}))).findings

    assert "limits service accounts over a whole cluster" in finding.message


def test_an_address_with_control_characters_is_escaped():
    (finding,) = read(printed(resource("x_kafka_quota", address="a\x1b[2J"))).findings

    assert "\x1b" not in finding.message
