"""Examine everything that the tool needs: manifests, a cluster with login and rights, its exporters.

One check, one answer, one remedy. Rights are tried with requests that write nothing.
"""

from __future__ import annotations

import contextlib
import shlex
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Final

import reconciler
from reconciler.errors import (
    AuthenticationError,
    AuthorizationError,
    MissingDependencyError,
    ReconcilerError,
    TlsFailedError,
    UnreachableError,
    UnsupportedClusterError,
    WrongClusterError,
)
from reconciler.features.insight.doctor_views import CheckStatus, Checkup, DoctorCheck, failed, passed, skipped, warned
from reconciler.features.insight.metric_health import Quotas, source_checks
from reconciler.features.insight.rate_sources import RateRequest
from reconciler.model import Alteration, ClusterSpec, Entity, Severity, escaped
from reconciler.ports import NO_PROGRESS, EntityFilter, EveryBroker, FilterComponent, FilterKind, Progress, QuotaCluster
from reconciler.text import count_of, list_some
from reconciler.workflows import (
    Access,
    LoadedManifests,
    check_cluster_id,
    chosen_cluster,
    configured_server,
    desired_for,
    find_leftovers,
    load_manifests,
    open_cluster,
    transport_security,
    validate_loaded,
)

_SHOWN: Final = 3
_UNUSED_USER: Final = "kafka-quotas-doctor"
"""A user whose quotas are asked for and validated, never written."""
_OF_UNUSED_USER: Final = EntityFilter(
    components=(FilterComponent(entity_type="user", kind=FilterKind.EXACT, name=_UNUSED_USER),), strict=True
)
_AUTHORIZATION_FAILED: Final = 31
"""Kafka's error code of an entity that may not be changed."""
_NO_CLUSTER: Final = "Pass --bootstrap-server or --zookeeper, or set spec.connection in a Cluster manifest"
_PROPERTIES: Final = "Correct the properties file (--command-config or spec.connection.properties)"
_UNSAFE: Final = {
    "PLAINTEXT": ("The connection has no login and is not encrypted.", "Use a login where others reach the listener"),
    "SASL_PLAINTEXT": (
        "The login and all quotas go over the network unencrypted.",
        "Use a listener with TLS: security.protocol=SASL_SSL",
    ),
}
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


def examine_everything(paths: Sequence[str], cluster: str | None, access: Access, *, progress: Progress = NO_PROGRESS) -> Checkup:
    """Make all checks; what goes wrong is an answer, too. Raises ``UsageError`` for a cluster that no manifest has."""
    loaded: LoadedManifests | ReconcilerError
    spec = ClusterSpec()
    try:
        loaded = load_manifests(list(paths))
    except ReconcilerError as error:
        if cluster is not None:
            raise
        loaded = error
    else:
        if cluster is not None or loaded.clusters:
            spec = chosen_cluster(loaded, cluster)
    made = [_manifests(paths, loaded, cluster)]
    with contextlib.ExitStack() as stack:
        progress.step("checking connection")
        connection, opened = _connection(spec, access)
        made.append(connection)
        failed_one = None if opened is not None else "connection"
        if opened is not None:
            stack.callback(opened.close)
        for name, make in _OF_CLUSTER.items():
            if opened is None or failed_one is not None:
                made.append(skipped(name, f"Not made, because the check {failed_one!r} did not pass."))
                continue
            progress.step(f"checking {name}")
            try:
                made.append(make(opened, spec))
            except ReconcilerError as error:
                made.append(_of_error(name, error))
            if name == "describe" and made[-1].status is CheckStatus.FAIL:
                failed_one = name
        progress.step("checking spec.traffic")
        quotas = {} if isinstance(loaded, ReconcilerError) else desired_for(loaded, cluster)[1].values()
        made += _exporters(opened, spec, quotas)
    return Checkup(version=reconciler.__version__, cluster=spec.name, checks=tuple(made))


