"""A Java properties file with settings about connections, its references to values, and the line of JAAS that may stand in it.

Values are secrets until proven otherwise: no message repeats one that may be. JAAS is read as Kafka's ``JaasConfig`` reads it.

References such as ``${env:NAME}`` are resolved as Kafka's own config providers resolve them. The providers of environment
variables, properties files and folders are built in, under the names ``env``, ``file`` and ``dir``, and under those that
``config.providers`` gives them. A reference that Kafka would leave as it is is refused: it would be sent as a password.
"""

from __future__ import annotations

import io
import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from reconciler.errors import FileAccessError, UsageError
from reconciler.model import escaped

_TOKEN: Final = re.compile(
    r"""(?P<blank>\s+|//[^\n]*|/\*.*?\*/)
      | (?P<quoted>"(?:[^"\\\n]|\\.)*"|'(?:[^'\\\n]|\\.)*')
      | (?P<sign>[=;])
      | (?P<word>[^\s"'=;]+)""",
    re.VERBOSE | re.DOTALL,
)
_LINE_END: Final = re.compile(r"\r\n|\r|\n")
_ESCAPE: Final = re.compile(r"\\([0-3]?[0-7]{1,2}|.)", re.DOTALL)
_NAMED_ESCAPES: Final = {"a": "\a", "b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v"}
_FLAGS: Final = {"required", "requisite", "sufficient", "optional"}
_END: Final = "\0;"
_EQUALS: Final = "\0="


_REFERENCE: Final = re.compile(r"\$\{([^}]*?):(?:([^}]*?):)?([^}]*?)\}")
_NAMES: Final = "config.providers"
_BUILT_IN: Final = {
    "env": "EnvVarConfigProvider",
    "file": "FileConfigProvider",
    "dir": "DirectoryConfigProvider",
    "directory": "DirectoryConfigProvider",
}


class NumberedProperties(dict[str, str]):
    """Keys and values of a file; ``lines`` has the line where each key begins."""

    def __init__(self, entries: Iterable[tuple[str, str, int]]) -> None:
        super().__init__()
        self.lines: dict[str, int] = {}
        for key, value, line in entries:
            self[key] = value
            self.lines[key] = line


class JavaProperties:
    """Key and value pairs; ``source`` names the file in messages."""

    def __init__(self, properties: Mapping[str, str], source: str) -> None:
        self._properties = properties
        self._source = source
        self._providers = ConfigProviders(properties)

    @property
    def provider_files(self) -> tuple[str, ...]:
        """The files that values of the settings asked for so far came from."""
        return tuple(self._providers.files)

    def get(self, key: str, default: str = "") -> str:
        """A value without the space around it. Raises ``UsageError`` for a reference that has no value."""
        text = self._properties.get(key, default)
        try:
            return self._providers.resolve(text).strip() if "${" in text else text.strip()
        except UnresolvedReferenceError as error:
            lines = self._properties.lines if isinstance(self._properties, NumberedProperties) else {}
            place = f"{self._source}:{lines[key]}" if key in lines else self._source
            raise UsageError(f"{place}: {key}: {escaped(str(error))}") from None

    def jaas(self, key: str) -> JaasLine:
        """The line of JAAS in a setting. Raises ``UsageError``."""
        try:
            return parse_jaas(self.get(key), setting=key)
        except ValueError as error:
            raise self.refused(key, f"the value cannot be read: {error}") from None

    def name(self, key: str) -> str:
        """Return the setting's name in the file."""
        return key

    def refused(self, key: str, why: str) -> UsageError:
        """The error that names a setting."""
        return UsageError(f"{self._source}: {self.name(key)}: {escaped(self._providers.without_values(why))}")


def file_content(path: Path) -> bytes:
    """The file's bytes. Raises ``FileAccessError``."""
    try:
        return path.read_bytes()
    except OSError as error:
        raise FileAccessError(f"the properties file {path} cannot be read: {error.strerror}") from error


def load_properties(content: bytes, *, source: str) -> Mapping[str, str]:
    """Keys and values of a file. Raises ``UsageError``."""
    try:
        return NumberedProperties(_numbered(content))
    except ValueError:
        # From None: the library's error repeats a piece of the value.
        raise UsageError(f"{source} is not a Java properties file: it has a malformed \\u escape") from None


