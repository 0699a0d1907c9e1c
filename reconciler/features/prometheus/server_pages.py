"""Traffic from a Prometheus server: hour by hour into Parquet files, of which later runs read only what is new."""

from __future__ import annotations

import datetime
import functools
import hashlib
import json
import logging
import urllib.parse
from collections import Counter, deque
from collections.abc import Iterator, Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final, TypeAlias

from reconciler.errors import FileAccessError, TrafficError, UsageError
from reconciler.features.prometheus.http import HttpLogin, read_login, trusted_reader
from reconciler.features.prometheus.server_api import PrometheusApi, TooManySamplesError
from reconciler.http import in_background
from reconciler.logs import log_event
from reconciler.model import Message, MessagePart, compose, escaped, flag_part, name_part
from reconciler.ports import NO_PROGRESS, Progress
from reconciler.text import list_some
from reconciler.workflows import FetchedSamples, PrometheusRequest, TrustedTree

if TYPE_CHECKING:
    from reconciler.features.prometheus.sample_pages import PageFacts

_HOUR_S: Final = 3600
_LATE_S: Final = 300
"""An hour is complete this long after its end: a server takes samples in, or replicates them, late."""
_MOST_HOURS: Final = 366 * 24
_SHOWN: Final = 3
_log: Final = logging.getLogger(__name__)


def fetch_prometheus(
    request: PrometheusRequest, *, now: datetime.datetime, progress: Progress = NO_PROGRESS, trusted: TrustedTree | None = None
) -> FetchedSamples:
    """Read the hours that the store lacks, and name the files of the whole time.

    An hour that is not complete is read anew in each run. A run that is cut short leaves the pages that it finished.
    ``trusted``: refuses a login of a pull request.

    Raises ``UsageError`` for a time without an hour or a login file that cannot be used, ``FileAccessError``, and
    ``TrafficError`` for a server that refuses.
    """
    from reconciler.features.prometheus.sample_pages import page_facts
    from reconciler.traffic import Between

    hours = tuple(_hours(request.since, min(request.until, now)))
    if not hours:
        raise UsageError("The time between --since and --until is empty or in the future")
    if len(hours) > _MOST_HOURS:
        raise UsageError(f"The time between --since and --until has {len(hours):,} hours, more than {_MOST_HOURS:,}")
    login = read_login(request.http_config, trusted_reader(trusted)) if request.http_config else HttpLogin()
    api = PrometheusApi(request.address, login, on_wait=progress.step)
    folder = request.store / _folder_name(api.address, request, login)
    paths = [folder / f"{hour:%Y-%m-%dT%H}.parquet" for hour in hours]
    stored = ((path, page_facts(path)) for path in paths)
    facts = {path: page for path, page in stored if page is not None and page.complete}
    missing = [(path, hour) for path, hour in zip(paths, hours, strict=True) if path not in facts]
    try:
        pages = _read_pages(api, request, missing, now=now, progress=progress)
        read = dict(pages)
    except KeyboardInterrupt as interrupt:
        interrupt.add_note(f"Whole hours of samples are kept in {folder}, and the same command reads the rest")
        raise
    except OSError as error:
        raise FileAccessError(f"{folder} cannot be written: {error.strerror or error}") from error
    finally:
        api.close()
    facts |= read
    return FetchedSamples(
        folder=folder,
        files=tuple(paths),
        between=Between.of(request.since, request.until),
        notes=tuple(_notes([facts[path] for path in paths])),
        pages_read=tuple(read),
        samples=sum(page.rows for page in read.values()),
        rows=sum(facts[path].rows for path in paths),
    )


def _read_pages(
    api: PrometheusApi,
    request: PrometheusRequest,
    pages: Sequence[tuple[Path, datetime.datetime]],
    *,
    now: datetime.datetime,
    progress: Progress,
) -> Iterator[tuple[Path, PageFacts]]:
    from reconciler.features.prometheus.metric_answers import AnswerReader, ForeignAnswerError
    from reconciler.features.prometheus.metric_layouts import selector_of
    from reconciler.features.prometheus.sample_pages import PageWriter

    reader = AnswerReader()
    begins = [hour.timestamp() for _, hour in pages]
    times = [Piece(begin, max(begin + 1, min(begin + _HOUR_S, now.timestamp()))) for begin in begins]
    pieces = PieceReader(api, selector_of(request.match)).read(times)
    for number, (path, hour) in enumerate(pages):
        with PageWriter(path, reader) as page:
            for piece, answers in pieces:
                try:
                    for part, answer in answers:
                        page.add(answer, after_s=part.begin_s)
                except ForeignAnswerError as error:
                    raise api.foreign(str(error)) from error
                progress.step(f"reading {api.address}")
                done = 1 if piece.is_last else (piece.end_s - hour.timestamp()) / _HOUR_S
                progress.count(number + done, len(pages), "hours")
                if piece.is_last:
                    break
            whole = now.timestamp() >= hour.timestamp() + _HOUR_S + _LATE_S
            facts = page.finish(complete=whole)
        log_event(_log, "wrote a page of samples", file=str(path), rows=facts.rows)
        yield path, facts


