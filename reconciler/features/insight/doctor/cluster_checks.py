"""Checks of one cluster: reach, login and rights. Rights are tried with requests that write nothing."""

from __future__ import annotations

import datetime
from dataclasses import dataclass
from typing import Final

from reconciler.errors import (
    AuthenticationError,
    AuthorizationError,
    BackendError,
    MissingDependencyError,
    ReconcilerError,
    TlsFailedError,
    UnreachableError,
    WrongClusterError,
)
from reconciler.features.insight.doctor.certificates import check_certificates
from reconciler.features.insight.doctor.checks import CheckAnswer, failed, passed, skipped, warned
from reconciler.model import Alteration, Certificate, ClusterSpec, Entity, display_name, escaped
from reconciler.ports import (
    CallbackInspector,
    CertificateInspector,
    EntityFilter,
    EveryBroker,
    FilterComponent,
    FilterKind,
    QuotaCluster,
)
from reconciler.resolution import GROUP_CALLBACK
from reconciler.text import count_of, list_some
from reconciler.workflows import (
    Access,
    LoadedManifests,
    check_cluster_id,
    local_certificates,
    open_cluster,
    transport_security,
)

_UNUSED_USER: Final = "kafka-quotas-doctor"
"""A user whose quotas are asked for and validated, never written."""
_ABOUT_NOBODY: Final = EntityFilter(
    components=(FilterComponent(entity_type="user", kind=FilterKind.EXACT, name=_UNUSED_USER),), strict=True
)
_KEY: Final = "producer_byte_rate"
_AUTHORIZATION_FAILED: Final = 31
"""Kafka's error code of an entity that may not be changed."""
_NO_CLUSTER: Final = "Pass --bootstrap-server or --zookeeper, or set spec.connection in a Cluster manifest"
_WRONG_SETTINGS: Final = "Correct the properties file (--command-config or spec.connection.properties)"
_PLAIN: Final = "The connection is not encrypted."


@dataclass(frozen=True, slots=True, kw_only=True)
class Examined:
    """What to examine. ``paths``: manifests. ``cluster``: the name of one of their Cluster manifests."""

    paths: tuple[str, ...]
    cluster: str | None
    access: Access


class CheckSubject:
    """What is examined. ``protocol`` is empty while the settings cannot be used, ``refusal`` is why the cluster is not open."""

    def __init__(self, request: Examined, spec: ClusterSpec, loaded: LoadedManifests | ReconcilerError) -> None:
        self.request, self.access, self.spec, self.loaded = request, request.access, spec, loaded
        self.protocol = ""
        self.opened: QuotaCluster | None = None
        self.refusal: ReconcilerError | None = None
        self.certificates: list[Certificate] = []

    @property
    def cluster(self) -> QuotaCluster:
        """The open cluster, for checks that need ``login``."""
        assert self.opened is not None
        return self.opened

    @property
    def is_encrypted(self) -> bool:
        """Whether the connection is meant to be."""
        return self.protocol.endswith(("SSL", "TLS"))

    def close(self) -> None:
        """Give the connection back."""
        if self.opened is not None:
            self.opened.close()


def settings(subject: CheckSubject) -> CheckAnswer:
    """The connection settings can be read, and so the cluster is opened."""
    known, access = subject.spec.connection, subject.access
    configured = known is not None and bool(known.bootstrap_servers or known.zookeeper)
    if not configured and access.bootstrap_server is None and access.zookeeper is None:
        return skipped("No cluster is configured.", _NO_CLUSTER)
    try:
        protocol = transport_security(subject.spec, subject.access)
        subject.certificates += local_certificates(subject.spec, subject.access)
    except ReconcilerError as error:
        return failed(str(error), _WRONG_SETTINGS)
    subject.protocol = protocol
    try:
        subject.opened = open_cluster(subject.spec, subject.access)
    except ReconcilerError as error:
        subject.refusal = error
    return passed(f"The connection settings can be used ({protocol}).")


def connection(subject: CheckSubject) -> CheckAnswer:
    """A server answers, whatever it answers."""
    if subject.refusal is not None and not isinstance(
        subject.refusal, TlsFailedError | AuthenticationError | MissingDependencyError
    ):
        raise subject.refusal
    return passed("A server answers.")


def tls(subject: CheckSubject) -> CheckAnswer:
    """The connection is encrypted, and the server trusted."""
    if isinstance(subject.refusal, TlsFailedError):
        raise subject.refusal
    if subject.is_encrypted:
        return passed("The connection is encrypted, and the server's certificate is trusted.")
    if subject.protocol == "SASL_PLAINTEXT":
        remedy = "Use a listener with TLS: security.protocol=SASL_SSL"
        return warned("The login and all quotas go over the network unencrypted.", remedy)
    return skipped(_PLAIN)


