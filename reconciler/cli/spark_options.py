"""Where Spark runs: the options that every command with Spark has."""

from __future__ import annotations

import argparse


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
