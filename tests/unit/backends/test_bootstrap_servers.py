"""HOST:PORT lists, and where a connection is taken from."""

from __future__ import annotations

import pytest

from reconciler.backends.broker.settings import parse_servers
from reconciler.errors import UsageError
from reconciler.model.cluster import ClusterSpec, Connection
from reconciler.model.finding import Span
from reconciler.workflows.connect import Access, open_cluster


def test_lists_are_split_at_commas_and_documents_at_items():
    assert parse_servers((" b1:9092, b2:9093 ,", "[::1]:1")) == (("b1", 9092), ("b2", 9093), ("::1", 1))


@pytest.mark.parametrize(
    "text", ["", ",", "b1", "b1:", ":9092", "b1:0", "b1:65536", "b1:x", "::1:9092", "PLAINTEXT://b1:9092", "b1:٣"]
)
def test_what_is_no_server_is_a_usage_error(text):
    with pytest.raises(UsageError, match="HOST:PORT"):
        parse_servers((text,))


def test_the_command_line_replaces_the_whole_connection(tmp_path):
    spec = ClusterSpec(
        connection=Connection(bootstrap_servers=("b1:9092",), properties="not-there.properties"),
        span=Span(file=str(tmp_path / "prod.yaml"), line=1, column=1),
    )
    with pytest.raises(UsageError, match="'nonsense' is not a bootstrap server"):
        open_cluster(spec, Access(bootstrap_server="nonsense"))


def test_properties_lie_beside_the_document(tmp_path):
    spec = ClusterSpec(
        connection=Connection(bootstrap_servers=("b1:9092",), properties="not-there.properties"),
        span=Span(file=str(tmp_path / "prod.yaml"), line=1, column=1),
    )
    with pytest.raises(Exception, match=str(tmp_path / "not-there.properties")):
        open_cluster(spec)
