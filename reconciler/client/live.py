"""A live cluster over one connection: described, read, and altered behind guards.

An alteration of entities is planned first, and written when the caller asks for it.
"""

from __future__ import annotations

import contextlib
import dataclasses
import threading
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Self, TypeVar

from reconciler.client.outcomes import LoggedProgress, PlannedChange, succeeded
from reconciler.errors import UsageError
from reconciler.model import ApplyReport, CurrentState, Entity, Selector
from reconciler.ports import QuotaCluster, SystemClock
from reconciler.resolution import QuotaView
from reconciler.workflows import (
    EVERYTHING,
    UNASKED,
    Access,
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
    open_cluster,
    read_state,
)

Answer = TypeVar("Answer")


class ClusterQuotas:
    """One connection to a cluster. Use it in a ``with`` block, or call ``close``.

    Every call asks the cluster. Threads can share it: their calls take turns.
    """

    def __init__(self, cluster: QuotaCluster, target: ClusterTarget) -> None:
        """Take a cluster that ``connect`` has checked to be the right one."""
        self._cluster: QuotaCluster | None = cluster
        self._target = target
        self._turn = threading.RLock()

    def describe(self, selector: Selector = EVERYTHING) -> CurrentState:
        """Read the entities that match, with all their quotas, in one request.

        Raises ``RequestRefusedError`` or ``UnsupportedClusterError`` for a refused selector, and other ``BackendError``.
        """
        state = self._asking(lambda cluster: describe_cluster(cluster, selector))
        return dataclasses.replace(state, cluster=state.cluster.named(self._target.spec.name))

    def read(self) -> QuotaView:
        """Read everything once: ``read().answers()`` resolves the quotas of clients. Raises ``BackendError``."""
        name = self._target.spec.name
        return self._asking(lambda cluster: current_view(cluster.current_state(), source=cluster, name=name))

    def plan_alter(self, changes: Mapping[Entity, Mapping[str, str | float | None]]) -> PlannedChange:
        """Plan to set keys of entities. Nothing is written before ``apply``.

        Each entity has its keys with their values: a number per broker, or text as in manifests (``"10MiB"``). ``None`` removes a
        key, and keys without a value here stay. The cluster is read once, the guards judge all changes together
        (``too-many-changes``, too), and one request carries up to 10,000 keys. An entity in the scope of ``connect``'s manifests
        trips guard ``managed-entity``. Raises ``UsageError`` for values that Kafka would refuse, and ``BackendError``.

        >>> with connect("b1:9092") as quotas:
        ...     reports = entity(user="reports")
        ...     change = quotas.plan_alter({reports: {"consumer_byte_rate": "10MB", "request_percentage": None}})
        >>> [(str(change.entity), key.key, key.before, key.after) for change in change.plan.changes for key in change.keys]
        [('user=reports', 'consumer_byte_rate', None, 10000000.0)]
        >>> change.plan.notes
        ('request_percentage is not set for user=reports. Nothing to delete.',)
        """
        requests = tuple(_request(entity, values) for entity, values in changes.items())
        state = self._asking(lambda cluster: read_state(self._target.spec, cluster))
        return PlannedChange(
            plan=alter_plan(requests, state, Approval(), target=self._target, clock=SystemClock()),
            warnings=tuple(f"{entity}: {message}" for entity in changes for _, message in name_warnings(entity)),
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
                cluster, requests, approval, target=self._target, dialogue=UNASKED, clock=SystemClock(), progress=LoggedProgress()
            )

        return succeeded(self._asking(write))

    def _asking(self, ask: Callable[[QuotaCluster], Answer]) -> Answer:
        with self._turn:
            if self._cluster is None:
                raise UsageError("this connection is closed. Connect again")
            return ask(self._cluster)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def _request(entity: Entity, values: Mapping[str, str | float | None]) -> AlterRequest:
    add = {key: value for key, value in values.items() if value is not None}
    return make_alter_request(entity, add=add, delete=values.keys() - add.keys())


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
    ...     print(quotas.describe().cluster.name)
    prod
    """
    access = access_of(bootstrap_server, zookeeper, command_config)
    target = load_target(listed("paths", paths), cluster=cluster, trusted_ref=trusted_ref)
    connected = open_cluster(target.spec, access, trusted=target.trusted)
    with contextlib.ExitStack() as undo:
        undo.callback(connected.close)
        check_cluster_id(target.spec, connected.identity())
        undo.pop_all()
    return ClusterQuotas(connected, target)


def access_of(
    bootstrap_server: str | None, zookeeper: str | None, command_config: str | Path | None, *, snapshot: str | Path | None = None
) -> Access:
    """Return the way to a cluster. Raises ``UsageError`` for settings that exclude each other."""
    places = [source for source in (bootstrap_server, zookeeper, snapshot) if source is not None]
    if len(places) > 1 or (snapshot is not None and command_config is not None):
        msg = "give one of bootstrap_server, zookeeper and snapshot. The argument command_config is for the first two"
        raise UsageError(msg)
    return Access(
        bootstrap_server=bootstrap_server,
        zookeeper=zookeeper,
        command_config=None if command_config is None else str(command_config),
        current=None if snapshot is None else str(snapshot),
    )


def listed(name: str, values: Sequence[str | Path]) -> tuple[str, ...]:
    """The values as text. Raises ``UsageError`` for a single one."""
    if isinstance(values, str):
        # A string is a sequence of strings, too, and would be read letter by letter.
        raise UsageError(f"{name} is a list: [{values!r}]")
    return tuple(map(str, values))
