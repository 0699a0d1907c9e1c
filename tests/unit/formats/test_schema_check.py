"""Schema problems: the right place, the right kind, and a suggestion."""

import json
from types import MappingProxyType

import jsonschema_rs
import pytest
from hypothesis import given
from hypothesis import strategies as st

from reconciler.formats.shapes import check, load_schema
from reconciler.yaml import read_yaml

HEAD = "apiVersion: kafka-quotas/v1\nkind: ClientQuotas\n"


def found(body, schema="client-quotas", head=HEAD):
    (document,) = read_yaml((head + body).encode()).documents
    return [(p.id, p.line, p.column, p.message) for p in check(document, schema)]


@pytest.mark.parametrize(
    ("body", "kind", "line", "column", "words"),
    [
        ("metadata: {ownr: x}\nspec: {quotas: []}\n", "unknown-field", 3, 12, "Did you mean 'owner'?"),
        ("spec: {quota: []}\n", "unknown-field", 3, 8, "Did you mean 'quotas'?"),
        ("spec: {quotas: {}}\n", "wrong-type", 3, 16, "'quotas' must be a list, not a mapping"),
        ("spec: {quotas: [{match: {user: a}, quotas: [1]}]}\n", "wrong-type", 3, 44, "must be a mapping, not a list"),
        ("spec: {quotas: [{match: {user: {default: false}}, quotas: {}}]}\n", "wrong-value", 3, 42, "must be true, not false"),
        ("spec: {quotas: [], clusters: []}\n", "wrong-value", 3, 30, "'clusters' is empty"),
        ("spec: {quotas: [{match: {}, quotas: {}}]}\n", "wrong-value", 3, 25, "'match' is empty"),
    ],
)
def test_a_problem_is_where_it_is_written(body, kind, line, column, words):
    hits = [problem for problem in found(body) if problem[:3] == (kind, line, column)]

    assert len(hits) == 1
    assert words in hits[0][3]


def test_every_problem_of_a_document_is_found_at_once():
    body = "metadta: {}\nspec:\n  quotas:\n    - match: {usr: a}\n    - quotas: {producer_byte_rat: 1}\n"

    assert [problem[0] for problem in found(body)] == ["unknown-field", "unknown-field", "missing-field", "unknown-field"]


def test_the_place_of_a_problem_does_not_depend_on_the_good_entries_around_it():
    good = "    - {match: {user: u%d}, quotas: {producer_byte_rate: 1MiB}}\n"
    bad = "    - {match: {user: bad}, quotas: {producer_byterate: 1MiB}}\n"
    lines = [bad if number in (0, 40, 99) else good % number for number in range(100)]
    head = "apiVersion: kafka-quotas/v1\nkind: ClientQuotas\nspec:\n  quota: []\n  quotas:\n"
    (root,) = read_yaml((head + "".join(lines)).encode()).documents

    found = check(root, "client-quotas")

    assert [(problem.line, problem.path[-1]) for problem in found] == [
        (4, "quota"),
        (6, "producer_byterate"),
        (46, "producer_byterate"),
        (105, "producer_byterate"),
    ]
    assert [problem.path[2] for problem in found[1:]] == [0, 40, 99]


def test_unknown_fields_of_one_mapping_are_named_up_to_a_number_and_then_counted():
    def unknown(count):
        return found("spec: {quotas: []}\nmetadata:\n" + "".join(f"  strange{number}: 1\n" for number in range(count)))

    assert [problem[3] for problem in unknown(101)][-2:] == [
        "'metadata' has no field 'strange99'. Known: 'name', 'owner'",
        "'metadata' has no field 'strange100'. Known: 'name', 'owner'",
    ]
    many = unknown(20_000)
    assert len(many) == 101
    assert many[-1][:2] == ("unknown-field", 105)
    assert "19,900 more fields that are not known" in many[-1][3]


SPECS = MappingProxyType({
    "client-quotas": {
        "clusters": ["a"], "groups": {"g": {"users": ["a"], "match": "prefix", "quotas": {}}},
        "quotas": [{"match": {"user": ["a", "b"]}, "quotas": {"producer_byte_rate": {"value": "1MiB", "until": "2026-12-01"}},
                    "overrides": [{"clusters": {"labels": {"a": "b"}}, "quotas": {"request_percentage": None}}]}],
    },
    "cluster": {
        "prune": "never", "scope": {"include": [{"user": {"prefix": "a"}, "strict": True}]},
        "guards": {"too-many-changes": {"percent": 3}, "large-reduction": {"keys": {"producer_byte_rate": 0.5}}},
        "freeze": [{"days": ["mon"]}], "accept": [{"guard": "prune", "until": "2026-12-01", "reason": "a"}],
        "traffic": {"prometheus": "http://a", "match": ['a="b"'], "days": 2}, "brokerSettings": {"quota.window.num": 11},
    },
    "repository": {
        "stages": ["a", "b"], "owners": {"a": {"paths": ["a/**"]}}, "lint": {"user-prefix": "off"},
        "limits": [{"producer_byte_rate": {"max": 3}}],
    },
    "traffic-mapping": {
        "columns": {"ts": {"column": "t", "unit": "s"}, "broker": {"constant": 1}, "kind": {"constant": "fetch"},
                    "amount": {"column": "b"}}, "delimiter": ";",
    },
})  # fmt: skip
KINDS = MappingProxyType({"client-quotas": "ClientQuotas", "traffic-mapping": "TrafficMapping"})
DATA = st.recursive(
    st.one_of(
        st.none(), st.booleans(), st.integers(-2, 3), st.floats(-2, 3), st.sampled_from(["", "a", "never", "10MiB", "a\n"])
    ),
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(st.sampled_from(["", "x"]), inner, max_size=3)),
    max_leaves=6,
)


def places(data, path=()):
    """Every place within a document."""
    yield path
    children = data.items() if isinstance(data, dict) else enumerate(data) if isinstance(data, list) else ()
    for part, child in children:
        yield from places(child, (*path, part))


@pytest.mark.parametrize("schema", ["client-quotas", "cluster", "repository", "traffic-mapping"])
@given(data=st.data())
def test_a_document_has_problems_exactly_when_the_schema_refuses_it(schema, data):
    about = {"apiVersion": "kafka-quotas/v1", "kind": KINDS.get(schema, schema.title()), "metadata": {"name": "a"}}
    document = json.loads(json.dumps({**about, "spec": SPECS[schema]}))
    assert check(read_yaml(json.dumps(document).encode()).documents[0], schema) == ()
    *path, last = data.draw(st.sampled_from([place for place in places(document) if place]))
    parent = document
    for part in path:
        parent = parent[part]
    if data.draw(st.booleans()):
        parent[last] = data.draw(DATA)
    else:
        del parent[last]
    (root,) = read_yaml(json.dumps(document).encode()).documents

    assert bool(check(root, schema)) is not jsonschema_rs.Draft202012Validator(load_schema(schema)).is_valid(document)
