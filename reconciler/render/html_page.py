"""The pieces of a page that needs nothing but itself: no network, no script, readable on paper and on a telephone."""

from __future__ import annotations

import html
from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from reconciler.model import (
    Change,
    Finding,
    GuardResult,
    GuardStatus,
    KeyChange,
    MessagePart,
    PartKind,
    Plan,
    Severity,
    display_name,
    escaped,
    parts_of,
)
from reconciler.render.derived_findings import guard_sentence
from reconciler.render.effects_text import effects_lines
from reconciler.render.findings_text import counts_sentence
from reconciler.render.layout import plain
from reconciler.render.plan_text import (
    INCOMPLETE,
    ChangeDirection,
    cluster_title,
    direction,
    direction_sentence,
    read_words,
    summary_sentence,
)
from reconciler.text import amount, factor

_STYLE: Final = """
:root { color-scheme: light dark; --line: #8885; --faint: #777; --bad: #b3261e; --good: #1b6e3c; --warn: #8a5a00; }
@media (prefers-color-scheme: dark) { :root { --faint: #aaa; --bad: #ff8a80; --good: #7ddc9f; --warn: #ffcc66; } }
body { font: 1rem/1.5 system-ui, sans-serif; margin: 0 auto; max-width: 84rem; padding: 1rem; }
h1 { font-size: 1.5rem; margin: 0; overflow-wrap: anywhere; }
h2 { font-size: 1.15rem; margin: 1.8rem 0 .4rem; }
code, pre { font: .9em/1.5 ui-monospace, monospace; overflow-wrap: anywhere; }
pre { white-space: pre-wrap; }
ul { padding-left: 1.2rem; }
li { margin: .3rem 0; overflow-wrap: anywhere; }
table { border-collapse: collapse; width: 100%; }
th, td { border-bottom: 1px solid var(--line); padding: .35rem .6rem; text-align: left; vertical-align: top; }
th { color: var(--faint); font-weight: 600; }
td.number, th.number { text-align: right; }
td[data-label="Key"] code { white-space: nowrap; }
td[data-label="Entity"] { min-width: 12rem; }
td[data-label="Source"] { min-width: 10rem; }
.amount { white-space: nowrap; }
.lead { font-size: 1.1rem; }
.faint { color: var(--faint); }
.bad { color: var(--bad); font-weight: 600; }
.good { color: var(--good); font-weight: 600; }
.warn { color: var(--warn); font-weight: 600; }
@media screen and (max-width: 72rem) {
  thead { display: none; }
  table, tbody, tr, td { display: block; }
  tr { border-bottom: 2px solid var(--line); padding: .5rem 0; }
  td, td.number, td[data-label="Entity"], td[data-label="Source"] { border: 0; min-width: 0; padding: .1rem 0; text-align: left; }
  td:empty { display: none; }
  td[data-label]::before { color: var(--faint); content: attr(data-label) ": "; }
}
@page { margin: 12mm; size: landscape; }
@media print {
  html { font-size: 8pt; }
  body { max-width: none; padding: 0; }
  :root { color-scheme: light; --line: #999; --faint: #444; --bad: #900; --good: #050; --warn: #640; }
  thead { display: table-header-group; }
  tr, li { break-inside: avoid; }
  h2 { break-after: avoid; }
}
"""


def page(title: str, body: Iterable[str], *, style: str = "") -> str:
    """A whole document. ``title`` is text, ``body`` is HTML; the policy forbids the browser to load or run anything.

    ``style``: further rules of this tool's own.
    """
    head = (
        "<!DOCTYPE html>",
        '<html lang="en">',
        "<head>",
        '<meta charset="utf-8">',
        "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'\">",
        '<meta name="viewport" content="width=device-width, initial-scale=1">',
        f"<title>{text(title)}</title>",
        f"<style>{_STYLE}{style}</style>",
        "</head>",
        "<body>",
    )
    return "\n".join((*head, *body, "</body>", "</html>")) + "\n"


def text(value: str) -> str:
    """Text for HTML, attributes included; what does not print (controls, bidirectional marks) is shown as an escape."""
    return html.escape(escaped(value), quote=True)


def name(value: str) -> str:
    """A name or place: literal, and kept from turning round the text beside it."""
    return f"<code><bdi>{text(value)}</bdi></code>"


def message_html(value: str) -> str:
    """A message: names, keys, places and flags as code, amounts in one piece."""
    return "".join(_message_part(part) for part in parts_of(value))


def _message_part(part: MessagePart) -> str:
    match part.kind:
        case PartKind.TEXT:
            return text(part.text)
        case PartKind.AMOUNT:
            return f'<span class="amount">{text(part.text)}</span>'
    return name(part.text)


def styled(value: str, style: str) -> str:
    """Text in one of the styles ``bad``, ``warn``, ``good`` or ``faint``."""
    return f'<span class="{style}">{text(value)}</span>'


def section(title: str, body: Iterable[str]) -> tuple[str, ...]:
    """A heading and what is below it."""
    return ("<section>", f"<h2>{text(title)}</h2>", *body, "</section>")


def items(rows: Iterable[str]) -> tuple[str, ...]:
    """A list; each row is HTML."""
    return ("<ul>", *(f"<li>{row}</li>" for row in rows), "</ul>")


