"""Manifests and the cluster that they are for: planned, applied, compared and judged, by the same workflows as the commands.

Every call reads manifests and cluster anew. Nothing is printed, no terminal is asked, and no signal handler is set.
"""

from __future__ import annotations

import contextlib
import datetime
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from reconciler.apply import ApplySettings, StepDown
from reconciler.client.live import access_of, listed
from reconciler.client.outcomes import LoggedProgress, PlannedChange, names_of_guards, succeeded
from reconciler.errors import UsageError
from reconciler.model import ApplyReport, BacktestReport, CurrentState, Drift, MetricServer
from reconciler.planning import read_saved_plan
from reconciler.policy import check_guard_ids
from reconciler.ports import SystemClock
from reconciler.resolution import QuotaView
from reconciler.text import list_some
from reconciler.workflows import (
    UNASKED,
    Approval,
    AuditFile,
    BacktestOptions,
    GivenBaseline,
    Intent,
    PrometheusRequest,
    References,
    Sources,
    Where,
    apply_manifests,
    check_recordable,
    configured_server,
    configured_since,
    configured_traffic,
    find_drift,
    given_baseline,
    is_clean,
    is_prometheus,
    known_principal,
    load_intent,
    make_plan,
    open_cluster,
    prometheus_address,
    proposal_of,
    quota_reader,
    read_state,
    run_backtest,
    uses_leaders,
    with_leaders,
    with_lint,
    write_baseline,
)

_MOST_NAMED: Final = 5


