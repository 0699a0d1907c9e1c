"""Comments about plans and findings as text, and the documents that they are made of."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any

from reconciler.documents import FINDINGS, PLAN, FindingList
from reconciler.features.pull_requests.plan_comment import findings_comment, plan_comment
from reconciler.features.pull_requests.sticky_comment import Content, comment_heading, marker_line
from reconciler.formats import plan_digest
from reconciler.model import Finding, Plan


def comment_text(content: Content) -> str:
    """Marker, heading and content, as in a posted comment without its foot."""
    return "\n".join((marker_line(content.marker), comment_heading(content.marker), "", *content.lines)) + "\n"


def plan_markdown(plan: Plan, **options: Any) -> str:
    """The comment about a plan."""
    return comment_text(plan_comment(plan, **options))


def findings_markdown(findings: Sequence[Finding]) -> str:
    """The comment about findings."""
    return comment_text(findings_comment(findings))


def plan_body(plan: Plan) -> str:
    """The document of a plan, with the digest that it must have."""
    return PLAN.text(dataclasses.replace(plan, digest=plan_digest(plan.cluster.id, plan.changes)))


def findings_body(findings: Sequence[Finding]) -> str:
    """The document of findings."""
    return FINDINGS.text(FindingList.of(findings))
