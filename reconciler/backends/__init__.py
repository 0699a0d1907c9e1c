"""Reads and writes quotas: brokers, ZooKeeper, snapshot files. No type of a client library leaves this package."""

from __future__ import annotations

from typing import TYPE_CHECKING

from reconciler.faces import lazy_face

if TYPE_CHECKING:
    from reconciler.backends.broker.cluster import BrokerCluster
    from reconciler.backends.broker.settings import (
        CLIENT_ID,
        ClientProperties,
        ConnectionSettings,
        LoginKind,
        Security,
        parse_client_properties,
        parse_servers,
        principal_name,
    )
    from reconciler.backends.security.logins import BearerTokens, BrokerLogin, SaslExchange
    from reconciler.backends.security.properties_file import JaasLine, JavaProperties, file_content
    from reconciler.backends.security.tls import Tls, read_tls, tls_context
    from reconciler.backends.snapshot import SnapshotReader
    from reconciler.backends.zookeeper.cluster import ZooKeeperCluster
    from reconciler.backends.zookeeper.settings import (
        ZooKeeperSecurity,
        ZooKeeperSettings,
        parse_connection,
        parse_zookeeper_properties,
    )

__getattr__ = lazy_face(__name__)
