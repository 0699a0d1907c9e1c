"""Examine everything that the tool needs: manifests, a cluster, its exporters, this machine. Nothing is written anywhere."""

from __future__ import annotations

import datetime
import importlib.metadata
import platform
import shlex
import time
from collections.abc import Callable
from pathlib import Path
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
)
from reconciler.features.insight.doctor import cluster_checks
from reconciler.features.insight.doctor.checks import (
    CheckAnswer,
    CheckStatus,
    Checkup,
    DoctorCheck,
    failed,
    passed,
    skipped,
    warned,
)
from reconciler.features.insight.doctor.cluster_checks import CheckSubject, Examined
from reconciler.features.insight.doctor.source_health import DoctorRequest, examine_traffic
from reconciler.features.prometheus import HttpLogin, PrometheusApi, read_login
from reconciler.java import find_java
from reconciler.model import ClusterSpec, Severity, display_name, escaped
from reconciler.ports import Progress
from reconciler.text import count_of
from reconciler.workflows import (
    PrometheusRequest,
    chosen_cluster,
    configured_server,
    load_manifests,
    validate_loaded,
)

_CLOCKS_S: Final = 5.0
"""Clocks that differ by more make Kerberos, tokens and the times of verdicts unreliable."""
_LOOK_BACK: Final = datetime.timedelta(minutes=10)


_NO_SERVER: Final = "The Cluster manifest names no Prometheus server (spec.traffic)."
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
_OF_TRAFFIC: Final = "Check spec.traffic in the Cluster manifest"


class Check(NamedTuple):
    """A check. Its errors are its answer. ``needs``: another one, without which it is skipped. ``remedy``: of its errors."""

    id: str
    make: Callable[[CheckSubject], CheckAnswer]
    needs: str | None = None
    remedy: str | None = None


def _checks() -> tuple[Check, ...]:
    """All of them, in the order in which the tool needs what they are about."""
    of_cluster = cluster_checks
    return (
        Check("files", _files, remedy="Name the folder of the manifests, or write a first one with: kafka-quotas init"),
        Check("schema", _schema, "files"),
        Check("settings", of_cluster.settings),
        Check("connection", of_cluster.connection, "settings"),
        Check("tls", of_cluster.tls, "connection"),
        Check("login", of_cluster.login, "tls"),
        Check("identity", of_cluster.identity, "login"),
        Check("brokers", of_cluster.brokers, "login"),
        Check("certificates", of_cluster.certificates, "settings"),
        Check("describe", of_cluster.describe, "login"),
        Check("alter", of_cluster.alter, "describe"),
        Check("callback", of_cluster.callback, "login"),
        Check("clocks", _clocks, remedy=_OF_TRAFFIC),
        Check("exporters", _exporters, remedy=_OF_TRAFFIC),
        Check("versions", _versions),
        Check("java", _java),
        Check("spark", _spark),
    )


def examine_everything(request: Examined, *, progress: Progress | None = None) -> Checkup:
    """Make all checks; what goes wrong is an answer, too. Raises ``UsageError`` for a cluster that no manifest has."""
    subject = _subject(request)
    made: list[DoctorCheck] = []
    broken: set[str] = set()
    try:
        for check in _checks():
            if progress is not None:
                progress.step(f"checking {check.id}")
            answer = _answer(check, subject, broken)
            made.append(DoctorCheck(id=check.id, status=answer.status, message=answer.message, remedy=answer.remedy))
    finally:
        subject.close()
    return Checkup(version=reconciler.__version__, cluster=subject.spec.name, checks=tuple(made))


def _subject(request: Examined) -> CheckSubject:
    try:
        loaded = load_manifests(list(request.paths))
    except ReconcilerError as error:
        if request.cluster is not None:
            raise
        return CheckSubject(request, ClusterSpec(), error)
    chosen = request.cluster is not None or bool(loaded.clusters)
    return CheckSubject(request, chosen_cluster(loaded, request.cluster) if chosen else ClusterSpec(), loaded)


def _answer(check: Check, subject: CheckSubject, broken: set[str]) -> CheckAnswer:
    """Of a check; ``broken``: those that failed, or could not be made, to which this one may be added."""
    if check.needs in broken:
        broken.add(check.id)
        return skipped(f"Not made, because the check {check.needs!r} did not pass.")
    try:
        answer = check.make(subject)
    except ReconcilerError as error:
        answer = _of_error(error, check.remedy)
    if answer.status is CheckStatus.FAIL or (check.id == "settings" and answer.status is CheckStatus.SKIP):
        broken.add(check.id)
    return answer


