"""What a judgement by seconds came to, in a form in which different engines can be compared."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from reconciler.model import BacktestReport

BEFORE, AFTER = 400_000.0, 200_000.0
"""The limits on every client, bytes a second."""
JUST_OVER, JUST_UNDER = 1 + 1e-12, 1 - 1e-12
"""Within rounding of a limit nothing is decided."""

Row = tuple[int, str, str, str, int, int, int, int, int, float]
"""Broker, kind, user, client id; active seconds; of them over the limit after certainly, probably and possibly, and probably over
the one before; the largest upper bound of the rate."""


def answer(rows: Iterable[Row]) -> dict[str, object]:
    """Totals for people, and a sum over every row."""
    ordered = sorted(rows)
    digest = hashlib.sha256()
    for row in ordered:
        # Of fetches ours calls the first second certain and no other: what it sends away lightens those that follow. And some
        # engines divide by multiplying, and are off by one in the last place.
        counts = (row[4], row[5] > 0, *row[6:9])
        digest.update(repr((*map(str, row[:4]), *map(int, counts), f"{row[9]:.12g}")).encode())
    certain = sum(row[5] > 0 for row in ordered)
    possible = sum(row[7] > 0 for row in ordered) - certain
    return {
        "certain": certain,
        "possible": possible,
        "clear": len(ordered) - certain - possible,
        "seconds": sum(int(row[4]) for row in ordered),
        "sum": digest.hexdigest()[:12],
    }


def answer_of_report(report: BacktestReport) -> dict[str, object]:
    """Ours."""
    kinds = {"producer_byte_rate": "produce", "consumer_byte_rate": "fetch"}
    return answer(
        (
            v.broker, kinds[v.key], v.name.user, v.name.client_id, v.over.active, v.over.certain, v.over.seconds, v.over.possible,
            v.over.before or 0, v.peak.rate,
        )
        for v in report.verdicts
    )  # fmt: skip
