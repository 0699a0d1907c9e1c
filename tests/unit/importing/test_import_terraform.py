"""Terraform's quotas in all three forms: the language, its JSON form, and what terraform show -json prints."""

import json

import pytest

from reconciler.importing.terraform import read_terraform
from reconciler.model.entity import DEFAULT
from tests.builders import client, ip, pair, user
from tests.support.spans import span_of

RATE = {"producer_byte_rate": 1024.0}


def read(text, file="main.tf"):
    return read_terraform(text.encode(), file)


def state(found):
    return [(one.cluster, one.entity, one.quotas) for one in found.quotas]


def resource(*lines, kind="kafka_quota", name="q"):
    return f'resource "{kind}" "{name}" {{\n' + "".join(f"  {line}\n" for line in lines) + "}\n"


def quota(*lines, config="{ producer_byte_rate = 1024 }"):
    return resource(*lines, f"config = {config}")


@pytest.mark.parametrize(
    ("lines", "expected"),
    [
        (('entity_type = "user"', 'entity_name = "alice"'), user("alice")),
        (('entity_type = "client-id"', 'entity_name = "app"'), client("app")),
        (('entity_type = "user"',), user()),
        (('entity_type = "user"', "entity_name = null"), user()),
        (('entity_type = "client-id"', 'entity_name = ""'), client()),
        (('entity_type = "user"', 'entity_name = "<default>"'), user("<default>")),
        (('entity_type = "user"', r'entity_name = "a\"b\\c\td\u00e9\U0001f600$${x}%%{y}$z"'), user('a"b\\c\tdé😀${x}%{y}$z')),
    ],
)
def test_a_missing_name_is_the_default_and_texts_are_read_as_terraform_reads_them(lines, expected):
    assert state(read(quota(*lines))) == [(None, expected, RATE)]


@pytest.mark.parametrize(
    "config",
    [
        "{ producer_byte_rate = 1024 }",
        '{ "producer_byte_rate" = "1024" }',
        '{ "producer_byte_rate": 1024.0, }',
        "{ producer_byte_rate = 1.024e3 }",
        "{ producer_byte_rate = 1 * 1024 }",
        "{ producer_byte_rate = (2 + 2) * 256, consumer_byte_rate = null }",
        "{\n producer_byte_rate = 2048 / 2 # half\n }",
    ],
)
def test_numbers_texts_and_plain_arithmetic_come_to_the_same(config):
    assert state(read(quota('entity_type = "user"', config=config))) == [(None, user(), RATE)]


def test_every_key_of_an_address_and_of_a_client_is_read():
    keys = "{ producer_byte_rate = 1, consumer_byte_rate = 2, request_percentage = 12.5, controller_mutation_rate = 0.5 }"
    text = quota('entity_type = "ip"', 'entity_name = "10.0.0.1"', config="{ connection_creation_rate = 5 }")
    values = {"producer_byte_rate": 1.0, "consumer_byte_rate": 2.0, "request_percentage": 12.5, "controller_mutation_rate": 0.5}

    assert state(read(quota('entity_type = "user"', config=keys) + text)) == [
        (None, user(), values),
        (None, ip("10.0.0.1"), {"connection_creation_rate": 5.0}),
    ]


@pytest.mark.parametrize(
    ("blocks", "expected"),
    [
        (('entity { type = "user" }', 'entity { type = "client-id" }'), pair(DEFAULT, DEFAULT)),
        (('entity {\n type = "client-id"\n name = "app"\n}', 'entity { type = "user" }'), pair(DEFAULT, "app")),
        (('entity {\n type = "user"\n name = "a"\n}', 'entity {\n type = "client-id"\n name = "b"\n}'), pair("a", "b")),
    ],
)
def test_a_composite_is_a_pair(blocks, expected):
    text = resource(*blocks, "config = { producer_byte_rate = 1024 }", kind="kafka_quota_composite")

    assert state(read(text)) == [(None, expected, RATE)]


def test_aiven_says_default_and_names_the_cluster():
    lines = ('project = "p"', 'service_name = "kafka-eu"', "producer_byte_rate = 1024")

    def aiven(*more):
        return state(read(resource(*lines, *more, kind="aiven_kafka_quota")))

    assert aiven('user = "default"', 'client_id = "app"') == [("kafka-eu", pair(DEFAULT, "app"), RATE)]
    assert aiven('user = "alice"') == [("kafka-eu", user("alice"), RATE)]
    assert aiven('client_id = "default"') == [("kafka-eu", client(), RATE)]


