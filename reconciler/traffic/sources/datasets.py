"""Traffic that only Spark can find: addresses of its file systems (``s3a://``, ``hdfs://``), and tables of its catalogs.

Spark lists and reads them with its own configuration and credentials. No other client looks at them.
"""

from __future__ import annotations

import re
import urllib.parse
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from reconciler.errors import UsageError

_ADDRESS: Final = re.compile(r"(?:(?P<broker>\d{1,9})=)?(?P<address>[A-Za-z][A-Za-z0-9.-]*://.+)", re.DOTALL)
_TABLE: Final = "table:"


@dataclass(frozen=True, slots=True, kw_only=True)
class Dataset:
    """One argument of ``--traffic``: an address of a file system, or the name of a table."""

    name: str
    """As Spark takes it: ``s3a://bucket/path`` or ``catalog.database.table``."""
    is_table: bool = False
    broker: int | None = None
    """Of the request logs there, when the argument names it."""

    def __str__(self) -> str:
        return f"{_TABLE}{self.name}" if self.is_table else self.name


def parse_dataset(argument: str) -> Dataset | None:
    """What ``[BROKER=]SCHEME://...`` or ``table:NAME`` names; ``None`` for a path.

    Raises ``UsageError`` for a table without a name.
    """
    if argument.startswith(_TABLE):
        name = argument.removeprefix(_TABLE)
        if not name.strip():
            raise UsageError(f"--traffic {argument}: write the name of a table, such as table:catalog.database.traffic")
        return Dataset(name=name, is_table=True)
    if match := _ADDRESS.fullmatch(argument):
        broker = match["broker"]
        return Dataset(name=match["address"], broker=None if broker is None else int(broker))
    return None


def address_of(path: Path) -> str:
    """A local path as Spark takes it, which decodes nothing."""
    return f"file://{path.resolve()}"


def local_path(dataset: Dataset) -> str | None:
    """The path of a ``file:`` address; ``None`` for any other dataset."""
    return None if dataset.is_table else path_of(dataset.name)


def path_of(address: str) -> str | None:
    """The path of a ``file:`` address, of which Hadoop decodes nothing; ``None`` for any other address."""
    scheme, _, rest = address.partition(":")
    if scheme != "file":
        return None
    return f"/{rest[2:].partition('/')[2]}" if rest.startswith("//") else rest


def address_of_file(file_path: str) -> str:
    """The address of a file as its file system takes it. ``file_path``: as Spark encodes it in ``_metadata.file_path``."""
    return urllib.parse.unquote(file_path)


def require_one_kind(datasets: Sequence[Dataset], paths: Sequence[str]) -> None:
    """Raise ``UsageError`` for datasets beside paths, and for tables beside anything else."""
    if datasets and paths:
        raise UsageError(f"--traffic names {datasets[0]} and {paths[0]}: give paths of this machine or addresses, not both")
    if len(datasets) > 1 and any(dataset.is_table for dataset in datasets):
        raise UsageError("--traffic names a table and something else: give one table at a time")
