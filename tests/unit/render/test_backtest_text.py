"""A backtest on a terminal: one row for each quota group, what was not checked, and details only when they are wanted."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reconciler.model import Verdict
from reconciler.render.backtest_text import backtest_view
from reconciler.render.terminal import cells, plain
from tests.support.backtest_reports import full, report_of, verdict


def in_order(text: str, words: tuple[str, ...]) -> None:
    at = 0
    for one in words:
        assert one in text[at:], one
        at = text.index(one, at) + len(one)


def test_text_has_the_answer_one_row_for_each_quota_group_and_the_answer_again() -> None:
    answer = "Backtest: The proposed quotas would have throttled 1 of 4 quota groups whose limit changes."
    in_order(
        plain(backtest_view(full()).lines),
        (
            answer,
            "Rule fails: alice. user alice: producer_byte_rate on broker 1",
            "Rule passed: no bucket that changes may be inconclusive for 5 s or more.",
            "Changed by this proposal (4 quota groups: 1 throttled, 1 possible, 1 inconclusive, 1 clear)",
            "verdict       quota group                      limit",
            "throttled     user alice: producer_byte_rate   293 KiB/s (300,000 B/s) -> ",
            " 15 min (22 %)  300 KiB/s\n",
            "possible      user alice2: producer_byte_rate",
            "inconclusive  user alice3: producer_byte_rate",
            "clear         user calm: producer_byte_rate",
            "The change does not touch 1 more quota group.",
            "Evidence",
            "Warning: broker 1 has no lines for 1 h 50 min of 8 h, first from 2026-11-20 08:00 UTC on",
            "alice counts after merge",
            "--details shows each broker, and what is assumed.",
            answer,
        ),
    )


def test_details_have_each_broker_and_the_assumptions() -> None:
    in_order(
        plain(backtest_view(full(), details=True).lines),
        (
            "  throttled  user alice: producer_byte_rate\n",
            "limit               293 KiB/s (300,000 B/s) -> 97.66 KiB/s (100,000 B/s), set for user=alice",
            "over the new limit  15 min (22 %)",
            "first over          20 Nov 08:00 UTC",
            "shared              these clients had other quota groups before: user alice, client-id app; alice app",
            "safe                250 KiB/s\n",
            "recommended         300 KiB/s\n",
            "advice              it is safe",
            "broker 1  throttled  ",
            "15 min (22 %), 15 min to 16 min  never       60 s from 20 Nov 08:00",
            "  inconclusive  user alice3",
            "why                 nobody knows alice",
            "user=alice consumer_byte_rate 4.768 MiB/s (5,000,000 B/s): stronger quotas override it",
            "Assumed: brokers are brokers",
        ),
    )


@pytest.mark.parametrize("width", [40, 80, 100])
def test_no_row_is_wider_than_the_terminal(width: int) -> None:
    for details in (False, True):
        rows = plain(backtest_view(full("名前" * 40, "🙂" * 30), details=details).lines, width=width).splitlines()
        assert all(cells(row) <= width for row in rows)


def test_groups_that_stay_are_not_said_to_be_under_their_limits_where_quotas_throttled_them() -> None:
    quiet = verdict(user="quiet", changed=False)
    throttled = verdict(user="admin", changed=False, verdict=Verdict.INCONCLUSIVE, censored=True)
    begin = "The change does not touch"
    assert f"{begin} 1 more quota group. No recorded client there is over a limit." in plain(
        backtest_view(report_of(quiet)).lines
    )
    both = plain(backtest_view(report_of(quiet, throttled)).lines)
    assert f"{begin} 2 more quota groups. Quotas throttled 1 of them when they were recorded." in both
    assert "No recorded client there" not in both


SHORT_NAMES = st.text("abcdefghijklmnopqrstuvwxyz-._0123456789", min_size=1, max_size=24)
RATES = st.sampled_from([1024.0, 9_999_999.0, 1048576.0 * 1023, 1e13])


@given(
    st.lists(
        st.tuples(SHORT_NAMES, st.sampled_from(list(Verdict)), RATES, RATES), min_size=1, max_size=4, unique_by=lambda row: row[0]
    ),
    st.integers(1, 28_800),
)
def test_eighty_columns_are_a_table_for_each_verdict_and_each_name_of_24_characters(
    rows: list[tuple[str, Verdict, float, float]], seconds: int
) -> None:
    groups = (
        verdict(
            user=name,
            verdict=state,
            limits_before=(before,),
            limit_after=after,
            peak=before,
            seconds_over=seconds,
            seconds_possible=seconds,
            safe=before,
            recommended=after,
            requests=100,
        )
        for name, state, before, after in rows
    )
    shown = plain(backtest_view(report_of(*groups)).lines, width=80).splitlines()
    heads = [row.split() for row in shown if row.split()[:1] == ["verdict"]]
    assert [head[:5] for head in heads] == [["verdict", "quota", "group", "limit", "peak"]]
    assert all(cells(row) <= 80 for row in shown)
