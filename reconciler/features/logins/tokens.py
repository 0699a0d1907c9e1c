"""Settings of OAUTHBEARER: a token in a file, or an endpoint that issues tokens, as Kafka's clients name them since 4.1.

Names of older clients (``clientId``, ``clientSecret``, ``scope`` in ``sasl.jaas.config``) count where the newer ones are absent.
TLS to the endpoint follows ``ssl.*`` options in ``sasl.jaas.config``, as in Kafka; those of the file are for the brokers.
"""

from __future__ import annotations

import base64
import contextlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, TypeAlias
from urllib.parse import urlsplit
from urllib.request import url2pathname

from reconciler.backends import BearerTokens, BrokerLogin, JaasLine, JavaProperties, Tls, load_private_key, read_tls
from reconciler.errors import UsageError

_MECHANISM: Final = "OAUTHBEARER"
_JAAS: Final = "sasl.jaas.config"
_URL: Final = "sasl.oauthbearer.token.endpoint.url"
_RETRIEVER: Final = "sasl.oauthbearer.jwt.retriever.class"
_ID: Final = "sasl.oauthbearer.client.credentials.client.id"
_PROOF: Final = "sasl.oauthbearer.client.credentials.client.secret"
_SCOPE: Final = "sasl.oauthbearer.scope"
_ASSERTION: Final = "sasl.oauthbearer.assertion"
_ALGORITHMS: Final = ("RS256", "ES256")
_EXTENSION: Final = "extension_"
_RETRIEVERS: Final = ("DefaultJwtRetriever", "FileJwtRetriever", "ClientCredentialsJwtRetriever", "JwtBearerJwtRetriever")


@dataclass(frozen=True, slots=True, kw_only=True)
class TokenFile(BrokerLogin):
    """A token (JWT) in a file, read at every login, so that another program may renew it."""

    path: str
    extensions: Mapping[str, str] = field(default_factory=dict)

    @property
    def mechanism(self) -> str:
        """Kafka's word for it."""
        return _MECHANISM

    @property
    def files(self) -> tuple[str, ...]:
        """The files that decide who one is."""
        return (self.path,)

    def known_name(self) -> str | None:
        """The subject of the token."""
        try:
            subject = unverified_claims(self.token()).get("sub")
        except (OSError, ValueError):
            return None
        return subject if isinstance(subject, str) else None

    def opened(self, _host: str, /) -> BearerTokens:
        """The token in the file, and the last one while the file is being replaced."""
        last = ""

        def token() -> str:
            nonlocal last
            with contextlib.suppress(OSError, ValueError):
                last = self.token() or last
            return last

        return BearerTokens(token=token, extensions=self.extensions)

    def token(self) -> str:
        """The token in the file now. Raises ``OSError`` or ``ValueError``."""
        return Path(self.path).read_text("ascii").strip()


@dataclass(frozen=True, slots=True, kw_only=True)
class ClientSecret:
    """A client id and its secret, in the header ``Authorization``."""

    client_id: str
    secret: str = field(repr=False)
    url_encoded: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class AssertionFile:
    """A signed assertion that another program keeps in a file; read for every token."""

    path: str


@dataclass(frozen=True, slots=True, kw_only=True)
class SignedAssertion:
    """An assertion that is signed here for every token. ``header`` and ``claims`` come first, times and ``jti`` are added."""

    algorithm: str
    key_file: str
    passphrase: str | None = field(default=None, repr=False)
    header: Mapping[str, Any] = field(default_factory=dict)
    claims: Mapping[str, Any] = field(default_factory=dict)
    valid_seconds: int = 300
    valid_before_seconds: int = 60
    with_id: bool = False

    def key(self) -> Any:
        """The private key in the file now. Raises ``OSError`` or ``ValueError``; neither repeats a secret."""
        return load_private_key(Path(self.key_file).read_bytes(), self.passphrase, setting=f"{_ASSERTION}.private.key.passphrase")


Assertion: TypeAlias = AssertionFile | SignedAssertion