def test_huawei_has_flags_for_defaults():
    lines = ("instance_id = var.id", "producer_byte_rate = 1024")

    def huawei(*more):
        return state(read(resource(*lines, *more, kind="huaweicloud_dms_kafka_user_client_quota")))

    assert huawei("user_default = true") == [(None, user(), RATE)]
    assert huawei('user = "a"', "user_default = false", "client_default = true") == [(None, pair("a", DEFAULT), RATE)]
    assert huawei('client = "app"') == [(None, client("app"), RATE)]
    assert huawei() == huawei('user = "a"', "user_default = true") == []


def test_several_providers_are_several_clusters_by_their_aliases():
    one, two = ('entity_type = "user"',), ('entity_type = "client-id"',)

    assert state(read(quota(*one, "provider = kafka.eu"))) == [("eu", user(), RATE)]
    assert state(read(quota(*one, "provider = kafka.eu") + quota(*one, "provider = kafka.us") + quota(*two))) == [
        ("eu", user(), RATE),
        ("us", user(), RATE),
        ("kafka", client(), RATE),
    ]


@pytest.mark.parametrize(
    ("line", "at"),
    [
        ("entity_name = var.name", "var.name"),
        ('entity_name = "team-${var.team}"', '"team-'),
        ("entity_name = kafka_acl.a.principal", "kafka_acl"),
        ("entity_name = lower(local.n)", "lower"),
        ("entity_name = <<EOT\nalice\nEOT", "<<EOT"),
        ('entity_name = var.x ? "a" : "b"', "var.x"),
        ("config = local.limits", "local.limits"),
        ("config = { producer_byte_rate = var.mib * 1024 }", "var.mib"),
        ("config = { (var.key) = 1024 }", "{ ("),
        ("config = { for k in [1] : k => k }", "{ for"),
        ("config = merge({}, {})", "merge"),
        ("config = { producer_byte_rate = 1024 / 0 }", "1024"),
        ('for_each = toset(["a"])', "toset"),
        ("count = 2", "2"),
    ],
)
def test_what_only_terraform_can_evaluate_is_refused_at_its_place(line, at):
    text = resource('entity_type = "user"', line)
    (found,) = read(text).findings

    assert read(text).quotas == ()
    assert found.id == "import-template"
    assert (found.span.line, found.span.column) == (3, text.splitlines()[2].index(at) + 1)
    assert "terraform show -json" in found.message


@pytest.mark.parametrize(
    ("text", "rule_id", "line"),
    [
        (quota('entity_type = "group"'), "unknown-entity-type", 2),
        (quota('entity_name = "a"'), "unknown-entity-type", 1),
        (quota('entity_type = "user"', 'unit = "MiB"'), "import-unsupported", 3),
        (quota('entity_type = "user"', config="{ producer_byterate = 1 }"), "unknown-quota-key", 3),
        (quota('entity_type = "user"', config="{ connection_creation_rate = 1 }"), "key-not-for-entity", 3),
        (quota('entity_type = "user"', config="{ producer_byte_rate = -1 }"), "value-not-positive", 3),
        (quota('entity_type = "user"', config='{ producer_byte_rate = "10MB" }'), "value-syntax", 3),
        (quota('entity_type = "user"', config="{ producer_byte_rate = [1] }"), "import-syntax", 3),
        (quota('entity_type = "user"', config="{ producer_byte_rate = true }"), "value-syntax", 3),
        (quota('entity_type = ["user"]'), "import-syntax", 2),
        (resource('entity { type = "user" }', kind="kafka_quota_composite"), "import-syntax", 1),
        (resource(*['entity { type = "user" }'] * 2, kind="kafka_quota_composite"), "import-ambiguous", 3),
        (resource('entity { type = "ip" }', kind="kafka_quota_composite"), "unknown-entity-type", 2),
        (resource('dynamic "entity" { for_each = [] }', kind="kafka_quota_composite"), "import-template", 2),
        (resource('service_name = "s"', kind="aiven_kafka_quota"), "import-ambiguous", 1),
        (resource(kind="confluent_kafka_client_quota"), "import-unsupported", 1),
        (resource(kind="ibm_event_streams_quota"), "import-unsupported", 1),
        (resource(kind="other_kafka_user_quota"), "import-unsupported", 1),
        ('resource "kafka_quota" {', "import-syntax", 1),
        ("a = = 1", "import-syntax", 1),
        ('a = "\\', "import-syntax", 1),
    ],
)
def test_what_cannot_be_converted_has_its_place(text, rule_id, line):
    found = read(text)

    assert found.quotas == ()
    assert [(one.id, span_of(one).line) for one in found.findings] == [(rule_id, line)]


