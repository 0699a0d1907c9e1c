"""Laws of ZooKeeper's nodes: names go there and back, values too, and nothing of a node is lost."""

import json
import re
from urllib.parse import unquote

from hypothesis import given
from hypothesis import strategies as st

from reconciler.backends.zookeeper.nodes import name_of_node, node_name, parse_node, read_quotas, stored_text
from reconciler.model.entity import DEFAULT
from reconciler.model.quota import CLIENT_KEYS, QuotaKey, ValueType

NAMES = st.one_of(
    st.text(min_size=1),
    st.text(alphabet="<>default%40/+*~ .-_aé😀\x00", min_size=1),
    st.sampled_from(["<default>", "%3Cdefault%3E", "%", "*", " ", "a b", "..a", "clients", "\U0010ffff"]),
).filter(lambda name: name not in (".", "..") and not any(0xD800 <= ord(char) <= 0xDFFF for char in name))

NODES = st.text(alphabet=st.sampled_from("abAB09%+*~ .-_<>dflutE4C"), min_size=1).filter(lambda node: node not in (".", ".."))

VALUES = st.floats(allow_nan=False)

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=6,
)

FOREIGN = st.dictionaries(st.text().filter(lambda key: key not in set(QuotaKey)), st.text(), max_size=5)


@given(NAMES)
def test_a_name_goes_to_its_node_and_back(name: str) -> None:
    node = node_name(name)

    assert name_of_node(node) == name
    assert re.fullmatch(r"(?:[A-Za-z0-9._-]|%[0-9A-F]{2})+", node)
    assert unquote(node) == name


@given(NODES)
def test_a_node_is_its_names_node_or_nobodys(node: str) -> None:
    name = name_of_node(node)

    assert name is None or node_name(name) == node


@given(NAMES, NAMES)
def test_two_names_never_share_a_node(one: str, other: str) -> None:
    assert (node_name(one) == node_name(other)) == (one == other)
    assert node_name(one) != node_name(DEFAULT)


@given(st.sampled_from(CLIENT_KEYS), VALUES.filter(lambda value: value > 0))
def test_a_value_is_read_as_it_was_written(key: QuotaKey, value: float) -> None:
    if key.value_type is not ValueType.DOUBLE:
        value = float(round(min(value, 2.0**63)))
    assert read_quotas({key.value: stored_text(key.value, value)}, ("user",)) == ({key.value: value}, ())


@st.composite
def node_data(draw: st.DrawFn) -> tuple[bytes, dict[str, str]]:
    """A node as somebody may have left it: other members, other order, blanks; with its config."""
    config = draw(FOREIGN) | {key.value: "5" for key in draw(st.sets(st.sampled_from(CLIENT_KEYS)))}
    keys = draw(st.permutations(list(config)))
    config = {key: config[key] for key in keys}
    others = draw(st.dictionaries(st.text().filter(lambda key: key != "config"), JSON, max_size=3))
    members = draw(st.permutations([*others.items(), ("config", config)]))
    text = json.dumps(dict(members), indent=draw(st.sampled_from([None, 1])), ensure_ascii=draw(st.booleans()))
    return text.encode("utf-8", "surrogatepass"), config


ALTERATIONS = st.dictionaries(st.sampled_from([key.value for key in CLIENT_KEYS]), st.none() | st.just("7"), min_size=1)


@given(node_data().filter(lambda made: _is_unicode(made[0])), ALTERATIONS)
def test_an_altered_node_has_everything_else_as_it_was(made: tuple[bytes, dict[str, str]], texts: dict[str, str | None]) -> None:
    data, config = made
    altered = parse_node(data).altered(texts).encoded()
    before, after = json.loads(data), json.loads(altered)

    assert after.pop("config") == {key: value for key, value in (config | texts).items() if value is not None}
    before.pop("config")
    assert after == before


def _is_unicode(data: bytes) -> bool:
    try:
        data.decode()
    except UnicodeDecodeError:
        return False
    return True
