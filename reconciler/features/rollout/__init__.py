"""One apply for every cluster of the manifests."""

from __future__ import annotations

from typing import Final

ROLLOUTS: Final = ("reconciler.features.rollout.rollout:apply_to_every",)
