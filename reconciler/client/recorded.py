"""One state in memory: described and resolved as often as needed, without asking the cluster."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property
from pathlib import Path

from reconciler.client.outcomes import Description, Differences, shown_view
from reconciler.errors import UsageError
from reconciler.model import ClusterIdentity, CurrentState, Entity, Observed, ObservedFrom, Selector
from reconciler.ports import SystemClock
from reconciler.resolution import EffectiveQuotas, QuotaView, Resolution, ResolveOptions
from reconciler.text import count_of
from reconciler.workflows import (
    EVERYTHING,
    MANIFESTS,
    PLANNED,
    Access,
    Sources,
    Where,
    current_view,
    describe_cluster,
    difference_between,
    require_client,
    resolve_known,
    snapshot_reader,
)


class RecordedQuotas:
    """All quotas of a cluster at one moment, of a snapshot, or of manifests. Threads can share it.

    It comes from ``open_snapshot``, ``open_manifests``, ``after_plan``, or ``ClusterQuotas.read``.
    """

    def __init__(self, view: QuotaView) -> None:
        self._view = view

    @property
    def view(self) -> QuotaView:
        """The state itself."""
        return self._view

    @property
    def cluster(self) -> ClusterIdentity:
        """The cluster, as far as it is known."""
        return self._view.cluster

    @property
    def observed(self) -> Observed | None:
        """The moment (UTC) and the place of reading. ``None`` for manifests alone."""
        return self._view.observed

    @property
    def notes(self) -> tuple[str, ...]:
        """The assumptions of every answer, and what this state does not show."""
        return self._view.notes

    def describe(self, selector: Selector = EVERYTHING) -> Description:
        """Return the entities that match, with all their quotas.

        Raises ``RequestRefusedError`` or ``UnsupportedClusterError`` for a selector that Kafka does not take.
        """
        described = describe_cluster(_Held(self._view), selector)
        view = self._view
        return Description(kind=view.kind, cluster=view.cluster, observed=view.observed, entities=described.entities)

    def resolve(self, client: Entity, *, include_overrides: bool = False, explain: bool = False, members: int = 0) -> Resolution:
        """Resolve the quotas of one client, as ``ClusterQuotas.resolve`` does."""
        return self._answer(client, ResolveOptions(include_overrides=include_overrides, explain=explain, members=members))

    def resolve_each(
        self, clients: Iterable[Entity], *, include_overrides: bool = False, explain: bool = False, members: int = 0
    ) -> Iterator[Resolution]:
        """Resolve many clients, in their order.

        Raises ``UsageError`` when the iterator reaches an entity that no client can be.

        >>> state = open_snapshot("now.json")
        >>> for answer in state.resolve_each([entity(user="payments"), entity(user="other")]):
        ...     limit = answer.quotas.get("producer_byte_rate")
        ...     print(answer.entity, limit.value if limit else "unlimited")
        user=payments 20000000.0
        user=other 5000000.0
        """
        wanted = ResolveOptions(include_overrides=include_overrides, explain=explain, members=members)
        return (self._answer(client, wanted) for client in clients)

    def resolve_known(self, *, include_overrides: bool = False, explain: bool = False, members: int = 0) -> Iterator[Resolution]:
        """Resolve every client that the state names."""
        return resolve_known(self._view, ResolveOptions(include_overrides=include_overrides, explain=explain, members=members))

    @cached_property
    def _answers(self) -> EffectiveQuotas:
        # Two threads may both build it, and then one of the two is kept.
        return self._view.answers()

    def _answer(self, client: Entity, wanted: ResolveOptions) -> Resolution:
        try:
            return self._answers.answer(client, wanted)
        except ValueError:
            require_client(client)  # Raises a UsageError with the reason.
            raise

    def __repr__(self) -> str:
        return f"<RecordedQuotas of {shown_view(self._view)}: {count_of(len(self._view.entities), 'entity', 'entities')}>"


def open_snapshot(path: str | Path) -> RecordedQuotas:
    """Open a state that ``kafka-quotas export --snapshot`` wrote.

    Raises ``FileAccessError`` when it cannot be read, and ``ManifestError`` when it is not a snapshot.

    >>> open_snapshot("now.json").describe(matching(ip=ANY)).entities
    {}
    """
    reader = snapshot_reader(str(path))
    return RecordedQuotas(current_view(reader.current_state(), source=reader))


def open_manifests(paths: Sequence[str | Path] = (".",), *, cluster: str | None = None) -> RecordedQuotas:
    """Read what manifests declare for one cluster, as if that were all. ``cluster`` names it where there are several.

    Raises ``ManifestError`` with its findings, and ``UsageError`` when it is not clear which cluster is meant.

    >>> answer = open_manifests(["quotas"]).resolve(entity(user="payments", client_id="settlement"))
    >>> answer.quotas["producer_byte_rate"].value
    20971520.0
    """
    return RecordedQuotas(Sources(Where(paths=listed("paths", paths), cluster=cluster)).view(MANIFESTS))


def after_plan(
    paths: Sequence[str | Path] = (".",),
    *,
    cluster: str | None = None,
    snapshot: str | Path | None = None,
    bootstrap_server: str | None = None,
    zookeeper: str | None = None,
    command_config: str | Path | None = None,
) -> RecordedQuotas:
    """Return what a cluster will have once the manifests are applied. What they do not own stays, and nothing is written.

    The cluster is read once, from ``snapshot``, or as ``connect`` reaches it. Raises ``ManifestError``, ``UsageError``,
    ``FileAccessError`` for a snapshot that cannot be read, and ``BackendError``.

    >>> before, after = open_snapshot("now.json"), after_plan(["quotas"], snapshot="now.json")
    >>> for moved in compare(before, after).clients:
    ...     for effect in moved.effects:
    ...         print(effect.client, effect.key, effect.direction)
    user=payments client-id=(any other) producer_byte_rate loosens
    """
    access = access_of(bootstrap_server, zookeeper, command_config, snapshot=snapshot)
    return RecordedQuotas(Sources(Where(paths=listed("paths", paths), cluster=cluster, access=access)).view(PLANNED))


def compare(before: RecordedQuotas, after: RecordedQuotas, clients: Iterable[Entity] | None = None) -> Differences:
    """Compare the limits of ``clients``, in their order, or (``None``) of all that either state names.

    Raises ``UsageError`` for an entity that no client can be.
    """
    compared = difference_between(before.view, after.view, clients)
    result = compared.comparison
    return Differences(clients=result.clients, unknown=result.unknown, left_out=result.left_out, notes=compared.notes)


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


class _Held:
    """A view as something to read. Manifests alone were never observed, so the time is now."""

    def __init__(self, view: QuotaView) -> None:
        self._view = view

    def current_state(self) -> CurrentState:
        observed = self._view.observed or Observed(at=SystemClock().now(), origin=ObservedFrom.SNAPSHOT)
        return CurrentState(cluster=self._view.cluster, observed=observed, entities=self._view.entities)
