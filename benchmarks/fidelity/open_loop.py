"""One scenario on one cluster: recorded without quotas, run again under them, and what was predicted of it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from benchmarks.fidelity.arrivals import Arrival, arrivals
from benchmarks.fidelity.comparison import CONSUME, Pair, pairs, quantile
from benchmarks.fidelity.fetches import fetches_at
from benchmarks.fidelity.observed import Observed, observed
from benchmarks.fidelity.prediction import Predicted, predict, verdicts
from benchmarks.fidelity.recording import Recorded, cluster, record, warm_up, write_manifests
from benchmarks.fidelity.rehearsal import KEY_OF
from benchmarks.fidelity.scenarios import Scenario, limits_of, uses_groups
from benchmarks.fidelity.seconds import SecondsFound, judged_seconds
from reconciler.resolution.resolver import Resolver

REQUEST_TIME_KEY = "request_percentage"
NO_QUOTAS: Mapping[Any, Any] = {}
NEAR_MS = 10.0
"""Two runs that are alike differ by less."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Noise:
    """How unlike the two runs were, in ms. ``shift``: a request's charge time after the start, in one run less in the other."""

    late_p95: float
    late_most: float
    shift_p95: float
    shift_near: float
    """The share of requests that moved by ``NEAR_MS`` or less."""
    opened_late: int


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenLoopRun:
    """All that one scenario gave.

    ``ahead``: predicted from the traffic without quotas. ``own``: predicted from the log of the run under quotas itself; the
    sizes of throttled fetches are not in it, and taken from the other.
    """

    scenario: str
    kafka_version: str
    brokers: int
    seconds: float
    requests: int
    noise: Noise
    answers_unlike_log: int
    """Requests whose answer had another throttle than their line in the log."""
    unlimited_throttled: int
    ahead: tuple[Pair, ...]
    own: tuple[Pair, ...]
    seconds_ahead: SecondsFound
    seconds_own: SecondsFound
    verdicts_wrong: tuple[str, ...]
    """Buckets that the backtest by seconds called certain or clear, and the broker did the opposite."""
    verdicts_given: Mapping[str, int]


def open_loop(scenario: Scenario, kafka_version: str, *, brokers: int, seconds: float, folder: Path) -> OpenLoopRun:
    """Runs for twice ``seconds`` and some more; the brokers are gone when it returns."""
    plan = arrivals(scenario.clients, seconds=seconds, brokers=brokers)
    here = replace(scenario, quotas=scenario.quotas_on(brokers))
    with cluster(kafka_version, scenario.users, brokers=brokers, groups=uses_groups(here.quotas)) as sandbox:
        warm_up(sandbox, plan)
        free = record(sandbox, scenario, plan, NO_QUOTAS, folder / "free")
        under = record(sandbox, scenario, plan, here.quotas, folder / "under")
    return judged(here, kafka_version, plan, free, under, folder, seconds=seconds)


def judged(
    scenario: Scenario,
    kafka_version: str,
    plan: Sequence[Arrival],
    free: Recorded,
    under: Recorded,
    folder: Path,
    *,
    seconds: float,
) -> OpenLoopRun:
    """Ask the product about both recordings, and compare."""
    manifests = write_manifests(folder / "manifests", scenario.quotas)
    before, throttled = observed(free.logs), observed(under.logs)
    shifts = shifts_ms(free, under, before, throttled)
    told = {number: one.throttle_ms for number, one in throttled.items()}
    ahead_rows = _of_script(predict(free.logs, manifests, kafka_version), plan)
    own_rows = _of_script(predict(under.logs, manifests, kafka_version), plan)
    ahead = pairs(ahead_rows, told, scenario.quotas, scenario.clients)
    own = [
        *pairs([row for row in own_rows if row.key != CONSUME], told, scenario.quotas, scenario.clients),
        *fetches_at([one for one in ahead if one.bucket.key == CONSUME], {n: one.at_ms for n, one in throttled.items()}),
    ]
    given = verdicts(free.logs, manifests, kafka_version)
    return OpenLoopRun(
        scenario=scenario.name,
        kafka_version=kafka_version,
        brokers=len(free.logs),
        seconds=seconds,
        requests=len(plan),
        noise=_noise(free, under, shifts),
        answers_unlike_log=sum(told[number] != ms for number, ms in under.sent.throttle_ms.items()),
        unlimited_throttled=sum(told[number] > 0 for number in _unlimited(scenario, plan)),
        ahead=tuple(ahead),
        own=tuple(own),
        seconds_ahead=judged_seconds(ahead),
        seconds_own=judged_seconds(own),
        verdicts_wrong=tuple(_contradicted(given, ahead)),
        verdicts_given={name: sum(one["verdict"] == name for one in given) for name in ("throttled", "possible", "clear")},
    )


def _unlimited(scenario: Scenario, plan: Sequence[Arrival]) -> Iterable[int]:
    """Numbers of requests that no quota is about."""
    resolvers = {**Resolver.by_key(scenario.quotas, (*KEY_OF.values(), REQUEST_TIME_KEY)), **limits_of(scenario.quotas)}
    for one in plan:
        keys = (KEY_OF[one.client.kind], REQUEST_TIME_KEY)
        if all(resolvers[key].resolve(one.client.user, one.client.client_id).value is None for key in keys):
            yield one.number


def _of_script(rows: Iterable[Predicted], plan: Sequence[Arrival]) -> list[Predicted]:
    """Other requests, such as those of a log-in, have numbers of their own."""
    clients = {one.number: one.client.client_id for one in plan}
    return [row for row in rows if clients.get(row.number) == row.client_id]


def shifts_ms(free: Recorded, under: Recorded, before: Mapping[int, Observed], after: Mapping[int, Observed]) -> dict[int, float]:
    """By how much later each was charged in the second run than in the first, each from its start."""
    start, other = under.sent.started * 1000, free.sent.started * 1000
    return {n: (after[n].at_ms - start) - (before[n].at_ms - other) for n in after if n in before}


def _noise(free: Recorded, under: Recorded, shifts: Mapping[int, float]) -> Noise:
    late = sorted((*free.sent.late_ms, *under.sent.late_ms))
    apart = sorted(map(abs, shifts.values()))
    return Noise(
        late_p95=quantile(late, 0.95),
        late_most=late[-1],
        shift_p95=quantile(apart, 0.95),
        shift_near=sum(shift <= NEAR_MS for shift in apart) / len(apart),
        opened_late=free.sent.opened_late + under.sent.opened_late,
    )


def _contradicted(given: Sequence[Mapping[str, Any]], ahead: Sequence[Pair]) -> Iterable[str]:
    """Buckets by the verdict of whole seconds, against whether the broker throttled anybody in them."""
    seen: dict[tuple[str, str, str, str], bool] = {}
    for one in ahead:
        place = (one.bucket.key, str(one.bucket.broker), one.bucket.user, one.bucket.client_id)
        seen[place] = seen.get(place, False) or one.observed_ms > 0
    for verdict in given:
        tags = verdict["bucket"]
        place = (verdict["key"], str(verdict["broker"]), tags.get("group") or tags.get("user") or "", tags.get("client-id") or "")
        wrong = {"throttled": False, "clear": True}.get(verdict["verdict"])
        if wrong is not None and seen.get(place) is wrong:
            yield f"{', '.join(place)}: {verdict['verdict']}"
