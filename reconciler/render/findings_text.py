"""Findings and their explanations for a terminal: one line each, in the form that editors and CI logs turn into links."""

from __future__ import annotations

import textwrap
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Final

from reconciler.model import Example, Explanation, Finding, Severity, Span, Topic, escaped, name_part
from reconciler.render.layout import Block, Column, Fold, Line, Style, View, chip, heading, line, table
from reconciler.text import count_of

_STYLES: Final = {Severity.ERROR: Style.BAD, Severity.WARNING: Style.WARN, Severity.INFO: Style.FAINT}
MOST_OF_A_RULE: Final = 20
"""Findings of one rule and severity that a terminal shows. JSON, SARIF and the other documents have all of them."""

_LONGEST_REASON: Final = 90
_SHORTEST_REASON: Final = 24
"""Columns of a reason in the list of all ids; where a terminal has fewer, it stands below its id."""

_ONE_OF: Final = {Topic.FINDING: "finding", Topic.GUARD: "guard", Topic.DRIFT: "class of drift", Topic.PAGE: "page"}
_TOPICS: Final = {Topic.FINDING: "Findings", Topic.GUARD: "Guards", Topic.DRIFT: "Classes of drift"}


def findings_lines(findings: Sequence[Finding]) -> tuple[Line, ...]:
    """``file:line:column: severity: message [id]``, in the order given; related places follow, indented.

    Of a rule with many findings the first are shown, and lines below count the others. One more line counts those as before.
    """
    new = [finding for finding in findings if not finding.as_before]
    counts: Counter[tuple[str, Severity]] = Counter()
    lines: list[Line] = []
    for finding in new:
        counts[finding.id, finding.severity] += 1
        if counts[finding.id, finding.severity] <= MOST_OF_A_RULE:
            lines += _lines(finding)
    for (rule_id, severity), count in counts.items():
        if count > MOST_OF_A_RULE:
            rest = f": {count - MOST_OF_A_RULE:,} more findings of this rule. For all: validate --format json "
            lines.append(line((severity.value, _STYLES[severity]), rest, (f"[{rule_id}]", Style.FAINT)))
    if earlier := len(findings) - len(new):
        words = f"{as_before_words(earlier)}: --format json lists them"
        lines.append(line((words, Style.FAINT)))
    return tuple(lines)


def as_before_words(count: int) -> str:
    """``27 findings as before``."""
    return f"{count_of(count, 'finding')} as before"


def _lines(finding: Finding) -> Iterator[Line]:
    place = f"{_place(finding.span)}: " if finding.span is not None else ""
    yield line(
        place, (finding.severity.value, _STYLES[finding.severity]), ": ", finding.message, " ", (f"[{finding.id}]", Style.FAINT)
    )
    for related in finding.related:
        yield line((f"    {_place(related.span)}: {escaped(related.message)}", Style.FAINT))


def findings_on_page(findings: Sequence[Finding]) -> Iterator[Block]:
    """The findings for Markdown and pages: the new ones, the worst first, then a fold of those that are as before."""
    yield from _on_page(finding for finding in findings if not finding.as_before)
    if earlier := [finding for finding in findings if finding.as_before]:
        yield Fold(title=line(pages=(as_before_words(len(earlier)),)), blocks=tuple(_on_page(earlier)))


def _on_page(findings: Iterable[Finding]) -> Iterator[Line]:
    for finding in sorted(findings, key=lambda finding: finding.severity.rank):
        place = (" ", finding.span) if finding.span is not None else ()
        stop = "" if finding.message.endswith(".") else "."
        related = (part for each in finding.related for part in (f"{stop} See ", each.span, ": ", each.message))
        state = chip(finding.severity.value, _STYLES[finding.severity])
        yield line(pages=(state, " ", name_part(finding.id), *place, ": ", finding.message, *related))


def findings_view(findings: Sequence[Finding]) -> View:
    """Findings alone, e.g. of manifests that cannot be planned, for Markdown and pages."""
    answer = counts_sentence(findings)
    blocks: tuple[Block, ...] = (heading("Findings", count=len(findings)), *findings_on_page(findings))
    return View(kind="findings", cluster=None, title=line(), answer=line(answer), blocks=blocks)


