"""How near quota groups are to their limits, as a table for a terminal: one row a group and broker, or one an owner."""

from __future__ import annotations

import datetime
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from reconciler.documents import VALUES, Document, row
from reconciler.features.insight.observe import GroupLoad, Headroom, OwnerLoad, Throttling
from reconciler.model import QuotaKey, display_name
from reconciler.render import Block, Column, Style, cluster_title, labelled, line, table
from reconciler.text import amount, count_of, duration, rate

_KINDS: Final[Mapping[QuotaKey, str]] = {
    QuotaKey.PRODUCER_BYTE_RATE: "produce",
    QuotaKey.CONSUMER_BYTE_RATE: "fetch",
    QuotaKey.REQUEST_PERCENTAGE: "request",
    QuotaKey.CONTROLLER_MUTATION_RATE: "mutation",
    QuotaKey.CONNECTION_CREATION_RATE: "connect",
}
_GROUPS: Final = (
    Column(title="%", to_the_right=True),
    Column(title="trend", to_the_right=True),
    Column(title="rate", to_the_right=True),
    Column(title="limit", to_the_right=True),
    Column(title="throttled"),
    Column(title="on broker", least=9),
    Column(title="quota group", least=10),
    Column(title="limited by", least=7),
)
_OWNERS: Final = (
    Column(title="owner", least=8),
    Column(title="nearest %", to_the_right=True),
    Column(title="groups", to_the_right=True),
    Column(title="above", to_the_right=True),
    Column(title="throttled", to_the_right=True),
    Column(title="nearest group", least=12),
)
_WARN: Final = 0.8
_SMALL_TREND: Final = 0.01


def headroom_lines(headroom: Headroom, *, top: int | None, above: float, left_out: int = 0) -> tuple[Block, ...]:
    """The groups with a limit, and throttled groups without a known one. ``left_out``: groups that were not asked for."""
    shown = [group for group in headroom.groups if group.limit is not None or group.throttling is not None]
    rows = shown if top is None else shown[:top]
    blocks: list[Block] = [_title(headroom, shown, above=above)]
    if rows:
        blocks.append(table(_GROUPS, (_group_row(group, headroom.at) for group in rows), indent=0))
    hidden = len(shown) - len(rows) + left_out
    return (*blocks, *_end(headroom, hidden))


def load_blocks(headroom: Headroom) -> tuple[Block, ...]:
    """The same for one of several clusters on a page."""
    return headroom_lines(headroom, top=None, above=1.0)


def owner_lines(headroom: Headroom, owners: Sequence[OwnerLoad], *, top: int | None, above: float) -> tuple[Block, ...]:
    """A table of the first ``top`` owners, under a title that counts quota groups above the share ``above`` of their limits."""
    blocks: list[Block] = [_title(headroom, headroom.groups, above=above)]
    rows = owners if top is None else owners[:top]
    if rows:
        blocks.append(table(_OWNERS, (_owner_row(owner) for owner in rows), indent=0))
    return (*blocks, *_end(headroom, 0))


def _title(headroom: Headroom, groups: Sequence[GroupLoad], *, above: float) -> Block:
    limited = [group for group in groups if group.limit is not None]
    over = sum(group.is_above(above) for group in limited)
    throttled = sum(group.throttling is not None for group in groups)
    where = cluster_title(headroom.cluster)
    if headroom.at is None:
        return line((f"{where}: no samples", Style.STRONG))
    return line(
        f"{where}, {headroom.at:%Y-%m-%d %H:%M:%S} UTC: {count_of(len(limited), 'quota group')} with a limit, ",
        (f"{over:,} above {above:.0%}", Style.BAD if over else Style.PLAIN),
        ", ",
        (f"{throttled:,} throttled", Style.BAD if throttled else Style.PLAIN),
    )


def _group_row(group: GroupLoad, at: datetime.datetime | None) -> tuple[str | tuple[str, Style], ...]:
    share = group.share
    style = Style.PLAIN if share is None or share <= _WARN else Style.WARN if share <= 1 else Style.BAD
    return (
        ("" if share is None else _percent(share), style),
        _trend(group),
        rate(group.key, group.rate),
        "" if group.limit is None else _short_limit(group),
        ("" if group.throttling is None else _since(group.throttling, at), Style.BAD),
        f"{_KINDS[group.key]} {display_name(group.broker)}",
        (_tags(group), Style.STRONG),
        _limited_by(group),
    )


