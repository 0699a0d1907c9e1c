"""A plan with its backtest, or findings, as one comment: Markdown within a forge's limit on its size.

The first line is a hidden marker. Then stand one verdict, at most three sentences, and one table; all else is folded. Guards are
never cut. Of everything else whole rows are, and the comment counts them.
"""

from __future__ import annotations

import dataclasses
import datetime
import itertools
import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from reconciler.documents import FINDINGS, ApplySummary, read_plan
from reconciler.errors import FileAccessError
from reconciler.features.pull_requests.comment_rows import (
    HEAD_ROWS,
    ChangeRow,
    RowState,
    change_rows,
    changed_groups,
    removals,
    row_markdown,
    row_of_staying,
    staying_groups,
)
from reconciler.features.pull_requests.comment_sections import (
    backtest_section,
    effects_section,
    findings_section,
    guards_section,
    notes_section,
    rules_section,
    withheld_section,
)
from reconciler.features.pull_requests.comment_verdict import alert_sentences, history_length, judge_comment
from reconciler.features.pull_requests.overlaps import entities_line
from reconciler.features.pull_requests.sticky_comment import CommentState, Content, Marker, comment_heading, marker_line, trimmed
from reconciler.model import ApplyResult, BacktestReport, Finding, Plan, Verdict, escaped
from reconciler.render import (
    NAME_LIMIT,
    RepositoryLinks,
    Section,
    direction_sentence,
    fence,
    fold,
    rows_that_fit,
    shorten,
    size,
    web_address,
)
from reconciler.text import count_of

BUDGET: Final = 57_500
"""Bytes of UTF-8. A posted comment has 60,000 at most (GitHub takes 65,536 characters); the rest is for its state."""

FULL_PLAN: Final = "`kafka-quotas plan` prints the whole plan, and its `--out json=FILE` keeps it."
FULL_FINDINGS: Final = "`kafka-quotas validate` prints all of them."

OPEN_ROWS: Final = 12
"""How many rows stand open; more are folded."""
_LIMITS: Final = (NAME_LIMIT, 400, 100, 40)
"""How much of one name is shown: less only where the guards alone would fill half of the comment."""
_SENTENCES: Final = 600
"""Bytes kept free for the sentence about what is left out, beside the one about where to find it."""
_TABLES: Final = 900
"""Bytes of the folds and heads of three tables."""

_COUNTED: Final = {
    Verdict.THROTTLED: RowState.THROTTLED,
    Verdict.POSSIBLE: RowState.POSSIBLE,
    Verdict.INCONCLUSIVE: RowState.INCONCLUSIVE,
    Verdict.CLEAR: RowState.CLEAR,
}
_FRAME: Final = 300
"""Bytes that a fold and its title, a fence, and a sentence about what is left out may take beside the rows."""

_BRACED_NAME: Final = re.compile(r"([^\"{},]*[-_./:=])([^\"{},]*)")


@dataclass(frozen=True, slots=True, kw_only=True)
class _Subject:
    """What a comment is about."""

    plan: Plan | None = None
    report: BacktestReport | None = None
    findings: tuple[Finding, ...] = ()
    rows: tuple[ChangeRow, ...] = ()
    today: datetime.date = datetime.date.min


def plan_comment(
    plan: Plan,
    *,
    report: BacktestReport | None = None,
    links: RepositoryLinks | None = None,
    today: datetime.date | None = None,
    budget: int = BUDGET,
) -> Content:
    """The comment about a plan, and about its backtest, in at most ``budget`` bytes.

    ``today``: from this day on an exception to copy lasts. ``None``: from the day on which the cluster was read.
    """
    rows = tuple(change_rows(plan, report))
    subject = _Subject(plan=plan, report=report, findings=plan.findings, rows=rows, today=today or plan.observed.at.date())
    verdict = judge_comment(plan, report, plan.findings, subject.rows)
    shown = (plan.changes, plan.kept, plan.findings, plan.tripped, plan.withheld)
    silent = not any(shown) and not (report is not None and _speaks(report))
    marker = Marker(kind="plan", cluster=plan.cluster.name, digest=plan.digest, empty=silent, verdict=verdict.value)
    return _composed(subject, marker, links, full=FULL_PLAN, budget=budget)


