"""What a Spark session needs before it starts: packages and settings.

Settings are taken as Spark's own programs take them: ``KEY=VALUE`` and a properties file. Values may be secrets.
"""

from __future__ import annotations

import importlib.util
import io
import logging
import os
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import javaproperties

from reconciler.errors import FileAccessError, MissingDependencyError, MissingPackageError, UsageError
from reconciler.model import escaped

_log: Final = logging.getLogger(__name__)


_NEEDS: Final = "recorded traffic needs"


def _missing(error: ImportError) -> MissingDependencyError:
    return MissingPackageError.of(_NEEDS, error) or MissingDependencyError(f"{_NEEDS} {error.name}, which cannot be imported")


def require_arrow() -> None:
    """Raise ``MissingDependencyError`` unless the packages that read and judge traffic can be imported; they need no Java."""
    try:
        import msgspec
        import numpy
        import pyarrow
    except ImportError as error:
        raise _missing(error) from error
    del msgspec, numpy, pyarrow


def has_spark() -> bool:
    """Whether PySpark is installed. It is not imported, which takes a second."""
    try:
        return importlib.util.find_spec("pyspark") is not None
    except ValueError:  # an import of it has failed
        return False


def require_spark_above(size: int, most: int, *, unit: str) -> None:
    """Raise ``MissingPackageError`` for traffic larger than this process judges without PySpark. ``unit``: of both sizes."""
    if size > most:
        amount, limit = (f"{number / 1e9:.1f} GB" if unit == "bytes" else f"{number:,} {unit}" for number in (size, most))
        remark = f". Without it, up to {limit} are judged: give less of the traffic, such as fewer days"
        raise MissingPackageError(f"recorded traffic of {amount} needs", "pyspark", remark=remark)


def require_packages() -> None:
    """Raise ``MissingDependencyError`` unless the packages of the extras ``traffic`` and ``spark`` are there, pandas below 3."""
    require_arrow()
    try:
        import pandas
        import pyspark
    except ImportError as error:
        raise _missing(error) from error
    del pyspark
    if int(pandas.__version__.split(".")[0]) >= 3:
        raise MissingDependencyError(
            f"{_NEEDS} pandas below 3, found {pandas.__version__}. Install the extra spark (kafka-quotas explain install)"
        )


_MASTER: Final = re.compile(r"local(\[[^\]]+\])?|local-cluster\[.+\]|(spark|k8s)://.+|yarn")
_SUBMITTED: Final = "PYSPARK_GATEWAY_PORT"
"""In the environment of what ``spark-submit`` started: its JVM runs, and knows its master."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionOptions:
    """Where Spark runs, and with which settings.

    ``master``: ``None`` is that of ``spark-submit``, else ``local[*]``. Raises ``UsageError`` for what Spark would not know.
    """

    master: str | None = None
    small: bool = False
    """For little input on a local master: less compiling, which is most of what such a run takes."""
    light: bool = False
    """On a local master, where workers do the work and Java only carries it: Java does not compile twice."""
    settings: tuple[tuple[str, str], ...] = ()
    """Spark's own settings, such as the credentials of a file system; they override those of this module."""

    def __post_init__(self) -> None:
        """Refuse early what would fail late, in Java's words."""
        if self.master is not None and not _MASTER.fullmatch(self.master):
            raise UsageError(
                f"--master {self.master}: write local[*], local[4], spark://host:7077, yarn, or k8s://https://host:443"
            )

    @property
    def submitted(self) -> bool:
        """Whether ``spark-submit`` decides."""
        return self.master is None and _SUBMITTED in os.environ

    @property
    def local(self) -> bool:
        """Whether everything runs in a JVM of our own."""
        return self.where == "local" or self.where.startswith("local[")

    @property
    def where(self) -> str:
        """The place where Spark runs, for people."""
        return self.master or ("the master of spark-submit" if self.submitted else "local[*]")


def is_spark_asked_for(options: SessionOptions | None) -> bool:
    """Whether an option or ``spark-submit`` asks for Spark. ``None``: no option of Spark was given."""
    return _SUBMITTED in os.environ or (options is not None and options.master is not None)


_PREFIX: Final = "spark."


def read_spark_settings(pairs: Sequence[str], properties_file: Path | None) -> tuple[tuple[str, str], ...]:
    """The settings of ``--properties-file``, then those of ``--conf``, which win.

    Raises ``UsageError`` for a pair without a value or a key that does not begin with ``spark.``, and ``FileAccessError`` for
    a file that cannot be read.
    """
    settings: dict[str, str] = {}
    if properties_file is not None:
        settings |= _properties(properties_file, "--properties-file")
        if wrong := [key for key in settings if not key.startswith(_PREFIX)]:
            raise UsageError(f"{properties_file}: the key {escaped(wrong[0])!r} does not begin with spark.")
    for pair in pairs:
        key, equals, value = pair.partition("=")
        if not equals or not key.startswith(_PREFIX):
            raise UsageError(f"--conf takes KEY=VALUE with a key that begins with spark., not {escaped(key)!r}")
        settings[key] = value
    return tuple((key, value.strip()) for key, value in settings.items())


def _properties(path: Path, option: str) -> dict[str, str]:
    try:
        content = path.read_bytes()
    except OSError as error:
        raise FileAccessError(f"{option} {path} cannot be read: {error.strerror or error}") from error
    try:
        return dict(javaproperties.load(io.BytesIO(content)))
    except ValueError:
        # From None: the library's error repeats a piece of the value.
        raise UsageError(f"{path} is not a Java properties file: it has a malformed \\u escape") from None
