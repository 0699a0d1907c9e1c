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
from typing import Any, Final
from urllib.parse import quote, urlsplit
from urllib.request import url2pathname

from reconciler.backends import BearerTokens, BrokerLogin, JaasLine, JavaProperties, Tls, read_tls
from reconciler.errors import UsageError

_MECHANISM: Final = "OAUTHBEARER"
_JAAS: Final = "sasl.jaas.config"
_URL: Final = "sasl.oauthbearer.token.endpoint.url"
_RETRIEVER: Final = "sasl.oauthbearer.jwt.retriever.class"
_ID: Final = "sasl.oauthbearer.client.credentials.client.id"
_PROOF: Final = "sasl.oauthbearer.client.credentials.client.secret"
_EXTENSION: Final = "extension_"
_RETRIEVERS: Final = ("DefaultJwtRetriever", "FileJwtRetriever", "ClientCredentialsJwtRetriever")


@dataclass(frozen=True, slots=True, kw_only=True)
class TokenFile(BrokerLogin):
    """A token (JWT) in a file, read at every login, so that another program may renew it."""

    path: str
    mechanism: str = _MECHANISM
    extensions: Mapping[str, str] = field(default_factory=dict)

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
class TokenEndpoint(BrokerLogin):
    """An endpoint that issues tokens for a client id and its secret. ``seconds``: for a whole answer."""

    url: str
    basic: str = field(repr=False)
    """What the header ``Authorization`` has: the client id and the secret in base64."""
    secret: str = field(repr=False)
    mechanism: str = _MECHANISM
    scope: str | None = None
    tls: Tls = field(default_factory=Tls)
    seconds: float = 20.0
    extensions: Mapping[str, str] = field(default_factory=dict)

    @property
    def files(self) -> tuple[str, ...]:
        """The files that decide who is trusted."""
        return self.tls.files

    def opened(self, _host: str, /) -> BearerTokens:
        """Tokens of the endpoint, fetched when they are needed."""
        from reconciler.features.logins.token_endpoint import EndpointTokens

        return BearerTokens(token=EndpointTokens(self).token, extensions=self.extensions)


def unverified_claims(token: str) -> Mapping[str, Any]:
    """Return the claims of a JWT, its signature unchecked; empty for anything else."""
    try:
        payload = token.split(".")[1]
        claims = json.loads(base64.urlsafe_b64decode(payload + "=" * (-len(payload) % 4)))
    except (ValueError, LookupError, RecursionError):
        return {}
    return claims if isinstance(claims, dict) else {}


def read_tokens(settings: JavaProperties, line: JaasLine) -> TokenFile | TokenEndpoint:
    """Return the source of tokens. Raises ``UsageError`` naming the setting that cannot be used."""
    if settings.get(_RETRIEVER, _RETRIEVERS[0]).rpartition(".")[2] not in _RETRIEVERS:
        raise settings.refused(_RETRIEVER, f"Java classes cannot be used here. Supported are {', '.join(_RETRIEVERS)}")
    extensions = {key.removeprefix(_EXTENSION): value for key, value in line.options.items() if key.startswith(_EXTENSION)}
    url = urlsplit(settings.get(_URL))
    if url.scheme == "file":
        return _token_file(settings, url2pathname(url.path) if url.netloc in ("", "localhost") else "", extensions)
    if url.scheme not in ("https", "http") or not url.hostname:
        advice = "write the address of a token endpoint (https://...), or of a file with a token (file:///...)"
        raise settings.refused(_URL, advice)
    if url.scheme == "http" and url.hostname not in ("127.0.0.1", "::1", "localhost"):
        raise settings.refused(_URL, "write https: over http the client's secret and the token can be read on their way")
    client_id = settings.get(_ID) or line.options.get("clientId", "")
    secret = settings.get(_PROOF) or line.options.get("clientSecret", "")
    if not client_id or not secret:
        missing = _PROOF if client_id else _ID
        raise settings.refused(missing, f"the value is missing: a token endpoint wants {_ID} and {_PROOF}")
    is_encoded = settings.get("sasl.oauthbearer.header.urlencode").lower() == "true"
    pair = ":".join(quote(text, safe="") if is_encoded else text for text in (client_id, secret))
    return TokenEndpoint(
        url=settings.get(_URL),
        basic=base64.b64encode(pair.encode()).decode("ascii"),
        secret=secret,
        scope=settings.get("sasl.oauthbearer.scope") or line.options.get("scope") or None,
        tls=read_tls(_JaasSettings(line.options, settings)),
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


class _JaasSettings(JavaProperties):
    """The options of the login module as settings."""

    def __init__(self, options: Mapping[str, str], file: JavaProperties) -> None:
        super().__init__(options, "")
        self._file = file

    def name(self, key: str) -> str:
        """Return the place of the option in the file."""
        return f"{_JAAS} ({key})"

    def refused(self, key: str, why: str) -> UsageError:
        """The error that names the option and the file."""
        return self._file.refused(_JAAS, f"{key}: {why}")
