"""Rows of verdicts as tables: written to a folder, an address or a table, or given to a program on its own Spark session."""

from __future__ import annotations

from typing import Final

VERDICT_TABLES: Final = ("reconciler.features.verdict_tables.tables:backtest_to_table",)

SESSION_BACKTESTS: Final = ("reconciler.features.verdict_tables.session_frames:backtest_in_session",)