def examine_source(paths: Sequence[str], cluster: str | None, request: RateRequest) -> Checkup:
    """Check a metrics server or pages. ``paths``: manifests, for the quotas; empty: none.

    Raises ``UsageError`` for a source that is neither, and ``ManifestError`` for manifests that cannot be read.
    """
    quotas = desired_for(load_manifests(list(paths)), cluster)[1].values() if paths else {}
    checks = tuple(source_checks(request, quotas=quotas))
    return Checkup(version=reconciler.__version__, cluster=list_some(request.traffic, _SHOWN), checks=checks)


def _of_error(name: str, error: ReconcilerError) -> DoctorCheck:
    """A failed check with the remedy of the error or of its class."""
    own = error.remedy if isinstance(error, UnsupportedClusterError | UnreachableError) else None
    advice = own or next((text for kind, text in _REMEDIES if isinstance(error, kind)), _OF_OTHERS)
    return failed(name, str(error).removesuffix(f". {advice}"), advice)


def _manifests(paths: Sequence[str], loaded: LoadedManifests | ReconcilerError, cluster: str | None) -> DoctorCheck:
    if isinstance(loaded, ReconcilerError):
        return failed("manifests", str(loaded), "Name the folder of the manifests, or write a first one with: kafka-quotas init")
    if not loaded.files:
        return skipped("manifests", "No manifest was found.")
    findings = validate_loaded(loaded, cluster).findings
    errors = [finding for finding in findings if finding.severity is Severity.ERROR]
    warnings = sum(finding.severity is Severity.WARNING for finding in findings)
    remedy = f"Look at all of them with: kafka-quotas validate {shlex.join(paths)}"
    clusters, documents = len(loaded.clusters), len(loaded.documents)
    counts = f"{count_of(clusters, 'Cluster manifest')} and {count_of(documents, 'ClientQuotas manifest')}"
    if errors:
        first = f"{errors[0].span}: {errors[0].message}" if errors[0].span else str(errors[0].message)
        return failed("manifests", f"{count_of(len(errors), 'error')} in {counts}. The first: {first}", remedy)
    if warnings:
        return warned("manifests", f"{count_of(warnings, 'warning')} in {counts}.", remedy)
    return passed("manifests", f"{counts}, without an error.")


def _connection(spec: ClusterSpec, access: Access) -> tuple[DoctorCheck, QuotaCluster | None]:
    """The connection settings can be read, and the server at the address accepts us. So the cluster is opened."""
    known = spec.connection
    configured = known is not None and bool(known.bootstrap_servers or known.zookeeper)
    if not configured and access.bootstrap_server is None and access.zookeeper is None:
        return skipped("connection", "No cluster is configured.", _NO_CLUSTER), None
    try:
        protocol = transport_security(spec, access)
    except ReconcilerError as error:
        return failed("connection", str(error), _PROPERTIES), None
    try:
        opened = open_cluster(spec, access)
    except ReconcilerError as error:
        return _of_error("connection", error), None
    check = passed("connection", f"The server accepts us ({protocol}).")
    if protocol in _UNSAFE:
        check = warned("connection", *_UNSAFE[protocol])
    return check, opened


def _identity(cluster: QuotaCluster, spec: ClusterSpec) -> DoctorCheck:
    """The cluster is the one that the manifest means."""
    known = cluster.identity()
    version = f"Kafka {known.kafka_version}" if known.kafka_version else "Kafka of a version that ZooKeeper does not know"
    # ZooKeeper can be read without any broker, and its session counts none.
    brokers = f", {count_of(len(cluster.brokers()), 'broker')}" if isinstance(cluster, EveryBroker) else ""
    try:
        check_cluster_id(spec, known)
    except WrongClusterError as error:
        return failed("identity", str(error), "Check the address, or correct clusterId in the Cluster manifest")
    message = f"{version}{brokers}, cluster id {escaped(known.id or 'unknown')}."
    if spec.name is not None and spec.cluster_id is None:
        remedy = f"Write clusterId: {escaped(known.id or '')} into the Cluster manifest, so that no other one is changed"
        return warned("identity", f"{message} The Cluster manifest does not state an id.", remedy)
    return passed("identity", message)