def _hours(since: datetime.datetime, until: datetime.datetime) -> Iterator[datetime.datetime]:
    hour = since.replace(minute=0, second=0, microsecond=0)
    while hour < until:
        yield hour
        hour += datetime.timedelta(hours=1)


def _folder_name(address: str, request: PrometheusRequest, login: HttpLogin) -> str:
    """Pages of another server, other matchers or another tenant are in another folder."""
    identity = json.dumps([address, sorted(map(str, request.match)), login.tenant])
    host = urllib.parse.urlsplit(address).hostname or ""
    readable = "".join(c if c.isalnum() or c in ".-" else "-" for c in host)[:64]
    return f"{readable}-{hashlib.sha256(identity.encode()).hexdigest()[:16]}"


def _notes(pages: Sequence[PageFacts]) -> Iterator[Message]:
    unattributed, replicas = Counter[str](), Counter[int]()
    for page in pages:
        unattributed |= Counter({reason.value: count for reason, count in page.unattributed.items()})
        replicas |= Counter(page.replicas)
    if count := unattributed["name-only"]:
        yield compose(
            "The clients of {count} series are unknown, since user and client-id are in the metric name only: {example}. "
            "{command} prints rules of the jmx_exporter that repair it.",
            count=count,
            example=_example(pages, "name-only"),
            command=flag_part("kafka-quotas doctor"),
        )
    if count := unattributed["no-broker"]:
        yield compose(
            "{count} series have no broker id, for example {example}. Add a label {label} in the scrape configuration.",
            count=count,
            example=_example(pages, "no-broker"),
            label=flag_part("broker"),
        )
    if replicas:
        yield compose(
            "Two exporters or replicas show the same clients of broker {brokers}. One of them counts.",
            brokers=list_some([str(broker) for broker in sorted(replicas)], _SHOWN),
        )
    warnings = dict.fromkeys(escaped(text) for page in pages for text in page.warnings)
    if warnings:
        yield compose(
            "The server warns that {hours} of {all} hours are incomplete: {warnings}. The next run reads them again.",
            hours=sum(bool(page.warnings) for page in pages),
            all=len(pages),
            warnings=name_part(", ".join(list(warnings)[:_SHOWN])[:300]),
        )


def _example(pages: Sequence[PageFacts], why: str) -> MessagePart:
    """One of the series that are not attributed for this reason."""
    from reconciler.features.prometheus.exporter_page import series_text

    texts = (text for page in pages for reason, text in page.examples.items() if reason.value == why)
    return name_part(series_text(json.loads(next(texts, "{}"))))


_SHORTEST_S: Final = 60
_LENGTH_S: Final = 1800
"""Of the first pieces: some 40 MB where 10,000 series have a sample each 15 seconds."""
_AHEAD: Final = 2
"""The server works on so many pieces while this process decodes another one."""


@dataclass(frozen=True, slots=True)
class Piece:
    """The time after ``begin_s``, up to ``end_s``: seconds since 1970. ``is_last``: of its page."""

    begin_s: float
    end_s: float
    is_last: bool = True


Answers: TypeAlias = "tuple[tuple[Piece, bytes], ...]"
"""JSON that is not decoded, and its time."""


class PieceReader:
    """Reads pages of one selector, in pieces that are as long as the server allows."""

    def __init__(self, api: PrometheusApi, selector: str) -> None:
        self._api, self._selector = api, selector
        self._length_s = _LENGTH_S

    def read(self, pages: Sequence[Piece]) -> Iterator[tuple[Piece, Answers]]:
        """Yield the pieces of all pages in order, with their answers. Raises ``TrafficError``."""
        waiting: deque[tuple[Piece, Future[Answers]]] = deque()
        for piece in self._plan(pages):
            waiting.append((piece, in_background(functools.partial(self._answers, piece))))
            if len(waiting) > _AHEAD:
                first, answers = waiting.popleft()
                yield first, answers.result()
        yield from ((piece, answers.result()) for piece, answers in waiting)

    def _plan(self, pages: Sequence[Piece]) -> Iterator[Piece]:
        for page in pages:
            begin = page.begin_s
            while begin < page.end_s:
                pieces = max(1, -(-(page.end_s - begin) // self._length_s))
                end = page.end_s if pieces == 1 else begin + max(1, round((page.end_s - begin) / pieces))
                yield Piece(begin, end, end >= page.end_s)
                begin = end

    def _answers(self, piece: Piece) -> Answers:
        """Ask for a piece, or for its halves where that is too much at once."""
        length_s = max(1, round(piece.end_s - piece.begin_s))
        try:
            answer = self._api.range_samples(self._selector, end_s=piece.end_s, length_s=length_s)
        except TooManySamplesError as error:
            if length_s <= _SHORTEST_S:
                advice = (
                    "One minute is too much already. Choose one cluster with --match, or raise the server's limit, such as "
                    "--query.max-samples of Prometheus."
                )
                raise TrafficError(f"{error}. {advice}") from error
            half = length_s // 2
            self._length_s = max(_SHORTEST_S, min(self._length_s, length_s - half))
            middle = piece.end_s - half
            return (*self._answers(Piece(piece.begin_s, middle)), *self._answers(Piece(middle, piece.end_s)))
        return ((piece, answer),)
