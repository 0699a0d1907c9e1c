"""Whom the brokers take us for, by Kafka's default rules: the name that an ACL has to be granted to."""

from __future__ import annotations

import base64
import json
from pathlib import Path

from reconciler.backends.broker.settings import SaslLogin, Security, Tls, TokenFile

_ANONYMOUS = "ANONYMOUS"


def principal_name(security: Security) -> str | None:
    """The name without ``User:``, ``None`` when it cannot be told.

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
    if tls.key_pair is None and tls.certificate_file is None:
        return _ANONYMOUS
    # Imported here: most connections never need to know.
    from reconciler.backends.broker.stores import subject

    try:
        return subject(tls.key_pair.chain if tls.key_pair is not None else Path(tls.certificate_file or "").read_bytes())
    except OSError:
        return None
