"""A plan with its backtest, or findings, as one comment: Markdown within a forge's limit on its size.

The first line is a hidden marker. Then stand one verdict, at most three sentences, and one table; all else is folded. Guards are
never cut. Of everything else whole rows are, and the comment counts them.
"""

from __future__ import annotations

import dataclasses
import datetime
import json
import urllib.parse
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from reconciler.documents import BACKTEST, FINDINGS, read_plan
from reconciler.errors import FileAccessError
from reconciler.features.pull_requests.comment_rows import ChangeRow, RowState, change_rows, changed_groups
from reconciler.features.pull_requests.comment_table import row_markdown, table_head
from reconciler.features.pull_requests.comment_verdict import (
    CommentVerdict,
    alert_sentences,
    check_of,
    errors_in,
    findings_sentence,
    history_length,
    judge_comment,
    way_out,
)
from reconciler.features.pull_requests.sticky_comment import Content, Marker, comment_heading, marker_line, trimmed
from reconciler.features.pull_requests.suggestions import SuggestionSource, acceptable, exception_items
from reconciler.model import BacktestReport, Finding, GuardResult, GuardStatus, Plan, Severity, display_name
from reconciler.render import (
    NAME_LIMIT,
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
from reconciler.text import count_of

LIMIT: Final = 60_000
"""Bytes of UTF-8 of a posted comment: GitHub takes 65,536 characters. What ``BUDGET`` leaves is for its state."""
BUDGET: Final = LIMIT - 5_000

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
_FRAME: Final = 200
_MOST_ENTITIES: Final = 5
_LATELY: Final = datetime.timedelta(days=2)
_SIGNS: Final = {Severity.ERROR: "⛔", Severity.WARNING: "⚠️", Severity.INFO: "💬"}


def body_content(
    text: str,
    *,
    name: str,
    cluster: str | None,
    backtest: str | None = None,
    backtest_name: str = "the backtest",
    links: RepositoryLinks | None = None,
    today: datetime.date | None = None,
) -> Content:
    """The content of the comment about this cluster: the plan of a JSON text with the backtest merged into it.

    The text may be of findings. A cluster is needed for findings about none (of manifests that cannot be planned), else it must
    be the text's own. Raises ``FileAccessError`` for another text or cluster, and for a report without a plan.
    """
    report, unread = (None, ()) if backtest is None else _read_backtest(backtest, backtest_name)
    if not _has_only_findings(text):
        plan = read_plan(text, name=name)
        content = plan_comment(plan, report=report, unread=unread, links=links, today=today)
    else:
        findings = FINDINGS.read(text, name=name).findings
        if report is not None:
            raise FileAccessError(f"{name} has findings and no plan, so {backtest_name} cannot be merged into it")
        content = findings_comment(findings, links=links)
    of = content.marker.cluster
    if cluster is not None and of not in (None, cluster):
        raise FileAccessError(f"{name} is about cluster {of!r}, not {cluster!r}")
    if report is not None and report.cluster is not None and of is not None and report.cluster != of:
        raise FileAccessError(f"{backtest_name} is about cluster {report.cluster!r}, not {of!r}")
    return dataclasses.replace(content, marker=dataclasses.replace(content.marker, cluster=of or cluster))


def _read_backtest(text: str, name: str) -> tuple[BacktestReport | None, tuple[Finding, ...]]:
    """A report, or why its traffic could not be read: one of the two."""
    if _has_only_findings(text):
        return None, FINDINGS.read(text, name=name).findings
    return BACKTEST.read(text, name=name), ()


def _has_only_findings(text: str) -> bool:
    """Whether a text is a list of findings and no result; text that is not JSON is left to the reader of results."""
    try:
        document = json.loads(text)
    except (ValueError, RecursionError):
        return False
    return isinstance(document, dict) and "findings" in document and not {"changes", "verdicts"} & document.keys()


def plan_comment(
    plan: Plan,
    *,
    report: BacktestReport | None = None,
    unread: Sequence[Finding] = (),
    links: RepositoryLinks | None = None,
    today: datetime.date | None = None,
    budget: int = BUDGET,
) -> Content:
    """The comment about a plan, and about its backtest, in at most ``budget`` bytes.

    ``unread``: why there is no report, where its traffic could not be read.
    ``today``: from this day on an exception to copy lasts. ``None``: from the day on which the cluster was read.
    """
    rows = tuple(change_rows(plan, report))
    verdict = judge_comment(plan, report, rows)
    new = [finding for finding in plan.findings if not finding.as_before]
    shown = (plan.changes, plan.kept, new, plan.tripped)
    silent = not any(shown) and not (report is not None and (report.findings or report.unjudged or changed_groups(report)))
    marker = Marker(cluster=plan.cluster.name, digest=plan.digest, verdict=verdict)
    writer = _CommentWriter(
        plan=plan,
        report=report,
        unread=unread,
        findings=plan.findings,
        rows=rows,
        verdict=verdict,
        today=today or plan.observed.at.date(),
        links=links or RepositoryLinks(),
    )
    content = writer.content(marker, full=FULL_PLAN, budget=budget)
    source = SuggestionSource.of(plan, report, places=writer.links.places, today=writer.today)
    return dataclasses.replace(content, empty=silent, suggestions=source)


def findings_comment(
    findings: Sequence[Finding], *, cluster: str | None = None, links: RepositoryLinks | None = None, budget: int = BUDGET
) -> Content:
    """Findings alone, e.g. of manifests that cannot be planned, in at most ``budget`` bytes."""
    verdict = CommentVerdict.BLOCKED if errors_in(findings) else CommentVerdict.NOT_CHECKED
    marker = Marker(cluster=cluster, verdict=verdict)
    writer = _CommentWriter(findings=tuple(findings), verdict=verdict, links=links or RepositoryLinks())
    return writer.content(marker, full=FULL_FINDINGS, budget=budget)


@dataclass(slots=True, kw_only=True)
class _CommentWriter:
    """What a comment is about. ``limit``: how much of one name is shown."""

    plan: Plan | None = None
    report: BacktestReport | None = None
    unread: Sequence[Finding] = ()
    """Why the traffic of a backtest could not be read."""
    findings: tuple[Finding, ...]
    rows: tuple[ChangeRow, ...] = ()
    verdict: CommentVerdict
    today: datetime.date = datetime.date.min
    links: RepositoryLinks
    limit: int = NAME_LIMIT

    def content(self, marker: Marker, *, full: str, budget: int) -> Content:
        """The whole; ``full``: where to find what has no room."""
        for self.limit in _LIMITS:
            top = tuple(self._alert())
            guards = self._guards()
            head = (marker_line(marker), comment_heading(marker, limit=self.limit), full)
            room = budget - size((*head, *top, *guards)) - _SENTENCES
            if room >= budget // 2:
                break
        sections = self._sections(room)
        tables, cut = self._tables(room - sum(size(section.lines) for _, _, section in sections) - _TABLES)
        cut += [f"{section.left_out:,} of {total:,} {what}" for what, total, section in sections if section.left_out]
        sentence = (f"**Left out, to stay within the size of a comment: {', '.join(cut)}.** {full}", "") if cut else ()
        folded = [line for _, _, section in sections for line in section.lines]
        opened, *more = tables
        check = check_of(self.plan, self.verdict, self._sentences())
        lines = (*top, *sentence, *opened, *self._way_out(), *(line for each in more for line in each), *guards, *folded)
        return Content(marker=marker, lines=trimmed("\n".join(lines).split("\n")), check=check)

    def _alert(self) -> tuple[str, ...]:
        sentences = self._sentences()
        return (f"> [!{self.verdict.alert}]", f"> {' '.join(sentences)}", "") if sentences else ()

    def _sentences(self) -> list[str]:
        if self.plan is None:
            return [findings_sentence(self.findings)]
        return alert_sentences(self.plan, self.report, self.rows, verdict=self.verdict, unchecked=self._unchecked())

    def _unchecked(self) -> str:
        """Return the fault that stopped the backtest, or how to set one up."""
        if self.unread:
            return f"{prose(str(self.unread[0].message).rstrip('.'), begins_line=False)}."
        page = web_address(urllib.parse.urljoin(self.links.docs, "record-traffic.md") if self.links.docs else "")
        return f"[set it up]({page})." if page else "set `spec.traffic` in the Cluster manifest."

    def _history(self) -> str | None:
        """The title of the column of results: how long the traffic is, and when it ended unless that was lately."""
        if self.report is None or self.plan is None:
            return None
        end, length = self.report.provenance.end, history_length(self.report)
        title = f"Last {length}" if abs(self.plan.observed.at - end) <= _LATELY else f"{length} to {end:%-d %b %Y}"
        address = web_address(self.links.report)
        return f"[{title}]({address})" if address else title

    def _way_out(self) -> Iterator[str]:
        words = way_out(self.plan, self.report, self.rows) if self.plan is not None else None
        if words is not None:
            yield from (words, "")

    def _tables(self, room: int) -> tuple[list[tuple[str, ...]], list[str]]:
        """The open table and the folded ones, and what has no room. Removed limits come first where not all rows have room."""
        rows = self.rows
        kept = self._fitting(rows, room)
        if len(kept) < len(rows):
            rows = tuple(sorted(rows, key=lambda row: not row.removed))
            kept = self._fitting(rows, room)
        earlier = [each for each in kept if each[0].is_folded]
        own = [each for each in kept if not each[0].is_folded]
        loud = [each for each in own if not each[0].is_quiet]
        quiet = [each for each in own if each[0].is_quiet]
        # Those without traffic stand open only where there are no others.
        opened, more, rest = (loud[:OPEN_ROWS], loud[OPEN_ROWS:], quiet) if loud else (quiet[:OPEN_ROWS], [], quiet[OPEN_ROWS:])
        head = table_head(self._history())
        tables = [(*head, *(text for _, text in opened), "") if opened else ()]
        if more:
            states = ", ".join(f"{count:,} {state.words}" for state, count in Counter(row.state for row, _ in more).items())
            tables.append(fold(f"{count_of(len(more), 'more change')}: {states}", (*head, *(text for _, text in more))))
        if rest:
            title = f"{RowState.NOT_CHECKED.sign} {count_of(len(rest), 'change')} not checked (no recorded traffic)"
            tables.append(fold(title, (*head, *(text for _, text in rest))))
        if earlier:
            title = f"{count_of(len(earlier), 'limit differs', 'limits differ')} from the cluster without this change"
            tables.append(fold(title, (*head, *(text for _, text in earlier))))
        if len(kept) == len(rows):
            return tables, []
        removed = sum(row.removed for row in rows[len(kept) :])
        with_removals = f", with {count_of(removed, 'removal')}" if removed else ""
        return tables, [f"{len(rows) - len(kept):,} of {len(rows):,} changed limits{with_removals}"]

    def _fitting(self, rows: Sequence[ChangeRow], room: int) -> list[tuple[ChangeRow, str]]:
        checked = self.report is not None
        texts = rows_that_fit((row_markdown(row, self.links, limit=self.limit, checked=checked) for row in rows), room)
        return list(zip(rows, texts, strict=False))

    def _guards(self) -> tuple[str, ...]:
        """Every guard that tripped or is accepted; none is cut. Then how to satisfy them, and how to accept one."""
        plan = self.plan
        accepted = [guard for guard in plan.guards if guard.status is GuardStatus.ACCEPTED] if plan else []
        if plan is None or not (plan.tripped or accepted):
            return ()
        counts = [f"{len(plan.tripped)} need{'s' if len(plan.tripped) == 1 else ''} acceptance"] if plan.tripped else []
        counts += [f"{len(accepted)} accepted"] if accepted else []
        lines = [self._guard(guard) for guard in (*plan.tripped, *accepted)]
        return fold(f"Guards: {', '.join(counts)}", (*lines, *(self._how_to_accept(plan.tripped) if plan.tripped else ())))

    def _guard(self, guard: GuardResult) -> str:
        state = "accepted" if guard.status is GuardStatus.ACCEPTED else "needs acceptance"
        explained = self.links.explained(guard.id)
        return f"- **{code(guard.id, limit=self.limit)}** {state} ({explained}): {self._sentence(guard.message)}."

    def _sentence(self, message: str) -> str:
        return message_markdown(message, limit=self.limit, begins_line=False, place=self.links.place).rstrip(".;, ")

    def _how_to_accept(self, tripped: Sequence[GuardResult]) -> Iterator[str]:
        """The exceptions to copy: each for its entities only, and without a reason, which validation refuses."""
        place = next((place for guard in tripped if (place := span_of(guard.set_in)) is not None), None)
        manifest = f"the Cluster manifest {self.links.place(place)}" if place else "the Cluster manifest"
        items = [item for guard in acceptable(self.plan) for item in exception_items(guard, self.today)] if self.plan else []
        yield ""
        if not items:
            yield "Change the values so that no guard trips. An exception has to name its entities."
            return
        lines = ("accept:", *(f"  {line}" for item in items for line in item))
        ticks = fence("\n".join(lines))
        yield (
            "Change the values so that no guard trips. To accept a guard instead, add its exceptions to `spec.accept` of "
            f"{manifest}, and write the reason:"
        )
        yield from ("", f"{ticks}yaml", *lines, ticks)

    def _sections(self, room: int) -> list[tuple[str, int, Section]]:
        """Return the sections that are folded below the tables: noun, count and lines of each."""
        plan, report = self.plan, self.report
        share = room // 4 if plan is not None or report is not None else room
        shown = [("findings", sum(not finding.as_before for finding in self.findings), self._findings(share))]
        inner: list[tuple[str, int, Section]] = []
        if report is not None:
            failed = sum(not rule.holds for rule in report.rules)
            verb = "fails" if failed == 1 else "fail"
            title = f"Rules of the backtest: {failed:,} {verb}, {len(report.rules) - failed:,} kept"
            ordered = dataclasses.replace(report, rules=tuple(sorted(report.rules, key=lambda rule: rule.holds)))
            inner.append(("rules", len(report.rules), self._folded(title, rule_lines(ordered), room // 6)))
            address = web_address(self.links.report)
            above = (f"- [The whole report]({address})",) if address else ()
            title = "Backtest: history, capacity, assumptions"
            facts = self._folded(title, backtest_basis(report), room // 8, above=above)
            inner.append(("facts about the backtest", len(facts.lines) + facts.left_out, facts))
        if plan is not None and plan.effects is not None:
            first, *blocks = effects_lines(plan.effects, changes=plan.changes)
            effects = self._folded(plain((first,)).strip() or "Effects", blocks, room // 6)
            inner.append(("effects", len(plan.effects.effects), effects))
        if plan is not None:
            notes = len(plan.notes) + sum(change.note is not None for change in plan.changes)
            inner.append(("notes", notes, self._notes(plan, room // 10)))
        subjects = [name for name, document in (("the plan", plan), ("the backtest", report)) if document is not None]
        lines = [line for _, _, section in inner for line in section.lines]
        if not lines:
            return shown
        # The counts are those of the sections inside; the lines are in the fold around them.
        around = ("", 0, Section(lines=fold(f"More about {' and '.join(subjects)}", lines)))
        return [*shown, *((what, total, Section(left_out=section.left_out)) for what, total, section in inner), around]

    def _findings(self, room: int) -> Section:
        """The new ones, the worst first and open where there are errors; then a fold of those that are as before."""
        new = [finding for finding in self.findings if not finding.as_before]
        title, opened = f"Findings: {counts_sentence(new)}", errors_in(new) > 0
        # The signs take their room in the rest.
        section = self._folded(title, findings_on_page(new), room * 3 // 4, opened=opened)
        lines = (*section.lines, *self._earlier_findings(room * 3 // 4 - size(section.lines)))
        return dataclasses.replace(section, lines=tuple(map(_with_sign, lines)))

    def _earlier_findings(self, room: int) -> tuple[str, ...]:
        earlier = [dataclasses.replace(finding, as_before=False) for finding in self.findings if finding.as_before]
        shown = blocks_markdown(findings_on_page(earlier), room=room, links=self.links)
        more = (f"- and {shown.left_out:,} more",) if shown.left_out else ()
        return fold(f"{count_of(len(earlier), 'finding')} as before", (*shown.lines, *more)) if earlier else ()

    def _folded(
        self, title: str, blocks: Iterable[Block], room: int, *, opened: bool = False, above: Sequence[str] = ()
    ) -> Section:
        """Blocks behind a title, or nothing without any."""
        inner = blocks_markdown(blocks, room=room - size(fold(title, above, opened=opened)), links=self.links)
        lines = (*above, *inner.lines)
        return Section(lines=fold(title, lines, opened=opened) if lines else (), left_out=inner.left_out)

    def _notes(self, plan: Plan, room: int) -> Section:
        """Notes of the plan and of its changes, and which cluster was read when."""
        limit = self.limit
        notes = [message_markdown(note, limit=limit) for note in plan.notes]
        noted = [change for change in plan.changes if change.note]
        notes += [f"{code(str(change.entity), limit=limit)}: {prose(change.note or '', limit=limit)}" for change in noted]
        facts = tuple(self._facts(plan))
        title = f"Notes ({len(notes)}), and the cluster that was read" if notes else "The cluster that was read"
        kept = rows_that_fit((f"- {note}" for note in notes), room - size(fold(title, facts)) - _FRAME)
        return Section(lines=fold(title, (*kept, *facts)), left_out=len(notes) - len(kept))

    def _facts(self, plan: Plan) -> Iterator[str]:
        cluster, limit = plan.cluster, self.limit
        known = [f"id {code(cluster.id, limit=limit)}"] if cluster.id else []
        known += [f"Kafka {code(cluster.kafka_version, limit=limit)}"] if cluster.kafka_version else []
        name = code(display_name(cluster.name), limit=limit) if cluster.name else "The cluster"
        yield f"- {name}: {', '.join((*known, read_words(plan.observed)))}."
        summary = plan.summary
        yield f"- {count_of(summary.unchanged, 'entity is', 'entities are')} unchanged, {summary.unmanaged:,} unmanaged."
        if plan.source.commit:
            changed = ", with changes that are not committed" if plan.source.dirty else ""
            yield f"- Manifests of commit {code(plan.source.commit, limit=limit)}{changed}."


def _with_sign(line: str) -> str:
    """A finding with the sign of its severity before the word."""
    for severity, sign in _SIGNS.items():
        line = line.replace(f"- **{severity.value}**", f"- {sign} **{severity.value}**", 1)
    return line
