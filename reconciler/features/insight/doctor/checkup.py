"""Examine everything that the tool needs: manifests, a cluster, its exporters, this machine. Nothing is written anywhere."""

from __future__ import annotations

import datetime
import importlib.metadata
import platform
import shlex
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import reconciler
from reconciler.errors import MissingDependencyError, ReconcilerError
from reconciler.features.insight.doctor.checks import CheckStatus, Checkup, DoctorCheck
from reconciler.features.insight.doctor.cluster_checks import ClusterChecks, skip_cluster_checks
from reconciler.features.insight.doctor.source_health import DoctorRequest, examine_traffic
from reconciler.features.prometheus import HttpLogin, PrometheusApi, read_login
from reconciler.java import find_java
from reconciler.model import ClusterSpec, MetricServer, Severity, display_name, escaped
from reconciler.ports import Progress
from reconciler.text import count_of
from reconciler.workflows import (
    Access,
    LoadedManifests,
    PrometheusRequest,
    chosen_cluster,
    configured_server,
    load_manifests,
    validate_loaded,
)

_CLOCKS_S: Final = 5.0
"""Clocks that differ by more make Kerberos, tokens and the times of verdicts unreliable."""
_LOOK_BACK: Final = datetime.timedelta(minutes=10)


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckupRequest:
    """What to examine. ``paths``: manifests. ``cluster``: the name of one of their Cluster manifests."""

    paths: tuple[str, ...]
    cluster: str | None
    access: Access


def examine_everything(request: CheckupRequest, *, progress: Progress | None = None) -> Checkup:
    """Make all checks; what goes wrong is an answer, too. Raises ``UsageError`` for a cluster that no manifest has."""
    checks, spec = _manifest_checks(request)
    checks += ClusterChecks(spec, request.access).run() if _is_reachable(spec, request.access) else skip_cluster_checks()
    if progress is not None:
        progress.step("examining exporters and this machine")
    checks += _traffic_checks(spec)
    checks += _machine_checks()
    return Checkup(version=reconciler.__version__, cluster=spec.name, checks=tuple(checks))


def _is_reachable(spec: ClusterSpec, access: Access) -> bool:
    """Whether anything states where the cluster is."""
    connection = spec.connection
    configured = connection is not None and bool(connection.bootstrap_servers or connection.zookeeper)
    return configured or access.bootstrap_server is not None or access.zookeeper is not None


def _manifest_checks(request: CheckupRequest) -> tuple[list[DoctorCheck], ClusterSpec]:
    try:
        loaded = load_manifests(list(request.paths))
    except ReconcilerError as error:
        if request.cluster is not None:
            raise
        remedy = "Name the folder of the manifests, or write a first one with: kafka-quotas init"
        missing = DoctorCheck(id="files", status=CheckStatus.FAIL, message=str(error), remedy=remedy)
        return [missing, _skipped("schema", "No manifest was read.")], ClusterSpec()
    return [_files(loaded), _schema(loaded, request)], _cluster_of(loaded, request)


def _cluster_of(loaded: LoadedManifests, request: CheckupRequest) -> ClusterSpec:
    if request.cluster is None and not loaded.clusters:
        return ClusterSpec()
    return chosen_cluster(loaded, request.cluster)


def _files(loaded: LoadedManifests) -> DoctorCheck:
    if not loaded.files:
        return _skipped("files", "No manifest was found.")
    clusters = count_of(len(loaded.clusters), "Cluster manifest")
    message = f"{count_of(len(loaded.files), 'file')}, {clusters}, {count_of(len(loaded.documents), 'ClientQuotas manifest')}."
    return DoctorCheck(id="files", status=CheckStatus.PASSED, message=message)


