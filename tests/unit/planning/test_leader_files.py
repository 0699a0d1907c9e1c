"""Leaders of partitions from the files of Kafka's reassignment tool."""

from __future__ import annotations

import json

import pytest

from reconciler.errors import FileAccessError, UsageError
from reconciler.model import TrafficSpread
from reconciler.planning import parse_leaders, with_broker_count, with_leaders, without_brokers


def assignment(*leaders: int, topic: str = "t") -> str:
    rows = [
        {"topic": topic, "partition": n, "replicas": [leader, 9], "log_dirs": ["any", "any"]} for n, leader in enumerate(leaders)
    ]
    return json.dumps({"version": 1, "partitions": rows})


def test_a_proposed_assignment_has_the_first_replica_as_leader() -> None:
    leaders = parse_leaders(assignment(1, 1, 2, 3), name="f")
    assert (dict(leaders.counts), leaders.moved, leaders.partitions) == ({1: 2, 2: 1, 3: 1}, None, 4)
    change = with_leaders((1, 2), leaders, name="f")
    assert change.spread is TrafficSpread.LEADERS
    assert change.shares == {1: ((1, 0.5), (2, 0.25), (3, 0.25)), 2: ((1, 0.5), (2, 0.25), (3, 0.25))}
    assert change.after == (1, 2, 3)


def test_the_whole_output_of_the_tool_shows_which_leaders_move() -> None:
    text = (
        f"Current partition replica assignment\n{assignment(1, 1, 1, 2)}\n\n"
        f"Proposed partition reassignment configuration\n{assignment(1, 3, 1, 2)}\n"
    )
    leaders = parse_leaders(text, name="f")
    assert leaders.moved == {1: {1: 2, 3: 1}, 2: {2: 1}}
    change = with_leaders((1, 2), leaders, name="f")
    assert change.shares == {1: ((1, 2 / 3), (3, 1 / 3))}
    assert change.after == (1, 2, 3)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "the file has no JSON object"),
        ("no", "the file has no JSON object"),
        ('{"partitions": [}', "the text is not JSON"),
        ("{" * 100_000, "the text is not JSON"),
        ("{}", "the file has 1 JSON objects"),
        ('{"partitions": []}', "'partitions' is not a list of partitions"),
        ('{"partitions": [{"topic": "t", "partition": 0, "replicas": []}]}', "a partition lacks its 'topic', 'partition' or"),
        ('{"partitions": [{"topic": "t", "partition": 0, "replicas": ["1"]}]}', "'1' is not a broker's id"),
        ('{"partitions": [{"topic": "t", "partition": 0, "replicas": [-1]}]}', "-1 is not a broker's id"),
        (assignment(1)[:-2] + "," + assignment(1).partition("[")[2], "partition t-0 is there twice"),
        (assignment(1) * 3, "the file has 3 JSON objects"),
        ('{"\x1b[31m": 1}', "the text is not JSON"),
    ],
)
def test_a_file_without_leaders_is_refused_with_the_reason(text: str, message: str) -> None:
    with pytest.raises(FileAccessError) as raised:
        parse_leaders(text, name="odd\x1b.json")
    assert message in str(raised.value)
    assert str(raised.value).isprintable()


def test_brokers_that_leave_and_come() -> None:
    change = without_brokers((1, 2, 3), {3})
    assert (change.before, change.after, change.title) == ((1, 2, 3), (1, 2), "without broker 3")
    assert change.shares == {3: ((1, 0.5), (2, 0.5))}
    change = with_broker_count((4, 7), 5)
    assert (change.after, change.stands_for) == ((4, 7, 8, 9, 10), 4)
    assert change.shares == {4: ((4, 0.2),), 7: ((4, 0.2),)}
    assert with_broker_count((4, 7), 2).shares == {}
    assert with_broker_count((4, 7), 1).after == (4,)


@pytest.mark.parametrize(
    ("lost", "message"), [({5}, "the history has no such broker. Its brokers are 1, 2"), ({1, 2}, "names every broker")]
)
def test_a_broker_that_cannot_leave_is_refused(lost: set[int], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        without_brokers((1, 2), lost)
