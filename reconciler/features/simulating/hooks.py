"""What simulating adds: options of ``backtest`` that change the traffic before it is judged."""

from __future__ import annotations

from typing import Final

SITUATIONS: Final = ("reconciler.features.simulating.options:SituationOptions",)
