"""A live cluster over one connection: described, resolved, and altered behind guards.

An alteration of entities is planned first, and written when the caller asks for it.
"""

from __future__ import annotations

import contextlib
import logging
import threading
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import Final, Self, TypeVar

from reconciler.apply import ApplySettings
from reconciler.client.outcomes import Description, shown_source
from reconciler.client.recorded import RecordedQuotas, access_of, listed
from reconciler.errors import FrozenError, GuardRefusedError, NotAppliedError, RefusedError, StalePlanError, UsageError
from reconciler.model import ApplyReport, ApplyResult, ClusterIdentity, Entity, GuardStatus, Plan, Selector
from reconciler.ports import NoProgress, QuotaCluster, SystemClock
from reconciler.resolution import Resolution, ViewKind
from reconciler.text import count_of
from reconciler.workflows import (
    EVERYTHING,
    UNASKED,
    AlterRequest,
    Approval,
    ClusterTarget,
    alter_entities,
    alter_plan,
    check_cluster_id,
    current_view,
    describe_cluster,
    load_target,
    make_alter_request,
    name_warnings,
    read_state,
)
from reconciler.workflows import open_cluster as open_connection

Answer = TypeVar("Answer")
_log: Final = logging.getLogger("reconciler.client")


class ClusterQuotas:
    """One connection to a cluster. Use it in a ``with`` block, or call ``close``.

    Every call asks the cluster. Threads can share it: their calls take turns.
    """

    def __init__(self, cluster: QuotaCluster, target: ClusterTarget) -> None:
        """Take a cluster that ``connect`` has checked to be the right one."""
        self._cluster: QuotaCluster | None = cluster
        self._target = target
        self._turn = threading.RLock()
        self._identity = self._named(cluster.identity())

    @property
    def cluster(self) -> ClusterIdentity:
        """The cluster's name in the manifests, its id and version, as far as they are known."""
        return self._identity

    def describe(self, selector: Selector = EVERYTHING) -> Description:
        """Read the entities that match, with all their quotas, in one request.

        Raises ``RequestRefusedError`` or ``UnsupportedClusterError`` for a refused selector, and other ``BackendError``.
        """
        state = self._asking(lambda cluster: describe_cluster(cluster, selector))
        return Description(
            kind=ViewKind.CLUSTER, cluster=self._named(state.cluster), observed=state.observed, entities=state.entities
        )

    def read(self) -> RecordedQuotas:
        """Read everything once, for many questions. Raises ``BackendError``."""
        name = self._target.spec.name
        return RecordedQuotas(self._asking(lambda cluster: current_view(cluster.current_state(), source=cluster, name=name)))

    def resolve(self, client: Entity, *, include_overrides: bool = False, explain: bool = False, members: int = 0) -> Resolution:
        """Resolve the quotas of one client: for each key the value, the entity that sets it, its level (1 to 8), and its bucket.

        ``client`` is ``entity(user="alice", client_id="app")``, or an ``ip``. Without ``client_id`` it sends none.
        ``DEFAULT`` stands for any name that no quota names. A key that is neither in ``quotas`` nor in ``unknown`` of the answer
        is unlimited. ``include_overrides`` adds the quotas that each winner overrides, ``explain`` all levels, and ``members=N``
        up to N clients of each bucket.

        This reads the whole cluster. Raises ``UsageError`` for an entity that no client can be, and ``BackendError``.

        >>> with connect("b1:9092") as quotas:
        ...     answer = quotas.resolve(entity(user="payments", client_id="app"), include_overrides=True)
        >>> limit = answer.quotas["producer_byte_rate"]
        >>> limit.value, str(limit.source), limit.level, limit.bucket
        (20000000.0, 'user=payments', 3, {'user': 'payments'})
        >>> [str(hidden.entity) for hidden in limit.overridden]
        ['user=<default>']
        """
        return self.read().resolve(client, include_overrides=include_overrides, explain=explain, members=members)

    def plan_alter(
        self, target: Entity, *, add: Mapping[str, str | float] | None = None, delete: Collection[str] = ()
    ) -> PlannedAlteration:
        """Plan to set ``add`` and remove ``delete`` of one entity. Nothing is written before ``apply``.

        A value is a number per broker, or text as in manifests (``"10MiB"``). An entity in the scope of ``connect``'s manifests
        trips guard ``managed-entity``. Raises ``UsageError`` for values that Kafka would refuse, and ``BackendError``.

        >>> with connect("b1:9092") as quotas:
        ...     reports = entity(user="reports")
        ...     change = quotas.plan_alter(reports, add={"consumer_byte_rate": "10MB"}, delete=["request_percentage"])
        >>> change
        <PlannedAlteration of user=reports: consumer_byte_rate not set -> 10000000.0>
        >>> change.plan.notes
        ('request_percentage is not set for user=reports. Nothing to delete.',)
        """
        if isinstance(delete, str):
            delete = (delete,)
        return self._planned((make_alter_request(target, add=add, delete=delete),))

    def plan_alter_many(self, targets: Iterable[tuple[Entity, Mapping[str, str | float | None]]]) -> PlannedAlteration:
        """Plan to set the keys of many entities. Nothing is written before its ``apply``.

        A row has an entity and its keys with their values, as in ``plan_alter``. ``None`` removes a key. Keys that a row does not
        name stay. The cluster is read once, the guards judge all changes together (``too-many-changes``, too), and one
        request carries up to 10,000 keys. Raises as ``plan_alter``, and ``UsageError`` for an entity in two rows.

        >>> with connect("b1:9092") as quotas:
        ...     rows = [(entity(user=f"batch-{number}"), {"producer_byte_rate": "1MiB"}) for number in range(3)]
        ...     change = quotas.plan_alter_many(rows)
        >>> change
        <PlannedAlteration of 3 entities: 3 to create, 0 to update, 0 to delete>
        """
        requests: dict[Entity, AlterRequest] = {}
        for target, values in targets:
            if target in requests:
                raise UsageError(f"{target} stands in two rows. Give each entity one row with all its keys")
            add = {key: value for key, value in values.items() if value is not None}
            requests[target] = make_alter_request(target, add=add, delete=values.keys() - add.keys())
        return self._planned(tuple(requests.values()))

    def _planned(self, requests: Sequence[AlterRequest]) -> PlannedAlteration:
        state = self._asking(lambda cluster: read_state(self._target.spec, cluster))
        plan = alter_plan(requests, state, Approval(), target=self._target, clock=SystemClock())
        return PlannedAlteration(
            entities=tuple(request.entity for request in requests),
            plan=plan,
            warnings=tuple(
                message if len(requests) == 1 else f"{request.entity}: {message}"
                for request in requests
                for _, message in name_warnings(request.entity)
            ),
            write=partial(self._write, requests),
        )

    def close(self) -> None:
        """Close the connection. Safe to call twice."""
        with self._turn:
            cluster, self._cluster = self._cluster, None
            if cluster is not None:
                cluster.close()

    def _write(self, requests: Sequence[AlterRequest], approval: Approval) -> ApplyReport:
        def write(cluster: QuotaCluster) -> ApplyReport:
            return alter_entities(
                cluster,
                requests,
                approval,
                target=self._target,
                dialogue=UNASKED,
                clock=SystemClock(),
                progress=LoggedProgress(),
            )

        return self._asking(write)

    def _asking(self, ask: Callable[[QuotaCluster], Answer]) -> Answer:
        with self._turn:
            if self._cluster is None:
                msg = "this connection is closed. Connect again"
                raise UsageError(msg)
            return ask(self._cluster)

    def _named(self, identity: ClusterIdentity) -> ClusterIdentity:
        return identity.named(self._target.spec.name)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.close()

    def __repr__(self) -> str:
        closed = ", closed" if self._cluster is None else ""
        return f"<ClusterQuotas of {shown_source(ViewKind.CLUSTER, self._identity, None)}{closed}>"


