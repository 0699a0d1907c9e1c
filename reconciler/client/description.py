"""Descriptions of quotas and differences of two states, which print as one line of any length."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from reconciler.model import ClusterIdentity, Entity, EntityName, EntityType, Observed, Quotas, display_name
from reconciler.resolution import ClientDifference, QuotaView, ViewKind
from reconciler.text import count_of


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Description:
    """Entities with all their quotas: key to value, per broker, in the unit of the key.

    Types and keys that this version does not know are among them.
    """

    kind: ViewKind
    """What was asked: a cluster, a snapshot, manifests, or a cluster after its plan."""
    cluster: ClusterIdentity
    observed: Observed | None
    """When (UTC) and from where it was read. ``None`` for manifests alone."""
    entities: Mapping[Entity, Quotas]

    def rows(self) -> list[dict[str, EntityName | float | None]]:
        """One row a quota, as tables want it: ``user``, ``client-id`` and ``ip`` (``None``: absent), ``key``, ``value``.

        A default entity stays ``DEFAULT``, so that nothing confuses it with a name. Types that Kafka does not have get columns
        of their own.

        >>> with connect("b1:9092") as quotas:
        ...     rows = quotas.describe(matching(user="payments")).rows()
        >>> rows[0]["user"], rows[0]["client-id"], rows[0]["key"], rows[0]["value"]
        ('payments', None, 'consumer_byte_rate', 40000000.0)
        """
        absent: dict[str, EntityName | float | None] = dict.fromkeys(kind.value for kind in EntityType)
        return [
            {**absent, **dict(entity.parts), "key": key, "value": value}
            for entity, quotas in sorted(self.entities.items(), key=lambda item: item[0].sort_key)
            for key, value in sorted(quotas.items())
        ]

    def __repr__(self) -> str:
        count = count_of(len(self.entities), "entity", "entities")
        return f"<Description of {shown_source(self.kind, self.cluster, self.observed)}: {count}>"


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Differences:
    """Whose limits differ between two states, in value or in the entity that sets them."""

    clients: tuple[ClientDifference, ...]
    unknown: str | None
    """Why the limits of users and client ids are not known. ``None``: they are."""
    left_out: int
    """So many more were found and are not listed."""
    notes: tuple[str, ...]

    def __repr__(self) -> str:
        if self.unknown is not None:
            return f"<Differences: {self.unknown}>"
        more = f" and {self.left_out:,} left out" if self.left_out else ""
        return f"<Differences: {count_of(len(self.clients), 'client')}{more}>"


def shown_view(view: QuotaView) -> str:
    """A state in a few words, without anything that strangers could make it print."""
    return shown_source(view.kind, view.cluster, view.observed)


def shown_source(kind: ViewKind, cluster: ClusterIdentity, observed: Observed | None) -> str:
    """The same of its parts."""
    name = cluster.name or cluster.id
    text = f"{kind.value} {display_name(name)}" if name else kind.value
    return text if observed is None else f"{text} at {observed.at:%Y-%m-%d %H:%M:%S} UTC"
