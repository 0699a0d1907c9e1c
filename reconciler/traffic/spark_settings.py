"""Settings of Spark as its own programs take them: ``KEY=VALUE`` and a properties file. Values may be secrets."""

from __future__ import annotations

import io
from collections.abc import Sequence
from pathlib import Path
from typing import Final

import javaproperties

from reconciler.errors import FileAccessError, UsageError
from reconciler.model import escaped

_PREFIX: Final = "spark."


def read_spark_settings(pairs: Sequence[str], properties_file: Path | None) -> tuple[tuple[str, str], ...]:
    """The settings of ``--properties-file``, then those of ``--conf``, which win.

    Raises ``UsageError`` for a pair without a value or a key that does not begin with ``spark.``, and ``FileAccessError`` for
    a file that cannot be read.
    """
    found: dict[str, str] = {}
    if properties_file is not None:
        try:
            content = properties_file.read_bytes()
        except OSError as error:
            raise FileAccessError(f"--properties-file {properties_file} cannot be read: {error.strerror or error}") from error
        try:
            found |= javaproperties.load(io.BytesIO(content))
        except ValueError:
            # From None: the library's error repeats a piece of the value.
            raise UsageError(f"{properties_file} is not a Java properties file: it has a malformed \\u escape") from None
        if wrong := [key for key in found if not key.startswith(_PREFIX)]:
            raise UsageError(f"{properties_file}: the key {escaped(wrong[0])!r} does not begin with spark.")
    for pair in pairs:
        key, equals, value = pair.partition("=")
        if not equals or not key.startswith(_PREFIX):
            raise UsageError(f"--conf takes KEY=VALUE with a key that begins with spark., not {escaped(key)!r}")
        found[key] = value
    return tuple((key, value.strip()) for key, value in found.items())
