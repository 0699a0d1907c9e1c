"""Names that a migration copied as ZooKeeper has them, and nodes that brokers cannot read."""

import pytest

from reconciler.model.entity import DEFAULT, Entity
from reconciler.model.state import DesiredEntity, UnreadableNode
from reconciler.policy.lint.precedence import Subject
from reconciler.policy.lint.rules import lint_state
from tests.builders import client, declared, desired, ip, pair, span, user

RATE = {"producer_byte_rate": 1048576.0}


def found(rule: str, *entities: DesiredEntity, live: tuple[Entity, ...] = (), staying: tuple[Entity, ...] | None = None, **more):
    state = desired(*entities)
    after = dict.fromkeys(live if staying is None else staying, RATE) | state.values()
    subject = Subject(desired=state, after=after, before=dict.fromkeys(live, RATE), **more)
    return [one for one in lint_state(subject) if one.id == rule]


@pytest.mark.parametrize(
    ("left", "meant"),
    [
        (user("<default>"), user()),
        (client("<default>"), client()),
        (pair("<default>", "<default>"), pair(DEFAULT, DEFAULT)),
        (pair("alice", "<default>"), pair("alice", DEFAULT)),
        (user("alice%40EXAMPLE.COM"), user("alice@EXAMPLE.COM")),
        (pair("CN%3Da%2COU%3Db", "a%20b"), pair("CN=a,OU=b", "a b")),
        (ip("<default>"), ip()),
        (user("%3Cdefault%3E"), user("<default>")),
    ],
)
def test_a_name_as_in_zookeeper_is_found_and_the_entity_that_is_meant_named(left: Entity, meant: Entity) -> None:
    (one,) = found("migrated-name", live=(left, user("alice")))

    assert one.entity == left
    assert f"If {meant} is meant" in one.message


@pytest.mark.parametrize(
    "good",
    [user(), user("100%"), user("%4"), user("a%zz"), user("x%2fy"), user("a%41"), pair("alice", DEFAULT), ip("fe80::1%25")],
)
def test_names_that_no_node_has_are_not(good: Entity) -> None:
    assert found("migrated-name", live=(good,)) == []


def test_what_is_being_removed_or_declared_as_it_is_is_not() -> None:
    left = user("a%40b")

    assert found("migrated-name", live=(left,), staying=()) == []
    assert found("migrated-name", declared(left, producer_byte_rate=1048576.0), live=(left,)) == []


def test_a_node_that_brokers_cannot_read_is_told_at_its_entry() -> None:
    broken = UnreadableNode(path="/config/users/a", reason="the node's data are not JSON", entity=user("a"))
    nobodys = UnreadableNode(path="/config/users/x\ny", reason="its name is nobody's")
    one, other = found("unreadable-node", declared(user("a"), 4, producer_byte_rate=1048576.0), unreadable=(broken, nobodys))

    assert (one.span, one.entity) == (span(4), user("a"))
    assert one.message == "ZooKeeper's node /config/users/a (user=a): the node's data are not JSON"
    assert (other.span, other.entity) == (None, None)
    assert "\n" not in other.message
