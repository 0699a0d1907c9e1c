"""The shape of a stage, and what it sees: it is entered only where the manifests declare something for it."""

from __future__ import annotations

import datetime
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple, TypeAlias

from reconciler.manifest.documents import BudgetRule, ClientQuotasDocument, ValueLimit
from reconciler.model import ClusterSpec, DesiredEntity, Entity, Finding, Message, QuotaProfile

Entities: TypeAlias = dict[Entity, DesiredEntity]


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterManifests:
    """All that decides what one cluster shall have."""

    documents: Sequence[ClientQuotasDocument]
    """Those for this cluster, in their order."""
    cluster: ClusterSpec
    limits: Sequence[ValueLimit] = ()
    profiles: Sequence[Mapping[str, QuotaProfile]] = ()
    """Those of the repository, then those of the cluster."""
    budgets: Sequence[BudgetRule] = ()
    at: datetime.datetime | None = None
    """The moment that decides about values that expire. ``None``: before every expiry."""


def _without_notes(_: Entities) -> Iterable[Message]:
    return ()


class Stage(NamedTuple):
    """A step from entries to the desired state."""

    applies: Callable[[ClusterManifests, Entities], bool]
    run: Callable[[ClusterManifests, Entities], Iterable[Finding]]
    """Changes the entities, and returns what is wrong."""
    notes: Callable[[Entities], Iterable[Message]] = _without_notes
    """What a reader of the values has to know about them."""
