"""What a backtest is asked, how traffic is read, and the facts of opened traffic."""

from __future__ import annotations

import contextlib
import datetime
import enum
import logging
from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import msgspec
import numpy as np

from reconciler.errors import TrafficError
from reconciler.logs import log_event
from reconciler.model import Coverage, Entity, HistoryNeeds, Message, Observations, Span
from reconciler.ports import NO_PROGRESS, Progress
from reconciler.resolution import QuotaTable
from reconciler.traffic.judging.grouping import BrokerRule
from reconciler.traffic.kernels.sampled_rate import DEFAULT_WINDOW, Integers, Window
from reconciler.traffic.kinds import BYTES, Kind
from reconciler.traffic.sources.normal_form import require_readable

if TYPE_CHECKING:
    from reconciler.traffic.request_traffic import TrafficSource


class Source(enum.StrEnum):
    """What recorded traffic is; the words of the report."""

    LOGS = "request-log"
    NORMAL_FORM = "normal-form"
    CELLS = "cells"
    LOG_CELLS = "log-cells"
    """The same where some of them were made of request logs, and have their faults. Only opened traffic shows it."""
    MAPPED = "mapped-file"
    RECORDER = "recorder"


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """How rows are read. ``kinds``: what to read of logs, since each kind costs time. ``also``: columns beside the usual ones."""

    log_timezone: str = "UTC"
    kinds: Collection[Kind] = BYTES
    also: tuple[str, ...] = ()
    by_seconds: bool = False
    """Whole seconds will be judged, so that rows are added up as they are read."""
    progress: Progress = NO_PROGRESS
    """Where this process reports how far it is."""
    topics: Mapping[str, int] = field(default_factory=dict)
    """By name, how many partitions topics have by a snapshot or the cluster, where no line shows it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Facts:
    """What the traffic is and what of it can be used; the fields mean what they do in ``Provenance``."""

    source: str
    files: tuple[str, ...]
    coverage: tuple[Coverage, ...]
    requests: int
    throttled_then: int = 0
    states_throttles: bool = True
    """Whether every charged row states if the broker throttled it."""
    not_charged: Mapping[str, int] = field(default_factory=dict)
    named_brokers: tuple[int, ...] = ()
    request_step: float | None = None
    observations: tuple[Observations, ...] = ()
    unreadable: int = 0
    unreadable_samples: tuple[str, ...] = ()
    gaps: tuple[RecordingGap, ...] = ()
    """Times that the recorder itself noted as not observed."""
    assumptions: tuple[str, ...] = ()
    """What verdicts of this source rest on, as sentences without their end marks."""
    notes: tuple[Message, ...] = ()
    """What to know about the files."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordedThrottle:
    """What a source records about throttles of a client or of its quota group, on one broker and in one second.

    A name is ``None`` where a quota group or a source does not have it. ``requests``: throttled ones; of ``of_samples``, samples
    that show a throttle of the minute before. ``refused``: topics that the controller refused. ``throttle_ms`` and
    ``longest_ms`` are 0 where the source has no times. ``interval_us``: since the sample before, 0 where that is not known.
    """

    broker: int
    kind: Kind
    user: str | None
    client_id: str | None
    begin_us: int
    end_us: int
    requests: int
    refused: int = 0
    throttle_ms: int = 0
    longest_ms: int = 0
    of_samples: bool = False
    interval_us: int = 0

    @property
    def key(self) -> str:
        """The quota key of its kind."""
        return self.kind.key.value


_log: Final = logging.getLogger(__name__)


def require_usable(recorded: TrafficSource, max_unreadable: float) -> None:
    """Close traffic and raise ``TrafficError`` when more than the share ``max_unreadable`` of it cannot be read."""
    facts = recorded.facts
    lines = facts.requests + facts.unreadable + sum(facts.not_charged.values())
    log_event(
        _log,
        "traffic opened",
        level=logging.INFO,
        source=facts.source,
        rows=lines,
        charged=facts.requests,
        unreadable=facts.unreadable,
        clients=len(recorded.series),
        brokers=[part.broker for part in facts.coverage],
    )
    if facts.unreadable:
        try:
            require_readable(facts.unreadable, lines, max_unreadable, files=facts.files, samples=facts.unreadable_samples)
        except TrafficError:
            recorded.close()
            raise


