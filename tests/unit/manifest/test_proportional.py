"""Totals that brokers share by the partitions they lead: one number for all brokers, and each broker's own with the plugin."""

from __future__ import annotations

from typing import Any

from reconciler.features.callbacks.callback import ClusterMetadata, GroupQuotaCallback, PartitionLeader, callback_limits
from reconciler.manifest.units import compute_units
from reconciler.model import BrokerFacts
from reconciler.model.entity import Entity
from reconciler.model.quota import LeaderSpread
from reconciler.model.state import DesiredState
from reconciler.resolution.reserved_users import GROUP_CALLBACK, ProportionalTotal, reserved_entity
from reconciler.workflows.units import proportional_notes
from tests.support.desired_text import desired_of
from tests.support.manifests import cluster, quotas

KEY = "producer_byte_rate"
ETL = Entity.of({"user": "etl"})
SPREAD = LeaderSpread(
    partitions=((1, 4), (2, 2), (3, 2)),
    by_topic={"orders": ((1, 1, 1, 2, 2), 6), "clicks": ((3,), 1), "__consumer_offsets": ((1, 3), 2)},
)
FACTS = BrokerFacts(brokers=(1, 2, 3), leaders=SPREAD)


def declared(value: object, **spec: Any) -> tuple[DesiredState, tuple[str, ...]]:
    result, findings = desired_of(cluster(**spec), quotas(({"user": "etl"}, {KEY: value})))
    return result.state, findings


def test_leaders_of_all_topics_leave_kafkas_own_topics_out() -> None:
    computed, _ = compute_units(declared({"proportional": 700, "to": "leaders"})[0], FACTS)
    assert computed.values() == {ETL: {KEY: 300.0}}


def test_with_the_plugin_the_total_is_stored_and_each_broker_has_its_own_part() -> None:
    state, findings = declared({"proportional": 600, "topics": ["orders"]}, quotaCallback={"class": GROUP_CALLBACK})
    computed, _ = compute_units(state, FACTS)
    total = reserved_entity(ProportionalTotal(subject=ETL, topic="orders"))
    assert (findings, computed.values()) == ((), {ETL: {KEY: 300.0}, total: {KEY: 600.0}})
    partitions = tuple(
        PartitionLeader(topic="orders", partition=number, leader=leader) for number, leader in enumerate((1, 1, 1, 2, 2, None))
    )
    metadata = {broker: ClusterMetadata(broker=broker, brokers=(1, 2, 3), partitions=partitions) for broker in (1, 2, 3)}
    limits = callback_limits(GroupQuotaCallback, computed.values(), metadata)[KEY]
    assert [limits.at(broker).resolve("etl", "app").value for broker in (1, 2, 3)] == [300.0, 200.0, 100.0]
    (note,) = proportional_notes(computed, (1, 2, 3))
    assert "its own part of producer_byte_rate of user=etl" in note