def _place(span: Span) -> str:
    return f"{escaped(span.file)}:{span.line}:{span.column}"


def counts_sentence(findings: Sequence[Finding]) -> str:
    """``2 errors, 1 warning, 27 as before``; ``no findings`` when there are none."""
    new = [finding.severity for finding in findings if not finding.as_before]
    counts = [(new.count(severity), severity.value) for severity in Severity]
    named = [f"{count} {word if count == 1 or word == 'info' else word + 's'}" for count, word in counts if count]
    if earlier := len(findings) - len(new):
        named = [*(named or ["no new findings"]), f"{earlier:,} as before"]
    return ", ".join(named) or "no findings"


def validation_lines(findings: Sequence[Finding], *, files: int, clusters: int, entities: int) -> tuple[Line, ...]:
    """The findings as ``findings_lines`` has them, then a line with counts of the findings and of what was checked."""
    checked = f"{count_of(files, 'file')}, {count_of(clusters, 'cluster')}, {count_of(entities, 'entity', 'entities')}"
    new = [finding.severity for finding in findings if not finding.as_before]
    style = _STYLES[min(new, key=lambda severity: severity.rank)] if new else Style.GOOD
    return (*findings_lines(findings), line((counts_sentence(findings), style), f" in {checked}"))


def explanation_lines(explanation: Explanation) -> Iterator[Line]:
    """Yield the whole of one: heading, reason, example."""
    if explanation.topic is Topic.PAGE:
        yield from _page_lines(explanation.text)
        return
    yield line((explanation.id, Style.STRONG), f" ({_kind(explanation)})")
    yield line()
    yield line(explanation.text, hang=0)
    if explanation.topic is Topic.GUARD:
        yield line()
        once = f"To accept it for one run, pass --accept {explanation.id}. "
        yield line(once, "To accept it for longer, use spec.accept of the Cluster manifest.", hang=0)
    elif explanation.adjustable:
        yield line()
        yield line("To set another severity, write in kafka-quotas.yaml:")
        yield line(f"    spec: {{lint: {{{explanation.id}: error|warning|info|off}}}}")
    if explanation.example is not None:
        yield from _example(explanation.example)


def _page_lines(text: str) -> Iterator[Line]:
    """A page of the documentation. Its code and its tables are never wrapped."""
    in_code = False
    for row in text.splitlines():
        in_code ^= row.lstrip().startswith("```")
        yield replace(line(row), whole=in_code or row.startswith("|"))


def _kind(explanation: Explanation) -> str:
    return f"{explanation.topic.value}, {explanation.severity.value}" if explanation.severity else _ONE_OF[explanation.topic]


def _example(example: Example) -> Iterator[Line]:
    if example.live:
        yield line()
        yield line(("On the cluster:", Style.FAINT))
        yield from (line(f"    {text}") for text in example.live)
    for title, text in (("Wrong:", example.bad), ("Right:", example.good)):
        yield line()
        yield line((title, Style.BAD if title == "Wrong:" else Style.GOOD))
        yield from (line(f"    {row}") for row in text.splitlines())


def index_lines(every: Sequence[Explanation], pages: Sequence[str]) -> Iterator[Block]:
    """Yield every id with its severity and the beginning of its reason, by topic. Then the pages."""
    columns = (Column(title="id"), Column(title="severity"), Column(title="reason", least=_SHORTEST_REASON))
    for topic, title in _TOPICS.items():
        yield line((title, Style.STRONG))
        rows = ((e.id, e.severity.value if e.severity else "", _reason(e)) for e in every if e.topic is topic)
        yield table(columns, rows, titled=False)
        yield line()
    yield line(("Pages", Style.STRONG))
    yield from (line(f"  {name}") for name in pages)


def _reason(explanation: Explanation) -> tuple[str, Style]:
    return textwrap.shorten(explanation.text, _LONGEST_REASON, placeholder=" ..."), Style.FAINT
