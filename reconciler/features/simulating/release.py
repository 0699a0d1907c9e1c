"""``backtest --deploy``: how long a release that creates topics takes under each ``controller_mutation_rate``.

A quota group has a bucket of ``limit x window`` tokens, one for each partition, which refills by ``limit`` a second. A topic is
created while the bucket is not in debt, whole, and may leave a debt. So the topic after ``n`` others is created once the bucket
has paid for all of these. No traffic is needed: the bucket is full at first, and no other client of the group creates topics.
"""

from __future__ import annotations

import math
from argparse import ArgumentTypeError
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Self

from reconciler.documents import VALUES, Document, row
from reconciler.model import ClusterSpec, Entity, QuotaKey
from reconciler.render import Block, Column, Line, Style, View, labelled, line, table
from reconciler.resolution import BROKER_SETTINGS, CONTROLLER_WINDOW_NUM, CONTROLLER_WINDOW_SECONDS
from reconciler.text import amount, count_of, length_text, number_text, shown

_KEY: Final = QuotaKey.CONTROLLER_MUTATION_RATE
_PATIENCE_S: Final = 60
"""How long a client of Kafka 2.7 or newer retries refused topics: ``default.api.timeout.ms``."""
_REQUEST_S: Final = 30
"""How long an older client waits for an answer: ``request.timeout.ms``."""
_MOST: Final = 1_000_000
_SHOWN: Final = 20
_COLUMNS: Final = (
    Column(title="takes", to_the_right=True),
    Column(title="limit", to_the_right=True),
    Column(title="at once", to_the_right=True),
    Column(title="refused", to_the_right=True),
    Column(title="time out", to_the_right=True),
    Column(title="limit for all at once", to_the_right=True),
    Column(title="quota", least=10),
)
_REFUSED: Final = (
    "refused: topics that a client of Kafka 2.7 or newer gives up with error 89 (THROTTLING_QUOTA_EXCEEDED) after "
    f"{_PATIENCE_S} s, its default.api.timeout.ms."
)
_TIME_OUT: Final = (
    "time out: topics of an older client that sends a request for each at once, and then waits longer than "
    f"{_REQUEST_S} s, its request.timeout.ms. They are not created once it closes the connection. "
    "One request for all topics is taken whole."
)
_NOTES: Final = (
    _REFUSED,
    _TIME_OUT,
    "The token bucket is full at first, and no other client of the quota group creates or deletes topics.",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Release:
    """What a release creates."""

    topics: int
    """How many topics."""
    partitions_each: int
    """How many partitions each of them has."""

    @classmethod
    def parse(cls, text: str) -> Self:
        """Parse ``40x10``, as the ``type`` of an option. Raises ``ArgumentTypeError``."""
        topics, separator, each = text.partition("x")
        counts = [int(part) if part.isascii() and part.isdigit() and len(part) < 8 else 0 for part in (topics, each)]
        if not separator or not all(0 < count <= _MOST for count in counts):
            raise ArgumentTypeError(
                f"{shown(text)} is not TOPICSxPARTITIONS, such as 40x10 for 40 topics with 10 partitions each, up to {_MOST:,}"
            )
        return cls(topics=counts[0], partitions_each=counts[1])


@dataclass(frozen=True, slots=True, kw_only=True)
class ReleaseUnderQuota:
    """A release by a client that one quota limits."""

    entity: Entity
    """The entity of the quota. ``None`` for a name is the default."""
    limit: float
    """Its controller_mutation_rate, in partitions per second."""
    burst: float
    """Tokens of a full bucket, one for each partition."""
    seconds: float
    """Time until the last topic is created, in seconds, by a client that retries."""
    at_once: int
    """Topics that are created at once."""
    refused: int
    """Topics that a client of Kafka 2.7 or newer gives up with error 89 after 60 s, its default.api.timeout.ms."""
    timed_out: int
    """Topics of an older client that sends a request for each at once, and waits longer than 30 s, its request.timeout.ms."""
    limit_for_all_at_once: float
    """The smallest limit that creates every topic at once, in partitions per second."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReleaseReport:
    """How long a release takes under each quota, the longest first."""

    cluster: str | None
    """The name of the Cluster manifest. ``None`` without one."""
    release: Release
    """What is created."""
    quotas: tuple[ReleaseUnderQuota, ...]
    """One item for each quota of controller_mutation_rate."""


def release_report(release: Release, quotas: Mapping[Entity, Mapping[str, float]], spec: ClusterSpec) -> ReleaseReport:
    """The release under each of ``quotas`` that has a ``controller_mutation_rate``, with the controller's window of ``spec``."""
    settings = {**BROKER_SETTINGS, **spec.brokers.settings}
    window_s = settings[CONTROLLER_WINDOW_NUM] * settings[CONTROLLER_WINDOW_SECONDS]
    made = [
        _under(release, entity, values[_KEY], window_s)
        for entity, values in quotas.items()
        if 0 < values.get(_KEY, 0.0) < math.inf
    ]
    return ReleaseReport(
        cluster=spec.name, release=release, quotas=tuple(sorted(made, key=lambda each: (-each.seconds, each.entity.sort_key)))
    )


def created_after(number: int, release: Release, limit: float, window_s: float) -> float:
    """Seconds until the topic after ``number`` others is created."""
    return max(0.0, number * release.partitions_each / limit - window_s)


def _under(release: Release, entity: Entity, limit: float, window_s: float) -> ReleaseUnderQuota:
    def created_within(seconds: float) -> int:
        return min(release.topics, math.floor((seconds + window_s) * limit / release.partitions_each) + 1)

    others = (release.topics - 1) * release.partitions_each
    return ReleaseUnderQuota(
        entity=entity,
        limit=limit,
        burst=limit * window_s,
        seconds=created_after(release.topics - 1, release, limit, window_s),
        at_once=created_within(0),
        refused=release.topics - created_within(_PATIENCE_S),
        timed_out=release.topics - created_within(_REQUEST_S),
        limit_for_all_at_once=float(math.ceil(others / window_s)) or limit,
    )


def partitions_of(release: Release) -> int:
    """The number of partitions of all topics."""
    return release.topics * release.partitions_each


RELEASE: Final = Document(
    cls=ReleaseReport,
    name="release",
    title="kafka-quotas backtest --deploy",
    codec=VALUES.extended(
        {
            Release: row("topics partitions_each partitions", partitions=partitions_of),
            ReleaseUnderQuota: row("entity limit burst seconds at_once refused timed_out limit_for_all_at_once"),
            ReleaseReport: row("cluster release quotas"),
        }
    ),
)


def release_view(report: ReleaseReport) -> View:
    """A row for each quota, what its columns mean, and the answer: the slowest one."""
    release, quotas = report.release, report.quotas
    what = (
        f"{count_of(release.topics, 'topic')} with {count_of(release.partitions_each, 'partition')} each, "
        f"{count_of(partitions_of(release), 'partition')}"
    )
    blocks: list[Block] = [table(_COLUMNS, (_row(each) for each in quotas[:_SHOWN]))] if quotas else []
    if len(quotas) > _SHOWN:
        blocks.append(line((f"{count_of(len(quotas) - _SHOWN, 'more quota')} not shown.", Style.FAINT)))
    if quotas:
        blocks += (labelled("Note: ", Style.FAINT, note) for note in _NOTES)
    return View(
        kind="release",
        cluster=report.cluster,
        title=line((f"Release: {what}", Style.STRONG)),
        answer=_answer(quotas),
        blocks=tuple(blocks),
    )


def _answer(quotas: Sequence[ReleaseUnderQuota]) -> Line:
    if not quotas:
        return line("No controller_mutation_rate limits this release.")
    slowest = quotas[0]
    if not slowest.seconds:
        return line("All topics are created at once.")
    return line(
        "The release takes ",
        (_time(slowest.seconds), Style.STRONG),
        f" at {amount(_KEY, slowest.limit)} of ",
        slowest.entity,
        f", with a burst of {number_text(slowest.burst)} at once.",
        (f" Clients give up {count_of(slowest.refused, 'topic')}.", Style.BAD) if slowest.refused else "",
    )


def _time(seconds: float) -> str:
    return length_text(math.ceil(seconds)) if seconds else "at once"


def _row(each: ReleaseUnderQuota) -> tuple[str | Entity | tuple[str, Style], ...]:
    return (
        _time(each.seconds),
        amount(_KEY, each.limit),
        f"{each.at_once:,}",
        (f"{each.refused:,}", Style.BAD if each.refused else Style.PLAIN),
        (f"{each.timed_out:,}", Style.WARN if each.timed_out else Style.PLAIN),
        amount(_KEY, each.limit_for_all_at_once),
        each.entity,
    )
