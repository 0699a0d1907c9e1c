"""Checks of one cluster: reach, login and rights. Rights are tried with requests that write nothing."""

from __future__ import annotations

import datetime
from collections.abc import Callable
from typing import Final

from reconciler.errors import (
    AuthenticationError,
    AuthorizationError,
    BackendError,
    MissingDependencyError,
    ReconcilerError,
    TlsFailedError,
    UnreachableError,
    UnsupportedClusterError,
    WrongClusterError,
)
from reconciler.features.insight.doctor.certificates import check_certificates
from reconciler.features.insight.doctor.checks import CheckStatus, DoctorCheck
from reconciler.model import Alteration, Certificate, ClusterIdentity, ClusterSpec, Entity, display_name, escaped
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
from reconciler.workflows import Access, check_cluster_id, local_certificates, open_cluster, transport_security

_IDS: Final = ("settings", "connection", "tls", "login", "identity", "brokers", "certificates", "describe", "alter", "callback")
_UNUSED_USER: Final = "kafka-quotas-doctor"
"""A user whose quotas are asked for and validated, never written."""
_ABOUT_NOBODY: Final = EntityFilter(
    components=(FilterComponent(entity_type="user", kind=FilterKind.EXACT, name=_UNUSED_USER),), strict=True
)
_KEY: Final = "producer_byte_rate"
_AUTHORIZATION_FAILED: Final = 31
"""Kafka's error code of an entity that may not be changed."""


_REMEDIES: Final = (
    (AuthorizationError, "Let an administrator grant the right that the message names"),
    (TlsFailedError, "Check the trust store, the names in the server's certificate, and the client certificate"),
    (AuthenticationError, "Check the login in the properties file, and that the user exists"),
    (MissingDependencyError, "Install what the message names"),
    (UnreachableError, "Check the address, name resolution and firewalls between this machine and it"),
    (UnsupportedClusterError, "Check which program and which version listens at this address"),
)
"""What to do after each class of error, the narrower class first."""
_OF_OTHERS: Final = "Look at the logs of the brokers, or of ZooKeeper"


def _is_encrypted(protocol: str) -> bool:
    return protocol.endswith(("SSL", "TLS"))


def skip_cluster_checks() -> list[DoctorCheck]:
    """What remains without an address."""
    remedy = "Pass --bootstrap-server or --zookeeper, or set spec.connection in a Cluster manifest"
    first, *rest = _IDS
    return [
        DoctorCheck(id=first, status=CheckStatus.SKIP, message="No cluster is configured.", remedy=remedy),
        *(DoctorCheck(id=name, status=CheckStatus.SKIP, message="No cluster is configured.") for name in rest),
    ]