class ManifestCluster:
    """One cluster of some manifests. It keeps no connection, and threads can share it."""

    def __init__(self, where: Where, *, baseline: str | None = None) -> None:
        """Take arguments that ``manifests`` has checked."""
        self._where = where
        self._baseline = baseline

    def with_baseline(self, baseline: str) -> ManifestCluster:
        """Compare with a baseline: a file or a git reference."""
        return ManifestCluster(self._where, baseline=baseline)

    def state(self, name: str = "current") -> QuotaView:
        """Read a state to resolve clients in: ``current``, ``manifests`` alone, or ``planned``, once they are applied.

        Raises as ``plan``, and ``UsageError`` for another name.

        >>> answer = manifests(["quotas"]).state("manifests").answers().answer(entity(user="payments", client_id="settlement"))
        >>> answer.quotas["producer_byte_rate"].value
        20971520.0
        """
        return Sources(self._where).view(name)

    def plan(self, *, accept: Sequence[str] = (), show_effects: bool = False) -> PlannedChange:
        """Compute the changes that ``apply`` would write, and the guards, with those of ``accept`` accepted.

        ``show_effects`` adds which clients move to other limits.
        Raises ``ManifestError`` with its findings, ``UsageError`` for a name that no guard has or an unclear cluster,
        ``WrongClusterError``, ``BaselineError``, ``GitError``, ``UntrustedError`` and ``BackendError``.

        >>> planned = manifests(["quotas"]).plan()
        >>> planned
        <PlannedChange of cluster prod: 0 to create, 1 to update, 0 to delete>
        >>> [(str(change.entity), change.action.value) for change in planned.plan.changes]
        [('user=payments', 'update')]
        """
        accepted = names_of_guards(accept)
        check_guard_ids(accepted)
        intent = self._intent()
        given = self._given(intent)
        with quota_reader(intent.spec, self._where.access, trusted=intent.trusted) as reader:
            plan = make_plan(intent, reader, accepted=accepted, clock=SystemClock(), given=given, show_effects=show_effects)
        return PlannedChange(plan=plan, accepted=accepted, write=self._write)

    def apply(
        self,
        *,
        accept: Sequence[str] = (),
        saved_plan: str | None = None,
        step_down: float | None = None,
        watch: Sequence[str] = (),
        audit: str | Path | None = None,
        record_baseline: str | Path | None = None,
    ) -> ApplyReport:
        """Plan, write behind the guards, and read back until every broker shows it.

        ``accept`` names the guards that may be passed. ``saved_plan`` (of ``to_json``) refuses any other plan than the
        reviewed one. ``step_down`` lowers limits in steps of at most this factor. With ``watch``, sources as in ``--watch``, a
        step that throttles clients is given back. ``audit`` gets a line however the run ends, ``record_baseline`` a baseline
        after a complete run.

        Returns only when all is done and verified, or there was nothing to do. Raises ``GuardRefusedError`` for guards that were
        not accepted, ``FrozenError``, ``StalePlanError`` and other ``RefusedError``. Nothing was written in these cases. Raises
        ``NotAppliedError``, whose report has the outcome of every change, when the run was not completed.
        Raises ``FileAccessError`` for a file of the arguments, and as ``plan``.

        >>> quotas = manifests(["quotas"])
        >>> report = quotas.apply(saved_plan=to_json(quotas.plan().plan), step_down=2)
        >>> [(str(outcome.change.entity), outcome.status.value) for outcome in report.outcomes]
        [('user=payments', 'applied')]
        """
        accepted = names_of_guards(accept)
        saved = None if saved_plan is None else read_saved_plan(saved_plan, name="saved_plan")
        sources = listed("watch", watch)
        if sources and step_down is None:
            raise UsageError("watch needs step_down, such as step_down=2")
        approval = Approval(
            accepted=accepted,
            saved=saved,
            settings=ApplySettings(),
            step_down=None if step_down is None else StepDown(factor=step_down),
            watch=sources,
        )
        return self._write(approval, audit=audit, record_baseline=record_baseline)

    def drift(self) -> Drift:
        """Compare the live quotas with the declared ones.

        With a ``baseline``, merged changes that are not applied yet and changes by hand are distinguished. Raises as ``plan``.

        >>> drift = manifests(["quotas"]).drift()
        >>> [(str(each.entity), each.drift.value) for each in drift.entities]
        [('user=payments', 'differs'), ('user=<default>', 'unmanaged')]
        """
        intent = with_lint(self._intent())
        given = self._given(intent)
        with quota_reader(intent.spec, self._where.access, trusted=intent.trusted) as reader:
            return find_drift(intent, reader, given)

    def backtest(
        self,
        traffic: Sequence[str] = (),
        *,
        since: datetime.datetime | None = None,
        until: datetime.datetime | None = None,
        exact: bool = False,
    ) -> BacktestReport:
        """Replay recorded traffic under the manifests, by the sources of ``kafka-quotas backtest --traffic``.

        Without ``traffic``, that in ``spec.traffic`` of the Cluster manifest is read. The current quotas are those of the
        ``snapshot`` or of the server that ``manifests`` was given, else they are not known. Large traffic starts a Spark session
        of its own, or uses the one that runs: its tables are ``table:NAME``. Raises ``TrafficError``
        for traffic that cannot be used, ``MissingDependencyError`` without the extra ``traffic``, and as ``plan``.
        """
        for name, at in (("since", since), ("until", until)):
            if at is not None and at.tzinfo is None:
                raise UsageError(f"{name} is a time without a time zone: add tzinfo=datetime.UTC")
        intent = self._intent()
        sources = listed("traffic", traffic)
        if not sources:
            sources = configured_traffic(intent.spec, intent.trusted)
            since = since or configured_since(intent.spec, until)
        server = _server(sources, intent)
        if server is None and not sources:
            raise UsageError("No traffic is given. Pass traffic, or set spec.traffic of the Cluster manifest")
        between = None
        if server is None and (since is not None or until is not None):
            from reconciler.traffic import Between

            between = Between.of(since, until)
        options = BacktestOptions(
            traffic=() if server is not None else sources,
            exact=exact,
            prometheus=None if server is None else PrometheusRequest.of(server, since=since, until=until),
            between=between,
        )
        return run_backtest(proposal_of(intent, self._current(intent)), options, progress=LoggedProgress())

    def __repr__(self) -> str:
        where = self._where
        named = f" for {where.cluster}" if where.cluster else ""
        return f"<ManifestCluster of {list_some(list(where.paths), _MOST_NAMED)}{named}>"

    def _intent(self) -> Intent:
        where = self._where
        return load_intent(where.paths, cluster=where.cluster, references=References(trusted=where.trusted_ref))

    def _given(self, intent: Intent) -> GivenBaseline | None:
        return None if self._baseline is None else given_baseline(self._baseline, self._where.paths, trusted=intent.trusted)

    def _current(self, intent: Intent) -> CurrentState | None:
        access = self._where.access
        if access.current is None and access.bootstrap_server is None and access.zookeeper is None:
            return None
        with quota_reader(intent.spec, access, trusted=intent.trusted) as reader:
            current = read_state(intent.spec, reader)
            return with_leaders(current, reader) if uses_leaders(intent, None) else current

    def _write(
        self, approval: Approval, *, audit: str | Path | None = None, record_baseline: str | Path | None = None
    ) -> ApplyReport:
        if self._where.access.current is not None:
            raise UsageError("a snapshot cannot be written to: leave snapshot out to apply")
        check_guard_ids(approval.accepted)
        clock = SystemClock()
        validate_only = approval.settings.validate_only
        file = None if audit is None else AuditFile(Path(audit), command="apply", validate_only=validate_only, clock=clock)
        try:
            report, intent = self._written(approval, file, record_baseline)
        except UsageError:
            raise
        except BaseException as error:
            if file is not None:
                file.broke_off(error)
            raise
        if file is not None:
            file.ended(report)
        succeeded(report)
        if record_baseline is not None and is_clean(report):
            write_baseline(intent, report, Path(record_baseline))
        return report

    def _written(
        self, approval: Approval, file: AuditFile | None, record_baseline: str | Path | None
    ) -> tuple[ApplyReport, Intent]:
        intent = self._intent()
        access = self._where.access
        given = self._given(intent)
        if record_baseline is not None:
            check_recordable(intent, Path(record_baseline), validate_only=approval.settings.validate_only)
        if file is not None:
            who = known_principal(intent.spec, access, trusted=intent.trusted)
            file.about(intent.spec, source=intent.source(), principal=who)
        with contextlib.closing(open_cluster(intent.spec, access, trusted=intent.trusted)) as cluster:
            report = apply_manifests(
                intent, cluster, approval, dialogue=UNASKED, clock=SystemClock(), progress=LoggedProgress(), given=given
            )
        return report, intent


