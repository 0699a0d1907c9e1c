"""The broker plugin with groups: in real brokers, and beside its form in Python.

Needs a JDK, and Maven for the build.
"""

from __future__ import annotations

import itertools
import random
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote, unquote

import pytest

from reconciler.features.callbacks.callback import (
    ClusterMetadata,
    GroupQuotaCallback,
    PartitionLeader,
    Principal,
    QuotaType,
    callback_limits,
)
from reconciler.features.sandbox.clients import create_topic
from reconciler.features.sandbox.cluster import running
from reconciler.features.sandbox.configuration import free_ports
from reconciler.features.sandbox.spec import Login, Sandbox, SandboxSpec
from reconciler.model.entity import DEFAULT, Entity, EntityName
from reconciler.resolution.reserved_users import GroupLimit, GroupMember, MemberKind, ProportionalTotal, reserved_entity
from tests.support import jmx, raw_quotas
from tests.support.broker_classes import ask_java, with_groups
from tests.support.maven_builds import digests_of_builds
from tests.support.polling import wait_until
from tests.support.wire_client import WireClient, record_batch

pytestmark = [pytest.mark.kafka, pytest.mark.interop]

VERSIONS = ["3.9.2", "4.3.1", "4.4.0"]
KEY = "producer_byte_rate"
LIMIT = 10_000.0
USERS = ("alice", "svc-pay-1", "CN=bob, O=x", "carol", "dave")
BATCH = record_batch(200_000)
TOPIC = "burst"
WINDOW_S = 10.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Broker:
    """A sandbox whose brokers have the plugin."""

    sandbox: Sandbox
    jmx_port: int

    def hold(self, quotas: dict[Entity, dict[str, float]]) -> None:
        """These quotas and no others, in effect."""
        servers = self.sandbox.bootstrap_servers
        raw_quotas.remove_all(servers)
        raw_quotas.alter(servers, raw_quotas.raw(quotas))
        raw_quotas.settled(servers, brokers=(1,))

    def burst(self, user: str, client_id: str) -> tuple[int, int]:
        """The bytes charged, and the throttle in ms."""
        assert self.sandbox.sasl_bootstrap_servers is not None
        with WireClient(self.sandbox.sasl_bootstrap_servers, self.sandbox.user(user), client_id) as client:
            return client.produce(TOPIC, BATCH)


@pytest.fixture(scope="module", params=VERSIONS)
def broker(request: pytest.FixtureRequest) -> Iterator[Broker]:
    (port,) = free_ports(1)
    logins = tuple(Login(name=name, password="secret") for name in USERS)
    spec = SandboxSpec(kafka_version=request.param, users=logins, java_options=jmx.java_options(port))
    with running(with_groups(spec)) as sandbox:
        create_topic(sandbox.bootstrap_servers, TOPIC)
        yield Broker(sandbox=sandbox, jmx_port=port)


def payments() -> dict[Entity, dict[str, float]]:
    member = {"request_percentage": 100.0}
    return {
        reserved_entity(GroupLimit(group="payments")): {KEY: LIMIT},
        reserved_entity(GroupMember(group="payments", kind=MemberKind.USER, name="alice")): member,
        reserved_entity(GroupMember(group="payments", kind=MemberKind.USER_PREFIX, name="svc-pay-")): member,
        reserved_entity(GroupMember(group="payments", kind=MemberKind.USER, name="dave")): member,
        Entity.of({"user": "dave"}): {KEY: 5 * LIMIT},
    }


