"""Snapshot files: the round trip, the schema, and what is said of files that are none."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from reconciler.documents import SNAPSHOT, read_snapshot, write_snapshot
from reconciler.errors import FileAccessError, ManifestError
from reconciler.model.entity import DEFAULT, Entity
from reconciler.model.state import CurrentState, same_value
from tests.builders import current, ip, pair, user
from tests.support.schemas import valid


def same(one: CurrentState, other: CurrentState) -> bool:
    quotas = {e: dict(q) for e, q in one.entities.items()}
    others = {e: dict(q) for e, q in other.entities.items()}
    return quotas.keys() == others.keys() and all(
        quotas[e].keys() == others[e].keys() and all(same_value(v, others[e][k]) for k, v in quotas[e].items()) for e in quotas
    )


names = st.one_of(st.just(DEFAULT), st.text(max_size=8))
entities = st.dictionaries(st.sampled_from(["user", "client-id", "ip", "other"]), names, min_size=1, max_size=3).map(Entity.of)
states = st.dictionaries(entities, st.dictionaries(st.text(max_size=8), st.floats(), max_size=3), max_size=5).map(current)


@given(state=states)
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
def test_any_state_survives_and_fits_the_schema(state, tmp_path):
    write_snapshot(state, tmp_path / "s.json")

    assert same(read_snapshot(tmp_path / "s.json"), state)
    valid(json.loads((tmp_path / "s.json").read_text(encoding="utf-8")), "snapshot")


def test_entities_are_in_canonical_order_and_defaults_are_null():
    document: Any = SNAPSHOT.write(current({ip("1.2.3.4"): {"k": 1.0}, pair("a", DEFAULT): {"k": 1.0}, user("a"): {"k": 1.0}}))

    assert [row["entity"] for row in document["entities"]] == [{"user": "a"}, {"user": "a", "client-id": None}, {"ip": "1.2.3.4"}]
    assert list(document) == ["format_version", "cluster", "observed", "entities"]
    assert document["observed"] == {"at": "2026-01-02T12:00:00Z", "from": "broker"}


def test_a_file_that_cannot_be_read(tmp_path):
    for path in (tmp_path / "none.json", tmp_path):
        with pytest.raises(FileAccessError, match="cannot be read"):
            read_snapshot(path)


def good() -> dict[str, Any]:
    return {
        "format_version": "1.0",
        "cluster": {"name": None, "id": None, "kafka_version": None},
        "observed": {"at": "2026-01-02T12:00:00Z", "from": "broker"},
        "entities": [{"entity": {"user": "a"}, "quotas": {"producer_byte_rate": 1}}],
    }


def broken(*path: str | int, value: object) -> str:
    document = good()
    at: Any = document
    for step in path[:-1]:
        at = at[step]
    at[path[-1]] = value
    return json.dumps(document)


@pytest.mark.parametrize(
    ("text", "where"),
    [
        ("", ":1:1: this is not JSON"),
        ('{"format_version":\n nope}', ":2:2: this is not JSON"),
        ("[]", "the document must be an object, not []"),
        ("{}", "the document lacks 'format_version'"),
        ("[" * 100_000, "nested too deep"),
        ("1" * 5000, "a number too long"),
        ('{"a": 1, "a": 2}', "the same key twice"),
        ('{"a": NaN}', "NaN is not JSON"),
        (broken("format_version", value="2.0"), "is a snapshot of format 2.0, and this version reads format 1"),
        (broken("format_version", value=1), "format_version must be a string, not 1"),
        (broken("cluster", value=None), "cluster must be an object"),
        (broken("cluster", "id", value=3), "cluster.id must be a string or null"),
        (broken("observed", "at", value="yesterday"), "observed.at must be a time in ISO 8601"),
        (broken("observed", "at", value="2026-01-02T12:00:00"), "observed.at must be a time with its offset"),
        (broken("entities", value={}), "entities must be a list"),
        (broken("entities", 0, value=1), "entities[0] must be an object"),
        (broken("entities", 0, "entity", value={}), "entities[0].entity must be filled"),
        (broken("entities", 0, "entity", value={"user": 1}), "entities[0].entity.user must be a string or null"),
        (broken("entities", 0, "quotas", value=[]), "entities[0].quotas must be an object"),
        (broken("entities", 0, "quotas", "producer_byte_rate", value="fast"), "rate must be a number or one of NaN"),
        (broken("entities", 0, "quotas", "producer_byte_rate", value=True), "must be a number"),
        (broken("entities", 0, "quotas", "producer_byte_rate", value=10**400), "must be a number in the range of a double"),
        (broken("entities", value=[good()["entities"][0]] * 2), "entities[1] has the same entity"),
    ],
)  # fmt: skip
def test_what_is_no_snapshot_is_refused_with_the_place(text, where, tmp_path):
    path = tmp_path / "s.json"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(ManifestError) as refused:
        read_snapshot(path)
    assert where in str(refused.value)
    assert str(path) in str(refused.value)


def test_a_newer_minor_version_and_fields_we_do_not_know_are_read(tmp_path):
    document = good() | {"format_version": "1.7", "more": 1}
    (tmp_path / "s.json").write_text("\ufeff" + json.dumps(document), encoding="utf-8")

    assert dict(read_snapshot(tmp_path / "s.json").entities) == {user("a"): {"producer_byte_rate": 1.0}}