class ClusterChecks:
    """Makes the checks in an order in which each needs the ones before it."""

    def __init__(self, spec: ClusterSpec, access: Access) -> None:
        self._spec = spec
        self._access = access
        self._checks: list[DoctorCheck] = []
        self._certificates: list[Certificate] = []

    def run(self) -> list[DoctorCheck]:
        """All of them; those after one that makes them impossible are skipped."""
        try:
            protocol = transport_security(self._spec, self._access)
            self._certificates += local_certificates(self._spec, self._access)
        except ReconcilerError as error:
            self._fail("settings", str(error), "Correct the properties file (--command-config or spec.connection.properties)")
            return self._skip_rest("The connection settings cannot be used.")
        self._pass("settings", f"The connection settings can be used ({protocol}).")
        try:
            cluster = open_cluster(self._spec, self._access)
        except ReconcilerError as error:
            self._explain_refusal(error, protocol)
            self._add_certificates(protocol)
            return self._skip_rest("The cluster is not connected.")
        try:
            self._examine(cluster, protocol)
        finally:
            cluster.close()
        return self._checks

    def _explain_refusal(self, error: ReconcilerError, protocol: str) -> None:
        if isinstance(error, TlsFailedError):
            self._pass("connection", "A server answers.")
            self._fail_by("tls", error)
        elif isinstance(error, AuthenticationError | MissingDependencyError):
            self._pass("connection", "A server answers.")
            self._add_tls(protocol)
            self._fail_by("login", error)
        else:
            self._fail_by("connection", error)

    def _examine(self, cluster: QuotaCluster, protocol: str) -> None:
        self._pass("connection", "A server answers.")
        self._add_tls(protocol)
        if protocol.startswith("ZooKeeper"):
            self._pass("login", f"The server opened a session ({protocol}).")
        elif protocol.startswith("SASL") or protocol == "SSL":
            self._pass("login", f"The server accepts us ({protocol}).")
        else:
            self._add("login", CheckStatus.WARN, "The connection has no login.", "Use a login where others reach the listener")
        self._guard("identity", lambda: self._identity(cluster))
        self._brokers(cluster)
        if isinstance(cluster, CertificateInspector):
            self._certificates += cluster.server_certificates()
        self._add_certificates(protocol)
        may_read = self._guard("describe", lambda: self._describe(cluster))
        if may_read:
            self._guard("alter", lambda: self._alter(cluster))
        else:
            self._add("alter", CheckStatus.SKIP, "Without reading quotas, changes are not tried.")
        self._callback(cluster)

    def _identity(self, cluster: QuotaCluster) -> None:
        identity: ClusterIdentity = cluster.identity()
        version = (
            f"Kafka {identity.kafka_version}" if identity.kafka_version else "Kafka of a version that ZooKeeper does not know"
        )
        # ZooKeeper can be read without any broker, and its session counts none.
        brokers = f", {count_of(len(cluster.brokers()), 'broker')}" if isinstance(cluster, EveryBroker) else ""
        try:
            check_cluster_id(self._spec, identity)
        except WrongClusterError as error:
            self._fail("identity", str(error), "Check the address, or correct clusterId in the Cluster manifest")
            return
        message = f"{version}{brokers}, cluster id {escaped(identity.id or 'unknown')}."
        if self._spec.name is not None and self._spec.cluster_id is None:
            remedy = f"Write clusterId: {escaped(identity.id or '')} into the Cluster manifest, so that no other one is changed"
            self._add("identity", CheckStatus.WARN, f"{message} The Cluster manifest does not state an id.", remedy)
            return
        self._pass("identity", message)

    def _brokers(self, cluster: QuotaCluster) -> None:
        """Each at the address that it advertises: the first connection may have gone to another."""
        if not isinstance(cluster, EveryBroker):
            self._add("brokers", CheckStatus.SKIP, "Quotas are read from ZooKeeper, without the brokers.")
            return
        try:
            nodes = {node.id: f"broker {node.id} at {node.host}:{node.port}" for node in cluster.brokers()}
            answers = cluster.describe_on(_ABOUT_NOBODY, tuple(nodes))
        except ReconcilerError as error:
            self._fail_by("brokers", error)
            return
        silent = [
            f"{escaped(nodes[broker])}: {answer}"
            for broker, answer in sorted(answers.items())
            if isinstance(answer, UnreachableError | TlsFailedError | AuthenticationError)
        ]
        if silent:
            message = f"{len(silent)} of {count_of(len(nodes), 'broker')} cannot be used. {list_some(silent, 3, between='; ')}."
            remedy = "Check advertised.listeners of these brokers, firewalls, and their certificates"
            self._fail("brokers", message, remedy)
            return
        self._pass("brokers", f"{count_of(len(nodes), 'broker')} can be reached at the advertised addresses.")

    def _add_certificates(self, protocol: str) -> None:
        if _is_encrypted(protocol):
            self._checks.append(check_certificates(self._certificates, datetime.datetime.now(datetime.UTC)))
        else:
            self._add("certificates", CheckStatus.SKIP, "The connection is not encrypted.")

    def _describe(self, cluster: QuotaCluster) -> None:
        if isinstance(cluster, EveryBroker):
            cluster.describe(_ABOUT_NOBODY)
        else:
            # ZooKeeper has rights for each node: whether all can be read shows only when they are.
            cluster.current_state()
        self._pass("describe", "We may read client quotas (plan, drift, export, describe, resolve).")

    def _alter(self, cluster: QuotaCluster) -> None:
        """Validating needs the right to write, and writes nothing."""
        wanted = Alteration(entity=Entity.of({"user": _UNUSED_USER}), ops={_KEY: 1048576.0})
        try:
            (result,) = cluster.alter([wanted], validate_only=True)
        except AuthorizationError as error:
            self._add_read_only(str(error))
            return
        if result.error_code == _AUTHORIZATION_FAILED:
            self._add_read_only(escaped(result.error or "the cluster allows no change"))
            return
        if result.error_code:
            words = f": {escaped(result.error)}" if result.error else ""
            self._fail(
                "alter", f"The cluster refuses a change with error {result.error_code}{words}", "Look at the brokers' logs"
            )
            return
        self._pass("alter", "We may change client quotas (apply, alter, revert).")

    def _add_read_only(self, reason: str) -> None:
        remedy = "Nothing, for a login that only plans. To apply, grant the right that the message names"
        self._add("alter", CheckStatus.WARN, f"Read-only: {reason}", remedy)

    def _callback(self, cluster: QuotaCluster) -> None:
        if not isinstance(cluster, CallbackInspector):
            self._add("callback", CheckStatus.SKIP, "ZooKeeper does not know the brokers' settings.")
            return
        try:
            name = cluster.quota_callback()
        except BackendError as error:
            self._add("callback", CheckStatus.SKIP, f"The brokers do not show their settings: {error}")
            return
        written = self._spec.brokers.callback.name if self._spec.brokers.callback is not None else None
        if name is None or name in (GROUP_CALLBACK, written):
            shown = "no plugin for quotas (client.quota.callback.class)" if name is None else f"the plugin {display_name(name)}"
            self._pass("callback", f"Brokers have {shown}.")
            return
        message = f"Brokers have the plugin {display_name(name)}, so Kafka's own rules of precedence may not apply."
        self._add("callback", CheckStatus.WARN, message, "Describe it with quotaCallback in the Cluster manifest")

    def _guard(self, name: str, check: Callable[[], None]) -> bool:
        """Make a check whose errors are its answer; whether it had none."""
        try:
            check()
        except ReconcilerError as error:
            self._fail_by(name, error)
            return False
        return True

    def _add_tls(self, protocol: str) -> None:
        if _is_encrypted(protocol):
            self._pass("tls", "The connection is encrypted, and the server's certificate is trusted.")
        elif protocol == "SASL_PLAINTEXT":
            remedy = "Use a listener with TLS: security.protocol=SASL_SSL"
            self._add("tls", CheckStatus.WARN, "The login and all quotas go over the network unencrypted.", remedy)
        else:
            self._add("tls", CheckStatus.SKIP, "The connection is not encrypted.")

    def _skip_rest(self, reason: str) -> list[DoctorCheck]:
        made = {check.id for check in self._checks}
        return [
            *self._checks,
            *(DoctorCheck(id=name, status=CheckStatus.SKIP, message=reason) for name in _IDS if name not in made),
        ]

    def _pass(self, name: str, message: str) -> None:
        self._add(name, CheckStatus.PASSED, message)

    def _fail_by(self, name: str, error: ReconcilerError) -> None:
        """Note a failed check with the remedy that the error's class has."""
        own = error.remedy if isinstance(error, UnsupportedClusterError | UnreachableError) else None
        remedy = own or next((text for kind, text in _REMEDIES if isinstance(error, kind)), _OF_OTHERS)
        self._fail(name, str(error).removesuffix(f". {remedy}"), remedy)

    def _fail(self, name: str, message: str, remedy: str) -> None:
        self._add(name, CheckStatus.FAIL, message, remedy)

    def _add(self, name: str, status: CheckStatus, message: str, remedy: str | None = None) -> None:
        self._checks.append(DoctorCheck(id=name, status=status, message=message, remedy=remedy))