def _of_error(error: ReconcilerError, remedy: str | None) -> CheckAnswer:
    """A failed check with the remedy that the check or the error's class has. A part that is not installed fails nothing here."""
    if remedy is not None:
        return skipped(str(error)) if isinstance(error, MissingDependencyError) else failed(str(error), remedy)
    own = error.remedy if isinstance(error, UnsupportedClusterError | UnreachableError) else None
    advice = own or next((text for kind, text in _REMEDIES if isinstance(error, kind)), _OF_OTHERS)
    return failed(str(error).removesuffix(f". {advice}"), advice)


def _files(subject: CheckSubject) -> CheckAnswer:
    loaded = subject.loaded
    if isinstance(loaded, ReconcilerError):
        raise loaded
    if not loaded.files:
        return skipped("No manifest was found.")
    clusters = count_of(len(loaded.clusters), "Cluster manifest")
    message = f"{count_of(len(loaded.files), 'file')}, {clusters}, {count_of(len(loaded.documents), 'ClientQuotas manifest')}."
    return passed(message)


def _schema(subject: CheckSubject) -> CheckAnswer:
    loaded, request = subject.loaded, subject.request
    assert not isinstance(loaded, ReconcilerError)
    if not loaded.files:
        return skipped("No manifest was found.")
    findings = validate_loaded(loaded, request.cluster).findings
    errors = [finding for finding in findings if finding.severity is Severity.ERROR]
    warnings = sum(finding.severity is Severity.WARNING for finding in findings)
    remedy = f"Look at all of them with: kafka-quotas validate {shlex.join(request.paths)}"
    if errors:
        first = f"{errors[0].span}: {errors[0].message}" if errors[0].span else str(errors[0].message)
        message = f"{count_of(len(errors), 'error')} in the manifests. The first: {first}"
        return failed(message, remedy)
    if warnings:
        message = f"{count_of(warnings, 'warning')} in the manifests."
        return warned(message, remedy)
    return passed("The manifests are valid.")


def _clocks(subject: CheckSubject) -> CheckAnswer:
    server = configured_server(subject.spec, None)
    if server is None:
        return skipped(f"Kafka's protocol shows no clock. {_NO_SERVER}")
    login = read_login(Path(server.http_config), None) if server.http_config else HttpLogin()
    api = PrometheusApi(server.address, login)
    try:
        before = time.time()
        server_s = api.now_s()
        between = (before + time.time()) / 2
    finally:
        api.close()
    apart = abs(server_s - between)
    if apart <= _CLOCKS_S:
        message = f"This machine and {display_name(server.address)} agree on the time (within {_CLOCKS_S:.0f} s)."
        return passed(message)
    message = f"The clocks of this machine and {display_name(server.address)} differ by {apart:.0f} s."
    remedy = "Synchronise both with NTP: Kerberos, tokens and freeze windows depend on it"
    return failed(message, remedy)


def _exporters(subject: CheckSubject) -> CheckAnswer:
    server = configured_server(subject.spec, None)
    if server is None:
        return skipped(_NO_SERVER)
    now = datetime.datetime.now(datetime.UTC)
    request = PrometheusRequest(
        address=server.address,
        since=now - _LOOK_BACK,
        until=now,
        store=Path(),
        http_config=Path(server.http_config) if server.http_config else None,
        match=server.match,
    )
    health = examine_traffic(DoctorRequest(traffic=(), prometheus=request), now=now)
    more = f"kafka-quotas doctor --traffic prometheus+{escaped(server.address)}"
    brokers = count_of(len(health.brokers), "broker")
    if not health.brokers:
        message = f"{display_name(server.address)} has no series of clients of the last ten minutes."
        return failed(message, f"Look closer with: {more}")
    if worst := [finding for finding in health.findings if finding.severity.at_least(Severity.WARNING)]:
        message = f"{brokers}, {count_of(len(worst), 'finding')}. The first: {worst[0].message}"
        return warned(message, f"Look closer with: {more}")
    return passed(f"{brokers} with series of clients.")


def _java(_: CheckSubject) -> CheckAnswer:
    try:
        java = find_java()
    except MissingDependencyError as error:
        remedy = "Install a Java runtime for backtests of large traffic and for the sandbox. Nothing else needs it"
        return warned(str(error), remedy)
    return passed(f"Java 17 or newer: {escaped(str(java))}.")


def _spark(_: CheckSubject) -> CheckAnswer:
    try:
        version = importlib.metadata.version("pyspark")
    except importlib.metadata.PackageNotFoundError:
        remedy = "For backtests, install the extra traffic (docs/install.md)"
        return warned("PySpark is not installed.", remedy)
    return passed(f"PySpark {version}.")


def _versions(_: CheckSubject) -> CheckAnswer:
    return passed(f"kafka-quotas {reconciler.__version__} on Python {platform.python_version()}, {platform.system()}.")