def test_the_rest_of_a_configuration_is_passed_over_but_modules_are_mentioned():
    text = (
        'terraform {\n  required_providers {\n    kafka = { source = "Mongey/kafka" }\n  }\n}\n'
        'variable "x" {}\nlocals { a = 1 }\n'
        'provider "kafka" { bootstrap_servers = ["b1:9092"] }\n'
        'data "kafka_topic" "t" { name = "t" }\n'
        + resource('name = "t"', kind="kafka_topic")
        + quota('entity_type = "user"', "depends_on = [kafka_topic.t]", "lifecycle { prevent_destroy = true }")
        + 'module "team" { source = "./team" }\n'
    )
    found = read(text)

    assert state(found) == [(None, user(), RATE)]
    assert [(one.id, span_of(one).line) for one in found.findings] == [("import-left-out", 19)]


def shown(*resources, child=(), **more):
    def module(items):
        return [
            {"address": f"kafka_quota.{n}", "mode": "managed", "type": kind, "name": f"{n}", "values": values}
            for n, (kind, values) in enumerate(items)
        ]

    root = {"resources": module(resources), "child_modules": [{"address": "module.m", "resources": module(child)}]}
    return {"format_version": "1.0", "values": {"root_module": root}, **more}


def test_a_state_is_read_with_the_modules_in_it():
    pairs = [{"name": None, "type": "user"}, {"name": "app", "type": "client-id"}]
    document = shown(
        ("kafka_quota", {"entity_name": "alice", "entity_type": "user", "id": "alice|user", "config": RATE}),
        ("kafka_quota", {"entity_name": "", "entity_type": "user", "id": "entity-default|user", "config": RATE}),
        ("kafka_topic", {"name": "t"}),
        child=[("kafka_quota_composite", {"entity": pairs, "config": {"producer_byte_rate": 1024}, "id": "x"})],
    )
    found = read(json.dumps(document), "state.json")

    assert found.findings == ()
    assert state(found) == [(None, user("alice"), RATE), (None, user(), RATE), (None, pair(DEFAULT, "app"), RATE)]


def test_a_plan_is_read_from_its_planned_values_and_two_providers_are_two_clusters():
    document = shown(("kafka_quota", {"entity_name": "${a}", "entity_type": "user", "config": RATE}))
    document["planned_values"] = document.pop("values")
    document["configuration"] = {"provider_config": {"kafka": {"name": "kafka"}, "aws": {"name": "aws"}}}

    assert state(read(json.dumps(document), "plan.json")) == [(None, user("${a}"), RATE)]

    document["configuration"]["provider_config"]["kafka.eu"] = {"name": "kafka", "alias": "eu"}
    assert [one.id for one in read(json.dumps(document), "plan.json").findings] == ["import-ambiguous"]

    document["configuration"]["provider_config"] = {f"kafka.r{n}": {"name": "kafka", "alias": f"r{n}"} for n in range(8)}
    (found,) = read(json.dumps(document), "plan.json").findings
    assert "'kafka.r4' and 3 more, and" in found.message


def test_the_json_form_of_the_language_is_read_with_its_templates():
    body = {"//": "ours", "entity_type": "user", "entity_name": "a$${x}", "config": {"producer_byte_rate": 1024}}
    document = {"resource": {"kafka_quota": {"a": body, "b": [{**body, "entity_name": "${var.x}"}]}}}
    found = read(json.dumps(document, indent=1), "main.tf.json")

    assert state(found) == [(None, user("a${x}"), RATE)]
    assert [one.id for one in found.findings] == ["import-template"]


@pytest.mark.parametrize(
    ("text", "rule_id"),
    [
        ("[]", "import-syntax"),
        ('{"a": ', "yaml-syntax"),
        ('{"format_version": "1.0", "terraform_version": "1.9"}', "import-nothing-found"),
        ('{"resource": {"kafka_quota": {"a": {"entity_type": "user", "entity_type": "ip"}}}}', "duplicate-key"),
    ],
)
def test_json_that_is_none_of_these_is_refused(text, rule_id):
    assert [one.id for one in read(text, "x.tf.json").findings] == [rule_id]


