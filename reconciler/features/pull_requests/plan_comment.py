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
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from reconciler.documents import BACKTEST, FINDINGS, read_plan
from reconciler.errors import FileAccessError
from reconciler.features.pull_requests.comment_rows import ChangeRow, change_rows, changed_groups
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
from reconciler.model import BacktestReport, Finding, GuardResult, GuardStatus, Plan
from reconciler.render import (
    NAME_LIMIT,
    Block,
    Fold,
    RepositoryLinks,
    backtest_basis,
    blocks_markdown,
    cluster_title,
    code,
    commit_line,
    counts_sentence,
    effects_lines,
    fence,
    findings_on_page,
    fold,
    line,
    message_markdown,
    note_line,
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
_MOST_ENTITIES: Final = 5
_LATELY: Final = datetime.timedelta(days=2)


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
    source = SuggestionSource(plan=plan, report=report, places=writer.links.places, today=writer.today, rows=rows)
    return dataclasses.replace(content, empty=silent, suggestions=source if source.is_needed else None)


def findings_comment(findings: Sequence[Finding], *, links: RepositoryLinks | None = None) -> Content:
    """Findings alone, e.g. of manifests that cannot be planned."""
    verdict = CommentVerdict.BLOCKED if errors_in(findings) else CommentVerdict.NOT_CHECKED
    writer = _CommentWriter(findings=tuple(findings), verdict=verdict, links=links or RepositoryLinks())
    return writer.content(Marker(cluster=None, verdict=verdict), full=FULL_FINDINGS, budget=BUDGET)


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
        findings = blocks_markdown(self._findings(), room=room if self.plan is None else room // 4, links=self.links)
        more = blocks_markdown(self._more(), room=room // 3, links=self.links)
        (opened, *folded), cut = self._tables(room - size((*findings.lines, *more.lines)) - _TABLES)
        cut += [f"{findings.left_out:,} of {len(self.findings):,} findings"] if findings.left_out else []
        cut += [f"{count_of(more.left_out, 'other row')}"] if more.left_out else []
        sentence = (f"**Left out, to stay within the size of a comment: {', '.join(cut)}.** {full}", "") if cut else ()
        below = (*(row for table in folded for row in table), *guards, *findings.lines, "", *more.lines)
        lines = (*top, *sentence, *opened, *self._way_out(), *below)
        check = check_of(self.plan, self.verdict, self._sentences())
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
        # Those without traffic stand open only where there are no others.
        first, rest = (loud, [each for each in own if each[0].is_quiet]) if loud else (own, [])
        head, more = table_head(self._history()), [*first[OPEN_ROWS:], *rest]
        tables = [(*head, *(text for _, text in first[:OPEN_ROWS]), "") if first else ()]
        if more:
            states = ", ".join(f"{count:,} {state.words}" for state, count in Counter(row.state for row, _ in more).items())
            tables.append(fold(f"{count_of(len(more), 'more change')}: {states}", (*head, *(text for _, text in more))))
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
        lines = ("accept:", *(f"  {row}" for item in items for row in item))
        ticks = fence("\n".join(lines))
        yield (
            "Change the values so that no guard trips. To accept a guard instead, add its exceptions to `spec.accept` of "
            f"{manifest}, and write the reason:"
        )
        yield from ("", f"{ticks}yaml", *lines, ticks)

    def _findings(self) -> Iterator[Block]:
        if self.findings:
            title = line(f"Findings: {counts_sentence(self.findings)}")
            opened = errors_in(self.findings) > 0
            yield Fold(title=title, blocks=tuple(findings_on_page(self.findings)), opened=opened)

    def _more(self) -> Iterator[Block]:
        """What is behind one fold: rules and facts of the backtest, notes and facts of the plan, its effects."""
        inner = (*self._of_backtest(), *self._of_plan())
        subjects = [name for name, document in (("the plan", self.plan), ("the backtest", self.report)) if document is not None]
        if inner:
            yield Fold(title=line(f"More about {' and '.join(subjects)}"), blocks=inner)

    def _of_backtest(self) -> Iterator[Block]:
        report = self.report
        if report is None:
            return
        failed = sum(not rule.holds for rule in report.rules)
        title = f"Rules of the backtest: {failed:,} {'fails' if failed == 1 else 'fail'}, {len(report.rules) - failed:,} kept"
        ordered = dataclasses.replace(report, rules=tuple(sorted(report.rules, key=lambda rule: rule.holds)))
        if report.rules:
            yield Fold(title=line(title), blocks=tuple(rule_lines(ordered)))
        yield Fold(title=line("Backtest: history, capacity, assumptions"), blocks=tuple(backtest_basis(report)))

    def _of_plan(self) -> Iterator[Block]:
        plan = self.plan
        if plan is None:
            return
        notes = [note_line(note) for note in plan.notes]
        notes += [line(change.entity, ": ", change.note) for change in plan.changes if change.note]
        summary, title = plan.summary, cluster_title(plan.cluster)
        unchanged = count_of(summary.unchanged, "entity is", "entities are")
        facts = (
            line(f"{title[0].upper()}{title[1:]}, {read_words(plan.observed)}."),
            line(f"{unchanged} unchanged, {summary.unmanaged:,} unmanaged."),
            *((commit_line(plan.source),) if plan.source.commit else ()),
        )
        heading = f"Notes ({len(notes)}), and the cluster that was read" if notes else "The cluster that was read"
        yield Fold(title=line(heading), blocks=(*facts, *notes))
        if plan.effects is not None:
            first, *blocks = effects_lines(plan.effects, changes=plan.changes)
            yield Fold(title=line(plain((first,)).strip() or "Effects"), blocks=tuple(blocks))
