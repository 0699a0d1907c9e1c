"""Connect to the cluster that a Cluster document or the command line names."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from reconciler.errors import UnsupportedClusterError, UsageError, WrongClusterError
from reconciler.model.cluster import ClusterSpec
from reconciler.model.state import ClusterIdentity
from reconciler.ports import QuotaCluster, QuotaReader

_HOW: Final = (
    "give --bootstrap-server HOST:PORT (and --command-config client.properties where the cluster wants TLS or a login), "
    "or a Cluster document with spec.connection.bootstrapServers"
)


def connect(spec: ClusterSpec, *, bootstrap_server: str | None = None, command_config: str | None = None) -> QuotaCluster:
    """Connect; what the command line says replaces the document's whole connection.

    Raises ``UsageError`` when neither says where the cluster is, ``FileAccessError`` or ``UsageError`` for a properties file that
    cannot be used, and ``BackendError`` when nobody answers.
    """
    servers, properties = _chosen(spec, bootstrap_server, command_config)
    # Imported here, so that commands without a cluster do not pay for the client library.
    from reconciler.backends.broker.cluster import BrokerCluster
    from reconciler.backends.broker.properties import read_client_properties
    from reconciler.backends.broker.settings import CLIENT_ID, ConnectionSettings, Security, parse_servers

    client = read_client_properties(properties) if properties is not None else None
    settings = ConnectionSettings(
        servers=parse_servers(servers),
        security=client.security if client else Security(),
        client_id=(client and client.client_id) or CLIENT_ID,
    )
    return BrokerCluster.open(settings, name=spec.name)


def check_cluster_id(spec: ClusterSpec, identity: ClusterIdentity) -> None:
    """Raise ``WrongClusterError`` when the document gives a cluster id and another cluster answers (or one that tells none)."""
    if spec.cluster_id is None or spec.cluster_id == identity.id:
        return
    name = spec.name or "the Cluster document"
    actual = identity.id or "unknown"
    msg = (
        f"this is not the cluster that {name} describes: it expects cluster id {spec.cluster_id}, and {actual} answers; "
        "nothing was written; check the connection, or correct clusterId"
    )
    raise WrongClusterError(msg, expected=spec.cluster_id, actual=actual)


def _chosen(spec: ClusterSpec, bootstrap_server: str | None, command_config: str | None) -> tuple[tuple[str, ...], Path | None]:
    if bootstrap_server is not None:
        return (bootstrap_server,), Path(command_config) if command_config is not None else None
    connection = spec.connection
    if connection is not None and connection.zookeeper is not None:
        raise UnsupportedClusterError(
            f"{spec.name or 'the cluster'} is reached through ZooKeeper, which this version cannot read or write yet; "
            "brokers from Kafka 2.6 on can be reached with bootstrapServers"
        )
    if connection is None or not connection.bootstrap_servers:
        raise UsageError(f"it is not said how to reach {spec.name or 'the cluster'}: {_HOW}")
    if command_config is not None:
        return connection.bootstrap_servers, Path(command_config)
    return connection.bootstrap_servers, _beside_the_document(spec, connection.properties)


def _beside_the_document(spec: ClusterSpec, properties: str | None) -> Path | None:
    if properties is None:
        return None
    return Path(spec.span.file).parent / properties if spec.span is not None else Path(properties)


def snapshot_reader(path: str) -> QuotaReader:
    """A recorded state in place of a cluster; reading it raises ``FileAccessError`` or ``ManifestError``."""
    from reconciler.backends.snapshot import SnapshotReader

    return SnapshotReader(Path(path))