def test_what_is_not_utf_8_is_a_finding():
    assert [(one.id, span_of(one).line) for one in read_terraform(b"# a\n# \xff\n", "main.tf").findings] == [("invalid-utf8", 2)]


MONGEY = 'provider["registry.terraform.io/mongey/kafka"]'


def raw(*instances, provider=MONGEY, kind="kafka_quota", **more):
    row = {"mode": "managed", "type": kind, "name": "q", "provider": provider, "instances": list(instances), **more}
    document = {"version": 4, "terraform_version": "1.9.0", "serial": 3, "lineage": "x", "outputs": {}, "resources": [row]}
    return json.dumps(document, indent=1)


def instance(name="a", **more):
    attributes = {"config": {"producer_byte_rate": "1024"}, "entity_name": name, "entity_type": "user", "id": f"{name}|user"}
    return {"schema_version": 0, "attributes": attributes, "sensitive_attributes": [], "private": "bnVsbA==", **more}


@pytest.mark.parametrize("file", ["state.json", "terraform.tfstate", "terraform.tfstate.backup"])
def test_a_raw_state_is_read_with_all_instances(file):
    found = read(raw(instance("a", index_key="a"), instance("", index_key=0), module="module.m"), file)

    assert found.findings == ()
    assert state(found) == [(None, user("a"), RATE), (None, user(), RATE)]
    assert [one.span.line for one in found.quotas] == [16, 30]


def test_a_raw_state_names_the_cluster_by_the_alias_of_the_provider():
    document = json.loads(raw(instance()))
    document["resources"] += json.loads(raw(instance(), provider=f"module.m.{MONGEY}.eu"))["resources"]

    assert state(read(json.dumps(document), "terraform.tfstate")) == [("kafka", user("a"), RATE), ("eu", user("a"), RATE)]


def test_data_and_other_resources_of_a_raw_state_are_passed_over_and_deposed_instances_mentioned():
    document = json.loads(raw(instance("a", deposed="0badcafe"), instance("b")))
    document["resources"] += json.loads(raw(instance("c"), mode="data"))["resources"]
    document["resources"] += json.loads(raw({"attributes": {"name": "t"}}, kind="kafka_topic"))["resources"]
    found = read(json.dumps(document), "terraform.tfstate")

    assert state(found) == [(None, user("b"), RATE)]
    assert [(one.id, one.message) for one in found.findings] == [
        ("import-left-out", "kafka_quota.q is left out: Terraform will delete this instance")
    ]


def test_null_in_a_raw_state_is_a_field_without_a_value():
    found = read(raw(instance("a", deposed="0badcafe"), module=None), "terraform.tfstate")

    (finding,) = found.findings
    assert finding.message == "kafka_quota.q is left out: Terraform will delete this instance"
    assert read(raw(instance(), type=None), "terraform.tfstate") == read("{}", "x.json")


@pytest.mark.parametrize(
    ("text", "advice"),
    [
        ('{"version": 3, "serial": 1, "lineage": "x", "modules": []}', "terraform show -json"),
        ('{"serial": 1, "lineage": "x"}', "terraform show -json"),
        ('{"encrypted_data": "aGVsbG8=", "meta": {}, "serial": 1, "lineage": "x"}', "tofu show -json"),
    ],
)
def test_a_raw_state_of_another_form_is_refused_with_the_command_that_prints_it(text, advice):
    (finding,) = read(text, "terraform.tfstate").findings

    assert finding.id == "import-unsupported"
    assert advice in finding.message


@pytest.mark.parametrize("row", [3, {}, {"mode": "managed"}, {"mode": "managed", "type": "kafka_quota", "name": "q"}])
def test_rows_of_other_shapes_in_a_raw_state_declare_nothing(row):
    text = json.dumps({"version": 4, "serial": 1, "lineage": "x", "resources": [row]})

    assert read(text, "terraform.tfstate") == read("{}", "x.json")


def test_an_instance_without_attributes_is_a_fault():
    found = read(raw({"attributes_flat": {"entity_name": "a"}}), "terraform.tfstate")

    assert found.quotas == ()
    assert [one.id for one in found.findings] == ["unknown-entity-type"]


def test_a_quota_of_confluent_cloud_names_the_reason_why_it_has_no_counterpart():
    lines = ('principals = ["sa-1"]', 'throughput { ingress_byte_rate = "100" }')
    (finding,) = read(resource(*lines, kind="confluent_kafka_client_quota")).findings

    assert finding.id == "import-unsupported"
    assert "limits service accounts over a whole cluster" in finding.message
