"""The lines of files that findings are about, as far as they may be shown: a log keeps what is printed.

A file of logins can lie beside the manifests, or in one file with them. So no line of a document that is not a manifest is shown,
and no line with a name that looks like that of a secret, or below such a name.
"""

from __future__ import annotations

import contextlib
import logging
import re
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from typing import Final

from reconciler.logs import log_event
from reconciler.manifest import UnreadableError, read_file
from reconciler.model import Finding, Span

_log: Final = logging.getLogger(__name__)
_LINE_END: Final = re.compile("\r\n|[\n\r\x85\u2028\u2029]")
_DOCUMENT: Final = re.compile(r"(?:---|\.\.\.)(?:\s|$)")
_OURS: Final = re.compile(r"""apiVersion["']?\s*:\s*["']?kafka-quotas/""")
_SECRET: Final = re.compile(
    r"pass(?:w|phrase|\b)|pwd|secret|token|jaas|credential|authorization|bearer|private|(?<![a-z])key(?![a-z])|[_.-]?apikey",
    re.IGNORECASE,
)


def source_lines(findings: Iterable[Finding], read: Container[str]) -> Mapping[Span, str]:
    """The lines of files that findings are about, without line ends.

    Only files that were ``read`` are read again: another may be a pipe, or a link that leads out. Empty lines, files that are
    gone, and lines that may have a secret are left out.
    """
    wanted: dict[str, list[Span]] = {}
    for finding in findings:
        if finding.span is not None and finding.span.file in read:
            wanted.setdefault(finding.span.file, []).append(finding.span)
    texts: dict[Span, str] = {}
    for file, spans in wanted.items():
        log_event(_log, "source lines read", file=file, lines=len(spans))
        with contextlib.suppress(UnreadableError):
            lines = _LINE_END.split(read_file(file).decode("utf-8-sig", "backslashreplace"))
            shown = _of_manifests(lines)
            texts.update((span, lines[span.line - 1]) for span in spans if span.line in shown and _is_plain(lines, span.line))
    return texts


def _of_manifests(lines: Sequence[str]) -> set[int]:
    """The numbers of the lines whose document states that it is ours."""
    numbers: set[int] = set()
    for document in _documents(lines):
        if any(_OURS.search(lines[number - 1]) for number in document):
            numbers.update(document)
    return numbers


def _documents(lines: Sequence[str]) -> Iterator[range]:
    """The numbers of the lines of each document."""
    begin = 1
    for number, line in enumerate(lines, 1):
        if _DOCUMENT.match(line):
            yield range(begin, number)
            begin = number
    yield range(begin, len(lines) + 1)


def _is_plain(lines: Sequence[str], number: int) -> bool:
    """Whether neither the line nor a field above it, of which it is a part, looks like a secret. Not for an empty line."""
    line = lines[number - 1]
    if not line.strip() or _SECRET.search(line):
        return False
    indent = _indent(line)
    for above in reversed(lines[: number - 1]):
        if above.strip() and _indent(above) < indent:
            if _SECRET.search(above):
                return False
            indent = _indent(above)
        if indent == 0:
            break
    return True


def _indent(line: str) -> int:
    return len(line) - len(line.lstrip())
