"""What is called a leftover, and the commands that remove it."""

from __future__ import annotations

import datetime
from collections.abc import Mapping
from dataclasses import replace

import pytest

from reconciler.backends.zookeeper.leftovers import removable_nodes
from reconciler.errors import AuthorizationError
from reconciler.model.entity import DEFAULT, Entity
from reconciler.ports import ReplicationThrottles
from reconciler.workflows.leftovers import find_leftovers, node_findings, throttle_findings, user_findings
from tests.builders import client, user
from tests.fakes import FakeCluster

RATE = {"leader.replication.throttled.rate": "1048576"}
BOTH_RATES = {**RATE, "follower.replication.throttled.rate": "1048576"}
LISTS = {"leader.replication.throttled.replicas": "*"}


def throttles(
    rates: Mapping[int | None, Mapping[str, str]], *topics: str, moving: Mapping[str, frozenset[int]] | None = None
) -> list[str]:
    seen = ReplicationThrottles(rates=rates, replicas=dict.fromkeys(topics, LISTS), moving=moving or {})
    return [str(finding.message) for finding in throttle_findings(seen)]


def test_a_running_reassignment_needs_the_throttles_of_its_brokers_and_topics_only() -> None:
    moving = {"a": frozenset({1, 2})}
    on_brokers, on_topics = throttles({1: RATE, 2: RATE, 3: RATE}, "a", "b", moving=moving)
    assert ("broker 3 leader 1 MiB/s" in on_brokers, "broker 1" in on_brokers) == (True, False)
    assert ("'b'" in on_topics, "'a'" in on_topics) == (True, False)
    assert throttles({1: RATE, None: RATE}, "a", moving=moving) == []


def test_what_has_no_effect_is_called_so() -> None:
    (on_brokers,) = throttles({1: RATE})
    assert "no effect until a topic lists throttled replicas" in on_brokers
    (on_topics,) = throttles({}, "a")
    assert "no effect until a broker has a throttled rate" in on_topics
    assert not [message for message in throttles({1: RATE}, "a") if "no effect" in message]


def test_a_command_deletes_only_keys_that_are_set_there() -> None:
    (message,) = throttles({1: RATE, 2: BOTH_RATES, 3: RATE, None: RATE})
    change = "kafka-configs --bootstrap-server HOST:PORT --alter --entity-type brokers"
    delete = "--delete-config leader.replication.throttled.rate"
    both = "--delete-config follower.replication.throttled.rate,leader.replication.throttled.rate"
    assert message.partition("run: ")[2].split("; ") == [
        f"{change} --entity-default {delete}",
        *("for name in 1 3", f"do {change} --entity-name $name {delete}", "done"),
        f"{change} --entity-name 2 {both}",
    ]


def test_a_strange_name_is_quoted_for_the_shell_and_escaped() -> None:
    entities = {
        user("alice"): {"producer_byte_rate": 5.0},
        user("a b\x1b"): {"request_percentage": 5.0, "consumer_byte_rate": 1.0},
    }
    (finding,) = user_findings(entities, frozenset({"alice"}))
    assert str(finding.message).endswith(
        "kafka-quotas alter --name 'user=a b\\u001b' --delete consumer_byte_rate,request_percentage"
    )
    (of_default,) = user_findings(
        {Entity.of({"user": "gone", "client-id": DEFAULT}): {"request_percentage": 5.0}, user("alice"): {}}, frozenset({"alice"})
    )
    assert str(of_default.message).endswith("alter --name user=gone --defaults client-id --delete request_percentage")


@pytest.mark.parametrize("users", [frozenset[str](), frozenset({"bob"}), frozenset({"alice", "carol"})])
def test_users_are_compared_only_where_some_have_credentials(users: frozenset[str]) -> None:
    entities = {user("alice"): {"producer_byte_rate": 5.0}, user("carol"): {"producer_byte_rate": 5.0}, client("c"): {}}
    assert list(user_findings(entities, users)) == []


class Forbidden(FakeCluster):
    """A cluster that shows none of it to this principal."""

    def replication_throttles(self) -> ReplicationThrottles:
        raise AuthorizationError("not allowed")

    def scram_users(self) -> frozenset[str]:
        raise AuthorizationError("not allowed")

    def nodes_without_quotas(self) -> Mapping[str, int | None]:
        raise AuthorizationError("not allowed")


def test_what_could_not_be_read_is_a_note_and_no_finding() -> None:
    findings, notes = find_leftovers(Forbidden(), {user("alice"): {"producer_byte_rate": 5.0}})
    assert findings == ()
    assert notes == (
        "Leftover replication throttles were not looked for: not allowed",
        "Users with quotas were not compared with SCRAM credentials: not allowed",
        "Nodes without quotas were not looked for: not allowed",
    )
    assert find_leftovers(FakeCluster(), {user("alice"): {}}) == ((), ())


def test_since_when_a_throttle_stands_is_the_last_change_where_it_is_known() -> None:
    seen = ReplicationThrottles(rates={1: RATE}, replicas={}, moving={})
    (message,) = (str(finding.message) for finding in throttle_findings(seen))
    assert "Since when is not known: brokers do not report it." in message
    at = datetime.datetime(2026, 11, 20, 8, 30, tzinfo=datetime.UTC)
    (message,) = (str(finding.message) for finding in throttle_findings(replace(seen, changed={1: at})))
    assert "broker 1 leader 1 MiB/s (since 2026-11-20 08:30 UTC or earlier)" in message
    assert "not known" not in message


def test_a_node_is_removed_before_those_above_it_and_only_where_nothing_else_is_below() -> None:
    empty = {"/config/users/a": 1, "/config/users/b": 2, "/config/users/a/clients/x": 3, "/config/users/b/clients/x": 4}
    removable = dict(removable_nodes(empty, {"/config/users/a": 1, "/config/users/b": 2}))
    assert list(removable.items()) == [
        ("/config/users/a/clients/x", 3),
        ("/config/users/b/clients/x", 4),
        ("/config/users/a/clients", None),
        ("/config/users/a", 1),
    ]
    (finding,) = node_findings(removable)
    assert str(finding.message).startswith("ZooKeeper has 3 nodes ")
    assert "'delete -v 4 /config/users/b/clients/x' 'delete /config/users/a/clients' 'delete -v 1 " in str(finding.message)
