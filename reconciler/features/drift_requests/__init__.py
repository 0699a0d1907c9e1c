"""Drift as a pull request, which adopts the values of the cluster or restores the declared ones."""

from __future__ import annotations

from typing import Final

NEEDS: Final = ("insight", "manifest_edits", "pull_requests", "starting")

DRIFT_PROPOSERS: Final = ("reconciler.features.drift_requests.proposing:propose_drift",)
