"""Metrics over HTTP: addresses, and the login of ``--http-config``."""

from __future__ import annotations

import base64
import urllib.parse
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from reconciler.errors import FileAccessError, MissingPackageError, UsageError
from reconciler.model import escaped
from reconciler.workflows import TrustedTree
from reconciler.yaml import YamlMapping, read_yaml

if TYPE_CHECKING:
    import urllib3

_FIELDS: Final = ("authorization", "basic_auth", "http_headers", "tls_config")
_TLS_FILES: Final = ("ca_file", "cert_file", "key_file")
_BASIC: Final = ("username", "username_file", "password", "password_file")
ReadFile = Callable[[Path], bytes]


@dataclass(frozen=True, slots=True, kw_only=True)
class HttpLogin:
    """What requests carry beside the query. Values of headers are secrets: they are in no message and no log.

    ``tenant``: the parts that decide which data a server shows; a new password is not one.
    """

    headers: Mapping[str, str] = field(default_factory=dict)
    ca_file: Path | None = None
    cert_file: Path | None = None
    key_file: Path | None = None
    tenant: tuple[str, ...] = ()

    def pool(self, **options: Any) -> urllib3.PoolManager:
        """Connections with its certificates. Raises ``MissingPackageError``."""
        try:
            import urllib3
        except ImportError as error:
            raise MissingPackageError("Reading metrics needs", "urllib3") from error
        files = {"ca_certs": self.ca_file, "cert_file": self.cert_file, "key_file": self.key_file}
        options |= {name: str(file) for name, file in files.items() if file}
        return urllib3.PoolManager(**options)


def checked_address(text: str, what: str, form: str) -> urllib.parse.SplitResult:
    """An address of HTTP without a login. Raises ``UsageError``, which has ``what`` it should be of and its ``form``."""
    try:
        parts = urllib.parse.urlsplit(text)
        usable = parts.scheme in ("http", "https") and bool(parts.hostname) and (parts.port is None or parts.port > 0)
    except ValueError:
        usable = False
    if not usable or parts.fragment or not text.isascii() or not text.isprintable() or " " in text:
        raise UsageError(f"A {what} is {form}, not {escaped(text)!r}")
    if parts.username is not None or parts.password is not None:
        raise UsageError(f"The address of a {what} has no login in it. Put the login into the file of --http-config")
    return parts


def basic_auth(user: str, password: str) -> str:
    """The value of an ``Authorization`` header (RFC 7617)."""
    return "Basic " + base64.b64encode(f"{user}:{password}".encode()).decode("ascii")


def read_login(path: Path, read: ReadFile | None = None) -> HttpLogin:
    """The login of a file; files that it names are beside it. ``read``: reads them, and refuses files of a pull request.

    Raises ``FileAccessError`` and ``UsageError``.
    """
    return _LoginFile(path, read or read_login_file).login()


class _LoginFile:
    def __init__(self, path: Path, read: ReadFile) -> None:
        self._path, self._read = path, read

    def login(self) -> HttpLogin:
        stream = read_yaml(self._read(self._path))
        if stream.problems:
            problem = stream.problems[0]
            raise UsageError(f"{self._path}:{problem.line}:{problem.column}: {problem.message}")
        (document,) = stream.documents if len(stream.documents) == 1 else (None,)
        if not isinstance(document, YamlMapping):
            raise UsageError(f"{self._path} is not an http_config: its fields are {', '.join(_FIELDS)}")
        config = self._mapping({"http_config": document.data}, "http_config", *_FIELDS)
        headers, tenant = self._authorization(config)
        for name, value in self._mapping(config, "http_headers").items():
            headers[name], public = self._header(name, value)
            tenant += [f"{name.lower()}: {text}" for text in public]
        for name, text in headers.items():
            if not (text.isprintable() and text.isascii() and name.isascii()):
                raise UsageError(f"{self._path}: the header {escaped(name)} has characters that HTTP does not allow")
        files = {name: self._path.parent / str(file) for name, file in self._mapping(config, "tls_config", *_TLS_FILES).items()}
        for file in files.values():
            self._read(file)
        return HttpLogin(headers=headers, tenant=tuple(sorted(tenant)), **files)

    def _authorization(self, config: Mapping[str, object]) -> tuple[dict[str, str], list[str]]:
        """The header, and the user of basic authentication, which is not secret."""
        if fields := self._mapping(config, "basic_auth", *_BASIC):
            user = self._secret(fields, "username")
            return {"Authorization": basic_auth(user, self._secret(fields, "password"))}, [f"user {user}"]
        if fields := self._mapping(config, "authorization", "type", "credentials", "credentials_file"):
            return {"Authorization": f"{fields.get('type', 'Bearer')} {self._secret(fields, 'credentials')}"}, []
        return {}, []

    def _header(self, name: str, value: object) -> tuple[str, list[str]]:
        """The header's value, and the parts of it that are not secret."""
        fields = value if isinstance(value, dict) else {}
        lists = {kind: fields.get(kind, []) for kind in ("values", "secrets", "files")}
        if not any(lists.values()) or not all(isinstance(values, list) for values in lists.values()):
            raise UsageError(f"{self._path}: http_headers.{escaped(name)} needs a list 'values', 'secrets' or 'files'")
        files = [self._text(str(file)) for file in lists["files"]]
        public = [str(value) for value in lists["values"]]
        return ", ".join([*public, *map(str, lists["secrets"]), *files]), public

    def _mapping(self, fields: Mapping[str, object], name: str, *known: str) -> Mapping[str, object]:
        """Return the fields below ``name``, none of which may be other than ``known``."""
        value = fields.get(name) or {}
        if not isinstance(value, dict):
            raise UsageError(f"{self._path}: {name} must be a mapping")
        if known and (unknown := sorted(set(map(str, value)) - set(known))):
            raise UsageError(
                f"{self._path}: {name} has the unknown field {escaped(unknown[0])!r}. Its fields are {', '.join(known)}"
            )
        return value

    def _secret(self, fields: Mapping[str, object], name: str) -> str:
        """A value of the file, or of the file that ``NAME_file`` names."""
        file = fields.get(f"{name}_file")
        value = fields.get(name) if file is None else self._text(str(file))
        if value is None or value == "":
            raise UsageError(f"{self._path}: {name} or {name}_file is missing")
        return str(value)

    def _text(self, file: str) -> str:
        try:
            return self._read(self._path.parent / file).decode().strip()
        except UnicodeDecodeError as error:
            raise UsageError(f"{self._path.parent / file} is not UTF-8 text") from error


def read_login_file(path: Path) -> bytes:
    """The bytes of a file. Raises ``FileAccessError``."""
    try:
        return path.read_bytes()
    except OSError as error:
        raise FileAccessError(f"{path} cannot be read: {error.strerror or error}") from error


def trusted_reader(trusted: TrustedTree | None) -> ReadFile | None:
    """Reads files of a login, unless a pull request brings or changes them."""
    if trusted is None:
        return None
    files = trusted.files

    def read(path: Path) -> bytes:
        files.require_same(str(path))
        return read_login_file(path)

    return read