def findings_comment(
    findings: Sequence[Finding], *, cluster: str | None = None, links: RepositoryLinks | None = None, budget: int = BUDGET
) -> Content:
    """Findings alone, e.g. of manifests that cannot be planned, in at most ``budget`` bytes."""
    subject = _Subject(findings=tuple(findings))
    verdict = judge_comment(None, None, findings, ())
    marker = Marker(kind="findings", cluster=cluster, digest=None, verdict=verdict.value)
    return _composed(subject, marker, links, full=FULL_FINDINGS, budget=budget)


def _speaks(report: BacktestReport) -> bool:
    return bool(report.findings or report.unjudged or changed_groups(report))


def _composed(subject: _Subject, marker: Marker, links: RepositoryLinks | None, *, full: str, budget: int) -> Content:
    links = links or RepositoryLinks()
    for limit in _LIMITS:
        top = (*_alert(subject, limit), *_counts(subject))
        guards = guards_section(subject.plan, links, today=subject.today, limit=limit) if subject.plan else ()
        guards += withheld_section(subject.plan, links, limit=limit) if subject.plan else ()
        head = (marker_line(marker), comment_heading(marker, limit=limit), full)
        room = budget - size((*head, *top, *guards)) - _SENTENCES
        if room >= budget // 2:
            break
    sections = _sections(subject, links, room=room, limit=limit)
    taken = sum(size(section.lines) for _, _, section in sections)
    tables = _tables(subject, links, room=room - taken, limit=limit)
    cut = [tables.left_out_words] if tables.left_out else []
    cut += [f"{section.left_out:,} of {total:,} {what}" for what, total, section in sections if section.left_out]
    sentence = (f"**Left out, to stay within the size of a comment: {', '.join(cut)}.** {full}", "") if cut else ()
    folded = [line for _, _, section in sections for line in section.lines]
    lines = (*top, *sentence, *tables.opened, *tables.folded, *guards, *folded)
    return Content(marker=marker, lines=trimmed("\n".join(lines).split("\n")))


def _alert(subject: _Subject, limit: int) -> tuple[str, ...]:
    verdict = judge_comment(subject.plan, subject.report, subject.findings, subject.rows)
    sentences = alert_sentences(subject.plan, subject.report, subject.findings, subject.rows, verdict=verdict, limit=limit)
    return (f"> [!{verdict.alert}]", f"> {' '.join(sentences)}", "") if sentences else ()


def _counts(subject: _Subject) -> Iterator[str]:
    """What changes, and what the backtest shows, each counted once."""
    lines = [text for text in (_plan_counts(subject.plan), _backtest_counts(subject)) if text]
    if lines:
        yield "\\\n".join(lines)
        yield ""


def _plan_counts(plan: Plan | None) -> str:
    if plan is None or not plan.changes:
        return ""
    summary = plan.summary
    kinds = ((summary.create, "created"), (summary.update, "updated"), (summary.delete, "deleted"))
    entities = ", ".join(f"{count:,} {word}" for count, word in kinds if count)
    verb = "entity changes" if summary.changed == 1 else "entities change"
    return f"**{summary.changed:,} {verb}** ({entities}) · limits: {direction_sentence(plan)}"


def _backtest_counts(subject: _Subject) -> str:
    if subject.report is None:
        return ""
    groups = changed_groups(subject.report)
    shown = []
    for verdict, state in _COUNTED.items():
        count = sum(group.verdict is verdict for group in groups)
        shown += [f"{state.sign} {count:,} {verdict.value}"] if count else []
    if unknown := sum(row.unknown for row in subject.rows):
        shown.append(f"{RowState.NOT_RECORDED.sign} **{count_of(unknown, 'change')} not recorded**")
    if staying := len(staying_groups(subject.report)):
        shown.append(f"{staying:,} over already")
    moved = f"**{count_of(len(groups), 'quota group')} {'changes' if len(groups) == 1 else 'change'}**"
    return f"{moved}: {' · '.join(shown)}" if shown else moved


