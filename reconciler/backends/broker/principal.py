"""The principal that brokers will authenticate us as, by Kafka's default rules: the name that an ACL has to be granted to."""

from __future__ import annotations

import base64
import json
from pathlib import Path

from reconciler.backends.broker.settings import SaslLogin, Security, TokenFile
from reconciler.backends.security.tls import Tls

_ANONYMOUS = "ANONYMOUS"


def principal_name(security: Security) -> str | None:
    """The name without ``User:``, ``None`` when the settings do not show it.

    Brokers may map names (``ssl.principal.mapping.rules``, a principal builder), and hosted ones do; no client can see that.
    """
    if isinstance(security.sasl, SaslLogin):
        return security.sasl.username
    if isinstance(security.sasl, TokenFile):
        return _subject_of_token(security.sasl)
    if security.tls is not None:
        return _subject_of_certificate(security.tls)
    return _ANONYMOUS


def _subject_of_token(file: TokenFile) -> str | None:
    try:
        payload = file.token().split(".")[1]
        found = json.loads(base64.urlsafe_b64decode(payload + "=" * (-len(payload) % 4)))["sub"]
    except (OSError, ValueError, LookupError, TypeError):
        return None
    return found if isinstance(found, str) else None


def _subject_of_certificate(tls: Tls) -> str | None:
    # Imported here, as below: most connections never need to know.
    from reconciler.backends.security.key_stores import subject

    chain = _chain(tls)
    return _ANONYMOUS if chain is None else subject(chain)


def refused_certificate(tls: Tls | None) -> str:
    """The reason to report when a server refused the client certificate; servers do not say why."""
    from reconciler.backends.security.key_stores import past_expiry

    chain = _chain(tls) if tls is not None else None
    if chain is None:
        return "it wants a client certificate: ssl.keystore.location names a store with one"
    if day := past_expiry(chain):
        return f"it refused our client certificate, which expired on {day}"
    return "it refused our client certificate: perhaps it does not know the authority that signed it (ssl.keystore.location)"


def _chain(tls: Tls) -> bytes | None:
    """Our own certificates in PEM; ``None`` when we have none, empty when they cannot be read any more."""
    if tls.key_pair is not None:
        return tls.key_pair.chain
    if tls.certificate_file is None:
        return None
    try:
        return Path(tls.certificate_file).read_bytes()
    except OSError:
        return b""
