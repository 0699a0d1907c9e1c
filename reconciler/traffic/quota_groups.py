"""The quota groups of a traffic's clients under two sets of quotas, and their verdicts: of all traffic, or of a shard."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import Final

from reconciler.errors import TrafficError, UsageError
from reconciler.logs import timed_event
from reconciler.model import BucketVerdict, Form, Provenance
from reconciler.traffic.backtest_request import BacktestRequest
from reconciler.traffic.judging.findings import UnkeptLimits
from reconciler.traffic.judging.grouping import Grouping, Series, Tables, group_series, groups_before
from reconciler.traffic.judging.mutations import targets_of_account
from reconciler.traffic.judging.uncharged import withhold_clear
from reconciler.traffic.judging.verdicts import enrich_verdicts, is_changed, request_verdicts, seconds_verdicts
from reconciler.traffic.kernels.sampled_rate import Window
from reconciler.traffic.kernels.second_sums import LONGEST_PROVEN_S, proves
from reconciler.traffic.kinds import Kind
from reconciler.traffic.traffic_source import GroupJudge, ReplayJudge

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
            raise TrafficError(_unproven(window))
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


def _unproven(window: Window) -> str:
    return (
        f"sums of whole seconds prove nothing about {window.samples} samples of {window.sample_ms / 1000:g} s: quota.window.num "
        f"has to be above 1, and both together at most {LONGEST_PROVEN_S} s. Give single requests instead (logs, or the "
        "normal form)"
    )
