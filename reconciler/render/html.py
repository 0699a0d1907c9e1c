"""A plan, or findings, as one self-contained HTML page: everything in it, in the order in which a reviewer reads."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from reconciler.model import Change, Finding, GuardResult, GuardStatus, KeyChange, Plan, Severity, display_name
from reconciler.render.amounts import amount, factor
from reconciler.render.direction import ChangeDirection, direction, direction_sentence
from reconciler.render.effects_text import effects_lines
from reconciler.render.findings_text import counts_sentence
from reconciler.render.guard_findings import guard_sentence
from reconciler.render.html_page import items, name, page, section, styled, table, text
from reconciler.render.plan_text import INCOMPLETE, cluster_title, read_words, summary_sentence

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
        lines = ("".join(segment.text for segment in one) for one in effects_lines(plan.effects, changed=len(plan.changes)))
        yield from section("Effects", ("<pre>", *(text(one) for one in lines), "</pre>"))
    if plan.findings:
        found = sorted(plan.findings, key=lambda finding: finding.severity.rank)
        yield from section(f"Findings: {counts_sentence(found)}", items(finding_item(finding) for finding in found))
    if plan.notes:
        yield from section("Notes", items(text(note) for note in plan.notes))
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
    return f"{styled(word, style)} {name(guard.id)}: {text(guard_sentence(guard))}"


def finding_item(finding: Finding) -> str:
    """One finding, for a list."""
    place = f" {name(str(finding.span))}" if finding.span else ""
    related = "".join(f"<br>{name(str(one.span))}: {text(one.message)}" for one in finding.related)
    severity = styled(finding.severity.value, _STYLES[finding.severity])
    return f"{severity} {name(finding.id)}{place}: {text(finding.message)}{related}"


def _origin(plan: Plan) -> str:
    words = f"{cluster_title(plan.cluster)}, {read_words(plan)}."
    dirty = " with changes that are not committed" if plan.source.dirty else ""
    commit = f" Commit {name(plan.source.commit)}{dirty}." if plan.source.commit else ""
    return text(f"{words[0].upper()}{words[1:]}") + commit
