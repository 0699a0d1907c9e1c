"""Findings for a terminal: one line each, in the form that editors and CI logs turn into links."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Final

from reconciler.model import Finding, Severity, Span, escaped
from reconciler.render.styled import Line, Style, line

_STYLES: Final = {Severity.ERROR: Style.BAD, Severity.WARNING: Style.WARN, Severity.INFO: Style.FAINT}


MOST_OF_A_RULE: Final = 20
"""Findings of one rule and severity that a terminal shows. JSON, SARIF and the other documents have all of them."""


def findings_lines(findings: Sequence[Finding]) -> tuple[Line, ...]:
    """``file:line:column: severity: message [id]``, in the order given; related places follow, indented.

    Of a rule with many findings the first are shown, and the last lines count the others.
    """
    return tuple(_shown(findings))


def _shown(findings: Sequence[Finding]) -> Iterator[Line]:
    counts: Counter[tuple[str, Severity]] = Counter()
    for finding in findings:
        counts[finding.id, finding.severity] += 1
        if counts[finding.id, finding.severity] <= MOST_OF_A_RULE:
            yield from _lines(finding)
    for (rule_id, severity), count in counts.items():
        if count > MOST_OF_A_RULE:
            yield line(
                (severity.value, _STYLES[severity]),
                f": {count - MOST_OF_A_RULE:,} more findings of this rule; --format json has all of them ",
                (f"[{rule_id}]", Style.FAINT),
            )


def _lines(finding: Finding) -> Iterator[Line]:
    place = f"{_place(finding.span)}: " if finding.span is not None else ""
    yield line(
        place,
        (finding.severity.value, _STYLES[finding.severity]),
        f": {escaped(finding.message)} ",
        (f"[{finding.id}]", Style.FAINT),
    )
    for related in finding.related:
        yield line((f"    {_place(related.span)}: {escaped(related.message)}", Style.FAINT))


def _place(span: Span) -> str:
    return f"{escaped(span.file)}:{span.line}:{span.column}"


def counts_sentence(findings: Sequence[Finding]) -> str:
    """``2 errors, 1 warning``; ``no findings`` when there are none."""
    counts = [(sum(1 for f in findings if f.severity is severity), severity.value) for severity in Severity]
    named = [f"{count} {word if count == 1 or word == 'info' else word + 's'}" for count, word in counts if count]
    return ", ".join(named) or "no findings"


def validation_lines(findings: Sequence[Finding], *, files: int, clusters: int, entities: int) -> tuple[Line, ...]:
    """The findings, then what was checked and how it went, in one line."""
    checked = f"{_many(files, 'file')}, {_many(clusters, 'cluster')}, {_many(entities, 'entity', 'entities')}"
    style = _STYLES[min((f.severity for f in findings), key=lambda s: s.rank)] if findings else Style.GOOD
    return (*findings_lines(findings), line((counts_sentence(findings), style), f" in {checked}"))


def _many(count: int, one: str, more: str | None = None) -> str:
    return f"1 {one}" if count == 1 else f"{count} {more or one + 's'}"