def _schema(loaded: LoadedManifests, request: CheckupRequest) -> DoctorCheck:
    if not loaded.files:
        return _skipped("schema", "No manifest was found.")
    findings = validate_loaded(loaded, request.cluster).findings
    errors = [finding for finding in findings if finding.severity is Severity.ERROR]
    warnings = sum(finding.severity is Severity.WARNING for finding in findings)
    remedy = f"Look at all of them with: kafka-quotas validate {shlex.join(request.paths)}"
    if errors:
        first = f"{errors[0].span}: {errors[0].message}" if errors[0].span else str(errors[0].message)
        message = f"{count_of(len(errors), 'error')} in the manifests. The first: {first}"
        return DoctorCheck(id="schema", status=CheckStatus.FAIL, message=message, remedy=remedy)
    if warnings:
        message = f"{count_of(warnings, 'warning')} in the manifests."
        return DoctorCheck(id="schema", status=CheckStatus.WARN, message=message, remedy=remedy)
    return DoctorCheck(id="schema", status=CheckStatus.PASSED, message="The manifests are valid.")


def _traffic_checks(spec: ClusterSpec) -> list[DoctorCheck]:
    server = configured_server(spec, None)
    if server is None:
        reason = "The Cluster manifest names no Prometheus server (spec.traffic)."
        return [_skipped("clocks", f"Kafka's protocol shows no clock. {reason}"), _skipped("exporters", reason)]
    return [_guarded("clocks", lambda: _clocks(server)), _guarded("exporters", lambda: _exporters(server))]


def _clocks(server: MetricServer) -> DoctorCheck:
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
        return DoctorCheck(id="clocks", status=CheckStatus.PASSED, message=message)
    message = f"The clocks of this machine and {display_name(server.address)} differ by {apart:.0f} s."
    remedy = "Synchronise both with NTP: Kerberos, tokens and freeze windows depend on it"
    return DoctorCheck(id="clocks", status=CheckStatus.FAIL, message=message, remedy=remedy)


def _exporters(server: MetricServer) -> DoctorCheck:
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
        return DoctorCheck(id="exporters", status=CheckStatus.FAIL, message=message, remedy=f"Look closer with: {more}")
    if worst := [finding for finding in health.findings if finding.severity.at_least(Severity.WARNING)]:
        message = f"{brokers}, {count_of(len(worst), 'finding')}. The first: {worst[0].message}"
        return DoctorCheck(id="exporters", status=CheckStatus.WARN, message=message, remedy=f"Look closer with: {more}")
    return DoctorCheck(id="exporters", status=CheckStatus.PASSED, message=f"{brokers} with series of clients.")


def _machine_checks() -> list[DoctorCheck]:
    message = f"kafka-quotas {reconciler.__version__} on Python {platform.python_version()}, {platform.system()}."
    return [DoctorCheck(id="versions", status=CheckStatus.PASSED, message=message), _java(), _spark()]


def _java() -> DoctorCheck:
    try:
        java = find_java()
    except MissingDependencyError as error:
        remedy = "Install a Java runtime for backtests of large traffic and for the sandbox. Nothing else needs it"
        return DoctorCheck(id="java", status=CheckStatus.WARN, message=str(error), remedy=remedy)
    return DoctorCheck(id="java", status=CheckStatus.PASSED, message=f"Java 17 or newer: {escaped(str(java))}.")


def _spark() -> DoctorCheck:
    try:
        version = importlib.metadata.version("pyspark")
    except importlib.metadata.PackageNotFoundError:
        remedy = "For backtests, install the extra traffic (docs/install.md)"
        return DoctorCheck(id="spark", status=CheckStatus.WARN, message="PySpark is not installed.", remedy=remedy)
    return DoctorCheck(id="spark", status=CheckStatus.PASSED, message=f"PySpark {version}.")


def _guarded(name: str, check: Callable[[], DoctorCheck]) -> DoctorCheck:
    """A check whose errors are its answer."""
    try:
        return check()
    except MissingDependencyError as error:
        return _skipped(name, str(error))
    except ReconcilerError as error:
        return DoctorCheck(
            id=name, status=CheckStatus.FAIL, message=str(error), remedy="Check spec.traffic in the Cluster manifest"
        )


def _skipped(name: str, reason: str) -> DoctorCheck:
    return DoctorCheck(id=name, status=CheckStatus.SKIP, message=reason)
