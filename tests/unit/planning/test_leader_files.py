"""Leaders of partitions from the files of Kafka's reassignment tool and of Cruise Control."""

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


def proposal(**more: object) -> dict[str, object]:
    load = {"loadBeforeOptimization": {1: 4, 2: 4, 3: 0}, "loadAfterOptimization": {1: 3, 2: 3, 3: 2}}
    loads = {
        name: {"hosts": [], "brokers": [{"Broker": broker, "Leaders": led} for broker, led in counts.items()]}
        for name, counts in load.items()
    }
    moves = [(1, [3, 1]), (2, [3, 2]), (1, [1, 3])]
    rows = [
        {"topicPartition": {"topic": "t", "partition": n}, "oldLeader": old, "oldReplicas": [old], "newReplicas": new}
        for n, (old, new) in enumerate(moves)
    ]
    return {"version": 1, "proposals": rows, **loads, **more}


def test_a_proposed_assignment_has_the_first_replica_as_leader() -> None:
    leaders = parse_leaders(assignment(1, 1, 2, 3), name="f")
    assert (dict(leaders.counts), leaders.moved, leaders.partitions, leaders.topics) == ({1: 2, 2: 1, 3: 1}, None, 4, 1)
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


def test_a_proposal_of_cruise_control_moves_a_share_of_each_brokers_leaders() -> None:
    leaders = parse_leaders(json.dumps(proposal()), name="f")
    assert dict(leaders.counts) == {1: 3, 2: 3, 3: 2}
    assert leaders.moved == {1: {1: 3, 3: 1}, 2: {2: 3, 3: 1}}
    change = with_leaders((1, 2, 3), leaders, name="f")
    assert change.shares == {1: ((1, 0.75), (3, 0.25)), 2: ((2, 0.75), (3, 0.25))}


def test_a_proposal_without_its_partitions_and_a_state_have_only_counts() -> None:
    leaders = parse_leaders(json.dumps(proposal(proposals=[])), name="f")
    assert (dict(leaders.counts), leaders.moved) == ({1: 3, 2: 3, 3: 2}, None)
    state = {"KafkaBrokerState": {"LeaderCountByBrokerId": {"0": 2, "7": 6}}, "version": 1}
    assert dict(parse_leaders(json.dumps(state), name="f").counts) == {0: 2, 7: 6}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "the file has no JSON object"),
        ("no", "the file has no JSON object"),
        ('{"partitions": [}', "the text is not JSON"),
        ("{" * 100_000, "the text is not JSON"),
        ("{}", "neither 'partitions' nor the leaders"),
        ('{"partitions": []}', "'partitions' is not a list of partitions"),
        ('{"partitions": [{"topic": "t", "partition": 0, "replicas": []}]}', "a partition lacks its 'topic', 'partition' or"),
        ('{"partitions": [{"topic": "t", "partition": 0, "replicas": ["1"]}]}', "'1' is not a broker's id"),
        ('{"partitions": [{"topic": "t", "partition": 0, "replicas": [-1]}]}', "-1 is not a broker's id"),
        (assignment(1)[:-2] + "," + assignment(1).partition("[")[2], "partition t-0 is there twice"),
        (assignment(1) * 3, "the file has 3 JSON objects"),
        ('{"KafkaBrokerState": {"LeaderCountByBrokerId": {"1": 0}}}', "no broker leads a partition"),
        ('{"KafkaBrokerState": {"LeaderCountByBrokerId": {"x": 1}}}', "'x' is not a broker's id"),
        (json.dumps(proposal(proposals=[{"topicPartition": {}, "newReplicas": [1]}])), "a proposal lacks its 'topicPartition'"),
        (
            json.dumps(
                proposal(proposals=[{"topicPartition": {"topic": "t"}, "oldLeader": 3, "newReplicas": [1], "oldReplicas": [3]}])
            ),
            "broker 3 leads 0 partitions, and the leaders of 1 move away",
        ),
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
