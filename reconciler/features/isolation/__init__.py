"""Owners that are planned apart: a guard that trips, or an error, withholds the changes of one owner alone."""

from __future__ import annotations

from typing import Final

OWNER_SCOPES: Final = ("reconciler.features.isolation.scope:scope_of_owners",)
OWNER_JUDGES: Final = ("reconciler.features.isolation.scope:judge_apart",)
