"""How near quota groups are to their limits, as a table for a terminal and as a document: one row a group and broker."""

from __future__ import annotations

import datetime
import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from reconciler.documents import VALUES, Document, row
from reconciler.features.insight.observe import GroupLoad, Headroom, Throttling, UnusedLimit
from reconciler.model import ClusterFailure, QuotaKey, display_name
from reconciler.render import Block, Column, Style, cluster_title, failure_lines, labelled, line, table
from reconciler.text import amount, count_of, duration, percent_text, rate

_KINDS: Final[Mapping[QuotaKey, str]] = {
    QuotaKey.PRODUCER_BYTE_RATE: "produce",
    QuotaKey.CONSUMER_BYTE_RATE: "fetch",
    QuotaKey.REQUEST_PERCENTAGE: "request",
    QuotaKey.CONTROLLER_MUTATION_RATE: "mutation",
    QuotaKey.CONNECTION_CREATION_RATE: "connect",
}
_GROUPS: Final = (
    Column(title="%", to_the_right=True),
    Column(title="rate", to_the_right=True),
    Column(title="limit", to_the_right=True),
    Column(title="throttled"),
    Column(title="on broker", least=9),
    Column(title="quota group", least=10),
    Column(title="limited by", least=7),
)
_CLUSTER: Final = Column(title="cluster", least=7)
_OWNERS: Final = (
    Column(title="%", to_the_right=True),
    Column(title="groups", to_the_right=True),
    Column(title="above", to_the_right=True),
    Column(title="throttled", to_the_right=True),
    Column(title="owner", least=7),
)
_MOST_UNUSED: Final = 10
_WARN: Final = 0.8


def percent_of_limit(group: GroupLoad) -> float | None:
    """Rate divided by limit, in percent. ``None`` without a limit."""
    return None if group.share is None else group.share * 100


HEADROOM: Final = Document(
    cls=Headroom,
    name="headroom",
    title="kafka-quotas headroom",
    codec=VALUES.extended(
        {
            GroupLoad: row(
                "broker key bucket=tags rate limit percent throttled=throttling source level owner", percent=percent_of_limit
            ),
            Headroom: row("cluster at groups unused notes"),
        }
    ),
)


def headroom_lines(
    results: Sequence[Headroom | ClusterFailure],
    groups: Sequence[tuple[Headroom, GroupLoad]],
    *,
    top: int | None = None,
    over: float | None = None,
) -> Iterator[Block]:
    """The groups with a limit, and throttled groups without a known one, of one cluster or of all.

    A group has one row, that of the broker where it is nearest. ``groups``: those of the results, the nearest to their limit
    first, above the share ``over``. ``top``: so many rows at most. Of several clusters, the owners and the clusters that did not
    answer follow.
    """
    share = 1.0 if over is None else over
    read = [each for each in results if not isinstance(each, ClusterFailure)]
    is_one = len(results) == 1 and bool(read)
    asked = [(cluster, group) for cluster, group in groups if group.limit is not None or group.throttling is not None]
    above = sum(group.is_above(share) for _, group in asked)
    throttled = sum(group.throttling is not None for _, group in asked)
    title = f"{len(read):,} of {count_of(len(results), 'cluster')}"
    if is_one:
        at = read[0].at
        title = f"{cluster_title(read[0].cluster)}{', no samples' if at is None else f', {at:%Y-%m-%d %H:%M:%S} UTC'}"
    yield line(
        f"{title}: {count_of(sum(group.limit is not None for _, group in asked), 'quota group')} with a limit, ",
        (f"{above:,} above {percent_text(share, digits=0)}", Style.BAD if above else Style.PLAIN),
        ", ",
        (f"{throttled:,} throttled", Style.BAD if throttled else Style.PLAIN),
    )
    rows = _nearest(asked)
    if shown := rows[:top]:
        cells = ((*_group_row(group, cluster.at, more), *(() if is_one else (_name(cluster),))) for cluster, group, more in shown)
        yield table(_GROUPS if is_one else (*_GROUPS, _CLUSTER), cells, indent=0)
    if hidden := len(rows) - len(shown):
        yield line((f"{count_of(hidden, 'more quota group')} not shown.", Style.FAINT))
    if not is_one:
        yield from _owner_lines([group for _, group in asked], top)
    if over is None:
        yield from _unused_lines([(cluster, limit) for cluster in read for limit in cluster.unused], named=not is_one)
    for cluster in read:
        whose = "" if is_one else f"{_name(cluster)}: "
        yield from (labelled("Note: ", Style.FAINT, whose, note) for note in cluster.notes)
    for each in results:
        if isinstance(each, ClusterFailure):
            yield from failure_lines(each)