@dataclass(frozen=True, slots=True, kw_only=True)
class TokenEndpoint(BrokerLogin):
    """An endpoint that issues tokens for a proof of identity: a secret or an assertion.

    ``is_jwt_bearer``: the assertion is the grant itself (RFC 7523, section 2.1) instead of the client's proof (section 2.2).
    """

    url: str
    proof: ClientSecret | Assertion
    is_jwt_bearer: bool = False
    client_id: str | None = None
    scope: str | None = None
    tls: Tls = field(default_factory=Tls)
    connect_seconds: float = 10.0
    read_seconds: float = 10.0
    extensions: Mapping[str, str] = field(default_factory=dict)

    @property
    def mechanism(self) -> str:
        """Kafka's word for it."""
        return _MECHANISM

    @property
    def files(self) -> tuple[str, ...]:
        """The files that decide who is trusted and who one is."""
        if isinstance(self.proof, AssertionFile):
            return (self.proof.path, *self.tls.files)
        return (*((self.proof.key_file,) if isinstance(self.proof, SignedAssertion) else ()), *self.tls.files)

    def opened(self, _host: str, /) -> BearerTokens:
        """Tokens of the endpoint, fetched when they are needed."""
        from reconciler.features.logins.token_endpoint import EndpointTokens

        return BearerTokens(token=EndpointTokens(self).token, extensions=self.extensions)


def unverified_claims(token: str) -> Mapping[str, Any]:
    """What a JWT states, its signature unchecked; empty for anything else."""
    try:
        payload = token.split(".")[1]
        claims = json.loads(base64.urlsafe_b64decode(payload + "=" * (-len(payload) % 4)))
    except (ValueError, LookupError, RecursionError):
        return {}
    return claims if isinstance(claims, dict) else {}


def read_tokens(settings: JavaProperties, line: JaasLine) -> TokenFile | TokenEndpoint:
    """Where tokens come from. Raises ``UsageError`` naming the setting that cannot be used."""
    retriever = settings.get(_RETRIEVER, _RETRIEVERS[0]).rpartition(".")[2]
    if retriever not in _RETRIEVERS:
        raise settings.refused(_RETRIEVER, f"Java classes cannot be used here. Supported are {', '.join(_RETRIEVERS)}")
    extensions = {key.removeprefix(_EXTENSION): value for key, value in line.options.items() if key.startswith(_EXTENSION)}
    url = urlsplit(settings.get(_URL))
    if url.scheme == "file" and retriever in ("DefaultJwtRetriever", "FileJwtRetriever"):
        return _token_file(settings, url2pathname(url.path) if url.netloc in ("", "localhost") else "", extensions)
    if url.scheme not in ("https", "http") or not url.hostname or retriever == "FileJwtRetriever":
        raise settings.refused(
            _URL, "write the address of a token endpoint (https://...), or of a file with a token (file:///...)"
        )
    if url.scheme == "http" and url.hostname not in ("127.0.0.1", "::1", "localhost"):
        raise settings.refused(_URL, "write https: over http the client's secret and the token can be read on their way")
    is_jwt_bearer = retriever == "JwtBearerJwtRetriever"
    client_id = settings.get(_ID) or line.options.get("clientId") or None
    return TokenEndpoint(
        url=settings.get(_URL),
        proof=_proof(settings, line, client_id, is_jwt_bearer=is_jwt_bearer),
        is_jwt_bearer=is_jwt_bearer,
        client_id=client_id,
        scope=settings.get(_SCOPE) or line.options.get("scope") or None,
        tls=read_tls(_JaasSettings(line.options, settings)),
        connect_seconds=_milliseconds(settings, "sasl.login.connect.timeout.ms", 10_000),
        read_seconds=_milliseconds(settings, "sasl.login.read.timeout.ms", 10_000),
        extensions=extensions,
    )


def _token_file(settings: JavaProperties, path: str, extensions: Mapping[str, str]) -> TokenFile:
    file = TokenFile(path=path, extensions=extensions)
    try:
        token = file.token()
    except (OSError, ValueError) as error:
        why = error.strerror if isinstance(error, OSError) else "the text is not a token"
        raise settings.refused(_URL, f"{file.path} cannot be read: {why}") from None
    if not token or any(char <= " " for char in token):
        raise settings.refused(_URL, f"{file.path} must contain one token and nothing else")
    return file


