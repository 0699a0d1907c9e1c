"""The options of ``backtest`` that move or multiply the traffic."""

from __future__ import annotations

from argparse import ArgumentTypeError
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from reconciler.cli.declaration import option
from reconciler.errors import UsageError

if TYPE_CHECKING:
    from reconciler.model import BacktestReport, CurrentState, Entity
    from reconciler.ports import Progress
    from reconciler.workflows import BacktestOptions, Intent

_MOST_FACTOR: Final = 1000


def _count(text: str) -> int:
    return _whole(text, "a number of brokers, such as 12", least=1)


def _broker(text: str) -> int:
    return _whole(text, "the id of a broker, such as 3", least=0)


def _whole(text: str, what: str, *, least: int) -> int:
    if not (text.isascii() and text.isdigit()) or len(text) > 10 or int(text) < least:
        raise ArgumentTypeError(f"{text!r} is not {what}")
    return int(text)


def _factor(text: str) -> float:
    try:
        factor = float(text)
    except ValueError:
        factor = 0.0
    if not 0 < factor <= _MOST_FACTOR:
        raise ArgumentTypeError(f"{text!r} is not a factor: write a number above 0, and {_MOST_FACTOR:,} at most")
    return factor


@dataclass(frozen=True, slots=True, kw_only=True)
class SituationOptions:
    """Where the traffic goes, and how much of it there is."""

    brokers: int | None = option(
        "--brokers",
        section="Changes",
        type=_count,
        metavar="N",
        help="divide every client's traffic among N brokers in equal parts",
    )
    without_broker: tuple[int, ...] = option(
        "--without-broker",
        section="Changes",
        type=_broker,
        metavar="ID",
        help="move the traffic of this broker to the others in equal parts (repeatable)",
    )
    factor: float = option(
        "--factor",
        section="Changes",
        type=_factor,
        default=1.0,
        metavar="N",
        help="multiply the traffic, such as 1.5 [default: 1]",
    )

    def check(self, others: Mapping[str, object]) -> None:
        """Raise ``UsageError`` for two ways to change brokers, and for one of the ``others``: they need traffic as recorded."""
        if self.brokers is not None and self.without_broker:
            raise UsageError("--brokers and --without-broker exclude each other. Give one of them")
        if unusable := [name for name, value in others.items() if value]:
            raise UsageError(f"Traffic that is moved or multiplied is judged by whole seconds: leave {unusable[0]} out")

    def run(
        self,
        intent: Intent | None,
        current: CurrentState | None,
        settings: Mapping[Entity, Mapping[str, float]],
        options: BacktestOptions,
        progress: Progress,
    ) -> BacktestReport:
        """As ``workflows.run_backtest``, of the changed traffic, under the quotas of then."""
        from reconciler.features.simulating.simulation import Situation, simulate

        situation = Situation(brokers=self.brokers, without=self.without_broker, factor=self.factor, settings=settings)
        return simulate(situation, intent, current, options, progress=progress)
