"""A backtest of recorded traffic on other brokers, or of more of it."""

from __future__ import annotations

from typing import Final

SITUATIONS: Final = ("reconciler.features.simulating.options:SituationOptions",)