def _limited_by(group: GroupLoad) -> str:
    if group.source is None:
        return "not known"
    source = "own" if str(group.source) == _tags(group) else str(group.source)
    return source if group.owner is None else f"{source} ({display_name(group.owner)})"


def _short_limit(group: GroupLoad) -> str:
    limit = group.limit or 0.0
    return rate(group.key, limit) if math.isfinite(limit) else amount(group.key, limit)


def _percent(share: float) -> str:
    if not math.isfinite(share):
        return "over"
    return f"{share * 100:,.0f}" if share >= 0.1 else f"{share * 100:.1f}"


def _tags(group: GroupLoad) -> str:
    return " ".join(f"{tag}={display_name(name)}" for tag, name in group.tags.items())


def _trend(group: GroupLoad) -> str:
    """Percentage points of the limit."""
    if group.trend is None or not group.limit:
        return ""
    change = group.trend.change / group.limit
    return "=" if abs(change) < _SMALL_TREND else f"{change * 100:+,.0f}"


def _since(throttling: Throttling, at: datetime.datetime | None) -> str:
    if throttling.since is None or at is None:
        return "yes"
    seconds = (at - throttling.since).total_seconds()
    if throttling.or_earlier:
        return f">{duration(seconds)}" if seconds >= 1 else "yes"
    return duration(seconds)


def _owner_row(load: OwnerLoad) -> tuple[str | tuple[str, Style], ...]:
    share = load.worst.share or 0.0
    return (
        ("(none)" if load.owner is None else display_name(load.owner), Style.STRONG),
        (_percent(share), Style.PLAIN if share <= _WARN else Style.WARN if share <= 1 else Style.BAD),
        f"{load.groups:,}",
        f"{load.above:,}",
        f"{load.throttled:,}",
        f"{_tags(load.worst)} {_KINDS[load.worst.key]} @ {display_name(load.worst.broker)}",
    )


def _end(headroom: Headroom, hidden: int) -> list[Block]:
    blocks: list[Block] = []
    if headroom.muted:
        parts = (f"broker {display_name(muted.broker)} {muted.connections:,} ({_KINDS[muted.key]})" for muted in headroom.muted)
        blocks.append(labelled("Muted connections: ", Style.FAINT, ", ".join(parts)))
    if hidden > 0:
        blocks.append(line((f"{count_of(hidden, 'more quota group')} not shown.", Style.FAINT)))
    blocks += [labelled("Note: ", Style.FAINT, note) for note in headroom.notes]
    return blocks


@dataclass(frozen=True, slots=True, kw_only=True)
class HeadroomAnswer:
    """The quota groups that were asked for, and the owners of all groups with limits."""

    headroom: Headroom
    owners: tuple[OwnerLoad, ...]
    """Owners in the order of their worst groups."""


def percent_of_limit(group: GroupLoad) -> float | None:
    """Rate divided by limit, in percent. ``None`` without a limit."""
    return None if group.share is None else group.share * 100


def percent_of_worst(load: OwnerLoad) -> float | None:
    """The same of the group that is nearest to its limit."""
    return percent_of_limit(load.worst)


LOADS: Final = VALUES.extended(
    {
        GroupLoad: row(
            "broker key bucket=tags rate limit percent trend throttled=throttling source level owner tokens?",
            percent=percent_of_limit,
        ),
        Headroom: row("at groups muted notes"),
        OwnerLoad: row("owner groups above throttled percent", percent=percent_of_worst),
    }
)
"""Of quota groups at their moment, for this document and for reports."""
HEADROOM: Final = Document(
    cls=HeadroomAnswer,
    name="headroom",
    title="kafka-quotas headroom",
    codec=LOADS.extended({Headroom: row("cluster at groups muted notes"), HeadroomAnswer: row("*headroom owners")}),
)
