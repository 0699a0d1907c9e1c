"""One state in memory: resolved as often as needed, without asking the cluster."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cached_property
from pathlib import Path

from reconciler.errors import UsageError
from reconciler.model import Entity, display_name
from reconciler.resolution import EffectiveQuotas, QuotaView, Resolution
from reconciler.text import count_of
from reconciler.workflows import Access, require_client, resolve_known


class QuotaState:
    """All quotas of a cluster at one moment, of a snapshot, or of manifests. Threads can share it.

    It comes from ``ClusterQuotas.read`` or ``ManifestCluster.state``.
    """

    def __init__(self, view: QuotaView) -> None:
        """Take a state that was read."""
        self._view = view

    @property
    def view(self) -> QuotaView:
        """The state itself: the cluster, when it was read, its entities, and the assumptions of every answer."""
        return self._view

    def resolve(self, client: Entity, *, explain: bool = False) -> Resolution:
        """Resolve the quotas of one client: for each key the value, the entity that sets it, its level (1 to 8), and its bucket.

        ``client`` is ``entity(user="alice", client_id="app")``, or an ``ip``. Without ``client_id`` it sends none.
        ``DEFAULT`` stands for any name that no quota names. A key that is neither in ``quotas`` nor in ``unknown`` of the answer
        is unlimited. ``explain`` adds the quotas that each winner overrides, and all levels. Raises ``UsageError`` for an entity
        that no client can be.

        >>> with connect("b1:9092") as quotas:
        ...     state = quotas.read()
        >>> limit = state.resolve(entity(user="payments", client_id="app"), explain=True).quotas["producer_byte_rate"]
        >>> limit.value, str(limit.source), limit.level, limit.bucket
        (20000000.0, 'user=payments', 3, {'user': 'payments'})
        >>> [str(hidden.entity) for hidden in limit.overridden]
        ['user=<default>']
        """
        try:
            return self._answers.answer(client, explain=explain)
        except ValueError:
            require_client(client)  # Raises a UsageError with the reason.
            raise

    def resolve_known(self) -> Iterator[Resolution]:
        """Resolve every client that the state names."""
        return resolve_known(self._view)

    @cached_property
    def _answers(self) -> EffectiveQuotas:
        # Two threads may both build it, and then one of the two is kept.
        return self._view.answers()

    def __repr__(self) -> str:
        name = self._view.cluster.name or self._view.cluster.id
        named = f" {display_name(name)}" if name else ""
        return f"<QuotaState of {self._view.kind.value}{named}: {count_of(len(self._view.entities), 'entity', 'entities')}>"


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
