"""Connect to the cluster that a Cluster manifest or the command line names."""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Final

from reconciler.errors import BackendError, ReconcilerError, UsageError, WrongClusterError
from reconciler.logs import log_event, timed_event
from reconciler.model import (
    NOT_ASKED,
    ClusterIdentity,
    ClusterSpec,
    Connection,
    CurrentState,
    DesiredState,
    Entity,
    Finding,
    ManifestCommit,
    Severity,
    display_name,
    escaped,
)
from reconciler.policy import Judgement, ManagedAt
from reconciler.ports import CallbackInspector, QuotaCluster, QuotaReader
from reconciler.resolution import callback_notes

if TYPE_CHECKING:
    from reconciler.backends import ClientProperties, ZooKeeperSecurity
    from reconciler.workflows.intent import Intent
    from reconciler.workflows.load import LoadedManifests
    from reconciler.workflows.trusted import TrustedFiles, TrustedTree

_log: Final = logging.getLogger(__name__)
_HOW: Final = (
    "Pass --bootstrap-server HOST:PORT (and --command-config client.properties where the cluster wants TLS or a login). "
    "A cluster up to Kafka 3.9 that keeps its quotas in ZooKeeper needs --zookeeper HOST:PORT/CHROOT. "
    "Or set spec.connection in the Cluster manifest"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Access:
    """How the command line reaches a cluster; what it leaves out comes from the Cluster manifest."""

    bootstrap_server: str | None = None
    zookeeper: str | None = None
    """``host:port,host:port/chroot``, in place of brokers."""
    command_config: str | None = None
    current: str | None = None
    """A snapshot file to read in place of a cluster."""


_AS_THE_DOCUMENT_SAYS: Final = Access()


@contextlib.contextmanager
def quota_reader(spec: ClusterSpec, access: Access, *, trusted: TrustedTree | None = None) -> Iterator[QuotaReader]:
    """A reader of quotas that cannot write, closed at the end.

    Raises ``UsageError``, ``FileAccessError``, ``UntrustedError`` or ``BackendError``.
    """
    if access.current is not None:
        yield snapshot_reader(access.current, trusted=trusted.files if trusted is not None else None)
        return
    with contextlib.closing(open_cluster(spec, access, trusted=trusted)) as cluster:
        yield cluster


def open_cluster(
    spec: ClusterSpec, access: Access = _AS_THE_DOCUMENT_SAYS, *, trusted: TrustedTree | None = None
) -> QuotaCluster:
    """Connect; what the command line states replaces the document's whole connection.

    With ``trusted``, files of the work tree count as the trusted reference has them. Raises ``UsageError`` when neither states
    where the cluster is, ``FileAccessError`` or ``UsageError`` for a properties file that cannot be used, ``UntrustedError`` for
    one that the reference does not vouch for, and ``BackendError`` when no server answers.
    """
    place, path = _chosen(spec, access, trusted)
    where = [place.zookeeper] if place.zookeeper is not None else list(place.bootstrap_servers)
    kind = "brokers" if place.zookeeper is None else "zookeeper"
    properties = None if path is None else str(path)
    log_event(_log, "connecting", level=logging.INFO, cluster=spec.name, to=kind, addresses=where, properties=properties)
    # Imported here, so that commands without a cluster do not pay for the client library.
    if place.zookeeper is not None:
        from reconciler.backends import ZooKeeperCluster, ZooKeeperSecurity, ZooKeeperSettings, parse_connection

        servers, chroot = parse_connection(place.zookeeper)
        security = ZooKeeperSecurity() if path is None else _zookeeper_security(path, trusted)
        return ZooKeeperCluster.open(ZooKeeperSettings(servers=servers, chroot=chroot, security=security), name=spec.name)
    from reconciler.backends import CLIENT_ID, BrokerCluster, ConnectionSettings, Security, parse_servers

    client = _client_properties(path, trusted) if path is not None else None
    settings = ConnectionSettings(
        servers=parse_servers(place.bootstrap_servers),
        security=client.security if client else Security(),
        client_id=(client and client.client_id) or CLIENT_ID,
    )
    return BrokerCluster.open(settings, name=spec.name)


def known_principal(spec: ClusterSpec, access: Access, *, trusted: TrustedTree | None = None) -> str | None:
    """The principal that the cluster will authenticate us as, by the settings that ``open_cluster`` uses.

    ``None`` where they do not show it, and for settings that cannot be used: connecting reports those.
    """
    with contextlib.suppress(ReconcilerError):
        place, path = _chosen(spec, access, trusted)
        if path is None:
            return None
        if place.zookeeper is not None:
            return _zookeeper_security(path, trusted).principal
        from reconciler.backends import principal_name

        return principal_name(_client_properties(path, trusted).security)
    return None


def transport_security(spec: ClusterSpec, access: Access = _AS_THE_DOCUMENT_SAYS) -> str:
    """Kafka's word for how ``open_cluster`` connects (``SASL_SSL``), or ``ZooKeeper``, perhaps ``over TLS``. Nothing is asked.

    Raises ``UsageError`` or ``FileAccessError``.
    """
    place, path = _chosen(spec, access, None)
    if place.zookeeper is not None:
        is_encrypted = path is not None and _zookeeper_security(path, None).tls is not None
        return "ZooKeeper over TLS" if is_encrypted else "ZooKeeper"
    return "PLAINTEXT" if path is None else _client_properties(path, None).security.protocol


def _zookeeper_security(path: Path, trusted: TrustedTree | None) -> ZooKeeperSecurity:
    from reconciler.backends import parse_zookeeper_properties

    security = parse_zookeeper_properties(*_properties(path, trusted))
    _require_same(security.files, trusted)
    return security


def _client_properties(path: Path, trusted: TrustedTree | None) -> ClientProperties:
    from reconciler.backends import parse_client_properties

    client = parse_client_properties(*_properties(path, trusted))
    _require_same(client.security.files, trusted)
    return client


def _properties(path: Path, trusted: TrustedTree | None) -> tuple[bytes, str]:
    """The content of a properties file as far as it is trusted, and its name in messages."""
    if trusted is not None:
        return trusted.files.read(str(path))
    from reconciler.backends import file_content

    return file_content(path), str(path)


def _require_same(files: Iterable[str], trusted: TrustedTree | None) -> None:
    """Require that the files which settings name are those of the reference, if there is one."""
    if trusted is not None:
        for file in files:
            trusted.files.require_same(file)


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterTarget:
    """A cluster that a command works on by hand. Without manifests nothing is known but the connection that the caller made."""

    spec: ClusterSpec = field(default_factory=ClusterSpec)
    managed: bool = False
    """Whether manifests were read."""
    desired: DesiredState = field(default_factory=DesiredState)
    """Everything that they declare for the cluster, whichever of the files the user named."""
    loaded: LoadedManifests | None = None
    source: ManifestCommit = field(default_factory=ManifestCommit)
    trusted: TrustedTree | None = None
    paths: tuple[str, ...] = ()

    def managed_at(self, entity: Entity) -> ManagedAt | None:
        """Return the place where manifests own the entity; ``None`` when they do not."""
        if not self.managed or not self.spec.scope.contains(entity):
            return None
        declared = self.desired.entities.get(entity)
        return ManagedAt(declared=declared is not None, place=declared.source if declared else self.spec.place("scope"))


def load_target(paths: Sequence[str], *, cluster: str | None, trusted_ref: str | None = None) -> ClusterTarget:
    """The cluster of the manifests when a path or a name (or a trusted reference) is given, else a target without any.

    Raises ``ManifestError`` for manifests with errors, ``UsageError`` when it is not clear which cluster is meant, and for the
    reference ``GitError`` or ``UntrustedError``.
    """
    if not paths and cluster is None and trusted_ref is None:
        return ClusterTarget()
    # Imported here: without manifests there is no reason to wait for what reads them.
    from reconciler.workflows.git_repository import source_of
    from reconciler.workflows.load import References, chosen_cluster, load_manifests, stop_on
    from reconciler.workflows.trusted import read_references

    where = tuple(paths) or (".",)
    seen = read_references(References(trusted=trusted_ref), where)
    loaded = load_manifests(where, trust=seen.trusted)
    stop_on(loaded.findings)
    spec = chosen_cluster(loaded, cluster)
    return ClusterTarget(
        spec=spec,
        managed=True,
        desired=loaded.desired(spec),
        loaded=loaded,
        source=source_of(Path(where[0])),
        trusted=seen.trusted,
        paths=where,
    )


def read_state(spec: ClusterSpec, reader: QuotaReader) -> CurrentState:
    """All quotas of the cluster that ``spec`` means. Raises ``WrongClusterError`` for another cluster, ``BackendError``."""
    with timed_event(_log, "quotas read", level=logging.INFO, cluster=spec.name) as data:
        current = reader.current_state()
        data["cluster_id"] = current.cluster.id
        data["origin"] = current.observed.origin.value
        data["entities"] = len(current.entities)
    if spec.cluster_id is not None:
        check_cluster_id(spec, current.cluster)
    return with_facts(current, reader)


def read_for(intent: Intent, reader: QuotaReader) -> CurrentState:
    """The quotas that an intent is compared with, and for totals also which brokers lead partitions. Raises ``BackendError``."""
    current = read_state(intent.spec, reader)
    if not intent.desired.with_units:
        return current
    from reconciler.workflows.units import with_leaders

    return with_leaders(current, reader)


def check_cluster_id(spec: ClusterSpec, identity: ClusterIdentity) -> None:
    """Raise ``WrongClusterError`` when the document gives a cluster id and another cluster answers (or one without an id)."""
    if spec.cluster_id is None or spec.cluster_id == identity.id:
        return
    name = display_name(spec.name) if spec.name else "the Cluster manifest"
    expected, actual = escaped(spec.cluster_id), escaped(identity.id or "unknown")
    msg = (
        f"this is not the cluster that {name} describes: it expects cluster id {expected}, and {actual} answers. "
        "Nothing was written. Check the connection, or correct clusterId"
    )
    raise WrongClusterError(msg)


def _chosen(spec: ClusterSpec, access: Access, trusted: TrustedTree | None) -> tuple[Connection, Path | None]:
    """Brokers or a ZooKeeper, and the properties file."""
    if access.bootstrap_server is not None and access.zookeeper is not None:
        raise UsageError("--bootstrap-server and --zookeeper exclude each other")
    file = Path(access.command_config) if access.command_config is not None else None
    if access.bootstrap_server is not None:
        return Connection(bootstrap_servers=(access.bootstrap_server,)), file
    if access.zookeeper is not None:
        return Connection(zookeeper=access.zookeeper), file
    connection = spec.connection
    if connection is None or not (connection.bootstrap_servers or connection.zookeeper):
        raise UsageError(f"No connection is configured for {display_name(spec.name) if spec.name else 'the cluster'}. {_HOW}")
    if file is None and connection.properties is not None:
        file = _beside_the_document(spec, connection.properties, trusted)
    return connection, file


def _beside_the_document(spec: ClusterSpec, properties: str, trusted: TrustedTree | None) -> Path:
    if spec.span is None:
        return Path(properties)
    document = spec.span.file if trusted is None else trusted.path_of(spec.span.file)
    return Path(document).parent / properties


def snapshot_reader(path: str, *, trusted: TrustedFiles | None = None) -> QuotaReader:
    """A recorded state in place of a cluster, with ``trusted`` as the reference has it.

    Raises ``UntrustedError`` for a file that only the work tree's commit has; reading raises ``FileAccessError`` or
    ``ManifestError``.
    """
    from reconciler.backends import SnapshotReader

    if trusted is None:
        return SnapshotReader(Path(path))
    content, source = trusted.read(path)
    return SnapshotReader(Path(source), content=content)


QUOTA_CALLBACK: Final = "quota-callback"


def with_facts(current: CurrentState, source: object) -> CurrentState:
    """The state with the brokers' callback class, if ``source`` can report it; asked once for a state."""
    if current.callback_unknown != NOT_ASKED:
        return current
    if current.cluster.quota_callback is not None:
        return replace(current, callback_unknown=None)
    if not isinstance(source, CallbackInspector):
        return current
    try:
        callback = source.quota_callback()
    except BackendError as error:
        return replace(current, callback_unknown=str(error))
    return replace(current, cluster=current.cluster.with_callback(callback), callback_unknown=None)


def judge_callback(spec: ClusterSpec, cluster: ClusterIdentity) -> Judgement:
    """Brokers with a class of their own: a note, or a warning where the Cluster manifest does not state that class."""
    messages = tuple(callback_notes(cluster))
    if spec.brokers.callback is not None:
        return Judgement(notes=messages)
    return Judgement(
        findings=tuple(
            Finding(id=QUOTA_CALLBACK, severity=Severity.WARNING, message=message, span=spec.span) for message in messages
        )
    )
