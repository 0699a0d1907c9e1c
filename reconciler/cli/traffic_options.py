"""Options of commands that read recorded traffic: how it is read, and where Spark runs."""

from __future__ import annotations

import argparse

from reconciler.cli import options


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
        "--mapping", metavar="FILE", help="read other Parquet or CSV files, with their columns as in this TrafficMapping"
    )
    group.add_argument(
        "--max-unreadable",
        type=_share,
        default=0.01,
        metavar="SHARE",
        help="stop when more than this share of the traffic cannot be read, such as 0.05 or 5%% [default: 1%%]",
    )


def add_spark_options(parser: argparse.ArgumentParser) -> None:
    """``--master``, ``--remote`` and ``--memory``."""
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


def _share(text: str) -> float:
    try:
        number = float(text.removesuffix("%")) / (100 if text.endswith("%") else 1)
    except ValueError:
        number = -1.0
    if not 0 <= number <= 1:
        raise argparse.ArgumentTypeError(f"{text!r} is not a share: write a number from 0 to 1, or a percentage such as 5%")
    return number
