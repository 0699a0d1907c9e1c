"""What a command returns, and the one place that prints it: in the format of ``--format``, and in those of ``--out``."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Final

from reconciler.cli import exit_codes, output
from reconciler.errors import UsageError

if TYPE_CHECKING:
    from reconciler.formats import Json
    from reconciler.model import Finding
    from reconciler.render import Block, View

_PAGES: Final = ("markdown", "summary", "html")
OutFile = tuple[str, str]
"""A format and a file of ``--out``."""

LISTS: Final = ("github", "sarif", "code-quality", "junit")
"""The formats that are lists of findings, for tools that annotate lines."""


def _no_findings() -> Sequence[Finding]:
    return ()


def _nothing() -> None:
    return None


@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    """A result in the forms that the command has, each made only when it is wanted, and the exit code."""

    exit: int | Callable[[], int] = exit_codes.DONE
    """A function, where printing decides."""

    view: Callable[[], View | Iterable[Block]] | None = None
    """What people read, in a terminal and on pages."""

    page: Callable[[], View] | None = None
    """What pages show, where ``view`` has only lines."""

    commit: str | None = None
    """The commit that links of pages lead to; ``None``: that of the job."""

    document: Callable[[], Json] | None = None
    """The JSON."""

    findings: Callable[[], Sequence[Finding]] = _no_findings
    """What lists of findings have: SARIF, annotations, Code Quality, JUnit."""

    forms: Mapping[str, Callable[[], str | Iterable[str]]] = field(default_factory=dict)
    """Every other format by its name."""

    beside: Sequence[Finding] = ()
    """Findings that are printed on stderr, above the result."""

    notes: Sequence[str] = ()
    """Lines on stderr, below the result."""

    then: Callable[[], None] = _nothing
    """What is done once it is printed. An error of it decides the exit code."""


def show(result: Result, form: str, files: Sequence[OutFile] = ()) -> int:
    """Write the files of ``--out``, print the result as ``form``, and return the exit code.

    Raises ``FileAccessError``, ``OutputError`` when stdout takes no more, and what ``Result.then`` raises.
    """
    from reconciler.files import write_whole

    for name, place in files:
        if _has(result, name):
            made = pieces(result, name)
            write_whole(Path(place), [made] if isinstance(made, str) else made)
    if result.beside:
        output.print_findings(result.beside)
    if form == "text" and result.view is not None:
        output.print_lines(result.view())
    elif _has(result, form):
        output.print_pieces(pieces(result, form))
    for note in result.notes:
        output.tell(note)
    result.then()
    return result.exit if isinstance(result.exit, int) else result.exit()


def show_findings(findings: Sequence[Finding], form: str, files: Sequence[OutFile]) -> None:
    """Print findings in place of a result; on stderr, where the format has no form of them."""
    from reconciler.documents import FINDINGS, FindingList
    from reconciler.render import findings_lines, findings_outputs, findings_view

    result = Result(
        view=lambda: findings_lines(findings),
        page=lambda: findings_view(findings),
        document=lambda: FINDINGS.write(FindingList.of(findings)),
        findings=lambda: findings,
        forms={"outputs": lambda: findings_outputs(findings)},
    )
    if _has(result, form):
        show(result, form, files)
    else:
        output.print_findings(findings)


def parse_out_file(text: str, formats: Sequence[str]) -> OutFile:
    """One ``--out``. Raises ``UsageError``."""
    name, _, file = text.partition("=")
    if not file or name not in formats:
        raise UsageError(_not_a_form(text, formats))
    return name, file


def _has(result: Result, form: str) -> bool:
    own = {"text": result.view, "json": result.document, **result.forms}
    return own.get(form) is not None or form in LISTS or (form in _PAGES and (result.page or result.view) is not None)


def lines_of(view: View | Iterable[Block]) -> Iterable[Block]:
    """What a terminal shows of a view."""
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
    from reconciler.cli.renderings import list_of_findings, page

    if form in _PAGES and (make := result.page or result.view) is not None:
        return page(make(), form, result.commit or os.environ.get("GITHUB_SHA"))
    return list_of_findings(form, result.findings())


def _not_a_form(spec: str, formats: Sequence[str]) -> str:
    name, equals, file = spec.partition("=")
    if not equals:
        wrong, example = "names no format", f"{_format_of(Path(spec), formats)}={spec}"
    elif name not in formats:
        wrong, example = f"names the unknown format {name!r}", f"{_format_of(Path(file), formats)}={file or 'FILE'}"
    else:
        wrong, example = "names no file", f"{name}=FILE"
    return f"--out {spec!r} {wrong}. Write --out FORMAT=FILE, such as {example}, with FORMAT one of {', '.join(formats)}"


def _format_of(file: Path, formats: Sequence[str]) -> str:
    """The format that the end of a file's name suggests."""
    wanted = {".md": "markdown", ".xml": "junit", ".txt": "text", ".htm": "html"}.get(file.suffix, file.suffix.removeprefix("."))
    return wanted if wanted in formats else next(name for name in formats if name != "text")
