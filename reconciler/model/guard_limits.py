"""The limits of the guards of one cluster; each knows where the manifest sets it, which is no part of its value."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from reconciler.model.source import Span


@dataclass(frozen=True, slots=True, kw_only=True)
class VolumeLimit:
    """How many entities, in percent of those in scope and as a number. ``set_in`` is absent for the built-in limit.

    ``minimum``: the percentage applies only while more entities than this are in scope; of three entities, one is a third.
    """

    percent: float
    count: int
    minimum: int = 0
    set_in: Span | None = field(default=None, compare=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class ReductionLimit:
    """A new value below ``factor`` times the current one is a large reduction; ``keys`` has other factors for some keys."""

    factor: float = 0.5
    keys: Mapping[str, float] = field(default_factory=dict)
    set_in: Span | None = field(default=None, compare=False)

    def of(self, key: str) -> float:
        """The factor for one key."""
        return self.keys.get(key, self.factor)


@dataclass(frozen=True, slots=True, kw_only=True)
class CountLimit:
    """How many entities; ``None``: the guard warns and never refuses."""

    count: int | None = None
    set_in: Span | None = field(default=None, compare=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class GuardLimits:
    """``spec.guards`` of a Cluster document. Removals trip above either of their two numbers, changes above both."""

    too_many_removals: VolumeLimit = field(default_factory=lambda: VolumeLimit(percent=10.0, count=5, minimum=5))
    too_many_changes: VolumeLimit = field(default_factory=lambda: VolumeLimit(percent=30.0, count=10))
    large_reduction: ReductionLimit = field(default_factory=ReductionLimit)
    unknown_current_keys: CountLimit = field(default_factory=CountLimit)
