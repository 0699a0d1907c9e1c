"""The quota groups of a client in an incident: which of them explain it, and the commits that set their limits."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from reconciler.errors import GitError, ManifestError, UsageError
from reconciler.model import (
    BucketName,
    BucketVerdict,
    Entity,
    IncidentGroup,
    LimitOrigin,
    Member,
    MissingEvidence,
    QuotaKey,
    Verdict,
)
from reconciler.workflows.incident_times import PAUSE_S, Stretch, moment_at
from reconciler.workflows.quotas_then import QuotaSources, QuotasThen, limit_origin

if TYPE_CHECKING:
    from reconciler.traffic import GroupTimeline


def groups_of(
    timelines: Sequence[GroupTimeline],
    verdicts: Mapping[tuple[str, int, BucketName], BucketVerdict],
    chosen: Stretch,
    *,
    explained: bool,
) -> Iterator[IncidentGroup]:
    """Causes first, the fullest first."""
    made = []
    for timeline in timelines:
        verdict = verdicts.get((timeline.verdict.key, timeline.verdict.broker, timeline.verdict.name), timeline.verdict)
        over = _seconds_over(timeline, chosen, possible=not explained)
        proven = verdict.verdict is Verdict.THROTTLED or (not explained and verdict.verdict is Verdict.POSSIBLE)
        cause = verdict.limit_after is not None and (bool(over) or proven)
        made.append(group_of(verdict, over, is_cause=cause))
    if made and not any(group.is_cause for group in made):
        # A log lacks a part of the time that request quotas count, so such a quota is the likely cause.
        made = [replace(group, is_cause=group.key == QuotaKey.REQUEST_PERCENTAGE and group.limit is not None) for group in made]
    yield from sorted(made, key=order_of_groups)


def order_of_groups(group: IncidentGroup) -> tuple[object, ...]:
    """Causes, then other limited groups, the fullest first."""
    return not group.is_cause, group.limit is None, -(group.share_of_limit or 0.0), group.key, group.broker


def _seconds_over(line: GroupTimeline, chosen: Stretch, *, possible: bool) -> list[float]:
    series = line.seconds
    if series is None:
        return []
    start = series.start.timestamp()
    counts = series.possible if possible else series.over
    seconds = (start + place for place, count in enumerate(counts) if count)
    return [second for second in seconds if chosen.begin - PAUSE_S <= second <= chosen.end + 1]


def group_of(verdict: BucketVerdict, over: Sequence[float], *, is_cause: bool) -> IncidentGroup:
    """A verdict as a group of the report. ``over``: its seconds over the limit, rising."""
    return IncidentGroup(
        name=verdict.name,
        key=verdict.key,
        broker=verdict.broker,
        entity=verdict.entity,
        limit=verdict.limit_after,
        verdict=verdict.verdict,
        is_cause=is_cause,
        first=verdict.first or (moment_at(over[0]) if over else None),
        last=moment_at(over[-1]) if over else None,
        seconds_over=max(len(over), verdict.seconds_over),
        active_seconds=verdict.active_seconds,
        peak=verdict.peak,
        peak_bound=verdict.peak_bound,
        would_pass=verdict.safe,
        recommended=verdict.recommended,
        members=_biggest_first(verdict.members),
        reason=verdict.reason,
    )


def _biggest_first(members: Sequence[Member]) -> tuple[Member, ...]:
    """By their part of what was over the limit, where that is known."""
    return tuple(
        sorted(members, key=lambda member: -(member.share if member.share_of_excess is None else member.share_of_excess))
    )


def add_origins(
    sources: QuotaSources, then: QuotasThen, groups: tuple[IncidentGroup, ...]
) -> tuple[tuple[IncidentGroup, ...], list[MissingEvidence]]:
    """The causes with the commits that set their limits."""
    manifests, missing = then.manifests, list[MissingEvidence]()
    known: dict[tuple[Entity, str], LimitOrigin | None] = {}
    with_origins = []
    for group in groups:
        if group.entity is None or manifests is None or not group.is_cause:
            with_origins.append(group)
            continue
        place = group.entity, group.key
        if place not in known:
            try:
                known[place] = limit_origin(
                    manifests,
                    then.paths,
                    cluster=sources.cluster,
                    entity=group.entity,
                    key=group.key,
                    runs=sources.runs,
                )
                if known[place] is None:
                    missing.append(_not_in_manifests(group))
            except (GitError, ManifestError, UsageError) as error:
                known[place] = None
                missing.append(MissingEvidence(what="which commit set the limit", because=str(error)))
        with_origins.append(replace(group, origin=known[place]))
    return tuple(with_origins), missing


def _not_in_manifests(group: IncidentGroup) -> MissingEvidence:
    return MissingEvidence(
        what=f"who set {group.key} of {group.entity}",
        because="the manifests of that time do not declare it: it was set by other means",
        remedy="kafka-quotas drift shows such quotas",
    )
