"""Policies in CEL: conditions of the Repository manifest that every plan has to satisfy."""

from __future__ import annotations

from typing import Final

POLICY_CHECKS: Final = ("reconciler.features.policies.judging:expression_findings",)
POLICY_JUDGES: Final = ("reconciler.features.policies.judging:judge_plan",)
