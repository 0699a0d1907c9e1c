"""A plan, or findings, as one comment for a pull request: GitHub Flavored Markdown within GitHub's limit on a comment's size.

The first line is a hidden marker. Guards and removals are never cut; of everything else whole rows are, and the comment says so.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from reconciler.model import Finding, GuardResult, GuardStatus, Plan, Severity, display_name
from reconciler.render.direction import direction_sentence
from reconciler.render.escape_markdown import LIMIT, code, prose
from reconciler.render.findings_text import counts_sentence
from reconciler.render.guard_findings import acceptance, guard_sentence
from reconciler.render.markdown_changes import changes_section
from reconciler.render.markdown_effects import effects_section
from reconciler.render.markdown_lists import Section, listed, size
from reconciler.render.markdown_marker import Marker, marker_line
from reconciler.render.plan_text import INCOMPLETE, read_words, summary_sentence, undecided_words

BUDGET: Final = 57_500
"""Bytes of UTF-8. A posted comment has 60,000 at most (GitHub takes 65,536 characters); the rest is for its state."""

FULL_PLAN: Final = "`kafka-quotas plan` prints the whole plan, and its `--out json=FILE` keeps it."

_LIMITS: Final = (LIMIT, 400, 100, 40)
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
    written = (f"- {prose(note, limit=limit)}" for note in plan.notes)
    notes = listed("Notes", written, total=len(plan.notes), room=room // 10)
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
    head = (marker, _heading(cluster, LIMIT), "")
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
        return f"- **Accepted** {name}: {prose(guard.message, limit=limit)}"
    flag = acceptance(guard)
    words = guard_sentence(guard).removesuffix(f"; accept with {flag}")
    return f"- **Blocked** by {name}: {prose(words, limit=limit)}. Accept with {code(flag, limit=limit)}"


def _findings(findings: Sequence[Finding], *, room: int, limit: int) -> Section:
    if not findings:
        return Section()
    ordered = sorted(findings, key=lambda finding: finding.severity.rank)
    opened = ordered[0].severity is Severity.ERROR
    title = f"Findings: {counts_sentence(findings)}"
    return listed(title, (_finding(one, limit) for one in ordered), total=len(ordered), room=room, opened=opened)


def _finding(finding: Finding, limit: int) -> str:
    place = f" {code(str(finding.span), limit=limit)}" if finding.span else ""
    related = (f"; {code(str(r.span), limit=limit)}: {prose(r.message, limit=limit)}" for r in finding.related)
    words = prose(finding.message, limit=limit)
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
