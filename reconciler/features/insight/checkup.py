"""Examine everything that the tool needs: manifests, a cluster with login and rights, its exporters.

One check, one answer, one remedy. Rights are tried with requests that write nothing.
"""

from __future__ import annotations

import shlex
from collections.abc import Callable, Iterator, Sequence
from typing import Final, NamedTuple

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
from reconciler.features.insight.metric_health import source_checks
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


class CheckSubject:
    """What is examined. ``protocol`` is empty while the settings cannot be used."""

    def __init__(self, paths: Sequence[str], cluster: str | None, access: Access) -> None:
        """``cluster``: the name of a Cluster manifest of ``paths``. Raises ``UsageError`` for one that no manifest has."""
        self.paths, self.chosen, self.access = paths, cluster, access
        self.spec = ClusterSpec()
        self.loaded: LoadedManifests | ReconcilerError
        try:
            self.loaded = load_manifests(list(paths))
        except ReconcilerError as error:
            if cluster is not None:
                raise
            self.loaded = error
        else:
            if cluster is not None or self.loaded.clusters:
                self.spec = chosen_cluster(self.loaded, cluster)
        self.protocol = ""
        self.opened: QuotaCluster | None = None

    @property
    def cluster(self) -> QuotaCluster:
        """The open cluster, for checks that need ``connection``."""
        assert self.opened is not None
        return self.opened


def examine_everything(paths: Sequence[str], cluster: str | None, access: Access, *, progress: Progress = NO_PROGRESS) -> Checkup:
    """Make all checks; what goes wrong is an answer, too. Raises ``UsageError`` for a cluster that no manifest has."""
    subject = CheckSubject(paths, cluster, access)
    made: list[DoctorCheck] = []
    broken: set[str] = set()
    try:
        for check in _CHECKS:
            progress.step(f"checking {check.id}")
            made.append(_answer(check, subject, broken))
        progress.step("checking spec.traffic")
        made += _exporters(subject)
    finally:
        if subject.opened is not None:
            subject.opened.close()
    return Checkup(version=reconciler.__version__, cluster=subject.spec.name, checks=tuple(made))


def examine_source(paths: Sequence[str], cluster: str | None, request: RateRequest) -> Checkup:
    """Check a metrics server or pages. ``paths``: manifests, for the quotas; empty: none.

    Raises ``UsageError`` for a source that is neither, and ``ManifestError`` for manifests that cannot be read.
    """
    quotas = desired_for(load_manifests(list(paths)), cluster)[1].values() if paths else {}
    checks = tuple(source_checks(request, quotas=quotas))
    return Checkup(version=reconciler.__version__, cluster=list_some(request.traffic, _SHOWN), checks=checks)


class Check(NamedTuple):
    """A check. Its errors are its answer. ``needs``: another one, without which it is skipped. ``remedy``: of its errors."""

    id: str
    make: Callable[[CheckSubject], DoctorCheck]
    needs: str | None = None
    remedy: str | None = None


def _answer(check: Check, subject: CheckSubject, broken: set[str]) -> DoctorCheck:
    """Make one check. ``broken`` has the checks that failed or could not be made, and gets this one where it did."""
    if check.needs in broken:
        broken.add(check.id)
        return skipped(check.id, f"Not made, because the check {check.needs!r} did not pass.")
    try:
        answer = check.make(subject)
    except ReconcilerError as error:
        answer = _of_error(check.id, error, check.remedy)
    if answer.status is CheckStatus.FAIL or (check.id == "connection" and answer.status is CheckStatus.SKIP):
        broken.add(check.id)
    return answer


def _of_error(name: str, error: ReconcilerError, remedy: str | None) -> DoctorCheck:
    """A failed check with the remedy that the check or the error's class has. A part that is not installed fails nothing here."""
    if remedy is not None:
        return skipped(name, str(error)) if isinstance(error, MissingDependencyError) else failed(name, str(error), remedy)
    own = error.remedy if isinstance(error, UnsupportedClusterError | UnreachableError) else None
    advice = own or next((text for kind, text in _REMEDIES if isinstance(error, kind)), _OF_OTHERS)
    return failed(name, str(error).removesuffix(f". {advice}"), advice)


def _manifests(subject: CheckSubject) -> DoctorCheck:
    loaded = subject.loaded
    if isinstance(loaded, ReconcilerError):
        raise loaded
    if not loaded.files:
        return skipped("manifests", "No manifest was found.")
    findings = validate_loaded(loaded, subject.chosen).findings
    errors = [finding for finding in findings if finding.severity is Severity.ERROR]
    warnings = sum(finding.severity is Severity.WARNING for finding in findings)
    remedy = f"Look at all of them with: kafka-quotas validate {shlex.join(subject.paths)}"
    clusters, documents = len(loaded.clusters), len(loaded.documents)
    counts = f"{count_of(clusters, 'Cluster manifest')} and {count_of(documents, 'ClientQuotas manifest')}"
    if errors:
        first = f"{errors[0].span}: {errors[0].message}" if errors[0].span else str(errors[0].message)
        return failed("manifests", f"{count_of(len(errors), 'error')} in {counts}. The first: {first}", remedy)
    if warnings:
        return warned("manifests", f"{count_of(warnings, 'warning')} in {counts}.", remedy)
    return passed("manifests", f"{counts}, without an error.")


