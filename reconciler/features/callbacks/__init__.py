"""Quota callbacks: a class of the user's own, or the plugin of groups, in place of Kafka's precedence levels in a backtest."""

from __future__ import annotations

from typing import Final

QUOTA_CALLBACKS: Final = ("reconciler.features.callbacks.loading:chosen_callback",)
