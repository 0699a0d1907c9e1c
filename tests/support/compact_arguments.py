"""The command line of ``compact``, for tests that call what is behind it."""

from __future__ import annotations

from pathlib import Path

from reconciler.cli.traffic_options import SparkOptions
from reconciler.features.compacting.command import CompactArguments


def compact_arguments(*traffic: Path, folder: Path) -> CompactArguments:
    """Compact these files into a folder, and leave everything else at its default."""
    return CompactArguments(
        traffic=tuple(map(str, traffic)), folder=str(folder), keep=None, replace=False, since=None, until=None, match=(),
        http_config=None, log_timezone="UTC", mapping=None, max_unreadable=0.01, format="text",
        spark=SparkOptions(master=None, conf=(), properties_file=None),
    )  # fmt: skip