def _connection(subject: CheckSubject) -> DoctorCheck:
    """The connection settings can be read, and the server at the address accepts us. So the cluster is opened."""
    known, access = subject.spec.connection, subject.access
    configured = known is not None and bool(known.bootstrap_servers or known.zookeeper)
    if not configured and access.bootstrap_server is None and access.zookeeper is None:
        return skipped("connection", "No cluster is configured.", _NO_CLUSTER)
    try:
        subject.protocol = protocol = transport_security(subject.spec, access)
    except ReconcilerError as error:
        return failed("connection", str(error), "Correct the properties file (--command-config or spec.connection.properties)")
    subject.opened = open_cluster(subject.spec, access)
    if protocol == "SASL_PLAINTEXT":
        remedy = "Use a listener with TLS: security.protocol=SASL_SSL"
        return warned("connection", "The login and all quotas go over the network unencrypted.", remedy)
    if protocol == "PLAINTEXT":
        return warned(
            "connection", "The connection has no login and is not encrypted.", "Use a login where others reach the listener"
        )
    return passed("connection", f"The server accepts us ({protocol}).")


def _identity(subject: CheckSubject) -> DoctorCheck:
    """The cluster is the one that the manifest means."""
    cluster, spec = subject.cluster, subject.spec
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


def _brokers(subject: CheckSubject) -> DoctorCheck:
    """Each at the address that it advertises: the first connection may have gone to another."""
    cluster = subject.cluster
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


def _describe(subject: CheckSubject) -> DoctorCheck:
    """The right to read."""
    if isinstance(subject.cluster, EveryBroker):
        subject.cluster.describe(_OF_UNUSED_USER)
    else:
        # ZooKeeper has rights for each node: whether all can be read shows only when they are.
        subject.cluster.current_state()
    return passed("describe", "We may read client quotas (plan, drift, export, describe, resolve).")


def _alter(subject: CheckSubject) -> DoctorCheck:
    """The right to write. Validating needs it, and writes nothing."""
    wanted = Alteration(entity=Entity.of({"user": _UNUSED_USER}), ops={"producer_byte_rate": 1048576.0})
    read_only = "Nothing, for a login that only plans. To apply, grant the right that the message names"
    try:
        (result,) = subject.cluster.alter([wanted], validate_only=True)
    except AuthorizationError as error:
        return warned("alter", f"Read-only: {error}", read_only)
    if result.error_code == _AUTHORIZATION_FAILED:
        return warned("alter", f"Read-only: {escaped(result.error or 'the cluster allows no change')}", read_only)
    if result.error_code:
        words = f": {escaped(result.error)}" if result.error else ""
        return failed("alter", f"The cluster refuses a change with error {result.error_code}{words}", "Look at the brokers' logs")
    return passed("alter", "We may change client quotas (apply, alter, revert).")


def _leftovers(subject: CheckSubject) -> DoctorCheck:
    """Look for throttles that no reassignment needs, and for quotas of users without credentials."""
    cluster = subject.cluster
    findings, notes = find_leftovers(cluster, cluster.current_state().entities)
    if findings:
        words = " ".join((*(finding.message for finding in findings), *(f"{note}." for note in notes)))
        return warned("leftovers", words, "Run these commands, unless work on the cluster goes on")
    return (
        skipped("leftovers", f"{'. '.join(notes)}.")
        if notes
        else passed("leftovers", "No replication throttle stands without a reassignment.")
    )


def _exporters(subject: CheckSubject) -> Iterator[DoctorCheck]:
    """Yield the checks of the metrics server of the Cluster manifest."""
    try:
        server = configured_server(subject.spec, None)
        if server is not None:
            loaded, opened = subject.loaded, subject.opened
            quotas = {} if isinstance(loaded, ReconcilerError) else desired_for(loaded, subject.chosen)[1].values()
            brokers: list[int] = [node.id for node in opened.brokers()] if isinstance(opened, EveryBroker) else []
            yield from source_checks(RateRequest(server=server, spec=subject.spec), quotas=quotas, brokers=brokers)
    except ReconcilerError as error:
        yield _of_error("source", error, "Check spec.traffic in the Cluster manifest")


_CHECKS: Final = (
    Check("manifests", _manifests, remedy="Name the folder of the manifests, or write a first one with: kafka-quotas init"),
    Check("connection", _connection),
    Check("identity", _identity, "connection"),
    Check("brokers", _brokers, "connection"),
    Check("describe", _describe, "connection"),
    Check("alter", _alter, "describe"),
    Check("leftovers", _leftovers, "describe"),
)
"""All of them, in the order in which the tool needs what they are about."""
