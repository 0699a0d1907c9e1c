"""An address that leads to another cluster later: that one gets no request about quotas."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest

from reconciler.backends.broker.cluster import BrokerCluster
from reconciler.errors import OtherClusterError, OutcomeUnknownError
from reconciler.ports import EntityFilter
from tests.integration.test_broker_backend_bad_servers import (
    ALTER,
    API_VERSIONS,
    DESCRIBE,
    METADATA,
    A,
    altered,
    connect,
    described,
    scripted,
    set_one,
)
from tests.support.bad_servers import ScriptedBroker, SwitchingProxy, serving


@contextmanager
def flipped(cluster_id: str | None = "another") -> Iterator[tuple[BrokerCluster, ScriptedBroker]]:
    """A client of one cluster whose address leads to another one since, and the broker of that one."""
    described_none, altered_a = described(), altered((0, None, A))
    with (
        scripted(describe=described_none, alter=altered_a) as (one, _),
        scripted(cluster_id=cluster_id, describe=described_none, alter=altered_a) as (two, broker),
    ):
        proxy = SwitchingProxy(one.brokers()[0].port)
        with serving(proxy) as port:
            cluster = connect(port, seconds=2.0)
            try:
                assert cluster.describe(EntityFilter()) == {}
                proxy.lead_to(two.brokers()[0].port)
                broker.asked.clear()
                yield cluster, broker
            finally:
                cluster.close()


ON_THE_OTHER_CLUSTER: dict[str, Callable[[BrokerCluster], object]] = {
    "write": lambda cluster: cluster.alter([set_one()], validate_only=False),
    "validation": lambda cluster: cluster.alter([set_one()], validate_only=True),
    "read": lambda cluster: cluster.current_state(),
    "read of one entity": lambda cluster: cluster.describe(EntityFilter()),
    "list of brokers": lambda cluster: cluster.brokers(),
}


@pytest.mark.parametrize("request_of", ON_THE_OTHER_CLUSTER)
@pytest.mark.parametrize("cluster_id", ["another", None])
def test_an_address_that_leads_to_another_cluster_later_gets_no_request_about_quotas(request_of, cluster_id):
    with flipped(cluster_id) as (cluster, broker):
        with contextlib.suppress(OutcomeUnknownError, OtherClusterError):  # unknown: sent while the connection breaks
            ON_THE_OTHER_CLUSTER[request_of](cluster)
        with pytest.raises(OtherClusterError, match=rf"cluster {cluster_id or 'unknown'}, .* cluster scripted\."):
            ON_THE_OTHER_CLUSTER[request_of](cluster)
        assert set(broker.asked) == {API_VERSIONS, METADATA}


def test_a_write_whose_answer_is_lost_is_not_sent_again_to_another_cluster():
    def answer(_version: int) -> None:
        proxy.lead_to(two.brokers()[0].port)

    with scripted(alter=answer) as (one, first), scripted(cluster_id="another", alter=altered((0, None, A))) as (two, second):
        proxy = SwitchingProxy(one.brokers()[0].port)
        with serving(proxy) as port:
            cluster = connect(port, seconds=2.0)
            with pytest.raises(OutcomeUnknownError):
                cluster.alter([set_one()], validate_only=False)
            with pytest.raises(OtherClusterError):
                cluster.alter([set_one()], validate_only=False)
            cluster.close()
    assert (first.asked.count(ALTER), second.asked.count(ALTER)) == (1, 0)


def test_a_broker_that_belongs_to_another_cluster_is_not_asked_for_what_was_written():
    with scripted(cluster_id="another", describe=described()) as (other, second):
        with scripted(other.brokers()[0].port, describe=described()) as (cluster, _):
            answers = cluster.describe_on(EntityFilter(), [7, 8])
        assert answers[7] == {}
        assert isinstance(answers[8], OtherClusterError)
        assert DESCRIBE not in second.asked