def login(subject: CheckSubject) -> CheckAnswer:
    """The server accepts the user."""
    if subject.refusal is not None:
        raise subject.refusal
    if subject.protocol.startswith("ZooKeeper"):
        return passed(f"The server opened a session ({subject.protocol}).")
    if subject.protocol.startswith("SASL") or subject.protocol == "SSL":
        return passed(f"The server accepts us ({subject.protocol}).")
    return warned("The connection has no login.", "Use a login where others reach the listener")


def identity(subject: CheckSubject) -> CheckAnswer:
    """The cluster is the one that the manifest means."""
    cluster, spec = subject.cluster, subject.spec
    known = cluster.identity()
    version = f"Kafka {known.kafka_version}" if known.kafka_version else "Kafka of a version that ZooKeeper does not know"
    # ZooKeeper can be read without any broker, and its session counts none.
    brokers = f", {count_of(len(cluster.brokers()), 'broker')}" if isinstance(cluster, EveryBroker) else ""
    try:
        check_cluster_id(spec, known)
    except WrongClusterError as error:
        return failed(str(error), "Check the address, or correct clusterId in the Cluster manifest")
    message = f"{version}{brokers}, cluster id {escaped(known.id or 'unknown')}."
    if spec.name is not None and spec.cluster_id is None:
        remedy = f"Write clusterId: {escaped(known.id or '')} into the Cluster manifest, so that no other one is changed"
        return warned(f"{message} The Cluster manifest does not state an id.", remedy)
    return passed(message)


def brokers(subject: CheckSubject) -> CheckAnswer:
    """Each at the address that it advertises: the first connection may have gone to another."""
    cluster = subject.cluster
    if not isinstance(cluster, EveryBroker):
        return skipped("Quotas are read from ZooKeeper, without the brokers.")
    nodes = {node.id: f"broker {node.id} at {node.host}:{node.port}" for node in cluster.brokers()}
    answers = cluster.describe_on(_ABOUT_NOBODY, tuple(nodes))
    silent = [
        f"{escaped(nodes[broker])}: {answer}"
        for broker, answer in sorted(answers.items())
        if isinstance(answer, UnreachableError | TlsFailedError | AuthenticationError)
    ]
    if silent:
        message = f"{len(silent)} of {count_of(len(nodes), 'broker')} cannot be used. {list_some(silent, 3, between='; ')}."
        return failed(message, "Check advertised.listeners of these brokers, firewalls, and their certificates")
    return passed(f"{count_of(len(nodes), 'broker')} can be reached at the advertised addresses.")


def certificates(subject: CheckSubject) -> CheckAnswer:
    """None that the connection needs has expired, or will soon."""
    if not subject.is_encrypted:
        return skipped(_PLAIN)
    opened: object = subject.opened
    if isinstance(opened, CertificateInspector):
        subject.certificates += opened.server_certificates()
    return check_certificates(subject.certificates, datetime.datetime.now(datetime.UTC))


def describe(subject: CheckSubject) -> CheckAnswer:
    """The right to read."""
    cluster = subject.cluster
    if isinstance(cluster, EveryBroker):
        cluster.describe(_ABOUT_NOBODY)
    else:
        # ZooKeeper has rights for each node: whether all can be read shows only when they are.
        cluster.current_state()
    return passed("We may read client quotas (plan, drift, export, describe, resolve).")


def alter(subject: CheckSubject) -> CheckAnswer:
    """The right to write. Validating needs it, and writes nothing."""
    cluster = subject.cluster
    wanted = Alteration(entity=Entity.of({"user": _UNUSED_USER}), ops={_KEY: 1048576.0})
    read_only = "Nothing, for a login that only plans. To apply, grant the right that the message names"
    try:
        (result,) = cluster.alter([wanted], validate_only=True)
    except AuthorizationError as error:
        return warned(f"Read-only: {error}", read_only)
    if result.error_code == _AUTHORIZATION_FAILED:
        return warned(f"Read-only: {escaped(result.error or 'the cluster allows no change')}", read_only)
    if result.error_code:
        words = f": {escaped(result.error)}" if result.error else ""
        return failed(f"The cluster refuses a change with error {result.error_code}{words}", "Look at the brokers' logs")
    return passed("We may change client quotas (apply, alter, revert).")


def callback(subject: CheckSubject) -> CheckAnswer:
    """Kafka's own rules apply, or the manifest describes others."""
    cluster = subject.cluster
    if not isinstance(cluster, CallbackInspector):
        return skipped("ZooKeeper does not know the brokers' settings.")
    try:
        name = cluster.quota_callback()
    except BackendError as error:
        return skipped(f"The brokers do not show their settings: {error}")
    written = subject.spec.brokers.callback.name if subject.spec.brokers.callback is not None else None
    if name is None or name in (GROUP_CALLBACK, written):
        shown = "no plugin for quotas (client.quota.callback.class)" if name is None else f"the plugin {display_name(name)}"
        return passed(f"Brokers have {shown}.")
    message = f"Brokers have the plugin {display_name(name)}, so Kafka's own rules of precedence may not apply."
    return warned(message, "Describe it with quotaCallback in the Cluster manifest")
