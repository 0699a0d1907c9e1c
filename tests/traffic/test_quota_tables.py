"""What brokers remember of quotas that are gone, and what is said of it."""

from __future__ import annotations

import pytest

from reconciler.errors import UsageError
from reconciler.model import BucketName
from reconciler.model.cluster import ClusterSpec
from reconciler.model.entity import Entity
from reconciler.traffic.judging.grouping import BrokerRule, Series, group_series, quota_tables
from reconciler.traffic.kernels.sampled_rate import Era, Window
from reconciler.traffic.kinds import Kind
from reconciler.workflows.broker_model import broker_model
from tests.builders import cluster_spec

PRODUCE = "producer_byte_rate"
ALICE, APP = Entity.of({"user": "alice"}), Entity.of({"client-id": "app"})
CLIENTS = [
    Series(broker=1, kind=Kind.PRODUCE, user=user, client_id="app", requests=1, amount=1, key=number)
    for number, user in enumerate(("alice", "bob", "carol"))
]


@pytest.mark.parametrize("remembers", [True, False])
def test_who_is_unlimited_moves_where_kinds_are_remembered_and_nobody_else(remembers: bool) -> None:
    before, after = {ALICE: {PRODUCE: 5.0}, APP: {PRODUCE: 7.0}}, {ALICE: {PRODUCE: 5.0}}
    found = group_series(CLIENTS, *quota_tables(before, after, BrokerRule(remembers_kinds=remembers), {1}, tuple(Kind)))
    limited = [(t.bucket, t.after.value) for t in found.targets if t.after.value is not None]
    unlimited = [t.bucket for t in found.targets if t.after.value is None]
    assert limited == [(BucketName(user="alice", client_id=""), 5.0)]
    # A broker that still looks for client quotas finds none, and falls back to the client id's bucket.
    shared, own = [BucketName(user="", client_id="app")], [BucketName(user=user, client_id="") for user in ("bob", "carol")]
    assert unlimited == (shared if remembers else own)


@pytest.mark.parametrize(
    ("version", "remembers", "era"),
    [
        ("3.7.2", True, Era.DROPPING), ("3.9.2", True, Era.OVERLAPPING), ("4.1.0", True, Era.OVERLAPPING),
        ("4.2", False, Era.OVERLAPPING), ("4.3.1", False, Era.OVERLAPPING), (None, None, Era.OVERLAPPING),
    ],
)  # fmt: skip
def test_the_version_decides(version: str | None, remembers: bool | None, era: Era) -> None:
    model = broker_model(ClusterSpec(), version=version)
    assert (model.rule.remembers_kinds, model.window) == (remembers, Window(era=era))
    for quotas, matters in (({}, True), ({APP: {PRODUCE: 5.0}}, False)):
        grouping = group_series(CLIENTS, *quota_tables(None, quotas, model.rule, {1}, tuple(Kind)))
        said = " ".join(model.rule.assumptions(is_unlimited=any(target.after.value is None for target in grouping.targets)))
        assert ("removed since they started" in said) == (matters and remembers is not False)


@pytest.mark.parametrize(
    ("version", "era"), [("3.7.2", "3.7"), ("3.8", "3.8"), ("4.3.1", "3.8"), ("3.10.0", "3.8"), (None, "3.8")]
)
def test_releases_from_3_8_on_keep_samples_until_their_last_event_is_old(version: str | None, era: str) -> None:
    assert broker_model(ClusterSpec(), version=version).window.era.value.startswith(era)


def test_the_manifest_goes_before_the_defaults() -> None:
    spec = cluster_spec(settings={"quota.window.num": 31, "controller.quota.window.size.seconds": 3})
    model = broker_model(spec, version="3.6")
    assert model.window == Window(samples=31, sample_ms=1000, era=Era.DROPPING)
    assert (model.controller_window.samples, model.controller_window.sample_ms) == (11, 3000)
    assert model.settings_from == "the Cluster manifest"
    spec = cluster_spec(settings={"quota.window.num": 100_000, "quota.window.size.seconds": 100_000})
    with pytest.raises(UsageError, match=r"quota.window.num times quota.window.size.seconds is 10000000000 s"):
        broker_model(spec, version=None)
