"""A plan as one page: whether it can be applied, each guard's result, every change with its place, and effects."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Final

from reconciler.model import Change, Finding, GuardResult, GuardStatus, KeyChange, LeaderSpread, Plan, WithheldOwner, display_name
from reconciler.render.derived_findings import acceptance
from reconciler.render.effects_text import effects_lines
from reconciler.render.findings_text import counts_sentence
from reconciler.render.html_page import (
    FoundRow,
    Masthead,
    PageSection,
    amount_html,
    chip,
    commit_words,
    filter_form,
    finding_item,
    folded,
    found_table,
    items,
    key_name,
    message_html,
    name,
    note,
    page,
    place_html,
    text,
    tiles,
)
from reconciler.render.layout import Tile
from reconciler.render.plan_text import (
    INCOMPLETE,
    ChangeDirection,
    cluster_title,
    direction,
    direction_sentence,
    read_words,
    summary_sentence,
    withheld_words,
)
from reconciler.render.repository_links import NO_LINKS, RepositoryLinks
from reconciler.render.terminal import plain
from reconciler.render.value_sentences import change_sentences
from reconciler.text import count_of, factor

_HEADS: Final = ("Entity", "Change", "Key", "Now", "Planned", "Factor", "Declared at", "Note")
_NUMBERS: Final = frozenset({"Now", "Planned", "Factor"})
_ROWS: Final = 5000
"""Changes in the table; the others are counted."""
_DIRECTIONS: Final = {
    ChangeDirection.TIGHTENS: "warn",
    ChangeDirection.LOOSENS: "good",
    ChangeDirection.FIRST_LIMIT: "warn",
    ChangeDirection.REMOVED: "bad",
}
_TILES: Final = {
    ChangeDirection.TIGHTENS: "tighten",
    ChangeDirection.FIRST_LIMIT: "first limits",
    ChangeDirection.REMOVED: "limits removed",
    ChangeDirection.LOOSENS: "loosen",
}
_GUARDS: Final = {
    GuardStatus.NEEDS_ACCEPTANCE: ("Blocked", "bad"),
    GuardStatus.ACCEPTED: ("Accepted", "good"),
    GuardStatus.PASSED: ("Passed", "faint"),
}


def plan_html(plan: Plan, links: RepositoryLinks = NO_LINKS) -> str:
    """A plan as one HTML page without external files."""
    return page(
        f"Kafka quotas: {cluster_title(plan.cluster)}",
        _masthead(plan),
        _sections(plan, links),
        footer=(f"Digest {name(plan.digest)}",),
    )


def findings_html(findings: Sequence[Finding], links: RepositoryLinks = NO_LINKS) -> str:
    """Findings as one HTML page, for manifests that cannot be planned."""
    top = Masthead(kicker="Kafka quotas: findings", answer=counts_sentence(findings))
    body = items(finding_item(finding, links) for finding in findings)
    return page("Kafka quotas: findings", top, (PageSection(place="findings", title="Findings", body=body),))


def _masthead(plan: Plan) -> Masthead:
    cluster = display_name(plan.cluster.name) if plan.cluster.name else "the cluster"
    moves = direction_sentence(plan)
    read = f"{cluster_title(plan.cluster)}, {read_words(plan)}"
    about = [text(f"{read[0].upper()}{read[1:]}"), commit_words(plan.source), f"Digest {name(plan.digest[:19])}"]
    return Masthead(
        kicker=f"Kafka quotas: {cluster}, plan",
        answer=_answer(plan),
        rest=f"{moves}: {summary_sentence(plan)}" if moves else summary_sentence(plan),
        about=tuple(entry for entry in about if entry),
        body=tuple(_top(plan)),
    )


def _answer(plan: Plan) -> str:
    blocked = sum(guard.status is GuardStatus.NEEDS_ACCEPTANCE for guard in plan.guards)
    if plan.errored:
        return "This plan has errors and cannot be applied."
    if blocked:
        return f"Blocked: {count_of(blocked, 'guard')} {'needs' if blocked == 1 else 'need'} acceptance."
    if plan.withheld and not plan.changes:
        return f"Withheld: {withheld_words(plan.withheld)}."
    if not plan.changes:
        return "No change."
    if plan.withheld:
        return f"Ready in part: {withheld_words(plan.withheld)}."
    return f"Ready: {count_of(len(plan.changes), 'entity changes', 'entities change')}."


def _top(plan: Plan) -> Iterator[str]:
    if plan.errored:
        yield note("The findings below have errors: this plan can be read, never applied.")
    if not plan.complete:
        yield note(text(f"Note: {INCOMPLETE}."))
    if plan.changes:
        counts = Counter(direction(key) for change in plan.changes for key in change.keys)
        rows = (
            Tile(number=counts[direction], words=words, style=_DIRECTIONS[direction], place="changes")
            for direction, words in _TILES.items()
        )
        yield from tiles("Limits that change", rows)


def _sections(plan: Plan, links: RepositoryLinks) -> Iterator[PageSection]:
    if plan.guards:
        order = sorted(plan.guards, key=lambda guard: list(_GUARDS).index(guard.status))
        yield PageSection(place="guards", title="Guards", count=len(order), body=items(_guard(guard, links) for guard in order))
    if plan.withheld:
        listed = items(_withheld(each, links) for each in plan.withheld)
        yield PageSection(place="withheld", title="Withheld", count=len(plan.withheld), body=listed)
    if plan.changes:
        rows = [_row(change, key, links, plan.leaders) for change in plan.changes for key in change.keys]
        more = f'<p class="faint">{len(rows) - _ROWS:,} more are not listed here.</p>' if len(rows) > _ROWS else ""
        body = (
            *filter_form("Search", "Change", (direction.value for direction in ChangeDirection)),
            *found_table("In the order of writing", _HEADS, rows[:_ROWS], numbers=_NUMBERS),
            more,
        )
        yield PageSection(place="changes", title="Changes", count=len(rows), body=body)
    if plan.effects is not None:
        lines = plain(effects_lines(plan.effects, changes=plan.changes)).splitlines()
        listing = ("<pre>", *(text(line) for line in lines), "</pre>")
        body = listing if len(lines) <= _OPEN_LINES else tuple(folded(lines[0], listing))
        yield PageSection(place="effects", title="Effects", body=body)
    if plan.findings:
        findings = sorted(plan.findings, key=lambda finding: finding.severity.rank)
        listed = items(finding_item(finding, links) for finding in findings)
        yield PageSection(place="findings", title=f"Findings: {counts_sentence(findings)}", body=listed)
    if plan.notes:
        yield PageSection(place="notes", title="Notes", body=items(message_html(note, links) for note in plan.notes))


_OPEN_LINES: Final = 40


def _row(change: Change, key: KeyChange, links: RepositoryLinks, leaders: LeaderSpread | None) -> FoundRow:
    way = direction(key)
    undeclared = "no manifest declares it" if way is ChangeDirection.REMOVED else ""
    where = place_html(key.source, links) if key.source else undeclared
    if key.profile is not None:
        where = f"{where}, profile {name(key.profile)}"
    declared = "".join(f"<br>{text(sentence)}" for sentence in change_sentences(key, leaders))
    cells = (
        name(str(change.entity)),
        f"{chip(way.value, _DIRECTIONS[way])} ({change.action.value})",
        key_name(key.key),
        amount_html(key.key, key.before),
        f"<strong>{amount_html(key.key, key.after)}</strong>{declared}",
        text(factor(key.before, key.after)),
        where,
        text(" ".join((change.note or "").splitlines())) if key is change.keys[0] else "",
    )
    ratio = key.after / key.before if key.before and key.after is not None else -1.0
    return FoundRow(
        kind=way.value, cells=cells, sort=(None, None, None, _number(key.before), _number(key.after), ratio, None, None)
    )


def _number(value: float | None) -> float:
    return -1.0 if value is None else value


def _withheld(withheld: WithheldOwner, links: RepositoryLinks) -> str:
    reasons = "".join(
        f"<br>{f'{name(reason.id)}: ' if reason.id is not None else ''}{message_html(reason.message, links)}"
        for reason in withheld.reasons
    )
    entities = "".join(f"<br>{name(str(change.entity))} ({change.action.value})" for change in withheld.changes)
    return f"{chip('Withheld', 'warn')} {text(withheld.name)}{reasons}{entities}"


def _guard(guard: GuardResult, links: RepositoryLinks) -> str:
    word, style = _GUARDS[guard.status]
    # Saved plans keep the advice as text, so it has no parts here either.
    advice = guard.advice or f"To accept, pass {acceptance(guard)}."
    how = f" {text(advice)}" if guard.status is GuardStatus.NEEDS_ACCEPTANCE else ""
    return f"{chip(word, style)} {name(guard.id)}: {message_html(guard.message, links)}{how}"
