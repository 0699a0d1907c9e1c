"""Which formats a result can be printed in, beside the text of a terminal, and how each is made."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final

import reconciler

if TYPE_CHECKING:
    from reconciler.formats.canonical import Json
    from reconciler.model.finding import Finding
    from reconciler.model.plan import Plan
    from reconciler.render.places import Places

PLAN_FORMATS: Final = ("text", "json", "markdown", "github", "sarif", "html")
FINDINGS_FORMATS: Final = ("text", "json", "github", "sarif")


def plan_as(name: str, plan: Plan) -> str:
    """A plan in one of ``PLAN_FORMATS``; the text is without colour."""
    from reconciler.formats.canonical import document_text

    match name:
        case "json":
            from reconciler.planning.document import plan_to_json

            return document_text(plan_to_json(plan))
        case "markdown":
            from reconciler.render.markdown import plan_markdown

            return plan_markdown(plan)
        case "github":
            from reconciler.render.annotations import plan_annotations

            return plan_annotations(plan, places=places())
        case "sarif":
            from reconciler.render.sarif import plan_to_sarif

            return document_text(plan_to_sarif(plan, rules=explanations(), version=reconciler.__version__, places=places()))
        case "html":
            from reconciler.render.html import plan_html

            return plan_html(plan)
    from reconciler.render.plan_text import plan_lines
    from reconciler.render.styled import plain

    return plain(plan_lines(plan))


def findings_as(name: str, findings: Sequence[Finding], counts: Mapping[str, int] | None = None) -> str:
    """Findings in any format that a command has but text; ``counts`` join the summary of the JSON document."""
    from reconciler.formats.canonical import document_text

    match name:
        case "markdown":
            from reconciler.render.markdown import findings_markdown

            return findings_markdown(findings)
        case "github":
            from reconciler.render.annotations import findings_annotations

            return findings_annotations(findings, places=places())
        case "html":
            from reconciler.render.html import findings_html

            return findings_html(findings)
    return document_text(_findings_document(name, findings, counts))


def _findings_document(name: str, findings: Sequence[Finding], counts: Mapping[str, int] | None) -> Json:
    if name == "sarif":
        from reconciler.render.sarif import findings_to_sarif

        return findings_to_sarif(findings, rules=explanations(), version=reconciler.__version__, places=places())
    from reconciler.render.findings_document import findings_to_json

    return findings_to_json(findings, counts)


def explanations() -> Mapping[str, str]:
    """Why each finding and guard exists, by its id in annotations and SARIF."""
    from reconciler.model.explanation import Topic
    from reconciler.render.guard_findings import GUARD_PREFIX
    from reconciler.workflows import explain

    known = explain.explanations().values()
    return {f"{GUARD_PREFIX if one.topic is Topic.GUARD else ''}{one.id}": one.text for one in known}


def places() -> Places:
    """Paths below the repository: GitHub's workspace, else the nearest folder with ``.git``, else the working folder."""
    from reconciler.render.places import Places

    here = Path.cwd()
    workspace = os.environ.get("GITHUB_WORKSPACE")
    root = Path(workspace) if workspace else next((one for one in (here, *here.parents) if (one / ".git").exists()), here)
    return Places(working_folder=here.as_posix(), root=root.absolute().as_posix())