def _name(headroom: Headroom) -> str:
    return display_name(headroom.cluster.name or headroom.cluster.id or "")


def _owner_lines(groups: Sequence[GroupLoad], top: int | None) -> Iterator[Block]:
    """A row for each owner, the nearest to a limit first."""
    of_owner: dict[str, list[GroupLoad]] = {}
    for group in groups:
        of_owner.setdefault(group.owner or "", []).append(group)
    if not any(of_owner):
        return
    rows = sorted(of_owner.items(), key=lambda item: (-max(group.share or 0.0 for group in item[1]), item[0]))
    yield line()
    yield table(
        _OWNERS,
        (
            (
                _percent(max(group.share or 0.0 for group in of)),
                f"{len(of):,}",
                f"{sum(group.is_above(1.0) for group in of):,}",
                f"{sum(group.throttling is not None for group in of):,}",
                display_name(owner) if owner else "no owner",
            )
            for owner, of in rows[:top]
        ),
        indent=0,
    )


def _unused_lines(limits: Sequence[tuple[Headroom, UnusedLimit]], *, named: bool) -> Iterator[Block]:
    """Yield the limits without traffic in one line, with the command that judges them. ``named``: each with its cluster."""
    if not limits:
        return
    words = [
        f"{f'{_name(cluster)} ' if named else ''}{limit.entity} {limit.key.value}" for cluster, limit in limits[:_MOST_UNUSED]
    ]
    more = len(limits) - len(words)
    end = f" and {more:,} more" if more else ""
    command = f"kafka-quotas rightsize{' --cluster NAME' if named else ''}"
    advice = f"See {command} for those without traffic for months."
    yield labelled("Unused now: ", Style.FAINT, f"{count_of(len(limits), 'limit')}: {', '.join(words)}{end}. {advice}")


def _nearest(loads: Sequence[tuple[Headroom, GroupLoad]]) -> list[tuple[Headroom, GroupLoad, int]]:
    """Each quota group on the broker where it is nearest to its limit, and how many more brokers have it. ``loads``: sorted."""
    places = [(id(cluster), group.key, tuple(sorted(group.tags.items()))) for cluster, group in loads]
    counts = Counter(places)
    first = dict(reversed(tuple(zip(places, loads, strict=True))))
    return [(*first[place], count - 1) for place, count in counts.items()]


def _group_row(group: GroupLoad, at: datetime.datetime | None, more: int = 0) -> tuple[str | tuple[str, Style], ...]:
    share, limit = group.share, group.limit
    style = Style.PLAIN if share is None or share <= _WARN else Style.WARN if share <= 1 else Style.BAD
    tags = " ".join(f"{tag}={display_name(name)}" for tag, name in group.tags.items())
    source = "not known" if group.source is None else "own" if str(group.source) == tags else str(group.source)
    return (
        ("" if share is None else _percent(share), style),
        rate(group.key, group.rate),
        "" if limit is None else rate(group.key, limit) if math.isfinite(limit) else amount(group.key, limit),
        ("" if group.throttling is None or at is None else _since(group.throttling, at), Style.BAD),
        f"{_KINDS[group.key]} {display_name(group.broker)}{f' (+{more})' if more else ''}",
        (tags, Style.STRONG),
        source if group.owner is None else f"{source} ({display_name(group.owner)})",
    )


def _percent(share: float) -> str:
    if not math.isfinite(share):
        return "over"
    return f"{share * 100:,.0f}" if share >= 0.1 else f"{share * 100:.1f}"


def _since(throttling: Throttling, at: datetime.datetime) -> str:
    seconds = (at - throttling.since).total_seconds()
    if throttling.or_earlier:
        return f">{duration(seconds)}" if seconds >= 1 else "yes"
    return duration(seconds)
