"""Traffic judged in SQL alone, for clusters whose workers may not run Python: whole seconds, and nothing request by request."""

from __future__ import annotations

from collections.abc import Collection, Mapping

import numpy as np

from reconciler.traffic.judging.exact import limits_of
from reconciler.traffic.judging.grouping import Grouping
from reconciler.traffic.judging.outcome import Outcome, seconds_outcomes
from reconciler.traffic.judging.rate_series import Lines, Points
from reconciler.traffic.judging.seconds_in_sql import judged_in_sql
from reconciler.traffic.kernels.sampled_rate import Window
from reconciler.traffic.kernels.second_sums import Rule
from reconciler.traffic.kernels.seconds_judge import GroupVerdict
from reconciler.traffic.kernels.topic_seconds import judge_seconds
from reconciler.traffic.seconds_only import SecondsOnly


class InSql(SecondsOnly):
    """What ``Events`` can tell without Python on the workers. It has no rates over time."""

    def by_seconds(self, grouping: Grouping, groups: Collection[int], era: Rule) -> Mapping[int, GroupVerdict]:
        """Verdicts of these groups."""
        return judged_in_sql(self._events.summed(grouping, groups), grouping.groups, era)

    def mutations(self, grouping: Grouping, groups: Collection[int], window: Window) -> Mapping[int, Outcome]:
        """Outcomes of these groups from sums of seconds; those of mutations are few, so it is done here."""
        table = self._events.summed(grouping, groups).toArrow()
        group, second, amount = (table[name].to_numpy().astype(np.int64) for name in ("group", "second", "amount"))
        before, after = limits_of(grouping.groups)
        found = {
            number: judge_seconds(
                number, second[group == number], amount[group == number], (before[number], after[number]), window
            )
            for number in np.unique(group).tolist()
        }
        return seconds_outcomes(found, self.series, grouping, window)

    def rates(self, grouping: Grouping, groups: Collection[int], lines: Lines) -> Mapping[int, Points]:  # noqa: ARG002 - as the others
        """There are none."""
        return {}
