"""Any recorded traffic as it would be with other brokers, or more of it."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from reconciler.errors import UsageError
from reconciler.traffic.client_totals import MEAN_TOTALS
from reconciler.traffic.judging.evidence import means_of
from reconciler.traffic.judging.grouping import Series
from reconciler.traffic.kernels.sampled_rate import Integers
from reconciler.traffic.relocation import COLUMNS, TrafficMoves, move_facts, move_minutes, move_series, rows_mover
from reconciler.traffic.request_traffic import SecondsTraffic
from reconciler.traffic.traffic_source import TrafficSource


class MovedTraffic(SecondsTraffic):
    """Rows of ``recorded`` as they would be after ``moves``, of all clients or of some. They are judged by seconds.

    Closing it does not close ``recorded``.
    """

    def __init__(self, recorded: SecondsTraffic, moves: TrafficMoves, series: Collection[Series]) -> None:
        """``series``: clients of ``recorded``; others are left out. Raises ``UsageError`` for gauges that would move."""
        # Not the other constructor: it would read all rows for what is known here.
        if recorded.means and moves.moves:
            raise UsageError(
                "This traffic has rates of single brokers at their own moments. Moves need requests or sums of seconds"
            )
        self._recorded, self._moves = recorded, moves
        self.rows = recorded.rows if moves == TrafficMoves() else recorded.rows.map(rows_mover(moves), COLUMNS)
        self.columns: frozenset[str] = frozenset()
        self.is_stored = recorded.is_stored
        self.series = move_series(series, moves)
        self.facts = move_facts(recorded.facts, moves)
        self.means = means_of(self.rows.total(MEAN_TOTALS)) if recorded.means else ()

    def minutes(self) -> Mapping[int, Integers]:
        """As ``TrafficSource.minutes``."""
        return move_minutes(self._recorded.minutes(), self._moves)

    def close(self) -> None:
        """The rows belong to the source of all of them."""


def move_traffic(recorded: TrafficSource, moves: TrafficMoves, series: Collection[Series] | None = None) -> TrafficSource:
    """The source after ``moves``, of all clients or of some of its series. Closing it does not close ``recorded``.

    Raises ``UsageError`` for a source that has no amounts, or none that can be moved.
    """
    if isinstance(recorded, SecondsTraffic):
        return MovedTraffic(recorded, moves, recorded.series if series is None else series)
    raise UsageError("A violation log has no traffic to simulate with. Give request logs, or a folder of compact")
