"""Options of commands that read recorded traffic: how it is read, and where Spark runs."""

from __future__ import annotations

import argparse


def add_reading_options(parser: argparse.ArgumentParser) -> None:
    """``--mapping`` and ``--max-unreadable``."""
    parser.add_argument(
        "--mapping",
        metavar="FILE",
        help="the files of --traffic are Parquet or CSV with columns of their own, and this says what they hold",
    )
    parser.add_argument(
        "--max-unreadable",
        type=_share,
        default=0.01,
        metavar="SHARE",
        help="stop when more than this share of the traffic cannot be read, as 0.05 or 5%% (default: 1%%)",
    )


def add_spark_options(parser: argparse.ArgumentParser) -> None:
    """``--master``, ``--remote`` and ``--memory``."""
    where = parser.add_mutually_exclusive_group()
    where.add_argument(
        "--master",
        metavar="URL",
        help="where Spark runs: local[*], spark://host:7077, yarn, k8s://https://host:443 (default: local[*], or what "
        "spark-submit was told)",
    )
    where.add_argument("--remote", metavar="URL", help="a Spark Connect server, as sc://host:15002, in place of a master")
    parser.add_argument("--memory", default="2g", metavar="SIZE", help="memory of Spark's driver (default: %(default)s)")


def _share(text: str) -> float:
    try:
        number = float(text.removesuffix("%")) / (100 if text.endswith("%") else 1)
    except ValueError:
        number = -1.0
    if not 0 <= number <= 1:
        raise argparse.ArgumentTypeError(f"{text!r} is no share: write a number from 0 to 1, or a percentage such as 5%")
    return number
