"""The options of ``backtest`` that move or multiply the traffic, or put a release in its place."""

from __future__ import annotations

from argparse import ArgumentTypeError
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from reconciler.cli.declaration import option
from reconciler.cli.results import Result
from reconciler.errors import UsageError

if TYPE_CHECKING:
    from reconciler.features.simulating.release import Release
    from reconciler.model import BacktestReport, CurrentState, Entity
    from reconciler.ports import Progress
    from reconciler.workflows import BacktestOptions, Intent

_MOST_FACTOR: Final = 1000


def _broker(text: str) -> int:
    if not (text.isascii() and text.isdigit()) or len(text) > 10:
        raise ArgumentTypeError(f"{text!r} is not the id of a broker, such as 3")
    return int(text)


def _factor(text: str) -> float:
    try:
        factor = float(text)
    except ValueError:
        factor = 0.0
    if not 0 < factor <= _MOST_FACTOR:
        raise ArgumentTypeError(f"{text!r} is not a factor: write a number above 0, and {_MOST_FACTOR:,} at most")
    return factor


def _release(text: str) -> Release:
    from reconciler.features.simulating.release import Release

    return Release.parse(text)


@dataclass(frozen=True, slots=True, kw_only=True)
class SituationOptions:
    """Where the traffic goes, how much of it there is, and what a release creates."""

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
    deploy: Release | None = option(
        "--deploy",
        section="Changes",
        type=_release,
        metavar="TOPICSxPARTITIONS",
        help="show how long a release that creates these topics, such as 40x10, takes under each "
        "controller_mutation_rate. Needs no traffic",
    )

    @property
    def needs_traffic(self) -> bool:
        """Whether recorded traffic is judged."""
        return self.deploy is None

    def check(self, others: Mapping[str, object]) -> None:
        """Raise ``UsageError`` for one of the ``others``, which need traffic as recorded, and for traffic of a release."""
        if self.deploy is not None and (self.without_broker or self.factor != 1.0):
            raise UsageError("--deploy judges a release, and no traffic: leave --without-broker and --factor out")
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
        """Run a backtest of the changed traffic, under the quotas of then. Raises as ``workflows.run_backtest``."""
        from reconciler.features.simulating.simulation import Situation, simulate

        situation = Situation(without=self.without_broker, factor=self.factor, settings=settings)
        return simulate(situation, intent, current, options, progress=progress)

    def without_traffic(
        self, intent: Intent | None, current: CurrentState | None, settings: Mapping[Entity, Mapping[str, float]]
    ) -> Result:
        """The release under the quotas of a backtest. Raises ``ManifestError`` for totals that cannot be divided."""
        from reconciler.features.simulating.release import RELEASE, release_report, release_view
        from reconciler.workflows import proposal_of, proposal_of_settings, set_quotas

        assert self.deploy is not None
        quotas = set_quotas(proposal_of_settings({}, current) if intent is None else proposal_of(intent, current), settings)
        report = release_report(self.deploy, quotas.proposed, quotas.spec)
        return Result(view=lambda: release_view(report), document=lambda: RELEASE.write(report))