def _proof(settings: JavaProperties, line: JaasLine, client_id: str | None, *, is_jwt_bearer: bool) -> ClientSecret | Assertion:
    """In Kafka's order: an assertion in a file, one to sign, a secret."""
    if path := settings.get(f"{_ASSERTION}.file"):
        _require_readable(settings, f"{_ASSERTION}.file", path)
        return AssertionFile(path=path)
    if is_jwt_bearer or settings.get(f"{_ASSERTION}.claim.iss") or settings.get(f"{_ASSERTION}.private.key.file"):
        return _signed_assertion(settings)
    secret = settings.get(_PROOF) or line.options.get("clientSecret", "")
    if client_id is None or not secret:
        missing = _PROOF if client_id is not None else _ID
        raise settings.refused(missing, f"the value is missing: a token endpoint wants {_ID} and {_PROOF}, or {_ASSERTION}.*")
    encoded = settings.get("sasl.oauthbearer.header.urlencode", "false").lower() == "true"
    return ClientSecret(client_id=client_id, secret=secret, url_encoded=encoded)


def _signed_assertion(settings: JavaProperties) -> SignedAssertion:
    algorithm = settings.get(f"{_ASSERTION}.algorithm", _ALGORITHMS[0]).upper()
    if algorithm not in _ALGORITHMS:
        raise settings.refused(f"{_ASSERTION}.algorithm", f"{algorithm} is not one of {', '.join(_ALGORITHMS)}")
    key_name = f"{_ASSERTION}.private.key.file"
    if not (key_file := settings.get(key_name)):
        raise settings.refused(key_name, "the value is missing: it names the private key (PEM, PKCS8) that signs assertions")
    template = _template(settings)
    claims = {name: value for name in ("iss", "sub", "aud") if (value := settings.get(f"{_ASSERTION}.claim.{name}"))}
    assertion = SignedAssertion(
        algorithm=algorithm,
        key_file=key_file,
        passphrase=settings.get(f"{_ASSERTION}.private.key.passphrase") or None,
        header=template.get("header", {}),
        claims={**template.get("payload", {}), **claims},
        valid_seconds=_whole(settings, f"{_ASSERTION}.claim.exp.seconds", 300),
        valid_before_seconds=_whole(settings, f"{_ASSERTION}.claim.nbf.seconds", 60),
        with_id=settings.get(f"{_ASSERTION}.claim.jti.include", "false").lower() == "true",
    )
    try:
        assertion.key()
    except (OSError, ValueError) as error:
        why = error.strerror if isinstance(error, OSError) else str(error)
        raise settings.refused(key_name, f"{key_file} cannot be used: {why}") from None
    return assertion


def _template(settings: JavaProperties) -> Mapping[str, Any]:
    name = f"{_ASSERTION}.template.file"
    if not (path := settings.get(name)):
        return {}
    try:
        template = json.loads(Path(path).read_text("utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        why = error.strerror if isinstance(error, OSError) else "the text is not JSON"
        raise settings.refused(name, f"{path} cannot be read: {why}") from None
    if not isinstance(template, dict) or not all(isinstance(template.get(part, {}), dict) for part in ("header", "payload")):
        raise settings.refused(name, f"{path} must be a JSON object with the members header and payload, objects too")
    return template


def _require_readable(settings: JavaProperties, name: str, path: str) -> None:
    try:
        Path(path).read_bytes()
    except (OSError, ValueError) as error:
        why = error.strerror if isinstance(error, OSError) else "not a file name"
        raise settings.refused(name, f"{path} cannot be read: {why}") from None


def _whole(settings: JavaProperties, name: str, default: int) -> int:
    text = settings.get(name) or str(default)
    if not text.isascii() or not text.isdigit():
        raise settings.refused(name, "write a whole number")
    return int(text)


def _milliseconds(settings: JavaProperties, name: str, default: int) -> float:
    return _whole(settings, name, default) / 1000


class _JaasSettings(JavaProperties):
    """The options of the login module as settings."""

    def __init__(self, options: Mapping[str, str], file: JavaProperties) -> None:
        super().__init__(options, "")
        self._file = file

    def name(self, key: str) -> str:
        """Where the option stands."""
        return f"{_JAAS} ({key})"

    def refused(self, key: str, why: str) -> UsageError:
        """The error that names the option and the file."""
        return self._file.refused(_JAAS, f"{key}: {why}")
