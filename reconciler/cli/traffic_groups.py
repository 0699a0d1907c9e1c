"""Options of commands that read recorded traffic: how it is read, and where Spark runs."""

from __future__ import annotations

import datetime
from argparse import ArgumentTypeError
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from reconciler.cli.declaration import option

_REMOTE: Final = "sc://"
"""How an address of Spark Connect begins."""


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


def traffic_option(text: str, **keywords: Any) -> Any:
    """``--traffic``: sources. ``text``: what the command reads, and what it does with it."""
    return option("--traffic", section="Traffic", metavar="SOURCE", help=text, **keywords)


def mapping_option(text: str = "read other Parquet or CSV files, or other metrics of a server, as in this TrafficMapping") -> Any:
    """``--mapping``: the names that a source has for what is needed."""
    return option("--mapping", section="Traffic", metavar="FILE", help=text)


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
KNOWN_CLIENTS: Final = option(
    "--known-clients",
    section="Traffic",
    metavar="FILE",
    help="look these clients up in metric names, too: JSON lines of user and client-id",
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


def since_option(text: str) -> Any:
    """``--since``, with this help."""
    return option("--since", section="Traffic", type=moment, metavar="TIME", help=text)


UNTIL: Final = option(
    "--until",
    section="Traffic",
    type=moment,
    metavar="TIME",
    help="read them up to this time, with its offset [default: now]",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class SparkOptions:
    """Where Spark runs, and its settings."""

    master: str | None = option(
        "--master",
        section="Spark",
        metavar="URL",
        help="run on this Spark: local[*], spark://host:7077, yarn, k8s://https://host:443, or sc://host:15002 for Spark Connect "
        "[default: local[*], or that of spark-submit]",
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

    @property
    def own_master(self) -> str | None:
        """The master, unless it is a server of Spark Connect."""
        return None if self.remote else self.master

    @property
    def remote(self) -> str | None:
        """The server of Spark Connect."""
        return self.master if self.master is not None and self.master.startswith(_REMOTE) else None
