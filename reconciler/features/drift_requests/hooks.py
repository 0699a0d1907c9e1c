"""What requests about drift add: the work of ``drift --propose``."""

from __future__ import annotations

from typing import Final

NEEDS: Final = ("insight", "pull_requests", "starting")

DRIFT_PROPOSERS: Final = ("reconciler.features.drift_requests.proposing:propose_drift",)
