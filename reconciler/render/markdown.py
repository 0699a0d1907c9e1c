"""A plan, or findings, as one comment for a pull request: GitHub Flavored Markdown within GitHub's limit on a comment's size.

The first line is a hidden marker. Guards and removals are never cut; of everything else whole rows are, and the comment says so.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator, Sequence
from typing import Final

from reconciler.model import (
    Change,
    Drift,
    EntityDrift,
    Finding,
    GuardResult,
    GuardStatus,
    KeyChange,
    KeyDrift,
    Plan,
    Severity,
    display_name,
    escaped,
)
from reconciler.render.derived_findings import acceptance
from reconciler.render.drift_text import drift_sentence, overrides_words
from reconciler.render.effects_text import effects_lines
from reconciler.render.findings_text import counts_sentence
from reconciler.render.layout import plain
from reconciler.render.markdown_text import (
    NAME_LIMIT,
    OPEN_ROWS,
    Section,
    code,
    fence,
    fold,
    in_cell,
    list_section,
    message_markdown,
    prose,
    rows_that_fit,
    shorten,
    size,
)
from reconciler.render.plan_text import (
    INCOMPLETE,
    ChangeDirection,
    direction,
    direction_sentence,
    read_words,
    summary_sentence,
    undecided_words,
)
from reconciler.render.sticky_comment import Marker, marker_line
from reconciler.text import amount, factor

BUDGET: Final = 57_500
"""Bytes of UTF-8. A posted comment has 60,000 at most (GitHub takes 65,536 characters); the rest is for its state."""

FULL_PLAN: Final = "`kafka-quotas plan` prints the whole plan, and its `--out json=FILE` keeps it."

_LIMITS: Final = (NAME_LIMIT, 400, 100, 40)
"""How much of one name is shown: less only where the guards alone would fill half of the comment."""

NEXT: Final = "Next: "
"""How the line begins that advises what to do about a plan."""
NEXT_MERGE: Final = f"{NEXT}merge, and `kafka-quotas apply` writes exactly this, or refuses when the cluster has changed since."

_SENTENCES: Final = 400
"""Bytes kept free for what the comment says about the rows that it leaves out, beside ``full_plan``."""


def plan_markdown(plan: Plan, *, full_plan: str = FULL_PLAN, budget: int = BUDGET) -> str:
    """The comment, in at most ``budget`` bytes. ``full_plan``: a sentence, in Markdown, where to find what is left out."""
    for limit in _LIMITS:
        head = (*_head(plan, limit), *_guards(plan, limit))
        tail = tuple(_tail(plan, limit))
        room = budget - size(head) - size(tail) - size((full_plan,)) - _SENTENCES
        if room >= budget // 2:
            break
    findings = _findings(plan.findings, room=room // 4, limit=limit)
    written = (f"- {message_markdown(note, limit=limit)}" for note in plan.notes)
    notes = list_section("Notes", written, total=len(plan.notes), room=room // 10)
    effects = effects_section(plan, room=room // 6)
    taken = sum(size(section.lines) for section in (findings, notes, effects))
    changes = changes_section(plan, room=room - taken, limit=limit)
    keys = sum(len(change.keys) for change in plan.changes)
    counts = (
        (changes.left_out, keys, "changed keys"),
        (findings.left_out, len(plan.findings), "findings"),
        (notes.left_out, len(plan.notes), "notes"),
        (effects.left_out, len(plan.effects.effects) if plan.effects else 0, "effects"),
    )
    left_out = ", ".join(f"{count} of {of} {what}" for count, of, what in counts if count)
    sentence = (f"**Left out, to stay within the size of a comment: {left_out}.** {full_plan}", "") if left_out else ()
    return _text((*head, *sentence, *changes.lines, *effects.lines, *findings.lines, *notes.lines, *tail))


def findings_markdown(findings: Sequence[Finding], *, cluster: str | None = None, budget: int = BUDGET) -> str:
    """Findings alone, e.g. of manifests that cannot be planned, in at most ``budget`` bytes."""
    marker = marker_line(Marker(kind="findings", cluster=cluster, digest=None))
    head = (marker, _heading(cluster, NAME_LIMIT), "")
    room = budget - size(head) - _SENTENCES
    section = _findings(findings, room=room, limit=400)
    more = (f"**{section.left_out} findings have no room here.** `kafka-quotas validate` prints all of them.",)
    return _text((*head, *section.lines, *(more if section.left_out else ())))


def _text(lines: Sequence[str]) -> str:
    return "\n".join(lines).rstrip("\n") + "\n"


def _heading(cluster: str | None, limit: int) -> str:
    return f"### Kafka quotas: {code(display_name(cluster), limit=limit)}" if cluster else "### Kafka quotas"


def _head(plan: Plan, limit: int) -> Iterator[str]:
    empty = not (plan.changes or plan.findings or plan.tripped)
    yield marker_line(Marker(kind="plan", cluster=plan.cluster.name, digest=plan.digest, empty=empty))
    yield _heading(plan.cluster.name, limit)
    yield ""
    moves = direction_sentence(plan)
    yield f"**{moves}**: {summary_sentence(plan)}" if moves else f"**{summary_sentence(plan)}**"
    yield ""
    if plan.errored:
        yield from ("**The findings below have errors: this plan can be read, never applied.**", "")
    if not plan.complete:
        yield from (f"**Note: {INCOMPLETE}.**", "")


def _guards(plan: Plan, limit: int) -> Iterator[str]:
    spoken = [guard for guard in plan.guards if guard.status is not GuardStatus.PASSED]
    for guard in spoken:
        yield _guard(guard, limit)
    if spoken:
        yield ""


def _guard(guard: GuardResult, limit: int) -> str:
    name = code(guard.id, limit=limit)
    if guard.status is GuardStatus.ACCEPTED:
        return f"- **Accepted** {name}: {message_markdown(guard.message, limit=limit)}"
    flag = acceptance(guard)
    return f"- **Blocked** by {name}: {message_markdown(guard.message, limit=limit)} Accept with {code(flag, limit=limit)}"


def _findings(findings: Sequence[Finding], *, room: int, limit: int) -> Section:
    if not findings:
        return Section()
    ordered = sorted(findings, key=lambda finding: finding.severity.rank)
    opened = ordered[0].severity is Severity.ERROR
    title = f"Findings: {counts_sentence(findings)}"
    return list_section(title, (_finding(one, limit) for one in ordered), total=len(ordered), room=room, opened=opened)


def _finding(finding: Finding, limit: int) -> str:
    place = f" {code(str(finding.span), limit=limit)}" if finding.span else ""
    related = (f"; {code(str(r.span), limit=limit)}: {message_markdown(r.message, limit=limit)}" for r in finding.related)
    words = message_markdown(finding.message, limit=limit)
    return f"- **{finding.severity.value}** {code(finding.id, limit=limit)}{place}: {words}{''.join(related)}"


def _next_step(plan: Plan, limit: int) -> str:
    """What to do about this plan, in one line."""
    if plan.errored:
        return "Next: correct the errors; `kafka-quotas explain ID` tells what each means."
    if plan.tripped:
        flags = " ".join(acceptance(guard) for guard in plan.tripped)
        command = code(f"kafka-quotas apply {flags}", limit=max(limit, len(flags) + 20))
        return f"Next: accept, with {command} or in the Cluster document with a reason and a last day; or change the manifests."
    if plan.changes:
        return NEXT_MERGE
    if plan.undecided:
        return f"Next: {undecided_words(plan)}: the warnings name what to write."
    return "Next: nothing to do on this cluster."


def _tail(plan: Plan, limit: int) -> Iterator[str]:
    yield _next_step(plan, limit)
    yield ""
    known = [f"id {code(plan.cluster.id, limit=limit)}"] if plan.cluster.id else []
    known += [f"Kafka {code(plan.cluster.kafka_version, limit=limit)}"] if plan.cluster.kafka_version else []
    commit = f"Commit {code(plan.source.commit, limit=limit)}" if plan.source.commit else ""
    changed = " with changes that are not committed" if commit and plan.source.dirty else ""
    yield f"Digest {code(plan.digest, limit=limit)}"
    yield ""
    yield f"Cluster {', '.join((*known, read_words(plan)))}.{f' {commit}{changed}.' if commit else ''}"


_HEAD: Final = (
    "| Action | Entity | Key | Now | Planned | Factor | Source | Note |",
    "| --- | --- | --- | ---: | ---: | ---: | --- | --- |",
)
_FRAME: Final = 300
"""Bytes that a fold and its title, a fence, and a sentence about what is left out may take beside the rows."""

_BRACED_NAME: Final = re.compile(r"([^\"{},]*[-_./:=])([^\"{},]*)")


def changes_section(plan: Plan, *, room: int, limit: int) -> Section:
    """All changes, removals first, in at most ``room`` bytes; ``limit`` is how much of one name is shown.

    Removals that have no room in the table become a bare list of entities, then one with shared beginnings written once; only
    when even that is too long are they cut, and the first line says so.
    """
    keys = [(change, key) for change in plan.changes for key in change.keys]
    removed = [one for one in keys if direction(one[1]) is ChangeDirection.REMOVED]
    others = [one for one in keys if direction(one[1]) is not ChangeDirection.REMOVED]
    space = room - size(_HEAD) - _FRAME
    rows = rows_that_fit((_row(*one, limit) for one in (*removed, *others)), space)
    if len(rows) >= len(removed):
        return Section(lines=_table(rows), left_out=len(keys) - len(rows))
    removals = _removal_list(plan, room=space, limit=limit)
    rows = rows_that_fit((_row(*one, limit) for one in others), space - size(removals.lines) - _FRAME)
    return Section(lines=(*removals.lines, *_table(rows)), left_out=removals.left_out + len(others) - len(rows))


def _row(change: Change, key: KeyChange, limit: int) -> str:
    way = direction(key)
    source = (
        code(str(key.source), limit=limit) if key.source else "no manifest declares it" if way is ChangeDirection.REMOVED else ""
    )
    note = prose(change.note, limit=limit) if change.note and key is change.keys[0] else ""
    cells = (
        f"{way.value} ({change.action.value})",
        code(str(change.entity), limit=limit),
        code(key.key, limit=limit),
        amount(key.key, key.before),
        f"**{amount(key.key, key.after)}**",
        factor(key.before, key.after),
        source,
        note,
    )
    return "| " + " | ".join(in_cell(cell) for cell in cells) + " |"


def _table(rows: Sequence[str]) -> tuple[str, ...]:
    if len(rows) > OPEN_ROWS:
        return fold(f"{len(rows)} changed keys", (*_HEAD, *rows))
    return (*_HEAD, *rows, "") if rows else ()


def _removal_list(plan: Plan, *, room: int, limit: int) -> Section:
    groups = _by_removed_keys(plan, limit)
    total = sum(len(names) for names in groups.values())
    for braces in (False, True):
        body = [line for keys, names in groups.items() for line in (f"{keys}:", *(_braced(names) if braces else names))]
        section = _block(body, total=total, left_out=0, braces=braces)
        if size(section) <= room:
            return Section(lines=section)
    flat = [f"{keys}: {name}" for keys, names in groups.items() for name in names]
    kept = rows_that_fit(flat, room - _FRAME)
    return Section(lines=_block(kept, total=total, left_out=total - len(kept), braces=False), left_out=total - len(kept))


def _by_removed_keys(plan: Plan, limit: int) -> dict[str, list[str]]:
    groups: dict[str, list[str]] = {}
    for change in plan.changes:
        keys = [escaped(key.key) for key in change.keys if direction(key) is ChangeDirection.REMOVED]
        if keys:
            groups.setdefault(shorten(", ".join(keys), limit), []).append(shorten(str(change.entity), limit))
    return groups


def _block(body: Sequence[str], *, total: int, left_out: int, braces: bool) -> tuple[str, ...]:
    ticks = fence("\n".join(body))
    legend = ("`a-{1,2}` stands for `a-1` and `a-2`.", "") if braces else ()
    warning = (f"**{left_out} of {total} removals have no room here.**", "") if left_out else ()
    return (*warning, *fold(f"{total} entities lose limits", (*legend, f"{ticks}text", *body, ticks)))


def _braced(names: Sequence[str]) -> Iterator[str]:
    """``user=a-1``, ``user=a-2`` as ``user=a-{1,2}``; names with braces, commas or quotes stand alone."""
    parts = [(match.group(1), match.group(2)) if (match := _BRACED_NAME.fullmatch(name)) else (name, None) for name in names]
    parts.sort(key=lambda part: (part[0], part[1] or ""))
    for prefix, group in itertools.groupby(parts, key=lambda part: part[0]):
        ends = [end for _, end in group if end is not None]
        if len(ends) > 1:
            yield f"{prefix}{{{','.join(ends)}}}"
        else:
            yield prefix + (ends[0] if ends else "")


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


_DRIFT_HEAD: Final = (
    "| Class | Entity | Key | Live | Last applied | Declared | Source |",
    "| --- | --- | --- | ---: | ---: | ---: | --- |",
)
_DRIFT_SENTENCES: Final = 400


def drift_markdown(drift: Drift, *, budget: int) -> str:
    """The differences in at most ``budget`` bytes; rows that have no room are counted."""
    name = f": {code(display_name(drift.cluster.name))}" if drift.cluster.name else ""
    head = (f"### Kafka quotas, drift{name}", "", f"**{drift_sentence(drift)}**", "")
    notes = list_section("Notes", (f"- {prose(note)}" for note in drift.notes), total=len(drift.notes), room=budget // 10)
    unmanaged = list_section(
        "Not declared, and in the scope",
        (f"- {code(str(one.entity))}" for one in drift.unmanaged_in_scope),
        total=len(drift.unmanaged_in_scope),
        room=budget // 10,
    )
    differing = [(one, key) for one in drift.entities if one.drift.is_difference for key in one.keys]
    room = budget - size(head) - size(notes.lines) - size(unmanaged.lines) - size(_DRIFT_HEAD) - _DRIFT_SENTENCES
    rows = rows_that_fit((_drift_row(one, key, has_baseline=drift.baseline is not None) for one, key in differing), room)
    table = _drift_table(rows, left_out=len(differing) - len(rows))
    return "\n".join((*head, *table, *unmanaged.lines, *notes.lines)).rstrip("\n") + "\n"


def _drift_table(rows: list[str], *, left_out: int) -> Iterator[str]:
    if left_out:
        yield from (f"**{left_out} keys have no room here.** `kafka-quotas drift` prints all of them.", "")
    if rows:
        yield from (*_DRIFT_HEAD, *rows, "")


def _drift_row(one: EntityDrift, key: KeyDrift, *, has_baseline: bool) -> str:
    cells = (
        one.drift.value,
        code(str(one.entity)),
        code(key.key),
        amount(key.key, key.live),
        amount(key.key, key.baseline) if has_baseline else "not known",
        amount(key.key, key.desired) + prose(overrides_words(key)),
        code(str(key.source)) if key.source else "no manifest declares it",
    )
    return "| " + " | ".join(in_cell(cell) for cell in cells) + " |"
