"""References such as ``${env:NAME}`` in the values of a properties file, resolved as Kafka's own config providers resolve them.

The providers of environment variables, properties files and folders are built in, under the names ``env``, ``file`` and ``dir``,
and under those that ``config.providers`` gives them. A reference that Kafka would leave as it is is refused: it would be sent as
a password. No message repeats a value.
"""

from __future__ import annotations

import io
import os
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final

import javaproperties

_REFERENCE: Final = re.compile(r"\$\{([^}]*?):(?:([^}]*?):)?([^}]*?)\}")
_NAMES: Final = "config.providers"
_BUILT_IN: Final = {
    "env": "EnvVarConfigProvider",
    "file": "FileConfigProvider",
    "dir": "DirectoryConfigProvider",
    "directory": "DirectoryConfigProvider",
}
_ALLOWED_PATHS: Final = "allowed.paths"
_ALLOWED_NAMES: Final = "allowlist.pattern"


class UnresolvedReferenceError(ValueError):
    """A reference without a value; the text has the reference and the reason."""


class ConfigProviders:
    """The providers of one properties file; ``files`` are those that references have read so far."""

    def __init__(self, properties: Mapping[str, str]) -> None:
        self._properties = properties
        self._values: set[str] = set()
        self.files: list[str] = []

    def resolve(self, text: str) -> str:
        """The text with the values of its references. Raises ``UnresolvedReferenceError``."""
        return _REFERENCE.sub(self._value, text)

    def _value(self, match: re.Match[str]) -> str:
        try:
            value = self._kind(match[1])(match[1], match[2] or "", match[3])
        except ValueError as error:
            raise UnresolvedReferenceError(f"{match[0]} has no value: {error}") from None
        self._values.add(value.strip())
        return value

    def without_values(self, text: str) -> str:
        """A message without the values that references were replaced by, in whatever case."""
        for value in sorted(filter(None, self._values), key=len, reverse=True):
            text = re.sub(re.escape(value), "...", text, flags=re.IGNORECASE)
        return text

    def _kind(self, provider: str) -> Callable[[str, str, str], str]:
        """How references to a provider are read."""
        match self._class_of(provider).rpartition(".")[2]:
            case "EnvVarConfigProvider":
                return self._variable
            case "FileConfigProvider":
                return self._entry_of_file
            case "DirectoryConfigProvider":
                return self._file_of_folder
            case "":
                raise ValueError(f"no config provider is called {provider}. Built in are env, file and dir")
            case _:
                raise ValueError(
                    f"the provider {provider} is a Java class, which cannot be used here. Built in are env, file and dir"
                )

    def _class_of(self, provider: str) -> str:
        return self._properties.get(f"{_NAMES}.{provider}.class", "").strip() or _BUILT_IN.get(provider, "")

    def _parameter(self, provider: str, name: str) -> str:
        return self._properties.get(f"{_NAMES}.{provider}.param.{name}", "").strip()

    def _variable(self, provider: str, path: str, key: str) -> str:
        if path:
            raise ValueError("a variable is named ${env:NAME}, without a path")
        pattern = self._parameter(provider, _ALLOWED_NAMES)
        if pattern and not re.fullmatch(pattern, key):
            raise ValueError(f"{_NAMES}.{provider}.param.{_ALLOWED_NAMES} does not allow this variable")
        if key not in os.environ:
            raise ValueError(f"the environment has no variable {key}")
        return os.environ[key]

    def _entry_of_file(self, provider: str, path: str, key: str) -> str:
        content = self._read(provider, path)
        try:
            entries = javaproperties.load(io.BytesIO(content))
        except ValueError:
            # From None: the library's error repeats a piece of the value.
            raise ValueError(f"{path} is not a Java properties file") from None
        if key not in entries:
            raise ValueError(f"{path} has no key {key}")
        return str(entries[key])

    def _file_of_folder(self, provider: str, path: str, key: str) -> str:
        if not path or not key or "/" in key or key in (".", ".."):
            raise ValueError("write ${dir:FOLDER:FILE}, where FILE is a name in FOLDER")
        try:
            # Secrets are often written with a line break at the end, which no value in a properties file can have.
            return self._read(provider, str(Path(path) / key)).decode().removesuffix("\n")
        except UnicodeDecodeError:
            raise ValueError("the file is not UTF-8") from None

    def _read(self, provider: str, path: str) -> bytes:
        if not path:
            raise ValueError("the path is missing: write ${file:PATH:KEY}")
        allowed = [part.strip() for part in self._parameter(provider, _ALLOWED_PATHS).split(",") if part.strip()]
        if allowed and not any(Path(os.path.normpath(path)).is_relative_to(part) for part in allowed):
            raise ValueError(f"{_NAMES}.{provider}.param.{_ALLOWED_PATHS} does not allow this path")
        try:
            content = Path(path).read_bytes()
        except OSError as error:
            raise ValueError(f"{path} cannot be read: {error.strerror}") from None
        if path not in self.files:
            self.files.append(path)
        return content
