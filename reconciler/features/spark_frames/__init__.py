"""Backtests of a program's own DataFrames, on its own Spark session."""

from __future__ import annotations

from typing import Final

SESSION_BACKTESTS: Final = ("reconciler.features.spark_frames.session_backtest:backtest_in_session",)
