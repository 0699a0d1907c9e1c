"""What a command returns, and the one place that prints it: in the format of ``--format``, and in those of ``--out``."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Final

from reconciler.cli import exit_codes, output
from reconciler.errors import UsageError
from reconciler.hooks import added, load

if TYPE_CHECKING:
    from reconciler.errors import ReconcilerError
    from reconciler.formats import Json
    from reconciler.model import Finding, Plan
    from reconciler.render import Block, RepoPaths, RepositoryLinks, View


_PAGES: Final = ("markdown", "html")
_NO_PROPERTIES: Final[Mapping[str, Json]] = {}
OutFile = tuple[str, str]
"""A format and a file of ``--out``."""

_LISTS: Final = dict(added("FINDING_LISTS"))
"""The formats that are lists of findings, for tools that annotate lines, and what makes them."""
LISTS: Final = tuple(_LISTS)


def _no_findings() -> Sequence[Finding]:
    return ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    """A result in the forms that the command has, each made only when it is wanted, and the exit code."""

    exit: int = exit_codes.DONE
    view: Callable[[], View | Iterable[Block]] | None = None
    """What people read, in a terminal and on pages."""

    page: Callable[[], View] | None = None
    """What pages show, where ``view`` has only lines."""

    commit: str | None = None
    """The commit that links of pages lead to; ``None``: that of the job."""

    document: Callable[[], Json] | None = None
    """The JSON."""

    findings: Callable[[], Sequence[Finding]] = _no_findings
    """What lists of findings have: SARIF, annotations, Code Quality."""

    forms: Mapping[str, Callable[[], str | Iterable[str]]] = field(default_factory=dict)
    """Every other format by its name."""

    beside: Sequence[Finding] = ()
    """Findings that are printed on stderr, above the result."""

    notes: Sequence[str] = ()
    """Lines on stderr, below the result."""

    then: Callable[[], None] | None = None
    """What is done once it is printed. An error of it decides the exit code."""


def show(result: Result, form: str, files: Sequence[OutFile] = ()) -> int:
    """Write the files of ``--out``, print the result as ``form``, and return the exit code.

    Raises ``FileAccessError``, ``OutputError`` when stdout takes no more, and what ``Result.then`` raises.
    """
    if files:
        _write(result, files)
    if result.beside:
        output.print_findings(result.beside)
    if form == "text" and result.view is not None:
        output.print_lines(result.view())
    elif _has(result, form):
        output.print_pieces(pieces(result, form))
    for note in result.notes:
        output.tell(note)
    if result.then is not None:
        result.then()
    return result.exit


def _write(result: Result, files: Sequence[OutFile]) -> None:
    from reconciler.files import write_whole

    for name, place in files:
        if _has(result, name):
            made = pieces(result, name)
            write_whole(Path(place), [made] if isinstance(made, str) else made)


def show_findings(findings: Sequence[Finding], form: str, files: Sequence[OutFile]) -> None:
    """Print findings in place of a result; on stderr, where the format has no form of them."""
    result = _result_of_findings(findings)
    if _has(result, form):
        show(result, form, files)
    else:
        output.print_findings(findings)


def write_fault(error: ReconcilerError, rule: str, files: Sequence[OutFile]) -> None:
    """Write what stopped a command to the files of ``--out``, as a finding of this rule. Raises ``FileAccessError``."""
    from reconciler.model import Finding, rules

    _write(_result_of_findings([Finding(id=rule, severity=rules("result")[rule].severity, message=str(error))]), files)


def _result_of_findings(findings: Sequence[Finding]) -> Result:
    from reconciler.documents import FINDINGS, FindingList
    from reconciler.render import findings_lines, findings_outputs, findings_view

    return Result(
        view=lambda: findings_lines(findings),
        page=lambda: findings_view(findings),
        document=lambda: FINDINGS.write(FindingList.of(findings)),
        findings=lambda: findings,
        forms={"outputs": lambda: findings_outputs(findings)},
    )


def parse_out_file(text: str, formats: Sequence[str]) -> OutFile:
    """One ``--out``. Raises ``UsageError``."""
    name, _, file = text.partition("=")
    if not file or name not in formats:
        raise UsageError(f"--out {text!r}: write --out FORMAT=FILE, with FORMAT one of {', '.join(formats)}")
    return name, file


def _has(result: Result, form: str) -> bool:
    own = {"text": result.view, "json": result.document, **result.forms}
    return own.get(form) is not None or form in LISTS or (form in _PAGES and (result.page or result.view) is not None)


def lines_of(view: View | Iterable[Block]) -> Iterable[Block]:
    """Return the blocks of a view that a terminal shows."""
    from reconciler.render import View

    return view.lines if isinstance(view, View) else view


def pieces(result: Result, form: str) -> str | Iterable[str]:
    """The result in one of the forms that it has, whole or piece by piece; the text is without colour."""
    if form in result.forms:
        return result.forms[form]()
    if form == "json" and result.document is not None:
        from reconciler.formats import document_text

        return document_text(result.document())
    if form == "text" and result.view is not None:
        from reconciler.render import plain

        return plain(lines_of(result.view()))
    if form in _PAGES and (make := result.page or result.view) is not None:
        return page(make(), form, result.commit or os.environ.get("GITHUB_SHA"))
    return list_of_findings(form, result.findings())


PLAN_FORMATS: Final = ("text", "json", "markdown", *LISTS[:2], "html", "outputs")
VALIDATE_FORMATS: Final = (*PLAN_FORMATS, *LISTS[2:])
DRIFT_FORMATS: Final = ("text", "json", "markdown", *LISTS[:2], "outputs")

SUMMARY_BUDGET: Final = 1_000_000
"""Bytes of a summary: the page of a step in GitHub Actions may have 1 MiB."""


def list_of_findings(name: str, findings: Sequence[Finding], properties: Mapping[str, Json] = _NO_PROPERTIES) -> str:
    """Findings as one of ``LISTS``. ``properties``: what they are of."""
    listed: str = load(_LISTS[name])(findings, places(), properties)
    return listed


def page(view: View | Iterable[Block], form: str, commit: str | None) -> str:
    """A view as ``markdown`` or ``html``, with links to files at this commit."""
    from reconciler.render import View, view_html, view_markdown

    if not isinstance(view, View):
        raise TypeError(f"plain lines have no form {form}")

    links = repository_links(commit)
    return view_html(view, links) if form == "html" else view_markdown(view, links=links, budget=SUMMARY_BUDGET)


def result_of_plan(plan: Plan) -> Result:
    """A plan in each of ``PLAN_FORMATS``, its guards as findings.

    A plan whose guards trip is a good plan, and its job succeeds. An error beside it would contradict that, so annotations warn.
    """
    from reconciler import documents, render

    def softened() -> Iterator[Finding]:
        from reconciler.model import Severity

        for finding in render.findings_of_guards(plan):
            is_guard = finding.id.startswith(render.GUARD_PREFIX) and finding.severity is Severity.ERROR
            yield replace(finding, severity=Severity.WARNING) if is_guard else finding

    about: Mapping[str, Json] = {"cluster": plan.cluster.name, "digest": plan.digest}
    return Result(
        view=lambda: render.plan_view(plan),
        commit=plan.source.commit,
        document=lambda: documents.PLAN.write(plan),
        forms={
            "github": lambda: list_of_findings("github", (*softened(), *plan.findings)),
            "sarif": lambda: list_of_findings("sarif", (*render.findings_of_guards(plan), *plan.findings), about),
            "outputs": lambda: render.plan_outputs(plan),
        },
    )


def repository_links(commit: str | None) -> RepositoryLinks:
    """Return links to files at this commit, in the repository that the environment of a workflow names."""
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
