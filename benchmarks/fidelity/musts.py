"""What a prediction must at least be worth, and whether a run's was."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from benchmarks.fidelity.comparison import ENOUGH_THROTTLED, FETCH, PRODUCE, REQUEST, TIMERS, by_bucket, by_group, summary
from benchmarks.fidelity.open_loop import OpenLoopRun

SAME_VERDICT = {PRODUCE: 0.995, FETCH: 0.99, TIMERS: 0.95}
SUM_OF_A_RUN = 0.01
SUM_OF_A_BUCKET = 0.03


@dataclass(frozen=True, slots=True, kw_only=True)
class Must:
    """One demand on one run."""

    what: str
    found: str
    needed: str
    kept: bool


def musts(run: OpenLoopRun) -> list[Must]:
    """All that are asked of a run; request time depends on the machine, so of it only the throttled buckets are."""
    return [*_buckets(run), *_by_group(run), *_sums(run), *_seconds(run)]


def _buckets(run: OpenLoopRun) -> Iterator[Must]:
    found = by_bucket(run.ahead)
    unlike = [str(bucket) for (_, bucket), one in found.items() if (one.throttled > 0) != (one.throttled_predicted > 0)]
    yield Must(
        what="the same buckets throttled",
        found=f"{len(found) - len(unlike)} of {len(found)}" + "".join(f"; not {name}" for name in unlike),
        needed="all",
        kept=bool(found) and not unlike,
    )


def _by_group(run: OpenLoopRun) -> Iterator[Must]:
    for source, some in (("", run.ahead), (", by its own log", run.own)):
        for group, one in by_group(some).items():
            if group != REQUEST:
                yield _share(f"{group}{source}: requests with the same verdict", one.agreement, SAME_VERDICT[group])


def _share(what: str, found: float, needed: float) -> Must:
    return Must(what=what, found=f"{found:.2%}", needed=f"{needed:.1%}", kept=found >= needed)


def _sums(run: OpenLoopRun) -> Iterator[Must]:
    bytes_only = [one for one in run.ahead if one.group != REQUEST]
    if not bytes_only:
        return
    whole = summary(bytes_only).sum_error
    yield Must(
        what="sum of all throttles", found=f"{whole:+.2%}", needed=f"within {SUM_OF_A_RUN:.0%}", kept=abs(whole) <= SUM_OF_A_RUN
    )
    judged = {
        bucket: one.sum_error
        for (group, bucket), one in by_bucket(bytes_only).items()
        if group == PRODUCE and one.throttled >= ENOUGH_THROTTLED
    }
    if judged:
        worst = max(judged, key=lambda bucket: abs(judged[bucket]))
        yield Must(
            what=f"sum of a produce bucket, the worst of {len(judged)}",
            found=f"{judged[worst]:+.2%} ({worst})",
            needed=f"within {SUM_OF_A_BUCKET:.0%}",
            kept=abs(judged[worst]) <= SUM_OF_A_BUCKET,
        )


def _seconds(run: OpenLoopRun) -> Iterator[Must]:
    for whose, seconds in (("predicted ahead", run.seconds_ahead), ("of its own log", run.seconds_own)):
        if not seconds.certain + seconds.possible + seconds.clear:
            continue
        wrong = seconds.certain_unthrottled + seconds.clear_throttled
        yield Must(
            what=f"seconds {whose} that were the opposite",
            found=f"{wrong} ({seconds.certain} certain, {seconds.clear} clear, {seconds.possible} possible)",
            needed="0",
            kept=wrong == 0,
        )
    if sum(run.verdicts_given.values()):
        yield Must(
            what="verdicts by whole seconds that were the opposite",
            found="; ".join(run.verdicts_wrong) or f"0 of {sum(run.verdicts_given.values())}",
            needed="0",
            kept=not run.verdicts_wrong,
        )
    yield Must(
        what="throttled requests without a limit, or with another throttle in the answer than in the log",
        found=f"{run.unlimited_throttled + run.answers_unlike_log}",
        needed="0",
        kept=run.unlimited_throttled + run.answers_unlike_log == 0,
    )
