"""Recorded traffic, opened: what every form of it can tell, and how it is judged."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Protocol, runtime_checkable

from pyspark.sql import DataFrame

from reconciler.model.backtest import Coverage
from reconciler.traffic.judging.exact import ExactResult
from reconciler.traffic.judging.grouping import Grouping, Series
from reconciler.traffic.judging.outcome import Outcome
from reconciler.traffic.kernels.sampled_rate import Era, Window
from reconciler.traffic.kernels.seconds_judge import GroupVerdict


@dataclass(frozen=True, slots=True, kw_only=True)
class Facts:
    """What the traffic is and what of it can be used; the fields mean what they do in ``Provenance``."""

    source: str
    files: tuple[str, ...]
    coverage: tuple[Coverage, ...]
    requests: int
    censored: int = 0
    throttled_then: int = 0
    not_charged: Mapping[str, int] = field(default_factory=dict)
    unreadable: int = 0
    unreadable_samples: tuple[str, ...] = ()


class Recorded(Protocol):
    """Traffic that can be judged from its seconds."""

    @property
    def series(self) -> tuple[Series, ...]:
        """Its clients, sorted by broker, kind, user and client id."""
        ...

    @property
    def facts(self) -> Facts:
        """What it is."""
        ...

    def by_seconds(self, grouping: Grouping, groups: Collection[int], era: Era) -> Mapping[int, GroupVerdict]:
        """Verdicts of these groups."""
        ...

    def mutations(self, grouping: Grouping, groups: Collection[int], window: Window) -> Mapping[int, Outcome]:
        """By target, of these groups, which are of mutations: buckets of tokens. ``window``: the controller's settings."""
        ...

    def close(self) -> None:
        """Give back what it holds; safe to call twice."""
        ...


@runtime_checkable
class RecordedRequests(Recorded, Protocol):
    """Traffic of which every single request is known."""

    def exactly(self, grouping: Grouping, window: Window) -> ExactResult:
        """Verdicts of all groups."""
        ...

    def requests(self, grouping: Grouping, window: Window) -> DataFrame:
        """Every request under the proposed quotas, as ``judging.requests`` gives them."""
        ...
