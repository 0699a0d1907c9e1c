"""Adopting a cluster loses nothing: manifests written from a state declare exactly that state."""

import datetime

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from reconciler.features.starting.manifests import emit
from reconciler.formats.units import declarable
from reconciler.manifest.desired import desired_state
from reconciler.manifest.documents import ClientQuotasDocument, ClusterDocument
from reconciler.manifest.reading import read_documents
from reconciler.model.cluster import Connection
from reconciler.model.entity import DEFAULT, Entity
from reconciler.model.finding import Severity
from reconciler.model.quota import QuotaKey, legal_keys
from reconciler.model.state import ClusterIdentity, CurrentState, Observed, ObservedFrom

AWKWARD = [
    '"', "'", "a\nb", "\r\n", "on", "0123", "null", "~", "<default>", "%40", "😀", " x ", "\u2028", "\u0085", "\x00", "\x7f",
    "\ufeff", "- x", "# c", "a: b", "{}", "[", "*a", "&a", "!t", "|", ">", "\t", "yes", "1e6", "0x10", "12:30", "2026-01-02", "=",
    "<<", "\\", "\\n", "true", "User:alice", "\U0010ffff", "\ufffe", "---", "...", "x" * 2000, "\u202e", "1_000", ".nan",
    "💥" * 500,
]  # fmt: skip
NAMES = st.one_of(st.sampled_from(AWKWARD), st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=20))
ADDRESSES = st.one_of(st.ip_addresses().map(str), st.sampled_from(["localhost", "a-host.example", "::ffff:127.0.0.1", "0::1"]))
VALUES = {
    "long": st.integers(min_value=1, max_value=2**53).map(float) | st.sampled_from([10485760.0, 1500.0, 2.0**63]),
    "int": st.integers(min_value=1, max_value=2**31 - 1).map(float),
    "double": st.floats(min_value=1e-300, max_value=1e300),
}


def with_default(names):
    return st.just(DEFAULT) | names


ENTITIES = st.one_of(
    st.builds(lambda u: Entity.of({"user": u}), with_default(NAMES)),
    st.builds(lambda c: Entity.of({"client-id": c}), with_default(NAMES)),
    st.builds(lambda u, c: Entity.of({"user": u, "client-id": c}), with_default(NAMES), with_default(NAMES)),
    st.builds(lambda i: Entity.of({"ip": i}), with_default(ADDRESSES)),
)


@st.composite
def entity_with_quotas(draw):
    entity = draw(ENTITIES)
    keys = draw(st.lists(st.sampled_from(legal_keys(entity.types)), min_size=1, unique=True))
    return entity, {key.value: draw(VALUES[key.value_type.value]) for key in keys}


STATES = st.lists(entity_with_quotas(), max_size=6).map(dict)


def current(entities, *, name="prod-eu", cluster_id="4L6g3nShT-eMCtK--X86sw"):
    observed = Observed(at=datetime.datetime(2026, 1, 2, tzinfo=datetime.UTC), origin=ObservedFrom.BROKER)
    return CurrentState(cluster=ClusterIdentity(name=name, id=cluster_id), observed=observed, entities=entities)


def read_back(export):
    """The documents of an export, the severities that its settings change, and the state that it declares."""
    contents = [read_documents(text.encode("utf-8"), path) for path, text in export.files.items()]
    documents = [document for content in contents for document in content.documents]
    findings = [finding for content in contents for finding in content.findings]
    (cluster,) = [document for document in documents if isinstance(document, ClusterDocument)]
    result = desired_state([d for d in documents if isinstance(d, ClientQuotasDocument)], cluster.spec)
    return cluster.spec, (*findings, *result.findings), result.state.values()


@given(state=STATES)
@settings(deadline=None)
def test_what_export_writes_declares_exactly_what_was_read(state):
    export = emit(current(state))
    _, findings, values = read_back(export)

    assert values == state
    assert export.findings == ()
    assert {finding.id for finding in findings if finding.severity is Severity.ERROR} <= {"ip-host-name"}


@given(name=NAMES, server=st.sampled_from(["b1:9092", "[::1]:9092", "10.0.0.1:9092"]), properties=NAMES)
@settings(deadline=None)
def test_the_cluster_document_reads_back_as_it_was_written(name, server, properties):
    export = emit(current({}, name=name), connection=Connection(bootstrap_servers=(server,), properties=properties))
    spec, findings, _ = read_back(export)

    assert [f for f in findings if f.severity is Severity.ERROR] == []
    assert (spec.name, spec.cluster_id, spec.prune) == (name, "4L6g3nShT-eMCtK--X86sw", "never")
    assert spec.connection == Connection(bootstrap_servers=(server,), properties=properties)


@given(
    good=STATES,
    bad=st.dictionaries(
        st.sampled_from(["producer_byte_rate", "consumer_byte_rate", "request_percentage"]), st.floats(), min_size=1
    ),
)
@settings(deadline=None)
def test_an_entity_with_one_value_that_cannot_be_declared_is_left_out_whole_and_named(good, bad):
    entity = Entity.of({"user": "left over", "client-id": "of a migration"})
    good.pop(entity, None)
    fine = all(declarable(QuotaKey(key), value) for key, value in bad.items())

    export = emit(current({**good, entity: bad}))
    _, _, values = read_back(export)

    assert values == ({**good, entity: bad} if fine else good)
    assert {finding.entity for finding in export.findings} == (set() if fine else {entity})


@given(types=st.sampled_from([("client-id-prefix",), ("ip", "user"), ("user", "x\n- y")]), name=NAMES)
@settings(deadline=None)
def test_entities_that_the_tool_does_not_write_are_findings_and_never_content(types, name):
    entity = Entity.of(dict.fromkeys(types, name))
    export = emit(current({entity: {"producer_byte_rate": 1.0, "odd\nkey": 2.0}}))
    _, findings, values = read_back(export)

    assert values == {}
    assert [f for f in findings if f.severity is Severity.ERROR] == []
    assert [finding.id for finding in export.findings] == ["entity-not-declarable"]


@pytest.mark.parametrize("name", ["010.0.0.1", "10.1", "[::1]", "10.0.0.0/8"])
def test_an_ip_that_only_brokers_can_judge_is_left_out_and_never_called_unchangeable(name):
    export = emit(current({Entity.of({"ip": name}): {"connection_creation_rate": 5.0}}))

    (finding,) = export.findings
    assert finding.id == "entity-not-declarable"
    assert "kafka-quotas alter asks them" in finding.message


def test_keys_that_the_tool_does_not_know_are_kept_as_comments_beside_the_entry():
    entity = Entity.of({"user": "alice"})
    export = emit(current({entity: {"producer_byte_rate": 1024.0, "future\nkey": 7.0}}))
    _, findings, values = read_back(export)

    assert values == {entity: {"producer_byte_rate": 1024.0}}
    assert findings == ()
    assert "# future\\u000akey: 7 (not known" in next(iter(export.files.values()))


def test_a_cluster_with_host_names_is_exported_with_the_setting_that_allows_them():
    export = emit(current({Entity.of({"ip": "db.example"}): {"connection_creation_rate": 5.0}}))

    assert "lint: {ip-host-name: warning}" in export.files["kafka-quotas.yaml"]


def test_values_are_written_for_people():
    export = emit(current({Entity.of({"user": "a"}): {"producer_byte_rate": 10485760.0, "request_percentage": 12.5}}))

    assert "quotas: {producer_byte_rate: 10MiB, request_percentage: 12.5}" in next(iter(export.files.values()))
