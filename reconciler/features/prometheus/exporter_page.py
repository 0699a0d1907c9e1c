"""The ``/metrics`` page of an exporter, as labelled samples: what Prometheus would scrape, read without a Prometheus.

Sources: Prometheus documentation, "Exposition formats" (text format 0.0.4), and the OpenMetrics specification 1.0.0. A page may
have every metric of a broker, so lines of other metrics are skipped. The labels of a series are parsed once, since the next page
has the same text before the value.
"""

from __future__ import annotations

import logging
import re
import time
import urllib.parse
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, TypeAlias

from reconciler.errors import TrafficError, UsageError
from reconciler.features.prometheus.http import HttpLogin, checked_address
from reconciler.http import LateAnswerError, NoAnswerError, PackedAnswerError, answering
from reconciler.logs import log_event
from reconciler.model import Message, compose, escaped, name_part

PAGE_PREFIX: Final = "metrics+"
"""``metrics+http://HOST:PORT/metrics`` names a page."""
_SHOWN: Final = 300
_LONGEST_LINE: Final = 1 << 20
_TAIL: Final = 16
_MOST_SAMPLES: Final = 300_000
"""Of quotas: no broker has as many, and each takes about a kilobyte."""
_MOST_OTHERS: Final = 2000
_MOST_NAMES: Final = 64
"""Labels of one series; one with more cannot be read."""
_MOST_LABELS: Final = 1 << 26
"""Bytes of all series of quotas that a page may have."""
_ACCEPT: Final = "text/plain;version=0.0.4,application/openmetrics-text;version=1.0.0;q=0.5,*/*;q=0.1"
_OPEN_METRICS: Final = "application/openmetrics-text"
_ADVICE: Final = {
    401: "The exporter refuses the login. Check --http-config.",
    403: "The login may not read this page. Check --http-config.",
    404: "This address has no metrics page. Check the path.",
}
_FIRST_LINE: Final = re.compile(rb"\s*+(?:#|[a-zA-Z_:][a-zA-Z0-9_:]*+[ \t{])")
_METRIC_NAME: Final = re.compile(rb"^([a-zA-Z_:][a-zA-Z0-9_:]{0,199})[ \t{]", re.MULTILINE)
_LABEL: Final = re.compile(r'[ \t]*+([a-zA-Z_][a-zA-Z0-9_]*+)[ \t]*+=[ \t]*+"((?:[^"\\\n]|\\.)*+)"[ \t]*+(?:,|$)')
_ESCAPED: Final = re.compile(r'\\([\\"n])')
_NUMBER: Final = re.compile(rb"[-+]?(?:[0-9]+(?:\.[0-9]*)?(?:[eE][-+]?[0-9]+)?|\.[0-9]+(?:[eE][-+]?[0-9]+)?|[iI]nf|[nN]a[nN])")
_GROUP: Final = re.compile(r"\((?!\?)")
_NAME_CHARACTER: Final = "[a-zA-Z0-9_:]"
_log: Final = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, eq=False)
class PageSeries:
    """One series of a page. Reads of one ``ExporterPage`` give the same object for as long as the page has the series."""

    labels: Mapping[str, str]
    """With ``__name__``, ``instance`` (host and port, as Prometheus sets it) and ``broker``, if it is known."""


PageSample: TypeAlias = "tuple[PageSeries, float]"


@dataclass(frozen=True, slots=True, kw_only=True)
class PageRead:
    """One read of a page. ``at_s``: seconds since 1970 when the request was sent."""

    at_s: float
    samples: tuple[PageSample, ...]
    unreadable: int
    """Lines of wanted metrics that are not in the exposition format."""
    bytes: int
    """Of the page, unpacked."""
    others: tuple[str, ...] = ()
    """Of a page without a wanted metric, the names of some that it has."""


