"""A report of clusters: every side of an entity, what could not be read, and what is in doubt."""

from __future__ import annotations

from dataclasses import replace

from reconciler.features.insight.report import ClusterOverview, EntityOverview, overview_of
from reconciler.model.cluster import CallbackClass
from reconciler.model.drift import DriftClass
from reconciler.resolution.reserved_users import GROUP_CALLBACK
from tests.builders import cluster_spec, current, declared, user
from tests.fakes import FakeCluster, WithCallback
from tests.support.report_world import intent


def by_name(cluster: ClusterOverview) -> dict[str, EntityOverview]:
    return {str(one.entity): one for one in cluster.entities}


def test_of_some_manifests_alone_the_rest_of_the_cluster_is_not_compared() -> None:
    whole = intent("c", declared(user("a"), producer_byte_rate=1.0))
    part = replace(whole, desired=replace(whole.desired, complete=False))
    live = {user("a"): {"producer_byte_rate": 1.0}, user("b"): {"producer_byte_rate": 2.0}}
    found = overview_of(part, current(live), source=FakeCluster(live))
    assert {name: one.drift for name, one in by_name(found).items()} == {"user=a": DriftClass.IN_SYNC, "user=b": None}
    assert not found.complete


def test_quotas_that_brokers_resolve_in_their_own_way_are_in_doubt() -> None:
    found = overview_of(intent("c"), current({}), source=WithCallback("com.example.Quotas"))
    assert found.callback is not None
    assert "com.example.Quotas" in found.callback
    assert overview_of(intent("c"), current({}), source=FakeCluster()).callback is None


def test_limits_of_clients_are_in_doubt_where_the_brokers_have_the_plugin_of_groups() -> None:
    wanted = intent("c")
    written = replace(wanted, spec=cluster_spec(name="c", callback=CallbackClass(name=GROUP_CALLBACK)))
    assert "this page does not resolve groups" in (overview_of(written, current({}), source=FakeCluster()).callback or "")