def _brokers(cluster: QuotaCluster, _spec: ClusterSpec) -> DoctorCheck:
    """Each at the address that it advertises: the first connection may have gone to another."""
    if not isinstance(cluster, EveryBroker):
        return skipped("brokers", "Quotas are read from ZooKeeper, without the brokers.")
    nodes = {node.id: f"broker {node.id} at {node.host}:{node.port}" for node in cluster.brokers()}
    answers = cluster.describe_on(_OF_UNUSED_USER, tuple(nodes))
    silent = [
        f"{escaped(nodes[broker])}: {answer}"
        for broker, answer in sorted(answers.items())
        if isinstance(answer, UnreachableError | TlsFailedError | AuthenticationError)
    ]
    if silent:
        message = f"{len(silent)} of {count_of(len(nodes), 'broker')} cannot be used. {list_some(silent, 3, between='; ')}."
        return failed("brokers", message, "Check advertised.listeners of these brokers, firewalls, and their certificates")
    return passed("brokers", f"{count_of(len(nodes), 'broker')} can be reached at the advertised addresses.")


def _describe(cluster: QuotaCluster, _spec: ClusterSpec) -> DoctorCheck:
    """The right to read."""
    if isinstance(cluster, EveryBroker):
        cluster.describe(_OF_UNUSED_USER)
    else:
        # ZooKeeper has rights for each node: whether all can be read shows only when they are.
        cluster.current_state()
    return passed("describe", "We may read client quotas (plan, drift, export, describe, resolve).")


def _alter(cluster: QuotaCluster, _spec: ClusterSpec) -> DoctorCheck:
    """The right to write. Validating needs it, and writes nothing."""
    wanted = Alteration(entity=Entity.of({"user": _UNUSED_USER}), ops={"producer_byte_rate": 1048576.0})
    read_only = "Nothing, for a login that only plans. To apply, grant the right that the message names"
    try:
        (result,) = cluster.alter([wanted], validate_only=True)
    except AuthorizationError as error:
        return warned("alter", f"Read-only: {error}", read_only)
    if result.error_code == _AUTHORIZATION_FAILED:
        return warned("alter", f"Read-only: {escaped(result.error or 'the cluster allows no change')}", read_only)
    if result.error_code:
        words = f": {escaped(result.error)}" if result.error else ""
        return failed("alter", f"The cluster refuses a change with error {result.error_code}{words}", "Look at the brokers' logs")
    return passed("alter", "We may change client quotas (apply, alter, revert).")


def _leftovers(cluster: QuotaCluster, _spec: ClusterSpec) -> DoctorCheck:
    """Look for throttles that no reassignment needs, and for quotas of users without credentials."""
    findings, notes = find_leftovers(cluster, cluster.current_state().entities)
    if findings:
        words = " ".join((*(finding.message for finding in findings), *(f"{note}." for note in notes)))
        return warned("leftovers", words, "Run these commands, unless work on the cluster goes on")
    if notes:
        return skipped("leftovers", f"{'. '.join(notes)}.")
    return passed("leftovers", "No replication throttle stands without a reassignment.")


_OF_CLUSTER: Final[Mapping[str, Callable[[QuotaCluster, ClusterSpec], DoctorCheck]]] = {
    "identity": _identity,
    "brokers": _brokers,
    "describe": _describe,
    "alter": _alter,
    "leftovers": _leftovers,
}
"""The checks of an open cluster. The last two need the right of ``describe``."""


def _exporters(opened: QuotaCluster | None, spec: ClusterSpec, quotas: Quotas) -> Iterator[DoctorCheck]:
    """Yield the checks of the metrics server of the Cluster manifest."""
    try:
        if (server := configured_server(spec, None)) is not None:
            brokers = opened.brokers() if opened is not None and isinstance(opened, EveryBroker) else ()
            yield from source_checks(RateRequest(server=server, spec=spec), quotas=quotas, brokers=[node.id for node in brokers])
    except MissingDependencyError as error:
        yield skipped("source", str(error))
    except ReconcilerError as error:
        yield failed("source", str(error), "Check spec.traffic in the Cluster manifest")
