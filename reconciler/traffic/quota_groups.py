"""The quota groups of a traffic's clients under two sets of quotas, and their verdicts: of all traffic, or of a shard."""

from __future__ import annotations

import itertools
import logging
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Self, TypeVar

from reconciler.errors import TrafficError, UsageError
from reconciler.logs import timed_event
from reconciler.model import BucketVerdict, CapacityUse, Entity, Form, Provenance, RowPlace, Verdict, worst_of_buckets
from reconciler.traffic.judging.exact import targets_of_account
from reconciler.traffic.judging.findings import (
    HitQuota,
    Hits,
    Inconclusive,
    Unkept,
    UnkeptLimits,
    UnkeptQuota,
    hits_of,
    reasons_of,
)
from reconciler.traffic.judging.grouping import Grouping, Series, Tables, group_series, groups_before
from reconciler.traffic.judging.judged_quotas import (
    Quota,
    UsedQuotas,
    changed_quotas,
    limiting_entities,
    rows_of_quotas,
    states_of_quotas,
    used_quotas,
)
from reconciler.traffic.judging.recommendations import BrokerKind, LimitedRows, capacity_uses, rows_of_limits
from reconciler.traffic.judging.verdicts import enrich_verdicts, is_changed, request_verdicts, seconds_verdicts, withhold_clear
from reconciler.traffic.kernels.second_sums import LONGEST_PROVEN_S, proves
from reconciler.traffic.kinds import BYTES, KEY_OF_KIND, Kind
from reconciler.traffic.traffic_source import BacktestRequest, GroupJudge, ReplayJudge

_log: Final = logging.getLogger(__name__)


class QuotaGroups:
    """``grouping``: the groups of ``series``. ``tables``: the quotas before, where they are known, and after."""

    def __init__(
        self,
        source: GroupJudge,
        before: Tables | None,
        after: Tables,
        *,
        undecided: Sequence[Series] = (),
        of_controller: bool | None,
    ) -> None:
        """``before``: ``None`` when the current quotas are not known. ``of_controller``: as ``mutations.smaller_account`` has it.

        ``undecided``: series of other shards that may be in any group.
        """
        self._source = source
        self.series = source.series
        self.tables: Sequence[Tables] = (after,) if before is None else (before, after)
        with timed_event(_log, "clients grouped", clients=len(source.series)) as event:
            self.grouping: Grouping = group_series(source.series, before, after, undecided)
            event |= {"targets": len(self.grouping.targets), "groups": len(self.grouping.groups)}
        self.accounted_twice: frozenset[int] = targets_of_account(self.grouping, of_controller=of_controller)
        """Numbers of targets whose traffic another target has, too."""

    @property
    def reported_targets(self) -> tuple[int, ...]:
        """The numbers of the targets whose traffic is not accounted for in another one."""
        return tuple(number for number in range(len(self.grouping.targets)) if number not in self.accounted_twice)

    def judge(self, question: BacktestRequest, provenance: Provenance) -> tuple[BucketVerdict, ...]:
        """The rows of all targets that were judged, worst first. ``provenance``: of all traffic."""
        unkept = UnkeptLimits.of(self.series, self.grouping, question.broker.window)
        with timed_event(_log, "traffic judged", level=logging.INFO, form=provenance.form.value) as event:
            decided = self._decided(question, provenance.form)
            event["verdicts"] = len(decided)
        return enrich_verdicts(unkept.verdicts(decided), self.grouping, provenance, question.needs)

    def _decided(self, question: BacktestRequest, form: Form) -> dict[int, BucketVerdict]:
        source, grouping, window = self._source, self.grouping, question.broker.window
        everything = isinstance(source, ReplayJudge) or question.unchanged
        wanted = set(range(len(grouping.groups))) if everything else self._touched()
        mutations = {number for number in wanted if grouping.groups[number].kind is Kind.MUTATION}
        if form is Form.EXACT and isinstance(source, ReplayJudge):
            replayed = source.exactly(grouping, window)
            verdicts = request_verdicts(replayed, source.series, grouping, stated=source.states_throttles)
        elif wanted - mutations and not proves(window):
            raise TrafficError(
                f"sums of whole seconds prove nothing about {window.samples} samples of {window.sample_ms / 1000:g} s: "
                f"quota.window.num has to be above 1, and both together at most {LONGEST_PROVEN_S} s. Give single requests "
                "instead (logs, or the normal form)"
            )
        else:
            judged = source.by_seconds(grouping, wanted - mutations, window)
            verdicts = seconds_verdicts(judged, source.series, grouping, window, stated=source.states_throttles)
        if mutations:
            verdicts |= source.mutations(grouping, mutations, question.broker.controller_window)
        verdicts = withhold_clear(verdicts, wanted, source.series, grouping)
        return {target: verdict for target, verdict in verdicts.items() if target not in self.accounted_twice}

    def _touched(self) -> set[int]:
        """The groups of what changes; without known earlier quotas, of everything that is limited."""
        grouping = self.grouping
        changed = [index for index in range(len(grouping.targets)) if is_changed(index, grouping)]
        return {group for index in changed for group in (index, *groups_before(grouping, index))}