def _numbered(content: bytes) -> Iterator[tuple[str, str, int]]:
    # Most connections have no properties file.
    import javaproperties

    line = 1
    for part in javaproperties.parse(io.BytesIO(content)):
        if isinstance(part, javaproperties.KeyValue):
            yield part.key, part.value, line
        line += len(_LINE_END.findall(part.source))


@dataclass(frozen=True, slots=True, kw_only=True)
class JaasLine:
    """A login module's class name and its options; options are in no ``repr``, for passwords are among them."""

    module: str
    options: dict[str, str] = field(repr=False)
    setting: str
    """The setting that it stands in."""


def parse_jaas(text: str, *, setting: str) -> JaasLine:
    """``Module required key="value" ...;``. Raises ``ValueError`` that states what is missing, never what was written."""
    tokens = list(_tokens(text))
    if len(tokens) < 2 or tokens[1].lower() not in _FLAGS:
        raise ValueError("the value must begin with a login module's class and the word required")
    if tokens[-1] != _END:
        raise ValueError("the value must end with a semicolon")
    rest = tokens[2:-1]
    if _END in rest:
        raise ValueError("the value has more than one login module")
    if len(rest) % 3 or any(sign != _EQUALS for sign in rest[1::3]):
        raise ValueError(
            "the options after the class are key=value pairs, with quotes around a value that has special characters"
        )
    return JaasLine(module=tokens[0], options=dict(zip(rest[0::3], rest[2::3], strict=True)), setting=setting)


def _tokens(text: str) -> Iterator[str]:
    at = 0
    while at < len(text):
        match = _TOKEN.match(text, at)
        if match is None:
            raise ValueError("a quote is not closed")
        at = match.end()
        if match["quoted"] is not None:
            yield _ESCAPE.sub(_unescaped, match["quoted"][1:-1])
        elif match["sign"] is not None:
            yield "\0" + match["sign"]
        elif match["word"] is not None:
            yield match["word"]


def _unescaped(match: re.Match[str]) -> str:
    escape = match[1]
    return chr(int(escape, 8)) if escape[0] in "01234567" else _NAMED_ESCAPES.get(escape, escape)


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
            value = self._kind(match[1])(match[2] or "", match[3])
        except ValueError as error:
            raise UnresolvedReferenceError(f"{match[0]} has no value: {error}") from None
        self._values.add(value.strip())
        return value

    def without_values(self, text: str) -> str:
        """A message without the values that references were replaced by, in whatever case."""
        for value in sorted(filter(None, self._values), key=len, reverse=True):
            text = re.sub(re.escape(value), "...", text, flags=re.IGNORECASE)
        return text

    def _kind(self, provider: str) -> Callable[[str, str], str]:
        """Return the reader of references to a provider. Raises ``ValueError`` for an unknown provider."""
        java_class = self._properties.get(f"{_NAMES}.{provider}.class", "").strip() or _BUILT_IN.get(provider, "")
        match java_class.rpartition(".")[2]:
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

    def _variable(self, path: str, key: str) -> str:
        if path:
            raise ValueError("a variable is named ${env:NAME}, without a path")
        if key not in os.environ:
            raise ValueError(f"the environment has no variable {key}")
        return os.environ[key]

    def _entry_of_file(self, path: str, key: str) -> str:
        import javaproperties

        content = self._read(path)
        try:
            entries = javaproperties.load(io.BytesIO(content))
        except ValueError:
            # From None: the library's error repeats a piece of the value.
            raise ValueError(f"{path} is not a Java properties file") from None
        if key not in entries:
            raise ValueError(f"{path} has no key {key}")
        return str(entries[key])

    def _file_of_folder(self, path: str, key: str) -> str:
        if not path or not key or "/" in key or key in (".", ".."):
            raise ValueError("write ${dir:FOLDER:FILE}, where FILE is a name in FOLDER")
        try:
            # Secrets are often written with a line break at the end, which no value in a properties file can have.
            return self._read(str(Path(path) / key)).decode().removesuffix("\n")
        except UnicodeDecodeError:
            raise ValueError("the file is not UTF-8") from None

    def _read(self, path: str) -> bytes:
        if not path:
            raise ValueError("the path is missing: write ${file:PATH:KEY}")
        try:
            content = Path(path).read_bytes()
        except OSError as error:
            raise ValueError(f"{path} cannot be read: {error.strerror}") from None
        if path not in self.files:
            self.files.append(path)
        return content
