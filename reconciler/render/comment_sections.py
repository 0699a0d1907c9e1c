"""The folded sections below the table of a comment: guards, rules, findings, effects, and the evidence of a backtest."""

from __future__ import annotations

import datetime
import json
import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from reconciler.documents import Tone, headline
from reconciler.model import (
    BacktestReport,
    EntityName,
    Finding,
    Fit,
    GuardResult,
    GuardStatus,
    Plan,
    Severity,
    Span,
    display_name,
)
from reconciler.render.backtest_sentences import (
    capacity_words,
    fit_words,
    history_words,
    kept_words,
    regrouped_words,
    rule_sentences,
    unjudged_sentence,
    unused_words,
    who,
)
from reconciler.render.comment_rows import changed_groups
from reconciler.render.comment_verdict import errors_in
from reconciler.render.effects_text import effects_lines
from reconciler.render.findings_text import counts_sentence
from reconciler.render.markdown_text import (
    NAME_LIMIT,
    Section,
    code,
    fence,
    fold,
    message_markdown,
    prose,
    rows_that_fit,
    shorten,
    size,
)
from reconciler.render.plan_sentences import read_words
from reconciler.render.repository_links import RepositoryLinks, web_address
from reconciler.render.terminal import plain
from reconciler.text import count_of, list_some

_EXCEPTION_DAYS: Final = 14
"""How long the exception of the example lasts."""
_PLACE: Final = re.compile(r"(?P<file>.+):(?P<line>[1-9][0-9]*):(?P<column>[1-9][0-9]*)", re.DOTALL)
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
    place = next((place for guard in tripped if (place := _place(guard.set_in)) is not None), None)
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


def _place(set_in: str) -> Span | None:
    match = _PLACE.fullmatch(set_in)
    return Span(file=match["file"], line=int(match["line"]), column=int(match["column"])) if match else None


def findings_section(findings: Sequence[Finding], links: RepositoryLinks, *, room: int, limit: int) -> Section:
    """The worst first; open where there are errors."""
    if not findings:
        return Section()
    ordered = sorted(findings, key=lambda finding: finding.severity.rank)
    title = f"Findings: {counts_sentence(findings)}"
    opened = errors_in(findings) > 0
    kept = rows_that_fit((_finding(finding, links, limit) for finding in ordered), room - size(fold(title, (), opened=opened)))
    return Section(lines=fold(title, kept, opened=opened) if kept else (), left_out=len(ordered) - len(kept))


_SEVERITY_SIGNS: Final = {Severity.ERROR: "⛔", Severity.WARNING: "⚠️", Severity.INFO: "💬"}


def _finding(finding: Finding, links: RepositoryLinks, limit: int) -> str:
    place = f" {links.place(finding.span, limit=limit)}" if finding.span else ""
    related = (f". See {links.place(r.span, limit=limit)}: {message_markdown(r.message, limit=limit)}" for r in finding.related)
    words = message_markdown(finding.message, limit=limit, begins_line=False, place=links.place)
    if finding.related:
        words = words.removesuffix(".")
    sign = _SEVERITY_SIGNS[finding.severity]
    return f"- {sign} **{finding.severity.value}** {code(finding.id, limit=limit)}{place}: {words}{''.join(related)}"


def effects_section(plan: Plan, *, room: int) -> Section:
    """Nothing when the plan was made without effects; else at most ``room`` bytes, folded unless it is one sentence."""
    if plan.effects is None:
        return Section()
    title, *rows = (shorten(line, NAME_LIMIT) for line in plain(effects_lines(plan.effects, changes=plan.changes)).splitlines())
    if not rows:
        return Section(lines=(f"**{prose(title)}**", ""))
    kept = rows_that_fit(rows, room - size(fold(title, ())) - 2 * size((fence("".join(rows)),)))
    ticks = fence("\n".join(kept))
    # A client is a line of its own, its effects are below it and stand further in.
    left_out = sum(1 for row in rows[len(kept) :] if row.startswith("      "))
    return Section(lines=fold(title, (f"{ticks}text", *kept, ticks)) if kept else (), left_out=left_out)


def rules_section(report: BacktestReport, *, room: int, limit: int) -> Section:
    """The rules of the policy with their results, failed ones first."""
    if not report.rules:
        return Section()
    failed = sum(not rule.holds for rule in report.rules)
    title = f"Rules of the backtest: {failed:,} {'fails' if failed == 1 else 'fail'}, {len(report.rules) - failed:,} kept"
    sentences = sorted(rule_sentences(report.rules), key=lambda pair: pair[1])
    rows = (f"- {'✅' if holds else '⛔ **Rejected.**'} {prose(_one_stop(words), limit=limit)}" for words, holds in sentences)
    return _folded(title, rows, total=len(report.rules), room=room)


def backtest_section(report: BacktestReport, links: RepositoryLinks, *, room: int, limit: int) -> Section:
    """What the verdicts rest on, and what else the history shows."""
    sentences = [*_basis(report), *_further(report)]
    rows = (
        f"- {'**Note:** ' if tone is not Tone.GOOD else ''}{prose(_one_stop(words), limit=limit, begins_line=False)}"
        for words, tone in sentences
    )
    address = web_address(links.report)
    whole = (f"- [The whole report]({address})",) if address else ()
    return _folded("Backtest: history, capacity, assumptions", (*whole, *rows), total=len(sentences) + len(whole), room=room)


def _one_stop(words: str) -> str:
    """A sentence with one full stop, whatever text of others it ends with."""
    return f"{words.rstrip('.')}."


def _basis(report: BacktestReport) -> Iterator[tuple[str, Tone]]:
    yield headline(report)
    for words, tone in history_words(report.provenance):
        yield f"{words}.", tone
    yield "Percentages are shares of the seconds with traffic.", Tone.GOOD
    if (kept := kept_words(report)) is not None:
        yield kept, Tone.GOOD
    for changed_group in changed_groups(report):
        worst = changed_group.worst
        for why in (worst.reason, regrouped_words(worst)):
            if why:
                yield f"{who(worst.name, undecided=worst.undecided)}, {worst.key}: {why}.", Tone.GOOD


def _further(report: BacktestReport) -> Iterator[tuple[str, Tone]]:
    lists = (
        [f"Not checked: {unjudged_sentence(change)}." for change in report.unjudged],
        [f"Capacity: {capacity_words(use)}." for use in report.capacity],
        [f"{fit_words(fit)}." for kind in (Fit.NEAR, Fit.LOOSE) for fit in report.fits if fit.fit is kind],
        [f"Not used in this history: {unused_words(quota)}." for quota in report.unused],
        list(report.notes),
        [f"Assumed: {assumption}." for assumption in report.provenance.assumptions],
    )
    for sentences in lists:
        yield from ((sentence, Tone.GOOD) for sentence in sentences)


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


def _folded(title: str, rows: Iterable[str], *, total: int, room: int) -> Section:
    kept = rows_that_fit(rows, room - size(fold(title, ())))
    return Section(lines=fold(title, kept) if kept else (), left_out=total - len(kept))