def form_of(question: BacktestRequest, *, has_requests: bool) -> Form:
    """How traffic is judged. ``has_requests``: single requests are known. Raises ``UsageError`` when the question needs them."""
    if question.exact and not has_requests:
        raise UsageError("--exact needs single requests, and this traffic has sums of seconds: leave --exact out")
    replays = has_requests and (question.exact or not proves(question.broker.window))
    return Form.EXACT if replays else Form.SECONDS


Key = TypeVar("Key")
Value = TypeVar("Value")


@dataclass(frozen=True, slots=True, kw_only=True)
class ReportParts:
    """Of the rows of some quota groups, on all of their brokers.

    ``groups``: how many quota groups there are, by whether the change touches them and the verdict of the worst row.
    """

    series: int
    rows: int
    is_unlimited: bool
    groups: Mapping[tuple[bool, Verdict], int]
    hits: Mapping[HitQuota, Hits]
    unkept: Mapping[UnkeptQuota, Unkept]
    reasons: Mapping[str, Inconclusive]
    limited: Mapping[tuple[Entity, str], LimitedRows]
    capacity: Mapping[BrokerKind, CapacityUse]
    limiting: Mapping[Kind, frozenset[Entity]]
    used: Mapping[Kind, UsedQuotas]
    states: Mapping[Quota, frozenset[Verdict]]

    @classmethod
    def of(
        cls,
        verdicts: Sequence[BucketVerdict],
        groups: QuotaGroups,
        question: BacktestRequest,
        of_metrics: Mapping[Quota, Collection[RowPlace]],
    ) -> Self:
        """``verdicts``: worst first. ``of_metrics``: the rows of quotas that limit clients of metrics, before or after."""
        series, grouping, tables, calls_back = groups.series, groups.grouping, groups.tables, question.calls_back
        # Which quota a callback computed a limit from is its own affair.
        used = {} if calls_back else used_quotas(series, question.proposed, tables[-1])
        rows = rows_of_quotas(series, grouping, tables)
        for quota, places in of_metrics.items():
            rows.setdefault(quota, set()).update(places)
        for kind, key in KEY_OF_KIND.items():
            entities = frozenset(entity for entity, of_key in of_metrics if of_key == key)
            if entities and (kind in used or kind in BYTES):
                used[kind] = used.get(kind, UsedQuotas()).joined(UsedQuotas(winning=entities))
        return cls(
            series=len(series),
            rows=len(verdicts),
            is_unlimited=any(target.after.value is None for target in grouping.targets),
            groups=Counter((group.changed, group.verdict) for group in worst_of_buckets(verdicts)),
            hits=hits_of(verdicts),
            unkept=UnkeptLimits.of(series, grouping, question.broker.window).worst(verdicts, grouping),
            reasons=reasons_of(verdicts),
            limited=rows_of_limits(verdicts),
            capacity=capacity_uses(grouping, question.capacity),
            limiting=limiting_entities(series, rows, calls_back=calls_back),
            used=used,
            states=states_of_quotas(changed_quotas(*question.change), rows, verdicts),
        )

    @classmethod
    def merge(cls, parts: Iterable[ReportParts]) -> ReportParts:
        """Of shards, no two of which have rows of one quota group."""
        some = list(parts)
        return cls(
            series=sum(part.series for part in some),
            rows=sum(part.rows for part in some),
            is_unlimited=any(part.is_unlimited for part in some),
            groups=_merged((part.groups for part in some), int.__add__),
            hits=_merged((part.hits for part in some), Hits.joined),
            unkept=_merged((part.unkept for part in some), Unkept.joined),
            reasons=_merged((part.reasons for part in some), Inconclusive.joined),
            limited=_merged((part.limited for part in some), LimitedRows.joined),
            capacity=_merged((part.capacity for part in some), CapacityUse.joined),
            limiting=_merged((part.limiting for part in some), frozenset.union),
            used=_merged((part.used for part in some), UsedQuotas.joined),
            states=_merged((part.states for part in some), frozenset.union),
        )


def _merged(parts: Iterable[Mapping[Key, Value]], join: Callable[[Value, Value], Value]) -> dict[Key, Value]:
    whole: dict[Key, Value] = {}
    for key, value in itertools.chain.from_iterable(part.items() for part in parts):
        whole[key] = join(whole[key], value) if key in whole else value
    return whole
