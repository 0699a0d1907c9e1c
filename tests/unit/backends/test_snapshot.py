"""Snapshot files: the round trip, the schema, and what is said of files that are none."""

from __future__ import annotations

import dataclasses
import json
import math
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

from reconciler.backends.snapshot import SnapshotReader
from reconciler.documents import SNAPSHOT, read_snapshot, write_snapshot
from reconciler.errors import FileAccessError, ManifestError
from reconciler.model.entity import DEFAULT, Entity
from reconciler.model.state import CurrentState, ObservedFrom, same_value
from tests.builders import client, current, ip, pair, user

SCHEMA = json.loads((Path(__file__).parents[3] / "schemas" / "snapshot.v1.schema.json").read_text(encoding="utf-8"))

STATE = current(
    {
        ip(): {"connection_creation_rate": 5.0},
        pair("a", DEFAULT): {"request_percentage": 12.5, "producer_byte_rate": 1024.0},
        user("<default>"): {"producer_byte_rate": 2.0**63},
        user(): {"producer_byte_rate": math.nan, "request_percentage": math.inf},
        client("two\nlines"): {"unknown_key": -0.5},
        Entity.of({"client-id-prefix": "x", "user": "a"}): {"producer_byte_rate": 1.0},
    }
)


def same(one: CurrentState, other: CurrentState) -> bool:
    quotas = {e: dict(q) for e, q in one.entities.items()}
    others = {e: dict(q) for e, q in other.entities.items()}
    return quotas.keys() == others.keys() and all(
        quotas[e].keys() == others[e].keys() and all(same_value(v, others[e][k]) for k, v in quotas[e].items()) for e in quotas
    )


def test_what_is_written_is_read_back(tmp_path):
    write_snapshot(STATE, tmp_path / "s.json")
    found = SnapshotReader(tmp_path / "s.json").current_state()

    assert same(found, STATE)
    assert found.cluster == STATE.cluster
    assert (found.observed.at, found.observed.origin) == (STATE.observed.at, ObservedFrom.SNAPSHOT)


names = st.one_of(st.just(DEFAULT), st.text(max_size=8))
entities = st.dictionaries(st.sampled_from(["user", "client-id", "ip", "other"]), names, min_size=1, max_size=3).map(Entity.of)
states = st.dictionaries(entities, st.dictionaries(st.text(max_size=8), st.floats(), max_size=3), max_size=5).map(current)


@given(state=states)
@settings(max_examples=100, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
def test_any_state_survives_and_fits_the_schema(state, tmp_path):
    write_snapshot(state, tmp_path / "s.json")

    assert same(read_snapshot(tmp_path / "s.json"), state)
    Draft202012Validator(SCHEMA).validate(json.loads((tmp_path / "s.json").read_text(encoding="utf-8")))


def test_brokers_are_kept_and_left_out_where_they_are_not_known(tmp_path):
    write_snapshot(dataclasses.replace(STATE, brokers=(1, 20)), tmp_path / "s.json")
    document = json.loads((tmp_path / "s.json").read_text("utf-8"))
    Draft202012Validator(SCHEMA).validate(document)

    assert document["brokers"] == [1, 20]
    assert SnapshotReader(tmp_path / "s.json").current_state().brokers == (1, 20)
    assert "brokers" not in SNAPSHOT.write(STATE)


def test_equal_states_make_equal_files(tmp_path):
    backwards = current(dict(reversed([(e, dict(reversed(list(q.items())))) for e, q in STATE.entities.items()])))
    write_snapshot(STATE, tmp_path / "one.json")
    write_snapshot(backwards, tmp_path / "two.json")

    assert (tmp_path / "one.json").read_bytes() == (tmp_path / "two.json").read_bytes()


def test_entities_are_in_canonical_order_and_defaults_are_null():
    document: Any = SNAPSHOT.write(current({ip("1.2.3.4"): {"k": 1.0}, pair("a", DEFAULT): {"k": 1.0}, user("a"): {"k": 1.0}}))

    assert [row["entity"] for row in document["entities"]] == [{"user": "a"}, {"user": "a", "client-id": None}, {"ip": "1.2.3.4"}]
    assert list(document) == ["format_version", "cluster", "observed", "entities"]
    assert document["observed"] == {"at": "2026-01-02T12:00:00Z", "from": "broker"}


def test_a_failed_write_leaves_the_old_file_and_nothing_else(tmp_path):
    target = tmp_path / "s.json"
    target.mkdir()
    with pytest.raises(FileAccessError, match="cannot write"):
        write_snapshot(STATE, target)
    with pytest.raises(FileAccessError, match="cannot write"):
        write_snapshot(STATE, tmp_path / "no" / "such" / "folder.json")
    assert [p.name for p in tmp_path.iterdir()] == ["s.json"]


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


def test_binary_is_no_snapshot(tmp_path):
    (tmp_path / "s.json").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(ManifestError, match="not UTF-8"):
        read_snapshot(tmp_path / "s.json")
