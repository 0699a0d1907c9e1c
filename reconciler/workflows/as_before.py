"""What a change brings, beside what was there before: findings, changes and effects that a plan of the base has, too.

Two findings are the same when their rule and their facts are: the entity, the key, and each name, amount and number of the
message. Places and words do not count, so a moved line, a file in another order or a better sentence makes no finding new, and a
value that got worse does. They are counted: of three equal ones where the base has two, one is new. An error is never as before,
because it stops the command.
"""

from __future__ import annotations

import contextlib
import datetime
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from typing import Final, TypeAlias

from reconciler.errors import ReconcilerError
from reconciler.manifest import FindingsBaseline
from reconciler.model import Change, Entity, Finding, KeyChange, MessagePart, PartKind, Plan, Severity, parts_of, same_value
from reconciler.policy import Judgement
from reconciler.text import count_of, number_text
from reconciler.workflows.intent import Intent, intent_of, lint_offline
from reconciler.workflows.load import LoadedManifests
from reconciler.workflows.trusted import Before

FindingFacts: TypeAlias = tuple[str, ...]
"""The id of a finding, then its facts."""

_FACTS: Final = frozenset({PartKind.ENTITY, PartKind.KEY, PartKind.AMOUNT, PartKind.NAME})
_NUMBER: Final = re.compile(r"\S*\d\S*")


def facts_of(finding: Finding) -> FindingFacts:
    """The id, the entity and the key, and the facts of the message in their order, each as text."""
    about = (str(finding.entity) if finding.entity is not None else "", finding.key or "")
    stated = [fact for part in parts_of(finding.message) for fact in _facts(part)]
    return (finding.id, *(fact for fact in about if fact and fact not in stated), *stated)


def _facts(part: MessagePart) -> Iterator[str]:
    if part.kind is PartKind.TEXT:
        yield from (word.strip(".,:;()") for word in _NUMBER.findall(part.text))
    elif part.kind is PartKind.AMOUNT and part.value is not None:
        yield number_text(part.value)
    elif part.kind in _FACTS:
        yield part.text


class EarlierFindings:
    """Findings that were there before, each of which covers one that is not worse."""

    def __init__(self, *known: Iterable[tuple[FindingFacts, Severity]]) -> None:
        """``known``: the findings of one or several sources. One that two sources have is one finding."""
        self._left: Counter[tuple[FindingFacts, Severity]] = Counter()
        for each in known:
            self._left |= Counter(each)

    def mark(self, findings: Iterable[Finding]) -> tuple[Finding, ...]:
        """The findings, of which those that are as before are marked."""
        return tuple(replace(finding, as_before=True) if self._covers(finding) else finding for finding in findings)

    def take(self, facts: FindingFacts, severity: Severity, most: int) -> int:
        """Take away up to ``most`` of these findings that have covered nothing, and return their number."""
        taken = min(self._left[facts, severity], most)
        self._left[facts, severity] -= taken
        return taken

    def _covers(self, finding: Finding) -> bool:
        if finding.severity is Severity.ERROR:
            return False
        facts = facts_of(finding)
        for severity in reversed(Severity):  # its own first, so that a worse one is left for a worse finding
            if severity.at_least(finding.severity) and self._left[facts, severity]:
                self._left[facts, severity] -= 1
                return True
        return False


class EarlierPlan:
    """A plan of the base against the same cluster."""

    def __init__(self, intent: Intent, plan_base: Callable[[Intent], Plan]) -> None:
        """``plan_base``: makes the plan of an intent. Without a base, or where it cannot be planned, everything is new."""
        before = intent.before
        self._before = before
        self._plan: Plan | None = None
        self.notes: tuple[str, ...] = ()
        try:
            base = base_intent(intent, before) if before is not None else None
            self._plan = plan_base(base) if base is not None else None
        except ReconcilerError as error:
            ref = before.at.ref if before is not None else ""
            self.notes = (f"Everything counts as new, because the manifests at {ref} cannot be planned: {error}",)
        earlier = self._plan.findings if self._plan is not None else ()
        self._findings = EarlierFindings(known_findings(earlier), known_entries(intent.loaded.baseline, intent.loaded.at))

    def mark_judgement(self, judgement: Judgement) -> Judgement:
        """The judgement with those findings marked that are as before."""
        return replace(judgement, findings=self._findings.mark(judgement.findings))

    def mark_changes(self, plan: Plan) -> Plan:
        """The plan with those changes marked, and counted in a note, that a plan of the base has, too.

        Where the base is checked out, there is no change that the others could be of.
        """
        if self._plan is None or self._before is None or (self._before.at.commit == plan.source.commit and not plan.source.dirty):
            return plan
        before = {(change.entity, key.key): key.after for change in self._plan.changes for key in change.keys}
        changes = tuple(
            replace(change, keys=tuple(_marked(change, key, before) for key in change.keys)) for change in plan.changes
        )
        count = sum(key.as_before for change in changes for key in change.keys)
        if not count:
            return plan
        note = (
            f"The cluster already differs from {self._before.at.ref} in {count_of(count, 'limit')}. This change does not touch "
            f"{'it' if count == 1 else 'them'}, and apply writes {'it' if count == 1 else 'them'}, too"
        )
        return replace(plan, changes=changes, notes=(*plan.notes, note))


_NOT_THERE: Final = object()


def _marked(change: Change, key: KeyChange, before: dict[tuple[Entity, str], float | None]) -> KeyChange:
    after = before.get((change.entity, key.key), _NOT_THERE)
    same = after is key.after or (isinstance(after, float) and same_value(after, key.after))
    return replace(key, as_before=True) if same else key


def known_entries(baseline: FindingsBaseline | None, at: datetime.datetime | None) -> Iterator[tuple[FindingFacts, Severity]]:
    """The entries of a findings baseline that have not expired, each as often as it counts."""
    today = datetime.date.min if at is None else at.date()
    for entry in baseline.findings if baseline is not None else ():
        if entry.until is not None and today <= entry.until:
            yield from [((entry.id, *entry.subject), entry.severity)] * entry.count


def known_findings(findings: Iterable[Finding]) -> Iterator[tuple[FindingFacts, Severity]]:
    """Findings as ``EarlierFindings`` takes them."""
    return ((facts_of(finding), finding.severity) for finding in findings)


def base_intent(intent: Intent, before: Before) -> Intent | None:
    """Return what the base wants of the cluster, ``None`` for a cluster that it does not have.

    Raises ``ManifestError`` when the manifests contradict themselves there.
    """
    known = before.at.loaded.clusters
    if known and intent.spec.name not in known:
        return None
    name = intent.spec.name if known else None
    made = intent_of(before.at.loaded, None, intent.paths, cluster=name, fail_on=Severity.ERROR)
    return replace(made, trusted=intent.trusted, attended=intent.attended)


def mark_findings(
    findings: Iterable[Finding], loaded: LoadedManifests, earlier: Callable[[], Iterable[Finding]]
) -> tuple[Finding, ...]:
    """Findings of ``loaded``, of which those are marked that are among the ``earlier`` ones, or that the baseline lists."""
    known: Iterable[Finding] = ()
    with contextlib.suppress(ReconcilerError):
        known = earlier()
    return EarlierFindings(known_findings(known), known_entries(loaded.baseline, loaded.at)).mark(findings)


def offline_findings_of_base(intent: Intent) -> tuple[Finding, ...]:
    """Return the findings of the base that need no cluster. Raises ``ManifestError``."""
    base = base_intent(intent, intent.before) if intent.before is not None else None
    return (*base.findings, *lint_offline(base.loaded, base.spec, base.desired)) if base is not None else ()
