"""What a backtest is asked: two sets of quotas, and the brokers that are modelled."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from reconciler.model import Entity, HistoryNeeds, Span
from reconciler.resolution import QuotaTable
from reconciler.traffic.judging.grouping import BrokerRule
from reconciler.traffic.kernels.sampled_rate import DEFAULT_WINDOW, Window


@dataclass(frozen=True, slots=True, kw_only=True)
class BrokerModel:
    """The brokers as the backtest has them."""

    window: Window = DEFAULT_WINDOW
    controller_window: Window = DEFAULT_WINDOW
    """``controller.quota.window.num`` and ``.size.seconds``: a token bucket has at most so many seconds of its limit."""
    settings_from: str = "Kafka's defaults"
    """Where the two windows' settings were taken from."""
    rule: BrokerRule = field(default_factory=BrokerRule)
    version_from: str = "no Kafka version was given"


@dataclass(frozen=True, slots=True, kw_only=True)
class BacktestRequest:
    """What is asked: the quotas before (``None``: not known) and after, and which broker is modelled."""

    current: QuotaTable | None
    proposed: QuotaTable
    declared: QuotaTable
    """The part of ``proposed`` that manifests declare. Unused quotas are reported of this part."""
    sources: Mapping[tuple[Entity, str], Span] = field(default_factory=dict)
    broker: BrokerModel = field(default_factory=BrokerModel)
    log_timezone: str = "UTC"
    exact: bool = False
    """Judge every request, where they are known."""
    unchanged: bool = False
    """Judge limits that stay, too, also where only per-second totals are known."""
    in_effect: bool = False
    """The proposed quotas are those that were in effect when the traffic was recorded."""
    needs: HistoryNeeds = field(default_factory=lambda: HistoryNeeds(hours=0.0))
    """How much history a clear verdict needs. Built in: any length, since the length to ask for is a matter of policy."""
    capacity: Mapping[str, float] = field(default_factory=dict)
    """What one broker can do, by quota key."""
    brokers: tuple[int, ...] = ()
    """Ids of the cluster's brokers when its quotas were read; empty: not known."""
    plots: int = 0
    """Of how many buckets, the worst ones, the rate over time is wanted."""

    @property
    def change(self) -> tuple[QuotaTable | None, QuotaTable]:
        """The quotas whose differences are judged. Of quotas that are not known, all that manifests declare is new."""
        return self.current, self.declared if self.current is None else self.proposed

    @property
    def calls_back(self) -> bool:
        """Whether a quota callback decides who shares which limit."""
        return self.broker.rule.callback is not None
