"""Everything describe prints, read back: text and JSON say exactly what the cluster has, whatever the names."""

from hypothesis import given
from hypothesis import strategies as st

from reconciler.documents import SNAPSHOT, snapshot_chunks
from reconciler.model.entity import DEFAULT, Entity
from reconciler.model.state import same_value
from reconciler.render.state_text import state_as_text
from tests.builders import client, current, ip, pair, user
from tests.support.hostile_names import NAMES
from tests.support.kip_text import read_description

NAME = NAMES | st.just(DEFAULT)
ENTITIES = st.one_of(
    st.builds(user, NAME),
    st.builds(client, NAME),
    st.builds(pair, NAME, NAME),
    st.builds(ip, st.ip_addresses().map(str) | st.sampled_from(["localhost", "10.0.0.0/8", DEFAULT])),
    st.dictionaries(st.sampled_from(["user", "client-id-prefix", "odd, type"]), NAME, min_size=1, max_size=3).map(Entity.of),
)
KEYS = st.sampled_from(["producer_byte_rate", "consumer_byte_rate", "request_percentage", "connection_creation_rate"])
VALUES = st.floats() | st.integers(1, 2**40).map(float)
STATES = st.dictionaries(ENTITIES, st.dictionaries(KEYS | NAMES, VALUES, min_size=1, max_size=4), max_size=6)


def same(one, other):
    assert one.keys() == other.keys()
    for entity, quotas in one.items():
        assert quotas.keys() == other[entity].keys()
        assert all(same_value(value, other[entity][key]) for key, value in quotas.items())


@given(STATES)
def test_text_reads_back(state):
    printed = "".join(state_as_text(current(state)))

    same(read_description(printed), state)
    assert all(line.isprintable() for line in printed.split("\n"))


@given(STATES)
def test_coloured_text_is_the_same_text(state):
    coloured = "".join(state_as_text(current(state), color=True))

    assert coloured.replace("\x1b[1m", "").replace("\x1b[0m", "") == "".join(state_as_text(current(state)))


@given(STATES)
def test_json_written_piece_by_piece_is_the_document_of_a_snapshot(state):
    assert "".join(snapshot_chunks(current(state))) == SNAPSHOT.text(current(state))
