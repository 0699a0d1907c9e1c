"""Java properties files with settings about connections.

Values are secrets until proven otherwise: no message repeats one that may be.
"""

from __future__ import annotations

import io
from collections.abc import Mapping
from pathlib import Path

import javaproperties

from reconciler.errors import FileAccessError, UsageError
from reconciler.model import escaped


class JavaProperties:
    """Key and value pairs; ``source`` names the file in messages."""

    def __init__(self, properties: Mapping[str, str], source: str) -> None:
        self._properties = properties
        self._source = source

    def get(self, key: str, default: str = "") -> str:
        """A value without the space around it."""
        return self._properties.get(key, default).strip()

    def name(self, key: str) -> str:
        """What the setting is called in the file."""
        return key

    def refused(self, key: str, why: str) -> UsageError:
        """The error that names a setting."""
        return UsageError(f"{self._source}: {self.name(key)}: {escaped(why)}")


def file_content(path: Path) -> bytes:
    """The file's bytes. Raises ``FileAccessError``."""
    try:
        return path.read_bytes()
    except OSError as error:
        raise FileAccessError(f"the properties file {path} cannot be read: {error.strerror}") from error


def load_properties(content: bytes, *, source: str) -> Mapping[str, str]:
    """Keys and values of a file. Raises ``UsageError``."""
    try:
        return javaproperties.load(io.BytesIO(content))
    except ValueError:
        # From None: the library's error repeats a piece of the value.
        raise UsageError(f"{source} is not a Java properties file: it has a malformed \\u escape") from None
