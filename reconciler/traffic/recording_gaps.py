"""Times that ``record`` did not observe, as it noted them beside its files."""

from __future__ import annotations

import datetime
import logging
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Final

import msgspec
import numpy as np

from reconciler.errors import TrafficError
from reconciler.logs import log_event
from reconciler.traffic.kernels.sampled_rate import Integers

_log: Final = logging.getLogger(__name__)
GAP_FILES: Final = ("gaps.old.jsonl", "gaps.jsonl")
"""Beside the Parquet files, one line a gap. The first one has the older lines."""
_MINUTE_S: Final = 60
_MOST_MINUTES: Final = 366 * 24 * 60
"""Of one gap; more comes from a damaged line."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordingGap:
    """A time without samples of one broker, in seconds since 1970."""

    broker: int
    begin_s: float
    end_s: float


class _GapLine(msgspec.Struct, gc=False):
    broker: Annotated[int, msgspec.Meta(ge=0, lt=2**31)]
    begin: datetime.datetime = msgspec.field(name="from")
    until: datetime.datetime


def read_gaps(folders: Iterable[Path]) -> tuple[RecordingGap, ...]:
    """The gaps that are noted in these folders. Lines of other kinds are skipped. Raises ``TrafficError``."""
    all_gaps = []
    for folder in folders:
        for name in GAP_FILES:
            path = folder / name
            try:
                lines = path.read_bytes().splitlines()
            except FileNotFoundError:
                continue
            except OSError as error:
                raise TrafficError(f"recorded traffic {path} cannot be read: {error.strerror or error}") from error
            gaps = [gap for line in lines if (gap := _gap(line)) is not None]
            log_event(_log, "gaps read", file=str(path), lines=len(lines), gaps=len(gaps))
            all_gaps += gaps
    return tuple(all_gaps)


def gap_minutes(gaps: Iterable[RecordingGap]) -> Mapping[int, Integers]:
    """By broker the minutes since 1970 in its gaps, rising. Both ends of a gap count to the nearest minute."""
    ranges: dict[int, list[Integers]] = defaultdict(list)
    for gap in gaps:
        begin, end = round(gap.begin_s / _MINUTE_S), round(gap.end_s / _MINUTE_S)
        ranges[gap.broker].append(np.arange(begin, min(end, begin + _MOST_MINUTES), dtype=np.int64))
    return {broker: np.unique(np.concatenate(some)) for broker, some in ranges.items()}


def _gap(line: bytes) -> RecordingGap | None:
    try:
        read = msgspec.json.decode(line, type=_GapLine)
    except (msgspec.MsgspecError, UnicodeDecodeError):
        return None
    begin, end = (at if at.tzinfo is not None else at.replace(tzinfo=datetime.UTC) for at in (read.begin, read.until))
    return RecordingGap(broker=read.broker, begin_s=begin.timestamp(), end_s=end.timestamp())
