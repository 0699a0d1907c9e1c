"""Traffic from a Prometheus server: hour by hour into Parquet files, of which later runs read only what is new."""

from __future__ import annotations

import datetime
import hashlib
import logging
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

from reconciler.errors import FileAccessError, TrafficError, UsageError
from reconciler.integrations import SCHEME_PREFIX, HttpLogin, PrometheusApi, TooManySamplesError, basic_auth
from reconciler.logs import log_event
from reconciler.model import Message, compose, flag_part
from reconciler.ports import Progress
from reconciler.yaml import YamlMapping, read_yaml

if TYPE_CHECKING:
    from reconciler.integrations import SampledSeries

_HOUR: Final = 3600
_SHORTEST_S: Final = 60
_MOST_HOURS: Final = 366 * 24
_LOGIN_FIELDS: Final = ("authorization", "basic_auth", "http_headers", "tls_config")
_log: Final = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class PrometheusRequest:
    """Which samples to read: those after ``since`` up to ``until`` (UTC). ``address`` begins with ``http``."""

    address: str
    since: datetime.datetime
    until: datetime.datetime
    store: Path
    """The folder of all servers' pages."""
    http_config: Path | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class PrometheusTraffic:
    """The folder of pages, for ``--traffic``, and what to know about them."""

    folder: Path
    files: tuple[Path, ...]
    notes: tuple[Message, ...]


def is_prometheus(argument: str) -> bool:
    """Whether a ``--traffic`` argument names a Prometheus server."""
    return argument.startswith(SCHEME_PREFIX)


def prometheus_address(argument: str) -> str:
    """The server's own address of a ``--traffic`` argument."""
    return argument.removeprefix(SCHEME_PREFIX)


def fetch_prometheus(
    request: PrometheusRequest, *, now: datetime.datetime, progress: Progress | None = None
) -> PrometheusTraffic:
    """Read the hours that the store lacks, and name the files of the whole time.

    The hour that is not over yet is read anew in each run. Raises ``UsageError`` for a time without an hour or a login file
    that cannot be read, and ``TrafficError`` for a server that refuses, or that has no client series in this time.
    """
    from reconciler.traffic import SERIES_SELECTOR, write_page

    hours = tuple(_hours(request.since, min(request.until, now)))
    if not hours:
        raise UsageError("The time between --since and --until is empty or in the future")
    if len(hours) > _MOST_HOURS:
        raise UsageError(f"The time between --since and --until has {len(hours):,} hours, more than {_MOST_HOURS:,}")
    api = PrometheusApi(request.address, _read_login(request.http_config) if request.http_config else None)
    folder = request.store / hashlib.sha256(api.address.encode()).hexdigest()[:16]
    files: list[Path] = []
    unattributed: Counter[str] = Counter()
    try:
        for number, hour in enumerate(hours, start=1):
            end = min(hour + datetime.timedelta(hours=1), now)
            path = folder / f"{hour:%Y-%m-%dT%H}.parquet"
            files.append(path)
            if path.exists() and path.stat().st_mtime > (hour + datetime.timedelta(hours=1, minutes=5)).timestamp():
                continue
            if progress is not None:
                progress.step(f"reading {request.address}: hour {number:,} of {len(hours):,}")
            length_s = max(1, int((end - hour).total_seconds()))
            found = _samples(api, SERIES_SELECTOR, end_s=end.timestamp(), length_s=length_s)
            counts = write_page(path, ((series.labels, series.samples) for series in found))
            for reason, count in counts.unattributed.items():
                unattributed[reason.value] = max(unattributed[reason.value], count)
            log_event(_log, "wrote a page of samples", file=str(path), rows=counts.rows, series=counts.series)
    except OSError as error:
        raise FileAccessError(f"{folder} cannot be written: {error.strerror or error}") from error
    finally:
        api.close()
    return PrometheusTraffic(folder=folder, files=tuple(files), notes=tuple(_notes(unattributed)))


def _hours(since: datetime.datetime, until: datetime.datetime) -> Iterator[datetime.datetime]:
    hour = since.replace(minute=0, second=0, microsecond=0)
    while hour < until:
        yield hour
        hour += datetime.timedelta(hours=1)


def _samples(api: PrometheusApi, selector: str, *, end_s: float, length_s: int) -> Iterator[SampledSeries]:
    """The samples of a stretch of time; in halves where the server limits samples per query."""
    try:
        found = api.samples(selector, end_s=end_s, length_s=length_s)
    except TooManySamplesError as error:
        if length_s <= _SHORTEST_S:
            advice = "One minute has too many samples already. Raise --query.max-samples of the server."
            raise TrafficError(f"{error} {advice}") from error
        half = length_s // 2
        yield from _samples(api, selector, end_s=end_s - half, length_s=length_s - half)
        yield from _samples(api, selector, end_s=end_s, length_s=half)
    else:
        yield from found


def _notes(unattributed: Counter[str]) -> Iterator[Message]:
    if count := unattributed["name-only"]:
        yield compose(
            "{count} series have user and client-id in their metric name only, where they cannot be read back. Put the rule with "
            "{labels} of the jmx_exporter before the general rule.",
            count=count,
            labels=flag_part("user: and clientId: labels"),
        )
    if count := unattributed["no-broker"]:
        yield compose(
            "{count} series have no broker id. Add a label {label} in the scrape configuration.",
            count=count,
            label=flag_part("broker"),
        )


def _read_login(path: Path) -> HttpLogin:
    """The file of ``--http-config``, in the form of Prometheus's own ``http_config``."""
    try:
        stream = read_yaml(path.read_bytes())
    except OSError as error:
        raise FileAccessError(f"{path} cannot be read: {error.strerror or error}") from error
    if stream.problems:
        problem = stream.problems[0]
        raise UsageError(f"{path}:{problem.line}:{problem.column}: {problem.message}")
    (document,) = stream.documents if len(stream.documents) == 1 else (None,)
    if not isinstance(document, YamlMapping) or not set(document.data) <= set(_LOGIN_FIELDS):
        raise UsageError(f"{path} is not an http_config: its fields are {', '.join(_LOGIN_FIELDS)}")
    data = document.data
    headers: dict[str, str] = {}
    if isinstance(one := data.get("authorization"), dict):
        headers["Authorization"] = f"{one.get('type', 'Bearer')} {_secret(path, one, 'credentials')}"
    if isinstance(one := data.get("basic_auth"), dict):
        headers["Authorization"] = basic_auth(str(one.get("username", "")), _secret(path, one, "password"))
    if isinstance(one := data.get("http_headers"), dict):
        for name, value in one.items():
            values = value.get("values") if isinstance(value, dict) else None
            if not isinstance(values, list) or not values:
                raise UsageError(f"{path}: http_headers.{name} needs a list 'values'")
            headers[name] = ", ".join(map(str, values))
    tls = data.get("tls_config")
    files = tls if isinstance(tls, dict) else {}
    named = {field: path.parent / str(files[field]) for field in ("ca_file", "cert_file", "key_file") if field in files}
    return HttpLogin(headers=headers, **named)


def _secret(path: Path, fields: Mapping[str, object], name: str) -> str:
    """A secret of the file, or of the file that ``NAME_file`` names, beside it."""
    if (file := fields.get(f"{name}_file")) is not None:
        try:
            return (path.parent / str(file)).read_text(encoding="utf-8").strip()
        except OSError as error:
            raise FileAccessError(f"{path.parent / str(file)} cannot be read: {error.strerror or error}") from error
    return str(fields.get(name, ""))
