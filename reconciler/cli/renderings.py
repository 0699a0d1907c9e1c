"""The formats of results besides text, and the function that renders each."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final

import reconciler
from reconciler.cli.results import Result

if TYPE_CHECKING:
    from reconciler.formats import Json
    from reconciler.model import Finding, Plan
    from reconciler.render import Block, RepoPaths, RepositoryLinks, View

PLAN_FORMATS: Final = ("text", "json", "markdown", "github", "sarif", "html", "summary", "outputs")
VALIDATE_FORMATS: Final = (*PLAN_FORMATS, "code-quality", "junit")
DRIFT_FORMATS: Final = ("text", "json", "github", "sarif", "summary", "outputs")

SUMMARY_BUDGET: Final = 1_000_000
"""Bytes of a summary: the page of a step in GitHub Actions may have 1 MiB."""


def list_of_findings(name: str, findings: Sequence[Finding]) -> str:
    """Findings as a list for tools that annotate lines: ``github``, ``sarif``, ``code-quality`` or ``junit``."""
    from reconciler.render import findings_annotations, findings_to_sarif, render_code_quality, render_junit

    match name:
        case "github":
            return findings_annotations(findings, places=places())
        case "code-quality":
            return _document(render_code_quality(findings, places=places()))
        case "junit":
            return render_junit(findings, name="kafka-quotas validate", places=places())
    return _document(findings_to_sarif(findings, rules=explanations(), version=reconciler.__version__, places=places()))


def page(view: View | Iterable[Block], form: str, commit: str | None) -> str:
    """A view as ``markdown``, ``summary`` or ``html``, with links to files at this commit."""
    from reconciler.render import View, view_html, view_markdown

    if not isinstance(view, View):
        raise TypeError(f"plain lines have no form {form}")

    links = repository_links(commit)
    return view_html(view, links) if form == "html" else view_markdown(view, links=links, budget=SUMMARY_BUDGET)


def result_of_plan(plan: Plan) -> Result:
    """A plan in each of ``PLAN_FORMATS``."""
    from reconciler.documents import PLAN
    from reconciler.render import plan_annotations, plan_outputs, plan_to_sarif, plan_view

    return Result(
        view=lambda: plan_view(plan),
        commit=plan.source.commit,
        document=lambda: PLAN.write(plan),
        forms={
            "github": lambda: plan_annotations(plan, places=places()),
            "sarif": lambda: _document(
                plan_to_sarif(plan, rules=explanations(), version=reconciler.__version__, places=places())
            ),
            "outputs": lambda: plan_outputs(plan),
        },
    )


def _document(document: Json) -> str:
    from reconciler.formats import document_text

    return document_text(document)


def explanations() -> Mapping[str, str]:
    """Why each finding, guard and class of drift exists, by its id in annotations and SARIF."""
    from reconciler.model import Topic
    from reconciler.render import DRIFT_PREFIX, GUARD_PREFIX
    from reconciler.workflows import explanations as catalogue

    prefixes = {Topic.GUARD: GUARD_PREFIX, Topic.DRIFT: DRIFT_PREFIX}
    return {f"{prefixes.get(explanation.topic, '')}{explanation.id}": explanation.text for explanation in catalogue().values()}


def repository_links(commit: str | None) -> RepositoryLinks:
    """To files at this commit, as the environment of a workflow knows the repository."""
    from reconciler.render import RepositoryLinks, files_at

    server, repository = os.environ.get("GITHUB_SERVER_URL"), os.environ.get("GITHUB_REPOSITORY")
    return RepositoryLinks(files=files_at(server, repository, commit), places=places())


def places() -> RepoPaths:
    """Paths below the repository: GitHub's workspace, else the nearest folder with ``.git``, else the working folder."""
    from reconciler.render import RepoPaths

    here = Path.cwd()
    workspace = os.environ.get("GITHUB_WORKSPACE")
    root = (
        Path(workspace) if workspace else next((folder for folder in (here, *here.parents) if (folder / ".git").exists()), here)
    )
    return RepoPaths(working_folder=here.as_posix(), root=root.absolute().as_posix(), others=tuple(_work_trees(root)))


def _work_trees(root: Path) -> Iterator[str]:
    """The other work trees that git has noted: a job may plan the files of a pull request in one of its own."""
    for note in sorted((root / ".git" / "worktrees").glob("*/gitdir")):
        with contextlib.suppress(OSError, UnicodeDecodeError):
            yield Path(note.read_text(encoding="utf-8").strip()).parent.as_posix()
