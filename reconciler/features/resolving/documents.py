"""Effective quotas as documents: one answer, and a list.

A key that is neither in ``quotas`` nor in ``unknown`` is unlimited. In a bucket, and in an entity that is asked about, ``null``
is any name that no quota names.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from reconciler.documents import VALUES, Document, row
from reconciler.resolution import KeyAnswer, QuotaView, Resolution


@dataclass(frozen=True, slots=True, kw_only=True)
class ResolveAnswer:
    """The limits of one client in a state."""

    view: QuotaView
    resolution: Resolution
    more_notes: tuple[str, ...] = ()

    @property
    def notes(self) -> tuple[str, ...]:
        """Sentences for people about what the answer covers and what it does not."""
        return (*self.view.notes, *self.more_notes)


@dataclass(frozen=True, slots=True, kw_only=True)
class ResolveList:
    """The limits of many clients in a state."""

    view: QuotaView
    notes: tuple[str, ...]
    """Sentences for people about what the answers cover and what they do not."""
    resolutions: tuple[Resolution, ...] = ()
    """One answer for each client."""


_CODEC: Final = VALUES.extended(
    {
        KeyAnswer: row("value source level bucket profile? declared=unit? expiry? overridden?"),
        QuotaView: row("state=kind cluster observed"),
        Resolution: row("entity quotas unknown? ladder?"),
        ResolveAnswer: row("*view *resolution notes"),
        ResolveList: row("*view notes resolutions"),
    }
)
RESOLVE: Final = Document(cls=ResolveAnswer, name="resolve", title="kafka-quotas resolve", codec=_CODEC)
RESOLVE_LIST: Final = Document(cls=ResolveList, name="resolve-list", title="kafka-quotas resolve, many clients", codec=_CODEC)
