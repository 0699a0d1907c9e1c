"""A live cluster over one connection: described, resolved, and altered behind guards."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Collection, Mapping, Sequence
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import Self, TypeVar

from reconciler.client.alteration import LoggedProgress, PlannedAlteration
from reconciler.client.description import Description, shown_source
from reconciler.client.recorded import RecordedQuotas, access_of
from reconciler.errors import UsageError
from reconciler.model import ApplyReport, ClusterIdentity, Entity, Plan, Selector
from reconciler.ports import QuotaCluster
from reconciler.resolution import Resolution, ViewKind
from reconciler.workflows import (
    EVERYTHING,
    AlterRequest,
    AlterTarget,
    Approval,
    SystemClock,
    alter_entity,
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


class ClusterQuotas:
    """One connection to a cluster; use it in a ``with`` block, or call ``close``.

    Every call asks the cluster anew. Threads may share it: their calls take turns.
    """

    def __init__(self, cluster: QuotaCluster, target: AlterTarget) -> None:
        """For ``connect``, which checks that it is the right cluster."""
        self._cluster: QuotaCluster | None = cluster
        self._target = target
        self._turn = threading.RLock()
        self._identity = self._named(cluster.identity())

    @property
    def cluster(self) -> ClusterIdentity:
        """Which cluster this is: its name in the manifests, if any, its id, and its version as far as it is known."""
        return self._identity

    def describe(self, selector: Selector = EVERYTHING) -> Description:
        """The entities that match, with all their quotas; without a selector everything, in one request.

        Raises ``RequestRefusedError`` or ``UnsupportedClusterError`` for a selector that Kafka does not take, with its words, and
        other ``BackendError``.
        """
        state = self._asking(lambda cluster: describe_cluster(cluster, selector))
        return Description(
            kind=ViewKind.CLUSTER, cluster=self._named(state.cluster), observed=state.observed, entities=state.entities
        )

    def read(self) -> RecordedQuotas:
        """Everything the cluster has now, for many questions without asking the cluster again. Raises ``BackendError``."""
        name = self._target.spec.name
        return RecordedQuotas(self._asking(lambda cluster: current_view(cluster.current_state(), source=cluster, name=name)))

    def resolve(self, client: Entity, *, include_overrides: bool = False, explain: bool = False, members: int = 0) -> Resolution:
        """The effective quotas of one client: per key the value, the entity that sets it, its level (1 to 8), and its bucket.

        ``client`` names who connects: ``entity(user="alice", client_id="app")``, or an ``ip``. Without ``client_id`` (or with an
        empty one) it is a client that sends none, which default client ids do not reach; ``DEFAULT`` stands for any name that
        no quota names. A key that is neither in ``quotas`` nor in ``unknown`` of the answer is unlimited. ``include_overrides``
        adds what each winner hides, ``explain`` all levels, and ``members`` so many of the clients that share each bucket.

        This reads the whole cluster; for many questions take ``read`` first. Raises ``UsageError`` for an entity that no client
        can be, and ``BackendError``.

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
        """What setting ``add`` and removing ``delete`` would change of one entity; nothing is written before its ``apply``.

        A value is a number per broker, in the unit of the key, or text as in manifests (``"10MiB"``). Where ``connect`` was given
        manifests, an entity inside their scope trips the guard ``managed-entity``. Raises ``UsageError`` for what Kafka would
        refuse, before the cluster is asked, and ``BackendError``.

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
        request = make_alter_request(target, add=add, delete=delete)
        state = self._asking(lambda cluster: read_state(self._target.spec, cluster))
        plan = alter_plan(request, state, Approval(), target=self._target, clock=SystemClock())
        warnings = [message for _, message in name_warnings(target)]
        return PlannedAlteration(target, plan, partial(self._write, request), warnings=warnings)

    def close(self) -> None:
        """Give the connection back; safe to call twice."""
        with self._turn:
            cluster, self._cluster = self._cluster, None
            if cluster is not None:
                cluster.close()

    def _write(self, request: AlterRequest, approval: Approval) -> ApplyReport:
        def write(cluster: QuotaCluster) -> ApplyReport:
            return alter_entity(
                cluster,
                request,
                approval,
                target=self._target,
                confirm=lambda _plan: True,
                preview=_not_shown,
                clock=SystemClock(),
                progress=LoggedProgress(),
            )

        return self._asking(write)

    def _asking(self, ask: Callable[[QuotaCluster], Answer]) -> Answer:
        with self._turn:
            if self._cluster is None:
                msg = "this connection is closed; connect again"
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
    Kafka's ``client.properties``, the only place for secrets. With ``paths`` (or ``cluster``, the name of a Cluster document, of
    the current folder then) the document's ``clusterId`` is compared at once, and its scope, protection and guards apply to every
    alteration; with ``trusted_ref`` they come from that git reference. Raises ``ManifestError``, ``UsageError``,
    ``FileAccessError``, ``WrongClusterError``, ``GitError`` or ``UntrustedError`` for what was given, and ``BackendError`` when
    the cluster does not answer, or not to us.

    >>> with connect(paths=["quotas"], cluster="prod") as quotas:
    ...     print(quotas.cluster.name)
    prod
    """
    if isinstance(paths, str):
        msg = f"paths is a list of paths: [{paths!r}]"
        raise UsageError(msg)
    access = access_of(bootstrap_server, zookeeper, command_config)
    target = load_target([str(path) for path in paths], cluster=cluster, trusted_ref=trusted_ref)
    connected = open_connection(target.spec, access, trusted=target.trusted)
    with contextlib.ExitStack() as undo:
        undo.callback(connected.close)
        check_cluster_id(target.spec, connected.identity())
        opened = ClusterQuotas(connected, target)
        undo.pop_all()
    return opened


def _not_shown(_plan: Plan) -> None:
    """Nothing to show: the plan was in the caller's hands."""