def test_members_of_a_group_share_a_bucket_and_are_throttled_as_predicted(broker: Broker) -> None:
    quotas = payments()
    broker.hold(quotas)
    predicted = callback_limits(GroupQuotaCallback, quotas, {1: None})[KEY].at(1)
    # In turn: what one member sent counts against the next one.
    charged: dict[object, int] = {}
    begun = time.monotonic()
    for user, client_id in (("alice", "app"), ("svc-pay-1", "other"), ("carol", "app"), ("dave", "app")):
        resolved = predicted.resolve(user, client_id)
        amount, throttle_ms = broker.burst(user, client_id)
        charged[resolved.bucket] = charged.get(resolved.bucket, 0) + amount
        elapsed = time.monotonic() - begun
        assert elapsed < WINDOW_S
        # Eleven samples of a second: the window is ten seconds and the part of the current one.
        limit = resolved.value
        latest = 0.0 if limit is None else max(0.0, charged[resolved.bucket] / limit - WINDOW_S) * 1000
        earliest = 0.0 if limit is None else max(0.0, charged[resolved.bucket] / limit - WINDOW_S - min(1.0, elapsed)) * 1000
        assert earliest - 1 <= throttle_ms <= latest + 1, (user, throttle_ms, resolved)
    assert [charged[predicted.resolve(user, "app").bucket] > 2 * len(BATCH) for user in ("alice", "dave")] == [True, False]
    tags = jmx.tags(broker.sandbox.kafka_version, broker.jmx_port, "Produce", attribute="byte-rate")
    assert {"group": "payments"} in tags
    assert {"user": "dave"} in tags


def test_metrics_show_groups_and_decisions(broker: Broker) -> None:
    broker.hold(payments())
    broker.burst("alice", "app")
    version, port = broker.sandbox.kafka_version, broker.jmx_port
    names = ("Groups", "Members", "MembersInSeveralGroups", "IgnoredQuotas", "GroupDecisions", "Failures")
    instances = jmx.attributes(version, port, "kafka-quotas:type=callback,*", *names)
    # The broker and the controller of the node have an instance each. Only the broker is asked about clients.
    assert len(instances) == 2
    for values in instances.values():
        counts = {name: int(values[name]) for name in names}
        assert (counts["Groups"], counts["Members"], counts["MembersInSeveralGroups"]) == (1, 3, 0)
        assert (counts["IgnoredQuotas"], counts["Failures"]) == (0, 0)
    assert sum(int(values["GroupDecisions"]) > 0 for values in instances.values()) == 1
    groups = jmx.attributes(
        version, port, "kafka-quotas:type=callback-group,*", "Members", "ProduceLimit", "FetchLimit", "Decisions"
    )
    assert {(values["Members"], float(values["ProduceLimit"]), float(values["FetchLimit"])) for values in groups.values()} == {
        ("3", LIMIT, -1.0)
    }
    assert all('group="payments"' in name or "group=payments" in name for name in groups)


def test_the_log_names_the_plugin(broker: Broker) -> None:
    assert "shares limits by group" in broker.sandbox.nodes[0].log_file.read_text("utf-8")


@pytest.mark.parametrize(
    ("version", "properties", "follows"),
    [("3.9.2", {}, False), ("3.9.2", {"quota.groups.leaders.seconds": "1"}, True), ("4.4.0", {}, True)],
)
def test_brokers_that_do_not_tell_the_plugin_the_leaders_are_asked_where_a_setting_wants_it(
    version: str, properties: dict[str, str], follows: bool
) -> None:
    (port,) = free_ports(1)
    spec = SandboxSpec(
        kafka_version=version,
        users=(Login(name="alice", password="secret"),),
        properties=properties,
        java_options=jmx.java_options(port),
    )
    with running(with_groups(spec)) as sandbox:
        create_topic(sandbox.bootstrap_servers, TOPIC)
        broker = Broker(sandbox=sandbox, jmx_port=port)
        stored = Entity.of({"user": "alice"})
        # The only broker leads all partitions: its part is the total, far above the number that is stored beside it.
        broker.hold({stored: {KEY: LIMIT}, reserved_entity(ProportionalTotal(subject=stored, topic=TOPIC)): {KEY: 1e9}})

        def partitions() -> set[str]:
            instances = jmx.attributes(version, port, "kafka-quotas:type=callback,*", "Partitions")
            return {values["Partitions"] for values in instances.values()}

        if follows:
            wait_until(lambda: partitions() != {"0"})
        _, throttle_ms = broker.burst("alice", "app")
        assert (throttle_ms == 0) == follows
        assert (partitions() != {"0"}) == follows


NAMES = ("alice", "alice-1", "al", "CN=é, x*", "<default>")
CLIENTS = ("", "app", "app-7", "<default>")


