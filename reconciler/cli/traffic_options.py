"""Options of commands that read recorded traffic: how it is read, where Spark runs, and what they ask of a server."""

from __future__ import annotations

import datetime
from argparse import ArgumentTypeError
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from reconciler.cli.declaration import option
from reconciler.errors import UsageError

if TYPE_CHECKING:
    from reconciler.model import ClusterSpec, LabelMatcher, MetricServer
    from reconciler.traffic import SessionOptions
    from reconciler.workflows import BacktestOptions, PrometheusRequest, TrustedTree


def prometheus_request(
    traffic: Sequence[str],
    *,
    since: datetime.datetime | None,
    until: datetime.datetime | None = None,
    match: Sequence[str] = (),
    http_config: str | Path | None = None,
    store: str | Path | None = None,
    server: MetricServer | None = None,
) -> PrometheusRequest | None:
    """Return the request to a server; ``None`` when ``--traffic`` names none. Raises ``UsageError``.

    ``server``: that of the Cluster manifest, which is read without any ``--traffic``. Options override its parts.
    """
    from reconciler.model import MetricServer
    from reconciler.workflows import PrometheusRequest, is_prometheus, prometheus_address

    named = [argument for argument in traffic if is_prometheus(argument)]
    if named:
        server = MetricServer(address=prometheus_address(named[0]))
    elif traffic:
        server = None
    if server is None:
        times: dict[str, object] = {}
        if since is not None or until is not None:
            times = {} if is_dataset(traffic) else {"--since": since, "--until": until}
        given = {**times, "--match": match, "--http-config": http_config, "--traffic-store": store}
        if unused := [name for name, value in given.items() if value]:
            also = ", for other addresses and for tables" if unused[0] in times else ""
            raise UsageError(f"{unused[0]} is for --traffic prometheus+http(s)://HOST{also} only")
        return None
    if len(traffic) > 1:
        raise UsageError("--traffic prometheus+... stands alone: give one source at a time")
    return PrometheusRequest.of(
        server,
        since=since,
        until=until,
        store=Path(store) if store else None,
        http_config=Path(http_config) if http_config else None,
        match=tuple(map(label_matcher, match)),
    )


def is_dataset(traffic: Sequence[str]) -> bool:
    """Whether Spark has to find what ``--traffic`` names."""
    from reconciler.traffic import parse_dataset

    return bool(traffic) and all(parse_dataset(argument) is not None for argument in traffic)


def label_matcher(text: str) -> LabelMatcher:
    """A ``--match``. Raises ``UsageError``."""
    from reconciler.model import LabelMatcher, escaped

    try:
        return LabelMatcher.parse(text)
    except ValueError as error:
        raise UsageError(f"--match {escaped(text)!r} is not a label matcher, such as cluster='prod' or job=~'kafka.*'") from error


def share(text: str) -> float:
    """A share as a number or a percentage, for ``type`` of an option."""
    try:
        number = float(text.removesuffix("%")) / (100 if text.endswith("%") else 1)
    except ValueError:
        number = -1.0
    if not 0 <= number <= 1:
        raise ArgumentTypeError(f"{text!r} is not a share: write a number from 0 to 1, or a percentage such as 5%")
    return number


def moment(text: str) -> datetime.datetime:
    """A time with its offset, for ``type`` of an option."""
    try:
        at = datetime.datetime.fromisoformat(text)
    except ValueError as error:
        raise ArgumentTypeError(f"{text!r} is not a time such as 2026-11-22T14:00:00Z") from error
    if at.tzinfo is None:
        raise ArgumentTypeError(f"{text!r} has no offset from UTC: write {text}Z if it is UTC")
    return at.astimezone(datetime.UTC)


TRAFFIC: Final[Mapping[str, Any]] = {"section": "Traffic", "metavar": "SOURCE"}
"""Of ``--traffic``: each command reads other sources."""
SINCE: Final[Mapping[str, Any]] = {"section": "Traffic", "type": moment, "metavar": "TIME"}
"""Of ``--since``."""
MAPPING: Final = option(
    "--mapping", section="Traffic", metavar="FILE", help="read other Parquet or CSV files, as in this TrafficMapping"
)
MAX_UNREADABLE: Final = option(
    "--max-unreadable",
    section="Traffic",
    type=share,
    default=0.01,
    metavar="SHARE",
    help="stop when more than this share of the traffic cannot be read, such as 0.05 or 5%% [default: 1%%]",
)
LOG_TIMEZONE: Final = option(
    "--log-timezone",
    section="Traffic",
    default="UTC",
    metavar="TZ",
    help="read times of logs without an offset in this time zone [default: UTC]",
)
HTTP_CONFIG: Final = option(
    "--http-config",
    section="Traffic",
    metavar="FILE",
    help="take the login for Prometheus from this file, which has the form of Prometheus's own http_config",
)
MATCH: Final = option(
    "--match",
    section="Traffic",
    metavar="MATCHER",
    help="read only series of Prometheus with this label, such as 'cluster=\"prod\"' (repeatable, all apply)",
)