def _sections(subject: _Subject, links: RepositoryLinks, *, room: int, limit: int) -> list[tuple[str, int, Section]]:
    """What is folded below the tables, each with what it is counted in."""
    plan, report = subject.plan, subject.report
    share = room // 4 if plan is not None or report is not None else room
    shown = [("findings", len(subject.findings), findings_section(subject.findings, links, room=share))]
    inner: list[tuple[str, int, Section]] = []
    if report is not None:
        staying = staying_groups(report)
        inner.append(("groups over a limit that stays", len(staying), _staying(report, links, room=room // 8, limit=limit)))
        inner.append(("rules", len(report.rules), rules_section(report, links, room=room // 6)))
        facts = backtest_section(report, links, room=room // 8)
        inner.append(("facts about the backtest", len(facts.lines) + facts.left_out, facts))
    if plan is not None:
        moves = len(plan.effects.effects) if plan.effects else 0
        inner.append(("effects", moves, effects_section(plan, links, room=room // 6)))
        notes = len(plan.notes) + sum(change.note is not None for change in plan.changes)
        inner.append(("notes", notes, notes_section(plan, room=room // 10, limit=limit)))
    subjects = [name for name, document in (("the plan", plan), ("the backtest", report)) if document is not None]
    lines = [line for _, _, section in inner for line in section.lines]
    if not lines:
        return shown
    # The counts are those of the sections inside; the lines are in the fold around them.
    around = ("", 0, Section(lines=fold(f"More about {' and '.join(subjects)}", lines)))
    return [*shown, *((what, total, Section(left_out=section.left_out)) for what, total, section in inner), around]


def _staying(report: BacktestReport, links: RepositoryLinks, *, room: int, limit: int) -> Section:
    groups = staying_groups(report)
    title = f"Over a limit already, and the limit stays: {count_of(len(groups), 'quota group')}"
    rows = rows_that_fit((row_markdown(row_of_staying(group), links, limit=limit) for group in groups), room - _TABLES // 3)
    return Section(lines=fold(title, (*_head(report, links), *rows)) if rows else (), left_out=len(groups) - len(rows))


def _head(report: BacktestReport | None, links: RepositoryLinks) -> tuple[str, str]:
    names, line = HEAD_ROWS
    if report is None:
        return names.format("Backtest"), line
    title = f"Backtest ({history_length(report)}, {count_of(len(report.provenance.coverage), 'broker')})"
    address = web_address(links.report)
    return names.format(f"[{title}]({address})" if address else title), line


@dataclass(frozen=True, slots=True, kw_only=True)
class _Tables:
    """The open table, what is folded below it, and how many rows are nowhere, removals among them, and those in no list."""

    opened: tuple[str, ...]
    folded: tuple[str, ...]
    total: int
    left_out: int
    removed: int
    unlisted: int

    @property
    def left_out_words(self) -> str:
        """``4,000 of 5,000 changed limits``, and what became of the removals."""
        words = f"{self.left_out:,} of {self.total:,} changed limits"
        if not self.removed:
            return words
        listed = f"{self.unlisted:,} of them in no list" if self.unlisted else "listed below"
        return f"{words}, with {count_of(self.removed, 'removal')} ({listed})"


def _tables(subject: _Subject, links: RepositoryLinks, *, room: int, limit: int) -> _Tables:
    rows = subject.rows
    space = room - _TABLES
    kept = rows_that_fit((row_markdown(row, links, limit=limit) for row in rows), space)
    listed = Section()
    if subject.plan is not None and removals(rows[len(kept) :]):
        listed = removal_list(subject.plan, room=space * 3 // 4, limit=limit)
        kept = rows_that_fit((row_markdown(row, links, limit=limit) for row in rows), space - size(listed.lines))
    quiet = sum(row.state is RowState.NO_TRAFFIC for row in rows[: len(kept)])
    loud = len(kept) - quiet
    # Rows are sorted: those without traffic are the last. They stand open only where there are no others.
    opened = min(loud or len(kept), OPEN_ROWS)
    head = _head(subject.report, links)
    folded: list[str] = []
    if more := kept[opened:loud]:
        folded += fold(f"{count_of(len(more), 'more change')}{_worst(rows[opened:loud])}", (*head, *more))
    if rest := kept[max(opened, loud) :]:
        title = f"{RowState.NO_TRAFFIC.sign} {count_of(len(rest), 'change')} without traffic in the history: nothing known"
        folded += fold(title, (*head, *rest))
    return _Tables(
        opened=(*head, *kept[:opened], "") if kept else (),
        folded=(*folded, *listed.lines),
        total=len(rows),
        left_out=len(rows) - len(kept),
        removed=removals(rows[len(kept) :]),
        unlisted=listed.left_out,
    )


def _worst(rows: Sequence[ChangeRow]) -> str:
    counts: dict[RowState, int] = {}
    for row in rows:
        counts[row.state] = counts.get(row.state, 0) + 1
    return ": " + ", ".join(f"{count:,} {state.words}" for state, count in counts.items())


def removal_list(plan: Plan, *, room: int, limit: int) -> Section:
    """All removed limits; shared beginnings are written once where that is needed, and the rest is counted."""
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
        keys = [escaped(key.key) for key in change.keys if key.after is None]
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


@dataclass(frozen=True, slots=True, kw_only=True)
class CommentBody:
    """What BODY is: a plan, or findings. ``name`` is the file's."""

    name: str
    plan: Plan | None = None
    findings: tuple[Finding, ...] = ()


def read_body(text: str, *, name: str) -> CommentBody:
    """A plan or findings as JSON. Raises ``FileAccessError`` for any other text."""
    if _is_plan(text):
        return CommentBody(name=name, plan=read_plan(text, name=name))
    return CommentBody(name=name, findings=FINDINGS.read(text, name=name).findings)


def _is_plan(text: str) -> bool:
    """Whether a text is not a list of findings; text that is not JSON is left to the reader of plans."""
    try:
        document = json.loads(text)
    except (ValueError, RecursionError):
        return True
    return not isinstance(document, dict) or "findings" not in document or "changes" in document


def body_content(
    body: CommentBody,
    *,
    cluster: str | None,
    label: str,
    report: BacktestReport | None = None,
    report_name: str = "the backtest",
    links: RepositoryLinks | None = None,
    today: datetime.date | None = None,
) -> Content:
    """The content of the comment about this cluster and label: the plan with the backtest merged into it.

    ``cluster`` is needed for a body that is about no cluster (findings of manifests that cannot be planned), else it must be
    the body's own. Raises ``FileAccessError`` for a body or a report about another cluster, and for a report without a plan.
    """
    if body.plan is None:
        if report is not None:
            raise FileAccessError(f"{body.name} has findings and no plan, so {report_name} cannot be merged into it")
        content = findings_comment(body.findings, links=links)
    else:
        content = _with_entities(plan_comment(body.plan, report=report, links=links, today=today), body.plan)
    about = content.marker.cluster
    if cluster is not None and about not in (None, cluster):
        raise FileAccessError(f"{body.name} is about cluster {about!r}, not {cluster!r}")
    if report is not None and report.cluster is not None and about is not None and report.cluster != about:
        raise FileAccessError(f"{report_name} is about cluster {report.cluster!r}, not {about!r}")
    return dataclasses.replace(content, marker=dataclasses.replace(content.marker, cluster=about or cluster, label=label))


def _with_entities(content: Content, plan: Plan) -> Content:
    """With the changed entities hidden in it, where there is room."""
    line = entities_line(plan)
    if line is None or size((*content.lines, line)) > BUDGET:
        return content
    return dataclasses.replace(content, lines=(*content.lines, "", line))


def state_of_report(report: ApplySummary) -> CommentState:
    """How far the change is after a run of ``apply``."""
    if report.result is ApplyResult.DONE:
        return CommentState.APPLIED_IN_PART if report.withheld else CommentState.APPLIED
    idle = report.result is ApplyResult.NOTHING_TO_DO and not report.withheld
    return CommentState.APPLIED if idle else CommentState.FAILED