GAP_FILES: Final = ("gaps.old.jsonl", "gaps.jsonl")
"""Beside the Parquet files, one line a gap. The first one has the older lines."""
_MINUTE_S: Final = 60
_MOST_MINUTES: Final = 366 * 24 * 60
"""Of one gap; more comes from a damaged line."""


class RecordingGap(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """A time without samples of one broker."""

    broker: Annotated[int, msgspec.Meta(ge=0, lt=2**31)]
    begin: Annotated[datetime.datetime, msgspec.Meta(tz=True)] = msgspec.field(name="from")
    until: Annotated[datetime.datetime, msgspec.Meta(tz=True)]


_decode_gap: Final = msgspec.json.Decoder(RecordingGap).decode


def read_gaps(folders: Iterable[Path]) -> tuple[RecordingGap, ...]:
    """The gaps that are noted in these folders. Lines of other kinds are skipped. Raises ``TrafficError``."""
    gaps: list[RecordingGap] = []
    for folder in folders:
        for name in GAP_FILES:
            path = folder / name
            try:
                lines = path.read_bytes().splitlines()
            except FileNotFoundError:
                continue
            except OSError as error:
                raise TrafficError(f"recorded traffic {path} cannot be read: {error.strerror or error}") from error
            before = len(gaps)
            for line in lines:
                with contextlib.suppress(msgspec.MsgspecError, UnicodeDecodeError):
                    gaps.append(_decode_gap(line))
            log_event(_log, "gaps read", file=str(path), lines=len(lines), gaps=len(gaps) - before)
    return tuple(gaps)


def gap_minutes(gaps: Iterable[RecordingGap]) -> Mapping[int, Integers]:
    """Return the minutes since 1970 in the gaps of each broker, rising. Both ends of a gap count to the nearest minute."""
    ranges: dict[int, list[Integers]] = defaultdict(list)
    for gap in gaps:
        begin, end = (round(at.timestamp() / _MINUTE_S) for at in (gap.begin, gap.until))
        ranges[gap.broker].append(np.arange(begin, min(end, begin + _MOST_MINUTES), dtype=np.int64))
    return {broker: np.unique(np.concatenate(some)) for broker, some in ranges.items()}


@dataclass(frozen=True, slots=True, kw_only=True)
class BrokerModel:
    """The brokers as the backtest has them."""

    window: Window = DEFAULT_WINDOW
    controller_window: Window = DEFAULT_WINDOW
    """``controller.quota.window.num`` and ``.size.seconds``: a token bucket has at most so many seconds of its limit."""
    settings_from: str = "Kafka's defaults"
    """Where the two windows' settings were taken from."""
    rule: BrokerRule = field(default_factory=BrokerRule)
    version_from: str = "no Kafka version was given"


@dataclass(frozen=True, slots=True, kw_only=True)
class BacktestRequest:
    """What is asked: the quotas before (``None``: not known) and after, and which broker is modelled."""

    current: QuotaTable | None
    proposed: QuotaTable
    declared: QuotaTable
    """The part of ``proposed`` that manifests declare. Unused quotas are reported of this part."""
    sources: Mapping[tuple[Entity, str], Span] = field(default_factory=dict)
    broker: BrokerModel = field(default_factory=BrokerModel)
    log_timezone: str = "UTC"
    exact: bool = False
    """Judge every request, where they are known."""
    unchanged: bool = False
    """Judge limits that stay, too, also where only per-second totals are known."""
    in_effect: bool = False
    """The proposed quotas are those that were in effect when the traffic was recorded."""
    needs: HistoryNeeds = field(default_factory=lambda: HistoryNeeds(hours=0.0))
    """How much history a clear verdict needs. Built in: any length, since the length to ask for is a matter of policy."""
    brokers: tuple[int, ...] = ()
    """Ids of the cluster's brokers when its quotas were read; empty: not known."""
    plots: int = 0
    """Of how many buckets, the worst ones, the rate over time is wanted."""

    @property
    def change(self) -> tuple[QuotaTable | None, QuotaTable]:
        """The quotas whose differences are judged. Of quotas that are not known, all that manifests declare is new."""
        return self.current, self.declared if self.current is None else self.proposed

    @property
    def calls_back(self) -> bool:
        """Whether a quota callback decides who shares which limit."""
        return self.broker.rule.callback is not None