UNTIL: Final = option(
    "--until", section="Traffic", type=moment, metavar="TIME", help="read them up to this time, with its offset [default: now]"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class SparkOptions:
    """Where Spark runs, and its settings."""

    master: str | None = option(
        "--master",
        section="Spark",
        metavar="URL",
        help="run on this Spark: local[*], spark://host:7077, yarn, or k8s://https://host:443 [default: local[*], or that of "
        "spark-submit]",
    )
    conf: tuple[str, ...] = option(
        "--conf",
        section="Spark",
        metavar="KEY=VALUE",
        help="set this setting of Spark, such as spark.driver.memory=8g (repeatable, secrets belong into --properties-file)",
    )
    properties_file: Path | None = option(
        "--properties-file", section="Spark", metavar="FILE", help="read settings of Spark from this file, as spark-submit does"
    )

    def session(self) -> SessionOptions | None:
        """Return the master with the settings, ``None`` without both. Raises ``UsageError`` and ``FileAccessError``."""
        if self.master is None and not self.conf and self.properties_file is None:
            return None
        from reconciler.traffic import SessionOptions, read_spark_settings

        return SessionOptions(master=self.master, settings=read_spark_settings(self.conf, self.properties_file))


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadingOptions:
    """How traffic is read: the login and the series of a server, other names of columns, and what may be unreadable."""

    match: tuple[str, ...] = MATCH
    http_config: Path | None = HTTP_CONFIG
    traffic_store: Path | None = option(
        "--traffic-store",
        section="Traffic",
        metavar="DIR",
        help="keep the samples of Prometheus here, so that the next run reads only new ones [default: the user's cache folder]",
    )
    log_timezone: str = LOG_TIMEZONE
    mapping: Path | None = MAPPING
    max_unreadable: float = MAX_UNREADABLE


@dataclass(frozen=True, slots=True, kw_only=True)
class BrokerModelOptions:
    """The release and the class of the brokers; both override those of the Cluster manifest."""

    kafka_version: str | None = option(
        "--kafka-version",
        section="Broker model",
        metavar="V",
        help="model this broker release [default: the snapshot's, else 3.8 and newer]",
    )
    quota_callback: str | None = option(
        "--quota-callback",
        section="Broker model",
        metavar="MODULE:CLASS",
        help="import and run this Python class as the brokers' client.quota.callback.class. The class that the Cluster manifest "
        "names is loaded only with --trusted-ref",
    )


def configured_backtest(
    spec: ClusterSpec,
    trusted: TrustedTree | None,
    *,
    traffic: tuple[str, ...] = (),
    since: datetime.datetime | None = None,
    until: datetime.datetime | None = None,
    reading: ReadingOptions | None = None,
) -> BacktestOptions:
    """Return a backtest by ``traffic``, or else by that of the Cluster manifest, in a stretch of time.

    Raises ``GitError``, ``FileAccessError``, and ``UsageError`` without any traffic and for options of another kind of traffic.
    """
    from reconciler.workflows import BacktestOptions, configured_server, configured_since, configured_traffic, is_prometheus

    server = request = between = None
    match, login, store = ((), None, None) if reading is None else (reading.match, reading.http_config, reading.traffic_store)
    if not traffic:
        if spec.traffic is None:
            raise UsageError("No traffic is given. Pass --traffic, or set spec.traffic of the Cluster manifest")
        traffic, server = configured_traffic(spec, trusted), configured_server(spec, trusted)
        since = since or configured_since(spec, until)
    of_server = not traffic or any(map(is_prometheus, traffic))
    if of_server or match or login or store:
        request = prometheus_request(
            traffic,
            # Of files, the rows between these times are judged.
            since=since if of_server else None,
            until=until if of_server else None,
            match=match,
            http_config=login,
            store=store,
            server=server,
        )
    if not of_server and (since is not None or until is not None):
        from reconciler.traffic import Between

        between = Between.of(since, until)
    chosen = BacktestOptions(traffic=traffic, prometheus=request, between=between)
    if reading is None:
        return chosen
    return replace(chosen, log_timezone=reading.log_timezone, mapping=reading.mapping, max_unreadable=reading.max_unreadable)
