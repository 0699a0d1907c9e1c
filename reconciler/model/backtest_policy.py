"""What a backtest must not find for a change to pass, and how much history its verdicts need: ``spec.backtest`` of a cluster."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from reconciler.model.backtest import Verdict
from reconciler.model.finding import Span
from reconciler.model.selector import Selector


@dataclass(frozen=True, slots=True, kw_only=True)
class OwnerChoice:
    """Owners by name, or by labels that the Repository document gives them, of which an owner must have all."""

    names: tuple[str, ...] = ()
    labels: Mapping[str, str] | None = None

    def chooses(self, name: str, labels: Mapping[str, str]) -> bool:
        """True for an owner of this name with these labels."""
        if self.labels is not None:
            return all(labels.get(label) == value for label, value in self.labels.items())
        return name in self.names


@dataclass(frozen=True, slots=True, kw_only=True)
class FailRule:
    """Buckets that may not be: all of what is given must hold. ``None`` and empty: whatever it is."""

    verdicts: tuple[Verdict, ...]
    owners: OwnerChoice | None = None
    match: Selector | None = None
    """Of a client in the bucket, as the entity of its user and client id."""
    keys: tuple[str, ...] = ()
    seconds: int = 1
    """The fewest seconds over the limit; a verdict that knows of none is not asked for them."""
    unchanged: bool = False
    """Buckets that the change leaves as they are, too."""
    reason: str | None = None
    span: Span | None = field(default=None, compare=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class HistoryNeeds:
    """How much a history must show before a bucket in it is called clear."""

    hours: float = 24.0
    """From the first to the last request. A day has its own peaks: a night without traffic clears no limit."""
    coverage_percent: float = 95.0
    """Of the minutes of the history, those that are in no hole of a broker's recording."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BacktestPolicy:
    """``spec.backtest``. Without rules nothing fails but by ``--fail-on``."""

    history: HistoryNeeds = field(default_factory=HistoryNeeds)
    fail: tuple[FailRule, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class KnownOwner:
    """An owner of the Repository document, as far as rules ask: its labels, and whose entities it has."""

    name: str
    labels: Mapping[str, str] = field(default_factory=dict)
    entities: tuple[Selector, ...] = ()
