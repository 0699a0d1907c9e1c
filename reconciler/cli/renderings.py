"""The formats of results besides text, and the function that renders each."""

from __future__ import annotations

import contextlib
import functools
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final

import reconciler
from reconciler.cli.results import Result

if TYPE_CHECKING:
    from reconciler.formats import Json
    from reconciler.model import Finding, Plan
    from reconciler.render import RepoPaths, RepositoryLinks

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


def forms_of_findings(findings: Sequence[Finding]) -> dict[str, Callable[[], str]]:
    """Findings as pages, and their numbers for a later step."""
    return {
        "markdown": lambda: _findings_markdown(findings),
        "summary": lambda: _findings_markdown(findings),
        "html": lambda: _findings_html(findings),
        "outputs": lambda: _findings_outputs(findings),
    }


def result_of_plan(plan: Plan) -> Result:
    """A plan in each of ``PLAN_FORMATS``."""
    from reconciler.documents import PLAN
    from reconciler.render import plan_view

    return Result(
        view=lambda: plan_view(plan),
        document=lambda: PLAN.write(plan),
        forms={name: functools.partial(make, plan) for name, make in _PLANS.items()},
    )


def findings_as(
    name: str, findings: Sequence[Finding], counts: Mapping[str, int] | None = None, *, suite: str = "kafka-quotas validate"
) -> str:
    """Findings in any format that a command has, text without colour.

    ``counts`` join the summary of the JSON document, ``suite`` is JUnit's name for all of them.
    """
    if name == "json":
        from reconciler.documents import FINDINGS, FindingList

        return _document(FINDINGS.write(FindingList.of(findings, counts)))
    if name == "junit":
        from reconciler.render import render_junit

        return render_junit(findings, name=suite, places=places())
    return _FINDINGS[name](findings)


def _document(document: Json) -> str:
    from reconciler.formats import document_text

    return document_text(document)


def _plan_markdown(plan: Plan) -> str:
    from reconciler.render import plan_view, view_markdown

    return view_markdown(plan_view(plan), links=repository_links(plan.source.commit), budget=SUMMARY_BUDGET)


def _plan_annotations(plan: Plan) -> str:
    from reconciler.render import plan_annotations

    return plan_annotations(plan, places=places())


def _plan_sarif(plan: Plan) -> str:
    from reconciler.render import plan_to_sarif

    return _document(plan_to_sarif(plan, rules=explanations(), version=reconciler.__version__, places=places()))


def _plan_html(plan: Plan) -> str:
    from reconciler.render import plan_view, view_html

    return view_html(plan_view(plan), repository_links(plan.source.commit))


def _plan_outputs(plan: Plan) -> str:
    from reconciler.render import plan_outputs

    return plan_outputs(plan)


_PLANS: Final[Mapping[str, Callable[[Plan], str]]] = {
    "markdown": _plan_markdown,
    "summary": _plan_markdown,
    "github": _plan_annotations,
    "sarif": _plan_sarif,
    "html": _plan_html,
    "outputs": _plan_outputs,
}


def _findings_text(findings: Sequence[Finding]) -> str:
    from reconciler.render import findings_lines, plain

    return plain(findings_lines(findings))


def _findings_markdown(findings: Sequence[Finding]) -> str:
    from reconciler.render import findings_view, view_markdown

    return view_markdown(findings_view(findings), budget=SUMMARY_BUDGET)


def _findings_annotations(findings: Sequence[Finding]) -> str:
    from reconciler.render import findings_annotations

    return findings_annotations(findings, places=places())


def _findings_sarif(findings: Sequence[Finding]) -> str:
    from reconciler.render import findings_to_sarif

    return _document(findings_to_sarif(findings, rules=explanations(), version=reconciler.__version__, places=places()))


def _findings_html(findings: Sequence[Finding]) -> str:
    from reconciler.render import findings_view, view_html

    return view_html(findings_view(findings), repository_links(os.environ.get("GITHUB_SHA")))


def _findings_code_quality(findings: Sequence[Finding]) -> str:
    from reconciler.render import render_code_quality

    return _document(render_code_quality(findings, places=places()))


def _findings_outputs(findings: Sequence[Finding]) -> str:
    from reconciler.render import findings_outputs

    return findings_outputs(findings)


_FINDINGS: Final[Mapping[str, Callable[[Sequence[Finding]], str]]] = {
    "text": _findings_text,
    "markdown": _findings_markdown,
    "summary": _findings_markdown,
    "github": _findings_annotations,
    "sarif": _findings_sarif,
    "html": _findings_html,
    "code-quality": _findings_code_quality,
    "outputs": _findings_outputs,
}


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
