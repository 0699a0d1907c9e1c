"""What rollouts add: the work of ``apply --all-clusters``."""

from __future__ import annotations

from typing import Final

ROLLOUTS: Final = ("reconciler.features.rollout.rollout:apply_to_every",)
