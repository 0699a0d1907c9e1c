"""Names of clients in metrics, against vectors of Kafka's own classes, and as laws."""

from __future__ import annotations

import json
import urllib.parse
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from reconciler.features.prometheus.metric_layouts import decode_user, unquote_client_id
from reconciler.resolution.kafka_names import quote_client_id

VECTORS = json.loads((Path(__file__).parent / "metric_names.json").read_text("utf-8"))
"""Made with ``Sanitizer`` of kafka-clients 4.3.1, on Java 17."""
NAMES = st.text(
    st.one_of(st.sampled_from('ab_-AB ,="\\*?\n%~\u212a'), st.characters(codec="utf-8")), min_size=1, max_size=12
) | st.sampled_from(["client_id", "_client_id_", "-"])


def test_names_are_read_as_kafka_writes_them() -> None:
    for vector in VECTORS:
        name = vector["name"]
        assert quote_client_id(name) == vector["client_id"], vector
        assert (decode_user(vector["user"]), unquote_client_id(vector["client_id"])) == (name, name), vector


@given(NAMES)
def test_encoded_names_are_read_back(name: str) -> None:
    assert decode_user(urllib.parse.quote(name, safe="")) == name
    assert unquote_client_id(quote_client_id(name)) == name
