"""What TLS needs, and what that means for Python."""

from __future__ import annotations

import ssl
from dataclasses import dataclass, field

from reconciler.backends.security.sealed import SealedKeyPair


@dataclass(frozen=True, slots=True, kw_only=True)
class Tls:
    """TLS. Without ``ca_file`` and ``ca_pem`` the system's authorities are trusted; certificate and key are for mutual TLS.

    Files are PEM; what came in another form is in ``ca_pem`` and ``key_pair``. ``files`` names every file that was read.
    """

    ca_file: str | None = None
    ca_pem: str | None = field(default=None, repr=False)
    certificate_file: str | None = None
    key_pair: SealedKeyPair | None = field(default=None, repr=False)
    key_password: str | None = field(default=None, repr=False)
    check_host_name: bool = True
    files: tuple[str, ...] = ()


def tls_context(tls: Tls) -> ssl.SSLContext:
    """What the settings mean for Python. Raises ``OSError`` (of which ``ssl.SSLError`` is one) or ``ValueError`` for bad ones."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.check_hostname = tls.check_host_name
    if tls.ca_pem:
        context.load_verify_locations(cadata=tls.ca_pem)
    elif tls.ca_file is not None:
        context.load_verify_locations(tls.ca_file)
    elif tls.ca_pem is None:
        context.load_default_certs()
    if tls.key_pair is not None:
        tls.key_pair.load_into(context)
    elif tls.certificate_file is not None:
        # An empty password keeps OpenSSL from asking for one at the terminal.
        context.load_cert_chain(tls.certificate_file, password=tls.key_password or "")
    return context