class PageParser:
    """Parse a page block by block; series known from the page before are not parsed again.

    ``names``: regular expressions of whole metric names, as in a selector of Prometheus.
    """

    def __init__(self, names: Sequence[str], labels: Mapping[str, str]) -> None:
        plain = (_GROUP.sub("(?:", name).replace(".", _NAME_CHARACTER) for name in names)
        wanted = rf"(?:{'|'.join(plain)})(?!{_NAME_CHARACTER})"
        quoted = r'"(?:[^"\\\n]|\\.)*+"'
        series = rf'{wanted}(?:[ \t]*+\{{(?:[^"}}\n]|{quoted})*+\}}|(?=[ \t]))'
        line = rf"^[ \t]*+(?:({series})[ \t]*+([^\s{{}}]++)(?:[ \t]++[-+0-9.eE]++)?+[ \t]*+(?:#.*+)?\r?$|({wanted}.*)$)"
        self._lines = re.compile(line.encode(), re.MULTILINE)
        self._labels = dict(labels)
        self._known: dict[bytes, PageSeries] = {}
        self.known_bytes = 0
        """Of the text of all series that are known."""

    def parse(self, text: bytes) -> tuple[list[PageSample], int]:
        """The samples of whole lines, and how many lines could not be read."""
        samples: list[PageSample] = []
        unreadable = 0
        known = self._known
        for key, value, broken in self._lines.findall(text):
            series = known.get(key)
            if series is None and not broken:
                series = self._read_series(key)
            if series is None or not _NUMBER.fullmatch(value):
                unreadable += 1
                continue
            samples.append((series, float(value)))
        return samples, unreadable

    def forget_others(self, samples: list[PageSample]) -> None:
        """Keep only the series of these samples for later pages."""
        if len(self._known) > len(samples):
            kept = {series for series, _ in samples}
            self._known = {key: series for key, series in self._known.items() if series in kept}
            self.known_bytes = sum(map(len, self._known))

    def _read_series(self, key: bytes) -> PageSeries | None:
        try:
            name, _, text = key.decode("utf-8").partition("{")
        except UnicodeDecodeError:
            return None
        labels = {"__name__": name.strip()}
        text = text.removesuffix("}").strip(" \t")
        place = 0
        while place < len(text):
            match = _LABEL.match(text, place)
            if match is None or match[1] in labels:
                return None
            labels[match[1]] = _ESCAPED.sub(_unescape, match[2])
            place = match.end()
            if len(labels) > _MOST_NAMES:
                return None
        series = self._known[key] = PageSeries({**labels, **self._labels})
        self.known_bytes += len(key)
        return series


class ExporterPage:
    """The page of one exporter with its series of quotas. ``read`` raises ``TrafficError`` for any other page."""

    def __init__(
        self,
        address: str,
        broker: int | None = None,
        *,
        login: HttpLogin | None = None,
        timeout_s: float = 10.0,
        most_bytes: int = 1 << 28,
        clock: Callable[[], float] = time.time,
    ) -> None:
        """``address``: ``http(s)://HOST[:PORT][/PATH][?QUERY]``, without a path ``/metrics``. Raises ``UsageError`` for another.

        Series get the label of the ``broker``, if it is known. ``timeout_s``: for the whole page.
        """
        from reconciler.features.prometheus.metric_layouts import NAMES_TO_READ

        parts = checked_address(address, "metrics page", "metrics+http(s)://HOST[:PORT]/metrics")
        self.address = urllib.parse.urlunsplit(parts._replace(path=parts.path or "/metrics"))
        login = login or HttpLogin()
        self._headers = {"Accept": _ACCEPT, "Accept-Encoding": "gzip", **login.headers}
        self._timeout_s, self._most_bytes, self._clock = timeout_s, most_bytes, clock
        self._pool = login.pool(maxsize=1, timeout=timeout_s)
        labels = {"instance": urllib.parse.urlsplit(self.address).netloc}
        self._parser = PageParser(NAMES_TO_READ, labels if broker is None else {**labels, "broker": str(broker)})

    def read(self) -> PageRead:
        """Read the page once, without retries: the next read is the retry."""
        at_s = self._clock()
        exchange = answering(self._pool, "GET", self.address, seconds=self._timeout_s, headers=self._headers)
        try:
            with exchange as (response, blocks):
                if response.status != 200:
                    advice = _ADVICE.get(response.status, "")
                    raise TrafficError(f"{self.address} answers with HTTP status {response.status}. {advice}".rstrip())
                page = self._read_body(blocks, response.headers.get("content-type", ""), at_s)
        except LateAnswerError as late:
            problem = "needs longer than {} for its page" if late.size else "does not answer within {}"
            raise TrafficError(f"{self.address} {problem.format(f'{self._timeout_s:g} s')}") from late
        except PackedAnswerError as error:
            raise self._foreign(str(error)) from error
        except NoAnswerError as error:
            raise TrafficError(f"{self.address} does not answer: {escaped(str(error))[:_SHOWN]}") from error
        log_event(_log, "read a metrics page", address=self.address, bytes=page.bytes, samples=len(page.samples))
        return page

    def close(self) -> None:
        """Give the connection back."""
        self._pool.clear()

    def _read_body(self, blocks: Iterator[bytes], content_type: str, at_s: float) -> PageRead:
        samples: list[PageSample] = []
        others: dict[str, None] = {}
        unreadable = size = 0
        line = tail = b""
        known_form = False
        for block in blocks:
            size += len(block)
            tail = (tail + block)[-_TAIL:]
            text, newline, line = (line + block).rpartition(b"\n")
            if newline and not known_form:
                self._require_form(text)
                known_form = True
            more, wrong = self._parser.parse(text)
            samples += more
            unreadable += wrong
            if not samples and len(others) < _MOST_OTHERS:
                others |= dict.fromkeys(name.decode() for name in _METRIC_NAME.findall(text))
            self._require_bounds(size, len(line), len(samples))
        if not size:
            raise self._foreign("the page is empty")
        if not known_form:
            self._require_form(line)
        kind = content_type.partition(";")[0].strip().lower()
        ends = tail.strip().endswith(b"# EOF")
        if (line.strip() and not ends) or (kind == _OPEN_METRICS and not ends):
            raise self._foreign("the page is not complete")
        self._parser.forget_others(samples)
        names = () if samples else tuple(others)
        return PageRead(at_s=at_s, samples=tuple(samples), unreadable=unreadable, bytes=size, others=names)

    def _require_form(self, text: bytes) -> None:
        if not _FIRST_LINE.match(text):
            raise self._foreign("the first line is not in the exposition format")

    def _require_bounds(self, size: int, line: int, samples: int) -> None:
        if size > self._most_bytes:
            raise self._foreign(f"the page is larger than {self._most_bytes:,} bytes")
        if line > _LONGEST_LINE:
            raise self._foreign(f"a line is longer than {_LONGEST_LINE:,} bytes")
        if samples > _MOST_SAMPLES or self._parser.known_bytes > _MOST_LABELS:
            raise self._foreign(f"the page has more than {_MOST_SAMPLES:,} series of quotas, or their labels are too long")

    def _foreign(self, problem: str) -> TrafficError:
        return TrafficError(f"{self.address} is not a metrics page: {problem}. Check the address and its path.")