def random_calls(seed: int) -> Iterator[tuple[QuotaType, Entity, float | None]]:
    choose = random.Random(seed)
    plain: list[dict[str, EntityName]] = [{"user": name} for name in (*NAMES, DEFAULT)]
    plain += [{"client-id": name} for name in (*CLIENTS[1:], DEFAULT)]
    plain += [{**user, **client} for user, client in itertools.product(plain[:6], plain[6:])]
    entities = [Entity.of(names) for names in plain]
    groups = ("a", "b,c")
    entities += [reserved_entity(GroupLimit(group=group)) for group in groups] * 6
    for group, kind in itertools.product(groups, MemberKind):
        names = NAMES if "user" in kind else CLIENTS[1:]
        entities += [reserved_entity(GroupMember(group=group, kind=kind, name=name)) for name in names]
    subjects: list[Entity | str] = [*entities[:3], Entity.of(plain[12]), *groups]
    for subject, topic in itertools.product(subjects, (None, "orders")):
        entities.append(reserved_entity(ProportionalTotal(subject=subject, topic=topic)))
    for _ in range(60):
        value = None if choose.random() < 0.25 else float(choose.randint(1, 999))
        yield choose.choice((QuotaType.PRODUCE, QuotaType.FETCH)), choose.choice(entities), value


def field(name: EntityName | None) -> str:
    return "" if name is None else "*" if name is DEFAULT else quote(f"={name}", safe="=")


@pytest.mark.parametrize("known", [False, True])
def test_the_plugin_and_its_form_in_python_answer_alike(tmp_path: Path, known: bool) -> None:
    leaders = {"orders": (1, 1, 2, 3), "__own": (1,), "clicks": (2,)}
    partitions = tuple(
        PartitionLeader(topic=topic, partition=number, leader=leader)
        for topic, all_of in leaders.items()
        for number, leader in enumerate(all_of)
    )
    lines, expected = [], []
    for seed in range(40):
        python = GroupQuotaCallback({"remember-kinds": "true"} if seed % 2 else {})
        own = [] if not known else [f"lead\t1\t{topic}\t" + "\t".join(map(str, of)) for topic, of in leaders.items()]
        if known:
            python.update_cluster_metadata(ClusterMetadata(broker=1, brokers=(1, 2, 3), partitions=partitions))
        for quota_type, entity, value in random_calls(seed):
            names = f"{field(entity.name('user'))}\t{field(entity.name('client-id'))}"
            if value is None:
                python.remove_quota(quota_type, entity)
                own.append(f"remove\t{quota_type}\t{names}\t")
            else:
                python.update_quota(quota_type, entity, value)
                own.append(f"set\t{quota_type}\t{names}\t{value}")
        answers = []
        for quota_type, user, client_id in itertools.product((QuotaType.PRODUCE, QuotaType.FETCH), NAMES, CLIENTS):
            own.append(f"ask\t{quota_type}\t{quote(user, safe='')}\t{quote(client_id, safe='')}")
            tags = python.quota_metric_tags(quota_type, Principal(name=user), client_id)
            answers.append((dict(tags), python.quota_limit(quota_type, tags)))
        lines.append(own)
        expected.append(answers)
    compared = grouped = 0
    for remembers in (False, True):
        of = range(remembers, 40, 2)
        # Each seed is a broker of its own.
        calls = [line for seed in of for line in ("new", *lines[seed])]
        answers_of_java = iter(ask_java("4.4.0", tmp_path, calls, remembers_kinds=remembers))
        for seed in of:
            for tags, limit in expected[seed]:
                user, client_id, group, text = next(answers_of_java).split("\t")
                # Users and groups are encoded in the tags of brokers, and all tags in the answer.
                found = {"user": unquote(unquote(user)), "client-id": unquote(client_id), "group": unquote(unquote(group))}
                assert found == {"user": "", "client-id": "", "group": "", **tags}, (seed, compared)
                assert (None if text == "null" else float(text)) == pytest.approx(limit), (seed, tags)
                compared += 1
                grouped += bool(group)
    assert compared == 40 * 2 * len(NAMES) * len(CLIENTS)
    assert grouped > compared / 20


def test_the_build_passes_its_tests_and_gives_the_same_bytes_anywhere(tmp_path: Path) -> None:
    assert len(digests_of_builds("callback", tmp_path)) == 1
