"""What a backtest advises, in one form for terminals, comments, pages and notebooks."""

from __future__ import annotations

from reconciler.model import BucketVerdict
from reconciler.text.amounts import amount


def recommended_text(verdict: BucketVerdict) -> str | None:
    """``14 MiB/s``, ``keep 8 MiB/s`` where that is the present limit, ``at least 33 KiB/s`` where it is a lower bound."""
    if verdict.advice.recommended is None:
        return None
    before = "at least " if verdict.recorded.censored else "keep " if verdict.keeps_limit else ""
    return f"{before}{amount(verdict.key, verdict.advice.recommended)}"


def safe_text(verdict: BucketVerdict) -> str | None:
    """``6.25 MiB/s``, and ``at least 22 KiB/s`` where it is a lower bound."""
    if verdict.advice.safe is None:
        return None
    return f"{'at least ' if verdict.recorded.censored else ''}{amount(verdict.key, verdict.advice.safe)}"
