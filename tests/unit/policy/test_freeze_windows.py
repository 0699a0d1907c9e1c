"""Freeze windows on real calendars: deny beats allow, nights, open ends, and days on which clocks change."""

from __future__ import annotations

import datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reconciler.model.cluster import WEEKDAYS, FreezeWindow, Once, Recurrence, Weekly, WindowKind
from reconciler.policy.change_guards import freeze_at


def at(text: str) -> datetime.datetime:
    return datetime.datetime.fromisoformat(text)


def deny(when: Recurrence) -> FreezeWindow:
    return FreezeWindow(kind=WindowKind.DENY, when=when)


def allow(when: Recurrence) -> FreezeWindow:
    return FreezeWindow(kind=WindowKind.ALLOW, when=when)


def weekly(days: str, hours: str = "00:00-24:00", zone: str = "Europe/Berlin") -> Weekly:
    start, end = (int(text[:2]) * 60 + int(text[3:]) for text in hours.split("-"))
    return Weekly(days=frozenset(WEEKDAYS.index(day) for day in days.split()), start=start, end=end, time_zone=zone)


def frozen(windows: list[FreezeWindow], text: str) -> bool:
    return freeze_at(windows, at(text)) is not None


def until(windows: list[FreezeWindow], text: str) -> datetime.datetime | None:
    freeze = freeze_at(windows, at(text))
    assert freeze is not None
    return freeze.until


@pytest.mark.parametrize(
    ("moment", "expected"),
    [
        ("2026-12-23T16:59:59Z", False),
        ("2026-12-23T17:00:00Z", True),
        ("2026-12-23T18:00:00+01:00", True),
        ("2027-01-04T06:59:59Z", True),
        ("2027-01-04T07:00:00Z", False),
    ],
)
def test_once_begins_at_its_beginning_and_has_no_end_in_it(moment: str, expected: bool) -> None:
    once = Once(start=at("2026-12-23T18:00:00+01:00"), end=at("2027-01-04T08:00:00+01:00"))
    assert frozen([deny(once)], moment) is expected


def test_an_open_end_is_frozen_for_good_and_says_so() -> None:
    assert until([deny(Once(start=at("2026-01-01T00:00:00Z")))], "2026-06-01T00:00:00Z") is None


def test_deny_beats_allow() -> None:
    both = [allow(weekly("mon tue wed thu fri")), deny(Once(start=at("2026-12-21T00:00:00Z"), end=at("2027-01-01T00:00:00Z")))]
    assert not frozen(both, "2026-12-18T12:00:00Z")
    assert frozen(both, "2026-12-21T12:00:00Z")


def test_with_allow_windows_all_else_is_frozen_until_the_next_one() -> None:
    office = [allow(weekly("mon tue wed thu", "09:00-16:00")), allow(weekly("fri", "09:00-12:00"))]
    assert not frozen(office, "2026-11-20T11:59:00+01:00")
    assert frozen(office, "2026-11-20T12:00:00+01:00")
    assert until(office, "2026-11-20T12:00:00+01:00") == at("2026-11-23T09:00:00+01:00")


def test_a_window_over_midnight_belongs_to_the_day_on_which_it_begins() -> None:
    night = [deny(weekly("fri", "18:00-08:00"))]
    assert frozen(night, "2026-11-20T18:00:00+01:00")
    assert frozen(night, "2026-11-21T07:59:00+01:00")
    assert not frozen(night, "2026-11-21T08:00:00+01:00")
    assert not frozen(night, "2026-11-20T07:00:00+01:00")


@pytest.mark.parametrize("zone", ["Europe/Berlin", "America/New_York", "Asia/Kolkata", "UTC"])
def test_weekly_hours_follow_the_clocks_of_their_zone(zone: str) -> None:
    hours = [deny(weekly("mon", "09:00-17:00", zone))]
    open_hours = [m for m in range(24 * 60) if frozen(hours, f"2026-07-06T{m // 60:02}:{m % 60:02}:00Z")]
    offset = {"Europe/Berlin": 120, "America/New_York": -240, "Asia/Kolkata": 330, "UTC": 0}[zone]
    assert (open_hours[0] + offset, open_hours[-1] + offset) == (9 * 60, 17 * 60 - 1)


def test_a_night_in_which_clocks_go_back_is_frozen_through_both_of_its_hours() -> None:
    # 25 October 2026, 03:00 summer time is 02:00 again: 02:30 comes at 00:30 and at 01:30 UTC.
    denied = [deny(weekly("sun", "01:00-02:30"))]
    assert frozen(denied, "2026-10-25T01:29:00Z")
    assert not frozen(denied, "2026-10-25T01:30:00Z")
    allowed = [allow(weekly("sun", "01:00-02:30"))]
    assert not frozen(allowed, "2026-10-25T00:29:00Z")
    assert frozen(allowed, "2026-10-25T00:30:00Z")


def test_a_wall_clock_time_that_does_not_come_freezes_the_longer_way() -> None:
    # 29 March 2026, 02:00 is 03:00 at once: 02:30 is missing.
    denied = [deny(weekly("sun", "02:30-05:00"))]
    assert not frozen(denied, "2026-03-29T00:29:00Z")
    assert frozen(denied, "2026-03-29T00:30:00Z")
    allowed = [allow(weekly("sun", "02:30-05:00"))]
    assert frozen(allowed, "2026-03-29T01:29:00Z")
    assert not frozen(allowed, "2026-03-29T01:30:00Z")


MOMENTS = st.datetimes(
    min_value=datetime.datetime(2026, 1, 1), max_value=datetime.datetime(2027, 1, 1), timezones=st.just(datetime.UTC)
)
RECURRENCES = st.one_of(
    st.builds(Once, start=st.none() | MOMENTS, end=st.none() | MOMENTS),
    st.builds(
        Weekly,
        days=st.frozensets(st.integers(0, 6), min_size=1),
        start=st.integers(0, 1439),
        end=st.integers(1, 1440),
        time_zone=st.sampled_from(["UTC", "Europe/Berlin", "America/New_York", "Australia/Lord_Howe"]),
    ),
)
WINDOWS = st.lists(st.builds(FreezeWindow, kind=st.sampled_from(WindowKind), when=RECURRENCES), max_size=4)


@given(WINDOWS, MOMENTS)
def test_it_is_open_at_the_moment_that_is_told_and_frozen_right_before(
    windows: list[FreezeWindow], moment: datetime.datetime
) -> None:
    freeze = freeze_at(windows, moment)
    if freeze is not None and freeze.until is not None:
        assert freeze.until > moment
        assert freeze_at(windows, freeze.until) is None
        assert freeze_at(windows, freeze.until - datetime.timedelta(microseconds=1)) is not None


@given(WINDOWS, MOMENTS, RECURRENCES)
def test_one_more_denial_never_opens_anything(windows: list[FreezeWindow], moment: datetime.datetime, more: Recurrence) -> None:
    if freeze_at(windows, moment) is not None:
        assert freeze_at([*windows, deny(more)], moment) is not None
