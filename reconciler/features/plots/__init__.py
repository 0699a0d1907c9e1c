"""Plots on the pages of a backtest: the rates of a quota group over time, as inline SVG."""

from __future__ import annotations

from typing import Final

PLOTS: Final = ("reconciler.features.plots.plot:plot",)
