"""Options of commands that read recorded traffic: how it is read, and where Spark runs."""

from __future__ import annotations

import argparse
import datetime
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from reconciler.cli import options
from reconciler.errors import UsageError

if TYPE_CHECKING:
    from reconciler.model import LabelMatcher, MetricServer
    from reconciler.traffic import Between
    from reconciler.workflows import PrometheusRequest


def add_reading_options(parser: argparse.ArgumentParser) -> None:
    """``--log-timezone``, ``--mapping`` and ``--max-unreadable``."""
    group = options.section(parser, "Traffic")
    group.add_argument(
        "--log-timezone",
        default="UTC",
        metavar="TZ",
        help="read times of logs without an offset in this time zone [default: %(default)s]",
    )
    group.add_argument(
        "--mapping",
        metavar="FILE",
        help="read other Parquet or CSV files, or other metrics of a server, as in this TrafficMapping",
    )
    group.add_argument(
        "--max-unreadable",
        type=share,
        default=0.01,
        metavar="SHARE",
        help="stop when more than this share of the traffic cannot be read, such as 0.05 or 5%% [default: 1%%]",
    )


def add_spark_options(parser: argparse.ArgumentParser) -> None:
    """``--master``, ``--remote``, ``--memory``, ``--conf`` and ``--properties-file``."""
    group = options.section(parser, "Spark")
    where = group.add_mutually_exclusive_group()
    where.add_argument(
        "--master",
        metavar="URL",
        help="run on this Spark: local[*], spark://host:7077, yarn or k8s://https://host:443 [default: local[*], or that of "
        "spark-submit]",
    )
    where.add_argument("--remote", metavar="URL", help="use a Spark Connect server, such as sc://host:15002, instead of a master")
    group.add_argument("--memory", default="2g", metavar="SIZE", help="give Spark's driver this memory [default: %(default)s]")
    group.add_argument(
        "--conf",
        action="append",
        default=[],
        metavar="KEY=VALUE",
        help="set this setting of Spark, such as spark.jars.packages (repeatable, secrets belong into --properties-file)",
    )
    group.add_argument("--properties-file", metavar="FILE", help="read settings of Spark from this file, as spark-submit does")


def share(text: str) -> float:
    """A share as a number or a percentage, for ``type`` of an option."""
    try:
        number = float(text.removesuffix("%")) / (100 if text.endswith("%") else 1)
    except ValueError:
        number = -1.0
    if not 0 <= number <= 1:
        raise argparse.ArgumentTypeError(f"{text!r} is not a share: write a number from 0 to 1, or a percentage such as 5%")
    return number


def add_prometheus_options(parser: argparse.ArgumentParser, *, hours: int = 24, store: bool = True) -> None:
    """``--since``, ``--until`` and those of ``add_prometheus_login_options``, in the section of the traffic.

    ``hours``: the default time. ``store``: whether the command keeps samples in a store.
    """
    group = options.section(parser, "Traffic")
    add_time_options(
        group,
        "read samples of Prometheus, or rows of Parquet, an address or a table, after this time "
        f"[default: {hours} h before --until for Prometheus, else all]",
    )
    add_prometheus_login_options(parser, store=store)


def add_time_options(group: argparse._ArgumentGroup, since: str) -> None:
    """``--since``, with this help, and ``--until``."""
    group.add_argument("--since", type=_moment, metavar="TIME", help=since)
    group.add_argument("--until", type=_moment, metavar="TIME", help="read them up to this time, with its offset [default: now]")


def add_prometheus_login_options(parser: argparse.ArgumentParser, *, store: bool = True) -> None:
    """``--match``, ``--http-config`` and, unless the command has a folder of its own, ``--traffic-store``."""
    group = options.section(parser, "Traffic")
    group.add_argument(
        "--match",
        action="append",
        default=[],
        metavar="MATCHER",
        help="read only series of Prometheus with this label, such as 'cluster=\"prod\"' (repeatable, all apply)",
    )
    group.add_argument(
        "--http-config",
        metavar="FILE",
        help="take the login for Prometheus from this file, which has the form of Prometheus's own http_config",
    )
    if not store:
        return
    group.add_argument(
        "--traffic-store",
        metavar="DIR",
        help="keep the samples of Prometheus here, so that the next run reads only new ones [default: the user's cache folder]",
    )


def add_known_clients_option(parser: argparse.ArgumentParser) -> None:
    """``--known-clients``."""
    options.section(parser, "Traffic").add_argument(
        "--known-clients",
        metavar="FILE",
        help="look these clients up in metric names, too: JSON lines of user and client-id",
    )


def prometheus_request(
    traffic: Sequence[str],
    *,
    since: datetime.datetime | None,
    until: datetime.datetime | None,
    match: Sequence[str],
    http_config: str | Path | None,
    store: str | Path | None,
    server: MetricServer | None = None,
    store_option: str | None = "--traffic-store",
) -> PrometheusRequest | None:
    """What the options ask of a server; ``None`` when ``--traffic`` names none. Raises ``UsageError``.

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
        times: dict[str | None, object] = {} if is_dataset(traffic) else {"--since": since, "--until": until}
        given: dict[str | None, object] = {**times, "--match": match, "--http-config": http_config, store_option: store}
        if unused := [name for name, value in given.items() if name and value]:
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


def dataset_time(traffic: Sequence[str], *, since: datetime.datetime | None, until: datetime.datetime | None) -> Between | None:
    """Which rows of files and datasets to read; ``None``: all."""
    if (since is None and until is None) or not traffic:
        return None
    from reconciler.traffic import Between

    return Between.of(since, until)


def label_matcher(text: str) -> LabelMatcher:
    """A ``--match``. Raises ``UsageError``."""
    from reconciler.model import LabelMatcher, escaped

    try:
        return LabelMatcher.parse(text)
    except ValueError as error:
        raise UsageError(f"--match {escaped(text)!r} is not a label matcher, such as cluster='prod' or job=~'kafka.*'") from error


def _moment(text: str) -> datetime.datetime:
    try:
        at = datetime.datetime.fromisoformat(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(f"{text!r} is not a time such as 2026-11-22T14:00:00Z") from error
    if at.tzinfo is None:
        raise argparse.ArgumentTypeError(f"{text!r} has no offset from UTC: write {text}Z if it is UTC")
    return at.astimezone(datetime.UTC)
