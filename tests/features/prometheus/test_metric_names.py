"""Names of clients in metrics, against vectors of Kafka's and the jmx_exporter's own classes, and as laws."""

from __future__ import annotations

import json
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from reconciler.features.prometheus.metric_layouts import ClientNames, NameIndex, decode_user, encode_user, unquote_client_id
from reconciler.resolution.kafka_names import mangle, quote_client_id

VECTORS = json.loads((Path(__file__).parent / "metric_names.json").read_text("utf-8"))
"""Made with ``Sanitizer`` of kafka-clients 4.3.1 and ``JmxCollector.toSafeName`` of jmx_exporter 1.0.1, on Java 17."""
NAMES = st.text(
    st.one_of(st.sampled_from('ab_-AB ,="\\*?\n%~\u212a'), st.characters(codec="utf-8")), min_size=1, max_size=12
) | st.sampled_from(["client_id", "a_client_id_b", "_client_id_", "-", "user", "app"])


def full_name(user: str | None, client_id: str | None) -> str:
    """The metric name of the KRaft example."""
    tags = "" if user is None else f", user={encode_user(user)}"
    tags += "" if client_id is None else f", client-id={quote_client_id(client_id)}"
    return mangle(f"kafka_server_Produce{tags}_byte-rate")


def body(name: str) -> str:
    return name.removeprefix("kafka_server_produce_").removesuffix("_byte_rate")


def test_names_are_written_as_kafka_and_the_exporter_write_them() -> None:
    for vector in VECTORS:
        name = vector["name"]
        assert (encode_user(name), quote_client_id(name)) == (vector["user"], vector["client_id"]), vector
        assert (decode_user(vector["user"]), unquote_client_id(vector["client_id"])) == (name, name), vector
        assert full_name(name, name) == vector["metric"]


@given(NAMES)
def test_encoded_names_are_read_back(name: str) -> None:
    assert decode_user(encode_user(name)) == name
    assert unquote_client_id(quote_client_id(name)) == name


@given(NAMES, NAMES)
def test_the_mangled_name_is_that_of_mangled_parts(first: str, second: str) -> None:
    assert mangle(mangle(first) + mangle(second)) == mangle(first + second)


@given(st.sets(NAMES, max_size=4), st.sets(NAMES, max_size=4))
def test_candidates_are_all_clients_with_this_name(users: set[str], client_ids: set[str]) -> None:
    clients = [(user, client_id) for user in [None, *users] for client_id in [None, *client_ids] if user or client_id]
    index = NameIndex.of(ClientNames(users=frozenset(users), client_ids=frozenset(client_ids)))
    for client in clients:
        name = full_name(*client)
        wanted = {one for one in clients if full_name(*one) == name}
        candidates = index.candidates(body(name))
        assert set(candidates) <= wanted
        assert len(candidates) == min(2, len(wanted))