def _unescape(match: re.Match[str]) -> str:
    return "\n" if match[1] == "n" else match[1]


_ARGUMENT: Final = re.compile(r"(?:([0-9]{1,9})=)?metrics\+(https?://.*)", re.DOTALL | re.ASCII)


@dataclass(frozen=True, slots=True, kw_only=True)
class ExporterTarget:
    """The exporter of one broker."""

    broker: int
    address: str


def exporter_targets(arguments: Sequence[str]) -> tuple[ExporterTarget, ...]:
    """The exporters of ``[BROKER=]metrics+http(s)://HOST[:PORT][/PATH]`` arguments.

    Without ``BROKER=``, the number at the end of the host's name is the broker. Raises ``UsageError``.
    """
    targets = tuple(_target(argument) for argument in arguments)
    for number, target in enumerate(targets):
        for other in targets[:number]:
            if other.broker == target.broker:
                raise UsageError(f"--traffic names broker {target.broker} twice: {other.address} and {target.address}")
            if other.address == target.address:
                raise UsageError(f"--traffic names {target.address} for broker {other.broker} and for broker {target.broker}")
    return targets


def is_page(argument: str) -> bool:
    """Whether a ``--traffic`` argument names the page of an exporter, with or without a broker before it."""
    return argument.startswith(PAGE_PREFIX) or argument.partition("=")[2].startswith(PAGE_PREFIX)


def split_page(argument: str) -> tuple[int | None, str]:
    """Return broker and address of ``[BROKER=]metrics+http(s)://HOST[:PORT][/PATH]``. Raises ``UsageError``."""
    match = _ARGUMENT.fullmatch(argument)
    if match is None:
        raise UsageError(f"A metrics page is {PAGE_PREFIX}http(s)://HOST[:PORT]/metrics, not {escaped(argument)!r}")
    return int(match[1]) if match[1] else None, match[2]


def _target(argument: str) -> ExporterTarget:
    from reconciler.features.prometheus.metric_layouts import broker_of

    broker, text = split_page(argument)
    # The page refuses what is not an address.
    address = ExporterPage(text).address
    if broker is None:
        broker = broker_of({"instance": urllib.parse.urlsplit(address).netloc})
    if broker is None:
        raise UsageError(f"--traffic {escaped(argument)} does not name the broker. Write 1={escaped(argument)} for broker 1")
    return ExporterTarget(broker=broker, address=address)


_LONGEST_SERIES: Final = 200
_EXPORTER: Final = "Give the page of an exporter in the broker, such as the jmx_exporter's"
_BROKER: Final = re.compile(r"(?!confluent_)(?:[a-z]+_)*?kafka_(?:server|network|log|controller|cluster)_.+", re.IGNORECASE)
_MACHINE: Final = re.compile(r"(?:jvm|java|process|go|promhttp|jmx|python|node)_.+")
_NAMES_SHOWN: Final = 3


def foreign_page(source: str, names: Sequence[str]) -> Message | None:
    """Describe a page without quota sensors by its metric names. Returns ``None`` for a broker of Kafka, and without names."""
    if not names or any(_BROKER.fullmatch(name) for name in names):
        return None
    others = [name for name in names if not _MACHINE.fullmatch(name)] or list(names)
    return compose(
        "{source} has no metric of a Kafka broker. It has {examples}. {advice}.",
        source=name_part(source),
        examples=name_part(", ".join(escaped(name) for name in others[:_NAMES_SHOWN])),
        advice=_EXPORTER,
    )


def series_text(labels: Mapping[str, str]) -> str:
    """A series for people, as Prometheus writes it, cut when it is long."""
    pairs = ", ".join(f'{name}="{value}"' for name, value in sorted(labels.items()) if name != "__name__")
    text = escaped(f"{labels.get('__name__', '')}{{{pairs}}}")
    return text if len(text) <= _LONGEST_SERIES else f"{text[: _LONGEST_SERIES - 3]}..."
