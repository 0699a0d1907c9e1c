"""Limits and throttling of quota groups, of samples as sources give them."""

from __future__ import annotations

import math
from collections.abc import Mapping

import pytest

from reconciler.errors import UsageError
from reconciler.features.insight.headroom_view import headroom_lines
from reconciler.features.insight.observe import GroupLoad, Headroom, join_limits, nearest_first, observe
from reconciler.features.insight.rate_sources import RateReading, RateRequest, Samples, read_rates
from reconciler.features.prometheus.metric_layouts import Measure, MetricSeries
from reconciler.model.entity import Entity
from reconciler.model.quota import QuotaKey
from reconciler.model.state import ClusterIdentity
from reconciler.render import plain
from reconciler.resolution.effective_quotas import Caveats
from reconciler.resolution.views import QuotaView, ViewKind
from reconciler.traffic.kinds import Kind
from tests.builders import NOON, ip, user

NOW = 1_800_000_000.0


def series(
    *samples: float,
    user: str | None = "alice",
    client_id: str | None = None,
    measure: Measure = Measure.RATE,
    kind: Kind = Kind.PRODUCE,
    broker: int = 1,
    end_s: float = NOW,
) -> tuple[MetricSeries, Samples]:
    """Samples 15 s apart, the last one at ``end_s``."""
    first = end_s - 15 * (len(samples) - 1)
    name = MetricSeries(broker=broker, kind=kind, user=user, client_id=client_id, measure=measure)
    return name, tuple((first + 15 * number, value) for number, value in enumerate(samples))


def read(quotas: Mapping[Entity, Mapping[str, float]], *samples: tuple[MetricSeries, Samples]) -> Headroom:
    return join_limits(QuotaView(kind=ViewKind.SNAPSHOT, entities=quotas), {}, RateReading(series=dict(samples)))


LIMIT = {"producer_byte_rate": 100.0}


def test_the_nearest_to_its_limit_is_first_and_a_group_without_a_limit_last() -> None:
    found = read(
        {user("alice"): LIMIT, user("bob"): {"producer_byte_rate": 1000.0}},
        series(99.0, user="carol"), series(900.0, user="bob"), series(95.0),
    )  # fmt: skip

    assert [(group.tags["user"], group.share) for group in found.groups] == [("alice", 0.95), ("bob", 0.9), ("carol", None)]
    assert [str(note) for note in found.notes] == ["1 quota group without a limit."]


def since_s(group: GroupLoad) -> float:
    """Seconds since 1970."""
    assert group.throttling is not None
    return group.throttling.since.timestamp()


def test_throttling_began_at_the_first_sample_after_one_without_it() -> None:
    found = read({user("alice"): LIMIT}, series(150.0), series(math.nan, 10.0, 20.0, 30.0, measure=Measure.THROTTLE_TIME))

    (group,) = found.groups
    assert group.throttling is not None
    assert (since_s(group), group.throttling.or_earlier) == (NOW - 30, False)
    assert group.throttling.mean_ms == 30


def test_a_broker_without_fresh_samples_is_named_and_left_out() -> None:
    found = read({user("alice"): LIMIT}, series(50.0), series(500.0, broker=2, end_s=NOW - 200))

    assert [group.broker for group in found.groups] == ["1"]
    assert [str(note) for note in found.notes] == ["Broker 2 has no samples of the last 200 s. Its quota groups are left out."]


ADMIN = {"request_percentage": 100_000.0, "controller_mutation_rate": 2.0}


@pytest.mark.parametrize(
    ("limit", "rate", "key"),
    [
        pytest.param({}, 0.4, QuotaKey.CONTROLLER_MUTATION_RATE, id="booked under request time, and shown at the mutations"),
        pytest.param({"request_percentage": 1.0}, 0.9, QuotaKey.REQUEST_PERCENTAGE, id="the request limit is reached"),
    ],
)
def test_a_throttle_of_requests_is_that_of_the_limit_that_is_reached(
    limit: Mapping[str, float], rate: float, key: QuotaKey
) -> None:
    found = read(
        {user("alice"): {**ADMIN, **limit}},
        series(rate, kind=Kind.REQUEST),
        series(900.0, kind=Kind.REQUEST, measure=Measure.THROTTLE_TIME),
        series(1.9, kind=Kind.MUTATION),
    )

    assert {group.key for group in found.groups if group.throttling} == {key}


def test_connections_of_an_address_have_its_limit() -> None:
    series = MetricSeries(broker=1, kind=Kind.CONNECTION, user=None, client_id=None, ip="10.0.0.1")
    (group,) = read({ip(): {"connection_creation_rate": 5.0}}, (series, ((NOW, 4.0),))).groups

    assert (group.tags, group.source, group.share) == ({"ip": "10.0.0.1"}, ip(), 0.8)


def test_a_callback_class_of_the_brokers_is_refused() -> None:
    view = QuotaView(kind=ViewKind.SNAPSHOT, entities={}, caveats=Caveats(callback="their own class"))

    with pytest.raises(UsageError, match="their own class"):
        observe(view, {}, RateRequest())


@pytest.mark.parametrize(
    "traffic",
    [
        ["prometheus+http://127.0.0.1:9", "logs"],
        ["metrics+http://127.0.0.1:9", "logs"],
        ["x=metrics+http://127.0.0.1:9"],
        ["metrics+ftp://127.0.0.1"],
        [],
    ],
)
def test_a_mixture_of_sources_is_refused(traffic: list[str]) -> None:
    with pytest.raises(UsageError):
        read_rates(RateRequest(traffic=tuple(traffic)))


def test_without_any_sample_the_reason_is_stated() -> None:
    found = read({user("alice"): LIMIT})

    assert (found.at, found.groups) == (None, ())
    assert "no series of a quota group" in found.notes[0]


def test_a_quota_group_has_one_row_with_its_nearest_broker_and_all_with_details() -> None:
    def load(name: str, rate: float, limit: float, broker: str = "1") -> GroupLoad:
        key = QuotaKey.PRODUCER_BYTE_RATE
        return GroupLoad(broker=broker, key=key, tags={"user": name}, rate=rate, limit=limit, source=user(name))

    groups = (load("a", 19.0, 20.0, broker="2"), load("b", 9.0, 10.0), load("a", 15.0, 20.0), load("a", 1.0, 20.0, broker="3"))
    headroom = Headroom(cluster=ClusterIdentity(name="prod-eu"), at=NOON, groups=groups)
    loads = nearest_first((headroom, group) for group in groups)
    rows = plain(headroom_lines([headroom], loads)).splitlines()[2:]
    assert ["produce 2 (+2)" in rows[0], "user=a" in rows[0], "produce 1  " in rows[1]] == [True] * 3
    assert len(rows) == 2
    assert plain(headroom_lines([headroom], loads, top=1)).splitlines()[-1] == "1 more quota group not shown."