def manifests(
    paths: Sequence[str | Path] = (".",),
    *,
    cluster: str | None = None,
    bootstrap_server: str | None = None,
    zookeeper: str | None = None,
    command_config: str | Path | None = None,
    snapshot: str | Path | None = None,
    trusted_ref: str | None = None,
) -> ManifestCluster:
    """Choose manifests and their cluster. ``cluster`` names it where there are several. Nothing is read yet.

    The cluster is reached as its Cluster manifest sets it, or by ``bootstrap_server``, ``zookeeper`` and ``command_config`` as in
    ``connect``. A ``snapshot`` stands for it where nothing is written. ``trusted_ref`` is as the option of the commands.

    Raises ``UsageError`` for settings that exclude each other.

    >>> manifests(["quotas"], cluster="prod")
    <ManifestCluster of quotas for prod>
    """
    access = access_of(bootstrap_server, zookeeper, command_config, snapshot=snapshot)
    return ManifestCluster(Where(paths=listed("paths", paths), cluster=cluster, access=access, trusted_ref=trusted_ref))


def _server(sources: Sequence[str], intent: Intent) -> MetricServer | None:
    """The Prometheus server to read, if any. Raises ``UsageError`` for a server beside other sources."""
    named = [source for source in sources if is_prometheus(source)]
    if named and len(sources) > 1:
        raise UsageError("a Prometheus server stands alone: give one source at a time")
    if named:
        return MetricServer(address=prometheus_address(named[0]))
    return None if sources else configured_server(intent.spec, intent.trusted)
