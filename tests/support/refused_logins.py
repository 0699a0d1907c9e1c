"""Logins that stop working while a connection lives."""

from __future__ import annotations

from reconciler.backends.broker.cluster import BrokerCluster
from reconciler.errors import AuthenticationError
from reconciler.ports import EntityFilter
from tests.support.polling import wait_until


def first_refusal(cluster: BrokerCluster) -> str:
    """The text of the first ``AuthenticationError`` of a cluster that is described again and again."""

    def refused() -> str:
        try:
            cluster.describe(EntityFilter())
        except AuthenticationError as error:
            return str(error)
        return ""

    return wait_until(refused)
