"""The folded sections below the table of a comment: guards, rules, findings, effects, and the evidence of a backtest."""

from __future__ import annotations

import dataclasses
import datetime
import json
import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from reconciler.features.pull_requests.comment_verdict import errors_in
from reconciler.model import (
    BacktestReport,
    EntityName,
    Finding,
    GuardResult,
    GuardStatus,
    Plan,
    Severity,
    display_name,
)
from reconciler.render import (
    Block,
    RepositoryLinks,
    Section,
    backtest_basis,
    blocks_markdown,
    code,
    counts_sentence,
    effects_lines,
    fence,
    findings_on_page,
    fold,
    message_markdown,
    plain,
    prose,
    read_words,
    rows_that_fit,
    rule_lines,
    size,
    span_of,
    web_address,
)
from reconciler.text import count_of, list_some

_EXCEPTION_DAYS: Final = 14
"""How long the exception of the example lasts."""
_GUARD_ID: Final = re.compile(r"[a-z0-9_/:-]+")
_PLAIN_NAME: Final = re.compile(r"[A-Za-z][A-Za-z0-9_-]*")
_YAML_WORDS: Final = frozenset({"true", "false", "yes", "no", "on", "off", "null", "y", "n"})
_FRAME: Final = 200
_MOST_ENTITIES: Final = 5


def guards_section(plan: Plan, links: RepositoryLinks, *, today: datetime.date, limit: int) -> tuple[str, ...]:
    """Every guard that tripped or is accepted; none is cut. Then how to satisfy them, and how to accept one."""
    accepted = [guard for guard in plan.guards if guard.status is GuardStatus.ACCEPTED]
    if not (plan.tripped or accepted):
        return ()
    counts = [f"{len(plan.tripped)} need acceptance" if len(plan.tripped) != 1 else "1 needs acceptance"] if plan.tripped else []
    counts += [f"{len(accepted)} accepted"] if accepted else []
    lines = [_guard(guard, links, limit) for guard in (*plan.tripped, *accepted)]
    how = _how_to_accept(plan.tripped, links, until=today + datetime.timedelta(days=_EXCEPTION_DAYS)) if plan.tripped else ()
    return fold(f"Guards: {', '.join(counts)}", (*lines, *how))


def withheld_section(plan: Plan, links: RepositoryLinks, *, limit: int) -> tuple[str, ...]:
    """Every owner whose changes are withheld, with the reasons; the first entities by name."""
    lines = []
    for each in plan.withheld:
        whose = code(each.owner, limit=limit) if each.owner is not None else "no owner"
        entities = list_some([code(str(change.entity), limit=limit) for change in each.changes], _MOST_ENTITIES)
        lines.append(f"- **{whose}**{f': {entities}' if entities else ''}")
        for reason in each.reasons:
            words = message_markdown(reason.message, limit=limit, begins_line=False, place=links.place).rstrip(".;, ")
            which = f"{code(reason.id, limit=limit)} ({links.explained(reason.id)}): " if reason.id is not None else ""
            lines.append(f"  - {which}{words}.")
    return fold(f"Withheld: {count_of(len(plan.withheld), 'owner')}", lines, opened=True) if lines else ()


def _guard(guard: GuardResult, links: RepositoryLinks, limit: int) -> str:
    words = message_markdown(guard.message, limit=limit, begins_line=False, place=links.place).rstrip(".;, ")
    state = "accepted" if guard.status is GuardStatus.ACCEPTED else "needs acceptance"
    return f"- **{code(guard.id, limit=limit)}** {state} ({links.explained(guard.id)}): {words}."


def _how_to_accept(tripped: Sequence[GuardResult], links: RepositoryLinks, *, until: datetime.date) -> Iterator[str]:
    """The exceptions to copy: each for its entities only, and without a reason, so that validation refuses them as they are."""
    place = next((place for guard in tripped if (place := span_of(guard.set_in)) is not None), None)
    manifest = f"the Cluster manifest {links.place(place)}" if place else "the Cluster manifest"
    named = [guard for guard in tripped if guard.entities and _GUARD_ID.fullmatch(guard.id)]
    yield ""
    if not named:
        yield f"Change the values so that no guard trips. An exception in `spec.accept` of {manifest} has to name its entities."
        return
    lines = ("accept:", *(row for guard in named for row in _exceptions(guard, until)))
    ticks = fence("\n".join(lines))
    yield (
        "Change the values so that no guard trips. To accept a guard instead, add its exceptions to `spec.accept` of "
        f"{manifest}, and write the reason:"
    )
    yield from ("", f"{ticks}yaml", *lines, ticks)