def table(heads: Sequence[str], rows: Iterable[Sequence[str]], *, numbers: frozenset[str] = frozenset()) -> tuple[str, ...]:
    """A table; cells are HTML. On a narrow screen every cell is a line that begins with its head."""
    classes = [' class="number"' if head in numbers else "" for head in heads]
    marks = [f'{mark} data-label="{text(head)}"' for head, mark in zip(heads, classes, strict=True)]
    top = "".join(f'<th scope="col"{mark}>{text(head)}</th>' for head, mark in zip(heads, classes, strict=True))
    lines = ("<tr>" + "".join(f"<td{mark}>{cell}</td>" for mark, cell in zip(marks, row, strict=True)) + "</tr>" for row in rows)
    return ("<table>", f"<thead><tr>{top}</tr></thead>", "<tbody>", *lines, "</tbody>", "</table>")


_HEADS: Final = ("Change", "Entity", "Key", "Now", "Planned", "Factor", "Source", "Note")
_NUMBERS: Final = frozenset({"Now", "Planned", "Factor"})
_STYLES: Final = {Severity.ERROR: "bad", Severity.WARNING: "warn", Severity.INFO: "faint"}
_WAYS: Final = {
    ChangeDirection.TIGHTENS: "warn",
    ChangeDirection.LOOSENS: "good",
    ChangeDirection.FIRST_LIMIT: "warn",
    ChangeDirection.REMOVED: "bad",
}
_GUARDS: Final = {
    GuardStatus.NEEDS_ACCEPTANCE: ("Blocked", "bad"),
    GuardStatus.ACCEPTED: ("Accepted", "good"),
    GuardStatus.PASSED: ("Passed", "faint"),
}


def plan_html(plan: Plan) -> str:
    """The page; nothing of the plan is left out."""
    return page(f"Kafka quotas: {cluster_title(plan.cluster)}", _plan(plan))


def findings_html(findings: Sequence[Finding]) -> str:
    """Findings alone, e.g. of manifests that cannot be planned."""
    lead = f'<p class="lead">{text(counts_sentence(findings))}</p>'
    return page(
        "Kafka quotas: findings", ("<h1>Kafka quotas: findings</h1>", lead, *items(finding_item(one) for one in findings))
    )


def _plan(plan: Plan) -> Iterator[str]:
    cluster = name(display_name(plan.cluster.name)) if plan.cluster.name else "the cluster"
    moves = direction_sentence(plan)
    yield f"<header><h1>Kafka quotas: {cluster}</h1>"
    yield f'<p class="lead">{f"<strong>{text(moves)}</strong>: " if moves else ""}{text(summary_sentence(plan))}</p>'
    if plan.errored:
        yield f"<p>{styled('The findings below have errors: this plan can be read, never applied.', 'bad')}</p>"
    if not plan.complete:
        yield f"<p>{styled(f'Note: {INCOMPLETE}.', 'warn')}</p>"
    yield "</header>"
    if plan.guards:
        yield from section("Guards", items(_guard(guard) for guard in plan.guards))
    if plan.changes:
        rows = (_row(change, key) for change in plan.changes for key in change.keys)
        yield from section("Changes, in the order of writing", table(_HEADS, rows, numbers=_NUMBERS))
    if plan.effects is not None:
        lines = plain(effects_lines(plan.effects, changes=plan.changes)).splitlines()
        yield from section("Effects", ("<pre>", *(text(one) for one in lines), "</pre>"))
    if plan.findings:
        found = sorted(plan.findings, key=lambda finding: finding.severity.rank)
        yield from section(f"Findings: {counts_sentence(found)}", items(finding_item(finding) for finding in found))
    if plan.notes:
        yield from section("Notes", items(message_html(note) for note in plan.notes))
    yield f'<footer class="faint"><p>Digest {name(plan.digest)}</p><p>{_origin(plan)}</p></footer>'


def _row(change: Change, key: KeyChange) -> tuple[str, ...]:
    way = direction(key)
    where = name(str(key.source)) if key.source else "no manifest declares it" if way is ChangeDirection.REMOVED else ""
    return (
        f"{styled(way.value, _WAYS[way])} ({change.action.value})",
        name(str(change.entity)),
        name(key.key),
        text(amount(key.key, key.before)),
        f"<strong>{text(amount(key.key, key.after))}</strong>",
        text(factor(key.before, key.after)),
        where,
        text(" ".join((change.note or "").splitlines())) if key is change.keys[0] else "",
    )


def _guard(guard: GuardResult) -> str:
    word, style = _GUARDS[guard.status]
    return f"{styled(word, style)} {name(guard.id)}: {message_html(guard_sentence(guard))}"


def finding_item(finding: Finding) -> str:
    """One finding, for a list."""
    place = f" {name(str(finding.span))}" if finding.span else ""
    related = "".join(f"<br>{name(str(one.span))}: {message_html(one.message)}" for one in finding.related)
    severity = styled(finding.severity.value, _STYLES[finding.severity])
    return f"{severity} {name(finding.id)}{place}: {message_html(finding.message)}{related}"


def _origin(plan: Plan) -> str:
    words = f"{cluster_title(plan.cluster)}, {read_words(plan)}."
    dirty = " with changes that are not committed" if plan.source.dirty else ""
    commit = f" Commit {name(plan.source.commit)}{dirty}." if plan.source.commit else ""
    return text(f"{words[0].upper()}{words[1:]}") + commit