def connect(
    bootstrap_server: str | None = None,
    *,
    zookeeper: str | None = None,
    command_config: str | Path | None = None,
    paths: Sequence[str | Path] = (),
    cluster: str | None = None,
    trusted_ref: str | None = None,
) -> ClusterQuotas:
    """Connect to a cluster: by ``bootstrap_server`` (``host:port,...``), or as the manifests in ``paths`` set it.

    ``zookeeper`` (``host:port,.../chroot``) is for clusters up to Kafka 3.9 that keep their quotas there. ``command_config`` is
    Kafka's ``client.properties``, the only place for secrets. ``cluster`` names a Cluster manifest of ``paths`` or of the current
    folder. Its ``clusterId`` is compared at once, and its scope, protection and guards apply to every alteration. With
    ``trusted_ref`` they come from that git reference.

    Raises ``ManifestError``, ``UsageError``, ``FileAccessError``, ``WrongClusterError``, ``GitError`` or ``UntrustedError`` for
    the arguments, and ``BackendError`` when the cluster does not answer or refuses the login.

    >>> with connect(paths=["quotas"], cluster="prod") as quotas:
    ...     print(quotas.cluster.name)
    prod
    """
    access = access_of(bootstrap_server, zookeeper, command_config)
    target = load_target(listed("paths", paths), cluster=cluster, trusted_ref=trusted_ref)
    connected = open_connection(target.spec, access, trusted=target.trusted)
    with contextlib.ExitStack() as undo:
        undo.callback(connected.close)
        check_cluster_id(target.spec, connected.identity())
        opened = ClusterQuotas(connected, target)
        undo.pop_all()
    return opened


