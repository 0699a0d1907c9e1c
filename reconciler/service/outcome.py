"""How one pass of the service ended: words and counts, never entities, so that keeping one costs nothing."""

from __future__ import annotations

import enum
from collections.abc import Mapping
from dataclasses import dataclass, field

from reconciler.model import Action, ChangeStatus, DriftClass


class PassResult(enum.StrEnum):
    """The word for a whole pass.

    ``DIFFERS``: the cluster differs, and the service does not write it: it only looks, or a person has to decide.
    ``CHANGING``: the manifests changed while they were read. ``INVALID``, ``VANISHED``: nothing is written. ``CLUSTER``: it does
    not answer, or not to this. ``FAILED``: nothing was written; ``PARTIAL``: something may be.
    """

    IN_SYNC = "in_sync"
    DIFFERS = "differs"
    APPLIED = "applied"
    REFUSED = "refused"
    FAILED = "failed"
    PARTIAL = "partial"
    CLUSTER = "cluster"
    INVALID = "invalid"
    VANISHED = "vanished"
    CHANGING = "changing"

    @property
    def is_success(self) -> bool:
        """True when manifests and cluster were read and nothing was left undone that the service was told to do."""
        return self in (PassResult.IN_SYNC, PassResult.DIFFERS, PassResult.APPLIED)

    @property
    def manifests_are_good(self) -> bool:
        """True when the manifests were read and hold no error."""
        return self not in (PassResult.INVALID, PassResult.VANISHED, PassResult.CHANGING)


@dataclass(frozen=True, slots=True, kw_only=True)
class Seen:
    """What manifests and cluster showed, in numbers of entities. ``tripped``: ids of guards that nobody accepted."""

    drift: Mapping[DriftClass, int]
    planned: Mapping[Action, int]
    tripped: tuple[str, ...] = ()
    held_back: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class PassOutcome:
    """One pass. ``seen`` is absent when it did not get as far as the cluster.

    ``reason`` is the ``failure_reason`` of the error tree; ``message`` and ``details`` (one finding each, the first of many) are
    for people, escaped. ``written`` counts entities by action and status. ``again``: the very same values were written as in the
    write before, so somebody else undoes them.
    """

    result: PassResult
    reason: str | None = None
    message: str = ""
    details: tuple[str, ...] = ()
    seen: Seen | None = None
    written: Mapping[tuple[Action, ChangeStatus], int] = field(default_factory=dict)
    again: bool = False
    seconds: float = 0.0
