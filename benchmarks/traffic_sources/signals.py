"""What throttle-time, queue-size and byte-rate show of throttles that a real broker imposed, at each interval."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, TypeAlias

import numpy as np

from benchmarks.traffic_sources.judged import Group
from benchmarks.traffic_sources.real_run import RealRun
from benchmarks.traffic_sources.simulated import LONGEST_WINDOW_S, SHORTEST_WINDOW_S

_APART_S: Final = 60.0
"""Throttles of one quota group that are further apart are two episodes."""
_SHOWN_S: Final = 62.0
"""For so long after the last throttle its time may be shown: a minute, and a scrape that takes its time."""
_SLACK_S: Final = 1.0
"""A scrape has the time of its beginning."""

Span: TypeAlias = tuple[float, float]
Mark: TypeAlias = tuple[float, bool]
"""The moment of a sample, and whether it shows a throttle."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SignalFigure:
    """Of all runs. ``false_samples``: samples that show a throttle where the log has none, of ``samples``."""

    signal: str
    every_s: int
    groups: int
    groups_found: int
    episodes: int
    episodes_found: int
    samples: int
    false_samples: int


def signals(runs: Sequence[RealRun], every_s: int) -> Iterator[SignalFigure]:
    """Each signal at one interval."""
    yield _figure("throttle-time", every_s, [_throttle_time(run, every_s) for run in runs])
    yield _figure("queue-size", every_s, [_queue_size(run, every_s) for run in runs])
    yield _figure("byte-rate, proof", every_s, [_byte_rate(run, every_s, SHORTEST_WINDOW_S / LONGEST_WINDOW_S) for run in runs])
    yield _figure("byte-rate above the limit", every_s, [_byte_rate(run, every_s, 1.0) for run in runs])


Counts: TypeAlias = tuple[int, int, int, int, int, int]


def _figure(signal: str, every_s: int, counts: Sequence[Counts]) -> SignalFigure:
    groups, groups_found, episodes, episodes_found, samples, false_samples = (sum(column) for column in zip(*counts, strict=True))
    return SignalFigure(
        signal=signal, every_s=every_s, groups=groups, groups_found=groups_found, episodes=episodes,
        episodes_found=episodes_found, samples=samples, false_samples=false_samples,
    )  # fmt: skip


def throttles(run: RealRun) -> dict[Group, list[Span]]:
    """Of each limited group: when each throttled request was answered, and until when its connection was muted."""
    found: dict[Group, list[Span]] = {group: [] for group in run.limits}
    for one in run.throttled:
        found[one.key, one.user, one.client_id].append((one.at_ms / 1000, (one.at_ms + one.throttle_ms) / 1000))
    return {group: sorted(some) for group, some in found.items()}


def _throttle_time(run: RealRun, every_s: int) -> Counts:
    """Of a quota group; shown for a minute after its last throttle."""
    shown = _by_group(run, "throttle_time", every_s, lambda value, _: not math.isnan(value))
    episodes = {group: _episodes([(at, at) for at, _ in some], _APART_S) for group, some in throttles(run).items()}
    return _counts(episodes, shown, _SHOWN_S)


def _byte_rate(run: RealRun, every_s: int, part: float) -> Counts:
    shown = _by_group(run, "byte_rate", every_s, lambda value, limit: value * part > limit)
    episodes = {group: _episodes([(at, at) for at, _ in some], _APART_S) for group, some in throttles(run).items()}
    return _counts(episodes, shown, LONGEST_WINDOW_S)


def _queue_size(run: RealRun, every_s: int) -> Counts:
    """Of all clients of a kind together: connections that are muted at the moment."""
    spans: dict[str, list[Span]] = defaultdict(list)
    for (key, _, _), some in throttles(run).items():
        spans[key] += some
    gauges = {gauge.key: gauge for gauge in run.gauges if (gauge.measure, gauge.every_s) == ("queue_size", every_s)}
    episodes = {(key, "", ""): _episodes(sorted(some), 0.0) for key, some in spans.items()}
    shown = {(key, "", ""): [(at, value > 0) for at, value in gauges[key].samples] for key in spans}
    return _counts(episodes, shown, _SLACK_S)


def _by_group(run: RealRun, measure: str, every_s: int, shows: Callable[[float, float], bool]) -> dict[Group, list[Mark]]:
    found = {}
    for gauge in run.gauges:
        group = gauge.key, gauge.user, gauge.client_id
        if (gauge.measure, gauge.every_s) == (measure, every_s) and group in run.limits:
            found[group] = [(at, shows(value, run.limits[group])) for at, value in gauge.samples]
    return found


def _episodes(spans: Sequence[Span], apart_s: float) -> list[Span]:
    merged: list[Span] = []
    for begin, end in spans:
        if merged and begin <= merged[-1][1] + apart_s:
            merged[-1] = merged[-1][0], max(merged[-1][1], end)
        else:
            merged.append((begin, end))
    return merged


def _counts(episodes: Mapping[Group, Sequence[Span]], shown: Mapping[Group, Sequence[Mark]], after_s: float) -> Counts:
    groups = groups_found = count = count_found = samples = false_samples = 0
    for group, some in episodes.items():
        rows = shown.get(group, ())
        marked = np.asarray([at for at, flag in rows if flag])
        samples += len(rows)
        explained = np.zeros(len(marked), dtype=bool)
        seen = 0
        for begin, end in some:
            inside = (marked >= begin - _SLACK_S) & (marked <= end + after_s)
            explained |= inside
            seen += bool(inside.any())
        groups += bool(some)
        groups_found += bool(some) and seen > 0
        count += len(some)
        count_found += seen
        false_samples += int((~explained).sum())
    return groups, groups_found, count, count_found, samples, false_samples