def _exceptions(guard: GuardResult, until: datetime.date) -> Iterator[str]:
    for entity in guard.entities:
        types = ", ".join(f"{kind}: {_name_in_yaml(entity.name(kind))}" for kind in entity.types)
        yield f"  - guard: {guard.id}"
        yield f"    match: {{{types}, strict: true}}"
        yield f"    until: {until:%Y-%m-%d}"
        yield "    reason: # write why this change is safe"


def _name_in_yaml(name: EntityName | None) -> str:
    """A plain word as it is, any other name as a string of JSON, which is one of YAML, too."""
    if name is None or not isinstance(name, str):
        return "{default: true}"
    return name if _PLAIN_NAME.fullmatch(name) and name.lower() not in _YAML_WORDS else json.dumps(name)


def findings_section(findings: Sequence[Finding], links: RepositoryLinks, *, room: int) -> Section:
    """The worst first; open where there are errors."""
    title = f"Findings: {counts_sentence(findings)}"
    # The signs take their room in the rest.
    section = _folded(title, findings_on_page(findings), links, room=room * 3 // 4, opened=errors_in(findings) > 0)
    return Section(lines=tuple(map(_with_sign, section.lines)), left_out=section.left_out)


_SIGNS: Final = {Severity.ERROR: "⛔", Severity.WARNING: "⚠️", Severity.INFO: "💬"}


def _with_sign(line: str) -> str:
    """A finding with the sign of its severity before the word."""
    for severity, sign in _SIGNS.items():
        line = line.replace(f"- **{severity.value}**", f"- {sign} **{severity.value}**", 1)
    return line


def effects_section(plan: Plan, links: RepositoryLinks, *, room: int) -> Section:
    """Nothing when the plan was made without effects."""
    if plan.effects is None:
        return Section()
    head, *blocks = effects_lines(plan.effects, changes=plan.changes)
    title = plain((head,)).strip() or "Effects"
    return _folded(title, blocks, links, room=room)


def rules_section(report: BacktestReport, links: RepositoryLinks, *, room: int) -> Section:
    """The rules of the policy with their results, failed ones first."""
    failed = sum(not rule.holds for rule in report.rules)
    title = f"Rules of the backtest: {failed:,} {'fails' if failed == 1 else 'fail'}, {len(report.rules) - failed:,} kept"
    ordered = dataclasses.replace(report, rules=tuple(sorted(report.rules, key=lambda rule: rule.holds)))
    return _folded(title, rule_lines(ordered), links, room=room)


def backtest_section(report: BacktestReport, links: RepositoryLinks, *, room: int) -> Section:
    """What the verdicts rest on, and what else the history shows."""
    address = web_address(links.report)
    above = (f"- [The whole report]({address})",) if address else ()
    return _folded("Backtest: history, capacity, assumptions", backtest_basis(report), links, room=room, above=above)


def _folded(
    title: str,
    blocks: Iterable[Block],
    links: RepositoryLinks,
    *,
    room: int,
    opened: bool = False,
    above: Sequence[str] = (),
) -> Section:
    """Blocks behind a title, or nothing without any."""
    inner = blocks_markdown(blocks, room=room - size(fold(title, above, opened=opened)), links=links)
    lines = (*above, *inner.lines)
    return Section(lines=fold(title, lines, opened=opened) if lines else (), left_out=inner.left_out)


def notes_section(plan: Plan, *, room: int, limit: int) -> Section:
    """Notes of the plan and of its changes, and which cluster was read when."""
    notes = [message_markdown(note, limit=limit) for note in plan.notes]
    notes += [
        f"{code(str(change.entity), limit=limit)}: {prose(change.note, limit=limit)}" for change in plan.changes if change.note
    ]
    facts = tuple(_facts(plan, limit))
    title = f"Notes ({len(notes)}), and the cluster that was read" if notes else "The cluster that was read"
    kept = rows_that_fit((f"- {note}" for note in notes), room - size(fold(title, facts)) - _FRAME)
    return Section(lines=fold(title, (*kept, *facts)), left_out=len(notes) - len(kept))


def _facts(plan: Plan, limit: int) -> Iterator[str]:
    known = [f"id {code(plan.cluster.id, limit=limit)}"] if plan.cluster.id else []
    known += [f"Kafka {code(plan.cluster.kafka_version, limit=limit)}"] if plan.cluster.kafka_version else []
    name = code(display_name(plan.cluster.name), limit=limit) if plan.cluster.name else "The cluster"
    yield f"- {name}: {', '.join((*known, read_words(plan)))}."
    summary = plan.summary
    yield f"- {count_of(summary.unchanged, 'entity is', 'entities are')} unchanged, {summary.unmanaged:,} unmanaged."
    if plan.source.commit:
        changed = ", with changes that are not committed" if plan.source.dirty else ""
        yield f"- Manifests of commit {code(plan.source.commit, limit=limit)}{changed}."