class LoggedProgress(NoProgress):
    """Logs how far a write is to ``reconciler.client``, at INFO. Nothing is ever printed."""

    def step(self, message: str) -> None:
        """One line."""
        if message:
            _log.info("%s", message)


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class PlannedAlteration:
    """What ``plan_alter`` or ``plan_alter_many`` would write. Nothing happens before ``apply``: look at ``plan`` first.

    ``write``: what ``apply`` and ``validate`` call.
    """

    entities: tuple[Entity, ...]
    """What is altered, in the order of the request."""
    plan: Plan
    """The values before and after, guards, and notes. ``plan.changes`` is empty when nothing changes."""
    warnings: tuple[str, ...]
    """Why the name is probably a mistake: a literal ``<default>``, blanks, percent encoding."""
    write: Callable[[Approval], ApplyReport]

    def validate(self) -> ApplyReport:
        """Let the cluster check the change, without writing. Every guard counts as accepted here.

        Raises ``StalePlanError`` when the cluster no longer has what the plan changes, and other ``RefusedError``.
        """
        every_guard = tuple(guard.id for guard in self.plan.guards)
        return succeeded(self.write(Approval(accepted=every_guard, settings=ApplySettings(validate_only=True))))

    def apply(self, *, accept: Sequence[str] = ()) -> ApplyReport:
        """Write the change, and read it back until every broker shows it. ``accept`` names the guards that may be passed.

        The cluster is read again first. Returns only when all is done and verified, or there was nothing to do.

        Raises ``GuardRefusedError`` for guards that were not accepted, and ``StalePlanError`` when the cluster no longer has what
        the plan changes. Raises other ``RefusedError``, ``UsageError`` for an unknown guard, and ``BackendError``. Nothing was
        written in these cases. Raises ``NotAppliedError``, whose report has the outcome of the change.

        >>> with connect("b1:9092") as quotas:
        ...     change = quotas.plan_alter(entity(user=DEFAULT), add={"producer_byte_rate": "6MB"})
        ...     print([guard.id for guard in change.plan.tripped])
        ...     report = change.apply(accept=["default-entity"])
        ['default-entity']
        >>> report.result, report.verified
        (<ApplyResult.DONE: 'done'>, True)
        """
        if isinstance(accept, str):
            accept = (accept,)
        return succeeded(self.write(Approval(accepted=tuple(accept), expected_digest=self.plan.digest)))

    def __repr__(self) -> str:
        tripped = "".join(f", guard {guard.id} needs acceptance" for guard in self.plan.tripped)
        tripped += "".join(f", warning: {warning}" for warning in self.warnings)
        return f"<PlannedAlteration of {self._summary()}{tripped}>"

    def _summary(self) -> str:
        if len(self.entities) != 1:
            counts = self.plan.summary
            to_do = f"{counts.create:,} to create, {counts.update:,} to update, {counts.delete:,} to delete"
            return f"{count_of(len(self.entities), 'entity', 'entities')}: {to_do}"
        keys = [f"{key.key} {_shown(key.before)} -> {_shown(key.after)}" for change in self.plan.changes for key in change.keys]
        return f"{self.entities[0]}: {', '.join(keys) or 'nothing to do'}"


def succeeded(report: ApplyReport) -> ApplyReport:
    """The report of a run that did what it was asked to. Raises for any other, so that no script goes on by mistake."""
    if report.result in (ApplyResult.DONE, ApplyResult.NOTHING_TO_DO):
        return report
    message = report.message or "the change was not written"
    if report.result is not ApplyResult.REFUSED:
        raise NotAppliedError(message, report=report)
    if report.failure_reason == StalePlanError.failure_reason:
        raise StalePlanError(message)
    for kind in (FrozenError, GuardRefusedError):
        if report.failure_reason == kind.failure_reason:
            raise kind(message, guard_ids=[guard.id for guard in report.guards if guard.status is GuardStatus.NEEDS_ACCEPTANCE])
    raise RefusedError(message)


def _shown(value: float | None) -> str:
    return "not set" if value is None else repr(value)
